//! What an authorised delivery does, by the state of its item (IN-27).

use crate::config::SpawnOnUnmatched;
use crate::control::{Command, ItemState, SessionNow};
use crate::delivery::{Effect, State};
use crate::event::DispatchDropReason;

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
    /// The one where a session lives, the other where none does.
    NoticeOrPresence,
    /// The item ended.
    Close,
}

impl Asks {
    /// What a delivery with this effect asks; `None` for a start by a verb.
    pub fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Presence => Some(Self::Presence),
            Effect::Text(_) => Some(Self::Text),
            Effect::Notice { .. } | Effect::Check(_) => Some(Self::Notice),
            Effect::Opened => Some(Self::NoticeOrPresence),
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
    Drop(DispatchDropReason),
}

/// How a delivery that ends for this reason ends in the inbox.
pub fn end_of(reason: DispatchDropReason) -> State {
    match reason {
        DispatchDropReason::AwaitingStart | DispatchDropReason::SessionPaused => State::Settled,
        DispatchDropReason::SpawnPolicy
        | DispatchDropReason::NoSession
        | DispatchDropReason::AlreadyRunning
        | DispatchDropReason::ItemParked
        | DispatchDropReason::ItemClosed
        | DispatchDropReason::AlreadyClosed
        | DispatchDropReason::Reset
        | DispatchDropReason::AlreadyProcessed
        | DispatchDropReason::WorkItemNotFound
        | DispatchDropReason::NoWorkItem
        | DispatchDropReason::SessionVanished
        | DispatchDropReason::SessionOccupied => State::Dropped,
    }
}

/// Looks the delivery up in the table of IN-27. Total over its inputs.
pub fn admit(asks: Asks, state: ItemState) -> Admission {
    use Admission::{Deliver, Drop, Wait};
    let asks = match (asks, state.session) {
        (Asks::NoticeOrPresence, SessionNow::None) => Asks::Presence,
        (
            Asks::NoticeOrPresence,
            SessionNow::Starting | SessionNow::Active | SessionNow::Paused,
        ) => Asks::Notice,
        (Asks::Presence | Asks::Text | Asks::Notice | Asks::Close, _) => asks,
    };
    if asks == Asks::Close {
        return match state.session {
            SessionNow::None => Drop(DispatchDropReason::AlreadyClosed),
            SessionNow::Starting | SessionNow::Active | SessionNow::Paused => Admission::End,
        };
    }
    let session = state.session;
    if state.closed && session == SessionNow::None {
        return Drop(if may_start(asks) {
            DispatchDropReason::ItemClosed
        } else {
            DispatchDropReason::NoSession
        });
    }
    if session == SessionNow::Paused {
        return Drop(DispatchDropReason::SessionPaused);
    }
    if state.parked {
        return match asks {
            Asks::Presence => Drop(DispatchDropReason::ItemParked),
            Asks::Text | Asks::Notice | Asks::NoticeOrPresence | Asks::Close => Wait,
        };
    }
    match session {
        SessionNow::Starting | SessionNow::Active | SessionNow::Paused => match asks {
            Asks::Presence => Drop(DispatchDropReason::AlreadyRunning),
            Asks::Text | Asks::Notice | Asks::NoticeOrPresence | Asks::Close => Deliver,
        },
        SessionNow::None if may_start(asks) => without_session(state),
        SessionNow::None => Drop(DispatchDropReason::NoSession),
    }
}

/// May this kind of delivery start a session at all?
fn may_start(asks: Asks) -> bool {
    match asks {
        Asks::Presence | Asks::NoticeOrPresence | Asks::Text => true,
        Asks::Notice | Asks::Close => false,
    }
}

fn without_session(state: ItemState) -> Admission {
    let allowed = match state.policy {
        SpawnOnUnmatched::Never => false,
        SpawnOnUnmatched::Labeled => state.labeled,
        SpawnOnUnmatched::Always => true,
    };
    if !allowed {
        return Admission::Drop(DispatchDropReason::SpawnPolicy);
    }
    let held = state.recorded.is_some_and(Command::holds);
    if held || (state.start_required && !state.armed()) {
        return Admission::Drop(DispatchDropReason::AwaitingStart);
    }
    Admission::Spawn
}
