//! The keyword grammar (IN-35): which lines of a comment are command lines.

use super::{Command, Keywords, Phrase, Spoken};
use crate::prompt::lines;

/// List items that may be open at once. Deeper ones are not told apart from indented code.
const LIST_DEPTH_MAX: usize = 32;

/// Space, tab and no-break space: what phrases are separated and trimmed by.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{a0}')
}

/// A phrase for comparison: ASCII lower case, each run of blanks one space, trimmed.
pub(super) fn fold(phrase: &str) -> String {
    phrase
        .split(is_blank)
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Reads one comment: the distinct commands of its command lines, in order.
pub(super) fn read(keywords: &Keywords, body: &str) -> Spoken {
    let mut found: Vec<Command> = Vec::new();
    for line in visible(&lines(body)).split('\n') {
        if let Some(command) = command_of(line, keywords)
            && !found.contains(&command)
        {
            found.push(command);
        }
    }
    match found[..] {
        [] => Spoken::Text,
        [command] => Spoken::Command(command),
        _ => Spoken::Ambiguous(found),
    }
}

/// The command of a line, when the whole line is one.
fn command_of(line: &str, keywords: &Keywords) -> Option<Command> {
    let line = line.trim_matches(is_blank);
    if line.is_empty() || line.starts_with('>') {
        return None;
    }
    keywords
        .phrases
        .iter()
        .find(|phrase| is_command_line(line, phrase))
        .map(|phrase| phrase.command)
}

fn is_command_line(line: &str, phrase: &Phrase) -> bool {
    let Some(rest) = after_phrase(line, &phrase.folded) else {
        return false;
    };
    let only_ends = rest.chars().all(|c| matches!(c, '.' | '!' | '…'));
    only_ends || (phrase.command.takes_text() && rest.starts_with(is_blank))
}

/// What follows the phrase at the beginning of a line. Compares without a copy of the line, which
/// may be a megabyte long.
fn after_phrase<'a>(line: &'a str, folded: &str) -> Option<&'a str> {
    let mut rest = line;
    for wanted in folded.chars() {
        if wanted == ' ' {
            let next = rest.trim_start_matches(is_blank);
            if next.len() == rest.len() {
                return None;
            }
            rest = next;
        } else {
            let c = rest
                .chars()
                .next()
                .filter(|c| c.eq_ignore_ascii_case(&wanted))?;
            rest = &rest[c.len_utf8()..];
        }
    }
    Some(rest)
}

/// What a part of the text that is not read began with.
#[derive(Clone, Copy)]
enum Open {
    Nothing,
    Comment,
    Fence(Fence),
}

/// An open fenced block.
#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    /// Marks that opened it; as many close it.
    run: usize,
    /// Column at which the block's container begins: 0, or the content of a list item.
    base: usize,
}

/// The text without its HTML comments and fenced blocks, line for line. Whichever opens first hides
/// the other; an unclosed one goes to the end.
pub(crate) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open = Open::Nothing;
    let mut lists = Lists::default();
    for line in text.split('\n') {
        open = match open {
            Open::Nothing => match lists.fence_opened_by(line) {
                Some(fence) => Open::Fence(fence),
                None => copy_outside_comments(line, false, &mut out),
            },
            Open::Comment => copy_outside_comments(line, true, &mut out),
            Open::Fence(fence) if fence.closed_by(line) => Open::Nothing,
            Open::Fence(fence) => Open::Fence(fence),
        };
        out.push('\n');
    }
    out
}

/// Copies what of a line stands outside HTML comments, a blank in place of each comment.
fn copy_outside_comments(line: &str, mut inside: bool, out: &mut String) -> Open {
    let mut rest = line;
    loop {
        if inside {
            let Some(end) = rest.find("-->") else {
                return Open::Comment;
            };
            rest = &rest[end + 3..];
            inside = false;
        } else {
            let Some(start) = rest.find("<!--") else {
                out.push_str(rest);
                return Open::Nothing;
            };
            out.push_str(&rest[..start]);
            out.push(' ');
            rest = &rest[start + 4..];
            // Browsers and CommonMark take `<!-->` and `<!--->` as whole comments.
            let whole = rest.strip_prefix('>').or_else(|| rest.strip_prefix("->"));
            inside = whole.is_none();
            rest = whole.unwrap_or(rest);
        }
    }
}

impl Fence {
    /// Does this line end the block? A line left of the block's container may too, so that a fence
    /// in a list is never longer than it looks.
    fn closed_by(self, line: &str) -> bool {
        let (column, rest) = indentation(line, 0);
        let run = rest.chars().take_while(|c| *c == self.mark).count();
        column <= self.base + 3
            && run >= self.run
            && rest[run..].chars().all(|c| matches!(c, ' ' | '\t'))
    }

    /// The block that a line opens whose text begins at this column of its container.
    fn opened_by(text: &str, base: usize) -> Option<Self> {
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let run = text.chars().take_while(|c| *c == mark).count();
        let is_code_span = mark == '`' && text[run..].contains('`');
        (run >= 3 && !is_code_span).then_some(Self { mark, run, base })
    }
}

/// The columns at which the contents of the open list items begin, innermost last. A fence may stand
/// deeper than three columns when it belongs to such an item.
#[derive(Default)]
struct Lists(Vec<usize>);

impl Lists {
    fn fence_opened_by(&mut self, line: &str) -> Option<Fence> {
        let (mut column, mut rest) = indentation(line, 0);
        if rest.is_empty() {
            return None;
        }
        while self.0.last().is_some_and(|content| column < *content) {
            self.0.pop();
        }
        loop {
            let base = self.0.last().copied().unwrap_or(0);
            if column >= base + 4 {
                return None;
            }
            let Some(width) = list_marker(rest).filter(|_| self.0.len() < LIST_DEPTH_MAX) else {
                return Fence::opened_by(rest, base);
            };
            let after = column + width;
            let (content, text) = indentation(&rest[width..], after);
            if text.is_empty() {
                self.0.push(after + 1);
                return None;
            }
            // Five blanks and more after the marker: the item begins with indented code.
            let is_code = content > after + 4;
            self.0.push(if is_code { after + 1 } else { content });
            (column, rest) = (content, text);
        }
    }
}

/// The column of the first character that is neither space nor tab, and the text from there.
fn indentation(text: &str, mut column: usize) -> (usize, &str) {
    for (at, c) in text.char_indices() {
        match c {
            ' ' => column += 1,
            '\t' => column += 4 - column % 4,
            _ => return (column, &text[at..]),
        }
    }
    (column, "")
}

/// Characters of the list marker that the text begins with, when one does.
fn list_marker(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let width = match (digits, text.as_bytes().get(digits)?) {
        (0, b'-' | b'*' | b'+') => 1,
        (1..=9, b'.' | b')') => digits + 1,
        _ => return None,
    };
    let next = text.as_bytes().get(width);
    next.is_none_or(|b| matches!(b, b' ' | b'\t'))
        .then_some(width)
}
