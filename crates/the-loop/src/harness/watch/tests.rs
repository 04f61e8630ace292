use camino::Utf8PathBuf;
use serde_json::{Value, json};
use the_loop_core::confirm::WaitingKind;

use super::*;
use crate::harness::hook;
use crate::harness::testing::{SESSION, at, header, marker, pane_env, session, world};

struct Scene {
    _dir: tempfile::TempDir,
    path: Utf8PathBuf,
    world: World,
    watch: Watch,
}

fn scene(adapter: Adapter, launched_at: i64) -> Scene {
    let (dir, path, world) = world();
    let place = Place {
        session_id: Some(session()),
        cwd: path.join("r"),
        hook_file: path.join("local/hooks/local-o-r-1.jsonl"),
        env: pane_env(&[("HOME", &path), ("THE_LOOP_STATE_ROOT", &path)]),
    };
    world.disk.create_dir_all(&path.join("local/demo")).unwrap();
    let watch = Watch::new(adapter, place, at(launched_at));
    Scene {
        _dir: dir,
        path,
        world,
        watch,
    }
}

impl Scene {
    fn hook(&self, ms: i64, name: &str, mut input: Value) {
        if input.get("session_id").is_none() {
            input["session_id"] = json!(SESSION);
        }
        let file = self.path.join("local/hooks/local-o-r-1.jsonl");
        hook::append(
            &self.world,
            &file,
            &HookLine::from_input(at(ms), name, &input),
        );
    }
    fn demo_prompt(&self, ms: i64) {
        let line = json!({"role": "user", "text": header(), "marker": marker(), "usage": null,
            "at": at(ms).millis()});
        let file = self.path.join(format!("local/demo/{SESSION}.jsonl"));
        self.world
            .disk
            .append(&file, format!("{line}\n").as_bytes())
            .unwrap();
    }
    fn look(&mut self, title: Option<&str>, screen: Option<(&str, i64)>) -> (AgentState, i64) {
        let view =
            screen.map(|(rows, ms)| ScreenView::parse(rows, title.unwrap_or(""), false, at(ms)));
        self.watch.look(&self.world, None, title, view.as_ref());
        self.watch
            .state()
            .map_or((AgentState::Unknown, 0), |o| (o.state, o.at.unix_ms()))
    }
}

const DRAWN: &str = "────────\n❯ \n────────\n  ? for shortcuts";
const BUSY: &str = "────────\n❯ \n────────\n  esc to interrupt";

#[test]
fn di29_the_hook_confirms_and_only_in_its_own_conversation() {
    let mut scene = scene(Adapter::claude(), 0);
    assert!(!scene.watch.hooks_heard());
    scene.hook(
        100,
        "UserPromptSubmit",
        json!({"prompt": header(), "session_id": "another"}),
    );
    scene.look(None, None);
    assert_eq!(scene.watch.evidence(&marker(), at(50)), None);
    assert!(!scene.watch.hooks_heard());
    scene.hook(200, "UserPromptSubmit", json!({"prompt": header()}));
    scene.look(None, None);
    assert!(scene.watch.hooks_heard());
    assert_eq!(
        scene.watch.evidence(&marker(), at(50)).map(|s| s.by),
        Some(By::Hook)
    );
    assert_eq!(scene.watch.evidence(&marker(), at(201)), None);
}

#[test]
fn di38_without_hooks_the_transcript_confirms() {
    let mut scene = scene(Adapter::demo(), 0);
    scene.look(None, None);
    assert!(
        scene.watch.transcript_read(),
        "a transcript that is not there yet reads as empty"
    );
    scene.demo_prompt(100);
    assert_eq!(scene.look(None, None), (AgentState::Working, 100));
    assert_eq!(
        scene.watch.evidence(&marker(), at(50)).map(|s| s.by),
        Some(By::Transcript)
    );
    assert_eq!(scene.watch.last_turn_at(), Some(at(100)));
}

#[test]
fn di38_a_hook_tells_where_the_transcript_is() {
    let mut scene = scene(Adapter::demo(), 0);
    let elsewhere = scene.path.join("elsewhere.jsonl");
    let line = json!({"role": "user", "text": "", "marker": marker(), "at": at(9).millis()});
    scene
        .world
        .disk
        .append(&elsewhere, format!("{line}\n").as_bytes())
        .unwrap();
    scene.hook(5, "SessionStart", json!({"transcript_path": elsewhere}));
    scene.look(None, None);
    assert_eq!(
        scene.watch.evidence(&marker(), at(1)).map(|s| s.by),
        Some(By::Transcript)
    );
}

#[test]
fn di21_a_drawn_prompt_alone_is_believed_after_a_while() {
    let mut scene = scene(Adapter::claude(), 0);
    scene.hook(1000, "SessionStart", json!({"source": "startup"}));
    assert_eq!(
        scene.look(None, Some((DRAWN, 1100))).0,
        AgentState::Starting
    );
    assert_eq!(
        scene.look(None, Some((DRAWN, 3000))).0,
        AgentState::Starting
    );
    assert_eq!(
        scene.look(None, Some((DRAWN, 3100))),
        (AgentState::Ready, 1100)
    );
}

#[test]
fn di31_an_interrupt_and_an_answered_dialog_are_seen_without_a_hook() {
    let mut scene = scene(Adapter::claude(), 0);
    scene.hook(1000, "UserPromptSubmit", json!({"prompt": "x"}));
    scene.hook(2000, "PermissionRequest", json!({"tool_name": "Bash"}));
    let waiting = AgentState::Waiting(WaitingKind::Permission);
    assert_eq!(
        scene.look(None, Some((BUSY, 1500))).0,
        waiting,
        "the hook is newer"
    );
    assert_eq!(
        scene.look(None, Some((BUSY, 2500))).0,
        waiting,
        "the screen has not changed since"
    );
    let dialog = "────────\n Do you want to proceed?\n ❯ 1. Yes\n Esc to cancel";
    assert_eq!(scene.look(None, Some((dialog, 2600))).0, waiting);
    assert_eq!(
        scene.look(None, Some((BUSY, 3000))),
        (AgentState::Working, 3000)
    );
    scene.look(None, Some((DRAWN, 4000)));
    assert_eq!(
        scene.look(None, Some((DRAWN, 6000))),
        (AgentState::Idle, 4000)
    );
}

#[test]
fn di31_what_an_earlier_process_did_says_nothing_about_this_one() {
    let mut scene = scene(Adapter::claude(), 5000);
    scene.hook(1000, "UserPromptSubmit", json!({"prompt": header()}));
    scene.hook(2000, "Stop", json!({}));
    assert_eq!(scene.look(None, None).0, AgentState::Unknown);
    assert!(
        scene.watch.evidence(&marker(), at(900)).is_some(),
        "but it is evidence still"
    );
    scene.hook(6000, "SessionStart", json!({"source": "resume"}));
    assert_eq!(scene.look(None, None).0, AgentState::Starting);
}

#[test]
fn di31_a_dead_pane_has_exited() {
    let mut scene = scene(Adapter::claude(), 0);
    scene.hook(1000, "Stop", json!({}));
    let dead = ScreenView::parse(DRAWN, "", true, at(2000));
    scene.watch.look(&scene.world, None, None, Some(&dead));
    assert_eq!(
        scene.watch.state().map(|o| o.state),
        Some(AgentState::Exited)
    );
}

#[test]
fn di31_the_demo_s_title_tells_its_state() {
    let mut scene = scene(Adapter::demo(), 0);
    for (title, state) in [
        ("demo-agent: ready", AgentState::Ready),
        ("demo-agent: working, 2 waiting", AgentState::Working),
        (
            "demo-agent: waiting for an answer",
            AgentState::Waiting(WaitingKind::Permission),
        ),
        ("demo-agent: idle", AgentState::Idle),
    ] {
        scene.world.clock.advance(Duration::from_secs(1));
        assert_eq!(scene.look(Some(title), None).0, state, "{title}");
    }
}

#[test]
fn memory_of_markers_is_bounded() {
    let mut scene = scene(Adapter::claude(), 0);
    for _ in 0..MARKERS_KEPT + 10 {
        scene.hook(1000, "UserPromptSubmit", json!({"prompt": header()}));
    }
    scene.look(None, None);
    assert_eq!(scene.watch.markers.len(), MARKERS_KEPT);
}

const GEMINI_READY: &str = include_str!("../screens/gemini-0.61.0/ready.txt");
const GEMINI_TRUST: &str = include_str!("../screens/gemini-0.61.0/trust.txt");

/// The transcript of a Gemini session, where that program has put it.
fn gemini_says(scene: &Scene, ms: i64, kind: &str, content: &str) {
    let disk = &scene.world.disk;
    let own = scene.path.join(".gemini");
    let chats = own.join("tmp/r/chats");
    let file = chats.join("session-2026-01-01T00-00-11111111.jsonl");
    if disk.meta(&file).unwrap().is_none() {
        disk.create_dir_all(&chats).unwrap();
        let cwd = scene.path.join("r");
        let projects = json!({"projects": {cwd.as_str(): "r"}}).to_string();
        disk.write_atomic(&own.join("projects.json"), projects.as_bytes(), false)
            .unwrap();
        let head = format!("{}\n", json!({"sessionId": SESSION, "kind": "main"}));
        disk.append(&file, head.as_bytes()).unwrap();
    }
    let line = json!({"id": ms.to_string(), "timestamp": at(ms).millis(), "type": kind,
        "content": content});
    disk.append(&file, format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn di29_an_agent_is_idle_only_after_it_has_submitted_what_it_queued() {
    let mut scene = scene(Adapter::gemini(), 900_000);
    let waits = |scene: &Scene, ms: u64| {
        scene.world.clock.wait(Duration::from_millis(ms));
    };
    scene.look(Some("◇  Ready (r)"), None);
    waits(&scene, 2_000);
    let ready = scene.look(Some("◇  Ready (r)"), None).0;
    assert_eq!(ready, AgentState::Ready);
    gemini_says(&scene, 1_002_000, "user", "go");
    assert_eq!(scene.look(Some("✦  Working"), None).0, AgentState::Working);
    gemini_says(&scene, 1_002_000, "gemini", "Done.");
    waits(&scene, 300);
    let between = scene.look(Some("◇  Ready (r)"), None).0;
    assert_eq!(between, AgentState::Working, "what it queued may come yet");
    gemini_says(&scene, 1_002_400, "user", &header());
    waits(&scene, 100);
    assert_eq!(scene.look(Some("✦  Working"), None).0, AgentState::Working);
    assert!(scene.watch.evidence(&marker(), at(1_001_000)).is_some());
    gemini_says(&scene, 1_002_400, "gemini", "Done.");
    scene.look(Some("◇  Ready (r)"), None);
    waits(&scene, 2_000);
    assert_eq!(scene.look(Some("◇  Ready (r)"), None).0, AgentState::Idle);
}

#[test]
fn di27_a_title_that_a_dialog_left_as_it_was_does_not_call_the_agent_idle() {
    let mut scene = scene(Adapter::gemini(), 900_000);
    let title = Some("◇  Ready (r)");
    let dialog = AgentState::Waiting(WaitingKind::Dialog);
    assert_eq!(scene.look(title, Some((GEMINI_TRUST, 1_000_000))).0, dialog);
    for _ in 0..4 {
        scene.world.clock.wait(Duration::from_secs(1));
        assert_eq!(scene.look(title, None).0, dialog);
    }
    assert_eq!(scene.look(title, Some((GEMINI_READY, 1_004_000))).0, dialog);
    scene.world.clock.wait(Duration::from_secs(2));
    scene.look(title, Some((GEMINI_READY, 1_006_000)));
    scene.world.clock.wait(Duration::from_secs(2));
    assert_eq!(scene.look(title, None).0, AgentState::Ready);
}

#[test]
fn di31_a_permission_that_was_answered_is_over_with_the_title() {
    let mut scene = scene(Adapter::gemini(), 900_000);
    let asks = include_str!("../screens/gemini-0.61.0/permission.txt");
    let waiting = AgentState::Waiting(WaitingKind::Permission);
    let asked = scene.look(Some("✋  Action Required (r)"), Some((asks, 1_000_000)));
    assert_eq!(asked.0, waiting);
    scene.world.clock.wait(Duration::from_secs(1));
    scene.look(Some("◇  Ready (r)"), None);
    scene.world.clock.wait(Duration::from_secs(2));
    let answered = scene.look(Some("◇  Ready (r)"), None).0;
    assert_eq!(answered, AgentState::Ready, "no turn was noted here");
}
