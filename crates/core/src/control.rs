//! Control keywords: what a comment commands, and what a command does to an item (IN-34 to IN-38).
//!
//! [`Keywords::read`] turns a comment into [`Spoken`]; [`plan`] turns a command and the state of its
//! item into a [`CommandPlan`], which the engine performs. A command is never forwarded to an agent,
//! except where the plan says [`CommandPlan::HandToAgent`] or [`CommandPlan::AsText`].

mod grammar;
mod plan;
#[cfg(test)]
mod tests;

pub(crate) use grammar::visible;
pub use plan::{CommandPlan, Deed, Recording, Via, plan};

use crate::config::{self, SpawnOnUnmatched};
/// A command that an authorised person may give in a comment or by a verb.
pub use crate::event::CommandWord as Command;
use crate::record::ControlCommand;

impl Command {
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

    /// The word under which an item keeps this command; `execute` is never kept (IN-37).
    pub fn recorded(self) -> Option<ControlCommand> {
        match self {
            Self::Start => Some(ControlCommand::Start),
            Self::Stop => Some(ControlCommand::Stop),
            Self::Pause => Some(ControlCommand::Pause),
            Self::Resume => Some(ControlCommand::Resume),
            Self::Contribute => Some(ControlCommand::Contribute),
            Self::Do => Some(ControlCommand::Do),
            Self::Cleanup => Some(ControlCommand::Cleanup),
            Self::Execute => None,
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

impl From<ControlCommand> for Command {
    fn from(recorded: ControlCommand) -> Self {
        match recorded {
            ControlCommand::Start => Self::Start,
            ControlCommand::Stop => Self::Stop,
            ControlCommand::Pause => Self::Pause,
            ControlCommand::Resume => Self::Resume,
            ControlCommand::Contribute => Self::Contribute,
            ControlCommand::Do => Self::Do,
            ControlCommand::Cleanup => Self::Cleanup,
        }
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

    /// The phrases of `routing.control`; none at all when it is switched off, and every comment is text.
    pub fn configured(control: &config::Control) -> Self {
        let phrases = Command::ALL.iter().map(|command| {
            let phrase = match command {
                Command::Start => &control.keywords.start,
                Command::Stop => &control.keywords.stop,
                Command::Pause => &control.keywords.pause,
                Command::Resume => &control.keywords.resume,
                Command::Execute => &control.keywords.execute,
                Command::Contribute => &control.keywords.contribute,
                Command::Do => &control.keywords.r#do,
                Command::Cleanup => &control.keywords.cleanup,
            };
            (*command, phrase)
        });
        Self::new(phrases.filter(|_| control.enabled))
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
    /// The phrases of an unconfigured program.
    fn default() -> Self {
        Self::configured(&config::Control::default())
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

/// What the tables of IN-27 and IN-37 look at. Gathered under the item's lock; judges nothing itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub policy: SpawnOnUnmatched,
    /// The item has the arming label.
    pub labeled: bool,
    /// A start must be recorded before an event starts a session; see [`start_required`].
    pub start_required: bool,
}

/// Must a start be recorded first? With control switched off nobody could give one by comment.
pub fn start_required(control: &config::Control) -> bool {
    control.enabled && control.require_start_command
}

impl ItemState {
    /// Is the last recorded command one that says run (IN-38)?
    pub fn armed(self) -> bool {
        self.recorded.is_some_and(Command::arms)
    }
}
