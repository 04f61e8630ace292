//! Effects of a spawn: checkout, journal, settings, launch (DI-19, DI-20).

use camino::Utf8Path;
use serde_json::json;
use the_loop_core::delivery::State;
use the_loop_core::dispatch::{Cleared, Journaled, Launch, Launched, Made};
use the_loop_core::event::LogEvent;
use the_loop_core::probe::ProvedDead;
use the_loop_core::record::{SessionRecord, SpawnIntent};
use the_loop_core::session::SessionStatus;

use super::item::Job;
use super::perform::Performer;
use crate::harness::program;
use crate::process::ProcessId;
use crate::store::inbox::OutcomeChange;
use crate::tmux::{Killed, Spawned};

impl Performer<'_> {
    pub(super) fn make_workspace(&mut self) -> Made {
        let seq = self.job.as_ref().map(|row| row.seq);
        match self.engine.ask_for_room(&self.gathered, seq) {
            Ok(room) => self.room = Some(room),
            Err(reason) => return Made::MustWait(reason),
        }
        if let Some(recorded) = self.engine.recorded_place(&self.gathered) {
            self.gathered.prepared = Some(recorded);
            return Made::Ready;
        }
        let delivery = self.job.as_ref().map(|row| &row.delivery);
        match self.engine.workspace(&self.gathered, self.held, delivery) {
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

    pub(super) fn record_starting(&mut self, launch: Launch) -> Journaled {
        let Some(prepared) = self.gathered.prepared.clone() else {
            return Journaled::Refused;
        };
        let now = self.now();
        let mut record = match (launch, self.gathered.record.clone()) {
            (Launch::Resume, Some(record)) => record,
            (Launch::Fresh, Some(mut record)) if record.status.is_live() => {
                record.harness_session_id = self.new_conversation();
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
                record.harness_session_id = self.new_conversation();
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
        record.launched_at = Some(now);
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
        if launch == Launch::Fresh {
            self.engine
                .say_not_resumable(&self.gathered, &self.adapter, previous);
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
        self.agent = self.engine.fresh_agent(&self.gathered, &self.adapter);
        Journaled::Written
    }

    /// The session lives after all: its record is what it was before the spawn was journaled (DI-39).
    pub(super) fn take_journal_back(&mut self) -> Journaled {
        let Some(mut record) = self.before.clone() else {
            return Journaled::Refused;
        };
        record.spawn = None;
        let registry = &self.engine.0.registry;
        if let Err(error) = registry.put(self.held, &self.gathered.slug, &record) {
            self.error = Some(error.to_string());
            return Journaled::Refused;
        }
        self.gathered.record = Some(record);
        self.agent = self.engine.fresh_agent(&self.gathered, &self.adapter);
        Journaled::Written
    }

    /// A pane would say so for a moment and be gone; so it is asked before.
    fn missing_program(&self) -> Option<String> {
        let engine = self.engine;
        let cwd = self
            .gathered
            .record
            .as_ref()
            .map_or("/", |r| r.cwd.as_str());
        let env = engine.pane_env(&self.gathered, &self.adapter);
        program::missing(engine.world(), &self.adapter, &env, Utf8Path::new(cwd))
    }

    /// The id of a new conversation; empty where the harness chooses and we learn (DI-33).
    fn new_conversation(&self) -> String {
        if self.adapter.assigns_id() {
            self.engine.world().ids.uuid()
        } else {
            String::new()
        }
    }

    pub(super) fn prepare_harness(&mut self) -> Made {
        if let Some(missing) = self.missing_program() {
            let name = self.adapter.name();
            self.remedy = Some(format!(
                "install it, or name it in routing.harnesses.{name}.command"
            ));
            self.error = Some(missing);
            return Made::Failed { retry: false };
        }
        match self.engine.prepare_harness(&self.gathered, &self.adapter) {
            Ok(()) => Made::Ready,
            Err(error) => {
                self.error = Some(error);
                Made::Failed { retry: true }
            }
        }
    }

    pub(super) fn clear(&mut self, proof: ProvedDead) -> Cleared {
        match self.tmux.clear_dead(&self.target, proof) {
            Killed::Gone => Cleared::Gone,
            Killed::StillThere => {
                self.error = Some(format!(
                    "the dead session {} cannot be cleared",
                    self.target
                ));
                Cleared::StillThere
            }
            Killed::Unanswered => Cleared::Unanswered,
        }
    }

    pub(super) fn launch(&mut self, launch: Launch) -> Launched {
        let Some(record) = self.gathered.live().cloned() else {
            return Launched::Refused;
        };
        let world = self.engine.world().clone();
        let carries = self.adapter.carries_prompt(launch);
        if !carries {
            self.told_by_launch = Some(launch);
        }
        let argument = match self.job.clone().filter(|_| carries) {
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
            &self.adapter,
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
        self.engine.say_env_file(&self.gathered.settings);
        let body = json!({
            "program": self.adapter.program(&world),
            "argv": args,
            "cwd": record.cwd,
            "env": self.engine.pane_env(&self.gathered, &self.adapter),
        });
        let file = self
            .engine
            .0
            .parts
            .layout
            .launch_file(&self.gathered.slug, world.ids.bytes());
        let bytes = body.to_string().into_bytes();
        self.launch_file = Some(file.clone());
        if let Err(error) = world.disk.create_new(&file, &bytes, 0o600) {
            self.error = Some(format!("cannot write the launch file: {error}"));
            self.forget_launch_file();
            return Launched::Refused;
        }
        // The server may have to be started for this session. Without its file it comes up with tmux's
        // defaults, loses what a failed harness said, and greets the first who attaches with an error.
        let conf = self.engine.0.parts.layout.tmux_conf();
        let remain = self.gathered.settings.routing.tmux.remain_on_exit;
        let conf_bytes = crate::tmux::server_config(remain).into_bytes();
        if let Err(error) = world.disk.write_atomic(&conf, &conf_bytes, false) {
            self.error = Some(format!("cannot write {conf}: {error}"));
            self.forget_launch_file();
            return Launched::Refused;
        }
        let queued = |row: &Job| row.state == State::Queued;
        if carries && self.job.as_ref().is_some_and(queued) && !self.mark_sending() {
            self.forget_launch_file();
            return Launched::Refused;
        }
        let argv = [world.program.as_str(), "pane-exec", file.as_str()];
        let was_empty = self
            .engine
            .look_at_server(&self.tmux)
            .is_ok_and(|snapshot| snapshot.is_empty());
        match self
            .tmux
            .new_session(&self.target, Utf8Path::new(&record.cwd), remain, &argv)
        {
            Spawned::Made { pid, pane } => {
                super::lock(&self.agent).pane = Some(pane);
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
    pub(super) fn unsend(&mut self) {
        if self
            .job
            .as_ref()
            .is_some_and(|row| row.state == State::Sending)
        {
            self.changed(OutcomeChange::to(State::Queued));
        }
    }

    pub(super) fn forget_launch_file(&mut self) {
        if let Some(file) = self.launch_file.take() {
            let _ = self.engine.world().disk.remove(&file);
        }
    }
}
