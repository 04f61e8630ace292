//! Claude Code (DI-34, DI-35). The facts here were seen on version 2.1.332 in tmux 3.3a.

use std::time::Duration;

use camino::Utf8PathBuf;
use serde_json::{Value, json};
use the_loop_core::config::AcceptBypass;
use the_loop_core::config::pattern::Confirms;
use the_loop_core::confirm::{AgentState, Observation, ObservationSource, WaitingKind};
use the_loop_core::ids::HarnessSessionId;
use the_loop_core::time::Timestamp;

use super::adapter::{HarnessError, LaunchContext};
use super::declaration::{ComposerRule, Declaration, IdSource, KnownDialog, Program, words};
use super::hook::HookLine;
use super::place::Place;
use super::screen::ScreenView;
use super::trust::{self, TruePath, TrustError};
use crate::world::World;

/// Hooks that report to us.
const HOOKS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PermissionRequest",
    "Notification",
    "Stop",
    "StopFailure",
    "SessionEnd",
];
/// What the rows above and below its input line begin with.
const RULE: &str = "───";
/// What its input line begins with; in its shell mode that is `!`.
const PROMPTS: &[char] = &['❯', '!'];

/// The declaration.
pub fn declaration() -> Declaration {
    Declaration {
        version_args: words(&["--version"]),
        seen_on: "2.1.332".to_owned(),
        spawn: words(&[
            "--session-id",
            "{session_id}",
            "--settings",
            "{settings_file}",
        ]),
        resume: words(&["--resume", "{session_id}", "--settings", "{settings_file}"]),
        // Several of its options take any number of words and would take the prompt for one of them.
        prompt_args: words(&["--", "{prompt}"]),
        session_id: IdSource::Assigned,
        hooks: words(HOOKS),
        confirms: Confirms::Hook("UserPromptSubmit".to_owned()),
        composer: ComposerRule::Ruled {
            rule: RULE.to_owned(),
            prompts: PROMPTS.to_vec(),
        },
        dialogs: dialogs(),
        ..Declaration::bare("claude", Program::Named("claude".to_owned()))
    }
}

/// Its dialogs. The highlighted answer of the first four ends the program or stores a refusal, so none
/// is ever answered by a key of ours.
fn dialogs() -> Vec<KnownDialog> {
    use WaitingKind::{Dialog, Permission, Question};
    let dialogs: [(&str, WaitingKind, &[&str]); 9] = [
        (
            "trust",
            Dialog,
            &["Accessing workspace:", "Yes, I trust this folder"],
        ),
        (
            "add-directory",
            Dialog,
            &["Adding a new directory:", "Yes, add it"],
        ),
        ("api-key", Dialog, &["Do you want to use this API key?"]),
        (
            "bypass-permissions",
            Dialog,
            &["Bypass Permissions", "Yes, I accept"],
        ),
        (
            "onboarding",
            Dialog,
            &["Choose the text style that looks best"],
        ),
        ("login", Dialog, &["Select login method"]),
        (
            "permission",
            Permission,
            &["Do you want to", "1. Yes", "Esc to cancel"],
        ),
        ("question", Question, &["Enter to select", "Esc to cancel"]),
        ("dialog", Dialog, &["Enter to confirm", "Esc to cancel"]),
    ];
    let made = dialogs.iter();
    made.map(|(name, kind, texts)| KnownDialog::of_texts(name, *kind, texts))
        .collect()
}

/// How long its drawn prompt must have been on the screen before that alone counts as taking input: it
/// draws before it reads, by up to 0.3 s on an idle machine.
const DRAWN_BEFORE_READING: Duration = Duration::from_secs(2);
/// Bytes of its state file.
const STATE_FILE_BYTES_MAX: u64 = 64 << 10;

/// Its configuration directory, as the pane's environment places it.
fn config_dir(place: &Place) -> Option<Utf8PathBuf> {
    let moved = place.dir("CLAUDE_CONFIG_DIR");
    moved.or_else(|| Some(place.home()?.join(".claude")))
}

/// `<config>/projects/<cwd, other characters than letters and digits as ->/<id>.jsonl`.
pub fn transcript_path(place: &Place) -> Option<Utf8PathBuf> {
    let folder: String = place
        .cwd
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let file = format!("{}.jsonl", place.session_id.as_ref()?.as_str());
    Some(config_dir(place)?.join("projects").join(folder).join(file))
}

/// Writes the settings of this session: hooks that report to us, and leave to read this session's mail.
pub fn write_settings(context: &LaunchContext<'_>, hooks: &[String]) -> Result<(), HarnessError> {
    let path = context.settings_file;
    let fault = |source| HarnessError::Settings {
        path: path.to_owned(),
        source,
    };
    let disk = &context.world.disk;
    let mut bytes =
        serde_json::to_vec_pretty(&settings(context, hooks)).map_err(|e| fault(e.into()))?;
    bytes.push(b'\n');
    if let Some(dir) = path.parent() {
        disk.create_dir_all(dir).map_err(fault)?;
    }
    disk.write_atomic(path, &bytes, false).map_err(fault)
}

fn settings(context: &LaunchContext<'_>, hooks: &[String]) -> Value {
    let hooks: serde_json::Map<String, Value> = hooks
        .iter()
        .map(|name| {
            let command = format!(
                "{} hook {name} --slug {}",
                shell_word(context.world.program.as_str()),
                shell_word(context.slug.as_str())
            );
            let entry =
                json!([{"hooks": [{"type": "command", "command": command, "timeout": 10}]}]);
            (name.clone(), entry)
        })
        .collect();
    // Two slashes make the pattern an absolute path. The path is given as written and as it resolves.
    let mail = context.mail_dir.to_owned();
    let mut folders = vec![mail.clone()];
    folders.extend(
        context
            .world
            .disk
            .canonicalize(&mail)
            .ok()
            .filter(|real| *real != mail),
    );
    let allow: Vec<String> = folders
        .iter()
        .map(|dir| format!("Read(/{dir}/**)"))
        .collect();
    let mut settings = json!({"hooks": hooks, "permissions": {"allow": allow}});
    if accepts_bypass(context) {
        settings["skipDangerousModePermissionPrompt"] = json!(true);
    }
    settings
}

/// One word of a POSIX shell line, whatever is in it.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn accepts_bypass(context: &LaunchContext<'_>) -> bool {
    if !context.trust.enabled {
        return false;
    }
    match context.trust.accept_bypass_permissions {
        AcceptBypass::Always => true,
        AcceptBypass::Never => false,
        AcceptBypass::Auto => {
            let args = context.harness_args;
            let asked = |pair: &[String]| pair == ["--permission-mode", "bypassPermissions"];
            args.windows(2).any(asked)
                || args.iter().any(|arg| {
                    arg == "--dangerously-skip-permissions"
                        || arg == "--permission-mode=bypassPermissions"
                })
        }
    }
}

/// Answers its first-run questions about this checkout in its own settings file, as far as
/// `routing.harnessTrust` allows.
pub fn pre_answer(context: &LaunchContext<'_>) -> Result<Vec<String>, TrustError> {
    let variable = |name: &str| context.pane_env.get(name).filter(|v| !v.is_empty());
    let moved = variable("CLAUDE_CONFIG_DIR");
    let Some(dir) = moved.or_else(|| variable("HOME")).map(Utf8PathBuf::from) else {
        return Ok(Vec::new());
    };
    if !context.trust.enabled {
        return Ok(Vec::new());
    }
    let file = dir.join(".claude.json");
    let disk = &context.world.disk;
    disk.create_dir_all(&dir).map_err(|source| TrustError::Io {
        path: dir.clone(),
        source,
    })?;
    let mut keys: Vec<TruePath> = vec![vec!["hasCompletedOnboarding".to_owned()]];
    for folder in trust::folders(context) {
        for answer in ["hasTrustDialogAccepted", "hasCompletedProjectOnboarding"] {
            let key = ["projects", folder.as_str(), answer];
            keys.push(key.map(str::to_owned).to_vec());
        }
    }
    trust::set_true(&**disk, &file, &keys)
}

/// What a hook says about the state; `None` when it says nothing.
pub fn hook_state(line: &HookLine) -> Option<AgentState> {
    let kind = line.kind.as_deref();
    match line.hook.as_str() {
        // A conversation that was compacted or cleared goes on in a program that reads already.
        "SessionStart" => match kind {
            Some("compact" | "clear") => None,
            Some(_) | None => Some(AgentState::Starting),
        },
        "UserPromptSubmit" => Some(AgentState::Working),
        "PermissionRequest" => Some(AgentState::Waiting(match kind {
            Some("question") => WaitingKind::Question,
            Some(_) | None => WaitingKind::Permission,
        })),
        // Most notifications come seconds late: they could speak of a dialog that is answered, or, a
        // minute after a turn that failed, of an idle that is none.
        // These two end a missing login and a usage limit.
        "Notification" => match kind {
            Some("auth_success" | "quota_auto_resume_fired") => Some(AgentState::Idle),
            Some(_) | None => None,
        },
        "Stop" => Some(AgentState::Idle),
        "StopFailure" => Some(match kind {
            Some("rate_limit" | "billing_error" | "account_on_hold") => {
                AgentState::Waiting(WaitingKind::UsageLimit)
            }
            Some(
                "authentication_failed"
                | "oauth_org_not_allowed"
                | "cloud_credential_error"
                | "verification_required",
            ) => AgentState::Waiting(WaitingKind::Login),
            Some(_) | None => AgentState::Idle,
        }),
        "SessionEnd" => match line.reason.as_deref() {
            Some("clear" | "resume") => None,
            Some(_) | None => Some(AgentState::Exited),
        },
        _ => None,
    }
}

/// Its own state file, `<config>/sessions/<pid>.json`. `None` when it is not there, is of another
/// conversation, or says something unknown.
pub fn sessions_file(world: &World, place: &Place, pid: i32) -> Option<Observation> {
    let path = config_dir(place)?
        .join("sessions")
        .join(format!("{pid}.json"));
    let bytes = world.disk.read(&path, STATE_FILE_BYTES_MAX).ok()?;
    let file: Value = serde_json::from_slice(&bytes).ok()?;
    let text = |name: &str| file.get(name).and_then(Value::as_str);
    if text("sessionId") != place.session_id.as_ref().map(HarnessSessionId::as_str) {
        return None;
    }
    let state = match text("status")? {
        "idle" => AgentState::Idle,
        "busy" => AgentState::Working,
        "waiting" => AgentState::Waiting(match text("waitingFor") {
            Some("permission prompt" | "sandbox request" | "worker request" | "goal proposal") => {
                WaitingKind::Permission
            }
            Some("input needed") => WaitingKind::Question,
            Some(_) | None => WaitingKind::Dialog,
        }),
        _ => return None,
    };
    Some(Observation {
        source: ObservationSource::SessionsFile,
        at: Timestamp::from_unix_ms(file.get("statusUpdatedAt")?.as_i64()?),
        state,
    })
}

/// What its pane's title says: a turning circle while it works. Idle and waiting look the same.
pub fn title_state(title: &str) -> Option<AgentState> {
    title
        .starts_with(['◐', '◓', '◑', '◒'])
        .then_some(AgentState::Working)
}

/// What its screen says when no known dialog is in the way, and how long that must have been so before
/// it counts.
pub fn screen_state(screen: &ScreenView) -> Option<(AgentState, Duration)> {
    let input = screen.input_line(RULE, PROMPTS)?;
    let mut below = screen.rows[input.end..].iter();
    if below.any(|row| row.contains("esc to interrupt")) {
        Some((AgentState::Working, Duration::ZERO))
    } else {
        Some((AgentState::Idle, DRAWN_BEFORE_READING))
    }
}

#[cfg(test)]
mod tests;
