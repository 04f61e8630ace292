//! `start`, `run`, `stop`, `restart`, `status` (SE-18 to SE-25).

use std::time::Duration;

use camino::Utf8Path;

use the_loop_core::config::Settings;
use the_loop_core::event::{LogEvent, Source};
use the_loop_core::redact::visible;
use tracing::level_filters::LevelFilter;

use super::args::{RestartArgs, StartArgs, StopArgs};
use super::context::{Context, Ended, Failure};
use super::exit::Exit;
use crate::daemon::detach::{self, Seen};
use crate::daemon::{self, NotStarted};
use crate::ops::daemon::{Enabled, Stop, old_tmux, sessions_left, stop as stop_daemon};
use crate::ops::desk::{Desk, layout_of, unusable_root};
use crate::ops::error::{Kind, OpError};
use crate::ops::rows::{RowOutcome, Rows, ServiceRow};
use crate::ops::status::{self, BrokenConfig};
use crate::poll::why_disabled;
use crate::settings::{ConfigFault, Loaded, Origins, warnings_of_machine};
use crate::store::layout::Layout;
use crate::store::lock::ServiceLock;
use crate::telemetry::{self, DaemonLog};

/// How long `restart` waits for the old daemon (SE-21).
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// `start`.
pub fn start(cx: &mut Context, args: &StartArgs) -> Ended {
    if args.foreground {
        return run(cx);
    }
    if args.as_child {
        return child(cx);
    }
    let loaded = loaded_with_warnings(cx)?;
    let rows = bring_up(cx, &loaded, Duration::from_secs(args.timeout))?;
    print(cx, &rows);
    Ok(Exit::of(rows.ok))
}

/// Settings, and everything that is worth a warning at a start (CF-14, CF-32).
fn loaded_with_warnings(cx: &mut Context) -> Result<Loaded, Failure> {
    let (loaded, env_warnings) = cx.prepared(None);
    let loaded = loaded?;
    let path = loaded.path.as_deref();
    let shown = path.map_or_else(String::new, |path| {
        crate::settings::tilde(path, cx.world.home.as_deref())
    });
    let machine = warnings_of_machine(&cx.world, &loaded.settings, path);
    let mut said = Vec::new();
    for warning in env_warnings.iter().chain(&loaded.warnings).chain(&machine) {
        let line = warning.line(&shown);
        if !said.contains(&line) {
            cx.out.warning(visible(&line));
            said.push(line);
        }
    }
    if let Some(words) = old_tmux(&cx.world, &loaded.settings) {
        cx.out.warning(visible(&words));
    }
    if !brings_work(&loaded.settings) {
        cx.out.warning("nothing is enabled that brings work in");
    }
    Ok(loaded)
}

/// The receiver, the poller and the embedded tracker do.
fn brings_work(settings: &Settings) -> bool {
    settings.webhooks.gh_webhook.enabled
        || settings.polling.enabled
        || !settings.tracker.local.repos.is_empty()
}

/// Starts the child and waits until it is ready.
fn bring_up(cx: &Context, loaded: &Loaded, patience: Duration) -> Result<Rows, Failure> {
    let layout = layout_of(&loaded.settings, None);
    layout.ensure(&cx.world).map_err(|e| unusable_root(&e))?;
    let mut args = Vec::new();
    if let Some(path) = &loaded.path {
        args.extend(["--config".to_owned(), path.to_string()]);
    }
    args.extend((0..cx.global.verbose).map(|_| "-v".to_owned()));
    args.extend(["start".to_owned(), "--as-child".to_owned()]);
    let log = layout.daemon_log();
    let seen = detach::start(&cx.world, &args, &log, patience);
    match seen.map_err(|e| OpError::failed("cannot start the daemon", &e))? {
        Seen::Ready(rows) => Ok(rows),
        Seen::Died { code, how, tail } => {
            let made = OpError::new(Kind::Failed, format!("the daemon did not start ({how})"));
            cx.out.error(&made);
            for line in tail {
                cx.out.aside(format!("  {line}"));
            }
            cx.out.hint(format!("its log: {log}"));
            Err(Failure::Said(Exit(code.max(1))))
        }
        Seen::Silent { pid } => {
            let seconds = patience.as_secs();
            let made = format!("the daemon is not ready after {seconds} s (pid {pid})");
            let made = OpError::new(Kind::Failed, made);
            Err(made
                .hint(format!("its log: {log}"))
                .hint("the-loop status")
                .into())
        }
    }
}

/// The rows of a daemon that was there before.
fn already(cx: &Context, settings: &Settings, layout: &Layout, pid: Option<u32>) -> Rows {
    let words = pid.map_or_else(|| "pid unknown".to_owned(), |pid| format!("pid {pid}"));
    let service = ServiceRow {
        name: "service".to_owned(),
        enabled: true,
        outcome: RowOutcome::AlreadyRunning,
        running: true,
        pid,
        detail: words,
    };
    let disk = cx.world.disk.as_ref();
    let hosted = |name: &str, path: &Utf8Path, disabled: Option<String>| {
        let holder = ServiceLock::holder(disk, path);
        let enabled = disabled.is_none();
        let (outcome, detail) = match (disabled, holder.locked) {
            (Some(why), _) => (RowOutcome::Disabled, why),
            (None, true) if holder.pid == pid => {
                (RowOutcome::AlreadyRunning, service.detail.clone())
            }
            (None, true) => {
                let pid = holder
                    .pid
                    .map_or_else(|| "?".to_owned(), |pid| pid.to_string());
                let detail = format!("pid {pid}, by another program");
                (RowOutcome::AlreadyRunning, detail)
            }
            (None, false) => {
                let detail = "the daemon runs without it: the-loop status".to_owned();
                (RowOutcome::Failed, detail)
            }
        };
        let running = enabled && holder.locked;
        ServiceRow {
            name: name.to_owned(),
            enabled,
            outcome,
            running,
            pid: running.then_some(holder.pid).flatten(),
            detail,
        }
    };
    let receiver_off = (!settings.webhooks.gh_webhook.enabled)
        .then(|| "webhooks.ghWebhook.enabled is false".to_owned());
    let receiver = hosted("gh-webhook", &layout.webhook_pid(), receiver_off);
    let poller = hosted("poller", &layout.poll_pid(), why_disabled(settings));
    Rows::new(vec![service, receiver, poller])
}

/// `run`, `start --foreground`: the daemon in front.
pub fn run(cx: &mut Context) -> Ended {
    telemetry::to_stderr(LevelFilter::INFO, cx.global.verbose);
    let loaded = loaded_with_warnings(cx)?;
    let mut ready = |rows: &Rows| {
        print(cx, rows);
        cx.out.flush();
    };
    match daemon::run(&cx.world, &loaded, None, &mut ready) {
        Ok(()) => Ok(Exit::OK),
        Err(NotStarted::AlreadyRunning { pid }) => {
            let layout = layout_of(&loaded.settings, None);
            let rows = already(cx, &loaded.settings, &layout, pid);
            print(cx, &rows);
            let pid = pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string());
            let made = format!("a daemon runs on this state root already (pid {pid})");
            Err(OpError::refused(made).hint("the-loop stop").into())
        }
        Err(NotStarted::Failed(e)) => Err(Failure::Op(e)),
    }
}

/// The child of a `start`.
fn child(cx: &mut Context) -> Ended {
    let (loaded, _) = cx.prepared(None);
    let loaded = loaded?;
    detach::leave_terminal().map_err(|e| OpError::failed("cannot leave the terminal", &e))?;
    let layout = layout_of(&loaded.settings, None);
    let trace = DaemonLog::open(&cx.world, &layout.daemon_log());
    let trace = trace.map_err(|e| OpError::failed("cannot open logs/daemon.log", &e))?;
    telemetry::to_file(&trace, cx.global.verbose);
    let mut ready = |rows: &Rows| {
        if let Err(e) = detach::say_ready(rows) {
            // Whoever started it is gone; that ends nothing.
            tracing::warn!("nobody was told that it is ready: {e}");
        }
    };
    match daemon::run(&cx.world, &loaded, Some(&trace), &mut ready) {
        Ok(()) => Ok(Exit::OK),
        Err(NotStarted::AlreadyRunning { pid }) => {
            ready(&already(cx, &loaded.settings, &layout, pid));
            Ok(Exit::OK)
        }
        Err(NotStarted::Failed(e)) => Err(Failure::Op(e)),
    }
}

fn print(cx: &Context, rows: &Rows) {
    if cx.out.json_wanted() {
        cx.out.json(rows);
        return;
    }
    for row in &rows.services {
        cx.out.line(row.text());
    }
}

/// Settings of a command that goes on with a broken configuration (SE-12): the fault and the root in
/// use are said as warnings.
fn readable(cx: &mut Context) -> (Loaded, Option<BrokenConfig>) {
    let (loaded, _) = cx.prepared(None);
    match loaded {
        Ok(loaded) => (loaded, None),
        Err(fault) => {
            let home = cx.world.home.clone();
            for line in fault.lines(home.as_deref()) {
                cx.out.warning(visible(&line));
            }
            let root = &fault.readable.state.root;
            cx.out
                .warning(format!("using the state root {}", visible(root)));
            let problem = fault.first(home.as_deref());
            (
                what_could_be_read(cx, &fault),
                Some(BrokenConfig { problem }),
            )
        }
    }
}

/// The settings that could be read, defaults elsewhere.
fn what_could_be_read(cx: &Context, fault: &ConfigFault) -> Loaded {
    Loaded {
        settings: fault.readable.clone(),
        path: fault.path.clone(),
        place: None,
        base_dir: cx.world.cwd.clone(),
        origins: Origins::default(),
        notices: Vec::new(),
        warnings: Vec::new(),
        hash: fault.hash.clone(),
    }
}

/// `stop`.
pub fn stop(cx: &mut Context, args: &StopArgs) -> Exit {
    let (loaded, _) = readable(cx);
    let how = Stop {
        timeout: Duration::from_secs(args.timeout),
        force: args.force,
        restart: false,
    };
    let rows = take_down(cx, &loaded, how);
    print(cx, &rows);
    Exit::of(rows.ok)
}

fn take_down(cx: &Context, loaded: &Loaded, how: Stop) -> Rows {
    let layout = layout_of(&loaded.settings, None);
    let enabled = Enabled::of(&loaded.settings);
    let rows = stop_daemon(&cx.world, &layout, enabled, how);
    let stopped = rows
        .services
        .iter()
        .any(|row| row.outcome == RowOutcome::Stopped);
    let left = if stopped {
        sessions_left(&cx.world, &layout)
    } else {
        0
    };
    match left {
        0 => {}
        1 => cx
            .out
            .note("1 session keeps running in tmux (the-loop sessions list)"),
        n => cx.out.note(format!(
            "{n} sessions keep running in tmux (the-loop sessions list)"
        )),
    }
    rows
}

/// `restart`: the start is tried even after a stop that failed.
pub fn restart(cx: &mut Context, args: &RestartArgs) -> Ended {
    let loaded = loaded_with_warnings(cx)?;
    let how = Stop {
        timeout: STOP_WITHIN,
        force: false,
        restart: true,
    };
    let stopped = take_down(cx, &loaded, how);
    if !stopped.ok {
        print(cx, &stopped);
    }
    let started = bring_up(cx, &loaded, Duration::from_secs(args.timeout));
    let ok = stopped.ok && started.as_ref().is_ok_and(|rows| rows.ok);
    let desk = Desk::new(&cx.world, loaded, None, STOP_WITHIN);
    let services = started.as_ref().map_or_else(
        |_| Vec::new(),
        |rows| rows.services.iter().filter(|row| row.running).collect(),
    );
    let services = services.iter().map(|row| row.name.clone()).collect();
    desk.emit(Source::Cli, LogEvent::RestartCompleted { ok, services });
    let rows = started?;
    print(cx, &rows);
    Ok(Exit::of(ok))
}

/// `status`.
pub fn status(cx: &mut Context) -> Exit {
    let (loaded, broken) = readable(cx);
    let desk = Desk::new(&cx.world, loaded, None, Duration::ZERO);
    let seen = status::status(&desk, broken.as_ref());
    if cx.out.json_wanted() {
        cx.out.json(&seen.json);
        return Exit::of(seen.ok);
    }
    for row in &seen.rows {
        cx.out.line(row.text());
    }
    for (name, text) in &seen.lines {
        cx.out.line(format!("{name:<13}{}", visible(text)));
    }
    Exit::of(seen.ok)
}
