//! OpenCode. The facts here were seen on version 1.18.33 in tmux 3.3a.
//!
//! It calls no hook of ours: its database confirms a delivery and names the conversation, its screen tells
//! whether it works or waits for a person. The title of its pane tells neither.

pub mod database;
mod screen;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::json;
use the_loop_core::config::pattern::Confirms;
use the_loop_core::confirm::WaitingKind;
use the_loop_core::ids::HarnessSessionId;

use super::adapter::Learning;
use super::declaration::{ComposerRule, Declaration, IdSource, KnownDialog, Program, words};
use super::place::Place;
use crate::world::World;

pub use screen::{composer, screen_state};

/// The declaration.
pub fn declaration() -> Declaration {
    Declaration {
        version_args: words(&["--version"]),
        seen_on: "1.18.33".to_owned(),
        spawn: words(&["--pure"]),
        resume: words(&["--pure", "-s", "{session_id}"]),
        // One word: what begins with a dash would be an option of its own otherwise.
        prompt_args: words(&["--prompt={prompt}"]),
        // It is ignored beside `-s`.
        resume_carries: false,
        session_id: IdSource::Learnt,
        // Its input line shows six rows, on a screen before the first prompt of 71 columns.
        inline_chars_max: 250,
        confirms: Confirms::Transcript,
        composer: ComposerRule::Unseen,
        dialogs: dialogs(),
        env: [("OPENCODE_DISABLE_AUTOUPDATE", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        cannot: words(&[
            "a limit of the provider is no state of its own: OpenCode tries again by itself and counts as working meanwhile",
            "the conversation's id is known when its first prompt was taken",
        ]),
        ..Declaration::bare("opencode", Program::Named("opencode".to_owned()))
    }
}

/// What takes the place of its input line. The highlighted answer of the first allows the command.
fn dialogs() -> Vec<KnownDialog> {
    let dialog = KnownDialog::of_texts;
    let permission = WaitingKind::Permission;
    vec![
        dialog(
            "permission",
            permission,
            &["△ Permission required", "Reject"],
        ),
        dialog(
            "permission-always",
            permission,
            &["△ Always allow", "Confirm"],
        ),
        dialog("permission-reject", permission, &["△ Reject permission"]),
        dialog("question", WaitingKind::Question, &["esc dismiss"]),
    ]
}

/// Settings of this session, over the operator's own files: no update, pastes shown as they are, and leave
/// to read this session's mail for the two agents that OpenCode has for conversations. An operator who
/// sets the variable has the say.
pub fn session_settings(world: &World, mail_dir: &Utf8Path) -> (String, String) {
    let mail = |dir: &Utf8Path| (format!("{dir}/*"), json!("allow"));
    let real = world.disk.canonicalize(mail_dir).ok();
    let mut folders = serde_json::Map::from_iter([mail(mail_dir)]);
    folders.extend(real.as_deref().map(mail));
    let agent = json!({"permission": {"external_directory": folders}});
    let settings = json!({
        "autoupdate": false,
        "experimental": {"disable_paste_summary": true},
        "agent": {"build": agent, "plan": agent},
    });
    ("OPENCODE_CONFIG_CONTENT".to_owned(), settings.to_string())
}

/// Its database, as the pane's environment places it; `None` where it keeps none.
pub fn database(place: &Place) -> Option<Utf8PathBuf> {
    let data = place
        .dir("XDG_DATA_HOME")
        .or_else(|| Some(place.home()?.join(".local/share")))?
        .join("opencode");
    match place.var("OPENCODE_DB") {
        Some(":memory:") => None,
        Some(path) => Some(data.join(path)),
        None => Some(data.join("opencode.db")),
    }
}

/// The conversation that the process in the pane began with a prompt of ours.
pub fn learn_id(learning: &Learning<'_>) -> Option<HarnessSessionId> {
    let (place, disk) = (learning.place, &learning.world.disk);
    let real = disk.canonicalize(&place.cwd);
    let real = real.unwrap_or_else(|_| place.cwd.clone());
    let item = place.var("THE_LOOP_WORK_ITEM")?;
    let directories = [place.cwd.as_path(), real.as_path()];
    database::begun(
        &**disk,
        &database(place)?,
        directories,
        learning.since,
        item,
    )
}

#[cfg(test)]
mod tests;
