use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use the_loop_core::config::HarnessTrust;
use the_loop_core::ids::Slug;

use super::*;
use crate::harness::adapter::Adapter;
use crate::harness::testing::{SESSION, at, header, marker, session, world};
use crate::harness::transcript::{Counted, Entry, Usage, gemini as transcript};

macro_rules! screen {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../screens/gemini-0.61.0/", $name, ".txt")),
        )
    };
}

const SCREENS: [(&str, &str); 20] = [
    screen!("clean"),
    screen!("clean-draft"),
    screen!("draft"),
    screen!("edit"),
    screen!("idle"),
    screen!("lines-draft"),
    screen!("lines-ready"),
    screen!("login"),
    screen!("mail-trust"),
    screen!("narrow-ours"),
    screen!("ours"),
    screen!("permission"),
    screen!("plain-draft"),
    screen!("plain-ready"),
    screen!("question"),
    screen!("queued"),
    screen!("ready"),
    screen!("shell-mode"),
    screen!("trust"),
    screen!("working"),
];

/// What each screen of the real program must be read as: dialog, composer asked for the marker, state.
const READ_AS: [(&str, Option<&str>, Composer, Option<AgentState>); 20] = [
    ("clean", None, Composer::Empty, Some(AgentState::Idle)),
    ("clean-draft", None, Composer::Draft, Some(AgentState::Idle)),
    ("draft", None, Composer::Draft, Some(AgentState::Idle)),
    ("edit", Some("permission"), Composer::Unknown, None),
    ("idle", None, Composer::Empty, Some(AgentState::Idle)),
    ("lines-draft", None, Composer::Draft, Some(AgentState::Idle)),
    ("lines-ready", None, Composer::Empty, Some(AgentState::Idle)),
    ("login", Some("login"), Composer::Unknown, None),
    ("mail-trust", Some("add-directory"), Composer::Unknown, None),
    ("narrow-ours", None, Composer::Ours, Some(AgentState::Idle)),
    ("ours", None, Composer::Ours, Some(AgentState::Idle)),
    ("permission", Some("permission"), Composer::Unknown, None),
    ("plain-draft", None, Composer::Draft, Some(AgentState::Idle)),
    ("plain-ready", None, Composer::Empty, Some(AgentState::Idle)),
    ("question", Some("question"), Composer::Unknown, None),
    ("queued", None, Composer::Empty, Some(AgentState::Working)),
    ("ready", None, Composer::Empty, Some(AgentState::Idle)),
    ("shell-mode", None, Composer::Draft, Some(AgentState::Idle)),
    ("trust", Some("trust"), Composer::Unknown, None),
    ("working", None, Composer::Empty, Some(AgentState::Working)),
];

#[test]
fn di27_screens_of_the_real_program_are_read_as_a_person_reads_them() {
    let adapter = Adapter::gemini();
    for ((name, captured), (same, dialog, composer, state)) in SCREENS.into_iter().zip(READ_AS) {
        assert_eq!(name, same);
        let screen = ScreenView::parse(captured, "", false, at(0));
        let found = adapter.known_dialog(&screen).map(|d| d.name.as_str());
        assert_eq!(found, dialog, "{name}");
        assert_eq!(
            adapter.composer(&screen, Some(&marker())),
            composer,
            "{name}"
        );
        let seen = screen_state(&screen).map(|(state, _)| state);
        assert_eq!(seen.filter(|_| dialog.is_none()), state, "{name}");
    }
}

#[test]
fn di27_an_input_line_that_asks_nobody_is_read_as_any_other() {
    let (_, captured) = screen!("yolo");
    let screen = ScreenView::parse(captured, "", false, at(0));
    assert_eq!(composer(&screen, None), Composer::Empty);
    let typed = captured.replace("  Type your message or @path/to/file", "Type your message");
    let typed = ScreenView::parse(&typed, "", false, at(0));
    assert_eq!(
        composer(&typed, None),
        Composer::Empty,
        "a hint is no draft"
    );
    let all: Vec<&str> = screen.rows[input_line(&screen).unwrap()]
        .iter()
        .map(String::as_str)
        .collect();
    assert_eq!(all, [" *   Type your message or @path/to/file"]);
}

#[test]
fn di31_the_title_tells_what_it_does() {
    let state = |title: &str| title_state(title).map(|(state, _)| state);
    assert_eq!(state("◇  Ready (hello)      "), Some(AgentState::Idle));
    assert_eq!(state("✦  Working… (hello)"), Some(AgentState::Working));
    assert_eq!(
        state("✦  Looking around (hello)"),
        Some(AgentState::Working)
    );
    assert_eq!(state("⏲  Working… (hello)"), Some(AgentState::Working));
    let asks = AgentState::Waiting(WaitingKind::Permission);
    assert_eq!(state("✋  Action Required (hello)"), Some(asks));
    for other in ["", "host", "Gemini CLI (hello)"] {
        assert_eq!(state(other), None);
    }
}

fn entries(lines: &[Value]) -> Vec<Entry> {
    let mut counted = Counted::default();
    let read = lines
        .iter()
        .filter_map(|line| transcript::entry(line.to_string().as_bytes(), &mut counted));
    read.collect()
}

#[test]
fn di29_only_what_a_user_said_is_a_prompt() {
    let time = at(7).millis();
    let user =
        |content: Value| json!({"id": "u", "timestamp": time, "type": "user", "content": content});
    let prompt = format!("{}\nRead /m/1.md and do what it says.", header());
    let two = format!(
        "{}\n\n{}",
        "the-loop delivery dlv-1f3c0a1b2d4e5f60 for local:a/b#1: x", prompt
    );
    let told = entries(&[
        json!({"sessionId": SESSION, "startTime": time, "kind": "main"}),
        json!({"$set": {"messages": [user(json!([{"text": prompt}]))]}}),
        user(json!([{"text": "<session_context>\nthe-loop delivery"}])),
        user(json!([{"text": "- **Workspace Directories:**\n  - /m"}])),
        user(json!([{"functionResponse": {"response": {"output": prompt}}}])),
        user(json!([{"text": two}])),
        user(json!("go on")),
    ]);
    let markers: Vec<usize> = told
        .iter()
        .map(|entry| match entry {
            Entry::Prompt { markers, .. } => markers.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(markers, [2, 0], "two that were queued come as one");
}

#[test]
fn di37_tokens_count_once_and_each_in_its_class() {
    let time = at(7).millis();
    let tokens =
        json!({"input": 18, "output": 7, "cached": 4, "thoughts": 2, "tool": 1, "total": 27});
    let mut said = json!({"id": "g", "timestamp": time, "type": "gemini", "content": "",
        "tokens": tokens});
    let first = said.clone();
    said["toolCalls"] = json!([{"name": "read_file"}]);
    let mut last = first.clone();
    last["id"] = json!("h");
    last["content"] = json!("Done.");
    let again = json!({"id": "i", "timestamp": time, "type": "gemini",
        "content": [{"text": "Done."}], "tokens": null});
    let counted = Usage {
        input: 15,
        output: 9,
        cache_read: 4,
        cache_write: 0,
    };
    let told: Vec<(bool, Usage)> = entries(&[first, said, last, again])
        .into_iter()
        .map(|entry| match entry {
            Entry::Answer {
                ends_turn, usage, ..
            } => (ends_turn, usage),
            other => panic!("{other:?}"),
        })
        .collect();
    let nothing = Usage::default();
    let wanted = [
        (false, counted),
        (false, nothing),
        (true, counted),
        (true, nothing),
    ];
    assert_eq!(told, wanted);
}

#[test]
fn di31_a_turn_that_was_stopped_or_failed_has_ended() {
    let time = at(7).millis();
    let line = |kind: &str, content: &str| json!({"id": "x", "timestamp": time, "type": kind, "content": content});
    let told = entries(&[
        line("info", "Request cancelled."),
        line("error", "[API Error: as told]"),
        line("info", "something else"),
        line("warning", "something"),
    ]);
    assert_eq!(told.len(), 2);
    let ended = |entry: &Entry| {
        matches!(
            entry,
            Entry::Answer {
                ends_turn: true,
                ..
            }
        )
    };
    assert!(told.iter().all(ended), "{told:?}");
}

/// A home with a register of projects; the place of the session in it.
fn place(path: &Utf8PathBuf) -> Place {
    Place {
        session_id: Some(session()),
        cwd: path.join("Work Tree"),
        hook_file: path.join("hooks.jsonl"),
        env: Arc::new(BTreeMap::from([("HOME".to_owned(), path.to_string())])),
    }
}

#[test]
fn di34_the_transcript_is_found_by_the_register_and_the_conversation_in_it() {
    let (_dir, path, world) = world();
    let place = place(&path);
    let disk = &world.disk;
    assert_eq!(transcript_path(&world, &place), None);
    disk.create_dir_all(&place.cwd).unwrap();
    let chats = path.join(".gemini/tmp/work-tree-1/chats");
    disk.create_dir_all(&chats).unwrap();
    let register = path.join(".gemini/projects.json");
    let projects = json!({"projects": {place.cwd.as_str(): "work-tree-1"}});
    disk.write_atomic(&register, projects.to_string().as_bytes(), false)
        .unwrap();
    assert_eq!(transcript_path(&world, &place), None);
    let write = |name: &str, id: &str| {
        let line = format!("{}\n", json!({"sessionId": id, "kind": "main"}));
        disk.write_atomic(&chats.join(name), line.as_bytes(), false)
            .unwrap();
    };
    write("session-2026-01-01T00-00-11111111.jsonl", "11111111-other");
    write("session-2026-01-01T00-01-22222222.jsonl", SESSION);
    assert_eq!(transcript_path(&world, &place), None);
    write("session-2026-01-01T00-02-11111111.jsonl", SESSION);
    write("session-2026-01-01T00-03-11111111.jsonl", SESSION);
    let first = chats.join("session-2026-01-01T00-02-11111111.jsonl");
    assert_eq!(transcript_path(&world, &place), Some(first));
    let outside = json!({"projects": {place.cwd.as_str(): "../../elsewhere"}});
    disk.write_atomic(&register, outside.to_string().as_bytes(), false)
        .unwrap();
    assert_eq!(transcript_path(&world, &place), None);
    disk.write_atomic(&register, b"{", false).unwrap();
    assert_eq!(transcript_path(&world, &place), None);
}

fn launch<T>(
    world: &World,
    path: &Utf8PathBuf,
    trust: &HarnessTrust,
    env: &[(&str, &str)],
    use_it: impl FnOnce(&LaunchContext<'_>) -> T,
) -> T {
    let slug = Slug::from_file_stem("local-o-r-1").unwrap();
    let env = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    use_it(&LaunchContext {
        world,
        slug: &slug,
        session_id: Some(&session()),
        cwd: &path.join("checkout"),
        workspace_root: None,
        settings_file: &path.join("settings.json"),
        mail_dir: &path.join("mail/local-o-r-1"),
        harness_args: &["--approval-mode".to_owned(), "auto_edit".to_owned()],
        pane_env: &env.collect(),
        trust,
    })
}

#[test]
fn di34_a_launch_names_the_conversation_and_lets_it_read_its_mail() {
    let (_dir, path, world) = world();
    let mail = path.join("mail/local-o-r-1");
    launch(&world, &path, &HarnessTrust::default(), &[], |context| {
        let adapter = Adapter::gemini();
        adapter.prepare(context).unwrap().trust.unwrap();
        let mail = mail.as_str();
        assert_eq!(
            adapter.spawn_argv(context, Some("do it")),
            [
                "--session-id",
                SESSION,
                "--include-directories",
                mail,
                "--approval-mode",
                "auto_edit",
                "--prompt-interactive",
                "do it"
            ]
        );
        let resumed = adapter.resume_argv(context, None);
        assert_eq!(resumed[..2], ["--resume", SESSION]);
    });
    let made = world.disk.meta(&mail).unwrap().unwrap();
    assert_eq!(made.mode, 0o700, "only a directory that is there is taken");
}

#[test]
fn di35_the_checkout_and_the_mail_are_trusted_beforehand_and_nothing_else_changes() {
    let (_dir, path, world) = world();
    let home = [("HOME", path.as_str())];
    let file = path.join(".gemini/trustedFolders.json");
    let (checkout, mail) = (path.join("checkout"), path.join("mail/local-o-r-1"));
    let disk = &world.disk;
    disk.create_dir_all(&path.join(".gemini")).unwrap();
    disk.create_new(&file, br#"{"/x": "DO_NOT_TRUST"}"#, 0o640)
        .unwrap();
    let trust = HarnessTrust::default();
    let answered = launch(&world, &path, &trust, &home, |c| {
        prepare(c).unwrap().unwrap()
    });
    assert_eq!(answered, [checkout.as_str(), mail.as_str()]);
    let read = || -> Value { serde_json::from_slice(&disk.read(&file, 9999).unwrap()).unwrap() };
    let wanted = json!({"/x": "DO_NOT_TRUST", checkout.as_str(): "TRUST_FOLDER",
        mail.as_str(): "TRUST_FOLDER"});
    assert_eq!(read(), wanted);
    assert_eq!(disk.meta(&file).unwrap().unwrap().mode, 0o640);
    let again = launch(&world, &path, &trust, &home, |c| {
        prepare(c).unwrap().unwrap()
    });
    assert_eq!(again, [""; 0]);

    let refused = json!({checkout.as_str(): "DO_NOT_TRUST"}).to_string();
    disk.write_atomic(&file, refused.as_bytes(), false).unwrap();
    let answered = launch(&world, &path, &trust, &home, |c| {
        prepare(c).unwrap().unwrap()
    });
    assert_eq!(answered, [mail.as_str()], "a person's answer stands");
}

#[test]
fn di35_its_file_is_where_its_environment_says_and_only_with_leave() {
    let (_dir, path, world) = world();
    let off = HarnessTrust {
        enabled: false,
        ..HarnessTrust::default()
    };
    let home = [("HOME", path.as_str())];
    let answered = launch(&world, &path, &off, &home, |c| prepare(c).unwrap().unwrap());
    assert_eq!(answered, [""; 0]);
    assert_eq!(world.disk.meta(&path.join(".gemini")).unwrap(), None);
    let (moved, named) = (path.join("moved"), path.join("named/trust.json"));
    let trust = HarnessTrust::default();
    let moved_home = [("HOME", "/nowhere"), ("GEMINI_CLI_HOME", moved.as_str())];
    launch(&world, &path, &trust, &moved_home, |c| {
        prepare(c).unwrap().unwrap()
    });
    let there = |file: Utf8PathBuf| world.disk.meta(&file).unwrap().is_some();
    assert!(there(moved.join(".gemini/trustedFolders.json")));
    let by_name = [("GEMINI_CLI_TRUSTED_FOLDERS_PATH", named.as_str())];
    launch(&world, &path, &trust, &by_name, |c| {
        prepare(c).unwrap().unwrap()
    });
    assert!(there(named));
}
