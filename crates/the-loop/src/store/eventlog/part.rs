//! One file of a log, read from either end (EV-22).

use std::collections::VecDeque;
use std::fs::File;
use std::io;

use camino::Utf8PathBuf;
use the_loop_core::time::Timestamp;

use super::lines::{BLOCK_BYTES, Lines, LinesUp, Scan};
use super::read::{ReadFault, Record, Sink};
use super::segment::read_full_at;

/// One file of the log, open.
pub(super) struct Part {
    pub(super) file: File,
    pub(super) path: Utf8PathBuf,
    pub(super) len: u64,
    pub(super) base: u64,
    /// It is still written to, so half a line at its end is no fault.
    pub(super) is_open: bool,
}

impl Part {
    pub(super) fn fault(&self, source: io::Error) -> ReadFault {
        ReadFault {
            path: self.path.clone(),
            source,
        }
    }

    /// The offset after the last newline.
    pub(super) fn end_of_lines(&self) -> io::Result<u64> {
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
    pub(super) fn forward(
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
    pub(super) fn backward(
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
        let mut lines = LinesUp::new(&self.file, end, self.base);
        while let Some(line) = lines.next_line()? {
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
        scan.invalid += lines.oversized;
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
