//! `deliveries list|show|retry|drop`: the operator's window on the inbox (DI-7, SE-63 to SE-66).
//!
//! Values only: the caller prints them, and writes `delivery.retried` or `delivery.discarded` for each
//! [`Changed`] row.

use serde::Serialize;
use the_loop_core::delivery::{Delivery, Ingress, State};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::time::Timestamp;

use crate::store::inbox::{
    Changed, ConfirmedBy, DropAnswer, DropWhat, Inbox, InboxError, InboxReader, ListFilter,
    ListRow, OutcomeRow, RetryAnswer, Shown, States,
};

/// What `deliveries list` was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Only of this work item.
    pub work_item: Option<WorkItemRef>,
    /// Only in these states; empty for those that are not over.
    pub states: Vec<State>,
    /// Every state, when none is named.
    pub all: bool,
    /// Only accepted at this time or later.
    pub since: Option<Timestamp>,
    /// The newest so many; 0 for all.
    pub limit: u32,
}

/// A row of `deliveries list`; serialises as the JSON of SE-63.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The inbox's number.
    pub id: i64,
    /// The transport's id.
    pub delivery_id: String,
    /// The work item; `None` for a delivery that concerns none, or not yet.
    pub work_item: Option<String>,
    /// A pull request with a session of its own.
    pub endpoint: Option<String>,
    /// The way in.
    pub ingress: Ingress,
    /// Event as the provider calls it.
    pub event: String,
    /// Action.
    pub action: Option<String>,
    /// Who sent it.
    pub actor: Option<String>,
    /// Where it stands.
    #[serde(serialize_with = "as_word")]
    pub state: State,
    /// Why it stands there.
    pub reason: Option<String>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Counted tries.
    pub attempts: u32,
    /// When it is tried again.
    pub next_try_at: Option<Timestamp>,
    /// What a queued one waits for.
    pub held_because: Option<String>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over references"
)]
fn as_word<S: serde::Serializer>(state: &State, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

/// The reason of a queued outcome is what it waits for; every other one says why it stands there.
fn split_reason(state: State, reason: Option<String>) -> (Option<String>, Option<String>) {
    if state == State::Queued {
        (None, reason)
    } else {
        (reason, None)
    }
}

impl From<ListRow> for Line {
    fn from(row: ListRow) -> Self {
        let (reason, held_because) = split_reason(row.state, row.reason);
        Self {
            id: row.seq,
            delivery_id: row.delivery_id,
            work_item: row.item,
            endpoint: row.endpoint,
            ingress: row.ingress,
            event: row.event,
            action: row.action,
            actor: row.actor,
            state: row.state,
            reason,
            accepted_at: row.accepted_at,
            updated_at: row.updated_at,
            attempts: row.attempts,
            next_try_at: row.retry_at,
            held_because,
        }
    }
}

/// What came in and where it stands, oldest first (SE-63).
pub fn list(inbox: &InboxReader, query: &Query) -> Result<Vec<Line>, InboxError> {
    let states = match (query.states.is_empty(), query.all) {
        (false, _) => States::These(query.states.clone()),
        (true, true) => States::All,
        (true, false) => States::Open,
    };
    let rows = inbox.list(&ListFilter {
        item: query.work_item.as_ref().map(WorkItemRef::key),
        states,
        since: query.since,
        limit: (query.limit > 0).then_some(query.limit),
    })?;
    Ok(rows.into_iter().map(Line::from).collect())
}

/// One delivery with all its fields (SE-64). Its trail is in the event log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detail {
    /// The inbox's number.
    pub id: i64,
    /// The id under which it came first.
    pub delivery_id: String,
    /// What it is (IN-10).
    pub content_key: String,
    /// The way in.
    pub ingress: Ingress,
    /// Event as the provider calls it.
    pub event: String,
    /// Action.
    pub action: Option<String>,
    /// Who sent it.
    pub actor: Option<String>,
    /// Where the delivery stands; when `routed`, its outcomes tell the rest.
    #[serde(serialize_with = "as_word")]
    pub state: State,
    /// Why it stands there.
    pub reason: Option<String>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// Counted tries to judge it.
    pub attempts: u32,
    /// When it is judged again.
    pub next_try_at: Option<Timestamp>,
    /// What became of it at each work item.
    pub outcomes: Vec<OutcomeDetail>,
    /// Every name under which it came.
    pub names: Vec<Name>,
    /// What came in, for `--payload`; `None` when its text is no longer kept.
    #[serde(skip)]
    pub delivery: Option<Delivery>,
    /// Why there is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_missing: Option<String>,
}

/// One outcome of [`Detail`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeDetail {
    /// The work item.
    pub work_item: WorkItemRef,
    /// A pull request with a session of its own.
    pub endpoint: Option<WorkItemRef>,
    /// Where it stands.
    #[serde(serialize_with = "as_word")]
    pub state: State,
    /// Why it stands there.
    pub reason: Option<String>,
    /// What a queued one waits for.
    pub held_because: Option<String>,
    /// Counted tries.
    pub attempts: u32,
    /// When it is tried again.
    pub next_try_at: Option<Timestamp>,
    /// The mark in its prompt.
    pub marker: Option<String>,
    /// Version of the program that gave it up.
    pub given_up_by: Option<String>,
    /// When the last try to send it began.
    pub intent_at: Option<Timestamp>,
    /// When it was pasted.
    pub pasted_at: Option<Timestamp>,
    /// When the harness said that it has it.
    pub confirmed_at: Option<Timestamp>,
    /// By which evidence.
    pub confirmed_by: Option<&'static str>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A name of [`Detail`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Name {
    /// `content`, `numeric` or `transport`.
    pub kind: String,
    /// The name.
    pub key: String,
    /// First arrival under it.
    pub first_at: Timestamp,
    /// Last arrival under it.
    pub last_at: Timestamp,
    /// Arrivals after the first.
    pub again: u64,
}

impl From<OutcomeRow> for OutcomeDetail {
    fn from(row: OutcomeRow) -> Self {
        let (reason, held_because) = split_reason(row.state, row.reason);
        Self {
            work_item: row.item,
            endpoint: row.endpoint,
            state: row.state,
            reason,
            held_because,
            attempts: row.attempts,
            next_try_at: row.retry_at,
            marker: row.marker.map(String::from),
            given_up_by: row.given_up_by,
            intent_at: row.intent_at,
            pasted_at: row.pasted_at,
            confirmed_at: row.confirmed_at,
            confirmed_by: row.confirmed_by.map(ConfirmedBy::as_str),
            updated_at: row.updated_at,
        }
    }
}

impl From<Shown> for Detail {
    fn from(shown: Shown) -> Self {
        let row = shown.delivery;
        let (delivery, text_missing) = match row.delivery {
            Ok(delivery) => (Some(delivery), None),
            Err(fault) => (None, Some(fault.to_string())),
        };
        let names = shown.keys.into_iter().map(|known| Name {
            kind: known.kind,
            key: known.key,
            first_at: known.first_at,
            last_at: known.last_at,
            again: known.again,
        });
        Self {
            id: row.seq,
            delivery_id: row.delivery_id,
            content_key: row.content_key,
            ingress: row.ingress,
            event: row.event,
            action: row.action,
            actor: row.actor,
            state: row.state,
            reason: row.reason,
            accepted_at: row.received_at,
            attempts: row.attempts,
            next_try_at: row.retry_at,
            outcomes: shown
                .outcomes
                .into_iter()
                .map(OutcomeDetail::from)
                .collect(),
            names: names.collect(),
            delivery,
            text_missing,
        }
    }
}

/// One delivery by the inbox's number or any transport id; `None` when nobody knows it (SE-64).
pub fn show(inbox: &InboxReader, id: &str) -> Result<Option<Detail>, InboxError> {
    Ok(inbox.show(id)?.map(Detail::from))
}

/// What became of one id of `retry` or `drop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The id as it was given; for a work item, the inbox's number.
    pub id: String,
    /// The words after it: `queued again`, or why not.
    pub words: String,
    /// It was refused: on stderr, and exit 1.
    pub refused: bool,
    /// The rows that changed, each with one event.
    pub changed: Vec<Changed>,
}

impl Answer {
    fn done(id: String, words: &str, changed: Vec<Changed>) -> Self {
        Self {
            id,
            words: words.to_owned(),
            refused: false,
            changed,
        }
    }

    fn refused(id: String, words: impl Into<String>) -> Self {
        Self {
            id,
            words: words.into(),
            refused: true,
            changed: Vec::new(),
        }
    }
}

const UNKNOWN: &str = "no such delivery";

/// Once more with a full budget; `uncertain` ones only with `force` (SE-65).
pub fn retry(inbox: &Inbox, ids: &[String], force: bool) -> Result<Vec<Answer>, InboxError> {
    let answers = inbox.retry(ids, force)?;
    let worded = answers.into_iter().map(|(id, answer)| match answer {
        RetryAnswer::Queued(changed) => Answer::done(id, "queued again", changed),
        RetryAnswer::AlreadyQueued => Answer::refused(id, "already queued"),
        RetryAnswer::NothingToRetry(state) => {
            Answer::refused(id, format!("{state}, nothing to retry"))
        }
        RetryAnswer::NeedsForce => {
            Answer::refused(id, "uncertain, the agent may have it: use --force")
        }
        RetryAnswer::Overtaken { by_close: false } => {
            Answer::refused(id, "its work item was reset after it came")
        }
        RetryAnswer::Overtaken { by_close: true } => {
            Answer::refused(id, "its work item was closed after it came")
        }
        RetryAnswer::BodyGone => Answer::refused(id, "its text is no longer kept"),
        RetryAnswer::Unknown => Answer::refused(id, UNKNOWN),
    });
    Ok(worded.collect())
}

/// No more: what is not over becomes `dropped` with reason `operator` (SE-66).
pub fn drop(inbox: &Inbox, what: DropWhat) -> Result<Vec<Answer>, InboxError> {
    let answers = inbox.drop_deliveries(what)?;
    let worded = answers.into_iter().map(|(id, answer)| match answer {
        DropAnswer::Dropped(changed) => Answer::done(id, "dropped", changed),
        DropAnswer::AlreadyDropped => Answer::refused(id, "already dropped"),
        DropAnswer::Busy => Answer::refused(id, "busy: it is being sent"),
        DropAnswer::NothingToDrop(state) => {
            Answer::refused(id, format!("{state}, nothing to drop"))
        }
        DropAnswer::Unknown => Answer::refused(id, UNKNOWN),
    });
    Ok(worded.collect())
}
