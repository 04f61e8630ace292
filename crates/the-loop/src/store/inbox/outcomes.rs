//! From accepted to an end: routing, and the steps of an outcome (DI-3, ST-53, ST-54).

use rusqlite::{Connection, OptionalExtension, params};
use the_loop_core::delivery::{Delivery, Effect, State};
use the_loop_core::ids::{ItemKey, Marker, WorkItemRef};
use the_loop_core::time::Timestamp;

use super::operator::requeue_outcome;
use super::rows::{Changed, ConfirmedBy, DeliveryRow, OutcomeRow, Seq};
use super::watermark::watermark;
use super::{HoldsItem, Inbox, InboxError, must_hold};

/// One work item that a delivery concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOutcome {
    /// The work item, in its canonical spelling (ST-5).
    pub item: WorkItemRef,
    /// A pull request with a session of its own, to which it goes.
    pub endpoint: Option<WorkItemRef>,
    /// The mark that its prompt will carry; new for every outcome.
    pub marker: Marker,
}

/// What routing made of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Routed {
    /// Outcomes that wait now.
    pub queued: Vec<OutcomeRow>,
    /// Outcomes that ended at once, because the item was reset or closed after the delivery came
    /// (ST-56). Their reason is `reset` or `item-closed`.
    pub dropped: Vec<OutcomeRow>,
}

/// One step of an outcome. What is not said is left as it is, except that leaving a state forgets
/// its reason and its retry time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeChange {
    to: State,
    stays: bool,
    reason: Option<String>,
    retry_at: Option<Timestamp>,
    count_attempt: bool,
    intent_at: Option<Timestamp>,
    pasted_at: Option<Timestamp>,
    confirmed: Option<(ConfirmedBy, Timestamp)>,
    given_up_by: Option<String>,
}

impl OutcomeChange {
    /// To another state, if [`State::may_become`] allows it. `abandoned` and `dropped` are left only
    /// by an operator, a redelivery or a new version, never by this.
    ///
    /// `sending` and `pasted` note the time of the change where none is given (ST-54).
    pub fn to(state: State) -> Self {
        Self {
            to: state,
            stays: false,
            reason: None,
            retry_at: None,
            count_attempt: false,
            intent_at: None,
            pasted_at: None,
            confirmed: None,
            given_up_by: None,
        }
    }

    /// A queued one waits for `reason`. It shows as `heldBecause` and is forgotten when the outcome
    /// leaves the queue.
    pub fn hold(reason: impl Into<String>) -> Self {
        Self {
            stays: true,
            ..Self::to(State::Queued).reason(reason)
        }
    }

    /// A queued one waits for nothing but its turn.
    pub fn unhold() -> Self {
        Self {
            stays: true,
            ..Self::to(State::Queued)
        }
    }

    /// A pasted one that no harness will confirm is over: `no-confirmation` or `screen-seen`.
    pub fn pasted_for_good(reason: impl Into<String>) -> Self {
        Self {
            stays: true,
            ..Self::to(State::Pasted).reason(reason)
        }
    }

    /// With this reason, of the closed lists of the events page.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
    /// To be tried again at this time.
    #[must_use]
    pub fn retry_at(mut self, at: Timestamp) -> Self {
        self.retry_at = Some(at);
        self
    }
    /// This try counts against the budget (DI-4).
    #[must_use]
    pub fn count_attempt(mut self) -> Self {
        self.count_attempt = true;
        self
    }
    /// The try to send began at this time.
    #[must_use]
    pub fn intent_at(mut self, at: Timestamp) -> Self {
        self.intent_at = Some(at);
        self
    }
    /// It was pasted at this time.
    #[must_use]
    pub fn pasted_at(mut self, at: Timestamp) -> Self {
        self.pasted_at = Some(at);
        self
    }
    /// The harness said at this time that it has it.
    #[must_use]
    pub fn confirmed(mut self, by: ConfirmedBy, at: Timestamp) -> Self {
        self.confirmed = Some((by, at));
        self
    }
    /// This version of the program gives it up.
    #[must_use]
    pub fn given_up_by(mut self, version: impl Into<String>) -> Self {
        self.given_up_by = Some(version.into());
        self
    }

    fn allowed_from(&self, from: State) -> bool {
        if self.stays {
            return from == self.to;
        }
        let ended = matches!(from, State::Abandoned | State::Dropped);
        from.may_become(self.to) && !ended
    }
}

impl Inbox {
    /// A delivery concerns these items: it becomes `routed`, they become `queued`. What was reset or
    /// closed since it came is dropped at once (ST-56). An item named twice counts once.
    ///
    /// [`InboxError::Refused`] when it was routed or ended already.
    pub fn route(&self, seq: Seq, outcomes: &[NewOutcome]) -> Result<Routed, InboxError> {
        let outcomes = outcomes.to_vec();
        let now = self.now();
        self.write(move |connection| queue(connection, seq, outcomes, now))
    }

    /// Keeps what the tracker answered about a delivery that is not judged yet: whatever comes later reads it
    /// with these answers.
    ///
    /// [`InboxError::Refused`] when it was routed or ended already.
    pub fn answered(&self, seq: Seq, delivery: &Delivery) -> Result<(), InboxError> {
        let body = serde_json::to_vec(delivery).map_err(|e| InboxError::Conflict(e.to_string()))?;
        self.write(move |connection| {
            let state: State = connection
                .prepare_cached("SELECT state FROM deliveries WHERE seq = ?1")?
                .query_row([seq], |row| super::rows::word(row, 0, State::parse))
                .optional()?
                .ok_or(InboxError::Unknown)?;
            if !matches!(state, State::Accepted | State::Failed) {
                return Err(InboxError::Refused {
                    from: state,
                    to: State::Accepted,
                });
            }
            connection
                .prepare_cached("UPDATE deliveries SET body = ?2 WHERE seq = ?1")?
                .execute(params![seq, body])?;
            Ok(())
        })
    }

    /// A delivery is over without concerning any item: `settled` or `dropped`, for this reason.
    pub fn end_delivery(&self, seq: Seq, state: State, reason: &str) -> Result<(), InboxError> {
        let reason = reason.to_owned();
        self.write(move |connection| leave_acceptance(connection, seq, state, Some(&reason)))
    }

    /// A delivery could not be judged now; it is offered again at `retry_at`. Returns its counted
    /// attempts.
    pub fn fail_delivery(
        &self,
        seq: Seq,
        reason: &str,
        retry_at: Timestamp,
        count_attempt: bool,
    ) -> Result<u32, InboxError> {
        let reason = reason.to_owned();
        self.write(move |connection| {
            leave_acceptance(connection, seq, State::Failed, Some(&reason))?;
            Ok(connection
                .prepare_cached(
                    "UPDATE deliveries SET retry_at = ?2, attempts = attempts + ?3
                     WHERE seq = ?1 RETURNING attempts",
                )?
                .query_row(params![seq, retry_at.unix_ms(), count_attempt], |row| {
                    row.get(0)
                })?)
        })
    }

    /// Takes an outcome one step on, under its item's lock, from the state that is on disk (ST-53).
    pub fn change(
        &self,
        lock: &dyn HoldsItem,
        seq: Seq,
        key: &ItemKey,
        change: OutcomeChange,
    ) -> Result<OutcomeRow, InboxError> {
        must_hold(lock, key)?;
        let key = key.clone();
        let now = self.now();
        self.write(move |connection| {
            let row = one_outcome(connection, seq, &key)?.ok_or(InboxError::Unknown)?;
            if !change.allowed_from(row.state) {
                return Err(InboxError::Refused {
                    from: row.state,
                    to: change.to,
                });
            }
            store_change(connection, &row, &change, now)?;
            one_outcome(connection, seq, &key)?.ok_or(InboxError::Unknown)
        })
    }

    /// Outcomes of the item that another version of the program gave up get a full budget (DI-4,
    /// ST-58). Those that this version gave up stay as they are, and those that nobody signed, so
    /// that asking again is harmless; so does what a reset or a close overtook, and a start from a
    /// verb, which whoever asked saw fail (DI-4).
    pub fn rearm(
        &self,
        lock: &dyn HoldsItem,
        key: &ItemKey,
        version: &str,
    ) -> Result<Vec<Changed>, InboxError> {
        must_hold(lock, key)?;
        let (key, version, now) = (key.clone(), version.to_owned(), self.now());
        self.write(move |connection| {
            let sql = format!(
                "{} WHERE o.item_key = ?1 AND o.state = 'abandoned'
                 AND o.given_up_by <> ?2 ORDER BY o.seq",
                OutcomeRow::SELECT,
            );
            let mark = watermark(connection, &key)?;
            let mut changed = Vec::new();
            for row in outcomes(connection, &sql, params![key.as_str(), version])? {
                let overtaken = mark.as_ref().is_some_and(|mark| mark.covers(row.seq));
                let is_prompt =
                    |delivery: &Delivery| !matches!(delivery.effect, Effect::Start { .. });
                if row.delivery.as_ref().is_ok_and(is_prompt) && !overtaken {
                    requeue_outcome(connection, row.seq, &row.key, now)?;
                    changed.push(Changed {
                        seq: row.seq,
                        delivery_id: row.delivery_id,
                        item: Some(row.item.to_string()),
                        was: row.state,
                    });
                }
            }
            Ok(changed)
        })
    }
}

/// A delivery leaves `accepted`, or `failed`, which is `accepted` with a time to wait for.
pub(super) fn leave_acceptance(
    connection: &Connection,
    seq: Seq,
    to: State,
    reason: Option<&str>,
) -> Result<(), InboxError> {
    let from = connection
        .prepare_cached("SELECT state FROM deliveries WHERE seq = ?1")?
        .query_row([seq], |row| super::rows::word(row, 0, State::parse))
        .optional()?
        .ok_or(InboxError::Unknown)?;
    let judged_from = match from {
        State::Failed => State::Accepted,
        State::Accepted
        | State::Routed
        | State::Queued
        | State::Sending
        | State::Pasted
        | State::Confirmed
        | State::Settled
        | State::Dropped
        | State::Abandoned
        | State::Uncertain => from,
    };
    if judged_from != State::Accepted || !judged_from.may_become(to) {
        return Err(InboxError::Refused { from, to });
    }
    connection
        .prepare_cached(
            "UPDATE deliveries SET state = ?2, reason = ?3, retry_at = NULL WHERE seq = ?1",
        )?
        .execute(params![seq, to.as_str(), reason])?;
    Ok(())
}

fn store_change(
    connection: &Connection,
    row: &OutcomeRow,
    change: &OutcomeChange,
    now: Timestamp,
) -> Result<(), InboxError> {
    let or_now = |given: Option<Timestamp>, state| {
        let at = given.or((change.to == state && !change.stays).then_some(now));
        at.map(Timestamp::unix_ms)
    };
    let confirmed_at = or_now(change.confirmed.map(|(_, at)| at), State::Confirmed);
    // A harness that has the prompt was sent it, whether or not we saw the paste succeed.
    let pasted_at = or_now(change.pasted_at, State::Pasted).or_else(|| {
        let sent = row.pasted_at.or(row.intent_at)?;
        (change.to == State::Confirmed).then_some(sent.unix_ms())
    });
    connection
        .prepare_cached(
            "UPDATE outcomes SET state = ?3, reason = ?4, retry_at = ?5, attempts = attempts + ?6,
                    intent_at = coalesce(?7, intent_at), pasted_at = coalesce(?8, pasted_at),
                    confirmed_at = ?9, confirmed_by = ?10, given_up_by = ?11, updated_at = ?12
             WHERE seq = ?1 AND item_key = ?2",
        )?
        .execute(params![
            row.seq,
            row.key.as_str(),
            change.to.as_str(),
            change.reason,
            change.retry_at.map(Timestamp::unix_ms),
            change.count_attempt,
            or_now(change.intent_at, State::Sending),
            pasted_at,
            confirmed_at,
            change.confirmed.map(|(by, _)| by.as_str()),
            change.given_up_by,
            now.unix_ms(),
        ])?;
    Ok(())
}

pub(super) fn one_outcome(
    connection: &Connection,
    seq: Seq,
    key: &ItemKey,
) -> Result<Option<OutcomeRow>, InboxError> {
    let sql = format!(
        "{} WHERE o.seq = ?1 AND o.item_key = ?2",
        OutcomeRow::SELECT
    );
    connection
        .prepare_cached(&sql)?
        .query_row(params![seq, key.as_str()], OutcomeRow::read)
        .optional()
        .map_err(|e| unreadable(seq, e))
}

pub(super) fn outcomes(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<OutcomeRow>, InboxError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = row.get(0)?;
        found.push(OutcomeRow::read(row).map_err(|e| unreadable(seq, e))?);
    }
    Ok(found)
}

/// A value that is not of our closed lists names its row; every other error is the file's.
pub(super) fn unreadable(seq: Seq, e: rusqlite::Error) -> InboxError {
    match e {
        rusqlite::Error::FromSqlConversionFailure(_, _, why) => InboxError::Unreadable {
            seq,
            detail: why.to_string(),
        },
        other => other.into(),
    }
}

pub(super) fn one_delivery(
    connection: &Connection,
    seq: Seq,
) -> Result<Option<DeliveryRow>, InboxError> {
    let sql = format!(
        "SELECT {} FROM deliveries d WHERE d.seq = ?1",
        DeliveryRow::COLUMNS
    );
    connection
        .prepare_cached(&sql)?
        .query_row([seq], DeliveryRow::read)
        .optional()
        .map_err(|e| unreadable(seq, e))
}

/// Makes a delivery `routed`, with an outcome for each of these items.
pub(super) fn queue(
    connection: &Connection,
    seq: Seq,
    outcomes: Vec<NewOutcome>,
    now: Timestamp,
) -> Result<Routed, InboxError> {
    leave_acceptance(connection, seq, State::Routed, None)?;
    let mut routed = Routed {
        queued: Vec::new(),
        dropped: Vec::new(),
    };
    for new in outcomes {
        let key = new.item.key();
        let overtaken = watermark(connection, &key)?.filter(|mark| mark.covers(seq));
        let (state, reason) = match &overtaken {
            Some(mark) => (State::Dropped, Some(mark.reason())),
            None => (State::Queued, None),
        };
        connection
            .prepare_cached(
                "INSERT INTO outcomes
                   (seq, item_key, item, endpoint, state, reason, marker, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT (seq, item_key) DO NOTHING",
            )?
            .execute(params![
                seq,
                key.as_str(),
                new.item.to_string(),
                new.endpoint.as_ref().map(ToString::to_string),
                state.as_str(),
                reason,
                new.marker.as_str(),
                now.unix_ms(),
            ])?;
        let row = one_outcome(connection, seq, &key)?.ok_or(InboxError::Unknown)?;
        let list = match overtaken {
            Some(_) => &mut routed.dropped,
            None => &mut routed.queued,
        };
        if !list.iter().any(|known| known.key == row.key) {
            list.push(row);
        }
    }
    Ok(routed)
}
