//! Reading for every surface: all matches in order, or the last N from the end (EV-21 to EV-23).

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use regex::bytes::Regex;
use serde_json::{Map, Value};
use the_loop_core::event::Filter;
use the_loop_core::time::Timestamp;

use super::follow::Follower;
use super::segment::{self, Segment, read_full_at};
use crate::disk::SharedDisk;
use crate::world::World;

/// Bytes read at once.
const BLOCK_BYTES: usize = 128 << 10;
/// Bytes of a line that a reader takes; a longer one counts as unreadable.
pub const LINE_READ_MAX: usize = 1 << 20;
/// Lines of several writers may be out of order by their clocks; this much older, and nothing newer
/// comes before (EV-22).
const DISORDER_MAX: Duration = Duration::from_secs(600);

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

/// One file of the log, open.
struct Part {
    file: File,
    path: Utf8PathBuf,
    len: u64,
    base: u64,
    /// It is still written to, so half a line at its end is no fault.
    is_open: bool,
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

fn time_of(line: &Map<String, Value>) -> Option<Timestamp> {
    line.get("ts")?.as_str()?.parse().ok()
}

impl Part {
    fn fault(&self, source: io::Error) -> ReadFault {
        ReadFault {
            path: self.path.clone(),
            source,
        }
    }

    /// The offset after the last newline.
    fn end_of_lines(&self) -> io::Result<u64> {
        let mut end = self.len;
        let mut block = vec![0; BLOCK_BYTES];
        while end > 0 {
            let start = end.saturating_sub(BLOCK_BYTES as u64);
            let size = (end - start) as usize;
            let read = read_full_at(&self.file, &mut block[..size], start)?;
            if let Some(at) = block[..read].iter().rposition(|b| *b == b'\n') {
                return Ok(start + at as u64 + 1);
            }
            end = start;
        }
        Ok(0)
    }

    /// Gives the matches from the first on, or from where lines are no longer older than `before`; `true`
    /// when the sink had enough.
    fn forward(
        &self,
        before: Option<Timestamp>,
        scan: &mut Scan<'_>,
        matched: &mut u64,
        sink: &mut Sink<'_>,
    ) -> io::Result<bool> {
        let start = match before {
            Some(before) => self.seek(before)?,
            None => 0,
        };
        let mut lines = Lines::new(&self.file, start, self.len, self.base);
        while let Some(line) = lines.next_line()? {
            if let Some(record) = scan.look(line) {
                *matched += 1;
                if sink(&record).is_break() {
                    return Ok(true);
                }
            }
        }
        scan.invalid += lines.oversized;
        if !self.is_open && lines.has_rest() {
            scan.invalid += 1;
        }
        Ok(false)
    }

    /// Looks at the lines from the last to the first; `true` when enough were found, or only older lines
    /// than asked for would follow.
    fn backward(
        &self,
        scan: &mut Scan<'_>,
        limit: usize,
        found: &mut VecDeque<Record>,
    ) -> io::Result<bool> {
        let end = self.end_of_lines()?;
        if end < self.len && !self.is_open {
            scan.invalid += 1;
        }
        let before = scan.too_old_before();
        let mut start = end;
        // The beginning of what follows the block, whose own beginning is in an earlier block.
        let mut carry: Vec<u8> = Vec::new();
        let mut carry_is_oversized = false;
        while start > 0 {
            let block_start = start.saturating_sub(BLOCK_BYTES as u64);
            let mut block = vec![0; (start - block_start) as usize];
            let read = read_full_at(&self.file, &mut block, block_start)?;
            block.truncate(read);
            block.extend_from_slice(&carry);
            let mut line_end = block.len();
            while line_end > 0 {
                // The newline that ends the line before this one.
                let above = block[..line_end.saturating_sub(1)]
                    .iter()
                    .rposition(|b| *b == b'\n');
                let line_start = match above {
                    Some(at) => at + 1,
                    None if block_start == 0 => 0,
                    None => break,
                };
                let bytes = &block[line_start..line_end];
                if carry_is_oversized || bytes.len() > LINE_READ_MAX {
                    scan.invalid += 1;
                    carry_is_oversized = false;
                } else {
                    let line = Line {
                        bytes: &bytes[..bytes.len().saturating_sub(1)],
                        position: self.base + block_start + line_end as u64,
                    };
                    if before.is_some_and(|before| line.is_older_than(before)) {
                        return Ok(true);
                    }
                    if let Some(record) = scan.look(line) {
                        found.push_front(record);
                        if found.len() >= limit {
                            return Ok(true);
                        }
                    }
                }
                line_end = line_start;
            }
            block.truncate(line_end);
            if block.len() > LINE_READ_MAX {
                carry_is_oversized = true;
                // The newline stays, so that the line is still one.
                block = vec![b'\n'];
            }
            carry = block;
            start = block_start;
        }
        Ok(false)
    }

    /// An offset at the beginning of a line before which all lines are older.
    fn seek(&self, before: Timestamp) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.len);
        while high - low > BLOCK_BYTES as u64 {
            let middle = low + (high - low) / 2;
            let mut lines = Lines::new(&self.file, middle, self.len, 0);
            // The first is half a line.
            lines.next_line()?;
            let next = lines.next_line()?;
            if next.is_some_and(|line| line.is_older_than(before)) {
                low = middle;
            } else {
                high = middle;
            }
        }
        if low == 0 {
            return Ok(0);
        }
        let mut lines = Lines::new(&self.file, low, self.len, 0);
        lines.next_line()?;
        Ok(lines.offset())
    }
}

/// One line, with its place.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) position: u64,
}

impl Line<'_> {
    fn is_older_than(&self, before: Timestamp) -> bool {
        let fields: Option<Map<String, Value>> = serde_json::from_slice(self.bytes).ok();
        fields
            .as_ref()
            .and_then(time_of)
            .is_some_and(|at| at < before)
    }
}

/// Judges lines and counts those that cannot be read.
pub(super) struct Scan<'a> {
    filter: &'a Filter,
    needle: Option<Regex>,
    pub(super) invalid: u64,
}

impl<'a> Scan<'a> {
    pub(super) fn new(filter: &'a Filter) -> Self {
        let needle = filter
            .needle()
            .and_then(|needle| Regex::new(&regex::escape(&needle)).ok());
        Self {
            filter,
            needle,
            invalid: 0,
        }
    }

    fn too_old_before(&self) -> Option<Timestamp> {
        self.filter.since.map(|since| since.minus(DISORDER_MAX))
    }

    pub(super) fn look(&mut self, line: Line<'_>) -> Option<Record> {
        // Most lines of a large log are not worth reading whole; one with the look of an object passes
        // for one.
        if let Some(needle) = &self.needle
            && !needle.is_match(line.bytes)
            && looks_like_an_object(line.bytes)
        {
            return None;
        }
        let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(line.bytes) else {
            self.invalid += 1;
            return None;
        };
        self.filter.matches(&fields).then(|| Record {
            position: line.position,
            line: line.bytes.to_vec(),
            fields,
        })
    }
}

fn looks_like_an_object(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"{") && line.ends_with(b"}") && std::str::from_utf8(line).is_ok()
}

/// Whole lines of a file from an offset on.
pub(super) struct Lines<'a> {
    file: &'a File,
    base: u64,
    end: u64,
    /// Offset of the buffer's first byte.
    start: u64,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were given out.
    used: usize,
    pub(super) oversized: u64,
    skipping: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(file: &'a File, offset: u64, end: u64, base: u64) -> Self {
        Self {
            file,
            base,
            end,
            start: offset,
            buffer: Vec::new(),
            used: 0,
            oversized: 0,
            skipping: false,
        }
    }

    /// The offset after the last line that was given out.
    pub(super) fn offset(&self) -> u64 {
        self.start + self.used as u64
    }

    /// Is there half a line after the last?
    fn has_rest(&self) -> bool {
        self.used < self.buffer.len() || self.skipping
    }

    /// The next line that has its newline.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = self.used;
        loop {
            if let Some(at) = self.buffer[searched..].iter().position(|b| *b == b'\n') {
                let (from, to) = (self.used, searched + at);
                self.used = to + 1;
                searched = self.used;
                if self.skipping || to - from > LINE_READ_MAX {
                    self.skipping = false;
                    self.oversized += 1;
                    continue;
                }
                let position = self.base + self.offset();
                return Ok(Some(Line {
                    bytes: &self.buffer[from..to],
                    position,
                }));
            }
            searched = self.buffer.len() - self.used;
            self.start += self.used as u64;
            self.buffer.drain(..self.used);
            self.used = 0;
            if self.buffer.len() > LINE_READ_MAX {
                self.start += self.buffer.len() as u64;
                self.buffer.clear();
                self.skipping = true;
                searched = 0;
            }
            let at = self.start + self.buffer.len() as u64;
            let room = self.end.saturating_sub(at).min(BLOCK_BYTES as u64) as usize;
            let had = self.buffer.len();
            self.buffer.resize(had + room, 0);
            let read = read_full_at(self.file, &mut self.buffer[had..], at)?;
            self.buffer.truncate(had + read);
            if read == 0 {
                return Ok(None);
            }
        }
    }
}
