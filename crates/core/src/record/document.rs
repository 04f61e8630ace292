//! Reading a JSON document with places, and writing it back as earlier releases do.

use serde_json::Value;

use super::place::{Step, locate, place};
use crate::ids::WorkItemRef;
use crate::time::Timestamp;

/// A JSON object whose keys keep their order.
pub type Map = serde_json::Map<String, Value>;

/// Keys that make a JSON object a record of ours, whatever else is wrong with it (ST-33).
const RECORD_KEYS: [&str; 8] = [
    "workItem",
    "harness",
    "harnessSessionId",
    "tmuxTarget",
    "control",
    "poll",
    "sealed",
    "ref",
];

/// Why bytes are not a record this release can use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Cannot be read as the record it should be; stays where it is, byte for byte (ST-31).
    #[error("{why}, line {line}, column {column}")]
    Corrupt {
        /// What is wrong.
        why: String,
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault in bytes, from 1.
        column: usize,
    },
    /// Written by a newer release: may be shown, is never written (ST-35).
    #[error("written by a newer release (schema {schema}, this one knows {known})")]
    Newer {
        /// The file's schema.
        schema: u64,
        /// The newest one known here.
        known: u64,
        /// The item it says it is about, when that can be read.
        item: Option<WorkItemRef>,
    },
    /// A JSON object with none of a record's keys: a stranger's file (ST-33).
    #[error("not a file of the-loop")]
    Foreign,
}

/// A field that is not what it should be, and where.
#[derive(Clone, Debug)]
pub(super) struct Bad {
    pub at: Vec<Step>,
    pub why: String,
}

/// Reads an object and refuses what is no record or too new. `known` is the newest schema known.
pub(super) fn open(bytes: &[u8], known: u64) -> Result<Map, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let (line, column) = place(bytes, e.valid_up_to());
        corrupt("not UTF-8", line, column)
    })?;
    let value: Value = serde_json::from_str(text).map_err(|e| {
        let why = e.to_string();
        let why = why.split(" at line ").next().unwrap_or(&why).to_owned();
        corrupt(&format!("not JSON ({why})"), e.line(), e.column())
    })?;
    let Value::Object(map) = value else {
        let (line, column) = locate(bytes, &[]);
        return Err(corrupt("not a JSON object", line, column));
    };
    if !RECORD_KEYS.iter().any(|key| map.contains_key(*key)) {
        return Err(Fault::Foreign);
    }
    match map.get("schema").map(Value::as_u64) {
        None => Ok(map),
        Some(Some(schema)) if schema <= known => Ok(map),
        Some(Some(schema)) => Err(Fault::Newer {
            schema,
            known,
            item: stated_item(&map),
        }),
        Some(None) => {
            let (line, column) = locate(bytes, &[Step::Key("schema".to_owned())]);
            Err(corrupt("schema is not an integer", line, column))
        }
    }
}

/// The ref a document states, of whichever kind of record it is.
fn stated_item(map: &Map) -> Option<WorkItemRef> {
    let stated = map
        .get("ref")
        .or_else(|| map.get("workItem").and_then(|w| w.get("ref")))?;
    stated.as_str()?.parse().ok()
}

/// Turns a bad field into a fault with its place in the file.
pub(super) fn at_place(bytes: &[u8], bad: Bad) -> Fault {
    let (line, column) = locate(bytes, &bad.at);
    corrupt(&bad.why, line, column)
}

fn corrupt(why: &str, line: usize, column: usize) -> Fault {
    Fault::Corrupt {
        why: why.to_owned(),
        line,
        column,
    }
}

/// The fields of one object, read with the path that leads to it.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    map: &'a Map,
    at: Vec<Step>,
}

impl<'a> Fields<'a> {
    pub fn root(map: &'a Map) -> Self {
        Self {
            map,
            at: Vec::new(),
        }
    }

    pub fn bad(&self, key: &str, why: impl Into<String>) -> Bad {
        let mut at = self.at.clone();
        if self.map.contains_key(key) {
            at.push(Step::Key(key.to_owned()));
        }
        Bad {
            at,
            why: format!("{key} {}", why.into()),
        }
    }

    /// The value of a key; `null` counts as absent.
    fn value(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|v| !v.is_null())
    }

    pub fn text(&self, key: &str) -> Result<Option<&'a str>, Bad> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.bad(key, "is not a string")),
        }
    }

    pub fn owned(&self, key: &str) -> Result<Option<String>, Bad> {
        Ok(self.text(key)?.map(str::to_owned))
    }

    pub fn must_text(&self, key: &str) -> Result<&'a str, Bad> {
        self.text(key)?.ok_or_else(|| self.bad(key, "is missing"))
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, Bad> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.bad(key, "is not true or false")),
        }
    }

    pub fn integer(&self, key: &str) -> Result<Option<u64>, Bad> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.bad(key, "is not a whole number")),
            },
        }
    }

    pub fn time(&self, key: &str) -> Result<Option<Timestamp>, Bad> {
        match self.text(key)? {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(at) => Ok(Some(at)),
                Err(_) => Err(self.bad(key, "is not a time")),
            },
        }
    }

    pub fn must_time(&self, key: &str) -> Result<Timestamp, Bad> {
        self.time(key)?.ok_or_else(|| self.bad(key, "is missing"))
    }

    pub fn item(&self, key: &str) -> Result<WorkItemRef, Bad> {
        let text = self.must_text(key)?;
        text.parse()
            .map_err(|e| self.bad(key, format!("is not a work-item ref ({e})")))
    }

    /// A word from a closed list.
    pub fn word<T>(&self, key: &str, parse: fn(&str) -> Option<T>) -> Result<Option<T>, Bad> {
        match self.text(key)? {
            None => Ok(None),
            Some(word) => match parse(word) {
                Some(known) => Ok(Some(known)),
                None => Err(self.bad(key, format!("has the unknown word {word:?}"))),
            },
        }
    }

    pub fn must_word<T>(&self, key: &str, parse: fn(&str) -> Option<T>) -> Result<T, Bad> {
        self.word(key, parse)?
            .ok_or_else(|| self.bad(key, "is missing"))
    }

    pub fn object(&self, key: &str) -> Result<Option<Fields<'a>>, Bad> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Fields {
                map,
                at: self.below(Step::Key(key.to_owned())),
            })),
            Some(_) => Err(self.bad(key, "is not an object")),
        }
    }

    pub fn must_object(&self, key: &str) -> Result<Fields<'a>, Bad> {
        self.object(key)?.ok_or_else(|| self.bad(key, "is missing"))
    }

    pub fn array(&self, key: &str) -> Result<&'a [Value], Bad> {
        match self.value(key) {
            None => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(self.bad(key, "is not an array")),
        }
    }

    pub fn texts(&self, key: &str) -> Result<Vec<String>, Bad> {
        let mut texts = Vec::new();
        for (index, value) in self.array(key)?.iter().enumerate() {
            let Value::String(text) = value else {
                return Err(self.element_bad(key, index, "is not a string"));
            };
            texts.push(text.clone());
        }
        Ok(texts)
    }

    /// The object at one place of an array.
    pub fn element(&self, key: &str, index: usize, value: &'a Value) -> Result<Fields<'a>, Bad> {
        match value {
            Value::Object(map) => Ok(Fields {
                map,
                at: self.element_path(key, index),
            }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(self.element_bad(key, index, "is not an object")),
        }
    }

    pub fn map(&self) -> &'a Map {
        self.map
    }

    fn element_bad(&self, key: &str, index: usize, why: &str) -> Bad {
        Bad {
            at: self.element_path(key, index),
            why: format!("{key}[{index}] {why}"),
        }
    }

    fn element_path(&self, key: &str, index: usize) -> Vec<Step> {
        let mut at = self.below(Step::Key(key.to_owned()));
        at.push(Step::Index(index));
        at
    }

    fn below(&self, step: Step) -> Vec<Step> {
        let mut at = self.at.clone();
        at.push(step);
        at
    }
}

/// Sets a key in its place, or at the end when it is new.
pub(super) fn set(map: &mut Map, key: &str, value: impl Into<Value>) {
    map.insert(key.to_owned(), value.into());
}

/// Sets a key, or takes it out without disturbing the order of the others. A `null` that is there
/// stays: it means the same, and the bytes stay what they were.
pub(super) fn set_or_drop(map: &mut Map, key: &str, value: Option<impl Into<Value>>) {
    match value {
        Some(value) => set(map, key, value),
        None if map.get(key).is_some_and(Value::is_null) => {}
        None => {
            map.shift_remove(key);
        }
    }
}

/// The bytes of a record, or of a list made of records: two-space indent, a final newline, and what
/// is not ASCII escaped, as earlier releases do (ST-17).
pub fn to_bytes(value: &Value) -> Vec<u8> {
    escaped(&plain(value)).into_bytes()
}

/// The bytes of a ticket: as a record's, but readable in any script.
pub(super) fn to_plain_bytes(map: &Map) -> Vec<u8> {
    plain(map).into_bytes()
}

fn plain(value: &impl serde::Serialize) -> String {
    // JSON values cannot fail to serialise into memory, so the empty text is never seen.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Non-ASCII characters stand only inside strings, so replacing them in the text is safe.
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}
