//! The lock of a service: a pid file whose lock is the truth (ST-26).

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::limits::SERVICE_LOCK_TRIES;

use crate::disk::{Disk, LockMode};
use crate::world::World;

/// A service's lock. Dropping it unlinks the pid file, then lets go.
#[derive(Debug)]
pub struct ServiceLock {
    world: World,
    path: Utf8PathBuf,
    file: File,
}

/// Why a service lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum ServiceLockError {
    /// Another process holds it; the pid is what the file says.
    #[error("{path} is held{}", pid.map(|p| format!(" by pid {p}")).unwrap_or_default())]
    Held {
        /// The file.
        path: Utf8PathBuf,
        /// Who the file says.
        pid: Option<u32>,
    },
    /// The file could not be opened, written or kept.
    #[error("cannot lock {path}")]
    Io {
        /// The file.
        path: Utf8PathBuf,
        /// The file system's answer.
        #[source]
        source: std::io::Error,
    },
}

/// What can be seen of a service from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceHolder {
    /// The lock is held: the service runs.
    pub locked: bool,
    /// What the file says, be it held or left over.
    pub pid: Option<u32>,
}

impl ServiceLock {
    /// Takes the lock of a service and writes this process's id into its file.
    pub fn acquire(world: &World, path: &Utf8Path) -> Result<Self, ServiceLockError> {
        let io = |source| ServiceLockError::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(dir) = path.parent() {
            world.disk.create_dir_all(dir).map_err(io)?;
        }
        let mut held = false;
        for attempt in 0..SERVICE_LOCK_TRIES {
            if attempt > 0 {
                // Somebody who only looks holds the lock for a moment, too.
                world.clock.wait(Duration::from_millis(20));
            }
            let tried = world.disk.try_lock(path, LockMode::Exclusive, true);
            let Some(file) = tried.map_err(io)? else {
                held = true;
                continue;
            };
            held = false;
            // The last holder may have unlinked the file between our opening and locking it; then
            // this lock guards nothing.
            if is_at(world.disk.as_ref(), path, &file).map_err(io)? {
                let lock = Self {
                    world: world.clone(),
                    path: path.to_owned(),
                    file,
                };
                lock.write_pid().map_err(io)?;
                return Ok(lock);
            }
        }
        if held {
            let pid = Self::holder(world.disk.as_ref(), path).pid;
            return Err(ServiceLockError::Held {
                path: path.to_owned(),
                pid,
            });
        }
        Err(io(std::io::Error::other(
            "the file is replaced again and again",
        )))
    }

    fn write_pid(&self) -> std::io::Result<()> {
        let text = format!("{}\n", self.world.pid);
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)?;
        self.file.sync_all()
    }

    /// Who holds a service's lock, without making or changing anything. What cannot be opened is
    /// not held by us to know: it counts as free.
    pub fn holder(disk: &dyn Disk, path: &Utf8Path) -> ServiceHolder {
        let looked = disk.try_lock(path, LockMode::Shared, false);
        let locked = matches!(looked, Ok(None));
        let bytes = disk.read(path, 64).unwrap_or_default();
        let pid = String::from_utf8_lossy(&bytes).trim().parse().ok();
        ServiceHolder { locked, pid }
    }
}

/// Is this descriptor still the file at the path?
fn is_at(disk: &dyn Disk, path: &Utf8Path, file: &File) -> std::io::Result<bool> {
    let ours = file.metadata()?.ino();
    Ok(disk.meta(path)?.is_some_and(|there| there.inode == ours))
}

impl Drop for ServiceLock {
    fn drop(&mut self) {
        let disk = self.world.disk.as_ref();
        // A file that was put there by hand meanwhile is not ours to unlink. That unlinking fails
        // harms nobody: a left-over pid file is just unlocked.
        if is_at(disk, &self.path, &self.file).unwrap_or(false) {
            let _ = disk.remove(&self.path);
        }
    }
}
