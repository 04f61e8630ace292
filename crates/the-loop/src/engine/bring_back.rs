//! Conversations that are brought back without a word, oldest first (DI-24, DI-41).
//!
//! At a start, and when the tmux server dies under a running engine, the agents of many records are gone
//! at once. They wait here in the order in which their sessions were made. As many are in work at a time
//! as dispatches may be, and none begins while the capacity rules of DI-51 leave no place; a delivery that
//! comes meanwhile brings its own conversation back and does not wait for this line.

use std::collections::BTreeMap;

use the_loop_core::config::Settings;
use the_loop_core::dispatch::{Facts, HoldReason, Known, Trouble, Verdict};
use the_loop_core::ids::{ItemKey, TmuxTarget, WorkItemRef};
use the_loop_core::limits::RETRY_WAITS;
use the_loop_core::probe::TmuxState;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::examine::Settled;
use super::perform::Performer;
use super::{Engine, TICK, lock};
use crate::store::lock::Patience;
use crate::store::registry::Registered;
use crate::tmux::Snapshot;

/// A place in the line: when the session was first made, then its identity.
type Turn = (Timestamp, ItemKey);

/// The line.
#[derive(Debug, Default)]
pub(super) struct Line {
    due: BTreeMap<Turn, Due>,
    in_work: usize,
    /// Places for further sessions at the last look at all of them, less those taken since.
    places: usize,
}

#[derive(Clone, Debug)]
struct Due {
    item: WorkItemRef,
    failed: u32,
    not_before: Timestamp,
    in_work: bool,
}

/// How one try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// It is back, or there is nothing to bring back; its next delivery sees to the rest.
    Over,
    /// Nothing was tried, or what was tried cannot be judged yet.
    Later,
    /// There is no place for it now.
    NoPlace,
    /// It did not come up.
    Failed,
}

impl Engine {
    /// Puts a conversation into the line; one that is in it keeps its turn.
    pub(super) fn bring_back_later(&self, record: &SessionRecord) {
        let turn = (record.created_at, record.item.key());
        let due = Due {
            item: record.item.clone(),
            failed: 0,
            not_before: self.world().clock.now(),
            in_work: false,
        };
        lock(&self.0.line).due.entry(turn).or_insert(due);
    }

    /// Counts the places for further sessions with a look that was taken anyway; `None`: tmux did not say,
    /// so nothing is begun.
    pub(super) fn count_places(
        &self,
        settings: &Settings,
        look: Option<(&Snapshot, &[&Registered])>,
    ) {
        if lock(&self.0.line).due.is_empty() {
            return;
        }
        let max = settings.routing.limits.max_live_sessions as usize;
        let places = match look {
            None => 0,
            Some(_) if max == 0 => usize::MAX,
            Some((snapshot, records)) => {
                let lives = |found: &&&Registered| {
                    TmuxTarget::parse(&found.record.tmux_target)
                        .is_some_and(|target| snapshot.state(&target) == TmuxState::Live)
                };
                let live = records.iter().filter(lives).count();
                max.saturating_sub(live + self.0.room.claimed())
            }
        };
        lock(&self.0.line).places = places;
    }

    /// Begins with those at the head of the line, as far as there are places.
    pub(super) fn bring_back_due(&self) {
        while !self.is_stopping()
            && let Some((turn, item)) = self.next_due()
        {
            self.begin_bringing_back(turn, item);
        }
    }

    fn next_due(&self) -> Option<(Turn, WorkItemRef)> {
        let settings = self.settings();
        let now = self.world().clock.now();
        let mut line = lock(&self.0.line);
        let at_once = settings.routing.max_concurrent_dispatches.max(1) as usize;
        if line.due.is_empty() || line.places == 0 || line.in_work >= at_once {
            return None;
        }
        if self.short_of(&settings).is_some() {
            return None;
        }
        let mut in_hand = lock(&self.0.in_hand);
        let (turn, due) = line.due.iter_mut().find(|((_, key), due)| {
            !due.in_work && due.not_before <= now && !in_hand.contains(key)
        })?;
        due.in_work = true;
        in_hand.insert(turn.1.clone());
        let next = (turn.clone(), due.item.clone());
        line.in_work += 1;
        line.places = line.places.saturating_sub(1);
        Some(next)
    }

    fn begin_bringing_back(&self, turn: Turn, item: WorkItemRef) {
        let engine = self.clone();
        let begun = std::thread::Builder::new()
            .name(format!("recover {item}"))
            .spawn({
                let turn = turn.clone();
                move || {
                    let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        engine.bring_back(&item)
                    }));
                    let ended = tried.unwrap_or_else(|_| {
                        engine.set_aside(&item, "bringing it back ended in a defect");
                        Ended::Over
                    });
                    engine.tried(&turn, ended);
                    engine.wake();
                }
            });
        if begun.is_err() {
            self.tried(&turn, Ended::Later);
        }
    }

    fn tried(&self, turn: &Turn, ended: Ended) {
        let now = self.world().clock.now();
        let budget = self.settings().polling.max_retries;
        let mut line = lock(&self.0.line);
        line.in_work = line.in_work.saturating_sub(1);
        if ended == Ended::NoPlace {
            line.places = 0;
        }
        let over = line.due.get_mut(turn).is_none_or(|due| {
            due.in_work = false;
            match ended {
                Ended::Over => return true,
                Ended::NoPlace => {}
                Ended::Later => due.not_before = now.plus(TICK),
                Ended::Failed => {
                    let step = (due.failed as usize).min(RETRY_WAITS.len() - 1);
                    due.not_before = now.plus(RETRY_WAITS[step]);
                    due.failed += 1;
                }
            }
            due.failed >= budget
        });
        if over {
            line.due.remove(turn);
        }
        drop(line);
        lock(&self.0.in_hand).remove(&turn.1);
    }

    fn bring_back(&self, item: &WorkItemRef) -> Ended {
        let Ok(held) = self.0.locks.item(item, "recover", Patience::none()) else {
            return Ended::Later;
        };
        let Ok(mut gathered) = self.gather(&held, item, self.settings()) else {
            return Ended::Later;
        };
        self.learn_late(&held, &mut gathered);
        let Some(record) = gathered.live().filter(|_| gathered.fault.is_none()) else {
            return Ended::Over;
        };
        match record.status {
            SessionStatus::Starting => {
                return match self.settle_starting(&held, &gathered) {
                    Settled::Adopted => Ended::Over,
                    Settled::TakenBack | Settled::Kept | Settled::Unknown => Ended::Later,
                };
            }
            SessionStatus::Active => {}
            SessionStatus::Paused | SessionStatus::Closed => return Ended::Over,
        }
        let known = self.known(&gathered);
        // A blank conversation that nobody tells anything helps nobody: the next delivery begins it.
        if known != (Known::Session { resumable: true }) {
            return Ended::Over;
        }
        let mut performer = Performer::new(self, &held, gathered, None);
        // A harness that is not known any more is told of with the next delivery.
        if performer.why_none.is_some() {
            return Ended::Over;
        }
        let facts = Facts {
            known,
            has_prompt: false,
            carries: performer.adapter.carries_prompt(known.launch()),
        };
        let verdict = performer.run(facts);
        self.conclude_recovery(&performer, verdict)
    }

    /// A conversation that did not come back keeps its record: the next delivery tries again, afresh where
    /// the old conversation is lost.
    fn conclude_recovery(&self, performer: &Performer<'_>, verdict: Verdict) -> Ended {
        let (ended, takes_back) = match verdict {
            Verdict::ResumeFailed => {
                let error = performer.error.clone().unwrap_or_default();
                self.lost_conversation(performer, &error);
                (Ended::Over, false)
            }
            Verdict::BroughtBack { .. }
            | Verdict::AlreadyLive
            | Verdict::FirstPromptWaits { .. }
            | Verdict::Interrupted => (Ended::Over, false),
            // It may live, and then only the journal says which conversation it is.
            Verdict::LaunchUnanswered | Verdict::Failed(Trouble::Record) => (Ended::Later, false),
            Verdict::Held(
                HoldReason::WaitingCapacity | HoldReason::LowMemory | HoldReason::LowDisk,
            ) => (Ended::NoPlace, true),
            Verdict::Held(_)
            | Verdict::GaveWay
            | Verdict::Failed(Trouble::Vanished | Trouble::PasteRefused) => (Ended::Later, true),
            Verdict::SpawnFailed { why, .. } => {
                self.say_spawn_failed(performer, why, why.may_retry());
                let ended = if why.may_retry() {
                    Ended::Failed
                } else {
                    Ended::Over
                };
                (ended, true)
            }
            Verdict::SessionOccupied => {
                self.say_occupied(performer);
                (Ended::Over, true)
            }
            Verdict::Confirmed { .. }
            | Verdict::Unconfirmed { .. }
            | Verdict::Unproven(_)
            | Verdict::LeftInComposer(_)
            | Verdict::PasteUnanswered
            | Verdict::Defect => {
                self.set_aside(
                    &performer.gathered.item,
                    "bringing it back met an answer that was not asked for",
                );
                (Ended::Over, true)
            }
        };
        if takes_back {
            self.roll_back(performer);
        }
        ended
    }
}
