//! Making a state root fit for use (ST-14, ST-20).

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::Slug;
use the_loop_core::limits::STALE_TEMPORARY_AGE;

use super::{Layout, LockName};
use crate::disk::{Disk, Kind, LockMode};
use crate::world::World;

/// Why a state root cannot be used. All of them end a command with exit 2.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The machine's half belongs to somebody else (ST-14).
    #[error("{dir} belongs to another user (uid {owner})")]
    Foreign {
        /// The directory.
        dir: Utf8PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Something that is no directory stands where one must be.
    #[error("{dir} is not a directory")]
    NotADirectory {
        /// The path.
        dir: Utf8PathBuf,
    },
    /// `local/instance` does not hold an id; it is left as it is.
    #[error("{file} is not 16 hex digits and a newline; remove it to get a new one")]
    Instance {
        /// The file.
        file: Utf8PathBuf,
    },
    /// The file system refused.
    #[error("cannot {what} {path}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: Utf8PathBuf,
        /// Its answer.
        #[source]
        source: std::io::Error,
    },
}

/// What the daemon's start found and did.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The root's id.
    pub instance: String,
    /// `local/` was readable by others and is not any more.
    pub tightened: bool,
    /// Temporaries of a crash that were removed.
    pub swept: Vec<Utf8PathBuf>,
    /// Temporaries that could not be removed, and why.
    pub left: Vec<(Utf8PathBuf, String)>,
}

fn io(what: &'static str, path: &Utf8Path) -> impl FnOnce(std::io::Error) -> LayoutError {
    let path = path.to_owned();
    move |source| LayoutError::Io { what, path, source }
}

impl Layout {
    /// Makes the directories, 0700, and refuses a machine's half that belongs to another user. Every
    /// command that writes begins with it.
    pub fn ensure(&self, world: &World) -> Result<(), LayoutError> {
        let disk = world.disk.as_ref();
        let logs = self.events_log();
        let dirs = [
            self.root(),
            self.local_dir(),
            self.locks_dir(),
            self.hooks_dir(),
            self.launch_dir(),
            self.local_dir().join("mail"),
            self.saved_dir(),
            self.logs_dir(),
            self.registry_dir(),
            logs.parent().map_or_else(|| self.logs_dir(), Into::into),
        ];
        for dir in dirs {
            disk.create_dir_all(&dir).map_err(io("make", &dir))?;
        }
        self.check_owner(disk, rustix::process::geteuid().as_raw())
    }

    /// Is the machine's half ours? Nothing there is no fault.
    fn check_owner(&self, disk: &dyn Disk, uid: u32) -> Result<(), LayoutError> {
        let Some((dir, meta)) = self.local_meta(disk)? else {
            return Ok(());
        };
        if meta.kind != Kind::Dir {
            return Err(LayoutError::NotADirectory { dir });
        }
        if meta.uid != uid {
            return Err(LayoutError::Foreign {
                dir,
                owner: meta.uid,
            });
        }
        Ok(())
    }

    /// What `local/` is, a link of the operator's followed.
    fn local_meta(
        &self,
        disk: &dyn Disk,
    ) -> Result<Option<(Utf8PathBuf, crate::disk::Meta)>, LayoutError> {
        let mut dir = self.local_dir();
        let mut meta = disk.meta(&dir).map_err(io("look at", &dir))?;
        if meta.as_ref().is_some_and(|m| m.kind == Kind::Link) {
            dir = disk.canonicalize(&dir).map_err(io("resolve", &dir))?;
            meta = disk.meta(&dir).map_err(io("look at", &dir))?;
        }
        Ok(meta.map(|meta| (dir, meta)))
    }

    /// What the daemon does at its start besides [`Layout::ensure`]: tightens `local/`, removes
    /// temporaries that a crash left, and reads or makes the root's id.
    pub fn prepare(&self, world: &World) -> Result<Prepared, LayoutError> {
        self.ensure(world)?;
        let disk = world.disk.as_ref();
        let mut done = Prepared {
            instance: self.instance_id(world)?,
            ..Prepared::default()
        };
        if let Some((dir, meta)) = self.local_meta(disk)?
            && meta.mode & 0o077 != 0
        {
            disk.set_mode(&dir, 0o700).map_err(io("tighten", &dir))?;
            done.tightened = true;
        }
        for dir in self.swept_dirs(disk)? {
            for name in disk.list(&dir).map_err(io("list", &dir))? {
                if is_temporary(&name) {
                    sweep(world, dir.join(name), &mut done);
                }
            }
        }
        Ok(done)
    }

    /// The directories in which records are written.
    fn swept_dirs(&self, disk: &dyn Disk) -> Result<Vec<Utf8PathBuf>, LayoutError> {
        let mut dirs = vec![
            self.local_dir(),
            self.hooks_dir(),
            self.launch_dir(),
            self.saved_dir(),
            self.portable_dir(),
        ];
        if self.registry_dir() != self.local_dir() {
            dirs.push(self.registry_dir());
        }
        let below = |dir: &Utf8Path| -> Result<Vec<Utf8PathBuf>, LayoutError> {
            let mut found = Vec::new();
            for name in disk.list(dir).map_err(io("list", dir))? {
                let path = dir.join(name);
                let meta = disk.meta(&path).map_err(io("look at", &path))?;
                if meta.is_some_and(|m| m.kind == Kind::Dir) {
                    found.push(path);
                }
            }
            Ok(found)
        };
        for owner in below(&self.tickets_dir())? {
            dirs.extend(below(&owner)?);
        }
        Ok(dirs)
    }

    /// The root's id, made on first need (state page, section 12). Two commands that need it at
    /// once get the same one.
    pub fn instance_id(&self, world: &World) -> Result<String, LayoutError> {
        let file = self.instance();
        if let Some(id) = self.instance_if_there(world)? {
            return Ok(id);
        }
        let lock = self.lock(&LockName::Instance);
        let mut held = None;
        for _ in 0..200 {
            held = world
                .disk
                .try_lock(&lock, LockMode::Exclusive, true)
                .map_err(io("lock", &lock))?;
            if held.is_some() {
                break;
            }
            world.clock.wait(Duration::from_millis(10));
        }
        if let Some(id) = self.instance_if_there(world)? {
            return Ok(id);
        }
        if held.is_none() {
            let source = std::io::ErrorKind::WouldBlock.into();
            return Err(io("lock", &lock)(source));
        }
        let id = world.ids.hex::<8>();
        world
            .disk
            .write_atomic(&file, format!("{id}\n").as_bytes(), true)
            .map_err(io("write", &file))?;
        Ok(id)
    }

    /// The root's id, when there is one: for what must not write.
    pub fn instance_if_there(&self, world: &World) -> Result<Option<String>, LayoutError> {
        let file = self.instance();
        let bytes = match world.disk.read(&file, 64) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == std::io::ErrorKind::FileTooLarge => {
                return Err(LayoutError::Instance { file });
            }
            Err(e) => return Err(io("read", &file)(e)),
        };
        let text = String::from_utf8(bytes).unwrap_or_default();
        let id = text.trim_ascii();
        let hex16 = id.len() == 16
            && id
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if hex16 {
            Ok(Some(id.to_owned()))
        } else {
            Err(LayoutError::Instance { file })
        }
    }
}

/// Is this the name of a temporary that this program or an earlier release makes for a record?
fn is_temporary(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".tmp") else {
        return false;
    };
    if stem.len() == 11 && stem.starts_with("tmp") && stem.is_char_boundary(3) {
        return true;
    }
    let Some((record, unique)) = stem.rsplit_once('.') else {
        return false;
    };
    let hex8 = unique.len() == 8
        && unique
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    hex8 && record.strip_suffix(".json").is_some_and(is_record_stem)
}

/// Records are named by a slug, with a part behind it for some, by a ticket's number, or `index`.
fn is_record_stem(stem: &str) -> bool {
    let numbered = !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_digit());
    let slugged = |stem: &str| Slug::from_file_stem(stem).is_some();
    let parted = stem
        .strip_suffix(".settings")
        .or_else(|| stem.rsplit_once('-').map(|(slug, _)| slug))
        .is_some_and(slugged);
    stem == "index" || numbered || slugged(stem) || parted
}

/// Removes a temporary that is old enough to be nobody's any more.
fn sweep(world: &World, path: Utf8PathBuf, done: &mut Prepared) {
    let now = world.clock.now().unix_ms();
    let old = |modified: i64| {
        let age = u64::try_from(now.saturating_sub(modified)).unwrap_or(0);
        Duration::from_millis(age) > STALE_TEMPORARY_AGE
    };
    match world.disk.meta(&path) {
        Ok(Some(meta)) if meta.kind == Kind::File && old(meta.modified_ms) => {
            match world.disk.remove(&path) {
                Ok(_) => done.swept.push(path),
                Err(e) => done.left.push((path, e.to_string())),
            }
        }
        Ok(_) => {}
        Err(e) => done.left.push((path, e.to_string())),
    }
}

#[cfg(test)]
mod tests;
