//! Portable records: one section at a time, and the index.

use the_loop_core::record::{ControlCommand, ControlSource};

use super::*;
use crate::store::testing::{Place, at, item};

fn portable(place: &Place) -> Portable {
    Portable::new(&place.world, &place.layout)
}

fn lock(place: &Place, text: &str) -> ItemLock {
    let locks = Locks::new(&place.world, &place.layout);
    locks.try_item(&item(text), "test").unwrap().unwrap()
}

fn control(command: ControlCommand) -> Control {
    Control {
        command,
        source: ControlSource::Cli,
        actor: "ada".to_owned(),
        requested_at: at("2026-03-01T09:12:44Z"),
        note: String::new(),
    }
}

fn section(text: &str) -> Option<Map> {
    let value: Value = serde_json::from_str(text).unwrap();
    value.as_object().cloned()
}

const REF: &str = "github:octo/repo#15";

fn file(place: &Place) -> Utf8PathBuf {
    place.layout.portable(&item(REF).slug())
}

#[test]
fn a_command_is_recorded_read_and_cleared() {
    let place = Place::new();
    let portable = portable(&place);
    let held = lock(&place, REF);
    assert_eq!(portable.control(&item(REF)).unwrap(), None);
    let start = control(ControlCommand::Start);
    assert!(
        portable
            .write_control(&held, &item(REF), Some(&start))
            .unwrap()
    );
    assert_eq!(portable.control(&item(REF)).unwrap(), Some(start.clone()));
    let text = place.text(&file(&place)).unwrap();
    let expected = concat!(
        "{\n  \"ref\": \"github:octo/repo#15\",\n",
        "  \"url\": \"https://github.com/octo/repo/issues/15\",\n",
        "  \"control\": {\n    \"ref\": \"github:octo/repo#15\",\n    \"command\": \"start\",\n",
        "    \"source\": \"cli\",\n    \"actor\": \"ada\",\n",
        "    \"requestedAt\": \"2026-03-01T09:12:44Z\",\n    \"note\": \"\"\n  }\n}\n"
    );
    assert_eq!(text, expected);
    assert!(
        !portable
            .write_control(&held, &item(REF), Some(&start))
            .unwrap()
    );
    assert!(portable.write_control(&held, &item(REF), None).unwrap());
    assert_eq!(place.text(&file(&place)), None);
    assert!(!portable.write_control(&held, &item(REF), None).unwrap());
}

#[test]
fn st36_a_write_replaces_one_section_and_re_reads_the_rest() {
    let place = Place::new();
    let portable = portable(&place);
    let held = lock(&place, REF);
    let it = item(REF);
    portable
        .write_section(&held, &it, "poll", section(r#"{"seenComments": ["a"]}"#))
        .unwrap();
    // Somebody else adds a section of its own between two writes.
    let text = place.text(&file(&place)).unwrap();
    let text = text.replacen("\"poll\"", "\"graph\": {\"step\": 1},\n  \"poll\"", 1);
    place.put(&file(&place), text.as_bytes());
    portable
        .write_control(&held, &it, Some(&control(ControlCommand::Start)))
        .unwrap();
    let record = portable.get(&it).unwrap().unwrap().record;
    assert_eq!(record.sections(), ["graph", "poll", "control"]);
    // Clearing what a close clears keeps the other owner's section, with nulls (ST-37).
    portable.write_section(&held, &it, "control", None).unwrap();
    portable.write_section(&held, &it, "poll", None).unwrap();
    let record = portable.get(&it).unwrap().unwrap().record;
    assert_eq!(record.sections(), ["graph"]);
    assert!(record.answers_for("control") && record.answers_for("poll"));
    assert_eq!(portable.section(&it, "poll").unwrap(), None);
    assert_eq!(
        portable.section(&it, "graph").unwrap(),
        section(r#"{"step": 1}"#)
    );
    let lone = item("github:octo/repo#16");
    let held = lock(&place, "github:octo/repo#16");
    assert!(!portable.write_section(&held, &lone, "poll", None).unwrap());
}

#[test]
fn st37_a_record_of_nothing_but_nulls_goes_at_the_next_write() {
    let place = Place::new();
    place.put(
        &file(&place),
        b"{\"ref\": \"github:octo/repo#15\", \"poll\": null}",
    );
    let held = lock(&place, REF);
    assert!(
        portable(&place)
            .write_section(&held, &item(REF), "control", None)
            .unwrap()
    );
    assert_eq!(place.text(&file(&place)), None);
}

#[test]
fn st36_a_tombstone_stays_and_keeps_its_seal() {
    let place = Place::new();
    let text = "{\n  \"ref\": \"github:octo/repo#15\",\n  \"sealed\": true\n}\n";
    place.put(&file(&place), text.as_bytes());
    let portable = portable(&place);
    let held = lock(&place, REF);
    portable
        .write_control(&held, &item(REF), Some(&control(ControlCommand::Do)))
        .unwrap();
    assert!(portable.get(&item(REF)).unwrap().unwrap().record.sealed);
    portable.write_control(&held, &item(REF), None).unwrap();
    let record = portable.get(&item(REF)).unwrap().unwrap().record;
    assert!(record.sealed && record.sections().is_empty());
}

#[test]
fn st32_what_cannot_be_used_arms_nothing_and_is_not_written_over() {
    let newer = r#"{"ref": "github:octo/repo#15", "schema": 2, "control": {"command": "start"}}"#;
    for text in [
        "{",
        "[]",
        r#"{"ref": "nonsense"}"#,
        r#"{"ref": "github:octo/repo#15", "control": 1}"#,
        newer,
    ] {
        let place = Place::new();
        place.put(&file(&place), text.as_bytes());
        let portable = portable(&place);
        let held = lock(&place, REF);
        assert!(portable.control(&item(REF)).is_err(), "{text}");
        let start = control(ControlCommand::Start);
        let refused = portable.write_control(&held, &item(REF), Some(&start));
        assert!(matches!(refused, Err(StoreError::Fault(_))), "{text}");
        assert!(portable.write_control(&held, &item(REF), None).is_err());
        assert_eq!(place.text(&file(&place)).as_deref(), Some(text));
    }
}

#[test]
fn st10_another_items_or_a_strangers_file_is_not_written_over() {
    for text in [
        r#"{"ref": "github:octo/repo#16", "graph": {}}"#,
        r#"{"mine": 1}"#,
    ] {
        let place = Place::new();
        place.put(&file(&place), text.as_bytes());
        let portable = portable(&place);
        let held = lock(&place, REF);
        let start = control(ControlCommand::Start);
        portable
            .write_control(&held, &item(REF), Some(&start))
            .unwrap();
        assert_eq!(place.text(&file(&place)).as_deref(), Some(text));
        let found = portable.get(&item(REF)).unwrap().unwrap();
        assert_eq!(found.slug, item(REF).suffixed_slug());
    }
}

#[test]
fn st9_all_files_of_an_item_have_one_slug() {
    let place = Place::new();
    let portable = portable(&place);
    let start = control(ControlCommand::Start);
    let first = item("github:a-b/c#1");
    let second = item("github:a/b-c#1");
    let held = lock(&place, "github:a-b/c#1");
    portable.write_control(&held, &first, Some(&start)).unwrap();
    portable
        .write_control(&held, &second, Some(&start))
        .unwrap();
    let slug = portable.get(&second).unwrap().unwrap().slug;
    assert_eq!(slug, second.suffixed_slug());
    let registry = crate::store::registry::Registry::new(&place.world, &place.layout);
    assert_eq!(registry.slug_for(&held, &second).unwrap(), slug);
    portable.write_control(&held, &first, None).unwrap();
    assert_eq!(registry.slug_for(&held, &second).unwrap(), slug);
    let refused = portable.write_control(&held, &item(REF), Some(&start));
    assert!(matches!(refused, Err(StoreError::NotLocked { .. })));
}

#[test]
fn the_records_own_keys_are_no_sections() {
    let place = Place::new();
    let held = lock(&place, REF);
    for name in ["ref", "url", "schema", "sealed"] {
        let refused = portable(&place).write_section(&held, &item(REF), name, Some(Map::new()));
        assert!(
            matches!(refused, Err(StoreError::NoSection { .. })),
            "{name}"
        );
    }
    assert_eq!(place.text(&file(&place)), None);
}

#[test]
fn st40_the_index_follows_the_records() {
    let place = Place::new();
    let portable = portable(&place);
    let index = place.layout.portable_index();
    assert!(!portable.flush_index().unwrap());
    let start = control(ControlCommand::Start);
    for text in ["local:octo/repo#2", REF] {
        let held = lock(&place, text);
        portable
            .write_control(&held, &item(text), Some(&start))
            .unwrap();
    }
    let broken = place.layout.portable(&item("github:octo/repo#99").slug());
    place.put(&broken, b"{");
    assert_eq!(place.text(&index), None, "one write, when it is flushed");
    assert!(portable.flush_index().unwrap());
    let rows: Value = serde_json::from_str(&place.text(&index).unwrap()).unwrap();
    let expected = json!({"workItems": [
        {"ref": REF, "url": "https://github.com/octo/repo/issues/15",
         "file": "github-octo-repo-15.json", "sections": ["control"]},
        {"ref": "local:octo/repo#2", "file": "local-octo-repo-2.json", "sections": ["control"]},
    ]});
    assert_eq!(rows.to_string(), expected.to_string());
    // Another command in a section that is there already leaves the index as it is.
    let held = lock(&place, REF);
    portable
        .write_control(&held, &item(REF), Some(&control(ControlCommand::Stop)))
        .unwrap();
    assert!(!portable.flush_index().unwrap());
    portable.write_control(&held, &item(REF), None).unwrap();
    assert!(portable.flush_index().unwrap());
    drop(held);
    let held = lock(&place, "local:octo/repo#2");
    portable
        .write_control(&held, &item("local:octo/repo#2"), None)
        .unwrap();
    assert!(portable.flush_index().unwrap());
    assert_eq!(place.text(&index), None);
}

#[test]
fn st40_a_run_that_finds_its_work_done_mends_the_index() {
    let place = Place::new();
    let held = lock(&place, REF);
    let start = control(ControlCommand::Start);
    let record = |portable: &Portable| {
        portable
            .write_control(&held, &item(REF), Some(&start))
            .unwrap()
    };
    assert!(
        record(&portable(&place)),
        "and the process ends without the index"
    );
    let again = portable(&place);
    assert!(!record(&again));
    assert!(again.flush_index().unwrap());
    place.world.disk.remove(&file(&place)).unwrap();
    let again = portable(&place);
    assert!(!again.write_control(&held, &item(REF), None).unwrap());
    assert!(again.flush_index().unwrap());
    assert_eq!(place.text(&place.layout.portable_index()), None);
}

#[test]
fn st40_a_failed_index_write_is_tried_again() {
    let place = Place::new();
    let portable = portable(&place);
    let held = lock(&place, REF);
    portable
        .write_control(&held, &item(REF), Some(&control(ControlCommand::Start)))
        .unwrap();
    let index = place.layout.portable_index();
    place.put(&index.join("in the way"), b"");
    assert!(matches!(portable.flush_index(), Err(IndexError::Store(_))));
    place.world.disk.remove_dir_all(&index).unwrap();
    assert!(portable.clone().flush_index().unwrap());
}

#[test]
fn st30_a_poll_write_and_a_control_write_leave_both_sections() {
    let place = Place::with_clock(crate::clock::Clock::System);
    let locks = Locks::new(&place.world, &place.layout);
    let it = item(REF);
    let write = |name: &str, rounds: u32| {
        for round in 1..=rounds {
            let wait = Patience::of(Duration::from_mins(1));
            let held = locks.item(&it, name, wait).unwrap();
            let content = section(&format!("{{\"round\": {round}}}"));
            portable(&place)
                .write_section(&held, &it, name, content)
                .unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write("poll", 40));
        scope.spawn(|| write("control", 40));
        scope.spawn(|| write("graph", 40));
    });
    for name in ["poll", "control", "graph"] {
        let content = portable(&place).section(&it, name).unwrap();
        assert_eq!(content, section("{\"round\": 40}"), "{name}");
    }
}
