//! Control keywords: what a comment commands, and what a command does to an item (IN-34 to IN-38).
//!
//! [`Keywords::read`] turns a comment into [`Spoken`]; [`plan`] turns a command and the state of its
//! item into a [`CommandPlan`], which the engine performs. A command is never forwarded to an agent,
//! except where the plan says [`CommandPlan::HandToAgent`] or [`CommandPlan::AsText`].

mod grammar;
mod plan;
#[cfg(test)]
mod tests;

pub use plan::{CommandPlan, Deed, Recording, Rejection, Via, plan};

use serde::{Deserialize, Serialize};

/// A command that an authorised person may give in a comment or by a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// Have a session.
    Start,
    /// End the session; no new one until somebody starts it.
    Stop,
    /// Keep the session, deliver nothing.
    Pause,
    /// Deliver again; also releases an item that a limit parked.
    Resume,
    /// A step of a declared process; this version hands it to the agent as text.
    Execute,
    /// As `start`, recorded under its own name; text may follow it.
    Contribute,
    /// As `start`, recorded under its own name; text may follow it.
    Do,
    /// Give back everything local; see [`CommandPlan::AsText`].
    Cleanup,
}

impl Command {
    /// Every command, in the order of the configuration reference.
    pub const ALL: [Self; 8] = [
        Self::Start,
        Self::Stop,
        Self::Pause,
        Self::Resume,
        Self::Execute,
        Self::Contribute,
        Self::Do,
        Self::Cleanup,
    ];

    /// The word in records, events and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Execute => "execute",
            Self::Contribute => "contribute",
            Self::Do => "do",
            Self::Cleanup => "cleanup",
        }
    }

    /// Reads the word of [`Command::as_str`].
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.as_str() == word)
    }

    /// An item whose last recorded command is one of these is armed: it may have a session (IN-38).
    pub fn arms(self) -> bool {
        match self {
            Self::Start | Self::Resume | Self::Contribute | Self::Do => true,
            Self::Stop | Self::Pause | Self::Execute | Self::Cleanup => false,
        }
    }

    /// An item whose last recorded command is one of these gets no session, whatever the
    /// configuration requires (IN-27).
    pub fn holds(self) -> bool {
        match self {
            Self::Stop | Self::Pause | Self::Cleanup => true,
            Self::Start | Self::Resume | Self::Execute | Self::Contribute | Self::Do => false,
        }
    }

    /// May words for the agent follow the keyword on its line (IN-35)?
    fn takes_text(self) -> bool {
        match self {
            Self::Contribute | Self::Do => true,
            Self::Start
            | Self::Stop
            | Self::Pause
            | Self::Resume
            | Self::Execute
            | Self::Cleanup => false,
        }
    }
}

impl std::fmt::Display for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a comment says (IN-36).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// No command line: words for the agent.
    Text,
    /// One command, on however many lines.
    Command(Command),
    /// Different commands, each once, in the order they were read. Nothing may be done.
    Ambiguous(Vec<Command>),
}

/// The configured phrases, ready for comparison. At most one phrase a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keywords {
    /// Longest folded phrase first, so that a phrase that continues another one wins.
    phrases: Vec<Phrase>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Phrase {
    command: Command,
    written: String,
    folded: String,
}

impl Keywords {
    /// Takes the configured phrases (IN-35). One that is blank is switched off and cannot be spoken.
    pub fn new<S: AsRef<str>>(configured: impl IntoIterator<Item = (Command, S)>) -> Self {
        let mut phrases: Vec<Phrase> = configured
            .into_iter()
            .map(|(command, phrase)| Phrase {
                command,
                written: phrase.as_ref().trim_matches(grammar::is_blank).to_owned(),
                folded: grammar::fold(phrase.as_ref()),
            })
            .filter(|phrase| !phrase.folded.is_empty())
            .collect();
        phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.folded.chars().count()));
        Self { phrases }
    }

    /// No keyword at all: every comment is text (`routing.control.enabled: false`).
    pub fn off() -> Self {
        Self {
            phrases: Vec::new(),
        }
    }

    /// The phrase of a command as it was configured; `None` when it is switched off.
    pub fn phrase(&self, command: Command) -> Option<&str> {
        self.phrases
            .iter()
            .find(|phrase| phrase.command == command)
            .map(|phrase| phrase.written.as_str())
    }

    /// What this comment says (IN-35, IN-36). Time and memory are linear in its length.
    pub fn read(&self, body: &str) -> Spoken {
        grammar::read(self, body)
    }
}

impl Default for Keywords {
    /// `the-loop <verb>` for every command.
    fn default() -> Self {
        Self::new(Command::ALL.map(|command| (command, format!("the-loop {command}"))))
    }
}

/// The session of an item as its record tells it. A closed record is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionNow {
    /// No live record.
    None,
    /// A record that is being started.
    Starting,
    /// A record that takes deliveries.
    Active,
    /// A record that is kept and takes none.
    Paused,
}

/// Which items without a session an event may start one for (`routing.spawnOnUnmatched`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpawnPolicy {
    /// None.
    Never,
    /// Those with the arming label.
    Labeled,
    /// Every one.
    Always,
}

/// What the tables of IN-27 and IN-37 look at. Gathered under the item's lock; judges nothing itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ItemState {
    /// The session, if any.
    pub session: SessionNow,
    /// A limit holds the item.
    pub parked: bool,
    /// The ticket is closed.
    pub closed: bool,
    /// The last recorded command.
    pub recorded: Option<Command>,
    /// The configured policy.
    pub policy: SpawnPolicy,
    /// The item has the arming label.
    pub labeled: bool,
    /// A start must be recorded before an event starts a session (`routing.control.requireStartCommand`
    /// and `routing.control.enabled`).
    pub start_required: bool,
}

impl ItemState {
    /// Is the last recorded command one that says run (IN-38)?
    pub fn armed(self) -> bool {
        self.recorded.is_some_and(Command::arms)
    }
}
