//! What a crash left behind: half-made checkouts, entries of worktrees that are gone, dead locks.

use std::io;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::workspace::is_making_name;

use super::WorkspaceError;
use super::call::{Git, GitError};
use super::checkout::Place;
use crate::process::Call;

/// The lock that keeps `git worktree prune` and `git gc` off a worktree until it is in its place.
pub(super) const MAKING_REASON: &str = "the-loop is making this checkout";
/// Where processes cannot be looked at, a lock of git's is dead after this long.
const LOCK_AGE_MAX: Duration = Duration::from_hours(1);

/// One line group of `git worktree list --porcelain`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where it is, links resolved.
    pub path: Utf8PathBuf,
    /// The branch it holds.
    pub branch: Option<String>,
}

impl Git {
    /// The worktrees that a repository knows, itself among them.
    pub(super) fn worktrees(&self, repository: &Utf8Path) -> Result<Vec<Entry>, GitError> {
        let text = self.ask_text(self.call(repository, ["worktree", "list", "--porcelain"]))?;
        Ok(parse_worktrees(&text))
    }

    /// Forgets the entry of a worktree whose directory is gone. Branches stay.
    pub(super) fn forget(&self, repository: &Utf8Path, path: &Utf8Path) -> Result<(), GitError> {
        let args = ["worktree", "remove", "--force", "--force", path.as_str()];
        self.ask(self.call(repository, args)).map(drop)
    }

    /// Makes a worktree that was renamed into its place an ordinary one.
    pub(super) fn settle(
        &self,
        repository: &Utf8Path,
        path: &Utf8Path,
    ) -> Result<(), WorkspaceError> {
        let quick = || false;
        let repair = self.call(repository, ["worktree", "repair", path.as_str()]);
        self.ask_mending(repair, &quick)?;
        let unlock = self.call(repository, ["worktree", "unlock", path.as_str()]);
        match self.ask_mending(unlock, &quick) {
            Err(e) if !e.to_string().contains("is not locked") => Err(e),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Removes what earlier attempts left beside a checkout's place. The caller holds the lock that
    /// keeps others from making one there. `repository`: the shared clone, when there is one.
    pub(super) fn sweep(
        &self,
        place: &Place<'_>,
        repository: Option<&Utf8Path>,
    ) -> Result<(), WorkspaceError> {
        let disk = &self.world.disk;
        let holder = place.holder();
        for name in disk.list(&holder).map_err(io_error(&holder))? {
            if is_making_name(place.repo(), &name) {
                self.delete(&holder.join(&name))?;
            }
        }
        let Some(repository) = repository else {
            return Ok(());
        };
        let home = place.real_holder().join(&place.repo().name);
        for entry in self.worktrees(repository)? {
            let Some(slug) = place.half_made(&entry.path) else {
                if entry.path == place.real_path() && self.is_absent(&entry.path)? {
                    self.forget(repository, &entry.path)?;
                }
                continue;
            };
            // It was renamed to its place, but that is not written down in the shared clone yet.
            let settled = home.join(slug);
            if disk
                .meta(&settled.join(".git"))
                .map_err(io_error(&settled))?
                .is_some()
            {
                self.settle(repository, &settled)?;
            }
            let still = self.worktrees(repository)?.contains(&entry);
            if still && self.is_absent(&entry.path)? {
                self.forget(repository, &entry.path)?;
            }
        }
        Ok(())
    }

    fn is_absent(&self, path: &Utf8Path) -> Result<bool, WorkspaceError> {
        let found = self.world.disk.meta(path).map_err(io_error(path))?;
        Ok(found.is_none())
    }

    /// Deletes a directory of ours, also one with read-only directories in it (module caches).
    pub(super) fn delete(&self, path: &Utf8Path) -> Result<(), WorkspaceError> {
        let disk = &self.world.disk;
        match disk.remove_dir_all(path) {
            Ok(_) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                // `chmod -R` follows no link that it meets on its way.
                let chmod = Call::new("chmod", ["-R", "u+rwX", "--", path.as_str()]);
                self.world.processes.run(&chmod);
                disk.remove_dir_all(path).map(drop).map_err(io_error(path))
            }
            Err(e) => Err(io_error(path)(e)),
        }
    }

    /// Removes a lock file whose process is gone; `false` when it may still be held, or could not be
    /// removed. A lock is held by a git that works in one of the directories `around` it.
    pub(super) fn clear_dead_lock(&self, lock: &Utf8Path, around: &[&Utf8Path]) -> bool {
        let disk = &self.world.disk;
        let Ok(Some(seen)) = disk.meta(lock) else {
            return true;
        };
        let dead = self.git_works_in(around).map_or_else(
            || {
                let age = self.world.clock.now().unix_ms() - seen.modified_ms;
                u128::try_from(age).is_ok_and(|age| age > LOCK_AGE_MAX.as_millis())
            },
            |works| !works,
        );
        // Another one that came meanwhile is another file.
        let same = matches!(disk.meta(lock), Ok(Some(now)) if now == seen);
        dead && same && disk.remove(lock).is_ok()
    }

    /// Removes a dead lock that all worktrees of the repository at `dir` share; `false` when it may
    /// still be held, or is no lock of that repository.
    pub(super) fn clear_repository_lock(&self, dir: &Utf8Path, lock: &Utf8Path) -> bool {
        let (Ok(facts), Ok(entries)) = (self.facts(dir), self.worktrees(dir)) else {
            return false;
        };
        let around: Vec<&Utf8Path> = entries
            .iter()
            .map(|entry| entry.path.as_path())
            .chain([dir])
            .collect();
        let above = lock
            .parent()
            .and_then(|dir| self.world.disk.canonicalize(dir).ok());
        above.is_some_and(|above| above.starts_with(&facts.common))
            && self.clear_dead_lock(lock, &around)
    }

    /// Removes a directory that is truly empty; `false` when it is not.
    pub(super) fn remove_empty(&self, dir: &Utf8Path) -> bool {
        let rmdir = Call::new("rmdir", ["--", dir.as_str()]);
        self.world.processes.run(&rmdir).ok()
    }

    /// Does a git run in one of these directories? `None` where processes cannot be looked at.
    fn git_works_in(&self, around: &[&Utf8Path]) -> Option<bool> {
        let disk = &self.world.disk;
        let around: Vec<Utf8PathBuf> = around
            .iter()
            .filter_map(|dir| disk.canonicalize(dir).ok())
            .collect();
        let processes = disk.list(Utf8Path::new("/proc")).ok()?;
        let mut numbered = processes
            .iter()
            .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
            .peekable();
        numbered.peek()?;
        Some(numbered.any(|pid| {
            let process = Utf8PathBuf::from(format!("/proc/{pid}"));
            let name = disk.read(&process.join("comm"), 64).unwrap_or_default();
            name.starts_with(b"git")
                && disk
                    .canonicalize(&process.join("cwd"))
                    .is_ok_and(|cwd| around.iter().any(|dir| cwd.starts_with(dir)))
        }))
    }
}

/// An error of the disk, with the path it is about.
pub(super) fn io_error(path: &Utf8Path) -> impl Fn(io::Error) -> WorkspaceError + '_ {
    move |e| WorkspaceError::TryLater(format!("{path}: {e}"))
}

fn parse_worktrees(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("worktree ") {
            entries.push(Entry {
                path: path.into(),
                branch: None,
            });
        } else if let (Some(entry), Some(branch)) =
            (entries.last_mut(), line.strip_prefix("branch refs/heads/"))
        {
            entry.branch = Some(branch.to_owned());
        }
    }
    entries
}
