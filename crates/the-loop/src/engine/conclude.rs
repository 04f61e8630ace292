//! How a dispatch ended: outcome, record and events, in the order that survives a crash (EV-8).

use the_loop_core::confirm::By;
use the_loop_core::delivery::{Effect, State};
use the_loop_core::dispatch::{HoldReason, SpawnFailure, Trouble, Unproven, Verdict};
use the_loop_core::event::{
    ConfirmedBy as ByWord, ControlEffect, DispatchDropReason, DispatchVia, LogEvent, ReactionState,
    SucceededReason, SucceededState, UncertainNext, UncertainReason, UnconfirmedNext,
};
use the_loop_core::ids::ItemKey;
use the_loop_core::limits::RECENT_DELIVERIES_MAX;
use the_loop_core::poll::{LEDGER, with_seen};
use the_loop_core::time::Timestamp;

use super::item::{Gathered, Job, Progress};
use super::perform::Performer;
use super::{Engine, lock};
use crate::store::inbox::{ConfirmedBy, OutcomeChange};
use crate::store::lock::ItemLock;

impl Engine {
    /// Changes an outcome's row. `None` when the inbox refuses: the caller leaves the item alone for now.
    pub(super) fn change(
        &self,
        held: &ItemLock,
        key: &ItemKey,
        job: &Job,
        change: OutcomeChange,
    ) -> Option<Job> {
        let row = self.0.parts.inbox.change(held, job.seq, key, change).ok()?;
        if row.state.is_end() {
            self.note_seen(held, job);
        }
        Some(Job {
            row,
            delivery: job.delivery.clone(),
        })
    }

    /// Words whose delivery is over are known in the ledger of their item, where the poller has begun one: it
    /// travels to machines that never had them in their inbox (IN-44).
    fn note_seen(&self, held: &ItemLock, job: &Job) {
        let Effect::Text(text) = &job.delivery.effect else {
            return;
        };
        let (item, portable) = (&job.delivery.item, &self.0.portable);
        let Some(id) = text.comment_id.as_deref().filter(|_| !item.is_local()) else {
            return;
        };
        let ledger = portable.section(item, LEDGER).ok().flatten();
        let Some(ledger) = ledger.and_then(|ledger| with_seen(&ledger, id)) else {
            return;
        };
        // What cannot be written is known by its key all the same, on this machine.
        let _ = portable.write_section(held, item, LEDGER, Some(ledger));
    }

    pub(super) fn conclude(&self, performer: Performer<'_>, verdict: Verdict) -> Progress {
        let held = performer.held;
        let gathered = performer.gathered.clone();
        let Some(job) = performer.job.clone() else {
            return Progress::Wait;
        };
        if !matches!(verdict, Verdict::Held(HoldReason::WaitingCapacity)) {
            self.leaves_the_line(job.seq);
        }
        let error = performer.error.clone().unwrap_or_default();
        if ended_in_launch(verdict)
            && let Some(by) = performer.evidence(&job)
        {
            return self.ended_with_it(&performer, &job, by);
        }
        if performer.averted && has_text_in_pane(verdict) {
            self.say_averted(&performer, &job);
        }
        match verdict {
            Verdict::Confirmed { by, .. } => self.confirmed(held, &gathered, &job, by),
            Verdict::Unproven(why) => self.unproven(held, &gathered, &job, why),
            Verdict::Unconfirmed { in_composer } => {
                let next = if in_composer {
                    UnconfirmedNext::Operator
                } else {
                    UnconfirmedNext::Wait
                };
                // Left to a person is said once, here or by a later look.
                if !in_composer || lock(&self.0.left_to_person).insert(job.seq) {
                    self.say_unconfirmed(&gathered, &job, performer.adapter.name(), next);
                }
                Progress::Wait
            }
            Verdict::LeftInComposer(reason) | Verdict::FirstPromptWaits { reason, .. } => {
                self.say_held(&gathered, &job, reason);
                Progress::Wait
            }
            Verdict::PasteUnanswered => {
                self.say_uncertain(
                    &gathered,
                    &job,
                    UncertainReason::TmuxUnanswered,
                    UncertainNext::Transcript,
                );
                Progress::Wait
            }
            Verdict::Held(reason) => {
                self.roll_back(&performer);
                self.hold(held, &gathered, &job, reason)
            }
            // The agent lives and may have the prompt; only the record does not say so yet. The next look
            // adopts it and examines what it was given: a retry would give it the prompt twice.
            Verdict::Failed(Trouble::Record)
                if matches!(job.state, State::Sending | State::Pasted) =>
            {
                self.emit(LogEvent::DispatchError {
                    work_item: Some(gathered.item.clone()),
                    gh_event: Some(job.delivery.event.clone()),
                    delivery_id: Some(job.delivery.delivery_id.clone()),
                    error: trouble_words(Trouble::Record, &error),
                    will_retry: true,
                });
                Progress::Wait
            }
            Verdict::Failed(trouble) => {
                let words = trouble_words(trouble, &error);
                self.try_failed(held, &gathered, &job, &words, true)
            }
            Verdict::SpawnFailed { why, .. } => self.spawn_failed(&performer, &job, why, &error),
            Verdict::ResumeFailed => self.resume_failed(&performer, &job, &error),
            Verdict::LaunchUnanswered => {
                self.say_held(&gathered, &job, HoldReason::TmuxUnanswered);
                Progress::Wait
            }
            Verdict::SessionOccupied => {
                self.roll_back(&performer);
                self.react(&job, ReactionState::Error);
                self.drop_it(
                    held,
                    &gathered,
                    &job,
                    DispatchDropReason::SessionOccupied,
                    Some(error),
                );
                Progress::Again
            }
            // What waits is pasted at the next look.
            Verdict::BroughtBack { .. } => Progress::Again,
            Verdict::AlreadyLive | Verdict::Interrupted => Progress::Wait,
            Verdict::GaveWay => {
                self.roll_back(&performer);
                Progress::Wait
            }
            Verdict::Defect => {
                self.set_aside(
                    &gathered.item,
                    "the dispatch machine met an answer it did not ask for",
                );
                Progress::Wait
            }
        }
    }

    /// It lived after all, and has the prompt in its pane (seed 004, AC10).
    fn say_averted(&self, performer: &Performer<'_>, job: &Job) {
        self.emit(LogEvent::SessionRespawnAverted {
            work_item: performer.gathered.item.clone(),
            harness: performer.adapter.name().to_owned(),
            tmux_target: performer.target.to_string(),
            gh_event: job.delivery.event.clone(),
            action: job.delivery.action.clone(),
            delivery_id: Some(job.delivery.delivery_id.clone()),
        });
    }

    /// It was submitted to a harness that cannot show more (DI-29): `pasted` is the end.
    pub(super) fn unproven(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        job: &Job,
        why: Unproven,
    ) -> Progress {
        let now = self.world().clock.now();
        self.remember_delivery(held, gathered, job, now);
        self.emit(LogEvent::DispatchSucceeded {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness: gathered
                .record
                .as_ref()
                .map(|record| record.harness.clone())
                .unwrap_or_default(),
            via: DispatchVia::Tmux,
            gh_event: job.delivery.event.clone(),
            delivery_id: job.delivery.delivery_id.clone(),
            state: SucceededState::Pasted,
            reason: Some(match why {
                Unproven::NoConfirmation => SucceededReason::NoConfirmation,
                Unproven::ScreenSeen => SucceededReason::ScreenSeen,
            }),
        });
        self.command_came_up(held, gathered, job);
        self.react(job, ReactionState::Completed);
        lock(&self.0.holds).remove(&job.seq);
        let over = OutcomeChange::pasted_for_good(why.as_str());
        match self.change(held, &gathered.key, job, over) {
            Some(_) => Progress::Again,
            None => Progress::Wait,
        }
    }

    /// The harness has it: record, events, outcome.
    pub(super) fn confirmed(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        job: &Job,
        by: By,
    ) -> Progress {
        let now = self.world().clock.now();
        let (by_word, by) = match by {
            By::Hook => (ByWord::Hook, ConfirmedBy::Hook),
            By::Transcript => (ByWord::Transcript, ConfirmedBy::Transcript),
        };
        let harness = gathered
            .record
            .as_ref()
            .map(|record| record.harness.clone())
            .unwrap_or_default();
        self.remember_delivery(held, gathered, job, now);
        self.emit(LogEvent::DeliveryConfirmed {
            work_item: gathered.item.clone(),
            endpoint: None,
            delivery_id: job.delivery.delivery_id.clone(),
            harness: harness.clone(),
            by: by_word,
            waited_ms: job
                .intent_at
                .map_or(0, |at| now.since(at).as_millis() as u64),
        });
        self.resolved_sent(gathered, job, by_word);
        self.emit(LogEvent::DispatchSucceeded {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness,
            via: DispatchVia::Tmux,
            gh_event: job.delivery.event.clone(),
            delivery_id: job.delivery.delivery_id.clone(),
            state: SucceededState::Confirmed,
            reason: None,
        });
        self.command_came_up(held, gathered, job);
        self.react(job, ReactionState::Completed);
        lock(&self.0.holds).remove(&job.seq);
        match self.change(
            held,
            &gathered.key,
            job,
            OutcomeChange::to(State::Confirmed).confirmed(by, now),
        ) {
            Some(_) => Progress::Again,
            None => Progress::Wait,
        }
    }

    /// A start whose session is up: recorded when it came from a verb, and told once (SE-31, IN-38).
    fn command_came_up(&self, held: &ItemLock, gathered: &Gathered, job: &Job) {
        let Some(command) = Self::arming(&gathered.settings, job) else {
            return;
        };
        if matches!(job.delivery.effect, Effect::Start { .. }) {
            let _ = self.record_control(held, gathered, job, command);
        }
        self.told(gathered, job, command, ControlEffect::Spawned);
    }

    fn remember_delivery(&self, held: &ItemLock, gathered: &Gathered, job: &Job, now: Timestamp) {
        let Ok(Some(found)) = self.0.registry.get(&gathered.item) else {
            return;
        };
        let mut record = found.record;
        record.last_event_at = Some(now);
        record
            .recent_deliveries
            .retain(|id| *id != job.delivery.delivery_id);
        record
            .recent_deliveries
            .push(job.delivery.delivery_id.clone());
        let over = record
            .recent_deliveries
            .len()
            .saturating_sub(RECENT_DELIVERIES_MAX);
        record.recent_deliveries.drain(..over);
        let _ = self.0.registry.put(held, &found.slug, &record);
    }

    pub(super) fn say_unconfirmed(
        &self,
        gathered: &Gathered,
        job: &Job,
        harness: &str,
        next: UnconfirmedNext,
    ) {
        let now = self.world().clock.now();
        self.emit(LogEvent::DeliveryUnconfirmed {
            work_item: gathered.item.clone(),
            endpoint: None,
            delivery_id: job.delivery.delivery_id.clone(),
            harness: harness.to_owned(),
            waited_ms: job
                .intent_at
                .map_or(0, |at| now.since(at).as_millis() as u64),
            next,
        });
    }
}

/// Does the text of the delivery stand in the pane, or has the agent even taken it?
fn has_text_in_pane(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Confirmed { .. }
        | Verdict::Unconfirmed { .. }
        | Verdict::Unproven(_)
        | Verdict::LeftInComposer(_) => true,
        Verdict::PasteUnanswered
        | Verdict::Held(_)
        | Verdict::FirstPromptWaits { .. }
        | Verdict::Failed(_)
        | Verdict::SpawnFailed { .. }
        | Verdict::ResumeFailed
        | Verdict::LaunchUnanswered
        | Verdict::SessionOccupied
        | Verdict::BroughtBack { .. }
        | Verdict::AlreadyLive
        | Verdict::GaveWay
        | Verdict::Interrupted
        | Verdict::Defect => false,
    }
}

/// Did the launched process end before it was up?
fn ended_in_launch(verdict: Verdict) -> bool {
    matches!(
        verdict,
        Verdict::ResumeFailed
            | Verdict::SpawnFailed {
                why: SpawnFailure::DiedAtOnce,
                ..
            }
    )
}

fn trouble_words(trouble: Trouble, error: &str) -> String {
    let what = match trouble {
        Trouble::Vanished => "the session went away",
        Trouble::PasteRefused => "tmux refused the paste",
        Trouble::Record => "the session record could not be written",
    };
    if error.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {error}")
    }
}
