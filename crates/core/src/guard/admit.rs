//! What an authorised delivery does, by the state of its item (IN-27).

use crate::control::{Command, ItemState, SessionNow, SpawnPolicy};
use crate::delivery::{Effect, State};

/// What a delivery asks of an item. A start by a verb is a command and goes through
/// [`crate::control::plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asks {
    /// Should this item have a session?
    Presence,
    /// A person's words for the agent.
    Text,
    /// Something an agent that lives should know.
    Notice,
    /// The item ended.
    Close,
}

impl Asks {
    /// What a delivery with this effect asks; `None` for a start by a verb.
    pub fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Presence => Some(Self::Presence),
            Effect::Text(_) => Some(Self::Text),
            Effect::Notice { .. } => Some(Self::Notice),
            Effect::Close { .. } => Some(Self::Close),
            Effect::Start { .. } => None,
        }
    }
}

/// What happens with an authorised delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// It goes to the session that lives.
    Deliver,
    /// It starts a session, and goes with it when it is text.
    Spawn,
    /// It waits until the item is released from its limit (held, reason `parked`).
    Wait,
    /// The session ends by the close path.
    End,
    /// It is over: `dispatch.dropped`, never replayed, no attempt spent.
    Drop(DropReason),
}

/// Why an authorised delivery ends without a prompt: reasons of `dispatch.dropped`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The item has a session already.
    AlreadyRunning,
    /// The session is paused.
    SessionPaused,
    /// A limit holds the item.
    ItemParked,
    /// Policy or label forbids a session.
    SpawnPolicy,
    /// No start is recorded, or something that holds the item is.
    AwaitingStart,
    /// There is no session, and this kind of delivery starts none.
    NoSession,
    /// The ticket is closed.
    ItemClosed,
    /// A close that found no live session.
    AlreadyClosed,
}

impl DropReason {
    /// The word in events and in the inbox.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AlreadyRunning => "already-running",
            Self::SessionPaused => "session-paused",
            Self::ItemParked => "item-parked",
            Self::SpawnPolicy => "spawn-policy",
            Self::AwaitingStart => "awaiting-start",
            Self::NoSession => "no-session",
            Self::ItemClosed => "item-closed",
            Self::AlreadyClosed => "already-closed",
        }
    }

    /// How it ends in the inbox.
    pub fn end(self) -> State {
        match self {
            Self::AwaitingStart | Self::SessionPaused => State::Settled,
            Self::AlreadyRunning
            | Self::ItemParked
            | Self::SpawnPolicy
            | Self::NoSession
            | Self::ItemClosed
            | Self::AlreadyClosed => State::Dropped,
        }
    }
}

/// Looks the delivery up in the table of IN-27. Total over its inputs.
pub fn admit(asks: Asks, state: ItemState) -> Admission {
    use Admission::{Deliver, Drop, Wait};
    if asks == Asks::Close {
        return match state.session {
            SessionNow::None => Drop(DropReason::AlreadyClosed),
            SessionNow::Starting | SessionNow::Active | SessionNow::Paused => Admission::End,
        };
    }
    let session = state.session;
    if state.closed && session == SessionNow::None {
        return Drop(if may_start(asks) {
            DropReason::ItemClosed
        } else {
            DropReason::NoSession
        });
    }
    if session == SessionNow::Paused {
        return Drop(DropReason::SessionPaused);
    }
    if state.parked {
        return match asks {
            Asks::Presence => Drop(DropReason::ItemParked),
            Asks::Text | Asks::Notice | Asks::Close => Wait,
        };
    }
    match session {
        SessionNow::Starting | SessionNow::Active | SessionNow::Paused => match asks {
            Asks::Presence => Drop(DropReason::AlreadyRunning),
            Asks::Text | Asks::Notice | Asks::Close => Deliver,
        },
        SessionNow::None if may_start(asks) => without_session(state),
        SessionNow::None => Drop(DropReason::NoSession),
    }
}

/// May this kind of delivery start a session at all?
fn may_start(asks: Asks) -> bool {
    match asks {
        Asks::Presence | Asks::Text => true,
        Asks::Notice | Asks::Close => false,
    }
}

fn without_session(state: ItemState) -> Admission {
    let allowed = match state.policy {
        SpawnPolicy::Never => false,
        SpawnPolicy::Labeled => state.labeled,
        SpawnPolicy::Always => true,
    };
    if !allowed {
        return Admission::Drop(DropReason::SpawnPolicy);
    }
    let held = state.recorded.is_some_and(Command::holds);
    if held || (state.start_required && !state.armed()) {
        return Admission::Drop(DropReason::AwaitingStart);
    }
    Admission::Spawn
}
