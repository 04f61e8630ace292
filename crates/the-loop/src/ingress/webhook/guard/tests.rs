use proptest::prelude::*;

use super::*;

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

/// What comes through when `pieces` come in one by one, then the end of the stream.
fn through(pieces: &[&[u8]]) -> (Vec<u8>, Framing, Option<Refusal>) {
    runtime().block_on(async {
        // Wide enough for all that the guard may leave unread.
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        let framing = CurrentFraming::default();
        let mut guard = Guard::new(theirs, Limits::default(), framing.clone());
        let writing = async {
            for piece in pieces {
                ours.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            ours.shutdown().await.unwrap();
        };
        let mut out = Vec::new();
        let reading = guard.read_to_end(&mut out);
        let (read, ()) = tokio::join!(reading, writing);
        read.unwrap();
        (out, framing.get(), guard.fault())
    })
}

fn framing_of(fields: &str) -> Framing {
    let head = format!("POST / HTTP/1.1\r\n{fields}\r\n");
    let (_, framing, fault) = through(&[head.as_bytes()]);
    assert_eq!(fault, None);
    framing
}

#[test]
fn in3_row6_framing_by_the_head() {
    for (fields, expected) in [
        ("", Framing::Length(0)),
        ("Content-Length: 0\r\n", Framing::Length(0)),
        (
            "content-length:7\r\nCONTENT-LENGTH:\t7 \r\n",
            Framing::Length(7),
        ),
        ("Content-Length: 26214400\r\n", Framing::Length(26_214_400)),
        ("Content-Length: 26214401\r\n", Framing::TooLong),
        (
            "Content-Length: 99999999999999999999999\r\n",
            Framing::TooLong,
        ),
        (
            "Content-Length: 7\r\nContent-Length: 07\r\n",
            Framing::Doubtful,
        ),
        ("Content-Length: 1_0\r\n", Framing::Doubtful),
        ("Content-Length: \u{661}\r\n", Framing::Doubtful),
        ("Transfer-Encoding: chunked\r\n", Framing::Chunked),
        ("Transfer-Encoding: xchunked\r\n", Framing::Doubtful),
        ("Transfer-Encoding:\r\n", Framing::Doubtful),
        ("X-Content-Length: 5\r\n", Framing::Length(0)),
    ] {
        assert_eq!(framing_of(fields), expected, "{fields:?}");
    }
}

#[test]
fn in3_row6_a_refused_framing_is_not_shown_to_the_library() {
    let head = "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n12345";
    let (out, framing, _) = through(&[head.as_bytes()]);
    assert_eq!(framing, Framing::Doubtful);
    let out = String::from_utf8(out).unwrap();
    let x = "x".repeat(14);
    assert_eq!(
        out,
        format!("POST / HTTP/1.1\r\n{x}: 5\r\nxxx{x}: chunked\r\n\r\n")
    );
}

proptest! {
    #[test]
    fn in3_whole_requests_come_through_unchanged_however_they_are_cut(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..5),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let mut bytes = Vec::new();
        for body in &bodies {
            let head = format!("POST /gh-webhook HTTP/1.1\r\nA: b\r\nContent-Length: {}\r\n\r\n", body.len());
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(body);
        }
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let (out, _, fault) = through(&pieces);
        prop_assert_eq!(fault, None);
        prop_assert_eq!(out, bytes);
    }

    #[test]
    fn in3_row2_any_bytes_end_in_a_request_or_a_fault(bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        let (out, _, fault) = through(&[&bytes]);
        prop_assert!(fault.is_some() || !out.is_empty());
    }
}
