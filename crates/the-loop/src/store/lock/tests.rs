//! Locks between processes. An open file is a holder of its own, so threads stand for processes.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use super::*;
use crate::clock::Clock;
use crate::disk::{Disk, OsDisk};
use crate::process::Call;
use crate::store::testing::{Place, at, item};

fn locks(place: &Place) -> Locks {
    Locks::new(&place.world, &place.layout)
}

/// Waits until something is so, a minute at most.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "waited for: {what}"
        );
        std::thread::yield_now();
    }
}

#[test]
fn st23_one_holder_an_item_and_colliding_items_share_it() {
    let place = Place::new();
    let locks = locks(&place);
    let held = locks
        .try_item(&item("github:a-b/c#1"), "start")
        .unwrap()
        .unwrap();
    assert!(held.covers(&item("github:a/b-c#1")));
    assert!(held.covers_key(&item("github:A/B-c#1").key()));
    assert!(!held.covers(&item("github:a/b-c#2")));
    assert!(
        locks
            .try_item(&item("github:a/b-c#1"), "stop")
            .unwrap()
            .is_none()
    );
    assert!(
        locks
            .try_item(&item("github:a/b-c#2"), "stop")
            .unwrap()
            .is_some()
    );
    drop(held);
    assert!(
        locks
            .try_item(&item("github:a/b-c#1"), "stop")
            .unwrap()
            .is_some()
    );
}

#[test]
fn st23_the_file_says_who_holds_it_and_stays() {
    let place = Place::new();
    let locks = locks(&place);
    let it = item("github:octo/repo#15");
    let held = locks.try_item(&it, "a long verb").unwrap().unwrap();
    let path = place.layout.lock(&LockName::Item(it.slug()));
    let pid = place.world.pid;
    let said = |verb: &str| format!("{pid} {verb} 2026-03-01T09:00:00Z\n");
    assert_eq!(place.text(&path).unwrap(), said("a-long-verb"));
    held.doing("go");
    assert_eq!(place.text(&path).unwrap(), said("go"));
    let LockError::Busy(holder) = locks.item(&it, "stop", Patience::none()).unwrap_err() else {
        panic!("it should be busy");
    };
    let expected = Holder {
        pid: Some(pid),
        verb: Some("go".to_owned()),
        since: Some(at("2026-03-01T09:00:00Z")),
    };
    assert_eq!(holder, expected);
    assert_eq!(holder.to_string(), format!("pid {pid}, go"));
    drop(held);
    assert!(place.text(&path).is_some());
    assert_eq!(Holder::default().to_string(), "another process");
}

#[test]
fn st25_a_wait_ends_at_its_time_and_tells_once_who_is_in_the_way() {
    let place = Place::new();
    let locks = locks(&place);
    let it = item("github:octo/repo#15");
    let _held = locks.try_item(&it, "spawning").unwrap().unwrap();
    let told = RefCell::new(Vec::new());
    let begun = place.world.clock.now();
    let note = |holder: &Holder| {
        let after = place.world.clock.now().since(begun);
        told.borrow_mut().push((holder.verb.clone(), after));
    };
    let patience = Patience::of(Duration::from_secs(30)).telling(&note);
    let busy = locks.item(&it, "pause", patience).unwrap_err();
    assert!(matches!(busy, LockError::Busy(_)));
    assert_eq!(
        place.world.clock.now().since(begun),
        Duration::from_secs(30)
    );
    let told = told.into_inner();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0.as_deref(), Some("spawning"));
    assert!(told[0].1 >= Duration::from_secs(1) && told[0].1 < Duration::from_millis(1200));
}

#[test]
fn st25_a_waiting_verb_gets_the_lock_when_it_is_free() {
    let place = Place::with_clock(Clock::System);
    let locks = locks(&place);
    let it = item("github:octo/repo#15");
    let held = locks.try_item(&it, "spawning").unwrap().unwrap();
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        let (locks, it) = (&locks, &it);
        scope.spawn(move || {
            let looked = || {
                let _ = send.send(());
                false
            };
            let patience = Patience::of(Duration::from_mins(1)).unless(&looked);
            locks.item(it, "pause", patience).unwrap();
        });
        receive.recv().unwrap();
        drop(held);
    });
}

#[test]
fn st25_a_holder_sees_that_it_is_wanted_and_gives_way() {
    let place = Place::with_clock(Clock::System);
    let locks = locks(&place);
    let it = item("github:octo/repo#15");
    let held = locks.try_item(&it, "spawning").unwrap().unwrap();
    assert!(!locks.is_wanted(&held));
    std::thread::scope(|scope| {
        let wanting = |verb: &'static str| {
            let locks = locks.clone();
            let it = it.clone();
            move || {
                let patience = Patience::of(Duration::from_mins(1));
                drop(locks.want(&it, verb, patience).unwrap());
            }
        };
        scope.spawn(wanting("stop"));
        scope.spawn(wanting("close"));
        until("the wish", || locks.is_wanted(&held));
        // Slow work of the holder, here a wait for a shared clone, ends at the wish.
        let repo = it.repo();
        let _other = locks.clone_lock(repo, "fetch", Patience::none()).unwrap();
        let wanted = || locks.is_wanted(&held);
        let patience = Patience::of(Duration::from_mins(1)).unless(&wanted);
        let gave = locks.clone_lock(repo, "fetch", patience).unwrap_err();
        assert!(matches!(gave, LockError::GaveWay));
        drop(held);
    });
    let held = locks.try_item(&it, "next").unwrap().unwrap();
    assert!(!locks.is_wanted(&held));
}

#[test]
fn st25_only_the_verb_that_wants_it_is_in_the_way_of_nobody_else() {
    let place = Place::new();
    let locks = locks(&place);
    let it = item("github:octo/repo#15");
    let held = locks.want(&it, "stop", Patience::none()).unwrap();
    let wish = place.layout.lock(&LockName::Want(it.slug()));
    assert_eq!(place.text(&wish), None, "nobody had to be asked");
    assert!(matches!(
        locks.want(&it, "close", Patience::none()),
        Err(LockError::Busy(_))
    ));
    assert!(!locks.is_wanted(&held));
}

#[test]
fn se51_a_dry_run_makes_no_lock_file_and_takes_one_shared() {
    let place = Place::new();
    let locks = locks(&place);
    let it = item("github:octo/repo#15");
    let none = locks.shared_if_there(&it, Patience::none()).unwrap();
    assert!(none.is_none());
    assert!(place.files().is_empty(), "{:?}", place.files());
    let held = locks.try_item(&it, "start").unwrap().unwrap();
    let busy = locks.shared_if_there(&it, Patience::of(Duration::from_secs(1)));
    assert!(matches!(busy, Err(LockError::Busy(_))));
    drop(held);
    let path = place.layout.lock(&LockName::Item(it.slug()));
    let before = place.text(&path);
    let first = locks.shared_if_there(&it, Patience::none()).unwrap();
    let second = locks.shared_if_there(&it, Patience::none()).unwrap();
    assert!(first.is_some() && second.is_some());
    assert_eq!(place.text(&path), before);
    assert!(locks.try_item(&it, "stop").unwrap().is_none());
}

#[test]
fn the_kinds_of_locks_do_not_meet() {
    let place = Place::new();
    let locks = locks(&place);
    let it = item("local:octo/repo#1");
    let none = Patience::none;
    let _item = locks.item(&it, "x", none()).unwrap();
    let _clone = locks.clone_lock(it.repo(), "x", none()).unwrap();
    let _ticket = locks.ticket(&it, none()).unwrap();
    let _numbers = locks.tickets(none()).unwrap();
    let _index = locks.index(none()).unwrap();
    assert!(matches!(locks.ticket(&it, none()), Err(LockError::Busy(_))));
    assert!(matches!(locks.tickets(none()), Err(LockError::Busy(_))));
    assert!(matches!(locks.index(none()), Err(LockError::Busy(_))));
}

#[test]
fn st23_no_child_inherits_a_lock() {
    let place = Place::with_clock(Clock::System);
    let locks = locks(&place);
    let it = item("github:octo/repo#15");
    let held = locks.try_item(&it, "start").unwrap().unwrap();
    let (ready, end) = (place.base().join("ready"), place.base().join("end"));
    std::thread::scope(|scope| {
        let script = format!(": > '{ready}'; while [ ! -e '{end}' ]; do :; done");
        let call = Call::new("sh", ["-c", &script]).timeout(Duration::from_mins(1));
        let processes = &place.world.processes;
        let child = scope.spawn(move || processes.run(&call).exit);
        until("the child", || place.text(&ready).is_some());
        drop(held);
        let free = locks.try_item(&it, "stop").unwrap().is_some();
        place.put(&end, b"");
        assert_eq!(child.join().unwrap(), Ok(0));
        assert!(free, "the child holds the lock");
    });
}

#[test]
fn st23_holders_of_one_lock_never_overlap() {
    let place = Place::with_clock(Clock::System);
    let locks = locks(&place);
    let it = item("github:octo/repo#15");
    let (inside, turns) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let patience = Patience::of(Duration::from_mins(1));
                    let _held = locks.item(&it, "turn", patience).unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst));
                    turns.fetch_add(1, Ordering::SeqCst);
                    assert!(inside.swap(false, Ordering::SeqCst));
                }
            });
        }
    });
    assert_eq!(turns.into_inner(), 200);
}

#[test]
fn st28_locking_is_proved() {
    let place = Place::new();
    locks(&place).prove_locking().unwrap();
    // A file system that refuses nobody: every look is let in.
    let path = place.base().join("anything");
    let everybody = || OsDisk.try_lock(&path, LockMode::Shared, true);
    let fault = prove(&path, &everybody).unwrap_err();
    let words = format!("locks do not work on the file system of {path}");
    assert_eq!(fault.to_string(), words);
}

#[test]
fn st26_the_pid_file_is_the_lock() {
    let place = Place::new();
    let path = place.layout.service_pid();
    let see = || ServiceLock::holder(&OsDisk, &path);
    let (locked, pid) = (true, Some(i64::from(place.world.pid)));
    assert_eq!((see().locked, see().pid), (false, None));
    let held = ServiceLock::acquire(&place.world, &path).unwrap();
    assert_eq!((see().locked, see().pid.map(i64::from)), (locked, pid));
    assert_eq!(place.text(&path).unwrap(), format!("{}\n", place.world.pid));
    match ServiceLock::acquire(&place.world, &path).unwrap_err() {
        ServiceLockError::Held { pid: by, .. } => assert_eq!(by.map(i64::from), pid),
        ServiceLockError::Io { source, .. } => panic!("{source}"),
    }
    drop(held);
    assert_eq!(place.text(&path), None);
}

#[test]
fn st26_a_left_over_pid_file_is_just_unlocked() {
    let place = Place::new();
    let path = place.layout.service_pid();
    place.put(&path, b"999999999999\nlong ago\n");
    let seen = ServiceLock::holder(&OsDisk, &path);
    assert!(!seen.locked);
    let _held = ServiceLock::acquire(&place.world, &path).unwrap();
    assert_eq!(place.text(&path).unwrap(), format!("{}\n", place.world.pid));
}

#[test]
fn st26_a_file_put_in_its_place_is_not_unlinked() {
    let place = Place::new();
    let path = place.layout.service_pid();
    let held = ServiceLock::acquire(&place.world, &path).unwrap();
    place.put(&path, b"mine\n");
    drop(held);
    assert_eq!(place.text(&path).unwrap(), "mine\n");
}

#[test]
fn st26_newcomers_never_hold_an_unlinked_file() {
    let place = Place::with_clock(Clock::System);
    let path = place.layout.service_pid();
    let (inside, turns) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while turns.load(Ordering::SeqCst) < 60 {
                    let Ok(held) = ServiceLock::acquire(&place.world, &path) else {
                        continue;
                    };
                    assert!(!inside.swap(true, Ordering::SeqCst));
                    assert!(ServiceLock::holder(&OsDisk, &path).locked);
                    turns.fetch_add(1, Ordering::SeqCst);
                    assert!(inside.swap(false, Ordering::SeqCst));
                    drop(held);
                }
            });
        }
    });
}
