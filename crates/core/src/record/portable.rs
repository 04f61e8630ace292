//! The portable record: what is true of an item on any machine (state page, section 6).

use serde_json::Value;

use super::document::{self, Bad, Fault, Fields, Map, set};
use crate::ids::WorkItemRef;
use crate::time::Timestamp;

/// Keys of the record that are no sections.
const OWN_KEYS: [&str; 4] = ["ref", "url", "schema", "sealed"];

/// One item's portable record. Sections of owners this release does not know are kept (ST-21).
#[derive(Clone, Debug, PartialEq)]
pub struct PortableRecord {
    /// The item, in its canonical spelling.
    pub item: WorkItemRef,
    /// Page of the item in a browser.
    pub url: Option<String>,
    /// A tombstone: sections that are missing here are not looked for anywhere else.
    pub sealed: bool,
    document: Map,
}

impl PortableRecord {
    /// A record without sections.
    pub fn new(item: &WorkItemRef) -> Self {
        let mut document = Map::new();
        set(&mut document, "ref", item.to_string());
        if let Some(url) = item.url() {
            set(&mut document, "url", url);
        }
        Self {
            item: item.clone(),
            url: item.url(),
            sealed: false,
            document,
        }
    }

    /// Reads a record. Errors say whether it is corrupt, of a newer release, or a stranger's.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let document = document::open(bytes, super::PORTABLE_SCHEMA)?;
        let fields = Fields::root(&document);
        let read = || -> Result<_, Bad> {
            let item = fields.item("ref")?;
            let url = fields.owned("url")?;
            let sealed = fields.flag("sealed")?.unwrap_or(false);
            fields.object("poll")?;
            if let Some(control) = fields.object("control")? {
                for key in ["ref", "command", "source", "actor", "requestedAt", "note"] {
                    control.text(key)?;
                }
            }
            Ok((item, url, sealed))
        };
        let (item, url, sealed) = read().map_err(|bad| document::at_place(bytes, bad))?;
        Ok(Self {
            item,
            url,
            sealed,
            document,
        })
    }

    /// The bytes to write.
    pub fn to_bytes(&self) -> Vec<u8> {
        document::to_bytes(&Value::Object(self.document.clone()))
    }

    /// A section that has something in it.
    pub fn section(&self, name: &str) -> Option<&Map> {
        if OWN_KEYS.contains(&name) {
            return None;
        }
        self.document.get(name).and_then(Value::as_object)
    }

    /// Is the section written here, be it with something in it or as deliberately empty?
    pub fn answers_for(&self, name: &str) -> bool {
        self.sealed || self.document.contains_key(name)
    }

    /// Names of the sections that have something in them, in the order of the file.
    pub fn sections(&self) -> Vec<&str> {
        self.document
            .iter()
            .filter(|(key, value)| !OWN_KEYS.contains(&key.as_str()) && value.is_object())
            .map(|(key, _)| key.as_str())
            .collect()
    }

    /// Writes a section, or marks it deliberately empty (ST-37). The record's own keys are no
    /// sections: `false`, and nothing changes.
    pub fn set_section(&mut self, name: &str, section: Option<Map>) -> bool {
        if OWN_KEYS.contains(&name) {
            return false;
        }
        set(&mut self.document, name, section);
        true
    }

    /// The last command an authorised person gave. A section that cannot be read, or that names
    /// another item, says nothing (ST-38).
    pub fn control(&self) -> Option<Control> {
        Control::read(self.section("control")?, &self.item)
    }
}

/// The last command an authorised person gave, and how it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// What was wished.
    pub command: ControlCommand,
    /// How it came.
    pub source: ControlSource,
    /// Login, or the operating-system user.
    pub actor: String,
    /// When.
    pub requested_at: Timestamp,
    /// Page of the comment, else empty.
    pub note: String,
}

impl Control {
    /// Does the command say run?
    pub fn armed(&self) -> bool {
        self.command.arms()
    }

    fn read(section: &Map, item: &WorkItemRef) -> Option<Self> {
        let fields = Fields::root(section);
        let named = fields.text("ref").ok()?;
        let other = |text: &str| {
            text.parse::<WorkItemRef>()
                .map_or(true, |named| named.key() != item.key())
        };
        if named.is_some_and(other) {
            return None;
        }
        Some(Self {
            command: fields.must_word("command", ControlCommand::parse).ok()?,
            source: fields.must_word("source", ControlSource::parse).ok()?,
            actor: fields.owned("actor").ok()?.unwrap_or_default(),
            requested_at: fields.must_time("requestedAt").ok()?,
            note: fields.owned("note").ok()?.unwrap_or_default(),
        })
    }

    /// The section to write. `over` is the section that is there: what this release does not know
    /// of it stays.
    pub fn to_section(&self, item: &WorkItemRef, over: Option<&Map>) -> Map {
        let mut section = over.cloned().unwrap_or_default();
        set(&mut section, "ref", item.to_string());
        set(&mut section, "command", self.command.as_str());
        set(&mut section, "source", self.source.as_str());
        set(&mut section, "actor", self.actor.as_str());
        set(&mut section, "requestedAt", self.requested_at.seconds());
        set(&mut section, "note", self.note.as_str());
        section
    }
}

/// A command as it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlCommand {
    /// Run.
    Start,
    /// Do not run.
    Stop,
    /// Run later.
    Pause,
    /// Run again.
    Resume,
    /// Run, asked by somebody who adds something.
    Contribute,
    /// Run, with one thing to do.
    Do,
    /// Do not run, and give everything back.
    Cleanup,
}

impl ControlCommand {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Start,
        Self::Stop,
        Self::Pause,
        Self::Resume,
        Self::Contribute,
        Self::Do,
        Self::Cleanup,
    ];

    /// The word in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Contribute => "contribute",
            Self::Do => "do",
            Self::Cleanup => "cleanup",
        }
    }

    /// Reads the record's word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.as_str() == word)
    }

    /// Does this command say run (state page, section 6)?
    pub fn arms(self) -> bool {
        match self {
            Self::Start | Self::Resume | Self::Contribute | Self::Do => true,
            Self::Stop | Self::Pause | Self::Cleanup => false,
        }
    }
}

/// How a command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlSource {
    /// A comment on the ticket.
    Comment,
    /// A verb in a shell.
    Cli,
    /// The HTTP interface, the dashboard or MCP.
    Api,
}

impl ControlSource {
    /// The word in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Comment => "comment",
            Self::Cli => "cli",
            Self::Api => "api",
        }
    }

    /// Reads the record's word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Comment, Self::Cli, Self::Api]
            .into_iter()
            .find(|s| s.as_str() == word)
    }
}
