//! Agents that nobody built in: declared in the settings, chosen by label or repository, recognised by
//! what the declaration says (DI-33, DI-25, DI-29).

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::payload::{MAINTAINER, comment, labeled_also, with_labels};
use super::rig::{Rig, Wish};

/// An agent in a few lines of shell. It writes a file for each conversation, is told by pasted lines, and
/// shows on its screen whether it is busy. `$1` is `--continue` for an old conversation, `$2` its id.
const SHELL_AGENT: &str = r#"#!/bin/bash
if [ "$1" = --continue ]; then id=$2; else id=conv-$$; fi
log=$HOME/talk-$id.log
[ "$1" = --continue ] && [ ! -e "$log" ] && { echo "no such conversation"; exit 1; }
echo "begin $*" >> "$log"
clear
printf 'ready> '
while IFS= read -r line; do
  echo "heard: $line" >> "$log"
  clear
  printf 'ready> '
done
"#;

/// Puts a program where only this test finds it.
fn install(rig: &Rig, name: &str, text: &str) -> String {
    let file = rig.path(name);
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file.display().to_string()
}

/// A machine with these lines below `routing:`, in which `{dir}` is its directory.
fn rig(routing: &str) -> Rig {
    let rig = Rig::with(&Wish {
        routing,
        ..Wish::default()
    });
    let config = std::fs::read_to_string(rig.root("cli-config.yaml")).unwrap();
    let dir = rig.path("").display().to_string();
    let program = env!("CARGO_BIN_EXE_the-loop");
    let config = config
        .replace("{dir}", dir.trim_end_matches('/'))
        .replace("{program}", program);
    rig.write("home/.the-loop/cli-config.yaml", &config);
    install(&rig, "shell-agent", SHELL_AGENT);
    rig
}

/// Arms an item that has these labels and says the start word; its delivery's id.
fn start_with(rig: &Rig, number: u64, labels: &[&str]) -> String {
    let armed = labeled_also(number, MAINTAINER, labels);
    let armed = rig.accepted("issues", &armed);
    rig.event("dispatch.dropped", |e| e["delivery_id"] == armed.as_str());
    let words = comment(number, rig.fresh(), MAINTAINER, "the-loop start");
    rig.accepted("issue_comment", &with_labels(words, labels))
}

/// The record of an item as `sessions list` tells it.
fn listed(rig: &Rig, number: u64) -> Value {
    let list = rig.ok(&["sessions", "list", "--format", "json"]);
    let all: Vec<Value> = serde_json::from_str(&list).unwrap();
    let name = format!("github:octo/repo#{number}");
    let found = all.into_iter().find(|line| line["ref"] == name.as_str());
    found.unwrap_or_else(|| panic!("{name} is not in {list}"))
}

const TWIN: &str = r#"  harnesses:
    twin:
      command: "{program}"
      spawn: [demo-agent, --session-id, "{session_id}"]
      resume: [demo-agent, --resume, "{session_id}"]
      promptArgs: [--, "{prompt}"]
      sessionId: assigned
      signals:
        ready: hook:SessionStart
        working: hook:UserPromptSubmit
        waiting: hook:PermissionRequest
        idle: hook:Stop
      confirm: hook:UserPromptSubmit
      composerEmpty: '^> *$'
      dialogs: [{name: permission, screen: 'Allow this\? \[y/n\]'}]
      env: {TWIN_COLOR: blue}
"#;

#[test]
fn di33_a_declared_harness_is_spawned_prompted_and_resumed() {
    let rig = rig(TWIN);
    rig.up();
    let first = start_with(&rig, 1, &["Harness: twin"]);
    rig.confirmed(&first);
    let record = listed(&rig, 1);
    assert_eq!(record["harness"], "twin");
    assert_eq!(record["confirms"], "hook");
    let id = record["harnessSessionId"].as_str().unwrap().to_owned();
    let pid = rig.pane_pid(1);
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let holds = environ.split(|b| *b == 0).any(|v| v == b"TWIN_COLOR=blue");
    assert!(holds, "the declared variable is in its pane");
    let second = rig.say(1, "and another thing");
    rig.confirmed(&second);
    rig.kill_agent(1);
    let third = rig.say(1, "are you there?");
    rig.confirmed(&third);
    let back = rig.event("session.respawned", |e| {
        e["work_item"] == "github:octo/repo#1"
    });
    assert_eq!(back["resumed"], true, "{back}");
    assert_eq!(back["harness"], "twin");
    assert_eq!(listed(&rig, 1)["harnessSessionId"], id.as_str());
    assert_eq!(rig.prompts(1).len(), 3);
}

#[test]
fn di27_a_declared_dialog_holds_and_a_declared_draft_is_safe() {
    let rig = rig(&TWIN.replace("TWIN_COLOR: blue", "THE_COLOR: blue"));
    rig.write("home/.the-loop/env", "THE_LOOP_DEMO_ASK_PERMISSION=1\n");
    rig.up();
    let first = start_with(&rig, 1, &["harness:twin"]);
    rig.confirmed(&first);
    let held = rig.say(1, "yes, and then some");
    let event = rig.event("delivery.held", |e| e["delivery_id"] == held.as_str());
    assert_eq!(event["reason"], "dialog", "{event}");
    rig.types(1, &["y"]);
    rig.confirmed(&held);
    rig.types(1, &["y"]);
    rig.until("the end of the turn", || {
        rig.screen(1).trim_end().ends_with("idle").then_some(())
    });
    rig.types(1, &["-l", "half a thought"]);
    rig.until("the draft", || {
        rig.screen(1).contains("> half a thought").then_some(())
    });
    let waits = rig.say(1, "in between");
    rig.until("the hold", || {
        let list = rig.ok(&["deliveries", "list", "--format", "json"]);
        let all: Vec<Value> = serde_json::from_str(&list).unwrap();
        let row = all.into_iter().find(|d| d["deliveryId"] == waits.as_str());
        (row?["heldBecause"] == "draft").then_some(())
    });
    rig.types(1, &["C-u"]);
    rig.confirmed(&waits);
}

const LEARNER: &str = r#"  harnesses:
    learner:
      command: "{dir}/shell-agent"
      resume: [--continue, "{session_id}"]
      sessionId: file
      sessionIdPattern: "{dir}/home/talk-*.log"
      signals: {ready: 'screen:^ready>'}
      confirm: transcript
      transcript: "{dir}/home/talk-{session_id}.log"
      composerEmpty: '^ready>$'
"#;

#[test]
fn di33_an_id_is_learnt_from_a_file_and_the_transcript_confirms() {
    let rig = rig(LEARNER);
    // Somebody's own conversation, from before the launch: never ours.
    rig.write("home/talk-mine.log", "begin\n");
    rig.up();
    let first = start_with(&rig, 1, &["harness:learner"]);
    let confirmed = rig.event("delivery.confirmed", |e| e["delivery_id"] == first.as_str());
    assert_eq!(confirmed["by"], "transcript", "{confirmed}");
    let record = listed(&rig, 1);
    let id = record["harnessSessionId"].as_str().unwrap().to_owned();
    assert!(id.starts_with("conv-"), "{record}");
    // The first prompt was pasted when it was ready, and told what a new conversation has to know.
    let log = std::fs::read_to_string(rig.path(&format!("home/talk-{id}.log"))).unwrap();
    assert!(log.contains("heard: the-loop delivery dlv-"), "{log}");
    rig.kill_agent(1);
    let second = rig.say(1, "are you there?");
    rig.confirmed(&second);
    let back = rig.event("session.respawned", |_| true);
    assert_eq!(back["resumed"], true, "{back}");
    let log = std::fs::read_to_string(rig.path(&format!("home/talk-{id}.log"))).unwrap();
    assert!(log.contains(&format!("begin --continue {id}")), "{log}");
    assert_eq!(log.matches("heard: the-loop delivery").count(), 2, "{log}");
    // A second session learns its own.
    let other = start_with(&rig, 2, &["harness:learner"]);
    rig.confirmed(&other);
    let second_id = listed(&rig, 2)["harnessSessionId"].clone();
    assert_ne!(second_id, id.as_str());
}

#[test]
fn di33_an_id_that_a_crash_kept_from_us_is_learnt_at_the_next_look() {
    let rig = rig(LEARNER);
    rig.up();
    let first = start_with(&rig, 1, &["harness:learner"]);
    rig.confirmed(&first);
    let id = listed(&rig, 1)["harnessSessionId"].clone();
    rig.kill();
    // As if the crash had come between the launch and the look.
    let file = rig.root("local/github-octo-repo-1.json");
    let record = std::fs::read_to_string(&file).unwrap();
    let forgotten = record.replace(id.as_str().unwrap(), "");
    assert_ne!(record, forgotten);
    std::fs::write(&file, forgotten).unwrap();
    assert_eq!(listed(&rig, 1)["harnessSessionId"], "");
    rig.up();
    rig.until("the id", || {
        (listed(&rig, 1)["harnessSessionId"] == id).then_some(())
    });
}

#[test]
fn di29_a_harness_that_cannot_confirm_ends_at_pasted_and_is_marked() {
    let rig = rig("  harnesses:\n    mute: {command: cat}\n    \
                   echoing: {command: cat, confirm: 'screen:the-loop delivery dlv-'}\n");
    rig.up();
    for (number, name, reason) in [
        (1, "mute", "no-confirmation"),
        (2, "echoing", "screen-seen"),
    ] {
        let id = start_with(&rig, number, &[&format!("harness:{name}")]);
        let done = rig.event("dispatch.succeeded", |e| e["delivery_id"] == id.as_str());
        assert_eq!(done["state"], "pasted", "{done}");
        assert_eq!(done["reason"], reason, "{done}");
        let later = rig.say(number, "a second word");
        rig.event("dispatch.succeeded", |e| e["delivery_id"] == later.as_str());
        assert!(rig.screen(number).contains("the-loop delivery dlv-"));
        let record = listed(&rig, number);
        assert_eq!(record["harness"], name);
        assert!(record["cannot"].as_array().unwrap().len() >= 2, "{record}");
    }
    let done = rig.program(&["sessions", "list"]).output().unwrap();
    let table = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        table.contains("mute*") && table.contains("echoing*"),
        "{table}"
    );
    let notes = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(notes.contains("note: mute: it does not prove"), "{notes}");
    assert!(rig.events("delivery.confirmed").is_empty());
    // It cannot be resumed: a new conversation, and the log says so.
    rig.kill_agent(1);
    let again = rig.say(1, "a third word");
    rig.event("dispatch.succeeded", |e| e["delivery_id"] == again.as_str());
    let back = rig.event("session.respawned", |_| true);
    assert_eq!(back["resumed"], false, "{back}");
}

#[test]
fn di33_a_label_that_names_no_harness_starts_nothing_and_is_said_once() {
    let rig = rig("");
    rig.up();
    for (number, labels, words) in [
        (1, &["harness:nobody"][..], "names no harness"),
        (
            2,
            &["harness:demo", "harness:claude"][..],
            "more than one label",
        ),
    ] {
        let id = start_with(&rig, number, labels);
        let item = format!("github:octo/repo#{number}");
        let failed = rig.event("session.spawn_failed", |e| e["work_item"] == item.as_str());
        assert_eq!(failed["will_retry"], false, "{failed}");
        let error = failed["error"].as_str().unwrap();
        assert!(error.contains(words), "{failed}");
        rig.event("delivery.abandoned", |e| e["delivery_id"] == id.as_str());
    }
    let list = rig.ok(&["sessions", "list", "--format", "json"]);
    assert_eq!(list.trim(), "[]");
    assert_eq!(rig.events("session.spawn_failed").len(), 2);
}

#[test]
fn di33_a_repository_has_its_harness_and_a_missing_program_is_said_with_its_remedy() {
    let rig = rig("  repoHarness: {octo/repo: ghost}\n  \
                   harnesses: {ghost: {command: no-such-program-here}}\n");
    rig.up();
    let id = start_with(&rig, 1, &[]);
    let failed = rig.event("session.spawn_failed", |_| true);
    assert_eq!(failed["harness"], "ghost", "{failed}");
    assert_eq!(failed["error"], "no-such-program-here is not on PATH");
    let remedy = failed["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("routing.harnesses.ghost.command"),
        "{failed}"
    );
    rig.event("delivery.abandoned", |e| e["delivery_id"] == id.as_str());
    assert_eq!(rig.events("session.spawn_failed").len(), 1, "no storm");
    // A label goes over the repository's harness.
    let other = start_with(&rig, 2, &["harness:demo"]);
    rig.confirmed(&other);
    assert_eq!(listed(&rig, 2)["harness"], "demo");
}

#[test]
fn di33_cursor_is_registered_by_id_and_what_it_cannot_do_is_said() {
    let rig = rig("");
    let done = rig
        .program(&[
            "sessions",
            "register",
            "github:octo/repo#9",
            "--harness",
            "cursor",
        ])
        .args(["--harness-session-id", "0f1e2d3c-4b5a"])
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert!(done.status.success(), "{err}");
    assert!(
        out.contains("registered github:octo/repo#9 -> cursor:0f1e2d3c"),
        "{out}"
    );
    assert!(err.contains("note: cursor: it does not prove"), "{err}");
    assert_eq!(listed(&rig, 9)["confirms"], "none");
}
