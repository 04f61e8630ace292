//! Sessions that run, with the demo harness on a private tmux server (SE-31 to SE-33, SE-77, SE-104,
//! DI-6).

use super::home::{Home, eventually};

const ITEM: &str = "local:demo/hello#1";

fn ticket(home: &Home) {
    let made = home.ok(&["tickets", "new", "--title", "Say hello", "--no-wait"]);
    assert_eq!(made, "created local:demo/hello#1\n");
}

/// The rows of SE-31, from a start to the second stop, with whoever does the work.
fn walk(home: &Home) {
    ticket(home);
    let start = ["sessions", "start", ITEM];
    let started = home.run(&start);
    assert_eq!(started.code, 0, "{}{}", started.out, started.err);
    let target = "loop-local-demo-hello-1";
    let words = format!(
        "{ITEM}: spawned demo in {target}\n  tmux -L {} attach -t ={target}\n",
        home.socket()
    );
    assert_eq!(started.out, words, "{}", started.err);
    let again = home.run(&start);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(
        again.out,
        format!("{ITEM}: already running (demo in {target})\n")
    );
    let listed = home.json(&["sessions", "list"]);
    assert_eq!(listed[0]["status"], "active");
    assert_eq!(listed[0]["control"]["command"], "start");
    assert_eq!(listed[0]["control"]["source"], "cli");
    let paused = home.run(&["sessions", "pause", ITEM]);
    assert_eq!(paused.code, 0, "{}", paused.err);
    assert_eq!(
        paused.out,
        format!("{ITEM}: paused (events are not delivered and not replayed)\n")
    );
    let twice = home.run(&["sessions", "pause", ITEM]);
    assert_eq!(
        (twice.code, twice.err),
        (1, format!("{ITEM}: nothing to pause (recorded)\n"))
    );
    let resumed = home.run(&["sessions", "resume", ITEM]);
    assert_eq!(
        (resumed.code, resumed.out),
        (0, format!("{ITEM}: resumed\n"))
    );
    let twice = home.run(&["sessions", "resume", ITEM]);
    assert_eq!(
        (twice.code, twice.err),
        (1, format!("{ITEM}: nothing to resume\n"))
    );
    let stopped = home.json(&["sessions", "stop", ITEM]);
    assert_eq!(stopped["ok"], true, "{stopped}");
    assert_eq!(stopped["verb"], "stop");
    let item = &stopped["items"][0];
    assert_eq!(item["effect"], "stopped", "{stopped}");
    assert_eq!(item["wasLive"], true);
    assert_eq!(item["commented"], true);
    assert_eq!(item["workspaces"][0]["removed"], true, "{stopped}");
    let last = item["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["text"], format!("{ITEM}: stopped"));
    let twice = home.run(&["sessions", "stop", ITEM]);
    assert_eq!(
        (twice.code, twice.err),
        (1, format!("{ITEM}: nothing to stop (recorded)\n"))
    );
    let commands: Vec<String> = home
        .events("control.command")
        .iter()
        .map(|e| {
            format!(
                "{} {}",
                e["command"].as_str().unwrap(),
                e["effect"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "start spawned",
        "start running",
        "pause paused",
        "pause noop",
        "resume resumed",
        "stop stopped",
        "stop noop",
    ];
    assert_eq!(commands, expected);
    let ticket = home.json(&["tickets", "show", ITEM]);
    let said = ticket["entries"].to_string();
    assert!(said.contains("Issued from the command line by "), "{said}");
}

#[test]
fn se31_di6_the_verbs_without_a_daemon() {
    walk(&Home::with(""));
}

#[test]
fn se31_se10_the_verbs_beside_a_daemon() {
    let home = Home::with("");
    home.ok(&["start"]);
    walk(&home);
}

#[test]
fn se33_close_keeps_the_record_and_wishes_nothing() {
    let home = Home::with("");
    ticket(&home);
    home.ok(&["sessions", "start", ITEM, "--no-comment"]);
    let closed = home.run(&["sessions", "close", ITEM, "--kill-tmux"]);
    assert_eq!(closed.code, 0, "{}", closed.err);
    assert!(
        closed.out.ends_with(&format!("{ITEM}: closed\n")),
        "{}",
        closed.out
    );
    assert!(
        !home
            .tmux(&["has-session", "-t", "=loop-local-demo-hello-1"])
            .status
            .success()
    );
    let listed = home.json(&["sessions", "list"]);
    assert_eq!(listed[0]["status"], "closed");
    assert_eq!(listed[0]["control"], serde_json::Value::Null);
    let twice = home.run(&["sessions", "close", ITEM]);
    assert_eq!(
        (twice.code, twice.err),
        (1, format!("{ITEM}: no live session to close\n"))
    );
    assert_eq!(home.events("session.closed")[0]["via"], "cli");
}

#[test]
fn se77_a_start_keyword_on_a_new_ticket_brings_a_session_up() {
    let home = Home::with("");
    home.ok(&["start"]);
    let made = home.run(&["tickets", "new", "--title", "Say hello", "--start"]);
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(
        made.err.contains(&format!("note: {ITEM}: confirmed")),
        "{}",
        made.err
    );
    eventually("the agent replied", || {
        let ticket = home.json(&["tickets", "show", ITEM]);
        ticket["entries"]
            .to_string()
            .contains("demo-agent")
            .then_some(())
    });
    let closed = home.run(&["tickets", "close", ITEM]);
    assert_eq!(closed.code, 0, "{}", closed.err);
    assert_eq!(home.json(&["sessions", "list"])[0]["status"], "closed");
}

#[test]
fn se31_a_start_of_a_closed_ticket_is_rejected() {
    let home = Home::with("");
    ticket(&home);
    home.ok(&["tickets", "close", ITEM]);
    let ran = home.run(&["sessions", "start", ITEM]);
    assert_eq!(ran.code, 1);
    let words = format!("error: {ITEM}: not started: the ticket is closed\n");
    assert!(ran.err.starts_with(&words), "{}", ran.err);
}

#[test]
fn se31_a_start_that_fails_says_why() {
    let home = Home::with("env: {pass: [\"THE_LOOP_DEMO_*\"]}\n");
    ticket(&home);
    let mut command = home.command();
    let args = ["sessions", "start", ITEM];
    let ran = super::home::ran(command.env("THE_LOOP_DEMO_EXIT_AT_ONCE", "1").args(args));
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(
        ran.err
            .contains(&format!("error: {ITEM}: no session came up: ")),
        "{}",
        ran.err
    );
    let listed = home.json(&["sessions", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 0, "{listed}");
}

#[test]
fn se104_the_demo_shows_every_step() {
    let home = Home::bare();
    let ran = home.run(&["demo"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let steps: Vec<&str> = ran
        .out
        .lines()
        .map(|l| l.split(' ').next().unwrap())
        .collect();
    let expected = [
        "ticket",
        "armed",
        "spawned",
        "confirmed",
        "agent",
        "confirmed",
        "closed",
        "demo",
    ];
    assert_eq!(steps, expected, "{}", ran.out);
    assert!(
        ran.out.contains(" saved as local-demo-hello-1-"),
        "{}",
        ran.out
    );
    let left: Vec<_> = std::fs::read_dir(home.path("tmux"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("the-loop-demo-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn se29_se31_a_start_over_the_limit_waits_for_capacity() {
    let home = Home::with("");
    let config = home.root().join("cli-config.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    home.config(&text.replace(
        "minFreeMemoryMb: 0",
        "maxLiveSessions: 1, minFreeMemoryMb: 0",
    ));
    ticket(&home);
    home.ok(&["tickets", "new", "--title", "two", "--no-wait"]);
    home.ok(&["sessions", "start", ITEM]);
    let second = "local:demo/hello#2";
    let waits = home.run(&["sessions", "start", second]);
    assert_eq!(waits.code, 0, "{}", waits.err);
    let words = format!("{second}: waiting for capacity (1 of 1 sessions live)\n");
    assert_eq!(waits.out, words);
    let listed = home.json(&["sessions", "list"]);
    assert_eq!(listed[1]["ref"], second);
    assert_eq!(listed[1]["status"], "waiting-capacity");
    let status = home.run(&["status"]);
    assert!(status.out.contains("1 live"), "{}", status.out);
    assert!(
        status.out.contains("1 waiting for capacity"),
        "{}",
        status.out
    );
}

#[test]
fn se21_st53_work_that_is_queued_waits_for_the_next_daemon() {
    let home = Home::with("");
    ticket(&home);
    let label = [
        "tickets",
        "label",
        ITEM,
        "--add",
        "the-loop: auto-execute",
        "--no-wait",
    ];
    home.ok(&label);
    home.ok(&[
        "tickets",
        "comment",
        ITEM,
        "--body",
        "the-loop start",
        "--no-wait",
    ]);
    assert_eq!(home.json(&["status"])["inbox"]["waiting"], 3);
    home.ok(&["start"]);
    eventually("the session is up", || {
        let listed = home.json(&["sessions", "list"]);
        (listed[0]["status"] == "active").then_some(())
    });
    let began = std::time::Instant::now();
    let stopped = home.run(&["stop"]);
    assert_eq!(stopped.code, 0, "{}", stopped.out);
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
    assert!(
        stopped
            .err
            .contains("note: 1 session keeps running in tmux"),
        "{}",
        stopped.err
    );
    let target = "=loop-local-demo-hello-1";
    assert!(home.tmux(&["has-session", "-t", target]).status.success());
    home.ok(&[
        "tickets",
        "comment",
        ITEM,
        "--body",
        "one more",
        "--no-wait",
    ]);
    home.ok(&["start"]);
    eventually(
        "the comment reached the agent that was there before",
        || (home.events("delivery.confirmed").len() == 2).then_some(()),
    );
    assert_eq!(home.events("session.spawned").len(), 1);
}

#[test]
fn se9_a_verb_says_who_holds_the_item_and_gives_up() {
    let home = Home::with("");
    ticket(&home);
    home.ok(&["sessions", "start", ITEM, "--no-comment"]);
    let lock = home.root().join("local/locks/local-demo-hello-1.lock");
    let held = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&lock)
        .unwrap();
    held.lock().unwrap();
    std::fs::write(&lock, "4242 spawning 2026-03-01T09:12:44Z\n").unwrap();
    let busy = home.run(&["sessions", "pause", ITEM, "--lock-timeout", "2"]);
    assert_eq!(busy.code, 1);
    let note = format!("note: {ITEM} is busy (pid 4242, spawning); waiting\n");
    assert_eq!(busy.err, format!("{note}error: {ITEM}: busy\n"));
    drop(held);
    assert_eq!(home.json(&["sessions", "list"])[0]["status"], "active");
}
