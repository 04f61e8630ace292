//! `webhook setup` on a double of GitHub.

use serde_json::{Value, json};
use the_loop_testkit::FakeGithub;
use the_loop_testkit::fake_github::{Fault, TOKEN};

use super::http::SECRET;
use super::rig::{Rig, Wish};

const REPO: &str = "octo/repo";
const URL: &str = "https://hooks.example.com/gh-webhook";

fn machine(hub: &FakeGithub) -> Rig {
    let github = format!(
        ", apiUrl: '{}', tokenFile: token, cli: {{binary: ''}}",
        hub.api()
    );
    let rig = Rig::with(&Wish {
        github: &github,
        more: "polling: {sources: [{repos: [octo/repo]}]}\n",
        ..Wish::default()
    });
    rig.write("home/.the-loop/token", &format!("{TOKEN}\n"));
    rig
}

fn hook(hub: &FakeGithub) -> Value {
    hub.change(|world| world.hooks_of(REPO)).remove(0)
}

fn fails(rig: &Rig, args: &[&str]) -> (Option<i32>, String) {
    let done = rig.program(args).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

#[test]
fn in1_a_webhook_is_made_once_then_checked_and_mended() {
    let hub = FakeGithub::start();
    let rig = machine(&hub);
    let dry = rig.ok(&["webhook", "setup", "--url", URL, "--dry-run"]);
    assert!(
        dry.starts_with(&format!("octo/repo: webhook would be created, {URL}\n")),
        "{dry}"
    );
    assert!(
        dry.contains("github.com calls from 192.30.252.0/22"),
        "{dry}"
    );
    assert!(hub.change(|world| world.hooks_of(REPO)).is_empty());

    let made = rig.ok(&["webhook", "setup", "--url", URL]);
    assert!(made.contains("webhook created"), "{made}");
    let there = hook(&hub);
    assert_eq!(there["config"]["secret"], SECRET);
    assert_eq!(there["config"]["content_type"], "json");
    assert_eq!(there["active"], true);
    let events: Vec<&str> = there["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e.as_str().unwrap())
        .collect();
    assert!(
        events.contains(&"issue_comment") && events.contains(&"workflow_run"),
        "{events:?}"
    );

    // Found by its path from now on.
    let again = rig.ok(&["webhook", "setup"]);
    assert!(again.contains("webhook unchanged"), "{again}");
    let id = there["id"].as_u64();
    hub.change(|world| {
        let config = json!({"url": URL, "content_type": "form", "insecure_ssl": "1"});
        let wrong = json!({"active": false, "events": ["push"], "config": config});
        world.change_hook(REPO, id.unwrap(), &wrong);
        world.hook_calls = vec![
            json!({"guid": "g1", "delivered_at": "2026-12-01T10:00:00Z", "event": "issues",
                   "status": "failed to connect to host", "status_code": 0}),
            json!({"guid": "g2", "delivered_at": "2026-12-01T09:00:00Z", "event": "ping",
                   "status": "OK", "status_code": 202}),
        ];
    });
    let mended = rig.ok(&["webhook", "setup", "--format", "json"]);
    let mended: Value = serde_json::from_str(&mended).unwrap();
    let row = &mended["repositories"][0];
    assert_eq!(row["outcome"], "updated");
    let all = json!(["inactive", "events", "content-type", "secret", "tls"]);
    assert_eq!(row["differences"], all);
    assert_eq!(
        (&row["calls"], &row["failed"][0]["id"]),
        (&json!(2), &json!("g1"))
    );
    assert_eq!(hook(&hub)["config"]["secret"], SECRET);
    let renewed = rig.ok(&["webhook", "setup", "--renew-secret"]);
    assert!(renewed.contains("webhook updated"), "{renewed}");
    assert!(
        renewed.contains("failed   2026-12-01T10:00:00Z  issues  0 failed to connect"),
        "{renewed}"
    );
}

#[test]
fn in1_what_stands_in_the_way_is_said_with_what_to_do_and_no_secret() {
    let hub = FakeGithub::start();
    let rig = machine(&hub);
    let (code, said) = fails(&rig, &["webhook", "setup"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("has no webhook with the path /gh-webhook") && said.contains("--url"),
        "{said}"
    );
    for (status, words) in [
        (401, "refused"),
        (403, "admin:repo_hook"),
        (404, "admin:repo_hook"),
    ] {
        let body = "{}".to_owned();
        hub.fails("/hooks", Fault::Status(status, String::new(), body));
        let (code, said) = fails(&rig, &["webhook", "setup", "--url", URL]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(words), "{status}: {said}");
        assert!(!said.contains(SECRET) && !said.contains(TOKEN), "{said}");
    }
    for (args, words) in [
        (["--url", "http://plain.example/x"], "https"),
        (["--url", "https://user@x.example/x"], "https"),
        (["--repo", "octo"], "OWNER/REPO"),
        (["--repo", "evil.example/octo/repo"], "not configured"),
    ] {
        let (code, said) = fails(&rig, &["webhook", "setup", args[0], args[1]]);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    rig.write("home/.the-loop/secret", "");
    let (code, said) = fails(&rig, &["webhook", "setup", "--url", URL]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("secret"), "{said}");
    assert!(hub.change(|world| world.hooks_of(REPO)).is_empty());
}

#[test]
fn in1_the_webhook_of_somebody_else_is_left_alone() {
    let hub = FakeGithub::start();
    let rig = machine(&hub);
    for url in [
        "https://ci.example/plugins/gh-webhook",
        "https://ci.example/",
    ] {
        let config = json!({"url": url, "content_type": "form", "insecure_ssl": "0"});
        let other = json!({"name": "web", "active": true, "events": ["push"], "config": config});
        hub.change(|world| world.add_hook(REPO, &other));
    }
    let before = hub.change(|world| world.hooks_of(REPO));
    let (code, said) = fails(&rig, &["webhook", "setup", "--renew-secret"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("no webhook with the path"), "{said}");
    assert_eq!(hub.change(|world| world.hooks_of(REPO)), before);
    rig.ok(&["webhook", "setup", "--url", URL]);
    let after = hub.change(|world| world.hooks_of(REPO));
    assert_eq!((after.len(), &after[..2]), (3, &before[..]));
}

#[test]
fn in1_what_cannot_be_asked_is_said_and_is_no_failure() {
    let hub = FakeGithub::start();
    let rig = machine(&hub);
    rig.ok(&["webhook", "setup", "--url", URL]);
    for (below, words) in [
        (
            "/deliveries",
            "octo/repo: the last calls cannot be read: refused",
        ),
        (
            "/meta",
            "github.com does not say from where it calls: refused",
        ),
    ] {
        hub.fails(below, Fault::Status(403, String::new(), "{}".to_owned()));
        let args = ["webhook", "setup", "--format", "json"];
        let done = rig.program(&args).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains(words), "{said}");
        let shown: Value = serde_json::from_slice(&done.stdout).unwrap();
        let told = shown["warnings"].as_array().unwrap();
        assert!(
            told.iter()
                .any(|told| told.as_str().unwrap().contains(words))
        );
        assert_eq!(shown["repositories"][0]["outcome"], "unchanged");
        assert_eq!(
            shown["repositories"][0]["calls"].is_null(),
            below == "/deliveries"
        );
    }
}

#[test]
fn se7_a_document_does_not_take_the_place_of_errors() {
    let hub = FakeGithub::start();
    let rig = machine(&hub);
    let args = ["webhook", "setup", "--format", "json", "--url"];
    for (status, hint) in [(404, "admin:repo_hook"), (422, "address"), (301, "renamed")] {
        hub.fails(
            "/hooks",
            Fault::Status(status, String::new(), "{}".to_owned()),
        );
        let done = rig.program(&args).arg(URL).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(
            said.contains("error: octo/repo: ") && said.contains(hint),
            "{said}"
        );
        let shown: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(shown["repositories"][0]["outcome"], "failed");
    }
    let (code, said) = fails(
        &rig,
        &[
            "webhook",
            "setup",
            "--url",
            "https://me:hunter2@x.example/x",
        ],
    );
    assert_eq!(code, Some(2), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}
