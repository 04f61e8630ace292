//! Tokens by item and UTC day, and how far each conversation was counted (DI-37).

use rusqlite::{Connection, OptionalExtension, Row, params};
use the_loop_core::ids::ItemKey;
use the_loop_core::tokens::{Step, Usage, fresh};

use super::{Inbox, InboxError, InboxReader};

/// What the keys of counted conversations begin with in `meta`.
const PREFIX: &str = "usage/";
/// The four classes, summed.
const SUMS: &str = "coalesce(sum(input), 0), coalesce(sum(output), 0), \
                    coalesce(sum(cache_read), 0), coalesce(sum(cache_write), 0)";

fn read(row: &Row<'_>, from: usize) -> rusqlite::Result<Usage> {
    let count = |at: usize| -> rusqlite::Result<u64> {
        Ok(row
            .get::<_, Option<i64>>(from + at)?
            .unwrap_or(0)
            .unsigned_abs())
    };
    Ok(Usage {
        input: count(0)?,
        output: count(1)?,
        cache_read: count(2)?,
        cache_write: count(3)?,
    })
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn to_text(usage: Usage) -> String {
    let Usage {
        input,
        output,
        cache_read,
        cache_write,
    } = usage;
    format!("{input} {output} {cache_read} {cache_write}")
}

fn parse(text: &str) -> Usage {
    let mut numbers = text.split(' ').map(|word| word.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    Usage {
        input: next(),
        output: next(),
        cache_read: next(),
        cache_write: next(),
    }
}

fn counted(connection: &Connection, conversation: &str) -> Result<Usage, InboxError> {
    let text: Option<String> = connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([format!("{PREFIX}{conversation}")], |row| row.get(0))
        .optional()?;
    Ok(text.map_or_else(Usage::default, |text| parse(&text)))
}

impl Inbox {
    /// Adds what a conversation's transcript tells beyond what was counted of it. One transaction, so
    /// that no crash and no second process counts anything twice.
    pub fn count_usage(
        &self,
        key: &ItemKey,
        conversation: &str,
        steps: &[Step],
    ) -> Result<(), InboxError> {
        let (key, conversation) = (key.clone(), conversation.to_owned());
        let (steps, now) = (steps.to_vec(), self.now());
        self.write(move |connection| {
            let (days, all) = fresh(counted(connection, &conversation)?, &steps);
            for (day, more) in days {
                connection
                    .prepare_cached(
                        "INSERT INTO usage (item_key, day, input, output, cache_read, cache_write)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                         ON CONFLICT (item_key, day) DO UPDATE SET
                           input = input + excluded.input, output = output + excluded.output,
                           cache_read = cache_read + excluded.cache_read,
                           cache_write = cache_write + excluded.cache_write",
                    )?
                    .execute(params![
                        key.as_str(),
                        day,
                        number(more.input),
                        number(more.output),
                        number(more.cache_read),
                        number(more.cache_write),
                    ])?;
            }
            connection
                .prepare_cached(
                    "INSERT INTO meta (key, value, at) VALUES (?1, ?2, ?3)
                     ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = excluded.at",
                )?
                .execute(params![
                    format!("{PREFIX}{conversation}"),
                    to_text(all),
                    now.unix_ms()
                ])?;
            Ok(())
        })
    }
}

impl InboxReader {
    /// What was counted of a conversation so far.
    pub fn counted(&self, conversation: &str) -> Result<Usage, InboxError> {
        self.read(|connection| counted(connection, conversation))
    }

    /// Tokens of an item, over all days.
    pub fn usage_of(&self, key: &ItemKey) -> Result<Usage, InboxError> {
        self.read(|connection| {
            let sql = format!("SELECT {SUMS} FROM usage WHERE item_key = ?1");
            let mut statement = connection.prepare_cached(&sql)?;
            Ok(statement.query_row([key.as_str()], |row| read(row, 0))?)
        })
    }

    /// Tokens of all items on a UTC day (`2026-03-01`).
    pub fn usage_on(&self, day: &str) -> Result<Usage, InboxError> {
        self.read(|connection| {
            let sql = format!("SELECT {SUMS} FROM usage WHERE day = ?1");
            let mut statement = connection.prepare_cached(&sql)?;
            Ok(statement.query_row([day], |row| read(row, 0))?)
        })
    }

    /// Tokens of every item, over all days and on one, by the text of the item's key.
    pub fn usage_by_item(&self, day: &str) -> Result<Vec<(String, Usage, Usage)>, InboxError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT u.item_key, {SUMS},
                   coalesce(sum(input) FILTER (WHERE day = ?1), 0),
                   coalesce(sum(output) FILTER (WHERE day = ?1), 0),
                   coalesce(sum(cache_read) FILTER (WHERE day = ?1), 0),
                   coalesce(sum(cache_write) FILTER (WHERE day = ?1), 0)
                 FROM usage u GROUP BY u.item_key ORDER BY u.item_key"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map([day], |row| {
                Ok((row.get::<_, String>(0)?, read(row, 1)?, read(row, 5)?))
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}
