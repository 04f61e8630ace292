//! What a cycle of the poller decides (IN-41, IN-44 to IN-46): how far a list was read, which words of a
//! thread that is seen for the first time count, and whether an item should have a session.

use std::time::Duration;

use serde_json::Value;

use crate::control::{Keywords, Spoken};
use crate::delivery::Actor;
use crate::guard::AuthorizedUsers;
use crate::prompt::comment::AGENT_COMMENT_MARK;
use crate::record::{ControlCommand, Map};
use crate::time::Timestamp;

/// How much of what was read is read again: clocks and replicas of a tracker do not agree to the second.
pub const OVERLAP: Duration = Duration::from_mins(2);
/// Ids of words that an item's ledger keeps; the oldest goes (`poll.seenComments`).
pub const SEEN_MAX: usize = 2_000;
/// Section of the portable record that is an item's ledger.
pub const LEDGER: &str = "poll";
/// Where it keeps them.
pub const SEEN: &str = "seenComments";

/// From when a list is read next, and never earlier than before: the newest change that it showed, or the
/// overlap before its host answered, whichever is earlier. So the address of a list in which nothing happens
/// stands still, at its newest row and not at everything that came within the overlap before that.
pub fn cursor(
    before: Timestamp,
    newest: Option<Timestamp>,
    answered_at: Option<Timestamp>,
) -> Timestamp {
    let Some(newest) = newest else { return before };
    let settled = answered_at.map_or(newest, |at| at.min(newest.plus(OVERLAP)));
    newest.min(settled.minus(OVERLAP)).max(before)
}

/// The ledger of an item (`poll`, state page, section 6) with these words among those that were seen; `None`:
/// they were. The oldest go.
pub fn with_seen(ledger: &Map, id: &str) -> Option<Map> {
    let mut seen = match ledger.get(SEEN) {
        Some(Value::Array(seen)) => seen.clone(),
        Some(_) | None => Vec::new(),
    };
    if seen.iter().any(|known| known == id) {
        return None;
    }
    seen.push(id.into());
    let first = seen.len().saturating_sub(SEEN_MAX);
    let mut ledger = ledger.clone();
    ledger.insert(SEEN.to_owned(), Value::Array(seen.split_off(first)));
    Some(ledger)
}

/// Words of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Their opaque id.
    pub id: String,
    /// They, as they came.
    pub body: String,
    /// Who said them; a deleted account is nobody.
    pub author: Option<Actor>,
    /// When.
    pub at: Timestamp,
    /// They were changed since.
    pub is_edited: bool,
}

/// By what a thread that is seen for the first time is judged.
#[derive(Clone, Copy, Debug)]
pub struct FirstSight<'a> {
    /// The configured commands.
    pub keywords: &'a Keywords,
    /// Those who may give one.
    pub authorized: &'a AuthorizedUsers,
    /// Commands up to here are over: the item's last reset or close.
    pub over_until: Option<Timestamp>,
    /// A command is recorded for the item.
    pub has_control: bool,
    /// Since when a session lives for it.
    pub session_since: Option<Timestamp>,
}

/// A command, and nothing that speaks against obeying it.
pub fn is_command_of_ours(said: &Said, keywords: &Keywords, authorized: &AuthorizedUsers) -> bool {
    let is_marked = said.body.contains(AGENT_COMMENT_MARK);
    let author = said.author.as_ref();
    !is_marked
        && author.is_some_and(|author| authorized.admits(author))
        && matches!(keywords.read(&said.body), Spoken::Command(_))
}

/// The last command in a thread; what counts of a thread begins with it.
pub fn last_command(thread: &[Said], facts: &FirstSight<'_>) -> Option<usize> {
    thread
        .iter()
        .rposition(|said| is_command_of_ours(said, facts.keywords, facts.authorized))
}

/// Which words of a thread that is seen for the first time go into the inbox (IN-45): the last command,
/// where nothing is recorded yet and it is not over; and what was said since a session lives. Everything else
/// is history. In the order of the thread.
pub fn first_sight(thread: &[Said], facts: &FirstSight<'_>) -> Vec<usize> {
    let is_over = |said: &Said| facts.over_until.is_some_and(|until| said.at <= until);
    let command = last_command(thread, facts)
        .filter(|at| !facts.has_control && !thread[*at].is_edited && !is_over(&thread[*at]));
    let since_session =
        |said: &Said| facts.session_since.is_some_and(|since| said.at > since) && !is_over(said);
    let counts =
        |(at, said): (usize, &Said)| (command == Some(at) || since_session(said)).then_some(at);
    thread.iter().enumerate().filter_map(counts).collect()
}

/// What is known of an item whose session is missed.
#[derive(Clone, Copy, Debug)]
pub struct Presence<'a> {
    /// It is open, and has the arming label.
    pub is_armed_by_label: bool,
    /// A session lives that it belongs to.
    pub is_owned: bool,
    /// A start was given up for it.
    pub gave_up: bool,
    /// The last recorded command, and who gave it.
    pub recorded: Option<(ControlCommand, &'a str)>,
    /// A start has to be recorded first.
    pub start_required: bool,
    /// Who opened it.
    pub author: Option<&'a Actor>,
    /// Those who may have one started.
    pub authorized: &'a AuthorizedUsers,
}

/// Should an item have a session?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// No.
    Closed,
    /// Yes: this account stands behind it.
    Open(Actor),
    /// Yes, if whoever set the label may say so.
    AskWhoLabelled,
}

/// The spawn gate (IN-46).
pub fn gate(presence: &Presence<'_>) -> Gate {
    let held = |(command, _): (ControlCommand, &str)| !command.arms();
    let is_armed = presence.recorded.is_some_and(|known| !held(known));
    if !presence.is_armed_by_label
        || presence.is_owned
        || presence.gave_up
        || presence.recorded.is_some_and(held)
        || (presence.start_required && !is_armed)
    {
        return Gate::Closed;
    }
    let recorded = presence.recorded.map(|(_, login)| Actor {
        login: login.to_owned(),
        id: None,
        bot: false,
    });
    let known = [recorded.as_ref(), presence.author];
    let behind = known
        .into_iter()
        .flatten()
        .find(|actor| presence.authorized.admits(actor));
    behind.map_or(Gate::AskWhoLabelled, |actor| Gate::Open(actor.clone()))
}

#[cfg(test)]
mod tests;
