//! The effects of a relaunch: the old process ends, another one begins in its pane (SE-59).
//!
//! It is journaled as a start that resumes, so a crash anywhere in it is settled as any start is (ST-42):
//! what lives and carries our mark is adopted, whichever process it is by then; else the record goes back
//! to what it was, and the next event brings the conversation back.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::delivery::Delivery;
use the_loop_core::dispatch::Launch;
use the_loop_core::environment::Environ;
use the_loop_core::event::{LogEvent, Source};
use the_loop_core::record::{SessionRecord, SpawnIntent};
use the_loop_core::session::SessionStatus;

use super::Engine;
use super::perform::GLANCE;
use super::restart::{Found, Looked};
use crate::disk::Kind;
use crate::harness::adapter::Adapter;
use crate::harness::pane_exec::LaunchFile;
use crate::harness::program;
use crate::process::ProcessId;
use crate::store::inbox::{Accepted, DropAnswer, DropWhat, Seq};
use crate::store::lock::ItemLock;
use crate::tmux::{Pane, Respawned, Spot, Tmux, TmuxError};

/// How long the launcher may take to become the harness on a busy machine.
const LAUNCHED_WITHIN: Duration = Duration::from_secs(10);

/// How long tmux may take to notice that a process has ended.
const HEARD_WITHIN: Duration = Duration::from_secs(2);

/// A session that was relaunched.
pub(super) struct Up {
    /// Pid of the process before.
    pub was: i32,
    /// Pid of the process now.
    pub pid: i32,
    /// The delivery that tells it to go on.
    pub told: Option<Seq>,
}

/// Why it was not. The words hold no value of a variable.
pub(super) enum NotUp {
    /// tmux gave no answer before anything was done.
    Unanswered,
    /// Something is wrong, and the agent goes on as it was.
    LeftRunning(String),
    /// Its process is gone, and no other one came up.
    Lost(String),
    /// What lives in its pane now is not known, or not written down; the next look at it tells.
    Unsure(String),
}

/// What is known of a relaunch on its way.
struct Attempt<'a> {
    held: &'a ItemLock,
    tmux: &'a Tmux,
    pane: &'a Pane,
    spot: Spot,
    /// The record before.
    before: SessionRecord,
    launch_file: Utf8PathBuf,
    told: Option<(Seq, String)>,
}

impl Engine {
    pub(super) fn relaunch(
        &self,
        held: &ItemLock,
        found: &mut Found,
        looked: &Looked,
        actor: &str,
    ) -> Result<Up, NotUp> {
        let left = |why: &str| NotUp::LeftRunning(why.to_owned());
        let record = found.gathered.record.clone();
        let target = record.as_ref().and_then(SessionRecord::target);
        let (Some(record), Some(target), Some(adapter), Some(pane)) =
            (record, target, &looked.adapter, &looked.pane)
        else {
            return Err(left("nothing is known of it"));
        };
        if self.is_anothers(pane.pid) {
            return Err(left("its process belongs to another the-loop"));
        }
        if !self.is_directory(Utf8Path::new(&record.cwd)) {
            let why = format!("its directory {} is not there", record.cwd);
            return Err(NotUp::LeftRunning(why));
        }
        self.prepare_harness(&found.gathered, adapter)
            .map_err(NotUp::LeftRunning)?;
        let launch = self.launch_of(found, &record, adapter)?;
        if let Some(why) = program::missing(self.world(), adapter, &launch.env, &launch.cwd) {
            return Err(NotUp::LeftRunning(why));
        }
        let mut attempt = Attempt {
            held,
            tmux: &looked.tmux,
            pane,
            spot: Spot::of(&target, pane),
            before: record,
            launch_file: self
                .0
                .parts
                .layout
                .launch_file(&found.gathered.slug, self.world().ids.bytes()),
            told: None,
        };
        self.journal(found, &attempt).map_err(NotUp::LeftRunning)?;
        if let Err(e) = launch.write(self.world().disk.as_ref(), &attempt.launch_file) {
            let why = format!("cannot write the launch file: {e}");
            return Err(self.gave_up(found, &attempt, NotUp::LeftRunning(why)));
        }
        // Accepted before the agent is cut off, so that nothing that happens after can make it forgotten.
        let goes_on = looked.facts.turn.is_told()
            && attempt.before.status == SessionStatus::Active
            && found.parent.is_none();
        if goes_on {
            match self.accept_renewed(found, actor) {
                Ok(told) => attempt.told = Some(told),
                Err(why) => return Err(self.gave_up(found, &attempt, NotUp::LeftRunning(why))),
            }
        }
        if let Err(not_up) = self.end_old(found, &attempt) {
            return Err(self.gave_up(found, &attempt, not_up));
        }
        match self.begin_new(found, &attempt, adapter) {
            Ok(process) => Ok(Up {
                was: attempt.pane.pid,
                pid: process.pid,
                told: attempt.told.map(|(seq, _)| seq),
            }),
            // It may have come up: what is written down stays, and the next look settles it (ST-42).
            Err(not_up @ NotUp::Unsure(_)) => Err(not_up),
            Err(not_up) => Err(self.gave_up(found, &attempt, not_up)),
        }
    }

    fn is_directory(&self, path: &Utf8Path) -> bool {
        let disk = &self.world().disk;
        let real = disk.canonicalize(path);
        let meta = real.and_then(|real| disk.meta(&real));
        matches!(meta, Ok(Some(meta)) if meta.kind == Kind::Dir)
    }

    /// The same command line as after a crash, without a prompt (R1.4).
    fn launch_of(
        &self,
        found: &Found,
        record: &SessionRecord,
        adapter: &Adapter,
    ) -> Result<LaunchFile, NotUp> {
        let argv = self.launch_argv(&found.gathered, record, adapter, Launch::Resume, None);
        Ok(LaunchFile {
            program: adapter.program(self.world()),
            argv: argv.map_err(NotUp::LeftRunning)?,
            cwd: record.cwd.clone().into(),
            env: self.pane_env(&found.gathered, adapter),
        })
    }

    /// Writes down that the session is being started. That of a pull request has no journal of its own: its
    /// record lies in the item's, whose session goes on.
    fn journal(&self, found: &mut Found, attempt: &Attempt<'_>) -> Result<(), String> {
        let mut record = attempt.before.clone();
        record.spawn = Some(SpawnIntent {
            at: self.world().clock.now(),
            delivery_id: None,
            resume: true,
            previous: Some(record.status),
        });
        if found.parent.is_none() {
            record.status = SessionStatus::Starting;
            record.pid = None;
            record.pid_start_time = None;
            self.write_record(found, attempt.held, &record)
                .map_err(|e| format!("its record cannot be written: {e}"))?;
        }
        found.gathered.record = Some(record);
        Ok(())
    }

    fn write_record(
        &self,
        found: &mut Found,
        held: &ItemLock,
        record: &SessionRecord,
    ) -> Result<(), String> {
        let registry = &self.0.registry;
        let written = match &mut found.parent {
            None => registry.put(held, &found.gathered.slug, record),
            Some(parent) => {
                parent.record.put_endpoint(record.clone());
                registry.put(held, &parent.slug, &parent.record)
            }
        };
        written.map(|_| ()).map_err(|e| e.to_string())
    }

    /// Takes everything back that was prepared for a relaunch that came to nothing.
    fn gave_up(&self, found: &mut Found, attempt: &Attempt<'_>, not_up: NotUp) -> NotUp {
        let _ = self.world().disk.remove(&attempt.launch_file);
        if let Some((seq, id)) = &attempt.told {
            self.withdraw(found, *seq, id);
        }
        let mut record = attempt.before.clone();
        match &not_up {
            NotUp::Unanswered | NotUp::LeftRunning(_) | NotUp::Unsure(_) => {
                as_configured(found, attempt);
            }
            NotUp::Lost(_) => {
                record.pid = None;
                record.pid_start_time = None;
            }
        }
        // A record that cannot be written says `starting`; the next look settles it.
        let _ = self.write_record(found, attempt.held, &record);
        found.gathered.record = Some(record);
        super::lock(&self.0.agents).remove(&found.gathered.key);
        not_up
    }

    /// The old process ends first: two of one conversation would write over each other, and what only loses
    /// its terminal may live on (DI-18). One without our mark is tmux's to end.
    fn end_old(&self, found: &Found, attempt: &Attempt<'_>) -> Result<(), NotUp> {
        let settings = &found.gathered.settings.routing.tmux;
        let grace = Duration::from_secs_f64(settings.harness_kill_grace_seconds.max(0.0));
        match attempt.tmux.remain_on_exit(&attempt.spot, true) {
            Ok(()) => {}
            Err(TmuxError::NoAnswer(_)) => return Err(NotUp::Unanswered),
            Err(TmuxError::Refused(words)) => return Err(NotUp::LeftRunning(words)),
        }
        let Some(leader) = self.marked(attempt.pane.pid, &found.gathered.item) else {
            return Ok(());
        };
        if self.end_marked(&found.gathered.item, &[leader], grace) {
            Ok(())
        } else {
            Err(NotUp::LeftRunning("the agent did not end".to_owned()))
        }
    }

    fn begin_new(
        &self,
        found: &mut Found,
        attempt: &Attempt<'_>,
        adapter: &Adapter,
    ) -> Result<ProcessId, NotUp> {
        let old = self.world().processes.started(attempt.pane.pid);
        let argv = [
            self.world().program.as_str(),
            "pane-exec",
            attempt.launch_file.as_str(),
        ];
        let cwd = Utf8Path::new(&attempt.before.cwd);
        let pid = match attempt.tmux.respawn_pane(&attempt.spot, cwd, &argv) {
            Respawned::Made { pid } => pid,
            Respawned::Refused(words) if old.is_some() => {
                return Err(NotUp::LeftRunning(words));
            }
            Respawned::Refused(words) => return Err(NotUp::Lost(words)),
            Respawned::NoAnswer(why) => pid_after_silence(found, attempt, &why.to_string())?,
        };
        self.fresh_agent(&found.gathered, adapter);
        let settings = &found.gathered.settings.routing.tmux;
        let wait = Duration::from_secs_f64(settings.resume_probe_seconds.max(0.0));
        let process = self.world().processes.started(pid);
        let process = process.map(|started| ProcessId { pid, started });
        let lives = process.is_some_and(|process| self.stays(process, wait));
        let pane = if lives {
            leader_of(found, attempt)
        } else {
            self.pane_after_end(found, attempt)
        };
        let dead = pane.as_ref().is_ok_and(|pane| {
            pane.as_ref()
                .is_none_or(|pane| pane.dead || pane.pid != pid)
        });
        let (Some(process), false) = (process.filter(|_| lives), dead) else {
            let status = pane.ok().flatten().and_then(|pane| pane.exit_status);
            let status = status.map_or_else(String::new, |code| format!(" (exit {code})"));
            return Err(NotUp::Lost(format!("its agent ended at once{status}")));
        };
        let mut record = attempt.before.clone();
        let journaled = found.gathered.record.as_ref();
        record.launched_at = journaled.map(SessionRecord::launch_began_at);
        record.pid = Some(pid);
        record.pid_start_time = Some(process.started);
        record.last_event_at = Some(self.world().clock.now());
        if let Err(e) = self.write_record(found, attempt.held, &record) {
            let why = format!("it runs, and its record cannot be written: {e}");
            return Err(NotUp::Unsure(why));
        }
        found.gathered.record = Some(record);
        as_configured(found, attempt);
        let pid = attempt.pane.pid;
        let old = old.map(|started| ProcessId { pid, started });
        self.wait_for_end(old.as_slice(), LAUNCHED_WITHIN);
        if old.is_some_and(|old| self.lives(old)) {
            let why = format!("its old process {pid} lives on beside the new one: end it");
            return Err(NotUp::Unsure(why));
        }
        Ok(process)
    }

    /// The pane of a process that has ended. tmux hears of the end, and of the exit status, a moment later.
    fn pane_after_end(&self, found: &Found, attempt: &Attempt<'_>) -> Result<Option<Pane>, ()> {
        let clock = &self.world().clock;
        let deadline = clock.deadline(HEARD_WITHIN);
        loop {
            let pane = leader_of(found, attempt);
            let waits = matches!(&pane, Ok(Some(pane)) if !pane.dead);
            if !waits || clock.is_over(&deadline) {
                return pane;
            }
            clock.wait(GLANCE);
        }
    }

    /// Does a process live through the probe time, and until its launcher has become the harness?
    fn stays(&self, process: ProcessId, probe: Duration) -> bool {
        let clock = &self.world().clock;
        let (probed, launched) = (clock.deadline(probe), clock.deadline(LAUNCHED_WITHIN));
        while self.lives(process) {
            let became_it = self.environ_of_ours(process.pid).is_some();
            if clock.is_over(&probed) && (became_it || clock.is_over(&launched)) {
                return true;
            }
            clock.wait(GLANCE);
        }
        false
    }

    /// The environment of a process that we launched. One without our own names in it is that of the
    /// launcher, or was written over by the program: it says nothing.
    pub(super) fn environ_of_ours(&self, pid: i32) -> Option<Environ> {
        let environ = self.world().processes.environ(pid)?;
        let mark = environ.get("THE_LOOP_INSTANCE");
        (mark == Some(self.0.parts.instance.as_bytes())).then_some(environ)
    }

    fn accept_renewed(&self, found: &Found, actor: &str) -> Result<(Seq, String), String> {
        let world = self.world();
        let item = &found.gathered.item;
        let delivery =
            Delivery::environment_renewed(item, &world.ids.uuid(), actor, world.clock.now());
        let accepted = self.0.parts.inbox.accept(&delivery);
        let seq = match accepted.map_err(|e| format!("the inbox refuses: {e}"))? {
            Accepted::New { seq } | Accepted::Duplicate { seq, .. } => seq,
        };
        self.0.parts.log.emit(
            Source::Sessions,
            LogEvent::DeliveryAccepted {
                delivery_id: delivery.delivery_id.clone(),
                ingress: delivery.ingress,
                gh_event: delivery.event,
                action: delivery.action,
                actor: Some(actor.to_owned()),
                content_key: delivery.content_key,
                seq: seq.unsigned_abs(),
            },
        );
        Ok((seq, delivery.delivery_id))
    }

    /// Nothing was renewed, so nothing is told.
    fn withdraw(&self, found: &Found, seq: Seq, delivery_id: &str) {
        let what = DropWhat::Ids(vec![delivery_id.to_owned()]);
        let answers = match self.0.parts.inbox.drop_deliveries(what) {
            Ok(answers) => answers,
            Err(error) => {
                tracing::warn!(%error, seq, "a notice could not be taken back");
                return;
            }
        };
        for (_, answer) in answers {
            let DropAnswer::Dropped(changed) = answer else {
                continue;
            };
            for changed in changed {
                let event = LogEvent::DeliveryDiscarded {
                    work_item: Some(found.gathered.item.clone()),
                    delivery_id: changed.delivery_id,
                    actor: self.world().user.clone(),
                    was: changed.was.to_string(),
                    note: Some("the session was not relaunched".to_owned()),
                };
                self.0.parts.log.emit(Source::Sessions, event);
            }
        }
    }
}

/// The pane was kept for the relaunch; from now on it goes or stays as the settings say.
fn as_configured(found: &Found, attempt: &Attempt<'_>) {
    let keep = found.gathered.settings.routing.tmux.remain_on_exit;
    let _ = attempt.tmux.remain_on_exit(&attempt.spot, keep);
}

fn leader_of(found: &Found, attempt: &Attempt<'_>) -> Result<Option<Pane>, ()> {
    let record = found.gathered.record.as_ref();
    let target = record.and_then(SessionRecord::target).ok_or(())?;
    let panes = attempt.tmux.panes(&target).map_err(|_| ())?;
    Ok(panes.into_iter().find(|pane| pane.id == attempt.pane.id))
}

/// tmux gave no answer to the respawn: only what is in the pane now can tell.
fn pid_after_silence(found: &Found, attempt: &Attempt<'_>, why: &str) -> Result<i32, NotUp> {
    match leader_of(found, attempt) {
        Ok(Some(pane)) if !pane.dead && pane.pid != attempt.pane.pid => Ok(pane.pid),
        Ok(Some(_) | None) | Err(()) => {
            let words = format!("tmux gave no answer to the relaunch: {why}");
            Err(NotUp::Unsure(words))
        }
    }
}
