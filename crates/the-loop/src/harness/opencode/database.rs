//! OpenCode's conversations, as it writes them into its SQLite database.
//!
//! The database is another program's and is only read: never as `immutable`, for it changes meanwhile,
//! and with a short wait where it is locked. Tables that are not as they were on the version in the
//! declaration read as "cannot be read".

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use serde_json::Value;
use the_loop_core::ids::HarnessSessionId;
use the_loop_core::prompt::markers_in;
use the_loop_core::time::Timestamp;

use crate::disk::Disk;
use crate::harness::transcript::{Entry, Growth, Usage};

/// How long a look waits for a lock of OpenCode's.
const BUSY: Duration = Duration::from_millis(200);
/// Bytes of a part of a message that is looked at: longer ones are no prompt of ours.
const PART_BYTES_MAX: usize = 2 << 20;
/// Prompts and steps of a conversation that came behind a row, oldest first. Those of its sub-agents count as
/// its cost. The rows' numbers grow, but are used again after the newest were deleted.
const PARTS: &str = "
    SELECT p.rowid, p.id, p.session_id = ?1, m.time_created, p.time_created, p.data
    FROM part p JOIN message m ON m.id = p.message_id
    WHERE p.session_id IN (SELECT id FROM session WHERE id = ?1 OR parent_id = ?1)
      AND p.rowid > ?2
      AND CASE WHEN length(p.data) > ?3 THEN 0
          WHEN json_extract(p.data, '$.type') = 'step-finish' THEN 1
          WHEN json_extract(p.data, '$.type') <> 'text' OR p.session_id <> ?1 THEN 0
          ELSE json_extract(m.data, '$.role') = 'user' END
    ORDER BY p.rowid";
/// The newest message of a conversation, with the last change of anything in it.
const NEWEST: &str = "
    SELECT m.data, max(m.time_updated, coalesce(
        (SELECT max(p.time_updated) FROM part p WHERE p.message_id = m.id), 0))
    FROM message m WHERE m.session_id = ?1 ORDER BY m.time_created DESC, m.id DESC LIMIT 1";
/// The first conversation begun in a directory since a moment by a prompt of ours for an item. One that a
/// person began there, or that is another item's, has no such prompt.
const BEGUN: &str = "
    SELECT s.id FROM session s
    WHERE s.directory IN (?1, ?2) AND s.parent_id IS NULL AND s.time_created >= ?3
      AND EXISTS (SELECT 1 FROM part p WHERE p.session_id = s.id AND length(p.data) <= ?4
          AND json_extract(p.data, '$.type') = 'text'
          AND substr(json_extract(p.data, '$.text'), 1, length(?5)) = ?5
          AND instr(json_extract(p.data, '$.text'), ?6) > 0)
    ORDER BY s.time_created, s.id LIMIT 1";

/// Follows one conversation.
#[derive(Debug)]
pub struct Rows {
    path: Utf8PathBuf,
    conversation: HarnessSessionId,
    connection: Option<Connection>,
    /// The database that was read last.
    inode: Option<u64>,
    seen: Seen,
    growth: Growth,
    restarted: bool,
}

/// How far a conversation was told.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// The database's version: it changes with every commit of another connection.
    version: Option<i64>,
    /// The newest row that was told: its number, and its id, by which a number used again is noticed.
    told: Option<(i64, String)>,
    /// The newest step that was counted.
    counted_at: i64,
    /// The newest answer that was begun.
    began_at: i64,
    /// The newest answer that was over.
    ended_at: i64,
}

impl Rows {
    /// Starts at the beginning of a conversation.
    pub fn new(path: Utf8PathBuf, conversation: HarnessSessionId) -> Self {
        Self {
            path,
            conversation,
            connection: None,
            inode: None,
            seen: Seen::default(),
            growth: Growth::default(),
            restarted: false,
        }
    }

    /// Which database.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Rows and last change of the conversation at the last look.
    pub fn growth(&self) -> Growth {
        self.growth
    }

    /// Was the database another one at the last look, and read from its beginning?
    pub fn restarted(&self) -> bool {
        self.restarted
    }

    /// The entries that came since the last look. A database that is not there has none.
    pub fn read(&mut self, disk: &dyn Disk) -> io::Result<Vec<Entry>> {
        let Some(meta) = disk.meta(&self.path)? else {
            self.connection = None;
            return Ok(Vec::new());
        };
        let last = self.inode.replace(meta.inode);
        self.restarted = last.is_some_and(|inode| inode != meta.inode);
        if self.restarted {
            self.connection = None;
            self.seen = Seen::default();
        }
        let connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            self.seen.version = None;
            connect(&self.path)?
        };
        let before = self.seen.clone();
        match self.read_from(&connection) {
            Ok(entries) => {
                self.connection = Some(connection);
                Ok(entries)
            }
            // Nothing was told, and a connection that failed is not used again.
            Err(error) => {
                self.seen = before;
                Err(io::Error::other(error))
            }
        }
    }

    fn read_from(&mut self, connection: &Connection) -> rusqlite::Result<Vec<Entry>> {
        let pragma = "PRAGMA data_version";
        let version = connection.query_row(pragma, [], |row| row.get(0))?;
        if self.seen.version == Some(version) {
            return Ok(Vec::new());
        }
        let one_moment = connection.unchecked_transaction()?;
        let mut entries = Vec::new();
        let from = self.reads_on_from(&one_moment)?;
        let mut statement = one_moment.prepare_cached(PARTS)?;
        let id = self.conversation.as_str();
        let mut rows = statement.query(params![id, from, PART_BYTES_MAX as i64])?;
        while let Some(row) = rows.next()? {
            self.take_part(row, &mut entries)?;
        }
        drop(rows);
        drop(statement);
        self.take_newest(&one_moment, &mut entries)?;
        one_moment.finish()?;
        self.seen.version = Some(version);
        Ok(entries)
    }

    /// The row that was told last, if it is still the same; otherwise everything is told again.
    fn reads_on_from(&self, connection: &Connection) -> rusqlite::Result<i64> {
        let Some((number, id)) = &self.seen.told else {
            return Ok(0);
        };
        let there: Option<String> = connection
            .prepare_cached("SELECT id FROM part WHERE rowid = ?1")?
            .query_row([number], |row| row.get(0))
            .optional()?;
        Ok(if there.as_ref() == Some(id) {
            *number
        } else {
            0
        })
    }

    fn take_part(&mut self, row: &Row<'_>, entries: &mut Vec<Entry>) -> rusqlite::Result<()> {
        let (is_its_own, prompted, made): (bool, i64, i64) =
            (row.get(2)?, row.get(3)?, row.get(4)?);
        let part: Value = row.get(5).map(|text: String| parsed(&text))?;
        self.seen.told = Some((row.get(0)?, row.get(1)?));
        if part["type"] == "text" {
            let words = part["text"].as_str().unwrap_or_default();
            if part["synthetic"] != true {
                entries.push(Entry::Prompt {
                    at: Timestamp::from_unix_ms(prompted),
                    markers: markers_in(words),
                });
            }
            return Ok(());
        }
        let usage = if made > self.seen.counted_at {
            self.seen.counted_at = made;
            usage(&part["tokens"])
        } else {
            Usage::default()
        };
        entries.push(Entry::Answer {
            at: Timestamp::from_unix_ms(made),
            ends_turn: is_its_own && !goes_on(part["reason"].as_str()),
            usage,
        });
        Ok(())
    }

    /// A turn that a person interrupted, or that the provider refused, ends without a step; one that goes on
    /// with a prompt that was queued begins after the step of the one before.
    fn take_newest(
        &mut self,
        connection: &Connection,
        entries: &mut Vec<Entry>,
    ) -> rusqlite::Result<()> {
        let found: Option<(String, i64)> = connection
            .prepare_cached(NEWEST)?
            .query_row([self.conversation.as_str()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?;
        let Some((message, changed)) = found else {
            return Ok(());
        };
        self.growth = Growth {
            len: self
                .seen
                .told
                .as_ref()
                .map_or(0, |(number, _)| *number as u64),
            modified_ms: changed,
        };
        let message = parsed(&message);
        if message["role"] != "assistant" {
            return Ok(());
        }
        let time = |name: &str| message["time"][name].as_i64().unwrap_or(0);
        let (began, ended) = (time("created"), time("completed"));
        let is_over = message["error"].is_object() || !goes_on(message["finish"].as_str());
        let (at, told) = if ended == 0 {
            (began, &mut self.seen.began_at)
        } else {
            (ended, &mut self.seen.ended_at)
        };
        if at > *told && (ended == 0 || is_over) {
            *told = at;
            entries.push(Entry::Answer {
                at: Timestamp::from_unix_ms(at),
                ends_turn: ended != 0,
                usage: Usage::default(),
            });
        }
        Ok(())
    }

    /// Does the conversation hold this text anywhere, in whosever words?
    pub fn mentions(&self, disk: &dyn Disk, text: &str) -> io::Result<bool> {
        if disk.meta(&self.path)?.is_none() {
            return Ok(false);
        }
        let sql =
            "SELECT EXISTS (SELECT 1 FROM part WHERE session_id = ?1 AND instr(data, ?2) > 0)";
        let connection = connect(&self.path)?;
        connection
            .query_row(sql, [self.conversation.as_str(), text], |row| row.get(0))
            .map_err(io::Error::other)
    }
}

/// The conversation that was begun in one of these directories since then by a prompt of ours for this
/// item (DI-33). `None` also when the database cannot be read now.
pub fn begun(
    disk: &dyn Disk,
    database: &Utf8Path,
    directories: [&Utf8Path; 2],
    since: Timestamp,
    item: &str,
) -> Option<HarnessSessionId> {
    disk.meta(database).ok()??;
    let connection = connect(database).ok()?;
    let id: String = connection
        .query_row(
            BEGUN,
            params![
                directories[0].as_str(),
                directories[1].as_str(),
                since.unix_ms(),
                PART_BYTES_MAX as i64,
                "the-loop delivery ",
                format!(" for {item}: "),
            ],
            |row| row.get(0),
        )
        .ok()?;
    HarnessSessionId::parse(&id)
}

fn connect(path: &Utf8Path) -> io::Result<Connection> {
    let mode = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path.as_std_path(), mode).map_err(io::Error::other)?;
    let set_up = || {
        connection.busy_timeout(BUSY)?;
        // What stands in another program's schema is not run.
        connection.pragma_update(None, "trusted_schema", false)
    };
    set_up().map_err(io::Error::other)?;
    Ok(connection)
}

/// What is not JSON means nothing.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// Is a turn in work after a step that ended so? It is without an end where nothing is said of it.
fn goes_on(reason: Option<&str>) -> bool {
    matches!(reason, Some("tool-calls" | "unknown"))
}

/// What it calls reasoning is not among its output.
fn usage(tokens: &Value) -> Usage {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    Usage {
        input: count(&tokens["input"]),
        output: count(&tokens["output"]).saturating_add(count(&tokens["reasoning"])),
        cache_read: count(&tokens["cache"]["read"]),
        cache_write: count(&tokens["cache"]["write"]),
    }
}
