//! Bytes of a signed webhook → a [`Delivery`], or why it is none (IN-3 rows 12 and 13, IN-7, IN-10
//! to IN-13).
//!
//! A pure function of the request and the settings. It reads `issues`, `issue_comment` and `ping`;
//! every other event is not enabled in this version.

mod fields;
mod form;
mod sound;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use the_loop_core::config::Settings;
use the_loop_core::delivery::{Actor, Delivery, Effect, Ending, Ingress, ItemFacts, Text};
use the_loop_core::ids::{GITHUB_PROVIDER, RefError, RepoRef, WorkItemRef};
use the_loop_core::time::Timestamp;

use fields::{Changes, Comment, Common, Issue, IssueCommentEvent, IssuesEvent, Repository};

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
    pub reason: IgnoredReason,
    /// Its action, where it has one.
    pub action: Option<String>,
    /// Who sent it.
    pub actor: Option<Actor>,
    /// The item it names, where it can be told.
    pub item: Option<WorkItemRef>,
}

/// The reasons of row 13.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IgnoredReason {
    /// `ping`, or an event that is not enabled.
    DisabledEvent,
    /// An action that is never delivered.
    ActionIgnored,
    /// No repository, or a number or name that no item can have.
    NoWorkItem,
    /// A host that is not configured, or none that can be read.
    UnknownHost,
}

impl IgnoredReason {
    /// The word in answers and in the event log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DisabledEvent => "disabled-event",
            Self::ActionIgnored => "action-ignored",
            Self::NoWorkItem => "no-work-item",
            Self::UnknownHost => "unknown-host",
        }
    }
}

/// What an event says, one shape for all that are read.
struct Seen {
    common: Common,
    issue: Option<Issue>,
    /// `None`: no action of it does anything.
    meaning: Option<Meaning>,
}

/// An effect before the item it concerns is known to exist.
enum Meaning {
    Comment(Comment),
    Presence,
    Edited(Vec<String>),
    Close(Ending, Option<String>),
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
    let known = matches!(event, "issues" | "issue_comment");
    let enabled = known
        && settings
            .webhooks
            .gh_webhook
            .events
            .iter()
            .any(|e| e == event);
    if !enabled {
        return match fields::read::<Common>(&json) {
            Some(common) => Parsed::Ignored(Ignored {
                reason: IgnoredReason::DisabledEvent,
                item: None,
                actor: actor(&common),
                action: common.action,
            }),
            None => Parsed::Invalid,
        };
    }
    let seen = if event == "issues" {
        see_issue(&json, &settings.routing.auto_execute_label)
    } else {
        see_comment(&json)
    };
    seen.map_or(Parsed::Invalid, |seen| judge(incoming, settings, seen))
}

/// The JSON text of a body; `None` when it is not UTF-8 or the form holds no single `payload`.
fn text_of<'a>(incoming: &Incoming<'a>) -> Option<Cow<'a, str>> {
    match incoming.encoding {
        Encoding::Json => std::str::from_utf8(incoming.body).ok().map(Cow::Borrowed),
        Encoding::Form => form::payload(incoming.body).map(Cow::Owned),
    }
}

fn see_issue(json: &str, arming_label: &str) -> Option<Seen> {
    let read: IssuesEvent = fields::read(json)?;
    let changes = read.changes.map(|c| c.0).unwrap_or_default();
    let label = read.label.and_then(|l| l.0.name);
    let arming = label.is_some_and(|name| name.to_lowercase() == arming_label.to_lowercase());
    let meaning = match read.action.as_deref().unwrap_or_default() {
        "opened" | "reopened" => Some(Meaning::Presence),
        "labeled" if arming => Some(Meaning::Presence),
        "edited" => changed_words(&changes).map(Meaning::Edited),
        "closed" => Some(Meaning::Close(Ending::Closed, None)),
        "deleted" => Some(Meaning::Close(Ending::Deleted, None)),
        "transferred" => {
            let to = changes.new_issue.and_then(|issue| issue.0.html_url);
            Some(Meaning::Close(Ending::Transferred, to))
        }
        _ => None,
    };
    Some(Seen {
        common: Common {
            action: read.action,
            repository: read.repository,
            sender: read.sender,
        },
        issue: read.issue.map(|i| i.0),
        meaning,
    })
}

/// Names of the changed fields that an agent is told of; `None` when there are none.
fn changed_words(changes: &Changes) -> Option<Vec<String>> {
    let mut names = Vec::new();
    if changes.title.is_some() {
        names.push("title".to_owned());
    }
    if changes.body.is_some() {
        names.push("body".to_owned());
    }
    (!names.is_empty()).then_some(names)
}

fn see_comment(json: &str) -> Option<Seen> {
    let read: IssueCommentEvent = fields::read(json)?;
    let meaning = match (read.action.as_deref(), read.comment) {
        (Some("created"), Some(comment)) => Some(Meaning::Comment(comment.0)),
        // A new comment without the comment is no payload of this event.
        (Some("created"), None) => return None,
        (Some(_) | None, _) => None,
    };
    Some(Seen {
        common: Common {
            action: read.action,
            repository: read.repository,
            sender: read.sender,
        },
        issue: read.issue.map(|i| i.0),
        meaning,
    })
}

/// Row 13 in its order, and the delivery when nothing of it applies.
fn judge(incoming: &Incoming<'_>, settings: &Settings, seen: Seen) -> Parsed {
    let number = seen.issue.as_ref().and_then(Issue::number);
    let repository = seen.common.repository.as_ref().map(|r| &r.0);
    let item = item_of(repository, number, settings);
    let actor = actor(&seen.common);
    let Some(meaning) = seen.meaning else {
        return Parsed::Ignored(Ignored {
            reason: IgnoredReason::ActionIgnored,
            action: seen.common.action,
            actor,
            item: item.ok(),
        });
    };
    match item {
        Ok(item) => {
            let issue = seen.issue.unwrap_or_default();
            let action = seen.common.action;
            let delivery = deliver(incoming, item, action, actor, &issue, meaning);
            Parsed::Delivery(Box::new(delivery))
        }
        Err(reason) => Parsed::Ignored(Ignored {
            reason,
            action: seen.common.action,
            actor,
            item: None,
        }),
    }
}

/// The work item of an issue payload (IN-13): the host comes from `html_url` and has to be a
/// configured one, since requests may be sent there; owner and name come from `full_name`.
fn item_of(
    repository: Option<&Repository>,
    number: Option<u64>,
    settings: &Settings,
) -> Result<WorkItemRef, IgnoredReason> {
    let repository = repository.ok_or(IgnoredReason::NoWorkItem)?;
    let host = repository.html_url.as_deref().and_then(host_of);
    let host = host.filter(|host| settings.integrations.github.knows_host(host));
    let host = host.ok_or(IgnoredReason::UnknownHost)?;
    let full_name = repository.full_name.as_deref().unwrap_or_default();
    let (owner, name) = full_name.split_once('/').ok_or(IgnoredReason::NoWorkItem)?;
    let repo = match RepoRef::new(host, owner, name) {
        Ok(repo) => repo,
        Err(RefError::Host(_)) => return Err(IgnoredReason::UnknownHost),
        Err(
            RefError::Provider
            | RefError::Url(_)
            | RefError::Parts
            | RefError::Number
            | RefError::DotDot(_)
            | RefError::Part(_)
            | RefError::DotGit,
        ) => return Err(IgnoredReason::NoWorkItem),
    };
    let number = number.ok_or(IgnoredReason::NoWorkItem)?;
    WorkItemRef::new(GITHUB_PROVIDER, repo, number).map_err(|_| IgnoredReason::NoWorkItem)
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
    issue: &Issue,
    meaning: Meaning,
) -> Delivery {
    let thing = issue.kind();
    let node = key_part(issue.node_id.as_deref());
    let mut numeric = None;
    let (tail, effect) = match meaning {
        Meaning::Comment(comment) => {
            numeric = comment.id().map(|id| format!("comment/#{id}/created"));
            let node = key_part(comment.node_id.as_deref());
            (
                format!("comment/{node}/created"),
                Effect::Text(text(comment)),
            )
        }
        Meaning::Presence => {
            let tail = format!("{thing}/{node}/presence@{}", incoming.delivery_id);
            (tail, Effect::Presence)
        }
        Meaning::Edited(changed) => {
            let at = key_time(issue.updated_at());
            let tail = format!("{thing}/{node}/edited@{at}");
            (tail, Effect::Notice { changed })
        }
        Meaning::Close(ending, moved_to) => {
            let at = match ending {
                Ending::Closed => issue.closed_at(),
                Ending::Deleted | Ending::Transferred => None,
            };
            let tail = match ending {
                Ending::Closed => format!("{thing}/{node}/closed@{}", key_time(at)),
                Ending::Deleted => format!("{thing}/{node}/deleted"),
                Ending::Transferred => format!("{thing}/{node}/transferred"),
            };
            let effect = Effect::Close {
                ending,
                at,
                moved_to,
            };
            (tail, effect)
        }
    };
    let head = format!("{GITHUB_PROVIDER}/{}", item.repo().host);
    Delivery {
        delivery_id: incoming.delivery_id.to_owned(),
        content_key: format!("{head}/{tail}"),
        numeric_key: numeric.map(|tail| format!("{head}/{tail}")),
        ingress: Ingress::Webhook,
        item,
        event: incoming.event.to_owned(),
        action,
        actor,
        received_at: incoming.received_at,
        facts: facts(issue),
        effect,
        entries: Vec::new(),
    }
}

/// A node id as it stands in a key; `-` for one that is missing, empty or longer than 256 bytes (IN-12).
fn key_part(node_id: Option<&str>) -> &str {
    node_id
        .filter(|id| (1..=NODE_ID_BYTES_MAX).contains(&id.len()))
        .unwrap_or("-")
}

/// Longest node id that takes part in a content key (IN-12).
const NODE_ID_BYTES_MAX: usize = 256;

fn key_time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), Timestamp::seconds)
}

fn text(comment: Comment) -> Text {
    let created_at = comment.created_at();
    Text {
        comment_id: comment.node_id,
        body: comment.body.unwrap_or_default(),
        author: comment.user.and_then(|user| user.0.actor()),
        html_url: comment.html_url,
        created_at,
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
