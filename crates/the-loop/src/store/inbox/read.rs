//! Connections that only read, and who opens them.

use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::{Connection, OpenFlags};
use the_loop_core::limits::INBOX_IDLE_READERS_MAX;

use super::InboxError;
use super::schema::{self, Identity};
use crate::world::World;

/// The inbox, open for looking. Clones share their connections.
#[derive(Clone)]
pub struct InboxReader {
    pool: Arc<Pool>,
}

struct Pool {
    path: Utf8PathBuf,
    idle: Mutex<Vec<Connection>>,
    /// The connection whose `data_version` is asked: it means "since this connection last looked".
    watch: Mutex<Option<Connection>>,
}

impl std::fmt::Debug for InboxReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InboxReader")
            .field("path", &self.pool.path)
            .finish_non_exhaustive()
    }
}

impl InboxReader {
    pub(super) fn new(path: &Utf8Path) -> Self {
        Self {
            pool: Arc::new(Pool {
                path: path.to_owned(),
                idle: Mutex::new(Vec::new()),
                watch: Mutex::new(None),
            }),
        }
    }

    /// Looks whether a database of ours is there, whatever its version.
    pub(super) fn open(world: &World, path: &Utf8Path) -> Result<Option<Self>, InboxError> {
        let Some(found) = world.disk.meta(path)? else {
            return Ok(None);
        };
        schema::must_be_a_file(path, found.kind)?;
        let reader = Self::new(path);
        let has_tables = reader.read(|connection| {
            let identity = Identity::of(connection)?;
            identity.must_be_ours(path)?;
            Ok(identity.has_tables())
        })?;
        Ok(has_tables.then_some(reader))
    }

    fn connect(&self) -> Result<Connection, InboxError> {
        schema::open_connection(&self.pool.path, OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    /// Runs `look` with one view of the database. A connection that met an error is not used again.
    pub(super) fn read<T>(
        &self,
        look: impl FnOnce(&Connection) -> Result<T, InboxError>,
    ) -> Result<T, InboxError> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let seen = {
            let view = connection.unchecked_transaction()?;
            let seen = look(&view).map_err(schema::at(&self.pool.path))?;
            view.finish()?;
            seen
        };
        let mut idle = self.idle();
        if idle.len() < INBOX_IDLE_READERS_MAX {
            idle.push(connection);
        }
        Ok(seen)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.pool
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that changes when anybody, here or in another process, has written since it was last
    /// asked (ST-53). It costs no more than a look into shared memory.
    pub fn data_version(&self) -> Result<i64, InboxError> {
        let mut watch = self
            .pool
            .watch
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if watch.is_none() {
            *watch = Some(self.connect()?);
        }
        let Some(connection) = watch.as_ref() else {
            return Ok(0);
        };
        let asked = connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row((), |row| row.get(0)));
        asked.map_err(|e| schema::at(&self.pool.path)(e.into()))
    }
}
