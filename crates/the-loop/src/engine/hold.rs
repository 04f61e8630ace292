//! Deliveries that wait, and tries that failed (DI-4, DI-27).

use std::time::Duration;

use the_loop_core::delivery::{Effect, State};
use the_loop_core::dispatch::HoldReason;
use the_loop_core::event::{
    AbandonedReason, CommentKind, ControlEffect, DispatchVia, HeldReason, LogEvent, ReactionState,
};
use the_loop_core::ids::ItemKey;
use the_loop_core::limits::RETRY_WAITS;
use the_loop_core::prompt::comment;
use the_loop_core::time::Timestamp;

use super::item::{Gathered, Job, Progress};
use super::{Engine, lock};
use crate::store::inbox::OutcomeChange;
use crate::store::lock::ItemLock;

/// Why a delivery is held, in this process's memory, so that it is said once.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldNote {
    reason: HoldReason,
    since: Timestamp,
    said: bool,
}

impl Engine {
    /// Not now: tried again at every tick and at every change of the agent's state.
    pub(super) fn hold(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        job: &Job,
        reason: HoldReason,
    ) -> Progress {
        let since = self.say_held(gathered, job, reason);
        let now = self.world().clock.now();
        let patience = Duration::from_secs(u64::from(
            gathered.settings.routing.tmux.unknown_patience_seconds,
        ));
        if reason == HoldReason::TmuxUnanswered && now.since(since) >= patience {
            lock(&self.0.holds).remove(&job.seq);
            return self.try_failed(held, gathered, job, "tmux gave no answer", false);
        }
        if job.state == State::Queued && job.reason.as_deref() != Some(reason.as_str()) {
            self.change(
                held,
                &gathered.key,
                job,
                OutcomeChange::hold(reason.as_str()),
            );
        }
        Progress::Wait
    }

    /// Says once a reason why a delivery waits; gives when it began.
    pub(super) fn say_held(&self, gathered: &Gathered, job: &Job, reason: HoldReason) -> Timestamp {
        let now = self.world().clock.now();
        let mut holds = lock(&self.0.holds);
        let note = holds.entry(job.seq).or_insert(HoldNote {
            reason,
            since: now,
            // A hold that was on disk before this process came was said by the last one.
            said: job.reason.as_deref() == Some(reason.as_str()) && !reason.is_ordinary(),
        });
        if note.reason != reason {
            let (old, said) = (*note, note.said);
            *note = HoldNote {
                reason,
                since: now,
                said: false,
            };
            if said {
                self.emit(unheld(gathered, job, old, now));
            }
        }
        let wait = Duration::from_secs(u64::from(gathered.settings.routing.tmux.hold_max_seconds));
        if !note.said && (!reason.is_ordinary() || now.since(note.since) >= wait) {
            note.said = true;
            self.emit(LogEvent::DeliveryHeld {
                work_item: gathered.item.clone(),
                endpoint: None,
                delivery_id: job.delivery.delivery_id.clone(),
                reason: held_word(reason),
                since: note.since,
            });
        }
        note.since
    }

    /// It goes on.
    pub(super) fn goes_on(&self, gathered: &Gathered, job: &Job) {
        let now = self.world().clock.now();
        if let Some(note) = lock(&self.0.holds).remove(&job.seq)
            && note.said
        {
            self.emit(unheld(gathered, job, note, now));
        }
    }

    /// One try failed: again later, or given up (DI-4).
    pub(super) fn try_failed(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        job: &Job,
        error: &str,
        counts: bool,
    ) -> Progress {
        let attempts = job.attempts + u32::from(counts);
        let give_up = counts && Self::is_spent(gathered, job);
        let now = self.world().clock.now();
        let step = (attempts.max(1) as usize - 1).min(RETRY_WAITS.len() - 1);
        let retry_at = (!give_up).then(|| now.plus(RETRY_WAITS[step]));
        let harness = gathered.live().map_or_else(
            || gathered.settings.routing.default_harness.clone(),
            |record| record.harness.clone(),
        );
        self.emit(LogEvent::DispatchFailed {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness,
            via: DispatchVia::Tmux,
            gh_event: job.delivery.event.clone(),
            delivery_id: job.delivery.delivery_id.clone(),
            error: error.to_owned(),
            will_retry: !give_up,
            retry_at,
        });
        let reason: String = error.chars().take(200).collect();
        let Some(retry_at) = retry_at else {
            return self.abandon(held, gathered, job, error);
        };
        let mut change = OutcomeChange::to(State::Failed)
            .reason(reason)
            .retry_at(retry_at);
        if counts {
            change = change.count_attempt();
        }
        self.change(held, &gathered.key, job, change);
        Progress::Wait
    }

    /// Is this the last try? A start by a verb has one (DI-4).
    pub(super) fn is_spent(gathered: &Gathered, job: &Job) -> bool {
        let budget = match job.delivery.effect {
            Effect::Start { .. } => 1,
            Effect::Text(_)
            | Effect::Presence
            | Effect::Opened
            | Effect::Check(_)
            | Effect::Notice { .. }
            | Effect::Close { .. } => gathered.settings.polling.max_retries,
        };
        job.attempts + 1 >= budget
    }

    pub(super) fn abandon(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        job: &Job,
        error: &str,
    ) -> Progress {
        self.give_up(
            held,
            gathered,
            job,
            error,
            "no session came up or none took it",
        )
    }

    /// As [`Engine::abandon`], with the reason that the ticket is told.
    pub(super) fn give_up(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        job: &Job,
        error: &str,
        reason: &str,
    ) -> Progress {
        let attempts = job.attempts + 1;
        self.emit(LogEvent::DeliveryAbandoned {
            work_item: gathered.item.clone(),
            endpoint: None,
            delivery_id: job.delivery.delivery_id.clone(),
            reason: AbandonedReason::AttemptsSpent,
            attempts: u64::from(attempts),
            error: Some(error.to_owned()),
        });
        if let Some(command) = Self::arming(&gathered.settings, job) {
            self.told(gathered, job, command, ControlEffect::Failed);
        }
        self.react(job, ReactionState::Error);
        if !matches!(job.delivery.effect, Effect::Start { .. }) {
            let url = match &job.delivery.effect {
                Effect::Text(text) => text.html_url.as_deref(),
                Effect::Presence
                | Effect::Opened
                | Effect::Check(_)
                | Effect::Notice { .. }
                | Effect::Close { .. }
                | Effect::Start { .. } => None,
            };
            let notice = comment::gave_up(url, attempts, reason, &job.delivery.delivery_id);
            let _ = self.tell(&gathered.item, CommentKind::GiveUp, &notice);
        }
        let change = OutcomeChange::to(State::Abandoned)
            .reason(AbandonedReason::AttemptsSpent.as_str())
            .count_attempt()
            .given_up_by(super::recover::VERSION);
        match self.change(held, &gathered.key, job, change) {
            Some(_) => Progress::Again,
            None => Progress::Wait,
        }
    }

    /// A delivery of which the text cannot be read any more.
    pub(super) fn unsendable(
        &self,
        held: &ItemLock,
        key: &ItemKey,
        row: &crate::store::inbox::OutcomeRow,
        error: &str,
    ) {
        self.emit(LogEvent::DeliveryAbandoned {
            work_item: row.item.clone(),
            endpoint: None,
            delivery_id: row.delivery_id.clone(),
            reason: AbandonedReason::Unsendable,
            attempts: u64::from(row.attempts),
            error: Some(error.to_owned()),
        });
        let change =
            OutcomeChange::to(State::Abandoned).reason(AbandonedReason::Unsendable.as_str());
        let _ = self.0.parts.inbox.change(held, row.seq, key, change);
    }
}

fn unheld(gathered: &Gathered, job: &Job, note: HoldNote, now: Timestamp) -> LogEvent {
    LogEvent::DeliveryUnheld {
        work_item: gathered.item.clone(),
        delivery_id: job.delivery.delivery_id.clone(),
        reason: held_word(note.reason),
        waited_ms: now.since(note.since).as_millis() as u64,
    }
}

fn held_word(reason: HoldReason) -> HeldReason {
    match reason {
        HoldReason::Draft => HeldReason::Draft,
        HoldReason::Typing => HeldReason::Typing,
        HoldReason::CopyMode => HeldReason::CopyMode,
        HoldReason::Dialog => HeldReason::Dialog,
        HoldReason::NotReady => HeldReason::NotReady,
        HoldReason::UsageLimit => HeldReason::UsageLimit,
        HoldReason::Login => HeldReason::Login,
        HoldReason::WaitingCapacity => HeldReason::WaitingCapacity,
        HoldReason::LowMemory => HeldReason::LowMemory,
        HoldReason::LowDisk => HeldReason::LowDisk,
        HoldReason::Parked => HeldReason::Parked,
        HoldReason::RecordCorrupt => HeldReason::RecordCorrupt,
        HoldReason::RecordNewer => HeldReason::RecordNewer,
        HoldReason::TmuxUnanswered => HeldReason::TmuxUnanswered,
    }
}
