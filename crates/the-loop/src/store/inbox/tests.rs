//! What the tests of the inbox share: a world with a disk that watches commits, and deliveries.

mod accepting;
mod checks;
mod crashes;
mod files;
mod forgetting;
mod model;
mod operators;
mod pruning;
mod steps;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::delivery::{Actor, Delivery, Effect, Ingress, ItemFacts, State, Text};
use the_loop_core::ids::{ItemKey, Marker, WorkItemRef};
use the_loop_core::time::Timestamp;

use super::*;
use crate::clock::Clock;
use crate::disk::{Disk, LockMode, Meta, OsDisk};
use crate::ids::Ids;
use crate::process::OsProcesses;

/// What a test does around the `n`th commit (from 1).
type Around = Box<dyn FnMut(u64, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> + Send>;

/// The operating system's disk, with a test around every commit.
pub(super) struct WatchedDisk {
    commits: AtomicU64,
    around: Mutex<Option<Around>>,
}

impl WatchedDisk {
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// From now on, commits counted from 1 again.
    pub(super) fn watch(
        &self,
        around: impl FnMut(u64, &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> + Send + 'static,
    ) {
        *self.around.lock().unwrap() = Some(Box::new(around));
        self.commits.store(0, Ordering::SeqCst);
    }
}

impl std::fmt::Debug for WatchedDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WatchedDisk")
    }
}

impl Disk for WatchedDisk {
    fn read(&self, path: &Utf8Path, max: u64) -> io::Result<Vec<u8>> {
        OsDisk.read(path, max)
    }
    fn read_from(&self, path: &Utf8Path, offset: u64, max: u64) -> io::Result<Vec<u8>> {
        OsDisk.read_from(path, offset, max)
    }
    fn write_atomic(&self, path: &Utf8Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        OsDisk.write_atomic(path, bytes, durable)
    }
    fn create_new(&self, path: &Utf8Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        OsDisk.create_new(path, bytes, mode)
    }
    fn append(&self, path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
        OsDisk.append(path, bytes)
    }
    fn open_append(&self, path: &Utf8Path) -> io::Result<File> {
        OsDisk.open_append(path)
    }
    fn append_to(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        OsDisk.append_to(file, bytes)
    }
    fn open_read(&self, path: &Utf8Path) -> io::Result<File> {
        OsDisk.open_read(path)
    }
    fn is_same_file(&self, file: &File, path: &Utf8Path) -> io::Result<bool> {
        OsDisk.is_same_file(file, path)
    }
    fn remove(&self, path: &Utf8Path) -> io::Result<bool> {
        OsDisk.remove(path)
    }
    fn remove_dir_all(&self, path: &Utf8Path) -> io::Result<bool> {
        OsDisk.remove_dir_all(path)
    }
    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        OsDisk.rename(from, to)
    }
    fn list(&self, dir: &Utf8Path) -> io::Result<Vec<String>> {
        OsDisk.list(dir)
    }
    fn create_dir_all(&self, dir: &Utf8Path) -> io::Result<()> {
        OsDisk.create_dir_all(dir)
    }
    fn meta(&self, path: &Utf8Path) -> io::Result<Option<Meta>> {
        OsDisk.meta(path)
    }
    fn set_mode(&self, path: &Utf8Path, mode: u32) -> io::Result<()> {
        OsDisk.set_mode(path, mode)
    }
    fn canonicalize(&self, path: &Utf8Path) -> io::Result<Utf8PathBuf> {
        OsDisk.canonicalize(path)
    }
    fn try_lock(&self, path: &Utf8Path, mode: LockMode, create: bool) -> io::Result<Option<File>> {
        OsDisk.try_lock(path, mode, create)
    }
    fn sync(&self, path: &Utf8Path) -> io::Result<()> {
        OsDisk.sync(path)
    }
    fn commit(&self, _path: &Utf8Path, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let n = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        match self.around.lock().unwrap().as_mut() {
            Some(around) => around(n, work),
            None => work(),
        }
    }
    fn free_bytes(&self, path: &Utf8Path) -> io::Result<u64> {
        OsDisk.free_bytes(path)
    }
}

/// A directory, a world, and the path of an inbox in it.
pub(super) struct Bench {
    pub(super) dir: tempfile::TempDir,
    pub(super) world: World,
    pub(super) disk: Arc<WatchedDisk>,
    pub(super) path: Utf8PathBuf,
}

pub(super) const START: &str = "2026-03-01T09:00:00Z";

impl Bench {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
        let disk = Arc::new(WatchedDisk {
            commits: AtomicU64::new(0),
            around: Mutex::new(None),
        });
        let world = World {
            disk: disk.clone(),
            processes: Arc::new(OsProcesses),
            clock: Clock::manual(START.parse().unwrap()),
            ids: Ids::seeded(7),
            env: Arc::new(BTreeMap::new()),
            cwd: root.clone(),
            home: None,
            user: "ada".to_owned(),
            program: "/nowhere/the-loop".into(),
            pid: 1,
        };
        let path = root.join("local/inbox.db");
        Self {
            dir,
            world,
            disk,
            path,
        }
    }

    pub(super) fn open(&self) -> Inbox {
        Inbox::open(&self.world, &self.path).unwrap().inbox
    }

    pub(super) fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    pub(super) fn pass(&self, seconds: u64) {
        self.world.clock.advance(Duration::from_secs(seconds));
    }

    pub(super) fn marker(&self) -> Marker {
        self.world.ids.marker()
    }

    /// Accepts a delivery and routes it to these items.
    pub(super) fn queued(&self, inbox: &Inbox, delivery: &Delivery, items: &[&str]) -> Seq {
        let seq = new_seq(inbox.accept(delivery).unwrap());
        let routed = inbox.route(seq, &self.outcomes(items)).unwrap();
        assert_eq!(routed.dropped, []);
        seq
    }

    pub(super) fn outcomes(&self, items: &[&str]) -> Vec<NewOutcome> {
        let new = |text: &&str| NewOutcome {
            item: item(text),
            endpoint: None,
            marker: self.marker(),
        };
        items.iter().map(new).collect()
    }
}

/// The lock of every item.
pub(super) struct AllLocks;

impl HoldsItem for AllLocks {
    fn covers(&self, _key: &ItemKey) -> bool {
        true
    }
}

pub(super) fn item(text: &str) -> WorkItemRef {
    text.parse().unwrap()
}

pub(super) fn key(text: &str) -> ItemKey {
    item(text).key()
}

pub(super) const A: &str = "github:octo/repo#1";
pub(super) const B: &str = "github:octo/repo#2";

/// A comment on [`A`] with its own id, content key and text.
pub(super) fn comment(name: &str) -> Delivery {
    Delivery {
        delivery_id: format!("guid-{name}"),
        content_key: format!("github/github.com/comment/IC_{name}/created"),
        numeric_key: None,
        ingress: Ingress::Webhook,
        item: item(A),
        event: "issue_comment".to_owned(),
        action: Some("created".to_owned()),
        actor: Some(Actor {
            login: "ada".to_owned(),
            id: Some(7),
            bot: false,
        }),
        received_at: START.parse().unwrap(),
        pull: None,
        place: None,
        asked: None,
        facts: ItemFacts::default(),
        effect: Effect::Text(Text {
            comment_id: Some(format!("IC_{name}")),
            body: format!("please do {name}"),
            author: None,
            html_url: None,
            created_at: None,
            decision: None,
            edited: false,
        }),
        entries: Vec::new(),
    }
}

pub(super) fn new_seq(accepted: Accepted) -> Seq {
    match accepted {
        Accepted::New { seq } => seq,
        Accepted::Duplicate { .. } => panic!("not new: {accepted:?}"),
    }
}

/// Every delivery id in the inbox, in order of acceptance.
pub(super) fn ids(reader: &InboxReader) -> Vec<String> {
    let all = ListFilter {
        states: States::All,
        ..ListFilter::default()
    };
    let rows = reader.list(&all).unwrap();
    rows.into_iter().map(|row| row.delivery_id).collect()
}

pub(super) fn state(inbox: &Inbox, seq: Seq, of: &str) -> State {
    inbox.outcome(seq, &key(of)).unwrap().unwrap().state
}

/// Takes an outcome through these states.
pub(super) fn walk(inbox: &Inbox, seq: Seq, of: &str, states: &[State]) {
    for state in states {
        inbox
            .change(&AllLocks, seq, &key(of), OutcomeChange::to(*state))
            .unwrap();
    }
}
