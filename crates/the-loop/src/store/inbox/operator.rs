//! The operator's hand: once more, no more (SE-65, SE-66, ST-58).
//!
//! These changes are made without an item's lock, because one transaction may span items and no code
//! holds two locks (ST-24). They leave alone what is being sent, and the engine's next step of a row
//! that was changed under it is refused ([`Inbox::change`] looks at the state on disk), so an outcome
//! is still acted on by one.

use rusqlite::{Connection, OptionalExtension, params};
use the_loop_core::delivery::State;
use the_loop_core::ids::ItemKey;
use the_loop_core::time::Timestamp;

use super::outcomes::{one_delivery, outcomes};
use super::rows::{Changed, DeliveryRow, OPEN_DELIVERY, OutcomeRow, Seq, open_outcome};
use super::watermark::watermark;
use super::{Inbox, InboxError};

/// What became of one id that an operator wants retried (SE-65).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryAnswer {
    /// Queued again with a full budget.
    Queued(Vec<Changed>),
    /// It waits already.
    AlreadyQueued,
    /// In this state there is nothing to retry.
    NothingToRetry(State),
    /// It is uncertain: the agent may have it, so it takes force.
    NeedsForce,
    /// A reset, or a close (`by_close`), put it behind (ST-58).
    Overtaken {
        /// It was a close.
        by_close: bool,
    },
    /// Its text is no longer kept, or cannot be read.
    BodyGone,
    /// No delivery has this id.
    Unknown,
}

/// Which deliveries an operator drops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropWhat {
    /// These ids, in all their outcomes.
    Ids(Vec<String>),
    /// Whatever is open for this item.
    Item(ItemKey),
}

/// What became of one id that an operator wants dropped (SE-66).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropAnswer {
    /// Dropped.
    Dropped(Vec<Changed>),
    /// It was dropped before.
    AlreadyDropped,
    /// It is being sent at this moment; nothing of it was changed.
    Busy,
    /// In this state there is nothing to drop.
    NothingToDrop(State),
    /// No delivery has this id.
    Unknown,
}

/// The reason of what an operator drops.
const BY_OPERATOR: &str = "operator";

/// Finds a delivery by the inbox's number, by its id, or by the id of a redelivery (SE-63).
fn find(connection: &Connection, id: &str) -> Result<Option<Seq>, InboxError> {
    let by_number = match id.parse::<Seq>() {
        Ok(seq) => connection
            .prepare_cached("SELECT seq FROM deliveries WHERE seq = ?1")?
            .query_row([seq], |row| row.get(0))
            .optional()?,
        Err(_) => None,
    };
    if by_number.is_some() {
        return Ok(by_number);
    }
    let by_id = connection
        .prepare_cached("SELECT seq FROM deliveries WHERE delivery_id = ?1")?
        .query_row([id], |row| row.get(0))
        .optional()?;
    if by_id.is_some() {
        return Ok(by_id);
    }
    Ok(connection
        .prepare_cached("SELECT seq FROM dedupe WHERE key = ?1 AND kind = 'transport'")?
        .query_row([id], |row| row.get(0))
        .optional()?)
}

pub(super) fn outcomes_of(
    connection: &Connection,
    seq: Seq,
) -> Result<Vec<OutcomeRow>, InboxError> {
    let sql = format!(
        "{} WHERE o.seq = ?1 ORDER BY o.item_key",
        OutcomeRow::SELECT
    );
    outcomes(connection, &sql, [seq])
}

/// Back to `queued` with a full budget. Its mark stays: an agent that gets it twice sees that.
pub(super) fn requeue_outcome(
    connection: &Connection,
    seq: Seq,
    key: &ItemKey,
    now: Timestamp,
) -> Result<(), InboxError> {
    connection
        .prepare_cached(
            "UPDATE outcomes SET state = 'queued', reason = NULL, attempts = 0, retry_at = NULL,
                    given_up_by = NULL, updated_at = ?3
             WHERE seq = ?1 AND item_key = ?2",
        )?
        .execute(params![seq, key.as_str(), now.unix_ms()])?;
    Ok(())
}

/// One more budget for the abandoned outcomes of a delivery that came again, unless a reset or close
/// put it behind or its text is gone. Says how many.
pub(super) fn reopen_abandoned(
    connection: &Connection,
    seq: Seq,
    now: Timestamp,
) -> Result<usize, InboxError> {
    Ok(connection
        .prepare_cached(
            "UPDATE outcomes SET state = 'queued', reason = NULL, attempts = 0, retry_at = NULL,
                    given_up_by = NULL, updated_at = ?2
             WHERE seq = ?1 AND state = 'abandoned'
               AND EXISTS (SELECT 1 FROM deliveries d WHERE d.seq = ?1 AND d.body IS NOT NULL)
               AND NOT EXISTS (SELECT 1 FROM watermarks w
                               WHERE w.item_key = outcomes.item_key AND w.through_seq >= ?1)",
        )?
        .execute(params![seq, now.unix_ms()])?)
}

fn changed(row: &OutcomeRow) -> Changed {
    Changed {
        seq: row.seq,
        delivery_id: row.delivery_id.clone(),
        item: Some(row.item.to_string()),
        was: row.state,
    }
}

fn changed_delivery(row: &DeliveryRow) -> Changed {
    Changed {
        seq: row.seq,
        delivery_id: row.delivery_id.clone(),
        item: None,
        was: row.state,
    }
}

fn retry_one(
    connection: &Connection,
    id: &str,
    force: bool,
    now: Timestamp,
) -> Result<RetryAnswer, InboxError> {
    let Some(delivery) = find_row(connection, id)? else {
        return Ok(RetryAnswer::Unknown);
    };
    let rows = outcomes_of(connection, delivery.seq)?;
    if rows.is_empty() {
        return retry_delivery(connection, &delivery);
    }
    let mut queued = Vec::new();
    let mut refused = None;
    for row in &rows {
        match refusal(connection, row, force)? {
            None => {
                requeue_outcome(connection, row.seq, &row.key, now)?;
                queued.push(changed(row));
            }
            Some(why) => refused = refused.or(Some(why)),
        }
    }
    Ok(match refused {
        Some(why) if queued.is_empty() => why,
        Some(_) | None => RetryAnswer::Queued(queued),
    })
}

/// Why this outcome is not retried; `None` when it may be.
fn refusal(
    connection: &Connection,
    row: &OutcomeRow,
    force: bool,
) -> Result<Option<RetryAnswer>, InboxError> {
    match row.state {
        State::Queued => return Ok(Some(RetryAnswer::AlreadyQueued)),
        State::Uncertain if !force => return Ok(Some(RetryAnswer::NeedsForce)),
        State::Uncertain | State::Failed | State::Abandoned | State::Dropped => {}
        State::Accepted
        | State::Routed
        | State::Sending
        | State::Pasted
        | State::Confirmed
        | State::Settled => return Ok(Some(RetryAnswer::NothingToRetry(row.state))),
    }
    if let Some(mark) = watermark(connection, &row.key)?.filter(|mark| mark.covers(row.seq)) {
        let by_close = mark.by_close;
        return Ok(Some(RetryAnswer::Overtaken { by_close }));
    }
    Ok(row.delivery.is_err().then_some(RetryAnswer::BodyGone))
}

/// A delivery that never reached an item is judged anew.
fn retry_delivery(connection: &Connection, row: &DeliveryRow) -> Result<RetryAnswer, InboxError> {
    match row.state {
        State::Accepted => return Ok(RetryAnswer::AlreadyQueued),
        State::Failed | State::Dropped => {}
        State::Routed
        | State::Queued
        | State::Sending
        | State::Pasted
        | State::Confirmed
        | State::Settled
        | State::Abandoned
        | State::Uncertain => return Ok(RetryAnswer::NothingToRetry(row.state)),
    }
    if row.delivery.is_err() {
        return Ok(RetryAnswer::BodyGone);
    }
    connection
        .prepare_cached(
            "UPDATE deliveries SET state = 'accepted', reason = NULL, attempts = 0, retry_at = NULL
             WHERE seq = ?1",
        )?
        .execute([row.seq])?;
    Ok(RetryAnswer::Queued(vec![changed_delivery(row)]))
}

pub(super) fn find_row(
    connection: &Connection,
    id: &str,
) -> Result<Option<DeliveryRow>, InboxError> {
    match find(connection, id)? {
        Some(seq) => one_delivery(connection, seq),
        None => Ok(None),
    }
}

fn drop_one(
    connection: &Connection,
    seq: Seq,
    only: Option<&ItemKey>,
    now: Timestamp,
) -> Result<DropAnswer, InboxError> {
    let Some(delivery) = one_delivery(connection, seq)? else {
        return Ok(DropAnswer::Unknown);
    };
    let mut rows = outcomes_of(connection, seq)?;
    if rows.is_empty() {
        return drop_delivery(connection, &delivery);
    }
    rows.retain(|row| only.is_none_or(|key| *key == row.key));
    if rows.iter().any(|row| row.state == State::Sending) {
        return Ok(DropAnswer::Busy);
    }
    let mut dropped = Vec::new();
    for row in rows.iter().filter(|row| !row.is_finished()) {
        connection
            .prepare_cached(
                "UPDATE outcomes SET state = 'dropped', reason = ?3, retry_at = NULL, updated_at = ?4
                 WHERE seq = ?1 AND item_key = ?2",
            )?
            .execute(params![seq, row.key.as_str(), BY_OPERATOR, now.unix_ms()])?;
        dropped.push(changed(row));
    }
    if !dropped.is_empty() {
        return Ok(DropAnswer::Dropped(dropped));
    }
    Ok(nothing_to_drop(
        rows.first().map_or(delivery.state, |row| row.state),
    ))
}

fn nothing_to_drop(state: State) -> DropAnswer {
    if state == State::Dropped {
        DropAnswer::AlreadyDropped
    } else {
        DropAnswer::NothingToDrop(state)
    }
}

fn drop_delivery(connection: &Connection, row: &DeliveryRow) -> Result<DropAnswer, InboxError> {
    if !matches!(row.state, State::Accepted | State::Failed) {
        return Ok(nothing_to_drop(row.state));
    }
    connection
        .prepare_cached(
            "UPDATE deliveries SET state = 'dropped', reason = ?2, retry_at = NULL WHERE seq = ?1",
        )?
        .execute(params![row.seq, BY_OPERATOR])?;
    Ok(DropAnswer::Dropped(vec![changed_delivery(row)]))
}

/// The deliveries that are open for an item: routed to it, or naming it and not yet routed.
fn open_for(connection: &Connection, key: &ItemKey) -> Result<Vec<Seq>, InboxError> {
    let sql = format!(
        "SELECT seq FROM outcomes WHERE item_key = ?1 AND {} ORDER BY seq",
        open_outcome("")
    );
    let mut found: Vec<Seq> = connection
        .prepare_cached(&sql)?
        .query_map([key.as_str()], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let sql = format!(
        "SELECT {} FROM deliveries d WHERE {OPEN_DELIVERY} ORDER BY d.seq",
        DeliveryRow::COLUMNS
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let Ok(row) = DeliveryRow::read(row) else {
            continue;
        };
        if row
            .delivery
            .is_ok_and(|delivery| delivery.item.key() == *key)
        {
            found.push(row.seq);
        }
    }
    Ok(found)
}

impl Inbox {
    /// Gives failed, abandoned and dropped ones a full budget, uncertain ones too with `force`; all in
    /// one transaction (SE-65). One answer for each id, in order.
    pub fn retry(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<Vec<(String, RetryAnswer)>, InboxError> {
        let (ids, now) = (ids.to_vec(), self.now());
        self.write(move |connection| {
            ids.into_iter()
                .map(|id| {
                    let answer = retry_one(connection, &id, force, now)?;
                    Ok((id, answer))
                })
                .collect()
        })
    }

    /// Drops what is not over, all in one transaction (SE-66). Its names stay, so a redelivery does
    /// not bring it back. One answer for each id; for an item, one for each of its open deliveries.
    pub fn drop_deliveries(&self, what: DropWhat) -> Result<Vec<(String, DropAnswer)>, InboxError> {
        let now = self.now();
        self.write(move |connection| match what {
            DropWhat::Ids(ids) => ids
                .into_iter()
                .map(|id| {
                    let answer = match find(connection, &id)? {
                        Some(seq) => drop_one(connection, seq, None, now)?,
                        None => DropAnswer::Unknown,
                    };
                    Ok((id, answer))
                })
                .collect(),
            DropWhat::Item(key) => open_for(connection, &key)?
                .into_iter()
                .map(|seq| {
                    let answer = drop_one(connection, seq, Some(&key), now)?;
                    Ok((seq.to_string(), answer))
                })
                .collect(),
        })
    }
}
