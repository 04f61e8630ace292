//! May this actor cause this (IN-22, IN-23), and what does an authorised delivery do by the state of
//! its item (IN-27)?
//!
//! Comments the-loop wrote are known by their mark or their recorded id. What the account behind the
//! credential does (IN-24, IN-25) is judged where the item's session is known.

mod admit;
#[cfg(test)]
mod tests;

pub use admit::{Admission, Asks, admit, end_of};

use crate::delivery::{Actor, Delivery, Effect, Ingress, Text};
use crate::event::RoutingDropReason;
use crate::prompt::comment::AGENT_COMMENT_MARK;
use crate::route;

/// The configured list `routing.authorizedUsers` (IN-23). An empty one admits nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizedUsers(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Login(String),
    Id(u64),
}

impl AuthorizedUsers {
    /// Reads the entries: logins, `name[bot]`, `id:NUMBER`. An `id:` entry without a number admits nobody.
    pub fn new<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Self {
        let read = |entry: S| {
            let entry = entry.as_ref().trim();
            match entry.strip_prefix("id:") {
                Some(id) => id.trim().parse().ok().map(Entry::Id),
                None if entry.is_empty() => None,
                None => Some(Entry::Login(entry.to_owned())),
            }
        };
        Self(entries.into_iter().filter_map(read).collect())
    }

    /// Is this actor on the list? A bot passes only by its id or by an entry that ends in `[bot]`.
    pub fn admits(&self, actor: &Actor) -> bool {
        let is_bot = actor.bot || is_bot_login(&actor.login);
        self.0.iter().any(|entry| match entry {
            Entry::Id(id) => actor.id == Some(*id),
            Entry::Login(login) => {
                login.eq_ignore_ascii_case(&actor.login) && is_bot == is_bot_login(login)
            }
        })
    }

    /// The names a prompt may show: logins as configured, ids as `id:NUMBER` (IN-60).
    pub fn names(&self) -> Vec<String> {
        let name = |entry: &Entry| match entry {
            Entry::Login(login) => login.clone(),
            Entry::Id(id) => format!("id:{id}"),
        };
        self.0.iter().map(name).collect()
    }
}

fn is_bot_login(login: &str) -> bool {
    const SUFFIX: &[u8] = b"[bot]";
    let bytes = login.as_bytes();
    bytes.len() >= SUFFIX.len() && bytes[bytes.len() - SUFFIX.len()..].eq_ignore_ascii_case(SUFFIX)
}

/// What the guards look at.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The delivery to judge.
    pub delivery: &'a Delivery,
    /// The configured list, as it is now (IN-66).
    pub authorized: &'a AuthorizedUsers,
    /// The comment's id is recorded as one the-loop wrote.
    pub own_comment: bool,
    /// `state.inboxRetentionDays`.
    pub retention_days: u32,
}

/// The guards' answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Judgement {
    /// It may go on.
    Allowed,
    /// It may be one that was forgotten by pruning: `dispatch.dropped`, `already-processed` (IN-11).
    TooOld,
    /// It ends here: `routing.dropped`.
    Refused(RoutingDropReason),
}

/// Applies the guards in their order; the first that refuses decides (IN-22).
pub fn judge(facts: &Facts<'_>) -> Judgement {
    let delivery = facts.delivery;
    if route::is_too_old(delivery, facts.retention_days) {
        return Judgement::TooOld;
    }
    let text = match &delivery.effect {
        Effect::Text(text) => Some(text),
        // What a machine found is nobody's word, and a close carries none.
        Effect::Close { .. } | Effect::Check(_) => return Judgement::Allowed,
        Effect::Presence | Effect::Opened | Effect::Notice { .. } | Effect::Start { .. } => None,
    };
    if text.is_some_and(|text| facts.own_comment || text.body.contains(AGENT_COMMENT_MARK)) {
        return Judgement::Refused(RoutingDropReason::SelfAuthored);
    }
    let Some(actor) = &delivery.actor else {
        return Judgement::Refused(RoutingDropReason::NoActor);
    };
    if speaks_for_operator(delivery.ingress) {
        return Judgement::Allowed;
    }
    judge_stranger(actor, text, facts.authorized)
}

/// Was whoever sent this proved to be the operator before it was accepted (IN-55, DI-6)? An actor of
/// the outside world is judged by the list.
fn speaks_for_operator(ingress: Ingress) -> bool {
    match ingress {
        Ingress::Tracker | Ingress::Cli | Ingress::Api => true,
        Ingress::Webhook | Ingress::Poll | Ingress::Backfill | Ingress::Channel => false,
    }
}

fn judge_stranger(actor: &Actor, text: Option<&Text>, list: &AuthorizedUsers) -> Judgement {
    if let Some(text) = text {
        let Some(author) = &text.author else {
            return Judgement::Refused(RoutingDropReason::NoActor);
        };
        if !is_same(actor, author) {
            return Judgement::Refused(RoutingDropReason::AuthorMismatch);
        }
    }
    if list.admits(actor) {
        Judgement::Allowed
    } else {
        Judgement::Refused(RoutingDropReason::UnauthorizedActor)
    }
}

/// Are these the same account? By id where both have one, else by login.
pub fn is_same(a: &Actor, b: &Actor) -> bool {
    match (a.id, b.id) {
        (Some(a), Some(b)) => a == b,
        (Some(_), None) | (None, Some(_) | None) => a.login.eq_ignore_ascii_case(&b.login),
    }
}
