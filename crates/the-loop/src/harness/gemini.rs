//! Gemini CLI (DI-34, DI-35). The facts here were seen on version 0.61.0 in tmux 3.3a.
//!
//! It takes hooks only from settings that are the user's, the repository's or root's, so none of ours are
//! given to it: the transcript confirms, the title and the transcript tell what it does
//! (docs/decisions/gemini-without-hooks.md).

use std::ops::Range;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde_json::Value;
use the_loop_core::config::pattern::Confirms;
use the_loop_core::confirm::{AgentState, Composer, WaitingKind};
use the_loop_core::ids::Marker;

use super::adapter::{HarnessError, LaunchContext};
use super::declaration::{Declaration, IdSource, KnownDialog, Program, words};
use super::kind::Shown;
use super::place::Place;
use super::screen::ScreenView;
use super::trust::{self, TrustError};
use crate::world::World;

/// How long it must look idle before that counts: what it has queued during a turn it submits a moment
/// after the turn's end, 0.2 s on an idle machine, and until then nothing shows that it has it.
pub const REST: Duration = Duration::from_secs(2);
/// It takes an Enter for a part of the text until 40 ms after it has worked a paste in. On a machine with
/// three times more to do than it has cores that was once in 12 pastes later than 150 ms, and once in 40
/// later than 300 ms; what is lost so is submitted again, after `confirmTimeoutSeconds`.
const SUBMIT_DELAY: Duration = Duration::from_millis(600);
/// It shows a paste of more than 500 characters, or of more than 5 lines, as a placeholder, in which our
/// marker could not be recognised.
const INLINE_CHARS_MAX: usize = 480;
/// Bytes of its register of projects.
const PROJECTS_FILE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a transcript in which its first line names the conversation.
const HEAD_BYTES: u64 = 4 << 10;

/// The declaration.
pub fn declaration() -> Declaration {
    let arguments = |how: &str| {
        // It reads no file outside its workspace, so this session's mail becomes a part of that.
        words(&[how, "{session_id}", "--include-directories", "{mail_dir}"])
    };
    let env = [
        // It would run a second process, and leave it behind.
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
        // The frame of its input line is drawn with more colours only.
        ("COLORTERM", "truecolor"),
    ];
    Declaration {
        version_args: words(&["--version"]),
        seen_on: "0.61.0".to_owned(),
        spawn: arguments("--session-id"),
        resume: arguments("--resume"),
        prompt_args: words(&["--prompt-interactive", "{prompt}"]),
        session_id: IdSource::Assigned,
        inline_chars_max: INLINE_CHARS_MAX,
        submit_delay: SUBMIT_DELAY,
        confirms: Confirms::Transcript,
        dialogs: dialogs(),
        env: env
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..Declaration::bare("gemini", Program::Named("gemini".to_owned()))
    }
}

/// Its dialogs: in place of the input line, but for the last, all are lists to choose from.
fn dialogs() -> Vec<KnownDialog> {
    use WaitingKind::{Dialog, Permission, Question};
    let dialogs: [(&str, WaitingKind, &[&str]); 11] = [
        ("trust", Dialog, &["Do you trust the files in this folder?"]),
        (
            "add-directory",
            Dialog,
            &["Do you trust the following folders being added"],
        ),
        (
            "login",
            Dialog,
            &["How would you like to authenticate for this project?"],
        ),
        ("api-key", Dialog, &["Enter Gemini API Key"]),
        ("permission", Permission, &["1. Allow once"]),
        ("question", Question, &["Enter to select", "Esc to cancel"]),
        ("dialog", Dialog, &["● 1. "]),
        ("dialog", Dialog, &["● 2. "]),
        ("dialog", Dialog, &["● 3. "]),
        ("dialog", Dialog, &["● 4. "]),
        ("dialog", Dialog, &["(Use Enter to select"]),
    ];
    let made = dialogs.iter();
    made.map(|(name, kind, texts)| KnownDialog::of_texts(name, *kind, texts))
        .collect()
}

/// Its own directory, as the pane's environment places it.
fn own_dir(moved: Option<&str>, home: Option<&str>) -> Option<Utf8PathBuf> {
    let home = moved.or(home).filter(|dir| !dir.is_empty())?;
    Some(Utf8PathBuf::from(home).join(".gemini"))
}

/// Makes this session's mail directory, which it would not take into its workspace later, and answers its
/// questions about that and the checkout in its own file, as far as `routing.harnessTrust` allows.
pub fn prepare(
    context: &LaunchContext<'_>,
) -> Result<Result<Vec<String>, TrustError>, HarnessError> {
    let disk = &context.world.disk;
    let mail = context.mail_dir;
    disk.create_dir_all(mail)
        .map_err(|source| HarnessError::Settings {
            path: mail.to_owned(),
            source,
        })?;
    Ok(pre_answer(context))
}

fn pre_answer(context: &LaunchContext<'_>) -> Result<Vec<String>, TrustError> {
    let variable = |name: &str| {
        let value = context.pane_env.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    };
    if !context.trust.enabled {
        return Ok(Vec::new());
    }
    let moved = variable("GEMINI_CLI_TRUSTED_FOLDERS_PATH").map(Utf8PathBuf::from);
    let own = || own_dir(variable("GEMINI_CLI_HOME"), variable("HOME"));
    let Some(file) = moved.or_else(|| Some(own()?.join("trustedFolders.json"))) else {
        return Ok(Vec::new());
    };
    let disk = &context.world.disk;
    if let Some(dir) = file.parent() {
        disk.create_dir_all(dir).map_err(|source| TrustError::Io {
            path: dir.to_owned(),
            source,
        })?;
    }
    let mut folders = trust::folders(context);
    folders.push(context.mail_dir.to_owned());
    folders.extend(disk.canonicalize(context.mail_dir).ok());
    folders.dedup();
    let keys: Vec<Vec<String>> = folders
        .into_iter()
        .map(|folder| vec![folder.into_string()])
        .collect();
    trust::set_in_json(&**disk, &file, &keys, "TRUST_FOLDER")
}

/// Finds the transcript: `<own>/tmp/<project>/chats/session-<time>-<id's first 8>.jsonl`. The project's
/// name is in its register, by the directory it runs in. Each resume begins a further file of that name
/// and leaves it empty; the conversation goes on in the first.
pub fn transcript_path(world: &World, place: &Place) -> Option<Utf8PathBuf> {
    let own = own_dir(place.var("GEMINI_CLI_HOME"), place.var("HOME"))?;
    let id = place.session_id.as_ref()?.as_str();
    let disk = &world.disk;
    let register = disk.read(&own.join("projects.json"), PROJECTS_FILE_BYTES_MAX);
    let register: Value = serde_json::from_slice(&register.ok()?).ok()?;
    let real = disk.canonicalize(&place.cwd);
    let real = real.unwrap_or_else(|_| place.cwd.clone());
    let project = |cwd: &str| register.get("projects")?.get(cwd)?.as_str();
    let project = project(real.as_str()).or_else(|| project(place.cwd.as_str()))?;
    let is_slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if project.is_empty() || !project.chars().all(is_slug) {
        return None;
    }
    let chats = own.join("tmp").join(project).join("chats");
    let ending = format!("-{}.jsonl", &id.chars().take(8).collect::<String>());
    let ours = format!("\"sessionId\":\"{id}\"");
    let names = disk.list(&chats).ok()?.into_iter();
    let mut named = names
        .filter(|name| name.starts_with("session-") && name.ends_with(&ending))
        .map(|name| chats.join(name));
    named.find(|path| {
        let head = disk.read_from(path, 0, HEAD_BYTES).unwrap_or_default();
        let first = head.split(|b| *b == b'\n').next().unwrap_or_default();
        String::from_utf8_lossy(first).contains(&ours)
    })
}

/// What its pane's title says. It is the same before a turn, after one, and beside most dialogs.
pub fn title_state(title: &str) -> Option<Shown> {
    match title.chars().next()? {
        '◇' => Some((AgentState::Idle, REST)),
        '✦' | '⏲' => Some((AgentState::Working, Duration::ZERO)),
        '✋' => Some((AgentState::Waiting(WaitingKind::Permission), Duration::ZERO)),
        _ => None,
    }
}

/// What its screen says when no known dialog is in the way, and how long that must have been so before it
/// counts.
pub fn screen_state(screen: &ScreenView) -> Option<Shown> {
    let input = input_line(screen)?;
    // Between the conversation and the input line: what is queued, and how long it has been at work.
    let above = screen.rows[..input.start].iter().rev();
    let mut status = above.take_while(|row| !is_conversation(row));
    let works = status.any(|row| {
        let row = row.trim_start();
        let turns = row.starts_with(|c| ('\u{2800}'..='\u{28ff}').contains(&c));
        (turns && row.contains("(esc to cancel")) || row.starts_with("Queued (press ")
    });
    if works {
        Some((AgentState::Working, Duration::ZERO))
    } else {
        Some((AgentState::Idle, REST))
    }
}

/// Does this row end what was said and done, looking upwards? Each of these begins with a mark or a frame.
fn is_conversation(row: &str) -> bool {
    row.starts_with(['✦', '▀', '╰', 'ℹ', '✕', '⚠'])
}

/// What its input line begins with: as usual, where it asks nobody, as a shell, while it searches.
const PROMPTS: [&str; 4] = [" >", " *", " !", " (r:)"];
/// The first of [`PROMPTS`] that mean no mode that somebody switched on.
const USUAL: usize = 2;
/// What stands in an empty input line, two columns further right than what is typed.
const HINTS: [&str; 2] = [
    "Type your message or @path/to/file",
    "Press 'Esc' for NORMAL mode.",
];
/// Rows of its frame: of half blocks with many colours, of lines without a background.
const FRAMES: [(&str, &str); 2] = [("▄▄▄", "▀▀▀"), ("───", "───")];

/// The rows of the input line: the lowest that begins with a prompt, and what follows within the frame. What
/// a person said earlier has the same frame; when that is the lowest one, a dialog in a box is below it.
pub fn input_line(screen: &ScreenView) -> Option<Range<usize>> {
    let rows = &screen.rows;
    let begins = |row: &String| {
        PROMPTS
            .iter()
            .any(|prompt| strip_prompt(row, prompt).is_some())
    };
    let top = rows.iter().rposition(begins)?;
    let above = top.checked_sub(1)?;
    let below = top + 1;
    let is_line = |row: &String| row.starts_with("───");
    let lined = rows[top.saturating_sub(5)..top].iter().any(is_line);
    for (over, under) in FRAMES {
        if rows[above].starts_with(over) {
            let rest = rows[below..].iter();
            let end = rest.take_while(|row| !row.starts_with(under)).count();
            let end = below + end;
            let after = rows.get(end + 1..).unwrap_or_default();
            let boxed = |row: &String| row.trim_start().starts_with(['╭', '│', '╰']);
            return (lined || !after.iter().any(boxed)).then_some(top..end);
        }
    }
    // With few colours the frame is a background, of which the rows show nothing but that they are empty.
    if !rows[above].is_empty() || !lined {
        return None;
    }
    let typed = |row: &String| row.is_empty() || row.starts_with("   ");
    let rest = rows[below..].iter().take_while(|row| typed(row));
    let rest: Vec<&String> = rest.collect();
    let end = rest.iter().rposition(|row| !row.is_empty());
    Some(top..end.map_or(below, |last| below + last + 1))
}

/// The row behind a prompt and its space.
fn strip_prompt<'a>(row: &'a str, prompt: &str) -> Option<&'a str> {
    let rest = row.strip_prefix(prompt)?;
    if rest.is_empty() {
        return Some(rest);
    }
    rest.strip_prefix(' ')
}

/// What is in the input line. A first character other than the usual ones means a mode that somebody
/// switched on, and is a draft.
pub fn composer(screen: &ScreenView, marker: Option<&Marker>) -> Composer {
    let Some(rows) = input_line(screen) else {
        return Composer::Unknown;
    };
    let rows = &screen.rows[rows];
    let mut usual = PROMPTS[..USUAL].iter();
    let Some(first) = usual.find_map(|prompt| strip_prompt(rows.first()?, prompt)) else {
        return Composer::Draft;
    };
    let more = rows[1..].iter().map(String::as_str);
    let text: String = std::iter::once(first)
        .chain(more)
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .collect();
    let is_hint = |hint: &str| {
        let hint: String = hint.chars().filter(|c| !c.is_whitespace()).collect();
        first.starts_with("  ") && text == hint
    };
    match marker {
        _ if text.is_empty() || HINTS.iter().any(|hint| is_hint(hint)) => Composer::Empty,
        Some(marker) if super::adapter::is_our_text(&text, marker) => Composer::Ours,
        Some(_) | None => Composer::Draft,
    }
}

#[cfg(test)]
mod tests;
