//! `kill -9` of the daemon before and after every tmux process of a spawn and of a resume: no twin, no orphan,
//! no record that stays `starting`, and every prompt heard once (DI-44, ST-42). The simulator does the same at every
//! call of disk and processes; here the program, tmux and the agent are real.

use super::payload::{MAINTAINER, labeled};
use super::rig::{Rig, Wish, files};
use super::scripted::{self, configure, left, mode, times};

/// More tmux processes than a spawn or a resume takes.
const STEPS_MAX: u32 = 30;

/// The daemon ends with the last of so many calls. The supervisor's own looks do not count.
const RULES: &str = "
*,*'list-panes -a -F'*) ;;
before,*) one && [ \"$left\" = 1 ] && { : > \"$dir/mode\"; kill -9 $PPID; exit 1; } ;;
after,*) one && [ \"$left\" = 1 ] && { tmux \"$@\"; : > \"$dir/mode\"; kill -9 $PPID; exit 1; } ;;
";

fn rig() -> Rig {
    let rig = scripted::rig(&Wish::default(), RULES);
    configure(
        &rig,
        "minFreeMemoryMb: 0",
        "maxLiveSessions: 0, minFreeMemoryMb: 0",
    );
    rig.up();
    rig
}

fn all_is_well(rig: &Rig, item: u64, prompts: usize, what: &str) {
    let file = rig.root(&format!("local/github-octo-repo-{item}.json"));
    rig.until("a record that says active", || {
        let record = std::fs::read_to_string(&file).ok()?;
        let record: serde_json::Value = serde_json::from_str(&record).ok()?;
        (record["status"] == "active" && record["spawn"].is_null()).then_some(())
    });
    let heard = rig.prompts(item);
    assert_eq!(heard.len(), prompts, "{what}: {heard:#?}\n{}", rig.trace());
    // Whatever carries our mark is the leader of a pane: nothing runs that nobody knows.
    rig.until("no orphan", || {
        let panes = rig.tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]);
        let panes = String::from_utf8_lossy(&panes.stdout).into_owned();
        let known = |pid: i32| panes.lines().any(|line| line == pid.to_string());
        rig.marked().into_iter().all(known).then_some(())
    });
    let launch = files(&rig.root("local/launch"));
    assert!(launch.is_empty(), "{what}: {launch:?}");
}

/// Sends, and kills at one step; false when the daemon came through before that step.
fn struck(rig: &Rig, way: &str, step: u32, send: impl Fn() -> String) -> bool {
    times(rig, way, step);
    let id = send();
    let killed = rig.until("an end", || {
        if rig.is_over() {
            return Some(true);
        }
        let told = rig.events("delivery.confirmed");
        told.iter()
            .any(|e| e["delivery_id"] == id.as_str())
            .then_some(false)
    });
    if killed {
        rig.ended();
        mode(rig, "");
        rig.up();
        rig.confirmed(&id);
    } else {
        mode(rig, "");
        assert!(left(rig) > 0);
    }
    killed
}

#[test]
fn di44_st42_kill_9_at_every_tmux_process_of_a_spawn() {
    let rig = rig();
    let mut items = 0..;
    for way in ["before", "after"] {
        let mut steps = 0;
        for step in 1..STEPS_MAX {
            let item = items.next().unwrap() + 1;
            rig.accepted("issues", &labeled(item, MAINTAINER));
            let start = || rig.say(item, "the-loop start");
            let killed = struck(&rig, way, step, start);
            all_is_well(&rig, item, 1, &format!("spawn, {way} {step}"));
            steps = step;
            if !killed {
                break;
            }
        }
        println!("{way}: {} steps", steps - 1);
        assert!((4..STEPS_MAX - 1).contains(&steps), "{way}: {steps} steps");
    }
    let all = files(&rig.root("local/demo")).len();
    assert_eq!(Some(all as u64), items.next(), "one conversation an item");
}

#[test]
fn di44_di39_kill_9_at_every_tmux_process_of_a_resume() {
    let rig = rig();
    rig.start(1);
    let mut prompts = 1;
    for way in ["before", "after"] {
        let mut steps = 0;
        for step in 1..STEPS_MAX {
            let pid = rig.pane_pid(1);
            let done = std::process::Command::new("kill")
                .args(["-9", &pid])
                .status();
            assert!(done.unwrap().success());
            rig.event("session.exited", |e| {
                e["exit_code"].is_null() || e["exit_code"].is_u64()
            });
            prompts += 1;
            let words = || rig.say(1, &format!("said as number {prompts}"));
            let killed = struck(&rig, way, step, words);
            all_is_well(&rig, 1, prompts, &format!("resume, {way} {step}"));
            steps = step;
            if !killed {
                break;
            }
        }
        println!("{way}: {} steps", steps - 1);
        assert!((5..STEPS_MAX - 1).contains(&steps), "{way}: {steps} steps");
    }
    assert_eq!(files(&rig.root("local/demo")).len(), 1, "one conversation");
    assert!(rig.events("session.resume_failed").is_empty());
}
