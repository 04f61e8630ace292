//! From an accepted delivery to an agent that has it.
//!
//! Reading order: `intake` judges what was accepted, after `lookup` asked for what it does not show; `item` takes one work item, its lock and its next
//! delivery; `command` and `prompt` decide what that delivery does; `perform` runs the effects the
//! dispatch machine asks for (`deliver` into a live session, `spawn` and `come_up` for a new process,
//! `launch` for what both are made of, `choose` for the harness, `learn` for an id that it chose);
//! `conclude` writes down how it ended, with `hold` for what waits
//! or failed and `undo` for spawns that came to nothing; `examine` looks into attempts of which the end
//! was not seen; `close` ends sessions (`end_harness`, `give_back`); `supervise` watches them all, with
//! `screens` for those of which nothing else tells,
//! `attention` for those that need somebody, `tokens` for what they use and `idle` for those that nobody
//! needs; `parking` is how a limit stops and lets go; `recover` does what a start has to do, `bring_back`
//! the conversations that lost their agents, `doubts` what was left undecided. `restart` relaunches
//! sessions with a renewed environment (`relaunch` is the effects of it), `drift` tells who holds an old
//! one, `left_behind` settles what a verb that was killed has left. `tell` writes back on tickets of the
//! embedded tracker, and
//! `verbs` are what a shell asks for.
//!
//! One engine serves the daemon and, where no daemon holds the root, a verb that waits for its own
//! delivery (DI-6): same code, same locks.

mod agent;
mod attention;
mod bring_back;
mod choose;
mod close;
mod come_up;
mod command;
mod conclude;
mod deliver;
mod doubts;
mod drift;
mod end_harness;
mod examine;
mod give_back;
mod hold;
mod idle;
mod intake;
mod item;
mod launch;
mod learn;
mod left_behind;
mod limits;
mod lookup;
mod own_account;
mod parking;
mod perform;
mod prompt;
mod pulls;
mod recover;
mod relaunch;
pub mod restart;
mod screens;
mod slots;
mod spawn;
mod supervise;
mod tell;
mod tokens;
mod undo;
pub mod verbs;
mod write_back;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use the_loop_core::config::Settings;
use the_loop_core::event::{LogEvent, Source};
use the_loop_core::ids::{ItemKey, WorkItemRef};
use the_loop_core::record::SessionRecord;

pub use close::{CloseWish, Closed, EndLine};
pub use drift::environment_of;
pub use item::{Rest, is_deed};
pub use limits::free_memory;
pub use parking::{limit_of, limit_words};

use crate::git::Git;
use crate::harness::adapter::Adapters;
use crate::settings::Live;
use crate::store::eventlog::EventLog;
use crate::store::inbox::{Inbox, Seq};
use crate::store::layout::Layout;
use crate::store::lock::Locks;
use crate::store::portable::Portable;
use crate::store::registry::Registry;
use crate::store::saved::SavedStore;
use crate::tmux::Tmux;
use crate::tracker::github::client::Github;
use crate::tracker::local::LocalTracker;
use crate::world::World;

/// How often sessions are looked at (DI-14).
pub const TICK: Duration = Duration::from_secs(1);
/// Items worked on at once; further ones wait for the next round.
const WORKERS_MAX: usize = 128;
/// Stack of one worker.
const WORKER_STACK_BYTES: usize = 1 << 20;

/// What an engine is built from.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The outside.
    pub world: World,
    /// Where everything is.
    pub layout: Layout,
    /// The settings, swapped as a whole when the file changes.
    pub settings: Arc<Live>,
    /// Accepted deliveries.
    pub inbox: Inbox,
    /// The operators' log.
    pub log: Arc<EventLog>,
    /// The way to GitHub, shared by all who go it (IN-39).
    pub github: Github,
    /// This root's id: the mark in every pane (state page, section 12).
    pub instance: String,
}

/// The engine. Clones share it.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    parts: Parts,
    locks: Locks,
    registry: Registry,
    portable: Portable,
    tickets: LocalTracker,
    slots: slots::Slots,
    room: limits::Room,
    adapters: Mutex<Option<(Arc<Settings>, Adapters)>>,
    agents: Mutex<HashMap<ItemKey, Arc<Mutex<agent::Agent>>>>,
    in_hand: Mutex<HashSet<ItemKey>>,
    resting: Mutex<HashMap<ItemKey, Resting>>,
    set_aside: Mutex<HashSet<ItemKey>>,
    holds: Mutex<HashMap<Seq, hold::HoldNote>>,
    submits: Mutex<HashMap<Seq, u32>>,
    doubtful: Mutex<HashSet<Seq>>,
    in_doubt: Mutex<HashSet<ItemKey>>,
    lost_said: Mutex<HashSet<ItemKey>>,
    line: Mutex<bring_back::Line>,
    left_to_person: Mutex<HashSet<Seq>>,
    faults_said: Mutex<HashMap<Utf8PathBuf, i64>>,
    stopping: AtomicBool,
    woken: (Mutex<bool>, Condvar),
    outage: Mutex<supervise::Outage>,
    server_gone: Mutex<bool>,
    drift: Mutex<drift::Drift>,
    write_back: write_back::WriteBack,
    accounts: own_account::OwnAccounts,
    lookups: lookup::Lookups,
}

/// An item whose deliveries wait for something: looked at again at the next tick, or when a delivery
/// comes that it has not seen.
#[derive(Clone, Copy, Debug)]
struct Resting {
    newest_seq: Seq,
}

impl Engine {
    /// Builds an engine; nothing runs yet.
    pub fn new(parts: Parts) -> Self {
        let settings = parts.settings.current();
        let slots = slots::Slots::new(settings.routing.max_concurrent_dispatches as usize);
        Self(Arc::new(Shared {
            locks: Locks::new(&parts.world, &parts.layout),
            registry: Registry::new(&parts.world, &parts.layout),
            portable: Portable::new(&parts.world, &parts.layout),
            tickets: LocalTracker::new(&parts.world, &parts.layout),
            slots,
            room: limits::Room::default(),
            adapters: Mutex::default(),
            agents: Mutex::default(),
            in_hand: Mutex::default(),
            resting: Mutex::default(),
            set_aside: Mutex::default(),
            holds: Mutex::default(),
            submits: Mutex::default(),
            doubtful: Mutex::default(),
            in_doubt: Mutex::default(),
            lost_said: Mutex::default(),
            line: Mutex::default(),
            left_to_person: Mutex::default(),
            faults_said: Mutex::default(),
            stopping: AtomicBool::new(false),
            woken: (Mutex::new(false), Condvar::new()),
            outage: Mutex::default(),
            server_gone: Mutex::default(),
            drift: Mutex::default(),
            write_back: write_back::WriteBack::default(),
            accounts: own_account::OwnAccounts::default(),
            lookups: lookup::Lookups::default(),
            parts,
        }))
    }

    /// Runs until [`Engine::stop`]: brings back what the last run left, then works what comes.
    pub fn run(&self) {
        self.recover();
        self.ask_accounts();
        let mut next_tick = Instant::now();
        while !self.is_stopping() {
            let ticked = Instant::now() >= next_tick;
            if ticked {
                next_tick = Instant::now() + TICK;
                self.supervise();
            } else {
                self.bring_back_due();
            }
            if !self.inbox_refuses(ticked) {
                self.intake();
                self.start_items(ticked);
            }
            self.sleep_until(next_tick);
        }
        self.wait_for_workers();
        self.finish_writes();
        self.flush_index();
    }

    /// Does the inbox refuse commits? Then nothing is begun that could not be written down; once a tick a
    /// small commit asks whether it works again (ST-55).
    fn inbox_refuses(&self, ticked: bool) -> bool {
        let inbox = &self.0.parts.inbox;
        inbox.unavailable_since().is_some() && !(ticked && inbox.set_meta("probe", "").is_ok())
    }

    /// Asks everything to end: no new work is taken, waits are dropped, calls in hand finish (SE-21).
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Is it ending?
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::SeqCst)
    }

    /// Something came in, or may have.
    pub fn wake(&self) {
        *self
            .0
            .woken
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.0.woken.1.notify_all();
    }

    fn sleep_until(&self, at: Instant) {
        let mut woken = self
            .0
            .woken
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while !*woken {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            woken = self
                .0
                .woken
                .1
                .wait_timeout(woken, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *woken = false;
    }

    /// Starts a worker for every item that has something to do. Between ticks only items that did not
    /// come to rest, or have something new, are started.
    fn start_items(&self, ticked: bool) {
        let now = self.0.parts.world.clock.now();
        let Ok(items) = self.0.parts.inbox.items_with_work(now) else {
            return;
        };
        self.0
            .room
            .keep_waiting(|key| items.iter().any(|work| work.key == *key));
        for work in items {
            if self.is_stopping() || lock(&self.0.in_hand).len() >= WORKERS_MAX {
                break;
            }
            let key = work.item.key();
            if lock(&self.0.set_aside).contains(&key) {
                continue;
            }
            let rests = lock(&self.0.resting)
                .get(&key)
                .is_some_and(|r| r.newest_seq >= work.newest_seq);
            if (rests && !ticked) || !lock(&self.0.in_hand).insert(key.clone()) {
                continue;
            }
            self.start_item(work.item, key, work.newest_seq);
        }
    }

    fn start_item(&self, item: WorkItemRef, key: ItemKey, newest_seq: Seq) {
        let engine = self.clone();
        let started = std::thread::Builder::new()
            .name(format!("item {item}"))
            .stack_size(WORKER_STACK_BYTES)
            .spawn({
                let key = key.clone();
                move || {
                    let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        engine.work(&item)
                    }));
                    match worked {
                        Ok(Rest::Idle) => {
                            lock(&engine.0.resting).remove(&key);
                        }
                        Ok(Rest::Waits | Rest::Busy) => {
                            lock(&engine.0.resting).insert(key.clone(), Resting { newest_seq });
                        }
                        Err(_) => engine.set_aside(&item, "the item's task ended in a defect"),
                    }
                    lock(&engine.0.in_hand).remove(&key);
                    engine.wake();
                }
            });
        if started.is_err() {
            lock(&self.0.in_hand).remove(&key);
        }
    }

    /// A defect must not be repeated without end: the item waits for the next start of the daemon.
    fn set_aside(&self, item: &WorkItemRef, error: &str) {
        lock(&self.0.set_aside).insert(item.key());
        self.emit(LogEvent::DispatchError {
            work_item: Some(item.clone()),
            gh_event: None,
            delivery_id: None,
            error: error.to_owned(),
            will_retry: false,
        });
    }

    /// Waits until no item is worked on, for at most a minute.
    pub fn wait_for_workers(&self) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !lock(&self.0.in_hand).is_empty() && Instant::now() < deadline {
            self.sleep_until(Instant::now() + Duration::from_millis(50));
        }
    }

    /// Writes the derived index of portable records where it is stale; a failure costs nothing (ST-40).
    fn flush_index(&self) {
        if let Err(error) = self.0.portable.flush_index() {
            tracing::warn!(%error, "the index of portable records could not be written");
        }
    }

    fn emit(&self, event: LogEvent) {
        self.0.parts.log.emit(Source::Engine, event);
    }

    fn settings(&self) -> Arc<Settings> {
        self.0.parts.settings.current()
    }

    fn world(&self) -> &World {
        &self.0.parts.world
    }

    /// The tmux server that new sessions go to.
    pub fn tmux(&self, settings: &Settings) -> Tmux {
        let tmux = &settings.routing.tmux;
        Tmux::new(
            self.world(),
            &tmux.binary,
            &tmux.socket_name,
            &self.0.parts.layout.tmux_conf(),
            Duration::from_secs_f64(tmux.timeout_seconds),
        )
    }

    /// The harnesses that these settings allow; put together once for each change of them.
    fn adapters(&self, settings: &Arc<Settings>) -> Adapters {
        let mut known = lock(&self.0.adapters);
        match &*known {
            Some((of, adapters)) if Arc::ptr_eq(of, settings) => adapters.clone(),
            Some(_) | None => {
                let adapters = Adapters::of(settings);
                *known = Some((settings.clone(), adapters.clone()));
                adapters
            }
        }
    }

    fn git(&self, settings: &Settings) -> Git {
        let slow = Duration::from_secs(u64::from(settings.routing.dispatch_timeout_seconds));
        Git::new(self.world(), &settings.routing.workspace.git_binary, slow)
    }

    fn saved(&self) -> SavedStore {
        SavedStore::new(self.world(), self.0.parts.layout.saved_dir())
    }

    /// The server that a session was started on (`tmuxSocket`), else the configured one.
    fn tmux_of(&self, settings: &Settings, record: Option<&SessionRecord>) -> Tmux {
        let tmux = self.tmux(settings);
        match record.and_then(|record| record.tmux_socket.as_deref()) {
            Some(socket) => tmux.on_socket(socket),
            None => tmux,
        }
    }
}

/// A mutex whose holder never leaves it half changed.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
