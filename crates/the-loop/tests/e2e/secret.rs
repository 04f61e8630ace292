//! No prompt, no declared value and no secret where other programs or people see it (EV-18, EV-20, DI-15, DI-20).

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::http::SECRET;
use super::payload::{MAINTAINER, closed, labeled};
use super::rig::{Rig, Wish};

const VALUE: &str = "canary-value-of-the-environment";
const FIRST: &str = "canary-words-of-the-first-prompt";
const LATER: &str = "canary-words-of-a-later-prompt";
const CANARIES: [&str; 4] = [SECRET, VALUE, FIRST, LATER];

fn found(text: &str) -> Vec<&'static str> {
    CANARIES
        .into_iter()
        .filter(|canary| text.contains(canary))
        .collect()
}

/// Reads every process's arguments over and over, and keeps those that hold a canary.
fn watch_arguments(over: &AtomicBool) -> (BTreeSet<String>, usize) {
    let mut seen = BTreeSet::new();
    let mut rounds = 0;
    while !over.load(Ordering::SeqCst) {
        rounds += 1;
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            if !name.to_string_lossy().bytes().all(|b| b.is_ascii_digit()) {
                continue;
            }
            let bytes = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&bytes).replace('\0', " ");
            if !found(&words).is_empty() {
                seen.insert(words);
            }
        }
    }
    (seen, rounds)
}

fn nothing_in(what: &str, text: &str) {
    assert_eq!(found(text), [""; 0], "{what}: {text}");
}

#[test]
fn ev20_no_canary_leaves_in_arguments_logs_output_or_the_environment_of_tmux() {
    let env = format!("DECLARED={VALUE}\nDECLARED_TOKEN=\"{VALUE} with blanks\"\n");
    let rig = Rig::with(&Wish {
        env: &env,
        ..Wish::default()
    });
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch_arguments(&over));
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| life(&rig)));
        over.store(true, Ordering::SeqCst);
        let (seen, rounds) = watch.join().unwrap();
        if let Err(panic) = worked {
            std::panic::resume_unwind(panic);
        }
        println!("arguments of all processes read {rounds} times");
        assert!(rounds > 10, "{rounds}");
        assert!(seen.is_empty(), "{seen:?}");
    });
    rig.ok(&["stop"]);
    for verb in [
        &["events", "--limit", "1000"][..],
        &["events", "--format", "json"],
        &["deliveries", "list", "--format", "json"],
        &["sessions", "list", "--format", "json"],
        &["config", "show", "--format", "json"],
    ] {
        let done = rig.program(verb).output().unwrap();
        nothing_in(&verb.join(" "), &String::from_utf8_lossy(&done.stdout));
        nothing_in(&verb.join(" "), &String::from_utf8_lossy(&done.stderr));
    }
    for file in ["home/.the-loop/logs/events.jsonl", "out", "err"] {
        nothing_in(file, &std::fs::read_to_string(rig.path(file)).unwrap());
    }
    let log = std::fs::read_to_string(rig.root("logs/daemon.log"));
    nothing_in("daemon.log", &log.unwrap_or_default());
}

/// A first prompt with foreign words, a later one, a respawn, a close.
fn life(rig: &Rig) {
    rig.up();
    rig.accepted("issues", &labeled(1, MAINTAINER));
    rig.confirmed(&rig.say(1, &format!("the-loop do {FIRST}")));
    rig.confirmed(&rig.say(1, LATER));
    let prompts = rig.prompts(1).concat();
    assert!(
        prompts.contains(FIRST) && prompts.contains(LATER),
        "{prompts}"
    );
    tmux_knows_nothing(rig);
    let pane = rig.pane_pid(1);
    let environ = std::fs::read(format!("/proc/{pane}/environ")).unwrap();
    let environ = String::from_utf8_lossy(&environ).into_owned();
    assert!(environ.contains(VALUE), "the pane has the declared value");
    assert!(!environ.contains(SECRET), "and not our own secret");
    let killed = rig.tmux(&["kill-session", "-t", "=loop-github-octo-repo-1"]);
    assert!(killed.status.success(), "{killed:?}");
    rig.confirmed(&rig.say(1, &format!("{LATER} again")));
    tmux_knows_nothing(rig);
    let status = rig.program(&["status"]).output().unwrap();
    nothing_in("status", &String::from_utf8_lossy(&status.stdout));
    let close = rig.accepted("issues", &closed(1, MAINTAINER));
    rig.event("session.autoclosed", |e| e["delivery_id"] == close.as_str());
}

fn tmux_knows_nothing(rig: &Rig) {
    let target = Rig::target(1);
    for words in [
        &["show-environment", "-g"][..],
        &["show-environment", "-t", &target],
        &["show-options", "-g"],
        &["list-buffers"],
        &[
            "list-panes",
            "-a",
            "-F",
            "#{pane_start_command} #{pane_title}",
        ],
    ] {
        let done = rig.tmux(words);
        assert!(done.status.success(), "{done:?}");
        nothing_in(&words.join(" "), &String::from_utf8_lossy(&done.stdout));
    }
}
