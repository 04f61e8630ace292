//! A pane's visible rows, as captured with their colours.

use std::ops::Range;

use the_loop_core::time::Timestamp;

/// What a pane shows at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScreenView {
    /// The visible rows, right-trimmed, without styles.
    pub rows: Vec<String>,
    /// The same rows without what is drawn faint: hints and placeholders are, what a person typed is not.
    pub solid: Vec<String>,
    /// The pane's title.
    pub title: String,
    /// Has the pane's process ended?
    pub dead: bool,
    /// When it was captured.
    pub at: Timestamp,
}

/// How a character is drawn, as far as it matters.
#[derive(Clone, Copy, Default)]
struct Pen {
    faint: bool,
    inverse: bool,
}

impl ScreenView {
    /// Reads what `capture-pane -p -e` printed. Text captured without `-e` works too; then placeholders
    /// look like drafts.
    pub fn parse(captured: &str, title: &str, dead: bool, at: Timestamp) -> Self {
        let mut pen = Pen::default();
        let (rows, solid) = captured
            .lines()
            .map(|line| read_row(line, &mut pen))
            .unzip();
        Self {
            rows,
            solid,
            title: title.to_owned(),
            dead,
            at,
        }
    }

    /// The visible rows as one text, for an expression.
    pub fn text(&self) -> String {
        self.rows.join("\n")
    }

    /// The rows of an input line: those between the lowest two rows that begin with `rule`, when the
    /// first of them begins with one of `prompts`.
    pub fn input_line(&self, rule: &str, prompts: &[char]) -> Option<Range<usize>> {
        let is_rule = |row: &String| row.starts_with(rule);
        let bottom = self.rows.iter().rposition(is_rule)?;
        let top = self.rows[..bottom].iter().rposition(is_rule)?;
        let first = self.rows.get(top + 1)?;
        first.starts_with(prompts).then_some(top + 1..bottom)
    }

    /// The rows of an input line that nothing is drawn around: from the lowest row that begins with one
    /// of `prompts` to the empty row above the lines at the bottom. An earlier prompt in the conversation
    /// begins with a faint one. The choices of a dialog begin with such a sign and a number; what somebody
    /// typed that looks so is not told apart from them.
    pub fn open_input_line(&self, prompts: &[char]) -> Option<Range<usize>> {
        let top = self
            .solid
            .iter()
            .rposition(|row| row.starts_with(prompts))?;
        let text = self.rows[top].trim_start_matches(prompts).trim_start();
        let number = text.split_once(". ").map_or("", |(number, _)| number);
        if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let last = self.rows.iter().rposition(|row| !row.is_empty())?;
        let bottom = self.rows[..last].iter().rposition(String::is_empty)?;
        // Empty rows below its last words are not its own; those between its words are.
        let end = self.rows[..bottom]
            .iter()
            .rposition(|row| !row.is_empty())?
            + 1;
        (top < end).then_some(top..end)
    }
}

/// One row as plain text, and without its faint characters. A program that draws its own cursor over a
/// placeholder inverts the first character of it; that one counts as faint too.
fn read_row(line: &str, pen: &mut Pen) -> (String, String) {
    let mut cells: Vec<(char, Pen)> = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            if !c.is_control() {
                cells.push((c, *pen));
            }
            continue;
        }
        if chars.next_if_eq(&'[').is_none() {
            continue;
        }
        let mut parameters = String::new();
        for c in chars.by_ref() {
            if ('\u{40}'..='\u{7e}').contains(&c) {
                if c == 'm' {
                    apply_style(&parameters, pen);
                }
                break;
            }
            parameters.push(c);
        }
    }
    let plain: String = cells.iter().map(|(c, _)| *c).collect();
    let hidden = |at: usize| {
        let (_, pen) = cells[at];
        pen.faint || (pen.inverse && cells.get(at + 1).is_some_and(|(_, next)| next.faint))
    };
    let solid: String = cells
        .iter()
        .enumerate()
        .map(|(at, (c, _))| if hidden(at) { ' ' } else { *c })
        .collect();
    (plain.trim_end().to_owned(), solid.trim_end().to_owned())
}

/// Applies a style sequence, stepping over the numbers of a colour.
fn apply_style(parameters: &str, pen: &mut Pen) {
    let mut codes = parameters.split(';').map(|p| {
        let first = p.split(':').next().unwrap_or_default();
        (first.parse::<u16>().unwrap_or(0), p.contains(':'))
    });
    while let Some((code, has_parts)) = codes.next() {
        match code {
            0 => *pen = Pen::default(),
            2 => pen.faint = true,
            22 => pen.faint = false,
            7 => pen.inverse = true,
            27 => pen.inverse = false,
            38 | 48 | 58 if !has_parts => match codes.next() {
                Some((5, _)) => {
                    codes.next();
                }
                Some((2, _)) => {
                    codes.nth(2);
                }
                Some(_) | None => {}
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
