//! Forgetting an item: what a reset and a close leave behind (ST-56).

use rusqlite::{Connection, OptionalExtension, params};
use the_loop_core::delivery::State;
use the_loop_core::ids::ItemKey;
use the_loop_core::time::Timestamp;

use super::limits::{Parked, parked};
use super::outcomes::outcomes;
use super::rows::{OutcomeRow, Seq, unfinished_outcome};
use super::{HoldsItem, Inbox, InboxError, must_hold};

/// What is being put behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A reset: everything accepted so far.
    Reset,
    /// The close of the ticket: everything accepted before it.
    Close {
        /// The close's own delivery. It is left for its own end.
        seq: Seq,
        /// When the provider says it was closed; now, where it does not say.
        closed_at: Option<Timestamp>,
    },
}

/// The mark on an item: deliveries up to it are behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// The last delivery behind it.
    pub through_seq: Seq,
    /// When; words written before are not obeyed at first sight (IN-45).
    pub at: Timestamp,
    /// It was left by a close, else by a reset.
    pub by_close: bool,
}

impl Watermark {
    /// Is that delivery behind the mark?
    pub fn covers(&self, seq: Seq) -> bool {
        seq <= self.through_seq
    }

    /// The reason of what it drops.
    pub fn reason(&self) -> &'static str {
        reason(self.by_close)
    }
}

fn reason(by_close: bool) -> &'static str {
    if by_close { "item-closed" } else { "reset" }
}

/// What a mark took with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The outcomes it ended, as they are now.
    pub dropped: Vec<OutcomeRow>,
    /// The limit that had stopped the item.
    pub parked: Option<Parked>,
    /// A question of the agent was open.
    pub asked: bool,
    /// Token counts were removed (a reset's; a close keeps them).
    pub usage: bool,
}

/// The item's mark.
pub(super) fn watermark(
    connection: &Connection,
    key: &ItemKey,
) -> Result<Option<Watermark>, InboxError> {
    let found = connection
        .prepare_cached("SELECT through_seq, at, why FROM watermarks WHERE item_key = ?1")?
        .query_row([key.as_str()], |row| {
            Ok(Watermark {
                through_seq: row.get(0)?,
                at: Timestamp::from_unix_ms(row.get(1)?),
                by_close: row.get::<_, String>(2)? == "close",
            })
        })
        .optional()?;
    Ok(found)
}

/// The unfinished outcomes that a mark of this kind would end, and how far it reaches.
fn reach(
    connection: &Connection,
    key: &ItemKey,
    mark: Mark,
) -> Result<(Seq, Vec<OutcomeRow>), InboxError> {
    let (through, last_dropped) = match mark {
        Mark::Reset => {
            let highest: Seq = connection
                .prepare_cached(
                    "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'deliveries'",
                )?
                .query_row((), |row| row.get(0))?;
            (highest, highest)
        }
        Mark::Close { seq, .. } => (seq, seq - 1),
    };
    let sql = format!(
        "{} WHERE o.item_key = ?1 AND {} AND o.seq <= ?2 ORDER BY o.seq",
        OutcomeRow::SELECT,
        unfinished_outcome("o."),
    );
    let rows = outcomes(connection, &sql, params![key.as_str(), last_dropped])?;
    Ok((through, rows))
}

impl super::InboxReader {
    /// The outcomes that [`Inbox::set_watermark`] would end: for a dry run, and for the events that
    /// come before the change (EV-8). Under the item's lock the answer stays true but for what an
    /// operator drops meanwhile.
    pub fn would_drop(&self, key: &ItemKey, mark: Mark) -> Result<Vec<OutcomeRow>, InboxError> {
        self.read(|connection| Ok(reach(connection, key, mark)?.1))
    }
}

impl Inbox {
    /// Puts the item's deliveries up to the mark behind: unfinished outcomes are dropped, and what was
    /// remembered of a limit, a question and (a reset) the usage goes. Names of deliveries stay, so
    /// nothing comes back. A mark never moves backwards.
    pub fn set_watermark(
        &self,
        lock: &dyn HoldsItem,
        key: &ItemKey,
        mark: Mark,
    ) -> Result<Forgotten, InboxError> {
        must_hold(lock, key)?;
        let (key, now) = (key.clone(), self.now());
        self.write(move |connection| forget(connection, &key, mark, now))
    }
}

fn forget(
    connection: &Connection,
    key: &ItemKey,
    mark: Mark,
    now: Timestamp,
) -> Result<Forgotten, InboxError> {
    let (through, mut dropped) = reach(connection, key, mark)?;
    let (word, by_close, at) = match mark {
        Mark::Reset => ("reset", false, now),
        Mark::Close { closed_at, .. } => ("close", true, closed_at.unwrap_or(now)),
    };
    connection
        .prepare_cached(
            "INSERT INTO watermarks (item_key, through_seq, at, why) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (item_key) DO UPDATE SET
               through_seq = excluded.through_seq, at = excluded.at, why = excluded.why
             WHERE excluded.through_seq >= through_seq",
        )?
        .execute(params![key.as_str(), through, at.unix_ms(), word])?;
    for row in &mut dropped {
        connection
            .prepare_cached(
                "UPDATE outcomes SET state = 'dropped', reason = ?3, retry_at = NULL, updated_at = ?4
                 WHERE seq = ?1 AND item_key = ?2",
            )?
            .execute(params![
                row.seq,
                key.as_str(),
                reason(by_close),
                now.unix_ms()
            ])?;
        row.state = State::Dropped;
        row.reason = Some(reason(by_close).to_owned());
        row.retry_at = None;
        row.updated_at = now;
    }
    let was_parked = parked(connection, key.as_str())?;
    let remove = |table: &str| -> Result<bool, InboxError> {
        let sql = format!("DELETE FROM {table} WHERE item_key = ?1");
        Ok(connection.prepare_cached(&sql)?.execute([key.as_str()])? > 0)
    };
    remove("parked")?;
    Ok(Forgotten {
        dropped,
        parked: was_parked,
        asked: remove("asks")?,
        usage: !by_close && remove("usage")?,
    })
}
