//! What OpenCode's screen says.
//!
//! Its input line is a box that is closed at the left and below: a row of padding, the text, a row of
//! padding, a row that names agent and model, and the bottom edge `╹▀▀▀`. It stands in the middle of an
//! empty conversation and else at the bottom; from 121 columns on another column stands at its right.
//! Questions to a person take its place, menus lie over it.

use std::time::Duration;

use the_loop_core::confirm::{AgentState, Composer, WaitingKind};
use the_loop_core::ids::Marker;

use super::super::adapter::is_our_text;
use super::super::screen::ScreenView;

/// How long its input line must have stood there unused before that alone counts as taking input.
/// Between two turns it looks idle for a moment.
const STANDS: Duration = Duration::from_secs(1);
/// Rows of the box beside the text: two of padding, and the one that names agent and model.
const AROUND_TEXT: usize = 3;
/// What the row above the bottom edge names while the text is a command for the shell.
const SHELL_MODE: &str = "Shell";
/// What an empty input line shows before the first prompt, in grey.
const PLACEHOLDER: &str = "Ask anything… \"";
/// What stands for a longer paste, unless the operator has that switched off.
const PASTED: (&str, &str) = ("[Pasted ~", " lines]");

/// The input line as it is on the screen.
struct InputBox<'a> {
    /// The text, row by row, without the white space around it.
    text: Vec<&'a str>,
    /// Agent and model; empty while no model is known yet, and then nothing is submitted.
    names: &'a str,
    /// The rows below it.
    below: &'a [String],
}

/// Finds the lowest one. Boxes without a bottom edge are prompts of the conversation.
fn input_box(screen: &ScreenView) -> Option<InputBox<'_>> {
    let rows = &screen.rows;
    let is_edge = |row: &String| row.trim_start().starts_with("╹▀▀▀");
    let edge = rows.iter().rposition(is_edge)?;
    let left = rows[edge].chars().position(|c| c == '╹')?;
    let width = rows[edge].chars().skip(left + 1);
    let width = width.take_while(|c| *c == '▀').count();
    let inside = |row: &String| row.chars().nth(left) == Some('┃');
    let first = rows[..edge].iter().rposition(|row| !inside(row))? + 1;
    let cells = |row: &'_ str| -> (usize, usize) {
        let mut at = row.char_indices().map(|(at, _)| at).skip(left + 1);
        let from = at.next().unwrap_or(row.len());
        let to = at.nth(width.saturating_sub(1)).unwrap_or(row.len());
        (from, to)
    };
    let mut inner: Vec<&str> = Vec::new();
    for row in &rows[first..edge] {
        let (from, to) = cells(row);
        inner.push(row[from..to].trim());
    }
    let names = inner.last().copied()?;
    let text = inner.get(1..inner.len().checked_sub(AROUND_TEXT - 1)?)?;
    Some(InputBox {
        text: text.to_vec(),
        names,
        below: &rows[edge + 1..],
    })
}

/// What its screen says when no question is in the way, and how long that must have been so before it
/// counts.
pub fn screen_state(screen: &ScreenView) -> Option<(AgentState, Duration)> {
    if has_menu(screen) {
        return Some((AgentState::Waiting(WaitingKind::Dialog), Duration::ZERO));
    }
    let input = input_box(screen)?;
    if input.below.iter().any(|row| is_busy(row)) {
        return Some((AgentState::Working, Duration::ZERO));
    }
    (!input.names.is_empty()).then_some((AgentState::Idle, STANDS))
}

/// A turn is in work, or tried again after an error of the provider: a bar moves, and there is a way to
/// interrupt it.
fn is_busy(row: &str) -> bool {
    row.trim_start().starts_with(['■', '⬝'])
        || row.contains("esc interrupt")
        || row.contains("esc again to interrupt")
}

/// A menu takes what is typed. Its first row ends with the key that leaves it.
fn has_menu(screen: &ScreenView) -> bool {
    const LEAVE: &str = "    esc";
    let leaves = |row: &String| {
        let mut rest = row.as_str();
        while let Some((_, after)) = rest.split_once(LEAVE) {
            if after.is_empty() || after.starts_with("   ") {
                return true;
            }
            rest = after;
        }
        false
    };
    let input = input_box(screen);
    let above = screen.rows.len() - input.map_or(0, |input| input.below.len());
    screen.rows[..above].iter().any(leaves)
}

/// What is in the input line; with a marker, whether it is that delivery's text.
pub fn composer(screen: &ScreenView, marker: Option<&Marker>) -> Composer {
    if has_menu(screen) {
        return Composer::Unknown;
    }
    let Some(input) = input_box(screen) else {
        return Composer::Unknown;
    };
    let shown = input.text.join(" ");
    let shown = shown.trim();
    let text: String = shown.chars().filter(|c| !c.is_whitespace()).collect();
    let is_hint = shown.starts_with(PLACEHOLDER) && shown.ends_with('"');
    let is_pasted = shown.starts_with(PASTED.0)
        && shown.ends_with(PASTED.1)
        && shown.matches(PASTED.0).count() == 1;
    match marker {
        _ if input.names == SHELL_MODE => Composer::Draft,
        _ if text.is_empty() || is_hint => Composer::Empty,
        Some(marker) if is_our_text(&text, marker) => Composer::Ours,
        // It does not say whose paste it is: nothing is pasted over it, and it is not taken for ours.
        Some(_) if is_pasted => Composer::Unknown,
        Some(_) | None => Composer::Draft,
    }
}
