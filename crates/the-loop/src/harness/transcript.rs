//! Reading a conversation as its harness writes it down (DI-29, DI-37).

mod codex;

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use the_loop_core::confirm::WaitingKind;
use the_loop_core::ids::Marker;
use the_loop_core::prompt::markers_in;
use the_loop_core::time::Timestamp;
pub use the_loop_core::tokens::Usage;

use super::tail::LineTail;
use crate::disk::Disk;

/// Bytes of a line that is looked at. Longer ones (pictures, whole files) hold neither a prompt of ours
/// nor a count of tokens.
const TRANSCRIPT_LINE_BYTES_MAX: usize = 2 << 20;

/// How a transcript is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptFormat {
    /// Claude Code's JSONL.
    Claude,
    /// Codex's rollouts.
    Codex,
    /// The demo agent's JSONL (DI-38).
    Demo,
    /// Gemini CLI's JSONL.
    Gemini,
    /// No lines: rows of OpenCode's database, which [`super::conversation`] follows.
    OpenCodeRows,
    /// Lines of a harness that an operator declared; only our markers in them mean something.
    Lines,
}

/// What a transcript tells, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A user's prompt that the agent took up.
    Prompt {
        /// When.
        at: Timestamp,
        /// The delivery markers in it.
        markers: Vec<Marker>,
    },
    /// Something the agent said or did.
    Answer {
        /// When.
        at: Timestamp,
        /// Does its turn end with it?
        ends_turn: bool,
        /// Tokens not counted by an earlier entry.
        usage: Usage,
    },
    /// A turn that ended because the account may not go on (DI-42).
    Barred {
        /// When.
        at: Timestamp,
        /// A usage limit or a missing login.
        kind: WaitingKind,
    },
    /// A line that bears delivery markers, in a transcript that tells no more.
    Mention {
        /// When, at the latest.
        at: Timestamp,
        /// The delivery markers in it.
        markers: Vec<Marker>,
    },
}

/// How far a file's last change may lie before the moment it came: the kernel takes the time of its last tick.
const FILE_TIME_TICK: Duration = Duration::from_millis(10);
/// What stands before a marker in the first line of every prompt (DI-25).
const FIRST_LINE: &str = "the-loop delivery ";
/// Bytes searched at a time.
const SEARCH_BYTES: u64 = 256 << 10;

/// A transcript's size and last change: whether it grows (DI-32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// Bytes.
    pub len: u64,
    /// Last change, Unix milliseconds.
    pub modified_ms: i64,
}

/// What was counted so far of a count that grows from line to line: that of a message of Claude's
/// or Gemini's, which is written piece by piece, or of Codex's conversation.
#[derive(Clone, Debug, Default)]
pub(in crate::harness) struct Counted {
    /// Which message.
    id: String,
    usage: Usage,
}

/// Reads a transcript as it grows. Memory is bounded by its longest line.
#[derive(Clone, Debug)]
pub struct TranscriptTail {
    path: Utf8PathBuf,
    format: TranscriptFormat,
    tail: LineTail,
    growth: Growth,
    counted: Counted,
    restarted: bool,
}

impl TranscriptTail {
    /// Starts at the beginning.
    pub fn new(path: impl Into<Utf8PathBuf>, format: TranscriptFormat) -> Self {
        Self {
            path: path.into(),
            format,
            tail: LineTail::new(TRANSCRIPT_LINE_BYTES_MAX),
            growth: Growth::default(),
            counted: Counted::default(),
            restarted: false,
        }
    }

    /// Was the file another one, or cut, at the last look, and read from its beginning?
    pub fn restarted(&self) -> bool {
        self.restarted
    }

    /// Which file.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Size and last change at the last look; zeros when there is no file.
    pub fn growth(&self) -> Growth {
        self.growth
    }

    /// Does the file hold this text anywhere, in whosever words? A marker that a person's own words were
    /// put before is at no line's beginning, and its prompt was taken all the same.
    pub fn mentions(&self, disk: &dyn Disk, text: &str) -> io::Result<bool> {
        let mut window = Vec::new();
        let mut offset = 0;
        loop {
            let chunk = match disk.read_from(&self.path, offset, SEARCH_BYTES) {
                Ok(chunk) => chunk,
                Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(e) => return Err(e),
            };
            if chunk.is_empty() {
                return Ok(false);
            }
            offset += chunk.len() as u64;
            window.extend_from_slice(&chunk);
            if window
                .windows(text.len().max(1))
                .any(|at| at == text.as_bytes())
            {
                return Ok(true);
            }
            // What may be the first part of the text stays for the next chunk.
            let kept = window.len().saturating_sub(text.len().saturating_sub(1));
            window.drain(..kept);
        }
    }

    /// The entries that came since the last look. A file that is not there has none; lines that mean
    /// nothing to us are passed over.
    pub fn read(&mut self, disk: &dyn Disk) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let (format, counted) = (self.format, &mut self.counted);
        let told = self.tail.read(disk, &self.path, &mut |line| {
            let entry = match format {
                TranscriptFormat::Claude => claude_entry(line, counted),
                TranscriptFormat::Codex => codex::entry(line, &mut counted.usage),
                TranscriptFormat::Demo => demo_entry(line),
                TranscriptFormat::Gemini => gemini::entry(line, counted),
                TranscriptFormat::Lines => mention(line),
                TranscriptFormat::OpenCodeRows => None,
            };
            entries.extend(entry);
        })?;
        self.restarted = told.restarted;
        self.growth = Growth {
            len: told.len,
            modified_ms: told.modified_ms,
        };
        if entries.iter().any(|e| matches!(e, Entry::Mention { .. })) {
            // Such lines have no time of their own, and may have come since the look at the file began.
            let changed = disk
                .meta(&self.path)?
                .map_or(told.modified_ms, |m| m.modified_ms);
            for entry in &mut entries {
                if let Entry::Mention { at, .. } = entry {
                    *at = Timestamp::from_unix_ms(changed).plus(FILE_TIME_TICK);
                }
            }
        }
        Ok(entries)
    }
}

fn at_of(line: &Value, name: &str) -> Option<Timestamp> {
    line.get(name)?.as_str()?.parse().ok()
}

/// Claude writes many kinds of lines, some with a copy of the prompt inside. Only a `user` line that
/// is no sub-agent's, not made by the program itself and not a tool's result is a user's prompt.
fn claude_entry(line: &[u8], counted: &mut Counted) -> Option<Entry> {
    if !contains(line, b"\"type\":\"user\"") && !contains(line, b"\"type\":\"assistant\"") {
        return None;
    }
    let line: Value = serde_json::from_slice(line).ok()?;
    let truth = |name: &str| line.get(name).and_then(Value::as_bool).unwrap_or(false);
    let at = at_of(&line, "timestamp")?;
    let message = line.get("message")?;
    match line.get("type")?.as_str()? {
        "user" if !truth("isSidechain") && !truth("isMeta") => {
            let text = user_text(message.get("content")?)?;
            Some(Entry::Prompt {
                at,
                markers: markers_in(&text),
            })
        }
        "assistant" => {
            let id = message
                .get("id")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let usage = claude_usage(message.get("usage"));
            let fresh = if counted.id == id && !id.is_empty() {
                usage.beyond(counted.usage)
            } else {
                usage
            };
            if !usage.is_zero() {
                *counted = Counted {
                    id: id.to_owned(),
                    usage,
                };
            }
            let stop = message.get("stop_reason").and_then(Value::as_str);
            Some(Entry::Answer {
                at,
                ends_turn: !truth("isSidechain")
                    && matches!(
                        stop,
                        Some("end_turn" | "stop_sequence" | "max_tokens" | "refusal")
                    ),
                usage: fresh,
            })
        }
        _ => None,
    }
}

/// The words of a user: plain content, or its text blocks; `None` for a tool's result.
fn user_text(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let blocks = content.as_array()?;
    let kind = |block: &Value| block.get("type").and_then(Value::as_str).map(str::to_owned);
    if blocks
        .iter()
        .any(|b| kind(b).as_deref() == Some("tool_result"))
    {
        return None;
    }
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|b| b.get("text")?.as_str())
        .collect();
    Some(texts.join("\n"))
}

fn claude_usage(usage: Option<&Value>) -> Usage {
    let count = |name: &str| {
        usage
            .and_then(|u| u.get(name))
            .and_then(Value::as_u64)
            .unwrap_or(0)
    };
    Usage {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cache_read: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
    }
}

fn demo_entry(line: &[u8]) -> Option<Entry> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let at = at_of(&line, "at")?;
    match line.get("role")?.as_str()? {
        "user" => Some(Entry::Prompt {
            at,
            markers: line
                .get("marker")
                .and_then(Value::as_str)
                .and_then(Marker::parse)
                .into_iter()
                .collect(),
        }),
        "assistant" => {
            let usage = line.get("usage");
            let count = |name: &str| {
                usage
                    .and_then(|u| u.get(name))
                    .and_then(Value::as_u64)
                    .unwrap_or(0)
            };
            Some(Entry::Answer {
                at,
                ends_turn: true,
                usage: Usage {
                    input: count("input"),
                    output: count("output"),
                    cache_read: count("cacheRead"),
                    cache_write: count("cacheWrite"),
                },
            })
        }
        _ => None,
    }
}

/// Our first line, wherever it stands in the line: how such a file quotes a prompt is not known, and a
/// marker is told to nobody before its delivery is sent.
fn mention(line: &[u8]) -> Option<Entry> {
    let line = String::from_utf8_lossy(line);
    let markers: Vec<Marker> = line
        .split(FIRST_LINE)
        .skip(1)
        .filter_map(|rest| Marker::parse(rest.split_once(" for ")?.0))
        .collect();
    let at = Timestamp::from_unix_ms(0);
    (!markers.is_empty()).then_some(Entry::Mention { at, markers })
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}

pub(in crate::harness) mod gemini;

#[cfg(test)]
mod tests;
