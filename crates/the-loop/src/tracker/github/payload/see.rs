//! What the events say, each by its own fields (IN-7).

use the_loop_core::config::Settings;
use the_loop_core::delivery::{Ending, Place};
use the_loop_core::event::RoutingDropReason;

use super::fields::pull::PullEvent;
use super::fields::{
    self, Changes, Common, Inline, Issue, IssueCommentEvent, IssuesEvent, Label, Object,
};
use super::{About, Meaning, Seen, WordsKind, check};

/// Reads a payload. `None`: it is no payload of its event.
pub(super) type Reader = fn(&str, &Settings) -> Option<Seen>;

/// Who reads this event, where it is read at all.
pub(super) fn reader(event: &str) -> Option<Reader> {
    match event {
        "issues" => Some(see_issue),
        "issue_comment" => Some(see_comment),
        "pull_request" => Some(see_pull),
        "pull_request_review" => Some(see_review),
        "pull_request_review_comment" => Some(see_inline),
        "pull_request_review_thread" => Some(see_thread),
        "workflow_run" => Some(check::see_workflow_run),
        "check_run" => Some(check::see_check_run),
        "check_suite" => Some(check::see_check_suite),
        "status" => Some(check::see_status),
        _ => None,
    }
}

fn see_issue(json: &str, settings: &Settings) -> Option<Seen> {
    let read: IssuesEvent = fields::read(json)?;
    let changes = read.changes.map(|c| c.0).unwrap_or_default();
    let meaning = match read.action.as_deref().unwrap_or_default() {
        "opened" | "reopened" => Some(Meaning::Presence),
        "labeled" if is_arming(read.label, settings) => Some(Meaning::Presence),
        "edited" => edited(&changes, false),
        "closed" => Some(Meaning::Close(Ending::Closed, None)),
        "deleted" => Some(Meaning::Close(Ending::Deleted, None)),
        "transferred" => {
            let to = changes.new_issue.and_then(|issue| issue.0.html_url);
            Some(Meaning::Close(Ending::Transferred, to))
        }
        _ => None,
    };
    let common = Common {
        action: read.action,
        repository: read.repository,
        sender: read.sender,
    };
    let issue = read.issue.map(|i| i.0);
    Some(of_issue(common, issue, meaning))
}

fn see_comment(json: &str, _: &Settings) -> Option<Seen> {
    let read: IssueCommentEvent = fields::read(json)?;
    let meaning = match (read.action.as_deref(), read.comment) {
        (Some("created"), Some(comment)) => {
            Some(Meaning::Words(WordsKind::Comment, comment.0, None))
        }
        // A new comment without the comment is no payload of this event.
        (Some("created"), None) => return None,
        (Some(_) | None, _) => None,
    };
    let common = Common {
        action: read.action,
        repository: read.repository,
        sender: read.sender,
    };
    let issue = read.issue.map(|i| i.0);
    Some(of_issue(common, issue, meaning))
}

fn of_issue(common: Common, issue: Option<Issue>, meaning: Option<Meaning>) -> Seen {
    let number = issue.as_ref().and_then(Issue::number);
    let about = meaning.map(|meaning| About {
        issue: issue.unwrap_or_default(),
        pull: None,
        place: None,
        meaning,
    });
    Seen {
        common,
        number,
        about: about.ok_or(RoutingDropReason::ActionIgnored),
    }
}

fn see_pull(json: &str, settings: &Settings) -> Option<Seen> {
    let mut read: PullEvent = fields::read(json)?;
    let changes = read.changes.take().map(|c| c.0).unwrap_or_default();
    let meaning = match read.action.as_deref().unwrap_or_default() {
        "opened" | "reopened" => Some(Meaning::Opened),
        "labeled" if is_arming(read.label.take(), settings) => Some(Meaning::Presence),
        "synchronize" => Some(Meaning::Pushed),
        "edited" => edited(&changes, true),
        "closed" => Some(Meaning::Close(Ending::Closed, None)),
        _ => None,
    };
    Some(of_pull(
        read,
        meaning.ok_or(RoutingDropReason::ActionIgnored),
        None,
    ))
}

fn see_review(json: &str, _: &Settings) -> Option<Seen> {
    let mut read: PullEvent = fields::read(json)?;
    let meaning = match (read.action.as_deref(), read.review.take()) {
        (Some("submitted"), Some(Object(mut review))) => {
            let state = review.state.take().unwrap_or_default().to_lowercase();
            let words = review.words();
            let is_blank = words.body.as_deref().unwrap_or_default().trim().is_empty();
            if is_blank && matches!(&*state, "" | "commented") {
                Err(RoutingDropReason::EmptyReview)
            } else {
                Ok(Meaning::Words(WordsKind::Review, words, Some(state)))
            }
        }
        (Some("submitted"), None) => return None,
        (Some(_) | None, _) => Err(RoutingDropReason::ActionIgnored),
    };
    Some(of_pull(read, meaning, None))
}

fn see_inline(json: &str, _: &Settings) -> Option<Seen> {
    let mut read: PullEvent = fields::read(json)?;
    match (read.action.as_deref(), read.comment.take()) {
        (Some("created"), Some(Object(inline))) => {
            let (comment, place) = inline.split();
            let meaning = Meaning::Words(WordsKind::Inline, comment, None);
            Some(of_pull(read, Ok(meaning), Some(place)))
        }
        (Some("created"), None) => None,
        (Some(_) | None, _) => Some(of_pull(read, Err(RoutingDropReason::ActionIgnored), None)),
    }
}

fn see_thread(json: &str, _: &Settings) -> Option<Seen> {
    let mut read: PullEvent = fields::read(json)?;
    let thread = read.thread.take().map(|thread| thread.0);
    if !matches!(read.action.as_deref(), Some("resolved" | "unresolved")) {
        return Some(of_pull(read, Err(RoutingDropReason::ActionIgnored), None));
    }
    let thread = thread?;
    let first: Option<Inline> = thread
        .comments
        .unwrap_or_default()
        .into_iter()
        .next()
        .flatten()
        .map(|comment| comment.0);
    let mut place = first.as_ref().map(Inline::place).unwrap_or_default();
    place.hunk = None;
    place.html_url = first.and_then(|comment| comment.html_url);
    let meaning = Meaning::Thread(thread.node_id);
    Some(of_pull(read, Ok(meaning), Some(place)))
}

fn of_pull(
    read: PullEvent,
    meaning: Result<Meaning, RoutingDropReason>,
    place: Option<Place>,
) -> Seen {
    let mut pull = read.pull_request.map(|pull| pull.0).unwrap_or_default();
    let issue = pull.ticket();
    Seen {
        common: Common {
            action: read.action,
            repository: read.repository,
            sender: read.sender,
        },
        number: issue.number(),
        about: meaning.map(|meaning| About {
            issue,
            pull: Some(pull),
            place,
            meaning,
        }),
    }
}

fn is_arming(label: Option<Object<Label>>, settings: &Settings) -> bool {
    let arming = settings.routing.auto_execute_label.to_lowercase();
    let name = label.and_then(|label| label.0.name);
    name.is_some_and(|name| name.to_lowercase() == arming)
}

/// Names of the changed fields that an agent is told of; `None` when there are none. A pull request's
/// target counts too.
fn edited(changes: &Changes, is_pull: bool) -> Option<Meaning> {
    let fields = [
        ("title", changes.title.is_some()),
        ("body", changes.body.is_some()),
        ("base", is_pull && changes.base.is_some()),
    ];
    let changed = fields.into_iter().filter(|(_, changed)| *changed);
    let names: Vec<String> = changed.map(|(name, _)| name.to_owned()).collect();
    (!names.is_empty()).then_some(Meaning::Edited(names))
}
