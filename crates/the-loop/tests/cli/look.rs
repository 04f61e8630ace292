//! Reading commands: events, deliveries, config (SE-63 to SE-67, SE-78 to SE-83).

use super::home::Home;

#[test]
fn se67_events_filters_and_formats() {
    let home = Home::with("");
    let none = home.run(&["events", "--format", "json"]);
    assert_eq!((none.code, none.out.as_str()), (0, "[]\n"));
    assert!(
        none.err.contains("note: there is no event log at "),
        "{}",
        none.err
    );
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    home.ok(&["tickets", "new", "--title", "two", "--no-wait"]);
    let accepted = home.events("delivery.*");
    assert_eq!(accepted.len(), 2);
    let id = accepted[0]["delivery_id"].as_str().unwrap();
    let of_one = home.json(&["events", "--delivery-id", id]);
    assert_eq!(of_one.as_array().unwrap().len(), 1);
    let of_item = home.json(&["events", "--work-item", "local:Demo/Hello#2"]);
    assert_eq!(of_item[0]["event"], "ticket.changed");
    assert_eq!(of_item.as_array().unwrap().len(), 1);
    let last = home.ok(&["events", "--limit", "1", "--format", "jsonl"]);
    let stored = std::fs::read_to_string(home.root().join("logs/events.jsonl")).unwrap();
    assert_eq!(last.trim_end(), stored.lines().last().unwrap());
    let text = home.ok(&[
        "events", "--source", "tracker", "--level", "info", "--since", "1h",
    ]);
    assert!(text.starts_with("Time "), "{text}");
    assert!(text.contains("ticket.changed"), "{text}");
    assert_eq!(
        home.json(&["events", "--until", "2001-01-01"])
            .as_array()
            .unwrap()
            .len(),
        0
    );
    for bad in [
        &["events", "--source", "nobody"][..],
        &["events", "--level", "loud"],
        &["events", "--since", "yesterday"],
        &["events", "--work-item", "x"],
    ] {
        assert_eq!(home.run(bad).code, 2, "{bad:?}");
    }
    let unknown = home.run(&["events", "--type", "session.spwaned"]);
    assert_eq!(unknown.code, 0);
    assert!(unknown.err.contains("session.spawned"), "{}", unknown.err);
    assert!(
        home.ok(&["events", "--types"])
            .contains("delivery.confirmed")
    );
}

#[test]
fn ev25_follow_gives_what_comes_and_ends_with_the_interrupt() {
    use std::io::{BufRead, BufReader};
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_the-loop"))
        .args([
            "events",
            "--follow",
            "--format",
            "json",
            "--type",
            "ticket.changed",
        ])
        .env("HOME", home.path("home"))
        .current_dir(home.path(""))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("#1"));
    home.ok(&["tickets", "new", "--title", "two", "--no-wait"]);
    assert!(lines.next().unwrap().unwrap().contains("#2"));
    let pid = child.id().to_string();
    let told = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(told.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn ev25_follow_ends_when_nobody_reads_it_any_more() {
    use std::io::{BufRead, BufReader};
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_the-loop"))
        .args(["events", "--follow"])
        .env("HOME", home.path("home"))
        .current_dir(home.path(""))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    drop(reader);
    // Nothing is written to the log meanwhile.
    let ended = super::home::eventually("it ends", || child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn se63_se64_deliveries_are_listed_and_shown() {
    let home = Home::with("");
    let empty = home.run(&["deliveries", "list"]);
    assert_eq!((empty.code, empty.out.as_str()), (0, ""));
    assert_eq!(empty.err, "note: no deliveries\n");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let all = home.json(&["deliveries", "list"]);
    let line = &all[0];
    for field in [
        "id",
        "deliveryId",
        "workItem",
        "endpoint",
        "ingress",
        "event",
        "action",
        "actor",
        "state",
        "reason",
        "acceptedAt",
        "updatedAt",
        "attempts",
        "nextTryAt",
        "heldBecause",
    ] {
        assert!(line.get(field).is_some(), "{field}");
    }
    assert_eq!(line["state"], "accepted");
    assert_eq!(line["ingress"], "tracker");
    let text = home.ok(&["deliveries", "list"]);
    assert!(text.starts_with("Id  Age  Work item  From"), "{text}");
    let by_id = home.json(&["deliveries", "show", line["deliveryId"].as_str().unwrap()]);
    let by_number = home.json(&["deliveries", "show", "1"]);
    assert_eq!(by_id, by_number);
    assert_eq!(by_id["trail"][0]["event"], "delivery.accepted");
    assert_eq!(home.run(&["deliveries", "show", "99"]).code, 1);
    home.ok(&[
        "tickets",
        "comment",
        "local:demo/hello#1",
        "--body",
        "a\u{1b}[31mb",
        "--no-wait",
    ]);
    let shown = home.ok(&["deliveries", "show", "2", "--payload"]);
    assert!(shown.contains("| a\\"), "{shown}");
    assert!(!shown.contains('\u{1b}'));
    assert_eq!(home.run(&["deliveries", "list", "--state", "nope"]).code, 2);
    assert_eq!(home.run(&["deliveries", "list", "--since", "nope"]).code, 2);
}

#[test]
fn se65_se66_deliveries_are_dropped_once_and_retried() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let dropped = home.ok(&["deliveries", "drop", "1", "--reason", "by hand"]);
    assert_eq!(dropped, "1: dropped\n");
    let again = home.run(&["deliveries", "drop", "1"]);
    assert_eq!(
        (again.code, again.err.as_str()),
        (1, "1: already dropped\n")
    );
    let event = &home.events("delivery.discarded")[0];
    assert_eq!(event["note"], "by hand");
    assert_eq!(event["was"], "accepted");
    let unknown = home.run(&["deliveries", "retry", "77"]);
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (1, "77: no such delivery\n")
    );
    assert_eq!(home.run(&["deliveries", "drop"]).code, 2);
    let back = home.ok(&["deliveries", "retry", "1"]);
    assert_eq!(back, "1: queued again\n");
    assert_eq!(home.events("delivery.retried").len(), 1);
}

#[test]
fn se78_to_se83_config_verbs() {
    let home = Home::with("");
    let path = home.ok(&["config", "path"]);
    assert!(
        path.trim_end().ends_with("home/.the-loop/cli-config.yaml"),
        "{path}"
    );
    assert!(home.ok(&["config", "path", "--all"]).contains("taken"));
    let bare = Home::bare();
    let none = bare.run(&["config", "path"]);
    assert_eq!((none.code, none.out.as_str()), (0, ""));
    assert_eq!(none.err, "(none: built-in defaults)\n");
    let check = home.ok(&["config", "check"]);
    assert_eq!(check, "ok: ~/.the-loop/cli-config.yaml (version 1.0.0)\n");
    let shown = home.ok(&["config", "show", "routing.defaultHarness"]);
    assert_eq!(shown, "demo\n");
    let origin = home.ok(&["config", "show", "routing.tmux", "--origin"]);
    assert!(origin.contains("# default"), "{origin}");
    assert!(origin.contains("# file "), "{origin}");
    let unknown = home.run(&["config", "show", "routing.nope"]);
    assert_eq!(unknown.code, 1);
    let schema: serde_json::Value = serde_json::from_str(&home.ok(&["config", "schema"])).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    let missing = home.run(&["-c", "/nope.yaml", "config", "check"]);
    assert_eq!(missing.code, 2);
}
