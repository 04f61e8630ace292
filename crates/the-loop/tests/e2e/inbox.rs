//! An inbox that refuses commits: nobody is answered with a lie, and `status` says it (ST-55, SE-24).

use serde_json::Value;

use super::payload::{MAINTAINER, comment};
use super::rig::Rig;

#[test]
fn st55_se24_an_inbox_that_refuses_commits_is_a_problem_until_it_takes_them_again() {
    let rig = Rig::new();
    rig.up();
    let status = || {
        let done = rig
            .program(&["status", "--format", "json"])
            .output()
            .unwrap();
        let json: Value = serde_json::from_slice(&done.stdout).unwrap();
        (done.status.code(), json)
    };
    assert_eq!(status().0, Some(0));
    // Another program keeps the file locked for longer than anybody waits.
    let inbox = rusqlite::Connection::open(rig.root("local/inbox.db")).unwrap();
    inbox.execute_batch("BEGIN IMMEDIATE").unwrap();
    let payload = comment(1, rig.fresh(), MAINTAINER, "hello");
    let (code, _) = rig.post("issue_comment", "e2e-refused", &payload).unwrap();
    assert_eq!(code, 503);
    rig.event("inbox.unavailable", |_| true);
    let (code, now) = status();
    assert_eq!(code, Some(1), "{now}");
    assert!(now["inbox"]["unavailableSince"].is_string(), "{now}");
    let problem = now["problems"][0]["problem"].as_str().unwrap();
    assert!(problem.starts_with("refuses commits since "), "{now}");
    let text = rig.program(&["status"]).output().unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("inbox        refuses commits; "), "{text}");
    inbox.execute_batch("ROLLBACK").unwrap();
    rig.event("inbox.recovered", |_| true);
    rig.until("a status without a problem", || {
        (status().0 == Some(0)).then_some(())
    });
}
