//! `sessions restart --all` over twenty sessions of four kinds, with every place searched for values, and
//! somebody attached (issue line 5; seed 003, R1 to R5; EV-20).

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::payload::{MAINTAINER, labeled};
use super::person::{Person, USUAL};
use super::restart::{edit, held, item, reconfigure, rig, rotate, row};
use super::rig::{Rig, files};

const OLD: &str = "canary-of-the-old-token";
const NEW: &str = "canary-of-the-new-token";
const BASE: &str = "canary-of-the-base with blanks";
const MALFORMED: &str = "canary-of-a-malformed-line";
const CANARIES: [&str; 4] = [OLD, NEW, BASE, MALFORMED];

/// Those whose agents take up their conversations: stale at first, and fresh.
const STALE: std::ops::RangeInclusive<u64> = 1..=5;
const FRESH: std::ops::RangeInclusive<u64> = 6..=10;
/// Killed, one way or another.
const DEAD: std::ops::RangeInclusive<u64> = 11..=15;
/// Without a conversation to take up, or a harness that could.
const UNRESUMABLE: std::ops::RangeInclusive<u64> = 16..=20;

fn canaries_in(bytes: &[u8]) -> Vec<&'static str> {
    let holds = |canary: &&str| bytes.windows(canary.len()).any(|w| w == canary.as_bytes());
    CANARIES.into_iter().filter(holds).collect()
}

fn nothing_in(what: &str, bytes: &[u8]) {
    let found = canaries_in(bytes);
    assert!(
        found.is_empty(),
        "{what}: {found:?}: {}",
        String::from_utf8_lossy(bytes)
    );
}

/// Every file below a directory that holds a canary, but for the env file and the launch files, which live for
/// as long as a launcher takes to read one.
fn files_with_canaries(dir: &Path, found: &mut BTreeSet<String>) {
    for path in files(dir) {
        let name = path.display().to_string();
        if path.is_dir() {
            if !name.ends_with("local/launch") {
                files_with_canaries(&path, found);
            }
        } else if path.is_file() && !name.ends_with(".the-loop/env") {
            let bytes = std::fs::read(&path).unwrap_or_default();
            for canary in canaries_in(&bytes) {
                found.insert(format!("{name}: {canary}"));
            }
        }
    }
}

/// Arguments of all processes and files of the state root, over and over.
fn search(rig: &Rig, over: &AtomicBool) -> (BTreeSet<String>, usize) {
    let (mut found, mut rounds) = (BTreeSet::new(), 0);
    while !over.load(Ordering::SeqCst) {
        rounds += 1;
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let is_process = entry
                .file_name()
                .to_string_lossy()
                .bytes()
                .all(|b| b.is_ascii_digit());
            let argv = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if is_process && !canaries_in(&argv).is_empty() {
                found.insert(String::from_utf8_lossy(&argv).replace('\0', " "));
            }
        }
        files_with_canaries(&rig.root(""), &mut found);
    }
    (found, rounds)
}

fn clients(rig: &Rig) -> String {
    let format = "#{client_pid} #{client_tty} #{client_session}";
    let done = rig.tmux(&["list-clients", "-F", format]);
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn start_all(rig: &Rig, numbers: impl Iterator<Item = u64> + Clone) {
    let mut ids = Vec::new();
    for number in numbers {
        rig.accepted("issues", &labeled(number, MAINTAINER));
        ids.push(rig.say(number, "the-loop start"));
    }
    for id in ids {
        rig.confirmed(&id);
    }
}

#[test]
fn r5_issue5_twenty_sessions_of_four_kinds_and_no_value_anywhere() {
    let rig = rig(&format!("TOKEN={OLD}\nBASE=\"{BASE}\"\n"));
    reconfigure(&rig, "limits: {", "limits: {maxLiveSessions: 0, ");
    rig.up();
    start_all(&rig, STALE.chain(DEAD).chain(UNRESUMABLE));
    rotate(
        &rig,
        &format!("TOKEN={NEW}\nBASE=\"{BASE}\"\nnot an assignment {MALFORMED}\nEMPTY=\n"),
    );
    start_all(&rig, FRESH);
    for number in DEAD {
        let target = format!("=loop-github-octo-repo-{number}");
        let pid: i32 = rig.pane_pid(number).parse().unwrap();
        if number % 2 == 0 {
            rig.tmux(&["kill-session", "-t", &target]);
        } else {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        rig.event("session.exited", |e| {
            e["work_item"] == item(number).as_str()
        });
    }
    for number in UNRESUMABLE {
        match number % 2 {
            0 => edit(&rig, number, "harnessSessionId", "not an id!"),
            _ => edit(&rig, number, "harness", "typewriter"),
        }
    }
    let pids: Vec<String> = (1..=20).map(|number| rig.pane_pid(number)).collect();
    let watcher = Person::attaches(&rig, USUAL, &["-r", "-t", "=loop-github-octo-repo-1"]);
    let watching = clients(&rig);
    let over = AtomicBool::new(false);
    let (done, dry) = std::thread::scope(|scope| {
        let search = scope.spawn(|| search(&rig, &over));
        let dry = rig.program(&[
            "sessions",
            "restart",
            "--all",
            "--dry-run",
            "--format",
            "json",
        ]);
        let run = |mut command: Command| command.output().unwrap();
        let dry = run(dry);
        let done = run(rig.program(&["sessions", "restart", "--all", "--format", "json"]));
        over.store(true, Ordering::SeqCst);
        let (found, rounds) = search.join().unwrap();
        println!("searched {rounds} times");
        assert!(rounds > 2, "{rounds}");
        assert!(found.is_empty(), "{found:#?}");
        (done, dry)
    });
    assert_eq!(clients(&rig), watching, "who watched watches on");
    drop(watcher);
    outcomes(&rig, &dry, &done, &pids);
    nowhere(&rig, &[dry, done]);
}

fn outcomes(rig: &Rig, dry: &std::process::Output, done: &std::process::Output, pids: &[String]) {
    assert_eq!(
        (dry.status.code(), done.status.code()),
        (Some(0), Some(0)),
        "{done:?}"
    );
    let read =
        |out: &std::process::Output| -> Value { serde_json::from_slice(&out.stdout).unwrap() };
    let (dry, done) = (read(dry), read(done));
    assert_eq!(done["names"], serde_json::json!(["BASE", "EMPTY", "TOKEN"]));
    assert_eq!(done["malformedLines"], serde_json::json!([3]));
    assert_eq!(done["sessions"].as_array().unwrap().len(), 20);
    for number in 1..=20u64 {
        let (was, row, dry) = (
            &pids[number as usize - 1],
            row(&done, number),
            row(&dry, number),
        );
        let now = rig.pane_pid(number);
        if DEAD.contains(&number) {
            assert_eq!(row["outcome"], "skipped", "{row}");
            assert_eq!(row["detail"], "not running; never started here", "{row}");
        } else if UNRESUMABLE.contains(&number) {
            assert_eq!((&row["outcome"], &now), (&"skipped".into(), was), "{row}");
        } else {
            assert_eq!(dry["outcome"], "would-restart", "{dry}");
            let found = if FRESH.contains(&number) {
                "fresh"
            } else {
                "stale"
            };
            assert_eq!(dry["detail"], found, "{dry}");
            assert_eq!(row["outcome"], "restarted", "{row}");
            let detail = format!("pid {was} to {now}, conversation resumed");
            assert!(
                row["detail"].as_str().unwrap().starts_with(&detail),
                "{row}"
            );
            assert_eq!(held(rig, number, "TOKEN").as_deref(), Some(NEW));
            assert_eq!(held(rig, number, "BASE").as_deref(), Some(BASE));
        }
    }
    let told = rig.events("session.restarted");
    assert_eq!(told.len(), 20, "{told:#?}");
    // The next event of one that was dead brings it back with the new values.
    rig.confirmed(&rig.say(11, "said to one that was dead"));
    assert_eq!(held(rig, 11, "TOKEN").as_deref(), Some(NEW));
}

/// After the run: logs, events, tmux's environment, every output, every file.
fn nowhere(rig: &Rig, outputs: &[std::process::Output]) {
    for done in outputs {
        nothing_in("the command's output", &done.stdout);
        nothing_in("the command's errors", &done.stderr);
    }
    for args in [
        &["status"][..],
        &["status", "--format", "json"],
        &["events", "--limit", "0"],
        &["sessions", "list", "--format", "json"],
        &["deliveries", "list", "--all", "--format", "json"],
    ] {
        let done = rig.program(args).output().unwrap();
        nothing_in(&args.join(" "), &done.stdout);
        nothing_in(&args.join(" "), &done.stderr);
    }
    let target = Rig::target(1);
    for args in [
        &["show-environment", "-g"][..],
        &["show-environment", "-t", &target],
        &["list-buffers"],
        &[
            "list-panes",
            "-a",
            "-F",
            "#{pane_start_command} #{pane_title}",
        ],
    ] {
        nothing_in(&args.join(" "), &rig.tmux(args).stdout);
    }
    for file in ["out", "err"] {
        nothing_in(file, &std::fs::read(rig.path(file)).unwrap());
    }
    let mut found = BTreeSet::new();
    files_with_canaries(&rig.root(""), &mut found);
    assert!(found.is_empty(), "{found:#?}");
    assert!(
        files(&rig.root("local/launch")).is_empty(),
        "no launch file is left"
    );
}
