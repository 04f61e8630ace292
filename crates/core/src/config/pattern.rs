//! Expressions over a pane's screen or title, and the signals that a harness gives (DI-33).

use std::fmt;

use regex::{Regex, RegexBuilder};

/// Bytes of a compiled expression; one that needs more is refused.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// A multi-line expression over the visible rows of a pane, right-trimmed, or over its title. Clones
/// share the compiled form.
#[derive(Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles; the error is one line in words for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        RegexBuilder::new(text)
            .multi_line(true)
            .size_limit(COMPILED_BYTES_MAX)
            .build()
            .map(Self)
            .map_err(|e| {
                if matches!(e, regex::Error::CompiledTooBig(_)) {
                    return "the expression is too big".to_owned();
                }
                let words = e.to_string();
                let last = words.lines().rev().find(|line| !line.trim().is_empty());
                last.unwrap_or("not an expression")
                    .trim_start_matches("error: ")
                    .to_owned()
            })
    }

    /// The text it was made from.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Does it match anywhere in this text?
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// How many groups it has.
    pub fn groups(&self) -> usize {
        self.0.captures_len() - 1
    }

    /// What its first group holds in the last place where it matches: the newest on a screen.
    pub fn last_group<'a>(&self, text: &'a str) -> Option<&'a str> {
        self.0
            .captures_iter(text)
            .filter_map(|found| found.get(1))
            .last()
            .map(|group| group.as_str())
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.as_str())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Pattern {}

/// How a state shows, or how it shows that a delivery was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The harness calls `the-loop hook NAME`.
    Hook(String),
    /// The pane's title matches.
    Title(Pattern),
    /// The visible rows match.
    Screen(Pattern),
}

impl Signal {
    /// Reads `hook:NAME`, `title:RE` or `screen:RE`; the error is one line in words for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        let grammar = "expected hook:NAME, title:EXPRESSION or screen:EXPRESSION";
        let (kind, rest) = text.split_once(':').ok_or(grammar)?;
        match kind {
            "hook" if is_hook_name(rest) => Ok(Self::Hook(rest.to_owned())),
            "hook" => Err("a hook's name is 1 to 64 letters, digits, \"_\" or \"-\"".to_owned()),
            "title" => expression(rest).map(Self::Title),
            "screen" => expression(rest).map(Self::Screen),
            _ => Err(grammar.to_owned()),
        }
    }

    /// The name of the hook, where it is one.
    pub fn hook(&self) -> Option<&str> {
        match self {
            Self::Hook(name) => Some(name),
            Self::Title(_) | Self::Screen(_) => None,
        }
    }
}

/// How a harness shows that it took a delivery (DI-29).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirms {
    /// Its hook of this name carries the delivery's marker.
    Hook(String),
    /// A line of its transcript does.
    Transcript,
    /// The screen matches: a hint that confirms nothing.
    Screen(Pattern),
    /// It does not.
    Nothing,
}

impl Confirms {
    /// Reads `hook:NAME`, `transcript`, `screen:RE` or `none`; the error is one line in words for people.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "transcript" => return Ok(Self::Transcript),
            "none" => return Ok(Self::Nothing),
            _ => {}
        }
        let grammar = "expected hook:NAME, transcript, screen:EXPRESSION or none";
        match Signal::parse(text) {
            Ok(Signal::Hook(name)) => Ok(Self::Hook(name)),
            Ok(Signal::Screen(pattern)) => Ok(Self::Screen(pattern)),
            Ok(Signal::Title(_)) => Err(grammar.to_owned()),
            Err(_) if !text.starts_with("hook:") && !text.starts_with("screen:") => {
                Err(grammar.to_owned())
            }
            Err(words) => Err(words),
        }
    }

    /// The word used in output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Hook(_) => "hook",
            Self::Transcript => "transcript",
            Self::Screen(_) => "screen",
            Self::Nothing => "none",
        }
    }

    /// Can it prove that a delivery was taken? The other two only leave it pasted (P3).
    pub fn is_proof(&self) -> bool {
        match self {
            Self::Hook(_) | Self::Transcript => true,
            Self::Screen(_) | Self::Nothing => false,
        }
    }
}

/// The names that `the-loop hook` takes (SE-69).
fn is_hook_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// An expression that says something: an empty one matches everywhere.
fn expression(text: &str) -> Result<Pattern, String> {
    if text.is_empty() {
        return Err("the expression is empty and would match everywhere".to_owned());
    }
    Pattern::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn di33_a_signal_is_a_hook_a_title_or_a_screen() {
        assert_eq!(Signal::parse("hook:Stop").unwrap().hook(), Some("Stop"));
        assert!(matches!(Signal::parse("title:^⠋"), Ok(Signal::Title(p)) if p.is_match("⠋ x")));
        assert!(
            matches!(Signal::parse("screen:^> $"), Ok(Signal::Screen(p)) if p.is_match("a\n> \nb"))
        );
        for bad in [
            "", "Stop", "hook:", "hook:a b", "title:", "screen:(", "keys:x",
        ] {
            let words = Signal::parse(bad).unwrap_err();
            assert!(!words.is_empty() && !words.contains('\n'), "{bad}: {words}");
        }
    }

    #[test]
    fn di29_a_title_confirms_nothing_and_is_refused() {
        assert_eq!(Confirms::parse("transcript"), Ok(Confirms::Transcript));
        assert_eq!(Confirms::parse("none"), Ok(Confirms::Nothing));
        assert!(Confirms::parse("hook:Submit").unwrap().is_proof());
        assert!(!Confirms::parse("screen:taken").unwrap().is_proof());
        for bad in ["title:x", "hook", "yes", "screen:(", ""] {
            assert!(Confirms::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn di33_the_newest_match_on_a_screen_counts() {
        let pattern = Pattern::parse(r"session ([a-z0-9-]+)").unwrap();
        assert_eq!(pattern.groups(), 1);
        assert_eq!(
            pattern.last_group("session a-1\nsession b-2\n"),
            Some("b-2")
        );
        assert_eq!(pattern.last_group("none"), None);
    }
}
