//! A fault at every single call of a preparation and of a removal.

use the_loop_core::workspace::checkout_path;
use the_loop_testkit::{Blow, FaultyDisk, FaultyProcesses, Fuse};

use crate::*;

/// Runs `case` with the fault at one call after the other. A crash after a call that only reads, and
/// one before it, leave what a crash after the call before it leaves; so they are not tried.
fn at_every_call(blow: Blow, case: impl Fn(&Fuse, &str)) {
    let counting = Fuse::new();
    case(&counting, "no fault");
    let calls = counting.log();
    assert!(calls.len() > 10, "too few calls to be true");
    for (n, call) in calls.iter().enumerate() {
        if blow == Blow::FailOnce || !only_reads(call) {
            let at = n as u64 + 1;
            case(&Fuse::at(at, blow), &format!("{blow:?} at call {at}"));
        }
    }
}

fn only_reads(call: &str) -> bool {
    const READING: [&str; 11] = [
        "rev-parse",
        "rev-list",
        "status",
        "ls-files",
        "ls-remote",
        "for-each-ref",
        "symbolic-ref --quiet",
        "merge-base",
        "show",
        "worktree list",
        "config --",
    ];
    call.starts_with("run ")
        && READING
            .iter()
            .any(|words| call.contains(&format!(" {words}")))
}

/// The world behind a fuse.
fn fused(world: &World, fuse: &Fuse) -> World {
    let mut world = world.clone();
    world.disk = Arc::new(FaultyDisk::new(fuse.clone()));
    world.processes = Arc::new(FaultyProcesses::new(fuse.clone()));
    world
}

/// The checkout is whole: nothing is missing or changed in it.
fn is_whole(sandbox: &Sandbox, path: &Utf8Path) {
    assert_eq!(sandbox.git(path, &["status", "--porcelain"]), "");
    assert!(path.join("README.md").is_file() && path.join("src/lib.rs").is_file());
}

fn prepare_with_faults(strategy: Strategy, blow: Blow, shared_first: bool) {
    let mut sandbox = Sandbox::new();
    sandbox.root = sandbox.base.join("w");
    at_every_call(blow, |fuse, what| {
        if shared_first {
            sandbox.prepare(&sandbox.request(1, strategy));
        }
        let request = sandbox.request(15, strategy);
        let git = Git::new(&fused(&sandbox.world, fuse), "git", SLOW);
        let tried = git.prepare(&request, &no_lock, &never);
        let below = checkout_path(strategy, request.item.repo(), &request.slug).unwrap();
        let path = sandbox.root.join(below);
        if tried.is_ok() || path.exists() {
            is_whole(&sandbox, &path);
        }
        // Another item first: its sweep must not harm this one.
        let other = sandbox.prepare(&sandbox.request(16, strategy));
        is_whole(&sandbox, &other.cwd);
        if strategy == Strategy::Worktree {
            sandbox.git(&sandbox.shared(), &["worktree", "prune"]);
        }
        let prepared = sandbox.prepare(&request);
        is_whole(&sandbox, &prepared.cwd);
        let branch = Some("loop/github-octo-repo-15".to_owned());
        assert_eq!(prepared.branch, branch, "{what}");
        assert_eq!(sandbox.leftovers(), Vec::<String>::new(), "{what}");
        if strategy == Strategy::Worktree {
            let list = sandbox.git(&sandbox.shared(), &["worktree", "list", "--porcelain"]);
            let expected = if shared_first { 4 } else { 3 };
            let found = list.matches("worktree ").count();
            let clean = !list.contains("locked") && !list.contains("prunable");
            assert!(found == expected && clean, "{what}: {list}");
        }
        std::fs::remove_dir_all(&sandbox.root).unwrap();
    });
}

#[test]
fn di46_a_worktree_is_made_whole_or_not_at_all_when_a_call_fails() {
    prepare_with_faults(Strategy::Worktree, Blow::FailOnce, false);
}

#[test]
fn di46_a_worktree_is_made_whole_or_not_at_all_when_a_call_seems_to_fail() {
    prepare_with_faults(Strategy::Worktree, Blow::FailAfter, true);
}

#[test]
fn di46_a_worktree_is_made_whole_or_not_at_all_when_the_program_is_killed() {
    prepare_with_faults(Strategy::Worktree, Blow::CrashAfter, true);
    prepare_with_faults(Strategy::Worktree, Blow::CrashAfter, false);
}

#[test]
fn di46_a_clone_is_made_whole_or_not_at_all_whatever_fails() {
    for blow in [Blow::FailOnce, Blow::FailAfter, Blow::CrashAfter] {
        prepare_with_faults(Strategy::Clone, blow, false);
    }
}

fn remove_with_faults(strategy: Strategy, blow: Blow) {
    let sandbox = Sandbox::new();
    at_every_call(blow, |fuse, what| {
        let checkout = sandbox.checkout(strategy);
        let path = &checkout.path;
        sandbox.write(path, "README.md", "staged\n");
        sandbox.git(path, &["add", "-A"]);
        sandbox.write(path, "README.md", "changed\n");
        sandbox.write(path, "new.txt", "untracked\n");
        let before = sandbox.portrait(path);
        let world = fused(&sandbox.world, fuse);
        let store = SavedStore::new(&world, sandbox.base.join("saved"));
        let git = Git::new(&world, "git", SLOW);
        let tried = git.remove(&store, &no_lock, &checkout, SavedWhy::Reset, false);
        if path.exists() {
            assert_eq!(sandbox.portrait(path), before, "{what}: changed");
            assert!(tried.is_err(), "{what}: said to be removed");
        } else {
            assert_eq!(sandbox.manifests().len(), 1, "{what}: gone, not saved");
            let said = matches!(&tried, Err(RemoveError::SaveFailed(_)));
            assert!(!said, "{what}: {tried:?}");
        }
        let again = sandbox.try_remove(&checkout);
        again.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(!path.exists());
        assert_eq!(sandbox.leftovers(), Vec::<String>::new(), "{what}");
        let manifests = sandbox.manifests();
        assert_eq!(manifests.len(), 1, "{what}: saved more than once");
        sandbox.restores_to(&manifests[0], &before);
        for dir in [&sandbox.root, &sandbox.base.join("saved")] {
            std::fs::remove_dir_all(dir).unwrap();
        }
    });
}

#[test]
fn di48_a_worktree_is_saved_or_intact_when_a_call_fails() {
    remove_with_faults(Strategy::Worktree, Blow::FailOnce);
}

#[test]
fn di48_a_worktree_is_saved_or_intact_when_a_call_seems_to_fail() {
    remove_with_faults(Strategy::Worktree, Blow::FailAfter);
}

#[test]
fn di48_a_worktree_is_saved_or_intact_when_the_program_is_killed() {
    remove_with_faults(Strategy::Worktree, Blow::CrashAfter);
}

#[test]
fn di48_a_clone_is_saved_or_intact_when_a_call_fails() {
    remove_with_faults(Strategy::Clone, Blow::FailOnce);
}

#[test]
fn di48_a_clone_is_saved_or_intact_when_the_program_is_killed() {
    remove_with_faults(Strategy::Clone, Blow::FailAfter);
    remove_with_faults(Strategy::Clone, Blow::CrashAfter);
}
