//! Parked items, prompts counted for the limits, and small memories: own comments, things said once,
//! values of the machine (DI-51, DI-52).

use rusqlite::{Connection, OptionalExtension, Row, params};
use the_loop_core::ids::{ItemKey, WorkItemRef};
use the_loop_core::time::Timestamp;

use super::rows::time;
use super::{Inbox, InboxError, InboxReader};

/// The key under which the whole machine is parked.
const MACHINE: &str = "*";

/// What a limit stops.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Everything on this machine.
    Machine,
    /// One work item.
    Item(WorkItemRef),
}

impl Scope {
    fn key(&self) -> String {
        match self {
            Self::Machine => MACHINE.to_owned(),
            Self::Item(item) => item.key().as_str().to_owned(),
        }
    }

    fn item(&self) -> Option<String> {
        match self {
            Self::Machine => None,
            Self::Item(item) => Some(item.to_string()),
        }
    }
}

/// A limit that stops, or has stopped, an item or the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parked {
    /// What it stops.
    pub scope: Scope,
    /// Which limit (`limit.parked`'s list).
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// When the ticket was told.
    pub told_at: Option<Timestamp>,
    /// When it was released: prompts count from then on. `None` while it stops.
    pub released_at: Option<Timestamp>,
    /// While it stops: the limit that was reached. Once released: the tokens used then; those above count.
    pub base: Option<u64>,
}

impl Parked {
    /// Does it stop something now?
    pub fn is_in_force(&self) -> bool {
        self.released_at.is_none()
    }

    const COLUMNS: &str = "item_key, item, reason, since, told_at, released_at, base";

    /// `None` for a row whose item is no ref: it stops nobody.
    fn read(row: &Row<'_>) -> rusqlite::Result<Option<Self>> {
        let scope = match row.get::<_, Option<String>>(1)? {
            _ if row.get::<_, String>(0)? == MACHINE => Some(Scope::Machine),
            Some(item) => item.parse().ok().map(Scope::Item),
            None => None,
        };
        let Some(scope) = scope else {
            return Ok(None);
        };
        Ok(Some(Self {
            scope,
            reason: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
            since: Timestamp::from_unix_ms(row.get::<_, Option<i64>>(3)?.unwrap_or_default()),
            told_at: time(row, 4)?,
            released_at: time(row, 5)?,
            base: row.get::<_, Option<i64>>(6)?.map(i64::unsigned_abs),
        }))
    }
}

pub(super) fn parked(connection: &Connection, key: &str) -> Result<Option<Parked>, InboxError> {
    let sql = format!("SELECT {} FROM parked WHERE item_key = ?1", Parked::COLUMNS);
    let found = connection
        .prepare_cached(&sql)?
        .query_row([key], Parked::read)
        .optional()?;
    Ok(found.flatten())
}

impl Inbox {
    /// A limit stops it. `false` when one does already: it is reported once (DI-52).
    pub fn park(
        &self,
        scope: &Scope,
        reason: &str,
        limit: u64,
        since: Timestamp,
    ) -> Result<bool, InboxError> {
        let (key, item, reason) = (scope.key(), scope.item(), reason.to_owned());
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.write(move |connection| {
            let changed = connection
                .prepare_cached(
                    "INSERT INTO parked (item_key, item, reason, since, base) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (item_key) DO UPDATE SET item = excluded.item,
                       reason = excluded.reason, since = excluded.since, told_at = NULL,
                       released_at = NULL, base = excluded.base
                     WHERE released_at IS NOT NULL",
                )?
                .execute(params![key, item, reason, since.unix_ms(), limit])?;
            Ok(changed > 0)
        })
    }

    /// The ticket was told that it is parked.
    pub fn parked_told(&self, scope: &Scope, at: Timestamp) -> Result<(), InboxError> {
        let key = scope.key();
        self.write(move |connection| {
            connection
                .prepare_cached("UPDATE parked SET told_at = ?2 WHERE item_key = ?1")?
                .execute(params![key, at.unix_ms()])?;
            Ok(())
        })
    }

    /// The limit lets go; counting starts anew from `at` and, for tokens, above `base`. Gives what was
    /// in force, `None` when nothing was.
    pub fn release(
        &self,
        scope: &Scope,
        at: Timestamp,
        base: Option<u64>,
    ) -> Result<Option<Parked>, InboxError> {
        let key = scope.key();
        let base = base.map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX));
        self.write(move |connection| {
            let Some(was) = parked(connection, &key)?.filter(Parked::is_in_force) else {
                return Ok(None);
            };
            connection
                .prepare_cached(
                    "UPDATE parked SET released_at = ?2, base = ?3 WHERE item_key = ?1",
                )?
                .execute(params![key, at.unix_ms(), base])?;
            Ok(Some(was))
        })
    }

    /// This comment is the program's own: seen again, it is skipped.
    pub fn add_own_comment(&self, item: &WorkItemRef, comment_id: &str) -> Result<(), InboxError> {
        let (item, comment_id, now) = (item.clone(), comment_id.to_owned(), self.now());
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO own_comments (provider, host, comment_id, item_key, at)
                     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
                )?
                .execute(params![
                    item.provider(),
                    item.repo().host,
                    comment_id,
                    item.key().as_str(),
                    now.unix_ms(),
                ])?;
            Ok(())
        })
    }

    /// `true` the first time this is asked for a key, in whichever process.
    pub fn once(&self, key: &str) -> Result<bool, InboxError> {
        let (key, now) = (key.to_owned(), self.now());
        self.write(move |connection| {
            let changed = connection
                .prepare_cached(
                    "INSERT INTO once (key, at) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                )?
                .execute(params![key, now.unix_ms()])?;
            Ok(changed > 0)
        })
    }

    /// Keeps a value under a key, for ever.
    pub fn set_meta(&self, key: &str, value: &str) -> Result<(), InboxError> {
        let (key, value, now) = (key.to_owned(), value.to_owned(), self.now());
        self.write(move |connection| {
            connection
                .prepare_cached(
                    "INSERT INTO meta (key, value, at) VALUES (?1, ?2, ?3)
                     ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = excluded.at",
                )?
                .execute(params![key, value, now.unix_ms()])?;
            Ok(())
        })
    }
}

impl InboxReader {
    /// The limit on the item or the machine, also a released one, from which counting starts.
    pub fn parked(&self, scope: &Scope) -> Result<Option<Parked>, InboxError> {
        self.read(|connection| parked(connection, &scope.key()))
    }

    /// Everything that is stopped now, oldest first.
    pub fn all_parked(&self) -> Result<Vec<Parked>, InboxError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT {} FROM parked WHERE released_at IS NULL ORDER BY since, item_key",
                Parked::COLUMNS
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map((), Parked::read)?;
            let mut found = Vec::new();
            for row in rows {
                found.extend(row?);
            }
            Ok(found)
        })
    }

    /// Prompts sent to the item's agent from `since` on. Commands, presence and starts do not count
    /// (DI-51).
    pub fn prompts_sent(&self, key: &ItemKey, since: Timestamp) -> Result<u64, InboxError> {
        self.read(|connection| {
            let count: i64 = connection
                .prepare_cached(
                    "SELECT count(*) FROM outcomes o JOIN deliveries d ON d.seq = o.seq
                     WHERE o.item_key = ?1 AND o.pasted_at >= ?2
                       AND CASE WHEN json_valid(CAST(d.body AS TEXT))
                           THEN json_extract(CAST(d.body AS TEXT), '$.effect.kind')
                                IN ('text', 'notice')
                           ELSE TRUE END",
                )?
                .query_row(params![key.as_str(), since.unix_ms()], |row| row.get(0))?;
            Ok(count.unsigned_abs())
        })
    }

    /// Was this comment written by the program?
    pub fn is_own_comment(&self, item: &WorkItemRef, comment_id: &str) -> Result<bool, InboxError> {
        self.read(|connection| {
            Ok(connection
                .prepare_cached(
                    "SELECT 1 FROM own_comments
                     WHERE provider = ?1 AND host = ?2 AND comment_id = ?3",
                )?
                .exists(params![item.provider(), item.repo().host, comment_id])?)
        })
    }

    /// The value under a key, and when it was put there.
    pub fn meta(&self, key: &str) -> Result<Option<(String, Timestamp)>, InboxError> {
        self.read(|connection| {
            Ok(connection
                .prepare_cached("SELECT value, at FROM meta WHERE key = ?1")?
                .query_row([key], |row| {
                    Ok((row.get(0)?, Timestamp::from_unix_ms(row.get(1)?)))
                })
                .optional()?)
        })
    }
}
