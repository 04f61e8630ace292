//! The life of the daemon (SE-18 to SE-25).

use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use super::home::{Home, eventually, ran};

const WEBHOOK: &str = "webhooks: {ghWebhook: {enabled: true, port: PORT}}\n";

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

#[test]
fn se19_se21_start_stop_and_twice() {
    let home = Home::with("");
    let started = home.run(&["start"]);
    assert_eq!(started.code, 0, "{}", started.err);
    let mut rows = started.out.lines();
    let service = rows.next().unwrap();
    assert!(
        service.starts_with("service      started         [enabled]   pid "),
        "{service}"
    );
    assert_eq!(
        rows.next().unwrap(),
        "gh-webhook   disabled        [disabled]  webhooks.ghWebhook.enabled is false"
    );
    let again = home.run(&["start"]);
    assert_eq!(again.code, 0);
    assert!(
        again
            .out
            .starts_with("service      already-running [enabled]"),
        "{}",
        again.out
    );
    let json = home.json(&["start"]);
    assert_eq!(json["ok"], true);
    assert_eq!(json["services"][0]["outcome"], "already-running");
    assert_eq!(json["services"][1]["running"], false);
    let began = Instant::now();
    let stopped = home.run(&["stop"]);
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(stopped.code, 0, "{}", stopped.err);
    assert!(
        stopped.out.starts_with("service      stopped"),
        "{}",
        stopped.out
    );
    let again = home.run(&["stop"]);
    assert_eq!(again.code, 0);
    assert!(
        again.out.starts_with("service      not-running"),
        "{}",
        again.out
    );
    let names: Vec<String> = home
        .events("daemon.*")
        .iter()
        .map(|e| e["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.first().unwrap(), "daemon.started");
    assert_eq!(
        names[names.len() - 2..],
        ["daemon.stopping", "daemon.stopped"]
    );
    assert!(!home.root().join("service.pid").exists());
    assert!(!home.root().join("local/the-loop.sock").exists());
}

#[test]
fn se19_a_child_that_dies_shows_its_last_words() {
    let home = Home::with("");
    std::fs::create_dir_all(home.root().join("service.pid")).unwrap();
    let ran = home.run(&["start"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("error: the daemon did not start (exit 1)"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("cannot lock"), "{}", ran.err);
    assert!(ran.err.contains("hint: its log: "), "{}", ran.err);
}

#[test]
fn se19_nothing_that_brings_work_in_is_said() {
    let home = Home::bare();
    home.config("version: 1.0.0\n");
    let ran = home.run(&["start"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err
            .contains("warning: nothing is enabled that brings work in\n"),
        "{}",
        ran.err
    );
}

#[test]
fn se18_se24_the_receiver_has_its_row() {
    let port = free_port();
    let home = Home::with(&WEBHOOK.replace("PORT", &port.to_string()));
    let mut command = home.command();
    let secret = ("THE_LOOP_GH_WEBHOOK_SECRET", "0123456789abcdef");
    let started = ran(command.env(secret.0, secret.1).arg("start"));
    assert_eq!(started.code, 0, "{}", started.err);
    let row = format!("127.0.0.1:{port}/gh-webhook");
    assert!(started.out.contains(&row), "{}", started.out);
    let status = home.run(&["status"]);
    assert_eq!(status.code, 0, "{}{}", status.out, status.err);
    assert!(
        status
            .out
            .contains("gh-webhook   running         [enabled]"),
        "{}",
        status.out
    );
    assert!(status.out.contains("no delivery yet"), "{}", status.out);
    let json = home.json(&["status"]);
    assert_eq!(json["services"][1]["bind"], format!("127.0.0.1:{port}"));
    let listening = std::net::TcpStream::connect(("127.0.0.1", port));
    listening
        .unwrap()
        .write_all(b"GET / HTTP/1.1\r\n\r\n")
        .unwrap();
    home.ok(&["stop"]);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    assert_eq!(home.events("server.stopped").len(), 1);
}

#[test]
fn se18_a_receiver_without_a_secret_is_misconfigured_and_hides_nothing() {
    let home = Home::bare();
    let port = free_port().to_string();
    home.config(&format!(
        "version: 1.0.0\nrouting: {{enabled: true, authorizedUsers: [ada]}}\n{}",
        WEBHOOK.replace("PORT", &port)
    ));
    let started = home.run(&["start"]);
    assert_eq!(started.code, 1);
    assert!(
        started.out.contains("service      started"),
        "{}",
        started.out
    );
    assert!(
        started.out.contains("gh-webhook   misconfigured"),
        "{}",
        started.out
    );
    let status = home.run(&["status"]);
    assert_eq!(status.code, 1);
    assert!(status.out.contains("misconfigured"), "{}", status.out);
}

#[test]
fn se18_a_port_that_is_taken_fails_the_receiver_alone() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let home = Home::with(&WEBHOOK.replace("PORT", &port.to_string()));
    let started = home.run(&["start"]);
    assert_eq!(started.code, 1);
    assert!(
        started.out.contains("service      started"),
        "{}",
        started.out
    );
    assert!(
        started.out.contains("gh-webhook   failed"),
        "{}",
        started.out
    );
    drop(taken);
    eventually("the receiver is tried again", || {
        home.ok(&["events", "--type", "server.started"])
            .contains("server.started")
            .then_some(())
    });
}

#[test]
fn se20_in_front_it_notifies_and_a_signal_ends_it() {
    let home = Home::with("");
    let notify = home.path("notify");
    let socket = UnixDatagram::bind(&notify).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_the-loop"))
        .arg("run")
        .env("HOME", home.path("home"))
        .env("NOTIFY_SOCKET", &notify)
        .env("TMUX_TMPDIR", home.path("tmux"))
        .current_dir(home.path(""))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut word = [0u8; 64];
    let n = socket.recv(&mut word).unwrap();
    assert_eq!(&word[..n], b"READY=1");
    let blocked = home.run(&["run"]);
    assert_eq!(blocked.code, 1);
    assert!(
        blocked
            .err
            .contains("a daemon runs on this state root already"),
        "{}",
        blocked.err
    );
    let pid = child.id().to_string();
    std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut out = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert!(out.starts_with("service      started"), "{out}");
    let stopping = &home.events("daemon.stopping")[0];
    assert_eq!(stopping["reason"], "signal");
}

#[test]
fn st26_a_killed_daemon_leaves_a_lock_that_is_free_and_is_told_of() {
    let home = Home::with("");
    let json = home.json(&["start"]);
    let pid = json["services"][0]["pid"].as_u64().unwrap().to_string();
    std::process::Command::new("kill")
        .args(["-KILL", &pid])
        .status()
        .unwrap();
    eventually("the lock is free", || {
        home.run(&["status"])
            .out
            .starts_with("service      not-running")
            .then_some(())
    });
    assert!(home.root().join("service.pid").exists());
    let started = home.run(&["start"]);
    assert_eq!(started.code, 0, "{}", started.err);
    let recovered = &home.events("daemon.recovered")[0];
    assert_eq!(recovered["previous_pid"].as_u64().unwrap().to_string(), pid);
}

#[test]
fn se22_restart_replaces_the_daemon_and_says_so() {
    let home = Home::with("");
    let first = home.json(&["start"])["services"][0]["pid"].clone();
    let rows = home.json(&["restart"]);
    assert_eq!(rows["ok"], true);
    assert_ne!(rows["services"][0]["pid"], first);
    assert_eq!(home.events("restart.completed")[0]["ok"], true);
    assert_eq!(home.events("daemon.stopping")[0]["reason"], "restart");
}

#[test]
fn se25_cf34_cf35_status_tells_of_the_configuration() {
    let home = Home::with("");
    home.ok(&["start"]);
    let json = home.json(&["status"]);
    for field in [
        "ok",
        "version",
        "stateRoot",
        "config",
        "services",
        "inbox",
        "limits",
        "sessions",
        "waiting",
        "saved",
        "problems",
    ] {
        assert!(json.get(field).is_some(), "{field}");
    }
    assert_eq!(json["ok"], true);
    assert_eq!(json["config"]["problem"], serde_json::Value::Null);
    let file = home.root().join("cli-config.yaml");
    let good = std::fs::read_to_string(&file).unwrap();
    home.config(&format!("{good}nope: 1\n"));
    eventually("the broken edit is rejected", || {
        home.run(&["events", "--type", "config.rejected"]);
        let seen = std::fs::read_to_string(home.root().join("logs/events.jsonl")).unwrap();
        seen.contains("config.rejected").then_some(())
    });
    let status = home.run(&["status"]);
    assert_eq!(status.code, 0, "{}", status.err);
    assert!(
        status.out.contains("running on the settings loaded "),
        "{}",
        status.out
    );
    home.config(&good.replace(
        "resumeProbeSeconds: 0.2",
        "resumeProbeSeconds: 0.3, binary: tmux3",
    ));
    eventually("the good one is taken", || {
        let seen = std::fs::read_to_string(home.root().join("logs/events.jsonl")).unwrap();
        seen.contains("config.reloaded").then_some(())
    });
    let status = home.run(&["status"]);
    assert!(
        status.out.contains("restart      routing.tmux.binary"),
        "{}",
        status.out
    );
    home.config(&good);
}

#[test]
fn se21_force_ends_a_daemon_that_hangs() {
    let home = Home::with("");
    let pid = home.json(&["start"])["services"][0]["pid"]
        .as_u64()
        .unwrap()
        .to_string();
    std::process::Command::new("kill")
        .args(["-STOP", &pid])
        .status()
        .unwrap();
    let status = home.run(&["status"]);
    assert_eq!(status.code, 1);
    assert!(
        status.out.contains("service      not-answering"),
        "{}",
        status.out
    );
    let failed = home.run(&["stop", "--timeout", "0"]);
    assert_eq!(failed.code, 1);
    assert!(failed.out.contains("service      failed"), "{}", failed.out);
    let killed = home.run(&["stop", "--timeout", "0", "--force"]);
    assert_eq!(killed.code, 0, "{}", killed.out);
    assert!(killed.out.contains("killed"), "{}", killed.out);
}
