//! Codex's rollout: one JSON object a line, `{timestamp, type, payload}`.

use serde_json::Value;
use the_loop_core::confirm::WaitingKind;
use the_loop_core::prompt::markers_in;
use the_loop_core::time::Timestamp;

use super::{Entry, Usage, at_of, contains};

/// Only its events count. The prompt also stands in the items for the model, beside notes that the
/// program writes in the user's name; as an event it is the user's own.
pub(super) fn entry(line: &[u8], counted: &mut Usage) -> Option<Entry> {
    if !contains(line, b"\"type\":\"event_msg\"") {
        // A file that is read again from its first line is counted again.
        if contains(line, b"\"type\":\"session_meta\"") {
            *counted = Usage::default();
        }
        return None;
    }
    let line: Value = serde_json::from_slice(line).ok()?;
    let at = at_of(&line, "timestamp")?;
    let event = line.get("payload")?;
    match event.get("type")?.as_str()? {
        "item_completed" => {
            let item = event.get("item")?;
            (item.get("type")? == "UserMessage").then(|| Entry::Prompt {
                at,
                markers: markers_in(&said(item)),
            })
        }
        "token_count" => {
            let total = usage(event.get("info")?.get("total_token_usage")?);
            let fresh = total.beyond(*counted);
            *counted = total;
            // It is told again with every change of a limit.
            (!fresh.is_zero()).then_some(Entry::Answer {
                at,
                ends_turn: false,
                usage: fresh,
            })
        }
        "task_complete" => Some(match event.get("error").and_then(barred) {
            Some(kind) => Entry::Barred { at, kind },
            None => end(at),
        }),
        "turn_aborted" => Some(end(at)),
        _ => None,
    }
}

fn end(at: Timestamp) -> Entry {
    Entry::Answer {
        at,
        ends_turn: true,
        usage: Usage::default(),
    }
}

/// The text of a user's message, its pieces one below the other.
fn said(item: &Value) -> String {
    let pieces = item.get("content").and_then(Value::as_array);
    let texts = pieces
        .into_iter()
        .flatten()
        .filter_map(|p| p.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// What a turn's error says of the account (DI-42); other errors pass.
fn barred(error: &Value) -> Option<WaitingKind> {
    let told = error.get("codex_error_info")?;
    if told == "usage_limit_exceeded" {
        return Some(WaitingKind::UsageLimit);
    }
    let status = |told: &Value| {
        let failed = told.as_object()?.values().next()?;
        failed.get("http_status_code")?.as_u64()
    };
    (told == "unauthorized" || status(told) == Some(401)).then_some(WaitingKind::Login)
}

/// Its input counts what came from a cache, and what went into one.
fn usage(total: &Value) -> Usage {
    let count = |name: &str| total.get(name).and_then(Value::as_u64).unwrap_or(0);
    let cache_read = count("cached_input_tokens");
    let cache_write = count("cache_write_input_tokens");
    Usage {
        input: count("input_tokens").saturating_sub(cache_read.saturating_add(cache_write)),
        output: count("output_tokens"),
        cache_read,
        cache_write,
    }
}

#[cfg(test)]
mod tests;
