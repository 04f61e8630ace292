//! The JSON schema of the document, made from the table of keys (CF-43). It helps an editor; the
//! checker, which says more, decides.

use serde_json::{Map, Value as Json, json};

use super::key::{Entry, Key, Kind};
use super::shape::{self, Shape};
use super::{Settings, version};

/// The schema as a document.
pub fn json_schema() -> Json {
    let mut schema = object(&Settings::keys(), &defaults());
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "the-loop configuration",
        "description": format!("Configuration of the-loop, version {}.", version::CURRENT),
    });
    if let (Json::Object(schema), Json::Object(mut head)) = (&mut schema, head) {
        head.append(schema);
        return Json::Object(head);
    }
    schema
}

/// The schema as text, with a line break at the end.
pub fn json_schema_text() -> String {
    format!("{:#}\n", json_schema())
}

fn defaults() -> Json {
    serde_json::to_value(Settings::default()).unwrap_or(Json::Null)
}

fn object(keys: &[Key], defaults: &Json) -> Json {
    let mut properties = Map::new();
    for key in keys {
        let name = key.name();
        let default = defaults.get(&name).cloned().unwrap_or(Json::Null);
        properties.insert(name, property(key, &default));
    }
    json!({
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": properties,
    })
}

fn property(key: &Key, default: &Json) -> Json {
    let value = match key.kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Text(shape) => text(&shape),
        Kind::Path { optional: true, .. } => text(&shape::PATH_OR_NONE),
        Kind::Path { .. } => text(&shape::PATH),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::List(shape) => list(&shape),
        Kind::Map {
            keys, value, max, ..
        } => map(&keys, value, max),
        Kind::Rows { keys, max } => json!({
            "type": "array",
            "maxItems": max,
            "items": object(&keys(), &Json::Null),
        }),
        Kind::Section(inner) => object(&inner(), default),
    };
    let Json::Object(mut value) = value else {
        return value;
    };
    value.insert("description".to_owned(), json!(key.doc.trim()));
    if !matches!(key.kind, Kind::Section(_)) {
        value.insert("x-live".to_owned(), json!(key.live.word()));
        if !default.is_null() {
            value.insert("default".to_owned(), default.clone());
        }
    }
    Json::Object(value)
}

fn text(shape: &Shape) -> Json {
    match shape.pattern {
        _ if !shape.choices.is_empty() => json!({ "type": "string", "enum": shape.choices }),
        Some(pattern) => json!({ "type": "string", "pattern": pattern }),
        None => json!({ "type": "string" }),
    }
}

fn list(shape: &Shape) -> Json {
    json!({ "type": "array", "items": text(shape) })
}

fn map(names: &Shape, value: Entry, max: usize) -> Json {
    let inner = match value {
        Entry::Text(shape) => text(&shape),
        Entry::List(shape) => list(&shape),
        Entry::Section(keys) => object(&keys(), &Json::Null),
    };
    json!({
        "type": ["object", "null"],
        "maxProperties": max,
        "propertyNames": text(names),
        "additionalProperties": inner,
    })
}
