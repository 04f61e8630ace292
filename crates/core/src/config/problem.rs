//! What is wrong with a document, in the words of CF-12.

use super::node::{Node, Pos, Value};

/// Problems that are listed at most (CF-12).
pub const PROBLEMS_MAX: usize = 50;
/// Characters of a value that a message may repeat (CF-46).
const ECHO_CHARS_MAX: usize = 40;

/// One thing wrong with a document, or worth a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where; none when it is about the file as a whole.
    pub pos: Option<Pos>,
    /// The key it is about.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem at a place.
    pub fn at(pos: Pos, key: &str, message: impl Into<String>) -> Self {
        Self {
            pos: Some(pos),
            key: Some(key.to_owned()),
            message: message.into(),
            hint: None,
        }
    }

    /// A problem of the document's form, at a place.
    pub fn form(pos: Pos, message: impl Into<String>) -> Self {
        Self {
            pos: Some(pos),
            key: None,
            message: message.into(),
            hint: None,
        }
    }

    /// A problem of the file as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self {
            pos: None,
            key: None,
            message: message.into(),
            hint: None,
        }
    }

    /// With a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With a hint, where there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// `PATH:LINE:COLUMN: MESSAGE (HINT)`; without a place only what follows it.
    pub fn line(&self, path: &str) -> String {
        let place = self
            .pos
            .map_or(String::new(), |pos| format!("{path}:{pos}: "));
        let hint = self
            .hint
            .as_ref()
            .map_or(String::new(), |hint| format!(" ({hint})"));
        format!("{place}{}{hint}", self.message)
    }
}

/// May a message repeat the value of a key with this name (CF-46)?
pub fn may_echo(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !["token", "secret", "password", "key"]
        .iter()
        .any(|word| name.contains(word))
}

/// At most forty characters of a text, control characters written as escapes.
pub fn echo(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == ECHO_CHARS_MAX {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// What stands where something else should, for a message about the key called `name`.
pub fn found(name: &str, node: &Node) -> String {
    let shown = may_echo(name);
    match &node.value {
        Value::Null => "nothing".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
        Value::Bool(_) | Value::Int(_) | Value::Number(..) | Value::Text(_) if !shown => {
            "a value that is not shown here".to_owned()
        }
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Number(_, text) => echo(text),
        Value::Text(text) => format!("the string \"{}\"", echo(text)),
    }
}

/// As [`found`], for messages that say what the text must be: the text alone, in quotes.
pub fn found_text(name: &str, text: &str) -> String {
    let url_with_user = text.contains("://") && text.contains('@');
    if may_echo(name) && !url_with_user {
        format!("\"{}\"", echo(text))
    } else {
        "a value that is not shown here".to_owned()
    }
}

/// A part of a key path: in quotes when it holds a dot or anything else that would mislead.
pub fn key_part(name: &str) -> String {
    let plain = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/'));
    if plain {
        echo(name)
    } else {
        format!("\"{}\"", echo(name))
    }
}
