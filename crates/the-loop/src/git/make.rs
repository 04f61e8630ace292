//! The making of clones and worktrees: under another name, then renamed to their place (DI-46).

use camino::Utf8Path;
use the_loop_core::workspace::{CloneSource, is_making_name, making_name};

use super::branch::{Choice, From};
use super::call::Git;
use super::checkout::{Place, in_the_way};
use super::sweep::{MAKING_REASON, io_error};
use super::{CloneLock, WorkspaceError};

impl Git {
    pub(super) fn fetch(
        &self,
        repository: &Utf8Path,
        give_way: &dyn Fn() -> bool,
    ) -> Result<(), WorkspaceError> {
        let args = ["fetch", "--quiet", "--prune", "origin"];
        let call = self.network_call(repository, args);
        self.ask_mending(call, give_way).map(drop)
    }

    /// The branches that worktrees other than `own` hold.
    pub(super) fn taken(
        &self,
        repository: &Utf8Path,
        own: &Utf8Path,
    ) -> Result<Vec<String>, WorkspaceError> {
        let entries = self.worktrees(repository)?;
        let others = entries.into_iter().filter(|entry| entry.path != own);
        Ok(others.filter_map(|entry| entry.branch).collect())
    }

    /// Clones into a directory that is not there yet. No file is written and no branch is held, so
    /// that every branch can be checked out somewhere.
    fn clone(
        &self,
        source: &CloneSource,
        into: &Utf8Path,
        give_way: &dyn Fn() -> bool,
    ) -> Result<(), WorkspaceError> {
        let args = [
            "clone",
            "--quiet",
            "--no-checkout",
            "--origin",
            "origin",
            "--",
            source.as_str(),
            into.as_str(),
        ];
        let above = into.parent().unwrap_or(into);
        self.ask_patiently(self.network_call(above, args), give_way)?;
        Ok(())
    }

    /// Makes the shared clone, or checks and fetches the one that is there. Was it made just now?
    fn shared_clone(
        &self,
        place: &Place<'_>,
        source: &CloneSource,
        give_way: &dyn Fn() -> bool,
    ) -> Result<bool, WorkspaceError> {
        let shared = place.shared();
        let disk = &self.world.disk;
        let above = shared.parent().unwrap_or(place.root);
        for name in disk.list(above).map_err(io_error(above))? {
            if is_making_name(place.repo(), &name) {
                self.delete(&above.join(name))?;
            }
        }
        if disk.meta(&shared).map_err(io_error(&shared))?.is_some() {
            let facts = self.facts(&shared)?;
            let real = disk.canonicalize(&shared).map_err(io_error(&shared))?;
            if facts.common != real.join(".git") && facts.common != real {
                return Err(in_the_way(&shared));
            }
            // The ones that a call would fail on half way, when it cannot simply be made again.
            for name in ["config.lock", "packed-refs.lock"] {
                self.clear_repository_lock(&shared, &facts.common.join(name));
            }
            self.check_remote(&shared, source)?;
            self.fetch(&shared, give_way)?;
            return Ok(false);
        }
        let making = above.join(making_name(place.repo(), &self.world.ids.hex::<4>()));
        self.clone(source, &making, give_way)?;
        if let Some(commit) = self.commit_of(&making, "HEAD")? {
            let args = ["update-ref", "--no-deref", "HEAD", &commit];
            self.ask(self.call(&making, args))?;
        }
        disk.rename(&making, &shared).map_err(io_error(&shared))?;
        Ok(true)
    }

    pub(super) fn make_worktree(
        &self,
        place: &Place<'_>,
        source: &CloneSource,
        lock: CloneLock<'_>,
        give_way: &dyn Fn() -> bool,
    ) -> Result<Option<String>, WorkspaceError> {
        let _held = lock().map_err(WorkspaceError::TryLater)?;
        let just_cloned = self.shared_clone(place, source, give_way)?;
        let shared = place.shared();
        self.sweep(place, Some(&shared))?;
        let taken = self.taken(&shared, &place.real_path())?;
        let choice = self.choose(&shared, place.request, &taken, just_cloned, give_way)?;
        let name = making_name(place.repo(), &self.world.ids.hex::<4>());
        let holder = place.holder().join(name);
        let disk = &self.world.disk;
        disk.create_dir_all(&holder).map_err(io_error(&holder))?;
        let making = holder.join(place.request.slug.as_str());
        let path = place.path();
        let put = self
            .add_worktree(&shared, &making, &choice, give_way)
            .and_then(|()| disk.rename(&making, &path).map_err(io_error(&path)));
        if let Err(e) = put {
            // The next attempt sweeps as well; this one only saves the space until then.
            let _ = self.sweep(place, Some(&shared));
            return Err(e);
        }
        self.settle(&shared, &place.real_path())?;
        self.delete(&holder)?;
        Ok(choice.note)
    }

    fn add_worktree(
        &self,
        shared: &Utf8Path,
        making: &Utf8Path,
        choice: &Choice,
        give_way: &dyn Fn() -> bool,
    ) -> Result<(), WorkspaceError> {
        let branch = choice.branch.as_str();
        let remote = format!("origin/{branch}");
        let mut args = vec![
            "worktree",
            "add",
            "--quiet",
            "--lock",
            "--reason",
            MAKING_REASON,
        ];
        match &choice.from {
            From::Existing => args.extend([making.as_str(), branch]),
            From::Remote(_) => args.extend(["--track", "-b", branch, making.as_str(), &remote]),
            From::Commit(commit) => {
                args.extend(["--no-track", "-b", branch, making.as_str(), commit]);
            }
            From::Nothing => args.extend(["--orphan", "-b", branch, making.as_str()]),
        }
        let made = self.ask_mending(self.slow_call(shared, args), give_way);
        match made {
            Err(e) if e.to_string().contains("unknown option `orphan'") => {
                Err(WorkspaceError::NeedsOperator(
                    "the repository has no commit yet, and this git is too old for that: push a first commit"
                        .to_owned(),
                ))
            }
            Ok(_) | Err(_) => made.map(drop),
        }
    }

    pub(super) fn make_clone(
        &self,
        place: &Place<'_>,
        source: &CloneSource,
        give_way: &dyn Fn() -> bool,
    ) -> Result<Option<String>, WorkspaceError> {
        self.sweep(place, None)?;
        let path = place.path();
        let name = making_name(place.repo(), &self.world.ids.hex::<4>());
        let making = place.holder().join(name);
        let make = || {
            self.clone(source, &making, give_way)?;
            let choice = self.choose(&making, place.request, &[], true, give_way)?;
            self.check_out(&making, &choice, give_way)?;
            let renamed = self.world.disk.rename(&making, &path);
            renamed.map_err(io_error(&path))?;
            Ok(choice.note)
        };
        make().inspect_err(|_| {
            let _ = self.delete(&making);
        })
    }

    /// Puts a checkout on a branch.
    pub(super) fn check_out(
        &self,
        path: &Utf8Path,
        choice: &Choice,
        give_way: &dyn Fn() -> bool,
    ) -> Result<(), WorkspaceError> {
        let branch = choice.branch.as_str();
        let remote = format!("origin/{branch}");
        let unborn = format!("refs/heads/{branch}");
        let args = match &choice.from {
            From::Existing => vec!["checkout", "--quiet", branch, "--"],
            From::Remote(_) => {
                vec![
                    "checkout", "--quiet", "--track", "-b", branch, &remote, "--",
                ]
            }
            From::Commit(commit) => {
                vec![
                    "checkout",
                    "--quiet",
                    "--no-track",
                    "-b",
                    branch,
                    commit,
                    "--",
                ]
            }
            From::Nothing => vec!["symbolic-ref", "HEAD", &unborn],
        };
        let call = self.slow_call(path, args);
        self.ask_mending(call, give_way).map(drop)
    }
}
