//! The demo agent and the launcher in real tmux, on a private server each (DI-20, DI-38).
//!
//! What runs in the pane is this very test binary, asked for its `child` test: the launcher and the
//! agent are functions of the library, and the test needs no program to be wired up.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may look at its environment, start tmux and panic"
)]

mod pane;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8Path;
use pane::{MARKER, Pane, SESSION, SLUG, asked_for, child_words, root_of, session};
use serde_json::Value;
use the_loop::disk::{Disk, OsDisk};
use the_loop::harness::adapter::Adapter;
use the_loop::harness::demo::{self, DemoArgs};
use the_loop::harness::pane_exec::{self, LaunchFile};
use the_loop::harness::place::Place;
use the_loop::process::{OsProcesses, Processes};
use the_loop_core::confirm::{AgentState, By, Composer, WaitingKind};

/// Not a test: what the panes run.
#[test]
#[ignore = "runs inside the panes of the other tests"]
fn child() {
    let words = asked_for();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let world = pane::world_of_this_process();
    match words[..] {
        ["pane-exec", file] => {
            let error = pane_exec::run(&world, Utf8Path::new(file));
            eprintln!("{error}");
            std::process::exit(i32::from(error.exit_code()));
        }
        ["demo-agent", flag, id, ref prompt @ ..] => {
            let id = Some(id.to_owned());
            let resuming = flag == "--resume";
            let args = DemoArgs {
                session_id: id.clone().filter(|_| !resuming),
                resume: id.filter(|_| resuming),
                slug: Some(SLUG.to_owned()),
                prompt: prompt.first().map(|p| (*p).to_owned()),
            };
            std::process::exit(demo::run(&world, &args));
        }
        _ => {}
    }
}

fn open(vars: &[(&str, &str)]) -> Pane {
    open_with(
        tempfile::tempdir().unwrap(),
        vars,
        &["--session-id", SESSION],
    )
}

fn open_with(dir: tempfile::TempDir, vars: &[(&str, &str)], words: &[&str]) -> Pane {
    let root = root_of(&dir);
    OsDisk.create_dir_all(&root.join("local")).unwrap();
    let words: Vec<&str> = ["demo-agent"].iter().chain(words).copied().collect();
    let (program, argv, child) = child_words(&words);
    let mut env = BTreeMap::from([
        child,
        ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
        ("HOME".to_owned(), root.to_string()),
        ("THE_LOOP_STATE_ROOT".to_owned(), root.to_string()),
        (
            "THE_LOOP_WORK_ITEM".to_owned(),
            "local:octo/repo#15".to_owned(),
        ),
    ]);
    for (name, value) in vars {
        env.insert(format!("THE_LOOP_DEMO_{name}"), (*value).to_owned());
    }
    let place = Place {
        session_id: Some(session()),
        cwd: root.clone(),
        hook_file: root.join(format!("local/hooks/{SLUG}.jsonl")),
        env: Arc::new(env.clone()),
    };
    let launch = LaunchFile {
        program,
        argv,
        cwd: root.clone(),
        env,
    };
    Pane::launch(dir, Adapter::demo(), &launch, place)
}

fn prompt() -> String {
    format!("the-loop delivery {MARKER} for local:octo/repo#15: start\nPlease begin.")
}

#[test]
fn di38_a_pasted_delivery_is_confirmed_by_the_hook() {
    let mut pane = open(&[]);
    pane.until_state(AgentState::Ready);
    assert_eq!(pane.composer(), Composer::Empty);
    pane.paste(&prompt());
    pane.until_composer(Composer::Ours);
    assert_eq!(
        pane.evidence(),
        None,
        "queued, pasted and confirmed are different words"
    );
    pane.submit();
    pane.until_evidence(By::Hook);
    pane.until_state(AgentState::Idle);
    assert_eq!(pane.composer(), Composer::Empty);
    assert_eq!(pane.hooks(), ["SessionStart", "UserPromptSubmit", "Stop"]);
    let lines = pane.transcript();
    assert_eq!(
        (&lines[0]["role"], &lines[0]["marker"]),
        (&"user".into(), &MARKER.into())
    );
    assert_eq!(
        lines[0]["text"],
        prompt(),
        "the text arrives as it was sent"
    );
    assert_eq!(lines[0]["usage"], Value::Null);
    assert_eq!(lines[1]["role"], "assistant");
    assert_eq!(lines[1]["usage"]["input"], prompt().chars().count());
    let transcript = pane.root().join(format!("local/demo/{SESSION}.jsonl"));
    assert_eq!(OsDisk.meta(&transcript).unwrap().unwrap().mode, 0o600);
}

#[test]
fn di20_the_pane_has_exactly_the_environment_of_the_launch_file() {
    let mut pane = open(&[("SLOW_START_MS", "0")]);
    pane.until_state(AgentState::Ready);
    let environ = std::fs::read(format!("/proc/{}/environ", pane.pid)).unwrap();
    let mut names: Vec<String> = environ
        .split(|b| *b == 0)
        .filter(|e| !e.is_empty())
        .map(|e| {
            String::from_utf8_lossy(e)
                .split('=')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    names.sort();
    let expected = [
        "CHILD",
        "HOME",
        "PATH",
        "TERM",
        "THE_LOOP_DEMO_SLOW_START_MS",
        "THE_LOOP_STATE_ROOT",
        "THE_LOOP_WORK_ITEM",
        "TMUX",
        "TMUX_PANE",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        OsDisk.list(&pane.root().join("local/launch")).unwrap(),
        [""; 0]
    );
}

#[test]
fn di38_the_prompt_argument_is_taken_and_a_resumed_conversation_goes_on() {
    let text = prompt();
    let dir = tempfile::tempdir().unwrap();
    let mut pane = open_with(dir, &[], &["--session-id", SESSION, &text]);
    pane.until_evidence(By::Hook);
    pane.until_state(AgentState::Idle);
    pane.key("C-d");
    assert_eq!(pane.until_dead(), "0");
    assert_eq!(pane.hooks().last().unwrap(), "SessionEnd");
    let mut resumed = open_with(pane.into_dir(), &[], &["--resume", SESSION]);
    resumed.until_row("(resume)");
    resumed.until("ready", |p| p.state().filter(|s| s.takes_input()));
    assert_eq!(resumed.hook_lines().last().unwrap()["kind"], "resume");
}

#[test]
fn di38_an_unknown_conversation_is_not_resumed() {
    let mut pane = open_with(tempfile::tempdir().unwrap(), &[], &["--resume", SESSION]);
    assert_eq!(pane.until_dead(), "1");
}

#[test]
fn di38_exit_at_once_and_bad_values() {
    let mut pane = open(&[("EXIT_AT_ONCE", "1")]);
    assert_eq!(pane.until_dead(), "1");
    let all = pane
        .tmux(&["capture-pane", "-p", "-S", "-", "-t", "=a:"])
        .stdout;
    assert!(String::from_utf8_lossy(&all).contains("demo-agent: told to exit"));
    assert_eq!(pane.hooks(), [""; 0]);
    let mut pane = open(&[("BUSY_MS", "soon")]);
    assert_eq!(pane.until_dead(), "2");
}

#[test]
fn di38_a_slow_start_shows_and_tells_nothing_until_it_is_ready() {
    let mut pane = open(&[("SLOW_START_MS", "1500")]);
    assert_eq!(pane.state(), None);
    assert_eq!(pane.hooks(), [""; 0]);
    pane.until_state(AgentState::Ready);
    assert_eq!(pane.hooks(), ["SessionStart"]);
}

#[test]
fn di38_a_swallowed_submit_leaves_our_text_in_the_composer() {
    let mut pane = open(&[("SWALLOW_ENTER", "1")]);
    pane.until_state(AgentState::Ready);
    pane.paste(&prompt());
    pane.submit();
    pane.until_composer(Composer::Ours);
    assert_eq!(pane.evidence(), None);
    pane.submit();
    pane.until_evidence(By::Hook);
    pane.until_composer(Composer::Empty);
}

#[test]
fn di38_a_permission_question_is_a_known_dialog() {
    let mut pane = open(&[("ASK_PERMISSION", "1")]);
    pane.until_state(AgentState::Ready);
    pane.paste(&prompt());
    pane.submit();
    pane.until_state(AgentState::Waiting(WaitingKind::Permission));
    pane.until("dialog", |p| {
        Adapter::demo().known_dialog(&p.screen()).cloned()
    });
    assert_eq!(pane.composer(), Composer::Unknown);
    pane.paste("the-loop delivery");
    pane.submit();
    pane.key("y");
    pane.until_state(AgentState::Idle);
    let expected = [
        "SessionStart",
        "UserPromptSubmit",
        "PermissionRequest",
        "Stop",
    ];
    assert_eq!(pane.hooks(), expected);
}

#[test]
fn di38_a_busy_agent_queues_and_its_hook_fires_at_once() {
    let mut pane = open(&[("BUSY_MS", "2000")]);
    pane.until_state(AgentState::Ready);
    pane.paste("first");
    pane.submit();
    pane.until_state(AgentState::Working);
    pane.paste(&prompt());
    pane.submit();
    pane.until_evidence(By::Hook);
    assert_eq!(pane.transcript().len(), 1);
    pane.until_row("working, 1 waiting");
    pane.until_state(AgentState::Idle);
    let expected = [
        "SessionStart",
        "UserPromptSubmit",
        "UserPromptSubmit",
        "Stop",
    ];
    assert_eq!(pane.hooks(), expected);
    assert_eq!(pane.transcript().len(), 4);
}

#[test]
fn di38_without_hooks_the_transcript_alone_confirms() {
    let mut pane = open(&[("NO_HOOKS", "1")]);
    pane.until_state(AgentState::Ready);
    pane.paste(&prompt());
    pane.submit();
    pane.until_evidence(By::Transcript);
    pane.until_state(AgentState::Idle);
    assert_eq!(pane.hooks(), [""; 0]);
}

#[test]
fn di38_another_transcript_is_told_by_the_hooks_and_none_is_written_when_told_so() {
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().join("t.jsonl").display().to_string();
    let mut pane = open(&[("TRANSCRIPT", &path)]);
    pane.until_state(AgentState::Ready);
    pane.paste(&prompt());
    pane.submit();
    pane.until_state(AgentState::Idle);
    assert!(std::fs::read_to_string(&path).unwrap().contains(MARKER));
    assert_eq!(pane.hook_lines()[1]["transcriptPath"], path);
    let mut pane = open(&[("TRANSCRIPT", "none"), ("NO_HOOKS", "1")]);
    pane.until_state(AgentState::Ready);
    pane.paste(&prompt());
    pane.submit();
    pane.until_state(AgentState::Idle);
    assert_eq!(pane.evidence(), None);
    assert_eq!(OsDisk.list(&pane.root().join("local")).unwrap(), ["launch"]);
}

fn signal(name: &str, pid: i32) {
    Command::new("kill")
        .args([name, &pid.to_string()])
        .output()
        .unwrap();
}

#[test]
fn di38_sigterm_ends_it_cleanly_unless_it_ignores_it() {
    let mut pane = open(&[]);
    pane.until_state(AgentState::Ready);
    signal("-TERM", pane.pid);
    assert_eq!(pane.until_dead(), "143");
    assert_eq!(pane.hooks(), ["SessionStart", "SessionEnd"]);
    let mut stubborn = open(&[("IGNORE_SIGTERM", "1")]);
    stubborn.until_state(AgentState::Ready);
    signal("-TERM", stubborn.pid);
    signal("-HUP", stubborn.pid);
    stubborn.paste("still here");
    stubborn.submit();
    stubborn.until_state(AgentState::Idle);
    stubborn.tmux(&["kill-server"]);
    assert!(
        OsProcesses.started(stubborn.pid).is_some(),
        "it outlives even its pane"
    );
}

#[test]
fn di38_it_keeps_a_draft_through_a_resize_and_idles_without_work() {
    let mut pane = open(&[]);
    pane.until_state(AgentState::Ready);
    pane.paste(&prompt());
    pane.until_composer(Composer::Ours);
    for (columns, rows) in [("30", "10"), ("200", "50"), ("90", "24")] {
        pane.tmux(&["resize-window", "-t", "=a", "-x", columns, "-y", rows]);
        pane.until("size", |p| {
            (p.ask("#{pane_width}") == columns).then_some(())
        });
        pane.until_composer(Composer::Ours);
    }
    pane.key("C-u");
    pane.until_composer(Composer::Empty);
    pane.paste("!rm -rf x");
    pane.until_composer(Composer::Draft);
    pane.submit();
    pane.until_row("would run in a shell, without asking: rm -rf x");
    assert_eq!(pane.hooks(), ["SessionStart"]);
    let ticks = |pid: i32| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    };
    let (before, since) = (ticks(pane.pid), Instant::now());
    let over = |_: &mut Pane| (since.elapsed() > Duration::from_millis(500)).then_some(());
    pane.until("half a second", over);
    assert!(
        ticks(pane.pid) - before <= 1,
        "an idle agent uses no processor"
    );
}
