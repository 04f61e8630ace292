//! Following a log as it is written (EV-25).

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::event::Filter;

use super::lines::{Lines, Scan};
use super::read::{ReadFault, Sink, open_if_there};
use super::segment;
use crate::clock::Clock;
use crate::disk::SharedDisk;

/// How often a log is looked at; a line is shown within a second (EV-25).
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Something to tell beside the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowNote {
    /// The file became shorter; reading began at its start again.
    Shrank,
    /// So many lines were no JSON objects.
    Invalid(u64),
}

/// A place in a log from which its lines are taken as they come. It holds the file open, so a rotation
/// takes nothing from it.
#[derive(Debug)]
pub struct Follower {
    disk: SharedDisk,
    path: Utf8PathBuf,
    at: Option<Place>,
    /// Name of the newest closed segment that lies before this place.
    newest: Option<String>,
}

#[derive(Debug)]
struct Place {
    file: File,
    /// After the last whole line that was taken.
    offset: u64,
    base: u64,
}

impl Follower {
    pub(super) fn new(
        disk: SharedDisk,
        path: Utf8PathBuf,
        at: Option<(File, u64, u64)>,
        newest: Option<String>,
    ) -> Self {
        Self {
            disk,
            path,
            at: at.map(|(file, offset, base)| Place { file, offset, base }),
            newest,
        }
    }

    /// The position (EV-15) up to which everything was taken; `None` before there is a log.
    pub fn position(&self) -> Option<u64> {
        self.at.as_ref().map(|place| place.base + place.offset)
    }

    /// Gives each match as it comes, until `stop` says so or the sink breaks.
    pub fn follow(
        &mut self,
        filter: &Filter,
        clock: &Clock,
        stop: &dyn Fn() -> bool,
        sink: &mut Sink<'_>,
        note: &mut dyn FnMut(FollowNote),
    ) -> Result<(), ReadFault> {
        while !stop() {
            if self.poll(filter, sink, note)?.is_break() {
                break;
            }
            clock.wait(POLL_EVERY);
        }
        Ok(())
    }

    /// Gives what was written since the last look; finishes a closed file before the next one.
    pub fn poll(
        &mut self,
        filter: &Filter,
        sink: &mut Sink<'_>,
        note: &mut dyn FnMut(FollowNote),
    ) -> Result<ControlFlow<()>, ReadFault> {
        self.try_poll(filter, sink, note)
            .map_err(|source| ReadFault {
                path: self.path.clone(),
                source,
            })
    }

    fn try_poll(
        &mut self,
        filter: &Filter,
        sink: &mut Sink<'_>,
        note: &mut dyn FnMut(FollowNote),
    ) -> io::Result<ControlFlow<()>> {
        loop {
            // Whether the file is closed is asked first: after that nothing is added to it, so what is
            // read then is all there will be.
            let closed = match &self.at {
                Some(place) => !self.disk.is_same_file(&place.file, &self.path)?,
                None => true,
            };
            if let Some(place) = &mut self.at
                && place.take(filter, sink, note)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            if !closed || !self.go_on()? {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    /// Opens the file after the one that is finished; `false` when there is none yet.
    fn go_on(&mut self) -> io::Result<bool> {
        let disk = self.disk.as_ref();
        // As in a query: the current file first, so that a rotation in between shows it twice, not never.
        let current = open_if_there(disk, &self.path)?;
        let segments = segment::list(disk, &self.path)?;
        for (at, next) in segments.iter().enumerate() {
            if self
                .newest
                .as_ref()
                .is_some_and(|newest| next.name <= *newest)
            {
                continue;
            }
            let is_ours = match &self.at {
                Some(place) => disk.is_same_file(&place.file, &next.path)?,
                None => false,
            };
            if is_ours {
                self.newest = Some(next.name.clone());
                continue;
            }
            if let Some(file) = open_if_there(disk, &next.path)? {
                let base = segment::base_of(disk, &file, &segments[..at])?;
                // This place's own segment is not passed before it is finished: `newest` moves then.
                self.at = Some(Place {
                    file,
                    offset: 0,
                    base,
                });
                return Ok(true);
            }
        }
        let Some(file) = current else {
            return Ok(false);
        };
        let base = segment::base_of(disk, &file, &segments)?;
        self.at = Some(Place {
            file,
            offset: 0,
            base,
        });
        Ok(true)
    }
}

impl Place {
    fn take(
        &mut self,
        filter: &Filter,
        sink: &mut Sink<'_>,
        note: &mut dyn FnMut(FollowNote),
    ) -> io::Result<ControlFlow<()>> {
        let len = self.file.metadata()?.len();
        if len < self.offset {
            note(FollowNote::Shrank);
            self.offset = 0;
        }
        let mut scan = Scan::new(filter);
        let mut lines = Lines::new(&self.file, self.offset, len, self.base);
        let mut flow = ControlFlow::Continue(());
        while let Some(line) = lines.next_line()? {
            let record = scan.look(line);
            self.offset = lines.offset();
            if let Some(record) = record {
                flow = sink(&record);
                if flow.is_break() {
                    break;
                }
            }
        }
        let invalid = scan.invalid + lines.oversized;
        if invalid > 0 {
            note(FollowNote::Invalid(invalid));
        }
        Ok(flow)
    }
}
