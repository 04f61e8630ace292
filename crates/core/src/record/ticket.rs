//! A ticket of the embedded tracker and its thread (state page, section 11).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::document::{self, Bad, Fault, Fields, Map, set};
use super::entry::{EditedField, EntryKind, TicketEntry};
use crate::ids::WorkItemRef;
use crate::limits::TICKET_COMMENT_CHARS_MAX;
use crate::time::Timestamp;

/// A ticket. Everything in it is a stranger's text: the file may have come in by `git`.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// The item.
    pub item: WorkItemRef,
    /// Title.
    pub title: String,
    /// Body.
    pub body: String,
    /// Open or closed.
    pub state: TicketState,
    /// Operating-system user who made it, or `the-loop`.
    pub author: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Labels, in the order they were set.
    pub labels: Vec<String>,
    /// The readable entries of the thread, in the order of the file.
    pub entries: Vec<TicketEntry>,
    document: Map,
}

/// Is there still something to do?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TicketState {
    /// Open.
    Open,
    /// Closed.
    Closed,
}

impl TicketState {
    /// The word in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
    /// Reads the file's word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Open, Self::Closed]
            .into_iter()
            .find(|s| s.as_str() == word)
    }
}

/// A change of a ticket as a delivery carries it (ST-66).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TicketChange {
    /// The ticket was made.
    Created(Box<Ticket>),
    /// What happened is all in its entry.
    Entry(TicketEntry),
    /// An edit; its entry holds only what was there before.
    Edit {
        /// What happened.
        entry: TicketEntry,
        /// The new title or body.
        text: String,
    },
}

/// Why a comment is refused. `Display` is what the person is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommentError {
    /// Bytes that are no text.
    #[error("comment text must be UTF-8 without NUL")]
    NotText,
    /// More than 65,536 characters.
    #[error("comment text must be at most 65,536 characters")]
    TooLong,
    /// Nothing but white space.
    #[error("comment text is empty")]
    Empty,
}

/// Checks the bytes of a comment and gives them as text.
pub fn check_comment(bytes: &[u8]) -> Result<&str, CommentError> {
    let text = std::str::from_utf8(bytes).map_err(|_| CommentError::NotText)?;
    if text.contains('\0') {
        return Err(CommentError::NotText);
    }
    if text.chars().count() > TICKET_COMMENT_CHARS_MAX {
        return Err(CommentError::TooLong);
    }
    if text.trim().is_empty() {
        return Err(CommentError::Empty);
    }
    Ok(text)
}

impl Ticket {
    /// A new, open ticket without entries.
    pub fn new(
        item: &WorkItemRef,
        title: &str,
        body: &str,
        author: &str,
        created_at: Timestamp,
    ) -> Self {
        Self {
            item: item.clone(),
            title: title.to_owned(),
            body: body.to_owned(),
            state: TicketState::Open,
            author: author.to_owned(),
            created_at,
            updated_at: created_at,
            labels: Vec::new(),
            entries: Vec::new(),
            document: Map::new(),
        }
    }

    /// Reads a ticket. Entries of a kind this release does not know are kept and not shown.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let document = document::open(bytes, super::TICKET_SCHEMA)?;
        Self::read(&Fields::root(&document)).map_err(|bad| document::at_place(bytes, bad))
    }

    fn read(fields: &Fields<'_>) -> Result<Self, Bad> {
        let mut entries = Vec::new();
        for (index, value) in fields.array("entries")?.iter().enumerate() {
            entries.extend(TicketEntry::read(
                &fields.element("entries", index, value)?,
            )?);
        }
        let created_at = fields.must_time("createdAt")?;
        Ok(Self {
            item: fields.item("ref")?,
            title: fields.must_text("title")?.to_owned(),
            body: fields.owned("body")?.unwrap_or_default(),
            state: fields.must_word("state", TicketState::parse)?,
            author: fields.owned("author")?.unwrap_or_default(),
            created_at,
            updated_at: fields.time("updatedAt")?.unwrap_or(created_at),
            labels: fields.texts("labels")?,
            entries,
            document: fields.map().clone(),
        })
    }

    /// The bytes to write.
    pub fn to_bytes(&self) -> Vec<u8> {
        document::to_plain_bytes(&self.to_map())
    }

    /// The ticket as a JSON object, with the fields and entries this release does not know.
    pub fn to_map(&self) -> Map {
        let mut map = self.document.clone();
        let old = Self::read(&Fields::root(&self.document)).ok();
        let new = |same: fn(&Self, &Self) -> bool| old.as_ref().is_none_or(|o| !same(o, self));
        if new(|a, b| a.item == b.item) {
            set(&mut map, "ref", self.item.to_string());
        }
        if new(|a, b| a.title == b.title) {
            set(&mut map, "title", self.title.as_str());
        }
        if new(|a, b| a.body == b.body) {
            set(&mut map, "body", self.body.as_str());
        }
        if new(|a, b| a.state == b.state) {
            set(&mut map, "state", self.state.as_str());
        }
        if new(|a, b| a.author == b.author) {
            set(&mut map, "author", self.author.as_str());
        }
        if new(|a, b| a.created_at == b.created_at) {
            set(&mut map, "createdAt", self.created_at.seconds());
        }
        if new(|a, b| a.updated_at == b.updated_at) {
            set(&mut map, "updatedAt", self.updated_at.seconds());
        }
        if new(|a, b| a.labels == b.labels) {
            set(&mut map, "labels", self.labels.clone());
        }
        if new(|a, b| a.entries == b.entries) {
            let entries = self.merged_entries(&map);
            set(&mut map, "entries", entries);
        }
        map
    }

    /// The entries of the file in their places, changed ones changed, new ones at the end.
    fn merged_entries(&self, map: &Map) -> Vec<Value> {
        let mut out = map
            .get("entries")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        // A merge of two machines' files may leave two entries of one id; each keeps its place.
        let mut taken = vec![false; out.len()];
        for entry in &self.entries {
            let value = Value::Object(entry.merged());
            let id = Value::from(entry.id.as_str());
            let place = (0..taken.len()).find(|i| !taken[*i] && out[*i].get("id") == Some(&id));
            match place {
                Some(place) => {
                    taken[place] = true;
                    out[place] = value;
                }
                None => out.push(value),
            }
        }
        out
    }

    /// Is this label set? Labels match without case, as the provider's do.
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|l| same_label(l, label))
    }

    /// Is an entry with this id in the file, readable or not?
    pub fn has_entry(&self, id: &str) -> bool {
        let in_file = |e: &Value| e.get("id").and_then(Value::as_str) == Some(id);
        let file = self.document.get("entries").and_then(Value::as_array);
        self.entries.iter().any(|e| e.id == id) || file.is_some_and(|f| f.iter().any(in_file))
    }

    /// Adds an entry, with the new text when it is an edit, unless its id is there already (ST-66).
    /// Says whether something changed.
    pub fn apply(&mut self, entry: &TicketEntry, text: Option<&str>) -> bool {
        if self.has_entry(&entry.id) {
            return false;
        }
        match &entry.kind {
            EntryKind::Comment { .. } => {}
            EntryKind::Labeled { label } => {
                if !self.has_label(label) {
                    self.labels.push(label.clone());
                }
            }
            EntryKind::Unlabeled { label } => self.labels.retain(|l| !same_label(l, label)),
            EntryKind::Edited { field, .. } => match (field, text) {
                (EditedField::Title, Some(text)) => text.clone_into(&mut self.title),
                (EditedField::Body, Some(text)) => text.clone_into(&mut self.body),
                // Without the new text there is nothing to change; the entry still tells of it.
                (EditedField::Title | EditedField::Body, None) => {}
            },
            EntryKind::Closed { .. } => self.state = TicketState::Closed,
            EntryKind::Reopened => self.state = TicketState::Open,
        }
        self.updated_at = self.updated_at.max(entry.at);
        self.entries.push(entry.clone());
        true
    }

    /// Puts a reaction on a comment. `None` when there is no such comment, else whether it is new.
    pub fn react(&mut self, entry_id: &str, content: &str) -> Option<bool> {
        let entry = self.entries.iter_mut().find(|e| e.id == entry_id)?;
        let EntryKind::Comment { reactions, .. } = &mut entry.kind else {
            return None;
        };
        let new = reactions.iter().all(|r| r != content);
        if new {
            reactions.push(content.to_owned());
        }
        Some(new)
    }
}

fn same_label(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

/// Two tickets are equal when the same would be written for them.
impl PartialEq for Ticket {
    fn eq(&self, other: &Self) -> bool {
        self.to_map() == other.to_map()
    }
}

impl Serialize for Ticket {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_map().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ticket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        Self::read(&Fields::root(&map)).map_err(|bad| serde::de::Error::custom(bad.why))
    }
}
