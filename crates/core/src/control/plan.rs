//! What a command does, by the state of its item (IN-37).

use super::{Command, ItemState, SessionNow};
use crate::config::SpawnOnUnmatched;
use crate::event::ControlRejectReason;

/// How a command came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Via {
    /// A comment on the ticket.
    Comment,
    /// A verb in a shell. It needs no label, and a start is recorded when its session is up (SE-31).
    Verb,
}

/// What is to happen with a command. Total over commands and states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CommandPlan {
    /// Do this, and record the command at the given moment; one `control.command` tells the effect.
    Act {
        /// What to do.
        deed: Deed,
        /// When to record the command.
        record: Recording,
    },
    /// Not obeyed and not recorded: one `control.rejected`.
    Rejected(ControlRejectReason),
    /// `execute`: one `control.command` with effect `handed-to-graph`; the comment is then delivered
    /// like any text (IN-27). Never recorded.
    HandToAgent,
    /// `cleanup`: its keyword keeps its place in the grammar, so that it can never be mistaken for
    /// another command, but giving back everything local by a comment is not part of this version.
    /// The comment is delivered like any text; no control event, no record.
    AsText,
}

/// One deed of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// Start a session. Effect `spawned`, `waiting-capacity` or at last `failed`.
    Spawn,
    /// Take the pause away. Effect `resumed`.
    Resume,
    /// A session is there and takes deliveries. Effect `running`.
    Running,
    /// Pause the session. Effect `paused`.
    Pause,
    /// End the session by the close path. Effect `stopped`.
    Stop,
    /// Release the item from its limit. Effect `released`.
    Release {
        /// The session is paused besides; take that away too, or the person would have to say it twice.
        resume: bool,
    },
    /// Nothing to do. Effect `noop`.
    Noop,
}

/// When a command that is obeyed becomes the item's recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recording {
    /// Before the deed: the wish stands whatever becomes of the deed, and a crash in between repeats it.
    BeforeActing,
    /// After the deed, and only when it succeeded.
    AfterActing,
}

/// What this command does now (IN-37, SE-31).
pub fn plan(command: Command, state: ItemState, via: Via) -> CommandPlan {
    match command {
        Command::Start | Command::Contribute | Command::Do => arm(state, via),
        Command::Resume => resume(state),
        Command::Pause => wish(match state.session {
            SessionNow::Starting | SessionNow::Active => Deed::Pause,
            SessionNow::None | SessionNow::Paused => Deed::Noop,
        }),
        Command::Stop => wish(match state.session {
            SessionNow::Starting | SessionNow::Active | SessionNow::Paused => Deed::Stop,
            SessionNow::None => Deed::Noop,
        }),
        Command::Execute => CommandPlan::HandToAgent,
        Command::Cleanup => CommandPlan::AsText,
    }
}

/// A wish that stands also when there is nothing to do for it now.
fn wish(deed: Deed) -> CommandPlan {
    CommandPlan::Act {
        deed,
        record: Recording::BeforeActing,
    }
}

fn arm(state: ItemState, via: Via) -> CommandPlan {
    if state.closed {
        return CommandPlan::Rejected(ControlRejectReason::ItemClosed);
    }
    if state.parked {
        return CommandPlan::Rejected(ControlRejectReason::ItemParked);
    }
    let deed = match state.session {
        SessionNow::Starting | SessionNow::Active => Deed::Running,
        SessionNow::Paused => Deed::Resume,
        // The policy is about items without a session; losing the label ends none (IN-8).
        SessionNow::None if !policy_allows(state, via) => {
            return CommandPlan::Rejected(ControlRejectReason::SpawnPolicy);
        }
        SessionNow::None => Deed::Spawn,
    };
    // A failed spawn of a comment leaves the item armed and is tried again; one of a verb is tried
    // once and changes nothing when it fails.
    let record = match (deed, via) {
        (Deed::Spawn, Via::Verb) => Recording::AfterActing,
        (
            Deed::Spawn
            | Deed::Resume
            | Deed::Running
            | Deed::Pause
            | Deed::Stop
            | Deed::Release { .. }
            | Deed::Noop,
            Via::Comment | Via::Verb,
        ) => Recording::BeforeActing,
    };
    CommandPlan::Act { deed, record }
}

fn policy_allows(state: ItemState, via: Via) -> bool {
    match state.policy {
        SpawnOnUnmatched::Never => false,
        SpawnOnUnmatched::Labeled => state.labeled || via == Via::Verb,
        SpawnOnUnmatched::Always => true,
    }
}

fn resume(state: ItemState) -> CommandPlan {
    let paused = state.session == SessionNow::Paused;
    let deed = match (state.parked, paused) {
        (true, resume) => Deed::Release { resume },
        (false, true) => Deed::Resume,
        (false, false) => return CommandPlan::Rejected(ControlRejectReason::NothingToResume),
    };
    CommandPlan::Act {
        deed,
        record: Recording::AfterActing,
    }
}
