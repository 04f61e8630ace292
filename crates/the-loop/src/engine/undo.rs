//! Spawns that came to nothing (DI-22, DI-23, DI-39).

use the_loop_core::confirm::By;
use the_loop_core::delivery::State;
use the_loop_core::dispatch::SpawnFailure;
use the_loop_core::event::LogEvent;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;

use super::item::{Gathered, Job, Progress};
use super::perform::Performer;
use super::{Engine, lock};
use crate::harness::adapter::Adapter;
use crate::store::inbox::OutcomeChange;
use crate::store::lock::ItemLock;

impl Engine {
    pub(super) fn spawn_failed(
        &self,
        performer: &Performer<'_>,
        job: &Job,
        why: SpawnFailure,
        error: &str,
    ) -> Progress {
        let gathered = &performer.gathered;
        // An answer of tmux's that says nothing in words is told in ours: a failure has a reason.
        let error = if error.is_empty() {
            failure_words(why)
        } else {
            error
        };
        let counts = why.costs_an_attempt();
        let will_retry = why.may_retry() && !(counts && Self::is_spent(gathered, job));
        self.say_spawn_failed(performer, why, will_retry);
        self.roll_back(performer);
        if !why.may_retry() {
            return self.abandon(performer.held, gathered, job, error);
        }
        self.try_failed(performer.held, gathered, job, error, counts)
    }

    /// Tells of a session that did not come up, with the remedy where a person has one.
    pub(super) fn say_spawn_failed(
        &self,
        performer: &Performer<'_>,
        why: SpawnFailure,
        will_retry: bool,
    ) {
        let gathered = &performer.gathered;
        let error = match performer.error.as_deref() {
            None | Some("") => failure_words(why),
            Some(error) => error,
        };
        let remedy = match why {
            SpawnFailure::OccupiedByOther | SpawnFailure::NameTaken => Some(format!(
                "end it ({}) or register it (the-loop sessions register --work-item {} …)",
                performer.tmux.kill_command(&performer.target),
                gathered.item
            )),
            SpawnFailure::Harness { .. } => performer.remedy.clone(),
            SpawnFailure::Workspace { .. }
            | SpawnFailure::Record
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
    }

    /// Tells of a dead session that holds a name and cannot be cleared, where no delivery ends by it.
    pub(super) fn say_occupied(&self, performer: &Performer<'_>) {
        self.emit(LogEvent::SessionSpawnFailed {
            work_item: performer.gathered.item.clone(),
            endpoint: None,
            harness: performer.adapter.name().to_owned(),
            tmux_target: Some(performer.target.to_string()),
            error: performer.error.clone().unwrap_or_default(),
            will_retry: false,
            remedy: Some(format!(
                "end it ({})",
                performer.tmux.kill_command(&performer.target)
            )),
            tail: None,
        });
    }

    /// A conversation that cannot even be tried to resume is lost as one that failed to: said once, before
    /// the fresh one (DI-39).
    pub(super) fn say_not_resumable(
        &self,
        gathered: &Gathered,
        adapter: &Adapter,
        previous: Option<SessionStatus>,
    ) {
        if previous.is_none() || !lock(&self.0.lost_said).insert(gathered.key.clone()) {
            return;
        }
        let error = if !gathered.settings.routing.tmux.resume_on_respawn {
            "resuming is off (routing.tmux.resumeOnRespawn)"
        } else if !adapter.can_resume() {
            "the harness cannot resume a conversation"
        } else {
            "no conversation is recorded"
        };
        self.emit(LogEvent::SessionResumeFailed {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness: adapter.name().to_owned(),
            harness_session_id: None,
            error: error.to_owned(),
        });
    }

    /// The process took its prompt and ended before it was up. The agent has the prompt, so it is not
    /// sent again (P2); the conversation stays, and the next delivery resumes it (P6).
    pub(super) fn ended_with_it(&self, performer: &Performer<'_>, job: &Job, by: By) -> Progress {
        let mut gathered = performer.gathered.clone();
        if let Some(record) = &mut gathered.record {
            let previous = record.spawn.take().and_then(|spawn| spawn.previous);
            record.status = match previous {
                Some(SessionStatus::Paused) => SessionStatus::Paused,
                Some(SessionStatus::Starting | SessionStatus::Active | SessionStatus::Closed)
                | None => SessionStatus::Active,
            };
            if self
                .0
                .registry
                .put(performer.held, &gathered.slug, record)
                .is_err()
            {
                // The row stays as it is and the journal too: both are looked at again.
                return Progress::Wait;
            }
        }
        self.confirmed(performer.held, &gathered, job, by)
    }

    /// The old conversation did not come up: a fresh one follows at once (DI-39).
    pub(super) fn resume_failed(
        &self,
        performer: &Performer<'_>,
        job: &Job,
        error: &str,
    ) -> Progress {
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
        lock(&self.0.lost_said).insert(gathered.key.clone());
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
        // The launch that nobody took holds an environment, which must not lie about (DI-20).
        let _ = self
            .0
            .registry
            .forget_launch_files(held, &gathered.item, &gathered.slug);
        lock(&self.0.agents).remove(&gathered.key);
    }
}

fn failure_words(why: SpawnFailure) -> &'static str {
    match why {
        SpawnFailure::OccupiedByOther => "a live session that is not ours holds the name",
        SpawnFailure::NameTaken => "tmux says twice that the name is taken",
        SpawnFailure::Workspace { .. } => "there is no checkout",
        SpawnFailure::Record => "the session record could not be written",
        SpawnFailure::Harness { .. } => "the harness could not be prepared",
        SpawnFailure::Refused => "tmux refused the session",
        SpawnFailure::Unanswered => "tmux gave no answer, and no session is there",
        SpawnFailure::DiedAtOnce => "the harness ended before it was ready",
    }
}
