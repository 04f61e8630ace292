//! Accepting: one thing is one delivery, however often and by whichever way it comes (ST-51, IN-10
//! to IN-12).

use rusqlite::{Connection, OptionalExtension, params};
use the_loop_core::delivery::{Delivery, Ingress, State};
use the_loop_core::event::{self, LogEvent};
use the_loop_core::time::Timestamp;

use super::InboxError;
use super::operator::reopen_abandoned;
use super::rows::Seq;

/// What became of an offered delivery. In both cases the peer may be answered: it is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is new.
    New {
        /// Its place in the order of acceptance.
        seq: Seq,
    },
    /// It is known: counted, and its unknown names remembered.
    Duplicate {
        /// Its place in the order of acceptance.
        seq: Seq,
        /// The id under which it came first.
        first_delivery_id: String,
        /// Which of its names was known.
        by: DuplicateBy,
        /// It had been given up and has one more budget: a webhook brought it again (ST-58).
        reopened: bool,
    },
}

/// Which name of a delivery was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DuplicateBy {
    /// The content key.
    Content,
    /// The numeric alias of a comment.
    Numeric,
    /// The transport's own id.
    Transport,
}

impl DuplicateBy {
    /// The word in the inbox and in the event log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::Numeric => "numeric",
            Self::Transport => "transport",
        }
    }
}

impl Accepted {
    /// What the log says of it.
    pub fn event(&self, delivery: &Delivery) -> LogEvent {
        match self {
            Self::New { seq } => LogEvent::DeliveryAccepted {
                delivery_id: delivery.delivery_id.clone(),
                ingress: delivery.ingress,
                gh_event: delivery.event.clone(),
                action: delivery.action.clone(),
                actor: delivery.actor.as_ref().map(|actor| actor.login.clone()),
                content_key: delivery.content_key.clone(),
                seq: seq.unsigned_abs(),
            },
            Self::Duplicate {
                first_delivery_id,
                by,
                ..
            } => LogEvent::DeliveryDuplicate {
                delivery_id: delivery.delivery_id.clone(),
                first_delivery_id: first_delivery_id.clone(),
                by: match by {
                    DuplicateBy::Content => event::DuplicateBy::Content,
                    DuplicateBy::Numeric => event::DuplicateBy::Numeric,
                    DuplicateBy::Transport => event::DuplicateBy::Transport,
                },
                ingress: delivery.ingress,
                gh_event: Some(delivery.event.clone()),
                action: delivery.action.clone(),
            },
        }
    }
}

/// The names a delivery is looked up and entered by, in order of weight.
fn names(delivery: &Delivery) -> Vec<(DuplicateBy, &str)> {
    let mut names = Vec::with_capacity(3);
    if delivery.content_key_is_whole() {
        names.push((DuplicateBy::Content, delivery.content_key.as_str()));
    }
    if let Some(key) = &delivery.numeric_key {
        names.push((DuplicateBy::Numeric, key.as_str()));
    }
    names.push((DuplicateBy::Transport, delivery.delivery_id.as_str()));
    names
}

/// The transaction's part of one acceptance. The text is made before, on the caller's time.
pub(super) fn work(
    delivery: &Delivery,
    now: Timestamp,
) -> Result<impl FnOnce(&Connection) -> Result<Accepted, InboxError> + Send + use<>, InboxError> {
    let body = serde_json::to_vec(delivery).map_err(|e| InboxError::Conflict(e.to_string()))?;
    let delivery = delivery.clone();
    Ok(move |connection: &Connection| accept(connection, &delivery, &body, now))
}

fn accept(
    connection: &Connection,
    delivery: &Delivery,
    body: &[u8],
    now: Timestamp,
) -> Result<Accepted, InboxError> {
    let names = names(delivery);
    let mut known = None;
    {
        let mut count = connection.prepare_cached(
            "UPDATE dedupe SET again = again + 1, last_at = max(last_at, ?2) WHERE key = ?1
             RETURNING seq",
        )?;
        for (by, key) in &names {
            let seq: Option<Seq> = count
                .query_row(params![key, now.unix_ms()], |row| row.get(0))
                .optional()?;
            if let (None, Some(seq)) = (known, seq) {
                known = Some((*by, seq));
            }
        }
    }
    let seq = match known {
        Some((_, seq)) => seq,
        None => insert(connection, delivery, body)?,
    };
    let mut enter = connection.prepare_cached(
        "INSERT INTO dedupe (key, kind, seq, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?4)
         ON CONFLICT (key) DO NOTHING",
    )?;
    for (by, key) in &names {
        enter.execute(params![key, by.as_str(), seq, now.unix_ms()])?;
    }
    let Some((by, seq)) = known else {
        return Ok(Accepted::New { seq });
    };
    let first_delivery_id = connection
        .prepare_cached("SELECT delivery_id FROM deliveries WHERE seq = ?1")?
        .query_row([seq], |row| row.get(0))?;
    let reopened =
        delivery.ingress == Ingress::Webhook && reopen_abandoned(connection, seq, now)? > 0;
    Ok(Accepted::Duplicate {
        seq,
        first_delivery_id,
        by,
        reopened,
    })
}

fn insert(connection: &Connection, delivery: &Delivery, body: &[u8]) -> Result<Seq, InboxError> {
    connection
        .prepare_cached(
            "INSERT INTO deliveries (delivery_id, content_key, ingress, provider, host, event,
                                     action, actor, received_at, state, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            delivery.delivery_id,
            delivery.content_key,
            delivery.ingress.as_str(),
            delivery.item.provider(),
            delivery.item.repo().host,
            delivery.event,
            delivery.action,
            delivery.actor.as_ref().map(|actor| &actor.login),
            delivery.received_at.unix_ms(),
            State::Accepted.as_str(),
            body,
        ])?;
    Ok(connection.last_insert_rowid())
}
