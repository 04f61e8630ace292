//! The life of the daemon (SE-19 to SE-21): one process per state root that hosts the engine, the
//! webhook receiver and the poller.
//!
//! `run` is the whole life, top to bottom; `services` keeps the receiver up, `polling` the poller, `socket` answers commands,
//! `damaged` is the daemon of a damaged inbox, `upkeep` does what is due from time to time, `detach` is how a `start` becomes a daemon.

mod damaged;
pub mod detach;
mod polling;
mod services;
mod socket;
mod upkeep;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use the_loop_core::delivery::State;
use the_loop_core::event::{LogEvent, ServiceName, Source, StopReason};
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, Parts};
use crate::ops::desk::{
    inbox_error, keep_secrets_out, layout_of, tell_created, tell_migrated, unusable_root,
};
use crate::ops::error::{Kind, OpError};
use crate::ops::rows::{RowOutcome, Rows, ServiceRow};
use crate::settings::{Live, Loaded, Overrides};
use crate::store::eventlog::EventLog;
use crate::store::inbox::{Health, Inbox, InboxError, ListFilter, States};
use crate::store::layout::Layout;
use crate::store::lock::{LockError, Locks, ServiceLock, ServiceLockError};
use crate::store::registry::Registry;
use crate::telemetry::DaemonLog;
use crate::tracker::github::client::Github;
use crate::world::World;

/// After its first second a task that died is tried again, the wait doubling up to this (SE-24).
const RETRY_MAX: Duration = Duration::from_mins(5);
/// How long connections in hand are waited for at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// Between two looks at whether the poller has ended.
const LAST_LOOK: Duration = Duration::from_millis(10);

/// What the main thread is told.
#[derive(Debug)]
enum Message {
    /// End.
    Stop(StopReason),
    /// Read the configuration now.
    Reload,
}

/// What the parts of a running daemon share.
#[derive(Debug)]
struct Shared {
    world: World,
    layout: Layout,
    live: Arc<Live>,
    inbox: Inbox,
    log: EventLog,
    github: Github,
    instance: String,
    since: Timestamp,
    engine: Mutex<Engine>,
    receiver: services::Receiving,
    polling: polling::Polling,
    /// When the receiver last accepted something, Unix milliseconds; 0: not in this run.
    last_delivery: AtomicI64,
}

impl Shared {
    fn engine(&self) -> Engine {
        self.engine
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn new_engine(&self) -> Engine {
        Engine::new(Parts {
            world: self.world.clone(),
            layout: self.layout.clone(),
            settings: Arc::clone(&self.live),
            inbox: self.inbox.clone(),
            log: Arc::new(self.log.clone()),
            github: self.github.clone(),
            instance: self.instance.clone(),
        })
    }

    fn emit(&self, event: LogEvent) {
        self.log.emit(Source::Daemon, event);
    }

    fn last_delivery(&self) -> Option<Timestamp> {
        match self.last_delivery.load(Ordering::SeqCst) {
            0 => None,
            ms => Some(Timestamp::from_unix_ms(ms)),
        }
    }
}

/// Why the daemon did not come up.
#[derive(Debug)]
pub enum NotStarted {
    /// Another one holds the root: all is well for a `start`.
    AlreadyRunning {
        /// Its process, as its lock file says.
        pid: Option<u32>,
    },
    /// It cannot.
    Failed(Box<OpError>),
}

impl From<OpError> for NotStarted {
    fn from(e: OpError) -> Self {
        Self::Failed(Box::new(e))
    }
}

/// Runs the daemon to its end. `ready` is told the rows once everything is up.
pub fn run(
    world: &World,
    loaded: &Loaded,
    trace: Option<&DaemonLog>,
    ready: &mut dyn FnMut(&Rows),
) -> Result<(), NotStarted> {
    let settings = &loaded.settings;
    let layout = layout_of(settings, None);
    let prepared = layout.prepare(world).map_err(|e| unusable_root(&e))?;
    let log = EventLog::open(
        world,
        &layout.events_log(),
        settings.event_log.enabled,
        settings.event_log.segment_mb,
        settings.event_log.keep_segments,
    );
    keep_secrets_out(world, settings, &log);
    let left_over = ServiceLock::holder(world.disk.as_ref(), &layout.service_pid());
    let lock = own_root(world, &layout, &log)?;
    prove_locking(world, &layout)?;
    upkeep::after_prepare(world, &layout, &log, &prepared);
    let inbox = match open_inbox(world, &layout, &log) {
        Ok(inbox) => inbox,
        Err(e @ InboxError::Damaged { .. }) => {
            let damaged = damaged::Damaged {
                world,
                layout: &layout,
                settings,
                log: &log,
                error: e.to_string(),
            };
            damaged.run(ready)?;
            drop(lock);
            return Ok(());
        }
        Err(e) => return Err(inbox_error(&e).into()),
    };
    if !left_over.locked && left_over.pid.is_some() {
        tell_recovered(world, &layout, &inbox, &log, left_over.pid);
    }
    let live = Arc::new(Live::new(world, loaded, Overrides::default()));
    let teller = log.clone();
    let teller = move |event| teller.emit(Source::Tracker, event);
    let github = Github::telling(world, Arc::new(teller));
    let engine = Engine::new(Parts {
        world: world.clone(),
        layout: layout.clone(),
        settings: Arc::clone(&live),
        inbox: inbox.clone(),
        log: Arc::new(log.clone()),
        github: github.clone(),
        instance: prepared.instance.clone(),
    });
    let shared = Arc::new(Shared {
        world: world.clone(),
        layout,
        live,
        inbox,
        log,
        github,
        instance: prepared.instance,
        since: world.clock.now(),
        engine: Mutex::new(engine),
        receiver: services::Receiving::default(),
        polling: polling::Polling::default(),
        last_delivery: AtomicI64::new(0),
    });
    let reason = live_on(&shared, trace, ready)?;
    end(&shared, reason);
    drop(lock);
    Ok(())
}

/// Takes the service lock, or says who has it.
fn own_root(world: &World, layout: &Layout, log: &EventLog) -> Result<ServiceLock, NotStarted> {
    match ServiceLock::acquire(world, &layout.service_pid()) {
        Ok(lock) => Ok(lock),
        Err(ServiceLockError::Held { path, pid }) => {
            let path = path.to_string();
            log.emit(
                Source::Daemon,
                LogEvent::DaemonBlocked { path, holder: pid },
            );
            Err(NotStarted::AlreadyRunning { pid })
        }
        Err(e @ ServiceLockError::Io { .. }) => Err(OpError::of(&e).into()),
    }
}

/// Some network file systems let everybody in: then nothing here is safe (ST-28).
fn prove_locking(world: &World, layout: &Layout) -> Result<(), NotStarted> {
    Locks::new(world, layout).prove_locking().map_err(|e| {
        let made = match &e {
            LockError::NotLocking { .. } => OpError::new(Kind::Usage, e.to_string()),
            LockError::Busy(_) | LockError::GaveWay | LockError::Io { .. } => OpError::of(&e),
        };
        made.hint("move state.root to a local disk").into()
    })
}

fn open_inbox(world: &World, layout: &Layout, log: &EventLog) -> Result<Inbox, InboxError> {
    let path = layout.inbox_db();
    let opened = Inbox::open(world, &path).inspect_err(|e| {
        if let InboxError::Damaged { .. } = e {
            let (path, error) = (path.to_string(), e.to_string());
            log.emit(Source::Engine, LogEvent::InboxDamaged { path, error });
        }
    })?;
    if opened.created {
        tell_created(world, layout, log);
    }
    if let Some(migrated) = &opened.migrated {
        tell_migrated(log, migrated);
    }
    let teller = log.clone();
    opened.inbox.on_health(move |health| {
        let event = match health {
            Health::Unavailable { error } => LogEvent::InboxUnavailable {
                error: error.to_string(),
            },
            Health::Recovered { since } => LogEvent::InboxRecovered { since },
        };
        teller.emit(Source::Engine, event);
    });
    Ok(opened.inbox)
}

/// The last run did not end in order: what it left (its lock file is the sign).
fn tell_recovered(
    world: &World,
    layout: &Layout,
    inbox: &Inbox,
    log: &EventLog,
    previous_pid: Option<u32>,
) {
    let count = |state: State| {
        let filter = ListFilter {
            states: States::These(vec![state]),
            ..ListFilter::default()
        };
        inbox.list(&filter).map_or(0, |rows| rows.len() as u64)
    };
    let starting = Registry::new(world, layout).list().map_or(0, |listing| {
        let starting = |found: &&crate::store::registry::Registered| {
            found.record.status == SessionStatus::Starting
        };
        listing.records.iter().filter(starting).count() as u64
    });
    log.emit(
        Source::Daemon,
        LogEvent::DaemonRecovered {
            previous_pid,
            starting,
            sending: count(State::Sending),
            queued: count(State::Queued),
        },
    );
}

/// From the first task to the word to end.
fn live_on(
    shared: &Arc<Shared>,
    trace: Option<&DaemonLog>,
    ready: &mut dyn FnMut(&Rows),
) -> Result<StopReason, NotStarted> {
    let (send, receive) = mpsc::channel();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("serve")
        .enable_all()
        .build()
        .map_err(|e| OpError::failed("cannot start the receiver's threads", &e))?;
    let ending = CancellationToken::new();
    runtime.spawn(signals(send.clone()));
    let within = runtime.enter();
    let socket = socket::serve(
        &shared.world,
        &shared.layout,
        socket::Answers::of(shared),
        send.clone(),
        ending.clone(),
    );
    drop(within);
    if let Err(e) = socket {
        // Commands find their changes without it; they only wait a little longer.
        tracing::warn!("no socket for commands: {e}");
    }
    let receiver = runtime.block_on(services::start(shared, ending.clone()));
    let engine = start_engine(shared)?;
    let poller = polling::start(shared)
        .map_err(|e| OpError::failed("cannot start the poller's thread", &e))?;
    let rows = rows(shared);
    shared.emit(LogEvent::DaemonStarted {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        root: shared.layout.root().to_string(),
        services: rows
            .services
            .iter()
            .filter(|row| row.running)
            .map(|row| row.name.clone())
            .collect(),
        config: shared.live.path().map(ToString::to_string),
    });
    tracing::info!(pid = shared.world.pid, "ready");
    ready(&rows);
    tell_supervisor(&shared.world, "READY=1");
    let mut upkeep = upkeep::Upkeep::new(shared, trace);
    let reason = loop {
        match receive.recv_timeout(upkeep.pause()) {
            Ok(Message::Stop(reason)) => break reason,
            Ok(Message::Reload) => upkeep.reload(true),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break StopReason::Error,
        }
        upkeep.due();
    };
    shared.emit(LogEvent::DaemonStopping { reason });
    tracing::info!(reason = reason.as_str(), "stopping");
    tell_supervisor(&shared.world, "STOPPING=1");
    ending.cancel();
    shared.engine().stop();
    shared.polling.end();
    let _ = runtime.block_on(async { tokio::time::timeout(LAST_ANSWERS, receiver).await });
    runtime.shutdown_timeout(Duration::from_millis(200));
    // The engine drops every wait; only a call in hand is waited for.
    let _ = engine.join();
    // A call to a host that hangs is not waited for: what it would find is found at the next start.
    let deadline = shared.world.clock.deadline(LAST_ANSWERS);
    while !poller.is_finished() && !shared.world.clock.is_over(&deadline) {
        shared.world.clock.wait(LAST_LOOK);
    }
    Ok(reason)
}

/// The engine's thread. A defect in it is told, and a new engine takes over after a pause.
fn start_engine(shared: &Arc<Shared>) -> Result<std::thread::JoinHandle<()>, NotStarted> {
    let shared = Arc::clone(shared);
    let run = move || {
        let mut pause = Duration::from_secs(1);
        loop {
            let engine = shared.engine();
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| engine.run()));
            if ended.is_ok() || engine.is_stopping() {
                return;
            }
            shared.emit(LogEvent::ServiceFailed {
                service: ServiceName::Engine,
                error: "a defect ended it".to_owned(),
            });
            let deadline = shared.world.clock.now().plus(pause);
            while !engine.is_stopping() && shared.world.clock.now() < deadline {
                shared.world.clock.wait(Duration::from_millis(100));
            }
            if engine.is_stopping() {
                return;
            }
            pause = (pause * 2).min(RETRY_MAX);
            *shared.engine.lock().unwrap_or_else(PoisonError::into_inner) = shared.new_engine();
        }
    };
    std::thread::Builder::new()
        .name("engine".to_owned())
        .spawn(run)
        .map_err(|e| OpError::failed("cannot start the engine's thread", &e).into())
}

/// SIGINT and SIGTERM end in order, a second one at once; SIGHUP reads the configuration.
async fn signals(send: mpsc::Sender<Message>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut int), Ok(mut term), Ok(mut hup)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    ) else {
        tracing::warn!("signals cannot be caught");
        return;
    };
    let mut told = false;
    loop {
        let code = tokio::select! {
            _ = int.recv() => 130,
            _ = term.recv() => 143,
            _ = hup.recv() => {
                let _ = send.send(Message::Reload);
                continue;
            }
        };
        if told {
            std::process::exit(code);
        }
        told = true;
        let _ = send.send(Message::Stop(StopReason::Signal));
    }
}

/// What `start` prints.
fn rows(shared: &Shared) -> Rows {
    let service = ServiceRow {
        name: "service".to_owned(),
        enabled: true,
        outcome: RowOutcome::Started,
        running: true,
        pid: Some(shared.world.pid),
        detail: format!("pid {}", shared.world.pid),
    };
    Rows::new(vec![
        service,
        shared.receiver.row(shared),
        shared.polling.row(shared),
    ])
}

/// The last lines of an orderly run.
fn end(shared: &Shared, reason: StopReason) {
    let queued = shared
        .inbox
        .counts()
        .map_or(0, |c| c.waiting + c.held + c.failed);
    let uptime = shared.world.clock.now().since(shared.since);
    let _ = shared.world.disk.remove(&shared.layout.socket());
    shared.emit(LogEvent::DaemonStopped {
        reason,
        uptime_s: uptime.as_secs(),
        queued,
    });
    shared.log.sync();
    tracing::info!("stopped");
}

/// Tells a service manager, where there is one (`NOTIFY_SOCKET`).
fn tell_supervisor(world: &World, what: &str) {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let Some(name) = world.var("NOTIFY_SOCKET") else {
        return;
    };
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    };
    let told = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(what.as_bytes(), &address));
    if let Err(e) = told {
        tracing::warn!("NOTIFY_SOCKET: {e}");
    }
}
