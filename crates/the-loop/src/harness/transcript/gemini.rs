//! Gemini CLI's transcript: a line for each message, written anew with what its tools gave back, and lines
//! that change the whole (`$set`).

use serde_json::Value;
use the_loop_core::prompt::markers_in;

use super::{Counted, Entry, Usage, at_of, contains};

/// What it puts into the user's mouth at a start and when its folders change.
const ITS_OWN: [&str; 2] = ["<session_context>", "- **Workspace Directories:**"];
/// What it notes when somebody has stopped a turn.
const STOPPED: &str = "Request cancelled.";

/// Reads a line; `None` when it means nothing to us. After a turn that was stopped it writes the whole
/// conversation again, with new times and ids and without tokens.
pub(in crate::harness) fn entry(line: &[u8], counted: &mut Counted) -> Option<Entry> {
    if !contains(line, b"\"type\":\"") {
        return None;
    }
    let line: Value = serde_json::from_slice(line).ok()?;
    let at = at_of(&line, "timestamp")?;
    let content = line.get("content")?;
    match line.get("type")?.as_str()? {
        "user" => {
            let text = text(content)?;
            let its_own = ITS_OWN.iter().any(|begin| text.starts_with(begin));
            (!its_own).then(|| Entry::Prompt {
                at,
                markers: markers_in(&text),
            })
        }
        "gemini" => {
            let id = line.get("id").and_then(Value::as_str).unwrap_or_default();
            let usage = usage(line.get("tokens"));
            let fresh = if counted.id == id && !id.is_empty() {
                usage.beyond(counted.usage)
            } else {
                usage
            };
            if usage != Usage::default() {
                *counted = Counted {
                    id: id.to_owned(),
                    usage,
                };
            }
            // Words alone end a turn; with tools to be called they come first, and those are added.
            let calls = line.get("toolCalls").and_then(Value::as_array);
            let says = text(content).is_some_and(|text| !text.trim().is_empty());
            Some(Entry::Answer {
                at,
                ends_turn: says && calls.is_none_or(Vec::is_empty),
                usage: fresh,
            })
        }
        "info" if content.as_str() != Some(STOPPED) => None,
        "info" | "error" => Some(Entry::Answer {
            at,
            ends_turn: true,
            usage: Usage::default(),
        }),
        _ => None,
    }
}

/// The words of a message; `None` where it has calls of tools or their results.
fn text(content: &Value) -> Option<String> {
    if let Some(text) = content.as_str() {
        return Some(text.to_owned());
    }
    let parts = content.as_array()?;
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| part.get("text")?.as_str())
        .collect();
    Some(texts?.join("\n"))
}

/// It counts what came from a cache with what was sent, and what was only thought apart from the answer.
fn usage(tokens: Option<&Value>) -> Usage {
    let count = |name: &str| {
        let count = tokens.and_then(|tokens| tokens.get(name));
        count.and_then(Value::as_u64).unwrap_or(0)
    };
    let cached = count("cached");
    let sent = count("input").saturating_sub(cached);
    Usage {
        input: sent.saturating_add(count("tool")),
        output: count("output").saturating_add(count("thoughts")),
        cache_read: cached,
        cache_write: 0,
    }
}
