use proptest::prelude::*;
use the_loop_core::time::Timestamp;

use super::agent::{Agent, Effect, Happening, Said, Status};
use super::input::{Decoder, Key};
use super::knobs::{Knobs, TranscriptAt};
use super::{view, work};
use crate::harness::testing::{at, header, marker, with_env, world};
use crate::process::Call;

fn knobs(vars: &[(&str, &str)]) -> Result<Knobs, String> {
    let (_dir, _, world) = world();
    let vars: Vec<(String, &str)> = vars
        .iter()
        .map(|(n, v)| (format!("THE_LOOP_DEMO_{n}"), *v))
        .collect();
    let vars: Vec<(&str, &str)> = vars.iter().map(|(n, v)| (n.as_str(), *v)).collect();
    Knobs::read(&with_env(world, &vars))
}

#[test]
fn di38_unset_empty_and_zero_are_off_and_bad_values_are_refused() {
    let off = knobs(&[]).unwrap();
    for value in ["", "0"] {
        let names = [
            "SLOW_START_MS",
            "SWALLOW_ENTER",
            "ASK_PERMISSION",
            "EXIT_AT_ONCE",
            "IGNORE_SIGTERM",
            "BUSY_MS",
            "NO_HOOKS",
            "TRANSCRIPT",
        ];
        let all: Vec<(&str, &str)> = names.iter().map(|n| (*n, value)).collect();
        assert_eq!(knobs(&all).unwrap(), off);
    }
    for bad in [
        ("SLOW_START_MS", "1s"),
        ("SLOW_START_MS", "-1"),
        ("SWALLOW_ENTER", "+1"),
        ("ASK_PERMISSION", "yes"),
        ("EXIT_AT_ONCE", "2"),
        ("BUSY_MS", "99999999999"),
        ("TRANSCRIPT", "relative"),
    ] {
        assert!(knobs(&[bad]).is_err(), "{bad:?}");
    }
    assert_eq!(
        knobs(&[("TRANSCRIPT", "none")]).unwrap().transcript,
        TranscriptAt::Nowhere
    );
}

struct Scene {
    agent: Agent,
    now: Timestamp,
}

fn scene(vars: &[(&str, &str)]) -> Scene {
    Scene {
        agent: Agent::new(&knobs(vars).unwrap()),
        now: at(0),
    }
}

impl Scene {
    fn keys(&mut self, keys: &[Key]) -> Vec<Effect> {
        let all: Vec<Effect> = keys
            .iter()
            .flat_map(|k| self.agent.take(Happening::Key(k.clone()), self.now))
            .collect();
        without_drawing(all)
    }
    fn paste(&mut self, text: &str) -> Vec<Effect> {
        self.keys(&[Key::Paste(text.to_owned()), Key::Submit])
    }
    fn happens(&mut self, what: Happening) -> Vec<Effect> {
        without_drawing(self.agent.take(what, self.now))
    }
}

fn without_drawing(effects: Vec<Effect>) -> Vec<Effect> {
    effects
        .into_iter()
        .filter(|e| !matches!(e, Effect::Redraw | Effect::Say(_)))
        .collect()
}

fn began(prompt: &str) -> [Effect; 3] {
    [
        Effect::PromptHook(prompt.to_owned()),
        Effect::WriteUser(prompt.to_owned()),
        Effect::Work(prompt.to_owned()),
    ]
}

fn answered(prompt: &str, answer: &str) -> Effect {
    Effect::WriteAssistant {
        prompt: prompt.to_owned(),
        answer: answer.to_owned(),
    }
}

#[test]
fn di38_a_turn_goes_from_submit_to_stop() {
    let mut scene = scene(&[]);
    assert_eq!(scene.agent.status(), Status::Ready);
    assert_eq!(scene.paste("do it"), began("do it"));
    assert_eq!(scene.agent.status(), Status::Working(0));
    let effects = scene.happens(Happening::Worked("done".to_owned()));
    assert_eq!(effects, [answered("do it", "done"), Effect::StopHook]);
    assert_eq!(scene.agent.status(), Status::Idle);
    assert_eq!(scene.agent.composer(), Some(""));
}

#[test]
fn di38_a_busy_turn_takes_its_time_and_queues_what_comes() {
    let mut scene = scene(&[("BUSY_MS", "500")]);
    scene.paste("one");
    assert_eq!(
        scene.paste("two"),
        [Effect::PromptHook("two".to_owned())],
        "its hook fires at once"
    );
    assert_eq!(scene.agent.status(), Status::Working(1));
    assert_eq!(scene.happens(Happening::Worked("1".to_owned())), []);
    assert_eq!(scene.agent.wakes_at(), Some(at(500)));
    scene.now = at(500);
    let effects = scene.happens(Happening::Time);
    assert_eq!(effects[0], answered("one", "1"));
    assert_eq!(
        effects[1..],
        began("two")[1..],
        "and is written down when its turn begins"
    );
}

#[test]
fn di38_swallowed_submits_leave_the_text_where_it_is() {
    let mut scene = scene(&[("SWALLOW_ENTER", "2")]);
    assert_eq!(scene.paste("x"), []);
    assert_eq!(scene.keys(&[Key::Submit]), []);
    assert_eq!(scene.agent.composer(), Some("x"));
    assert_eq!(scene.keys(&[Key::Submit]), began("x"));
}

#[test]
fn di38_a_question_waits_for_a_typed_answer() {
    let mut scene = scene(&[("ASK_PERMISSION", "1")]);
    let effects = scene.paste("go");
    assert_eq!(effects[..2], began("go")[..2]);
    assert_eq!(effects[2..], [Effect::PermissionHook]);
    assert_eq!(scene.agent.status(), Status::Waiting);
    assert_eq!(scene.agent.composer(), None);
    assert_eq!(
        scene.keys(&[Key::Submit, Key::Eof, Key::Escape, Key::Char('x')]),
        []
    );
    assert_eq!(
        scene.paste("the-loop delivery"),
        [],
        "its first character is no answer"
    );
    assert_eq!(
        scene.keys(&[Key::Char('y')]),
        [Effect::Work("go".to_owned())]
    );
    scene.happens(Happening::Worked("ok".to_owned()));
    scene.paste("again");
    let effects = scene.paste("no, please do not");
    assert!(matches!(
        effects[..],
        [Effect::WriteAssistant { .. }, Effect::StopHook]
    ));
    scene.paste("third");
    assert_eq!(
        scene.paste("yes, it is a trap"),
        [Effect::Work("third".to_owned())]
    );
}

#[test]
fn di26_a_shell_line_or_command_that_reaches_the_composer_shows() {
    let mut scene = scene(&[]);
    let said = |effects: Vec<Effect>| match &effects[..] {
        [.., Effect::Say(Said::Note(words)), Effect::Redraw] => words.clone(),
        other => panic!("{other:?}"),
    };
    scene
        .agent
        .take(Happening::Key(Key::Paste("!rm -rf /".to_owned())), at(0));
    let effects = scene.agent.take(Happening::Key(Key::Submit), at(0));
    assert_eq!(
        said(effects),
        "would run in a shell, without asking: rm -rf /"
    );
    assert_eq!(scene.paste("/unknown x"), []);
    let end = Effect::End {
        reason: "prompt_input_exit",
        code: 0,
    };
    assert_eq!(scene.paste("/exit"), std::slice::from_ref(&end));
    assert_eq!(scene.keys(&[Key::Char('a'), Key::Eof]), []);
    assert_eq!(scene.keys(&[Key::Clear, Key::Eof]), [end]);
}

#[test]
fn di31_an_interrupt_fires_no_hook() {
    let mut scene = scene(&[("BUSY_MS", "500")]);
    scene.paste("x");
    scene.happens(Happening::Worked("1".to_owned()));
    assert_eq!(scene.keys(&[Key::Escape]), []);
    assert_eq!(scene.agent.status(), Status::Idle);
}

fn decoded(chunks: &[&[u8]]) -> Vec<Key> {
    let mut decoder = Decoder::default();
    chunks.iter().flat_map(|c| decoder.take(c)).collect()
}

#[test]
fn keys_and_pastes_are_told_apart() {
    let paste = |t: &str| Key::Paste(t.to_owned());
    assert_eq!(
        decoded(&[b"\x1b[200~a\rb\tc\x1b[201~\r"]),
        [paste("a\nb c"), Key::Submit]
    );
    assert_eq!(
        decoded(&[b"\x1b[A\x1bOPx"]),
        [Key::Char('x')],
        "arrows and function keys mean nothing"
    );
    assert_eq!(decoded(&[b"\x1b"]), [Key::Escape]);
    assert_eq!(
        decoded(&["é€😀".as_bytes()]),
        ['é', '€', '😀'].map(Key::Char)
    );
    assert_eq!(
        decoded(&[b"\x03\x04\x7f\n"]),
        [Key::Clear, Key::Eof, Key::Backspace, Key::Newline]
    );
}

proptest! {
    #[test]
    fn a_paste_is_the_same_however_it_is_cut(text in "[a-z\r é]{0,60}", cut in 0usize..80) {
        let bytes = [b"\x1b[200~", text.as_bytes(), b"\x1b[201~\r"].concat();
        // A chunk that ends within the opening sequence would be an escape key.
        let cut = cut.min(bytes.len()).max(6);
        let (a, b) = bytes.split_at(cut);
        prop_assert_eq!(decoded(&[a, b]), [Key::Paste(text.replace('\r', "\n")), Key::Submit]);
    }

    #[test]
    fn no_input_makes_it_panic_or_hang(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20)
    ) {
        let mut decoder = Decoder::default();
        let mut agent = Agent::new(&knobs(&[("ASK_PERMISSION", "1")]).unwrap());
        for chunk in chunks {
            for key in decoder.take(&chunk) {
                agent.take(Happening::Key(key), at(0));
            }
            let (rows, _, _) = view::bottom(&agent, 20, 8);
            prop_assert!(rows.len() <= 8);
        }
    }
}

#[test]
fn the_bottom_rows_never_leave_the_pane_and_tell_the_state() {
    let mut scene = scene(&[]);
    let long = "word ".repeat(2000);
    scene.keys(&[Key::Paste(long)]);
    for (columns, rows) in [(80, 24), (12, 4), (200, 50)] {
        let (lines, row, column) = view::bottom(&scene.agent, columns, rows);
        assert!(lines.len() <= rows && row < lines.len() && column < columns);
    }
    for status in [
        Status::Ready,
        Status::Working(0),
        Status::Working(3),
        Status::Waiting,
        Status::Idle,
    ] {
        assert!(view::state_of_status(&view::status_row(status)).is_some());
    }
    assert_eq!(view::state_of_status("bash"), None);
}

#[test]
fn di38_it_writes_a_file_commits_it_and_replies() {
    let (_dir, path, world) = world();
    let repo = path.join("repo");
    world.disk.create_dir_all(&repo).unwrap();
    let git = |args: &[&str]| {
        let call = Call::new("git", args.iter().copied()).cwd(repo.clone());
        world.processes.run(&call)
    };
    assert!(git(&["init", "--quiet"]).ok());
    let program = path.join("stub");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {path}/called\n");
    world
        .disk
        .create_new(&program, script.as_bytes(), 0o700)
        .unwrap();
    let mail = path.join("1.md");
    world.disk.create_new(&mail, b"Do it.", 0o600).unwrap();
    let mut world = with_env(
        world.clone(),
        &[("THE_LOOP_WORK_ITEM", "local:octo/repo#15")],
    );
    world.cwd.clone_from(&repo);
    world.program = program;
    let prompt = format!("{}\nRead {mail} and do what it says.", header());
    let answer = work::perform(&world, &prompt);
    assert!(answer.contains("replied on local:octo/repo#15"), "{answer}");
    assert!(answer.contains("read 6 bytes of mail"), "{answer}");
    let log = git(&["log", "--format=%an %s", "--name-only"]).out();
    assert_eq!(log.trim(), "demo-agent demo-agent: start\n\ndemo-agent.md");
    let called = String::from_utf8(world.disk.read(&path.join("called"), 999).unwrap()).unwrap();
    assert!(
        called.starts_with("tickets\ncomment\nlocal:octo/repo#15\n--body\n"),
        "{called}"
    );
    work::perform(&world, &prompt);
    let notes =
        String::from_utf8(world.disk.read(&repo.join("demo-agent.md"), 999).unwrap()).unwrap();
    assert_eq!(notes, format!("- start ({})\n", marker()).repeat(2));
}

#[test]
fn di38_a_prompt_that_is_no_delivery_gets_words_only() {
    let (_dir, path, world) = world();
    let answer = work::perform(&world, "please\nfix it");
    assert!(answer.contains("2 line(s)"));
    assert_eq!(world.disk.list(&path).unwrap(), [""; 0]);
}
