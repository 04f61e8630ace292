//! What the rows mean: typed, with the words of closed lists, and which of them are over.

use rusqlite::Row;
use rusqlite::types::Type;
use the_loop_core::delivery::{Delivery, Ingress, State};
use the_loop_core::ids::{ItemKey, Marker, WorkItemRef};
use the_loop_core::time::Timestamp;

/// A delivery's place in the order of acceptance; at least 1, never used twice. People see it as the
/// id of a delivery.
pub type Seq = i64;

/// A delivery that has not been routed, as SQL. The partial index uses the same text, which is what
/// lets SQLite use it.
pub(super) const OPEN_DELIVERY: &str = "state IN ('accepted', 'failed')";

/// Reasons of `pasted` that are an end: the harness cannot confirm (events page, section 4).
const PASTED_ENDS: [&str; 2] = ["no-confirmation", "screen-seen"];

/// An outcome that is not over, as SQL over a table of this prefix (`""` or `"o."`): unfinished, or
/// waiting for an operator. As the partial index has it.
pub(super) fn open_outcome(prefix: &str) -> String {
    format!(
        "({prefix}state IN ('queued', 'sending', 'failed', 'abandoned', 'uncertain') \
         OR ({prefix}state = 'pasted' AND coalesce({prefix}reason, '') \
         NOT IN ('no-confirmation', 'screen-seen')))"
    )
}

/// An open outcome that the program itself has to carry on with (`queued sending pasted failed`).
pub(super) fn unfinished_outcome(prefix: &str) -> String {
    format!(
        "{} AND {prefix}state NOT IN ('abandoned', 'uncertain')",
        open_outcome(prefix)
    )
}

/// Why a delivery's text is not at hand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// It was removed a day after the end.
    #[error("its text is no longer kept")]
    Gone,
    /// A newer release wrote something this one cannot read.
    #[error("its text cannot be read: {0}")]
    Unreadable(String),
}

/// Which evidence confirmed a paste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfirmedBy {
    /// The harness's hook.
    Hook,
    /// The harness's transcript.
    Transcript,
}

impl ConfirmedBy {
    /// The word in the inbox.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Transcript => "transcript",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Hook, Self::Transcript]
            .into_iter()
            .find(|by| by.as_str() == word)
    }
}

/// A row of `deliveries`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Order of acceptance.
    pub seq: Seq,
    /// The id under which it came first.
    pub delivery_id: String,
    /// What it is.
    pub content_key: String,
    /// The way in.
    pub ingress: Ingress,
    /// Event as the provider calls it.
    pub event: String,
    /// Action.
    pub action: Option<String>,
    /// Login of the sender.
    pub actor: Option<String>,
    /// When it was accepted.
    pub received_at: Timestamp,
    /// `accepted`, `routed` (its outcomes tell the rest), `settled`, `dropped` or `failed`.
    pub state: State,
    /// Why it is in that state.
    pub reason: Option<String>,
    /// Counted tries to route it.
    pub attempts: u32,
    /// When a failed one is tried again.
    pub retry_at: Option<Timestamp>,
    /// All that came in.
    pub delivery: Result<Delivery, BodyFault>,
}

impl DeliveryRow {
    /// The columns that [`DeliveryRow::read`] wants, of a table named `d`.
    pub(super) const COLUMNS: &str = "d.seq, d.delivery_id, d.content_key, d.ingress, d.event, \
         d.action, d.actor, d.received_at, d.state, d.reason, d.attempts, d.retry_at, d.body";

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            delivery_id: row.get(1)?,
            content_key: row.get(2)?,
            ingress: word(row, 3, Ingress::parse)?,
            event: row.get(4)?,
            action: row.get(5)?,
            actor: row.get(6)?,
            received_at: Timestamp::from_unix_ms(row.get(7)?),
            state: word(row, 8, State::parse)?,
            reason: row.get(9)?,
            attempts: row.get(10)?,
            retry_at: time(row, 11)?,
            delivery: body(row, 12)?,
        })
    }
}

/// A row of `outcomes`: what becomes of one delivery at one work item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeRow {
    /// The delivery's place in the order of acceptance.
    pub seq: Seq,
    /// The delivery's id.
    pub delivery_id: String,
    /// Identity of the work item.
    pub key: ItemKey,
    /// The work item as it is spelt.
    pub item: WorkItemRef,
    /// A pull request with a session of its own, to which it goes.
    pub endpoint: Option<WorkItemRef>,
    /// Where it stands.
    pub state: State,
    /// Why; of a queued one: what it waits for.
    pub reason: Option<String>,
    /// Counted tries.
    pub attempts: u32,
    /// When a failed one is tried again.
    pub retry_at: Option<Timestamp>,
    /// The mark in the prompt by which hooks and transcripts are matched (DI-25).
    pub marker: Option<Marker>,
    /// Version of the program that abandoned it.
    pub given_up_by: Option<String>,
    /// When the last try to send began (ST-54).
    pub intent_at: Option<Timestamp>,
    /// When it was last pasted.
    pub pasted_at: Option<Timestamp>,
    /// When it was confirmed.
    pub confirmed_at: Option<Timestamp>,
    /// By which evidence.
    pub confirmed_by: Option<ConfirmedBy>,
    /// Last change.
    pub updated_at: Timestamp,
    /// All that came in.
    pub delivery: Result<Delivery, BodyFault>,
}

impl OutcomeRow {
    /// The columns that [`OutcomeRow::read`] wants and where they come from.
    pub(super) const SELECT: &str = "SELECT o.seq, d.delivery_id, o.item_key, o.item, o.endpoint, \
         o.state, o.reason, o.attempts, o.retry_at, o.marker, o.given_up_by, o.intent_at, \
         o.pasted_at, o.confirmed_at, o.confirmed_by, o.updated_at, d.body \
         FROM outcomes o JOIN deliveries d ON d.seq = o.seq";

    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let confirmed_by = match row.get::<_, Option<String>>(14)? {
            Some(_) => Some(word(row, 14, ConfirmedBy::parse)?),
            None => None,
        };
        let endpoint = match row.get::<_, Option<String>>(4)? {
            Some(_) => Some(word(row, 4, |text| text.parse().ok())?),
            None => None,
        };
        Ok(Self {
            seq: row.get(0)?,
            delivery_id: row.get(1)?,
            key: ItemKey::from_stored(row.get(2)?),
            item: word(row, 3, |text| text.parse().ok())?,
            endpoint,
            state: word(row, 5, State::parse)?,
            reason: row.get(6)?,
            attempts: row.get(7)?,
            retry_at: time(row, 8)?,
            marker: row
                .get::<_, Option<String>>(9)?
                .and_then(|text| Marker::parse(&text)),
            given_up_by: row.get(10)?,
            intent_at: time(row, 11)?,
            pasted_at: time(row, 12)?,
            confirmed_at: time(row, 13)?,
            confirmed_by,
            updated_at: Timestamp::from_unix_ms(row.get(15)?),
            delivery: body(row, 16)?,
        })
    }

    /// Is it over for good? `abandoned` and `uncertain` wait for an operator and are not.
    pub fn is_finished(&self) -> bool {
        is_finished(self.state, self.reason.as_deref())
    }
}

/// Is an outcome in this state, for this reason, over for good?
pub(super) fn is_finished(state: State, reason: Option<&str>) -> bool {
    match state {
        State::Confirmed | State::Settled | State::Dropped => true,
        State::Pasted => reason.is_some_and(|reason| PASTED_ENDS.contains(&reason)),
        State::Accepted
        | State::Routed
        | State::Queued
        | State::Sending
        | State::Failed
        | State::Abandoned
        | State::Uncertain => false,
    }
}

/// An outcome, or a delivery without one, whose state an operator or a redelivery changed: enough for
/// its event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The delivery's place in the order of acceptance.
    pub seq: Seq,
    /// The delivery's id.
    pub delivery_id: String,
    /// The work item, spelt; `None` when the delivery had not been routed.
    pub item: Option<String>,
    /// Its state before.
    pub was: State,
}

/// A word of a closed list. A word that is not in it is an error of that row.
pub(super) fn word<T>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| {
        let why = format!("{text:?} is not known to this release");
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
    })
}

pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row
        .get::<_, Option<i64>>(column)?
        .map(Timestamp::from_unix_ms))
}

fn body(row: &Row<'_>, column: usize) -> rusqlite::Result<Result<Delivery, BodyFault>> {
    let Some(bytes) = row.get::<_, Option<Vec<u8>>>(column)? else {
        return Ok(Err(BodyFault::Gone));
    };
    Ok(serde_json::from_slice(&bytes).map_err(|e| BodyFault::Unreadable(e.to_string())))
}
