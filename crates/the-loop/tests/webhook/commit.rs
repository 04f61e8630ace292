//! Rows 14 to 16 where the disk, time or the end of the program come in between.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use the_loop::ingress::webhook::Limits;
use the_loop_testkit::Blow;

use crate::support::{Server, good, wait_for};

#[test]
fn in3_row16_a_disk_that_refuses() {
    let server = Server::start(Limits::default());
    server
        .inbox_fuse
        .plan(server.inbox_fuse.calls() + 1, Blow::FailFrom);
    let answer = server.post(&good("d"));
    answer.is(503, "unavailable");
    assert_eq!(answer.header("retry-after"), Some("30"));
    assert!(server.events("delivery.accepted").is_empty());
    let line = &server.events("webhook.rejected")[0];
    assert_eq!(
        (&line["reason"], &line["level"]),
        (&json!("unavailable"), &json!("error"))
    );
    server.assert_up();
    server.inbox_fuse.mend();
    server.post(&good("d")).is(202, "accepted");
    assert_eq!(server.stored(), 1);
}

#[test]
fn in3_row16_a_commit_that_takes_too_long_may_still_succeed() {
    let limits = Limits {
        commit_time: Duration::from_secs(1),
        ..Limits::default()
    };
    let server = Server::start(limits);
    let other = rusqlite::Connection::open(&server.inbox_path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    server.post(&good("d")).is(503, "unavailable");
    other.execute_batch("ROLLBACK").unwrap();
    wait_for("the late commit is logged", || {
        !server.events("delivery.accepted").is_empty()
    });
    server.post(&good("d")).is(202, "duplicate");
    assert_eq!(server.stored(), 1);
}

#[test]
fn in3_row14_what_was_abandoned_gets_one_more_budget() {
    let server = Server::start(Limits::default());
    server.post(&good("d")).is(202, "accepted");
    let database = rusqlite::Connection::open(&server.inbox_path).unwrap();
    let given_up = "UPDATE deliveries SET state = 'routed';
        INSERT INTO outcomes (seq, item_key, item, state, attempts, updated_at)
        SELECT seq, 'github:octo/repo#15', 'github:octo/repo#15', 'abandoned', 3, 0 FROM deliveries";
    database.execute_batch(given_up).unwrap();
    server.post(&good("d")).is(202, "duplicate");
    let sql = "SELECT state, attempts FROM outcomes";
    let row = database.query_row(sql, [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    });
    assert_eq!(row.unwrap(), ("queued".to_owned(), 0));
    assert_eq!(server.events("delivery.duplicate").len(), 1);
    let retried = &server.events("delivery.retried")[0];
    assert_eq!(
        (&retried["via"], &retried["was"]),
        (&json!("redelivery"), &json!("abandoned"))
    );
    assert_eq!(
        server.wakes.load(Ordering::SeqCst),
        2,
        "there is something to do again"
    );
}

#[test]
fn in3_row16_shutdown_has_begun() {
    let mut server = Server::start(Limits::default());
    let mut idle = server.connect();
    idle.write(b"GET /health HTTP/1.1\r\n\r\n");
    idle.answer().is(200, "ok");
    let mut half_way = server.connect();
    let post = good("d").and("Expect", "100-continue");
    half_way.write(&post.head());
    assert_eq!(half_way.answer().status, 100, "its body is awaited");
    half_way.write(&post.body[..10]);
    server.stop();
    let answer = half_way.answer();
    answer.is(503, "unavailable");
    assert_eq!(answer.header("retry-after"), Some("30"));
    half_way.assert_closed();
    idle.assert_closed();
    assert!(
        std::net::TcpStream::connect(server.address).is_err(),
        "the port is free"
    );
    assert_eq!(server.stored(), 0);
}

#[test]
fn in6_rejections_are_counted_and_told_seldom() {
    let server = Server::start(Limits::default());
    let unsigned = good("d").with("X-Hub-Signature-256", None);
    for _ in 0..4 {
        server.post(&unsigned).is(401, "invalid signature");
    }
    server
        .post(&good("d").body("[]"))
        .is(400, "invalid payload");
    server.clock.advance(Duration::from_secs(10));
    server.post(&unsigned).is(401, "invalid signature");
    let lines = server.events("webhook.rejected");
    let told: Vec<(&str, Option<u64>)> = lines
        .iter()
        .map(|l| (l["reason"].as_str().unwrap(), l["count"].as_u64()))
        .collect();
    assert_eq!(
        told,
        [
            ("invalid-signature", None),
            ("invalid-payload", None),
            ("invalid-signature", Some(4))
        ]
    );
}
