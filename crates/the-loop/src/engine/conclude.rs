//! How a dispatch ended: outcome, record and events, in the order that survives a crash (EV-8).

use std::time::Duration;

use the_loop_core::confirm::By;
use the_loop_core::delivery::{Effect, State};
use the_loop_core::dispatch::{HoldReason, Launch, SpawnFailure, Trouble, Verdict};
use the_loop_core::event::{
    AbandonedReason, ConfirmedBy as ByWord, ControlEffect, DispatchDropReason, DispatchVia,
    HeldReason, LogEvent, ReactionState, SucceededState, UncertainNext, UncertainReason,
    UnconfirmedNext,
};
use the_loop_core::ids::ItemKey;
use the_loop_core::limits::{RECENT_DELIVERIES_MAX, RETRY_WAITS};
use the_loop_core::prompt::comment;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::item::{Gathered, Job, Progress};
use super::perform::Performer;
use super::{Engine, lock};
use crate::store::inbox::{ConfirmedBy, OutcomeChange};
use crate::store::lock::ItemLock;

/// Why a delivery is held, in this process's memory, so that it is said once.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldNote {
    reason: HoldReason,
    since: Timestamp,
    said: bool,
}

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
        Some(Job {
            row,
            delivery: job.delivery.clone(),
        })
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
        match verdict {
            Verdict::Confirmed {
                by,
                averted,
                launched,
            } => {
                if averted {
                    self.emit(LogEvent::SessionRespawnAverted {
                        work_item: gathered.item.clone(),
                        harness: performer.adapter.name().to_owned(),
                        tmux_target: performer.target.to_string(),
                        gh_event: job.delivery.event.clone(),
                        action: job.delivery.action.clone(),
                        delivery_id: Some(job.delivery.delivery_id.clone()),
                    });
                }
                let _ = launched;
                self.confirmed(held, &gathered, &job, by)
            }
            Verdict::Unconfirmed { in_composer } => {
                let next = if in_composer {
                    UnconfirmedNext::Operator
                } else {
                    UnconfirmedNext::Wait
                };
                self.say_unconfirmed(&gathered, &job, performer.adapter.name(), next);
                Progress::Wait
            }
            Verdict::LeftInComposer(reason) => {
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
            Verdict::Held(reason) => self.hold(held, &gathered, &job, reason),
            Verdict::FirstPromptWaits { reason, .. } => {
                self.say_held(&gathered, &job, reason);
                Progress::Wait
            }
            Verdict::Failed(trouble) => {
                let words = trouble_words(trouble, &error);
                self.try_failed(held, &gathered, &job, &words, true)
            }
            Verdict::SpawnFailed { why, launch } => {
                self.spawn_failed(&performer, &job, why, launch, &error)
            }
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
            Verdict::BroughtBack { .. } | Verdict::AlreadyLive | Verdict::Interrupted => {
                Progress::Wait
            }
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
        let Some(command) = self.arming(&gathered.settings, job) else {
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
        let give_up = counts && self.is_spent(gathered, job);
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
    pub(super) fn is_spent(&self, gathered: &Gathered, job: &Job) -> bool {
        let budget = match job.delivery.effect {
            Effect::Start { .. } => 1,
            Effect::Text(_) | Effect::Presence | Effect::Notice { .. } | Effect::Close { .. } => {
                gathered.settings.polling.max_retries
            }
        };
        job.attempts + 1 >= budget
    }

    fn abandon(&self, held: &ItemLock, gathered: &Gathered, job: &Job, error: &str) -> Progress {
        let attempts = job.attempts + 1;
        self.emit(LogEvent::DeliveryAbandoned {
            work_item: gathered.item.clone(),
            endpoint: None,
            delivery_id: job.delivery.delivery_id.clone(),
            reason: AbandonedReason::AttemptsSpent,
            attempts: u64::from(attempts),
            error: Some(error.to_owned()),
        });
        if let Some(command) = self.arming(&gathered.settings, job) {
            self.told(gathered, job, command, ControlEffect::Failed);
        }
        self.react(job, ReactionState::Error);
        if !matches!(job.delivery.effect, Effect::Start { .. }) {
            let url = match &job.delivery.effect {
                Effect::Text(text) => text.html_url.as_deref(),
                Effect::Presence
                | Effect::Notice { .. }
                | Effect::Close { .. }
                | Effect::Start { .. } => None,
            };
            let notice = comment::gave_up(
                url,
                attempts,
                "no session came up or none took it",
                &job.delivery.delivery_id,
            );
            let _ = self.tell(&gathered.item, &notice);
        }
        let change = OutcomeChange::to(State::Abandoned)
            .reason(AbandonedReason::AttemptsSpent.as_str())
            .count_attempt()
            .given_up_by(env!("CARGO_PKG_VERSION"));
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

    fn spawn_failed(
        &self,
        performer: &Performer<'_>,
        job: &Job,
        why: SpawnFailure,
        launch: Launch,
        error: &str,
    ) -> Progress {
        let gathered = &performer.gathered;
        let counts = why.costs_an_attempt();
        let will_retry = why.may_retry() && !(counts && self.is_spent(gathered, job));
        let remedy = match why {
            SpawnFailure::OccupiedByOther | SpawnFailure::NameTaken => Some(format!(
                "end it ({}) or register it (the-loop sessions register --work-item {} …)",
                performer.tmux.kill_command(&performer.target),
                gathered.item
            )),
            SpawnFailure::Workspace { .. }
            | SpawnFailure::Record
            | SpawnFailure::Harness { .. }
            | SpawnFailure::Refused
            | SpawnFailure::Unanswered
            | SpawnFailure::DiedAtOnce => None,
        };
        self.emit(LogEvent::SessionSpawnFailed {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness: performer.adapter.name().to_owned(),
            tmux_target: Some(performer.target.to_string()),
            error: error.to_owned(),
            will_retry,
            remedy,
            tail: (!performer.tail.is_empty()).then(|| performer.tail.join("\n")),
        });
        let _ = launch;
        self.roll_back(performer);
        if !why.may_retry() {
            return self.give_up_now(performer.held, gathered, job, error);
        }
        self.try_failed(performer.held, gathered, job, error, counts)
    }

    /// A cause that no retry can help: the budget is not spent on it.
    fn give_up_now(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        job: &Job,
        error: &str,
    ) -> Progress {
        self.abandon(held, gathered, job, error)
    }

    /// The old conversation did not come up: a fresh one follows at once (DI-39).
    fn resume_failed(&self, performer: &Performer<'_>, job: &Job, error: &str) -> Progress {
        self.lost_conversation(performer, error);
        if job.state != State::Queued {
            self.change(
                performer.held,
                &performer.gathered.key,
                job,
                OutcomeChange::to(State::Queued),
            );
        }
        Progress::Again
    }

    /// Says that the recorded conversation is lost and forgets its id, so that the next try is a fresh one.
    pub(super) fn lost_conversation(&self, performer: &Performer<'_>, error: &str) {
        let gathered = &performer.gathered;
        let old = performer
            .before
            .as_ref()
            .map(|record| record.harness_session_id.clone());
        self.emit(LogEvent::SessionResumeFailed {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness: performer.adapter.name().to_owned(),
            harness_session_id: old.filter(|id| !id.is_empty()),
            error: error.to_owned(),
        });
        if let Some(mut record) = performer.before.clone() {
            record.harness_session_id = String::new();
            record.spawn = None;
            if record.status == SessionStatus::Starting {
                record.status = SessionStatus::Active;
            }
            let _ = self.0.registry.put(performer.held, &gathered.slug, &record);
        }
    }

    /// Takes a journaled spawn back: the record is what it was, or goes (ST-42).
    pub(super) fn roll_back(&self, performer: &Performer<'_>) {
        let gathered = &performer.gathered;
        if gathered
            .record
            .as_ref()
            .is_none_or(|record| record.status != SessionStatus::Starting)
        {
            return;
        }
        self.take_back(performer.held, gathered, performer.before.as_ref());
    }

    pub(super) fn take_back(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        before: Option<&SessionRecord>,
    ) {
        let earlier = before.filter(|record| record.status != SessionStatus::Starting);
        let restored = match earlier {
            Some(record) => self
                .0
                .registry
                .put(held, &gathered.slug, record)
                .map(|_| ()),
            None => self.0.registry.forget(held, &gathered.item).map(|_| ()),
        };
        // A record that could not be taken back says `starting`; the next look settles it.
        let _ = restored;
        lock(&self.0.agents).remove(&gathered.key);
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

fn unheld(gathered: &Gathered, job: &Job, note: HoldNote, now: Timestamp) -> LogEvent {
    LogEvent::DeliveryUnheld {
        work_item: gathered.item.clone(),
        delivery_id: job.delivery.delivery_id.clone(),
        reason: held_word(note.reason),
        waited_ms: now.since(note.since).as_millis() as u64,
    }
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
