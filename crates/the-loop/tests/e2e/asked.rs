//! What GitHub is asked for, where a webhook does not show it (IN-18, IN-19, IN-27, IN-33).

use serde_json::{Value, json};

use super::hub::{Hub, TOKEN};
use super::payload::{LABEL, MAINTAINER, STRANGER, comment, on_pull, pull, run};
use super::rig::{Rig, Wish};

/// A machine that may ask a double of GitHub.
fn rig(hub: &Hub) -> Rig {
    let github = format!(
        ", apiUrl: 'http://127.0.0.1:{}', tokenFile: token, cli: {{binary: ''}}",
        hub.port
    );
    let rig = Rig::with(&Wish {
        github: &github,
        ..Wish::default()
    });
    rig.write("home/.the-loop/token", &format!("{TOKEN}\n"));
    rig.up();
    rig
}

/// A pull request as the interface shows it.
fn shown(number: u64, author: &str, branch: &str, body: &str) -> Value {
    pull("x", number, author, (branch, body))["pull_request"].clone()
}

/// An issue as the interface shows it.
fn issue(number: u64, labels: &[&str]) -> Value {
    let mut issue = comment(number, 1, MAINTAINER, "x")["issue"].clone();
    issue["labels"] = labels.iter().map(|name| json!({"name": name})).collect();
    issue
}

fn said(rig: &Rig, number: u64, id: u64, words: &str) -> String {
    let said = on_pull(comment(number, id, MAINTAINER, words));
    rig.accepted("issue_comment", &said)
}

fn routed(rig: &Rig, id: &str) -> Value {
    rig.event("routing.routed", |e| e["delivery_id"] == id)
}

fn told(rig: &Rig, number: u64, words: &str) -> usize {
    rig.prompts(number).concat().matches(words).count()
}

#[test]
fn in18_a_comment_under_a_pull_request_finds_the_session_that_only_github_knows_of() {
    let hub = Hub::new();
    hub.shows("pulls/30", shown(30, MAINTAINER, "feature", "Closes #15"));
    hub.shows("pulls/31", shown(31, STRANGER, "issue-15", "Closes #15"));
    let rig = rig(&hub);
    rig.start(15);
    let first = said(&rig, 30, 901, "the first words");
    rig.confirmed(&first);
    assert!(routed(&rig, &first).get("link_incomplete").is_none());
    // It belongs to that session now, and nothing more is asked.
    assert_eq!(
        rig.event("session.pr_linked", |_| true)["work_item"],
        "github:octo/repo#15"
    );
    rig.confirmed(&said(&rig, 30, 902, "the second words"));
    assert_eq!(hub.questions("pulls/30").len(), 1);
    assert_eq!(told(&rig, 15, "words"), 2);

    // What a stranger's pull request says is nobody's business (IN-17); its answer is asked for again by its
    // validator.
    for id in [903, 904] {
        let mut words = on_pull(comment(31, id, MAINTAINER, "what is this?"));
        words["issue"]["user"] = pull("x", 31, STRANGER, ("", ""))["sender"].clone();
        let id = rig.accepted("issue_comment", &words);
        let named = routed(&rig, &id);
        assert_eq!(named["work_items"], json!(["github:octo/repo#31"]));
        rig.event("dispatch.dropped", |e| e["delivery_id"] == id.as_str());
    }
    let asked = hub.questions("pulls/31");
    let statuses: Vec<u16> = asked.iter().map(|question| question.status).collect();
    assert_eq!(statuses, [200, 304], "{asked:?}");
    assert!(asked[0].validator.is_empty() && !asked[1].validator.is_empty());
    assert_eq!(told(&rig, 15, "what is this?"), 0);
    // Nor is anything asked for a stranger's words.
    let words = on_pull(comment(30, 905, STRANGER, "hello"));
    let id = rig.accepted("issue_comment", &words);
    rig.event("routing.dropped", |e| e["delivery_id"] == id.as_str());
    assert_eq!(hub.questions("pulls/30").len(), 1);
}

#[test]
fn in18_without_an_answer_the_router_goes_on_and_one_item_holds_up_no_other() {
    let hub = Hub::new();
    hub.shows_status("pulls/30", 500);
    let rig = rig(&hub);
    rig.start(15);
    let id = said(&rig, 30, 901, "words");
    let named = routed(&rig, &id);
    assert_eq!(named["link_incomplete"], true);
    assert_eq!(named["work_items"], json!(["github:octo/repo#30"]));
    let told = rig.event("tracker.error", |e| e["operation"] == "pull request");
    assert_eq!(told["status"], 500);
    // The host is left alone for a while; what needs no answer goes on.
    let id = said(&rig, 30, 902, "more words");
    assert_eq!(routed(&rig, &id)["link_incomplete"], true);
    assert_eq!(hub.questions("pulls/30").len(), 1);
    rig.confirmed(&rig.say(15, "are you there?"));
}

#[test]
fn in19_a_branch_that_names_no_item_that_is_there_names_none() {
    let hub = Hub::new();
    hub.shows("issues/16", issue(16, &[LABEL]));
    let rig = rig(&hub);
    // Nothing is there with this number.
    let mut about = pull("opened", 30, MAINTAINER, ("issue-99", ""));
    about["pull_request"]["labels"] = json!([{"name": LABEL}]);
    let id = rig.accepted("pull_request", &about);
    let gone = rig.event("routing.linkage_dropped", |_| true);
    assert_eq!(gone["work_item"], "github:octo/repo#99");
    assert_eq!(
        (&gone["reason"], &gone["via"]),
        (&json!("not-found"), &json!("branch"))
    );
    assert_eq!(
        routed(&rig, &id)["work_items"],
        json!(["github:octo/repo#30"])
    );
    // That is remembered.
    about["action"] = json!("reopened");
    let id = rig.accepted("pull_request", &about);
    assert_eq!(
        routed(&rig, &id)["work_items"],
        json!(["github:octo/repo#30"])
    );
    assert_eq!(hub.questions("issues/99").len(), 1);
    // One that is there is named.
    let there = pull("opened", 31, MAINTAINER, ("issue-16", ""));
    let id = rig.accepted("pull_request", &there);
    assert_eq!(
        routed(&rig, &id)["work_items"],
        json!(["github:octo/repo#16"])
    );
}

#[test]
fn in27_the_label_that_counts_is_that_of_the_item_and_an_outage_loses_no_start() {
    let hub = Hub::new();
    hub.shows("issues/15", issue(15, &["bug"]));
    hub.shows("issues/16", issue(16, &["bug", LABEL]));
    hub.shows_status("issues/17", 403);
    let rig = rig(&hub);
    let start = |number, pull_number, id| {
        let body = format!("Closes #{number}");
        let about = pull("x", pull_number, MAINTAINER, ("feature", &body));
        let order = super::payload::inline(about, id, MAINTAINER, "the-loop start");
        rig.accepted("pull_request_review_comment", &order)
    };
    let refused = |id: &str| {
        let refused = rig.event("control.rejected", |e| e["delivery_id"] == id);
        assert_eq!(refused["reason"], "spawn-policy", "{refused}");
    };
    refused(&start(15, 30, 911));
    refused(&start(17, 32, 913));
    rig.confirmed(&start(16, 31, 912));
    assert!(rig.checkout(16).exists());
    // The host is down: the start waits, and costs no attempt.
    hub.shows_status("issues/18", 503);
    let id = start(18, 33, 914);
    let failed = rig.event("dispatch.failed", |e| e["delivery_id"] == id.as_str());
    assert_eq!(failed["will_retry"], true, "{failed}");
    assert_eq!(failed["work_item"], "github:octo/repo#18");
    let shown = rig.ok(&["deliveries", "show", &id, "--format", "json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["outcomes"][0]["attempts"], 0, "{shown}");
}

#[test]
fn in33_a_failing_run_comes_with_the_end_of_its_log() {
    let hub = Hub::new();
    let rig = rig(&hub);
    rig.start(15);
    let words = ("feature", "Closes #15");
    rig.confirmed(&rig.accepted("pull_request", &pull("opened", 30, MAINTAINER, words)));
    hub.shows(
        "actions/runs/1/attempts/1/jobs?per_page=100",
        json!({"jobs": [
            {"id": 70, "name": "lint", "conclusion": "success", "steps": []},
            {"id": 71, "name": "test", "conclusion": "failure", "steps": [
                {"name": "Set up", "conclusion": "success"},
                {"name": "Run tests", "conclusion": "failure"},
            ]},
        ]}),
    );
    let log = "2026-03-01T10:00:00.1234567Z compiling\n\
               2026-03-01T10:00:01.1234567Z \u{1b}[31mexpected 3, found 4\u{1b}[0m\n";
    hub.shows_text_elsewhere("actions/jobs/71/logs", log);
    rig.confirmed(&rig.accepted("workflow_run", &run(1, "build", "failure", Some(30))));
    let text = rig.prompts(15).concat();
    for part in [
        "with the end of its log",
        "\"step\": \"Run tests\"",
        "\"expected 3, found 4\"",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Where the log lies, the credential is not shown.
    let elsewhere = hub.questions("/elsewhere/actions/jobs/71/logs");
    assert_eq!(elsewhere.len(), 1);
    assert_eq!(elsewhere[0].authorization, "");

    // One that cannot be had keeps nobody waiting, and a success needs none.
    rig.confirmed(&rig.accepted("workflow_run", &run(2, "build", "failure", Some(30))));
    let text = rig.prompts(15).concat();
    assert!(text.contains("log unavailable: not found"), "{text}");
    rig.confirmed(&rig.accepted("workflow_run", &run(3, "build", "success", Some(30))));
    assert!(
        hub.questions("actions/runs/3/attempts/1/jobs?per_page=100")
            .is_empty()
    );
}

#[test]
fn in18_in31_a_check_of_a_pull_request_that_only_github_links_is_told() {
    let hub = Hub::new();
    hub.shows("pulls/30", shown(30, MAINTAINER, "feature", "Closes #15"));
    let rig = rig(&hub);
    // Where nobody lives, nothing is asked.
    let id = rig.accepted("workflow_run", &run(1, "build", "failure", Some(30)));
    routed(&rig, &id);
    assert!(hub.questions("pulls/30").is_empty());
    rig.start(15);
    rig.confirmed(&rig.accepted("workflow_run", &run(2, "build", "failure", Some(30))));
    assert_eq!(told(&rig, 15, "A check of your commits failed"), 1);
    assert_eq!(hub.questions("pulls/30").len(), 1);
}

#[test]
fn di5_words_stay_in_their_order_behind_those_that_wait_for_an_answer() {
    let hub = Hub::new();
    hub.shows("pulls/30", shown(30, MAINTAINER, "feature", "Closes #15"));
    let rig = rig(&hub);
    rig.start(15);
    let ids: Vec<String> = (0..6)
        .map(|n| said(&rig, 30, 920 + n, &format!("words {n} of six")))
        .collect();
    for id in &ids {
        rig.confirmed(id);
    }
    let text = rig.prompts(15).concat();
    let places: Vec<usize> = (0..6)
        .map(|n| text.find(&format!("words {n} of six")).unwrap())
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}
