//! What a verb in a shell does to an item, under its lock (SE-31 to SE-33).
//!
//! `start` is no such verb: it is a delivery. Events of the effects come from where they happen; the one
//! control event and the comment are the caller's, who knows who asked.

use the_loop_core::control::{Command, CommandPlan, Deed, ItemState, SessionNow, Via, plan};
use the_loop_core::event::{ClosedVia, ControlEffect, LimitReason, ReleasedVia};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::record::{ControlSource, SessionRecord};
use the_loop_core::session::{SessionEvent, SessionStatus};

use super::Engine;
use super::close::{CloseWish, EndLine};
use super::end_harness::NotEnded;
use super::item::Gathered;
use crate::store::inbox::Scope;
use crate::store::lock::ItemLock;
use crate::store::registry::RecordFault;

/// What a verb did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerbDeed {
    /// Nothing is delivered any more.
    Paused,
    /// Deliveries go on.
    Resumed,
    /// A limit was taken away, and a pause with it.
    Released {
        /// Which limit it was.
        was: LimitReason,
        /// Its value.
        limit: u64,
    },
    /// The session was ended.
    Ended,
    /// There was nothing to do.
    Nothing,
    /// It was tried in vain.
    Failed(String),
}

/// The outcome of a verb.
#[derive(Clone, Debug)]
pub struct VerbOutcome {
    /// The item in its recorded spelling.
    pub item: WorkItemRef,
    /// Its record before, when that was live.
    pub before: Option<SessionRecord>,
    /// What was done.
    pub deed: VerbDeed,
    /// Its agent lived.
    pub was_live: bool,
    /// What happened on the way, in order.
    pub lines: Vec<EndLine>,
    /// What failed; the next parts were done all the same.
    pub errors: Vec<String>,
}

impl VerbOutcome {
    fn nothing(item: &WorkItemRef, before: Option<SessionRecord>) -> Self {
        Self {
            item: item.clone(),
            before,
            deed: VerbDeed::Nothing,
            was_live: false,
            lines: Vec::new(),
            errors: Vec::new(),
        }
    }

    fn failed(item: &WorkItemRef, why: String) -> Self {
        Self {
            deed: VerbDeed::Failed(why),
            ..Self::nothing(item, None)
        }
    }
}

impl Engine {
    /// `pause`, `resume` or `stop`. A wish is recorded before it is acted on and a release after it
    /// (IN-37); a wish that cannot be recorded is told, and what can be ended is ended (ST-32).
    pub fn verb(
        &self,
        held: &ItemLock,
        item: &WorkItemRef,
        command: Command,
        actor: &str,
        discard: bool,
    ) -> VerbOutcome {
        let gathered = match self.gather(held, item, self.settings()) {
            Ok(gathered) => gathered,
            Err(why) => return VerbOutcome::failed(item, why),
        };
        let mut outcome = VerbOutcome::nothing(&gathered.item, gathered.live().cloned());
        if let Err(fault) = self.0.registry.get(item) {
            return self.verb_without_record(held, &gathered, command, actor, &fault);
        }
        let CommandPlan::Act { deed, record: _ } = plan(command, verb_state(&gathered), Via::Verb)
        else {
            if command == Command::Resume && self.lift_bar(&gathered) {
                outcome.deed = VerbDeed::Resumed;
                outcome
                    .errors
                    .extend(self.record_verb(held, &gathered, command, actor).err());
            }
            return outcome;
        };
        let recorded_first = matches!(command, Command::Pause | Command::Stop);
        if recorded_first {
            outcome
                .errors
                .extend(self.record_verb(held, &gathered, command, actor).err());
        }
        match deed {
            Deed::Pause => outcome.deed = self.verb_status(held, &gathered, SessionEvent::Pause),
            Deed::Resume => outcome.deed = self.verb_status(held, &gathered, SessionEvent::Resume),
            Deed::Release { resume } => {
                outcome.deed = self.verb_release(held, &gathered, actor, resume);
            }
            Deed::Stop => {
                let wish = CloseWish {
                    discard,
                    actor: actor.to_owned(),
                    ..CloseWish::stop(ClosedVia::Cli)
                };
                self.verb_end(held, &gathered, &wish, &mut outcome);
            }
            Deed::Noop | Deed::Running | Deed::Spawn => {}
        }
        let acted = matches!(outcome.deed, VerbDeed::Resumed | VerbDeed::Released { .. });
        if acted && !recorded_first {
            outcome
                .errors
                .extend(self.record_verb(held, &gathered, command, actor).err());
        }
        outcome
    }

    /// A verb on an item whose session record cannot be read: the wish is recorded, and a `stop` ends an
    /// agent that its tmux session and its own mark prove to be the item's (ST-32).
    fn verb_without_record(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        command: Command,
        actor: &str,
        fault: &RecordFault,
    ) -> VerbOutcome {
        let mut outcome = VerbOutcome::nothing(&gathered.item, None);
        if matches!(command, Command::Pause | Command::Stop) {
            outcome
                .errors
                .extend(self.record_verb(held, gathered, command, actor).err());
        }
        let unreadable = format!("its session record cannot be read: {fault}");
        if command != Command::Stop {
            outcome.deed = VerbDeed::Failed(unreadable);
            return outcome;
        }
        let tmux = self.tmux(&gathered.settings);
        let target = gathered.slug.target();
        let ours = tmux.panes(&target).unwrap_or_default();
        let ours = ours
            .iter()
            .find_map(|pane| self.marked(pane.pid, &gathered.item));
        let Some(process) = ours else {
            outcome.deed = VerbDeed::Failed(format!("{unreadable}; no agent of it was found"));
            return outcome;
        };
        let harness = self
            .record_of(gathered, process, &target, &tmux)
            .map_or_else(|| "agent".to_owned(), |record| record.harness);
        let grace = gathered.settings.routing.tmux.harness_kill_grace_seconds;
        let grace = std::time::Duration::from_secs_f64(grace.max(0.0));
        match self.end_harness(&gathered.item, &tmux, &target, grace) {
            Ok(()) => {
                outcome.deed = VerbDeed::Ended;
                outcome.was_live = true;
                outcome.lines.push(EndLine::Ended { harness });
            }
            Err(NotEnded::Unanswered(why) | NotEnded::Refused(why)) => outcome.errors.push(why),
        }
        outcome.errors.push(unreadable);
        outcome
    }

    /// `close`: the close path, and no wish is left.
    pub fn verb_close(
        &self,
        held: &ItemLock,
        item: &WorkItemRef,
        actor: &str,
        keep_tmux: Option<bool>,
        discard: bool,
    ) -> VerbOutcome {
        let gathered = match self.gather(held, item, self.settings()) {
            Ok(gathered) => gathered,
            Err(why) => return VerbOutcome::failed(item, why),
        };
        let mut outcome = VerbOutcome::nothing(&gathered.item, gathered.live().cloned());
        if let Err(fault) = self.0.registry.get(item) {
            let why = format!("its session record cannot be read: {fault}");
            return VerbOutcome::failed(&gathered.item, why);
        }
        if outcome.before.is_none() {
            return outcome;
        }
        let wish = CloseWish {
            keep_tmux,
            discard,
            actor: actor.to_owned(),
            ..CloseWish::close(ClosedVia::Cli)
        };
        self.verb_end(held, &gathered, &wish, &mut outcome);
        let cleared = self.0.portable.write_control(held, &gathered.item, None);
        outcome.errors.extend(cleared.err().map(|e| e.to_string()));
        outcome
    }

    fn verb_end(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        wish: &CloseWish,
        outcome: &mut VerbOutcome,
    ) {
        let closed = self.close_session(held, gathered, wish);
        outcome.deed = VerbDeed::Ended;
        outcome.was_live = closed.was_live;
        outcome.lines = closed.lines;
        outcome.errors.extend(closed.errors);
    }

    fn verb_status(&self, held: &ItemLock, gathered: &Gathered, event: SessionEvent) -> VerbDeed {
        let (well, deed) = if event == SessionEvent::Pause {
            (ControlEffect::Paused, VerbDeed::Paused)
        } else {
            (ControlEffect::Resumed, VerbDeed::Resumed)
        };
        let effect = self.set_status(held, gathered, event, well);
        if effect == well {
            deed
        } else if effect == ControlEffect::Noop {
            VerbDeed::Nothing
        } else {
            VerbDeed::Failed("its record cannot be written".to_owned())
        }
    }

    fn verb_release(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        actor: &str,
        resume: bool,
    ) -> VerbDeed {
        let scope = Scope::Item(gathered.item.clone());
        let Some(parked) = self.release(&scope, Some(actor.to_owned()), ReleasedVia::Cli) else {
            return VerbDeed::Failed("the limit could not be taken away".to_owned());
        };
        if resume {
            let resumed = self.verb_status(held, gathered, SessionEvent::Resume);
            if let VerbDeed::Failed(why) = resumed {
                return VerbDeed::Failed(why);
            }
        }
        VerbDeed::Released {
            was: LimitReason::parse(&parked.reason).unwrap_or(LimitReason::DeliveriesPerHour),
            limit: parked.base.unwrap_or(0),
        }
    }

    fn record_verb(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        command: Command,
        actor: &str,
    ) -> Result<(), String> {
        let now = self.world().clock.now();
        self.write_control(held, gathered, command, ControlSource::Cli, actor, "", now)
            .map_err(|why| format!("the wish could not be recorded: {why}"))
    }
}

/// What `plan` needs of an item for a verb that starts nothing: session and limit alone decide.
fn verb_state(gathered: &Gathered) -> ItemState {
    ItemState {
        session: match gathered.live().map(|record| record.status) {
            None | Some(SessionStatus::Closed) => SessionNow::None,
            Some(SessionStatus::Starting) => SessionNow::Starting,
            Some(SessionStatus::Active) => SessionNow::Active,
            Some(SessionStatus::Paused) => SessionNow::Paused,
        },
        parked: gathered.parked,
        closed: false,
        recorded: None,
        policy: gathered.settings.routing.spawn_on_unmatched,
        labeled: false,
        start_required: false,
    }
}
