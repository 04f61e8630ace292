//! The adapter against the real Claude Code, in real tmux, on a model server of ours (DI-54).
//!
//! `scripts/test-harnesses` installs the pinned program and runs this; nothing leaves the machine.
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

use camino::{Utf8Path, Utf8PathBuf};
use pane::{MARKER, Pane, SESSION, SLUG, asked_for, child_words, marker, root_of, session};
use the_loop::disk::{Disk, OsDisk};
use the_loop::harness::adapter::{Adapter, LaunchContext};
use the_loop::harness::hook;
use the_loop::harness::pane_exec::{self, LaunchFile};
use the_loop::harness::place::Place;
use the_loop::harness::transcript::Usage;
use the_loop::harness::watch::Watch;
use the_loop_core::config::HarnessTrust;
use the_loop_core::confirm::{AgentState, By, Composer, WaitingKind};
use the_loop_core::ids::Slug;
use the_loop_core::time::Timestamp;
use the_loop_testkit::FakeModel;

/// Not a test: what the pane and its hooks run.
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
        ["hook", name, slug] => hook::run(&world, name, Some(slug), std::io::stdin()),
        _ => {}
    }
}

struct Stage {
    model: FakeModel,
    program: String,
}

/// The program to test; without it the test says loudly that it did nothing.
fn stage() -> Option<Stage> {
    let Ok(program) = std::env::var("THE_LOOP_TEST_CLAUDE") else {
        eprintln!(
            "SKIPPED: THE_LOOP_TEST_CLAUDE does not name the program; see scripts/test-harnesses"
        );
        return None;
    };
    let model = FakeModel::start().unwrap();
    Some(Stage { model, program })
}

/// A program for the hooks: this test binary, which prints nothing to the harness.
fn hook_program(root: &Utf8Path) -> Utf8PathBuf {
    let (exe, args, _) = child_words(&[]);
    let script = format!(
        "#!/bin/sh\nCHILD=\"$(printf '%s\\037%s\\037%s' \"$1\" \"$2\" \"$4\")\" exec '{exe}' {} >/dev/null 2>&1\n",
        args.join(" ")
    );
    let path = root.join("hook program");
    if OsDisk.meta(&path).unwrap().is_none() {
        OsDisk.create_new(&path, script.as_bytes(), 0o700).unwrap();
    }
    path
}

impl Stage {
    fn launch(&self, dir: tempfile::TempDir, resume: bool, prompt: Option<&str>) -> Pane {
        let root = root_of(&dir);
        let (cwd, home) = (root.join("repo"), root.join("home"));
        for made in [&cwd, &home, &root.join(format!("local/mail/{SLUG}"))] {
            OsDisk.create_dir_all(made).unwrap();
        }
        Command::new("git")
            .args(["init", "-q", cwd.as_str()])
            .output()
            .unwrap();
        let mut world = pane::world_of_this_process();
        world.program = hook_program(&root);
        let env: BTreeMap<String, String> = [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", home.as_str()),
            ("LANG", "C.UTF-8"),
            ("ANTHROPIC_BASE_URL", &self.model.base_url()),
            ("ANTHROPIC_AUTH_TOKEN", "none"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
            ("THE_LOOP_STATE_ROOT", root.as_str()),
        ]
        .into_iter()
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect();
        let hook_file = root.join(format!("local/hooks/{SLUG}.jsonl"));
        let args = ["--permission-mode", "default"].map(str::to_owned);
        let context = LaunchContext {
            world: &world,
            slug: &Slug::from_file_stem(SLUG).unwrap(),
            session_id: Some(&session()),
            cwd: &cwd,
            workspace_root: None,
            settings_file: &root.join(format!("local/hooks/{SLUG}.settings.json")),
            mail_dir: &root.join(format!("local/mail/{SLUG}")),
            harness_args: &args,
            pane_env: &env,
            trust: &HarnessTrust::default(),
        };
        Adapter::claude().prepare(&context).unwrap().trust.unwrap();
        let argv = if resume {
            Adapter::claude().resume_argv(&context, prompt)
        } else {
            Adapter::claude().spawn_argv(&context, prompt)
        };
        let launch = LaunchFile {
            program: self.program.clone(),
            argv,
            cwd: cwd.clone(),
            env,
        };
        let place = place(&cwd, &home, hook_file);
        Pane::launch(dir, Adapter::claude(), &launch, place)
    }
}

fn place(cwd: &Utf8Path, home: &Utf8Path, hook_file: Utf8PathBuf) -> Place {
    Place {
        session_id: Some(session()),
        cwd: cwd.to_owned(),
        hook_file,
        env: Arc::new(BTreeMap::from([("HOME".to_owned(), home.to_string())])),
    }
}

fn header(n: u8) -> String {
    let marker = format!("{}{n}", &MARKER[..MARKER.len() - 1]);
    format!("the-loop delivery {marker} for local:octo/repo#15: issue_comment created")
}

/// One conversation through everything that the adapter must tell apart.
#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_one_conversation_with_the_real_program() {
    let Some(stage) = stage() else { return };
    let dir = tempfile::tempdir().unwrap();
    let root = root_of(&dir);
    let mail = root.join(format!("local/mail/{SLUG}/1.md"));
    OsDisk.create_dir_all(mail.parent().unwrap()).unwrap();
    OsDisk
        .create_new(&mail, b"Please [[run touch made-by-agent]] now.", 0o600)
        .unwrap();
    let first = format!("{}\nRead {mail} and do what it says.", header(0));
    let waiting = AgentState::Waiting(WaitingKind::Permission);

    // The first prompt in the argument; the mail is read without a dialog, the command is asked about.
    let mut pane = stage.launch(dir, false, Some(&first));
    pane.until_evidence(By::Hook);
    pane.until_state(waiting);
    let dialog = pane.until("dialog", |p| {
        Adapter::claude().known_dialog(&p.screen()).cloned()
    });
    assert_eq!(dialog.name, "permission");
    assert_eq!(pane.composer(), Composer::Unknown);
    assert!(
        !root.join("repo/made-by-agent").exists(),
        "nothing has run without a person"
    );
    pane.key("1");
    pane.until_state(AgentState::Idle);
    assert!(root.join("repo/made-by-agent").exists());

    // A pasted delivery: queued, pasted and confirmed are different words.
    pane.until_composer(Composer::Empty);
    pane.paste(&header(0).replace("-9f3c", "-0000"));
    pane.until_composer(Composer::Draft);
    pane.key("C-u");
    pane.until_composer(Composer::Empty);
    pane.paste(&format!("{}\n[[slow 1500]]", header(1)));
    pane.submit();
    pane.until_state(AgentState::Working);
    pane.paste(&header(2));
    pane.submit();
    let second = the_loop_core::ids::Marker::parse(&format!("{}2", &MARKER[..19])).unwrap();
    let intent = Timestamp::from_unix_ms(0);
    pane.until("hook of a queued prompt", |p| {
        p.state();
        p.watch.evidence(&second, intent).map(|s| s.by)
    });
    // The hint about queued prompts is no draft.
    pane.until_composer(Composer::Empty);
    pane.until_state(AgentState::Idle);

    // A question; its answer fires no hook.
    pane.paste(&format!("{}\n[[ask]]", header(3)));
    pane.submit();
    pane.until_state(AgentState::Waiting(WaitingKind::Question));
    pane.until("question", |p| {
        Adapter::claude()
            .known_dialog(&p.screen())
            .cloned()
            .filter(|d| d.name == "question")
    });
    pane.key("Escape");
    pane.until_state(AgentState::Idle);

    // An interrupt puts the text back into the composer.
    pane.paste(&format!("{}\n[[slow 20000]]", header(0)));
    pane.submit();
    pane.until_state(AgentState::Working);
    pane.key("Escape");
    pane.until_state(AgentState::Idle);
    pane.until_composer(Composer::Ours);
    for _ in 0..3 {
        pane.key("C-u");
    }
    pane.until_composer(Composer::Empty);

    // A usage limit is told by a structured signal.
    stage.model.fail(429, "rate_limit_error");
    pane.paste(&header(4));
    pane.submit();
    let limited = AgentState::Waiting(WaitingKind::UsageLimit);
    pane.until_state(limited);
    let since = std::time::Instant::now();
    pane.until("a while in which it stays so", |p| {
        assert_eq!(p.state(), Some(limited));
        (since.elapsed() > std::time::Duration::from_secs(3)).then_some(())
    });
    stage.model.mend();

    // Tokens are counted once, and the transcript alone confirms as well.
    let place = place(
        &root.join("repo"),
        &root.join("home"),
        root.join("no hooks"),
    );
    let mut quiet = Watch::new(Adapter::claude(), place, intent);
    let looked = quiet.look(&pane.world, None, None, None);
    assert_eq!(
        quiet.evidence(&marker(), intent).map(|s| s.by),
        Some(By::Transcript)
    );
    assert!(looked.usage.contains(&(
        looked.usage[0].0,
        Usage {
            input: 11,
            output: 7,
            cache_read: 4,
            cache_write: 3
        }
    )));
    let answers = looked.usage.len();
    assert!((5..9).contains(&answers), "{answers} answers are counted");

    // Killed and resumed with the next prompt in the argument: the same conversation.
    Command::new("kill")
        .args(["-9", &pane.pid.to_string()])
        .output()
        .unwrap();
    pane.until_dead();
    assert_eq!(pane.state(), Some(AgentState::Exited));
    let mut pane = stage.launch(pane.into_dir(), true, Some(&header(5)));
    let fifth = the_loop_core::ids::Marker::parse(&format!("{}5", &MARKER[..19])).unwrap();
    pane.until("evidence after the resume", |p| {
        p.state();
        p.watch.evidence(&fifth, intent).map(|s| s.by)
    });
    pane.until_state(AgentState::Idle);
    let prompts = stage.model.prompts();
    assert!(prompts.last().unwrap().contains(fifth.as_str()));
    assert_eq!(SESSION.len(), 36);
}

/// Without the pre-answers its first question is a known dialog, and is not answered.
#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_an_untrusted_folder_shows_a_known_dialog() {
    let Some(stage) = stage() else { return };
    let dir = tempfile::tempdir().unwrap();
    let home = root_of(&dir).join("home");
    OsDisk.create_dir_all(&home).unwrap();
    let mut pane = stage.launch(dir, false, None);
    pane.until_state(AgentState::Ready);
    let dir = pane.into_dir();
    let only_onboarded = br#"{"hasCompletedOnboarding": true}"#;
    OsDisk
        .write_atomic(
            &root_of(&dir).join("home/.claude.json"),
            only_onboarded,
            false,
        )
        .unwrap();
    // A program in place of the engine's own preparation: the same launch without pre-answers.
    let stage_root = root_of(&dir);
    let launch = LaunchFile {
        program: stage.program.clone(),
        argv: vec![
            "--session-id".to_owned(),
            "11111111-2222-4333-8444-000000000002".to_owned(),
        ],
        cwd: stage_root.join("repo"),
        env: [
            ("PATH", "/usr/bin:/bin"),
            ("HOME", stage_root.join("home").as_str()),
            ("ANTHROPIC_BASE_URL", &stage.model.base_url()),
            ("ANTHROPIC_AUTH_TOKEN", "none"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ]
        .into_iter()
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .collect(),
    };
    let place = place(
        &stage_root.join("repo"),
        &stage_root.join("home"),
        stage_root.join("h"),
    );
    let mut pane = Pane::launch(dir, Adapter::claude(), &launch, place);
    pane.until_state(AgentState::Waiting(WaitingKind::Dialog));
    assert_eq!(
        Adapter::claude().known_dialog(&pane.screen()).unwrap().name,
        "trust"
    );
    assert_eq!(pane.composer(), Composer::Unknown);
}
