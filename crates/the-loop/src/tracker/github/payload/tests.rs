use proptest::prelude::*;
use serde_json::{Value, json};
use the_loop_core::config::GithubHost;

use super::*;

mod checks;
mod pulls;

const ID: &str = "72d3162e-cc78-11e3-81ab-4c9367dc0958";

fn settings() -> Settings {
    let mut settings = Settings::default();
    let hosts = &mut settings.integrations.github.hosts;
    hosts.insert("ghe.example:8443".to_owned(), GithubHost::default());
    settings
}

fn parse_bytes(event: &str, encoding: Encoding, body: &[u8]) -> Parsed {
    let incoming = Incoming {
        event,
        delivery_id: ID,
        encoding,
        body,
        received_at: Timestamp::from_unix_ms(1_700_000_000_000),
    };
    parse(&incoming, &settings())
}

fn parse_text(event: &str, body: &str) -> Parsed {
    parse_bytes(event, Encoding::Json, body.as_bytes())
}

fn parse_value(event: &str, body: &Value) -> Parsed {
    parse_text(event, &body.to_string())
}

fn delivery(event: &str, body: &Value) -> Delivery {
    match parse_value(event, body) {
        Parsed::Delivery(delivery) => *delivery,
        other => panic!("no delivery: {other:?}"),
    }
}

fn reason(parsed: &Parsed) -> &'static str {
    match parsed {
        Parsed::Ignored(ignored) => ignored.reason.as_str(),
        Parsed::Invalid => "invalid",
        Parsed::Delivery(_) => "delivery",
    }
}

fn issues(action: &str) -> Value {
    json!({
        "action": action,
        "issue": {
            "number": 15, "node_id": "I_kwDO5", "title": "A title", "state": "open",
            "labels": [{"name": "bug"}, {"name": "the-loop: auto-execute"}],
            "user": {"login": "octocat", "id": 1, "type": "User"},
            "html_url": "https://github.com/octo/repo/issues/15",
            "updated_at": "2026-03-01T10:00:00Z", "closed_at": null
        },
        "repository": {
            "id": 7, "full_name": "octo/repo", "html_url": "https://github.com/octo/repo"
        },
        "sender": {"login": "maintainer", "id": 2, "type": "User"}
    })
}

fn comment() -> Value {
    let mut body = issues("created");
    body["comment"] = json!({
        "id": 99, "node_id": "IC_kwDO1", "body": "the-loop start",
        "user": {"login": "maintainer", "id": 2, "type": "User"},
        "html_url": "https://github.com/octo/repo/issues/15#issuecomment-99",
        "created_at": "2026-03-01T09:12:44Z", "updated_at": "2026-03-01T09:12:44Z"
    });
    body
}

fn with(mut body: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    body.pointer_mut(parent).unwrap()[key] = value;
    body
}

fn without(mut body: Value, pointer: &str) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let object = body.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    object.remove(key);
    body
}

#[test]
fn in7_a_new_comment_is_text() {
    let got = delivery("issue_comment", &comment());
    assert_eq!(
        got.content_key,
        "github/github.com/comment/IC_kwDO1/created"
    );
    assert_eq!(
        got.numeric_key.as_deref(),
        Some("github/github.com/comment/#99/created")
    );
    assert_eq!(got.item.to_string(), "github:octo/repo#15");
    assert_eq!(got.delivery_id, ID);
    assert_eq!(
        (got.event.as_str(), got.action.as_deref()),
        ("issue_comment", Some("created"))
    );
    assert_eq!(
        got.actor.as_ref().map(|a| (a.login.as_str(), a.id, a.bot)),
        Some(("maintainer", Some(2), false))
    );
    let Effect::Text(text) = got.effect else {
        panic!("not a text");
    };
    assert_eq!(text.comment_id.as_deref(), Some("IC_kwDO1"));
    assert_eq!(text.body, "the-loop start");
    assert_eq!(text.author.map(|a| a.login).as_deref(), Some("maintainer"));
    assert_eq!(
        text.created_at.map(Timestamp::seconds).as_deref(),
        Some("2026-03-01T09:12:44Z")
    );
    assert_eq!(got.facts.title.as_deref(), Some("A title"));
    assert_eq!(got.facts.closed, Some(false));
    assert_eq!(got.facts.labels.map(|l| l.len()), Some(2));
    assert!(!got.facts.is_pull_request);
}

#[test]
fn in7_a_comment_on_a_pull_request_names_the_pull_request() {
    let body = with(
        comment(),
        "/issue/pull_request",
        json!({"url": "https://x"}),
    );
    let got = delivery("issue_comment", &body);
    assert_eq!(got.item.to_string(), "github:octo/repo#15");
    assert!(got.facts.is_pull_request);
    let body = with(comment(), "/issue/pull_request", Value::Null);
    assert!(!delivery("issue_comment", &body).facts.is_pull_request);
}

#[test]
fn in7_in10_every_effect_of_an_issue_with_its_key() {
    let closed = with(
        issues("closed"),
        "/issue/closed_at",
        json!("2026-03-01T10:00:00+01:00"),
    );
    let close = |ending, at: Option<&str>, moved_to: Option<&str>| Effect::Close {
        ending,
        at: at.map(|at| at.parse().unwrap()),
        moved_to: moved_to.map(str::to_owned),
    };
    let mut moved = issues("transferred");
    moved["changes"] = json!({"new_issue": {"html_url": "https://github.com/octo/new/issues/1"}});
    let mut edited = issues("edited");
    edited["changes"] = json!({"body": {"from": "x"}, "title": {"from": "y"}});
    let mut labeled = issues("labeled");
    labeled["label"] = json!({"name": "The-Loop: AUTO-execute"});
    let presence = format!("github/github.com/issue/I_kwDO5/presence@{ID}");
    let rows: [(Value, &str, Effect); 7] = [
        (issues("opened"), &presence, Effect::Presence),
        (issues("reopened"), &presence, Effect::Presence),
        (labeled, &presence, Effect::Presence),
        (
            edited,
            "github/github.com/issue/I_kwDO5/edited@2026-03-01T10:00:00Z",
            Effect::Notice {
                changed: vec!["title".to_owned(), "body".to_owned()],
            },
        ),
        (
            closed,
            "github/github.com/issue/I_kwDO5/closed@2026-03-01T09:00:00Z",
            close(Ending::Closed, Some("2026-03-01T09:00:00Z"), None),
        ),
        (
            issues("deleted"),
            "github/github.com/issue/I_kwDO5/deleted",
            close(Ending::Deleted, None, None),
        ),
        (
            moved,
            "github/github.com/issue/I_kwDO5/transferred",
            close(
                Ending::Transferred,
                None,
                Some("https://github.com/octo/new/issues/1"),
            ),
        ),
    ];
    for (body, key, effect) in rows {
        let got = delivery("issues", &body);
        assert_eq!((got.content_key.as_str(), &got.effect), (key, &effect));
        assert_eq!(got.numeric_key, None);
    }
}

#[test]
fn in7_in8_actions_without_effect() {
    for action in [
        "assigned",
        "unlabeled",
        "milestoned",
        "pinned",
        "typed",
        "",
        "Closed",
        "labeled",
        "edited",
    ] {
        let parsed = parse_value("issues", &issues(action));
        assert_eq!(reason(&parsed), "action-ignored", "{action}");
    }
    let mut other_label = issues("labeled");
    other_label["label"] = json!({"name": "bug"});
    assert_eq!(
        reason(&parse_value("issues", &other_label)),
        "action-ignored"
    );
    let mut milestone = issues("edited");
    milestone["changes"] = json!({"milestone": {"from": "x"}});
    assert_eq!(reason(&parse_value("issues", &milestone)), "action-ignored");
    for action in ["edited", "deleted"] {
        let parsed = parse_value("issue_comment", &with(comment(), "/action", json!(action)));
        let Parsed::Ignored(ignored) = parsed else {
            panic!("{parsed:?}");
        };
        assert_eq!(ignored.reason, RoutingDropReason::ActionIgnored);
        assert_eq!(ignored.action.as_deref(), Some(action));
        assert_eq!(
            ignored.item.map(|i| i.to_string()).as_deref(),
            Some("github:octo/repo#15")
        );
    }
    assert_eq!(
        reason(&parse_value(
            "issues",
            &without(issues("opened"), "/action")
        )),
        "action-ignored"
    );
}

#[test]
fn in3_row13_disabled_events() {
    for event in ["ping", "fork", "push", "no_such_event"] {
        let body = json!({"zen": "Keep it logically awesome.", "hook": {"id": 1}});
        assert_eq!(
            reason(&parse_value(event, &body)),
            "disabled-event",
            "{event}"
        );
        assert_eq!(reason(&parse_text(event, "[]")), "invalid", "{event}");
    }
    let mut settings = settings();
    settings.webhooks.gh_webhook.events = vec!["issues".to_owned(), "ping".to_owned()];
    for (event, expected) in [
        ("issue_comment", "disabled-event"),
        ("ping", "disabled-event"),
        ("issues", "action-ignored"),
    ] {
        let body = issues("assigned").to_string();
        let incoming = Incoming {
            event,
            delivery_id: ID,
            encoding: Encoding::Json,
            body: body.as_bytes(),
            received_at: Timestamp::from_unix_ms(0),
        };
        assert_eq!(reason(&parse(&incoming, &settings)), expected);
    }
}

#[test]
fn in13_hosts() {
    let at = |url: Value| {
        parse_value(
            "issues",
            &with(issues("opened"), "/repository/html_url", url),
        )
    };
    for (url, item) in [
        ("https://github.com/octo/repo", "github:octo/repo#15"),
        ("https://GitHub.COM/octo/repo", "github:octo/repo#15"),
        (
            "https://ghe.example:8443/octo/repo",
            "github:ghe.example:8443/octo/repo#15",
        ),
    ] {
        let Parsed::Delivery(got) = at(json!(url)) else {
            panic!("{url}");
        };
        assert_eq!(got.item.to_string(), item);
    }
    for url in [
        "https://evil.example/octo/repo",
        "https://github.com@evil.example/octo/repo",
        "https://evil.example\\@github.com/octo/repo",
        "https://github.com.evil.example/octo/repo",
        "https://github.com:444/octo/repo",
        "https:///octo/repo",
        "github.com/octo/repo",
        "ssh://github.com/octo/repo",
        "",
    ] {
        assert_eq!(reason(&at(json!(url))), "unknown-host", "{url}");
    }
    assert_eq!(reason(&at(Value::Null)), "unknown-host");
    assert_eq!(reason(&at(json!(5))), "invalid");
    let ghe = with(
        issues("opened"),
        "/repository/html_url",
        json!("https://ghe.example:8443/o/r"),
    );
    assert!(
        delivery("issues", &ghe)
            .content_key
            .starts_with("github/ghe.example:8443/issue/")
    );
}

#[test]
fn in3_row13_without_a_work_item() {
    let none = without(issues("opened"), "/repository");
    assert_eq!(reason(&parse_value("issues", &none)), "no-work-item");
    for name in [
        "../../x", "a/b/c", "a", "", "a/", "/b", "a/b\0", "a b/c", "-a/b", "a/..", "a/b.git",
    ] {
        let body = with(issues("opened"), "/repository/full_name", json!(name));
        assert_eq!(
            reason(&parse_value("issues", &body)),
            "no-work-item",
            "{name:?}"
        );
    }
    for number in ["0", "-1", "18446744073709551616", "1.5", "1e3"] {
        let text = issues("opened")
            .to_string()
            .replace("\"number\":15", &format!("\"number\":{number}"));
        assert_eq!(
            reason(&parse_text("issues", &text)),
            "no-work-item",
            "{number}"
        );
    }
    let text = with(issues("opened"), "/issue/number", json!("15"));
    assert_eq!(reason(&parse_value("issues", &text)), "invalid");
    let none = without(issues("opened"), "/issue");
    assert_eq!(reason(&parse_value("issues", &none)), "no-work-item");
    let both = with(
        none,
        "/repository/html_url",
        json!("https://evil.example/o/r"),
    );
    assert_eq!(
        reason(&parse_value("issues", &both)),
        "unknown-host",
        "the host is judged first"
    );
}

#[test]
fn in12_missing_fields_leave_a_dash_in_the_key() {
    let long = "x".repeat(257);
    for node in [Value::Null, json!(""), json!(long)] {
        let got = delivery("issue_comment", &with(comment(), "/comment/node_id", node));
        assert_eq!(got.content_key, "github/github.com/comment/-/created");
        assert!(!got.content_key_is_whole());
        assert!(got.numeric_key.is_some());
    }
    let exact = "x".repeat(256);
    let got = delivery(
        "issue_comment",
        &with(comment(), "/comment/node_id", json!(exact)),
    );
    assert!(got.content_key_is_whole());
    let got = delivery("issue_comment", &without(comment(), "/comment/id"));
    assert_eq!(got.numeric_key, None);
    let got = delivery("issues", &issues("closed"));
    assert_eq!(got.content_key, "github/github.com/issue/I_kwDO5/closed@-");
    assert!(!got.content_key_is_whole());
    let odd = with(issues("closed"), "/issue/closed_at", json!("yesterday"));
    assert!(delivery("issues", &odd).content_key.ends_with("@-"));
}

#[test]
fn in7_actors() {
    let by = |sender: Value| delivery("issues", &with(issues("opened"), "/sender", sender)).actor;
    assert_eq!(by(Value::Null), None);
    assert_eq!(by(json!({"id": 5})), None);
    assert_eq!(by(json!({"login": "", "id": 5})), None);
    for (sender, bot) in [
        (
            json!({"login": "operator[bot]", "id": 5, "type": "User"}),
            true,
        ),
        (json!({"login": "operator", "id": 5, "type": "Bot"}), true),
        (json!({"login": "operator", "id": 5, "type": "User"}), false),
    ] {
        assert_eq!(by(sender).map(|a| a.bot), Some(bot));
    }
    let ghost = delivery(
        "issue_comment",
        &with(comment(), "/comment/user", Value::Null),
    );
    assert!(matches!(
        ghost.effect,
        Effect::Text(Text { author: None, .. })
    ));
    assert!(ghost.actor.is_some());
}

#[test]
fn in3_row12_invalid_payloads() {
    let good = comment().to_string();
    for (name, body) in [
        ("empty", String::new()),
        ("array", "[]".to_owned()),
        (
            "array of fields",
            r#"["created",null,null,null,null]"#.to_owned(),
        ),
        ("null", "null".to_owned()),
        ("text", "\"x\"".to_owned()),
        ("number", "5".to_owned()),
        ("cut", good[..good.len() - 1].to_owned()),
        ("more behind", format!("{good} {{}}")),
        ("byte order mark", format!("\u{feff}{good}")),
        (
            "sender as array",
            r#"{"action":"created","sender":["a",1,"User"]}"#.to_owned(),
        ),
        (
            "repeated key",
            r#"{"action":"created","action":"created"}"#.to_owned(),
        ),
        (
            "repeated key, escaped",
            r#"{"action":"edited","act\u0069on":"created"}"#.to_owned(),
        ),
        (
            "repeated inside",
            r#"{"action":"x","sender":{"login":"a","login":"b"}}"#.to_owned(),
        ),
        (
            "repeated null",
            r#"{"sender":null,"sender":null}"#.to_owned(),
        ),
        ("wrong type", r#"{"action":5}"#.to_owned()),
        ("lone high surrogate", r#"{"action":"\ud800"}"#.to_owned()),
        (
            "lone low surrogate, skipped field",
            r#"{"action":"x","zen":"\udc00"}"#.to_owned(),
        ),
        ("swapped pair", r#"{"zen":"\udc00\ud800"}"#.to_owned()),
        (
            "raw control character",
            "{\"action\":\"a\u{1}\"}".to_owned(),
        ),
        ("nested arrays", format!("{{\"a\":{}", "[".repeat(10_000))),
        (
            "nested and closed",
            format!("{{\"a\":{}{}}}", "[".repeat(64), "]".repeat(64)),
        ),
        ("new comment without comment", issues("created").to_string()),
    ] {
        assert_eq!(
            parse_text("issue_comment", &body),
            Parsed::Invalid,
            "{name}"
        );
    }
    assert_eq!(
        parse_bytes("issues", Encoding::Json, b"{\"a\":\"\xff\"}"),
        Parsed::Invalid
    );
}

#[test]
fn in3_row12_what_is_no_reason_to_refuse() {
    for (name, body) in [
        (
            "depth 64",
            format!("{{\"a\":{}{}}}", "[".repeat(63), "]".repeat(63)),
        ),
        (
            "brackets in a text",
            format!("{{\"a\":\"{}\"}}", "[".repeat(100)),
        ),
        ("a pair", r#"{"a":"\ud83d\ude00"}"#.to_owned()),
        ("a quoted backslash", r#"{"a":"\\ud800"}"#.to_owned()),
        (
            "repeated key that is not read",
            r#"{"zen":1,"zen":2}"#.to_owned(),
        ),
        (
            "wrong type that is not read",
            r#"{"comment":5,"organization":[]}"#.to_owned(),
        ),
    ] {
        assert_eq!(
            reason(&parse_text("issues", &body)),
            "action-ignored",
            "{name}"
        );
    }
}

#[test]
fn in3_form_encoding() {
    let json = comment().to_string();
    let encoded = hex::encode_upper(&json);
    let encoded = encoded
        .as_bytes()
        .chunks(2)
        .fold(String::new(), |out, pair| {
            out + "%" + std::str::from_utf8(pair).unwrap()
        });
    for body in [
        format!("payload={encoded}"),
        format!("a=b&payload={encoded}&c"),
        format!("p%61yload={}", encoded.replace("%20", "+")),
    ] {
        let parsed = parse_bytes("issue_comment", Encoding::Form, body.as_bytes());
        assert_eq!(reason(&parsed), "delivery");
    }
    for body in [
        String::new(),
        "a=b".to_owned(),
        format!("payload={encoded}&payload={encoded}"),
        format!("payload={encoded}&payload"),
        format!("payload={encoded}%"),
        format!("payload={encoded}%4"),
        format!("payload={encoded}%zz"),
        "payload=%ff".to_owned(),
        "payload".to_owned(),
        json,
    ] {
        let parsed = parse_bytes("issue_comment", Encoding::Form, body.as_bytes());
        assert_eq!(parsed, Parsed::Invalid, "{body}");
    }
}

#[test]
fn in2_a_text_has_no_cap_of_its_own() {
    let long = "a\u{1F600}".repeat(400_000);
    let got = delivery(
        "issue_comment",
        &with(comment(), "/comment/body", json!(long)),
    );
    assert!(matches!(got.effect, Effect::Text(text) if text.body == long));
}

/// Any JSON value, most often small.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

const POINTERS: [&str; 18] = [
    "/action",
    "/issue",
    "/issue/number",
    "/issue/node_id",
    "/issue/labels",
    "/issue/user",
    "/issue/pull_request",
    "/issue/closed_at",
    "/comment",
    "/comment/id",
    "/comment/node_id",
    "/comment/body",
    "/comment/created_at",
    "/repository",
    "/repository/full_name",
    "/repository/html_url",
    "/sender",
    "/sender/login",
];

proptest! {
    #[test]
    fn in3_row12_never_panics_on_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400), form: bool) {
        let encoding = if form { Encoding::Form } else { Encoding::Json };
        for event in ["issues", "issue_comment", "ping"] {
            let _ = parse_bytes(event, encoding, &bytes);
        }
    }

    #[test]
    fn in3_row12_never_panics_on_mutated_text(at in any::<prop::sample::Index>(), with in any::<u8>(), cut: bool) {
        let mut bytes = comment().to_string().into_bytes();
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
        } else {
            bytes[at] = with;
        }
        let _ = parse_bytes("issue_comment", Encoding::Json, &bytes);
    }

    #[test]
    fn in3_row12_any_value_in_any_place_is_judged(at in prop::sample::select(&POINTERS[..]), value in any_json(), created: bool) {
        let (event, body) = if created { ("issue_comment", comment()) } else { ("issues", issues("opened")) };
        let body = if body.pointer(at.rsplit_once('/').unwrap().0).is_some() {
            with(body, at, value)
        } else {
            body
        };
        match parse_value(event, &body) {
            // Whatever is let in has a ref that can be written and read again.
            Parsed::Delivery(got) => {
                prop_assert_eq!(got.item.to_string().parse::<WorkItemRef>().ok(), Some(got.item));
            }
            Parsed::Ignored(_) | Parsed::Invalid => {}
        }
    }
}
