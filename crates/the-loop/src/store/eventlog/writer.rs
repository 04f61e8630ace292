//! Writing lines, one `write` each, and rotating (EV-6 to EV-17).

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::event::{Envelope, LogEvent, Source, line};
use the_loop_core::redact::{Redactor, secret_values};
use the_loop_core::time::Timestamp;

use super::segment::{self, Segment};
use crate::world::World;

/// Tries of one line to find the file that the path leads to; each failed one saw a rotation.
const REOPEN_TRIES_MAX: usize = 32;
/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

/// The writing half of the event log. Cheap to clone; clones share one descriptor.
///
/// Emitting never fails the caller (EV-9). When the last clone goes, what is not on the platter yet is
/// synced (EV-17).
#[derive(Clone, Debug)]
pub struct EventLog {
    shared: Option<Arc<Shared>>,
}

#[derive(Debug)]
struct Shared {
    world: World,
    path: Utf8PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: Option<Arc<File>>,
    redactor: Redactor,
    segment_bytes: u64,
    keep_segments: u32,
    dirty: bool,
    /// A sync failed and it was said; nothing more is said until one works.
    sync_fails: bool,
    lost: Option<Lost>,
}

/// Lines that could not be written, until one can.
#[derive(Clone, Debug)]
struct Lost {
    count: u64,
    since: Timestamp,
    error: String,
}

impl EventLog {
    /// A log at `path`, an absolute file name. Nothing is opened before the first line. With `enabled`
    /// false every call does nothing (EV-11). `segment_mb` (1 to 4096 MiB) and `keep_segments` (0 = all)
    /// matter to [`EventLog::rotate_if_needed`] only.
    pub fn open(
        world: &World,
        path: &Utf8Path,
        enabled: bool,
        segment_mb: u32,
        keep_segments: u32,
    ) -> Self {
        if !enabled {
            return Self::disabled();
        }
        let secrets = secret_values(&world.env, &[]);
        let state = State {
            file: None,
            redactor: Redactor::new(secrets),
            segment_bytes: u64::from(segment_mb.max(1)) * MIB,
            keep_segments,
            dirty: false,
            sync_fails: false,
            lost: None,
        };
        Self {
            shared: Some(Arc::new(Shared {
                world: world.clone(),
                path: path.to_owned(),
                state: Mutex::new(state),
            })),
        }
    }

    /// A log that does nothing: switched off by the operator, or a dry run's (EV-11, EV-13).
    pub fn disabled() -> Self {
        Self { shared: None }
    }

    /// Does this log write anything?
    pub fn is_enabled(&self) -> bool {
        self.shared.is_some()
    }

    /// Where the lines go; `None` when they go nowhere.
    pub fn path(&self) -> Option<&Utf8Path> {
        self.shared.as_deref().map(|shared| shared.path.as_path())
    }

    /// Takes these secrets out of free texts from now on (EV-19), for an environment file that changed.
    pub fn set_redactor(&self, redactor: Redactor) {
        if let Some(shared) = &self.shared {
            shared.lock().redactor = redactor;
        }
    }

    /// Takes over changed settings of rotation.
    pub fn set_rotation(&self, segment_mb: u32, keep_segments: u32) {
        if let Some(shared) = &self.shared {
            let mut state = shared.lock();
            state.segment_bytes = u64::from(segment_mb.max(1)) * MIB;
            state.keep_segments = keep_segments;
        }
    }

    /// Writes one line and returns after the write (EV-8). A failure is said once on stderr, counted, and
    /// told by `log.lost` as soon as a write works again (EV-9).
    pub fn emit(&self, source: Source, event: LogEvent) {
        if let Some(shared) = &self.shared {
            let sync = shared.emit(&mut shared.lock(), source, &event);
            shared.sync(sync);
        }
    }

    /// Lines that could not be written since the last good write.
    pub fn lost(&self) -> u64 {
        let Some(shared) = &self.shared else { return 0 };
        let state = shared.lock();
        state.lost.as_ref().map_or(0, |lost| lost.count)
    }

    /// Can the log be opened for appending? `reset` and `cleanup` ask before the first removal (EV-9).
    /// A disabled log is no obstacle.
    pub fn can_append(&self) -> io::Result<()> {
        match &self.shared {
            Some(shared) => shared.current(&mut shared.lock()).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Once a second in the daemon: syncs what was written since (EV-17), and tells of lost lines when
    /// they can be told.
    pub fn tick(&self) {
        if let Some(shared) = &self.shared {
            let sync = {
                let mut state = shared.lock();
                shared.tell_lost(&mut state, Source::Daemon);
                take_dirty(&mut state)
            };
            shared.sync(sync);
        }
    }

    /// Syncs now what is not on the platter yet: at an orderly exit (EV-17).
    pub fn sync(&self) {
        if let Some(shared) = &self.shared {
            let sync = take_dirty(&mut shared.lock());
            shared.sync(sync);
        }
    }

    /// Closes the file as a segment when it passed its size, and removes the oldest segments that the
    /// settings give up (EV-14, EV-16). Only the daemon calls this. `true` when it rotated.
    pub fn rotate_if_needed(&self) -> io::Result<bool> {
        match &self.shared {
            Some(shared) => shared.rotate_if_needed(&mut shared.lock()),
            None => Ok(false),
        }
    }
}

fn take_dirty(state: &mut State) -> Option<Arc<File>> {
    state.dirty.then(|| {
        state.dirty = false;
        state.file.clone()
    })?
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one line; gives the file back when it has to be synced before the caller goes on.
    fn emit(&self, state: &mut State, source: Source, event: &LogEvent) -> Option<Arc<File>> {
        let at = self.world.clock.now();
        let told = self.tell_lost(state, source);
        match self.write(state, source, event, at) {
            Ok(()) => (told || event.syncs_at_once())
                .then(|| take_dirty(state))
                .flatten(),
            Err(error) => {
                self.count_lost(state, at, &error);
                None
            }
        }
    }

    fn count_lost(&self, state: &mut State, at: Timestamp, error: &io::Error) {
        if let Some(lost) = &mut state.lost {
            lost.count += 1;
            return;
        }
        let path = &self.path;
        // Nothing may fail the caller, not even a closed stderr.
        let _ = writeln!(
            io::stderr(),
            "warning: cannot write the event log {path}: {error}"
        );
        state.lost = Some(Lost {
            count: 1,
            since: at,
            error: error.to_string(),
        });
    }

    /// Writes `log.lost` when lines were lost; `true` when it was written.
    fn tell_lost(&self, state: &mut State, source: Source) -> bool {
        let Some(lost) = state.lost.clone() else {
            return false;
        };
        let event = LogEvent::LogLost {
            count: lost.count,
            since: lost.since,
            error: lost.error,
        };
        let told = self
            .write(state, source, &event, self.world.clock.now())
            .is_ok();
        if told {
            state.lost = None;
        }
        told
    }

    fn line(&self, state: &State, source: Source, event: &LogEvent, at: Timestamp) -> Vec<u8> {
        let envelope = Envelope {
            at,
            source,
            pid: self.world.pid,
        };
        line(envelope, event, &state.redactor)
    }

    /// One line into the file that the path leads to, under a shared lock, so that no line lands in a
    /// closed segment (EV-14).
    fn write(
        &self,
        state: &mut State,
        source: Source,
        event: &LogEvent,
        at: Timestamp,
    ) -> io::Result<()> {
        let bytes = self.line(state, source, event, at);
        for _ in 0..REOPEN_TRIES_MAX {
            let file = self.current(state)?;
            file.lock_shared()?;
            let written = self.write_locked(state, &file, source, &bytes);
            let _ = file.unlock();
            if written? {
                state.dirty = true;
                return Ok(());
            }
            state.file = None;
        }
        Err(io::Error::other("the log is replaced all the time"))
    }

    /// The open file, opened when it is not.
    fn current(&self, state: &mut State) -> io::Result<Arc<File>> {
        if let Some(file) = &state.file {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(self.world.disk.open_append(&self.path)?);
        state.file = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Writes under the shared lock; `false` when the path has become another file. A file that is empty
    /// or ends in half a line is mended under the exclusive lock, where no other write is under way
    /// (EV-10, EV-15).
    fn write_locked(
        &self,
        state: &State,
        file: &File,
        source: Source,
        bytes: &[u8],
    ) -> io::Result<bool> {
        let disk = &self.world.disk;
        if !disk.is_same_file(file, &self.path)? {
            return Ok(false);
        }
        if ends_in_newline(file)? {
            return disk.append_to(file, bytes).map(|()| true);
        }
        file.unlock()?;
        file.lock()?;
        if !disk.is_same_file(file, &self.path)? {
            return Ok(false);
        }
        self.begin(state, file, source)?;
        if ends_in_newline(file)? || file.metadata()?.len() == 0 {
            disk.append_to(file, bytes)?;
        } else {
            let mended = [b"\n", bytes].concat();
            disk.append_to(file, &mended)?;
        }
        Ok(true)
    }

    /// Writes `log.rotated` into an empty file beside older segments. The exclusive lock is held.
    fn begin(&self, state: &State, file: &File, source: Source) -> io::Result<()> {
        if file.metadata()?.len() > 0 {
            return Ok(());
        }
        let disk = self.world.disk.as_ref();
        let segments = segment::list(disk, &self.path)?;
        let Some(previous) = segments.last() else {
            return Ok(());
        };
        let bytes = match disk.meta(&previous.path)? {
            Some(meta) => meta.len,
            None => 0,
        };
        let event = LogEvent::LogRotated {
            previous: previous.name.clone(),
            base: segment::base_of(disk, file, &segments)?,
            bytes,
        };
        let first = self.line(state, source, &event, self.world.clock.now());
        disk.append_to(file, &first)
    }

    /// Syncs without holding up other writers. A failed sync leaves the file dirty for the next try, and
    /// is said once.
    fn sync(&self, file: Option<Arc<File>>) {
        let Some(file) = file else { return };
        let synced = file.sync_data();
        let mut state = self.lock();
        if let Err(error) = &synced {
            state.dirty = true;
            if !state.sync_fails {
                let path = &self.path;
                let _ = writeln!(
                    io::stderr(),
                    "warning: cannot sync the event log {path}: {error}"
                );
            }
        }
        state.sync_fails = synced.is_err();
    }

    fn rotate_if_needed(&self, state: &mut State) -> io::Result<bool> {
        let rotated = self.rotate(state)?;
        self.give_up_segments(state)?;
        Ok(rotated)
    }

    fn rotate(&self, state: &mut State) -> io::Result<bool> {
        let disk = self.world.disk.as_ref();
        let too_small =
            |file: &File| Ok::<_, io::Error>(file.metadata()?.len() <= state.segment_bytes);
        let old = match disk.open_read(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(e),
        };
        if too_small(&old)? {
            return Ok(false);
        }
        old.lock()?;
        if too_small(&old)? || !disk.is_same_file(&old, &self.path)? {
            return Ok(false);
        }
        old.sync_all()?;
        let present = segment::list(disk, &self.path)?;
        let closed = segment::next_path(&self.path, &present, self.world.clock.now());
        disk.rename(&self.path, &closed)?;
        state.file = None;
        state.dirty = false;
        let new = self.current(state)?;
        new.lock()?;
        let begun = self.begin(state, &new, Source::Daemon);
        let _ = new.unlock();
        begun?;
        state.dirty = true;
        Ok(true)
    }

    /// Removes the oldest segments beyond the number to keep; each is announced first, so that no
    /// removal is without its trail.
    fn give_up_segments(&self, state: &mut State) -> io::Result<()> {
        if state.keep_segments == 0 {
            return Ok(());
        }
        let disk = &self.world.disk;
        let present = segment::list(disk.as_ref(), &self.path)?;
        let extra = present.len().saturating_sub(state.keep_segments as usize);
        for Segment { name, path } in present.into_iter().take(extra) {
            let bytes = disk.meta(&path)?.map_or(0, |meta| meta.len);
            let event = LogEvent::LogRemoved { file: name, bytes };
            self.write(state, Source::Daemon, &event, self.world.clock.now())?;
            disk.remove(&path)?;
        }
        Ok(())
    }
}

/// `false` also for an empty file.
fn ends_in_newline(file: &File) -> io::Result<bool> {
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.read_exact_at(&mut last, len - 1)?;
    Ok(last == *b"\n")
}

impl Drop for Shared {
    fn drop(&mut self) {
        let dirty = take_dirty(&mut self.lock());
        self.sync(dirty);
    }
}
