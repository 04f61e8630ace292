use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use the_loop_core::config::GithubHost;

use super::*;
use crate::disk::{Disk, OsDisk};
use crate::store::testing::Place;

/// Answers one call with these bytes, and tells the first line and the headers of it.
fn answering(answer: String) -> (u16, mpsc::Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines = Vec::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                lines.push(line.trim().to_owned());
            }
            let _ = tell.send(lines);
            let mut stream = stream;
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, told)
}

struct Bench {
    place: Place,
    settings: Settings,
    item: WorkItemRef,
}

fn bench(host: &str, port: u16) -> Bench {
    let place = Place::new();
    let file = place.base().join("token");
    OsDisk
        .create_new(&file, b"the-secret-token\n", 0o600)
        .unwrap();
    let mut settings = Settings::default();
    let api_url = format!("http://127.0.0.1:{port}/api/v3/");
    let token_file = file.to_string();
    let github = &mut settings.integrations.github;
    if host == "github.com" {
        github.api_url = api_url;
        github.token_file = token_file;
    } else {
        let entry = GithubHost {
            api_url,
            token_file,
            ..GithubHost::default()
        };
        github.hosts.insert(host.to_owned(), entry);
    }
    Bench {
        place,
        settings,
        item: format!("github:{host}/octo/repo#15").parse().unwrap(),
    }
}

fn http(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    )
}

fn comment(bench: &Bench) -> Result<Posted, WriteError> {
    Github::new(&bench.place.world).comment(&bench.settings, &bench.item, "words")
}

#[test]
fn in59_a_comment_goes_to_the_item_of_its_own_host() {
    for host in ["github.com", "ghe.example"] {
        let (port, told) = answering(http(201, "", r#"{"id": 7, "node_id": "IC_7"}"#));
        let bench = bench(host, port);
        let posted = comment(&bench).unwrap();
        assert_eq!(posted.node_id, "IC_7");
        let lines = told.recv().unwrap();
        let first = "POST /api/v3/repos/octo/repo/issues/15/comments HTTP/1.1";
        assert_eq!(lines[0], first, "{host}");
        let has = |line: &str| lines.iter().any(|known| known.eq_ignore_ascii_case(line));
        assert!(has("authorization: Bearer the-secret-token"), "{lines:?}");
        assert!(has("x-github-api-version: 2022-11-28"), "{lines:?}");
    }
}

#[test]
fn in57_what_an_answer_means() {
    let limited = WriteError::Throttled(Duration::from_secs(7));
    for (answer, expected) in [
        (http(401, "", "{}"), WriteError::Refused(401)),
        (http(403, "", "{}"), WriteError::Refused(403)),
        (http(403, "retry-after: 7\r\n", "{}"), limited.clone()),
        (http(429, "retry-after: 7\r\n", "{}"), limited),
        (http(429, "", "{}"), WriteError::Throttled(MINUTE)),
        (
            http(429, "retry-after: 99999999\r\n", "{}"),
            WriteError::Throttled(WAIT_MAX),
        ),
        (
            http(403, "x-ratelimit-remaining: 0\r\n", "{}"),
            WriteError::Throttled(WAIT_MAX),
        ),
        (http(404, "", "{}"), WriteError::NotFound),
        (http(410, "", "{}"), WriteError::NotFound),
        (http(500, "", "<html>"), WriteError::Status(500)),
        (http(201, "", "<html>"), WriteError::Malformed),
        (http(201, "", "{}"), WriteError::Malformed),
    ] {
        let (port, _told) = answering(answer);
        assert_eq!(comment(&bench("github.com", port)).unwrap_err(), expected);
    }
}

#[test]
fn cf17_no_redirect_is_followed_and_no_error_tells_the_token() {
    let (elsewhere, seen) = answering(http(201, "", r#"{"node_id": "x"}"#));
    let location = format!("location: http://127.0.0.1:{elsewhere}/x\r\n");
    for status in [301, 302, 307, 308] {
        let (port, _told) = answering(http(status, &location, "{}"));
        let error = comment(&bench("github.com", port)).unwrap_err();
        assert_eq!(error, WriteError::Status(status));
    }
    assert!(seen.try_recv().is_err());
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let error = comment(&bench("github.com", closed)).unwrap_err();
    assert!(error.may_be_repeated(), "{error:?}");
    let (port, _told) = answering("HTTP/1.1 nonsense\r\n\r\n".to_owned());
    let garbled = comment(&bench("github.com", port)).unwrap_err();
    assert!(!garbled.may_be_repeated(), "{garbled:?}");
    for error in [error, garbled] {
        assert!(
            !format!("{error} {error:?}").contains("secret"),
            "{error:?}"
        );
    }
}

#[test]
fn in13_a_host_that_is_not_configured_is_never_called() {
    let (port, told) = answering(http(201, "", r#"{"node_id": "x"}"#));
    let mut bench = bench("ghe.example", port);
    bench.item = "github:evil.example/octo/repo#1".parse().unwrap();
    let error = comment(&bench).unwrap_err();
    assert_eq!(error, WriteError::UnknownHost("evil.example".to_owned()));
    assert!(told.try_recv().is_err());
}

#[test]
fn in58_a_reaction_has_its_place() {
    let item: WorkItemRef = "github:octo/repo#15".parse().unwrap();
    for (place, path) in [
        (ReactionPlace::Comment(9), "issues/comments/9/reactions"),
        (ReactionPlace::Inline(9), "pulls/comments/9/reactions"),
        (ReactionPlace::Item, "issues/15/reactions"),
    ] {
        assert_eq!(place.path(&item), path);
    }
    assert_eq!(number_in("github/github.com/comment/#99/created"), Some(99));
    assert_eq!(number_in("github/github.com/comment/IC_1/created"), None);
    assert_eq!(number_in("github/github.com/comment/#x/created"), None);
}
