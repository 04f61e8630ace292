//! Deliveries that verbs make, and the wait for what becomes of them (DI-6).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use the_loop_core::control::Keywords;
use the_loop_core::delivery::{Delivery, State};
use the_loop_core::event::Source;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::time::Timestamp;

use super::desk::{Desk, inbox_error, unusable_root};
use super::error::OpError;
use super::link;
use crate::engine::{Engine, Parts, Rest, is_deed};
use crate::settings::{Live, Overrides};
use crate::store::inbox::{Accepted, Inbox, OutcomeRow, Seq};
use crate::tracker::github::client::Github;

/// Between two looks at a delivery that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// A paste that is not confirmed this long after its time for confirmation is named as a wait.
const CONFIRM_GRACE: Duration = Duration::from_secs(5);

/// What became of a delivery, as far as its sender waits (DI-6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is over.
    Ended {
        /// In which state.
        state: State,
        /// Why.
        reason: Option<String>,
    },
    /// It stays in the inbox and waits for this.
    Waits {
        /// What it waits for, a word of a closed list.
        reason: String,
        /// When it is tried again, where that is known.
        until: Option<Timestamp>,
    },
    /// Nobody waited for it.
    NotWaited,
}

impl Outcome {
    /// As a note has it: `confirmed`, `dropped (awaiting-start)`, `waiting (draft)`.
    pub fn words(&self) -> Option<String> {
        match self {
            Self::Ended {
                state,
                reason: None,
            } => Some(state.to_string()),
            Self::Ended {
                state,
                reason: Some(reason),
            } => Some(format!("{state} ({reason})")),
            Self::Waits {
                reason,
                until: None,
            } => Some(format!("waiting ({reason})")),
            Self::Waits {
                reason,
                until: Some(at),
            } => Some(format!("waiting ({reason}), next try {at}")),
            Self::NotWaited => None,
        }
    }
}

/// Commits a delivery and says so in the log. After this it is not lost any more (DI-1).
pub fn submit(
    desk: &Desk,
    inbox: &Inbox,
    source: Source,
    delivery: &Delivery,
) -> Result<Seq, OpError> {
    let accepted = inbox.accept(delivery).map_err(|e| inbox_error(&e))?;
    desk.emit(source, accepted.event(delivery));
    match accepted {
        Accepted::New { seq } | Accepted::Duplicate { seq, .. } => Ok(seq),
    }
}

/// An engine of this command, for work that no daemon does.
pub fn engine(desk: &Desk, inbox: &Inbox) -> Result<Engine, OpError> {
    let instance = desk.layout.instance_id(&desk.world);
    let overrides = Overrides::default();
    Ok(Engine::new(Parts {
        world: desk.world.clone(),
        layout: desk.layout.clone(),
        settings: Arc::new(Live::new(&desk.world, &desk.loaded, overrides)),
        inbox: inbox.clone(),
        log: Arc::new(desk.log.clone()),
        github: Github::new(&desk.world),
        instance: instance.map_err(|e| unusable_root(&e))?,
    }))
}

/// Waits for an end or a reason to wait. A running daemon does the work; where none runs, or it ends
/// meanwhile, this process does it with the same engine. `stop` ends the wait; the delivery stays.
pub fn wait(
    desk: &Desk,
    inbox: &Inbox,
    item: &WorkItemRef,
    seq: Seq,
    stop: &AtomicBool,
) -> Result<Outcome, OpError> {
    let mut changes = inbox.changed();
    let mut own: Option<Engine> = None;
    let deadline = desk.world.clock.now().plus(Duration::from_secs(
        u64::from(desk.settings().routing.dispatch_timeout_seconds) + 60,
    ));
    let mut busy_since: Option<Timestamp> = None;
    link::poke(&desk.layout);
    while !stop.load(Ordering::SeqCst) {
        if let Some(outcome) = look(desk, inbox, seq)? {
            return Ok(outcome);
        }
        let now = desk.world.clock.now();
        if now > deadline {
            break;
        }
        if link::daemon(&desk.world, &desk.layout).locked {
            changes.wait_change(LOOK_EVERY);
            continue;
        }
        let engine = match &own {
            Some(engine) => engine,
            None => own.insert(engine(desk, inbox)?),
        };
        match engine.work_now(item) {
            Rest::Idle => busy_since = None,
            Rest::Waits => {
                busy_since = None;
                if look(desk, inbox, seq)?.is_none() {
                    changes.wait_change(LOOK_EVERY);
                }
            }
            Rest::Busy => {
                let since = *busy_since.get_or_insert(now);
                if now.since(since) >= desk.patience {
                    return Ok(Outcome::Waits {
                        reason: "busy".to_owned(),
                        until: None,
                    });
                }
                changes.wait_change(LOOK_EVERY);
            }
        }
    }
    Ok(Outcome::NotWaited)
}

/// How a delivery stands; `None` while something is going on.
fn look(desk: &Desk, inbox: &Inbox, seq: Seq) -> Result<Option<Outcome>, OpError> {
    let row = inbox.delivery(seq).map_err(|e| inbox_error(&e))?;
    let Some(row) = row else {
        return Ok(Some(Outcome::NotWaited));
    };
    match row.state {
        State::Routed => {}
        State::Settled | State::Dropped => {
            return Ok(Some(Outcome::Ended {
                state: row.state,
                reason: row.reason,
            }));
        }
        State::Failed => {
            return Ok(Some(Outcome::Waits {
                reason: "failed".to_owned(),
                until: row.retry_at,
            }));
        }
        State::Accepted
        | State::Queued
        | State::Sending
        | State::Pasted
        | State::Confirmed
        | State::Abandoned
        | State::Uncertain => return Ok(None),
    }
    let outcomes = inbox.outcomes_of(seq).map_err(|e| inbox_error(&e))?;
    let Some(row) = outcomes.first() else {
        return Ok(None);
    };
    if let Some(outcome) = of_row(desk, row) {
        return Ok(Some(outcome));
    }
    if row.state != State::Queued {
        return Ok(None);
    }
    // What is behind one that waits is not looked at before that one is over (DI-5): it waits for the
    // same thing, and whoever sent it is told so instead of waiting with it. Commands and ends wait for
    // each other only.
    let keywords = Keywords::configured(&desk.settings().routing.control);
    let deed = |row: &OutcomeRow| {
        let known = row.delivery.as_ref();
        known.is_ok_and(|delivery| is_deed(delivery, &keywords, desk.settings()))
    };
    let passes = deed(row);
    let open = inbox.open_outcomes(&row.key).map_err(|e| inbox_error(&e))?;
    let mut ahead = open.iter().filter(|other| {
        let before = other.seq < seq;
        match (other.state, deed(other)) {
            (State::Queued, true) => before || (!passes && other.seq != seq),
            (State::Queued | State::Failed, false) => before && !passes,
            _ => false,
        }
    });
    Ok(ahead.find_map(|ahead| of_row(desk, ahead)))
}

fn of_row(desk: &Desk, row: &OutcomeRow) -> Option<Outcome> {
    let ended = || {
        Some(Outcome::Ended {
            state: row.state,
            reason: row.reason.clone(),
        })
    };
    match row.state {
        State::Queued => row.reason.clone().map(|reason| Outcome::Waits {
            reason,
            until: row.retry_at,
        }),
        State::Failed => Some(Outcome::Waits {
            reason: row.reason.clone().unwrap_or_else(|| "failed".to_owned()),
            until: row.retry_at,
        }),
        State::Pasted if row.reason.is_some() => ended(),
        State::Pasted => {
            let timeout = desk.settings().routing.tmux.confirm_timeout_seconds;
            let patience = Duration::from_secs(u64::from(timeout)) + CONFIRM_GRACE;
            let waited = desk
                .world
                .clock
                .now()
                .since(row.pasted_at.unwrap_or(row.updated_at));
            (waited > patience).then(|| Outcome::Waits {
                reason: "unconfirmed".to_owned(),
                until: None,
            })
        }
        State::Confirmed
        | State::Settled
        | State::Dropped
        | State::Abandoned
        | State::Uncertain => ended(),
        State::Accepted | State::Routed | State::Sending => None,
    }
}
