//! Commands of authorised people (IN-36 to IN-38).

use the_loop_core::config::Settings;
use the_loop_core::control::{Command, CommandPlan, Deed, Keywords, Recording, Via, plan};
use the_loop_core::delivery::{Effect, Ingress, State};
use the_loop_core::dispatch::HoldReason;
use the_loop_core::event::{
    ClosedVia, CommentKind, ControlEffect, ControlRejectReason, ControlVia, LogEvent,
    ReactionState, ReleasedVia,
};
use the_loop_core::prompt::comment;
use the_loop_core::record::{Control, ControlSource};
use the_loop_core::session::{Next, SessionEvent, SessionStatus, next};

use super::Engine;
use super::close::CloseWish;
use super::item::{Gathered, Job, Progress};
use crate::store::inbox::{OutcomeChange, Scope};
use crate::store::lock::ItemLock;

impl Engine {
    /// Does what a command says, in the item's state of this moment.
    pub(super) fn obey(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        row: &Job,
        command: Command,
    ) -> Progress {
        let verb = matches!(row.delivery.effect, Effect::Start { .. });
        let via = if verb { Via::Verb } else { Via::Comment };
        let state = self.item_state(gathered, &row.delivery);
        // An agent does not lift its own brake (DI-52).
        let strict = gathered.settings.routing.limits.strict_self_control;
        let releases = command == Command::Resume && state.parked;
        if strict && releases && self.is_suspect(gathered, &row.delivery) {
            let reason = ControlRejectReason::SelfControl;
            return self.reject(held, gathered, row, command, reason);
        }
        // Whoever may edit others' words would give commands in their name.
        if matches!(&row.delivery.effect, Effect::Text(text) if text.edited) {
            let reason = ControlRejectReason::Edited;
            return self.reject(held, gathered, row, command, reason);
        }
        match plan(command, state, via) {
            CommandPlan::Rejected(ControlRejectReason::NothingToResume)
                if self.is_half_resumed(gathered, row) || self.lift_bar(gathered) =>
            {
                if let Err(e) = self.record_control(held, gathered, row, command) {
                    return self.unwritable(held, gathered, row, command, &e);
                }
                self.obeyed(held, gathered, row, command, ControlEffect::Resumed)
            }
            CommandPlan::HandToAgent => {
                self.told(gathered, row, command, ControlEffect::HandedToGraph);
                self.admit(held, gathered, row)
            }
            CommandPlan::AsText => self.admit(held, gathered, row),
            CommandPlan::Rejected(rejection) => {
                self.reject(held, gathered, row, command, rejection)
            }
            CommandPlan::Act {
                deed: Deed::Spawn,
                record,
            } => {
                if record == Recording::BeforeActing
                    && let Err(e) = self.record_control(held, gathered, row, command)
                {
                    return self.unwritable(held, gathered, row, command, &e);
                }
                self.dispatch(held, gathered, row)
            }
            CommandPlan::Act { deed, record } => {
                if record == Recording::BeforeActing
                    && let Err(e) = self.record_control(held, gathered, row, command)
                {
                    return self.unwritable(held, gathered, row, command, &e);
                }
                let deed = if command == Command::Stop && Self::was_cut_short(gathered, row) {
                    Deed::Stop
                } else {
                    deed
                };
                let effect = match self.perform_deed(held, gathered, row, deed) {
                    Ok(effect) => effect,
                    Err(hold) => return self.hold(held, gathered, row, hold),
                };
                if effect == ControlEffect::Failed {
                    let error = "the session record could not be written";
                    return self.unwritable(held, gathered, row, command, error);
                }
                if record == Recording::AfterActing
                    && let Err(e) = self.record_control(held, gathered, row, command)
                {
                    return self.unwritable(held, gathered, row, command, &e);
                }
                self.obeyed(held, gathered, row, command, effect)
            }
        }
    }

    /// Has this very `resume` been carried out already? It is recorded after it was acted on: either the
    /// pause it ended is still the recorded wish, or it is recorded itself and only its end is missing.
    fn is_half_resumed(&self, gathered: &Gathered, row: &Job) -> bool {
        let scope = Scope::Item(gathered.item.clone());
        let parked = self.0.parts.inbox.parked(&scope).ok().flatten();
        let released = parked.and_then(|parked| parked.released_at);
        // A limit that was taken away since this resume came was taken away by it, or it is what was wanted.
        if released.is_some_and(|at| at >= row.delivery.received_at) {
            return true;
        }
        let Some(control) = &gathered.control else {
            return false;
        };
        match Command::from(control.command) {
            Command::Pause => gathered.live().is_some(),
            Command::Resume => control.requested_at == row.delivery.received_at,
            Command::Start
            | Command::Stop
            | Command::Execute
            | Command::Contribute
            | Command::Do
            | Command::Cleanup => false,
        }
    }

    fn obeyed(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        row: &Job,
        command: Command,
        effect: ControlEffect,
    ) -> Progress {
        self.told(gathered, row, command, effect);
        self.react(row, ReactionState::Completed);
        self.change(
            held,
            &gathered.key,
            row,
            OutcomeChange::to(State::Settled).reason("control-executed"),
        );
        Progress::Again
    }

    /// Does it; the hold is that of a wish that cannot be carried out now.
    fn perform_deed(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        row: &Job,
        deed: Deed,
    ) -> Result<ControlEffect, HoldReason> {
        Ok(match deed {
            // A spawn is a dispatch of its own and never comes here.
            Deed::Spawn | Deed::Running => ControlEffect::Running,
            Deed::Noop => ControlEffect::Noop,
            Deed::Pause => {
                self.set_status(held, gathered, SessionEvent::Pause, ControlEffect::Paused)
            }
            Deed::Resume => {
                self.set_status(held, gathered, SessionEvent::Resume, ControlEffect::Resumed)
            }
            Deed::Release { resume } => {
                self.release(
                    &Scope::Item(gathered.item.clone()),
                    row.delivery.actor.as_ref().map(|a| a.login.clone()),
                    released_via(row),
                );
                if resume {
                    self.set_status(
                        held,
                        gathered,
                        SessionEvent::Resume,
                        ControlEffect::Released,
                    )
                } else {
                    ControlEffect::Released
                }
            }
            Deed::Stop => {
                let closed =
                    self.close_session(held, gathered, &CloseWish::stop(ClosedVia::Comment));
                if !closed.recorded() {
                    ControlEffect::Failed
                } else if closed.unanswered {
                    return Err(HoldReason::TmuxUnanswered);
                } else if closed.ok() {
                    ControlEffect::Stopped
                } else {
                    ControlEffect::Partial
                }
            }
        })
    }

    /// Moves the session record along; a step that its status does not allow changes nothing.
    pub(super) fn set_status(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        event: SessionEvent,
        well: ControlEffect,
    ) -> ControlEffect {
        let Some(record) = gathered.live() else {
            return ControlEffect::Noop;
        };
        let Next::Status(status) = next(Some(record.status), event) else {
            return ControlEffect::Noop;
        };
        let mut record = record.clone();
        record.status = status;
        // A pause ends what a crash left of a spawn: whatever lives is found by the next probe.
        record.spawn = None;
        if self.0.registry.put(held, &gathered.slug, &record).is_err() {
            return ControlEffect::Failed;
        }
        let (work_item, harness) = (gathered.item.clone(), record.harness.clone());
        let harness_session_id =
            Some(record.harness_session_id.clone()).filter(|id| !id.is_empty());
        self.emit(if status == SessionStatus::Paused {
            LogEvent::SessionPaused {
                work_item,
                harness,
                harness_session_id,
            }
        } else {
            LogEvent::SessionResumed {
                work_item,
                harness,
                harness_session_id,
            }
        });
        well
    }

    /// Records the command as the item's last one (IN-38).
    pub(super) fn record_control(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        row: &Job,
        command: Command,
    ) -> Result<(), String> {
        let note = match &row.delivery.effect {
            Effect::Text(text) => text.html_url.clone().unwrap_or_default(),
            Effect::Presence
            | Effect::Opened
            | Effect::Check(_)
            | Effect::Notice { .. }
            | Effect::Close { .. }
            | Effect::Start { .. } => String::new(),
        };
        let actor = row
            .delivery
            .actor
            .as_ref()
            .map(|actor| actor.login.clone())
            .unwrap_or_default();
        let source = match row.delivery.ingress {
            Ingress::Cli => ControlSource::Cli,
            Ingress::Api => ControlSource::Api,
            Ingress::Webhook
            | Ingress::Poll
            | Ingress::Backfill
            | Ingress::Tracker
            | Ingress::Channel => ControlSource::Comment,
        };
        self.write_control(
            held,
            gathered,
            command,
            source,
            &actor,
            &note,
            row.delivery.received_at,
        )
    }

    /// Writes the control section; the same wish written twice is one write (ST-19).
    #[allow(clippy::too_many_arguments, reason = "these are the section's fields")]
    pub(super) fn write_control(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        command: Command,
        source: ControlSource,
        actor: &str,
        note: &str,
        requested_at: the_loop_core::time::Timestamp,
    ) -> Result<(), String> {
        let Some(command) = command.recorded() else {
            return Ok(());
        };
        let control = Control {
            command,
            source,
            actor: actor.to_owned(),
            requested_at,
            note: note.to_owned(),
        };
        self.0
            .portable
            .write_control(held, &gathered.item, Some(&control))
            .map(|_| ())
            .map_err(|e| e.to_string())
    }

    fn reject(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        row: &Job,
        command: Command,
        reason: ControlRejectReason,
    ) -> Progress {
        self.emit(LogEvent::ControlRejected {
            work_items: vec![gathered.item.clone()],
            command,
            via: control_via(row),
            actor: row.delivery.actor.as_ref().map(|actor| actor.login.clone()),
            reason,
            delivery_id: Some(row.delivery.delivery_id.clone()),
        });
        self.react(row, ReactionState::Error);
        self.change(
            held,
            &gathered.key,
            row,
            OutcomeChange::to(State::Settled)
                .reason(format!("control-rejected: {}", reason.as_str())),
        );
        Progress::Again
    }

    fn unwritable(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        row: &Job,
        command: Command,
        error: &str,
    ) -> Progress {
        if Self::is_spent(gathered, row) {
            return self.reject(
                held,
                gathered,
                row,
                command,
                ControlRejectReason::RecordUnwritable,
            );
        }
        self.try_failed(held, gathered, row, error, true)
    }

    pub(super) fn ambiguous(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        row: &Job,
        commands: &[Command],
    ) -> Progress {
        let replied = self
            .tell(
                &gathered.item,
                CommentKind::Ambiguous,
                &comment::ambiguous(commands),
            )
            .is_ok();
        self.emit(LogEvent::ControlAmbiguous {
            work_items: vec![gathered.item.clone()],
            actor: row
                .delivery
                .actor
                .as_ref()
                .map(|actor| actor.login.clone())
                .unwrap_or_default(),
            commands: commands.to_vec(),
            delivery_id: Some(row.delivery.delivery_id.clone()),
            replied,
        });
        self.react(row, ReactionState::Error);
        self.change(
            held,
            &gathered.key,
            row,
            OutcomeChange::to(State::Settled).reason("control-ambiguous"),
        );
        Progress::Again
    }

    /// The one line that tells what a command did (IN-38).
    pub(super) fn told(
        &self,
        gathered: &Gathered,
        row: &Job,
        command: Command,
        effect: ControlEffect,
    ) {
        self.emit(LogEvent::ControlCommand {
            work_item: gathered.item.clone(),
            command,
            via: control_via(row),
            actor: row.delivery.actor.as_ref().map(|actor| actor.login.clone()),
            effect,
            delivery_id: Some(row.delivery.delivery_id.clone()),
        });
    }

    /// The arming command a delivery is, if it is one.
    pub(super) fn arming(settings: &Settings, row: &Job) -> Option<Command> {
        match &row.delivery.effect {
            Effect::Start { .. } => Some(Command::Start),
            Effect::Text(text) => match Keywords::configured(&settings.routing.control)
                .read(&text.body)
            {
                the_loop_core::control::Spoken::Command(command) if command.arms() => Some(command),
                the_loop_core::control::Spoken::Command(_)
                | the_loop_core::control::Spoken::Text
                | the_loop_core::control::Spoken::Ambiguous(_) => None,
            },
            Effect::Presence
            | Effect::Opened
            | Effect::Check(_)
            | Effect::Notice { .. }
            | Effect::Close { .. } => None,
        }
    }
}

fn control_via(row: &Job) -> ControlVia {
    match row.delivery.ingress {
        Ingress::Cli => ControlVia::Cli,
        Ingress::Api => ControlVia::Api,
        Ingress::Webhook
        | Ingress::Poll
        | Ingress::Backfill
        | Ingress::Tracker
        | Ingress::Channel => ControlVia::Comment,
    }
}

fn released_via(row: &Job) -> ReleasedVia {
    match row.delivery.ingress {
        Ingress::Cli => ReleasedVia::Cli,
        Ingress::Api => ReleasedVia::Api,
        Ingress::Webhook
        | Ingress::Poll
        | Ingress::Backfill
        | Ingress::Tracker
        | Ingress::Channel => ReleasedVia::Comment,
    }
}
