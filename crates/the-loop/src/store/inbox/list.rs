//! The operator's window: what came in and where it stands (SE-63, SE-64, `status`).

use rusqlite::{Row, params};
use the_loop_core::delivery::{Ingress, State};
use the_loop_core::ids::ItemKey;
use the_loop_core::time::Timestamp;

use super::operator::{find_row, outcomes_of};
use super::outcomes::unreadable;
use super::rows::{
    DeliveryRow, OPEN_DELIVERY, OutcomeRow, Seq, is_finished, open_outcome, time, word,
};
use super::{InboxError, InboxReader};

/// Which states a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum States {
    /// Everything that is not over: unfinished, `uncertain` and `abandoned`.
    #[default]
    Open,
    /// Every state.
    All,
    /// These.
    These(Vec<State>),
}

/// What a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Only of this item. Deliveries that are not routed belong to none.
    pub item: Option<ItemKey>,
    /// Only in these states.
    pub states: States,
    /// Only accepted at this time or later.
    pub since: Option<Timestamp>,
    /// The newest so many; `None` for all.
    pub limit: Option<u32>,
}

/// A line of the list: an outcome, or a delivery that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRow {
    /// Order of acceptance.
    pub seq: Seq,
    /// The id under which it came first.
    pub delivery_id: String,
    /// The work item, spelt; `None` for a delivery without outcomes.
    pub item: Option<String>,
    /// The pull request it goes to.
    pub endpoint: Option<String>,
    /// The way in.
    pub ingress: Ingress,
    /// Event as the provider calls it.
    pub event: String,
    /// Action.
    pub action: Option<String>,
    /// Login of the sender.
    pub actor: Option<String>,
    /// State of the outcome, else of the delivery.
    pub state: State,
    /// Why it is in that state; of a queued one: what it waits for.
    pub reason: Option<String>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// Last change of the outcome; of a delivery: its acceptance.
    pub updated_at: Timestamp,
    /// Counted tries.
    pub attempts: u32,
    /// When a failed one is tried again.
    pub retry_at: Option<Timestamp>,
}

/// A name under which a delivery is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKey {
    /// The name.
    pub key: String,
    /// `content`, `numeric` or `transport`.
    pub kind: String,
    /// First and last arrival under it.
    pub first_at: Timestamp,
    /// Last arrival under it.
    pub last_at: Timestamp,
    /// Arrivals after the first.
    pub again: u64,
}

/// One delivery with all that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The delivery.
    pub delivery: DeliveryRow,
    /// Its outcomes.
    pub outcomes: Vec<OutcomeRow>,
    /// Its names.
    pub keys: Vec<KnownKey>,
}

/// How many wait and for what (`status`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxCounts {
    /// Accepted deliveries, and queued outcomes that wait for their turn only.
    pub waiting: u64,
    /// When the oldest of those was accepted.
    pub oldest_at: Option<Timestamp>,
    /// Being sent, or pasted and not yet confirmed.
    pub in_work: u64,
    /// Queued with a reason to wait.
    pub held: u64,
    /// Failed, with a time to try again.
    pub failed: u64,
    /// Whether the agent has them is not known.
    pub uncertain: u64,
    /// Given up.
    pub abandoned: u64,
}

/// SQL for "its state is one of those", over a table of this prefix.
fn in_states(states: &States, prefix: &str, open: &str) -> String {
    match states {
        States::Open => open.to_owned(),
        States::All => "1".to_owned(),
        // The words come from our own enum, so they may stand in the text.
        States::These(these) => {
            let words: Vec<String> = these.iter().map(|state| format!("'{state}'")).collect();
            format!("{prefix}state IN ({})", words.join(", "))
        }
    }
}

fn list_row(row: &Row<'_>) -> rusqlite::Result<ListRow> {
    Ok(ListRow {
        seq: row.get(0)?,
        delivery_id: row.get(1)?,
        item: row.get(2)?,
        endpoint: row.get(3)?,
        ingress: word(row, 4, Ingress::parse)?,
        event: row.get(5)?,
        action: row.get(6)?,
        actor: row.get(7)?,
        state: word(row, 8, State::parse)?,
        reason: row.get(9)?,
        accepted_at: Timestamp::from_unix_ms(row.get(10)?),
        updated_at: Timestamp::from_unix_ms(row.get(11)?),
        attempts: row.get(12)?,
        retry_at: time(row, 13)?,
    })
}

impl InboxReader {
    /// The newest that match, oldest first: a line for each outcome, else one for the delivery
    /// (SE-63).
    pub fn list(&self, filter: &ListFilter) -> Result<Vec<ListRow>, InboxError> {
        let of_outcomes = in_states(&filter.states, "o.", &open_outcome("o."));
        let of_deliveries = in_states(&filter.states, "d.", OPEN_DELIVERY);
        let sql = format!(
            "SELECT d.seq, d.delivery_id, o.item, o.endpoint, d.ingress, d.event, d.action, d.actor,
                    o.state, o.reason, d.received_at, o.updated_at, o.attempts, o.retry_at
             FROM outcomes o JOIN deliveries d ON d.seq = o.seq
             WHERE {of_outcomes} AND d.received_at >= ?1 AND (?2 IS NULL OR o.item_key = ?2)
             UNION ALL
             SELECT d.seq, d.delivery_id, NULL, NULL, d.ingress, d.event, d.action, d.actor,
                    d.state, d.reason, d.received_at, d.received_at, d.attempts, d.retry_at
             FROM deliveries d
             WHERE {of_deliveries} AND d.received_at >= ?1 AND ?2 IS NULL
               AND NOT EXISTS (SELECT 1 FROM outcomes x WHERE x.seq = d.seq)
             ORDER BY 1 DESC, 3 DESC LIMIT ?3"
        );
        let since = filter.since.map_or(i64::MIN, Timestamp::unix_ms);
        let limit = filter.limit.map_or(-1, i64::from);
        self.read(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let key = filter.item.as_ref().map(ItemKey::as_str);
            let mut rows = statement.query(params![since, key, limit])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let seq = row.get(0)?;
                found.push(list_row(row).map_err(|e| unreadable(seq, e))?);
            }
            found.reverse();
            Ok(found)
        })
    }

    /// One delivery with its outcomes and names, by number or by any transport id (SE-64).
    pub fn show(&self, id: &str) -> Result<Option<Shown>, InboxError> {
        self.read(|connection| {
            let Some(delivery) = find_row(connection, id)? else {
                return Ok(None);
            };
            let mut statement = connection.prepare_cached(
                "SELECT key, kind, first_at, last_at, again FROM dedupe WHERE seq = ?1
                 ORDER BY kind, first_at, key",
            )?;
            let keys = statement
                .query_map([delivery.seq], |row| {
                    Ok(KnownKey {
                        key: row.get(0)?,
                        kind: row.get(1)?,
                        first_at: Timestamp::from_unix_ms(row.get(2)?),
                        last_at: Timestamp::from_unix_ms(row.get(3)?),
                        again: row.get::<_, i64>(4)?.unsigned_abs(),
                    })
                })?
                .collect::<Result<_, _>>()?;
            Ok(Some(Shown {
                outcomes: outcomes_of(connection, delivery.seq)?,
                delivery,
                keys,
            }))
        })
    }

    /// How many wait and for what.
    pub fn counts(&self) -> Result<InboxCounts, InboxError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT d.state, d.reason, d.received_at FROM deliveries d WHERE {OPEN_DELIVERY}
                 UNION ALL
                 SELECT o.state, o.reason, d.received_at
                 FROM outcomes o JOIN deliveries d ON d.seq = o.seq WHERE {}",
                open_outcome("o."),
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(())?;
            let mut counts = InboxCounts::default();
            while let Some(row) = rows.next()? {
                let reason: Option<String> = row.get(1)?;
                let received_at = Timestamp::from_unix_ms(row.get(2)?);
                let state = word(row, 0, State::parse)?;
                counts.add(state, reason.as_deref(), received_at);
            }
            Ok(counts)
        })
    }
}

impl InboxCounts {
    fn add(&mut self, state: State, reason: Option<&str>, received_at: Timestamp) {
        if is_finished(state, reason) {
            return;
        }
        match state {
            State::Queued if reason.is_some() => self.held += 1,
            State::Accepted | State::Queued => {
                self.waiting += 1;
                let oldest = self.oldest_at.map_or(received_at, |at| at.min(received_at));
                self.oldest_at = Some(oldest);
            }
            State::Sending | State::Pasted => self.in_work += 1,
            State::Failed => self.failed += 1,
            State::Uncertain => self.uncertain += 1,
            State::Abandoned => self.abandoned += 1,
            State::Routed | State::Confirmed | State::Settled | State::Dropped => {}
        }
    }
}
