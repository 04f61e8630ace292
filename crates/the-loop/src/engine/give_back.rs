//! Checkouts given back: saved, then removed (DI-48).

use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::event::{KeptReason, LogEvent, Strategy};
use the_loop_core::record::{SessionRecord, WorkspaceStrategy};

use super::Engine;
use super::close::{CloseWish, Closed, EndLine};
use super::item::Gathered;
use crate::git::{Checkout, RemoveError};
use crate::store::lock::Patience;

impl Engine {
    /// Saves the work of a checkout, then removes it (DI-48).
    pub(super) fn give_back(
        &self,
        gathered: &Gathered,
        record: &SessionRecord,
        wish: &CloseWish,
        closed: &mut Closed,
    ) {
        let Some(workspace) = &record.workspace else {
            return;
        };
        let strategy = match workspace.strategy {
            WorkspaceStrategy::Worktree => Strategy::Worktree,
            WorkspaceStrategy::Clone => Strategy::Clone,
            WorkspaceStrategy::None => return,
        };
        let (work_item, checkout) = (gathered.item.clone(), workspace.path.clone());
        let goes_on = closed.lines.contains(&EndLine::GoesOn);
        if !wish.give_back || goes_on || gathered.settings.routing.workspace.keep_checkout_on_close
        {
            if wish.give_back && !goes_on {
                self.emit(LogEvent::WorkspaceKept {
                    work_item,
                    endpoint: None,
                    checkout: checkout.clone(),
                    reason: KeptReason::Configured,
                });
            }
            closed.lines.push(EndLine::Kept { path: checkout });
            return;
        }
        if closed.may_live || (closed.was_live && !closed.errors.is_empty()) {
            self.emit(LogEvent::WorkspaceKept {
                work_item,
                endpoint: None,
                checkout: checkout.clone(),
                reason: KeptReason::InUse,
            });
            closed.lines.push(EndLine::Kept { path: checkout });
            return;
        }
        let place = Checkout {
            item: gathered.item.clone(),
            slug: gathered.slug.clone(),
            strategy,
            path: Utf8PathBuf::from(&workspace.path),
        };
        let repo = gathered.item.repo().clone();
        let locks = self.0.locks.clone();
        let clone_lock = move || {
            locks
                .clone_lock(&repo, "remove", Patience::of(Duration::from_mins(1)))
                .map(|held| Box::new(held) as Box<dyn Send>)
                .map_err(|e| e.to_string())
        };
        let removed = self.git(&gathered.settings).remove(
            &self.saved(),
            &clone_lock,
            &place,
            wish.why,
            wish.discard,
        );
        self.told_removed(gathered, strategy, &workspace.path, wish, removed, closed);
    }

    pub(super) fn told_removed(
        &self,
        gathered: &Gathered,
        strategy: Strategy,
        path: &str,
        wish: &CloseWish,
        removed: Result<crate::git::Removed, RemoveError>,
        closed: &mut Closed,
    ) {
        let (work_item, checkout) = (gathered.item.clone(), path.to_owned());
        let saved = match &removed {
            Ok(removed) => removed.saved.clone(),
            Err(RemoveError::RemoveFailed { saved, .. }) => saved.as_deref().cloned(),
            Err(RemoveError::NotOurs(_) | RemoveError::SaveFailed(_)) => None,
        };
        if let Some(saved) = saved {
            self.emit(LogEvent::WorkSaved {
                work_item: work_item.clone(),
                endpoint: None,
                bundle: saved.bundle.clone(),
                commits: saved.commits,
                files: saved.files.changed + saved.files.untracked,
                bytes: saved.bytes,
                why: wish.why,
            });
            closed.lines.push(EndLine::Saved {
                name: saved.name().to_owned(),
                files: saved.files.changed + saved.files.untracked,
                commits: saved.commits,
            });
        } else if removed.is_ok() {
            self.emit(if wish.discard {
                LogEvent::WorkUnsaved {
                    work_item: work_item.clone(),
                    endpoint: None,
                    checkout: checkout.clone(),
                    actor: wish.actor.clone(),
                }
            } else {
                LogEvent::WorkClean {
                    work_item: work_item.clone(),
                    endpoint: None,
                    checkout: checkout.clone(),
                }
            });
        }
        match removed {
            Ok(removed) if removed.removed => {
                self.emit(LogEvent::WorkspaceCleaned {
                    work_item,
                    endpoint: None,
                    strategy,
                    checkout: checkout.clone(),
                });
                closed.lines.push(EndLine::Removed { path: checkout });
            }
            Ok(_) => {}
            Err(error) => {
                let reason = match &error {
                    RemoveError::NotOurs(_) => KeptReason::NotOurs,
                    RemoveError::SaveFailed(_) => KeptReason::SaveFailed,
                    RemoveError::RemoveFailed { .. } => KeptReason::InUse,
                };
                if reason == KeptReason::SaveFailed {
                    self.emit(LogEvent::WorkSaveFailed {
                        work_item: work_item.clone(),
                        endpoint: None,
                        checkout: checkout.clone(),
                        error: error.to_string(),
                    });
                }
                self.emit(LogEvent::WorkspaceKept {
                    work_item,
                    endpoint: None,
                    checkout: checkout.clone(),
                    reason,
                });
                closed.errors.push(error.to_string());
                closed.lines.push(EndLine::Kept { path: checkout });
            }
        }
    }
}
