//! Which work items a delivery is for (IN-13, IN-14, IN-17, IN-20).
//!
//! An issue names itself. A pull request names the items whose sessions know it, those that its branch and
//! its body name, where its author may say so, and itself. Whatever is told goes to every session among
//! them; what may start something has one target.

use std::time::Duration;

mod questions;

pub use questions::{doubtful_items, job_wanted, unknown_pulls};

use crate::ci::CheckResult;
use crate::delivery::{Actor, Delivery, Effect, PullFacts};
use crate::guard::{AuthorizedUsers, is_same};
use crate::ids::{DEFAULT_HOST, ItemKey, WorkItemRef};
use crate::link::{LinkSource, branch_issue};

/// A session that lives, as far as it can own a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its item.
    pub item: WorkItemRef,
    /// The pull requests that its record lists.
    pub pulls: Vec<ItemKey>,
    /// The branch of its checkout.
    pub branch: Option<String>,
}

/// What a delivery is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// It.
    pub delivery: &'a Delivery,
    /// Every session that lives.
    pub owners: &'a [Owner],
    /// Those who may say which item a pull request of theirs is for (IN-17).
    pub authorized: &'a AuthorizedUsers,
    /// The account behind the credential of the delivery's host, which may say so too.
    pub own_account: Option<&'a Actor>,
    /// Its words are a command.
    pub is_command: bool,
}

/// An item that a delivery names, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The item.
    pub item: WorkItemRef,
    /// All reasons, in their order.
    pub sources: Vec<LinkSource>,
}

/// Where a delivery goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routed {
    /// The items it goes to, each once; the first one is the one to start a session for.
    pub targets: Vec<WorkItemRef>,
    /// The session to which its pull request belongs: the first one that lives in the order of names.
    pub owner: Option<WorkItemRef>,
    /// Items that only a stranger's words name; they hear nothing of it (`routing.linkage_dropped`).
    pub untrusted: Vec<Named>,
    /// Items that only a branch names and that are not there (`routing.linkage_dropped`, IN-19).
    pub missing: Vec<Named>,
    /// A pull request of which only the number is known, and that belongs to no session (IN-18).
    pub is_incomplete: bool,
}

/// Names the items of a delivery and chooses among them. Total, and never without a target.
pub fn route(facts: &Facts<'_>) -> Routed {
    let delivery = facts.delivery;
    let mut routed = named(facts);
    let first = routed.targets.first().cloned();
    let owners: Vec<WorkItemRef> = routed
        .targets
        .iter()
        .filter(|item| facts.lives(item))
        .cloned()
        .collect();
    routed.owner = owners.first().cloned();
    routed.is_incomplete = !unknown_pulls(facts).is_empty();
    routed.targets = match &delivery.effect {
        // What ended is that ticket and no other one (IN-26).
        Effect::Close { .. } => vec![delivery.item.clone()],
        Effect::Text(_) | Effect::Notice { .. } | Effect::Check(_) | Effect::Opened
            if !owners.is_empty() && !facts.is_command =>
        {
            owners
        }
        Effect::Text(_)
        | Effect::Notice { .. }
        | Effect::Check(_)
        | Effect::Opened
        | Effect::Presence
        | Effect::Start { .. } => routed.owner.iter().chain(&first).take(1).cloned().collect(),
    };
    routed
}

/// All items that a delivery names, each once, as targets; and those that do not count.
fn named(facts: &Facts<'_>) -> Routed {
    let (named, untrusted) = grouped(facts);
    let answers = facts.delivery.asked.as_ref();
    let is_missing = |named: &Named| {
        is_guess(named) && answers.is_some_and(|answers| answers.is_missing(&named.item))
    };
    let (missing, there): (Vec<_>, Vec<_>) = named.into_iter().partition(is_missing);
    Routed {
        targets: there.into_iter().map(|named| named.item).collect(),
        untrusted,
        missing,
        ..Routed::default()
    }
}

/// Each item once, with all that speaks for it; and those that only a stranger's words speak for.
fn grouped(facts: &Facts<'_>) -> (Vec<Named>, Vec<Named>) {
    let (mut named, mut untrusted): (Vec<Named>, Vec<Named>) = Default::default();
    for Name {
        item,
        source,
        counts,
    } in names(facts)
    {
        let list = if counts { &mut named } else { &mut untrusted };
        match list.iter_mut().find(|known| known.item.key() == item.key()) {
            Some(known) => known.sources.push(source),
            None => list.push(Named {
                item,
                sources: vec![source],
            }),
        }
    }
    let is_named = |doubted: &Named| named.iter().any(|n| n.item.key() == doubted.item.key());
    untrusted.retain(|doubted| !is_named(doubted));
    (named, untrusted)
}

/// Is the name of a branch all that speaks for an item (IN-19)?
fn is_guess(named: &Named) -> bool {
    named
        .sources
        .iter()
        .all(|source| *source == LinkSource::Branch)
}

/// An item, as it is named once.
struct Name {
    item: WorkItemRef,
    source: LinkSource,
    /// Whoever says so may say so.
    counts: bool,
}

impl Facts<'_> {
    fn lives(&self, item: &WorkItemRef) -> bool {
        self.owners
            .iter()
            .any(|owner| owner.item.key() == item.key())
    }

    /// May the author of a pull request say which items it is for (IN-17)?
    fn trusts(&self, author: Option<&Actor>) -> bool {
        author.is_some_and(|author| {
            self.authorized.admits(author)
                || self.own_account.is_some_and(|own| is_same(own, author))
        })
    }
}

/// The items in their order, with repeats (IN-14, IN-31).
fn names(facts: &Facts<'_>) -> Vec<Name> {
    let (delivery, item) = (facts.delivery, &facts.delivery.item);
    if let Effect::Check(check) = &delivery.effect {
        return names_of_check(facts, check);
    }
    if delivery.pull.is_none() && !delivery.facts.is_pull_request {
        return vec![entity(item)];
    }
    let answered = delivery.asked.as_ref().and_then(|asked| asked.pull(item));
    let author = delivery.facts.author.as_ref();
    let author = author.or_else(|| answered.and_then(|seen| seen.author.as_ref()));
    names_of_pull(facts, item, delivery.pull_facts(), author)
}

/// A pull request names the sessions that know it, what its branch and its body say, and itself.
fn names_of_pull(
    facts: &Facts<'_>,
    item: &WorkItemRef,
    pull: Option<&PullFacts>,
    author: Option<&Actor>,
) -> Vec<Name> {
    let counts = facts.trusts(author);
    let mut names = recorded(facts, item, pull);
    // What the tracker says itself stands with the delivery, also where an answer tells the rest.
    let linked = facts
        .delivery
        .pull
        .iter()
        .filter(|_| facts.delivery.item == *item);
    let linked = linked.flat_map(|pull| pull.references.iter().cloned());
    let others = linked.filter(|named| named.key() != item.key());
    names.extend(others.map(|item| Name {
        item,
        source: LinkSource::ClosingReference,
        counts,
    }));
    if let Some(pull) = pull {
        let branch = pull.head_ref.as_deref().filter(|_| pull.is_own_branch);
        let of_branch = branch.and_then(|branch| of_branch(item, branch));
        let closed = pull.closes.iter().cloned();
        let said = of_branch
            .map(|item| (item, LinkSource::Branch))
            .into_iter()
            .chain(closed.map(|item| (item, LinkSource::Keyword)))
            .filter(|(named, _)| named.key() != item.key());
        names.extend(said.map(|(item, source)| Name {
            item,
            source,
            counts,
        }));
    }
    names.push(entity(item));
    names
}

/// A check speaks of its pull requests, and of the item that the branch of its commit names. Who pushes to
/// a branch of the repository may write there, so that its name is nobody's mere word.
fn names_of_check(facts: &Facts<'_>, check: &CheckResult) -> Vec<Name> {
    let head = head_of(check);
    let mut names = Vec::new();
    for pull in &check.pulls {
        let answered = facts.delivery.asked.as_ref();
        if let Some(seen) = answered.and_then(|answers| answers.pull(pull)) {
            let author = seen.author.as_ref();
            names.extend(names_of_pull(facts, pull, Some(&seen.facts), author));
        } else {
            names.extend(recorded(facts, pull, Some(&head)));
            names.push(entity(pull));
        }
    }
    let item = &facts.delivery.item;
    let branch = check.head_branch.as_deref();
    names.extend(recorded(facts, item, Some(&head)));
    let of_branch = branch.and_then(|branch| of_branch(item, branch));
    names.extend(of_branch.map(|item| Name {
        item,
        source: LinkSource::Branch,
        counts: true,
    }));
    names
}

/// The branch that was checked.
fn head_of(check: &CheckResult) -> PullFacts {
    PullFacts {
        head_ref: check.head_branch.clone(),
        is_own_branch: true,
        ..PullFacts::default()
    }
}

fn entity(item: &WorkItemRef) -> Name {
    Name {
        item: item.clone(),
        source: LinkSource::Entity,
        counts: true,
    }
}

/// The sessions that list a pull request or have its branch.
fn recorded(facts: &Facts<'_>, item: &WorkItemRef, pull: Option<&PullFacts>) -> Vec<Name> {
    let knows = |owner: &&Owner| {
        owner.pulls.contains(&item.key()) || pull.is_some_and(|p| has_branch(owner, item, p))
    };
    let known = facts.owners.iter().filter(knows);
    known
        .map(|owner| Name {
            item: owner.item.clone(),
            source: LinkSource::Recorded,
            counts: true,
        })
        .collect()
}

/// The item of the same repository that a branch names.
fn of_branch(item: &WorkItemRef, branch: &str) -> Option<WorkItemRef> {
    let number = branch_issue(branch)?;
    WorkItemRef::new(item.provider(), item.repo().clone(), number).ok()
}

fn has_branch(owner: &Owner, item: &WorkItemRef, pull: &PullFacts) -> bool {
    pull.is_own_branch
        && pull.head_ref.is_some()
        && pull.head_ref == owner.branch
        && owner.item.repo().key() == item.repo().key()
}

/// May anything be done for this item? The embedded tracker's are ours; others need a known host.
pub fn is_known_item<'a>(item: &WorkItemRef, hosts: impl IntoIterator<Item = &'a str>) -> bool {
    item.is_local() || is_known_host(&item.repo().host, hosts)
}

/// `github.com` and the configured hosts are known; any other would be an address that a payload
/// chose (IN-13).
pub fn is_known_host<'a>(host: &str, hosts: impl IntoIterator<Item = &'a str>) -> bool {
    host.eq_ignore_ascii_case(DEFAULT_HOST)
        || hosts
            .into_iter()
            .any(|known| known.eq_ignore_ascii_case(host))
}

/// Is the arming label among these? Trackers compare label names without case, so we do.
pub fn has_label<S: AsRef<str>>(labels: &[S], wanted: &str) -> bool {
    let wanted = wanted.trim().to_lowercase();
    !wanted.is_empty()
        && labels
            .iter()
            .any(|l| l.as_ref().trim().to_lowercase() == wanted)
}

/// Begins a label that chooses the harness of an item.
pub const HARNESS_LABEL: &str = "harness:";

/// The harness that the labels of an item choose, in small letters: `harness:NAME`, in any case and
/// with blanks around the name. `None` without such a label; the error holds the names when there are
/// several.
pub fn harness_label<S: AsRef<str>>(labels: &[S]) -> Result<Option<String>, Vec<String>> {
    let mut names: Vec<String> = labels
        .iter()
        .map(|label| label.as_ref().trim().to_lowercase())
        .filter_map(|label| Some(label.strip_prefix(HARNESS_LABEL)?.trim().to_owned()))
        .filter(|name| !name.is_empty())
        .collect();
    names.sort();
    names.dedup();
    match names.len() {
        0 | 1 => Ok(names.pop()),
        _ => Err(names),
    }
}

/// Was this comment too old when it came (IN-11)? Rows are forgotten after `retention_days`; a
/// comment that may have had one, less a day for clocks, is never new. Counted from the moment it
/// was accepted, so that waiting in the inbox ages nothing.
pub fn is_too_old(delivery: &Delivery, retention_days: u32) -> bool {
    let Effect::Text(text) = &delivery.effect else {
        return false;
    };
    let limit = Duration::from_secs(u64::from(retention_days.saturating_sub(1)) * 86_400);
    text.created_at
        .is_some_and(|at| delivery.received_at.since(at) > limit)
}

#[cfg(test)]
mod tests;
