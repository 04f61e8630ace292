//! The inbox: accepted deliveries and their outcomes, in SQLite (ST-51 to ST-61).
//!
//! Reading order: `rows` (what a row means), `schema` (the file), `writer` (group commit), `read`,
//! `accept` (in), `work` (what is left), `outcomes` (through), `watermark` (forgotten), `list` (looked
//! at), `operator` (put right), `limits` (parked items and small memories), `usage` (tokens), `cursors` (what was read), `attention` (what was told), `prune` (out).
//!
//! [`Inbox`] is a cheap handle. One thread owns the connection that writes; whatever waits when it
//! begins is one transaction and one sync. Readers have connections of their own and see what was
//! committed. Several processes may hold an inbox at once.

mod accept;
mod attention;
mod checks;
mod cursors;
mod limits;
mod list;
mod operator;
mod outcomes;
mod prune;
mod read;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod usage;
mod watermark;
mod work;
mod writer;

use std::ops::Deref;
use std::sync::{Arc, mpsc};

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::Connection;
use the_loop_core::delivery::{Delivery, State};
use the_loop_core::ids::ItemKey;
use the_loop_core::time::Timestamp;

use crate::store::lock::ItemLock;
use crate::world::World;

pub use accept::{Accepted, DuplicateBy};
pub use attention::Attention;
pub use checks::CheckEnd;
pub use cursors::{Cursor, Stream};
pub use limits::{Parked, Scope};
pub use list::{InboxCounts, KnownKey, ListFilter, ListRow, Shown, States};
pub use operator::{DropAnswer, DropWhat, RetryAnswer};
pub use outcomes::{NewOutcome, OutcomeChange, Routed};
pub use prune::Pruned;
pub use read::InboxReader;
pub use rows::{BodyFault, Changed, ConfirmedBy, DeliveryRow, OutcomeRow, Seq};
pub use schema::Migrated;
pub use watermark::{Forgotten, Mark, Watermark};
pub use work::ItemWork;
pub use writer::{Changes, Health};

/// What went wrong, by what the caller can do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// The disk refused, or another process kept the file locked. Nothing was changed, or it is not
    /// known; a retry can help (ST-55).
    #[error("the inbox cannot be used now: {0}")]
    Unavailable(String),
    /// The file is damaged. A retry cannot help: no ingress may run (ST-61).
    #[error("the inbox {path} is damaged: {detail}")]
    Damaged {
        /// The database file.
        path: Utf8PathBuf,
        /// SQLite's words.
        detail: String,
    },
    /// A newer release wrote it; this one may only read (ST-60).
    #[error("the inbox was written by a newer release (version {found}, this one knows {known})")]
    Newer {
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Something else lies at the inbox's path; it is left alone (ST-60).
    #[error("{path} is not an inbox of the-loop ({detail})")]
    Foreign {
        /// Where.
        path: Utf8PathBuf,
        /// What it is.
        detail: String,
    },
    /// No such delivery or outcome.
    #[error("there is no such delivery")]
    Unknown,
    /// The row is in a state from which this step is not allowed: somebody else acted on it. The
    /// caller looks again (ST-53).
    #[error("it is {from} and cannot become {to}")]
    Refused {
        /// State found on disk.
        from: State,
        /// State asked for.
        to: State,
    },
    /// The caller holds another item's lock (ST-53). A defect of the caller.
    #[error("the lock held is not that of {0}")]
    NotHeld(ItemKey),
    /// A row that this release cannot read. It stays as it is.
    #[error("delivery {seq} cannot be read: {detail}")]
    Unreadable {
        /// Which.
        seq: Seq,
        /// Why.
        detail: String,
    },
    /// The request contradicts what is stored (a marker used twice); nothing was changed.
    #[error("the request contradicts what is stored: {0}")]
    Conflict(String),
}

impl InboxError {
    /// Can the same request succeed later?
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Does it concern the file and so everybody who waits, and not one request?
    fn is_of_the_file(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Damaged { .. })
    }
}

impl From<rusqlite::Error> for InboxError {
    fn from(e: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match e.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged {
                path: Utf8PathBuf::new(),
                detail: e.to_string(),
            },
            Some(ErrorCode::ConstraintViolation) => Self::Conflict(e.to_string()),
            _ => Self::Unavailable(e.to_string()),
        }
    }
}

impl From<std::io::Error> for InboxError {
    fn from(e: std::io::Error) -> Self {
        Self::Unavailable(e.to_string())
    }
}

/// Proof that the caller holds an item's lock: an outcome changes only under it (ST-53).
pub trait HoldsItem {
    /// Is this lock the one of that item? Colliding items share one.
    fn covers(&self, key: &ItemKey) -> bool;
}

impl HoldsItem for ItemLock {
    fn covers(&self, key: &ItemKey) -> bool {
        self.covers_key(key)
    }
}

fn must_hold(lock: &dyn HoldsItem, key: &ItemKey) -> Result<(), InboxError> {
    if lock.covers(key) {
        Ok(())
    } else {
        Err(InboxError::NotHeld(key.clone()))
    }
}

/// The inbox, open for writing. Clones share one writer; it ends with the last of them.
#[derive(Clone)]
pub struct Inbox {
    inner: Arc<Inner>,
}

struct Inner {
    world: World,
    writer: writer::Writer,
    reader: InboxReader,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

/// What opening found and did.
#[derive(Debug)]
pub struct Opened {
    /// The inbox.
    pub inbox: Inbox,
    /// It is a new database. Beside existing records that means a queue was lost: `inbox.created`.
    pub created: bool,
    /// An older version was brought up to date: `inbox.migrated`.
    pub migrated: Option<Migrated>,
}

impl Deref for Inbox {
    type Target = InboxReader;
    fn deref(&self) -> &InboxReader {
        &self.inner.reader
    }
}

impl Inbox {
    /// Opens for the daemon's life: makes a missing database, checks an existing one for damage
    /// (ST-61), brings an older one up to date (ST-60).
    pub fn open(world: &World, path: &Utf8Path) -> Result<Opened, InboxError> {
        Self::open_with(world, path, schema::Check::Whole, schema::STEPS)
    }

    /// Opens for one short command: as [`Inbox::open`] without the look for damage, which takes time
    /// that grows with the file.
    pub fn open_for_a_verb(world: &World, path: &Utf8Path) -> Result<Opened, InboxError> {
        Self::open_with(world, path, schema::Check::Identity, schema::STEPS)
    }

    fn open_with(
        world: &World,
        path: &Utf8Path,
        check: schema::Check,
        steps: &[&str],
    ) -> Result<Opened, InboxError> {
        let ready = schema::open(world, path, check, steps)?;
        let reader = InboxReader::new(path);
        let writer = writer::Writer::start(world.clone(), path.to_owned(), ready.connection)?;
        let inner = Inner {
            world: world.clone(),
            writer,
            reader,
        };
        Ok(Opened {
            inbox: Self {
                inner: Arc::new(inner),
            },
            created: ready.created,
            migrated: ready.migrated,
        })
    }

    /// Opens for looking only. `None` when there is no database. A newer release's is read as far as
    /// it can be (ST-60).
    pub fn open_read_only(
        world: &World,
        path: &Utf8Path,
    ) -> Result<Option<InboxReader>, InboxError> {
        InboxReader::open(world, path)
    }

    /// The read functions, without the right to write.
    pub fn reader(&self) -> InboxReader {
        self.inner.reader.clone()
    }

    /// Accepts a delivery, or says that it is known. Returns after the sync (ST-51, ST-58).
    pub fn accept(&self, delivery: &Delivery) -> Result<Accepted, InboxError> {
        let work = accept::work(delivery, self.now())?;
        self.write(work)
    }

    /// As [`Inbox::accept`], without waiting: for the async receiver. A full queue answers
    /// [`InboxError::Unavailable`] at once. When the receiver is dropped, the delivery is accepted
    /// all the same.
    pub fn accept_later(
        &self,
        delivery: Delivery,
    ) -> tokio::sync::oneshot::Receiver<Result<Accepted, InboxError>> {
        let (send, receive) = tokio::sync::oneshot::channel();
        match accept::work(&delivery, self.now()) {
            Ok(work) => self.inner.writer.submit_now(work, move |answer| {
                let _ = send.send(answer);
            }),
            Err(e) => {
                let _ = send.send(Err(e));
            }
        }
        receive
    }

    /// Waits for changes, beginning with those made after this call.
    pub fn changed(&self) -> Changes {
        Changes::new(self.inner.writer.shared(), self.reader())
    }

    /// Wakes everybody who waits on [`Changes`], as after a commit: the socket says that another
    /// process has written (ST-53).
    pub fn wake(&self) {
        self.inner.writer.shared().bump();
    }

    /// Tells once when commits begin to fail and once when they work again (ST-55). The call is made
    /// on the writer's thread: it must be short and must not use the inbox.
    pub fn on_health(&self, tell: impl Fn(Health) + Send + Sync + 'static) {
        self.inner.writer.shared().set_teller(Box::new(tell));
    }

    /// Since when commits fail; `None` while they work.
    pub fn unavailable_since(&self) -> Option<Timestamp> {
        self.inner.writer.shared().unavailable_since()
    }

    fn now(&self) -> Timestamp {
        self.inner.world.clock.now()
    }

    /// Runs `work` in the next transaction and returns after its sync.
    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, InboxError> + Send + 'static,
    ) -> Result<T, InboxError> {
        let (send, receive) = mpsc::sync_channel(1);
        self.inner.writer.submit(work, move |answer| {
            let _ = send.send(answer);
        });
        receive.recv().unwrap_or_else(|_| Err(writer::ended()))
    }
}
