//! Codex (DI-34, DI-35). The facts here were seen on version 0.171.0 in tmux 3.3a.
//!
//! It chooses the ids of its conversations itself: [`rollout`] finds what it writes down.

mod rollout;

use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::config::pattern::Confirms;
use the_loop_core::confirm::{AgentState, WaitingKind};

pub use self::rollout::{learn_id, transcript_path};
use super::adapter::LaunchContext;
use super::declaration::{ComposerRule, Declaration, IdSource, KnownDialog, Program, words};
use super::place::Place;
use super::screen::ScreenView;
use super::trust::{self, TrustError};

/// What its input line begins with; in its shell mode that is `!`.
const PROMPTS: [char; 2] = ['›', '!'];
/// How long its input line must have been on the screen before that alone counts as taking input: it
/// draws one before it asks whether the folder is trusted, and while it takes up a conversation.
const DRAWN_BEFORE_READING: Duration = Duration::from_secs(2);

/// The declaration.
pub fn declaration() -> Declaration {
    // Without the flag it leaves a server behind that outlives its pane.
    let alone = "--no-daemon";
    Declaration {
        version_args: words(&["--version"]),
        seen_on: "0.171.0".to_owned(),
        spawn: words(&[alone]),
        resume: words(&["resume", "{session_id}", alone]),
        // One of its options takes any number of words and would take the prompt for one of them.
        prompt_args: words(&["--", "{prompt}"]),
        session_id: IdSource::Learnt,
        confirms: Confirms::Transcript,
        composer: ComposerRule::Open {
            prompts: PROMPTS.to_vec(),
        },
        dialogs: dialogs(),
        ..Declaration::bare("codex", Program::Named("codex".to_owned()))
    }
}

/// Its dialogs. None is ever answered by a key of ours.
fn dialogs() -> Vec<KnownDialog> {
    use WaitingKind::{Dialog, Permission, Question};
    let dialogs: [(&str, WaitingKind, &[&str]); 9] = [
        ("trust", Dialog, &["Trust this folder?", "esc back"]),
        ("login", Dialog, &["Sign in with ChatGPT", "continue"]),
        ("update", Dialog, &["Update available!", "continue"]),
        (
            "permission",
            Permission,
            &["Would you like to run the following command?", "to cancel"],
        ),
        (
            "permission",
            Permission,
            &["Would you like to make the following edits?", "to cancel"],
        ),
        (
            "question",
            Question,
            &["enter to submit answer", "esc to interrupt"],
        ),
        (
            "agent-command-center",
            Dialog,
            &["Agent command center", "esc back"],
        ),
        // An Enter there takes the conversation back.
        ("browsing", Dialog, &["Browsing transcript", "rewind"]),
        ("dialog", Dialog, &["Press enter to confirm or esc"]),
    ];
    let made = dialogs.iter();
    made.map(|(name, kind, texts)| KnownDialog::of_texts(name, *kind, texts))
        .collect()
}

/// Its configuration directory, as the pane's environment places it.
fn config_dir(place: &Place) -> Option<Utf8PathBuf> {
    let moved = place.dir("CODEX_HOME");
    moved.or_else(|| Some(place.home()?.join(".codex")))
}

/// Answers beforehand that the checkout is trusted, in its own settings file and as far as
/// `routing.harnessTrust` allows. A trusted parent does not cover what is below it, so the scope of that
/// setting makes no difference here; an answer that somebody gave stands.
pub fn pre_answer(context: &LaunchContext<'_>) -> Result<Vec<String>, TrustError> {
    let variable = |name: &str| context.pane_env.get(name).filter(|v| !v.is_empty());
    let moved = variable("CODEX_HOME").map(Utf8PathBuf::from);
    let home = || Some(Utf8PathBuf::from(variable("HOME")?).join(".codex"));
    let Some(dir) = moved.or_else(home).filter(|_| context.trust.enabled) else {
        return Ok(Vec::new());
    };
    let disk = &context.world.disk;
    disk.create_dir_all(&dir).map_err(|source| TrustError::Io {
        path: dir.clone(),
        source,
    })?;
    let mut folders = vec![context.cwd.to_owned()];
    folders.extend(disk.canonicalize(context.cwd).ok());
    folders.dedup();
    let keys: Vec<Vec<String>> = folders
        .iter()
        .map(|folder| ["projects", folder.as_str(), "trust_level"].map(str::to_owned))
        .map(Vec::from)
        .collect();
    trust::set_in_toml(&**disk, &dir.join("config.toml"), &keys, "trusted")
}

/// What its pane's title says: a braille spinner while it works, `[ ! ]` or `[ . ]` before
/// `Action Required` while it waits for a person. Otherwise it is the conversation's name.
pub fn title_state(title: &str) -> Option<AgentState> {
    let mut chars = title.chars();
    let first = chars.next()?;
    if ('\u{2800}'..='\u{28ff}').contains(&first) {
        return Some(AgentState::Working);
    }
    let asks = title
        .strip_prefix("[ ! ] ")
        .or(title.strip_prefix("[ . ] "));
    asks.is_some_and(|rest| rest.starts_with("Action Required"))
        .then_some(AgentState::Waiting(WaitingKind::Permission))
}

/// What its screen says when no known dialog is in the way, and how long that must have been so before
/// it counts. It has an input line whenever it takes a prompt. Without one there is a list to choose from
/// or a text to page through, in which a paste and an Enter would do something else.
pub fn screen_state(screen: &ScreenView) -> Option<(AgentState, Duration)> {
    let Some(input) = screen.open_input_line(&PROMPTS) else {
        let waits = AgentState::Waiting(WaitingKind::Dialog);
        let is_drawn = screen.rows.iter().any(|row| !row.is_empty());
        return is_drawn.then_some((waits, Duration::ZERO));
    };
    // The line that says it works stands below everything that was said.
    let works = screen.rows[..input.start]
        .iter()
        .rev()
        .take_while(|row| !row.starts_with(['›', '■']) && !row.starts_with("  Worked for "))
        .any(|row| row.starts_with(['•', '◦']) && row.ends_with("esc to interrupt)"));
    if works {
        Some((AgentState::Working, Duration::ZERO))
    } else {
        Some((AgentState::Idle, DRAWN_BEFORE_READING))
    }
}

#[cfg(test)]
mod tests;
