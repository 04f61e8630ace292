//! Whether what was launched, or found alive, is up (DI-21 to DI-23).

use std::time::Duration;

use the_loop_core::dispatch::{Adoption, Alive, HoldReason, Journaled, Launch, Readiness};
use the_loop_core::event::{AdoptedWas, Interaction, LogEvent, Runner};
use the_loop_core::probe::TmuxState;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;

use super::lock;
use super::perform::{GLANCE, LOOK, Performer, TAIL_LINES, WANTED};

impl Performer<'_> {
    pub(super) fn adopt(&mut self) -> Adoption {
        let process = match self.ours() {
            Err(()) => return Adoption::Unanswered,
            Ok(None) => {
                self.error = Some(format!("{} is live and not ours", self.target));
                return Adoption::NotOurs;
            }
            Ok(Some(process)) => process,
        };
        if self.gathered.live().is_none() {
            let Some(record) =
                self.engine
                    .record_of(&self.gathered, process, &self.target, &self.tmux)
            else {
                self.error = Some(format!(
                    "{} is live, and what runs in it is not known",
                    self.target
                ));
                return Adoption::NotOurs;
            };
            self.gathered.record = Some(record);
        }
        self.launched = Some(process);
        Adoption::Ours
    }

    /// Waits the probe time; a harness that ends earlier is noticed at once by its pid.
    pub(super) fn prove_alive(&mut self) -> Alive {
        if self.launched.is_none() {
            self.launched = self.ours().ok().flatten();
        }
        let wait = Duration::from_secs_f64(
            self.gathered
                .settings
                .routing
                .tmux
                .resume_probe_seconds
                .max(0.0),
        );
        let deadline = self.clock().deadline(wait);
        let clock = self.clock().clone();
        while !self.clock().is_over(&deadline) && !self.has_ended() && !self.interrupted() {
            clock.wait(GLANCE);
        }
        match self.tmux.probe(&self.target) {
            TmuxState::Live | TmuxState::Unknown => Alive::Yes,
            TmuxState::Dead | TmuxState::Absent => {
                self.take_tail("it ended at once");
                Alive::DiedAtOnce
            }
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.launched
            .is_some_and(|p| self.engine.world().processes.started(p.pid) != Some(p.started))
    }

    pub(super) fn take_tail(&mut self, error: &str) {
        self.tail = self.tmux.tail(self.spot(), TAIL_LINES);
        self.error = Some(format!("{} {error}", self.adapter.name()));
    }

    /// Adopts a spawn that a crash cut short; `Ok(false)` when what lives there is not ours.
    pub(super) fn adopt_starting(&mut self) -> Result<bool, ()> {
        match self.adopt() {
            Adoption::Unanswered => Err(()),
            Adoption::NotOurs => Ok(false),
            Adoption::Ours => match self.record_active(Launch::Resume, true) {
                Journaled::Written => Ok(true),
                Journaled::Refused => Err(()),
            },
        }
    }

    pub(super) fn record_active(&mut self, launch: Launch, adopted: bool) -> Journaled {
        let Some(mut record) = self.gathered.live().cloned() else {
            return Journaled::Refused;
        };
        let now = self.now();
        let was = record.status;
        let on_disk = self.engine.0.registry.get(&self.gathered.item);
        let paused_meanwhile = matches!(
            on_disk,
            Ok(Some(found)) if found.record.status == SessionStatus::Paused
        );
        // A pause wins, also one set meanwhile (DI-40).
        record.status = match record.spawn.as_ref().and_then(|spawn| spawn.previous) {
            Some(SessionStatus::Paused) => SessionStatus::Paused,
            Some(SessionStatus::Starting | SessionStatus::Active | SessionStatus::Closed)
            | None
                if paused_meanwhile =>
            {
                SessionStatus::Paused
            }
            Some(SessionStatus::Starting | SessionStatus::Active | SessionStatus::Closed)
            | None => SessionStatus::Active,
        };
        let replaced = record
            .spawn
            .as_ref()
            .is_some_and(|spawn| spawn.previous.is_some());
        record.spawn = None;
        record.idle_stopped_at = None;
        record.last_event_at = Some(now);
        if let Some(process) = self.launched {
            record.pid = Some(process.pid);
            record.pid_start_time = Some(process.started);
        }
        if let Err(error) = self
            .engine
            .0
            .registry
            .put(self.held, &self.gathered.slug, &record)
        {
            self.error = Some(error.to_string());
            return Journaled::Refused;
        }
        let known = self
            .before
            .as_ref()
            .is_some_and(|record| record.status.is_live());
        self.gathered.record = Some(record.clone());
        lock(&self.engine.0.lost_said).remove(&self.gathered.key);
        if adopted {
            self.agent = self.engine.fresh_agent(&self.gathered, &self.adapter);
            self.engine.emit(LogEvent::SessionAdopted {
                work_item: self.gathered.item.clone(),
                endpoint: None,
                tmux_target: record.tmux_target,
                was: if known && was == SessionStatus::Starting {
                    AdoptedWas::Starting
                } else {
                    AdoptedWas::None
                },
            });
            return Journaled::Written;
        }
        self.announce_spawn(&record, launch, replaced);
        Journaled::Written
    }

    pub(super) fn announce_spawn(&self, record: &SessionRecord, launch: Launch, replaced: bool) {
        let delivery = self.job.as_ref().map(|row| &row.delivery);
        let (gh_event, action, delivery_id) = (
            delivery.map(|d| d.event.clone()),
            delivery.and_then(|d| d.action.clone()),
            delivery.map(|d| d.delivery_id.clone()),
        );
        let harness_session_id =
            Some(record.harness_session_id.clone()).filter(|id| !id.is_empty());
        if replaced {
            self.engine.emit(LogEvent::SessionRespawned {
                work_item: self.gathered.item.clone(),
                harness: record.harness.clone(),
                harness_session_id,
                runner: Runner::Tmux,
                tmux_target: record.tmux_target.clone(),
                gh_event,
                action,
                delivery_id,
                resumed: launch == Launch::Resume,
            });
            return;
        }
        self.engine.emit(LogEvent::SessionSpawned {
            work_item: self.gathered.item.clone(),
            harness: record.harness.clone(),
            harness_session_id,
            runner: Runner::Tmux,
            interaction: match self.gathered.settings.routing.interaction.mode {
                the_loop_core::config::InteractionMode::WorkItem => Interaction::WorkItem,
                the_loop_core::config::InteractionMode::Cli => Interaction::Cli,
            },
            tmux_target: record.tmux_target.clone(),
            gh_event,
            action,
            delivery_id,
        });
        self.engine.announce(&self.gathered, record, &self.target);
    }

    pub(super) fn await_ready(&mut self) -> Readiness {
        let timeout = Duration::from_secs(u64::from(
            self.gathered.settings.routing.tmux.ready_timeout_seconds,
        ));
        let deadline = self.clock().deadline(timeout);
        let mut looked = self.clock().deadline(Duration::ZERO);
        let mut asked = self.clock().deadline(WANTED);
        let mut reason = HoldReason::NotReady;
        loop {
            let now = self.now();
            // A harness that took its first prompt is ready, also when it waits for a person already.
            let took_it = self
                .job
                .as_ref()
                .is_some_and(|job| self.evidence(job).is_some());
            if took_it || lock(&self.agent).state(now, None).takes_input() {
                self.learn();
                return self.ready();
            }
            if self.has_ended() {
                let state = self.tmux.probe(&self.target);
                if matches!(state, TmuxState::Dead | TmuxState::Absent) {
                    self.take_tail("ended before it was ready");
                    return Readiness::Died;
                }
            }
            if self.clock().is_over(&looked) {
                looked = self.clock().deadline(LOOK);
                self.learn();
                if let Ok(Some(view)) = self.view() {
                    let state = lock(&self.agent).state(now, Some(&view));
                    if state.takes_input() {
                        return self.ready();
                    }
                    reason = state.hold().unwrap_or(HoldReason::NotReady);
                    // A person is needed now, not when the patience is over.
                    if let (true, Some(job)) = (state.waits_for_person(), &self.job) {
                        self.engine.say_held(&self.gathered, job, reason);
                    }
                }
            }
            if self.clock().is_over(&deadline) {
                return Readiness::NotReady(reason);
            }
            if self.clock().is_over(&asked) {
                asked = self.clock().deadline(WANTED);
                if self.interrupted() {
                    return Readiness::Interrupted;
                }
            }
            self.clock().wait(GLANCE);
        }
    }

    pub(super) fn ready(&self) -> Readiness {
        if let Some(job) = &self.job {
            self.engine.goes_on(&self.gathered, job);
        }
        self.engine.emit(LogEvent::SessionReady {
            work_item: self.gathered.item.clone(),
            endpoint: None,
            harness: self.adapter.name().to_owned(),
            waited_ms: self.now().since(self.began).as_millis() as u64,
        });
        Readiness::Ready
    }
}
