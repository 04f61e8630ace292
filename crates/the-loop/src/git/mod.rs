//! Checkouts of work items, by the git program (DI-45 to DI-48).
//!
//! [`Git::prepare`] makes a checkout or takes the one that is there, [`Git::unsaved`] says what would
//! be lost with it, [`Git::remove`] saves that and gives the checkout back. All three may be stopped at
//! any instant and called again.

use camino::Utf8PathBuf;
use the_loop_core::ids::{Slug, WorkItemRef};
use the_loop_core::workspace::{CloneSource, StartFrom, Strategy};

use crate::store::saved::SavedManifest;

mod branch;
mod bundle;
mod call;
mod checkout;
mod make;
mod remove;
mod save;
mod status;
mod survey;
mod sweep;

pub use call::Git;

/// Takes the lock of a repository's shared clone (state page, section 4) and waits for it; held
/// until what it gave is dropped. The text of an error is for people.
pub type CloneLock<'a> = &'a dyn Fn() -> Result<Box<dyn Send>, String>;

/// What a session needs files for.
#[derive(Clone, Debug)]
pub struct WorkspaceRequest {
    /// The item, or the pull request whose own session it is.
    pub item: WorkItemRef,
    /// Its slug.
    pub slug: Slug,
    /// `routing.workspace.strategy`; counts as `None` without a root.
    pub strategy: Strategy,
    /// `routing.workspace.root`, absolute.
    pub root: Option<Utf8PathBuf>,
    /// Where the repository is cloned from; absent when nothing says so.
    pub source: Option<CloneSource>,
    /// `routing.spawnWorkdir`, absolute: the working directory without a checkout.
    pub spawn_workdir: Utf8PathBuf,
    /// What a new checkout starts from.
    pub start: StartFrom,
}

/// A directory to work in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The session's working directory.
    pub cwd: Utf8PathBuf,
    /// How it came about.
    pub strategy: Strategy,
    /// The checkout; absent without one.
    pub path: Option<Utf8PathBuf>,
    /// The branch that is checked out; absent when detached and without a checkout.
    pub branch: Option<String>,
    /// Was it made by this call?
    pub made: bool,
    /// What a person should know: another branch than the usual one, and why.
    pub note: Option<String>,
}

/// Why there is no directory to work in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceError {
    /// A command that ends this item waits for its lock (ST-25).
    #[error("gave way to a command that ends this item")]
    GaveWay,
    /// It may work later: network, a busy lock, a full disk.
    #[error("{0}")]
    TryLater(String),
    /// It will not work until a person changes something.
    #[error("{0}")]
    NeedsOperator(String),
}

impl WorkspaceError {
    /// Can a retry help? The `will_retry` of `workspace.failed`.
    pub fn retryable(&self) -> bool {
        match self {
            Self::GaveWay | Self::TryLater(_) => true,
            Self::NeedsOperator(_) => false,
        }
    }
}

/// A checkout that was made for an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// The item.
    pub item: WorkItemRef,
    /// Its slug.
    pub slug: Slug,
    /// How it was made.
    pub strategy: Strategy,
    /// Where it is, absolute.
    pub path: Utf8PathBuf,
}

/// What would be lost with a checkout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsaved {
    /// Commits that are on no remote.
    pub commits: u64,
    /// Tracked files with changes, staged or not.
    pub changed: u64,
    /// Untracked files that are not ignored.
    pub untracked: u64,
}

impl Unsaved {
    /// Nothing would be lost.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
    /// "Changed files" as people read it: untracked ones are among them (SE-47).
    pub fn files(self) -> u64 {
        self.changed + self.untracked
    }
}

/// How a removal ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// What was saved first; absent when there was nothing, or it was discarded.
    pub saved: Option<SavedManifest>,
    /// Was there a checkout to remove?
    pub removed: bool,
}

/// Why a checkout is still there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoveError {
    /// It is not where this item's checkout belongs, or no checkout; never touched (`not-ours`).
    #[error("{0}")]
    NotOurs(String),
    /// Its work could not be saved, so it stays as it is (`save-failed`).
    #[error("{0}")]
    SaveFailed(String),
    /// The work is safe, but the checkout could not be removed, or not wholly; to be tried again.
    #[error("{why}")]
    RemoveFailed {
        /// Why.
        why: String,
        /// What was saved before.
        saved: Option<Box<SavedManifest>>,
    },
}
