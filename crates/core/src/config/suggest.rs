//! What somebody may have meant: the nearest known name, or the fix where it is obvious.

use super::key::{Key, Kind};
use super::node::{Node, Value};

/// The nearest of some words: smallest edit distance, at most a third of the word's length.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = word.chars().count() / 3;
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The hint for an unknown key: a key of the same mapping, else one of the whole schema that is called
/// nearly so, else the keys that are here.
pub fn for_unknown_key(section: &str, keys: &[Key], name: &str) -> String {
    let names: Vec<String> = keys.iter().map(Key::name).collect();
    if let Some(near) = nearest(name, names.iter().map(String::as_str)) {
        return format!("did you mean `{}`?", super::key::join(section, near));
    }
    let rows = super::Settings::rows();
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let lasts: Vec<String> = rows.iter().map(|row| last(&row.path)).collect();
    if let Some(near) = nearest(name, lasts.iter().map(String::as_str)) {
        let full = super::key::join(section, name);
        let same_name = rows.iter().filter(|row| last(&row.path) == near);
        if let Some(row) = same_name.min_by_key(|row| strsim::levenshtein(&full, &row.path)) {
            return format!("did you mean `{}`?", row.path);
        }
    }
    if let Some(hint) = for_secret(name) {
        return hint;
    }
    if names.is_empty() {
        return "no keys here".to_owned();
    }
    format!("keys here: {}", names.join(", "))
}

/// The hint for a name that looks as if its value were a secret (SE-84).
fn for_secret(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    ["secret", "password", "token"]
        .iter()
        .any(|word| name.contains(word))
        .then(|| {
            "no key holds a secret: `webhooks.ghWebhook.secretFile` names a file, \
             `webhooks.ghWebhook.secretEnv` a variable"
                .to_owned()
        })
}

/// `write …`, when it is plain what a value of the wrong type was to say.
pub fn obvious_fix(name: &str, kind: &Kind, node: &Node) -> Option<String> {
    let fixed = match (kind, &node.value) {
        (Kind::Bool, Value::Text(text)) => boolean(text)?.to_string(),
        (Kind::Bool, Value::Int(0)) => "false".to_owned(),
        (Kind::Bool, Value::Int(1)) => "true".to_owned(),
        (Kind::Int { min, max }, Value::Text(text)) => {
            let number = quantity(name, text)?;
            (*min..=*max).contains(&number).then_some(())?;
            number.to_string()
        }
        (Kind::Int { min, max }, Value::Number(number, _)) => {
            let whole = number.fract() == 0.0 && *number >= *min as f64 && *number <= *max as f64;
            whole.then(|| format!("{number:.0}"))?
        }
        (Kind::Number { min, max }, Value::Text(text)) => {
            let number = quantity(name, text)?;
            (u64::from(*min)..=u64::from(*max))
                .contains(&number)
                .then_some(())?;
            number.to_string()
        }
        (Kind::Text(shape), Value::Int(_) | Value::Number(..) | Value::Bool(_)) => {
            let text = scalar_text(&node.value)?;
            (shape.fits)(&text).then(|| format!("\"{text}\""))?
        }
        (Kind::List(shape), Value::Text(text)) => {
            let plain = text
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.'));
            (plain && (shape.fits)(text)).then(|| format!("[{text}]"))?
        }
        (
            Kind::Bool
            | Kind::Int { .. }
            | Kind::Number { .. }
            | Kind::Text(_)
            | Kind::Path { .. }
            | Kind::Choice(_)
            | Kind::List(_)
            | Kind::Map { .. }
            | Kind::Rows { .. }
            | Kind::Section(_),
            _,
        ) => return None,
    };
    super::problem::may_echo(name).then(|| format!("write {fixed}"))
}

/// The text of a scalar that is no string.
pub fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::Bool(b) => Some(b.to_string()),
        Value::Int(i) => Some(i.to_string()),
        Value::Number(_, text) => Some(text.clone()),
        Value::Null | Value::Text(_) | Value::List(_) | Value::Map(_) => None,
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" | "true" | "y" => Some(true),
        "no" | "off" | "false" | "n" => Some(false),
        _ => None,
    }
}

/// The number that a text with a unit means to a key whose name ends in its own unit.
fn quantity(name: &str, text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let unit = text[end..].trim().to_ascii_lowercase();
    if unit.is_empty() {
        return Some(number);
    }
    let ends = |suffix: &str| name.ends_with(suffix);
    let factor = match unit.as_str() {
        "s" | "sec" | "seconds" if ends("Seconds") => 1,
        "m" | "min" | "minutes" if ends("Seconds") => 60,
        "h" | "hours" if ends("Seconds") => 3600,
        "d" | "days" if ends("Days") => 1,
        "m" | "mb" | "mib" if ends("Mb") => 1,
        "g" | "gb" | "gib" if ends("Mb") => 1024,
        _ => return None,
    };
    number.checked_mul(factor)
}
