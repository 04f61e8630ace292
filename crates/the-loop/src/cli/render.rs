//! Tables and other shapes of text.

use the_loop_core::redact::visible;
use the_loop_core::time::{Timestamp, age};

/// Columns two spaces apart, each as wide as its widest cell; the last one is not padded. Foreign text
/// in the cells is made visible here (SE-14).
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let cells = |row: &[String]| -> Vec<String> { row.iter().map(|cell| visible(cell)).collect() };
    let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
    let mut widths: Vec<usize> = heads.iter().map(|head| head.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    std::iter::once(&heads)
        .chain(&rows)
        .map(|row| line(row, &widths))
        .collect()
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut out = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if at > 0 {
            out.push_str("  ");
        }
        out.push_str(cell);
        let missing = width.saturating_sub(cell.chars().count());
        out.extend(std::iter::repeat_n(' ', missing));
    }
    out.trim_end().to_owned()
}

/// A text padded to a width, and never less than one space after it.
pub fn padded(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count()).max(1);
    format!("{text}{}", " ".repeat(missing))
}

/// `-` for nothing.
pub fn or_dash(text: impl Into<String>) -> String {
    let text = text.into();
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

/// How long ago, as people read it.
pub fn ago(now: Timestamp, at: Timestamp) -> String {
    age(now.since(at))
}

/// Foreign text line by line, with everything that could steer a terminal shown as an escape.
pub fn visible_lines(text: &str) -> Vec<String> {
    text.split('\n')
        .map(|line| visible(line.strip_suffix('\r').unwrap_or(line)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se14_cells_show_control_characters_as_escapes() {
        let rows = vec![vec!["a\u{1b}[31m".to_owned(), "x".to_owned()]];
        let lines = table(&["Ref", "State"], &rows);
        assert!(lines[1].starts_with("a\\"), "{lines:?}");
        assert!(!lines[1].contains('\u{1b}'));
        assert!(lines[0].starts_with("Ref"));
    }

    #[test]
    fn se29_columns_are_two_spaces_apart() {
        let rows = vec![vec!["abcd".to_owned(), "e".to_owned()]];
        assert_eq!(table(&["A", "B"], &rows), ["A     B", "abcd  e"]);
    }
}
