//! Records as they come from disk and go back.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::ids::WorkItemRef;
use crate::session::SessionStatus;
use crate::time::Timestamp;

const SESSIONS: [&str; 2] = [
    include_str!("fixtures/session-1.json"),
    include_str!("fixtures/session-1-earlier.json"),
];
const PORTABLES: [&str; 2] = [
    include_str!("fixtures/portable-1.json"),
    include_str!("fixtures/portable-1-sealed.json"),
];
const TICKETS: [&str; 2] = [
    include_str!("fixtures/ticket-1.json"),
    include_str!("fixtures/ticket-1-every-kind.json"),
];

fn session(text: &str) -> SessionRecord {
    SessionRecord::parse(text.as_bytes()).unwrap()
}

fn portable(text: &str) -> PortableRecord {
    PortableRecord::parse(text.as_bytes()).unwrap()
}

fn ticket(text: &str) -> Ticket {
    Ticket::parse(text.as_bytes()).unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn item(text: &str) -> WorkItemRef {
    text.parse().unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// `before` with the one line `old` replaced.
fn with_line(before: &str, old: &str, new: &str) -> String {
    assert_eq!(before.matches(old).count(), 1, "{old}");
    before.replace(old, new)
}

#[test]
fn s8_st50_every_released_shape_is_rewritten_byte_for_byte() {
    for fixture in SESSIONS {
        assert_eq!(text(session(fixture).to_bytes()), fixture);
    }
    for fixture in PORTABLES {
        assert_eq!(text(portable(fixture).to_bytes()), fixture);
    }
    for fixture in TICKETS {
        assert_eq!(text(ticket(fixture).to_bytes()), fixture);
    }
}

#[test]
fn st21_a_change_touches_its_own_field_and_nothing_else() {
    let mut record = session(SESSIONS[1]);
    record.status = SessionStatus::Active;
    let expected = with_line(
        SESSIONS[1],
        r#""status": "starting""#,
        r#""status": "active""#,
    );
    assert_eq!(text(record.to_bytes()), expected);

    let mut record = session(SESSIONS[0]);
    record.workspace.as_mut().unwrap().branch = None;
    record.last_event_at = None;
    let expected = with_line(
        SESSIONS[0],
        ",\n    \"branch\": \"loop/github-octo-repo-15\"",
        "",
    );
    let expected = with_line(&expected, "\"2026-03-01T10:01:02Z\"", "null");
    assert_eq!(text(record.to_bytes()), expected);
}

#[test]
fn st21_unknown_fields_of_objects_that_change_survive() {
    let mut record = session(SESSIONS[1]);
    let mut spawn = record.spawn.clone().unwrap();
    spawn.resume = true;
    record.spawn = Some(spawn);
    let mut pull_request = record
        .endpoint(&item("github:octo/repo#17").key())
        .unwrap()
        .clone();
    pull_request.status = SessionStatus::Active;
    assert!(record.put_endpoint(pull_request));
    let expected = with_line(SESSIONS[1], r#""resume": false"#, r#""resume": true"#);
    let expected = with_line(&expected, r#""status": "closed""#, r#""status": "active""#);
    assert_eq!(text(record.to_bytes()), expected);

    let mut record = portable(PORTABLES[0]);
    let mut section = record.section("control").unwrap().clone();
    section.insert("quorum".to_owned(), json!(2));
    record.set_section("control", Some(section));
    let control = Control {
        command: ControlCommand::Stop,
        ..record.control().unwrap()
    };
    let section = control.to_section(&record.item, record.section("control"));
    record.set_section("control", Some(section));
    let expected = with_line(
        PORTABLES[0],
        r#""command": "start""#,
        r#""command": "stop""#,
    );
    let expected = with_line(
        &expected,
        "#issuecomment-7\"\n",
        "#issuecomment-7\",\n    \"quorum\": 2\n",
    );
    assert_eq!(text(record.to_bytes()), expected);

    let mut changed = ticket(TICKETS[1]);
    changed.react("a4", "eyes").unwrap();
    changed.title = "u".to_owned();
    let expected = with_line(TICKETS[1], r#""title": "t""#, r#""title": "u""#);
    let expected = with_line(
        &expected,
        "\"deleted\": true\n",
        "\"deleted\": true,\n      \"reactions\": [\n        \"eyes\"\n      ]\n",
    );
    assert_eq!(text(changed.to_bytes()), expected);
}

#[test]
fn a_new_record_has_the_shape_of_the_page() {
    let mut record = SessionRecord::new(
        &item("github:octo/repo#15"),
        "claude",
        "/w",
        SessionStatus::Starting,
        at("2026-03-01T09:12:50Z"),
    );
    record.spawn = Some(SpawnIntent {
        at: at("2026-03-01T09:12:50Z"),
        delivery_id: None,
        resume: false,
        previous: None,
    });
    let value: Value = serde_json::from_slice(&record.to_bytes()).unwrap();
    let expected = json!({
        "workItem": {"ref": "github:octo/repo#15", "provider": "github", "owner": "octo",
                     "repo": "repo", "number": 15},
        "harness": "claude", "harnessSessionId": "", "cwd": "/w", "status": "starting",
        "createdAt": "2026-03-01T09:12:50Z", "lastEventAt": null, "tmuxTarget": "",
        "recentDeliveries": [], "url": "https://github.com/octo/repo/issues/15",
        "spawn": {"at": "2026-03-01T09:12:50Z", "resume": false, "previous": null},
        "pullRequests": []
    });
    assert_eq!(value.to_string(), expected.to_string());
    assert_eq!(
        SessionRecord::parse(&record.to_bytes()).unwrap().spawn,
        record.spawn
    );
    let fresh = PortableRecord::new(&item("local:octo/repo#1"));
    assert_eq!(
        text(fresh.to_bytes()),
        "{\n  \"ref\": \"local:octo/repo#1\"\n}\n"
    );
}

#[test]
fn st17_records_escape_what_is_not_ascii_and_tickets_do_not() {
    let mut record = portable(PORTABLES[0]);
    let section = json!({"note": "ä\u{7f}😀\n\""}).as_object().cloned();
    record.set_section("x", section);
    let written = text(record.to_bytes());
    assert!(written.contains(r#""note": "\u00e4"#), "{written}");
    assert!(
        written.contains("\u{7f}\\ud83d\\ude00\\n\\\"\""),
        "{written}"
    );
    assert!(written.is_ascii() && written.ends_with("}\n"));
    let back = portable(&written);
    assert_eq!(back.section("x"), record.section("x"));
    assert!(text(ticket(TICKETS[0]).to_bytes()).contains("😀"));
}

#[test]
fn st31_what_is_corrupt_says_where() {
    let cases = [
        ("", 1, 0),
        ("{\n  \"workItem\": }", 2, 15),
        ("[1]", 1, 1),
        ("\n\n  7", 3, 3),
        (r#"{"harness": 1}"#, 1, 1),
        (
            "{\n \"workItem\": {\n  \"ref\": \"github:../..#1\"}}",
            3,
            10,
        ),
        (
            "{\"workItem\": {\"ref\": \"github:o/r#1\", \"number\": \"1\"}}",
            1,
            48,
        ),
        ("{\"schema\": \"2\", \"harness\": \"x\"}", 1, 12),
    ];
    for (bytes, line, column) in cases {
        let fault = SessionRecord::parse(bytes.as_bytes()).unwrap_err();
        let Fault::Corrupt {
            line: l, column: c, ..
        } = fault
        else {
            panic!("{bytes}: {fault:?}");
        };
        assert_eq!((l, c), (line, column), "{bytes}");
    }
    let fault = SessionRecord::parse(b"{\"ref\": \"a\",\n \"x\": \"\xff\"}").unwrap_err();
    assert_eq!(fault.to_string(), "not UTF-8, line 2, column 8");
}

#[test]
fn st31_a_known_field_of_a_wrong_type_is_corrupt() {
    let document: Value = serde_json::from_str(SESSIONS[0]).unwrap();
    for (key, bad) in [
        ("harness", json!(1)),
        ("harnessSessionId", json!({})),
        ("cwd", json!("relative/path")),
        ("status", json!("Active")),
        ("createdAt", json!("yesterday")),
        ("lastEventAt", json!(0)),
        ("tmuxTarget", json!([])),
        ("recentDeliveries", json!(["a", 1])),
        ("workspace", json!("worktree")),
        ("workspace", json!({"strategy": "copy"})),
        (
            "spawn",
            json!({"at": "2026-03-01T09:12:50Z", "resume": "no"}),
        ),
        ("pid", json!(4_294_967_296_u64)),
        ("pidStartTime", json!(-1)),
        ("pullRequests", json!({})),
        ("url", json!(false)),
    ] {
        let mut changed = document.clone();
        changed[key] = bad;
        let fault = SessionRecord::parse(changed.to_string().as_bytes()).unwrap_err();
        assert!(matches!(fault, Fault::Corrupt { .. }), "{key}: {fault:?}");
    }
    for (key, bad) in [
        ("control", json!([])),
        ("control", json!({"command": 1})),
        ("poll", json!("x")),
        ("sealed", json!("true")),
        ("url", json!(1)),
        ("ref", json!("octo/repo#1")),
    ] {
        let mut changed: Value = serde_json::from_str(PORTABLES[0]).unwrap();
        changed[key] = bad;
        let fault = PortableRecord::parse(changed.to_string().as_bytes()).unwrap_err();
        assert!(matches!(fault, Fault::Corrupt { .. }), "{key}: {fault:?}");
    }
}

#[test]
fn st35_a_newer_schema_is_told_apart_and_keeps_its_ref() {
    let mut document: Value = serde_json::from_str(SESSIONS[0]).unwrap();
    document["schema"] = json!(3);
    document["status"] = json!("dreaming");
    let fault = SessionRecord::parse(document.to_string().as_bytes()).unwrap_err();
    let expected = Fault::Newer {
        schema: 3,
        known: 1,
        item: Some(item("github:octo/repo#15")),
    };
    assert_eq!(fault, expected);
    let words = "written by a newer release (schema 3, this one knows 1)";
    assert_eq!(fault.to_string(), words);
}

#[test]
fn st33_an_object_without_a_records_keys_is_a_strangers() {
    for bytes in ["{}", r#"{"name": "x", "schema": 9}"#] {
        let fault = SessionRecord::parse(bytes.as_bytes()).unwrap_err();
        assert_eq!(fault, Fault::Foreign);
    }
    for key in [
        "workItem",
        "harness",
        "harnessSessionId",
        "tmuxTarget",
        "control",
        "poll",
        "sealed",
        "ref",
    ] {
        let bytes = json!({ key: 1 }).to_string();
        let fault = PortableRecord::parse(bytes.as_bytes()).unwrap_err();
        assert!(matches!(fault, Fault::Corrupt { .. }), "{key}");
    }
}

#[test]
fn st38_a_control_section_that_says_nothing_readable_does_not_arm() {
    let armed = |control: Value| {
        let record = json!({"ref": "github:octo/repo#15", "control": control}).to_string();
        portable(&record).control().is_some_and(|c| c.armed())
    };
    let good = json!({"ref": "github:Octo/Repo#15", "command": "start", "source": "cli",
                      "actor": "ada", "requestedAt": "2026-03-01T09:12:44Z", "note": ""});
    assert!(armed(good.clone()));
    for (key, value) in [
        ("ref", json!("github:octo/repo#16")),
        ("ref", json!("no ref")),
        ("command", json!("START")),
        ("command", Value::Null),
        ("source", json!("mail")),
        ("requestedAt", json!("soon")),
    ] {
        let mut changed = good.clone();
        changed[key] = value;
        assert!(!armed(changed), "{key}");
    }
    assert!(!armed(Value::Null));
    assert!(!armed(json!({})));
}

#[test]
fn four_commands_arm_and_three_do_not() {
    let arming: Vec<_> = ControlCommand::ALL
        .into_iter()
        .filter(|c| c.arms())
        .collect();
    use ControlCommand::{Contribute, Do, Resume, Start};
    assert_eq!(arming, [Start, Resume, Contribute, Do]);
    for command in ControlCommand::ALL {
        assert_eq!(ControlCommand::parse(command.as_str()), Some(command));
    }
}

#[test]
fn st37_a_cleared_section_is_null_and_no_section() {
    let mut record = portable(PORTABLES[0]);
    assert!(record.set_section("control", None));
    assert_eq!(record.sections(), ["poll", "graph"]);
    assert!(record.section("control").is_none() && record.answers_for("control"));
    assert!(!record.answers_for("other"));
    assert!(text(record.to_bytes()).contains("\"control\": null"));
    for key in ["ref", "url", "schema", "sealed"] {
        assert!(!record.set_section(key, None), "{key}");
    }
    let sealed = portable(PORTABLES[1]);
    assert!(sealed.sealed && sealed.answers_for("anything"));
}

#[test]
fn di30_the_last_fifty_deliveries_are_remembered() {
    let mut record = session(SESSIONS[0]);
    for n in 0..60 {
        assert!(record.remember_delivery(&format!("d-{n}")));
    }
    assert!(!record.remember_delivery("d-59"));
    assert_eq!(record.recent_deliveries.len(), 50);
    assert_eq!(record.recent_deliveries[0], "d-10");
}

#[test]
fn pull_requests_are_one_level_and_never_the_item_itself() {
    let mut record = session(SESSIONS[1]);
    let refs: Vec<_> = record.endpoints().map(|e| e.item.to_string()).collect();
    assert_eq!(refs, ["github:octo/repo#17"]);
    assert_eq!(record.pull_requests.len(), 3);
    let itself = SessionRecord::new(
        &item("github:OCTO/repo#16"),
        "claude",
        "/",
        SessionStatus::Closed,
        at("2026-03-01T09:12:50Z"),
    );
    assert!(!record.put_endpoint(itself));
    assert!(record.remove_endpoint(&item("github:octo/Repo#17").key()));
    assert!(!record.remove_endpoint(&item("github:octo/repo#17").key()));
    assert_eq!(record.pull_requests.len(), 2);
    let back = session(&text(record.to_bytes()));
    assert_eq!(back.pull_requests, record.pull_requests);
}

#[test]
fn recorded_names_are_read_with_care() {
    let mut record = session(SESSIONS[1]);
    assert_eq!(
        record.target().unwrap().as_str(),
        "loop-github_octo_repo-16"
    );
    assert!(record.conversation().is_none());
    record.harness_session_id = "-rf".to_owned();
    assert!(record.conversation().is_none());
    record.tmux_target = "main".to_owned();
    assert!(record.target().is_none());
}

fn labeled(id: &str, label: &str) -> TicketEntry {
    let label = label.to_owned();
    TicketEntry::new(
        id,
        at("2026-03-01T10:00:00Z"),
        "ada",
        EntryKind::Labeled { label },
    )
}

#[test]
fn st66_applying_an_entry_twice_changes_nothing() {
    let mut once = ticket(TICKETS[0]);
    assert!(once.apply(&labeled("e1", "bug"), None));
    let bytes = once.to_bytes();
    assert!(!once.apply(&labeled("e1", "other"), None));
    assert_eq!(once.to_bytes(), bytes);
    assert!(once.has_label("BUG") && !once.has_label("other"));
    assert_eq!(once.updated_at, at("2026-03-01T10:00:00Z"));
    // An entry of a kind that is not known here counts by its id as well.
    let mut other = ticket(TICKETS[1]);
    assert!(!other.apply(&labeled("a3", "bug"), None));
}

#[test]
fn every_kind_of_entry_has_its_effect() {
    let mut t = ticket(TICKETS[0]);
    let when = at("2026-03-01T10:00:00Z");
    let entry = |id: &str, kind| TicketEntry::new(id, when, "ada", kind);
    let edited = |field| EntryKind::Edited {
        field,
        old: "before".to_owned(),
    };
    t.apply(&entry("1", edited(EditedField::Title)), Some("after"));
    t.apply(&entry("2", edited(EditedField::Body)), Some("more"));
    assert_eq!((t.title.as_str(), t.body.as_str()), ("after", "more"));
    let label = "The-Loop: auto-execute".to_owned();
    t.apply(&entry("3", EntryKind::Unlabeled { label }), None);
    assert!(t.labels.is_empty());
    let reason = CloseReason::NotPlanned;
    t.apply(&entry("4", EntryKind::Closed { reason }), None);
    assert_eq!(t.state, TicketState::Closed);
    t.apply(&entry("5", EntryKind::Reopened), None);
    assert_eq!(t.state, TicketState::Open);
    t.apply(&entry("6", EntryKind::comment("hello")), None);
    assert_eq!(
        (t.react("6", "eyes"), t.react("6", "eyes")),
        (Some(true), Some(false))
    );
    assert_eq!((t.react("5", "eyes"), t.react("9", "eyes")), (None, None));
    let back = ticket(&text(t.to_bytes()));
    assert_eq!(
        (back.entries, back.title, back.state),
        (t.entries, t.title, t.state)
    );
}

#[test]
fn st66_a_change_travels_as_json() {
    let entry = TicketEntry::new("1", at("2026-03-01T10:00:00Z"), "ada", EntryKind::Reopened);
    for change in [
        TicketChange::Entry(entry.clone()),
        TicketChange::Edit {
            entry,
            text: "new".to_owned(),
        },
        TicketChange::Created(Box::new(ticket(TICKETS[0]))),
    ] {
        let value = serde_json::to_value(&change).unwrap();
        let back: TicketChange = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&back).unwrap(), value);
    }
    assert!(serde_json::from_value::<TicketChange>(json!({"entry": {"kind": "moved"}})).is_err());
}

#[test]
fn comments_that_are_no_text_are_refused_in_words() {
    let words = |bytes: &[u8]| check_comment(bytes).unwrap_err().to_string();
    assert_eq!(words(b"a\0b"), "comment text must be UTF-8 without NUL");
    assert_eq!(words(b"\xff"), "comment text must be UTF-8 without NUL");
    let long = "é".repeat(65_537);
    assert_eq!(
        words(long.as_bytes()),
        "comment text must be at most 65,536 characters"
    );
    assert_eq!(words(b" \n"), "comment text is empty");
    let just = "é".repeat(65_536);
    assert_eq!(check_comment(just.as_bytes()), Ok(just.as_str()));
}

#[test]
fn two_entries_with_one_id_both_stay() {
    let twice = with_line(TICKETS[0], "0195c1c3-0000-7000-8000-000000000002", "same");
    let twice = with_line(&twice, "0195c1c2-0000-7000-8000-000000000001", "same");
    let mut t = ticket(&twice);
    t.apply(&labeled("e1", "bug"), None);
    let back = ticket(&text(t.to_bytes()));
    assert_eq!(back.entries, t.entries);
    assert_eq!(back.entries.len(), 3);
}

/// Any JSON value, two levels deep.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-z]{1,4}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// A document with unknown keys put in at chosen places of its objects.
fn strewn(value: &Value, extra: &mut std::slice::Iter<'_, (usize, Value)>) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<(String, Value)> = map
                .iter()
                .map(|(key, value)| (key.clone(), strewn(value, extra)))
                .collect();
            if let Some((place, unknown)) = extra.next() {
                let key = format!("x-{place}");
                pairs.insert(place % (pairs.len() + 1), (key, unknown.clone()));
            }
            Value::Object(pairs.into_iter().collect())
        }
        Value::Array(values) => values.iter().map(|v| strewn(v, extra)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

proptest! {
    #[test]
    fn st21_unknown_fields_at_every_level_survive_a_rewrite(
        extra in prop::collection::vec((0usize..9, any_value()), 0..8),
        which in 0usize..2,
    ) {
        let document: Value = serde_json::from_str(SESSIONS[which]).unwrap();
        let document = strewn(&document, &mut extra.iter());
        let bytes = to_bytes(&document);
        let mut record = SessionRecord::parse(&bytes).unwrap();
        prop_assert_eq!(text(record.to_bytes()), text(bytes.clone()));
        record.status = SessionStatus::Paused;
        record.tmux_target = "loop-x-1".to_owned();
        let mut expected = document;
        expected["status"] = json!("paused");
        expected["tmuxTarget"] = json!("loop-x-1");
        prop_assert_eq!(text(record.to_bytes()), text(to_bytes(&expected)));
    }

    #[test]
    fn st21_a_section_written_leaves_the_others_as_they_are(
        extra in prop::collection::vec((0usize..9, any_value()), 0..8),
    ) {
        let document: Value = serde_json::from_str(PORTABLES[0]).unwrap();
        let document = strewn(&document, &mut extra.iter());
        let mut record = PortableRecord::parse(&to_bytes(&document)).unwrap();
        record.set_section("poll", None);
        let mut expected = document;
        expected["poll"] = Value::Null;
        prop_assert_eq!(text(record.to_bytes()), text(to_bytes(&expected)));
    }

    #[test]
    fn st31_no_bytes_make_the_readers_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = SessionRecord::parse(&bytes);
        let _ = PortableRecord::parse(&bytes);
        let _ = Ticket::parse(&bytes);
    }

    #[test]
    fn st31_a_damaged_record_is_read_or_refused_with_a_place(
        at in 0usize..1200,
        byte in any::<u8>(),
    ) {
        let mut bytes = SESSIONS[1].as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Err(Fault::Corrupt { line, .. }) = SessionRecord::parse(&bytes) {
            prop_assert!(line >= 1);
        }
    }
}
