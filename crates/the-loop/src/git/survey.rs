//! What is in a checkout, without changing anything in it (DI-48, SE-51).

use std::collections::{BTreeMap, HashSet};

use camino::{Utf8Path, Utf8PathBuf};

use super::call::{Git, GitError};
use super::status::{Hidden, Staged, Status};
use super::{Checkout, RemoveError, Unsaved, WorkspaceError};

/// How deep repositories inside a checkout are looked into; a deeper one is not removed.
const NESTING_MAX: usize = 8;
/// Where an unfinished operation keeps commits that nothing else may hold, below the git directory,
/// and what they are called in a bundle.
const STATE_FILES: [(&str, &str); 8] = [
    ("MERGE_HEAD", "merge-head"),
    ("MERGE_AUTOSTASH", "merge-autostash"),
    ("CHERRY_PICK_HEAD", "cherry-pick-head"),
    ("REVERT_HEAD", "revert-head"),
    ("rebase-merge/orig-head", "rebase-head"),
    ("rebase-merge/autostash", "rebase-autostash"),
    ("rebase-apply/orig-head", "am-head"),
    ("rebase-apply/autostash", "am-autostash"),
];

/// A checkout's repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Its own git directory, links resolved.
    pub gitdir: Utf8PathBuf,
    /// The repository's, shared by its worktrees.
    pub common: Utf8PathBuf,
    /// `sha1` or `sha256`.
    pub format: String,
    /// The branch; `None` when detached.
    pub branch: Option<String>,
    /// The commit; `None` before the first one.
    pub head: Option<String>,
}

/// Everything that would be lost with a checkout.
#[derive(Clone, Debug)]
pub(super) struct Survey {
    pub facts: Facts,
    pub status: Status,
    pub staged: Vec<Staged>,
    /// Commits on no remote, from all that would be lost.
    pub commits: Vec<String>,
    /// Commits on a remote that those build on.
    pub boundary: Vec<String>,
    /// Further refs to save: name below `refs/the-loop/saved/`, commit.
    pub others: BTreeMap<String, String>,
}

impl Survey {
    pub(super) fn unsaved(&self) -> Unsaved {
        Unsaved {
            commits: self.commits.len() as u64,
            changed: self.status.changed,
            untracked: self.status.untracked,
        }
    }
    /// Are there tracked files that git does not look at?
    pub(super) fn has_hidden(&self) -> bool {
        self.staged.iter().any(|s| s.hidden != Hidden::No)
    }
}

impl Git {
    /// What would be lost with a checkout, for a dry run or a report. Nothing is written anywhere. A
    /// checkout that is not there has nothing; one that cannot be read is [`RemoveError::SaveFailed`].
    pub fn unsaved(&self, checkout: &Checkout) -> Result<Unsaved, RemoveError> {
        match self.world.disk.meta(&checkout.path) {
            Ok(None) => Ok(Unsaved::default()),
            Ok(Some(_)) => self
                .unsaved_at(&checkout.path)
                .map_err(RemoveError::SaveFailed),
            Err(e) => Err(RemoveError::SaveFailed(format!("{}: {e}", checkout.path))),
        }
    }

    pub(super) fn unsaved_at(&self, path: &Utf8Path) -> Result<Unsaved, String> {
        let real = self.world.disk.canonicalize(path);
        let path = &real.map_err(|e| format!("{path}: {e}"))?;
        let facts = self.facts(path).map_err(|e| e.to_string())?;
        let status = self.status(path).map_err(|e| e.to_string())?;
        let states = self.states(path, &facts).map_err(|e| e.to_string())?;
        let (commits, _) = self.unpushed(path, &facts, dies_with(&facts, &[path]), &states)?;
        Ok(Unsaved {
            commits: commits.len() as u64,
            changed: status.changed,
            untracked: status.untracked,
        })
    }

    /// Which repository is this the top of?
    pub(super) fn facts(&self, path: &Utf8Path) -> Result<Facts, WorkspaceError> {
        let said = self.ask_text(self.call(
            path,
            ["rev-parse", "--absolute-git-dir", "--show-object-format"],
        ))?;
        let mut lines = said.lines();
        let gitdir = Utf8PathBuf::from(lines.next().unwrap_or_default());
        let format = match lines.next() {
            Some("sha256") => "sha256",
            Some(_) | None => "sha1",
        };
        let disk = &self.world.disk;
        let broken = |e: std::io::Error| WorkspaceError::TryLater(format!("{gitdir}: {e}"));
        let common = match disk.read(&gitdir.join("commondir"), 64 << 10) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                disk.canonicalize(&gitdir.join(text.trim_end()))
                    .map_err(broken)?
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => gitdir.clone(),
            Err(e) => return Err(broken(e)),
        };
        let symbolic = self.call(path, ["symbolic-ref", "--quiet", "HEAD"]);
        let branch = self
            .ask_whether(symbolic)?
            .and_then(|name| name.strip_prefix("refs/heads/").map(ToOwned::to_owned));
        let head =
            self.ask_whether(self.call(path, ["rev-parse", "--quiet", "--verify", "HEAD"]))?;
        if let Some(head) = &head
            && self.commit_of(path, head)?.is_none()
        {
            return Err(WorkspaceError::NeedsOperator(format!(
                "{path}: the commit {head} it stands on cannot be read"
            )));
        }
        Ok(Facts {
            gitdir,
            common,
            format: format.to_owned(),
            branch,
            head,
        })
    }

    /// All that would be lost with the checkout at `path`. An error says why it cannot be told, or
    /// what cannot be saved.
    pub(super) fn survey(&self, path: &Utf8Path) -> Result<Survey, String> {
        let text = |e: GitError| e.to_string();
        let facts = self.facts(path).map_err(|e| e.to_string())?;
        let path = self
            .world
            .disk
            .canonicalize(path)
            .map_err(|e| format!("{path}: {e}"))?;
        let status = self.status(&path).map_err(text)?;
        let staged = self.staged(&path)?;
        let dying = [path.as_path(), facts.gitdir.as_path()];
        let dies = dies_with(&facts, &dying);
        self.check_worktrees(&path, dies, &dying)?;
        self.check_nested(&path, &status, &staged, &dying, 0)?;
        let mut others = self.states(&path, &facts).map_err(text)?;
        let (commits, boundary) = self.unpushed(&path, &facts, dies, &others)?;
        if dies {
            let lfs = self.world.disk.list(&facts.common.join("lfs/objects"));
            if !commits.is_empty() && lfs.is_ok_and(|names| !names.is_empty()) {
                return Err(format!(
                    "{path} has unpushed commits and Git LFS objects, which a bundle does not hold: push them first"
                ));
            }
            let refs = self.local_refs(&path, &facts, &commits).map_err(text)?;
            others.extend(refs);
        }
        Ok(Survey {
            facts,
            status,
            staged,
            commits,
            boundary,
            others,
        })
    }

    /// Commits that only an unfinished merge, rebase or the like holds.
    fn states(&self, path: &Utf8Path, facts: &Facts) -> Result<BTreeMap<String, String>, GitError> {
        let mut found = BTreeMap::new();
        for (file, name) in STATE_FILES {
            let Ok(bytes) = self.world.disk.read(&facts.gitdir.join(file), 64 << 10) else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes);
            let hex = |id: &&str| {
                matches!(id.len(), 40 | 64) && id.bytes().all(|b| b.is_ascii_hexdigit())
            };
            for (n, id) in text.split_whitespace().filter(hex).enumerate() {
                if self.commit_of(path, id)?.is_some() {
                    let numbered = if n == 0 {
                        name.to_owned()
                    } else {
                        format!("{name}-{}", n + 1)
                    };
                    found.insert(numbered, id.to_owned());
                }
            }
        }
        Ok(found)
    }

    /// Commits that are on no remote, newest first, and the commits on a remote that they build on.
    /// `dies`: the repository goes too, so all of its refs count, not only what is checked out.
    fn unpushed(
        &self,
        path: &Utf8Path,
        facts: &Facts,
        dies: bool,
        states: &BTreeMap<String, String>,
    ) -> Result<(Vec<String>, Vec<String>), String> {
        let stashes = if dies {
            self.stashes(path)?
        } else {
            Vec::new()
        };
        let mut args = vec!["rev-list", "--boundary"];
        args.extend(facts.head.iter().map(String::as_str));
        args.extend(states.values().map(String::as_str));
        args.extend(stashes.iter().map(String::as_str));
        if dies {
            args.extend([
                "--exclude=refs/remotes/*",
                "--exclude=refs/the-loop/*",
                "--all",
            ]);
        }
        if args.len() == 2 {
            return Ok((Vec::new(), Vec::new()));
        }
        args.extend(["--not", "--remotes", "--glob=refs/the-loop/pull/*"]);
        let said = self
            .ask_text(self.slow_call(path, args))
            .map_err(|e| e.to_string())?;
        let (boundary, commits): (Vec<&str>, Vec<&str>) =
            said.lines().partition(|line| line.starts_with('-'));
        let owned = |list: Vec<&str>| {
            list.into_iter()
                .map(|id| id.trim_start_matches('-').to_owned())
                .collect()
        };
        Ok((owned(commits), owned(boundary)))
    }

    /// Every stash, newest first.
    fn stashes(&self, path: &Utf8Path) -> Result<Vec<String>, String> {
        let args = ["rev-parse", "--quiet", "--verify", "refs/stash"];
        let text = |e: GitError| e.to_string();
        if self
            .ask_whether(self.call(path, args))
            .map_err(text)?
            .is_none()
        {
            return Ok(Vec::new());
        }
        let args = ["log", "--walk-reflogs", "--format=%H", "refs/stash", "--"];
        let said = self.ask_text(self.call(path, args)).map_err(text)?;
        Ok(said.lines().map(ToOwned::to_owned).collect())
    }

    /// Refs of a repository that goes with its checkout, as far as they hold unpushed commits.
    fn local_refs(
        &self,
        path: &Utf8Path,
        facts: &Facts,
        commits: &[String],
    ) -> Result<BTreeMap<String, String>, GitError> {
        let unpushed: HashSet<&str> = commits.iter().map(String::as_str).collect();
        let mut found = BTreeMap::new();
        let args = [
            "for-each-ref",
            "--format=%(objectname) %(*objectname) %(refname)",
        ];
        for line in self.ask_text(self.call(path, args))?.lines() {
            let mut words = line.splitn(3, ' ');
            let (Some(object), Some(peeled), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let current = facts.branch.as_deref() == name.strip_prefix("refs/heads/");
            let foreign = name.starts_with("refs/remotes/") || name.starts_with("refs/the-loop/");
            let holds = unpushed.contains(object) || unpushed.contains(peeled);
            if holds && !current && !foreign {
                let name = name.strip_prefix("refs/").unwrap_or(name);
                found.insert(name.to_owned(), object.to_owned());
            }
        }
        let older = self.stashes(path).unwrap_or_default();
        for (n, id) in older.into_iter().enumerate().skip(1) {
            found.insert(format!("stash-{n}"), id);
        }
        Ok(found)
    }

    /// Worktrees that were made from or inside this checkout: one elsewhere would lose its repository,
    /// one inside goes with it and must have nothing to lose.
    fn check_worktrees(
        &self,
        path: &Utf8Path,
        dies: bool,
        dying: &[&Utf8Path],
    ) -> Result<(), String> {
        for entry in self.worktrees(path).map_err(|e| e.to_string())? {
            let there = self.world.disk.meta(&entry.path).is_ok_and(|m| m.is_some());
            if entry.path == path || !there {
                continue;
            }
            if entry.path.starts_with(path) {
                self.check_inner(&entry.path, dying, 0)?;
            } else if dies {
                return Err(format!(
                    "{} is a worktree of {path} and would lose its repository: remove it first",
                    entry.path
                ));
            }
        }
        Ok(())
    }

    /// Repositories inside a checkout, submodules or not, are not saved with it, so they must have
    /// nothing to lose.
    fn check_nested(
        &self,
        path: &Utf8Path,
        status: &Status,
        staged: &[Staged],
        dying: &[&Utf8Path],
        depth: usize,
    ) -> Result<(), String> {
        let submodules = staged.iter().filter(|s| s.mode == "160000");
        let inner: HashSet<&[u8]> = submodules
            .map(|s| s.path.as_slice())
            .chain(status.nested.iter().map(Vec::as_slice))
            .collect();
        for name in inner {
            let Ok(name) = std::str::from_utf8(name) else {
                return Err(format!("{path} has a repository whose name is not UTF-8"));
            };
            let inside = path.join(name.trim_end_matches('/'));
            let there = self.world.disk.meta(&inside.join(".git"));
            if there.map_err(|e| format!("{inside}: {e}"))?.is_some() {
                self.check_inner(&inside, dying, depth)?;
            }
        }
        Ok(())
    }

    fn check_inner(
        &self,
        path: &Utf8Path,
        dying: &[&Utf8Path],
        depth: usize,
    ) -> Result<(), String> {
        if depth >= NESTING_MAX {
            return Err(format!("{path}: repositories are nested too deeply"));
        }
        let text = |e: GitError| e.to_string();
        let facts = self.facts(path).map_err(|e| e.to_string())?;
        let status = self.status(path).map_err(text)?;
        let staged = self.staged(path)?;
        let states = self.states(path, &facts).map_err(text)?;
        let dies = dies_with(&facts, dying);
        // A branch of a repository that stays keeps its commits.
        let kept = !dies && facts.branch.is_some() && states.is_empty();
        let commits = if kept {
            0
        } else {
            self.unpushed(path, &facts, dies, &states)?.0.len()
        };
        let files = status.changed + status.untracked;
        if commits > 0 || files > 0 {
            return Err(format!(
                "{path} is a repository of its own with work on no remote ({files} changed files, {commits} commits): push or remove it first"
            ));
        }
        self.check_nested(path, &status, &staged, dying, depth + 1)
    }
}

/// Does a repository go with the directories that are to be removed?
fn dies_with(facts: &Facts, dying: &[&Utf8Path]) -> bool {
    dying.iter().any(|dir| facts.common.starts_with(dir))
}
