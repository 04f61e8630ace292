//! State on disk under crashes, failing writes and other processes.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test that called them"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use the_loop::clock::Clock;
use the_loop::disk::{Disk, Kind, OsDisk, SharedDisk};
use the_loop::ids::Ids;
use the_loop::process::{Call, OsProcesses, Processes, Signal};
use the_loop::store::layout::Layout;
use the_loop::store::layout::declared::{DECLARED, Travels};
use the_loop::store::lock::{LockError, Locks, Patience};
use the_loop::store::portable::Portable;
use the_loop::store::registry::Registry;
use the_loop::tracker::local::LocalTracker;
use the_loop::world::World;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::record::{
    Control, ControlCommand, ControlSource, EntryKind, Map, SessionRecord, Ticket, TicketChange,
    TicketEntry,
};
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;
use the_loop_testkit::{Blow, FaultyDisk, Fuse};

fn item(text: &str) -> WorkItemRef {
    text.parse().unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn base(dir: &tempfile::TempDir) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap()
}

fn world(base: &Utf8Path, disk: SharedDisk, clock: Clock) -> World {
    World {
        disk,
        processes: Arc::new(OsProcesses),
        clock,
        ids: Ids::seeded(7),
        env: Arc::default(),
        cwd: base.to_owned(),
        home: None,
        user: "ada".to_owned(),
        program: base.join("the-loop"),
        pid: std::process::id(),
    }
}

/// Every file below a directory with its text, relative and sorted.
fn files(root: &Utf8Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for name in OsDisk.list(&dir).unwrap() {
            let path = dir.join(name);
            match OsDisk.meta(&path).unwrap().unwrap().kind {
                Kind::Dir => dirs.push(path),
                Kind::File | Kind::Link | Kind::Other => {
                    let bytes = OsDisk.read(&path, 1 << 24).unwrap();
                    let name = path.strip_prefix(root).unwrap().to_string();
                    found.push((name, String::from_utf8(bytes).unwrap()));
                }
            }
        }
    }
    found.sort();
    found
}

type AnyError = Box<dyn std::error::Error>;

const CONVERSATION: &str = "5ca1ab1e-0000-4000-8000-000000000001";

/// A run over all stores: one item that is spawned, one that comes and goes, one ticket. Doing it
/// again brings it to its end from wherever it stopped.
fn scripted_run(world: &World, layout: &Layout) -> Result<(), AnyError> {
    layout.ensure(world)?;
    layout.instance_id(world)?;
    let when = at("2026-03-01T09:00:00Z");
    let locks = Locks::new(world, layout);
    let registry = Registry::new(world, layout);
    let portable = Portable::new(world, layout);
    let start = Control {
        command: ControlCommand::Start,
        source: ControlSource::Cli,
        actor: "ada".to_owned(),
        requested_at: when,
        note: String::new(),
    };
    let stays = item("github:octo/repo#15");
    {
        let lock = locks.item(&stays, "spawning", Patience::none())?;
        let slug = registry.slug_for(&lock, &stays)?;
        if registry.get(&stays)?.is_none() {
            let starting = SessionStatus::Starting;
            let record = SessionRecord::new(&stays, "demo", "/w", starting, when);
            registry.put(&lock, &slug, &record)?;
        }
        let Some(mut found) = registry.get(&stays)? else {
            return Err("the record was just written".into());
        };
        found.record.status = SessionStatus::Active;
        CONVERSATION.clone_into(&mut found.record.harness_session_id);
        registry.put(&lock, &found.slug, &found.record)?;
        portable.write_control(&lock, &stays, Some(&start))?;
    }
    let goes = item("local:octo/repo#1");
    {
        let lock = locks.item(&goes, "closing", Patience::none())?;
        let slug = registry.slug_for(&lock, &goes)?;
        let record = SessionRecord::new(&goes, "demo", "/w", SessionStatus::Closed, when);
        registry.put(&lock, &slug, &record)?;
        portable.write_control(&lock, &goes, Some(&start))?;
        world.disk.create_dir_all(&layout.mail_dir(&slug))?;
        let private = [layout.mail(&slug, 1), layout.hook_file(&slug)];
        for file in &private {
            world.disk.write_atomic(file, b"x", false)?;
        }
        portable.write_control(&lock, &goes, None)?;
        registry.forget(&lock, &goes)?;
    }
    let tracker = LocalTracker::new(world, layout);
    let ticket = Ticket::new(&goes, "t", "b", "ada", when);
    tracker.apply(&goes, &TicketChange::Created(Box::new(ticket)))?;
    let comment = EntryKind::comment("the-loop start");
    let entry = TicketEntry::new("e1", when, "ada", comment);
    tracker.apply(&goes, &TicketChange::Entry(entry))?;
    tracker.add_reaction(&goes, "e1", "eyes")?;
    portable.flush_index()?;
    Ok(())
}

fn still() -> Clock {
    Clock::manual(at("2026-03-01T09:00:00Z"))
}

#[test]
fn st17_st22_a_blow_at_any_write_leaves_old_or_new_and_the_next_run_ends_it() {
    let clean = tempfile::tempdir().unwrap();
    let root = base(&clean);
    let counter = Fuse::new();
    let disk = Arc::new(FaultyDisk::new(counter.clone()));
    let layout = Layout::new(root.join(".the-loop"));
    scripted_run(&world(&root, disk, still()), &layout).unwrap();
    let expected = files(&layout.root());
    assert!(counter.calls() >= 12, "{:?}", counter.log());

    for blow in [
        Blow::FailOnce,
        Blow::FailFrom,
        Blow::CrashBefore,
        Blow::CrashAfter,
    ] {
        for call in 1..=counter.calls() {
            let dir = tempfile::tempdir().unwrap();
            let root = base(&dir);
            let layout = Layout::new(root.join(".the-loop"));
            let fuse = Fuse::at(call, blow);
            let disk = Arc::new(FaultyDisk::new(fuse.clone()));
            let ended = scripted_run(&world(&root, disk, still()), &layout);
            let place = format!("{blow:?} at {call}: {:?}", fuse.log().last());
            assert!(ended.is_err(), "{place} went unnoticed");

            let world = world(&root, Arc::new(OsDisk), still());
            let sessions = Registry::new(&world, &layout).list().unwrap();
            let portables = Portable::new(&world, &layout).list().unwrap();
            let tickets = LocalTracker::new(&world, &layout).list(None).unwrap();
            let problems = [sessions.problems, portables.problems, tickets.problems].concat();
            assert!(problems.is_empty(), "{place}: {problems:?}");

            scripted_run(&world, &layout).unwrap_or_else(|e| panic!("{place}: {e}"));
            let now: Vec<_> = files(&layout.root());
            let ids = |all: &[(String, String)]| -> Vec<_> {
                let known = |f: &&(String, String)| f.0 != "local/instance";
                all.iter().filter(known).cloned().collect()
            };
            assert_eq!(ids(&now), ids(&expected), "{place}");
        }
    }
}

/// Does a path fit a pattern whose `<name>`s stand for anything within one name?
fn fits(pattern: &str, path: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('<') else {
        return pattern == path;
    };
    let Some((_, tail)) = rest.split_once('>') else {
        return false;
    };
    path.strip_prefix(head).is_some_and(|rest| {
        let end = rest.find('/').unwrap_or(rest.len());
        (1..=end)
            .filter(|cut| rest.is_char_boundary(*cut))
            .any(|cut| fits(tail, &rest[cut..]))
    })
}

#[test]
fn s6_every_file_of_the_stores_is_declared() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(base(&dir).join(".the-loop"));
    let world = world(&base(&dir), Arc::new(OsDisk), still());
    scripted_run(&world, &layout).unwrap();
    let _held = the_loop::store::lock::ServiceLock::acquire(&world, &layout.service_pid()).unwrap();
    Locks::new(&world, &layout).prove_locking().unwrap();
    for (path, _) in files(&layout.root()) {
        let patterns = DECLARED
            .iter()
            .flat_map(|d| d.beside.iter().chain([&d.default]));
        assert!(
            patterns.clone().any(|p| fits(p, &path)),
            "{path} is not declared"
        );
    }
}

#[test]
fn s7_what_travels_names_nothing_of_this_machine() {
    let dir = tempfile::tempdir().unwrap();
    let root = base(&dir);
    let layout = Layout::new(root.join(".the-loop"));
    let world = world(&root, Arc::new(OsDisk), still());
    scripted_run(&world, &layout).unwrap();
    let instance = layout.instance_id(&world).unwrap();
    let host = world.processes.run(&Call::new("uname", ["-n"])).out();
    let portable = DECLARED.iter().filter(|d| d.travels == Travels::Portable);
    let portable: Vec<_> = portable.map(|d| d.default).collect();
    let mut seen = 0;
    for (path, text) in files(&layout.root()) {
        if portable.iter().any(|p| fits(p, &path)) {
            seen += 1;
            for told in [root.as_str(), &instance, CONVERSATION, host.trim(), "\"/"] {
                assert!(!text.contains(told), "{path} holds {told}");
            }
        }
    }
    assert_eq!(seen, 3, "record, index and ticket");
}

/// What a process started by a test is to do, and where.
const ROLE: &str = "THE_LOOP_STATE_TEST_ROLE";
const ROOT: &str = "THE_LOOP_STATE_TEST_ROOT";

/// Runs this test program once more, in a role.
fn in_another_process(role: &str, root: &Utf8Path) -> Call {
    let program = std::env::current_exe().unwrap();
    let args = ["--exact", "another_process", "--nocapture"];
    Call::new(program.to_str().unwrap(), args)
        .env(ROLE, role)
        .env(ROOT, root.as_str())
        .timeout(Duration::from_mins(2))
}

/// Nothing by itself: the other process of the tests below.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the parent process says by the environment what this one is to do"
)]
fn another_process() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let root = Utf8PathBuf::from(std::env::var(ROOT).unwrap());
    let world = world(&root, Arc::new(OsDisk), Clock::System);
    let layout = Layout::new(root.join(".the-loop"));
    match role.as_str() {
        "toggle" => (0..20).for_each(|_| toggle(&world, &layout)),
        "hold" => hold(&world, &layout),
        "serve" => {
            let path = layout.service_pid();
            let _held = the_loop::store::lock::ServiceLock::acquire(&world, &path).unwrap();
            wait_for_end(&world, &layout);
        }
        other => panic!("no role {other}"),
    }
}

const BUSY: &str = "github:octo/repo#15";

fn patiently<'a>() -> Patience<'a> {
    Patience::of(Duration::from_mins(1))
}

/// One `pause` or `resume`: under the item's lock, read, change, write both records.
fn toggle(world: &World, layout: &Layout) {
    let it = item(BUSY);
    let lock = Locks::new(world, layout)
        .item(&it, "pause", patiently())
        .unwrap();
    let registry = Registry::new(world, layout);
    let mut found = registry.get(&it).unwrap().unwrap();
    found.record.status = match found.record.status {
        SessionStatus::Paused => SessionStatus::Active,
        SessionStatus::Starting | SessionStatus::Active | SessionStatus::Closed => {
            SessionStatus::Paused
        }
    };
    registry.put(&lock, &found.slug, &found.record).unwrap();
    let portable = Portable::new(world, layout);
    let count = portable.section(&it, "calls").unwrap().unwrap_or_default();
    let count = count
        .get("n")
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(0);
    let mut section = Map::new();
    section.insert("n".to_owned(), (count + 1).into());
    portable
        .write_section(&lock, &it, "calls", Some(section))
        .unwrap();
    portable.flush_index().unwrap();
}

/// Holds an item's lock until the test is over with it.
fn hold(world: &World, layout: &Layout) {
    let locks = Locks::new(world, layout);
    let _held = locks.item(&item(BUSY), "spawning", patiently()).unwrap();
    wait_for_end(world, layout);
}

fn wait_for_end(world: &World, layout: &Layout) {
    let end = layout.root().join("end");
    let begun = Instant::now();
    while OsDisk.meta(&end).unwrap().is_none() && begun.elapsed() < Duration::from_secs(100) {
        world.clock.wait(Duration::from_millis(5));
    }
}

fn until(world: &World, what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "waited for: {what}"
        );
        world.clock.wait(Duration::from_millis(5));
    }
}

#[test]
fn st30_two_hundred_calls_of_ten_processes_lose_none_while_deliveries_are_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let root = base(&dir);
    let layout = Layout::new(root.join(".the-loop"));
    let world = world(&root, Arc::new(OsDisk), Clock::System);
    layout.ensure(&world).unwrap();
    let it = item(BUSY);
    let locks = Locks::new(&world, &layout);
    let registry = Registry::new(&world, &layout);
    {
        let lock = locks.item(&it, "start", patiently()).unwrap();
        let active = SessionStatus::Active;
        let record = SessionRecord::new(&it, "demo", "/w", active, at("2026-03-01T09:00:00Z"));
        registry.put(&lock, &it.slug(), &record).unwrap();
    }
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let answer = world.processes.run(&in_another_process("toggle", &root));
                assert_eq!(answer.exit, Ok(0), "{}", answer.out());
            });
        }
        for n in 0..40 {
            let lock = locks.item(&it, "deliver", patiently()).unwrap();
            let mut found = registry.get(&it).unwrap().unwrap();
            assert!(found.record.remember_delivery(&format!("d-{n}")));
            registry.put(&lock, &found.slug, &found.record).unwrap();
        }
    });
    let record = registry.get(&it).unwrap().unwrap().record;
    assert_eq!(record.status, SessionStatus::Active, "200 is even");
    assert_eq!(record.recent_deliveries.len(), 40);
    let calls = Portable::new(&world, &layout)
        .section(&it, "calls")
        .unwrap();
    assert_eq!(calls.unwrap()["n"], 200);
    let left: Vec<_> = files(&layout.root())
        .into_iter()
        .filter(|(path, _)| Utf8Path::new(path).extension() == Some("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn st23_st25_another_process_is_named_and_its_end_frees_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let root = base(&dir);
    let layout = Layout::new(root.join(".the-loop"));
    let world = world(&root, Arc::new(OsDisk), Clock::System);
    layout.ensure(&world).unwrap();
    let locks = Locks::new(&world, &layout);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| OsProcesses.run(&in_another_process("hold", &root)));
        let mut holder = None;
        until(&world, "the other process", || {
            match locks.item(&item(BUSY), "stop", Patience::none()) {
                Err(LockError::Busy(by)) if by.verb.as_deref() == Some("spawning") => {
                    holder = by.pid;
                    true
                }
                Ok(_) | Err(_) => false,
            }
        });
        let pid = i32::try_from(holder.unwrap()).unwrap();
        assert_ne!(holder, Some(world.pid));
        let started = OsProcesses.started(pid).unwrap();
        let process = the_loop::process::ProcessId { pid, started };
        assert!(OsProcesses.signal(process, Signal::Kill));
        assert!(other.join().unwrap().exit.is_err(), "it was killed");
    });
    assert!(locks.try_item(&item(BUSY), "stop").unwrap().is_some());
}

#[test]
fn st26_a_killed_service_leaves_a_pid_file_that_is_just_unlocked() {
    use the_loop::store::lock::{ServiceLock, ServiceLockError};
    let dir = tempfile::tempdir().unwrap();
    let root = base(&dir);
    let layout = Layout::new(root.join(".the-loop"));
    let world = world(&root, Arc::new(OsDisk), Clock::System);
    let path = layout.service_pid();
    let see = || ServiceLock::holder(&OsDisk, &path);
    let pid = std::thread::scope(|scope| {
        let other = scope.spawn(|| OsProcesses.run(&in_another_process("serve", &root)));
        until(&world, "the service", || {
            see().locked && see().pid.is_some()
        });
        let pid = see().pid.unwrap();
        let refused = ServiceLock::acquire(&world, &path).unwrap_err();
        assert!(matches!(refused, ServiceLockError::Held { pid: Some(by), .. } if by == pid));
        let of = i32::try_from(pid).unwrap();
        let started = OsProcesses.started(of).unwrap();
        let process = the_loop::process::ProcessId { pid: of, started };
        assert!(OsProcesses.signal(process, Signal::Kill));
        assert!(other.join().unwrap().exit.is_err(), "it was killed");
        pid
    });
    let left = see();
    assert_eq!((left.locked, left.pid), (false, Some(pid)));
    let _held = ServiceLock::acquire(&world, &path).unwrap();
    assert_eq!(see().pid, Some(world.pid));
}
