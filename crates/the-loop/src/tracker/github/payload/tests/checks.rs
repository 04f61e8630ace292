use the_loop_core::ci::CheckResult;

use super::*;

const SHA: &str = "9049f1265b7d61be4a8904a9a27120d2064dab3b";

fn around(action: &str) -> Value {
    json!({
        "action": action,
        "repository": {
            "id": 7, "full_name": "octo/repo", "html_url": "https://github.com/octo/repo"
        },
        "sender": {"login": "github-actions[bot]", "id": 2, "type": "Bot"}
    })
}

fn pulls(sha: &str, repository: u64) -> Value {
    json!([{
        "number": 30, "head": {"ref": "x", "sha": sha, "repo": {"id": repository}},
        "base": {"ref": "main", "sha": "b", "repo": {"id": 7}}
    }])
}

fn run(conclusion: &str) -> Value {
    let mut payload = around("completed");
    payload["workflow_run"] = json!({
        "id": 812, "run_attempt": 2, "name": "build", "conclusion": conclusion,
        "head_branch": "issue-15", "head_sha": SHA, "head_repository": {"id": 7},
        "html_url": "https://github.com/octo/repo/actions/runs/812", "pull_requests": pulls(SHA, 7)
    });
    payload
}

fn check_run(app: &str) -> Value {
    let mut payload = around("completed");
    payload["check_run"] = json!({
        "id": 813, "name": "lint", "conclusion": "failure", "completed_at": "2026-03-01T10:00:00Z",
        "html_url": "https://github.com/octo/repo/runs/813", "details_url": "https://ci.example/813",
        "app": {"slug": app},
        "check_suite": {"head_branch": "issue-15", "head_sha": SHA, "pull_requests": pulls(SHA, 7)}
    });
    payload
}

fn suite() -> Value {
    let mut payload = around("completed");
    payload["check_suite"] = json!({
        "id": 814, "conclusion": "success", "head_branch": "issue-15", "head_sha": SHA,
        "updated_at": "2026-03-01T10:00:00Z", "app": {"slug": "ci"}, "pull_requests": []
    });
    payload
}

fn status(state: &str) -> Value {
    let mut payload = around("x");
    payload.as_object_mut().unwrap().remove("action");
    payload["id"] = json!(815);
    payload["state"] = json!(state);
    payload["context"] = json!("deploy");
    payload["sha"] = json!(SHA);
    payload["target_url"] = json!("https://ci.example/815");
    payload["branches"] = json!([
        {"name": "issue-9", "commit": {"sha": "another"}},
        {"name": "fix/issue-15", "commit": {"sha": SHA}}
    ]);
    payload
}

fn check(event: &str, body: &Value) -> (String, String, CheckResult) {
    let got = delivery(event, body);
    let key = got.content_key.strip_prefix("github/github.com/").unwrap();
    let Effect::Check(check) = got.effect else {
        panic!("no check");
    };
    (key.to_owned(), got.item.to_string(), check)
}

#[test]
fn in7_in10_a_finished_check_names_its_pull_request() {
    let (key, item, found) = check("workflow_run", &run("failure"));
    assert_eq!(key, "run/812/2/completed");
    assert_eq!(item, "github:octo/repo#30");
    assert_eq!(found.name.as_deref(), Some("build"));
    assert_eq!(found.conclusion, "failure");
    assert_eq!(found.head_sha.as_deref(), Some(SHA));
    assert_eq!(found.pulls.len(), 1);
    let (key, item, found) = check("check_run", &check_run("ci"));
    assert_eq!(key, "check-run/813/completed@2026-03-01T10:00:00Z");
    assert_eq!(item, "github:octo/repo#30");
    assert_eq!(found.details_url.as_deref(), Some("https://ci.example/813"));
    let (key, item, found) = check("status", &status("error"));
    assert_eq!(key, "status/815/error");
    assert_eq!(item, "github:octo/repo#15");
    assert_eq!(found.head_branch.as_deref(), Some("fix/issue-15"));
    assert_eq!(found.name.as_deref(), Some("deploy"));
}

#[test]
fn in28_in29_in30_what_is_no_news_of_ours_is_turned_away() {
    let elsewhere = with(run("failure"), "/workflow_run/head_repository/id", json!(8));
    let fork = with(
        check_run("ci"),
        "/check_run/check_suite/head_branch",
        Value::Null,
    );
    let moved = with(
        run("failure"),
        "/workflow_run/pull_requests",
        pulls("newer", 7),
    );
    for (event, body, expected) in [
        ("workflow_run", run("cancelled"), "conclusion-ignored"),
        (
            "workflow_run",
            with(run("failure"), "/action", json!("requested")),
            "action-ignored",
        ),
        ("workflow_run", elsewhere, "foreign-head"),
        ("workflow_run", moved, "stale-head"),
        (
            "check_run",
            check_run("github-actions"),
            "covered-elsewhere",
        ),
        ("check_run", fork, "foreign-head"),
        ("check_suite", suite(), "covered-elsewhere"),
        ("status", status("pending"), "conclusion-ignored"),
        (
            "status",
            with(status("failure"), "/branches", json!([])),
            "no-work-item",
        ),
        (
            "status",
            with(status("failure"), "/sha", Value::Null),
            "no-work-item",
        ),
    ] {
        assert_eq!(
            reason(&parse_value(event, &body)),
            expected,
            "{event} {body}"
        );
    }
    // A pull request of a fork in the list is not one of ours; the branch says more.
    let body = with(run("failure"), "/workflow_run/pull_requests", pulls(SHA, 8));
    assert_eq!(check("workflow_run", &body).1, "github:octo/repo#15");
    let body = with(body, "/workflow_run/head_branch", json!("main"));
    assert_eq!(reason(&parse_value("workflow_run", &body)), "no-work-item");
}

#[test]
fn in3_a_wrong_type_in_a_check_is_no_payload() {
    for (event, pointer) in [
        ("workflow_run", "/workflow_run/pull_requests"),
        ("workflow_run", "/workflow_run/name"),
        ("check_run", "/check_run/app"),
        ("check_run", "/check_run/check_suite/head_sha"),
        ("status", "/branches"),
        ("status", "/state"),
    ] {
        let body = match event {
            "workflow_run" => run("failure"),
            "check_run" => check_run("ci"),
            _ => status("failure"),
        };
        let body = with(body, pointer, json!(true));
        assert_eq!(
            reason(&parse_value(event, &body)),
            "invalid",
            "{event} {pointer}"
        );
    }
}

#[test]
fn in29_of_several_branches_at_the_commit_the_one_that_names_an_item_counts() {
    let mut payload = status("failure");
    let at = |name: &str| json!({"name": name, "commit": {"sha": SHA}});
    payload["branches"] = json!([at("main"), at("issue-15"), at("issue-16")]);
    let (_, item, found) = check("status", &payload);
    assert_eq!(item, "github:octo/repo#15");
    assert_eq!(found.head_branch.as_deref(), Some("issue-15"));
    payload["branches"] = json!([at("main")]);
    assert_eq!(reason(&parse_value("status", &payload)), "no-work-item");
}

#[test]
fn in33_a_workflow_run_tells_which_try_it_was() {
    let (_, _, found) = check("workflow_run", &run("failure"));
    let run_try = found.run.unwrap();
    assert_eq!((run_try.id, run_try.attempt), (812, 2));
    let (_, _, found) = check(
        "workflow_run",
        &without(run("failure"), "/workflow_run/run_attempt"),
    );
    assert_eq!(found.run, None);
}
