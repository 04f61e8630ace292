//! Reading what was appended to a file of lines since the last look.

use std::io;

use camino::Utf8Path;

use crate::disk::Disk;

/// Bytes taken from the disk at a time.
const CHUNK_BYTES: u64 = 64 << 10;

/// Remembers how far a file of lines was read. Memory is bounded by the longest line that is kept; a
/// longer one is skipped and counted. A last line without its newline waits for the rest of it.
#[derive(Clone, Debug)]
pub struct LineTail {
    inode: Option<u64>,
    offset: u64,
    partial: Vec<u8>,
    skipping: bool,
    line_bytes_max: usize,
}

/// What one look at a file gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TailRead {
    /// Lines that were too long and are not told.
    pub too_long: usize,
    /// The file is another one than at the last look, or was cut, and was read from its beginning.
    pub restarted: bool,
    /// Bytes of the file at this look; 0 when it is not there.
    pub len: u64,
    /// Its last change, Unix milliseconds; 0 when it is not there.
    pub modified_ms: i64,
}

impl LineTail {
    /// Starts at the beginning of whatever file it is shown.
    pub fn new(line_bytes_max: usize) -> Self {
        Self {
            inode: None,
            offset: 0,
            partial: Vec::new(),
            skipping: false,
            line_bytes_max,
        }
    }

    /// Which file it reads; `None` before it found one.
    pub fn inode(&self) -> Option<u64> {
        self.inode
    }

    /// Tells every whole line that came since the last look, without its newline. A file that is not
    /// there has none.
    pub fn read(
        &mut self,
        disk: &dyn Disk,
        path: &Utf8Path,
        each: &mut dyn FnMut(&[u8]),
    ) -> io::Result<TailRead> {
        let mut told = TailRead::default();
        let Some(meta) = disk.meta(path)? else {
            return Ok(told);
        };
        told.len = meta.len;
        told.modified_ms = meta.modified_ms;
        if self.inode != Some(meta.inode) || meta.len < self.offset {
            told.restarted = self.inode.is_some();
            *self = Self::new(self.line_bytes_max);
            self.inode = Some(meta.inode);
        }
        while self.offset < meta.len {
            let chunk = disk.read_from(path, self.offset, CHUNK_BYTES)?;
            if chunk.is_empty() {
                break;
            }
            self.offset += chunk.len() as u64;
            self.take(&chunk, &mut told, each);
        }
        Ok(told)
    }

    fn take(&mut self, chunk: &[u8], told: &mut TailRead, each: &mut dyn FnMut(&[u8])) {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if self.skipping || self.partial.len() + line.len() > self.line_bytes_max {
                told.too_long += 1;
            } else if self.partial.is_empty() {
                each(line);
            } else {
                self.partial.extend_from_slice(line);
                each(&self.partial);
            }
            self.skipping = false;
            self.partial.clear();
        }
        if self.partial.len() + rest.len() > self.line_bytes_max {
            self.skipping = true;
            self.partial = Vec::new();
        } else if !self.skipping {
            self.partial.extend_from_slice(rest);
        }
    }
}
