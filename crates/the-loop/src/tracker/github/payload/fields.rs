//! The fields that are read of a payload (ingress page, "Fields read"); all else is skipped unparsed.
//!
//! Of these fields a wrong type or a repeated key makes the whole payload invalid; `null` counts as
//! absent, and an absent field is judged where it is needed.

pub(super) mod check;
pub(super) mod pull;

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use the_loop_core::delivery::{Actor, Place};
use the_loop_core::time::Timestamp;

/// Reads a JSON object as `T`; `None` for anything else.
pub(super) fn read<'de, T: Deserialize<'de>>(json: &'de str) -> Option<T> {
    serde_json::from_str::<Object<T>>(json).ok().map(|o| o.0)
}

/// A `T` that was written as a JSON object. A derived reader alone would take an array as well.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// An object of which only the presence matters.
#[derive(Deserialize)]
pub(super) struct Present {}

/// What every event has.
#[derive(Deserialize)]
pub(super) struct Common {
    pub(super) action: Option<String>,
    pub(super) repository: Option<Object<Repository>>,
    pub(super) sender: Option<Object<User>>,
}

/// Event `issues`.
#[derive(Deserialize)]
pub(super) struct IssuesEvent {
    pub(super) action: Option<String>,
    pub(super) repository: Option<Object<Repository>>,
    pub(super) sender: Option<Object<User>>,
    pub(super) issue: Option<Object<Issue>>,
    pub(super) label: Option<Object<Label>>,
    pub(super) changes: Option<Object<Changes>>,
}

/// Event `issue_comment`.
#[derive(Deserialize)]
pub(super) struct IssueCommentEvent {
    pub(super) action: Option<String>,
    pub(super) repository: Option<Object<Repository>>,
    pub(super) sender: Option<Object<User>>,
    pub(super) issue: Option<Object<Issue>>,
    pub(super) comment: Option<Object<Comment>>,
}

#[derive(Deserialize)]
pub(super) struct Repository {
    id: Option<Number>,
    pub(super) full_name: Option<String>,
    pub(super) html_url: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct User {
    login: Option<String>,
    id: Option<Number>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Label {
    pub(super) name: Option<String>,
}

#[derive(Default, Deserialize)]
pub(super) struct Issue {
    number: Option<Number>,
    pub(super) node_id: Option<String>,
    pub(super) title: Option<String>,
    pub(super) state: Option<String>,
    labels: Option<Vec<Option<Object<Label>>>>,
    pub(super) user: Option<Object<User>>,
    pub(super) html_url: Option<String>,
    updated_at: Option<String>,
    closed_at: Option<String>,
    /// Counts for a pull request only: what it closes.
    pub(super) body: Option<String>,
    pub(super) pull_request: Option<Object<Present>>,
}

#[derive(Default, Deserialize)]
pub(super) struct Changes {
    pub(super) title: Option<Object<Present>>,
    pub(super) body: Option<Object<Present>>,
    pub(super) base: Option<Object<Present>>,
    pub(super) new_issue: Option<Object<NewIssue>>,
}

#[derive(Deserialize)]
pub(super) struct NewIssue {
    pub(super) html_url: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Comment {
    id: Option<Number>,
    pub(super) node_id: Option<String>,
    pub(super) user: Option<Object<User>>,
    pub(super) body: Option<String>,
    pub(super) html_url: Option<String>,
    created_at: Option<String>,
}

/// A comment on changed lines.
#[derive(Deserialize)]
pub(super) struct Inline {
    id: Option<Number>,
    pub(super) node_id: Option<String>,
    pub(super) user: Option<Object<User>>,
    pub(super) body: Option<String>,
    pub(super) html_url: Option<String>,
    created_at: Option<String>,
    path: Option<String>,
    line: Option<Number>,
    original_line: Option<Number>,
    diff_hunk: Option<String>,
}

impl Repository {
    /// Its number, which it keeps through every change of its name.
    pub(super) fn id(&self) -> Option<u64> {
        self.id.as_ref().and_then(Number::as_u64)
    }
}

impl User {
    /// A user with a name; a deleted account has none.
    pub(super) fn actor(&self) -> Option<Actor> {
        let login = self.login.clone().filter(|login| !login.is_empty())?;
        let suffix = login.to_ascii_lowercase().ends_with("[bot]");
        Some(Actor {
            bot: suffix || self.kind.as_deref() == Some("Bot"),
            id: self.id.as_ref().and_then(Number::as_u64),
            login,
        })
    }
}

impl Issue {
    /// Its number; `None` for one that is absent, zero, negative, broken or too large.
    pub(super) fn number(&self) -> Option<u64> {
        let number = self.number.as_ref().and_then(Number::as_u64);
        number.filter(|number| *number > 0)
    }
    /// The word in content keys.
    pub(super) fn kind(&self) -> &'static str {
        if self.pull_request.is_some() {
            "pull"
        } else {
            "issue"
        }
    }
    /// Names of its labels; `None` when the payload does not show them.
    pub(super) fn label_names(&self) -> Option<Vec<String>> {
        let labels = self.labels.as_ref()?;
        let named = labels.iter().flatten();
        Some(named.filter_map(|label| label.0.name.clone()).collect())
    }
    pub(super) fn updated_at(&self) -> Option<Timestamp> {
        time(self.updated_at.as_ref())
    }
    pub(super) fn closed_at(&self) -> Option<Timestamp> {
        time(self.closed_at.as_ref())
    }
}

impl Inline {
    /// The words, and the place that they are about.
    pub(super) fn split(self) -> (Comment, Place) {
        let place = self.place();
        let comment = Comment {
            id: self.id,
            node_id: self.node_id,
            user: self.user,
            body: self.body,
            html_url: self.html_url,
            created_at: self.created_at,
        };
        (comment, place)
    }

    /// The place alone, without a page of its own.
    pub(super) fn place(&self) -> Place {
        let line = self.line.as_ref().or(self.original_line.as_ref());
        Place {
            path: self.path.clone(),
            line: line.and_then(Number::as_u64),
            hunk: self.diff_hunk.clone(),
            html_url: None,
        }
    }
}

impl Comment {
    /// The numeric id.
    pub(super) fn id(&self) -> Option<u64> {
        self.id.as_ref().and_then(Number::as_u64)
    }
    pub(super) fn created_at(&self) -> Option<Timestamp> {
        time(self.created_at.as_ref())
    }
}

/// A text that is no point in time counts as absent.
fn time(text: Option<&String>) -> Option<Timestamp> {
    text.and_then(|text| text.parse().ok())
}
