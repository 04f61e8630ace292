//! Making a line: envelope first, long texts cut, secrets out, 64 KiB at most (EV-1, EV-2, EV-7, EV-19).

use serde_json::{Map, Value};

use super::reasons::Source;
use super::vocabulary::LogEvent;
use crate::redact::Redactor;
use crate::time::Timestamp;

/// Bytes of a line with its newline; longer ones are cut to fit (EV-7).
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// Characters of a text; the rest is cut, and counted in its place (EV-7).
const TEXT_CHARS_MAX: usize = 4096;
/// Characters of `error` (EV-7) and of `tail` (EV-18).
const ERROR_CHARS_MAX: usize = 2000;
/// Characters of `summary`.
const SUMMARY_CHARS_MAX: usize = 200;
/// Characters of `question` (EV-7).
const QUESTION_CHARS_MAX: usize = 16_384;
/// Lines of `tail`, counted from its end (EV-18).
const TAIL_LINES_MAX: usize = 20;
/// Entries of a list (EV-7).
const LIST_ENTRIES_MAX: usize = 200;

/// What every line begins with, apart from what the event itself tells.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// When the event was made.
    pub at: Timestamp,
    /// The component that made it.
    pub source: Source,
    /// The writing process.
    pub pid: u32,
}

/// The bytes of one line, newline included, never longer than [`LINE_BYTES_MAX`]. Free texts pass
/// through `redactor` before they are cut, so that no half of a secret is left at the edge.
pub fn line(envelope: Envelope, event: &LogEvent, redactor: &Redactor) -> Vec<u8> {
    let mut fields = event.fields();
    for (name, value) in &mut fields {
        if let ("error" | "tail" | "summary" | "question" | "note", Value::String(text)) =
            (name.as_str(), value)
        {
            *text = redactor.redact(text);
        }
    }
    let mut size = Size {
        text: usize::MAX,
        entries: LIST_ENTRIES_MAX,
    };
    loop {
        let bytes = assemble(envelope, event, cut(fields.clone(), size));
        if bytes.len() <= LINE_BYTES_MAX || size.text <= 16 {
            return bytes;
        }
        size.text = size.text.min(QUESTION_CHARS_MAX) / 2;
        size.entries = (size.entries / 2).max(1);
    }
}

fn assemble(envelope: Envelope, event: &LogEvent, fields: Map<String, Value>) -> Vec<u8> {
    let mut line = Map::new();
    line.insert("ts".to_owned(), Value::from(envelope.at.millis()));
    line.insert("source".to_owned(), Value::from(envelope.source.as_str()));
    line.insert("event".to_owned(), Value::from(event.name()));
    line.insert("level".to_owned(), Value::from(event.level().as_str()));
    line.insert("pid".to_owned(), Value::from(envelope.pid));
    line.extend(fields);
    let mut bytes = Value::Object(line).to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// Bounds that hold in addition to each field's own.
#[derive(Clone, Copy)]
struct Size {
    text: usize,
    entries: usize,
}

/// Cuts what is too long and names it in `truncated`.
fn cut(mut fields: Map<String, Value>, size: Size) -> Map<String, Value> {
    let mut truncated = Vec::new();
    for (name, value) in &mut fields {
        let shorter = match value {
            Value::String(text) => cut_named(name, text, size).map(Value::String),
            Value::Array(all) => cut_list(all, size).map(Value::Array),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        };
        if let Some(shorter) = shorter {
            *value = shorter;
            truncated.push(Value::from(name.as_str()));
        }
    }
    if !truncated.is_empty() {
        fields.insert("truncated".to_owned(), Value::Array(truncated));
    }
    fields
}

fn cut_named(name: &str, text: &str, size: Size) -> Option<String> {
    match name {
        "tail" => cut_tail(text, ERROR_CHARS_MAX.min(size.text)),
        "error" => cut_text(text, ERROR_CHARS_MAX.min(size.text)),
        "summary" => cut_text(text, SUMMARY_CHARS_MAX.min(size.text)),
        "question" => cut_text(text, QUESTION_CHARS_MAX.min(size.text)),
        _ => cut_text(text, TEXT_CHARS_MAX.min(size.text)),
    }
}

fn cut_text(text: &str, max: usize) -> Option<String> {
    if text.len() <= max {
        return None;
    }
    let (end, _) = text.char_indices().nth(max)?;
    let left_out = text[end..].chars().count();
    Some(format!("{}…[+{left_out}]", &text[..end]))
}

/// The end of a pane tells why its program died, so whole lines go from the front.
fn cut_tail(text: &str, max: usize) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut first = lines.len().saturating_sub(TAIL_LINES_MAX);
    let chars = |from: usize| {
        lines[from..]
            .iter()
            .map(|l| l.chars().count() + 1)
            .sum::<usize>()
    };
    while first + 1 < lines.len() && chars(first) > max + 1 {
        first += 1;
    }
    let kept = lines[first..].join("\n");
    match cut_text(&kept, max) {
        Some(shorter) => Some(shorter),
        None if first > 0 => Some(kept),
        None => None,
    }
}

fn cut_list(all: &[Value], size: Size) -> Option<Vec<Value>> {
    let mut changed = all.len() > size.entries;
    let entries = all.iter().take(size.entries);
    let kept = entries
        .map(|entry| {
            match entry
                .as_str()
                .and_then(|text| cut_text(text, TEXT_CHARS_MAX.min(size.text)))
            {
                Some(shorter) => {
                    changed = true;
                    Value::from(shorter)
                }
                None => entry.clone(),
            }
        })
        .collect();
    changed.then_some(kept)
}
