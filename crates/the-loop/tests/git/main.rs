//! Tests with real git in temporary directories; the operator's configuration and HOME are not seen.
#![allow(
    clippy::disallowed_methods,
    reason = "tests make files and run git beside the code under test"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod crash;
mod prepare;
mod pull;
mod remove;
mod reuse;
mod save;
mod save_odd;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::workspace::{CloneSource, SavedWhy, StartFrom, Strategy};

use the_loop::clock::Clock;
use the_loop::disk::OsDisk;
use the_loop::git::{
    Checkout, Git, Prepared, RemoveError, Removed, WorkspaceError, WorkspaceRequest,
};
use the_loop::ids::Ids;
use the_loop::process::{Call, OsProcesses, Processes};
use the_loop::store::saved::{Saved, SavedManifest, SavedStore};
use the_loop::world::World;

const SLOW: Duration = Duration::from_mins(1);

/// A remote repository `octo/repo`, a workspace, and nothing else.
struct Sandbox {
    _temp: tempfile::TempDir,
    /// Where everything is.
    base: Utf8PathBuf,
    /// `routing.workspace.root`.
    root: Utf8PathBuf,
    /// The remote, bare.
    origin: Utf8PathBuf,
    world: World,
}

impl Sandbox {
    /// With one commit on `main`.
    fn new() -> Self {
        let sandbox = Self::empty();
        let seed = sandbox.base.join("seed");
        sandbox.git(
            &sandbox.base,
            &["clone", "-q", sandbox.origin.as_str(), "seed"],
        );
        sandbox.git(&seed, &["switch", "-q", "-c", "main"]);
        sandbox.write(&seed, "README.md", "hello\n");
        sandbox.write(&seed, "src/lib.rs", "fn one() {}\n");
        sandbox.write(&seed, "old.txt", "old\n");
        sandbox.write(&seed, ".gitignore", "/target\n*.log\n");
        sandbox.commit(&seed, "first");
        sandbox.git(&seed, &["push", "-q", "origin", "main"]);
        sandbox
    }

    /// With a remote that has no commit.
    fn empty() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::try_from(temp.path().canonicalize().unwrap()).unwrap();
        let config = base.join("gitconfig");
        std::fs::write(
            &config,
            "[user]\nname=Ada\nemail=ada@example.com\n[init]\ndefaultBranch=main\n[protocol \"file\"]\nallow=always\n[advice]\ndefaultBranchName=false\n",
        )
        .unwrap();
        std::fs::create_dir(base.join("home")).unwrap();
        let env = BTreeMap::from([
            ("HOME".to_owned(), base.join("home").to_string()),
            ("XDG_CONFIG_HOME".to_owned(), base.join("home").to_string()),
            ("GIT_CONFIG_GLOBAL".to_owned(), config.to_string()),
            ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
        ]);
        let world = World {
            disk: Arc::new(OsDisk),
            processes: Arc::new(OsProcesses),
            clock: Clock::manual("2026-03-01T09:12:44Z".parse().unwrap()),
            ids: Ids::Random,
            env: Arc::new(env),
            cwd: base.clone(),
            home: Some(base.join("home")),
            user: "ada".to_owned(),
            program: "/usr/bin/the-loop".into(),
            pid: std::process::id(),
        };
        let sandbox = Self {
            root: base.join("w"),
            origin: base.join("remotes/octo/repo.git"),
            base,
            world,
            _temp: temp,
        };
        let origin = sandbox.origin.to_string();
        sandbox.git(&sandbox.base, &["init", "-q", "--bare", &origin]);
        sandbox
    }

    fn call(&self, dir: &Utf8Path, args: &[&str]) -> Call {
        let mut call = Call::new("git", args.iter().copied()).cwd(dir);
        for (name, value) in self.world.env.iter() {
            call = call.env(name, value);
        }
        call
    }

    /// Runs git as a person would; it must succeed.
    fn git(&self, dir: &Utf8Path, args: &[&str]) -> String {
        let answer = OsProcesses.run(&self.call(dir, args));
        assert!(answer.ok(), "git {args:?} in {dir}: {}", answer.describe());
        answer.out().trim_end().to_owned()
    }

    fn git_fails(&self, dir: &Utf8Path, args: &[&str]) {
        assert!(!OsProcesses.run(&self.call(dir, args)).ok(), "{args:?}");
    }

    #[allow(clippy::unused_self, reason = "it reads as the other steps do")]
    fn write(&self, dir: &Utf8Path, name: &str, text: &str) {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn commit(&self, dir: &Utf8Path, message: &str) -> String {
        self.git(dir, &["add", "-A"]);
        self.git(dir, &["commit", "-q", "--allow-empty", "-m", message]);
        self.git(dir, &["rev-parse", "HEAD"])
    }

    /// A commit on a branch of the remote.
    fn push(&self, branch: &str, file: &str, text: &str) -> String {
        let seed = self.base.join("seed");
        self.git(&seed, &["fetch", "-q"]);
        let remote = format!("origin/{branch}");
        let known = OsProcesses.run(&self.call(&seed, &["rev-parse", "-q", "--verify", &remote]));
        let from = if known.ok() { &remote } else { "origin/main" };
        self.git(&seed, &["switch", "-q", "-C", branch, "--no-track", from]);
        self.write(&seed, file, text);
        let commit = self.commit(&seed, &format!("{file} on {branch}"));
        self.git(&seed, &["push", "-q", "origin", branch]);
        commit
    }

    fn adapter(&self) -> Git {
        Git::new(&self.world, "git", SLOW)
    }

    fn store(&self) -> SavedStore {
        SavedStore::new(&self.world, self.base.join("saved"))
    }

    fn request(&self, number: u64, strategy: Strategy) -> WorkspaceRequest {
        let item: WorkItemRef = format!("github:octo/repo#{number}").parse().unwrap();
        WorkspaceRequest {
            slug: item.slug(),
            item,
            strategy,
            root: Some(self.root.clone()),
            source: Some(CloneSource::parse(&format!("file://{}", self.origin)).unwrap()),
            spawn_workdir: self.base.clone(),
            start: StartFrom::DefaultBranch,
        }
    }

    fn try_prepare(&self, request: &WorkspaceRequest) -> Result<Prepared, WorkspaceError> {
        self.adapter().prepare(request, &no_lock, &never)
    }

    fn prepare(&self, request: &WorkspaceRequest) -> Prepared {
        self.try_prepare(request).unwrap()
    }

    /// A checkout of item 15.
    fn checkout(&self, strategy: Strategy) -> Checkout {
        let request = self.request(15, strategy);
        let path = self.prepare(&request).path.unwrap();
        Checkout {
            item: request.item,
            slug: request.slug,
            strategy,
            path,
        }
    }

    fn try_remove(&self, checkout: &Checkout) -> Result<Removed, RemoveError> {
        self.adapter()
            .remove(&self.store(), &no_lock, checkout, SavedWhy::Reset, false)
    }

    /// Removes a checkout that has something to save.
    fn remove(&self, checkout: &Checkout) -> SavedManifest {
        let removed = self.try_remove(checkout).unwrap();
        assert!(removed.removed && !checkout.path.exists());
        removed.saved.expect("something was saved")
    }

    /// It must be refused, with these words, and everything must be as before.
    fn must_stay(&self, checkout: &Checkout, words: &str) {
        let before = self.portrait(&checkout.path);
        match self.try_remove(checkout) {
            Err(RemoveError::SaveFailed(why)) => assert!(why.contains(words), "{why}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(self.portrait(&checkout.path), before);
        assert_eq!(self.saved(), []);
    }

    fn saved(&self) -> Vec<Saved> {
        self.store().list().unwrap()
    }

    fn manifests(&self) -> Vec<SavedManifest> {
        let complete = |saved| match saved {
            Saved::Complete(manifest) => Some(*manifest),
            Saved::Incomplete { .. } | Saved::Unreadable { .. } => None,
        };
        self.saved().into_iter().filter_map(complete).collect()
    }

    /// Everything that matters of a checkout: commit, what is staged, every file that is not ignored.
    fn portrait(&self, path: &Utf8Path) -> Portrait {
        let head = OsProcesses.run(&self.call(path, &["rev-parse", "-q", "--verify", "HEAD"]));
        let list = [
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ];
        let mut files = BTreeMap::new();
        let out = OsProcesses.run(&self.call(path, &list)).stdout;
        for name in out.split(|b| *b == 0).filter(|n| !n.is_empty()) {
            files.insert(name.to_vec(), look(path, name));
        }
        Portrait {
            head: head.out(),
            index: self.git(path, &["ls-files", "--stage"]),
            status: self.git(path, &["status", "--porcelain", "-uall"]),
            files,
        }
    }

    /// Restores a bundle with plain git into a new clone of the remote, as `docs/saved-work.md` says.
    fn restore(&self, manifest: &SavedManifest) -> Utf8PathBuf {
        let dir = self
            .base
            .join(format!("restored-{}", self.world.ids.hex::<4>()));
        let bundle = self.store().bundle_path(manifest.name());
        self.git(
            &self.base,
            &["clone", "-q", "-n", self.origin.as_str(), dir.as_str()],
        );
        self.git(&dir, &["bundle", "verify", "-q", bundle.as_str()]);
        let spec = "refs/the-loop/saved/*:refs/the-loop/saved/*";
        self.git(&dir, &["fetch", "-q", bundle.as_str(), spec]);
        if let Some(head) = &manifest.head {
            self.git(
                &dir,
                &[
                    "checkout",
                    "-q",
                    "-B",
                    "restored",
                    "refs/the-loop/saved/head",
                ],
            );
            assert_eq!(self.git(&dir, &["rev-parse", "HEAD"]), *head);
        }
        let worktree = "refs/the-loop/saved/worktree";
        self.git(
            &dir,
            &["read-tree", "-m", "-u", "HEAD", worktree].map(|a| {
                if a == "HEAD" && manifest.head.is_none() {
                    EMPTY_TREE
                } else {
                    a
                }
            }),
        );
        self.git(&dir, &["read-tree", "refs/the-loop/saved/index"]);
        dir
    }

    /// Restores and compares with how it was.
    fn restores_to(&self, manifest: &SavedManifest, before: &Portrait) {
        let dir = self.restore(manifest);
        assert_eq!(&self.portrait(&dir), before);
    }

    /// Names under which something is or was being made.
    fn leftovers(&self) -> Vec<String> {
        let out = OsProcesses.run(&Call::new("find", [self.root.as_str(), "-name", "*~*"]));
        out.out().lines().map(ToOwned::to_owned).collect()
    }

    fn shared(&self) -> Utf8PathBuf {
        self.root.join("github.com/octo/repo")
    }
}

const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

#[derive(Debug, PartialEq, Eq)]
struct Portrait {
    head: String,
    index: String,
    status: String,
    files: BTreeMap<Vec<u8>, String>,
}

/// Kind, mode and content of a file whose name need not be UTF-8.
fn look(dir: &Utf8Path, name: &[u8]) -> String {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    let path = dir.as_std_path().join(std::ffi::OsStr::from_bytes(name));
    match std::fs::symlink_metadata(&path) {
        Err(_) => "gone".to_owned(),
        Ok(meta) if meta.is_symlink() => {
            format!("link {}", std::fs::read_link(&path).unwrap().display())
        }
        Ok(meta) if meta.is_dir() => "directory".to_owned(),
        Ok(meta) => format!(
            "{} {:?}",
            meta.permissions().mode() & 0o100,
            String::from_utf8_lossy(&std::fs::read(&path).unwrap())
        ),
    }
}

#[allow(clippy::unnecessary_wraps, reason = "it stands for a lock")]
fn no_lock() -> Result<Box<dyn Send>, String> {
    Ok(Box::new(()))
}

fn never() -> bool {
    false
}
