use the_loop_core::delivery::Place;

use super::*;

const SHA: &str = "9049f1265b7d61be4a8904a9a27120d2064dab3b";

fn pull(action: &str) -> Value {
    json!({
        "action": action,
        "number": 30,
        "pull_request": {
            "number": 30, "node_id": "PR_kwDO9", "title": "A pull", "state": "open",
            "draft": false, "merged": false, "body": "Closes #15\n`closes #16`",
            "labels": [{"name": "bug"}],
            "user": {"login": "octocat", "id": 1, "type": "User"},
            "html_url": "https://github.com/octo/repo/pull/30",
            "updated_at": "2026-03-01T10:00:00Z", "closed_at": null,
            "head": {"ref": "issue-15", "sha": SHA, "repo": {"id": 7, "full_name": "octo/repo"}},
            "base": {"ref": "main", "repo": {"id": 7}}
        },
        "repository": {
            "id": 7, "full_name": "octo/repo", "html_url": "https://github.com/octo/repo"
        },
        "sender": {"login": "maintainer", "id": 2, "type": "User"}
    })
}

fn review(state: &str, body: &str) -> Value {
    let mut payload = pull("submitted");
    payload["review"] = json!({
        "id": 80, "node_id": "PRR_kw1", "state": state, "body": body,
        "user": {"login": "maintainer", "id": 2, "type": "User"},
        "html_url": "https://github.com/octo/repo/pull/30#pullrequestreview-80",
        "submitted_at": "2026-03-01T09:12:44Z"
    });
    payload
}

fn inline() -> Value {
    let mut payload = pull("created");
    payload["comment"] = json!({
        "id": 81, "node_id": "PRRC_kw1", "body": "why?", "path": "src/a.rs", "line": null,
        "original_line": 4, "side": "RIGHT", "diff_hunk": "@@ -1 +1 @@\n-a\n+b",
        "user": {"login": "maintainer", "id": 2, "type": "User"},
        "html_url": "https://github.com/octo/repo/pull/30#discussion_r81",
        "created_at": "2026-03-01T09:12:44Z", "updated_at": "2026-03-01T09:12:44Z"
    });
    payload
}

fn thread(action: &str) -> Value {
    let mut payload = pull(action);
    payload["thread"] = json!({
        "node_id": "PRRT_kw1",
        "comments": [{"path": "src/a.rs", "line": 3, "html_url": "https://github.com/x", "diff_hunk": "+"}]
    });
    payload
}

fn key(event: &str, body: &Value) -> String {
    let key = delivery(event, body).content_key;
    key.strip_prefix("github/github.com/").unwrap().to_owned()
}

#[test]
fn in7_in10_what_happens_to_a_pull_request() {
    let opened = delivery("pull_request", &pull("opened"));
    assert_eq!(opened.effect, Effect::Opened);
    assert_eq!(opened.item.to_string(), "github:octo/repo#30");
    assert_eq!(opened.content_key, "github/github.com/pull/PR_kwDO9/opened");
    let facts = opened.pull.unwrap();
    assert_eq!(facts.head_ref.as_deref(), Some("issue-15"));
    assert_eq!(facts.head_sha.as_deref(), Some(SHA));
    assert!(facts.is_own_branch);
    let closes: Vec<String> = facts.closes.iter().map(ToString::to_string).collect();
    assert_eq!(closes, ["github:octo/repo#15"]);
    let author = opened.facts.author.unwrap();
    assert_eq!(author.login, "octocat");

    let at = "2026-03-01T10:00:00Z";
    let of = |action| pull(action);
    assert_eq!(
        key("pull_request", &of("reopened")),
        format!("pull/PR_kwDO9/reopened@{at}")
    );
    assert_eq!(
        key("pull_request", &of("synchronize")),
        format!("pull/PR_kwDO9/head@{SHA}")
    );
    let edited = with(
        of("edited"),
        "/changes",
        json!({"base": {"ref": {"from": "x"}}}),
    );
    let got = delivery("pull_request", &edited);
    assert_eq!(
        got.content_key,
        format!("github/github.com/pull/PR_kwDO9/edited@{at}")
    );
    assert_eq!(
        got.effect,
        Effect::Notice {
            changed: vec!["base".to_owned()]
        }
    );
    let closed = with(of("closed"), "/pull_request/closed_at", json!(at));
    let closed = with(closed, "/pull_request/merged", json!(true));
    let got = delivery("pull_request", &closed);
    assert_eq!(
        got.content_key,
        format!("github/github.com/pull/PR_kwDO9/closed@{at}")
    );
    assert!(matches!(
        got.effect,
        Effect::Close {
            ending: Ending::Closed,
            ..
        }
    ));
    assert_eq!(got.pull.unwrap().merged, Some(true));
    let armed = with(
        of("labeled"),
        "/label",
        json!({"name": "The-Loop: auto-execute"}),
    );
    assert_eq!(delivery("pull_request", &armed).effect, Effect::Presence);
}

#[test]
fn in7_what_costs_a_turn_and_says_nothing_is_ignored() {
    for action in [
        "labeled",
        "unlabeled",
        "assigned",
        "converted_to_draft",
        "ready_for_review",
        "review_requested",
        "edited",
        "auto_merge_enabled",
        "",
    ] {
        let parsed = parse_value("pull_request", &pull(action));
        assert_eq!(reason(&parsed), "action-ignored", "{action}");
    }
    for (event, body) in [
        (
            "pull_request_review",
            with(review("commented", "x"), "/action", json!("edited")),
        ),
        (
            "pull_request_review",
            with(review("dismissed", "x"), "/action", json!("dismissed")),
        ),
        (
            "pull_request_review_comment",
            with(inline(), "/action", json!("deleted")),
        ),
    ] {
        assert_eq!(reason(&parse_value(event, &body)), "action-ignored");
    }
    for blank in ["", " \n"] {
        let parsed = parse_value("pull_request_review", &review("commented", blank));
        assert_eq!(reason(&parsed), "empty-review");
    }
    // Threads only where they are listed.
    let parsed = parse_value("pull_request_review_thread", &thread("resolved"));
    assert_eq!(reason(&parsed), "disabled-event");
}

#[test]
fn in7_in10_a_review_is_text_with_what_it_decides() {
    let got = delivery("pull_request_review", &review("APPROVED", ""));
    assert_eq!(
        got.content_key,
        "github/github.com/review/PRR_kw1/submitted"
    );
    let numeric = "github/github.com/review/#80/submitted";
    assert_eq!(got.numeric_key.as_deref(), Some(numeric));
    let Effect::Text(text) = got.effect else {
        panic!("not a text");
    };
    assert_eq!(text.decision.as_deref(), Some("approved"));
    assert_eq!(text.author.unwrap().login, "maintainer");
    assert!(text.created_at.is_some());
}

#[test]
fn in7_in10_an_inline_comment_is_text_with_its_place() {
    let got = delivery("pull_request_review_comment", &inline());
    assert_eq!(
        got.content_key,
        "github/github.com/review-comment/PRRC_kw1/created"
    );
    let numeric = "github/github.com/review-comment/#81/created";
    assert_eq!(got.numeric_key.as_deref(), Some(numeric));
    let place = Place {
        path: Some("src/a.rs".to_owned()),
        line: Some(4),
        hunk: Some("@@ -1 +1 @@\n-a\n+b".to_owned()),
        html_url: None,
    };
    assert_eq!(got.place, Some(place));
    assert!(matches!(got.effect, Effect::Text(text) if text.decision.is_none()));
}

#[test]
fn in7_in10_a_thread_is_a_notice_where_it_is_listed() {
    let mut settings = settings();
    let name = "pull_request_review_thread".to_owned();
    settings.webhooks.gh_webhook.events.push(name);
    let body = thread("unresolved").to_string();
    let incoming = Incoming {
        event: "pull_request_review_thread",
        delivery_id: ID,
        encoding: Encoding::Json,
        body: body.as_bytes(),
        received_at: Timestamp::from_unix_ms(0),
    };
    let Parsed::Delivery(got) = parse(&incoming, &settings) else {
        panic!("no delivery");
    };
    let key = "github/github.com/review-thread/PRRT_kw1/unresolved@2026-03-01T10:00:00Z";
    assert_eq!(got.content_key, key);
    let place = got.place.unwrap();
    assert_eq!((place.line, place.hunk), (Some(3), None));
    assert!(matches!(got.effect, Effect::Notice { .. }));
}

#[test]
fn in3_a_wrong_type_in_a_field_that_is_read_is_no_payload() {
    for pointer in [
        "/pull_request",
        "/pull_request/head",
        "/pull_request/head/ref",
        "/pull_request/base/repo",
        "/pull_request/draft",
        "/pull_request/body",
    ] {
        let body = with(pull("opened"), pointer, json!([1]));
        assert_eq!(
            reason(&parse_value("pull_request", &body)),
            "invalid",
            "{pointer}"
        );
    }
    for (event, pointer) in [
        ("pull_request_review", "/review"),
        ("pull_request_review_comment", "/comment"),
    ] {
        let body = match event {
            "pull_request_review" => review("approved", "x"),
            _ => inline(),
        };
        let absent = without(body, pointer);
        assert_eq!(reason(&parse_value(event, &absent)), "invalid", "{event}");
    }
}

#[test]
fn in12_what_is_missing_leaves_a_dash_and_no_identity() {
    for pointer in ["/pull_request/node_id", "/pull_request/head"] {
        let body = without(pull("synchronize"), pointer);
        let got = delivery("pull_request", &body);
        assert!(!got.content_key_is_whole(), "{}", got.content_key);
    }
    let got = delivery(
        "pull_request",
        &without(pull("opened"), "/pull_request/head"),
    );
    assert!(!got.pull.unwrap().is_own_branch);
    let none = without(pull("opened"), "/pull_request/number");
    assert_eq!(reason(&parse_value("pull_request", &none)), "no-work-item");
}

#[test]
fn in7_in18_a_comment_on_a_pull_request_shows_what_its_body_closes_and_no_more() {
    let mut body = with(
        comment(),
        "/issue/body",
        json!("Fixes octo/other#3, `closes #4`"),
    );
    let got = delivery("issue_comment", &body);
    assert_eq!(got.pull, None, "the body of an issue links nothing");
    body = with(body, "/issue/pull_request", json!({}));
    let got = delivery("issue_comment", &body);
    let pull = got.pull.unwrap();
    let closes: Vec<String> = pull.closes.iter().map(ToString::to_string).collect();
    assert_eq!(closes, ["github:octo/other#3"]);
    assert!(pull.is_partial && pull.head_ref.is_none() && !pull.is_own_branch);
}

#[test]
fn in18_an_answer_is_read_as_a_payload_is() {
    let item: WorkItemRef = "github:octo/repo#30".parse().unwrap();
    let shown = pull("x")["pull_request"].clone();
    let seen = pull_seen(&shown.to_string(), &item).unwrap();
    let told = delivery("pull_request", &pull("opened"));
    assert_eq!(Some(seen.facts), told.pull);
    assert_eq!(seen.author, told.facts.author);
    assert_eq!(seen.item, item);
    let other: WorkItemRef = "github:octo/repo#31".parse().unwrap();
    for (text, of) in [
        (shown.to_string(), &other),
        ("[]".to_owned(), &item),
        ("{}".to_owned(), &item),
        ("<html>".to_owned(), &item),
    ] {
        assert_eq!(pull_seen(&text, of), None, "{text}");
        assert_eq!(item_seen(&text, of), None, "{text}");
    }
    let seen = item_seen(
        &issues("x")["issue"].to_string(),
        &"github:octo/repo#15".parse().unwrap(),
    );
    let seen = seen.unwrap();
    assert_eq!(seen.labels, ["bug", "the-loop: auto-execute"]);
    assert!(!seen.closed);
}
