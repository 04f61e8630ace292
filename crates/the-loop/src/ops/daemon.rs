//! `stop` (SE-21): ending a daemon from outside.

use std::time::Duration;

use the_loop_core::config::Settings;
use the_loop_core::probe::{TMUX_OLDEST, is_old_tmux};
use the_loop_core::session::SessionStatus;

use super::link;
use super::rows::{RowOutcome, Rows, ServiceRow};
use crate::poll::why_disabled;
use crate::process::{ProcessId, Signal};
use crate::store::layout::Layout;
use crate::store::lock::{ServiceHolder, ServiceLock};
use crate::store::registry::Registry;
use crate::tmux::Tmux;
use crate::world::World;

/// Between two looks at a lock that is to become free.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long a killed process may take to be gone.
const AFTER_KILL: Duration = Duration::from_secs(5);

/// How long tmux may take to tell its version.
const VERSION_WITHIN: Duration = Duration::from_secs(5);

/// What is to be said of the tmux that will host agents: an old one works as far as it was tried, and nobody
/// promises that it does (SE-87). One that is missing, or does not answer, is told of elsewhere.
pub fn old_tmux(world: &World, settings: &Settings) -> Option<String> {
    let tmux = &settings.routing.tmux;
    let conf = super::desk::layout_of(settings, None).tmux_conf();
    let tmux = Tmux::new(
        world,
        &tmux.binary,
        &tmux.socket_name,
        &conf,
        VERSION_WITHIN,
    );
    let version = tmux.version().ok().filter(|version| is_old_tmux(version))?;
    let (major, minor) = TMUX_OLDEST;
    Some(format!(
        "{version} is older than {major}.{minor}, the oldest that is supported"
    ))
}

/// Which services are to run.
#[derive(Clone, Copy, Debug)]
pub struct Enabled {
    /// The receiver of webhooks.
    pub receiver: bool,
    /// The poller.
    pub poller: bool,
}

impl Enabled {
    /// As these settings say.
    pub fn of(settings: &Settings) -> Self {
        Self {
            receiver: settings.webhooks.gh_webhook.enabled,
            poller: why_disabled(settings).is_none(),
        }
    }
}

/// How to stop.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    /// How long to wait until it is gone.
    pub timeout: Duration,
    /// Kill it when it is still there then.
    pub force: bool,
    /// A `restart` asks.
    pub restart: bool,
}

/// Ends the daemon of this root and leaves the agents. Only a process whose lock is held is signalled.
pub fn stop(world: &World, layout: &Layout, enabled: Enabled, how: Stop) -> Rows {
    let before = link::daemon(world, layout);
    let receiver = ServiceLock::holder(world.disk.as_ref(), &layout.webhook_pid());
    let poller = ServiceLock::holder(world.disk.as_ref(), &layout.poll_pid());
    let rows = |service: ServiceRow, gone: bool| {
        let ours = |of: ServiceHolder| before.locked && of.locked && of.pid == before.pid;
        Rows::new(vec![
            service,
            hosted_row(
                "gh-webhook",
                enabled.receiver,
                receiver,
                ours(receiver),
                gone,
            ),
            hosted_row("poller", enabled.poller, poller, ours(poller), gone),
        ])
    };
    if !before.locked {
        let service = row("service", true, RowOutcome::NotRunning, None, String::new());
        return rows(service, false);
    }
    let mut ending = Ending::of(world, before);
    let reason = if how.restart { "restart" } else { "command" };
    let mut gone = ending.wait(world, layout, Some(reason), how.timeout);
    let mut detail = words(ending.pid);
    if !gone && how.force {
        if let Some(process) = ending.process {
            world.processes.signal(process, Signal::Kill);
        }
        gone = ending.wait(world, layout, None, AFTER_KILL);
        detail = format!("{detail}, killed");
    }
    let pid = words(ending.pid);
    if gone {
        let service = row("service", true, RowOutcome::Stopped, None, detail);
        return rows(service, true);
    }
    let seconds = how.timeout.as_secs();
    let detail = format!("{pid} is still there after {seconds} s; --force kills it");
    let service = row("service", true, RowOutcome::Failed, ending.pid, detail);
    rows(service, false)
}

fn words(pid: Option<u32>) -> String {
    pid.map_or_else(|| "pid unknown".to_owned(), |pid| format!("pid {pid}"))
}

/// The process that the held lock names, told apart from a later one by its start time.
fn process(world: &World, holder: ServiceHolder) -> Option<ProcessId> {
    let pid = i32::try_from(holder.pid?).ok()?;
    let started = world.processes.started(pid)?;
    Some(ProcessId { pid, started })
}

/// The daemon that is to end.
struct Ending {
    pid: Option<u32>,
    process: Option<ProcessId>,
    told: bool,
}

impl Ending {
    fn of(world: &World, holder: ServiceHolder) -> Self {
        Self {
            pid: holder.pid,
            process: process(world, holder),
            told: false,
        }
    }

    /// Tells it to end, unless no `reason` is given, and waits until it is gone. A daemon that holds its
    /// lock but has not written its pid yet is told as soon as it can be; one that somebody started after
    /// ours ended is not ours to wait for.
    fn wait(
        &mut self,
        world: &World,
        layout: &Layout,
        reason: Option<&str>,
        timeout: Duration,
    ) -> bool {
        let mut waited = Duration::ZERO;
        loop {
            let holder = link::daemon(world, layout);
            if !holder.locked {
                return true;
            }
            let seen = process(world, holder);
            match (self.process, seen) {
                (Some(ours), Some(seen)) if ours != seen => return true,
                (Some(_), _) => {}
                (None, _) => *self = Self::of(world, holder),
            }
            if let (false, Some(reason)) = (self.told, reason) {
                self.told = link::stop(layout, reason) || self.signal(world);
            }
            if waited >= timeout {
                return false;
            }
            world.clock.wait(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
    }

    fn signal(&self, world: &World) -> bool {
        let Some(process) = self.process else {
            return false;
        };
        world.processes.signal(process, Signal::Term);
        true
    }
}

fn row(
    name: &str,
    enabled: bool,
    outcome: RowOutcome,
    pid: Option<u32>,
    detail: String,
) -> ServiceRow {
    ServiceRow {
        name: name.to_owned(),
        enabled,
        outcome,
        running: pid.is_some(),
        pid,
        detail,
    }
}

/// `ours`: it was the daemon's; `gone`: the daemon has ended, and it with it.
fn hosted_row(
    name: &str,
    enabled: bool,
    before: ServiceHolder,
    ours: bool,
    gone: bool,
) -> ServiceRow {
    match (before.locked, ours, gone) {
        (false, _, _) => row(name, enabled, RowOutcome::NotRunning, None, String::new()),
        (true, true, true) => row(name, enabled, RowOutcome::Stopped, None, words(before.pid)),
        (true, true, false) => row(
            name,
            enabled,
            RowOutcome::Failed,
            before.pid,
            words(before.pid),
        ),
        (true, false, _) => {
            let detail = format!("{}, by another program: left alone", words(before.pid));
            row(
                name,
                enabled,
                RowOutcome::AlreadyRunning,
                before.pid,
                detail,
            )
        }
    }
}

/// How many sessions go on without the daemon, as their records say.
pub fn sessions_left(world: &World, layout: &Layout) -> usize {
    let listing = Registry::new(world, layout).list();
    listing.map_or(0, |listing| {
        let on = |found: &&crate::store::registry::Registered| {
            matches!(
                found.record.status,
                SessionStatus::Starting | SessionStatus::Active | SessionStatus::Paused
            )
        };
        listing.records.iter().filter(on).count()
    })
}
