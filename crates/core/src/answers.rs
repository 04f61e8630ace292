//! What the tracker answered when it was asked for what a delivery does not show (IN-18, IN-19, IN-33).
//!
//! The answers are stored with the delivery before it is routed, so that whatever comes later decides by
//! the same facts, and a crash asks again at most.

use serde::{Deserialize, Serialize};

use crate::delivery::{Actor, PullFacts};
use crate::ids::WorkItemRef;
use crate::prompt::for_paste;

/// Lines of a log that an agent is shown: the last ones (IN-33).
pub const LOG_LINES_MAX: usize = 80;
/// Unicode characters of a log that an agent is shown, counted from the end (IN-33, IN-62).
pub const LOG_CHARS_MAX: usize = 6_000;

/// All answers to the questions about one delivery. None of them: everything was known, or nothing could
/// be learnt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    /// Pull requests of which the delivery shows little more than the number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pulls: Vec<PullSeen>,
    /// Items that a branch names and that are not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<WorkItemRef>,
    /// What is known of the job that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<FailedJob>,
}

/// A pull request as the tracker shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullSeen {
    /// It.
    pub item: WorkItemRef,
    /// Who opened it; a deleted account is nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Actor>,
    /// What it says of itself.
    pub facts: PullFacts,
}

/// A ticket or pull request as far as it decides whether it may have a session (IN-27).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemSeen {
    /// Names of its labels.
    pub labels: Vec<String>,
    /// Is it closed?
    pub closed: bool,
}

/// The first job of a workflow run that failed (IN-33). All of it but `unavailable` is untrusted text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedJob {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The step of it that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The end of its log, as [`log_tail`] makes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// Why there is no log, in our words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

impl FailedJob {
    /// One of which nothing is known but why.
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self {
            unavailable: Some(why.into()),
            ..Self::default()
        }
    }
}

impl Answers {
    /// What was answered about a pull request.
    pub fn pull(&self, item: &WorkItemRef) -> Option<&PullSeen> {
        self.pulls.iter().find(|seen| seen.item.key() == item.key())
    }

    /// Is this item known not to be there?
    pub fn is_missing(&self, item: &WorkItemRef) -> bool {
        self.missing.iter().any(|gone| gone.key() == item.key())
    }
}

/// The end of a log: at most [`LOG_LINES_MAX`] lines and [`LOG_CHARS_MAX`] characters, without the time at
/// the beginning of each line and without what a terminal would not show. Bytes that are no text are
/// replaced.
pub fn log_tail(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches(['\r', '\n']);
    let mut room = LOG_CHARS_MAX;
    let mut tail: Vec<String> = Vec::new();
    for line in text.rsplit('\n').take(LOG_LINES_MAX) {
        let line = for_paste(without_time(line.trim_end_matches('\r')));
        let line = line.replace('\n', " ");
        let chars = line.chars().count();
        if chars > room {
            // A part of a line is worth showing where it would be the only one.
            if tail.is_empty() {
                tail.push(line.chars().skip(chars - room).collect());
            }
            break;
        }
        room -= chars;
        tail.push(line);
    }
    tail.reverse();
    tail
}

/// A line of a log without the time that the provider puts before it: `2026-03-01T10:00:00.1234567Z `.
fn without_time(line: &str) -> &str {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let line = line.strip_prefix('\u{feff}').unwrap_or(line);
    let bytes = line.as_bytes();
    let fits = |at: usize, shape: &u8| match bytes.get(at) {
        Some(byte) if *shape == b'0' => byte.is_ascii_digit(),
        Some(byte) => byte == shape,
        None => false,
    };
    if !SHAPE.iter().enumerate().all(|(at, shape)| fits(at, shape)) {
        return line;
    }
    let rest = &line[SHAPE.len()..];
    let rest = rest.strip_prefix('.').map_or(rest, |fraction| {
        fraction.trim_start_matches(|c: char| c.is_ascii_digit())
    });
    match rest.strip_prefix('Z') {
        Some(rest) => rest.strip_prefix(' ').unwrap_or(rest),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in33_a_log_s_end_is_shown_without_times_and_escapes() {
        let log = "\u{feff}2026-03-01T10:00:00.1234567Z \u{1b}[31merror\u{1b}[0m: x\r\n\
                   2026-03-01T10:00:01Z\t at y\n2026-03-01 no time\n2026-03-01T10:00:01 none\n\n";
        assert_eq!(
            log_tail(log.as_bytes()),
            [
                "error: x",
                "     at y",
                "2026-03-01 no time",
                "2026-03-01T10:00:01 none"
            ]
        );
        assert_eq!(log_tail(b""), [""]);
        let many: Vec<String> = (0..200).map(|n| format!("line {n}")).collect();
        let tail = log_tail(many.join("\n").as_bytes());
        assert_eq!(tail.len(), LOG_LINES_MAX);
        assert_eq!(tail[0], "line 120");
        assert_eq!(tail[79], "line 199");
    }

    #[test]
    fn in33_one_endless_line_and_bytes_that_are_no_text_are_bounded() {
        let endless = "x".repeat(1 << 20) + "END";
        let tail = log_tail(endless.as_bytes());
        assert_eq!(tail.len(), 1);
        assert_eq!(tail[0].chars().count(), LOG_CHARS_MAX);
        assert!(tail[0].ends_with("END"));
        let long = ("y".repeat(500) + "\n").repeat(80);
        let tail = log_tail(long.as_bytes());
        assert_eq!(tail.len(), 12);
        let tail = log_tail(&[0xff, 0x00, 0x1b, b'[', b'2', b'J', 0xc3, b'a']);
        assert_eq!(tail, ["\u{fffd}\u{fffd}a"]);
        let mut after_endless = "z".repeat(10_000);
        after_endless.push_str("\nlast");
        assert_eq!(log_tail(after_endless.as_bytes()), ["last"]);
    }
}
