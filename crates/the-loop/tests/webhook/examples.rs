//! GitHub's own example payloads, signed by GitHub's own library.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;
use serde_json::Value;
use the_loop::ingress::webhook::Limits;
use the_loop::process::{Call, OsProcesses, Processes};

use crate::support::{SECRET, Server};

const EXPECTED: &str = include_str!("examples.expected");

/// One line of an answer: id, action, status, word, reason, item; `-` for what is not there.
fn line(server: &Server, answer: &Value) -> String {
    let word = |key: &str| answer[key].as_str().unwrap_or("-").to_owned();
    let id = word("id");
    let item = item(server, &id).unwrap_or_else(|| "-".to_owned());
    let http = &answer["http"];
    format!(
        "{id} {} {http} {} {} {item}",
        word("action"),
        word("status"),
        word("reason")
    )
}

/// The item that the receiver took a delivery for: by its row, or by the line that refused it. Of a
/// duplicate it is that of the delivery that came first.
fn item(server: &Server, delivery_id: &str) -> Option<String> {
    let duplicates = server.events("delivery.duplicate");
    let twin = duplicates.iter().find(|l| l["delivery_id"] == delivery_id);
    let first = twin.map_or(delivery_id, |l| l["first_delivery_id"].as_str().unwrap());
    let database = rusqlite::Connection::open(&server.inbox_path).unwrap();
    let sql = "SELECT body FROM deliveries WHERE delivery_id = ?1";
    let body: Result<Vec<u8>, _> = database.query_row(sql, [first], |row| row.get(0));
    if let Ok(body) = body {
        let delivery: Value = serde_json::from_slice(&body).unwrap();
        return delivery["item"].as_str().map(str::to_owned);
    }
    let dropped = server.events("routing.dropped");
    let dropped = dropped.iter().find(|l| l["delivery_id"] == delivery_id)?;
    dropped["work_items"][0].as_str().map(str::to_owned)
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
