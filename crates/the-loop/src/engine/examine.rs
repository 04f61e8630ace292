//! Attempts of which the end was not seen: after a crash, or when no confirmation came (DI-29, DI-43).

use std::time::Duration;

use the_loop_core::config::OnUncertain;
use the_loop_core::confirm::{self, AgentState, Attempt, Composer, Examined};
use the_loop_core::delivery::State;
use the_loop_core::dispatch::{Confirmation, HoldReason, Sent, Unproven};
use the_loop_core::event::{
    ConfirmedBy as ByWord, LogEvent, ResolvedBy, ResolvedOutcome, UncertainNext, UncertainReason,
    UnconfirmedNext,
};
use the_loop_core::probe::TmuxState;
use the_loop_core::session::SessionStatus;

use super::item::{Gathered, Job, Progress};
use super::perform::Performer;
use super::{Engine, lock};
use crate::store::inbox::OutcomeChange;
use crate::store::lock::ItemLock;

impl Engine {
    /// Looks into a delivery that is `sending` or `pasted`.
    pub(super) fn examine(&self, held: &ItemLock, gathered: &Gathered, job: &Job) -> Progress {
        let starting = gathered
            .live()
            .is_some_and(|record| record.status == SessionStatus::Starting);
        if starting {
            return match self.settle_starting(held, gathered) {
                Settled::Adopted | Settled::Kept | Settled::TakenBack => Progress::Again,
                Settled::Unknown => {
                    self.say_held(gathered, job, HoldReason::TmuxUnanswered);
                    Progress::Wait
                }
            };
        }
        let mut performer = Performer::new(self, held, gathered.clone(), Some(job.clone()));
        let view = if let Ok(view) = performer.view() {
            view.filter(|view| !view.pane.dead)
        } else {
            self.say_held(gathered, job, HoldReason::TmuxUnanswered);
            return Progress::Wait;
        };
        let now = performer.now();
        let intent_at = job.intent_at.unwrap_or(job.updated_at);
        let attempt = {
            let mut agent = lock(&performer.agent);
            let observation = agent.observe(now, view.as_ref(), None);
            let evidence = job
                .marker
                .as_ref()
                .and_then(|marker| agent.evidence(marker, intent_at));
            let gone = view.is_none();
            Attempt {
                evidence,
                composer: match &view {
                    Some(view) => agent.composer(view, now, job.marker.as_ref()),
                    None => Composer::Empty,
                },
                transcript_read: agent.transcript_read(),
                state: observation.map_or(AgentState::Unknown, |o| o.state),
                hooks_heard: agent.hooks_heard(),
                // A process that is gone takes no more turns.
                later_turn: gone || agent.last_turn_at().is_some_and(|at| at > intent_at),
                intent_at,
                now,
                confirm_timeout: Duration::from_secs(u64::from(
                    gathered.settings.routing.tmux.confirm_timeout_seconds,
                )),
            }
        };
        // What cannot be proved is not examined either: it was pasted, and that is its end.
        let proves = performer.adapter.declaration().confirms.is_proof();
        if !proves && job.state == State::Pasted && attempt.evidence.is_none() {
            return self.unproven(held, gathered, job, Unproven::NoConfirmation);
        }
        match confirm::examine(&attempt) {
            Examined::Confirmed(by) => self.confirmed(held, gathered, job, by),
            Examined::Submit => self.submit_ours(&mut performer, job, attempt.state),
            // A marker that somebody's words were put before confirms nothing, and its absence is not
            // proved either: a person may have submitted it with a draft of theirs.
            Examined::SendAgain if is_mentioned(&performer, job) => {
                self.uncertain(held, gathered, job)
            }
            Examined::SendAgain => {
                self.resolved_not_sent(gathered, job);
                let again = OutcomeChange::to(State::Queued).reason("not-sent");
                match self.change(held, &gathered.key, job, again) {
                    Some(_) => Progress::Again,
                    None => Progress::Wait,
                }
            }
            Examined::LookAgain => Progress::Wait,
            // A prompt behind a dialog, or before a harness that still starts, may be taken yet.
            Examined::Uncertain if view.is_some() && is_kept_from_it(attempt.state) => {
                Progress::Wait
            }
            Examined::Uncertain => self.uncertain(held, gathered, job),
        }
    }

    /// Our text stands in the composer: submitted once, then left for a person (DI-29).
    fn submit_ours(&self, performer: &mut Performer<'_>, job: &Job, state: AgentState) -> Progress {
        let gathered = performer.gathered.clone();
        if let Some(hold) = state.hold() {
            self.say_held(&gathered, job, hold);
            return Progress::Wait;
        }
        // What was pasted and never submitted is due its first submit; what was submitted gets one more.
        let due = if job.state == State::Sending { 2 } else { 1 };
        let submits = lock(&self.0.submits).get(&job.seq).copied().unwrap_or(0);
        if submits >= due {
            if lock(&self.0.left_to_person).insert(job.seq) {
                self.say_unconfirmed(
                    &gathered,
                    job,
                    performer.adapter.name(),
                    UnconfirmedNext::Operator,
                );
            }
            return Progress::Wait;
        }
        match performer.submit_again() {
            Sent::Submitted => match performer.confirm() {
                Confirmation::By(by) => {
                    let Some(job) = performer.job.clone() else {
                        return Progress::Wait;
                    };
                    self.confirmed(performer.held, &gathered, &job, by)
                }
                Confirmation::Unproven(why) => self.unproven(performer.held, &gathered, job, why),
                Confirmation::Silent { .. } | Confirmation::Interrupted => Progress::Wait,
            },
            Sent::LeftInComposer(reason) => {
                self.say_held(&gathered, job, reason);
                Progress::Wait
            }
            Sent::NotPasted | Sent::Unanswered => Progress::Wait,
        }
    }

    fn uncertain(&self, held: &ItemLock, gathered: &Gathered, job: &Job) -> Progress {
        let reason = if job.state == State::Sending {
            UncertainReason::NoOutcome
        } else {
            UncertainReason::NoEvidence
        };
        let resend = gathered.settings.routing.inbox.on_uncertain == OnUncertain::Resend;
        let next = if resend {
            UncertainNext::Resend
        } else {
            UncertainNext::Operator
        };
        self.say_uncertain(gathered, job, reason, next);
        let changed = self.change(
            held,
            &gathered.key,
            job,
            OutcomeChange::to(State::Uncertain).reason(reason.as_str()),
        );
        if changed.is_some() && !resend {
            lock(&self.0.in_doubt).insert(gathered.key.clone());
        }
        if let Some(job) = changed
            && resend
        {
            self.change(
                held,
                &gathered.key,
                &job,
                OutcomeChange::to(State::Queued).reason(super::doubts::RESEND),
            );
        }
        Progress::Again
    }

    pub(super) fn say_uncertain(
        &self,
        gathered: &Gathered,
        job: &Job,
        reason: UncertainReason,
        next: UncertainNext,
    ) {
        lock(&self.0.doubtful).insert(job.seq);
        self.emit(LogEvent::DeliveryUncertain {
            work_item: gathered.item.clone(),
            endpoint: None,
            delivery_id: job.delivery.delivery_id.clone(),
            reason,
            intent_at: job.intent_at.unwrap_or(job.updated_at),
            next,
        });
    }

    pub(super) fn resolved_sent(&self, gathered: &Gathered, job: &Job, by: ByWord) {
        let by = match by {
            ByWord::Hook => ResolvedBy::Hook,
            ByWord::Transcript => ResolvedBy::Transcript,
        };
        self.resolved(gathered, job, ResolvedOutcome::Sent, by);
    }

    fn resolved_not_sent(&self, gathered: &Gathered, job: &Job) {
        self.resolved(
            gathered,
            job,
            ResolvedOutcome::NotSent,
            ResolvedBy::Transcript,
        );
    }

    fn resolved(&self, gathered: &Gathered, job: &Job, outcome: ResolvedOutcome, by: ResolvedBy) {
        if lock(&self.0.doubtful).remove(&job.seq) {
            self.emit(LogEvent::DeliveryResolved {
                work_item: gathered.item.clone(),
                delivery_id: job.delivery.delivery_id.clone(),
                outcome,
                by,
                actor: None,
            });
        }
    }

    /// A spawn that a crash cut short: adopted, taken back, or left (ST-42).
    pub(super) fn settle_starting(&self, held: &ItemLock, gathered: &Gathered) -> Settled {
        let mut performer = Performer::new(self, held, gathered.clone(), None);
        match performer.tmux.probe(&performer.target) {
            TmuxState::Unknown => Settled::Unknown,
            TmuxState::Live => match performer.adopt_starting() {
                Ok(true) => Settled::Adopted,
                Ok(false) => self.settled_back(held, gathered),
                Err(()) => Settled::Unknown,
            },
            TmuxState::Dead | TmuxState::Absent if self.began_to_work(&performer, gathered) => {
                self.keep_conversation(held, gathered)
            }
            TmuxState::Dead | TmuxState::Absent => {
                self.settle_carried(&performer);
                self.settled_back(held, gathered)
            }
        }
    }

    /// What a spawn that is gone carried as its argument: its agent took it before it went, or nobody ever
    /// had it. A conversation that cannot be read leaves the question to [`Engine::examine`].
    fn settle_carried(&self, performer: &Performer<'_>) {
        let (held, gathered) = (performer.held, &performer.gathered);
        let spawn = gathered.record.as_ref().and_then(|r| r.spawn.as_ref());
        let Some(carried) = spawn.and_then(|spawn| spawn.delivery_id.clone()) else {
            return;
        };
        let rows = self.0.parts.inbox.open_outcomes(&gathered.key);
        let row = rows.unwrap_or_default().into_iter().find(|row| {
            row.delivery_id == carried && matches!(row.state, State::Sending | State::Pasted)
        });
        let Some((row, Ok(delivery))) = row.map(|row| (row.clone(), row.delivery)) else {
            return;
        };
        let job = Job { row, delivery };
        let (evidence, was_read) = {
            let mut agent = lock(&performer.agent);
            let intent_at = job.intent_at.unwrap_or(job.updated_at);
            let marker = job.marker.as_ref();
            let evidence = marker.and_then(|marker| agent.evidence(marker, intent_at));
            (evidence, agent.transcript_read())
        };
        match evidence {
            Some(by) => {
                self.confirmed(held, gathered, &job, by);
            }
            None if was_read => {
                self.resolved_not_sent(gathered, &job);
                let again = OutcomeChange::to(State::Queued).reason("not-sent");
                self.change(held, &gathered.key, &job, again);
            }
            None => {}
        }
    }

    /// Did a first session take a prompt before it went? Then there is a conversation, and the record is
    /// what leads to it and to the evidence: without the record the prompt would count as never sent.
    fn began_to_work(&self, performer: &Performer<'_>, gathered: &Gathered) -> bool {
        let spawn = gathered.record.as_ref().and_then(|r| r.spawn.as_ref());
        let is_first = spawn.is_some_and(|spawn| spawn.previous.is_none());
        let rows = self.0.parts.inbox.open_outcomes(&gathered.key);
        let mut tried = rows
            .unwrap_or_default()
            .into_iter()
            .filter(|row| matches!(row.state, State::Sending | State::Pasted));
        is_first
            && tried.any(|row| match (&row.marker, row.intent_at) {
                (Some(marker), Some(at)) => lock(&performer.agent).evidence(marker, at).is_some(),
                (None, _) | (_, None) => false,
            })
    }

    /// The session came up and went again: its conversation is resumed as any other (DI-39).
    fn keep_conversation(&self, held: &ItemLock, gathered: &Gathered) -> Settled {
        let Some(mut record) = gathered.record.clone() else {
            return Settled::Unknown;
        };
        record.status = SessionStatus::Active;
        record.spawn = None;
        match self.0.registry.put(held, &gathered.slug, &record) {
            Ok(_) => Settled::Kept,
            Err(_) => Settled::Unknown,
        }
    }

    fn settled_back(&self, held: &ItemLock, gathered: &Gathered) -> Settled {
        let previous = gathered
            .record
            .as_ref()
            .and_then(|r| r.spawn.as_ref())
            .and_then(|s| s.previous);
        let before = previous.and_then(|status| {
            let mut record = gathered.record.clone()?;
            record.status = status;
            record.spawn = None;
            Some(record)
        });
        self.take_back(held, gathered, before.as_ref());
        Settled::TakenBack
    }
}

/// What became of a spawn that was found journaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    Adopted,
    /// Nothing lives, but its conversation does.
    Kept,
    TakenBack,
    Unknown,
}

fn is_mentioned(performer: &Performer<'_>, job: &Job) -> bool {
    let marker = job.marker.as_ref();
    marker.is_some_and(|marker| lock(&performer.agent).mentions(marker))
}

fn is_kept_from_it(state: AgentState) -> bool {
    match state {
        // One of which nothing was seen since its launch has not begun to read.
        AgentState::Starting | AgentState::Waiting(_) | AgentState::Unknown => true,
        AgentState::Working | AgentState::Ready | AgentState::Idle | AgentState::Exited => false,
    }
}
