//! Making a checkout, or taking the one that is there (DI-45 to DI-47).

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::RepoRef;
use the_loop_core::workspace::{
    self, CloneSource, StartFrom, Strategy, is_making_name, same_repository,
};

use super::call::Git;
use super::survey::Facts;
use super::sweep::{MAKING_REASON, io_error};
use super::{CloneLock, Prepared, WorkspaceError, WorkspaceRequest};
use crate::disk::Kind;

/// Where one item's checkout lies. All parts below the root were checked to be directories of ours.
pub(super) struct Place<'a> {
    pub request: &'a WorkspaceRequest,
    pub root: &'a Utf8Path,
    real_root: Utf8PathBuf,
    below: String,
}

impl<'a> Place<'a> {
    pub(super) fn repo(&self) -> &'a RepoRef {
        self.request.item.repo()
    }
    /// The checkout.
    pub(super) fn path(&self) -> Utf8PathBuf {
        self.root.join(&self.below)
    }
    /// The same with links above the root resolved, as git names it.
    pub(super) fn real_path(&self) -> Utf8PathBuf {
        self.real_root.join(&self.below)
    }
    /// The shared clone.
    pub(super) fn shared(&self) -> Utf8PathBuf {
        self.root.join(workspace::shared_clone_path(self.repo()))
    }
    fn holder_below(&self) -> String {
        let RepoRef { owner, .. } = self.repo();
        let host = self.repo().host_dir();
        match self.request.strategy {
            Strategy::Clone => format!(".work-items/{}/{host}/{owner}", self.request.slug),
            Strategy::Worktree | Strategy::None => format!(".worktrees/{host}/{owner}"),
        }
    }
    /// The directory in which temporary names for this repository's checkouts are.
    pub(super) fn holder(&self) -> Utf8PathBuf {
        self.root.join(self.holder_below())
    }
    pub(super) fn real_holder(&self) -> Utf8PathBuf {
        self.real_root.join(self.holder_below())
    }
    /// The slug of a worktree that was never renamed to its place.
    pub(super) fn half_made<'p>(&self, path: &'p Utf8Path) -> Option<&'p str> {
        let (name, slug) = path
            .strip_prefix(self.real_holder())
            .ok()?
            .as_str()
            .split_once('/')?;
        is_making_name(self.repo(), name).then_some(slug)
    }
}

impl Git {
    /// Makes the checkout of an item, or checks the one that is there (DI-47). `lock` is taken for the
    /// shared clone only, and only while something is made or moved. Slow work ends with
    /// [`WorkspaceError::GaveWay`] when `give_way` says so.
    pub fn prepare(
        &self,
        request: &WorkspaceRequest,
        lock: CloneLock<'_>,
        give_way: &dyn Fn() -> bool,
    ) -> Result<Prepared, WorkspaceError> {
        let root = match (request.strategy, &request.root) {
            (Strategy::None, _) | (_, None) => return self.without_checkout(request),
            (Strategy::Worktree | Strategy::Clone, Some(root)) => root,
        };
        let Some(source) = &request.source else {
            let RepoRef { owner, name, .. } = request.item.repo();
            return Err(WorkspaceError::NeedsOperator(format!(
                "nothing says where {owner}/{name} is cloned from (tracker.local.repos, integrations.github.cloneUrls)"
            )));
        };
        let place = self.place(request, root)?;
        if let Some(prepared) = self.reuse(&place, source, lock, give_way)? {
            return Ok(prepared);
        }
        let note = match request.strategy {
            Strategy::Clone => self.make_clone(&place, source, give_way)?,
            Strategy::Worktree | Strategy::None => {
                self.make_worktree(&place, source, lock, give_way)?
            }
        };
        let facts = self.facts(&place.path())?;
        Ok(prepared(&place, &facts, true, note))
    }

    fn without_checkout(&self, request: &WorkspaceRequest) -> Result<Prepared, WorkspaceError> {
        let dir = &request.spawn_workdir;
        let real = self.world.disk.canonicalize(dir);
        let meta = real.and_then(|real| self.world.disk.meta(&real));
        match meta {
            Ok(Some(meta)) if meta.kind == Kind::Dir => Ok(Prepared {
                cwd: dir.clone(),
                strategy: Strategy::None,
                path: None,
                branch: None,
                made: false,
                note: None,
            }),
            Ok(_) => Err(WorkspaceError::NeedsOperator(format!(
                "{dir} is no directory (routing.spawnWorkdir)"
            ))),
            Err(e) => Err(WorkspaceError::NeedsOperator(format!(
                "{dir}: {e} (routing.spawnWorkdir)"
            ))),
        }
    }

    /// Makes the directories above a checkout, and checks that none of them leads elsewhere (DI-45).
    fn place<'a>(
        &self,
        request: &'a WorkspaceRequest,
        root: &'a Utf8Path,
    ) -> Result<Place<'a>, WorkspaceError> {
        let disk = &self.world.disk;
        disk.create_dir_all(root).map_err(io_error(root))?;
        let real_root = disk.canonicalize(root).map_err(io_error(root))?;
        let below = workspace::checkout_path(request.strategy, request.item.repo(), &request.slug)
            .unwrap_or_default();
        let place = Place {
            request,
            root,
            real_root,
            below,
        };
        let path = place.path();
        if !workspace::is_below(root.as_str(), path.as_str()) {
            return Err(WorkspaceError::NeedsOperator(format!(
                "{path} is not below {root} (routing.workspace.root must be an absolute path without . and ..)"
            )));
        }
        for target in [path, place.shared()] {
            let above = target.parent().unwrap_or(root);
            self.check_parts(root, above)?;
            disk.create_dir_all(above).map_err(io_error(above))?;
        }
        Ok(place)
    }

    /// Every part between the root and `dir` is a directory, or not there yet; never a link.
    pub(super) fn check_parts(
        &self,
        root: &Utf8Path,
        dir: &Utf8Path,
    ) -> Result<(), WorkspaceError> {
        let below = dir.strip_prefix(root).unwrap_or(dir);
        let mut part = root.to_owned();
        for name in below.components() {
            part.push(name);
            match self.world.disk.meta(&part).map_err(io_error(&part))? {
                None => return Ok(()),
                Some(meta) if meta.kind == Kind::Dir => {}
                Some(_) => {
                    return Err(WorkspaceError::NeedsOperator(format!(
                        "{part} is in the way: it is a link or a file, not a directory of {root}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Takes the checkout that is there, after looking at it; `None` when there is none.
    fn reuse(
        &self,
        place: &Place<'_>,
        source: &CloneSource,
        lock: CloneLock<'_>,
        give_way: &dyn Fn() -> bool,
    ) -> Result<Option<Prepared>, WorkspaceError> {
        let path = place.path();
        let disk = &self.world.disk;
        match disk.meta(&path).map_err(io_error(&path))? {
            None => return Ok(None),
            Some(meta) if meta.kind == Kind::Dir => {}
            Some(_) => return Err(in_the_way(&path)),
        }
        let dot_git = disk.meta(&path.join(".git")).map_err(io_error(&path))?;
        if dot_git.is_none() {
            return if self.remove_empty(&path) {
                Ok(None)
            } else {
                Err(in_the_way(&path))
            };
        }
        let shared = place.shared();
        let linked = place.request.strategy == Strategy::Worktree;
        if linked && !self.is_settled(place) {
            let _held = lock().map_err(WorkspaceError::TryLater)?;
            self.settle(&shared, &place.real_path())?;
        }
        let facts = self.facts(&path)?;
        let home = if linked { &shared } else { &path };
        let home = disk.canonicalize(home).map_err(io_error(home))?;
        if facts.common != home.join(".git") && facts.common != home {
            return Err(WorkspaceError::NeedsOperator(format!(
                "{path} belongs to the repository {}, not to {home}; move it away",
                facts.common
            )));
        }
        self.check_remote(&path, source)?;
        self.check_locks(&facts, &path)?;
        self.right_branch(place, facts, lock, give_way).map(Some)
    }

    /// Does the shared clone know this worktree by its place, and is it not held any more?
    fn is_settled(&self, place: &Place<'_>) -> bool {
        let disk = &self.world.disk;
        let text = |path: &Utf8Path| {
            let bytes = disk.read(path, 64 << 10).ok()?;
            Some(String::from_utf8(bytes).ok()?.trim_end().to_owned())
        };
        let dot_git = place.real_path().join(".git");
        let Some(admin) = text(&dot_git).and_then(|t| {
            t.strip_prefix("gitdir: ")
                .map(|dir| place.real_path().join(dir))
        }) else {
            return false;
        };
        let back = text(&admin.join("gitdir")).map(|back| admin.join(back));
        let same = back.and_then(|back| disk.canonicalize(&back).ok()) == Some(dot_git);
        same && text(&admin.join("locked")).as_deref() != Some(MAKING_REASON)
    }

    /// Is its origin the repository it should be? Another protocol or spelling is taken over.
    pub(super) fn check_remote(
        &self,
        repository: &Utf8Path,
        source: &CloneSource,
    ) -> Result<(), WorkspaceError> {
        let args = ["config", "--get", "remote.origin.url"];
        let origin = self.ask_whether(self.call(repository, args))?;
        let origin = origin.unwrap_or_default();
        if origin == source.as_str() {
            return Ok(());
        }
        if !same_repository(&origin, source.as_str()) {
            let shown = workspace::strip_userinfo(&origin);
            return Err(WorkspaceError::NeedsOperator(format!(
                "{repository} is a checkout of {shown:?}, not of {source}; move it away, or: git -C {repository} remote set-url origin {source}"
            )));
        }
        let args = ["remote", "set-url", "origin", source.as_str()];
        self.ask_mending(self.call(repository, args), &|| false)?;
        Ok(())
    }

    /// Removes the locks that a killed git left in a checkout (DI-47).
    fn check_locks(&self, facts: &Facts, path: &Utf8Path) -> Result<(), WorkspaceError> {
        for name in ["index.lock", "HEAD.lock"] {
            let lock = facts.gitdir.join(name);
            if !self.clear_dead_lock(&lock, &[path]) {
                return Err(WorkspaceError::TryLater(format!(
                    "{lock} is held by another git"
                )));
            }
        }
        Ok(())
    }

    /// A pull request's checkout is moved to its head branch once that is known, when nothing is lost
    /// by it. Any other branch was chosen by whoever works there, and stays.
    fn right_branch(
        &self,
        place: &Place<'_>,
        facts: Facts,
        lock: CloneLock<'_>,
        give_way: &dyn Fn() -> bool,
    ) -> Result<Prepared, WorkspaceError> {
        let StartFrom::PullHead(head) = &place.request.start else {
            return Ok(prepared(place, &facts, false, None));
        };
        if facts.branch.as_ref() == Some(head) || !workspace::is_branch_name(head) {
            return Ok(prepared(place, &facts, false, None));
        }
        let path = place.path();
        let stays = |why: &str| {
            let note = format!("it stays off the pull request's branch {head}: {why}");
            Ok(prepared(place, &facts, false, Some(note)))
        };
        match self.unsaved_at(&path) {
            Ok(unsaved) if unsaved.is_empty() => {}
            Ok(_) => return stays("it has work that is not saved"),
            Err(why) => return stays(&why),
        }
        let linked = place.request.strategy == Strategy::Worktree;
        let _held = if linked {
            Some(lock().map_err(WorkspaceError::TryLater)?)
        } else {
            None
        };
        match self.fetch(&path, give_way) {
            Err(WorkspaceError::GaveWay) => return Err(WorkspaceError::GaveWay),
            // What is there can be worked in; the next time may find the remote.
            Err(e) => return stays(&e.to_string()),
            Ok(()) => {}
        }
        if self.remote_branch(&path, head)?.is_none() {
            return stays("the remote has no such branch");
        }
        let taken = self.taken(&path, &place.real_path())?;
        if taken.contains(head) {
            return stays("it is checked out elsewhere");
        }
        let choice = self.choose(&path, place.request, &taken, false, give_way)?;
        self.check_out(&path, &choice, give_way)?;
        let facts = self.facts(&path)?;
        Ok(prepared(place, &facts, false, choice.note))
    }
}

pub(super) fn in_the_way(path: &Utf8Path) -> WorkspaceError {
    WorkspaceError::NeedsOperator(format!(
        "{path} is in the way: it is no checkout of this repository; move it away"
    ))
}

fn prepared(place: &Place<'_>, facts: &Facts, made: bool, note: Option<String>) -> Prepared {
    Prepared {
        cwd: place.path(),
        strategy: place.request.strategy,
        path: Some(place.path()),
        branch: facts.branch.clone(),
        made,
        note,
    }
}
