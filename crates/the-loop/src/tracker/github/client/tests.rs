use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use the_loop_core::answers::FailedJob;
use the_loop_core::ci::RunTry;
use the_loop_core::config::GithubHost;

use super::*;
use crate::disk::{Disk, OsDisk};
use crate::store::testing::Place;

/// Answers every call with these bytes, and tells the first line and the headers of it.
fn answering(answer: String) -> (u16, mpsc::Receiver<Vec<String>>) {
    answering_each(vec![answer])
}

/// The same, with the last of several answers to all calls that are left.
fn answering_each(answers: Vec<String>) -> (u16, mpsc::Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().flatten().enumerate() {
            let answer = &answers[n.min(answers.len() - 1)];
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

const MINUTE: Duration = Duration::from_mins(1);

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
            WriteError::Throttled(15 * MINUTE),
        ),
        (
            http(403, "x-ratelimit-remaining: 0\r\n", "{}"),
            WriteError::Throttled(MINUTE),
        ),
        (
            http(
                403,
                "",
                r#"{"message": "You have exceeded a Secondary rate limit."}"#,
            ),
            WriteError::Throttled(MINUTE),
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

const RUN: RunTry = RunTry { id: 8, attempt: 2 };

fn job_of(answer: String) -> Result<FailedJob, WriteError> {
    let (port, _told) = answering(answer);
    let bench = bench("github.com", port);
    Github::new(&bench.place.world).failed_job(&bench.settings, &bench.item, RUN)
}

#[test]
fn in33_answers_about_jobs_that_are_none_say_why() {
    let none = job_of(http(
        200,
        "",
        r#"{"jobs": [{"id": 1, "conclusion": "success"}]}"#,
    ));
    assert_eq!(
        none.unwrap(),
        FailedJob::unavailable("no failed job is shown")
    );
    for (answer, expected) in [
        (http(200, "", "<html>"), WriteError::Malformed),
        (http(200, "", "{}"), WriteError::Malformed),
        (http(403, "", "{}"), WriteError::Refused(403)),
        (http(404, "", "{}"), WriteError::NotFound),
    ] {
        assert_eq!(job_of(answer).unwrap_err(), expected);
    }
}

#[test]
fn in33_a_log_that_lies_nowhere_good_is_not_fetched() {
    let jobs = r#"{"jobs": [{"id": 1, "name": "test", "conclusion": "failure", "steps": null}]}"#;
    let location = "location: http://logs.example/x\r\n";
    // The first call is answered with the jobs, the next one with the address.
    let answers = [http(200, "", jobs), http(302, location, "")];
    let (port, told) = answering_each(answers.to_vec());
    let bench = bench("github.com", port);
    let job = Github::new(&bench.place.world)
        .failed_job(&bench.settings, &bench.item, RUN)
        .unwrap();
    assert_eq!(job.name.as_deref(), Some("test"));
    assert_eq!(job.unavailable.as_deref(), Some("answered with status 302"));
    let first: Vec<String> = told.iter().take(2).map(|lines| lines[0].clone()).collect();
    assert_eq!(
        first,
        [
            "GET /api/v3/repos/octo/repo/actions/runs/8/attempts/2/jobs?per_page=100 HTTP/1.1",
            "GET /api/v3/repos/octo/repo/actions/jobs/1/logs HTTP/1.1"
        ]
    );
}

#[test]
fn in33_of_a_long_log_the_end_is_kept() {
    let jobs = r#"{"jobs": [{"id": 1, "conclusion": "timed_out"}]}"#;
    let log = "x".repeat(4 << 20) + "\nthe last line\n";
    let (port, _told) = answering_each(vec![http(200, "", jobs), http(200, "", &log)]);
    let bench = bench("github.com", port);
    let job = Github::new(&bench.place.world)
        .failed_job(&bench.settings, &bench.item, RUN)
        .unwrap();
    assert_eq!(job.log.last().map(String::as_str), Some("the last line"));
    assert_eq!((job.name, job.unavailable), (None, None));
    // What stands behind the bound is not read.
    let mut log = "a line\n".repeat((20 << 20) / 7 + 1);
    log.push_str("beyond\n");
    let (port, _told) = answering_each(vec![http(200, "", jobs), http(200, "", &log)]);
    let bench = super::tests::bench("github.com", port);
    let job = Github::new(&bench.place.world)
        .failed_job(&bench.settings, &bench.item, RUN)
        .unwrap();
    assert_eq!(job.log.len(), 80);
    assert!(
        job.log.iter().all(|line| "a line".starts_with(&**line)),
        "{:?}",
        job.log
    );
}

#[test]
fn in18_an_answer_is_asked_for_again_by_its_validator() {
    let issue = r#"{"number": 15, "state": "closed", "labels": [{"name": "bug"}]}"#;
    let answers = [http(200, "etag: W/\"v1\"\r\n", issue), http(304, "", "")];
    let (port, told) = answering_each(answers.to_vec());
    let bench = bench("ghe.example", port);
    let client = Github::new(&bench.place.world);
    let first = client.item(&bench.settings, &bench.item).unwrap();
    let again = client.item(&bench.settings, &bench.item).unwrap();
    assert_eq!(
        (first.closed, &first.labels[..]),
        (true, &["bug".to_owned()][..])
    );
    assert_eq!(first, again);
    let asked: Vec<Vec<String>> = told.iter().take(2).collect();
    assert!(
        asked[1]
            .iter()
            .any(|line| line == "if-none-match: W/\"v1\""),
        "{asked:?}"
    );
    // About another item than was asked for is no answer.
    let (port, _told) = answering(http(200, "", issue));
    let mut other = super::tests::bench("ghe.example", port);
    other.item = "github:ghe.example/octo/repo#16".parse().unwrap();
    let error = client.item(&other.settings, &other.item).unwrap_err();
    assert_eq!(error, WriteError::Malformed);
    assert!(error.is_passing());
}

#[test]
fn in27_which_causes_pass() {
    for (error, passes) in [
        (WriteError::Refused(401), true),
        (WriteError::Refused(403), false),
        (WriteError::NotFound, false),
        (WriteError::Status(301), false),
        (WriteError::Status(503), true),
        (WriteError::Throttled(MINUTE), true),
        (WriteError::NotReached(String::new()), true),
        (WriteError::NoAnswer(String::new()), true),
        (WriteError::UnknownHost(String::new()), false),
    ] {
        assert_eq!(error.is_passing(), passes, "{error:?}");
    }
    let file = NoToken::File {
        path: "/home/somebody/token".to_owned(),
        why: "x".to_owned(),
    };
    assert_eq!(WriteError::NoToken(file).in_words(), "no credential");
}
