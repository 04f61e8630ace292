//! What a start has to do before anything is performed (DI-24, DI-43).

use the_loop_core::delivery::State;
use the_loop_core::dispatch::{Facts, Verdict};
use the_loop_core::event::{LogEvent, UncertainNext, UncertainReason};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::probe::TmuxState;
use the_loop_core::session::SessionStatus;

use super::Engine;
use super::examine::Settled;
use super::perform::Performer;
use crate::store::inbox::{ListFilter, States};
use crate::store::lock::Patience;
use crate::store::registry::Registered;

impl Engine {
    /// Settles what the last run left: spawns cut short, attempts without an outcome, sessions whose
    /// agent is gone.
    ///
    /// [`Engine::run`] does this first; whoever drives the engine by hand does it before anything else.
    pub fn recover(&self) {
        self.note_doubts();
        let Ok(listing) = self.0.registry.list() else {
            return;
        };
        let settings = self.settings();
        let snapshot = self.tmux(&settings).snapshot();
        let mut records: Vec<&Registered> = listing
            .records
            .iter()
            .filter(|r| r.record.status.is_live())
            .collect();
        records.sort_by_key(|found| found.record.created_at);
        for found in records {
            if self.is_stopping() {
                return;
            }
            let gone = match (&snapshot, TmuxTarget::parse(&found.record.tmux_target)) {
                (Ok(snapshot), Some(target)) => {
                    matches!(snapshot.state(&target), TmuxState::Dead | TmuxState::Absent)
                }
                (Ok(_), None) => true,
                (Err(_), _) => false,
            };
            match found.record.status {
                SessionStatus::Starting => {
                    // What a relaunch had ended is taken back to a session that is gone: it comes back, too.
                    let is_gone = matches!(
                        self.settle_at_start(found),
                        Some(Settled::Kept | Settled::TakenBack)
                    );
                    if is_gone && settings.routing.tmux.recover_on_start {
                        self.bring_back_later(found);
                    }
                }
                // One that was ended for being idle comes back when it is needed (DI-51).
                SessionStatus::Active
                    if gone
                        && found.record.idle_stopped_at.is_none()
                        && settings.routing.tmux.recover_on_start =>
                {
                    self.bring_back_later(found);
                }
                SessionStatus::Active | SessionStatus::Paused | SessionStatus::Closed => {}
            }
        }
    }

    /// Attempts that were under way: looked into as their items come up, said now.
    fn note_doubts(&self) {
        let filter = ListFilter {
            states: States::These(vec![State::Sending]),
            ..ListFilter::default()
        };
        for row in self.0.parts.inbox.list(&filter).unwrap_or_default() {
            let Some(Ok(item)) = row
                .item
                .as_ref()
                .map(|item| item.parse::<the_loop_core::ids::WorkItemRef>())
            else {
                continue;
            };
            super::lock(&self.0.doubtful).insert(row.seq);
            self.emit(LogEvent::DeliveryUncertain {
                work_item: item,
                endpoint: None,
                delivery_id: row.delivery_id.clone(),
                reason: UncertainReason::NoOutcome,
                intent_at: row.updated_at,
                next: UncertainNext::Transcript,
            });
        }
    }

    /// What stays unknown is looked at again with the item's next delivery.
    fn settle_at_start(&self, found: &Registered) -> Option<Settled> {
        let item = &found.record.item;
        let held = self.0.locks.item(item, "recover", Patience::none()).ok()?;
        let gathered = self.gather(&held, item, self.settings()).ok()?;
        gathered
            .live()
            .is_some_and(|record| record.status == SessionStatus::Starting)
            .then(|| self.settle_starting(&held, &gathered))
    }

    /// Brings a conversation back without a word, on a worker of its own (DI-24). A failure is no loss:
    /// the next delivery tries again.
    pub(super) fn bring_back_later(&self, found: &Registered) {
        let engine = self.clone();
        let item = found.record.item.clone();
        let key = item.key();
        if !super::lock(&self.0.in_hand).insert(key.clone()) {
            return;
        }
        let spawned = std::thread::Builder::new()
            .name(format!("recover {item}"))
            .spawn({
                let key = key.clone();
                move || {
                    engine.bring_back(&item);
                    super::lock(&engine.0.in_hand).remove(&key);
                    engine.wake();
                }
            });
        if spawned.is_err() {
            super::lock(&self.0.in_hand).remove(&key);
        }
    }

    fn bring_back(&self, item: &the_loop_core::ids::WorkItemRef) {
        let Ok(held) = self.0.locks.item(item, "recover", Patience::none()) else {
            return;
        };
        let Ok(mut gathered) = self.gather(&held, item, self.settings()) else {
            return;
        };
        self.learn_late(&held, &mut gathered);
        if gathered.fault.is_some()
            || gathered
                .live()
                .is_none_or(|r| r.status != SessionStatus::Active)
        {
            return;
        }
        let known = self.known(&gathered);
        let mut performer = Performer::new(self, &held, gathered, None);
        if performer.why_none.is_some() {
            return;
        }
        let facts = Facts {
            known,
            has_prompt: false,
            carries: performer.adapter.carries_first_prompt(),
        };
        let verdict = performer.run(facts);
        self.conclude_recovery(&performer, verdict);
    }

    /// A conversation that did not come back keeps its record: the next delivery tries again, afresh where
    /// the old conversation is lost.
    fn conclude_recovery(&self, performer: &Performer<'_>, verdict: Verdict) {
        match verdict {
            Verdict::ResumeFailed => {
                let error = performer.error.clone().unwrap_or_default();
                self.lost_conversation(performer, &error);
            }
            Verdict::BroughtBack { .. } | Verdict::AlreadyLive | Verdict::Interrupted => {}
            Verdict::Confirmed { .. }
            | Verdict::Unconfirmed { .. }
            | Verdict::Unproven(_)
            | Verdict::LeftInComposer(_)
            | Verdict::PasteUnanswered
            | Verdict::Held(_)
            | Verdict::FirstPromptWaits { .. }
            | Verdict::Failed(_)
            | Verdict::SpawnFailed { .. }
            | Verdict::LaunchUnanswered
            | Verdict::SessionOccupied
            | Verdict::GaveWay
            | Verdict::Defect => self.roll_back(performer),
        }
    }
}
