//! GitHub's own example payloads, signed by GitHub's own library.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;
use serde_json::Value;
use the_loop::ingress::webhook::Limits;
use the_loop::process::{Call, OsProcesses, Processes};
use the_loop_core::delivery::Delivery;
use the_loop_core::guard::{self, AuthorizedUsers, Judgement};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::route;

use crate::support::{SECRET, Server};

const EXPECTED: &str = include_str!("examples.expected");
/// Who did most of what the examples tell of.
const EXAMPLES_BY: &str = "Codertocat";

/// One line of an answer: id, action, status, word, reason, item, and of what was accepted the decision;
/// `-` for what is not there.
fn line(server: &Server, answer: &Value) -> String {
    let word = |key: &str| answer[key].as_str().unwrap_or("-").to_owned();
    let id = word("id");
    let delivery = accepted(server, &id);
    let item = match &delivery {
        Some(delivery) => Some(delivery.item.to_string()),
        None => refused(server, &id),
    };
    let item = item.unwrap_or_else(|| "-".to_owned());
    let http = &answer["http"];
    let (action, status, reason) = (word("action"), word("status"), word("reason"));
    let decision = delivery.map_or_else(String::new, |delivery| decision(&delivery));
    format!("{id} {action} {http} {status} {reason} {item}{decision}")
}

/// The delivery that was stored; of a duplicate the one that came first.
fn accepted(server: &Server, delivery_id: &str) -> Option<Delivery> {
    let duplicates = server.events("delivery.duplicate");
    let twin = duplicates.iter().find(|l| l["delivery_id"] == delivery_id);
    let first = twin.map_or(delivery_id, |l| l["first_delivery_id"].as_str().unwrap());
    let database = rusqlite::Connection::open(&server.inbox_path).unwrap();
    let sql = "SELECT body FROM deliveries WHERE delivery_id = ?1";
    let body: Result<Vec<u8>, _> = database.query_row(sql, [first], |row| row.get(0));
    body.ok().map(|body| serde_json::from_slice(&body).unwrap())
}

/// The item of a delivery that was refused, by the line that says so.
fn refused(server: &Server, delivery_id: &str) -> Option<String> {
    let dropped = server.events("routing.dropped");
    let dropped = dropped.iter().find(|l| l["delivery_id"] == delivery_id)?;
    dropped["work_items"][0].as_str().map(str::to_owned)
}

/// What guards and router make of it where nobody lives and nobody but the author of the examples is listed:
/// its effect, the guards' word, the targets by number, what has to be asked first, and its key.
fn decision(delivery: &Delivery) -> String {
    let authorized = AuthorizedUsers::new([EXAMPLES_BY]);
    let judged = guard::judge(&guard::Facts {
        delivery,
        authorized: &authorized,
        own_comment: false,
        retention_days: u32::MAX,
    });
    let judged = match judged {
        Judgement::Allowed => "allowed",
        Judgement::TooOld => "too-old",
        Judgement::Refused(reason) => reason.as_str(),
    };
    let facts = route::Facts {
        delivery,
        owners: &[],
        authorized: &authorized,
        own_account: None,
        is_command: false,
    };
    let routed = route::route(&facts);
    let numbers = |items: &[WorkItemRef]| {
        let numbers: Vec<String> = items
            .iter()
            .map(|item| format!("#{}", item.number()))
            .collect();
        numbers.join(",")
    };
    let mut asked = String::new();
    for (what, items) in [
        ("pull", route::unknown_pulls(&facts)),
        ("issue", route::doubtful_items(&facts)),
    ] {
        if !items.is_empty() {
            asked = format!(" ask-{what}:{}", numbers(&items));
        }
    }
    let effect = serde_json::to_value(&delivery.effect).unwrap();
    let key = delivery
        .content_key
        .trim_start_matches("github/github.com/");
    format!(
        " | {} {judged} {}{asked} {key}",
        effect["kind"].as_str().unwrap(),
        numbers(&routed.targets)
    )
}

#[test]
fn in3_in7_githubs_examples_get_the_expected_answers() {
    let manifest = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = manifest.join("../../.deps/npm");
    let script = manifest.join("tests/webhook/examples.mjs");
    assert!(
        folder
            .join("node_modules/@octokit/webhooks-examples")
            .exists(),
        "the example payloads are not here: run scripts/fetch-test-deps"
    );
    let server = Server::start(Limits::default());
    let url = format!("http://{}/gh-webhook", server.address);
    let call = Call::new("node", [script.as_str(), folder.as_str(), &url, SECRET]);
    let answer = OsProcesses.run(&call.timeout(Duration::from_mins(2)));
    assert!(answer.ok(), "{}\n{}", answer.describe(), answer.out());

    let got: Vec<String> = answer
        .out()
        .lines()
        .map(|text| line(&server, &serde_json::from_str(text).unwrap()))
        .collect();
    let got = got.join("\n");
    assert_eq!(got.trim(), EXPECTED.trim(), "got:\n{got}");
    // Every answer but the forged one stands for exactly one line of the log.
    let mut told = BTreeMap::new();
    for name in ["delivery.accepted", "delivery.duplicate", "routing.dropped"] {
        for line in server.events(name) {
            *told.entry(line["delivery_id"].to_string()).or_insert(0) += 1;
        }
    }
    assert_eq!(told.len(), EXPECTED.lines().count() - 1);
    assert!(told.values().all(|lines| *lines == 1), "{told:?}");
    server.assert_up();
}
