//! What a harness reports through `the-loop hook` (SE-69): writing a line, and reading the file.

use std::io::{self, Read};
use std::sync::mpsc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value, json};
use the_loop_core::ids::{Marker, Slug, WorkItemRef};
use the_loop_core::prompt::markers_in;
use the_loop_core::time::Timestamp;

use super::tail::LineTail;
use crate::disk::Disk;
use crate::store::layout::Layout;
use crate::world::World;

/// Bytes of a hook's input; what is over is thrown away, and the line tells the hook's name alone.
pub const HOOK_INPUT_BYTES_MAX: u64 = 1 << 20;
/// Bytes at which the hook file is put aside (state page, section 12).
pub const HOOK_FILE_BYTES_MAX: u64 = 1 << 20;
/// Bytes of one line that is read back; a longer one is malformed.
const HOOK_LINE_BYTES_MAX: usize = 64 << 10;
/// Markers kept of one prompt; ours have one.
const HOOK_MARKERS_MAX: usize = 16;
/// Name of a line that is no hook's: an operator says that a usage limit or a missing login is over, which
/// the agent itself does not tell before its next turn (DI-42).
pub const OPERATOR_RESUME: &str = "OperatorResume";
/// How long an input may be silent before the line is written without it. The harness waits for us.
const HOOK_INPUT_SILENCE_MAX: Duration = Duration::from_secs(1);

/// One line of the hook file. It never holds prompt text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookLine {
    /// When the hook ran.
    pub at: Timestamp,
    /// Its name, such as `UserPromptSubmit`.
    pub hook: String,
    /// The conversation; `""` when it was not told.
    pub session_id: String,
    /// Where the conversation is written down.
    pub transcript_path: Option<Utf8PathBuf>,
    /// The delivery markers of the prompt.
    pub markers: Vec<Marker>,
    /// What kind of start, notification, permission or failure.
    pub kind: Option<String>,
    /// Why a session ended.
    pub reason: Option<String>,
}

impl HookLine {
    /// Takes from a hook's JSON what the line tells. Anything that is missing or misshapen is left
    /// out: a hook always reports at least that it ran.
    pub fn from_input(at: Timestamp, hook: &str, input: &Value) -> Self {
        let text = |name: &str| input.get(name).and_then(Value::as_str);
        Self {
            at,
            hook: hook.to_owned(),
            session_id: text("session_id").map(short).unwrap_or_default(),
            transcript_path: text("transcript_path")
                .filter(|path| path.starts_with('/') && path.len() <= 4096)
                .map(Utf8PathBuf::from),
            markers: text("prompt")
                .map(markers_in)
                .map_or_else(Vec::new, |mut m| {
                    m.truncate(HOOK_MARKERS_MAX);
                    m
                }),
            kind: kind_of(hook, input),
            reason: text("reason").map(short),
        }
    }

    /// Reads a line back; `None` when it is not one.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let text = |name: &str| line.get(name).and_then(Value::as_str);
        let markers = line.get("markers").and_then(Value::as_array)?;
        Some(Self {
            at: text("ts")?.parse().ok()?,
            hook: text("hook")?.to_owned(),
            session_id: text("sessionId").unwrap_or_default().to_owned(),
            transcript_path: text("transcriptPath").map(Utf8PathBuf::from),
            markers: markers
                .iter()
                .filter_map(|m| Marker::parse(m.as_str()?))
                .collect(),
            kind: text("kind").map(str::to_owned),
            reason: text("reason").map(str::to_owned),
        })
    }

    /// The line as it is written, with its newline.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut line = json!({
            "ts": self.at.millis(),
            "hook": self.hook,
            "sessionId": self.session_id,
            "transcriptPath": self.transcript_path,
            "markers": self.markers,
        });
        for (name, value) in [("kind", &self.kind), ("reason", &self.reason)] {
            if let Some(value) = value {
                line[name] = json!(value);
            }
        }
        let mut bytes = line.to_string().into_bytes();
        bytes.push(b'\n');
        bytes
    }
}

/// A word of the harness, cut to a length that no honest one reaches.
fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(128).collect()
}

/// What kind a hook tells: how a session started, what is asked, which notification, which failure.
fn kind_of(hook: &str, input: &Value) -> Option<String> {
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    match hook {
        "SessionStart" => text("source").map(short),
        "PermissionRequest" => Some(match text("tool_name") {
            Some("AskUserQuestion") => "question".to_owned(),
            Some(_) | None => "permission".to_owned(),
        }),
        "Notification" => text("notification_type").map(short).or_else(|| {
            let message = text("message")?;
            if message.contains("permission") {
                Some("permission_prompt".to_owned())
            } else if message.contains("waiting for your input") {
                Some("idle_prompt".to_owned())
            } else {
                None
            }
        }),
        "StopFailure" => text("error").map(short),
        _ => None,
    }
}

/// `the-loop hook NAME [--slug SLUG]`: appends one line to this session's hook file. It never fails and
/// prints nothing, whatever it is given; without a state root in the environment, and a work item in it
/// or a slug, it does nothing.
pub fn run(world: &World, name: &str, slug: Option<&str>, stdin: impl Read + Send + 'static) {
    let well_named = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    let Some(file) = hook_file_of(world, slug).filter(|_| well_named) else {
        return;
    };
    let input = read_input(stdin);
    let input = serde_json::from_slice(&input).unwrap_or(Value::Null);
    append(
        world,
        &file,
        &HookLine::from_input(world.clock.now(), name, &input),
    );
}

/// Appends a line. A line that cannot be written is lost: nothing that a hook does may hinder the agent.
/// A state root that is gone is not made anew.
pub fn append(world: &World, file: &Utf8Path, line: &HookLine) {
    let bytes = line.to_bytes();
    if world.disk.append(file, &bytes).is_ok() {
        return;
    }
    let Some(dir) = file.parent() else { return };
    let root_is_there = dir
        .parent()
        .is_some_and(|local| matches!(world.disk.meta(local), Ok(Some(_))));
    if root_is_there && world.disk.create_dir_all(dir).is_ok() {
        let _ = world.disk.append(file, &bytes);
    }
}

/// The hook file that the environment of this pane names.
pub fn hook_file_of(world: &World, slug: Option<&str>) -> Option<Utf8PathBuf> {
    let root = Utf8Path::new(world.var("THE_LOOP_STATE_ROOT")?);
    let slug = match slug {
        Some(slug) => Slug::from_file_stem(slug)?,
        None => world
            .var("THE_LOOP_WORK_ITEM")?
            .parse::<WorkItemRef>()
            .ok()?
            .slug(),
    };
    root.is_absolute()
        .then(|| Layout::new(root).hook_file(&slug))
}

/// Reads the input to its end, or until it has been silent for too long.
fn read_input(mut stdin: impl Read + Send + 'static) -> Vec<u8> {
    let (send, receive) = mpsc::sync_channel::<Vec<u8>>(4);
    std::thread::spawn(move || {
        let mut chunk = vec![0u8; 64 << 10];
        while let Ok(n @ 1..) = stdin.read(&mut chunk) {
            if send.send(chunk[..n].to_vec()).is_err() {
                break;
            }
        }
    });
    let mut kept = Vec::new();
    let mut too_long = false;
    while let Ok(chunk) = receive.recv_timeout(HOOK_INPUT_SILENCE_MAX) {
        too_long |= (kept.len() + chunk.len()) as u64 > HOOK_INPUT_BYTES_MAX;
        if !too_long {
            kept.extend_from_slice(&chunk);
        }
    }
    if too_long { Vec::new() } else { kept }
}

/// Puts a hook file aside as `.1.jsonl` when it has grown to its bound; `true` when it did.
pub fn rotate_if_needed(disk: &dyn Disk, file: &Utf8Path) -> io::Result<bool> {
    match disk.meta(file)? {
        Some(meta) if meta.len >= HOOK_FILE_BYTES_MAX => {
            disk.rename(file, &rotated(file))?;
            Ok(true)
        }
        Some(_) | None => Ok(false),
    }
}

/// Where a hook file goes when it is put aside.
pub fn rotated(file: &Utf8Path) -> Utf8PathBuf {
    file.with_extension("1.jsonl")
}

/// Reads a hook file as it grows, through its rotation.
#[derive(Clone, Debug)]
pub struct HookTail {
    file: Utf8PathBuf,
    current: LineTail,
    /// The file that was put aside last: a hook that had it open may still write into it.
    previous: LineTail,
}

/// What one look at a hook file gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookRead {
    /// The new lines, in order.
    pub lines: Vec<HookLine>,
    /// Lines that could not be read and were skipped (`hook.malformed`).
    pub malformed: usize,
}

impl HookTail {
    /// Starts with everything the file and its predecessor hold.
    pub fn new(file: impl Into<Utf8PathBuf>) -> Self {
        Self {
            file: file.into(),
            current: LineTail::new(HOOK_LINE_BYTES_MAX),
            previous: LineTail::new(HOOK_LINE_BYTES_MAX),
        }
    }

    /// The lines that came since the last look. Files that are not there hold none.
    pub fn read(&mut self, disk: &dyn Disk) -> io::Result<HookRead> {
        let aside = rotated(&self.file);
        let inode_aside = disk.meta(&aside)?.map(|m| m.inode);
        if inode_aside.is_some() && inode_aside == self.current.inode() {
            self.previous =
                std::mem::replace(&mut self.current, LineTail::new(HOOK_LINE_BYTES_MAX));
        }
        let mut read = HookRead::default();
        for (tail, path) in [
            (&mut self.previous, aside.as_path()),
            (&mut self.current, self.file.as_path()),
        ] {
            let (lines, malformed) = (&mut read.lines, &mut read.malformed);
            let told = tail.read(disk, path, &mut |line| match HookLine::parse(line) {
                Some(line) => lines.push(line),
                None => *malformed += 1,
            })?;
            read.malformed += told.too_long;
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
