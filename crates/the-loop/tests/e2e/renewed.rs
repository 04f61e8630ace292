//! What goes on around a relaunch: turns in work, `status`, the daemon's own look, and a command that is killed
//! (seed 003, R3 and R4; SE-26, SE-59, DI-14).

use std::time::Duration;

use serde_json::{Value, json};

use super::restart::{held, item, reconfigure, record, restart, restarted, rig, rotate, row};
use super::rig::Rig;

fn status(rig: &Rig) -> (i32, Value, String) {
    let done = rig
        .program(&["status", "--format", "json"])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    let text = rig.program(&["status"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    (done.status.code().unwrap(), document, text)
}

/// Waits for the end of the agent's turn.
pub fn idle(rig: &Rig, number: u64) {
    rig.until("an idle agent", || {
        rig.screen(number)
            .contains("demo-agent: idle")
            .then_some(())
    });
}

#[test]
fn se59_an_agent_in_its_work_is_told_to_go_on_and_an_idle_one_is_told_nothing() {
    let rig = rig("TOKEN=old\nTHE_LOOP_DEMO_BUSY_MS=600000\n");
    rig.up();
    rig.start(1);
    rotate(&rig, "TOKEN=old\n");
    rig.start(2);
    idle(&rig, 2);
    let (code, document) = restarted(&rig, &["--all", "--when-idle", "0"]);
    assert_eq!(code, 0, "{document:#}");
    assert_eq!(
        row(&document, 1)["detail"],
        "still working after 0 s; left running"
    );
    assert_eq!(row(&document, 2)["outcome"], "restarted", "{document:#}");
    rotate(&rig, "TOKEN=new\n");
    let done = restart(&rig, &["--all"]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let note = format!("note: {}: told to go on: confirmed", item(1));
    assert!(said.contains(&note), "{said}");
    let renewed = |number| {
        let prompts = rig.prompts(number);
        let first = |prompt: &String| prompt.lines().next().unwrap_or_default().to_owned();
        let firsts: Vec<String> = prompts.iter().map(first).collect();
        firsts
            .iter()
            .filter(|first| first.ends_with(": environment renewed"))
            .count()
    };
    assert_eq!((renewed(1), renewed(2)), (1, 0), "{:#?}", rig.prompts(1));
    let told = rig.prompts(1).concat();
    assert!(told.contains("Your environment was renewed"), "{told}");
    assert!(!told.contains("The ticket was edited"), "{told}");
}

#[test]
fn se59_without_a_daemon_the_command_itself_delivers() {
    let rig = rig("TOKEN=old\nTHE_LOOP_DEMO_BUSY_MS=600000\n");
    rig.up();
    rig.start(1);
    rig.kill();
    rotate(&rig, "TOKEN=new\n");
    let done = restart(&rig, &[&item(1)]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("told to go on: confirmed"), "{said}");
    assert_eq!(held(&rig, 1, "TOKEN").as_deref(), Some("new"));
    let renewed = rig
        .prompts(1)
        .into_iter()
        .filter(|p| p.contains("environment renewed"));
    assert_eq!(renewed.count(), 1);
}

#[test]
fn r3_1_r3_2_r3_3_r3_5_status_tells_who_is_stale_in_one_line_and_stays_what_it_is() {
    let rig = rig("TOKEN=old\nKEPT=same\n");
    rig.up();
    rig.start(1);
    rig.start(2);
    let (code, document, text) = status(&rig);
    let block = &document["sessionEnvironment"];
    let counts = |block: &Value| {
        let of = |name: &str| block[name].as_u64().unwrap();
        (
            block["configured"] == true,
            of("running"),
            of("stale"),
            of("unverified"),
        )
    };
    assert_eq!(counts(block), (true, 2, 0, 0), "{block:#}");
    assert!(!text.contains("stale"), "{text}");
    let well = (code, document["ok"].clone());
    rotate(&rig, "TOKEN=new\nKEPT=same\n");
    rig.tmux(&["kill-session", "-t", "=loop-github-octo-repo-2"]);
    let (code, document, text) = status(&rig);
    assert_eq!((code, document["ok"].clone()), well, "ok is untouched");
    let block = &document["sessionEnvironment"];
    assert_eq!(counts(block), (true, 1, 1, 0), "{block:#}");
    assert_eq!(
        block["sessions"][0],
        json!({"ref": item(1), "tmuxTarget": "loop-github-octo-repo-1", "verdict": "stale", "stale": ["TOKEN"]})
    );
    assert_eq!(block["sessions"][1]["verdict"], "not-running");
    let line = "\nsessions 1 of 1 running with a stale environment \u{2014} `the-loop sessions restart --all`\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn r3_4_a_status_that_cannot_tell_is_still_a_status() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    let (well, before, _) = status(&rig);
    std::fs::remove_file(rig.root("env")).unwrap();
    let (code, document, _) = status(&rig);
    assert_eq!((code, &document["ok"]), (well, &before["ok"]));
    let block = &document["sessionEnvironment"];
    let empty =
        json!({"configured": true, "running": 0, "stale": 0, "unverified": 0, "sessions": []});
    assert_eq!(*block, empty);
    reconfigure(&rig, "env: {file: env}", "env: {}");
    let (_, document, _) = status(&rig);
    assert_eq!(document["sessionEnvironment"]["configured"], false);
}

#[test]
fn r4_1_r4_2_a_session_is_born_fresh_with_blanks_and_our_own_names_last() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rotate(
        &rig,
        "TOKEN=new\nBLANK=\nTHE_LOOP_INSTANCE=forged\nTHE_LOOP_WORK_ITEM=forged\n",
    );
    rig.start(1);
    assert_eq!(held(&rig, 1, "TOKEN").as_deref(), Some("new"));
    assert_eq!(held(&rig, 1, "BLANK").as_deref(), Some(""));
    assert_eq!(held(&rig, 1, "THE_LOOP_WORK_ITEM"), Some(item(1)));
    let (_, document) = restarted(&rig, &["--all", "--dry-run"]);
    assert_eq!(document["names"], json!(["BLANK", "TOKEN"]));
    assert_eq!(row(&document, 1)["detail"], "fresh", "{document:#}");
    let (_, document) = restarted(&rig, &["--all"]);
    assert_eq!(row(&document, 1)["outcome"], "restarted", "{document:#}");
    let instance = std::fs::read_to_string(rig.root("local/instance")).unwrap();
    assert_eq!(
        held(&rig, 1, "THE_LOOP_INSTANCE").as_deref(),
        Some(instance.trim())
    );
    assert_eq!(held(&rig, 1, "BLANK").as_deref(), Some(""));
}

#[test]
fn di14_the_daemon_says_once_that_sessions_went_stale_and_that_they_are_not_any_more() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    rotate(&rig, "TOKEN=new\n");
    let drift = rig.event("env.drift", |_| true);
    assert_eq!(drift["work_items"], json!([item(1)]), "{drift}");
    assert_eq!(
        (&drift["names"], &drift["count"]),
        (&json!(["TOKEN"]), &json!(1))
    );
    let (code, _) = restarted(&rig, &["--all"]);
    assert_eq!(code, 0);
    // The next look after the relaunch is due in half a minute; a touched file makes it sooner.
    rotate(&rig, "TOKEN=new\n# touched\n");
    rig.event("env.fresh", |_| true);
    assert_eq!(rig.events("env.drift").len(), 1);
}

#[test]
fn di44_a_restart_that_is_killed_leaves_one_agent_and_no_stuck_record() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    for round in 0..12u64 {
        rotate(&rig, &format!("TOKEN=value-{round}\n"));
        let mut child = rig
            .program(&["sessions", "restart", "--all"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::park_timeout(Duration::from_millis(8 + round * 8));
        let _ = child.kill();
        let _ = child.wait();
        rig.confirmed(&rig.say(1, &format!("said after kill {round}")));
        assert_eq!(record(&rig, 1)["status"], "active", "{}", rig.trace());
        // A child that an agent has just forked looks like the agent until it becomes what it runs.
        rig.until("one agent", || {
            let agents = rig.marked().into_iter().filter(|pid| {
                let argv = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&argv).contains("demo-agent")
            });
            let agents: Vec<String> = agents.map(|pid| pid.to_string()).collect();
            (agents == [rig.pane_pid(1)]).then_some(())
        });
    }
    let told = rig.prompts(1).concat();
    for round in 0..12 {
        let words = format!("said after kill {round}\"");
        assert_eq!(told.matches(&words).count(), 1, "{told}");
    }
    assert_eq!(
        super::rig::files(&rig.root("local/demo")).len(),
        1,
        "one conversation"
    );
    assert!(
        rig.events("session.resume_failed").is_empty(),
        "{}",
        rig.trace()
    );
}

#[test]
fn r1_2_the_session_of_a_pull_request_in_an_items_record_is_one_of_all() {
    let rig = rig("TOKEN=old\n");
    rig.up();
    rig.start(1);
    rig.start(16);
    rig.kill();
    // As a record of an item with a pull request of its own session is.
    let mut parent = record(&rig, 1);
    parent["pullRequests"] = json!([record(&rig, 16)]);
    let file = "home/.the-loop/local/github-octo-repo-1.json";
    rig.write(file, &format!("{parent:#}\n"));
    std::fs::remove_file(rig.root("local/github-octo-repo-16.json")).unwrap();
    rotate(&rig, "TOKEN=new\n");
    let before = record(&rig, 1)["pid"].clone();
    let (code, document) = restarted(&rig, &[&item(16)]);
    assert_eq!(
        (code, row(&document, 16)["outcome"].as_str()),
        (0, Some("restarted"))
    );
    assert_eq!(held(&rig, 16, "TOKEN").as_deref(), Some("new"));
    let parent = record(&rig, 1);
    assert_eq!(
        parent["pid"], before,
        "the item's own session was not meant"
    );
    let endpoint = &parent["pullRequests"][0];
    assert_eq!(endpoint["pid"].to_string(), rig.pane_pid(16));
    assert_eq!(
        (&endpoint["status"], &endpoint["spawn"]),
        (&json!("active"), &Value::Null)
    );
    let told = rig.event("session.restarted", |e| e["endpoint"] == item(16).as_str());
    assert_eq!(told["work_item"], item(1).as_str(), "{told}");
    let (_, document) = restarted(&rig, &["--all"]);
    for number in [1, 16] {
        assert_eq!(
            row(&document, number)["outcome"],
            "restarted",
            "{document:#}"
        );
    }
}
