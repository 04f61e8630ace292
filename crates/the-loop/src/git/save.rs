//! Saving what a checkout holds into a bundle (DI-48, ST-62).
//!
//! Nothing in the checkout or its repository is touched: what is staged and what lies in the files is
//! written, through an index of our own, into an object store of our own. That store and the refs of
//! the bundle live in a scratch directory that goes when the bundle is made.

use std::collections::{BTreeMap, HashSet};

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::Slug;
use the_loop_core::workspace::{SavedWhy, strip_userinfo};

use super::Checkout;
use super::bundle::{parse_heads, quoted};
use super::call::{Git, GitError};
use super::status::Hidden;
use super::survey::{Facts, Survey};
use crate::process::Call;
use crate::store::saved::{Saved, SavedFiles, SavedManifest, SavedRefs, SavedStore};

/// The scratch directory, in the checkout's own git directory so that it goes with it at the latest.
const SCRATCH: &str = "the-loop-save";
/// How often a checkout is saved that changes meanwhile.
const ATTEMPTS_MAX: usize = 3;
/// Where the refs of a bundle are.
const REFS: &str = "refs/the-loop/saved";

/// One checkout while it is being saved.
pub(super) struct Saving<'a> {
    pub git: &'a Git,
    path: &'a Utf8Path,
    slug: &'a Slug,
    pub scratch: Utf8PathBuf,
    /// The objects of the checkout's repository.
    pub objects: Utf8PathBuf,
}

/// What a checkout holds at one instant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Every ref of the bundle, by full name.
    pub refs: BTreeMap<String, String>,
    files: SavedFiles,
    /// Is anything in it that would be lost?
    worth_saving: bool,
}

impl Git {
    /// Saves what would be lost with a checkout; `None` when that is nothing. The bundle is verified
    /// and on disk, then the manifest, before this returns. An error says why not; the checkout is as
    /// it was.
    pub(super) fn save(
        &self,
        store: &SavedStore,
        checkout: &Checkout,
        why: SavedWhy,
    ) -> Result<Option<SavedManifest>, String> {
        let path = &checkout.path;
        let survey = self.survey(path)?;
        if survey.unsaved().is_empty() && !survey.has_hidden() {
            return Ok(None);
        }
        let saving = Saving {
            git: self,
            path,
            slug: &checkout.slug,
            scratch: survey.facts.gitdir.join(SCRATCH),
            objects: survey.facts.common.join("objects"),
        };
        let saved = saving.run(store, checkout, why, survey);
        let cleared = self.delete(&saving.scratch).map_err(|e| e.to_string());
        let saved = saved?;
        cleared?;
        Ok(saved)
    }
}

impl Saving<'_> {
    fn run(
        &self,
        store: &SavedStore,
        checkout: &Checkout,
        why: SavedWhy,
        mut survey: Survey,
    ) -> Result<Option<SavedManifest>, String> {
        for _ in 0..ATTEMPTS_MAX {
            self.git.delete(&self.scratch).map_err(|e| e.to_string())?;
            self.make_dir(&self.scratch.join("objects"))?;
            let snapshot = self.snapshot(&survey)?;
            if !snapshot.worth_saving {
                return Ok(None);
            }
            if let Some(same) = self.saved_before(store, &survey.facts, &snapshot)? {
                return Ok(Some(same));
            }
            let mut manifest = self.bundle(store, checkout, why, &survey, &snapshot)?;
            let file = store.bundle_path(manifest.name());
            match self.finish(store, &mut manifest, &snapshot) {
                Ok(None) => return Ok(Some(manifest)),
                Ok(Some(again)) => {
                    self.drop_bundle(&file);
                    survey = again;
                }
                Err(why) => {
                    self.drop_bundle(&file);
                    return Err(why);
                }
            }
        }
        Err(format!(
            "{} keeps changing while it is saved: something still works there",
            self.path
        ))
    }

    /// Makes a bundle durable and, when the checkout is still as it was, writes the manifest; else
    /// answers with how it is now.
    fn finish(
        &self,
        store: &SavedStore,
        manifest: &mut SavedManifest,
        snapshot: &Snapshot,
    ) -> Result<Option<Survey>, String> {
        let file = store.bundle_path(manifest.name());
        let sealed = store.seal(manifest.name());
        (manifest.bytes, manifest.sha256) = sealed.map_err(|e| format!("{file}: {e}"))?;
        let again = self.git.survey(self.path)?;
        if self.snapshot(&again)? != *snapshot {
            return Ok(Some(again));
        }
        let written = store.write(manifest);
        written.map_err(|e| format!("{file}: its manifest: {e}"))?;
        Ok(None)
    }

    /// Removes a bundle that never got its manifest.
    fn drop_bundle(&self, file: &Utf8Path) {
        let _ = self.git.world.disk.remove(file);
        let _ = self
            .git
            .world
            .disk
            .remove(&Utf8PathBuf::from(format!("{file}.lock")));
    }

    fn make_dir(&self, dir: &Utf8Path) -> Result<(), String> {
        let made = self.git.world.disk.create_dir_all(dir);
        made.map_err(|e| format!("{dir}: {e}"))
    }

    /// A call in the checkout that reads its objects, writes into our store and uses our index.
    pub(super) fn call<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Call {
        let settings = [
            "-c",
            "core.splitIndex=false",
            "-c",
            "core.sparseCheckout=false",
            "-c",
            "core.untrackedCache=false",
        ];
        self.git
            .slow_call(self.path, settings.into_iter().chain(args))
            .env("GIT_INDEX_FILE", self.scratch.join("index"))
            .env("GIT_OBJECT_DIRECTORY", self.scratch.join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&self.objects))
    }

    pub(super) fn text(&self, call: Call) -> Result<String, String> {
        self.git.ask_text(call).map_err(|e: GitError| e.to_string())
    }

    /// Writes what is staged and what is in the files as two commits into our store.
    fn snapshot(&self, survey: &Survey) -> Result<Snapshot, String> {
        let facts = &survey.facts;
        let index = self.scratch.join("index");
        let removed = self.git.world.disk.remove(&index);
        removed.map_err(|e| format!("{index}: {e}"))?;
        let staged = self.call(["update-index", "-z", "--index-info"]);
        self.text(staged.stdin(index_info(survey)))?;
        let index_tree = self.text(self.call(["write-tree"]))?;
        self.take_files(survey)?;
        let worktree_tree = self.text(self.call(["write-tree"]))?;

        let (head_tree, date) = match &facts.head {
            Some(head) => {
                let args = ["show", "--no-patch", "--format=%T %ct", head];
                let said = self.text(self.call(args))?;
                let (tree, date) = said.split_once(' ').unwrap_or((&said, "0"));
                (Some(tree.to_owned()), date.to_owned())
            }
            None => (None, "0".to_owned()),
        };
        let mut files = SavedFiles {
            changed: survey.status.changed,
            untracked: survey.status.untracked,
        };
        if let (true, Some(head_tree)) = (survey.has_hidden(), &head_tree) {
            // What git does not look at is in no count of its own.
            let args = ["diff-tree", "-r", "--name-only", "--no-renames", head_tree];
            let said = self.text(self.call(args.into_iter().chain([worktree_tree.as_str()])))?;
            let changed = (said.lines().count() as u64).saturating_sub(files.untracked);
            files.changed = files.changed.max(changed);
        }
        let same = head_tree
            .as_ref()
            .is_some_and(|t| *t == index_tree && *t == worktree_tree);
        let worth_saving = !same || !survey.commits.is_empty() || files != SavedFiles::default();

        let head: Vec<&str> = facts.head.as_deref().into_iter().collect();
        let index = self.commit(&index_tree, &head, &date, "what was staged")?;
        let parents: Vec<&str> = head.iter().copied().chain([index.as_str()]).collect();
        let worktree = self.commit(&worktree_tree, &parents, &date, "the files as they were")?;
        let mut refs = BTreeMap::from([
            (format!("{REFS}/index"), index),
            (format!("{REFS}/worktree"), worktree),
        ]);
        if let Some(head) = &facts.head {
            refs.insert(format!("{REFS}/head"), head.clone());
        }
        for (name, commit) in &survey.others {
            refs.insert(format!("{REFS}/{name}"), commit.clone());
        }
        Ok(Snapshot {
            refs,
            files,
            worth_saving,
        })
    }

    /// Brings our index from what is staged to what is in the files.
    fn take_files(&self, survey: &Survey) -> Result<(), String> {
        let status = &survey.status;
        if !status.gone.is_empty() {
            let gone = self.call(["update-index", "--force-remove", "-z", "--stdin"]);
            self.text(gone.stdin(joined(&status.gone)))?;
        }
        let mut present = status.present.clone();
        for hidden in survey.staged.iter().filter(|s| s.hidden != Hidden::No) {
            let found = std::str::from_utf8(&hidden.path)
                .ok()
                .map(|name| self.git.world.disk.meta(&self.path.join(name)));
            let there = matches!(found, Some(Ok(Some(_))));
            // A skipped file that is not there is not deleted, only not checked out.
            if there || hidden.hidden == Hidden::AssumedUnchanged {
                present.push(hidden.path.clone());
            }
        }
        if present.is_empty() {
            return Ok(());
        }
        // As they are: a filter would put a pointer to somewhere else (LFS) in a file's place.
        let settings = self.no_filters()?;
        let args = settings
            .iter()
            .flat_map(|setting| ["-c", setting.as_str()])
            .chain([
                "update-index",
                "--add",
                "--remove",
                "--replace",
                "-z",
                "--stdin",
            ]);
        self.text(self.call(args).stdin(joined(&present)))?;
        Ok(())
    }

    fn no_filters(&self) -> Result<Vec<String>, String> {
        let args = ["config", "--name-only", "--get-regexp", "^filter\\."];
        let said = self
            .git
            .ask_whether(self.call(args))
            .map_err(|e| e.to_string())?;
        let said = said.unwrap_or_default();
        let drivers: HashSet<&str> = said
            .lines()
            .filter_map(|key| Some(key.strip_prefix("filter.")?.rsplit_once('.')?.0))
            .filter(|driver| !driver.contains('='))
            .collect();
        Ok(drivers
            .into_iter()
            .flat_map(|driver| {
                ["clean=", "process=", "required=false"].map(|s| format!("filter.{driver}.{s}"))
            })
            .collect())
    }

    /// The date is that of the commit below, so that the same work has the same name each time.
    fn commit(
        &self,
        tree: &str,
        parents: &[&str],
        date: &str,
        what: &str,
    ) -> Result<String, String> {
        let message = format!("{}: {what}", self.slug);
        let mut args = vec!["commit-tree", tree, "-m", &message];
        args.extend(parents.iter().flat_map(|parent| ["-p", parent]));
        let mut call = self.call(args);
        for role in ["AUTHOR", "COMMITTER"] {
            call = call
                .env(format!("GIT_{role}_NAME"), "the-loop")
                .env(format!("GIT_{role}_EMAIL"), "the-loop@localhost")
                .env(format!("GIT_{role}_DATE"), format!("@{date} +0000"));
        }
        self.text(call)
    }

    /// A bundle of this very work that an interrupted removal left, whole and with its manifest.
    fn saved_before(
        &self,
        store: &SavedStore,
        facts: &Facts,
        snapshot: &Snapshot,
    ) -> Result<Option<SavedManifest>, String> {
        let listed = store.list().map_err(|e| format!("saved work: {e}"))?;
        for saved in listed.into_iter().rev() {
            let Saved::Complete(manifest) = saved else {
                continue;
            };
            let candidate = manifest.slug == self.slug.as_str()
                && manifest.checkout == self.path.as_str()
                && manifest.head == facts.head;
            if !candidate {
                continue;
            }
            let file = store.bundle_path(manifest.name());
            let heads = self.text(self.call(["bundle", "list-heads", file.as_str()]));
            if heads.is_ok_and(|heads| parse_heads(&heads) == snapshot.refs)
                && store.is_intact(&manifest).unwrap_or(false)
            {
                return Ok(Some(*manifest));
            }
        }
        Ok(None)
    }

    /// Makes and verifies a bundle; its length and digest are still missing in the manifest.
    fn bundle(
        &self,
        store: &SavedStore,
        checkout: &Checkout,
        why: SavedWhy,
        survey: &Survey,
        snapshot: &Snapshot,
    ) -> Result<SavedManifest, String> {
        let facts = &survey.facts;
        let (name, at) = store
            .free_name(self.slug, self.git.world.clock.now())
            .map_err(|e| format!("saved work: {e}"))?;
        let file = store.bundle_path(&name);
        let written = self
            .write_bundle(&file, survey, snapshot)
            .and_then(|()| self.verify(&file, facts, snapshot));
        let requires = written.inspect_err(|_| self.drop_bundle(&file))?;
        let origin = self.call(["config", "--get", "remote.origin.url"]);
        let repository = self.git.ask_whether(origin).map_err(|e| e.to_string())?;
        let full = |name: &str| format!("{REFS}/{name}");
        Ok(SavedManifest {
            item: checkout.item.clone(),
            slug: self.slug.to_string(),
            saved_at: at,
            why,
            repository: repository.map(|url| strip_userinfo(&url)),
            checkout: self.path.to_string(),
            branch: facts.branch.clone(),
            head: facts.head.clone(),
            bundle: format!("{name}.bundle"),
            bytes: 0,
            sha256: String::new(),
            refs: SavedRefs {
                head: facts.head.as_ref().map(|_| full("head")),
                index: full("index"),
                worktree: full("worktree"),
                others: survey.others.keys().map(|name| full(name)).collect(),
            },
            requires,
            commits: survey.commits.len() as u64,
            files: snapshot.files,
        })
    }
}

/// What is staged, as `git update-index --index-info` reads it. Of a file in conflict it is our side;
/// the file itself, with the marks in it, is taken with the other files.
fn index_info(survey: &Survey) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in &survey.staged {
        let counts = matches!(entry.stage, 0 | 2) && !survey.status.intended.contains(&entry.path);
        if counts {
            out.extend_from_slice(format!("{} {} 0\t", entry.mode, entry.object).as_bytes());
            out.extend_from_slice(&entry.path);
            out.push(0);
        }
    }
    out
}

fn joined(paths: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for path in paths {
        out.extend_from_slice(path);
        out.push(0);
    }
    out
}
