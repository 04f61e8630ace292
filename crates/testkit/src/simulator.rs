//! The engine in a world that a test owns: a disk and processes under a fuse, a model of tmux and agents,
//! a clock moved by hand. One run of the program is a *life*; the machine outlives it.
#![allow(
    clippy::expect_used,
    reason = "a simulator that cannot be set up is a test that fails"
)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use serde_json::{Map, Value};
use the_loop::clock::Clock;
use the_loop::disk::{Disk, OsDisk};
use the_loop::engine::{Engine, Parts, Rest};
use the_loop::ids::Ids;
use the_loop::poll::{PollContext, Poller};
use the_loop::settings::{Live, Overrides, load};
use the_loop::store::eventlog::{EventLog, Reader};
use the_loop::store::inbox::{Accepted, Inbox, InboxError, ListFilter, ListRow, States};
use the_loop::store::layout::Layout;
use the_loop::store::lock::Locks;
use the_loop::tracker::github::client::Github;
use the_loop::world::World;
use the_loop_core::delivery::Delivery;
use the_loop_core::event::Filter;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::prompt::markers_in;

use crate::disk::FaultyDisk;
use crate::fake_github::{FakeGithub, TOKEN};
use crate::fake_tmux::FakeTmux;
use crate::fuse::{Blow, Fuse};

/// One look at everything takes this long.
const TICK: Duration = Duration::from_secs(1);
/// How long a wait may take by the wall clock.
const PATIENCE: Duration = Duration::from_mins(1);

/// One run of the program.
#[derive(Debug)]
struct Life {
    engine: Engine,
    inbox: Inbox,
}

/// A machine with the program on it.
#[derive(Debug)]
pub struct Simulator {
    dir: tempfile::TempDir,
    /// Where everything is.
    pub layout: Layout,
    /// Time.
    pub clock: Clock,
    /// tmux and the agents.
    pub tmux: FakeTmux,
    /// The fuse of the life in progress.
    pub fuse: Fuse,
    ids: Ids,
    planned: Option<(u64, Blow)>,
    life: Option<Life>,
}

impl Simulator {
    /// A machine, the program not started. `routing` is YAML inside `routing: {…}`, `more` beside it.
    pub fn new(routing: &str, more: &str) -> Self {
        Self::with("cli: {binary: ''}", routing, more)
    }

    /// A machine that polls a double of GitHub, running. Nothing but commands and their answers is written
    /// there.
    pub fn polling(hub: &FakeGithub) -> Self {
        let github = format!(
            "apiUrl: '{}', tokenFile: token, cli: {{binary: ''}}",
            hub.api()
        );
        let mut simulator = Self::with(
            &github,
            ", limits: {minFreeMemoryMb: 0, minFreeDiskMb: 0, maxDeliveriesPerItemPerHour: 0, \
             maxDeliveriesPerItemPerDay: 0}, reactions: {enabled: false}, announce: {enabled: false}",
            "polling: {sources: [{repos: [octo/repo]}]}",
        );
        let root = Utf8PathBuf::from_path_buf(simulator.dir.path().to_owned()).unwrap_or_default();
        OsDisk
            .create_new(&root.join("token"), TOKEN.as_bytes(), 0o600)
            .expect("a token");
        simulator.start();
        simulator
    }

    fn with(github: &str, routing: &str, more: &str) -> Self {
        let dir = scratch();
        let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).expect("a path in UTF-8");
        let root = OsDisk.canonicalize(&root).expect("a real directory");
        let config = format!(
            "version: 1.0.0\nrouting: {{enabled: true, authorizedUsers: [ada], defaultHarness: demo, \
             spawnOnUnmatched: labeled, spawnWorkdir: '{root}'{routing}}}\n\
             integrations: {{github: {{{github}}}}}\n{more}\n"
        );
        OsDisk
            .write_atomic(&root.join("config.yaml"), config.as_bytes(), false)
            .expect("a configuration file");
        // Never run: the model of tmux becomes the agent. But a start looks whether its program is there.
        OsDisk
            .create_new(&root.join("the-loop"), b"", 0o700)
            .expect("a program");
        let clock = Clock::manual("2026-03-01T09:00:00Z".parse().expect("a time"));
        Self {
            layout: Layout::new(root.join("state")),
            tmux: FakeTmux::new(&clock),
            clock,
            fuse: Fuse::new(),
            ids: Ids::seeded(7),
            planned: None,
            life: None,
            dir,
        }
    }

    /// As [`Simulator::new`], with limits that no test machine reaches, and running.
    pub fn running(routing: &str, more: &str) -> Self {
        let mut simulator = Self::new(
            &format!(", limits: {{minFreeMemoryMb: 0, minFreeDiskMb: 0}}{routing}"),
            more,
        );
        simulator.start();
        simulator
    }

    fn world(&self) -> World {
        self.world_under(&self.fuse)
    }

    fn world_under(&self, fuse: &Fuse) -> World {
        let env: BTreeMap<String, String> = [("HOME", "/nowhere"), ("PATH", "/usr/bin:/bin")]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let root = Utf8PathBuf::from_path_buf(self.dir.path().to_owned()).unwrap_or_default();
        World {
            disk: Arc::new(FaultyDisk::new(fuse.clone())),
            processes: Arc::new(self.tmux.under(fuse.clone())),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            env: Arc::new(env),
            cwd: root.clone(),
            home: None,
            user: "operator".to_owned(),
            program: root.join("the-loop"),
            pid: 4242,
        }
    }

    /// Begins a life with what a start does, under a new fuse.
    pub fn start(&mut self) {
        self.fuse = Fuse::new();
        let world = self.world();
        let config = world.cwd.join("config.yaml");
        let loaded = load(&world, Some(config.as_str()), &Overrides::default());
        let loaded = loaded.expect("a configuration that loads");
        let prepared = self.layout.prepare(&world).expect("a root");
        self.sweep_launch_files();
        let inbox = Inbox::open(&world, &self.layout.inbox_db()).expect("an inbox");
        let log = EventLog::open(&world, &self.layout.events_log(), true, 64, 0);
        let engine = Engine::new(Parts {
            settings: Arc::new(Live::new(&world, &loaded, Overrides::default())),
            layout: self.layout.clone(),
            inbox: inbox.inbox.clone(),
            log: Arc::new(log),
            github: Github::new(&world),
            instance: prepared.instance,
            world,
        });
        if let Some((at, blow)) = self.planned.take() {
            self.fuse.plan(self.fuse.calls() + at, blow);
        }
        engine.recover();
        engine.wait_for_workers();
        self.life = Some(Life {
            engine,
            inbox: inbox.inbox,
        });
    }

    /// Another run of the program beside this life, under a fuse of its own: a verb in a shell, with its own
    /// engine and locks.
    pub fn verb(&self, fuse: &Fuse) -> (Engine, Locks) {
        let world = self.world_under(fuse);
        let config = world.cwd.join("config.yaml");
        let loaded = load(&world, Some(config.as_str()), &Overrides::default());
        let loaded = loaded.expect("a configuration that loads");
        let inbox = Inbox::open_for_a_verb(&world, &self.layout.inbox_db()).expect("an inbox");
        let log = EventLog::open(&world, &self.layout.events_log(), true, 64, 0);
        let engine = Engine::new(Parts {
            settings: Arc::new(Live::new(&world, &loaded, Overrides::default())),
            layout: self.layout.clone(),
            inbox: inbox.inbox,
            log: Arc::new(log),
            github: Github::new(&world),
            instance: self.layout.instance_id(&world).expect("an instance"),
            world: world.clone(),
        });
        (engine, Locks::new(&world, &self.layout))
    }

    /// The fuse of the next life blows at this call, counted from where its recovery begins.
    pub fn plan_next_life(&mut self, at: u64, blow: Blow) {
        self.planned = Some((at, blow));
    }

    /// The daemon removes these at its start, for they may hold secrets.
    fn sweep_launch_files(&self) {
        let dir = self.layout.launch_dir();
        for name in OsDisk.list(&dir).unwrap_or_default() {
            let _ = OsDisk.remove(&dir.join(name));
        }
    }

    /// Ends a life as `kill -9` does: nothing is said, nothing is finished.
    pub fn die(&mut self) {
        if let Some(life) = self.life.take() {
            life.engine.stop();
            life.engine.wait_for_workers();
        }
    }

    /// Ends a life and begins the next one.
    pub fn restart(&mut self) {
        self.die();
        self.start();
    }

    fn life(&self) -> &Life {
        self.life.as_ref().expect("the program runs")
    }

    /// The engine of this life.
    pub fn engine(&self) -> &Engine {
        &self.life().engine
    }

    /// The inbox of this life.
    pub fn inbox(&self) -> &Inbox {
        &self.life().inbox
    }

    /// A poller of this life.
    pub fn poller(&self) -> Poller {
        let world = self.world();
        let config = world.cwd.join("config.yaml");
        let loaded = load(&world, Some(config.as_str()), &Overrides::default());
        let settings = loaded.expect("a configuration that loads").settings;
        Poller::new(PollContext {
            layout: self.layout.clone(),
            settings: Arc::new(move || Arc::clone(&settings)),
            inbox: self.life().inbox.clone(),
            log: EventLog::open(&world, &self.layout.events_log(), true, 64, 0),
            github: Github::new(&world),
            on_accept: Arc::new(|| {}),
            is_ending: Arc::new(|| false),
            world,
        })
    }

    /// What an ingress does.
    pub fn accept(&self, delivery: &Delivery) -> Result<Accepted, InboxError> {
        let delivery = Delivery {
            received_at: self.clock.now(),
            ..delivery.clone()
        };
        self.life().inbox.accept(&delivery)
    }

    /// One round: all sessions are looked at, every item with work is worked, a second passes.
    pub fn tick(&self) {
        let life = self.life();
        life.engine.supervise();
        life.engine.wait_for_workers();
        let mut items: Vec<WorkItemRef> = Vec::new();
        life.engine.intake();
        if let Ok(work) = life.inbox.items_with_work(self.clock.now()) {
            items.extend(work.into_iter().map(|work| work.item));
        }
        for item in items {
            while life.engine.work_now(&item) == Rest::Busy && !self.fuse.crashed() {
                std::thread::yield_now();
            }
        }
        self.clock.advance(TICK);
    }

    /// Ticks until a condition holds, for at most `ticks`; says whether it does. A crash ends the wait.
    pub fn tick_until(&self, ticks: u32, mut holds: impl FnMut(&Self) -> bool) -> bool {
        let deadline = Instant::now() + PATIENCE;
        for _ in 0..ticks {
            if self.fuse.crashed() || Instant::now() > deadline {
                return false;
            }
            if holds(self) {
                return true;
            }
            self.tick();
        }
        !self.fuse.crashed() && holds(self)
    }

    /// All deliveries and where they stand.
    pub fn rows(&self) -> Vec<ListRow> {
        let filter = ListFilter {
            states: States::All,
            ..ListFilter::default()
        };
        self.life().inbox.list(&filter).unwrap_or_default()
    }

    /// State and reason of a delivery, as `queued(dialog)`; empty when there is none.
    pub fn stands(&self, delivery_id: &str) -> String {
        let rows = self.rows();
        let row = rows.iter().find(|row| row.delivery_id == delivery_id);
        row.map_or_else(String::new, |row| match &row.reason {
            Some(reason) => format!("{}({reason})", row.state),
            None => row.state.to_string(),
        })
    }

    /// All lines of the event log.
    pub fn events(&self) -> Vec<Map<String, Value>> {
        let world = World {
            disk: Arc::new(OsDisk),
            ..self.world()
        };
        let reader = Reader::new(&world, &self.layout.events_log());
        let mut lines = Vec::new();
        let _ = reader.query(&Filter::default(), 0, &mut |record| {
            lines.push(record.fields.clone());
            ControlFlow::Continue(())
        });
        lines
    }

    /// Events of a name.
    pub fn told(&self, name: &str) -> Vec<Map<String, Value>> {
        let mut events = self.events();
        events.retain(|event| event.get("event").and_then(Value::as_str) == Some(name));
        events
    }

    /// How often an event was told whose field has this value.
    pub fn count(&self, name: &str, field: &str, value: &str) -> usize {
        let has =
            |event: &&Map<String, Value>| event.get(field).and_then(Value::as_str) == Some(value);
        self.told(name).iter().filter(has).count()
    }

    /// Delivery ids in the order in which agents took them, over all conversations.
    pub fn taken(&self) -> Vec<String> {
        let mut prompts: Vec<(String, String)> = Vec::new();
        let dir = self.layout.demo_dir();
        for name in OsDisk.list(&dir).unwrap_or_default() {
            let text = OsDisk.read(&dir.join(name), 16 << 20).unwrap_or_default();
            for line in String::from_utf8_lossy(&text).lines() {
                let line: Value = serde_json::from_str(line).unwrap_or_default();
                if line["role"] == "user" {
                    let at = line["at"].as_str().unwrap_or_default().to_owned();
                    let text = line["text"].as_str().unwrap_or_default();
                    prompts.push((at, text.to_owned()));
                }
            }
        }
        prompts.sort_by(|a, b| a.0.cmp(&b.0));
        let markers = self.markers();
        let named = |(_, text): &(String, String)| {
            let marker = markers_in(text).into_iter().next();
            let marker = marker.map(|m| m.as_str().to_owned()).unwrap_or_default();
            markers.get(&marker).cloned().unwrap_or(marker)
        };
        prompts.iter().map(named).collect()
    }

    /// Delivery ids by marker.
    fn markers(&self) -> BTreeMap<String, String> {
        let mut markers = BTreeMap::new();
        for row in self.rows() {
            for outcome in self.life().inbox.outcomes_of(row.seq).unwrap_or_default() {
                if let Some(marker) = outcome.marker {
                    markers.insert(marker.as_str().to_owned(), row.delivery_id.clone());
                }
            }
        }
        markers
    }

    /// How many conversations have a transcript.
    pub fn conversations(&self) -> usize {
        OsDisk
            .list(&self.layout.demo_dir())
            .unwrap_or_default()
            .len()
    }

    /// The session record of an item as JSON; null when there is none.
    pub fn record(&self, item: &WorkItemRef) -> Value {
        let file = self.layout.session_record(&item.slug());
        let bytes = OsDisk.read(&file, 1 << 20).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// What the session records say of their sessions.
    pub fn statuses(&self) -> Vec<String> {
        let dir = self.layout.local_dir();
        let names = OsDisk.list(&dir).unwrap_or_default().into_iter();
        let records = names
            .map(|name| dir.join(name))
            .filter(|path| path.extension() == Some("json"))
            .filter_map(|path| {
                let bytes = OsDisk.read(&path, 1 << 20).ok()?;
                serde_json::from_slice::<Value>(&bytes).ok()
            });
        records
            .filter_map(|record| Some(record.get("status")?.as_str()?.to_owned()))
            .collect()
    }

    /// Launch files that nobody took.
    pub fn launch_files(&self) -> Vec<String> {
        OsDisk.list(&self.layout.launch_dir()).unwrap_or_default()
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.die();
    }
}

/// Thousands of syncs are quicker where there is no platter.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary directory")
}
