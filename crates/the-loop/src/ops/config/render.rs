//! Settings as YAML text.

use serde_json::Value as Json;
use the_loop_core::config::key::join;
use the_loop_core::config::node::Value;
use the_loop_core::config::problem::key_part;

/// A value as YAML. `comment` is asked for each key, by its path, what to append as a comment.
pub fn yaml(value: &Json, path: &str, comment: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    match value {
        Json::Object(members) if !members.is_empty() => mapping(&mut out, value, path, 0, comment),
        _ => {
            out.push_str(&flow(value));
            end(&mut out, comment(path));
        }
    }
    out
}

fn mapping(
    out: &mut String,
    value: &Json,
    path: &str,
    level: usize,
    comment: &dyn Fn(&str) -> Option<String>,
) {
    let Json::Object(members) = value else {
        return;
    };
    for (name, value) in members {
        let path = join(path, &key_part(name));
        out.push_str(&"  ".repeat(level));
        out.push_str(&scalar(name));
        out.push(':');
        match value {
            Json::Object(members) if !members.is_empty() => {
                out.push('\n');
                mapping(out, value, &path, level + 1, comment);
            }
            _ => {
                out.push(' ');
                out.push_str(&flow(value));
                end(out, comment(&path));
            }
        }
    }
}

fn end(out: &mut String, comment: Option<String>) {
    if let Some(comment) = comment {
        out.push_str(" # ");
        out.push_str(&comment);
    }
    out.push('\n');
}

fn flow(value: &Json) -> String {
    match value {
        Json::String(text) => scalar(text),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Number(number) => number
            .as_f64()
            .map_or_else(|| number.to_string(), |n| n.to_string()),
        Json::Null | Json::Bool(_) | Json::Object(_) => value.to_string(),
    }
}

/// Text without quotes where nobody could read it as anything else.
fn scalar(text: &str) -> String {
    let tame = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ');
    let first = |c: char| c.is_ascii_alphabetic() || c == '/';
    let words = ["yes", "no", "on", "off", "y", "n", "true", "false", "null"];
    let plain = text.starts_with(first)
        && text.chars().all(tame)
        && !text.ends_with(' ')
        && !words.contains(&text.to_ascii_lowercase().as_str())
        && matches!(Value::plain(text), Value::Text(_));
    if plain || text.parse::<std::net::Ipv4Addr>().is_ok() {
        text.to_owned()
    } else {
        Json::String(text.to_owned()).to_string()
    }
}
