//! What GitHub would send, with the fields that are read.

use serde_json::{Value, json};

/// The login whose words count.
pub const MAINTAINER: &str = "maintainer";
/// A login that nobody listed.
pub const STRANGER: &str = "stranger";
/// The label that arms.
pub const LABEL: &str = "the-loop: auto-execute";

fn user(login: &str) -> Value {
    let id = login.bytes().map(u64::from).sum::<u64>();
    json!({"login": login, "id": id, "type": "User"})
}

fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn issue(number: u64, state: &str) -> Value {
    json!({
        "number": number, "node_id": format!("I_{number}"), "title": format!("Item {number}"),
        "state": state, "labels": [{"name": LABEL}], "user": user(MAINTAINER),
        "html_url": format!("https://github.com/octo/repo/issues/{number}"),
        "updated_at": now(), "closed_at": (state == "closed").then(now),
    })
}

fn around(action: &str, issue: Value, login: &str) -> Value {
    json!({
        "action": action, "issue": issue, "sender": user(login),
        "repository": {
            "id": 7, "full_name": "octo/repo", "html_url": "https://github.com/octo/repo"
        },
    })
}

/// The item got the label that arms it.
pub fn labeled(number: u64, login: &str) -> Value {
    let mut payload = around("labeled", issue(number, "open"), login);
    payload["label"] = json!({"name": LABEL});
    payload
}

/// As [`labeled`], and the item has these labels as well.
pub fn labeled_also(number: u64, login: &str, labels: &[&str]) -> Value {
    with_labels(labeled(number, login), labels)
}

/// The payload of an item that has these labels as well.
pub fn with_labels(mut payload: Value, labels: &[&str]) -> Value {
    if let Some(list) = payload["issue"]["labels"].as_array_mut() {
        list.extend(labels.iter().map(|name| json!({"name": name})));
    }
    payload
}

/// The item was closed.
pub fn closed(number: u64, login: &str) -> Value {
    around("closed", issue(number, "closed"), login)
}

/// Somebody said something on the item. `id` makes it one comment.
pub fn comment(number: u64, id: u64, login: &str, body: &str) -> Value {
    let mut payload = around("created", issue(number, "open"), login);
    payload["comment"] = json!({
        "id": id, "node_id": format!("IC_{id}"), "user": user(login), "body": body,
        "html_url": format!("https://github.com/octo/repo/issues/{number}#issuecomment-{id}"),
        "created_at": now(), "updated_at": now(),
    });
    payload
}

/// Something about a pull request of this author: its branch, and the words of its body.
pub fn pull(action: &str, number: u64, author: &str, (branch, body): (&str, &str)) -> Value {
    let closed = action == "closed";
    json!({
        "action": action, "number": number, "sender": user(author),
        "pull_request": {
            "number": number, "node_id": format!("PR_{number}"), "title": format!("Pull {number}"),
            "state": if closed { "closed" } else { "open" }, "draft": false, "merged": closed,
            "labels": [], "user": user(author), "body": body,
            "html_url": format!("https://github.com/octo/repo/pull/{number}"),
            "updated_at": now(), "closed_at": closed.then(now),
            "head": {"ref": branch, "sha": "c0ffee", "repo": {"id": 7}},
            "base": {"ref": "main", "repo": {"id": 7}},
        },
        "repository": {
            "id": 7, "full_name": "octo/repo", "html_url": "https://github.com/octo/repo"
        },
    })
}

/// A comment on a changed line of a pull request.
pub fn inline(mut pull: Value, id: u64, login: &str, body: &str) -> Value {
    pull["action"] = json!("created");
    pull["sender"] = user(login);
    pull["comment"] = json!({
        "id": id, "node_id": format!("PRRC_{id}"), "user": user(login), "body": body,
        "path": "src/parser.rs", "line": 12, "diff_hunk": "@@ -10,3 +10,3 @@\n-old line\n+new line",
        "html_url": format!("https://github.com/octo/repo/pull/1#discussion_r{id}"),
        "created_at": now(), "updated_at": now(),
    });
    pull
}

/// A review of a pull request.
pub fn review(mut pull: Value, id: u64, login: &str, (state, body): (&str, &str)) -> Value {
    pull["action"] = json!("submitted");
    pull["sender"] = user(login);
    pull["review"] = json!({
        "id": id, "node_id": format!("PRR_{id}"), "user": user(login), "body": body, "state": state,
        "html_url": format!("https://github.com/octo/repo/pull/1#pullrequestreview-{id}"),
        "submitted_at": now(),
    });
    pull
}

/// The payload of a comment, said on a pull request of that number.
pub fn on_pull(mut comment: Value) -> Value {
    comment["issue"]["pull_request"] = json!({"url": "https://api.github.com/x"});
    comment
}

/// A check that ended on the branch of pull request 30, or on that of no pull request.
pub fn run(id: u64, name: &str, conclusion: &str, pull: Option<u64>) -> Value {
    let here = json!({"sha": "c0ffee", "repo": {"id": 7}});
    let pulls: Vec<Value> = pull
        .map(|number| json!({"number": number, "head": here, "base": here}))
        .into_iter()
        .collect();
    json!({
        "action": "completed", "sender": {"login": "github-actions[bot]", "id": 3, "type": "Bot"},
        "workflow_run": {
            "id": id, "run_attempt": 1, "name": name, "conclusion": conclusion, "head_branch": "feature",
            "head_sha": "c0ffee", "head_repository": {"id": 7}, "pull_requests": pulls,
            "html_url": format!("https://github.com/octo/repo/actions/runs/{id}"),
        },
        "repository": {
            "id": 7, "full_name": "octo/repo", "html_url": "https://github.com/octo/repo"
        },
    })
}
