//! The embedded tracker's tickets (state page, section 11; IN-54 to IN-56).
//!
//! It reads and writes ticket files and nothing else: deliveries are made by whoever calls it,
//! before the file is written (ST-66). What a file says was perhaps written by a stranger (ST-67).

use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::ids::{LOCAL_PROVIDER, RefError, RepoRef, WorkItemRef};
use the_loop_core::limits::TICKET_BYTES_MAX;
use the_loop_core::record::{EntryKind, Ticket, TicketChange, TicketEntry};

use crate::disk::Kind;
use crate::store::files::{self, RecordFault, RecordKind, StoreError, find_ticket, ticket_dirs};
use crate::store::layout::Layout;
use crate::store::lock::{LockError, Locks, NumbersLock, Patience};
use crate::world::World;

/// Who writes what the program itself has to say.
pub const OWN_ACTOR: &str = "the-loop";

/// A ticket's lock is held for one read and one write, so a longer wait means that something hangs.
const TICKET_WAIT: Duration = Duration::from_secs(10);

/// Why a ticket was not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    /// No such ticket.
    #[error("{0}: no such ticket")]
    Unknown(Box<WorkItemRef>),
    /// No such comment on the ticket.
    #[error("{item}: no comment {entry}")]
    NoComment {
        /// The ticket.
        item: Box<WorkItemRef>,
        /// The entry asked for.
        entry: String,
    },
    /// Another ticket has the number already.
    #[error("{0} is another ticket already")]
    Taken(Box<WorkItemRef>),
    /// The ref is of another provider.
    #[error("{0} is not a ticket of the embedded tracker")]
    NotLocal(Box<WorkItemRef>),
    /// No number is left for the repository.
    #[error("no ticket number is left")]
    NumbersSpent(#[source] RefError),
    /// Its lock was not had.
    #[error("the ticket is being changed by another process")]
    Lock(#[from] LockError),
    /// Its file could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<RecordFault> for TicketError {
    fn from(fault: RecordFault) -> Self {
        Self::Store(StoreError::Fault(fault))
    }
}

/// Tickets, sorted by identity, and the files that could not be used.
#[derive(Clone, Debug)]
pub struct Tickets {
    /// The tickets.
    pub tickets: Vec<Ticket>,
    /// What could not be read.
    pub problems: Vec<RecordFault>,
}

/// The ticket files. Caches nothing; cheap to clone.
#[derive(Clone, Debug)]
pub struct LocalTracker {
    world: World,
    layout: Layout,
    locks: Locks,
}

impl LocalTracker {
    /// Over this layout's tickets.
    pub fn new(world: &World, layout: &Layout) -> Self {
        Self {
            world: world.clone(),
            layout: layout.clone(),
            locks: Locks::new(world, layout),
        }
    }

    /// One ticket; its owner and repository match without case.
    pub fn get(&self, item: &WorkItemRef) -> Result<Option<Ticket>, RecordFault> {
        Ok(self.find(item)?.map(|(_, ticket)| ticket))
    }

    /// All tickets, or those of one repository. A directory that cannot be listed is an error.
    pub fn list(&self, repo: Option<&RepoRef>) -> Result<Tickets, RecordFault> {
        let dirs = match repo {
            Some(repo) => self.dirs(repo),
            None => self.all_dirs(),
        };
        let mut all = Tickets {
            tickets: Vec::new(),
            problems: Vec::new(),
        };
        let disk = self.world.disk.as_ref();
        for dir in dirs.map_err(|e| self.unlisted(&e))? {
            for (_, name) in self.numbered(&dir).map_err(|e| self.unlisted(&e))? {
                let file = dir.join(name);
                let kind = RecordKind::Ticket;
                match files::load(disk, &file, kind, TICKET_BYTES_MAX, Ticket::parse) {
                    Ok(Some(ticket)) if self.is_at_home(&file, &ticket) => {
                        all.tickets.push(ticket);
                    }
                    Ok(_) | Err(RecordFault::Foreign { .. }) => {}
                    Err(fault) => all.problems.push(fault),
                }
            }
        }
        all.tickets.sort_by_key(place);
        Ok(all)
    }

    /// Takes the lock under which a number is given and the ticket made with it.
    pub fn lock_numbers(&self) -> Result<NumbersLock, TicketError> {
        Ok(self.locks.tickets(Patience::of(TICKET_WAIT))?)
    }

    /// The ref of the next new ticket of a repository (ST-65): the highest number there plus one. The
    /// lock is to be held until [`LocalTracker::create`] made it.
    pub fn next_ref(
        &self,
        _lock: &NumbersLock,
        repo: &RepoRef,
    ) -> Result<WorkItemRef, TicketError> {
        let mut highest = 0;
        for dir in self.dirs(repo).map_err(|e| self.unlisted(&e))? {
            let numbers = self.numbered(&dir).map_err(|e| self.unlisted(&e))?;
            highest = numbers.iter().map(|(n, _)| *n).fold(highest, u64::max);
        }
        let repo = RepoRef {
            host: String::new(),
            ..repo.clone()
        };
        // Past the highest number there is `0`, which is none.
        WorkItemRef::new(LOCAL_PROVIDER, repo, highest.wrapping_add(1))
            .map_err(TicketError::NumbersSpent)
    }

    /// Makes a ticket's file. `false` when it is there already with all its entries; entries it lacks
    /// are added (ST-66). A different ticket with its number is not touched.
    pub fn create(&self, _lock: &NumbersLock, ticket: &Ticket) -> Result<bool, TicketError> {
        if !ticket.item.is_local() {
            return Err(TicketError::NotLocal(Box::new(ticket.item.clone())));
        }
        let _file = self.locks.ticket(&ticket.item, Patience::of(TICKET_WAIT))?;
        if let Some((file, mut there)) = self.find(&ticket.item)? {
            let same = there.author == ticket.author && there.created_at == ticket.created_at;
            if !same {
                return Err(TicketError::Taken(Box::new(ticket.item.clone())));
            }
            let mut changed = false;
            for entry in &ticket.entries {
                changed |= there.apply(entry, None);
            }
            if changed {
                self.write(&file, &there)?;
            }
            return Ok(changed);
        }
        let repo = ticket.item.repo();
        let dirs = self.dirs(repo).map_err(|e| self.unlisted(&e))?;
        let name = format!("{}.json", ticket.item.number());
        let file = match dirs.first() {
            Some(dir) => dir.join(name),
            None => self.layout.ticket(&ticket.item),
        };
        let disk = self.world.disk.as_ref();
        if files::read(disk, &file, RecordKind::Ticket, TICKET_BYTES_MAX)?.is_some() {
            return Err(TicketError::Taken(Box::new(ticket.item.clone())));
        }
        self.write(&file, ticket)?;
        Ok(true)
    }

    /// Brings a change that a delivery carries into its ticket's file; applying it again changes
    /// nothing and gives `false` (ST-66). A new ticket takes the lock of numbers, so it must not be
    /// held here.
    pub fn apply(&self, item: &WorkItemRef, change: &TicketChange) -> Result<bool, TicketError> {
        match change {
            TicketChange::Created(ticket) => self.create(&self.lock_numbers()?, ticket),
            TicketChange::Entry(entry) => self.change(item, |t| Ok(t.apply(entry, None))),
            TicketChange::Edit { entry, text } => {
                self.change(item, |t| Ok(t.apply(entry, Some(text))))
            }
        }
    }

    /// Puts a reaction on a comment; `false` when it has it (IN-56).
    pub fn add_reaction(
        &self,
        item: &WorkItemRef,
        entry_id: &str,
        content: &str,
    ) -> Result<bool, TicketError> {
        self.change(item, |ticket| {
            ticket
                .react(entry_id, content)
                .ok_or_else(|| TicketError::NoComment {
                    item: Box::new(item.clone()),
                    entry: entry_id.to_owned(),
                })
        })
    }

    /// A new entry of this moment, with a time-ordered id. It is in no file yet.
    pub fn entry(&self, actor: &str, kind: EntryKind) -> TicketEntry {
        let at = self.world.clock.now();
        let id = self.world.ids.ordered_uuid(at.unix_ms());
        TicketEntry::new(&id, at, actor, kind)
    }

    /// A new comment of this moment. It is in no file yet.
    pub fn comment(&self, actor: &str, body: &str) -> TicketEntry {
        self.entry(actor, EntryKind::comment(body))
    }

    fn change(
        &self,
        item: &WorkItemRef,
        change: impl FnOnce(&mut Ticket) -> Result<bool, TicketError>,
    ) -> Result<bool, TicketError> {
        let _lock = self.locks.ticket(item, Patience::of(TICKET_WAIT))?;
        let Some((file, mut ticket)) = self.find(item)? else {
            return Err(TicketError::Unknown(Box::new(item.clone())));
        };
        let changed = change(&mut ticket)?;
        if changed {
            self.write(&file, &ticket)?;
        }
        Ok(changed)
    }

    fn write(&self, file: &camino::Utf8Path, ticket: &Ticket) -> Result<(), StoreError> {
        files::write(self.world.disk.as_ref(), file, &ticket.to_bytes(), true)
    }

    fn find(&self, item: &WorkItemRef) -> Result<Option<(Utf8PathBuf, Ticket)>, RecordFault> {
        if !item.is_local() {
            return Ok(None);
        }
        find_ticket(self.world.disk.as_ref(), &self.layout, item)
    }

    fn dirs(&self, repo: &RepoRef) -> std::io::Result<Vec<Utf8PathBuf>> {
        let disk = self.world.disk.as_ref();
        ticket_dirs(disk, &self.layout, &repo.owner, &repo.name)
    }

    fn all_dirs(&self) -> std::io::Result<Vec<Utf8PathBuf>> {
        let disk = &self.world.disk;
        let below = |dir: &camino::Utf8Path| -> std::io::Result<Vec<Utf8PathBuf>> {
            let mut dirs = Vec::new();
            for name in disk.list(dir)? {
                let path = dir.join(name);
                if disk.meta(&path)?.is_some_and(|m| m.kind == Kind::Dir) {
                    dirs.push(path);
                }
            }
            Ok(dirs)
        };
        let mut all = Vec::new();
        for owner in below(&self.layout.tickets_dir())? {
            all.extend(below(&owner)?);
        }
        Ok(all)
    }

    /// The files of a directory that are named by a number.
    fn numbered(&self, dir: &camino::Utf8Path) -> std::io::Result<Vec<(u64, String)>> {
        let numbered = |name: String| {
            let digits = name.strip_suffix(".json")?;
            let number = digits.parse::<u64>().ok().filter(|n| *n > 0)?;
            (number.to_string() == digits).then_some((number, name))
        };
        let names = self.world.disk.list(dir)?;
        Ok(names.into_iter().filter_map(numbered).collect())
    }

    /// Does the file lie where a ticket with this ref lies (ST-10)?
    fn is_at_home(&self, file: &camino::Utf8Path, ticket: &Ticket) -> bool {
        ticket.item.is_local()
            && self
                .layout
                .ticket(&ticket.item)
                .as_str()
                .eq_ignore_ascii_case(file.as_str())
    }

    fn unlisted(&self, e: &std::io::Error) -> RecordFault {
        RecordFault::Unreadable {
            file: self.layout.tickets_dir(),
            kind: RecordKind::Ticket,
            error: e.to_string(),
        }
    }
}

/// Tickets are listed by repository, then by number.
fn place(ticket: &Ticket) -> (String, u64) {
    (ticket.item.repo().key(), ticket.item.number())
}

#[cfg(test)]
mod tests;
