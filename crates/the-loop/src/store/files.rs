//! Reading and writing one record file, with what can be wrong with it (ST-15, ST-17, ST-31).

use std::io::{self, ErrorKind};

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::{Slug, WorkItemRef};
use the_loop_core::limits::TICKET_BYTES_MAX;
use the_loop_core::record::{Fault, Ticket};

use super::layout::Layout;
use super::names::SlugError;
use crate::disk::{Disk, Kind};

/// Which kind of record a file should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A session record.
    Session,
    /// A portable record.
    Portable,
    /// A ticket.
    Ticket,
}

impl RecordKind {
    /// The word in the event log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Portable => "portable",
            Self::Ticket => "ticket",
        }
    }
    /// What a person calls such a file.
    fn name(self) -> &'static str {
        match self {
            Self::Session => "session record",
            Self::Portable => "portable record",
            Self::Ticket => "ticket",
        }
    }
}

/// Line and column in a file, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column in bytes.
    pub column: usize,
}

/// Why a file that should be a record cannot be used. It stays where it is, byte for byte, and its
/// item is set aside (ST-32).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// Not the record it should be (ST-31).
    Corrupt {
        /// The file.
        file: Utf8PathBuf,
        /// What it should be.
        kind: RecordKind,
        /// What is wrong.
        why: String,
        /// Where, when it was read that far.
        place: Option<Place>,
    },
    /// Written by a newer release (ST-35).
    Newer {
        /// The file.
        file: Utf8PathBuf,
        /// Its schema.
        schema: u64,
        /// The newest one known here.
        known: u64,
        /// The item it says it is about.
        item: Option<Box<WorkItemRef>>,
    },
    /// There, and the file system does not let us read it. A retry can help.
    Unreadable {
        /// The file.
        file: Utf8PathBuf,
        /// What it should be.
        kind: RecordKind,
        /// The file system's answer.
        error: String,
    },
    /// A JSON object that is nobody's record: a stranger's file in a record's place (ST-33).
    Foreign {
        /// The file.
        file: Utf8PathBuf,
    },
}

impl RecordFault {
    /// The file.
    pub fn file(&self) -> &Utf8Path {
        match self {
            Self::Corrupt { file, .. }
            | Self::Newer { file, .. }
            | Self::Unreadable { file, .. }
            | Self::Foreign { file } => file,
        }
    }

    pub(crate) fn of(file: &Utf8Path, kind: RecordKind, fault: Fault) -> Self {
        let file = file.to_owned();
        match fault {
            Fault::Corrupt { why, line, column } => Self::Corrupt {
                file,
                kind,
                why,
                place: Some(Place { line, column }),
            },
            Fault::Newer {
                schema,
                known,
                item,
            } => Self::Newer {
                file,
                schema,
                known,
                item: item.map(Box::new),
            },
            Fault::Foreign => Self::Foreign { file },
        }
    }
}

impl std::fmt::Display for RecordFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Corrupt {
                file,
                kind,
                why,
                place,
            } => {
                write!(f, "{file}: not a {} ({why}", kind.name())?;
                match place {
                    Some(Place { line, column }) => write!(f, ", line {line}, column {column})"),
                    None => f.write_str(")"),
                }
            }
            Self::Newer {
                file,
                schema,
                known,
                ..
            } => write!(
                f,
                "{file}: written by a newer release (schema {schema}, this one knows {known})"
            ),
            Self::Unreadable { file, error, .. } => write!(f, "{file}: cannot be read ({error})"),
            Self::Foreign { file } => write!(f, "{file}: not a file of the-loop"),
        }
    }
}

impl std::error::Error for RecordFault {}

/// Why a store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What is in the file's place may not be written over or removed.
    #[error(transparent)]
    Fault(#[from] RecordFault),
    /// The file in this place is another item's (ST-10).
    #[error("{file} belongs to {item}")]
    OtherItem {
        /// The file.
        file: Utf8PathBuf,
        /// Whose it is.
        item: Box<WorkItemRef>,
    },
    /// No free name for the item's files.
    #[error(transparent)]
    Slug(#[from] Box<SlugError>),
    /// The lock that was shown does not cover the item: a defect of the caller.
    #[error("{item} was to be changed without its lock")]
    NotLocked {
        /// The item.
        item: Box<WorkItemRef>,
    },
    /// A file of the item may not have this name, so nobody would find it again: a defect of the
    /// caller.
    #[error("no file of {item} is named {slug}")]
    NotItsName {
        /// The name.
        slug: Slug,
        /// The item.
        item: Box<WorkItemRef>,
    },
    /// A section may not have this name.
    #[error("{name:?} is no section of a portable record")]
    NoSection {
        /// The name.
        name: String,
    },
    /// The file system refused. A retry can help.
    #[error("cannot {what} {path}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: Utf8PathBuf,
        /// Its answer.
        #[source]
        source: io::Error,
    },
}

pub(crate) fn io_error(
    what: &'static str,
    path: &Utf8Path,
) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { what, path, source }
}

/// The bytes of a record file, `None` when there is none. Links are not followed, and what is no
/// regular file or is larger than `max` is corrupt (ST-15).
pub(crate) fn read(
    disk: &dyn Disk,
    file: &Utf8Path,
    kind: RecordKind,
    max: u64,
) -> Result<Option<Vec<u8>>, RecordFault> {
    let corrupt = |why: &str| RecordFault::Corrupt {
        file: file.to_owned(),
        kind,
        why: why.to_owned(),
        place: None,
    };
    let unreadable = |e: &io::Error| RecordFault::Unreadable {
        file: file.to_owned(),
        kind,
        error: e.to_string(),
    };
    let meta = match disk.meta(file) {
        Ok(Some(meta)) => meta,
        Ok(None) => return Ok(None),
        Err(e) => return Err(unreadable(&e)),
    };
    if meta.kind != Kind::File {
        return Err(corrupt("not a regular file"));
    }
    match disk.read(file, max) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) if e.kind() == ErrorKind::FileTooLarge => {
            Err(corrupt(&format!("larger than {max} bytes")))
        }
        Err(e) => Err(unreadable(&e)),
    }
}

/// Reads and parses a record file.
pub(crate) fn load<R>(
    disk: &dyn Disk,
    file: &Utf8Path,
    kind: RecordKind,
    max: u64,
    parse: fn(&[u8]) -> Result<R, Fault>,
) -> Result<Option<R>, RecordFault> {
    match read(disk, file, kind, max)? {
        None => Ok(None),
        Some(bytes) => parse(&bytes)
            .map(Some)
            .map_err(|fault| RecordFault::of(file, kind, fault)),
    }
}

/// Writes a record whole, making its directory on demand (ST-17).
pub(crate) fn write(
    disk: &dyn Disk,
    file: &Utf8Path,
    bytes: &[u8],
    durable: bool,
) -> Result<(), StoreError> {
    match disk.write_atomic(file, bytes, durable) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            if let Some(dir) = file.parent() {
                disk.create_dir_all(dir).map_err(io_error("make", dir))?;
            }
            disk.write_atomic(file, bytes, durable)
                .map_err(io_error("write", file))
        }
        written => written.map_err(io_error("write", file)),
    }
}

/// Removes a file for good: the directory is synced before it counts (ST-18, ST-22). `false` when
/// there was none.
pub(crate) fn remove(disk: &dyn Disk, file: &Utf8Path) -> Result<bool, StoreError> {
    let there = disk.remove(file).map_err(io_error("remove", file))?;
    if there && let Some(dir) = file.parent() {
        disk.sync(dir).map_err(io_error("sync", dir))?;
    }
    Ok(there)
}

/// The directories that hold a repository's tickets: owner and name match without case (ST-65).
pub(crate) fn ticket_dirs(
    disk: &dyn Disk,
    layout: &Layout,
    owner: &str,
    name: &str,
) -> std::io::Result<Vec<Utf8PathBuf>> {
    let matching = |dir: &Utf8Path, wanted: &str| -> std::io::Result<Vec<Utf8PathBuf>> {
        let mut found = Vec::new();
        for entry in disk.list(dir)? {
            let path = dir.join(&entry);
            if entry.eq_ignore_ascii_case(wanted)
                && disk.meta(&path)?.is_some_and(|m| m.kind == Kind::Dir)
            {
                found.push(path);
            }
        }
        Ok(found)
    };
    let mut dirs = Vec::new();
    for owner in matching(&layout.tickets_dir(), owner)? {
        dirs.extend(matching(&owner, name)?);
    }
    Ok(dirs)
}

/// A ticket and its file. A file that holds another ref is not this ticket's (ST-10).
pub(crate) fn find_ticket(
    disk: &dyn Disk,
    layout: &Layout,
    item: &WorkItemRef,
) -> Result<Option<(Utf8PathBuf, Ticket)>, RecordFault> {
    let repo = item.repo();
    let unlisted = |e: std::io::Error| RecordFault::Unreadable {
        file: layout.tickets_dir(),
        kind: RecordKind::Ticket,
        error: e.to_string(),
    };
    for dir in ticket_dirs(disk, layout, &repo.owner, &repo.name).map_err(unlisted)? {
        let file = dir.join(format!("{}.json", item.number()));
        let kind = RecordKind::Ticket;
        let ticket = load(disk, &file, kind, TICKET_BYTES_MAX, Ticket::parse)?;
        if let Some(ticket) = ticket.filter(|t| t.item.key() == item.key()) {
            return Ok(Some((file, ticket)));
        }
    }
    Ok(None)
}
