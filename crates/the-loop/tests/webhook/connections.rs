//! Rows 1, 2, 7 and 8, and how connections begin and end (IN-1, IN-2).

use std::time::Duration;

use the_loop::ingress::webhook::{BindFault, Limits};
use the_loop_core::config::Settings;

use crate::support::{Post, Server, good, routing_on, wait_for};

/// A limit that a test waits out. Whoever is to keep within it has nothing else to do.
const SHORT: Duration = Duration::from_secs(1);

#[test]
fn in1_does_not_start_without_a_secret() {
    let fault = Server::try_start(Limits::default(), routing_on(), vec![])
        .err()
        .unwrap();
    assert!(matches!(fault, BindFault::NoSecret));
    let words = fault.to_string();
    assert!(words.contains("webhooks.ghWebhook.secretFile"), "{words}");
    assert!(words.contains("webhooks.ghWebhook.secretEnv"), "{words}");
    let off = Server::try_start(Limits::default(), Settings::default(), vec![]);
    off.ok().unwrap().assert_up();
}

#[test]
fn in3_row1_one_connection_too_many() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let server = Server::start(limits);
    let mut held = [server.connect(), server.connect()];
    for peer in &mut held {
        peer.write(b"GET /health HTTP/1.1\r\n\r\n");
        peer.answer().is(200, "ok");
    }
    let mut third = server.connect();
    let answer = third.answer();
    answer.is(503, "busy");
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(answer.header("connection"), Some("close"));
    third.end();
    third.assert_closed();
    assert_eq!(server.rejections(), ["busy"]);
    drop(held);
    wait_for("a place is free", || {
        let mut peer = server.connect();
        let _ = peer.try_write(b"GET /health HTTP/1.1\r\n\r\n");
        peer.answer().status == 200
    });
}

#[test]
fn in2_idle_connections_do_not_lock_others_out() {
    let limits = Limits {
        head_time: Duration::from_secs(4),
        ..Limits::default()
    };
    let server = Server::start(limits);
    let mut peers: Vec<_> = (0..300).map(|_| server.connect()).collect();
    // The last ones were turned away at once, the first ones after their time.
    let late: Vec<u16> = peers[256..]
        .iter_mut()
        .map(|peer| peer.answer().status)
        .collect();
    assert_eq!(late, vec![503; 44]);
    let held: Vec<u16> = peers[..256]
        .iter_mut()
        .map(|peer| peer.answer().status)
        .collect();
    assert_eq!(held, vec![408; 256]);
    drop(peers);
    wait_for("somebody is served again", || {
        let mut peer = server.connect();
        let _ = peer.try_write(b"GET /health HTTP/1.1\r\n\r\n");
        peer.answer().status == 200
    });
    assert_eq!(server.rejections(), ["busy", "timeout"]);
}

#[test]
fn in3_row2_a_head_that_does_not_end() {
    let limits = Limits {
        head_time: SHORT,
        ..Limits::default()
    };
    let server = Server::start(limits);
    let begun = [
        &b""[..],
        b"P",
        b"POST /gh-webhook HTTP/1.1\r\n",
        b"\r\n\r\n",
    ];
    let mut peers = begun.map(|begun| {
        let mut peer = server.connect();
        peer.write(begun);
        peer
    });
    for peer in &mut peers {
        peer.answer().is(408, "timeout");
        peer.end();
        peer.assert_closed();
    }
    // The second request of a connection has a clock of its own, from its first byte.
    let mut peer = server.connect();
    peer.write(b"GET /health HTTP/1.1\r\n\r\n");
    peer.answer().is(200, "ok");
    peer.write(b"GET /hea");
    peer.answer().is(408, "timeout");
    assert_eq!(server.rejections(), ["timeout"]);
}

#[test]
fn in2_idle_keep_alive_ends_without_a_word() {
    let limits = Limits {
        idle_time: SHORT,
        ..Limits::default()
    };
    let server = Server::start(limits);
    let mut peer = server.connect();
    peer.write(b"GET /health HTTP/1.1\r\n\r\n");
    peer.answer().is(200, "ok");
    peer.assert_closed();
    assert!(server.rejections().is_empty());
}

#[test]
fn in3_row2_heads_too_large() {
    let server = Server::start(Limits::default());
    let fields = |count: usize| -> Post {
        // `good` has six fields.
        (6..count).fold(good("d"), |post, n| post.and(&format!("X-{n}"), "x"))
    };
    let sized = |bytes: usize| {
        let empty = good("e").and("X-Long", "").head().len();
        good("e").and("X-Long", &"x".repeat(bytes - empty))
    };
    for post in [fields(65), sized((16 << 10) + 1), sized(1 << 20)] {
        let mut peer = server.connect();
        let _ = peer.try_write(&post.bytes());
        peer.answer().is(431, "too large");
        peer.end();
        peer.assert_closed();
    }
    assert_eq!(server.rejections(), ["too-large"]);
    server.post(&fields(64)).is(202, "accepted");
    server.post(&sized(16 << 10)).is(202, "accepted");
}

#[test]
fn in3_row2_what_is_not_http() {
    let server = Server::start(Limits::default());
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"hello\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
    ] {
        let mut peer = server.connect();
        peer.write(bytes);
        peer.answer().is(400, "invalid request");
        peer.end();
        peer.assert_closed();
    }
    let mut peer = server.connect();
    peer.write(b"GET /health HT");
    peer.end();
    peer.answer().is(400, "invalid request");
    assert_eq!(server.rejections(), ["invalid-request"]);
    server.assert_up();
}

#[test]
fn in3_row2_where_the_library_answers_itself() {
    let server = Server::start(Limits::default());
    let mut peer = server.connect();
    peer.write(b"GET http://[ HTTP/1.1\r\n\r\n");
    assert_eq!(peer.answer().status, 400);
    peer.end();
    peer.assert_closed();
    wait_for("it is logged", || {
        server.rejections() == ["invalid-request"]
    });
}

#[test]
fn in3_row8_bodies_that_do_not_come() {
    let limits = Limits {
        body_time: SHORT,
        ..Limits::default()
    };
    let server = Server::start(limits);
    let ten = good("d").with("Content-Length", Some("10"));
    let chunked = good("d")
        .with("Content-Length", None)
        .and("Transfer-Encoding", "chunked");
    let cases = [
        (&ten, &b"12345"[..], false),
        (&ten, b"12345", true),
        (&ten, b"", false),
        (&chunked, b"5\r\n123", true),
        (&chunked, b"5\r\n123", false),
    ];
    let peers = cases.map(|(post, sent, ends)| {
        let mut peer = server.connect();
        peer.write(&post.head());
        peer.write(sent);
        if ends {
            peer.end();
        }
        (peer, ends)
    });
    for (mut peer, ended) in peers {
        let answer = peer.answer();
        answer.is(408, "timeout");
        assert_eq!(answer.header("connection"), Some("close"));
        if !ended {
            peer.end();
        }
        peer.assert_closed();
    }
    assert_eq!(server.rejections(), ["timeout"]);
    assert_eq!(server.stored(), 0);
}

#[test]
fn in2_bodies_share_their_room() {
    let limits = Limits {
        buffered_bytes: 1 << 20,
        body_time: SHORT,
        ..Limits::default()
    };
    let server = Server::start(limits);
    let big = vec![b' '; 3 << 20];
    let mut peer = server.connect();
    peer.write(
        &good("d")
            .with("Content-Length", Some(&big.len().to_string()))
            .head(),
    );
    let _ = peer.try_write(&big);
    peer.answer().is(408, "timeout");
    server.post(&good("d")).is(202, "accepted");
}

#[test]
fn in3_requests_on_one_connection() {
    let server = Server::start(Limits::default());
    let mut peer = server.connect();
    for n in 0..3 {
        peer.write(&good(&format!("d{n}")).bytes());
        peer.answer().is(202, "accepted");
    }
    // Pipelined, with what is not HTTP behind: each is answered, in order.
    let mut bytes = good("p0").bytes();
    bytes.extend(good("p1").with("X-Hub-Signature-256", None).bytes());
    bytes.extend(good("p2").bytes());
    bytes.extend(b"\x16\x03\x01\n");
    peer.write(&bytes);
    peer.answer().is(202, "accepted");
    peer.answer().is(401, "invalid signature");
    peer.answer().is(202, "accepted");
    peer.answer().is(400, "invalid request");
    peer.end();
    peer.assert_closed();
    assert_eq!(server.stored(), 5);
}

#[test]
fn in3_chunked_bodies_are_read_and_end_the_connection() {
    let server = Server::start(Limits::default());
    let post = good("d")
        .with("Content-Length", None)
        .and("Transfer-Encoding", "Chunked");
    let mut bytes = post.head();
    for piece in post.body.chunks(100) {
        bytes.extend(format!("{:x}\r\n", piece.len()).bytes());
        bytes.extend(piece);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes.extend(good("smuggled").bytes());
    let mut peer = server.connect();
    peer.write(&bytes);
    peer.answer().is(202, "accepted");
    peer.end();
    peer.assert_closed();
    assert_eq!(server.stored(), 1);
}

#[test]
fn in3_a_peer_that_asks_first_is_told_to_go_on() {
    let server = Server::start(Limits::default());
    let post = good("d").and("Expect", "100-continue");
    let mut peer = server.connect();
    peer.write(&post.head());
    assert_eq!(peer.answer().status, 100);
    peer.write(&post.body);
    peer.answer().is(202, "accepted");
}

#[test]
fn in3_a_peer_that_stops_sending_is_answered() {
    let server = Server::start(Limits::default());
    let mut peer = server.connect();
    peer.write(&good("d").bytes());
    peer.end();
    peer.answer().is(202, "accepted");
    peer.assert_closed();
}
