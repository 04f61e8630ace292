//! Locks between processes (ST-23 to ST-28).
//!
//! All are `flock`s on descriptors that no child inherits. Order, outermost first: service, item,
//! shared clone, ticket, index, inbox transaction; nobody holds two item locks (ST-24). Lock files
//! are never removed; the text in them, `<pid> <verb> <since>`, is for people.

mod service;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::{ItemKey, RepoRef, WorkItemRef};
use the_loop_core::limits::{LOCK_NOTE_AFTER, LOCK_POLL_MAX};
use the_loop_core::time::Timestamp;

use super::layout::{Layout, LockName};
use crate::disk::LockMode;
use crate::world::World;

pub use service::{ServiceHolder, ServiceLock, ServiceLockError};

/// Who holds a lock, as its file says. Any part may be missing: the text is written after the lock
/// is taken, and only for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Process id.
    pub pid: Option<u32>,
    /// What it does, one word.
    pub verb: Option<String>,
    /// Since when.
    pub since: Option<Timestamp>,
}

impl std::fmt::Display for Holder {
    /// `pid 4242, spawning`, as the note about a busy item has it (SE-9).
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.pid, &self.verb) {
            (Some(pid), Some(verb)) => write!(f, "pid {pid}, {verb}"),
            (Some(pid), None) => write!(f, "pid {pid}"),
            (None, _) => f.write_str("another process"),
        }
    }
}

/// Why a lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another holds it, and the patience is over. Trying later can help.
    #[error("busy")]
    Busy(Holder),
    /// The wait was given up for a verb that ends things (ST-25). Trying later can help.
    #[error("gave way to a verb that waits for the item")]
    GaveWay,
    /// The file system does not lock: a second descriptor was let in (ST-28).
    #[error("locks do not work on the file system of {path}")]
    NotLocking {
        /// The file tried.
        path: Utf8PathBuf,
    },
    /// The lock file could not be opened or made.
    #[error("cannot lock {path}")]
    Io {
        /// The file.
        path: Utf8PathBuf,
        /// The file system's answer.
        #[source]
        source: std::io::Error,
    },
}

/// How long to wait for a lock, and what to do meanwhile.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// In all.
    pub wait: Duration,
    /// After this long `note` is told, once, who holds the lock.
    pub note_after: Duration,
    /// Told who holds the lock.
    pub note: Option<&'a dyn Fn(&Holder)>,
    /// Asked at every look; true ends the wait with [`LockError::GaveWay`].
    pub give_way: Option<&'a dyn Fn() -> bool>,
}

impl std::fmt::Debug for Patience<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patience")
            .field("wait", &self.wait)
            .field("note_after", &self.note_after)
            .finish_non_exhaustive()
    }
}

impl<'a> Patience<'a> {
    /// Waits this long and tells nobody.
    pub fn of(wait: Duration) -> Self {
        Self {
            wait,
            note_after: LOCK_NOTE_AFTER,
            note: None,
            give_way: None,
        }
    }
    /// One look.
    pub fn none() -> Self {
        Self::of(Duration::ZERO)
    }
    /// Tells `note` after a second who holds the lock (SE-9).
    #[must_use]
    pub fn telling(mut self, note: &'a dyn Fn(&Holder)) -> Self {
        self.note = Some(note);
        self
    }
    /// Ends the wait when `give_way` says so.
    #[must_use]
    pub fn unless(mut self, give_way: &'a dyn Fn() -> bool) -> Self {
        self.give_way = Some(give_way);
        self
    }
}

/// The lock of a work item, and the proof of it: whatever changes an item takes `&ItemLock`. It
/// covers every item that collides with the one it was taken for, and ends when it is dropped.
#[derive(Debug)]
pub struct ItemLock {
    file: File,
    folded: String,
    pid: u32,
    clock: crate::clock::Clock,
}

impl ItemLock {
    /// Does this lock cover the item?
    pub fn covers(&self, item: &WorkItemRef) -> bool {
        item.slug().folded() == self.folded
    }

    /// Does this lock cover the item with this identity? A key is itself a ref in lower case.
    pub fn covers_key(&self, key: &ItemKey) -> bool {
        key.as_str()
            .parse()
            .is_ok_and(|item: WorkItemRef| self.covers(&item))
    }

    /// Says in the lock file what is being done now, for those who wait.
    pub fn doing(&self, verb: &str) {
        stamp(&self.file, self.pid, verb, self.clock.now());
    }
}

/// An item's lock taken shared, for a dry run that reads (ST-23).
#[derive(Debug)]
pub struct SharedItemLock {
    _file: File,
}

/// The lock of a shared clone (DI-46).
#[derive(Debug)]
pub struct CloneLock {
    _file: File,
}

/// The lock of a ticket's file.
#[derive(Debug)]
pub struct TicketLock {
    _file: File,
}

/// The lock under which new tickets get their numbers (ST-65).
#[derive(Debug)]
pub struct NumbersLock {
    _file: File,
}

/// The lock of the index of portable records.
#[derive(Debug)]
pub struct IndexLock {
    _file: File,
}

/// Takes locks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Locks {
    world: World,
    layout: Layout,
}

impl Locks {
    /// Over this layout's lock directory, which is made on demand.
    pub fn new(world: &World, layout: &Layout) -> Self {
        Self {
            world: world.clone(),
            layout: layout.clone(),
        }
    }

    /// Takes an item's lock, waiting as `patience` says. `verb` is one word for those who wait.
    pub fn item(
        &self,
        item: &WorkItemRef,
        verb: &str,
        patience: Patience<'_>,
    ) -> Result<ItemLock, LockError> {
        let slug = item.slug();
        let folded = slug.folded();
        let file = self.take(&LockName::Item(slug), verb, patience)?;
        Ok(ItemLock {
            file,
            folded,
            pid: self.world.pid,
            clock: self.world.clock.clone(),
        })
    }

    /// Takes an item's lock if it is free.
    pub fn try_item(&self, item: &WorkItemRef, verb: &str) -> Result<Option<ItemLock>, LockError> {
        match self.item(item, verb, Patience::none()) {
            Ok(lock) => Ok(Some(lock)),
            Err(LockError::Busy(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Takes an item's lock for a verb that ends things: a holder in the middle of slow work sees
    /// that it is wanted, gives the work up and lets go (ST-25).
    pub fn want(
        &self,
        item: &WorkItemRef,
        verb: &str,
        patience: Patience<'_>,
    ) -> Result<ItemLock, LockError> {
        if let Some(lock) = self.try_item(item, verb)? {
            return Ok(lock);
        }
        let _wish = self.wish(item, verb)?;
        self.item(item, verb, patience)
    }

    /// Holds up the wish for an item. Many may hold it up at once, so it is taken shared; the holder
    /// of the item who looks for it is in the way for an instant at most.
    fn wish(&self, item: &WorkItemRef, verb: &str) -> Result<File, LockError> {
        let path = self.layout.lock(&LockName::Want(item.slug()));
        let look = || self.open_io(&path, LockMode::Shared);
        let file = self.wait(&path, Patience::of(LOCK_NOTE_AFTER), &look)?;
        stamp(&file, self.world.pid, verb, self.world.clock.now());
        Ok(file)
    }

    /// Does a verb that ends things wait for this lock? To be asked every 250 ms in slow work. What
    /// cannot be found out is no wish.
    pub fn is_wanted(&self, lock: &ItemLock) -> bool {
        let path = self
            .layout
            .locks_dir()
            .join(format!("{}.want.lock", lock.folded));
        matches!(
            self.world.disk.try_lock(&path, LockMode::Exclusive, false),
            Ok(None)
        )
    }

    /// Takes an item's lock shared if its file exists, and makes none (SE-51).
    pub fn shared_if_there(
        &self,
        item: &WorkItemRef,
        patience: Patience<'_>,
    ) -> Result<Option<SharedItemLock>, LockError> {
        let path = self.layout.lock(&LockName::Item(item.slug()));
        let look = || match self.world.disk.try_lock(&path, LockMode::Shared, false) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Some(None)),
            found => found.map(|file| file.map(Some)),
        };
        let file = self.wait(&path, patience, &look)?;
        Ok(file.map(|file| SharedItemLock { _file: file }))
    }

    /// Takes the lock of a shared clone.
    pub fn clone_lock(
        &self,
        repo: &RepoRef,
        verb: &str,
        patience: Patience<'_>,
    ) -> Result<CloneLock, LockError> {
        let file = self.take(&LockName::Clone(repo.clone()), verb, patience)?;
        Ok(CloneLock { _file: file })
    }

    /// Takes the lock of a ticket's file.
    pub fn ticket(
        &self,
        item: &WorkItemRef,
        patience: Patience<'_>,
    ) -> Result<TicketLock, LockError> {
        let file = self.take(&LockName::Ticket(item.slug()), "ticket", patience)?;
        Ok(TicketLock { _file: file })
    }

    /// Takes the lock of the numbers of new tickets.
    pub fn tickets(&self, patience: Patience<'_>) -> Result<NumbersLock, LockError> {
        let file = self.take(&LockName::Tickets, "tickets", patience)?;
        Ok(NumbersLock { _file: file })
    }

    /// Takes the lock of the index.
    pub fn index(&self, patience: Patience<'_>) -> Result<IndexLock, LockError> {
        let file = self.take(&LockName::Index, "index", patience)?;
        Ok(IndexLock { _file: file })
    }

    /// Proves that locking works here: a second descriptor must be refused (ST-28).
    pub fn prove_locking(&self) -> Result<(), LockError> {
        let path = self.layout.lock(&LockName::Probe);
        prove(&path, &|| self.open_io(&path, LockMode::Exclusive))
    }

    fn take(&self, name: &LockName, verb: &str, patience: Patience<'_>) -> Result<File, LockError> {
        let path = self.layout.lock(name);
        let file = self.wait(&path, patience, &|| {
            self.open_io(&path, LockMode::Exclusive)
        })?;
        stamp(&file, self.world.pid, verb, self.world.clock.now());
        Ok(file)
    }

    /// Looks again and again until the lock is had or the patience is over.
    fn wait<T>(
        &self,
        path: &Utf8Path,
        patience: Patience<'_>,
        look: &dyn Fn() -> std::io::Result<Option<T>>,
    ) -> Result<T, LockError> {
        let mut waited = Duration::ZERO;
        let mut pause = Duration::from_millis(5);
        let mut noted = false;
        loop {
            let seen = look().map_err(|source| LockError::Io {
                path: path.to_owned(),
                source,
            })?;
            if let Some(got) = seen {
                return Ok(got);
            }
            if waited >= patience.wait {
                return Err(LockError::Busy(self.holder(path)));
            }
            if patience.give_way.is_some_and(|give_way| give_way()) {
                return Err(LockError::GaveWay);
            }
            if let Some(note) = patience.note
                && !noted
                && waited >= patience.note_after
            {
                note(&self.holder(path));
                noted = true;
            }
            let pause_now = pause.min(patience.wait.saturating_sub(waited));
            self.world.clock.wait(pause_now);
            waited += pause_now;
            pause = (pause * 2).min(LOCK_POLL_MAX);
        }
    }

    fn open_io(&self, path: &Utf8Path, mode: LockMode) -> std::io::Result<Option<File>> {
        let disk = &self.world.disk;
        match disk.try_lock(path, mode, true) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                disk.create_dir_all(&self.layout.locks_dir())?;
                disk.try_lock(path, mode, true)
            }
            tried => tried,
        }
    }

    /// Who the lock file says holds it.
    fn holder(&self, path: &Utf8Path) -> Holder {
        let bytes = self.world.disk.read(path, 4096).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let mut words = text.split_ascii_whitespace();
        Holder {
            pid: words.next().and_then(|w| w.parse().ok()),
            verb: words.next().map(str::to_owned),
            since: words.next().and_then(|w| w.parse().ok()),
        }
    }
}

/// Tries to lock a file twice at once.
fn prove(
    path: &Utf8Path,
    open: &dyn Fn() -> std::io::Result<Option<File>>,
) -> Result<(), LockError> {
    let path = path.to_owned();
    let tried = open().and_then(|first| Ok((open()?, first)));
    match tried {
        // Somebody else proving it at this moment is a proof as well.
        Ok((None, _) | (_, None)) => Ok(()),
        Ok((Some(_), Some(_))) => Err(LockError::NotLocking { path }),
        Err(source) => Err(LockError::Io { path, source }),
    }
}

/// Writes who holds a lock. It is for people, so a full disk does not cost the lock.
fn stamp(file: &File, pid: u32, verb: &str, since: Timestamp) {
    let verb: String = verb
        .chars()
        .map(|c| if c.is_whitespace() { '-' } else { c })
        .collect();
    let text = format!("{pid} {verb} {since}\n");
    let written = file.write_all_at(text.as_bytes(), 0);
    let _ = written.and_then(|()| file.set_len(text.len() as u64));
}

#[cfg(test)]
mod tests;
