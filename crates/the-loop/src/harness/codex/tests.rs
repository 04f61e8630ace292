use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use serde_json::{Value, json};
use the_loop_core::config::HarnessTrust;
use the_loop_core::confirm::Composer;
use the_loop_core::ids::{HarnessSessionId, Slug};
use the_loop_core::time::Timestamp;

use super::*;
use crate::harness::adapter::{Adapter, Learning};
use crate::harness::testing::{at, header, marker, world};
use crate::harness::watch::Watch;
use crate::world::World;

macro_rules! screens {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../screens/codex-0.171.0/", $name, ".txt")))),*]
    };
}

const SCREENS: [(&str, &str); 24] = screens!(
    "agents" "browsing" "diff" "draft" "edit" "help" "idle" "interrupted" "login" "model" "numbered"
    "ours" "pasted" "permission" "picker" "question" "queued" "ready" "reconnecting" "resuming"
    "shell-mode" "slash" "trust" "working"
);

/// What each screen of the real program must be read as: dialog, composer asked for the marker, state.
const READ_AS: [(&str, Option<&str>, Composer, Option<AgentState>); 24] = {
    use AgentState::{Idle, Working};
    use Composer::{Draft, Empty, Ours, Unknown};
    const ASKS: Option<AgentState> = Some(AgentState::Waiting(WaitingKind::Dialog));
    [
        ("agents", Some("agent-command-center"), Unknown, None),
        ("browsing", Some("browsing"), Unknown, None),
        ("diff", None, Unknown, ASKS),
        ("draft", None, Draft, Some(Working)),
        ("edit", Some("permission"), Unknown, None),
        ("help", None, Empty, Some(Idle)),
        ("idle", None, Empty, Some(Idle)),
        ("interrupted", None, Empty, Some(Idle)),
        ("login", Some("login"), Unknown, None),
        ("model", None, Unknown, ASKS),
        // It looks like the choices of a dialog, and is taken for one.
        ("numbered", None, Unknown, ASKS),
        ("ours", None, Ours, Some(Idle)),
        ("pasted", None, Draft, Some(Idle)),
        ("permission", Some("permission"), Unknown, None),
        ("picker", None, Unknown, ASKS),
        ("question", Some("question"), Unknown, None),
        ("queued", None, Empty, Some(Working)),
        ("ready", None, Empty, Some(Idle)),
        ("reconnecting", None, Empty, Some(Working)),
        ("resuming", None, Empty, Some(Idle)),
        ("shell-mode", None, Draft, Some(Idle)),
        ("slash", None, Draft, Some(Idle)),
        ("trust", Some("trust"), Unknown, None),
        ("working", None, Empty, Some(Working)),
    ]
};

#[test]
fn di27_screens_of_the_real_program_are_read_as_a_person_reads_them() {
    let codex = Adapter::codex();
    for ((name, captured), (same, dialog, composer, state)) in SCREENS.into_iter().zip(READ_AS) {
        assert_eq!(name, same);
        let screen = ScreenView::parse(captured, "", false, at(0));
        let found = codex.known_dialog(&screen).map(|d| d.name.as_str());
        assert_eq!(found, dialog, "{name}");
        let seen = codex.composer(&screen, Some(&marker()));
        assert_eq!(seen, composer, "{name}");
        if dialog.is_none() {
            let (shown, after) = screen_state(&screen).unzip();
            assert_eq!(shown, state, "{name}");
            // It draws before it reads: what looks idle has to stand for a while.
            let at_once = after.is_some_and(|after| after.is_zero());
            assert_eq!(at_once, state != Some(AgentState::Idle), "{name}");
        }
    }
}

#[test]
fn di27_what_was_said_is_neither_input_nor_dialog() {
    let (_, idle) = SCREENS[6];
    let quoted = format!(
        "• Trust this folder? esc back\n  Would you like to run the following command? to cancel\n\
         • Working (1s • esc to interrupt)\n\n{idle}"
    );
    let screen = ScreenView::parse(&quoted, "", false, at(0));
    let codex = Adapter::codex();
    assert!(codex.known_dialog(&screen).is_none());
    assert_eq!(codex.composer(&screen, None), Composer::Empty);
    assert_eq!(screen_state(&screen).unwrap().0, AgentState::Idle);
    // With the input line gone, an earlier prompt of ours is not taken for one that waits in it.
    let prompt = format!(
        "\u{1b}[1;2m› \u{1b}[0m{}\n\n• Done.\n\n  > a list",
        header()
    );
    let screen = ScreenView::parse(&prompt, "", false, at(0));
    assert_eq!(codex.composer(&screen, Some(&marker())), Composer::Unknown);
    let nothing = ScreenView::parse("\n\n", "", false, at(0));
    assert_eq!(screen_state(&nothing), None, "it has drawn nothing yet");
}

#[test]
fn di31_the_title_tells_work_and_a_question() {
    assert_eq!(title_state("⠦ say hello | r"), Some(AgentState::Working));
    let asks = Some(AgentState::Waiting(WaitingKind::Permission));
    assert_eq!(title_state("[ ! ] Action Required | say hello | r"), asks);
    assert_eq!(title_state("[ . ] Action Required | r"), asks);
    for nothing in ["r", "", "[ ! ] of mine", "Action Required"] {
        assert_eq!(title_state(nothing), None, "{nothing}");
    }
}

struct Setting {
    _dir: tempfile::TempDir,
    path: Utf8PathBuf,
    world: World,
    env: BTreeMap<String, String>,
    trust: HarnessTrust,
}

fn setting() -> Setting {
    let (dir, path, world) = world();
    world.disk.create_dir_all(&path.join("w")).unwrap();
    std::os::unix::fs::symlink(path.join("w"), path.join("link")).unwrap();
    Setting {
        _dir: dir,
        world,
        env: BTreeMap::from([("HOME".to_owned(), path.join("home").to_string())]),
        trust: HarnessTrust::default(),
        path,
    }
}

impl Setting {
    fn context<R>(&self, run: impl FnOnce(&LaunchContext<'_>) -> R) -> R {
        let slug = Slug::from_file_stem("local-octo-repo-15").unwrap();
        let id = HarnessSessionId::parse(OURS).unwrap();
        run(&LaunchContext {
            world: &self.world,
            slug: &slug,
            session_id: Some(&id),
            cwd: &self.path.join("link"),
            workspace_root: Some(&self.path),
            settings_file: Utf8Path::new("/none"),
            mail_dir: Utf8Path::new("/none"),
            harness_args: &["-m".to_owned(), "x".to_owned()],
            pane_env: &self.env,
            trust: &self.trust,
        })
    }
}

#[test]
fn di34_it_is_told_the_prompt_behind_its_options() {
    let (codex, setting) = (Adapter::codex(), setting());
    let argv = setting.context(|context| codex.spawn_argv(context, Some("-h")));
    assert_eq!(argv, ["--no-daemon", "-m", "x", "--", "-h"]);
    let argv = setting.context(|context| codex.resume_argv(context, None));
    assert_eq!(argv, ["resume", OURS, "--no-daemon", "-m", "x"]);
}

#[test]
fn di35_the_checkout_is_trusted_beforehand_where_its_settings_are() {
    let mut setting = setting();
    let (link, real) = (setting.path.join("link"), setting.path.join("w"));
    let applied = setting.context(pre_answer).unwrap();
    let keys = [&link, &real].map(|dir| format!("projects.{dir}.trust_level"));
    assert_eq!(applied, keys);
    assert!(setting.context(pre_answer).unwrap().is_empty());
    let moved = setting.path.join("moved");
    setting
        .env
        .insert("CODEX_HOME".to_owned(), moved.to_string());
    assert_eq!(setting.context(pre_answer).unwrap().len(), 2);
    let read = setting.world.disk.read(&moved.join("config.toml"), 9999);
    let text = String::from_utf8(read.unwrap()).unwrap();
    assert!(text.contains(&format!(
        "[projects.\"{real}\"]\ntrust_level = \"trusted\"\n"
    )));
    setting.trust.enabled = false;
    setting.env.insert(
        "CODEX_HOME".to_owned(),
        setting.path.join("other").to_string(),
    );
    assert!(setting.context(pre_answer).unwrap().is_empty());
    let untouched = setting.world.disk.meta(&setting.path.join("other"));
    assert!(untouched.unwrap().is_none());
}

/// Conversations that began at these milliseconds of 1 January 1970.
const OURS: &str = "00000000-07d0-7000-8000-000000000001";
const EARLIER: &str = "00000000-03e8-7000-8000-000000000002";
const LATER: &str = "00000000-0bb8-7000-8000-000000000003";

impl Setting {
    fn place(&self, id: Option<&str>) -> Place {
        Place {
            session_id: id.and_then(HarnessSessionId::parse),
            cwd: self.path.join("link"),
            hook_file: self.path.join("none"),
            env: Arc::new(self.env.clone()),
        }
    }

    fn rollout(&self, id: &str, cwd: &Utf8Path, source: Value, prompt: &str) -> Utf8PathBuf {
        let dir = self.path.join("home/.codex/sessions/1970/01/01");
        let path = dir.join(format!("rollout-1970-01-01T00-00-01-{id}.jsonl"));
        self.world.disk.create_dir_all(&dir).unwrap();
        let lines = [
            json!({"timestamp": "1970-01-01T00:00:04.000Z", "type": "session_meta",
                "payload": {"id": id, "cwd": cwd, "source": source}}),
            json!({"timestamp": "1970-01-01T00:00:04.000Z", "type": "event_msg",
                "payload": {"type": "item_completed", "item": {"type": "UserMessage",
                    "content": [{"type": "text", "text": prompt}]}}}),
        ];
        for line in lines {
            let line = format!("{line}\n");
            self.world.disk.append(&path, line.as_bytes()).unwrap();
        }
        path
    }

    fn learns(&self, since: i64, taken: &[HarnessSessionId]) -> Option<String> {
        let learnt = learn_id(&Learning {
            world: &self.world,
            place: &self.place(None),
            since: at(since),
            screen: None,
            told: None,
            taken,
            rivals: &[],
        });
        learnt.map(|id| id.as_str().to_owned())
    }
}

#[test]
fn di33_the_id_is_learnt_from_the_file_of_this_pane() {
    let setting = setting();
    let real = setting.path.join("w");
    assert_eq!(setting.learns(2000, &[]), None);
    // Another directory, a helper of an agent, a person's own: none is the pane's conversation.
    setting.rollout(LATER, Utf8Path::new("/elsewhere"), json!("cli"), &header());
    setting.rollout(
        "00000000-0bb8-7000-8000-000000000004",
        &real,
        json!({"subagent": {}}),
        &header(),
    );
    setting.rollout(
        "00000000-0bb8-7000-8000-000000000005",
        &real,
        json!("cli"),
        "mine",
    );
    setting.rollout(EARLIER, &real, json!("cli"), &header());
    assert_eq!(setting.learns(2000, &[]), None);
    setting.rollout(OURS, &real, json!("cli"), &header());
    assert_eq!(setting.learns(2000, &[]).as_deref(), Some(OURS));
    assert_eq!(
        setting.learns(2001, &[]),
        None,
        "it began before the launch"
    );
    let taken = HarnessSessionId::parse(OURS).unwrap();
    assert_eq!(setting.learns(2000, &[taken]), None, "another session's");
}

#[test]
fn di34_the_file_of_a_known_conversation_is_found_by_its_id() {
    let setting = setting();
    let place = setting.place(Some(OURS));
    assert_eq!(transcript_path(&setting.world, &place), None);
    let file = setting.rollout(OURS, &setting.path.join("w"), json!("cli"), "hello");
    setting.rollout(LATER, &setting.path.join("w"), json!("cli"), "hello");
    assert_eq!(transcript_path(&setting.world, &place), Some(file));
    let unlike = setting.place(Some("no-uuid"));
    assert_eq!(transcript_path(&setting.world, &unlike), None);
    assert_eq!(transcript_path(&setting.world, &setting.place(None)), None);
}

#[test]
fn di33_a_conversation_over_midnight_is_found_in_the_folder_of_either_day() {
    let setting = setting();
    let times: Vec<Timestamp> = vec![at(86_400_000)];
    let dir = setting.path.join("home/.codex/sessions");
    for day in ["1970/01/01", "1970/01/03"] {
        setting.world.disk.create_dir_all(&dir.join(day)).unwrap();
        let file = dir.join(day).join("rollout-x.jsonl");
        setting.world.disk.append(&file, b"\n").unwrap();
    }
    let found = rollout::files_of(&*setting.world.disk, &setting.place(None), times);
    assert_eq!(found.len(), 2);
}

#[test]
fn di42_a_limit_that_the_rollout_tells_is_not_ended_by_looking_idle() {
    let setting = setting();
    let file = setting.rollout(OURS, &setting.path.join("w"), json!("cli"), &header());
    let event = |second: u8, payload: Value| {
        let line = json!({"timestamp": format!("1970-01-01T00:00:{second:02}.000Z"),
            "type": "event_msg", "payload": payload});
        let line = format!("{line}\n");
        setting.world.disk.append(&file, line.as_bytes()).unwrap();
    };
    let mut watch = Watch::new(Adapter::codex(), setting.place(Some(OURS)), at(2000));
    let idle = |ms| ScreenView::parse(SCREENS[6].1, "say hello | w", false, at(ms));
    let mut state = |ms| {
        watch.look(&setting.world, None, None, Some(&idle(ms)));
        let seen = watch.state().unwrap();
        assert!(watch.evidence(&marker(), at(3000)).is_some());
        seen.state
    };
    assert_eq!(state(3000), AgentState::Working);
    event(
        5,
        json!({"type": "task_complete", "error": {"codex_error_info": "usage_limit_exceeded"}}),
    );
    let limited = AgentState::Waiting(WaitingKind::UsageLimit);
    assert_eq!(state(4000), limited);
    assert_eq!(
        state(9000),
        limited,
        "its input line has stood there long enough"
    );
    event(
        10,
        json!({"type": "item_completed", "item": {"type": "UserMessage", "content": []}}),
    );
    assert_eq!(state(9500), AgentState::Working);
    event(11, json!({"type": "task_complete"}));
    assert_eq!(state(9600), AgentState::Idle);
}
