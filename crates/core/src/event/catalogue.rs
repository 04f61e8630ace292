//! The catalogue: what `events --types` and the documentation page tell of the vocabulary (EV-4).

use serde_json::{Map, Value, json};

use super::fields::meaning;
use super::filter::Glob;
use super::reasons::{Level, Source};
use super::vocabulary::CATALOGUE;
use super::word::Kind;

/// One event of the vocabulary.
#[derive(Clone, Copy, Debug)]
pub struct EventType {
    /// Group in the catalogue.
    pub section: &'static str,
    /// Name on the line.
    pub name: &'static str,
    /// Name of the variant in the code.
    pub variant: &'static str,
    /// Every level it may have.
    pub levels: &'static [Level],
    /// What it says, in one or two sentences.
    pub meaning: &'static str,
    /// Its fields, in the order of the line.
    pub fields: &'static [Field],
}

/// One field of an event.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name on the line.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// May be left out.
    pub optional: bool,
}

/// Why a name is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedFor {
    /// A later version will write it.
    Later,
    /// Only logs of earlier versions hold it.
    OlderLogs,
}

impl ReservedFor {
    /// The words of the catalogue.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Later => "later",
            Self::OlderLogs => "older logs",
        }
    }
}

/// Names that this version never writes and readers know.
#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    /// First part of the name, up to the dot.
    pub family: &'static str,
    /// Second parts; `*` stands for any.
    pub names: &'static [&'static str],
    /// Why.
    pub reserved_for: ReservedFor,
}

const fn later(family: &'static str, names: &'static [&'static str]) -> Reserved {
    Reserved {
        family,
        names,
        reserved_for: ReservedFor::Later,
    }
}

const fn older(family: &'static str, names: &'static [&'static str]) -> Reserved {
    Reserved {
        family,
        names,
        reserved_for: ReservedFor::OlderLogs,
    }
}

/// Every reserved name, by family.
pub const RESERVED: &[Reserved] = &[
    later(
        "session",
        &[
            "pr_spawned",
            "reset",
            "cleaned",
            "link_failed",
            "pr_session_declined",
            "pr_closed",
            "awaiting_input",
            "reply_sent",
            "keys_sent",
        ],
    ),
    later("work", &["restored", "dropped"]),
    later("service", &["started", "stopped"]),
    later("config", &["updated", "migrated"]),
    later("state", &["shadowed", "adopted"]),
    later(
        "poll",
        &[
            "slowed",
            "comment_settled",
            "comment_failed",
            "spawn_failed",
            "rearmed",
            "giveup_reported",
            "giveup_report_failed",
        ],
    ),
    later("api", &["request", "refused", "login"]),
    later("mcp", &["call"]),
    later(
        "stream",
        &["subscribed", "disconnected", "refused", "desync"],
    ),
    later(
        "channel",
        &[
            "posted",
            "post_failed",
            "reply_received",
            "dropped",
            "mirrored",
            "mirror_failed",
            "mirror_skipped",
        ],
    ),
    later("notify", &["sent", "failed"]),
    later(
        "graph",
        &[
            "started",
            "advanced",
            "blocked",
            "parked",
            "escalated",
            "no_edge",
            "hook_degraded",
            "completed",
            "cleaned",
            "spec_tree_excluded",
            "skipped",
            "link_failed",
            "forced",
            "skips_declared",
            "skips_rejected",
            "opt_ins_selected",
            "frozen",
            "frozen_publish_failed",
            "node_skipped",
            "gate_session",
            "assignment_delivered",
            "assignment_failed",
        ],
    ),
    later("harness", &["config_scaffolded"]),
    older("standing", &["*"]),
    older("diagnosis", &["*"]),
    older("ingress", &["hosted", "hosted_stopped"]),
    older("restart", &["scheduled"]),
    older("dispatch", &["abandoned"]),
    older("poll", &["attempts_released"]),
];

/// Every reserved name in full, with why.
pub fn reserved_names() -> impl Iterator<Item = (String, ReservedFor)> {
    RESERVED.iter().flat_map(|r| {
        r.names
            .iter()
            .map(|name| (format!("{}.{name}", r.family), r.reserved_for))
    })
}

/// The event of this name, when this version writes it.
pub fn event_type(name: &str) -> Option<&'static EventType> {
    CATALOGUE.iter().find(|e| e.name == name)
}

/// Does a `--type` pattern match any name that this version writes or reserves?
pub fn is_known_pattern(pattern: &Glob) -> bool {
    CATALOGUE.iter().any(|e| pattern.matches(e.name))
        || reserved_names().any(|(name, _)| {
            pattern.matches(&name)
                || (name.ends_with('*') && Glob::new(&name).matches(pattern.as_str()))
        })
}

impl EventType {
    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// Its levels as words.
    pub fn level_words(&self) -> String {
        let words: Vec<&str> = self.levels.iter().map(|l| l.as_str()).collect();
        words.join(", ")
    }

    /// Its fields as the catalogue writes them: `work_item, endpoint?, waited_ms i`.
    pub fn field_words(&self) -> String {
        let words: Vec<String> = self.fields.iter().map(Field::words).collect();
        words.join(", ")
    }
}

impl Field {
    fn words(&self) -> String {
        let mark = if self.optional { "?" } else { "" };
        format!("{}{mark} {}", self.name, self.kind.letter())
    }
}

/// Does a line hold what the vocabulary declares: the envelope, every required field, and no others?
/// Says what is wrong; for tests over logs that were really written (EV-4).
pub fn check_line(line: &Map<String, Value>) -> Result<(), String> {
    let envelope = ["ts", "source", "event", "level", "pid"];
    let keys: Vec<&str> = line.keys().map(String::as_str).collect();
    if keys.get(..5) != Some(&envelope[..]) {
        return Err(format!("the envelope does not come first: {keys:?}"));
    }
    let name = line["event"].as_str().unwrap_or_default();
    let Some(known) = event_type(name) else {
        return Err(format!("no event is called {name:?}"));
    };
    let word = |key: &str| line[key].as_str().unwrap_or_default();
    if !Kind::Time.admits(&line["ts"]) || !line["pid"].is_u64() {
        return Err(format!("{name}: bad ts or pid"));
    }
    if Source::parse(word("source")).is_none() {
        return Err(format!("{name}: no source is called {}", line["source"]));
    }
    if !known
        .levels
        .iter()
        .any(|level| level.as_str() == word("level"))
    {
        return Err(format!("{name}: level {} is not declared", line["level"]));
    }
    let mut declared = known.fields.iter();
    for (key, value) in line.iter().skip(5) {
        if key == "truncated" {
            continue;
        }
        let Some(field) = declared.find(|f| f.name == key.as_str()) else {
            return Err(format!("{name}: {key} is not declared, or out of order"));
        };
        let cut = line.get("truncated").is_some();
        if !(field.kind.admits(value) || cut) {
            return Err(format!("{name}: {key} cannot be {value}"));
        }
    }
    match known
        .fields
        .iter()
        .find(|f| !f.optional && !line.contains_key(f.name))
    {
        Some(missing) => Err(format!("{name}: {} is missing", missing.name)),
        None => Ok(()),
    }
}

/// The catalogue as one JSON document, for `events --types --format json`.
pub fn catalogue_json() -> Value {
    let events: Vec<Value> = CATALOGUE.iter().map(event_json).collect();
    let reserved: Vec<Value> = reserved_names()
        .map(|(name, why)| json!({"event": name, "reserved": why.as_str()}))
        .collect();
    json!({
        "sources": Source::LIST.words,
        "levels": Level::LIST.words,
        "events": events,
        "reserved": reserved,
    })
}

fn event_json(event: &EventType) -> Value {
    let fields: Vec<Value> = event.fields.iter().map(field_json).collect();
    json!({
        "event": event.name,
        "levels": event.levels.iter().map(|l| l.as_str()).collect::<Vec<_>>(),
        "meaning": event.meaning.trim(),
        "fields": fields,
    })
}

fn field_json(field: &Field) -> Value {
    let mut out = json!({
        "name": field.name,
        "type": field.kind.letter(),
        "optional": field.optional,
        "meaning": meaning(field.name),
    });
    if let (Some(list), Some(out)) = (field.kind.words(), out.as_object_mut()) {
        out.insert("words".to_owned(), json!(list.words));
        if !list.older.is_empty() {
            out.insert("older_words".to_owned(), json!(list.older));
        }
    }
    out
}

const HEAD: &str = "\
<!-- Generated from crates/core/src/event by `cargo xtask codegen`; edits are lost. -->
# Event types

Every decision of the-loop is one line of the event log, a JSON object: first `ts`, `source`, `event`,
`level` and `pid`, then the fields below, in this order. A field marked `?` is left out when it has no
value. `truncated` names fields that were cut to fit a line. Types: `s` text, `i` whole number, `b`
true or false, `e` a word of the list shown, `t` UTC time with milliseconds, `[]` several.

`the-loop events --types` prints this list; `the-loop events` reads the log.
";

/// The documentation page `docs/events.md` (EV-4). `cargo xtask codegen` writes it.
pub fn catalogue_markdown() -> String {
    let mut out = HEAD.to_owned();
    out.push_str(&format!("\nSources: {}.\n", ticked(Source::LIST.words)));
    out.push_str(&format!("\nLevels: {}.\n", ticked(Level::LIST.words)));
    let mut section = "";
    for event in CATALOGUE {
        if event.section != section {
            section = event.section;
            out.push_str(&format!("\n## {section}\n"));
        }
        out.push_str(&event_markdown(event));
    }
    out.push_str("\n## Reserved names\n\nThis version never writes them; readers know them.\n\n| event | reserved for |\n|---|---|\n");
    for (name, why) in reserved_names() {
        out.push_str(&format!("| `{name}` | {} |\n", why.as_str()));
    }
    out
}

fn event_markdown(event: &EventType) -> String {
    let mut out = format!(
        "\n### `{}`\n\nLevel: {}. {}\n",
        event.name,
        event.level_words(),
        event.meaning.trim()
    );
    if event.fields.is_empty() {
        return out;
    }
    out.push_str("\n| field | type | meaning |\n|---|---|---|\n");
    for field in event.fields {
        let mark = if field.optional { "?" } else { "" };
        out.push_str(&format!(
            "| `{}`{mark} | {} | {} |\n",
            field.name,
            field.kind.letter(),
            field_meaning(field)
        ));
    }
    out
}

fn field_meaning(field: &Field) -> String {
    let mut out = meaning(field.name).to_owned();
    if let Some(list) = field.kind.words() {
        out.push_str(&format!(": {}", ticked(list.words)));
        if !list.older.is_empty() {
            out.push_str(&format!("; in older logs also {}", ticked(list.older)));
        }
    }
    out
}

fn ticked(words: &[&str]) -> String {
    let ticked: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
    ticked.join(" ")
}
