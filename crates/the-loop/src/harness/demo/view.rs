//! How the demo agent looks: conversation, a rule, the composer, a rule, and a status row that title and
//! screen readers know.

use the_loop_core::confirm::{AgentState, WaitingKind};

use super::agent::{Agent, Said, Status};

/// What the rows above and below the composer begin with.
pub const RULE: &str = "--------";
/// The question that stands in the composer's place.
pub const QUESTION: &str = "Allow this? [y/n]";

const STATUS_START: &str = "demo-agent: ";

/// The status row, and the pane's title.
pub fn status_row(status: Status) -> String {
    let words = match status {
        Status::Ready => "ready".to_owned(),
        Status::Working(0) => "working".to_owned(),
        Status::Working(waiting) => format!("working, {waiting} waiting"),
        Status::Waiting => "waiting for an answer".to_owned(),
        Status::Idle => "idle".to_owned(),
    };
    format!("{STATUS_START}{words}")
}

/// Reads a status row back.
pub fn state_of_status(row: &str) -> Option<AgentState> {
    let words = row.strip_prefix(STATUS_START)?;
    match words.split([' ', ',']).next()? {
        "ready" => Some(AgentState::Ready),
        "working" => Some(AgentState::Working),
        "waiting" => Some(AgentState::Waiting(WaitingKind::Permission)),
        "idle" => Some(AgentState::Idle),
        _ => None,
    }
}

/// The rows at the bottom, and where the cursor stands in them: row and column.
pub fn bottom(agent: &Agent, columns: usize, rows: usize) -> (Vec<String>, usize, usize) {
    let rule = "-".repeat(columns.saturating_sub(1).max(RULE.len()));
    let mut lines = vec![rule.clone()];
    let cursor = match agent.composer() {
        None => {
            lines.push(QUESTION.to_owned());
            (1, QUESTION.len() + 1)
        }
        Some(text) => {
            let mut wrapped = wrap(text, columns.saturating_sub(3).max(1));
            let room = rows.saturating_sub(3).max(1);
            if wrapped.len() > room {
                let hidden = wrapped.len() - (room - 1);
                wrapped.truncate(room - 1);
                wrapped.push(format!("… {hidden} more lines"));
            }
            for (at, line) in wrapped.iter().enumerate() {
                lines.push(format!("{} {line}", if at == 0 { '>' } else { ' ' }));
            }
            let last = wrapped.last().map_or(0, |line| width(line));
            (lines.len() - 1, last + 2)
        }
    };
    lines.push(rule);
    lines.push(status_row(agent.status()));
    (lines, cursor.0, cursor.1.min(columns.saturating_sub(1)))
}

/// The rows of something said. Each is indented or marked, so that none looks like a rule or a status.
pub fn said(said: &Said, columns: usize) -> Vec<String> {
    let (mark, text) = match said {
        Said::User(text) => ('}', text),
        Said::Agent(text) => ('*', text),
        Said::Note(text) => ('#', text),
    };
    wrap(text, columns.saturating_sub(3).max(1))
        .iter()
        .enumerate()
        .map(|(at, line)| format!("{} {line}", if at == 0 { mark } else { ' ' }))
        .collect()
}

/// Breaks text at line ends and at the width; an empty text is one empty row.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let (mut row, mut used) = (String::new(), 0);
        for c in line.chars().filter(|c| !c.is_control()) {
            let wide = char_width(c);
            if used + wide > columns {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push(c);
            used += wide;
        }
        rows.push(row);
    }
    rows
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Near enough: East Asian letters and pictures take two columns.
fn char_width(c: char) -> usize {
    match u32::from(c) {
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
