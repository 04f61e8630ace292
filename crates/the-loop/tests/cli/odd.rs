//! What is wrong is said where somebody looks: the inbox, missing programs, records that cannot be read
//! (ST-31, ST-32, ST-61, SE-1, SE-6, SE-19, SE-24).

use super::home::{Home, eventually, ran};

const ITEM: &str = "local:demo/hello#1";

#[test]
fn st61_a_damaged_inbox_brings_the_daemon_up_without_ingress() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    std::fs::write(home.root().join("local/inbox.db"), vec![b'x'; 8192]).unwrap();
    for gone in ["local/inbox.db-wal", "local/inbox.db-shm"] {
        let _ = std::fs::remove_file(home.root().join(gone));
    }
    let started = home.run(&["start"]);
    assert_eq!(started.code, 1, "{}{}", started.out, started.err);
    assert!(
        started
            .out
            .starts_with("service      started         [enabled]   pid "),
        "{}",
        started.out
    );
    assert!(started.out.contains("is damaged"), "{}", started.out);
    let status = home.run(&["status"]);
    assert_eq!(status.code, 1, "{}", status.out);
    assert!(
        status.out.starts_with("service      running"),
        "{}",
        status.out
    );
    assert!(
        status.out.contains("inbox        cannot be read"),
        "{}",
        status.out
    );
    let problem = status.out.lines().find(|l| l.starts_with("problem"));
    let problem = problem.unwrap_or_default();
    assert!(
        problem.contains("the-loop stop, move local/inbox.db*"),
        "{}",
        status.out
    );
    let json = home.json(&["status"]);
    assert_eq!(json["ok"], false);
    assert_eq!(json["problems"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(home.events("inbox.damaged").len(), 1);
    // What the inbox would tell is missing; the rest is listed.
    let listed = home.run(&["sessions", "list"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    assert!(listed.err.contains("warning: the inbox"), "{}", listed.err);
    let again = home.run(&["start"]);
    assert_eq!(again.code, 0, "{}", again.out);
    assert_eq!(home.run(&["stop"]).code, 0);
    std::fs::remove_file(home.root().join("local/inbox.db")).unwrap();
    home.ok(&["start"]);
    home.ok(&["status"]);
}

#[test]
fn se19_a_start_warns_of_programs_that_are_missing() {
    let home = Home::with("");
    let mut command = home.command();
    let started = ran(command.env("PATH", "/nowhere").arg("start"));
    assert_eq!(started.code, 0, "{}", started.err);
    assert!(
        started
            .err
            .contains("tmux is not on PATH: no session can be started"),
        "{}",
        started.err
    );
    home.ok(&["stop"]);
    let quiet = home.run(&["start"]);
    assert!(!quiet.err.contains("PATH"), "{}", quiet.err);
}

#[test]
fn se1_a_missing_subcommand_names_those_that_are_for_people() {
    let home = Home::bare();
    let bare = home.run(&[]);
    assert_eq!(bare.code, 2);
    assert!(bare.err.contains("sessions, deliveries"), "{}", bare.err);
    let is_mark = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    for hidden in ["hook", "pane-exec", "demo-agent"] {
        let is_named = bare.err.split(is_mark).any(|word| word == hidden);
        assert!(!is_named, "{}", bare.err);
    }
}

#[test]
fn se64_an_empty_id_is_shown_as_one() {
    let home = Home::with("");
    let ran = home.run(&["deliveries", "show", ""]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.starts_with("error: \"\": no such delivery\n"),
        "{}",
        ran.err
    );
}

#[test]
fn st32_stop_ends_an_agent_whose_record_cannot_be_read_and_says_so() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "Say hello", "--no-wait"]);
    home.ok(&["sessions", "start", ITEM, "--no-comment"]);
    let record = home.root().join("local/local-demo-hello-1.json");
    std::fs::write(&record, "{\n  \"workItem\": {").unwrap();
    let paused = home.run(&["sessions", "pause", ITEM, "--no-comment"]);
    assert_eq!(paused.code, 1);
    let words = format!("error: {ITEM}: its session record cannot be read: ");
    assert!(paused.err.starts_with(&words), "{}", paused.err);
    assert!(paused.err.contains("line 2"), "{}", paused.err);
    let stopped = home.run(&["sessions", "stop", ITEM, "--no-comment"]);
    assert_eq!(stopped.code, 1, "what could not be recorded is an error");
    assert_eq!(stopped.out, format!("{ITEM}: ended a live demo session\n"));
    assert!(
        stopped.err.contains("its session record cannot be read"),
        "{}",
        stopped.err
    );
    let panes = home.tmux(&["list-panes", "-a", "-F", "#{pane_dead}"]);
    eventually("the end of the agent", || {
        let panes = home.tmux(&["list-panes", "-a", "-F", "#{pane_dead}"]);
        (String::from_utf8_lossy(&panes.stdout).trim() == "1").then_some(())
    });
    assert!(panes.status.success());
    let left = std::fs::read_to_string(&record).unwrap();
    assert_eq!(left, "{\n  \"workItem\": {", "it stays byte for byte");
    let again = home.run(&["sessions", "stop", ITEM, "--no-comment"]);
    assert_eq!(again.code, 1);
    assert!(
        again.err.contains("no agent of it was found"),
        "{}",
        again.err
    );
}
