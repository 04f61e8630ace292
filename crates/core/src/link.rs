//! Which work items a pull request says it is for (IN-14 to IN-17): by its branch and by the closing
//! keywords in its body.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::control::visible;
use crate::ids::{RepoRef, WorkItemRef};

/// Work items that the keywords of one body may name; further ones are not read.
pub const KEYWORD_LINKS_MAX: usize = 20;
/// Characters of a number in a branch name or after a keyword.
const DIGITS_MAX: usize = 18;
/// The words before which GitHub closes an issue (IN-16).
const KEYWORDS: [&str; 9] = [
    "close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved",
];

/// Why a delivery is for an item (IN-14). The order is that in which items are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkSource {
    /// A live record lists the pull request, or has its branch.
    Recorded,
    /// The tracker's own link.
    ClosingReference,
    /// The name of its branch.
    Branch,
    /// A closing keyword in its body.
    Keyword,
    /// The item itself.
    Entity,
}

impl LinkSource {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::ClosingReference => "closing-reference",
            Self::Branch => "branch",
            Self::Keyword => "keyword",
            Self::Entity => "entity",
        }
    }
}

/// The number in a branch name (IN-15): `issue-7` or `issue/7` as a word of its own, in any case.
pub fn branch_issue(branch: &str) -> Option<u64> {
    const WORD: &[u8] = b"issue";
    let bytes = branch.as_bytes();
    let mut from = 0;
    while from + WORD.len() < bytes.len() {
        let at = from;
        from += 1;
        let begins = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let rest = &bytes[at..];
        if !begins || !rest[..WORD.len()].eq_ignore_ascii_case(WORD) {
            continue;
        }
        let Some(b'-' | b'/') = rest.get(WORD.len()) else {
            continue;
        };
        let rest = &branch[at + WORD.len() + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if (1..=DIGITS_MAX).contains(&digits)
            && let Some(number) = rest[..digits].parse().ok().filter(|n| *n > 0)
        {
            return Some(number);
        }
    }
    None
}

/// The items that a pull request's body closes (IN-16), left to right and each once, at most
/// [`KEYWORD_LINKS_MAX`]. `repo` is the repository of the event; what names another host is none.
pub fn closing_links(body: &str, repo: &RepoRef) -> Vec<WorkItemRef> {
    let text = without_code_spans(&visible(&crate::prompt::lines(body)));
    let mut links: Vec<WorkItemRef> = Vec::new();
    let mut word_began = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if is_word(c) {
            if word_began.is_none() {
                word_began = Some(at);
            }
        } else if let Some(began) = word_began.take() {
            let is_keyword = KEYWORDS
                .iter()
                .any(|k| k.eq_ignore_ascii_case(&text[began..at]));
            if is_keyword
                && let Some(item) = target(&text[at..], repo)
                && !links.iter().any(|known| known.key() == item.key())
            {
                links.push(item);
                if links.len() == KEYWORD_LINKS_MAX {
                    break;
                }
            }
        }
    }
    links
}

/// What belongs to one word with a keyword: `encloses`, `pre-fix` and `_close` are none.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// The item named after a keyword: an optional colon, blanks, then one of three ways to name it.
fn target(rest: &str, repo: &RepoRef) -> Option<WorkItemRef> {
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let named = rest.trim_start_matches([' ', '\t', '\u{a0}']);
    if named.len() == rest.len() {
        return None;
    }
    let url = format!("https://{}/", repo.host);
    if has_prefix(named, &url) {
        let (owner, rest) = named[url.len()..].split_once('/')?;
        let (name, rest) = rest.split_once('/')?;
        let number = number(rest.strip_prefix("issues/")?)?;
        return item(&RepoRef::new(&repo.host, owner, name).ok()?, number);
    }
    if has_prefix(named, "gh-") {
        return item(repo, number(&named[3..])?);
    }
    let (before, after) = named.split_once('#')?;
    let number = number(after)?;
    if before.is_empty() {
        return item(repo, number);
    }
    let (owner, name) = before.split_once('/')?;
    item(&RepoRef::new(&repo.host, owner, name).ok()?, number)
}

fn has_prefix(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
}

fn item(repo: &RepoRef, number: u64) -> Option<WorkItemRef> {
    WorkItemRef::new(crate::ids::GITHUB_PROVIDER, repo.clone(), number).ok()
}

/// A number that ends where its digits end.
fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let ends = text[digits..].chars().next().is_none_or(|c| !is_word(c));
    ((1..=DIGITS_MAX).contains(&digits) && ends)
        .then(|| text[..digits].parse().ok())
        .flatten()
}

/// The text with a blank in place of each code span: as many back-ticks as open it close it.
fn without_code_spans(text: &str) -> String {
    let runs = runs(text);
    // For each length, where its runs are, the last one first.
    let mut later: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, (_, len)) in runs.iter().enumerate().rev() {
        later.entry(*len).or_default().push(index);
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut index = 0;
    while let Some((at, len)) = runs.get(index).copied() {
        let same = later.entry(len).or_default();
        while same.last().is_some_and(|i| *i <= index) {
            same.pop();
        }
        let Some(close) = same.last().copied() else {
            index += 1;
            continue;
        };
        out.push_str(&text[copied..at]);
        out.push(' ');
        copied = runs[close].0 + len;
        index = close + 1;
    }
    out.push_str(&text[copied..]);
    out
}

/// Where back-ticks begin, and how many.
fn runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices('`') {
        match runs.last_mut() {
            Some((began, len)) if *began + *len == at => *len += 1,
            Some(_) | None => runs.push((at, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests;
