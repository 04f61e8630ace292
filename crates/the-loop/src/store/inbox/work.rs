//! The work that is left: what is to be judged, and which items have something to do (DI-5, DI-8).

use rusqlite::params;
use the_loop_core::delivery::State;
use the_loop_core::ids::{ItemKey, WorkItemRef};
use the_loop_core::limits::INBOX_UNROUTED_MAX;
use the_loop_core::time::Timestamp;

use super::operator::outcomes_of;
use super::outcomes::{one_delivery, one_outcome, outcomes};
use super::rows::{
    DeliveryRow, OPEN_DELIVERY, OutcomeRow, Seq, open_outcome, time, unfinished_outcome,
};
use super::watermark::{Watermark, watermark};
use super::{InboxError, InboxReader};

/// A work item with unfinished outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemWork {
    /// The work item as it is spelt.
    pub item: WorkItemRef,
    /// Its identity.
    pub key: ItemKey,
    /// Its oldest unfinished delivery: items are served in this order.
    pub oldest_seq: Seq,
    /// Newest unfinished delivery.
    pub newest_seq: Seq,
    /// How many are unfinished.
    pub unfinished: u64,
    /// One of them can be worked on now: it is queued, sending or pasted, or its retry time has come.
    pub ready: bool,
    /// The earliest retry time that is still to come.
    pub retry_at: Option<Timestamp>,
}

impl InboxReader {
    /// Deliveries to be judged: accepted ones, and failed ones whose retry time has come. Oldest
    /// first, a bounded number: route or end them and ask again. A row that this release cannot read
    /// is left out; [`InboxReader::show`] tells of it.
    pub fn unrouted(&self, now: Timestamp) -> Result<Vec<DeliveryRow>, InboxError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT {} FROM deliveries d WHERE {OPEN_DELIVERY}
                 AND (d.state = 'accepted' OR coalesce(d.retry_at, 0) <= ?1)
                 ORDER BY d.seq LIMIT ?2",
                DeliveryRow::COLUMNS
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params![now.unix_ms(), INBOX_UNROUTED_MAX])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.extend(DeliveryRow::read(row).ok());
            }
            Ok(found)
        })
    }

    /// The item's outcomes that are not over, in order of acceptance: unfinished and `uncertain`
    /// ones. `abandoned` ones wait for somebody else, and an `uncertain` one that a reset or close
    /// overtook is not to be acted on.
    pub fn open_outcomes(&self, key: &ItemKey) -> Result<Vec<OutcomeRow>, InboxError> {
        self.read(|connection| {
            let sql = format!(
                "{} WHERE o.item_key = ?1 AND {} AND o.state <> 'abandoned' ORDER BY o.seq",
                OutcomeRow::SELECT,
                open_outcome("o."),
            );
            let mark = watermark(connection, key)?;
            let over = |row: &OutcomeRow| mark.as_ref().is_some_and(|mark| mark.covers(row.seq));
            let mut rows = outcomes(connection, &sql, [key.as_str()])?;
            rows.retain(|row| row.state != State::Uncertain || !over(row));
            Ok(rows)
        })
    }

    /// One outcome, whatever its state.
    pub fn outcome(&self, seq: Seq, key: &ItemKey) -> Result<Option<OutcomeRow>, InboxError> {
        self.read(|connection| one_outcome(connection, seq, key))
    }

    /// All outcomes of one delivery, for whoever waits for its end (DI-6). Empty until it is routed.
    pub fn outcomes_of(&self, seq: Seq) -> Result<Vec<OutcomeRow>, InboxError> {
        self.read(|connection| outcomes_of(connection, seq))
    }

    /// One delivery, whatever its state.
    pub fn delivery(&self, seq: Seq) -> Result<Option<DeliveryRow>, InboxError> {
        self.read(|connection| one_delivery(connection, seq))
    }

    /// Items with unfinished outcomes, the one with the oldest delivery first (DI-5). An item whose
    /// stored name is no ref is left out.
    pub fn items_with_work(&self, now: Timestamp) -> Result<Vec<ItemWork>, InboxError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT item_key, min(item), min(seq) AS oldest, count(*),
                        max(state <> 'failed' OR coalesce(retry_at, 0) <= ?1),
                        min(CASE WHEN state = 'failed' AND retry_at > ?1 THEN retry_at END), max(seq)
                 FROM outcomes WHERE {} GROUP BY item_key ORDER BY oldest",
                unfinished_outcome(""),
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query([now.unix_ms()])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let Ok(item) = row.get::<_, String>(1)?.parse() else {
                    continue;
                };
                found.push(ItemWork {
                    item,
                    key: ItemKey::from_stored(row.get(0)?),
                    oldest_seq: row.get(2)?,
                    newest_seq: row.get(6)?,
                    unfinished: row.get::<_, i64>(3)?.unsigned_abs(),
                    ready: row.get(4)?,
                    retry_at: time(row, 5)?,
                });
            }
            Ok(found)
        })
    }

    /// Items with deliveries that another version of the program gave up (seed 004, AC11). An item whose
    /// stored name is no ref is left out.
    pub fn given_up_by_others(&self, version: &str) -> Result<Vec<WorkItemRef>, InboxError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT min(item) FROM outcomes WHERE state = 'abandoned' AND given_up_by <> ?1
                 GROUP BY item_key ORDER BY min(seq)",
            )?;
            let mut rows = statement.query([version])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.extend(row.get::<_, String>(0)?.parse().ok());
            }
            Ok(found)
        })
    }

    /// The item's last reset or close here (ST-56).
    pub fn watermark(&self, key: &ItemKey) -> Result<Option<Watermark>, InboxError> {
        self.read(|connection| watermark(connection, key))
    }
}
