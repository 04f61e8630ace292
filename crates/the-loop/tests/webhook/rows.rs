//! IN-3 row by row, as far as one request decides.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use the_loop::ingress::webhook::Limits;

use crate::support::{Post, SECRET, Server, comment, good, sign};

#[test]
fn in3_row3_health() {
    let server = Server::start(Limits::default());
    let mut peer = server.connect();
    for path in [
        "/health",
        "/health/",
        "/healthz",
        "/healthz/",
        "/health?x=y",
        "/healthz/?",
    ] {
        peer.write(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        let answer = peer.answer();
        answer.is(200, "ok");
        assert_eq!(answer.body, json!({"status": "ok"}));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        peer.write(format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        assert_eq!(peer.answer_to(false).status, 200);
    }
    assert!(server.rejections().is_empty());
}

#[test]
fn in3_row4_other_paths() {
    let server = Server::start(Limits::default());
    let mut peer = server.connect();
    for line in [
        "GET /",
        "POST /",
        "POST /gh-webhook/",
        "POST /GH-webhook",
        "POST /gh-webhook/x",
        "POST /health",
        "GET /health//",
        "GET /Health",
        "OPTIONS *",
    ] {
        peer.write(format!("{line} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").as_bytes());
        peer.answer().is(404, "not found");
    }
    assert!(server.rejections().is_empty());
}

#[test]
fn in3_row5_only_post() {
    let server = Server::start(Limits::default());
    for method in ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let mut peer = server.connect();
        peer.write(format!("{method} /gh-webhook HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        let answer = peer.answer_to(method != "HEAD");
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("POST"));
    }
}

#[test]
fn in3_row6_doubtful_framing() {
    let server = Server::start(Limits::default());
    let length = |value: &str| good("d").with("Content-Length", Some(value));
    let chunked = |post: Post| post.and("Transfer-Encoding", "chunked");
    let none = good("d").with("Content-Length", None);
    let lines: Vec<Post> = vec![
        length("-1"),
        length("abc"),
        length("9e9"),
        length(""),
        length("+5"),
        length("5, 5"),
        length("0x10"),
        length("5").and("Content-Length", "6"),
        chunked(length("5")),
        chunked(none.clone()).and("content-length", "0"),
        none.clone().and("Transfer-Encoding", "gzip, chunked"),
        none.clone().and("Transfer-Encoding", "identity"),
        chunked(chunked(none.clone())),
    ];
    for post in &lines {
        let mut peer = server.connect();
        peer.write(&post.bytes());
        let answer = peer.answer();
        answer.is(400, "invalid request");
        assert_eq!(answer.header("connection"), Some("close"), "{post:?}");
        peer.assert_closed();
    }
    assert_eq!(server.stored(), 0);
    assert_eq!(
        server.rejections(),
        ["invalid-request"],
        "one line, the others are counted"
    );
    // HTTP/1.0 knows no chunked coding.
    let old = String::from_utf8(chunked(none).bytes()).unwrap();
    server
        .send(old.replace("HTTP/1.1", "HTTP/1.0").as_bytes())
        .is(400, "invalid request");
}

#[test]
fn in3_row6_comes_after_rows_3_to_5() {
    let server = Server::start(Limits::default());
    for (line, status) in [
        ("GET /health", 200),
        ("POST /x", 404),
        ("GET /gh-webhook", 405),
    ] {
        let mut peer = server.connect();
        let head =
            format!("{line} HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n");
        peer.write(head.as_bytes());
        assert_eq!(peer.answer().status, status);
        peer.assert_closed();
    }
}

#[test]
fn in3_row6_one_length_given_twice_is_no_doubt() {
    let server = Server::start(Limits::default());
    let post = good("twice");
    let length = post.body.len().to_string();
    server
        .post(&post.and("content-length", &length))
        .is(202, "accepted");
}

#[test]
fn in3_row7_announced_too_large() {
    let server = Server::start(Limits::default());
    let lengths = [
        ((25 << 20) + 1).to_string(),
        "99999999999".to_owned(),
        u64::MAX.to_string(),
        "9".repeat(40),
    ];
    for length in lengths {
        let mut peer = server.connect();
        peer.write(&good("d").with("Content-Length", Some(&length)).head());
        peer.answer().is(413, "payload too large");
        peer.assert_closed();
    }
    assert_eq!(server.rejections(), ["too-large"]);
}

#[test]
fn in2_in3_row7_a_never_ending_body_is_refused_at_the_first_byte_over() {
    let server = Server::start(Limits::default());
    let mut peer = server.connect();
    let post = good("d")
        .with("Content-Length", None)
        .and("Transfer-Encoding", "chunked");
    peer.write(&post.head());
    let mib = [&b"100000\r\n"[..], &vec![b' '; 1 << 20], b"\r\n"].concat();
    for _ in 0..25 {
        peer.write(&mib);
    }
    peer.write(b"1\r\n \r\n");
    let answer = peer.answer();
    answer.is(413, "payload too large");
    peer.assert_closed();
    server.assert_up();
}

#[test]
fn in2_a_body_of_exactly_the_limit_is_read() {
    let server = Server::start(Limits::default());
    let mut body = comment(15, "IC_full", "").to_string();
    let room = (25 << 20) - body.len();
    body = comment(15, "IC_full", &"x".repeat(room)).to_string();
    assert_eq!(body.len(), 25 << 20);
    server
        .post(&Post::new("issue_comment", "full", body))
        .is(202, "accepted");
}

#[test]
fn in3_row9_signatures() {
    let server = Server::start(Limits::default());
    let post = good("d");
    let right = sign(SECRET, &post.body);
    let signed = |value: &str| post.clone().with("X-Hub-Signature-256", Some(value));
    let recoded = serde_json::to_vec_pretty(&serde_json::from_slice::<Value>(&post.body).unwrap());
    let mut other_body = post.clone();
    other_body.body = recoded.unwrap();
    let length = other_body.body.len().to_string();
    for bad in [
        post.clone().with("X-Hub-Signature-256", None),
        post.clone()
            .with("X-Hub-Signature-256", None)
            .and("X-Hub-Signature", &right),
        post.clone().and("X-Hub-Signature-256", &right),
        signed(&right.to_uppercase()),
        signed(&format!(
            "sha256={}",
            right["sha256=".len()..].to_uppercase()
        )),
        signed(&right.replace("sha256=", "sha1=")),
        signed(&right["sha256=".len()..]),
        signed("sha256="),
        signed("sha256=é"),
        signed(&sign("another secret", &post.body)),
        other_body.with("Content-Length", Some(&length)),
        // Rows below are not reached without a signature.
        signed("x").with("Content-Type", None),
        Post::new("issues", "d", "[]").with("X-Hub-Signature-256", None),
    ] {
        server.post(&bad).is(401, "invalid signature");
    }
    assert_eq!(server.stored(), 0);
    let line = &server.events("webhook.rejected")[0];
    assert_eq!(
        (&line["level"], &line["status"]),
        (&json!("warning"), &json!(401))
    );
    server.post(&post).is(202, "accepted");
}

#[test]
fn in5_rotation_of_the_secret() {
    let server = Server::start(Limits::default());
    let old = "the outgoing secret 1";
    *server.secrets.lock().unwrap() = vec![SECRET, old];
    let by_old = good("old");
    let signature = sign(old, &by_old.body);
    server
        .post(&by_old.with("X-Hub-Signature-256", Some(&signature)))
        .is(202, "accepted");
    server.post(&good("new")).is(202, "accepted");
    let received = server.events("webhook.received");
    let numbers: Vec<&Value> = received.iter().map(|line| &line["secret"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(1)]);
    *server.secrets.lock().unwrap() = vec![];
    server.post(&good("none")).is(401, "invalid signature");
}

#[test]
fn in3_row10_content_types() {
    let server = Server::start(Limits::default());
    for value in [
        None,
        Some("text/plain"),
        Some("application/jsonx"),
        Some(""),
        Some("multipart/form-data"),
    ] {
        server
            .post(&good("d").with("Content-Type", value))
            .is(415, "unsupported media type");
    }
    for coding in ["gzip", "br", "identity"] {
        let post = good("d").and("Content-Encoding", coding);
        server.post(&post).is(415, "unsupported media type");
    }
    assert_eq!(server.rejections(), ["invalid-payload"]);
    for (n, value) in ["application/json; charset=utf-8", "APPLICATION/JSON"]
        .iter()
        .enumerate()
    {
        let post = good(&format!("d{n}")).with("Content-Type", Some(value));
        server.post(&post).is(202, "accepted");
    }
}

#[test]
fn in3_row11_event_and_delivery() {
    let server = Server::start(Limits::default());
    let long = "x".repeat(101);
    for (name, values) in [
        ("X-GitHub-Event", ["Issues", "", "a-b", "a b", &long[..65]]),
        ("X-GitHub-Delivery", ["", "a_b", "a b", "é", &long]),
    ] {
        server
            .post(&good("d").with(name, None))
            .is(400, "invalid request");
        for value in values {
            server
                .post(&good("d").with(name, Some(value)))
                .is(400, "invalid request");
        }
        server
            .post(&good("d").and(name, "issues"))
            .is(400, "invalid request");
    }
    assert_eq!(server.stored(), 0);
}

#[test]
fn in3_row12_bad_payloads_leave_the_server_up() {
    let server = Server::start(Limits::default());
    let nested = format!("{{\"a\":{}", "[".repeat(10_000));
    for body in [
        "",
        "[]",
        "null",
        "\"x\"",
        r#"{"a":"\ud800"}"#,
        &nested,
        "{\"action\":5}",
        "{",
    ] {
        let post = Post::new("issue_comment", "d", body);
        server.post(&post).is(400, "invalid payload");
        let unsigned = post.with("X-Hub-Signature-256", None);
        server.post(&unsigned).is(401, "invalid signature");
    }
    server
        .post(&Post::new("issues", "d", b"{\"a\":\"\xff\"}".to_vec()))
        .is(400, "invalid payload");
    let line = &server.events("webhook.rejected")[0];
    assert_eq!(line["level"], "error");
    assert_eq!(
        (&line["gh_event"], &line["delivery_id"]),
        (&json!("issue_comment"), &json!("d"))
    );
    server.assert_up();
}

#[test]
fn in3_row13_ignored_in_its_order() {
    let server = Server::start(Limits::default());
    let post = |event: &str, body: &Value| server.post(&Post::new(event, "d", body.to_string()));
    let mut body = comment(15, "IC_1", "x");
    post("ping", &json!({"zen": "x", "hook_id": 1})).is_ignored("disabled-event");
    post("pull_request_review_thread", &body).is_ignored("disabled-event");
    post("workflow_job", &body).is_ignored("disabled-event");
    body["action"] = json!("edited");
    body["repository"]["html_url"] = json!("https://evil.example/octo/repo");
    post("issue_comment", &body).is_ignored("action-ignored");
    body["action"] = json!("created");
    post("issue_comment", &body).is_ignored("unknown-host");
    body["repository"]["full_name"] = json!("../../x");
    body["repository"]["html_url"] = json!("https://github.com/octo/repo");
    post("issue_comment", &body).is_ignored("no-work-item");
    body["repository"] = Value::Null;
    let answer = post("issue_comment", &body);
    answer.is_ignored("no-work-item");
    assert_eq!(
        answer.body,
        json!({"status": "ignored", "reason": "no-work-item", "delivery": "d"})
    );

    assert_eq!(server.stored(), 0);
    assert!(server.events("webhook.received").is_empty());
    let lines = server.events("routing.dropped");
    let told: Vec<(&str, &str, &str)> = lines
        .iter()
        .map(|l| {
            ["reason", "level", "source"]
                .map(|k| l[k].as_str().unwrap())
                .into()
        })
        .collect();
    assert_eq!(
        told,
        [
            ("disabled-event", "debug", "gh-webhook"),
            ("disabled-event", "debug", "gh-webhook"),
            ("disabled-event", "debug", "gh-webhook"),
            ("action-ignored", "debug", "gh-webhook"),
            ("unknown-host", "warning", "gh-webhook"),
            ("no-work-item", "debug", "gh-webhook"),
            ("no-work-item", "debug", "gh-webhook"),
        ]
    );
}

#[test]
fn in66_the_events_filter_counts_at_once() {
    let server = Server::start(Limits::default());
    server.settings.lock().unwrap().webhooks.gh_webhook.events = vec!["issues".to_owned()];
    server.post(&good("d")).is_ignored("disabled-event");
    server.settings.lock().unwrap().webhooks.gh_webhook.events = vec!["issue_comment".to_owned()];
    server.post(&good("d")).is(202, "accepted");
}

#[test]
fn in3_row14_row15_accepted_once_by_whatever_name() {
    let server = Server::start(Limits::default());
    let first = Post::new(
        "issue_comment",
        "one",
        comment(15, "IC_1", "first").to_string(),
    );
    let answer = server.post(&first);
    answer.is(202, "accepted");
    assert_eq!(
        answer.body,
        json!({"status": "accepted", "delivery": "one"})
    );
    assert_eq!(server.wakes.load(Ordering::SeqCst), 1);

    server.post(&first).is(202, "duplicate");
    let other_hook = Post::new(
        "issue_comment",
        "two",
        comment(15, "IC_1", "first").to_string(),
    );
    server.post(&other_hook).is(202, "duplicate");
    let other_text = Post::new(
        "issue_comment",
        "one",
        comment(15, "IC_2", "other").to_string(),
    );
    server.post(&other_text).is(202, "duplicate");
    let mut bare = comment(15, "", "first");
    bare["comment"]["node_id"] = Value::Null;
    let bare = Post::new("issue_comment", "three", bare.to_string());
    server.post(&bare).is(202, "duplicate");
    let encoded = hex::encode(&first.body);
    let encoded = encoded
        .as_bytes()
        .chunks(2)
        .fold(String::new(), |out, pair| {
            out + "%" + std::str::from_utf8(pair).unwrap()
        });
    let form = Post::new("issue_comment", "four", format!("payload={encoded}"))
        .with("Content-Type", Some("application/x-www-form-urlencoded"));
    server.post(&form).is(202, "duplicate");

    assert_eq!(server.stored(), 1);
    let received = &server.events("webhook.received");
    assert_eq!(received.len(), 1);
    assert_eq!(received[0]["source"], "gh-webhook");
    assert_eq!(
        (&received[0]["verified"], &received[0]["secret"]),
        (&json!(true), &json!(1))
    );
    let accepted = server.events("delivery.accepted");
    assert_eq!(accepted.len(), 1);
    assert_eq!(
        accepted[0]["content_key"],
        "github/github.com/comment/IC_1/created"
    );
    assert_eq!(
        (&accepted[0]["actor"], &accepted[0]["ingress"]),
        (&json!("maintainer"), &json!("webhook"))
    );
    let duplicates = server.events("delivery.duplicate");
    let by: Vec<&str> = duplicates
        .iter()
        .map(|l| l["by"].as_str().unwrap())
        .collect();
    assert_eq!(by, ["content", "content", "numeric", "numeric", "content"]);
    assert!(duplicates.iter().all(|l| l["first_delivery_id"] == "one"));
}

#[test]
fn in3_query_strings_are_ignored() {
    let server = Server::start(Limits::default());
    let mut post = good("d");
    post.target = "/gh-webhook?secret=x&y".to_owned();
    server.post(&post).is(202, "accepted");
}

#[test]
fn in4_only_the_signed_body_names_the_host() {
    let server = Server::start(Limits::default());
    let post = good("d")
        .with("Host", Some("evil.example"))
        .and("X-GitHub-Enterprise-Host", "evil.example")
        .and("X-Forwarded-Host", "evil.example");
    server.post(&post).is(202, "accepted");
    let accepted = server.events("delivery.accepted");
    assert!(
        accepted[0]["content_key"]
            .as_str()
            .unwrap()
            .starts_with("github/github.com/")
    );
}

#[test]
fn in1_routing_off_sees_and_stores_nothing() {
    let server = Server::start(Limits::default());
    server.settings.lock().unwrap().routing.enabled = false;
    server.post(&good("a")).is_ignored("routing-off");
    server
        .post(&good("b").with("X-Hub-Signature-256", None))
        .is(401, "invalid signature");
    server
        .post(&good("b").body("[]"))
        .is(400, "invalid payload");
    server.secrets.lock().unwrap().clear();
    server
        .post(&good("c").with("X-Hub-Signature-256", None))
        .is_ignored("routing-off");
    server
        .post(&Post::new("ping", "e", "{}"))
        .is_ignored("routing-off");
    server.post(&good("d").body("")).is(400, "invalid payload");
    let seen = server.events("webhook.received");
    let told: Vec<(&str, bool, Option<u64>)> = seen
        .iter()
        .map(|l| {
            (
                l["delivery_id"].as_str().unwrap(),
                l["verified"].as_bool().unwrap(),
                l["secret"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [("a", true, Some(1)), ("c", false, None), ("e", false, None)]
    );
    assert_eq!(server.stored(), 0);
}
