//! What may never be printed or logged (EV-18, EV-19), and text made safe to show (EV-24, SE-14).

use std::collections::BTreeMap;
use std::ops::Range;

use regex::Regex;

/// Characters a secret has at least; shorter ones would hit ordinary words (EV-19).
pub const SECRET_CHARS_MIN: usize = 8;

/// Parts of a variable's name that make its value a secret (EV-19).
const SECRET_NAME_PARTS: [&str; 7] = [
    "TOKEN",
    "SECRET",
    "KEY",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "AUTH",
];

/// Shapes that are secret wherever they stand: a kind, and an expression whose first group, or whole
/// match, is taken out.
const SHAPES: [(&str, &str); 8] = [
    (
        "private-key",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    ),
    (
        "authorization",
        r#"(?im)\bauthorization["']?[ \t]*[:=][ \t]*["']?([^\r\n"']+)"#,
    ),
    (
        "authorization",
        r"(?i)\bbearer[ \t]+([A-Za-z0-9+/._~=-]{16,})",
    ),
    ("url-user", r"[A-Za-z][A-Za-z0-9+.-]*://([^\s/?#]+)@"),
    (
        "token",
        r"\b(?:gh[a-z]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,})",
    ),
    (
        "token",
        r"\b(?:sk-[A-Za-z0-9_-]{16,}|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16})",
    ),
    (
        "token",
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
    ),
    ("signature", r"\bsha(?:1=[0-9a-f]{40}|256=[0-9a-f]{64})"),
];

/// Takes secrets out of a text. Cheap to clone; its `Debug` shows how many it knows, not which.
#[derive(Clone)]
pub struct Redactor {
    /// Longest first, so that a value that holds another goes whole.
    values: Vec<String>,
    shapes: Vec<(&'static str, Regex)>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} values)", self.values.len())
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Redactor {
    /// A redactor for these values and all known shapes. Values shorter than [`SECRET_CHARS_MIN`] are
    /// left out; of one with several lines each line is taken out alone as well, since a log or a pane
    /// rarely shows it whole.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for value in values {
            let value = value.trim();
            let pieces = value.lines().map(str::trim).chain([value]);
            all.extend(
                pieces
                    .filter(|piece| piece.chars().count() >= SECRET_CHARS_MIN)
                    .map(str::to_owned),
            );
        }
        all.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        let shapes = SHAPES
            .iter()
            .filter_map(|(kind, shape)| Some((*kind, Regex::new(shape).ok()?)))
            .collect();
        Self {
            values: all,
            shapes,
        }
    }

    /// The text with each secret as `<redacted:kind>`; kinds are `value`, `private-key`,
    /// `authorization`, `url-user`, `token` and `signature`.
    pub fn redact(&self, text: &str) -> String {
        let spans = self.spans(text);
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (span, kind) in spans {
            out.push_str(&text[done..span.start]);
            out.push_str("<redacted:");
            out.push_str(kind);
            out.push('>');
            done = span.end;
        }
        out.push_str(&text[done..]);
        out
    }

    /// What to take out, in order, without overlaps. All rules look at the text as it came, so that the
    /// trace of one secret never hides another.
    fn spans(&self, text: &str) -> Vec<(Range<usize>, &'static str)> {
        let mut found: Vec<(Range<usize>, &'static str)> = Vec::new();
        for value in &self.values {
            let hits = text.match_indices(value.as_str());
            found.extend(hits.map(|(at, hit)| (at..at + hit.len(), "value")));
        }
        for (kind, shape) in &self.shapes {
            for hit in shape.captures_iter(text) {
                if let Some(part) = hit.get(1).or_else(|| hit.get(0)) {
                    found.push((part.range(), kind));
                }
            }
        }
        found.sort_by(|(a, _), (b, _)| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
        let mut merged: Vec<(Range<usize>, &'static str)> = Vec::new();
        for (span, kind) in found {
            match merged.last_mut() {
                Some((last, _)) if span.start < last.end => last.end = last.end.max(span.end),
                Some(_) | None => merged.push((span, kind)),
            }
        }
        merged
    }
}

/// Does the name of a variable say that its value is a secret (EV-19)?
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_NAME_PARTS.iter().any(|part| name.contains(part))
}

/// The values to take out: all of the agents' environment file, and those of the environment whose
/// name tells.
pub fn secret_values<'a>(
    environment: &BTreeMap<String, String>,
    env_file: impl IntoIterator<Item = &'a (String, String)>,
) -> Vec<String> {
    let named = environment.iter().filter(|(name, _)| is_secret_name(name));
    named
        .map(|(_, value)| value.clone())
        .chain(env_file.into_iter().map(|(_, value)| value.clone()))
        .collect()
}

/// The text with everything that could steer a terminal or mislead a reader shown as an escape: control
/// characters, escape sequences, bidirectional marks, zero-width and other invisible characters. Line
/// feeds too; print lines one by one to keep them.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if is_hidden(c) => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// Characters that show nothing, or move what others show.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests;
