//! What has to be asked of the tracker before a delivery can be routed (IN-18, IN-19, IN-33). Whoever routes
//! it puts the answers into the delivery; what stays unanswered is not asked again, and the router goes on
//! with what it has.

use super::{Facts, grouped, head_of, is_guess, named, recorded};
use crate::ci::RunTry;
use crate::delivery::Effect;
use crate::ids::WorkItemRef;

/// Pull requests of one check that are asked for; of further ones only the number counts.
const PULLS_OF_CHECK_MAX: usize = 5;

/// Pull requests of which little more than the number is known and that no session knows (IN-18). A check
/// starts nothing, so that nothing is asked for it where no session lives at all.
pub fn unknown_pulls(facts: &Facts<'_>) -> Vec<WorkItemRef> {
    let delivery = facts.delivery;
    match &delivery.effect {
        Effect::Check(_) if facts.owners.is_empty() => Vec::new(),
        Effect::Check(check) => {
            let head = head_of(check);
            let answers = delivery.asked.as_ref();
            let is_known = |pull: &WorkItemRef| {
                answers.is_some_and(|answers| answers.pull(pull).is_some())
                    || facts.lives(pull)
                    || !recorded(facts, pull, Some(&head)).is_empty()
            };
            let unknown = check.pulls.iter().filter(|pull| !is_known(pull));
            unknown.take(PULLS_OF_CHECK_MAX).cloned().collect()
        }
        // Of an end only the number counts, and a verb means the item that it names (IN-26).
        Effect::Close { .. } | Effect::Start { .. } => Vec::new(),
        Effect::Text(_) | Effect::Presence | Effect::Opened | Effect::Notice { .. } => {
            let is_pull = delivery.pull.is_some() || delivery.facts.is_pull_request;
            let is_whole = delivery.pull_facts().is_some_and(|pull| !pull.is_partial);
            let has_owner = || named(facts).targets.iter().any(|item| facts.lives(item));
            if is_pull && !is_whole && !has_owner() {
                vec![delivery.item.clone()]
            } else {
                Vec::new()
            }
        }
    }
}

/// Items that nothing but the name of a branch speaks for, where no session takes the delivery and it may
/// start one (IN-19).
pub fn doubtful_items(facts: &Facts<'_>) -> Vec<WorkItemRef> {
    match &facts.delivery.effect {
        Effect::Text(_) | Effect::Presence | Effect::Opened => {}
        Effect::Notice { .. } | Effect::Check(_) | Effect::Close { .. } | Effect::Start { .. } => {
            return Vec::new();
        }
    }
    let (named, _) = grouped(facts);
    if named.iter().any(|named| facts.lives(&named.item)) {
        return Vec::new();
    }
    let guesses = named.into_iter().filter(is_guess);
    guesses.map(|named| named.item).collect()
}

/// The failed try of a workflow whose log a session is to be shown (IN-33).
pub fn job_wanted(facts: &Facts<'_>) -> Option<RunTry> {
    let Effect::Check(check) = &facts.delivery.effect else {
        return None;
    };
    let run = check.run.filter(|_| check.is_failing())?;
    let is_heard = named(facts).targets.iter().any(|item| facts.lives(item));
    is_heard.then_some(run)
}
