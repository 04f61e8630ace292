//! The database file: who it belongs to, its version, its tables (ST-60, ST-61).

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use the_loop_core::limits::{INBOX_BUSY_TIMEOUT, INBOX_WAL_BYTES_MAX};

use super::InboxError;
use super::rows::{OPEN_DELIVERY, open_outcome};
use crate::disk::Kind;
use crate::world::World;

/// `tlop`: the mark in the file's header that it is ours.
pub(super) const APPLICATION_ID: i64 = 0x746C_6F70;

/// What leads from each version to the next; the version of a file is the number of steps taken.
/// Released steps are never edited.
pub(super) const STEPS: &[&str] = &[VERSION_1];

/// Version 1. Times are Unix milliseconds.
const VERSION_1: &str = "
CREATE TABLE deliveries (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery_id TEXT NOT NULL UNIQUE,
  content_key TEXT NOT NULL,
  ingress TEXT NOT NULL,
  provider TEXT NOT NULL, host TEXT NOT NULL,
  event TEXT NOT NULL, action TEXT, actor TEXT, received_at INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT, attempts INTEGER NOT NULL DEFAULT 0, retry_at INTEGER,
  body BLOB) STRICT;
CREATE TABLE outcomes (
  seq INTEGER NOT NULL REFERENCES deliveries(seq) ON DELETE CASCADE,
  item_key TEXT NOT NULL, item TEXT NOT NULL, endpoint TEXT,
  state TEXT NOT NULL,
  reason TEXT, attempts INTEGER NOT NULL DEFAULT 0, retry_at INTEGER,
  marker TEXT UNIQUE,
  given_up_by TEXT,
  intent_at INTEGER, pasted_at INTEGER, confirmed_at INTEGER, confirmed_by TEXT,
  updated_at INTEGER NOT NULL, PRIMARY KEY (seq, item_key)) STRICT, WITHOUT ROWID;
CREATE INDEX outcomes_by_item ON outcomes (item_key, seq);
CREATE TABLE dedupe (key TEXT PRIMARY KEY, kind TEXT NOT NULL,
  seq INTEGER NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,
  again INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
CREATE TABLE watermarks (item_key TEXT PRIMARY KEY, through_seq INTEGER NOT NULL, at INTEGER NOT NULL,
  why TEXT NOT NULL) STRICT;
CREATE TABLE own_comments (provider TEXT, host TEXT, comment_id TEXT, item_key TEXT, at INTEGER,
  PRIMARY KEY (provider, host, comment_id)) STRICT, WITHOUT ROWID;
CREATE TABLE parked (item_key TEXT PRIMARY KEY, item TEXT, reason TEXT, since INTEGER, told_at INTEGER,
  released_at INTEGER, base INTEGER) STRICT;
CREATE TABLE asks (item_key TEXT PRIMARY KEY, at INTEGER, question TEXT, comment_id TEXT) STRICT;
CREATE TABLE usage (item_key TEXT, day TEXT, input INTEGER, output INTEGER, cache_read INTEGER, cache_write INTEGER,
  PRIMARY KEY (item_key, day)) STRICT;
CREATE TABLE cursors (provider TEXT, host TEXT, repo_key TEXT, stream TEXT, since TEXT, etag TEXT, at INTEGER,
  PRIMARY KEY (provider, host, repo_key, stream)) STRICT;
CREATE TABLE ci_last (item_key TEXT, name TEXT, conclusion TEXT, at INTEGER, PRIMARY KEY (item_key, name)) STRICT;
CREATE TABLE once (key TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
";

/// How closely an existing file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// SQLite's `quick_check` over the whole file.
    Whole,
    /// Whose file it is and its version.
    Identity,
}

/// An older database that was brought up to date (ST-60).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Version found.
    pub from: i64,
    /// Version now.
    pub to: i64,
    /// Where the old one was copied to before.
    pub backup: Utf8PathBuf,
}

/// A database ready for the writer.
pub(super) struct Ready {
    pub(super) connection: Connection,
    pub(super) created: bool,
    pub(super) migrated: Option<Migrated>,
}

/// The marks in a file's header, and whether anything is in it.
pub(super) struct Identity {
    application_id: i64,
    version: i64,
    has_tables: bool,
}

impl Identity {
    /// Reads them in one view: between two, another process may make the tables.
    pub(super) fn of(connection: &Connection) -> Result<Self, InboxError> {
        let _view = if connection.is_autocommit() {
            Some(connection.unchecked_transaction()?)
        } else {
            None
        };
        let number = |sql: &str| connection.query_row(sql, (), |row| row.get::<_, i64>(0));
        Ok(Self {
            application_id: number("PRAGMA application_id")?,
            version: number("PRAGMA user_version")?,
            has_tables: number("SELECT count(*) FROM sqlite_master")? > 0,
        })
    }

    /// Refuses somebody else's file. An empty one is nobody's: a crash leaves it.
    pub(super) fn must_be_ours(&self, path: &Utf8Path) -> Result<(), InboxError> {
        let id = self.application_id;
        if id == APPLICATION_ID || (id == 0 && !self.has_tables) {
            return Ok(());
        }
        Err(InboxError::Foreign {
            path: path.to_owned(),
            detail: format!("a database with application id {id}"),
        })
    }

    pub(super) fn has_tables(&self) -> bool {
        self.has_tables
    }
}

/// Puts the path into an error that was found without it.
pub(super) fn at(path: &Utf8Path) -> impl Fn(InboxError) -> InboxError + '_ {
    move |e| match e {
        InboxError::Damaged { detail, .. } => InboxError::Damaged {
            path: path.to_owned(),
            detail,
        },
        other => other,
    }
}

/// Opens, makes, checks and migrates.
pub(super) fn open(
    world: &World,
    path: &Utf8Path,
    check: Check,
    steps: &[&str],
) -> Result<Ready, InboxError> {
    ensure_file(world, path)?;
    open_existing(world, path, check, steps).map_err(at(path))
}

fn open_existing(
    world: &World,
    path: &Utf8Path,
    check: Check,
    steps: &[&str],
) -> Result<Ready, InboxError> {
    let known = steps.len() as i64;
    let mut connection = open_connection(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let identity = Identity::of(&connection)?;
    identity.must_be_ours(path)?;
    if identity.version > known {
        return Err(InboxError::Newer {
            found: identity.version,
            known,
        });
    }
    if check == Check::Whole && identity.has_tables {
        quick_check(&connection)?;
    }
    use_wal(world, &connection)?;
    configure(&connection)?;
    let mut created = false;
    let mut migrated = None;
    if !identity.has_tables {
        created = take_steps(world, path, &mut connection, 0, steps)?;
        if let Some(directory) = path.parent() {
            world.disk.sync(directory)?;
        }
    } else if identity.version < known {
        let from = identity.version;
        let backup = back_up(world, path, &connection, from)?;
        if take_steps(world, path, &mut connection, from, steps)? {
            migrated = Some(Migrated {
                from,
                to: known,
                backup,
            });
        }
    }
    ensure_indexes(world, path, &connection)?;
    Ok(Ready {
        connection,
        created,
        migrated,
    })
}

/// The file is made by us and not by SQLite, so that nobody else may read it (ST-14); SQLite gives
/// its `-wal` and `-shm` the same permission.
fn ensure_file(world: &World, path: &Utf8Path) -> Result<(), InboxError> {
    if let Some(directory) = path.parent() {
        world.disk.create_dir_all(directory)?;
    }
    match world.disk.meta(path)? {
        None => match world.disk.create_new(path, b"", 0o600) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(e.into()),
        },
        Some(found) => must_be_a_file(path, found.kind),
    }
}

pub(super) fn must_be_a_file(path: &Utf8Path, kind: Kind) -> Result<(), InboxError> {
    if kind == Kind::File {
        return Ok(());
    }
    Err(InboxError::Foreign {
        path: path.to_owned(),
        detail: "not a regular file".to_owned(),
    })
}

pub(super) fn open_connection(path: &Utf8Path, mode: OpenFlags) -> Result<Connection, InboxError> {
    let connection =
        Connection::open_with_flags(path.as_std_path(), mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(INBOX_BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// A second connection to a database that is known to be ready.
pub(super) fn connect(path: &Utf8Path) -> Result<Connection, InboxError> {
    let connection = open_connection(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    configure(&connection)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> Result<(), InboxError> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection
        .pragma_update_and_check(None, "journal_size_limit", INBOX_WAL_BYTES_MAX, |_| Ok(()))
        .map_err(InboxError::from)
}

/// Two processes that make one database at once: SQLite refuses the second one's change of mode
/// without waiting, so we wait.
fn use_wal(world: &World, connection: &Connection) -> Result<(), InboxError> {
    let pause = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    loop {
        let set = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match set {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let why = format!("its file system does not allow a write-ahead log ({mode})");
                return Err(InboxError::Unavailable(why));
            }
            Err(e)
                if e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && waited < INBOX_BUSY_TIMEOUT =>
            {
                world.clock.wait(pause);
                waited += pause;
            }
            Err(e) => return Err(e.into()),
        }
    }
}

fn quick_check(connection: &Connection) -> Result<(), InboxError> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(InboxError::Damaged {
        path: Utf8PathBuf::new(),
        detail: verdict,
    })
}

/// Commits an open transaction through the disk, so that a test's disk can refuse.
pub(super) fn commit(
    world: &World,
    path: &Utf8Path,
    connection: &Connection,
) -> Result<(), InboxError> {
    let mut failed = None;
    let done = world.disk.commit(path, &mut || {
        let result = connection
            .prepare_cached("COMMIT")
            .and_then(|mut statement| statement.execute(()));
        match result {
            Ok(_) => Ok(()),
            Err(e) => {
                let shown = io::Error::other(e.to_string());
                failed = Some(InboxError::from(e));
                Err(shown)
            }
        }
    });
    match (done, failed) {
        (_, Some(e)) => Err(e),
        (Err(e), None) => Err(e.into()),
        (Ok(()), None) => Ok(()),
    }
}

/// All steps from `from` in one exclusive transaction. `false` when another process was faster.
fn take_steps(
    world: &World,
    path: &Utf8Path,
    connection: &mut Connection,
    from: i64,
    steps: &[&str],
) -> Result<bool, InboxError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    let now = Identity::of(&transaction)?;
    if now.version != from || (from == 0 && now.has_tables) {
        return Ok(false);
    }
    for step in steps.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", steps.len() as i64)?;
    commit(world, path, &transaction)?;
    Ok(true)
}

/// Copies the database beside itself and removes the copies of earlier versions: one is kept.
fn back_up(
    world: &World,
    path: &Utf8Path,
    connection: &Connection,
    from: i64,
) -> Result<Utf8PathBuf, InboxError> {
    let backup = Utf8PathBuf::from(format!("{path}.v{from}.bak"));
    let unfinished = Utf8PathBuf::from(format!("{backup}.tmp"));
    world.disk.remove(&unfinished)?;
    world.disk.create_new(&unfinished, b"", 0o600)?;
    connection.execute("VACUUM INTO ?1", [unfinished.as_str()])?;
    world.disk.sync(&unfinished)?;
    world.disk.rename(&unfinished, &backup)?;
    if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
        for other in world.disk.list(directory)? {
            let is_backup = other
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix(".v"))
                .and_then(|rest| rest.strip_suffix(".bak"))
                .is_some_and(|digits| digits.parse::<i64>().is_ok_and(|v| v < from));
            if is_backup {
                world.disk.remove(&directory.join(other))?;
            }
        }
    }
    Ok(backup)
}

/// Indexes of the few rows that are not over, so that work is found in a time that does not grow
/// with what is remembered. They hold no facts, so they belong to no version and are made where they
/// are missing.
fn ensure_indexes(
    world: &World,
    path: &Utf8Path,
    connection: &Connection,
) -> Result<(), InboxError> {
    let wanted = [
        (
            "deliveries_open",
            format!("ON deliveries (seq) WHERE {OPEN_DELIVERY}"),
        ),
        (
            "outcomes_open",
            format!("ON outcomes (item_key, seq) WHERE {}", open_outcome("")),
        ),
        ("dedupe_by_seq", "ON dedupe (seq)".to_owned()),
    ];
    let there = |name: &str| -> rusqlite::Result<bool> {
        connection
            .prepare("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?1")?
            .exists([name])
    };
    let mut missing = String::new();
    for (name, what) in &wanted {
        if !there(name)? {
            missing.push_str(&format!("CREATE INDEX IF NOT EXISTS {name} {what};\n"));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let made = connection
        .execute_batch(&missing)
        .map_err(InboxError::from)
        .and_then(|()| commit(world, path, connection));
    if made.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    made
}
