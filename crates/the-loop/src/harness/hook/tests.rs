use std::io::Cursor;

use serde_json::json;

use super::*;
use crate::harness::testing::{SESSION, at, header, marker, with_env, world};

fn pane(env: &[(&str, &str)]) -> (tempfile::TempDir, Utf8PathBuf, World) {
    let (dir, path, world) = world();
    world.disk.create_dir_all(&path.join("root/local")).unwrap();
    let root = path.join("root");
    let world = with_env(world, &[("THE_LOOP_STATE_ROOT", root.as_str())]);
    (dir, root, with_env(world, env))
}

fn told(world: &World, root: &Utf8Path, slug: &str) -> Vec<Value> {
    let file = root.join(format!("local/hooks/{slug}.jsonl"));
    let bytes = world.disk.read(&file, 1 << 20).unwrap_or_default();
    String::from_utf8(bytes)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn se69_one_line_tells_ids_and_markers_and_no_prompt_text() {
    let (_dir, root, world) = pane(&[]);
    let input = json!({"session_id": SESSION, "transcript_path": "/t/x.jsonl",
        "prompt": format!("{}\nthe secret plan", header()), "hook_event_name": "UserPromptSubmit"});
    run(
        &world,
        "UserPromptSubmit",
        Some("local-octo-repo-15"),
        Cursor::new(input.to_string()),
    );
    assert_eq!(
        told(&world, &root, "local-octo-repo-15"),
        [
            json!({"ts": "1970-01-01T00:16:40.000Z", "hook": "UserPromptSubmit", "sessionId": SESSION,
            "transcriptPath": "/t/x.jsonl", "markers": [marker().as_str()]})
        ]
    );
    let file = root.join("local/hooks/local-octo-repo-15.jsonl");
    assert_eq!(world.disk.meta(&file).unwrap().unwrap().mode, 0o600);
}

#[test]
fn se69_the_work_item_of_the_pane_names_the_file_when_no_slug_does() {
    let (_dir, root, world) = pane(&[("THE_LOOP_WORK_ITEM", "local:octo/repo#15")]);
    run(&world, "Stop", None, Cursor::new("{}"));
    assert_eq!(told(&world, &root, "local-octo-repo-15").len(), 1);
}

#[test]
fn se69_bad_input_still_tells_that_the_hook_ran() {
    let (_dir, root, world) = pane(&[]);
    let too_long = format!("{{\"prompt\":\"{}\"}}", "x".repeat(1 << 20));
    for input in ["", "not json", "[1,2]", "{\"session_id\": 5}", &too_long] {
        let input = input.to_owned().into_bytes();
        run(&world, "Stop", Some("local-o-r-1"), Cursor::new(input));
    }
    let lines = told(&world, &root, "local-o-r-1");
    assert_eq!(lines.len(), 5);
    assert!(
        lines
            .iter()
            .all(|l| l["sessionId"] == "" && l["markers"] == json!([]))
    );
}

#[test]
fn se69_without_root_or_item_or_with_a_forged_slug_nothing_happens() {
    let (_dir, root, world) = pane(&[]);
    for slug in [None, Some("../../etc/x-1"), Some(""), Some("no-number-x")] {
        run(&world, "Stop", slug, Cursor::new("{}"));
    }
    run(&world, "St op\n", Some("local-o-r-1"), Cursor::new("{}"));
    assert_eq!(world.disk.meta(&root.join("local/hooks")).unwrap(), None);
    let bare = with_env(world.clone(), &[("THE_LOOP_STATE_ROOT", "")]);
    run(&bare, "Stop", Some("local-o-r-1"), Cursor::new("{}"));
    let gone = root.join("gone");
    let gone_world = with_env(world, &[("THE_LOOP_STATE_ROOT", gone.as_str())]);
    run(&gone_world, "Stop", Some("local-o-r-1"), Cursor::new("{}"));
    assert_eq!(
        gone_world.disk.meta(&gone).unwrap(),
        None,
        "a root that is gone stays gone"
    );
}

#[test]
fn se69_kinds_and_reasons_are_the_harness_s_own_words() {
    let kind = |hook: &str, input: Value| HookLine::from_input(at(0), hook, &input).kind;
    let word = |w: &str| Some(w.to_owned());
    assert_eq!(
        kind("SessionStart", json!({"source": "resume"})),
        word("resume")
    );
    assert_eq!(
        kind("PermissionRequest", json!({"tool_name": "Bash"})),
        word("permission")
    );
    assert_eq!(
        kind("PermissionRequest", json!({"tool_name": "AskUserQuestion"})),
        word("question")
    );
    assert_eq!(
        kind("Notification", json!({"notification_type": "idle_prompt"})),
        word("idle_prompt")
    );
    assert_eq!(
        kind(
            "Notification",
            json!({"message": "It needs your permission to use Bash"})
        ),
        word("permission_prompt")
    );
    assert_eq!(
        kind("StopFailure", json!({"error": "rate_limit"})),
        word("rate_limit")
    );
    let end = HookLine::from_input(at(0), "SessionEnd", &json!({"reason": "other"}));
    assert_eq!(end.reason.as_deref(), Some("other"));
}

#[test]
fn se69_a_line_comes_back_as_it_was_written() {
    let line = HookLine {
        at: at(1_796_084_604_738),
        hook: "SessionEnd".to_owned(),
        session_id: SESSION.to_owned(),
        transcript_path: Some("/t/\u{e9}.jsonl".into()),
        markers: vec![marker(), marker()],
        kind: Some("k".to_owned()),
        reason: Some("r".to_owned()),
    };
    let bytes = line.to_bytes();
    assert_eq!(HookLine::parse(&bytes[..bytes.len() - 1]), Some(line));
}

#[test]
fn st12_the_reader_follows_a_hook_file_through_its_rotation() {
    let (_dir, root, world) = pane(&[]);
    let file = root.join("local/hooks/local-o-r-1.jsonl");
    let disk = &*world.disk;
    let write = |n: usize| {
        let name = format!("H{n}");
        append(
            &world,
            &file,
            &HookLine::from_input(at(0), &name, &Value::Null),
        );
    };
    let mut tail = HookTail::new(file.clone());
    let names = |tail: &mut HookTail| -> Vec<String> {
        let read = tail.read(disk).unwrap();
        read.lines.into_iter().map(|l| l.hook).collect()
    };
    assert!(names(&mut tail).is_empty());
    write(1);
    assert_eq!(names(&mut tail), ["H1"]);
    write(2);
    disk.rename(&file, &rotated(&file)).unwrap();
    write(3);
    assert_eq!(
        names(&mut tail),
        ["H2", "H3"],
        "what was written before the rotation is not lost"
    );
    let late = HookLine::from_input(at(0), "H4", &Value::Null);
    disk.append(&rotated(&file), &late.to_bytes()).unwrap();
    write(5);
    assert_eq!(
        names(&mut tail),
        ["H4", "H5"],
        "nor is what a slow hook wrote after it"
    );
    assert_eq!(
        names(&mut HookTail::new(file.clone())),
        ["H1", "H2", "H4", "H3", "H5"]
    );
}

#[test]
fn st12_a_hook_file_is_put_aside_at_its_bound() {
    let (_dir, root, world) = pane(&[]);
    let file = root.join("local/hooks/local-ghe.corp.example-o-r-1.jsonl");
    let disk = &*world.disk;
    disk.create_dir_all(file.parent().unwrap()).unwrap();
    assert!(!rotate_if_needed(disk, &file).unwrap());
    disk.append(&file, &vec![b'x'; HOOK_FILE_BYTES_MAX as usize - 1])
        .unwrap();
    assert!(!rotate_if_needed(disk, &file).unwrap());
    disk.append(&file, b"\n").unwrap();
    assert!(rotate_if_needed(disk, &file).unwrap());
    let slug = Slug::from_file_stem("local-ghe.corp.example-o-r-1").unwrap();
    let aside = Layout::new(root).hook_file_before(&slug);
    assert_eq!(rotated(&file), aside);
    assert!(disk.meta(&aside).unwrap().is_some());
}

#[test]
fn malformed_lines_are_counted_and_skipped_and_a_cut_line_waits() {
    let (_dir, root, world) = pane(&[]);
    let file = root.join("local/hooks/local-o-r-1.jsonl");
    let good = HookLine::from_input(at(0), "Stop", &Value::Null).to_bytes();
    let disk = &*world.disk;
    disk.create_dir_all(file.parent().unwrap()).unwrap();
    let long = vec![b'y'; HOOK_LINE_BYTES_MAX + 1];
    for part in [&b"nonsense\n{}\n\xff\n"[..], &long, b"\n", &good[..10]] {
        disk.append(&file, part).unwrap();
    }
    let mut tail = HookTail::new(file.clone());
    let read = tail.read(disk).unwrap();
    assert_eq!((read.lines.len(), read.malformed), (0, 4));
    disk.append(&file, &good[10..]).unwrap();
    let read = tail.read(disk).unwrap();
    assert_eq!((read.lines.len(), read.malformed), (1, 0));
}
