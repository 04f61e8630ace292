//! Nothing answered is lost: failing commits, crashes, `kill -9`, a full disk (ST-52, ST-55).

use std::io::{BufRead, BufReader};
use std::sync::mpsc;

use super::*;

/// Offers each delivery until it is accepted, as a provider redelivers.
fn offer_until_accepted(inbox: &Inbox, names: &[&str]) {
    for name in names {
        let offer = || inbox.accept(&comment(name));
        assert!((0..3).any(|_| offer().is_ok()), "{name} was never accepted");
    }
}

#[test]
fn st55_a_refused_commit_is_an_error_at_every_point_and_the_next_is_tried_anew() {
    let names = ["a", "b", "c", "d", "e"];
    for fails_after_the_rows_are_in in [false, true] {
        for k in 1..=names.len() as u64 {
            let bench = Bench::new();
            let inbox = bench.open();
            bench.disk.watch(move |n, work| {
                if n != k {
                    return work();
                }
                if fails_after_the_rows_are_in {
                    work()?;
                }
                Err(io::Error::other("no space left on device"))
            });
            offer_until_accepted(&inbox, &names);
            let expected: Vec<String> = names.iter().map(|name| format!("guid-{name}")).collect();
            assert_eq!(ids(&inbox), expected, "commit {k}");
        }
    }
}

#[test]
fn st55_everybody_who_waited_is_told_and_health_is_told_once() {
    let bench = Bench::new();
    let inbox = bench.open();
    let (tell, told) = mpsc::channel();
    inbox.on_health(move |health| tell.send(health).unwrap());
    bench.disk.watch(|n, work| {
        if n <= 3 {
            Err(io::Error::other("no space left on device"))
        } else {
            work()
        }
    });
    for name in ["a", "b", "c"] {
        let answer = inbox.accept(&comment(name));
        assert!(answer.is_err_and(|e| e.may_pass()));
        bench.pass(60);
    }
    let since: Timestamp = START.parse().unwrap();
    assert_eq!(inbox.unavailable_since(), Some(since));
    inbox.accept(&comment("d")).unwrap();
    assert_eq!(inbox.unavailable_since(), None);
    inbox.accept(&comment("e")).unwrap();
    let told: Vec<Health> = told.try_iter().collect();
    let error = InboxError::Unavailable("no space left on device".to_owned());
    assert_eq!(
        told,
        [Health::Unavailable { error }, Health::Recovered { since }]
    );
    assert_eq!(ids(&inbox), ["guid-d", "guid-e"]);
}

/// Copies the files as a crash would leave them: the shared-memory file is not among them.
fn snapshot(from: &Utf8Path, to: &Utf8Path) {
    let local = to.join("local");
    OsDisk.create_dir_all(&local).unwrap();
    for name in ["inbox.db", "inbox.db-wal"] {
        let _ = std::fs::copy(from.with_file_name(name), local.join(name));
    }
}

#[test]
fn st52_a_crash_before_or_after_any_commit_loses_nothing_that_was_answered() {
    let bench = Bench::new();
    let snapshots = Utf8PathBuf::from_path_buf(bench.dir.path().to_owned()).unwrap();
    let inbox = bench.open();
    let (path, copies) = (bench.path.clone(), snapshots.clone());
    bench.disk.watch(move |n, work| {
        snapshot(&path, &copies.join(format!("before-{n}")));
        let done = work();
        snapshot(&path, &copies.join(format!("after-{n}")));
        done
    });
    let total = 12;
    for n in 0..total {
        inbox.accept(&comment(&n.to_string())).unwrap();
    }
    for n in 1..=total {
        // At the crash before commit n, n - 1 were answered; after it the nth may be there unanswered.
        for (when, there) in [("before", n - 1), ("after", n)] {
            let path = snapshots.join(format!("{when}-{n}/local/inbox.db"));
            let reopened = Inbox::open(&bench.world, &path).unwrap();
            assert!(!reopened.created);
            let expected: Vec<String> = (0..there).map(|n| format!("guid-{n}")).collect();
            assert_eq!(ids(&reopened.inbox), expected, "{when} commit {n}");
            // The redelivery that follows an unanswered one makes no second.
            reopened
                .inbox
                .accept(&comment(&(n - 1).to_string()))
                .unwrap();
            assert_eq!(ids(&reopened.inbox).len(), n);
        }
    }
}

#[test]
fn st52_a_crash_while_the_database_is_made_leaves_one_that_can_be_made() {
    for k in 1..=2 {
        let bench = Bench::new();
        bench.disk.watch(move |n, work| {
            if n >= k {
                Err(io::Error::other("gone"))
            } else {
                work()
            }
        });
        Inbox::open(&bench.world, &bench.path).unwrap_err();
        bench.disk.watch(|_, work| work());
        let opened = Inbox::open(&bench.world, &bench.path).unwrap();
        assert_eq!(opened.created, k == 1);
        opened.inbox.accept(&comment("a")).unwrap();
    }
}

#[test]
fn st52_a_full_disk_refuses_and_loses_nothing() {
    let bench = Bench::new();
    let inbox = bench.open();
    let pages = |inbox: &Inbox, max: i64| {
        inbox.write(move |connection| {
            let set = connection.pragma_update_and_check(None, "max_page_count", max, |_| Ok(()));
            set.map_err(InboxError::from)
        })
    };
    pages(&inbox, 60).unwrap();
    let large = |n: usize| {
        let mut delivery = comment(&n.to_string());
        delivery.facts.title = Some("x".repeat(20_000));
        delivery
    };
    let answered: Vec<usize> = (0..40)
        .filter(|n| match inbox.accept(&large(*n)) {
            Ok(_) => true,
            Err(e) => {
                assert!(e.may_pass(), "{e:?}");
                false
            }
        })
        .collect();
    assert!(!answered.is_empty() && answered.len() < 40, "{answered:?}");
    let expected: Vec<String> = answered.iter().map(|n| format!("guid-{n}")).collect();
    assert_eq!(ids(&inbox), expected);
    pages(&inbox, 1 << 20).unwrap();
    for n in 0..40 {
        inbox.accept(&large(n)).unwrap();
    }
    drop(inbox);
    assert_eq!(ids(&bench.open()).len(), 40);
}

const CHILD: &str = "THE_LOOP_TEST_INBOX_CHILD";

/// Not a test of its own: the process that [`st52_kill_9_at_any_instant`] kills. It says each id after
/// its acceptance was answered.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the parent test names the inbox in the environment"
)]
fn child_that_accepts_until_it_is_killed() {
    let Ok(path) = std::env::var(CHILD) else {
        return;
    };
    let mut bench = Bench::new();
    bench.path = path.into();
    let inbox = bench.open();
    for n in 0.. {
        let accepted = inbox.accept(&comment(&n.to_string())).unwrap();
        println!("answered {n} {accepted:?}");
    }
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a process of this test is to be killed"
)]
fn st52_kill_9_at_any_instant() {
    let bench = Bench::new();
    let mut answered = 0;
    for round in 0..5 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "store::inbox::tests::crashes::child_that_accepts_until_it_is_killed",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(CHILD, bench.path.as_str())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        for line in lines {
            let line = line.unwrap();
            // The test harness's own words share the output.
            if let Some((_, rest)) = line.split_once("answered ") {
                let n: usize = rest.split(' ').next().unwrap().parse().unwrap();
                said.push(n);
            }
            if said.len() == answered + 7 + round {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        answered = said.len();
        let expected: Vec<usize> = (0..answered).collect();
        assert_eq!(
            said, expected,
            "what was accepted before is a duplicate now"
        );
        let reopened = bench.open();
        let there = ids(&reopened);
        assert!(
            there.len() >= answered,
            "{answered} answered, {} kept",
            there.len()
        );
        for (n, id) in there.iter().enumerate() {
            assert_eq!(*id, format!("guid-{n}"), "each once, in order");
        }
        assert_eq!(
            reopened.unrouted(bench.now()).unwrap().len(),
            there.len().min(256)
        );
    }
}
