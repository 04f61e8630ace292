//! The entries of a ticket's thread (state page, section 11).

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::document::{Bad, Fields, Map, set, set_or_drop};
use crate::time::Timestamp;

/// One entry of a ticket's thread.
#[derive(Clone, Debug)]
pub struct TicketEntry {
    /// Time-ordered UUID, so that what two machines add can be merged.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// Operating-system user, or `the-loop`. In a file it proves nothing (ST-67).
    pub actor: String,
    /// What happened.
    pub kind: EntryKind,
    document: Map,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Somebody's words.
    Comment {
        /// The words.
        body: String,
        /// Reactions on it, each once.
        reactions: Vec<String>,
        /// When it was last edited.
        edited_at: Option<Timestamp>,
        /// It was taken back.
        deleted: bool,
    },
    /// A label was set.
    Labeled {
        /// The label.
        label: String,
    },
    /// A label was taken off.
    Unlabeled {
        /// The label.
        label: String,
    },
    /// Title or body was changed.
    Edited {
        /// Which.
        field: EditedField,
        /// What it was before.
        old: String,
    },
    /// The ticket was closed.
    Closed {
        /// Why.
        reason: CloseReason,
    },
    /// The ticket was opened again.
    Reopened,
}

/// A field of a ticket that can be edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EditedField {
    /// The title.
    Title,
    /// The body.
    Body,
}

impl EditedField {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Body => "body",
        }
    }
    /// Reads the file's word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Title, Self::Body]
            .into_iter()
            .find(|f| f.as_str() == word)
    }
}

/// Why a ticket was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// Done.
    Completed,
    /// Will not be done.
    NotPlanned,
}

impl CloseReason {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NotPlanned => "not-planned",
        }
    }
    /// Reads the file's word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Completed, Self::NotPlanned]
            .into_iter()
            .find(|r| r.as_str() == word)
    }
}

impl EntryKind {
    /// A comment with nothing but its words.
    pub fn comment(body: &str) -> Self {
        Self::Comment {
            body: body.to_owned(),
            reactions: Vec::new(),
            edited_at: None,
            deleted: false,
        }
    }
}

impl TicketEntry {
    /// A new entry.
    pub fn new(id: &str, at: Timestamp, actor: &str, kind: EntryKind) -> Self {
        Self {
            id: id.to_owned(),
            at,
            actor: actor.to_owned(),
            kind,
            document: Map::new(),
        }
    }

    /// `None` for a kind this release does not know.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Option<Self>, Bad> {
        let kind = match fields.must_text("kind")? {
            "comment" => EntryKind::Comment {
                body: fields.owned("body")?.unwrap_or_default(),
                reactions: fields.texts("reactions")?,
                edited_at: fields.time("editedAt")?,
                deleted: fields.flag("deleted")?.unwrap_or(false),
            },
            "labeled" => EntryKind::Labeled {
                label: fields.must_text("label")?.to_owned(),
            },
            "unlabeled" => EntryKind::Unlabeled {
                label: fields.must_text("label")?.to_owned(),
            },
            "edited" => EntryKind::Edited {
                field: fields.must_word("field", EditedField::parse)?,
                old: fields.owned("old")?.unwrap_or_default(),
            },
            "closed" => EntryKind::Closed {
                reason: fields
                    .word("reason", CloseReason::parse)?
                    .unwrap_or(CloseReason::Completed),
            },
            "reopened" => EntryKind::Reopened,
            _ => return Ok(None),
        };
        Ok(Some(Self {
            id: fields.must_text("id")?.to_owned(),
            at: fields.must_time("at")?,
            actor: fields.owned("actor")?.unwrap_or_default(),
            kind,
            document: fields.map().clone(),
        }))
    }

    /// The entry's document with what differs from it brought in.
    pub(super) fn merged(&self) -> Map {
        let old = Self::read(&Fields::root(&self.document)).ok().flatten();
        let new = |same: fn(&Self, &Self) -> bool| old.as_ref().is_none_or(|o| !same(o, self));
        let mut map = self.document.clone();
        if new(|a, b| a.id == b.id) {
            set(&mut map, "id", self.id.as_str());
        }
        if new(|a, b| a.at == b.at) {
            set(&mut map, "at", self.at.seconds());
        }
        if new(|a, b| a.actor == b.actor) {
            set(&mut map, "actor", self.actor.as_str());
        }
        if new(|a, b| a.kind == b.kind) {
            self.put_kind(&mut map);
        }
        map
    }

    fn put_kind(&self, map: &mut Map) {
        match &self.kind {
            EntryKind::Comment {
                body,
                reactions,
                edited_at,
                deleted,
            } => {
                set(map, "kind", "comment");
                set(map, "body", body.as_str());
                let reactions = (!reactions.is_empty()).then(|| reactions.clone());
                set_or_drop(map, "reactions", reactions);
                set_or_drop(map, "editedAt", edited_at.map(Timestamp::seconds));
                set_or_drop(map, "deleted", deleted.then_some(true));
            }
            EntryKind::Labeled { label } => {
                set(map, "kind", "labeled");
                set(map, "label", label.as_str());
            }
            EntryKind::Unlabeled { label } => {
                set(map, "kind", "unlabeled");
                set(map, "label", label.as_str());
            }
            EntryKind::Edited { field, old } => {
                set(map, "kind", "edited");
                set(map, "field", field.as_str());
                set(map, "old", old.as_str());
            }
            EntryKind::Closed { reason } => {
                set(map, "kind", "closed");
                set(map, "reason", reason.as_str());
            }
            EntryKind::Reopened => set(map, "kind", "reopened"),
        }
    }
}

/// Two entries are equal when the same would be written for them.
impl PartialEq for TicketEntry {
    fn eq(&self, other: &Self) -> bool {
        self.merged() == other.merged()
    }
}

impl Serialize for TicketEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.merged().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TicketEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        match Self::read(&Fields::root(&map)) {
            Ok(Some(entry)) => Ok(entry),
            Ok(None) => Err(serde::de::Error::custom("unknown kind of entry")),
            Err(bad) => Err(serde::de::Error::custom(bad.why)),
        }
    }
}
