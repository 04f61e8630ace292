//! What a bundle holds, and that plain git brings it back.

use crate::*;

const BOTH: [Strategy; 2] = [Strategy::Worktree, Strategy::Clone];

/// Two commits, a staged change, an unstaged one, a deletion, an untracked and an ignored file.
fn work_in(sandbox: &Sandbox, path: &Utf8Path) {
    sandbox.write(path, "src/two.rs", "fn two() {}\n");
    sandbox.commit(path, "two");
    sandbox.write(path, "src/three.rs", "fn three() {}\n");
    sandbox.commit(path, "three");
    sandbox.write(path, "README.md", "staged\n");
    sandbox.git(path, &["add", "README.md"]);
    sandbox.write(path, "README.md", "staged, then changed\n");
    sandbox.write(path, "src/lib.rs", "changed only\n");
    std::fs::remove_file(path.join("old.txt")).unwrap();
    sandbox.write(path, "notes/new.txt", "untracked\n");
    sandbox.write(path, "target/x", "ignored\n");
}

#[test]
fn di48_commits_staged_changed_deleted_and_untracked_come_back() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        let checkout = sandbox.checkout(strategy);
        let base = sandbox.git(&checkout.path, &["rev-parse", "HEAD"]);
        work_in(&sandbox, &checkout.path);
        let before = sandbox.portrait(&checkout.path);
        let unsaved = sandbox.adapter().unsaved(&checkout).unwrap();
        assert_eq!(
            (unsaved.commits, unsaved.changed, unsaved.untracked),
            (2, 3, 1)
        );
        assert_eq!(unsaved.files(), 4);
        assert_eq!(sandbox.portrait(&checkout.path), before);

        let manifest = sandbox.remove(&checkout);
        assert_eq!(manifest.name(), "github-octo-repo-15-20260301T091244Z");
        assert_eq!(manifest.commits, 2);
        assert_eq!((manifest.files.changed, manifest.files.untracked), (3, 1));
        assert_eq!(manifest.requires, [base]);
        assert_eq!(manifest.branch.as_deref(), Some("loop/github-octo-repo-15"));
        assert_eq!(
            manifest.repository,
            Some(format!("file://{}", sandbox.origin))
        );
        assert_eq!(manifest.checkout, checkout.path);
        sandbox.restores_to(&manifest, &before);
        assert_eq!(sandbox.manifests(), [manifest]);
    }
}

#[test]
fn st64_the_documented_commands_restore_on_another_machine() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/saved-work.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut blocks = page.split("```sh\n").skip(1);
    let mut block = || blocks.next().unwrap().split("```").next().unwrap();
    let (restore, look_at) = (block(), block().replace("path/to/file", "notes/new.txt"));
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    work_in(&sandbox, &checkout.path);
    let before = sandbox.portrait(&checkout.path);
    let manifest = sandbox.remove(&checkout);
    let there = sandbox.base.join("other machine");
    std::fs::create_dir(&there).unwrap();
    let name = format!("{}.bundle", manifest.name());
    std::fs::rename(sandbox.base.join("saved").join(&name), there.join(&name)).unwrap();
    std::fs::remove_dir_all(&sandbox.root).unwrap();
    sandbox.git(&there, &["clone", "-q", sandbox.origin.as_str(), "repo"]);
    for commands in [restore, &look_at] {
        let bundle = format!("'{}'", there.join(&name));
        let script = commands.replace("~/saved/NAME.bundle", &bundle);
        let mut call = sandbox.call(&there.join("repo"), &["-e", "-c", &script]);
        call.program = "sh".to_owned();
        let answer = OsProcesses.run(&call);
        assert!(answer.ok(), "{}", answer.describe());
    }
    assert_eq!(sandbox.portrait(&there.join("restored")), before);
}

#[test]
fn st62_bundle_and_manifest_are_private_and_match() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    work_in(&sandbox, &checkout.path);
    let manifest = sandbox.remove(&checkout);
    let bundle = sandbox.store().bundle_path(manifest.name());
    for path in [&bundle, &bundle.with_extension("json")] {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
    assert_eq!(std::fs::metadata(&bundle).unwrap().len(), manifest.bytes);
    assert!(sandbox.store().is_intact(&manifest).unwrap());
    let heads = sandbox.git(
        &sandbox.shared(),
        &["bundle", "list-heads", bundle.as_str()],
    );
    for name in ["head", "index", "worktree"] {
        assert!(
            heads.contains(&format!(" refs/the-loop/saved/{name}")),
            "{heads}"
        );
    }
    // Nothing of ours stays in the shared clone.
    let refs = sandbox.git(&sandbox.shared(), &["for-each-ref", "refs/the-loop"]);
    assert_eq!(refs, "");
    assert_eq!(
        std::fs::read_dir(sandbox.base.join("saved"))
            .unwrap()
            .count(),
        2
    );
}

#[test]
fn di48_each_kind_alone_is_saved() {
    type Work = fn(&Sandbox, &Utf8Path);
    let cases: [(&str, Work); 7] = [
        ("a commit", |s, p| drop(s.commit(p, "empty"))),
        ("a change", |s, p| s.write(p, "README.md", "x")),
        ("an untracked file", |s, p| s.write(p, "new", "x")),
        ("an empty untracked file", |s, p| s.write(p, "new", "")),
        ("a deletion", |_, p| {
            std::fs::remove_file(p.join("old.txt")).unwrap();
        }),
        ("only staged", |s, p| {
            s.write(p, "README.md", "x");
            s.git(p, &["add", "-A"]);
            s.write(p, "README.md", "hello\n");
        }),
        ("removed from the index only", |s, p| {
            s.git(p, &["rm", "-q", "--cached", "old.txt"]);
        }),
    ];
    for (what, work) in cases {
        for strategy in BOTH {
            let sandbox = Sandbox::new();
            let checkout = sandbox.checkout(strategy);
            work(&sandbox, &checkout.path);
            let before = sandbox.portrait(&checkout.path);
            assert!(
                !sandbox.adapter().unsaved(&checkout).unwrap().is_empty(),
                "{what}"
            );
            let manifest = sandbox.remove(&checkout);
            sandbox.restores_to(&manifest, &before);
        }
    }
}

#[test]
fn di48_a_detached_head_is_saved() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        let checkout = sandbox.checkout(strategy);
        sandbox.git(&checkout.path, &["checkout", "-q", "--detach"]);
        work_in(&sandbox, &checkout.path);
        let before = sandbox.portrait(&checkout.path);
        let manifest = sandbox.remove(&checkout);
        assert_eq!(manifest.branch, None);
        sandbox.restores_to(&manifest, &before);
    }
}

#[test]
fn di48_a_repository_without_any_commit_is_saved() {
    for strategy in BOTH {
        let sandbox = Sandbox::empty();
        let checkout = sandbox.checkout(strategy);
        assert!(sandbox.try_remove(&checkout).unwrap().saved.is_none());
        let checkout = sandbox.checkout(strategy);
        sandbox.write(&checkout.path, "staged", "s");
        sandbox.git(&checkout.path, &["add", "-A"]);
        sandbox.write(&checkout.path, "untracked", "u");
        let before = sandbox.portrait(&checkout.path);
        let manifest = sandbox.remove(&checkout);
        assert_eq!((&manifest.head, &manifest.refs.head), (&None, &None));
        assert_eq!(manifest.requires, Vec::<String>::new());
        sandbox.restores_to(&manifest, &before);
    }
}

#[test]
fn di48_a_repository_without_a_remote_is_saved_whole() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Clone);
    sandbox.git(&checkout.path, &["remote", "remove", "origin"]);
    sandbox.write(&checkout.path, "new", "n");
    let before = sandbox.portrait(&checkout.path);
    let manifest = sandbox.remove(&checkout);
    assert_eq!((manifest.commits, manifest.repository.as_ref()), (1, None));
    assert_eq!(manifest.requires, Vec::<String>::new());
    std::fs::remove_dir_all(&sandbox.origin).unwrap();
    let origin = sandbox.origin.to_string();
    sandbox.git(&sandbox.base, &["init", "-q", "--bare", &origin]);
    sandbox.restores_to(&manifest, &before);
}

#[test]
fn di48_work_on_top_of_an_older_commit_of_the_remote_is_saved() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        for n in 0..3 {
            sandbox.push("main", "n.txt", &n.to_string());
        }
        let checkout = sandbox.checkout(strategy);
        sandbox.git(&checkout.path, &["reset", "-q", "--hard", "HEAD~2"]);
        sandbox.git(&checkout.path, &["branch", "-q", "side", "origin/main"]);
        sandbox.write(&checkout.path, "README.md", "older\n");
        let before = sandbox.portrait(&checkout.path);
        let manifest = sandbox.remove(&checkout);
        assert_eq!(manifest.commits, 0);
        sandbox.restores_to(&manifest, &before);
    }
}

#[test]
fn di48_other_branches_and_every_stash_of_a_clone_are_saved() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Clone);
    let path = &checkout.path;
    sandbox.git(path, &["switch", "-q", "-c", "other"]);
    sandbox.write(path, "other.txt", "o");
    let other = sandbox.commit(path, "other");
    sandbox.git(path, &["tag", "-a", "-m", "mine", "v1"]);
    sandbox.git(path, &["switch", "-q", "-"]);
    for text in ["first stash", "second stash"] {
        sandbox.write(path, "README.md", text);
        sandbox.git(path, &["stash", "push", "-q"]);
    }
    assert!(!sandbox.adapter().unsaved(&checkout).unwrap().is_empty());
    let manifest = sandbox.remove(&checkout);
    let restored = sandbox.restore(&manifest);
    let show = |what: &str| sandbox.git(&restored, &["show", what]);
    let saved = "refs/the-loop/saved";
    assert_eq!(
        sandbox.git(&restored, &["rev-parse", &format!("{saved}/heads/other")]),
        other
    );
    assert_eq!(show(&format!("{saved}/stash:README.md")), "second stash");
    assert_eq!(show(&format!("{saved}/stash-1:README.md")), "first stash");
    assert_eq!(
        sandbox.git(
            &restored,
            &["rev-parse", &format!("{saved}/tags/v1^{{commit}}")]
        ),
        other
    );
    assert!(manifest.refs.others.contains(&format!("{saved}/stash")));
}

#[test]
fn di48_a_merge_in_conflict_is_saved_with_its_marks() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        let checkout = sandbox.checkout(strategy);
        let path = &checkout.path;
        sandbox.git(path, &["switch", "-q", "-c", "theirs"]);
        sandbox.write(path, "README.md", "theirs\n");
        std::fs::remove_file(path.join("old.txt")).unwrap();
        let theirs = sandbox.commit(path, "theirs");
        sandbox.git(path, &["switch", "-q", "-"]);
        sandbox.write(path, "README.md", "ours\n");
        sandbox.write(path, "old.txt", "changed\n");
        sandbox.commit(path, "ours");
        sandbox.git_fails(path, &["merge", "-q", "theirs"]);
        let files = sandbox.portrait(path).files;
        assert!(files[b"README.md".as_slice()].contains("<<<<<<<"));
        let manifest = sandbox.remove(&checkout);
        let restored = sandbox.restore(&manifest);
        assert_eq!(sandbox.portrait(&restored).files, files);
        let merged = sandbox.git(&restored, &["rev-parse", "refs/the-loop/saved/merge-head"]);
        assert_eq!(merged, theirs);
    }
}

#[test]
fn di48_a_rebase_half_way_is_saved_with_where_it_came_from() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        let checkout = sandbox.checkout(strategy);
        let path = &checkout.path;
        sandbox.write(path, "README.md", "one\n");
        sandbox.commit(path, "one");
        sandbox.write(path, "later.txt", "later\n");
        let tip = sandbox.commit(path, "later");
        sandbox.push("main", "README.md", "upstream\n");
        sandbox.git(path, &["fetch", "-q"]);
        sandbox.write(path, "src/lib.rs", "kept aside\n");
        sandbox.git_fails(path, &["rebase", "-q", "--autostash", "origin/main"]);
        let files = sandbox.portrait(path).files;
        let manifest = sandbox.remove(&checkout);
        assert_eq!(manifest.branch, None);
        let restored = sandbox.restore(&manifest);
        assert_eq!(sandbox.portrait(&restored).files, files);
        let saved = |name: &str| format!("refs/the-loop/saved/{name}");
        let came = sandbox.git(&restored, &["rev-parse", &saved("rebase-head")]);
        assert_eq!(came, tip);
        let aside = sandbox.git(
            &restored,
            &["show", &(saved("rebase-autostash") + ":src/lib.rs")],
        );
        assert_eq!(aside, "kept aside");
    }
}

#[test]
fn di48_a_checkout_that_changes_meanwhile_is_saved_as_it_is_at_last() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    sandbox.write(&checkout.path, "new.txt", "0");
    let scribbling = |times| Scribbling {
        file: checkout.path.join("new.txt"),
        left: std::sync::atomic::AtomicI64::new(times),
    };
    let remove = |times| {
        let mut world = sandbox.world.clone();
        world.processes = Arc::new(scribbling(times));
        Git::new(&world, "git", SLOW).remove(
            &sandbox.store(),
            &no_lock,
            &checkout,
            SavedWhy::Cleanup,
            false,
        )
    };
    let always = remove(100);
    assert!(matches!(&always, Err(RemoveError::SaveFailed(why)) if why.contains("keeps changing")));
    assert_eq!(sandbox.saved(), []);
    let manifest = remove(1).unwrap().saved.unwrap();
    assert_eq!(sandbox.saved().len(), 1);
    let restored = sandbox.restore(&manifest);
    assert_eq!(look(&restored, b"new.txt"), "0 \"written while saving 1\"");
}

/// Writes into a file whenever a bundle is made, some times.
#[derive(Debug)]
struct Scribbling {
    file: Utf8PathBuf,
    left: std::sync::atomic::AtomicI64,
}

impl Processes for Scribbling {
    fn run(&self, call: &Call) -> the_loop::process::Answer {
        let answer = OsProcesses.run(call);
        if call.args.windows(2).any(|w| w == ["bundle", "create"]) {
            let left = self.left.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            if left > 0 {
                std::fs::write(&self.file, format!("written while saving {left}")).unwrap();
            }
        }
        answer
    }
    fn started(&self, pid: i32) -> Option<u64> {
        OsProcesses.started(pid)
    }
    fn environment(&self, pid: i32, name: &str) -> Option<String> {
        OsProcesses.environment(pid, name)
    }
    fn environ(&self, pid: i32) -> Option<the_loop_core::environment::Environ> {
        OsProcesses.environ(pid)
    }
    fn argv(&self, pid: i32) -> Vec<String> {
        OsProcesses.argv(pid)
    }
    fn cwd(&self, pid: i32) -> Option<camino::Utf8PathBuf> {
        OsProcesses.cwd(pid)
    }
    fn carrying(&self, name: &str, value: &str) -> Vec<the_loop::process::ProcessId> {
        OsProcesses.carrying(name, value)
    }
    fn signal(
        &self,
        process: the_loop::process::ProcessId,
        signal: the_loop::process::Signal,
    ) -> bool {
        OsProcesses.signal(process, signal)
    }
    fn signal_group(
        &self,
        leader: the_loop::process::ProcessId,
        signal: the_loop::process::Signal,
    ) -> bool {
        OsProcesses.signal_group(leader, signal)
    }
}

#[test]
fn di48_saving_that_takes_too_long_leaves_the_checkout() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    let huge = std::fs::File::create(checkout.path.join("huge")).unwrap();
    huge.set_len(8 << 30).unwrap();
    let hasty = Git::new(&sandbox.world, "git", Duration::from_millis(400));
    let failed = hasty.remove(
        &sandbox.store(),
        &no_lock,
        &checkout,
        SavedWhy::Reset,
        false,
    );
    assert!(
        matches!(&failed, Err(RemoveError::SaveFailed(_))),
        "{failed:?}"
    );
    assert!(checkout.path.join("huge").exists());
    assert_eq!(sandbox.saved(), []);
    let scratch = sandbox.git(&checkout.path, &["rev-parse", "--absolute-git-dir"]);
    assert!(!Utf8PathBuf::from(scratch).join("the-loop-save").exists());
}
