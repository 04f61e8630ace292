use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;

const REPO: &str = "octo/repo";

fn get(hub: &FakeGithub, path: &str, validator: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", hub.port())).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nauthorization: Bearer {TOKEN}\r\nif-none-match: {validator}\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let line = head.lines().find_map(|line| line.strip_prefix(name));
    line.map_or("", |value| value.trim_start_matches(':').trim())
}

#[test]
fn in41_an_unchanged_list_is_answered_by_its_validator_and_costs_nothing() {
    let hub = FakeGithub::start();
    hub.change(|world| world.issue(REPO, 1, "octocat", &["loop"]));
    let path = "/repos/octo/repo/issues?state=all&per_page=100";
    let (status, head, body) = get(&hub, path, "");
    assert_eq!(status, 200);
    assert!(body.contains("\"number\":1"), "{body}");
    let tag = header(&head, "etag").to_owned();
    let (status, head, body) = get(&hub, path, &tag);
    assert_eq!((status, &*body), (304, ""));
    assert_eq!(header(&head, "x-ratelimit-remaining"), "4999");
    hub.change(|world| world.comment(REPO, 1, "octocat", "words"));
    // The second is part of what changed.
    hub.change(|world| world.label(REPO, 1, "other", "octocat"));
    assert_eq!(get(&hub, path, &tag).0, 200);
    let seen: Vec<u16> = hub.requests().iter().map(|r| r.status).collect();
    assert_eq!(seen, [200, 304, 200]);
}

#[test]
fn in39_lists_have_pages_and_a_moment_from_which_they_begin() {
    let hub = FakeGithub::start();
    hub.change(|world| {
        for number in 1..=5 {
            world.now = Some(1_800_000_000 + 60 * i64::try_from(number).unwrap());
            world.issue(REPO, number, "octocat", &[]);
        }
    });
    let path = "/repos/octo/repo/issues?state=all&per_page=2";
    let (_, head, first) = get(&hub, path, "");
    assert!(first.contains("\"number\":1") && first.contains("\"number\":2"));
    let next = header(&head, "link");
    assert!(next.contains("&page=2>; rel=\"next\""), "{next}");
    let (_, head, last) = get(&hub, &format!("{path}&page=3"), "");
    assert!(last.contains("\"number\":5") && header(&head, "link").is_empty());
    let (_, _, late) = get(
        &hub,
        "/repos/octo/repo/issues?state=all&since=2027-01-15T08%3A04%3A00Z",
        "",
    );
    assert!(
        !late.contains("\"number\":3") && late.contains("\"number\":4"),
        "{late}"
    );
}

#[test]
fn in51_what_is_used_up_is_refused_and_faults_come_once() {
    let hub = FakeGithub::start();
    hub.has_left(1, 1_900_000_000);
    assert_eq!(get(&hub, "/user", "").0, 200);
    let (status, head, _) = get(&hub, "/user", "");
    assert_eq!(status, 403);
    assert_eq!(header(&head, "x-ratelimit-remaining"), "0");
    hub.has_left(10, 1_900_000_000);
    hub.fails(
        "/user",
        Fault::Status(502, String::new(), "<html>".to_owned()),
    );
    assert_eq!(get(&hub, "/user", "").0, 502);
    assert_eq!(get(&hub, "/user", "").0, 200);
}
