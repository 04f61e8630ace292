//! Which sessions are relaunched, and what becomes of each (SE-58, SE-61).

use crate::confirm::{AgentState, WaitingKind};
use crate::event::{RestartOutcome, RestartSkipped};

/// Is an agent in the middle of something?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Turn {
    /// It works, or has stopped in its work to ask.
    InWork,
    /// Its work was cut off by its account: it will not go on by itself, and the new environment may be
    /// what it lacks.
    CutOff,
    /// Nothing of its work would be lost.
    Over,
}

impl Turn {
    /// Is it told to go on once it runs again (SE-59)?
    pub fn is_told(self) -> bool {
        match self {
            Self::InWork | Self::CutOff => true,
            Self::Over => false,
        }
    }
}

/// What a state says of the turn.
pub fn turn_of(state: AgentState) -> Turn {
    match state {
        AgentState::Working
        | AgentState::Waiting(WaitingKind::Permission | WaitingKind::Question) => Turn::InWork,
        AgentState::Waiting(WaitingKind::UsageLimit | WaitingKind::Login) => Turn::CutOff,
        AgentState::Starting
        | AgentState::Ready
        | AgentState::Waiting(WaitingKind::Dialog)
        | AgentState::Idle
        | AgentState::Exited
        | AgentState::Unknown => Turn::Over,
    }
}

/// What tmux says of a session's pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pane {
    /// Its process runs.
    Live,
    /// It is dead or not there.
    NotLive,
    /// tmux gave no answer.
    Unanswered,
}

/// What is known of a session before it is relaunched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    /// There is a record of it.
    pub registered: bool,
    /// The record is live: not closed.
    pub live_record: bool,
    /// The record names a conversation, of the right shape, in which something was said.
    pub conversation: bool,
    /// Its harness can take up a conversation.
    pub resumable: bool,
    /// What tmux says.
    pub pane: Pane,
    /// Somebody's words are in its input box.
    pub draft: bool,
    /// Somebody types in it.
    pub typing: bool,
    /// What it does.
    pub turn: Turn,
}

/// May it be relaunched? The reason why not is that of SE-58's list that comes first. `force` overrules
/// drafts and typing, `when_idle` refuses what is in work.
pub fn decide(facts: Facts, force: bool, when_idle: bool) -> Result<(), RestartSkipped> {
    if !facts.registered {
        return Err(RestartSkipped::NotRegistered);
    }
    if !facts.live_record {
        return Err(RestartSkipped::NotLive);
    }
    match facts.pane {
        Pane::Live => {}
        Pane::NotLive => return Err(RestartSkipped::NotLive),
        Pane::Unanswered => return Err(RestartSkipped::TmuxUnanswered),
    }
    if !facts.resumable {
        return Err(RestartSkipped::NotResumable);
    }
    if !facts.conversation {
        return Err(RestartSkipped::NoConversation);
    }
    if facts.draft && !force {
        return Err(RestartSkipped::Draft);
    }
    if facts.typing && !force {
        return Err(RestartSkipped::Typing);
    }
    if when_idle && facts.turn == Turn::InWork {
        return Err(RestartSkipped::Working);
    }
    Ok(())
}

/// What a row says became of a session (SE-61).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowOutcome {
    /// It was done, or could not be.
    Done(RestartOutcome),
    /// A dry run stopped before it.
    WouldRestart,
}

impl RowOutcome {
    /// The word in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done(outcome) => outcome.as_str(),
            Self::WouldRestart => "would-restart",
        }
    }

    /// Does a row of this outcome make the command exit with 1? What could not be verified does not, for the
    /// values were handed over in any case (R2.3).
    pub fn fails(self) -> bool {
        match self {
            Self::Done(RestartOutcome::Failed | RestartOutcome::Stale) => true,
            Self::Done(
                RestartOutcome::Restarted | RestartOutcome::Skipped | RestartOutcome::Unverified,
            )
            | Self::WouldRestart => false,
        }
    }
}
