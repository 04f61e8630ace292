//! A poller on a throw-away root, with a clock that is moved and a double of GitHub that shares it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use camino::Utf8PathBuf;
use serde_json::Value;
use tempfile::TempDir;
use the_loop::clock::Clock;
use the_loop::ids::Ids;
use the_loop::poll::{PollContext, Poller, Tally};
use the_loop::process::OsProcesses;
use the_loop::settings::{Overrides, load};
use the_loop::store::eventlog::EventLog;
use the_loop::store::inbox::{Inbox, ListFilter, Seq, States};
use the_loop::store::layout::Layout;
use the_loop::store::lock::{Locks, Patience};
use the_loop::store::portable::Portable;
use the_loop::store::registry::Registry;
use the_loop::tracker::github::client::Github;
use the_loop::world::World;
use the_loop_core::delivery::{Delivery, Effect};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::record::{Control, ControlCommand, ControlSource, SessionRecord};
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;
use the_loop_testkit::FakeGithub;
use the_loop_testkit::fake_github::{APP_ID, APP_KEY, Contents, TOKEN};

pub const REPO: &str = "octo/repo";
/// When the test begins, Unix seconds.
const BEGIN: i64 = 1_800_000_000;

pub struct Bench {
    pub hub: FakeGithub,
    pub world: World,
    pub layout: Layout,
    pub inbox: Inbox,
    pub ending: Arc<AtomicBool>,
    settings: Arc<the_loop_core::config::Settings>,
    log: EventLog,
    poller: Poller,
    _dir: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self::with("")
    }

    /// With these further lines of `polling`, and what follows it.
    pub fn with(more: &str) -> Self {
        Self::of("", more)
    }

    /// One that starts sessions without being told to.
    pub fn free() -> Self {
        Self::of(", control: {requireStartCommand: false}", "")
    }

    /// One whose credential is a GitHub App.
    pub fn of_app() -> Self {
        let app = format!("app: {{id: {APP_ID}, privateKeyFile: app.pem}}");
        Self::made(&app, "", "")
    }

    fn of(routing: &str, more: &str) -> Self {
        Self::made("tokenFile: token", routing, more)
    }

    fn made(credential: &str, routing: &str, more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let hub = FakeGithub::start();
        let world = World {
            disk: Arc::new(the_loop::disk::OsDisk),
            processes: Arc::new(OsProcesses),
            clock: Clock::manual(Timestamp::from_unix_ms(BEGIN * 1000)),
            ids: Ids::seeded(7),
            env: Arc::new(BTreeMap::new()),
            cwd: root.clone(),
            home: None,
            user: "operator".to_owned(),
            program: root.join("the-loop"),
            pid: 4242,
        };
        let config = format!(
            "version: 1.0.0\nrouting: {{enabled: true, authorizedUsers: [octocat], autoExecuteLabel: loop, spawnOnUnmatched: labeled{routing}}}\n\
             integrations: {{github: {{apiUrl: '{}', {credential}, cli: {{binary: ''}}}}}}\n\
             polling:\n  enabled: true\n  sources: [{{repos: [{REPO}]}}]\n{more}",
            hub.api()
        );
        std::fs::write(root.join("config.yaml"), config).unwrap();
        std::fs::write(root.join("token"), TOKEN).unwrap();
        std::fs::write(root.join("app.pem"), APP_KEY).unwrap();
        let loaded = load(&world, Some("config.yaml"), &Overrides::default()).unwrap();
        let layout = Layout::new(root.join("state"));
        layout.prepare(&world).unwrap();
        let inbox = Inbox::open(&world, &layout.inbox_db()).unwrap().inbox;
        let log = EventLog::open(&world, &layout.events_log(), true, 64, 0);
        let ending = Arc::new(AtomicBool::new(false));
        let settings = loaded.settings.clone();
        let mut bench = Self {
            poller: Poller::new(context(&world, &layout, &inbox, &log, &settings, &ending)),
            hub,
            world,
            layout,
            inbox,
            ending,
            settings,
            log,
            _dir: dir,
        };
        bench.passes(0);
        bench
    }

    /// The poller ends, and another one begins.
    pub fn restarts(&mut self) {
        self.poller = Poller::new(context(
            &self.world,
            &self.layout,
            &self.inbox,
            &self.log,
            &self.settings,
            &self.ending,
        ));
    }

    /// So many seconds go by.
    pub fn passes(&mut self, seconds: u64) {
        self.world.clock.advance(Duration::from_secs(seconds));
        let now = self.world.clock.now().unix_ms() / 1000;
        self.hub.change(|world| world.now = Some(now));
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        self.hub.change(change)
    }

    /// A cycle, a minute after the one before.
    pub fn cycle(&mut self) -> Tally {
        self.passes(60);
        self.cycle_now()
    }

    /// A cycle in the same second.
    pub fn cycle_now(&mut self) -> Tally {
        self.poller.cycle()
    }

    pub fn backfill(&mut self, since: Timestamp) -> Tally {
        self.poller.backfill(since)
    }

    pub fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// What lies in the inbox, in order.
    pub fn deliveries(&self) -> Vec<Delivery> {
        let rows = self
            .inbox
            .list(&ListFilter {
                states: States::All,
                ..ListFilter::default()
            })
            .unwrap();
        let mut seqs: Vec<Seq> = rows.iter().map(|row| row.seq).collect();
        seqs.sort_unstable();
        seqs.dedup();
        let rows = seqs
            .into_iter()
            .map(|seq| self.inbox.delivery(seq).unwrap().unwrap());
        rows.map(|row| row.delivery.unwrap()).collect()
    }

    /// The words in the inbox, in order; what is none by its kind.
    pub fn told(&self) -> Vec<String> {
        let all = self.deliveries().into_iter();
        all.map(|delivery| match delivery.effect {
            Effect::Text(text) => text.body,
            Effect::Presence => "presence".to_owned(),
            Effect::Close { ending, .. } => format!("{ending:?}"),
            Effect::Check(check) => format!("check {}", check.conclusion),
            Effect::Opened | Effect::Notice { .. } | Effect::Start { .. } => "other".to_owned(),
        })
        .collect()
    }

    pub fn events(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.layout.events_log()).unwrap_or_default();
        let all = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.filter(|event| event["event"] == name).collect()
    }

    /// A session lives for this item since now, on this branch.
    pub fn session(&self, number: u64) -> WorkItemRef {
        let item: WorkItemRef = format!("github:{REPO}#{number}").parse().unwrap();
        let held = Locks::new(&self.world, &self.layout);
        let held = held.item(&item, "test", Patience::none()).unwrap();
        let registry = Registry::new(&self.world, &self.layout);
        let slug = registry.slug_for(&held, &item).unwrap();
        let mut record = SessionRecord::new(&item, "demo", "/", SessionStatus::Active, self.now());
        record.tmux_target = slug.target().to_string();
        registry.put(&held, &slug, &record).unwrap();
        item
    }

    /// An operator's or a person's command is recorded.
    pub fn recorded(&self, number: u64, command: ControlCommand) {
        let item: WorkItemRef = format!("github:{REPO}#{number}").parse().unwrap();
        let held = Locks::new(&self.world, &self.layout);
        let held = held.item(&item, "test", Patience::none()).unwrap();
        let control = Control {
            command,
            source: ControlSource::Comment,
            actor: "octocat".to_owned(),
            requested_at: self.now(),
            note: String::new(),
        };
        let portable = Portable::new(&self.world, &self.layout);
        portable
            .write_control(&held, &item, Some(&control))
            .unwrap();
    }

    /// Paths that were asked since the last look.
    pub fn asked(&self) -> Vec<(String, u16)> {
        let all = self.hub.requests();
        self.hub.forget_requests();
        all.into_iter()
            .map(|request| (request.path, request.status))
            .collect()
    }
}

fn context(
    world: &World,
    layout: &Layout,
    inbox: &Inbox,
    log: &EventLog,
    settings: &Arc<the_loop_core::config::Settings>,
    ending: &Arc<AtomicBool>,
) -> PollContext {
    let (settings, ending, teller) = (settings.clone(), Arc::clone(ending), log.clone());
    let tell = move |event| teller.emit(the_loop_core::event::Source::Tracker, event);
    PollContext {
        world: world.clone(),
        layout: layout.clone(),
        settings: Arc::new(move || settings.clone()),
        inbox: inbox.clone(),
        log: log.clone(),
        github: Github::telling(world, Arc::new(tell)),
        on_accept: Arc::new(|| {}),
        is_ending: Arc::new(move || ending.load(Ordering::SeqCst)),
    }
}
