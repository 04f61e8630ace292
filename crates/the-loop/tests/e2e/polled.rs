//! Polling, alone and beside webhooks, with restarts in between (IN-44, IN-49, IN-50, IN-52).

use serde_json::{Value, json};
use the_loop_testkit::FakeGithub;
use the_loop_testkit::fake_github::{Fault, TOKEN};

use super::payload::{LABEL, MAINTAINER, STRANGER};
use super::rig::{Rig, Wish};

const REPO: &str = "octo/repo";

/// A machine that polls the double every second.
fn polling(hub: &FakeGithub) -> Rig {
    machine(
        hub,
        "polling: {enabled: true, intervalSeconds: 1, sources: [{repos: [octo/repo]}]}\n",
    )
}

fn machine(hub: &FakeGithub, more: &str) -> Rig {
    let github = format!(
        ", apiUrl: '{}', tokenFile: token, cli: {{binary: ''}}",
        hub.api()
    );
    let rig = Rig::with(&Wish {
        github: &github,
        more,
        ..Wish::default()
    });
    rig.write("home/.the-loop/token", &format!("{TOKEN}\n"));
    rig
}

/// The double with an armed ticket.
fn hub() -> FakeGithub {
    let hub = FakeGithub::start();
    hub.change(|world| world.issue(REPO, 1, MAINTAINER, &[LABEL]));
    hub
}

fn says(hub: &FakeGithub, by: &str, words: &str) -> Value {
    hub.change(|world| world.comment(REPO, 1, by, words))
}

/// The webhook that GitHub sends about a comment.
fn webhook(hub: &FakeGithub, comment: &Value) -> Value {
    json!({
        "action": "created", "issue": hub.item(REPO, 1), "comment": comment,
        "sender": comment["user"],
        "repository": {"id": 7, "full_name": REPO, "html_url": format!("https://github.com/{REPO}")},
    })
}

fn has(rig: &Rig, words: &str) -> usize {
    let prompts = rig.prompts(1);
    prompts
        .iter()
        .filter(|prompt| prompt.contains(words))
        .count()
}

fn until_has(rig: &Rig, words: &str) {
    rig.until(words, || (has(rig, words) == 1).then_some(()));
}

#[test]
fn in52_a_ticket_goes_from_start_to_close_by_polling_alone() {
    let hub = hub();
    let rig = polling(&hub);
    rig.up();
    rig.event("poll.baselined", |_| true);
    says(&hub, STRANGER, "the-loop start");
    says(&hub, MAINTAINER, "the-loop start");
    rig.event("session.spawned", |_| true);
    says(&hub, MAINTAINER, "and now the second thing");
    until_has(&rig, "and now the second thing");
    rig.until("an announcement", || {
        let all = hub.posted(REPO, 1);
        all.iter()
            .any(|words| words.contains("attach"))
            .then_some(())
    });
    let told = rig.ok(&["status"]);
    let row = told
        .lines()
        .find(|line| line.starts_with("poller"))
        .unwrap();
    assert!(
        row.contains("running") && row.contains("last cycle"),
        "{told}"
    );
    let quota = told
        .lines()
        .find(|line| line.starts_with("github.com"))
        .unwrap();
    assert!(quota.contains(" of 5000 requests left"), "{told}");
    hub.change(|world| world.close(REPO, 1, MAINTAINER, false));
    rig.event("session.autoclosed", |_| true);
    let refused = rig.events("routing.dropped");
    assert!(
        refused.iter().any(|e| e["reason"] == "unauthorized-actor"),
        "{refused:?}"
    );
    assert_eq!(rig.events("session.spawned").len(), 1);
    // What the agent was told is known in the ledger, and goes with the close.
    let portable = rig.root("portable/github-octo-repo-1.json");
    rig.until("no ledger", || {
        let text = std::fs::read_to_string(&portable).unwrap_or_default();
        (!text.contains("seenComments")).then_some(())
    });
}

#[test]
fn in10_one_comment_by_webhook_poll_and_redelivery_in_any_order_is_one() {
    let hub = hub();
    let rig = polling(&hub);
    rig.up();
    rig.event("poll.baselined", |_| true);
    says(&hub, MAINTAINER, "the-loop start");
    rig.event("session.spawned", |_| true);
    // First by webhook.
    let first = says(&hub, MAINTAINER, "webhook comes first");
    let _ = rig.post("issue_comment", "hook-1", &webhook(&hub, &first));
    until_has(&rig, "webhook comes first");
    // First by poll, then by webhook twice.
    let second = says(&hub, MAINTAINER, "poll comes first");
    until_has(&rig, "poll comes first");
    for id in ["hook-2", "hook-2", "hook-3"] {
        let answer = rig
            .post("issue_comment", id, &webhook(&hub, &second))
            .unwrap();
        assert_eq!(answer, (202, "duplicate".to_owned()));
    }
    // Around a restart: what the webhook brought before is found by the poller after.
    let third = says(&hub, MAINTAINER, "before a crash");
    let _ = rig.post("issue_comment", "hook-4", &webhook(&hub, &third));
    rig.kill();
    rig.up();
    until_has(&rig, "before a crash");
    let _ = rig.post("issue_comment", "hook-4", &webhook(&hub, &third));
    says(&hub, MAINTAINER, "the last one");
    until_has(&rig, "the last one");
    for words in ["webhook comes first", "poll comes first", "before a crash"] {
        assert_eq!(has(&rig, words), 1, "{words}");
    }
}

#[test]
fn in50_a_night_off_without_polling_is_caught_up_at_the_start() {
    let hub = hub();
    let rig = machine(&hub, "");
    rig.up();
    let start = says(&hub, MAINTAINER, "the-loop start");
    rig.accepted("issue_comment", &webhook(&hub, &start));
    rig.event("session.spawned", |_| true);
    rig.kill();
    says(&hub, MAINTAINER, "said at night");
    rig.up();
    until_has(&rig, "said at night");
    let found = rig.event("poll.backfill", |e| e["count"].as_u64() > Some(0));
    assert_eq!(found["host"], "github.com");
    let poller = rig.ok(&["status", "--format", "json"]);
    let status: Value = serde_json::from_str(&poller).unwrap();
    assert_eq!(status["services"][2]["outcome"], "disabled");
}

#[test]
fn in52_poll_once_carries_what_it_found_to_the_agent() {
    let hub = hub();
    let rig = machine(&hub, "polling: {sources: [{repos: [octo/repo]}]}\n");
    assert_eq!(
        rig.ok(&["poll", "--once"]),
        "1 items, 0 accepted, 0 closed, 0 failed\n"
    );
    says(&hub, MAINTAINER, "the-loop start");
    assert_eq!(
        rig.ok(&["poll", "--once"]),
        "1 items, 1 accepted, 0 closed, 0 failed\n"
    );
    assert_eq!(rig.events("session.spawned").len(), 1);
    says(&hub, MAINTAINER, "one more thing");
    let told = rig.ok(&["poll", "--once", "--format", "json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["accepted"], &told["commentsForwarded"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(has(&rig, "one more thing"), 1);
    hub.change(|world| world.close(REPO, 1, MAINTAINER, false));
    assert_eq!(
        rig.ok(&["poll", "--once"]),
        "1 items, 1 accepted, 1 closed, 0 failed\n"
    );
    assert_eq!(rig.events("session.autoclosed").len(), 1);
}

#[test]
fn in52_two_pollers_are_one_too_many_and_what_is_missing_is_named() {
    let hub = hub();
    let rig = polling(&hub);
    rig.up();
    rig.event("poller.started", |_| true);
    let done = rig.program(&["poll", "--once"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1));
    assert!(said.contains(&format!("pid {}", rig.pid())), "{said}");
    assert_eq!(rig.events("poller.blocked").len(), 1);

    let rig = machine(&hub, "polling: {enabled: true}\n");
    rig.up();
    let status = rig.program(&["status"]).output().unwrap();
    let told = String::from_utf8_lossy(&status.stdout).into_owned();
    assert_eq!(status.status.code(), Some(1));
    assert!(
        told.contains("misconfigured") && told.contains("polling.sources"),
        "{told}"
    );
    let done = rig.program(&["poll", "--once"]).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn in51_a_limit_stops_polling_only() {
    let hub = hub();
    let rig = polling(&hub);
    rig.up();
    rig.event("poll.baselined", |_| true);
    says(&hub, MAINTAINER, "the-loop start");
    rig.event("session.spawned", |_| true);
    let hour = jiff::Timestamp::now().as_second() + 3_600;
    hub.has_left(10, hour);
    rig.event("quota.low", |_| true);
    rig.until("a poller that waits", || {
        let told = rig.ok(&["status"]);
        told.contains("for calls").then_some(())
    });
    // A webhook is received, and carried to the agent.
    let words = says(&hub, MAINTAINER, "by webhook meanwhile");
    rig.accepted("issue_comment", &webhook(&hub, &words));
    until_has(&rig, "by webhook meanwhile");
}

#[test]
fn se21_a_host_that_hangs_does_not_keep_the_daemon_from_its_end() {
    let hub = hub();
    let rig = polling(&hub);
    rig.up();
    rig.event("poll.baselined", |_| true);
    hub.fails("issues?state=all", Fault::Silence);
    rig.until("a call that hangs", || {
        let asked = hub.requests();
        asked.iter().any(|r| r.status == 0).then_some(())
    });
    let began = std::time::Instant::now();
    let told = rig.ok(&["stop", "--timeout", "10"]);
    assert!(told.contains("poller       stopped"), "{told}");
    rig.ended();
    assert!(
        began.elapsed() < std::time::Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
    // And the next one polls.
    rig.up();
    says(&hub, MAINTAINER, "the-loop start");
    rig.event("session.spawned", |_| true);
}
