//! The one way to the file system.
//!
//! [`Disk`] is a trait so that a test can fail or "crash" at a chosen call (`testkit::FaultyDisk`).
//! Whatever writes durably goes through it; so does the inbox's commit, by [`Disk::commit`].
#![allow(
    clippy::disallowed_methods,
    reason = "this is the one place that touches files"
)]

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

/// What is at a path, without following a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What kind of thing.
    pub kind: Kind,
    /// Bytes.
    pub len: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner's uid.
    pub uid: u32,
    /// Inode, for "is it still the same file".
    pub inode: u64,
    /// Last change, Unix milliseconds.
    pub modified_ms: i64,
    /// When it was made, Unix milliseconds; `None` where the file system does not tell.
    pub created_ms: Option<i64>,
}

/// Kind of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Regular file.
    File,
    /// Directory.
    Dir,
    /// Symbolic link.
    Link,
    /// Socket, pipe or device.
    Other,
}

/// How a lock is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// One holder.
    Exclusive,
    /// Many holders, none of them exclusive.
    Shared,
}

/// Everything this program asks of a file system. Paths are absolute.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// The bytes of a regular file, not following a link; an error when it is longer than `max`.
    fn read(&self, path: &Utf8Path, max: u64) -> io::Result<Vec<u8>>;
    /// Bytes from `offset` on, at most `max`.
    fn read_from(&self, path: &Utf8Path, offset: u64, max: u64) -> io::Result<Vec<u8>>;
    /// Temporary file beside it, 0600, write, fsync, rename, fsync of the directory (ST-17).
    /// `durable: false` skips the syncs (ST-18).
    fn write_atomic(&self, path: &Utf8Path, bytes: &[u8], durable: bool) -> io::Result<()>;
    /// A new file that must not exist yet, with the given mode, synced.
    fn create_new(&self, path: &Utf8Path, bytes: &[u8], mode: u32) -> io::Result<()>;
    /// One `write` on an `O_APPEND` descriptor; the file is made 0600 on demand.
    fn append(&self, path: &Utf8Path, bytes: &[u8]) -> io::Result<()>;
    /// A descriptor to append to and to read from, following a link; the file is made 0600 on demand,
    /// its directory too. Only a regular file is opened.
    fn open_append(&self, path: &Utf8Path) -> io::Result<fs::File>;
    /// One `write` on a descriptor of [`Disk::open_append`]; a short one is an error.
    fn append_to(&self, file: &fs::File, bytes: &[u8]) -> io::Result<()>;
    /// A descriptor to read from, following a link. Only a regular file is opened.
    fn open_read(&self, path: &Utf8Path) -> io::Result<fs::File>;
    /// Does the path, links followed, still lead to the file that is open? `false` when nothing is there.
    fn is_same_file(&self, file: &fs::File, path: &Utf8Path) -> io::Result<bool>;
    /// Removes a file; `false` when it was not there.
    fn remove(&self, path: &Utf8Path) -> io::Result<bool>;
    /// Removes a directory with all in it; `false` when it was not there.
    fn remove_dir_all(&self, path: &Utf8Path) -> io::Result<bool>;
    /// Renames within one file system, then syncs the target's directory.
    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()>;
    /// Names in a directory, sorted; empty when it is not there. Names that are not UTF-8 are left out.
    fn list(&self, dir: &Utf8Path) -> io::Result<Vec<String>>;
    /// Makes a directory and its parents, 0700 each that is new.
    fn create_dir_all(&self, dir: &Utf8Path) -> io::Result<()>;
    /// What is there; `None` for nothing. Links are not followed.
    fn meta(&self, path: &Utf8Path) -> io::Result<Option<Meta>>;
    /// Sets permission bits.
    fn set_mode(&self, path: &Utf8Path, mode: u32) -> io::Result<()>;
    /// The path with links resolved.
    fn canonicalize(&self, path: &Utf8Path) -> io::Result<Utf8PathBuf>;
    /// Opens (making it 0600) and tries to lock; `None` when another holds it. The lock ends with the
    /// file; no child inherits it. With `create: false` a missing file is `NotFound`.
    fn try_lock(
        &self,
        path: &Utf8Path,
        mode: LockMode,
        create: bool,
    ) -> io::Result<Option<fs::File>>;
    /// Fsyncs a file.
    fn sync(&self, path: &Utf8Path) -> io::Result<()>;
    /// Runs a database commit on `path`. The operating system's disk just runs it; a test's disk
    /// fails or crashes before or after it.
    fn commit(&self, path: &Utf8Path, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;
    /// Bytes free for us on the file system that holds `path`.
    fn free_bytes(&self, path: &Utf8Path) -> io::Result<u64>;
}

/// A shared disk.
pub type SharedDisk = Arc<dyn Disk>;

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

impl OsDisk {
    fn sync_parent(path: &Utf8Path) -> io::Result<()> {
        match path.parent() {
            Some(dir) => fs::File::open(dir)?.sync_all(),
            None => Ok(()),
        }
    }
}

fn random_suffix() -> io::Result<String> {
    let mut bytes = [0u8; 4];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(hex::encode(bytes))
}

/// Opens for reading without following a link and refuses anything but a regular file (ST-15).
fn open_regular(path: &Utf8Path) -> io::Result<fs::File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    only_regular(
        fs::OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits() as i32)
            .open(path)?,
    )
}

fn only_regular(file: fs::File) -> io::Result<fs::File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }
}

impl Disk for OsDisk {
    fn read(&self, path: &Utf8Path, max: u64) -> io::Result<Vec<u8>> {
        let file = open_regular(path)?;
        let mut bytes = Vec::new();
        file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max {
            let why = format!("larger than {max} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok(bytes)
    }

    fn read_from(&self, path: &Utf8Path, offset: u64, max: u64) -> io::Result<Vec<u8>> {
        use std::io::{Seek, SeekFrom};
        let mut file = open_regular(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write_atomic(&self, path: &Utf8Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        let temporary = Utf8PathBuf::from(format!("{path}.{}.tmp", random_suffix()?));
        let write = || {
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&temporary)?;
            file.write_all(bytes)?;
            if durable {
                file.sync_all()?;
            }
            fs::rename(&temporary, path)?;
            if durable {
                Self::sync_parent(path)
            } else {
                Ok(())
            }
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    }

    fn create_new(&self, path: &Utf8Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.inspect_err(|_| {
            let _ = fs::remove_file(path);
        })
    }

    fn append(&self, path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
        let file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        self.append_to(&file, bytes)
    }

    fn open_append(&self, path: &Utf8Path) -> io::Result<fs::File> {
        let mut options = fs::OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        options.custom_flags(nonblock);
        let file = match options.open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if let Some(dir) = path.parent() {
                    self.create_dir_all(dir)?;
                }
                options.open(path)?
            }
            other => other?,
        };
        only_regular(file)
    }

    fn append_to(&self, mut file: &fs::File, bytes: &[u8]) -> io::Result<()> {
        let written = loop {
            match file.write(bytes) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if written == bytes.len() {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::WriteZero,
                "the line was cut short",
            ))
        }
    }

    fn open_read(&self, path: &Utf8Path) -> io::Result<fs::File> {
        let nonblock = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let mut options = fs::OpenOptions::new();
        only_regular(options.read(true).custom_flags(nonblock).open(path)?)
    }

    fn is_same_file(&self, file: &fs::File, path: &Utf8Path) -> io::Result<bool> {
        let there = match fs::metadata(path) {
            Ok(there) => there,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(e),
        };
        let open = file.metadata()?;
        Ok(open.ino() == there.ino() && open.dev() == there.dev())
    }

    fn remove(&self, path: &Utf8Path) -> io::Result<bool> {
        match fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn remove_dir_all(&self, path: &Utf8Path) -> io::Result<bool> {
        match fs::remove_dir_all(path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        fs::rename(from, to)?;
        Self::sync_parent(to)
    }

    fn list(&self, dir: &Utf8Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create_dir_all(&self, dir: &Utf8Path) -> io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
    }

    fn meta(&self, path: &Utf8Path) -> io::Result<Option<Meta>> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let kind = match found.file_type() {
            t if t.is_file() => Kind::File,
            t if t.is_dir() => Kind::Dir,
            t if t.is_symlink() => Kind::Link,
            _ => Kind::Other,
        };
        Ok(Some(Meta {
            kind,
            len: found.len(),
            mode: found.mode() & 0o7777,
            uid: found.uid(),
            inode: found.ino(),
            modified_ms: found.mtime() * 1000 + found.mtime_nsec() / 1_000_000,
            created_ms: found.created().ok().and_then(|at| {
                let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
                i64::try_from(since.as_millis()).ok()
            }),
        }))
    }

    fn set_mode(&self, path: &Utf8Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    fn canonicalize(&self, path: &Utf8Path) -> io::Result<Utf8PathBuf> {
        path.canonicalize_utf8()
    }

    fn try_lock(
        &self,
        path: &Utf8Path,
        mode: LockMode,
        create: bool,
    ) -> io::Result<Option<fs::File>> {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let tried = match mode {
            LockMode::Exclusive => file.try_lock(),
            LockMode::Shared => file.try_lock_shared(),
        };
        match tried {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(e)) => Err(e),
        }
    }

    fn sync(&self, path: &Utf8Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn commit(&self, _path: &Utf8Path, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        work()
    }

    fn free_bytes(&self, path: &Utf8Path) -> io::Result<u64> {
        let stats = rustix::fs::statvfs(path.as_std_path())?;
        Ok(stats.f_bavail.saturating_mul(stats.f_frsize))
    }
}
