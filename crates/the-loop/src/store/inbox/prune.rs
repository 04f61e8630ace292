//! Pruning: what is over is forgotten after a while, so that the file does not grow for ever (ST-59).

use std::time::Duration;

use rusqlite::{Connection, params};
use the_loop_core::limits::{
    CI_CONCLUSION_KEPT, INBOX_BODY_KEPT, INBOX_PRUNE_BATCH, INBOX_UNDECIDED_KEPT, USAGE_KEPT,
};
use the_loop_core::time::Timestamp;

use super::rows::{Seq, open_outcome, unfinished_outcome};
use super::{Inbox, InboxError};

/// What one pruning removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Deliveries, with their outcomes and names.
    pub deliveries: u64,
    /// Texts of deliveries that stay.
    pub bodies: u64,
    /// Finished deliveries that last arrived before this were removed.
    pub before: Timestamp,
}

/// The times before which things go.
#[derive(Clone, Copy)]
struct Cutoffs {
    finished: i64,
    undecided: i64,
    body: i64,
    usage: Timestamp,
    ci: i64,
}

impl Inbox {
    /// Removes finished deliveries `retention_days` after their last arrival, undecided ones after 180
    /// days, texts a day after the end, and old small memories; then gives the space back. Every batch
    /// is a transaction of its own, so that acceptance goes on in between.
    pub fn prune(&self, now: Timestamp, retention_days: u32) -> Result<Pruned, InboxError> {
        let retention = Duration::from_secs(u64::from(retention_days) * 86_400);
        let before = now.minus(retention);
        let cutoffs = Cutoffs {
            finished: before.unix_ms(),
            undecided: now.minus(INBOX_UNDECIDED_KEPT).unix_ms(),
            body: now.minus(INBOX_BODY_KEPT).unix_ms(),
            usage: now.minus(USAGE_KEPT),
            ci: now.minus(CI_CONCLUSION_KEPT).unix_ms(),
        };
        self.write(move |connection| prune_memories(connection, cutoffs))?;
        let deliveries = self.in_batches(move |connection, after| {
            let batch = forgettable(connection, cutoffs, after)?;
            for seq in &batch {
                // The outcomes go with their delivery.
                connection
                    .prepare_cached("DELETE FROM dedupe WHERE seq = ?1")?
                    .execute([seq])?;
                connection
                    .prepare_cached("DELETE FROM deliveries WHERE seq = ?1")?
                    .execute([seq])?;
            }
            Ok(batch)
        })?;
        let bodies = self.in_batches(move |connection, after| {
            let batch = bodies_to_drop(connection, cutoffs, after)?;
            for seq in &batch {
                connection
                    .prepare_cached("UPDATE deliveries SET body = NULL WHERE seq = ?1")?
                    .execute([seq])?;
            }
            Ok(batch)
        })?;
        while self.write(vacuum_some)? {}
        Ok(Pruned {
            deliveries,
            bodies,
            before,
        })
    }

    /// Repeats a batch, each after the last row of the one before, until one is not full.
    fn in_batches(
        &self,
        batch: impl Fn(&Connection, Seq) -> Result<Vec<Seq>, InboxError> + Send + Clone + 'static,
    ) -> Result<u64, InboxError> {
        let mut total = 0;
        let mut after = 0;
        loop {
            let batch = batch.clone();
            let done = self.write(move |connection| batch(connection, after))?;
            total += done.len() as u64;
            match done.last() {
                Some(last) if done.len() as i64 == INBOX_PRUNE_BATCH => after = *last,
                Some(_) | None => return Ok(total),
            }
        }
    }
}

fn sequence(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<Vec<Seq>, InboxError> {
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement
        .query_map(params, |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(found)
}

/// The next deliveries that are over in every outcome and have not come again for long enough, or
/// that no operator has decided on for half a year.
fn forgettable(
    connection: &Connection,
    cutoffs: Cutoffs,
    after: Seq,
) -> Result<Vec<Seq>, InboxError> {
    let sql = format!(
        "SELECT d.seq FROM deliveries d
         WHERE d.seq > ?1 AND d.received_at < ?2 AND d.state IN ('routed', 'settled', 'dropped')
           AND NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.seq = d.seq AND {})
           AND NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.seq = d.seq
                           AND o.state IN ('abandoned', 'uncertain') AND o.updated_at >= ?3)
           AND NOT EXISTS (SELECT 1 FROM dedupe k WHERE k.seq = d.seq AND k.last_at >= ?2)
         ORDER BY d.seq LIMIT ?4",
        unfinished_outcome("o."),
    );
    let values = params![
        after,
        cutoffs.finished,
        cutoffs.undecided,
        INBOX_PRUNE_BATCH
    ];
    sequence(connection, &sql, values)
}

/// The next finished deliveries whose end is a day ago. A delivery without outcomes has ended when it
/// was judged; its last arrival stands for that.
fn bodies_to_drop(
    connection: &Connection,
    cutoffs: Cutoffs,
    after: Seq,
) -> Result<Vec<Seq>, InboxError> {
    let sql = format!(
        "SELECT d.seq FROM deliveries d
         WHERE d.seq > ?1 AND d.body IS NOT NULL AND d.received_at < ?2
           AND d.state IN ('routed', 'settled', 'dropped')
           AND NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.seq = d.seq
                           AND (o.updated_at >= ?2 OR {}))
           AND NOT EXISTS (SELECT 1 FROM dedupe k WHERE k.seq = d.seq AND k.last_at >= ?2)
         ORDER BY d.seq LIMIT ?3",
        open_outcome("o."),
    );
    sequence(
        connection,
        &sql,
        params![after, cutoffs.body, INBOX_PRUNE_BATCH],
    )
}

fn prune_memories(connection: &Connection, cutoffs: Cutoffs) -> Result<(), InboxError> {
    let remove = |sql: &str, before: i64| -> Result<(), InboxError> {
        connection.prepare_cached(sql)?.execute([before])?;
        Ok(())
    };
    remove("DELETE FROM own_comments WHERE at < ?1", cutoffs.finished)?;
    remove("DELETE FROM once WHERE at < ?1", cutoffs.finished)?;
    remove("DELETE FROM ci_last WHERE at < ?1", cutoffs.ci)?;
    remove(
        "DELETE FROM parked WHERE released_at < ?1",
        cutoffs.usage.unix_ms(),
    )?;
    remove(
        "DELETE FROM meta WHERE key >= 'usage/' AND key < 'usage0' AND at < ?1",
        cutoffs.usage.unix_ms(),
    )?;
    let day = cutoffs.usage.day();
    connection
        .prepare_cached("DELETE FROM usage WHERE day < ?1")?
        .execute([day])?;
    Ok(())
}

/// Gives a bounded number of free pages back to the file system; `true` when some are left.
fn vacuum_some(connection: &Connection) -> Result<bool, InboxError> {
    let free = || -> Result<i64, InboxError> {
        Ok(connection
            .prepare_cached("PRAGMA freelist_count")?
            .query_row((), |row| row.get(0))?)
    };
    let before = free()?;
    if before == 0 {
        return Ok(false);
    }
    let sql = format!("PRAGMA incremental_vacuum({INBOX_PRUNE_BATCH})");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut steps = statement.query(())?;
    while steps.next()?.is_some() {}
    let after = free()?;
    Ok(after > 0 && after < before)
}
