//! A conversation that is followed: a file of lines, or rows of a database (DI-29, DI-37).

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::HarnessSessionId;

use super::opencode::database::Rows;
use super::transcript::{Entry, Growth, TranscriptFormat, TranscriptTail};
use crate::disk::Disk;

/// A conversation, and how far it was read.
#[derive(Debug)]
pub enum Conversation {
    /// A file to which lines are appended.
    Lines(TranscriptTail),
    /// Rows of OpenCode's database.
    Rows(Box<Rows>),
}

impl Conversation {
    /// Starts at its beginning; `None` where it takes the id to find it, and that is not known.
    pub fn at(
        path: Utf8PathBuf,
        format: TranscriptFormat,
        id: Option<&HarnessSessionId>,
    ) -> Option<Self> {
        if format == TranscriptFormat::OpenCodeRows {
            return Some(Self::Rows(Box::new(Rows::new(path, id?.clone()))));
        }
        Some(Self::Lines(TranscriptTail::new(path, format)))
    }

    /// Which file.
    pub fn path(&self) -> &Utf8Path {
        match self {
            Self::Lines(tail) => tail.path(),
            Self::Rows(rows) => rows.path(),
        }
    }

    /// Its size, in bytes or rows, and last change at the last look; zeros when it is not there.
    pub fn growth(&self) -> Growth {
        match self {
            Self::Lines(tail) => tail.growth(),
            Self::Rows(rows) => rows.growth(),
        }
    }

    /// Was it another one at the last look, and read from its beginning?
    pub fn restarted(&self) -> bool {
        match self {
            Self::Lines(tail) => tail.restarted(),
            Self::Rows(rows) => rows.restarted(),
        }
    }

    /// The entries that came since the last look. One that is not there has none; one that cannot be read
    /// is an error, and is tried again at the next look.
    pub fn read(&mut self, disk: &dyn Disk) -> io::Result<Vec<Entry>> {
        match self {
            Self::Lines(tail) => tail.read(disk),
            Self::Rows(rows) => rows.read(disk),
        }
    }

    /// Does it hold this text anywhere, in whosever words?
    pub fn mentions(&self, disk: &dyn Disk, text: &str) -> io::Result<bool> {
        match self {
            Self::Lines(tail) => tail.mentions(disk, text),
            Self::Rows(rows) => rows.mentions(disk, text),
        }
    }
}
