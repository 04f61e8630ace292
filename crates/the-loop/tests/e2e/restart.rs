//! `sessions restart` on real panes: who is relaunched, with what, and who is left alone (seed 003, R1 and R2;
//! SE-55 to SE-62).

use std::process::Output;

use serde_json::Value;

use super::rig::{Rig, Wish};

/// The ref of an item.
pub fn item(number: u64) -> String {
    format!("github:octo/repo#{number}")
}

/// A machine whose env file says this.
pub fn rig(env: &str) -> Rig {
    Rig::with(&Wish {
        env,
        ..Wish::default()
    })
}

/// Puts another text into the env file.
pub fn rotate(rig: &Rig, env: &str) {
    rig.write("home/.the-loop/env", env);
}

/// Changes the configuration file before it is read.
pub fn reconfigure(rig: &Rig, from: &str, to: &str) {
    let file = "home/.the-loop/cli-config.yaml";
    let text = std::fs::read_to_string(rig.path(file)).unwrap();
    assert!(text.contains(from), "{text}");
    rig.write(file, &text.replace(from, to));
}

/// `sessions restart` with these arguments.
pub fn restart(rig: &Rig, args: &[&str]) -> Output {
    let words = ["sessions", "restart"].iter().chain(args).copied();
    let words: Vec<&str> = words.collect();
    rig.program(&words).output().unwrap()
}

/// Its exit code and document.
pub fn restarted(rig: &Rig, args: &[&str]) -> (i32, Value) {
    let done = restart(rig, &[args, &["--format", "json"]].concat());
    let out = String::from_utf8_lossy(&done.stdout);
    let document = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    (done.status.code().unwrap(), document)
}

/// The row of an item.
pub fn row(document: &Value, number: u64) -> Value {
    let rows = document["sessions"].as_array().unwrap();
    let found = rows.iter().find(|row| row["ref"] == item(number).as_str());
    found.unwrap_or_else(|| panic!("{document:#}")).clone()
}

/// A variable of the agent of an item.
pub fn held(rig: &Rig, number: u64, name: &str) -> Option<String> {
    let pid = rig.pane_pid(number);
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let prefix = format!("{name}=");
    let mut vars = environ.split(|b| *b == 0);
    let value = vars.find_map(|var| var.strip_prefix(prefix.as_bytes()))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// The session record of an item.
pub fn record(rig: &Rig, number: u64) -> Value {
    let file = rig.root(&format!("local/github-octo-repo-{number}.json"));
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Changes a field of the session record, as a hand or an earlier release could have.
pub fn edit(rig: &Rig, number: u64, field: &str, value: &str) {
    let mut record = record(rig, number);
    record[field] = value.into();
    let file = format!("home/.the-loop/local/github-octo-repo-{number}.json");
    rig.write(&file, &format!("{record:#}\n"));
}

/// A program that stands in for Claude Code in panes, by the `PATH` of the env file.
pub fn stand_in(rig: &Rig, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(rig.path("bin")).unwrap();
    rig.write("bin/claude", script);
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(rig.path("bin/claude"), mode).unwrap();
    let bin = rig.path("bin");
    format!("PATH={}:/usr/local/bin:/usr/bin:/bin\n", bin.display())
}

fn place(rig: &Rig, number: u64) -> String {
    let format = "#{session_id} #{window_id} #{pane_id} #{session_created}";
    let done = rig.tmux(&["list-panes", "-t", &Rig::target(number), "-F", format]);
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn r1_1_r2_1_one_session_is_relaunched_in_its_pane_and_proved_to_hold_the_new_values() {
    let rig = rig("TOKEN=old-value\nKEPT=same\n");
    rig.up();
    rig.start(1);
    rig.start(15);
    let (before, other) = (rig.pane_pid(1), rig.pane_pid(15));
    let was = place(&rig, 1);
    rotate(&rig, "TOKEN=new-value\nKEPT=same\nBLANK=\n");
    let done = restart(&rig, &["--work-item", &item(1)]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let after = rig.pane_pid(1);
    let out = String::from_utf8(done.stdout).unwrap();
    let expected = format!(
        "1 session, 3 declared variables: BLANK, KEPT, TOKEN\n\
         {:<40} restarted \u{2014} pid {before} to {after}, conversation resumed\n",
        item(1)
    );
    assert_eq!(out, expected);
    assert_ne!(before, after);
    assert_eq!(held(&rig, 1, "TOKEN").as_deref(), Some("new-value"));
    assert_eq!(held(&rig, 1, "BLANK").as_deref(), Some(""));
    assert_eq!(place(&rig, 1), was, "session, window and pane are the same");
    assert_eq!(rig.pane_pid(15), other, "nobody else was touched");
    assert_eq!(held(&rig, 15, "TOKEN").as_deref(), Some("old-value"));
    let pid = record(&rig, 1)["pid"].to_string();
    assert_eq!(
        (pid, record(&rig, 1)["status"].as_str()),
        (after, Some("active"))
    );
    let told = rig.event("session.restarted", |e| e["work_item"] == item(1).as_str());
    assert_eq!(told["outcome"], "restarted", "{told}");
}

#[test]
fn r1_2_r1_3_all_are_relaunched_and_the_file_wins_over_what_the_caller_has() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    for number in [2, 1, 15] {
        rig.start(number);
    }
    rotate(&rig, "TOKEN=from-the-file\n");
    let mut command = rig.program(&["sessions", "restart", "--all", "--format", "json"]);
    let done = command.env("TOKEN", "from-the-shell").output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    let refs: Vec<&str> = document["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["ref"].as_str().unwrap())
        .collect();
    assert_eq!(refs, [item(1), item(2), item(15)], "sorted by ref");
    assert_eq!(document["names"], serde_json::json!(["TOKEN"]));
    assert_eq!(document["fingerprints"]["TOKEN"].as_str().unwrap().len(), 8);
    for number in [1, 2, 15] {
        assert_eq!(
            held(&rig, number, "TOKEN").as_deref(),
            Some("from-the-file")
        );
    }
    // A second run relaunches again; it does not ask who is stale (SE-62).
    let before = rig.pane_pid(2);
    let (code, document) = restarted(&rig, &[&item(2), &item(1)]);
    assert_eq!((code, document["ok"].as_bool()), (0, Some(true)));
    assert_eq!(
        document["sessions"][0]["ref"],
        item(2).as_str(),
        "in the order given"
    );
    assert_ne!(rig.pane_pid(2), before);
}

#[test]
fn r1_4_se62_the_conversation_goes_on_and_a_daemon_beside_it_sees_no_crash() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    let id = record(&rig, 1)["harnessSessionId"].clone();
    rotate(&rig, "TOKEN=new\n");
    let (code, document) = restarted(&rig, &["--all"]);
    assert_eq!(code, 0, "{document:#}");
    let pid = rig.pane_pid(1);
    let argv = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let restarted_with = String::from_utf8_lossy(&argv).replace('\0', " ");
    rig.confirmed(&rig.say(1, "said after the relaunch"));
    assert_eq!(
        rig.pane_pid(1),
        pid,
        "the daemon talks to the process that it finds"
    );
    assert_eq!(record(&rig, 1)["harnessSessionId"], id);
    assert_eq!(super::rig::files(&rig.root("local/demo")).len(), 1);
    for event in [
        "session.exited",
        "session.respawned",
        "session.resume_failed",
    ] {
        assert!(rig.events(event).is_empty(), "{event}\n{}", rig.trace());
    }
    // What a crash is recovered by is the same command line, but for the prompt it brings.
    rig.tmux(&["kill-session", "-t", "=loop-github-octo-repo-1"]);
    rig.confirmed(&rig.say(1, "said after a crash"));
    let pid = rig.pane_pid(1);
    let argv = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let recovered_with = String::from_utf8_lossy(&argv).replace('\0', " ");
    assert!(
        recovered_with.starts_with(restarted_with.trim_end()),
        "{recovered_with:?} {restarted_with:?}"
    );
}

#[test]
fn r1_5_r1_6_what_cannot_be_resumed_is_left_running_and_what_does_not_run_is_not_started() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    for number in [1, 2, 3, 4] {
        rig.start(number);
    }
    edit(&rig, 1, "harnessSessionId", "");
    edit(&rig, 2, "harness", "typewriter");
    let pids = [1, 2].map(|number| rig.pane_pid(number));
    rig.tmux(&["kill-session", "-t", "=loop-github-octo-repo-3"]);
    rotate(&rig, "TOKEN=new\n");
    let (code, document) = restarted(&rig, &["--all"]);
    assert_eq!(
        (code, document["ok"].as_bool()),
        (0, Some(true)),
        "{document:#}"
    );
    let detail = |number| row(&document, number)["detail"].clone();
    assert_eq!(detail(1), "no resumable conversation; left running");
    assert_eq!(
        detail(2),
        "typewriter cannot take up a conversation; left running"
    );
    assert_eq!(detail(3), "not running; never started here");
    for number in [1, 2, 3] {
        assert_eq!(row(&document, number)["outcome"], "skipped", "{document:#}");
    }
    assert_eq!(row(&document, 4)["outcome"], "restarted", "{document:#}");
    assert_eq!([1, 2].map(|number| rig.pane_pid(number)), pids);
    assert_eq!(rig.pane_pid(3), "");
    let (code, document) = restarted(&rig, &[&item(99)]);
    assert_eq!(
        (code, row(&document, 99)["outcome"].as_str()),
        (0, Some("skipped"))
    );
    let reasons: Vec<Value> = rig
        .events("session.restarted")
        .into_iter()
        .map(|event| event["reason"].clone())
        .collect();
    let expected = ["no-conversation", "not-resumable", "not-live"];
    assert_eq!(reasons[..3], expected);
    assert_eq!(reasons.last().unwrap(), "not-registered");
}

#[test]
fn r1_7_without_an_env_file_that_can_be_used_nothing_is_done() {
    let rig = rig("TOKEN=old\n");
    let refused = |args: &[&str], words: &str| {
        let done = restart(&rig, args);
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        assert_eq!(String::from_utf8_lossy(&done.stdout), "");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains(words), "{said}");
    };
    refused(&[], "--work-item REF");
    refused(&["--all", "--work-item", &item(1)], "--work-item and --all");
    refused(&["--work-item", "nonsense"], "not a work-item ref");
    let path = rig.root("env").display().to_string();
    for nothing in ["", "# a comment\n", "THE_LOOP_INSTANCE=mine\nbad line\n"] {
        rotate(&rig, nothing);
        refused(
            &["--all"],
            &format!("env.file: {path} declares no variables"),
        );
    }
    std::fs::remove_file(rig.root("env")).unwrap();
    refused(&["--all"], &format!("env.file: cannot read {path}: "));
    reconfigure(&rig, "env: {file: env}", "env: {}");
    refused(&["--all"], "env.file is not set");
}

#[test]
fn r2_2_an_agent_that_ends_at_once_fails_the_run_and_its_next_event_recovers_it() {
    let rig = rig("TOKEN=old\n");
    reconfigure(&rig, "resumeProbeSeconds: 0", "resumeProbeSeconds: 1");
    rig.up();
    rig.start(1);
    rig.start(2);
    let before = rig.pane_pid(1);
    rotate(&rig, "TOKEN=new\nTHE_LOOP_DEMO_EXIT_AT_ONCE=1\n");
    let (code, document) = restarted(&rig, &[&item(1)]);
    assert_eq!(
        (code, document["ok"].as_bool()),
        (1, Some(false)),
        "{document:#}"
    );
    let failed = row(&document, 1);
    assert_eq!(failed["outcome"], "failed", "{document:#}");
    // tmux knows a moment later with which status.
    let detail = failed["detail"].as_str().unwrap().replace(" (exit 1)", "");
    assert_eq!(
        detail,
        "its agent ended at once; its next event recovers it"
    );
    assert!(!rig.marked().contains(&before.parse().unwrap()));
    let told = rig.event("session.restarted", |e| e["outcome"] == "failed");
    assert_eq!(told["level"], "error", "{told}");
    rotate(&rig, "TOKEN=newer\n");
    rig.confirmed(&rig.say(1, "said after it failed"));
    assert_eq!(held(&rig, 1, "TOKEN").as_deref(), Some("newer"));
    assert_eq!(
        super::rig::files(&rig.root("local/demo")).len(),
        2,
        "no new conversation"
    );
}

#[test]
fn r2_2_a_process_that_still_holds_another_value_is_stale_and_fails_the_run() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    edit(&rig, 1, "harness", "claude");
    let path = stand_in(&rig, "#!/bin/sh\nTOKEN=frozen-value exec sleep 600\n");
    rotate(&rig, &format!("{path}TOKEN=new-value\n"));
    reconfigure(&rig, "resumeProbeSeconds: 0", "resumeProbeSeconds: 1");
    let done = restart(&rig, &["--all"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    // printf new-value | sha256sum; printf frozen-value | sha256sum
    let row = format!(
        "{:<40} stale \u{2014} TOKEN (file {}, process {})\n",
        item(1),
        the_loop_core::environment::fingerprint(b"new-value"),
        the_loop_core::environment::fingerprint(b"frozen-value"),
    );
    let out = String::from_utf8(done.stdout).unwrap();
    assert!(out.ends_with(&row), "{out}");
    let told = rig.event("session.restarted", |e| e["outcome"] == "stale");
    assert_eq!(told["stale"], serde_json::json!(["TOKEN"]), "{told}");
    assert_eq!(told["level"], "warning", "{told}");
}

#[test]
fn r2_3_an_environment_that_cannot_be_read_is_unverified_and_never_fails_the_run() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    edit(&rig, 1, "harness", "claude");
    // A program that writes over its own environment shows nothing.
    let path = stand_in(&rig, "#!/usr/bin/perl\n$0 = 'x' x 100000;\nsleep 600;\n");
    rotate(&rig, &format!("{path}TOKEN=new\n"));
    reconfigure(&rig, "resumeProbeSeconds: 0", "resumeProbeSeconds: 1");
    let (code, document) = restarted(&rig, &["--all"]);
    assert_eq!(
        (code, document["ok"].as_bool()),
        (0, Some(true)),
        "{document:#}"
    );
    assert_eq!(row(&document, 1)["outcome"], "unverified", "{document:#}");
    assert_eq!(
        row(&document, 1)["detail"],
        "its environment could not be read"
    );
}

#[test]
fn r2_4_a_dry_run_tells_who_is_stale_and_does_nothing() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    rotate(&rig, "TOKEN=new\n");
    rig.start(2);
    rig.start(3);
    edit(&rig, 3, "harnessSessionId", "");
    let look = || [1, 2, 3].map(|number| (rig.pane_pid(number), record(&rig, number)));
    let before = look();
    let (code, document) = restarted(&rig, &["--all", "--dry-run"]);
    assert_eq!(
        (code, document["dryRun"].as_bool()),
        (0, Some(true)),
        "{document:#}"
    );
    assert_eq!(
        row(&document, 1)["outcome"],
        "would-restart",
        "{document:#}"
    );
    assert_eq!(row(&document, 1)["detail"], "stale");
    assert_eq!(row(&document, 1)["stale"], serde_json::json!(["TOKEN"]));
    assert_eq!(
        row(&document, 2)["detail"],
        "fresh",
        "born after the rotation (R4.1)"
    );
    assert_eq!(row(&document, 3)["outcome"], "skipped");
    assert_eq!(look(), before);
    assert!(rig.events("session.restarted").is_empty());
}
