//! GitHub's lists, as far as the poller reads them. What is not read is passed on as it came.

use serde::Deserialize;
use serde_json::value::RawValue;
use the_loop_core::delivery::Actor;
use the_loop_core::time::Timestamp;

use crate::tracker::github::payload::actor_of;

/// A ticket or pull request in a list.
#[derive(Deserialize)]
pub(super) struct ItemRow<'a> {
    pub number: u64,
    pub state: Option<String>,
    pub updated_at: Option<String>,
    pub closed_at: Option<String>,
    pub body: Option<String>,
    #[serde(default)]
    pub labels: Vec<LabelRow>,
    #[serde(borrow)]
    pub user: Option<&'a RawValue>,
    #[serde(borrow)]
    pub pull_request: Option<&'a RawValue>,
}

/// A label: an object, or only its name.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum LabelRow {
    Name(String),
    Label { name: Option<String> },
}

/// A comment in a conversation or on changed lines, or a review.
#[derive(Deserialize)]
pub(super) struct WordsRow<'a> {
    pub id: u64,
    pub node_id: Option<String>,
    pub body: Option<String>,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
    pub submitted_at: Option<String>,
    pub issue_url: Option<String>,
    pub pull_request_url: Option<String>,
    pub pull_request_review_id: Option<u64>,
    #[serde(borrow)]
    pub user: Option<&'a RawValue>,
}

/// A run of a workflow.
#[derive(Deserialize)]
pub(super) struct RunRow<'a> {
    pub id: u64,
    pub run_attempt: Option<u64>,
    pub updated_at: Option<String>,
    pub head_branch: Option<String>,
    #[serde(default)]
    pub pull_requests: Vec<NumberRow>,
    #[serde(borrow)]
    pub repository: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct NumberRow {
    pub number: u64,
}

/// Something that happened to an item.
#[derive(Deserialize)]
pub(super) struct EventRow<'a> {
    pub event: Option<String>,
    pub created_at: Option<String>,
    pub label: Option<LabelRow>,
    #[serde(borrow)]
    pub actor: Option<&'a RawValue>,
}

impl ItemRow<'_> {
    pub fn label_names(&self) -> Vec<&str> {
        self.labels.iter().filter_map(LabelRow::name).collect()
    }

    pub fn is_pull(&self) -> bool {
        self.pull_request.is_some()
    }

    pub fn is_closed(&self) -> bool {
        self.state.as_deref() == Some("closed")
    }

    pub fn author(&self) -> Option<Actor> {
        actor(self.user)
    }
}

impl LabelRow {
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Label { name } => name.as_deref(),
        }
    }
}

impl WordsRow<'_> {
    /// When they were said; a review, when it was submitted.
    pub fn said_at(&self) -> Option<Timestamp> {
        time(self.submitted_at.as_ref().or(self.created_at.as_ref()))
    }

    /// The number of the item that they were said on.
    pub fn number(&self) -> Option<u64> {
        let url = self.issue_url.as_ref().or(self.pull_request_url.as_ref())?;
        url.rsplit('/').next()?.parse().ok()
    }

    /// Their opaque id, or their number where there is none.
    pub fn key(&self) -> String {
        let opaque = self.node_id.clone().filter(|id| !id.is_empty());
        opaque.unwrap_or_else(|| self.id.to_string())
    }

    /// Were they changed after they were said? What was drafted with a review changes when that is submitted.
    pub fn is_edited(&self, said_at: Timestamp) -> bool {
        time(self.updated_at.as_ref()).is_some_and(|updated| updated > said_at)
    }

    pub fn author(&self) -> Option<Actor> {
        actor(self.user)
    }
}

pub(super) fn actor(user: Option<&RawValue>) -> Option<Actor> {
    actor_of(user?.get())
}

pub(super) fn time(text: Option<&String>) -> Option<Timestamp> {
    text?.parse().ok()
}
