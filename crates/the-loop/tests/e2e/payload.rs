//! What GitHub would send, with the fields that are read.

use serde_json::{Value, json};

/// The login whose words count.
pub const MAINTAINER: &str = "maintainer";
/// A login that nobody listed.
pub const STRANGER: &str = "stranger";
const LABEL: &str = "the-loop: auto-execute";

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
