//! Taking out of text what a terminal or a reader would not show as text (DI-26, IN-61).

use std::borrow::Cow;

/// CRLF and CR as LF.
pub fn lines(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Soft hyphen, zero-width and bidirectional controls, byte-order mark, tag characters (IN-61).
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// The text as it may be pasted (DI-26): no control or escape sequence, no invisible character, no
/// tab, and no backslash at its very end, where it would swallow the submit. Applying it twice changes
/// nothing more.
///
/// Whether the *beginning* is safe is the first line's business: every text that is sent has one.
pub fn for_paste(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let text = lines(text);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' => out.push(c),
            '\t' => out.push_str("    "),
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_csi(&mut rest),
            // The Arabic letter mark steers direction too; DI-26 names the kind, not the characters.
            c if c.is_control() || is_hidden(c) || c == '\u{61c}' => {}
            c => out.push(c),
        }
    }
    if out.ends_with('\\') {
        out.push(' ');
    }
    out
}

/// May this be pasted as it is (DI-25)? An `@` would make an agent read a file.
pub fn is_clean(text: &str) -> bool {
    !text.contains('@') && for_paste(text) == text
}

/// Passes over what follows an ESC. Of the sequences that carry a text (titles, links) only the
/// introducer goes: an unfinished one must not take the rest of the prompt along.
fn skip_escape(rest: &mut std::str::Chars<'_>) {
    match rest.clone().next() {
        Some('[') => {
            rest.next();
            skip_csi(rest);
        }
        Some(' '..='/') => {
            skip_while(rest, |c| matches!(c, ' '..='/'));
            skip_one(rest, |c| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => {
            rest.next();
        }
        Some(_) | None => {}
    }
}

/// Parameters, intermediates and one final character of a control sequence.
fn skip_csi(rest: &mut std::str::Chars<'_>) {
    skip_while(rest, |c| matches!(c, '0'..='?'));
    skip_while(rest, |c| matches!(c, ' '..='/'));
    skip_one(rest, |c| matches!(c, '@'..='~'));
}

fn skip_while(rest: &mut std::str::Chars<'_>, wanted: impl Fn(char) -> bool) {
    while rest.clone().next().is_some_and(&wanted) {
        rest.next();
    }
}

fn skip_one(rest: &mut std::str::Chars<'_>, wanted: impl Fn(char) -> bool) {
    if rest.clone().next().is_some_and(wanted) {
        rest.next();
    }
}

/// What people who look at the ticket can see of a text (IN-61), and whether anything went. Line ends
/// become LF, which is no loss.
pub fn strip_hidden(text: &str) -> (String, bool) {
    let text = lines(text);
    let shown: String = text
        .chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || is_hidden(*c)))
        .collect();
    let visible = without_comments(&shown);
    let went = visible.len() != text.len();
    (visible.into_owned(), went)
}

/// The text without HTML comments. One that is never closed hides the rest when it begins its line, as
/// Markdown has it, and is plain text elsewhere.
fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("<!--") {
        return Cow::Borrowed(text);
    }
    let last_end = text.rfind("-->").unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(start) = text[at..].find("<!--").map(|found| at + found) {
        out.push_str(&text[at..start]);
        let body = start + 4;
        at = if text[body..].starts_with('>') {
            body + 1
        } else if text[body..].starts_with("->") {
            body + 2
        } else if body <= last_end {
            // There is an end behind this point, so every search succeeds and is paid for once.
            text[body..]
                .find("-->")
                .map_or(text.len(), |found| body + found + 3)
        } else if begins_its_line(&text[..start]) {
            text.len()
        } else {
            out.push_str("<!--");
            body
        };
    }
    out.push_str(&text[at..]);
    Cow::Owned(out)
}

/// Does nothing but indentation, quote and list marks stand between the last line feed and the end?
fn begins_its_line(before: &str) -> bool {
    before.chars().rev().take_while(|c| *c != '\n').all(|c| {
        matches!(
            c,
            ' ' | '\t' | '>' | '-' | '*' | '+' | '.' | ')' | '0'..='9'
        )
    })
}
