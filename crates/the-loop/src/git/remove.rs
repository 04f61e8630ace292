//! Giving a checkout back: saved first, then out of the way by one rename, then deleted (DI-48).

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::workspace::{
    SavedWhy, Strategy, is_making_name, making_name, shared_clone_path, workspace_of,
};

use super::call::Git;
use super::sweep::io_error;
use super::{Checkout, CloneLock, RemoveError, Removed, WorkspaceError};
use crate::disk::Kind;
use crate::store::saved::{SavedManifest, SavedStore};

impl Git {
    /// Saves what would be lost with a checkout, unless `discard`, and removes it. No branch goes with
    /// it, nor the shared clone. A checkout that is gone already is no error.
    pub fn remove(
        &self,
        store: &SavedStore,
        lock: CloneLock<'_>,
        checkout: &Checkout,
        why: SavedWhy,
        discard: bool,
    ) -> Result<Removed, RemoveError> {
        let root = self.own(checkout)?;
        let path = &checkout.path;
        let found = self.world.disk.meta(path);
        let found = found.map_err(|e| RemoveError::SaveFailed(format!("{path}: {e}")))?;
        let saved = match found {
            None => None,
            Some(meta) if meta.kind != Kind::Dir => {
                return Err(RemoveError::NotOurs(format!(
                    "{path} is a link or a file, not a checkout"
                )));
            }
            Some(_) if discard => None,
            Some(_) => self
                .save(store, checkout, why)
                .map_err(RemoveError::SaveFailed)?,
        };
        match self.take_away(&root, checkout, lock) {
            Ok(()) => Ok(Removed {
                saved,
                removed: found.is_some(),
            }),
            Err(e) => Err(failed(e, saved)),
        }
    }

    /// The workspace root of a checkout that is where it belongs, with no link on the way there.
    fn own(&self, checkout: &Checkout) -> Result<Utf8PathBuf, RemoveError> {
        let path = &checkout.path;
        let Checkout {
            item,
            slug,
            strategy,
            ..
        } = checkout;
        let root = workspace_of(path.as_str(), *strategy, item.repo(), slug).ok_or_else(|| {
            RemoveError::NotOurs(format!(
                "{path} is not where the checkout of {item} belongs"
            ))
        })?;
        let root = Utf8PathBuf::from(root);
        let above = path.parent().unwrap_or(&root);
        self.check_parts(&root, above).map_err(|e| match e {
            WorkspaceError::NeedsOperator(why) => RemoveError::NotOurs(why),
            e @ (WorkspaceError::TryLater(_) | WorkspaceError::GaveWay) => {
                RemoveError::SaveFailed(e.to_string())
            }
        })?;
        Ok(root)
    }

    fn take_away(
        &self,
        root: &Utf8Path,
        checkout: &Checkout,
        lock: CloneLock<'_>,
    ) -> Result<(), WorkspaceError> {
        match checkout.strategy {
            Strategy::Worktree => {
                let _held = lock().map_err(WorkspaceError::TryLater)?;
                self.take_worktree(root, checkout)
            }
            Strategy::Clone | Strategy::None => self.take_clone(root, checkout),
        }
    }

    fn take_worktree(&self, root: &Utf8Path, checkout: &Checkout) -> Result<(), WorkspaceError> {
        let disk = &self.world.disk;
        let path = &checkout.path;
        let repo = checkout.item.repo();
        let home = path.parent().unwrap_or(root);
        let holder = home.with_file_name(making_name(repo, &self.world.ids.hex::<4>()));
        // Its parent is looked up while it is sure to exist, for the names git knows.
        let real = disk
            .canonicalize(home)
            .map(|home| home.join(checkout.slug.as_str()));
        if disk.meta(path).map_err(io_error(path))?.is_some() {
            disk.create_dir_all(&holder).map_err(io_error(&holder))?;
            disk.rename(path, &holder.join(checkout.slug.as_str()))
                .map_err(io_error(path))?;
        }
        let shared = root.join(shared_clone_path(repo));
        let known = disk.meta(&shared).map_err(io_error(&shared))?.is_some();
        if let (true, Ok(real)) = (known, real) {
            for entry in self.worktrees(&shared)? {
                // Worktrees inside it went with it; they were looked into before.
                if entry.path.starts_with(&real) {
                    self.forget(&shared, &entry.path)?;
                }
            }
        }
        self.delete_leftovers(home.parent().unwrap_or(root), checkout)
    }

    fn take_clone(&self, root: &Utf8Path, checkout: &Checkout) -> Result<(), WorkspaceError> {
        let disk = &self.world.disk;
        let path = &checkout.path;
        let repo = checkout.item.repo();
        let above = path.parent().unwrap_or(root);
        if disk.meta(path).map_err(io_error(path))?.is_some() {
            let away = path.with_file_name(making_name(repo, &self.world.ids.hex::<4>()));
            disk.rename(path, &away).map_err(io_error(path))?;
        }
        self.delete_leftovers(above, checkout)?;
        // Only empty directories go, up to the item's own; what else is in them keeps them.
        for dir in above.ancestors().take(3) {
            if !self.remove_empty(dir) {
                break;
            }
        }
        Ok(())
    }

    /// Deletes everything under a temporary name: this one and what a crash left.
    fn delete_leftovers(&self, dir: &Utf8Path, checkout: &Checkout) -> Result<(), WorkspaceError> {
        for name in self.world.disk.list(dir).map_err(io_error(dir))? {
            if is_making_name(checkout.item.repo(), &name) {
                self.delete(&dir.join(name))?;
            }
        }
        Ok(())
    }
}

fn failed(e: WorkspaceError, saved: Option<SavedManifest>) -> RemoveError {
    RemoveError::RemoveFailed {
        why: e.to_string(),
        saved: saved.map(Box::new),
    }
}
