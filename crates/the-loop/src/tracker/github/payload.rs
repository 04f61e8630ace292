//! Bytes of a signed webhook → a [`Delivery`], or why it is none (IN-3 rows 12 and 13, IN-7, IN-10
//! to IN-13).
//!
//! A pure function of the request and the settings.

mod check;
mod fields;
mod form;
mod key;
mod rows;
mod see;
mod sound;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use the_loop_core::answers::{ItemSeen, PullSeen};
use the_loop_core::ci::CheckResult;
use the_loop_core::config::Settings;
use the_loop_core::delivery::{
    Actor, Delivery, Effect, Ending, Ingress, ItemFacts, Place, PullFacts, Text,
};
use the_loop_core::event::RoutingDropReason;
use the_loop_core::ids::{GITHUB_PROVIDER, RefError, RepoRef, WorkItemRef};
use the_loop_core::link::closing_links;
use the_loop_core::time::Timestamp;

pub use rows::{Rows, of_rows};

use fields::pull::Pull;
use fields::{Comment, Common, Issue, Repository};

/// How the body carries its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`.
    Json,
    /// `application/x-www-form-urlencoded`, in the field `payload`.
    Form,
}

/// A verified request, as far as it says what happened.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// `X-GitHub-Event`, already checked for its form.
    pub event: &'a str,
    /// `X-GitHub-Delivery`, already checked for its form: the transport id.
    pub delivery_id: &'a str,
    /// How the body is written.
    pub encoding: Encoding,
    /// The body as it was signed.
    pub body: &'a [u8],
    /// When it came in.
    pub received_at: Timestamp,
}

/// What a request turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// Something to store and act on.
    Delivery(Box<Delivery>),
    /// Well formed and not for us; answered 202 and not stored.
    Ignored(Ignored),
    /// Not a payload (row 12); answered 400.
    Invalid,
}

/// Why a well-formed payload is not stored, and what it said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The first reason of row 13 that applies.
    pub reason: RoutingDropReason,
    /// Its action, where it has one.
    pub action: Option<String>,
    /// Who sent it.
    pub actor: Option<Actor>,
    /// The item it names, where it can be told.
    pub item: Option<WorkItemRef>,
}

/// What an event says, one shape for all that are read.
struct Seen {
    common: Common,
    /// Number of the ticket or pull request.
    number: Option<u64>,
    /// Why nothing is done about it, or what it is about.
    about: Result<About, RoutingDropReason>,
}

/// What happened, and to what.
struct About {
    issue: Issue,
    pull: Option<Pull>,
    place: Option<Place>,
    meaning: Meaning,
}

/// An effect before the item it concerns is known to exist.
enum Meaning {
    /// Words of this kind, and what they decide.
    Words(WordsKind, Comment, Option<String>),
    Presence,
    Opened,
    Edited(Vec<String>),
    Pushed,
    /// A review thread, by its opaque id.
    Thread(Option<String>),
    Close(Ending, Option<String>),
    /// A check has ended: the rest of its key, and the numbers of the pull requests whose head it is.
    Check {
        key: String,
        check: Box<CheckResult>,
        pulls: Vec<u64>,
    },
}

/// The kinds of words that content keys tell apart (IN-10).
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordsKind {
    Comment,
    Review,
    Inline,
}

/// Reads a verified request. Never panics, whatever the bytes are.
pub fn parse(incoming: &Incoming<'_>, settings: &Settings) -> Parsed {
    let Some(json) = text_of(incoming) else {
        return Parsed::Invalid;
    };
    if !sound::is_sound(&json) {
        return Parsed::Invalid;
    }
    let event = incoming.event;
    let events = &settings.webhooks.gh_webhook.events;
    let read = events
        .iter()
        .any(|e| e == event)
        .then(|| see::reader(event))
        .flatten();
    let Some(read) = read else {
        return match fields::read::<Common>(&json) {
            Some(common) => Parsed::Ignored(Ignored {
                reason: RoutingDropReason::DisabledEvent,
                item: None,
                actor: actor(&common),
                action: common.action,
            }),
            None => Parsed::Invalid,
        };
    };
    read(&json, settings).map_or(Parsed::Invalid, |seen| judge(incoming, settings, seen))
}

/// Reads the tracker's answer about a pull request (IN-18); `None` when it is none about this one.
pub fn pull_seen(json: &str, item: &WorkItemRef) -> Option<PullSeen> {
    let mut pull: Pull = fields::read(json)?;
    let issue = pull.ticket();
    (issue.number() == Some(item.number())).then_some(())?;
    Some(PullSeen {
        author: facts(&issue).author,
        facts: pull_facts(&issue, Some(&pull), item)?,
        item: item.clone(),
    })
}

/// Reads the tracker's answer about a ticket (IN-19, IN-27); `None` when it is none about this one.
pub fn item_seen(json: &str, item: &WorkItemRef) -> Option<ItemSeen> {
    let issue: Issue = fields::read(json)?;
    (issue.number() == Some(item.number())).then_some(())?;
    let facts = facts(&issue);
    Some(ItemSeen {
        labels: facts.labels.unwrap_or_default(),
        closed: facts.closed.unwrap_or(false),
    })
}

/// Reads an account as the tracker shows one; a deleted one is nobody.
pub fn actor_of(json: &str) -> Option<Actor> {
    fields::read::<fields::User>(json)?.actor()
}

/// The JSON text of a body; `None` when it is not UTF-8 or the form holds no single `payload`.
fn text_of<'a>(incoming: &Incoming<'a>) -> Option<Cow<'a, str>> {
    match incoming.encoding {
        Encoding::Json => std::str::from_utf8(incoming.body).ok().map(Cow::Borrowed),
        Encoding::Form => form::payload(incoming.body).map(Cow::Owned),
    }
}

/// Row 13 in its order, and the delivery when nothing of it applies.
fn judge(incoming: &Incoming<'_>, settings: &Settings, seen: Seen) -> Parsed {
    let repository = seen.common.repository.as_ref().map(|r| &r.0);
    let item = item_of(repository, seen.number, settings);
    let actor = actor(&seen.common);
    let action = seen.common.action;
    let ignored = |reason, action, actor, item| {
        Parsed::Ignored(Ignored {
            reason,
            action,
            actor,
            item,
        })
    };
    match (seen.about, item) {
        (Err(reason), item) => ignored(reason, action, actor, item.ok()),
        (Ok(_), Err(reason)) => ignored(reason, action, actor, None),
        (Ok(about), Ok(item)) => {
            let delivery = deliver(incoming, item, action, actor, about);
            Parsed::Delivery(Box::new(delivery))
        }
    }
}

/// The work item of a payload (IN-13): the host comes from `html_url` and has to be a
/// configured one, since requests may be sent there; owner and name come from `full_name`.
fn item_of(
    repository: Option<&Repository>,
    number: Option<u64>,
    settings: &Settings,
) -> Result<WorkItemRef, RoutingDropReason> {
    let repository = repository.ok_or(RoutingDropReason::NoWorkItem)?;
    let host = repository.html_url.as_deref().and_then(host_of);
    let host = host.filter(|host| settings.integrations.github.knows_host(host));
    let host = host.ok_or(RoutingDropReason::UnknownHost)?;
    let full_name = repository.full_name.as_deref().unwrap_or_default();
    let (owner, name) = full_name
        .split_once('/')
        .ok_or(RoutingDropReason::NoWorkItem)?;
    let repo = match RepoRef::new(host, owner, name) {
        Ok(repo) => repo,
        Err(RefError::Host(_)) => return Err(RoutingDropReason::UnknownHost),
        Err(
            RefError::Provider
            | RefError::Url(_)
            | RefError::Parts
            | RefError::Number
            | RefError::DotDot(_)
            | RefError::Part(_)
            | RefError::DotGit,
        ) => return Err(RoutingDropReason::NoWorkItem),
    };
    let number = number.ok_or(RoutingDropReason::NoWorkItem)?;
    WorkItemRef::new(GITHUB_PROVIDER, repo, number).map_err(|_| RoutingDropReason::NoWorkItem)
}

/// The authority of a web address. Whatever is no plain host with an optional port (user parts,
/// backslashes, blanks) is turned down later, because such a name is never a configured one.
fn host_of(url: &str) -> Option<&str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))?;
    rest.split(['/', '?', '#'])
        .next()
        .filter(|host| !host.is_empty())
}

fn actor(common: &Common) -> Option<Actor> {
    common.sender.as_ref().and_then(|user| user.0.actor())
}

fn deliver(
    incoming: &Incoming<'_>,
    item: WorkItemRef,
    action: Option<String>,
    actor: Option<Actor>,
    seen: About,
) -> Delivery {
    let About {
        issue,
        pull,
        place,
        meaning,
    } = seen;
    let keys = key::keys(
        &meaning,
        &issue,
        pull.as_ref(),
        action.as_deref(),
        incoming.delivery_id,
    );
    let head = format!("{GITHUB_PROVIDER}/{}", item.repo().host);
    let pull = pull_facts(&issue, pull.as_ref(), &item);
    let effect = effect(meaning, &issue, &item);
    Delivery {
        delivery_id: incoming.delivery_id.to_owned(),
        content_key: format!("{head}/{}", keys.content),
        numeric_key: keys.numeric.map(|tail| format!("{head}/{tail}")),
        ingress: Ingress::Webhook,
        item,
        event: incoming.event.to_owned(),
        action,
        actor,
        received_at: incoming.received_at,
        facts: facts(&issue),
        pull,
        place,
        asked: None,
        effect,
        entries: Vec::new(),
    }
}

/// What is shown of a pull request; of the one that a comment was said on, its body alone.
fn pull_facts(issue: &Issue, pull: Option<&Pull>, item: &WorkItemRef) -> Option<PullFacts> {
    let shown = match pull {
        Some(pull) => pull.facts(),
        None => PullFacts {
            is_partial: true,
            ..PullFacts::default()
        },
    };
    let body = issue.body.as_deref().unwrap_or_default();
    issue.pull_request.is_some().then(|| PullFacts {
        closes: closing_links(body, item.repo()),
        ..shown
    })
}

fn effect(meaning: Meaning, issue: &Issue, item: &WorkItemRef) -> Effect {
    match meaning {
        Meaning::Words(_, comment, decision) => Effect::Text(text(comment, decision)),
        Meaning::Presence => Effect::Presence,
        Meaning::Opened => Effect::Opened,
        Meaning::Edited(changed) => Effect::Notice { changed },
        Meaning::Pushed | Meaning::Thread(_) => Effect::Notice {
            changed: Vec::new(),
        },
        Meaning::Close(ending, moved_to) => Effect::Close {
            ending,
            at: match ending {
                Ending::Closed => issue.closed_at(),
                Ending::Deleted | Ending::Transferred => None,
            },
            moved_to,
        },
        Meaning::Check { check, pulls, .. } => {
            let of = |number| WorkItemRef::new(GITHUB_PROVIDER, item.repo().clone(), number).ok();
            Effect::Check(CheckResult {
                pulls: pulls.into_iter().filter_map(of).collect(),
                ..*check
            })
        }
    }
}

fn text(comment: Comment, decision: Option<String>) -> Text {
    let created_at = comment.created_at();
    Text {
        comment_id: comment.node_id,
        body: comment.body.unwrap_or_default(),
        author: comment.user.and_then(|user| user.0.actor()),
        html_url: comment.html_url,
        created_at,
        decision,
        // A webhook has the words as they were said.
        edited: false,
    }
}

fn facts(issue: &Issue) -> ItemFacts {
    ItemFacts {
        node_id: issue.node_id.clone(),
        title: issue.title.clone(),
        closed: issue.state.as_deref().map(|state| state == "closed"),
        labels: issue.label_names(),
        author: issue.user.as_ref().and_then(|user| user.0.actor()),
        html_url: issue.html_url.clone(),
        is_pull_request: issue.pull_request.is_some(),
    }
}
