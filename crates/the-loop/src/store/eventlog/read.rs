//! Reading for every surface: all matches in order, or the last N from the end (EV-21 to EV-23).

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value};
use the_loop_core::event::Filter;
use the_loop_core::time::Timestamp;

use super::follow::Follower;
use super::lines::{Scan, time_of};
use super::part::Part;
use super::segment::{self, Segment};
use crate::disk::SharedDisk;
use crate::world::World;

/// A line that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Bytes of the whole log up to and with its newline: grows for ever, unique (EV-15).
    pub position: u64,
    /// The stored bytes without the newline.
    pub line: Vec<u8>,
    /// The same, read.
    pub fields: Map<String, Value>,
}

/// What a read tells beside the records.
#[derive(Debug)]
pub struct Summary {
    /// Records given.
    pub matched: u64,
    /// Lines that were no JSON objects, among those looked at (EV-23).
    pub invalid: u64,
    /// There is no log.
    pub missing: bool,
    /// The reader of the records ended it.
    pub stopped: bool,
    /// Goes on where this read ended.
    pub follower: Follower,
}

/// The log is there and cannot be read (EV-26).
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}")]
pub struct ReadFault {
    /// The file.
    pub path: Utf8PathBuf,
    /// Why.
    pub source: io::Error,
}

/// What a record is given to; `Break` ends the reading.
pub type Sink<'a> = dyn FnMut(&Record) -> ControlFlow<()> + 'a;

/// The reading half of a log. It takes no locks and never writes.
#[derive(Clone, Debug)]
pub struct Reader {
    disk: SharedDisk,
    path: Utf8PathBuf,
}

/// The files of a log as they were found, each opened when its turn comes.
struct Files<'a> {
    reader: &'a Reader,
    /// Closed ones, oldest first.
    segments: Vec<Segment>,
    /// The one that is written to.
    current: Option<File>,
}

impl Reader {
    /// A reader of the log at this absolute path and of the segments beside it.
    pub fn new(world: &World, log: &Utf8Path) -> Self {
        Self {
            disk: world.disk.clone(),
            path: log.to_owned(),
        }
    }

    /// Gives the last `limit` matches, oldest first; all of them with 0 (SE-67). What is written
    /// meanwhile is left to the follower.
    pub fn query(
        &self,
        filter: &Filter,
        limit: usize,
        sink: &mut Sink<'_>,
    ) -> Result<Summary, ReadFault> {
        let files = self.files()?;
        let missing = files.current.is_none() && files.segments.is_empty();
        let mut scan = Scan::new(filter);
        let current = match files.current {
            Some(_) => files.open(files.segments.len())?,
            None => None,
        };
        let (matched, stopped) = if limit == 0 {
            files.forward(current.as_ref(), &mut scan, sink)?
        } else {
            give(files.last(current.as_ref(), &mut scan, limit)?, sink)
        };
        let place = match current {
            Some(part) => {
                let end = part.end_of_lines().map_err(|e| part.fault(e))?;
                Some((part.file, end, part.base))
            }
            None => None,
        };
        let newest = files.segments.last().map(|s| s.name.clone());
        let follower = Follower::new(self.disk.clone(), self.path.clone(), place, newest);
        Ok(Summary {
            matched,
            invalid: scan.invalid,
            missing,
            stopped,
            follower,
        })
    }

    /// The current file is opened first: a rotation after that shows it as a segment too, and it and what
    /// came after it are then left out.
    fn files(&self) -> Result<Files<'_>, ReadFault> {
        let find = || {
            let disk = self.disk.as_ref();
            let current = open_if_there(disk, &self.path)?;
            let mut segments = segment::list(disk, &self.path)?;
            if let Some(current) = &current {
                for at in (0..segments.len()).rev() {
                    if disk.is_same_file(current, &segments[at].path)? {
                        segments.truncate(at);
                        break;
                    }
                }
            }
            Ok((segments, current))
        };
        let (segments, current) = find().map_err(|source| ReadFault {
            path: self.path.clone(),
            source,
        })?;
        Ok(Files {
            reader: self,
            segments,
            current,
        })
    }
}

impl Files<'_> {
    /// Opens the file at this place in the order of writing; `None` for a segment that was given up
    /// meanwhile.
    fn open(&self, at: usize) -> Result<Option<Part>, ReadFault> {
        let disk = self.reader.disk.as_ref();
        let path = self.segments.get(at).map_or(&self.reader.path, |s| &s.path);
        let open = || {
            let file = match (self.segments.get(at), &self.current) {
                (Some(segment), _) => open_if_there(disk, &segment.path)?,
                (None, Some(file)) => Some(file.try_clone()?),
                (None, None) => None,
            };
            let Some(file) = file else { return Ok(None) };
            let before = &self.segments[..at.min(self.segments.len())];
            Ok(Some(Part {
                len: file.metadata()?.len(),
                base: segment::base_of(disk, &file, before)?,
                file,
                path: path.clone(),
                is_open: at >= self.segments.len(),
            }))
        };
        open().map_err(|source| ReadFault {
            path: path.clone(),
            source,
        })
    }

    fn last(
        &self,
        current: Option<&Part>,
        scan: &mut Scan<'_>,
        limit: usize,
    ) -> Result<VecDeque<Record>, ReadFault> {
        let mut found = VecDeque::new();
        if let Some(part) = current {
            let done = part.backward(scan, limit, &mut found);
            if done.map_err(|e| part.fault(e))? {
                return Ok(found);
            }
        }
        for at in (0..self.segments.len()).rev() {
            if let Some(part) = self.open(at)? {
                let done = part.backward(scan, limit, &mut found);
                if done.map_err(|e| part.fault(e))? {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn forward(
        &self,
        current: Option<&Part>,
        scan: &mut Scan<'_>,
        sink: &mut Sink<'_>,
    ) -> Result<(u64, bool), ReadFault> {
        let mut matched = 0;
        let before = scan.too_old_before();
        let begin = match before {
            Some(before) => self.first_after(current, before)?,
            None => 0,
        };
        for at in begin..=self.segments.len() {
            let opened;
            let part = if at == self.segments.len() {
                current
            } else {
                opened = self.open(at)?;
                opened.as_ref()
            };
            let Some(part) = part else { continue };
            let begin = before.filter(|_| at == begin);
            let stopped = part
                .forward(begin, scan, &mut matched, sink)
                .map_err(|e| part.fault(e))?;
            if stopped {
                return Ok((matched, true));
            }
        }
        Ok((matched, false))
    }

    /// The last file that begins before that time, by its first line; older ones hold nothing newer.
    fn first_after(&self, current: Option<&Part>, before: Timestamp) -> Result<usize, ReadFault> {
        let begins_before = |part: &Part| {
            let first = segment::first_line(&part.file).map_err(|e| part.fault(e))?;
            let begins = first.as_ref().and_then(time_of);
            Ok(begins.is_some_and(|begins| begins < before))
        };
        if let Some(part) = current
            && begins_before(part)?
        {
            return Ok(self.segments.len());
        }
        for at in (0..self.segments.len()).rev() {
            if let Some(part) = self.open(at)?
                && begins_before(&part)?
            {
                return Ok(at);
            }
        }
        Ok(0)
    }
}

fn give(found: VecDeque<Record>, sink: &mut Sink<'_>) -> (u64, bool) {
    let mut matched = 0;
    for record in found {
        matched += 1;
        if sink(&record).is_break() {
            return (matched, true);
        }
    }
    (matched, false)
}

pub(super) fn open_if_there(
    disk: &dyn crate::disk::Disk,
    path: &Utf8Path,
) -> io::Result<Option<File>> {
    match disk.open_read(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
