//! Which lines a reader wants (events page, section 3). All filters must hold (EV-21).

use std::time::Duration;

use serde_json::{Map, Value};

use super::reasons::Level;
use crate::ids::{ItemKey, WorkItemRef};
use crate::time::Timestamp;

/// A pattern over event names: `*` stands for any run of characters, dots too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// Any text is a pattern.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }

    /// The pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Does the whole name match?
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|head| name.strip_prefix(head)) else {
            return false;
        };
        let Some(last) = parts.next_back() else {
            return rest.is_empty();
        };
        for part in parts {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

/// What a reader asks for. Absent parts ask for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these names.
    pub types: Vec<Glob>,
    /// Concerns this item, in whatever spelling.
    pub work_item: Option<ItemKey>,
    /// Concerns this delivery.
    pub delivery_id: Option<String>,
    /// Made by this component; also a word that only older logs hold.
    pub source: Option<String>,
    /// At least this level.
    pub level: Option<Level>,
    /// Not before this instant.
    pub since: Option<Timestamp>,
    /// Not after this instant.
    pub until: Option<Timestamp>,
}

impl Filter {
    /// Is this line asked for?
    pub fn matches(&self, line: &Map<String, Value>) -> bool {
        let text = |key: &str| line.get(key).and_then(Value::as_str);
        if !self.types.is_empty() {
            let name = text("event").unwrap_or_default();
            if !self.types.iter().any(|glob| glob.matches(name)) {
                return false;
            }
        }
        if self.source.is_some() && self.source.as_deref() != text("source") {
            return false;
        }
        if let Some(least) = self.level {
            // A level this version does not know is no reason to hide the line.
            let level = text("level").and_then(Level::parse).unwrap_or(Level::Error);
            if level < least {
                return false;
            }
        }
        if let Some(id) = &self.delivery_id
            && !any_text(
                line,
                &["delivery_id", "first_delivery_id", "delivery_ids"],
                |t| t == id,
            )
        {
            return false;
        }
        if let Some(key) = &self.work_item
            && !any_text(
                line,
                &["work_item", "work_items", "endpoint", "pull_request"],
                |t| key_of(t) == key.as_str(),
            )
        {
            return false;
        }
        self.in_time(line)
    }

    fn in_time(&self, line: &Map<String, Value>) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let Some(at) = recorded_at(line) else {
            return false;
        };
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at <= until)
    }

    /// A piece of text that every matching line holds as it stands, for a cheap first look at a line.
    pub fn needle(&self) -> Option<String> {
        if let Some(id) = &self.delivery_id {
            let quoted = Value::from(id.as_str()).to_string();
            // Another writer may escape other characters than we do; plain ids have none of them.
            let plain = id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':'));
            return plain.then_some(quoted);
        }
        let key = self.work_item.as_ref()?.as_str();
        let (_, number) = key.rsplit_once('#')?;
        Some(format!("#{number}\""))
    }
}

/// When a line says it was made.
pub(super) fn recorded_at(line: &Map<String, Value>) -> Option<Timestamp> {
    line.get("ts")?.as_str()?.parse().ok()
}

/// Does a text in one of these fields, alone or in a list, pass `is`?
fn any_text(line: &Map<String, Value>, keys: &[&str], is: impl Fn(&str) -> bool) -> bool {
    keys.iter()
        .filter_map(|key| line.get(*key))
        .any(|value| match value {
            Value::String(text) => is(text),
            Value::Array(all) => all.iter().filter_map(Value::as_str).any(&is),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        })
}

fn key_of(text: &str) -> String {
    match text.parse::<WorkItemRef>() {
        Ok(item) => item.key().as_str().to_owned(),
        Err(_) => text.to_ascii_lowercase(),
    }
}

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a time: write 2026-03-01T09:12:44Z, 2026-03-01, or how long ago: 30s 15m 2h 1d 2w"
)]
pub struct WhenError(
    /// What was written.
    pub String,
);

/// Reads `--since` and `--until`: an RFC 3339 time, a date (its first instant in UTC), or how long
/// before `now`.
pub fn parse_when(text: &str, now: Timestamp) -> Result<Timestamp, WhenError> {
    let bad = || WhenError(text.to_owned());
    if let Some(ago) = parse_ago(text) {
        return Ok(now.minus(ago));
    }
    let is_date = text.len() == 10
        && text.bytes().enumerate().all(|(at, b)| {
            if matches!(at, 4 | 7) {
                b == b'-'
            } else {
                b.is_ascii_digit()
            }
        });
    if is_date {
        return format!("{text}T00:00:00Z").parse().map_err(|_| bad());
    }
    text.parse().map_err(|_| bad())
}

fn parse_ago(text: &str) -> Option<Duration> {
    let unit = match text.as_bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => 86_400,
        b'w' => 7 * 86_400,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(Duration::from_secs(count.checked_mul(unit)?))
}
