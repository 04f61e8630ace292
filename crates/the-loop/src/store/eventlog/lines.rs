//! Single lines: cutting a file into them, and judging them (EV-21, EV-23).

use std::fs::File;
use std::io;
use std::time::Duration;

use regex::bytes::Regex;
use serde_json::{Map, Value};
use the_loop_core::event::Filter;
use the_loop_core::time::Timestamp;

use super::read::Record;
use super::segment::read_full_at;

/// Bytes read at once.
pub(super) const BLOCK_BYTES: usize = 128 << 10;
/// Bytes of a line that a reader takes; a longer one counts as unreadable.
pub const LINE_READ_MAX: usize = 1 << 20;
/// Lines of several writers may be out of order by their clocks; this much older, and nothing newer
/// comes before (EV-22).
const DISORDER_MAX: Duration = Duration::from_mins(10);

/// One line, with its place.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) position: u64,
}

impl Line<'_> {
    pub(super) fn is_older_than(&self, before: Timestamp) -> bool {
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

    pub(super) fn too_old_before(&self) -> Option<Timestamp> {
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

pub(super) fn time_of(line: &Map<String, Value>) -> Option<Timestamp> {
    line.get("ts")?.as_str()?.parse().ok()
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
    pub(super) fn has_rest(&self) -> bool {
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

/// Whole lines of a file from the last to the first.
pub(super) struct LinesUp<'a> {
    file: &'a File,
    base: u64,
    /// Offset of the buffer's first byte.
    start: u64,
    buffer: Vec<u8>,
    /// Bytes at the buffer's beginning that were not given out.
    left: usize,
    pub(super) oversized: u64,
    skipping: bool,
}

impl<'a> LinesUp<'a> {
    /// `end` is the offset after a newline.
    pub(super) fn new(file: &'a File, end: u64, base: u64) -> Self {
        Self {
            file,
            base,
            start: end,
            buffer: Vec::new(),
            left: 0,
            oversized: 0,
            skipping: false,
        }
    }

    /// The line above the last one that was given out.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            // The newline that ends the line above this one.
            let inside = &self.buffer[..self.left.saturating_sub(1)];
            let from = match inside.iter().rposition(|b| *b == b'\n') {
                Some(at) => at + 1,
                None if self.start > 0 => {
                    self.read_above()?;
                    continue;
                }
                None if self.left == 0 => return Ok(None),
                None => 0,
            };
            let to = self.left;
            self.left = from;
            if self.skipping || to - from > LINE_READ_MAX {
                self.skipping = false;
                self.oversized += 1;
                continue;
            }
            return Ok(Some(Line {
                bytes: &self.buffer[from..to - 1],
                position: self.base + self.start + to as u64,
            }));
        }
    }

    /// Puts the block above in front of what is left of this one: the end of a line that begins there.
    fn read_above(&mut self) -> io::Result<()> {
        self.buffer.truncate(self.left);
        if self.buffer.len() > LINE_READ_MAX {
            self.skipping = true;
            // The newline stays, so that the line is still one.
            self.buffer = vec![b'\n'];
        }
        let start = self.start.saturating_sub(BLOCK_BYTES as u64);
        let mut block = vec![0; (self.start - start) as usize];
        if read_full_at(self.file, &mut block, start)? < block.len() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file became shorter while it was read",
            ));
        }
        block.append(&mut self.buffer);
        self.left = block.len();
        self.buffer = block;
        self.start = start;
        Ok(())
    }
}
