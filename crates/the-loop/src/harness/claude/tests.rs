use std::collections::BTreeMap;

use camino::Utf8Path;
use serde_json::json;
use the_loop_core::config::HarnessTrust;
use the_loop_core::confirm::Composer;
use the_loop_core::ids::Slug;

use super::*;
use crate::harness::adapter::Adapter;
use crate::harness::place::Place;
use crate::harness::testing::{SESSION, at, marker, pane_env, session, world};

const SCREENS: [(&str, &str); 13] = [
    (
        "apikey",
        include_str!("../screens/claude-2.1.332/apikey.txt"),
    ),
    (
        "bypass",
        include_str!("../screens/claude-2.1.332/bypass.txt"),
    ),
    ("draft", include_str!("../screens/claude-2.1.332/draft.txt")),
    (
        "escaped",
        include_str!("../screens/claude-2.1.332/escaped.txt"),
    ),
    ("idle", include_str!("../screens/claude-2.1.332/idle.txt")),
    ("ours", include_str!("../screens/claude-2.1.332/ours.txt")),
    (
        "permission",
        include_str!("../screens/claude-2.1.332/permission.txt"),
    ),
    (
        "question",
        include_str!("../screens/claude-2.1.332/question.txt"),
    ),
    (
        "queued",
        include_str!("../screens/claude-2.1.332/queued.txt"),
    ),
    ("ready", include_str!("../screens/claude-2.1.332/ready.txt")),
    (
        "shell-mode",
        include_str!("../screens/claude-2.1.332/shell-mode.txt"),
    ),
    ("trust", include_str!("../screens/claude-2.1.332/trust.txt")),
    (
        "working",
        include_str!("../screens/claude-2.1.332/working.txt"),
    ),
];

/// What each screen of the real program must be read as: dialog, composer asked for the marker, state.
const READ_AS: [(&str, Option<&str>, Composer, Option<AgentState>); 13] = [
    ("apikey", Some("api-key"), Composer::Unknown, None),
    (
        "bypass",
        Some("bypass-permissions"),
        Composer::Unknown,
        None,
    ),
    ("draft", None, Composer::Draft, Some(AgentState::Idle)),
    ("escaped", None, Composer::Empty, Some(AgentState::Idle)),
    ("idle", None, Composer::Empty, Some(AgentState::Idle)),
    ("ours", None, Composer::Ours, Some(AgentState::Idle)),
    ("permission", Some("permission"), Composer::Unknown, None),
    ("question", Some("question"), Composer::Unknown, None),
    ("queued", None, Composer::Empty, Some(AgentState::Working)),
    ("ready", None, Composer::Empty, Some(AgentState::Idle)),
    ("shell-mode", None, Composer::Draft, Some(AgentState::Idle)),
    ("trust", Some("trust"), Composer::Unknown, None),
    ("working", None, Composer::Empty, Some(AgentState::Working)),
];

#[test]
fn di27_screens_of_the_real_program_are_read_as_a_person_reads_them() {
    for ((name, captured), (same, dialog, composer, state)) in SCREENS.into_iter().zip(READ_AS) {
        assert_eq!(name, same);
        let screen = ScreenView::parse(captured, "", false, at(0));
        let adapter = Adapter::claude();
        let found = adapter.known_dialog(&screen).map(|d| d.name.as_str());
        assert_eq!(found, dialog, "{name}");
        assert_eq!(
            Adapter::claude().composer(&screen, Some(&marker())),
            composer,
            "{name}"
        );
        assert_eq!(screen_state(&screen).map(|(s, _)| s), state, "{name}");
    }
}

#[test]
fn di27_a_quoted_dialog_in_the_conversation_is_no_dialog() {
    let (_, idle) = SCREENS[4];
    let quoted = format!("● Do you want to proceed?\n ❯ 1. Yes\n Esc to cancel\n{idle}");
    let screen = ScreenView::parse(&quoted, "", false, at(0));
    assert_eq!(Adapter::claude().known_dialog(&screen), None);
    assert_eq!(Adapter::claude().composer(&screen, None), Composer::Empty);
}

#[test]
fn di27_without_a_marker_to_ask_for_our_own_text_is_a_draft() {
    let screen = ScreenView::parse(SCREENS[5].1, "", false, at(0));
    assert_eq!(Adapter::claude().composer(&screen, None), Composer::Draft);
}

struct Setting {
    _dir: tempfile::TempDir,
    path: Utf8PathBuf,
    world: World,
    slug: Slug,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    trust: HarnessTrust,
}

fn setting() -> Setting {
    let (dir, path, world) = world();
    world.disk.create_dir_all(&path.join("w/checkout")).unwrap();
    Setting {
        _dir: dir,
        world,
        slug: Slug::from_file_stem("local-octo-repo-15").unwrap(),
        args: Vec::new(),
        env: BTreeMap::from([("HOME".to_owned(), path.join("home").to_string())]),
        trust: HarnessTrust::default(),
        path,
    }
}

impl Setting {
    fn prepare(&self) -> (Value, Result<Vec<String>, TrustError>) {
        let (cwd, root) = (self.path.join("w/checkout"), self.path.join("w"));
        let settings_file = self.path.join("local/hooks/x.settings.json");
        let mail_dir = self.path.join("local/mail/x");
        let session = session();
        let context = LaunchContext {
            world: &self.world,
            slug: &self.slug,
            session_id: Some(&session),
            cwd: &cwd,
            workspace_root: Some(&root),
            settings_file: &settings_file,
            mail_dir: &mail_dir,
            harness_args: &self.args,
            pane_env: &self.env,
            trust: &self.trust,
        };
        let prepared = Adapter::claude().prepare(&context).unwrap();
        assert_eq!(prepared.hooks.len(), 7);
        let bytes = self.world.disk.read(&settings_file, 1 << 20).unwrap();
        assert_eq!(
            self.world.disk.meta(&settings_file).unwrap().unwrap().mode,
            0o600
        );
        let argv = Adapter::claude().resume_argv(&context, Some("the-loop delivery x"));
        assert_eq!(
            argv[..4],
            ["--resume", SESSION, "--settings", settings_file.as_str()]
        );
        assert_eq!(argv[argv.len() - 2..], ["--", "the-loop delivery x"]);
        assert_eq!(
            Adapter::claude().spawn_argv(&context, None)[..2],
            ["--session-id", SESSION]
        );
        (serde_json::from_slice(&bytes).unwrap(), prepared.trust)
    }
}

#[test]
fn di35_the_settings_file_reports_to_us_and_allows_the_mail_alone() {
    let setting = setting();
    let (settings, _) = setting.prepare();
    let command = &settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"];
    assert_eq!(
        command,
        "'/opt/the loop/the-loop' hook UserPromptSubmit --slug 'local-octo-repo-15'"
    );
    let mail = format!("Read(/{}/local/mail/x/**)", setting.path);
    assert_eq!(settings["permissions"]["allow"], json!([mail]));
    assert!(settings.get("skipDangerousModePermissionPrompt").is_none());
}

#[test]
fn di35_checkout_and_workspace_root_are_trusted_beforehand() {
    let setting = setting();
    let (_, applied) = setting.prepare();
    assert_eq!(applied.unwrap().len(), 5);
    let file = setting.path.join("home/.claude.json");
    let read = setting.world.disk.read(&file, 1 << 20).unwrap();
    let document: Value = serde_json::from_slice(&read).unwrap();
    for folder in ["w", "w/checkout"] {
        let project = &document["projects"][setting.path.join(folder).as_str()];
        assert_eq!(project["hasTrustDialogAccepted"], true);
        assert_eq!(project["hasCompletedProjectOnboarding"], true);
    }
    assert!(
        setting.prepare().1.unwrap().is_empty(),
        "the second time there is nothing to do"
    );
}

#[test]
fn di35_the_home_as_workspace_root_is_not_trusted() {
    let mut setting = setting();
    setting
        .env
        .insert("HOME".to_owned(), setting.path.join("w").to_string());
    assert_eq!(setting.prepare().1.unwrap().len(), 3);
}

#[test]
fn di35_the_moved_configuration_directory_of_the_pane_is_honoured() {
    let mut setting = setting();
    let moved = setting.path.join("moved");
    setting
        .env
        .insert("CLAUDE_CONFIG_DIR".to_owned(), moved.to_string());
    setting.prepare().1.unwrap();
    assert!(
        setting
            .world
            .disk
            .meta(&moved.join(".claude.json"))
            .unwrap()
            .is_some()
    );
    assert!(
        setting
            .world
            .disk
            .meta(&setting.path.join("home"))
            .unwrap()
            .is_none()
    );
}

#[test]
fn di35_bypass_is_accepted_only_as_the_setting_says() {
    let accepted = |setting: &Setting| {
        setting.prepare().0.get("skipDangerousModePermissionPrompt") == Some(&json!(true))
    };
    let mut setting = setting();
    assert!(!accepted(&setting));
    for args in [
        &["--dangerously-skip-permissions"][..],
        &["--permission-mode", "bypassPermissions"],
        &["--permission-mode=bypassPermissions"],
    ] {
        setting.args = args.iter().map(|a| (*a).to_owned()).collect();
        assert!(accepted(&setting), "{args:?}");
    }
    setting.trust.accept_bypass_permissions = AcceptBypass::Never;
    assert!(!accepted(&setting));
    setting.trust.enabled = false;
    setting.trust.accept_bypass_permissions = AcceptBypass::Always;
    assert!(!accepted(&setting));
    assert!(
        setting.prepare().1.unwrap().is_empty(),
        "switched off: no file of the user is touched"
    );
}

fn hook(name: &str, kind: Option<&str>, reason: Option<&str>) -> Option<AgentState> {
    hook_state(&HookLine {
        at: at(0),
        hook: name.to_owned(),
        session_id: SESSION.to_owned(),
        transcript_path: None,
        markers: Vec::new(),
        kind: kind.map(str::to_owned),
        reason: reason.map(str::to_owned),
    })
}

#[test]
fn di31_hooks_tell_states() {
    use AgentState::{Exited, Idle, Starting, Waiting, Working};
    assert_eq!(hook("SessionStart", Some("startup"), None), Some(Starting));
    assert_eq!(hook("SessionStart", Some("compact"), None), None);
    assert_eq!(hook("UserPromptSubmit", None, None), Some(Working));
    let asks = hook("PermissionRequest", Some("permission"), None);
    assert_eq!(asks, Some(Waiting(WaitingKind::Permission)));
    let asks = hook("PermissionRequest", Some("question"), None);
    assert_eq!(asks, Some(Waiting(WaitingKind::Question)));
    assert_eq!(hook("Notification", Some("permission_prompt"), None), None);
    assert_eq!(hook("Notification", Some("idle_prompt"), None), None);
    assert_eq!(hook("Notification", Some("auth_success"), None), Some(Idle));
    assert_eq!(hook("Stop", None, None), Some(Idle));
    assert_eq!(hook("SessionEnd", None, Some("other")), Some(Exited));
    assert_eq!(hook("SessionEnd", None, Some("clear")), None);
    assert_eq!(hook("Unheard", None, None), None);
}

#[test]
fn di42_limit_and_login_come_from_the_structured_signal() {
    use AgentState::{Idle, Waiting};
    let failed = |kind| hook("StopFailure", Some(kind), None);
    assert_eq!(failed("rate_limit"), Some(Waiting(WaitingKind::UsageLimit)));
    assert_eq!(
        failed("billing_error"),
        Some(Waiting(WaitingKind::UsageLimit))
    );
    assert_eq!(
        failed("authentication_failed"),
        Some(Waiting(WaitingKind::Login))
    );
    assert_eq!(failed("server_error"), Some(Idle));
}

fn place(path: &Utf8Path) -> Place {
    Place {
        session_id: Some(session()),
        cwd: "/srv/octo/r.x_1".into(),
        hook_file: path.join("hooks.jsonl"),
        env: pane_env(&[("HOME", path)]),
    }
}

#[test]
fn di34_its_files_are_where_it_puts_them() {
    let (_dir, path, _) = world();
    let mut place = place(&path);
    let file = format!("projects/-srv-octo-r-x-1/{SESSION}.jsonl");
    assert_eq!(
        transcript_path(&place),
        Some(path.join(".claude").join(&file))
    );
    place.env = pane_env(&[("HOME", &path), ("CLAUDE_CONFIG_DIR", Utf8Path::new("/c"))]);
    assert_eq!(
        transcript_path(&place),
        Some(Utf8Path::new("/c").join(&file))
    );
}

#[test]
fn di31_its_state_file_tells_state_and_time_of_its_own_conversation_only() {
    let (_dir, path, world) = world();
    let place = place(&path);
    let dir = path.join(".claude/sessions");
    world.disk.create_dir_all(&dir).unwrap();
    let tell = |document: Value| {
        let file = dir.join("77.json");
        world
            .disk
            .write_atomic(&file, document.to_string().as_bytes(), false)
            .unwrap();
        sessions_file(&world, &place, 77).map(|o| (o.at, o.state))
    };
    let document = |status: &str, waiting: Option<&str>| {
        let mut d =
            json!({"pid": 77, "sessionId": SESSION, "status": status, "statusUpdatedAt": 5});
        if let Some(waiting) = waiting {
            d["waitingFor"] = json!(waiting);
        }
        d
    };
    use AgentState::{Idle, Waiting, Working};
    for (status, waiting, state) in [
        ("idle", None, Some(Idle)),
        ("busy", None, Some(Working)),
        (
            "waiting",
            Some("permission prompt"),
            Some(Waiting(WaitingKind::Permission)),
        ),
        (
            "waiting",
            Some("sandbox request"),
            Some(Waiting(WaitingKind::Permission)),
        ),
        (
            "waiting",
            Some("input needed"),
            Some(Waiting(WaitingKind::Question)),
        ),
        (
            "waiting",
            Some("dialog open"),
            Some(Waiting(WaitingKind::Dialog)),
        ),
        ("waiting", None, Some(Waiting(WaitingKind::Dialog))),
        ("dreaming", None, None),
    ] {
        assert_eq!(
            tell(document(status, waiting)),
            state.map(|s| (at(5), s)),
            "{status}"
        );
    }
    let mut other = document("idle", None);
    other["sessionId"] = json!("another");
    assert_eq!(tell(other), None);
    assert_eq!(sessions_file(&world, &place, 78), None);
}

#[test]
fn di31_the_title_tells_only_that_it_works() {
    assert_eq!(title_state("◐ Claude Code"), Some(AgentState::Working));
    assert_eq!(title_state("✳ Claude Code"), None);
    assert_eq!(title_state("Gi=31,s=1"), None);
}
