use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use the_loop_core::config::Settings;
use the_loop_core::confirm::{AgentState, By, Composer};
use the_loop_core::ids::HarnessSessionId;
use the_loop_core::time::Timestamp;

use super::*;
use crate::harness::adapter::{Adapters, Learning};
use crate::harness::hook::{self, HookLine};
use crate::harness::place::Place;
use crate::harness::screen::ScreenView;
use crate::harness::testing::{at, header, marker, pane_env, world};
use crate::harness::watch::Watch;
use crate::world::World;

/// The harness that these fields declare, under this name.
fn declare(name: &str, fields: serde_json::Value) -> Adapter {
    let mut settings = Settings::default();
    let harness: Harness = serde_json::from_value(fields).unwrap();
    settings.routing.harnesses.insert(name.to_owned(), harness);
    Adapters::of(&settings).named(name).unwrap()
}

fn place(path: &Utf8Path, id: Option<&str>) -> Place {
    Place {
        session_id: id.and_then(HarnessSessionId::parse),
        cwd: path.join("checkout"),
        hook_file: path.join("local/hooks/x.jsonl"),
        env: pane_env(&[("HOME", path)]),
    }
}

fn screen(rows: &str, ms: i64) -> ScreenView {
    ScreenView::parse(rows, "", false, at(ms))
}

struct Scene {
    _dir: tempfile::TempDir,
    path: Utf8PathBuf,
    world: World,
    watch: Watch,
}

fn scene(fields: serde_json::Value, id: Option<&str>) -> Scene {
    let (dir, path, world) = world();
    world
        .disk
        .create_dir_all(&path.join("local/hooks"))
        .unwrap();
    let mut fields = fields;
    if let Some(transcript) = fields["transcript"].as_str() {
        fields["transcript"] = json!(format!("{path}/{transcript}"));
    }
    let watch = Watch::new(declare("mine", fields), place(&path, id), at(0));
    Scene {
        _dir: dir,
        path,
        world,
        watch,
    }
}

impl Scene {
    fn state(&mut self, title: Option<&str>, rows: Option<(&str, i64)>) -> Option<AgentState> {
        let view = rows.map(|(rows, ms)| screen(rows, ms));
        self.watch.look(&self.world, None, title, view.as_ref());
        self.watch.state().map(|seen| seen.state)
    }

    fn hook(&self, ms: i64, name: &str, input: serde_json::Value) {
        let file = self.path.join("local/hooks/x.jsonl");
        let line = HookLine::from_input(at(ms), name, &input);
        hook::append(&self.world, &file, &line);
    }
}

#[test]
fn di21_without_signals_a_living_process_is_ready_and_with_them_it_has_to_show() {
    assert_eq!(
        scene(json!({"command": "m"}), None).state(None, None),
        Some(AgentState::Ready)
    );
    let ready = json!({"command": "m", "signals": {"ready": "screen:^> "}});
    let mut shown = scene(ready, None);
    assert_eq!(shown.state(None, None), None);
    assert_eq!(shown.state(None, Some(("> x", 1))), Some(AgentState::Ready));
    assert_eq!(shown.state(None, Some(("gone", 2))), None);
}

#[test]
fn di31_declared_signals_tell_states_and_an_answered_question_is_over() {
    let fields = json!({"command": "m", "signals": {
        "ready": "hook:Up", "working": "title:^busy", "waiting": "screen:allow\\?", "idle": "hook:Done"
    }});
    let mut scene = scene(fields, None);
    scene.hook(10, "Up", json!({}));
    assert_eq!(scene.state(None, None), Some(AgentState::Ready));
    assert_eq!(
        scene.state(Some("busy with it"), None),
        Some(AgentState::Working)
    );
    let asked = scene.state(Some("busy with it"), Some(("allow? [y/n]", 1_000_001)));
    assert_eq!(asked, Some(AgentState::Waiting(WaitingKind::Dialog)));
    // A screen is captured with its pane's title, and neither shows anything now.
    let answered = scene.state(None, Some(("done", 1_000_002)));
    assert_eq!(answered, Some(AgentState::Ready), "the hook's word stands");
    scene.hook(1_000_003, "Done", json!({}));
    scene.hook(1_000_003, "Other", json!({}));
    assert_eq!(
        scene.state(None, None),
        Some(AgentState::Ready),
        "no turn yet"
    );
}

#[test]
fn di27_dialogs_and_the_composer_are_read_by_expressions() {
    let adapter = declare(
        "mine",
        json!({"command": "m", "composerEmpty": "^> *$", "dialogs": [
            {"name": "permission", "screen": "Allow this\\?"},
            {"name": "odd", "screen": "^Odd"}
        ]}),
    );
    let kind = |rows: &str| adapter.known_dialog(&screen(rows, 0)).map(|d| d.kind);
    assert_eq!(kind("a\nAllow this? y"), Some(WaitingKind::Permission));
    assert_eq!(kind("Odd"), Some(WaitingKind::Dialog));
    assert_eq!(kind("not Odd"), None);
    let composer = |rows: &str, ours: bool| {
        let marker = marker();
        adapter.composer(&screen(rows, 0), ours.then_some(&marker))
    };
    assert_eq!(composer("a\n> ", false), Composer::Empty);
    assert_eq!(composer("a\n> words", false), Composer::Draft);
    assert_eq!(composer("a\n> words", true), Composer::Unknown);
    assert_eq!(composer("Odd\n> ", false), Composer::Unknown);
    let blind = declare("blind", json!({"command": "m"}));
    assert_eq!(
        blind.composer(&screen("> words", 0), None),
        Composer::Unknown
    );
}

#[test]
fn di29_a_declared_hook_or_a_line_of_the_transcript_is_evidence() {
    let mut hooked = scene(
        json!({"command": "m", "confirm": "hook:Taken"}),
        Some("c-1"),
    );
    hooked.hook(10, "Taken", json!({"prompt": header()}));
    hooked.state(None, None);
    let by = |scene: &Scene| scene.watch.evidence(&marker(), at(5)).map(|seen| seen.by);
    assert_eq!(by(&hooked), Some(By::Hook), "it named no conversation");
    assert!(hooked.watch.hooks_heard());
    let mut foreign = scene(
        json!({"command": "m", "confirm": "hook:Taken"}),
        Some("c-1"),
    );
    foreign.hook(
        10,
        "Taken",
        json!({"prompt": header(), "session_id": "c-2"}),
    );
    foreign.state(None, None);
    assert_eq!(by(&foreign), None);
    let fields =
        json!({"command": "m", "confirm": "transcript", "transcript": "talk-{session_id}.log"});
    let mut written = scene(fields, Some("c-1"));
    let file = written.path.join("talk-c-1.log");
    written.state(None, None);
    assert_eq!(by(&written), None);
    let line = format!("{{\"user\":\"{}\\nmore\"}}\n", header());
    written.world.disk.append(&file, line.as_bytes()).unwrap();
    written.state(None, None);
    assert_eq!(by(&written), Some(By::Transcript));
    assert_eq!(
        written.watch.evidence(&marker(), at(4_000_000_000_000)),
        None
    );
}

#[test]
fn di33_an_id_is_learnt_only_from_a_file_that_nobody_else_can_have_made() {
    let (_dir, path, world) = world();
    let adapter = declare(
        "mine",
        json!({"command": "m", "sessionId": "file", "sessionIdPattern": format!("{path}/talk-*.log")}),
    );
    assert!(adapter.learns_id() && !adapter.assigns_id());
    let place = place(&path, None);
    let learn = |since: i64, taken: &[HarnessSessionId], rivals: &[Timestamp]| {
        let found = adapter.learn_id(&Learning {
            world: &world,
            place: &place,
            since: at(since),
            screen: None,
            told: None,
            taken,
            rivals,
        });
        found.map(|id| id.as_str().to_owned())
    };
    assert_eq!(learn(0, &[], &[]), None);
    world.disk.append(&path.join("talk-a.log"), b"x\n").unwrap();
    let made = world.disk.meta(&path.join("talk-a.log")).unwrap().unwrap();
    let Some(made) = made.created_ms else {
        return; // This file system does not tell, and then nothing is learnt.
    };
    let a = || Some("a".to_owned());
    assert_eq!(learn(made, &[], &[]), a());
    assert_eq!(learn(made + 1, &[], &[]), None, "from before the launch");
    let taken = [HarnessSessionId::parse("a").unwrap()];
    assert_eq!(learn(0, &taken, &[]), None, "another session's");
    assert_eq!(learn(0, &[], &[at(made)]), None, "another may have made it");
    assert_eq!(learn(0, &[], &[at(made + 1)]), a());
    world.disk.append(&path.join("talk-b.log"), b"x\n").unwrap();
    assert_eq!(learn(0, &[], &[]), None, "two are no answer");
    assert_eq!(learn(0, &taken, &[]), Some("b".to_owned()));
}

#[test]
fn di33_an_id_is_learnt_from_the_screen_and_checked() {
    let (_dir, path, world) = world();
    let adapter = declare(
        "mine",
        json!({"command": "m", "sessionId": "screen", "sessionIdPattern": "session (\\S+)"}),
    );
    let place = place(&path, None);
    let learn = |rows: &str| {
        let view = screen(rows, 0);
        let found = adapter.learn_id(&Learning {
            world: &world,
            place: &place,
            since: at(0),
            screen: Some(&view),
            told: None,
            taken: &[],
            rivals: &[],
        });
        found.map(|id| id.as_str().to_owned())
    };
    assert_eq!(learn("session s-1\n>"), Some("s-1".to_owned()));
    assert_eq!(
        learn("session ../etc\n>"),
        None,
        "no id reaches an argv unchecked"
    );
    assert_eq!(learn("nothing"), None);
}

#[test]
fn di33_single_fields_of_a_built_in_harness_are_changed_and_the_rest_stays() {
    let changed = declare(
        "claude",
        json!({"command": "/opt/claude", "submitDelayMs": 200}),
    );
    assert_eq!(changed.kind(), Kind::Claude);
    let declared = changed.declaration();
    assert_eq!(declared.program, Program::Named("/opt/claude".to_owned()));
    assert_eq!(declared.submit_delay, Duration::from_millis(200));
    assert_eq!(declared.spawn, Adapter::claude().declaration().spawn);
    assert_eq!(declared.hooks, Adapter::claude().declaration().hooks);
}

#[test]
fn di33_what_a_harness_cannot_do_follows_from_what_is_not_declared() {
    let poor = declare("poor", json!({"command": "m"}));
    assert_eq!(poor.declaration().cannot.len(), 2);
    let rich = declare(
        "rich",
        json!({"command": "m", "spawn": ["{session_id}"], "resume": ["{session_id}"],
            "sessionId": "assigned", "confirm": "hook:Taken"}),
    );
    assert_eq!(rich.declaration().cannot, Vec::<String>::new());
    assert_eq!(rich.declaration().hooks, ["Taken"]);
}

#[test]
fn di33_the_settings_know_exactly_the_harnesses_that_are_built_in() {
    let mut known = the_loop_core::config::shape::HARNESSES.to_vec();
    known.sort_unstable();
    let adapters = Adapters::of(&Settings::default());
    let mut names = adapters.names();
    names.sort_unstable();
    assert_eq!(names, known);
}
