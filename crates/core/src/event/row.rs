//! A line as people read it (EV-24). Colours are the caller's.

use serde_json::{Map, Value};

use crate::redact::visible;

/// The cells of one line, each safe to print on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Time as recorded.
    pub time: String,
    /// The component.
    pub source: String,
    /// The level.
    pub level: String,
    /// The name.
    pub event: String,
    /// The work item or items; empty for none.
    pub work_item: String,
    /// The other fields as `key=value`, one space between.
    pub details: String,
}

impl Row {
    /// Column heads, in the order of [`Row::cells`].
    pub const HEADS: [&str; 6] = ["Time", "Source", "Level", "Event", "Work item", "Details"];

    /// The cells in column order.
    pub fn cells(&self) -> [&str; 6] {
        [
            &self.time,
            &self.source,
            &self.level,
            &self.event,
            &self.work_item,
            &self.details,
        ]
    }
}

/// Turns a line into its cells.
pub fn row(line: &Map<String, Value>) -> Row {
    let cell = |key: &str| line.get(key).map(shown).unwrap_or_default();
    let item_key = ["work_item", "work_items"]
        .into_iter()
        .find(|key| line.contains_key(*key));
    let details: Vec<String> = line
        .iter()
        .filter(|(key, _)| {
            let in_a_column = matches!(key.as_str(), "ts" | "source" | "level" | "event" | "pid");
            !in_a_column && Some(key.as_str()) != item_key
        })
        .map(|(key, value)| format!("{}={}", visible(key), quoted(value)))
        .collect();
    Row {
        time: cell("ts"),
        source: cell("source"),
        level: cell("level"),
        event: cell("event"),
        work_item: item_key.map(cell).unwrap_or_default(),
        details: details.join(" "),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => visible(text),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(shown).collect();
            all.join(",")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            visible(&value.to_string())
        }
    }
}

/// Quoted when the end of the value could not be told otherwise.
fn quoted(value: &Value) -> String {
    let text = shown(value);
    let plain = !text.is_empty() && !text.contains([' ', '"', '=']);
    if plain || matches!(value, Value::Object(_)) {
        text
    } else {
        format!("\"{}\"", text.replace('"', "\\\""))
    }
}
