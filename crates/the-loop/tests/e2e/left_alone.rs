//! Agents that a relaunch leaves alone, and commands that do not come to their end (SE-9, SE-15, SE-55, SE-58, SE-59).

use serde_json::json;

use super::renewed::idle;
use super::restart::{edit, held, item, reconfigure, record, restart, restarted, rig, rotate, row};
use super::rig::Rig;

#[test]
fn se58_a_draft_is_left_alone_without_force() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    idle(&rig, 1);
    rig.types(1, &["-l", "half a thought"]);
    rig.until("the draft", || {
        rig.screen(1).contains("half a thought").then_some(())
    });
    let before = rig.pane_pid(1);
    let (code, document) = restarted(&rig, &["--all"]);
    assert_eq!(
        (code, row(&document, 1)["outcome"].as_str()),
        (0, Some("skipped"))
    );
    let event = rig.event("session.restarted", |_| true);
    assert_eq!(event["reason"], "draft", "{event}");
    assert_eq!(rig.pane_pid(1), before);
    let (_, document) = restarted(&rig, &["--all", "--force"]);
    assert_eq!(row(&document, 1)["outcome"], "restarted", "{document:#}");
}

#[test]
fn se58_a_pane_that_a_person_opened_beside_the_agent_is_not_the_agent() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    let split = rig.tmux(&["split-window", "-d", "-t", &Rig::target(1), "sleep", "600"]);
    assert!(split.status.success(), "{split:?}");
    let agent = record(&rig, 1)["pid"].to_string();
    rotate(&rig, "TOKEN=new\n");
    let (code, document) = restarted(&rig, &["--all"]);
    assert_eq!(
        (code, row(&document, 1)["outcome"].as_str()),
        (0, Some("restarted"))
    );
    let pids = rig.pane_pid(1);
    let pids: Vec<&str> = pids.lines().collect();
    assert_eq!(pids.len(), 2, "{pids:?}");
    assert!(!pids.contains(&agent.as_str()));
    let new = record(&rig, 1)["pid"].to_string();
    assert!(pids.contains(&new.as_str()), "{pids:?} {new}");
}

#[test]
fn se9_se15_a_busy_item_fails_alone_and_an_interrupt_leaves_the_rest() {
    let rig = rig("TOKEN=old\n");
    reconfigure(&rig, "resumeProbeSeconds: 0", "resumeProbeSeconds: 3");
    rig.up();
    for number in [1, 2, 3] {
        rig.start(number);
    }
    rotate(&rig, "TOKEN=new\n");
    let lock = std::fs::File::open(rig.root("local/locks/github-octo-repo-1.lock")).unwrap();
    rig.until("the lock", || lock.try_lock().ok());
    let before = [1, 2, 3].map(|number| rig.pane_pid(number));
    let args = ["sessions", "restart", "--all", "--lock-timeout", "0"];
    let child = rig
        .program(&args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The second one is in its probe time; the effect in hand is finished and recorded.
    rig.until("the second relaunch", || {
        let pid = rig.pane_pid(2);
        (!pid.is_empty() && pid != before[1]).then_some(())
    });
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    drop(lock);
    assert_eq!(done.status.code(), Some(130), "{done:?}");
    let out = String::from_utf8(done.stdout).unwrap();
    let rows: Vec<&str> = out.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{out}");
    assert!(
        rows[0].ends_with("failed \u{2014} busy; left running"),
        "{out}"
    );
    assert!(rows[1].contains(" restarted \u{2014} "), "{out}");
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        said.contains(&format!("error: {}: not started", item(3))),
        "{said}"
    );
    assert_eq!(rig.pane_pid(1), before[0]);
    assert_eq!(rig.pane_pid(3), before[2]);
    assert_eq!(record(&rig, 2)["pid"].to_string(), rig.pane_pid(2));
}

#[test]
fn r5_malformed_lines_are_told_by_number_and_never_by_text() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    let lines = [
        "TOKEN=new",
        "",
        "a canary of text",
        "# 4",
        "# 5",
        "# 6",
        "# 7",
        "# 8",
        "=canary",
    ];
    rotate(&rig, &format!("{}\n", lines.join("\n")));
    let done = restart(&rig, &["--all"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let said = String::from_utf8(done.stderr).unwrap();
    let path = rig.root("env").display().to_string();
    assert!(
        said.contains(&format!("warning: {path}: lines 3, 9 skipped\n")),
        "{said}"
    );
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(
        !said.contains("canary") && !out.contains("canary"),
        "{said}{out}"
    );
    assert_eq!(held(&rig, 1, "TOKEN").as_deref(), Some("new"));
    let unusable = rig.event("env.unusable", |e| !e["lines"].is_null());
    assert_eq!(unusable["lines"], json!([3, 9]), "{unusable}");
}

#[test]
fn se59_what_could_not_come_up_again_is_not_ended() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    rig.start(2);
    edit(&rig, 1, "harness", "claude");
    edit(&rig, 2, "cwd", "/nowhere/at/all");
    let before = [1, 2].map(|number| rig.pane_pid(number));
    let bin = rig.path("tmux").display().to_string();
    rotate(&rig, &format!("TOKEN=new\nPATH={bin}\n"));
    let (code, document) = restarted(&rig, &["--all"]);
    assert_eq!(
        (code, document["ok"].as_bool()),
        (1, Some(false)),
        "{document:#}"
    );
    let detail = |number| row(&document, number)["detail"].clone();
    assert_eq!(detail(1), "claude is not on PATH; left running");
    assert_eq!(
        detail(2),
        "its directory /nowhere/at/all is not there; left running"
    );
    assert_eq!([1, 2].map(|number| rig.pane_pid(number)), before);
}
