//! Runs the effects the dispatch machine asks for, one at a time, and says what was seen.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use the_loop_core::confirm::{By, Composer};
use the_loop_core::delivery::{Effect as Deed, State};
use the_loop_core::dispatch::{
    Adoption, Alive, Cleared, Confirmation, Effect, HoldReason, Journaled, Launch, Launched, Made,
    Observed, Readiness, Seen, Sent,
};
use the_loop_core::event::{AdoptedWas, Interaction, LogEvent, Runner, UnconfirmedNext};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::probe::{ProvedDead, TmuxState};
use the_loop_core::record::{SessionRecord, SpawnIntent};
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::agent::Agent;
use super::item::{Gathered, Job};
use super::slots::Slot;
use super::{Engine, lock};
use crate::clock::Clock;
use crate::harness::adapter::Adapter;
use crate::process::ProcessId;
use crate::store::inbox::OutcomeChange;
use crate::store::lock::ItemLock;
use crate::tmux::{Spawned, Tmux, TmuxError, View};

/// How often a file is looked at while something is awaited.
const GLANCE: Duration = Duration::from_millis(15);
/// How often tmux is asked while something is awaited.
const LOOK: Duration = Duration::from_millis(500);
/// How often a wait asks whether a verb that ends things wants the item (ST-25).
const WANTED: Duration = Duration::from_millis(250);
/// Lines of a dead pane that an event may show (EV-18).
const TAIL_LINES: usize = 20;

/// One dispatch in progress.
pub(super) struct Performer<'a> {
    pub engine: &'a Engine,
    pub held: &'a ItemLock,
    pub gathered: Gathered,
    pub job: Option<Job>,
    pub adapter: Adapter,
    pub target: TmuxTarget,
    pub tmux: Tmux,
    pub agent: Arc<Mutex<Agent>>,
    /// What went wrong, in words for the log.
    pub error: Option<String>,
    /// The last lines of a pane whose harness died.
    pub tail: Vec<String>,
    /// The session record as it was before a spawn was journaled.
    pub before: Option<SessionRecord>,
    launch_file: Option<Utf8PathBuf>,
    launched: Option<ProcessId>,
    room: Option<super::limits::Reservation>,
    slot: Option<Slot>,
    began: Timestamp,
}

impl<'a> Performer<'a> {
    pub fn new(
        engine: &'a Engine,
        held: &'a ItemLock,
        gathered: Gathered,
        job: Option<Job>,
    ) -> Self {
        let settings = &gathered.settings;
        let wanted = job.as_ref().and_then(|row| match &row.delivery.effect {
            Deed::Start { harness } => harness.clone(),
            Deed::Text(_) | Deed::Presence | Deed::Notice { .. } | Deed::Close { .. } => None,
        });
        let harness = gathered
            .live()
            .map(|record| record.harness.clone())
            .or(wanted)
            .unwrap_or_else(|| settings.routing.default_harness.clone());
        let adapter = Adapter::by_name(&harness).unwrap_or(Adapter::Claude);
        let tmux = engine.tmux_of(settings, gathered.live());
        let target = engine.target_of(&gathered);
        let agent = engine.agent(&gathered, adapter);
        let began = engine.world().clock.now();
        Self {
            engine,
            held,
            before: gathered.record.clone(),
            gathered,
            job,
            adapter,
            target,
            tmux,
            agent,
            error: None,
            tail: Vec::new(),
            launch_file: None,
            launched: None,
            room: None,
            slot: None,
            began,
        }
    }

    pub(super) fn perform(&mut self, effect: Effect) -> Seen {
        // Slow waits give the slot back, so that they never keep another item from acting (DI-5).
        match effect {
            Effect::MakeWorkspace
            | Effect::ProveAlive { .. }
            | Effect::AwaitReady
            | Effect::Confirm => self.slot = None,
            Effect::Probe
            | Effect::Adopt
            | Effect::Observe
            | Effect::Send
            | Effect::SubmitAgain
            | Effect::RecordStarting { .. }
            | Effect::PrepareHarness { .. }
            | Effect::Clear(_)
            | Effect::Launch { .. }
            | Effect::RecordActive { .. } => {
                if self.slot.is_none() {
                    self.slot = Some(self.engine.0.slots.take());
                }
            }
        }
        match effect {
            Effect::Probe => Seen::Probe(self.tmux.probe(&self.target)),
            Effect::Adopt => Seen::Adopt(self.adopt()),
            Effect::Observe => Seen::Observe(self.observe()),
            Effect::Send => Seen::Send(self.send()),
            Effect::SubmitAgain => Seen::Send(self.submit_again()),
            Effect::Confirm => Seen::Confirm(self.confirm()),
            Effect::MakeWorkspace => Seen::Workspace(self.make_workspace()),
            Effect::RecordStarting { launch } => Seen::Journal(self.record_starting(launch)),
            Effect::PrepareHarness { .. } => Seen::Harness(self.prepare_harness()),
            Effect::Clear(proof) => Seen::Clear(self.clear(proof)),
            Effect::Launch { launch } => Seen::Launch(self.launch(launch)),
            Effect::ProveAlive { .. } => Seen::Alive(self.prove_alive()),
            Effect::RecordActive { launch, adopted } => {
                Seen::Journal(self.record_active(launch, adopted))
            }
            Effect::AwaitReady => Seen::Ready(self.await_ready()),
        }
    }

    fn clock(&self) -> &Clock {
        &self.engine.world().clock
    }

    pub fn now(&self) -> Timestamp {
        self.engine.world().clock.now()
    }

    /// The process in the pane, when it carries our mark for this very item.
    pub fn ours(&self) -> Result<Option<ProcessId>, ()> {
        let panes = self.tmux.panes(&self.target).map_err(|_| ())?;
        Ok(panes
            .iter()
            .find(|pane| !pane.dead)
            .and_then(|pane| self.engine.marked(pane.pid, &self.gathered.item)))
    }

    fn adopt(&mut self) -> Adoption {
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

    /// Everything DI-27 asks before a paste.
    fn observe(&mut self) -> Observed {
        let view = match self.view() {
            Err(()) => return Observed::Unanswered,
            Ok(None) => return Observed::Gone,
            Ok(Some(view)) => view,
        };
        if view.pane.dead {
            return Observed::Gone;
        }
        if view.pane.in_mode {
            let writable = view.clients.iter().any(|client| !client.read_only);
            if writable || self.tmux.leave_mode(&self.target).is_err() {
                return Observed::MustWait(HoldReason::CopyMode);
            }
        }
        match self.must_wait(&view) {
            Some(reason) => Observed::MustWait(reason),
            None => Observed::CanTake,
        }
    }

    fn must_wait(&self, view: &View) -> Option<HoldReason> {
        let now = self.now();
        let mut agent = lock(&self.agent);
        let state = agent.state(now, Some(view));
        if let Some(hold) = state.hold() {
            return Some(hold);
        }
        if let Some(hold) = agent.composer(view, now, None).hold() {
            return Some(hold);
        }
        let quiet = i64::from(self.gathered.settings.routing.tmux.typing_hold_seconds) * 1000;
        let typing = view
            .clients
            .iter()
            .any(|client| !client.read_only && now.unix_ms() - client.active_at * 1000 < quiet);
        typing.then_some(HoldReason::Typing)
    }

    fn view(&self) -> Result<Option<View>, ()> {
        self.tmux.view(&self.target).map_err(|_| ())
    }

    fn send(&mut self) -> Sent {
        let Some(row) = self.job.clone() else {
            return Sent::NotPasted;
        };
        let Some(marker) = row.marker.clone() else {
            return Sent::NotPasted;
        };
        let text = match self.engine.text_to_paste(self, &row) {
            Ok(text) => text,
            Err(error) => {
                self.error = Some(error);
                return Sent::NotPasted;
            }
        };
        if !self.mark_sending() {
            return Sent::NotPasted;
        }
        match self.tmux.paste(&self.target, marker.as_str(), &text) {
            Ok(()) => {}
            Err(TmuxError::Refused(words)) => {
                self.error = Some(words);
                return Sent::NotPasted;
            }
            Err(TmuxError::NoAnswer(why)) => {
                self.error = Some(why.to_string());
                return Sent::Unanswered;
            }
        }
        self.clock().wait(self.adapter.declaration().submit_delay);
        self.submit(&marker.to_string())
    }

    /// Looks again, then submits: a dialog may have opened since the paste (DI-28).
    fn submit(&mut self, buffer: &str) -> Sent {
        match self.view() {
            Ok(Some(view)) => {
                let state = lock(&self.agent).state(self.now(), Some(&view));
                if let Some(hold) = state.hold() {
                    return Sent::LeftInComposer(hold);
                }
            }
            Ok(None) => {
                self.error = Some("the session went away after the paste".to_owned());
                return Sent::Unanswered;
            }
            Err(()) => {
                self.error = Some("tmux gave no answer after the paste".to_owned());
                return Sent::Unanswered;
            }
        }
        match self.tmux.submit(&self.target, buffer) {
            Ok(()) => {
                self.mark_pasted();
                Sent::Submitted
            }
            Err(error) => {
                self.error = Some(error.to_string());
                Sent::Unanswered
            }
        }
    }

    /// Submits our text, which still stands in the composer, once more.
    pub fn submit_again(&mut self) -> Sent {
        let Some(row) = self.job.clone() else {
            return Sent::NotPasted;
        };
        let Some(marker) = row.marker.clone() else {
            return Sent::NotPasted;
        };
        *lock(&self.engine.0.submits).entry(row.seq).or_insert(0) += 1;
        if let (State::Pasted, Some(intent)) = (row.state, row.intent_at) {
            self.engine.emit(LogEvent::DeliveryUnconfirmed {
                work_item: self.gathered.item.clone(),
                endpoint: None,
                delivery_id: row.delivery.delivery_id.clone(),
                harness: self.adapter.name().to_owned(),
                waited_ms: self.now().since(intent).as_millis() as u64,
                next: UnconfirmedNext::SubmitAgain,
            });
        }
        self.submit(marker.as_str())
    }

    fn mark_sending(&mut self) -> bool {
        let now = self.now();
        if let Some(job) = &self.job {
            self.engine.goes_on(&self.gathered, job);
        }
        let change = OutcomeChange::to(State::Sending).intent_at(now);
        self.changed(change)
    }

    fn mark_pasted(&mut self) {
        let now = self.now();
        let Some(row) = self.job.as_ref().filter(|row| row.state == State::Sending) else {
            return;
        };
        self.engine.emit(LogEvent::DeliveryPasted {
            work_item: self.gathered.item.clone(),
            endpoint: None,
            delivery_id: row.delivery.delivery_id.clone(),
            harness: self.adapter.name().to_owned(),
        });
        self.changed(OutcomeChange::to(State::Pasted).pasted_at(now));
    }

    /// Changes the outcome's row; false when the inbox refused.
    pub fn changed(&mut self, change: OutcomeChange) -> bool {
        let Some(row) = &self.job else { return true };
        match self
            .engine
            .change(self.held, &self.gathered.key, row, change)
        {
            Some(row) => {
                self.job = Some(row);
                true
            }
            None => {
                self.error = Some("the inbox refused".to_owned());
                false
            }
        }
    }

    /// Waits for the harness's own evidence (DI-29).
    pub fn confirm(&mut self) -> Confirmation {
        let Some(row) = self.job.clone() else {
            return Confirmation::Silent { in_composer: false };
        };
        let timeout = Duration::from_secs(u64::from(
            self.gathered.settings.routing.tmux.confirm_timeout_seconds,
        ));
        let deadline = self.clock().deadline(timeout);
        let mut asked = self.clock().deadline(WANTED);
        loop {
            if let Some(by) = self.evidence(&row) {
                return Confirmation::By(by);
            }
            if self.clock().is_over(&deadline) {
                break;
            }
            if self.clock().is_over(&asked) {
                asked = self.clock().deadline(WANTED);
                if self.interrupted() {
                    return Confirmation::Interrupted;
                }
            }
            self.clock().wait(GLANCE);
        }
        let in_composer = match self.view() {
            Ok(Some(view)) => {
                let now = self.now();
                lock(&self.agent).composer(&view, now, row.marker.as_ref()) == Composer::Ours
            }
            Ok(None) | Err(()) => false,
        };
        Confirmation::Silent { in_composer }
    }

    fn evidence(&self, row: &Job) -> Option<By> {
        lock(&self.agent).evidence(row.marker.as_ref()?, row.intent_at?)
    }

    fn interrupted(&self) -> bool {
        self.engine.is_stopping() || self.engine.0.locks.is_wanted(self.held)
    }

    fn make_workspace(&mut self) -> Made {
        let seq = self.job.as_ref().map_or(i64::MAX, |row| row.seq);
        match self.engine.ask_for_room(&self.gathered, seq) {
            Ok(room) => self.room = Some(room),
            Err(reason) => return Made::MustWait(reason),
        }
        match self.engine.workspace(&self.gathered, self.held) {
            Ok(prepared) => {
                self.gathered.prepared = Some(prepared);
                Made::Ready
            }
            Err(super::limits::NoWorkspace::GaveWay) => Made::GaveWay,
            Err(super::limits::NoWorkspace::Failed { error, retry }) => {
                self.error = Some(error);
                Made::Failed { retry }
            }
        }
    }

    fn record_starting(&mut self, launch: Launch) -> Journaled {
        let Some(prepared) = self.gathered.prepared.clone() else {
            return Journaled::Refused;
        };
        let now = self.now();
        let mut record = match (launch, self.gathered.record.clone()) {
            (Launch::Resume, Some(record)) => record,
            (Launch::Fresh, Some(mut record)) if record.status.is_live() => {
                record.harness_session_id = self.engine.world().ids.uuid();
                record
            }
            (Launch::Fresh | Launch::Resume, _) => {
                let (item, cwd) = (&self.gathered.item, prepared.cwd.as_str());
                let mut record = SessionRecord::new(
                    item,
                    self.adapter.name(),
                    cwd,
                    SessionStatus::Starting,
                    now,
                );
                record.harness_session_id = self.engine.world().ids.uuid();
                record
            }
        };
        let previous = match self.before.as_ref().map(|record| record.status) {
            Some(SessionStatus::Starting) => self
                .before
                .as_ref()
                .and_then(|r| r.spawn.as_ref()?.previous),
            Some(SessionStatus::Closed) | None => None,
            Some(status) => Some(status),
        };
        record.status = SessionStatus::Starting;
        record.cwd = prepared.cwd.to_string();
        record.workspace = Some(super::limits::workspace_record(&prepared));
        record.tmux_target = self.target.to_string();
        record.tmux_socket = Some(self.tmux.socket().to_owned());
        record.closed_at = None;
        record.pid = None;
        record.pid_start_time = None;
        record.spawn = Some(SpawnIntent {
            at: now,
            delivery_id: self
                .job
                .as_ref()
                .map(|row| row.delivery.delivery_id.clone()),
            resume: launch == Launch::Resume,
            previous,
        });
        if let Err(error) = self
            .engine
            .0
            .registry
            .put(self.held, &self.gathered.slug, &record)
        {
            self.error = Some(error.to_string());
            return Journaled::Refused;
        }
        self.engine.emit(LogEvent::SessionStarting {
            work_item: self.gathered.item.clone(),
            endpoint: None,
            harness: record.harness.clone(),
            tmux_target: record.tmux_target.clone(),
            cwd: record.cwd.clone(),
            resume: launch == Launch::Resume,
            delivery_id: self
                .job
                .as_ref()
                .map(|row| row.delivery.delivery_id.clone()),
        });
        self.gathered.record = Some(record);
        self.agent = self.engine.fresh_agent(&self.gathered, self.adapter);
        Journaled::Written
    }

    fn prepare_harness(&mut self) -> Made {
        match self.engine.prepare_harness(&self.gathered, self.adapter) {
            Ok(()) => Made::Ready,
            Err(error) => {
                self.error = Some(error);
                Made::Failed { retry: true }
            }
        }
    }

    fn clear(&mut self, proof: ProvedDead) -> Cleared {
        if self.tmux.clear_dead(&self.target, proof) {
            Cleared::Gone
        } else {
            self.error = Some(format!(
                "the dead session {} cannot be cleared",
                self.target
            ));
            Cleared::StillThere
        }
    }

    fn launch(&mut self, launch: Launch) -> Launched {
        let Some(record) = self.gathered.live().cloned() else {
            return Launched::Refused;
        };
        let world = self.engine.world().clone();
        let argument = match self.job.clone() {
            None => None,
            Some(row) => match self.engine.text_as_argument(self, &row, launch) {
                Ok(text) => Some(text),
                Err(error) => {
                    self.error = Some(error);
                    return Launched::Refused;
                }
            },
        };
        let args = self.engine.launch_argv(
            &self.gathered,
            &record,
            self.adapter,
            launch,
            argument.as_deref(),
        );
        let args = match args {
            Ok(args) => args,
            Err(error) => {
                self.error = Some(error);
                return Launched::Refused;
            }
        };
        let body = json!({
            "program": self.adapter.program(&world),
            "argv": args,
            "cwd": record.cwd,
            "env": self.engine.pane_env(&self.gathered),
        });
        let file = self
            .engine
            .0
            .parts
            .layout
            .launch_file(&self.gathered.slug, world.ids.bytes());
        let bytes = body.to_string().into_bytes();
        if let Err(error) = world.disk.create_new(&file, &bytes, 0o600) {
            self.error = Some(format!("cannot write the launch file: {error}"));
            return Launched::Refused;
        }
        self.launch_file = Some(file.clone());
        if self
            .job
            .as_ref()
            .is_some_and(|row| row.state == State::Queued)
            && !self.mark_sending()
        {
            self.forget_launch_file();
            return Launched::Refused;
        }
        let argv = [world.program.as_str(), "pane-exec", file.as_str()];
        let was_empty = self
            .tmux
            .snapshot()
            .is_ok_and(|snapshot| snapshot.is_empty());
        match self
            .tmux
            .new_session(&self.target, Utf8Path::new(&record.cwd), &argv)
        {
            Spawned::Made { pid } => {
                if was_empty {
                    self.engine.emit(LogEvent::TmuxServerStarted {
                        socket: self.tmux.socket().to_owned(),
                        version: self.tmux.version().unwrap_or_default(),
                    });
                }
                self.launched = world
                    .processes
                    .started(pid)
                    .map(|started| ProcessId { pid, started });
                self.mark_pasted();
                Launched::Made
            }
            Spawned::NameTaken => {
                self.forget_launch_file();
                self.unsend();
                Launched::NameTaken
            }
            Spawned::Refused(words) => {
                self.forget_launch_file();
                self.unsend();
                self.error = Some(words);
                Launched::Refused
            }
            Spawned::NoAnswer(why) => {
                self.error = Some(why.to_string());
                Launched::Unanswered
            }
        }
    }

    /// tmux refused, so nothing was sent.
    fn unsend(&mut self) {
        if self
            .job
            .as_ref()
            .is_some_and(|row| row.state == State::Sending)
        {
            self.changed(OutcomeChange::to(State::Queued));
        }
    }

    fn forget_launch_file(&mut self) {
        if let Some(file) = self.launch_file.take() {
            let _ = self.engine.world().disk.remove(&file);
        }
    }

    /// Waits the probe time; a harness that ends earlier is noticed at once by its pid.
    fn prove_alive(&mut self) -> Alive {
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

    fn has_ended(&self) -> bool {
        self.launched
            .is_some_and(|p| self.engine.world().processes.started(p.pid) != Some(p.started))
    }

    fn take_tail(&mut self, error: &str) {
        self.tail = self.tmux.tail(&self.target, TAIL_LINES);
        self.error = Some(format!("{} {error}", self.adapter.name()));
    }

    /// Adopts a spawn that a crash cut short; `Ok(false)` when what lives there is not ours.
    pub fn adopt_starting(&mut self) -> Result<bool, ()> {
        match self.adopt() {
            Adoption::Unanswered => Err(()),
            Adoption::NotOurs => Ok(false),
            Adoption::Ours => match self.record_active(Launch::Resume, true) {
                Journaled::Written => Ok(true),
                Journaled::Refused => Err(()),
            },
        }
    }

    fn record_active(&mut self, launch: Launch, adopted: bool) -> Journaled {
        let Some(mut record) = self.gathered.live().cloned() else {
            return Journaled::Refused;
        };
        let now = self.now();
        let was = record.status;
        record.status = match record.spawn.as_ref().and_then(|spawn| spawn.previous) {
            // A pause set meanwhile wins (DI-40).
            Some(SessionStatus::Paused) => SessionStatus::Paused,
            Some(SessionStatus::Starting | SessionStatus::Active | SessionStatus::Closed)
            | None => SessionStatus::Active,
        };
        let replaced = record
            .spawn
            .as_ref()
            .is_some_and(|spawn| spawn.previous.is_some());
        record.spawn = None;
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
        if adopted {
            self.agent = self.engine.fresh_agent(&self.gathered, self.adapter);
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

    fn announce_spawn(&self, record: &SessionRecord, launch: Launch, replaced: bool) {
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

    fn await_ready(&mut self) -> Readiness {
        let timeout = Duration::from_secs(u64::from(
            self.gathered.settings.routing.tmux.ready_timeout_seconds,
        ));
        let deadline = self.clock().deadline(timeout);
        let mut looked = self.clock().deadline(Duration::ZERO);
        let mut asked = self.clock().deadline(WANTED);
        let mut reason = HoldReason::NotReady;
        loop {
            let now = self.now();
            if lock(&self.agent).state(now, None).takes_input() {
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
                if let Ok(Some(view)) = self.view() {
                    let state = lock(&self.agent).state(now, Some(&view));
                    if state.takes_input() {
                        return self.ready();
                    }
                    reason = state.hold().unwrap_or(HoldReason::NotReady);
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

    fn ready(&self) -> Readiness {
        self.engine.emit(LogEvent::SessionReady {
            work_item: self.gathered.item.clone(),
            endpoint: None,
            harness: self.adapter.name().to_owned(),
            waited_ms: self.now().since(self.began).as_millis() as u64,
        });
        Readiness::Ready
    }
}
