//! The checker's findings in words (CF-12, CF-37).

use serde_json::Value as Json;

use super::super::key::{Key, Kind};
use super::super::node::{Node, Pos, Value};
use super::super::problem::{Problem, found, found_text};
use super::super::{Settings, suggest, version};
use super::{Checker, shown};

impl Checker {
    pub(super) fn nothing(&mut self, path: &[String], key: &Key, pos: Pos) {
        let shown = shown(path);
        let default = default_of(path).unwrap_or(Json::Null);
        let hint = match &default {
            Json::String(text) if !text.is_empty() && !matches!(key.kind, Kind::Path { .. }) => {
                format!("remove the line to use the default {text}")
            }
            Json::Bool(_) | Json::Number(_) => {
                format!("remove the line to use the default {default}")
            }
            Json::Null | Json::String(_) | Json::Array(_) | Json::Object(_) => {
                "remove the line to use the default".to_owned()
            }
        };
        let message = format!("`{shown}` has no value");
        self.problems
            .push(Problem::at(pos, &shown, message).hint(hint));
    }

    pub(super) fn wrong_type(&mut self, path: &str, name: &str, kind: &Kind, node: &Node) {
        let wanted = match kind {
            Kind::Bool => "true or false",
            Kind::Int { .. } => "a whole number",
            Kind::Number { .. } => "a number",
            Kind::Text(_) | Kind::Choice(_) => "a string",
            Kind::Path { .. } => "a path",
            Kind::List(_) | Kind::Rows { .. } => "a list",
            Kind::Map { .. } | Kind::Section(_) => "a mapping",
        };
        let message = format!("`{path}` must be {wanted}, found {}", found(name, node));
        let problem = Problem::at(node.pos, path, message);
        self.problems
            .push(problem.maybe_hint(suggest::obvious_fix(name, kind, node)));
    }

    pub(super) fn out_of_range(
        &mut self,
        path: &[String],
        min: u64,
        max: u64,
        name: &str,
        node: &Node,
    ) {
        let path = shown(path);
        let open = max == u64::from(u32::MAX);
        let below = matches!(&node.value, Value::Int(i) if *i < i128::from(min))
            || matches!(&node.value, Value::Number(_, text) if text.starts_with('-'));
        let range = match (open, below) {
            (true, true) => format!("at least {min}"),
            (true, false) => format!("at most {max}"),
            (false, _) => format!("between {min} and {max}"),
        };
        let message = format!("`{path}` must be {range}, found {}", found(name, node));
        self.problems.push(Problem::at(node.pos, &path, message));
    }

    pub(super) fn bad_choice(
        &mut self,
        path: &[String],
        name: &str,
        words: &[&'static str],
        node: &Node,
    ) {
        let path = shown(path);
        let (what, hint) = match &node.value {
            Value::Text(text) => (
                found_text(name, text),
                suggest::nearest(text, words.iter().copied()),
            ),
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(..)
            | Value::List(_)
            | Value::Map(_) => (found(name, node), None),
        };
        let message = format!("`{path}` must be one of {}; found {what}", words.join(", "));
        let hint = hint.map(|word| format!("did you mean `{word}`?"));
        self.problems
            .push(Problem::at(node.pos, &path, message).maybe_hint(hint));
    }

    /// CF-37: only the current version is read.
    pub(super) fn version(&mut self, root: Option<&Node>, settings: &Settings) {
        let members = match root.map(|node| &node.value) {
            Some(Value::Map(members)) => members.as_slice(),
            Some(
                Value::Null
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Number(..)
                | Value::Text(_)
                | Value::List(_),
            )
            | None => &[],
        };
        let member = members.iter().find(|member| member.name == "version");
        let (Some(text), Some(pos)) = (&settings.version, member.map(|m| m.value.pos)) else {
            return;
        };
        let current = version::CURRENT;
        let problem = match version::parse(text).cmp(&version::parse(current)) {
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Less => Problem::at(
                pos,
                "version",
                format!("configuration version {text} is older than {current}"),
            )
            .hint(format!(
                "mend what is named here, then write version: {current}"
            )),
            std::cmp::Ordering::Greater => Problem::at(
                pos,
                "version",
                format!(
                    "configuration version {text} is newer than this program understands ({current})"
                ),
            )
            .hint("upgrade the-loop"),
        };
        self.problems.push(problem);
    }
}

/// The default of a key of fixed sections; `None` below a mapping with free names.
fn default_of(path: &[String]) -> Option<Json> {
    let mut value = serde_json::to_value(Settings::default()).ok()?;
    for part in path {
        value = value.get_mut(part)?.take();
    }
    Some(value)
}
