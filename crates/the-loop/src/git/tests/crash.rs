//! A fault at every single call of a preparation and of a removal.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::double::{Fault, Fuse};
use super::*;

const FAULTS: [Fault; 4] = [
    Fault::FailBefore,
    Fault::FailAfter,
    Fault::CrashBefore,
    Fault::CrashAfter,
];

/// More calls than any operation here makes.
const CALLS_MAX: i64 = 400;

/// The checkout is whole: nothing is missing or changed in it.
fn is_whole(sandbox: &Sandbox, path: &Utf8Path) {
    assert_eq!(sandbox.git(path, &["status", "--porcelain"]), "");
    assert!(path.join("README.md").is_file() && path.join("src/lib.rs").is_file());
}

fn prepare_with_faults(strategy: Strategy, fault: Fault, shared_first: bool) {
    let mut sandbox = Sandbox::new();
    for at in 0..CALLS_MAX {
        sandbox.root = sandbox.base.join(format!("w{at}"));
        if shared_first {
            sandbox.prepare(&sandbox.request(1, strategy));
        }
        let request = sandbox.request(15, strategy);
        let (world, fuse) = Fuse::world(&sandbox.world, at, fault);
        let git = Git::new(&world, "git", SLOW);
        let tried = catch_unwind(AssertUnwindSafe(|| git.prepare(&request, &no_lock, &never)));
        let path = sandbox.root.join(
            the_loop_core::workspace::checkout_path(strategy, request.item.repo(), &request.slug)
                .unwrap(),
        );
        if path.join(".git").exists() {
            is_whole(&sandbox, &path);
        } else {
            assert!(!path.exists(), "call {at}: half a checkout");
        }
        if let Ok(Ok(prepared)) = &tried {
            is_whole(&sandbox, &prepared.cwd);
        }
        // Another item first: its sweep must not harm this one.
        is_whole(
            &sandbox,
            &sandbox.prepare(&sandbox.request(16, strategy)).cwd,
        );
        if strategy == Strategy::Worktree {
            sandbox.git(&sandbox.shared(), &["worktree", "prune"]);
        }
        let prepared = sandbox.prepare(&request);
        is_whole(&sandbox, &prepared.cwd);
        assert_eq!(
            prepared.branch.as_deref(),
            Some("loop/github-octo-repo-15"),
            "call {at}"
        );
        assert_eq!(sandbox.leftovers(), Vec::<String>::new(), "call {at}");
        if strategy == Strategy::Worktree {
            let list = sandbox.git(&sandbox.shared(), &["worktree", "list", "--porcelain"]);
            let expected = if shared_first { 4 } else { 3 };
            assert_eq!(
                list.matches("worktree ").count(),
                expected,
                "call {at}: {list}"
            );
            assert!(
                !list.contains("locked") && !list.contains("prunable"),
                "call {at}: {list}"
            );
        }
        std::fs::remove_dir_all(&sandbox.root).unwrap();
        if !fuse.burnt() {
            assert!(at > 5, "the fault was never reached");
            return;
        }
    }
    panic!("more than {CALLS_MAX} calls");
}

#[test]
fn di46_a_worktree_is_made_whole_or_not_at_all_when_a_call_fails() {
    prepare_with_faults(Strategy::Worktree, Fault::FailBefore, false);
    prepare_with_faults(Strategy::Worktree, Fault::FailAfter, true);
}

#[test]
fn di46_a_worktree_is_made_whole_or_not_at_all_when_the_program_is_killed() {
    prepare_with_faults(Strategy::Worktree, Fault::CrashBefore, true);
    prepare_with_faults(Strategy::Worktree, Fault::CrashAfter, false);
}

#[test]
fn di46_a_clone_is_made_whole_or_not_at_all_whatever_fails() {
    for fault in FAULTS {
        prepare_with_faults(Strategy::Clone, fault, false);
    }
}

fn remove_with_faults(strategy: Strategy, fault: Fault) {
    let mut sandbox = Sandbox::new();
    let base = sandbox.base.clone();
    for at in 0..CALLS_MAX {
        sandbox.base = base.join(format!("run{at}"));
        std::fs::create_dir(&sandbox.base).unwrap();
        sandbox.root = sandbox.base.join("w");
        let checkout = sandbox.checkout(strategy);
        let path = &checkout.path;
        sandbox.write(path, "README.md", "staged\n");
        sandbox.git(path, &["add", "-A"]);
        sandbox.write(path, "README.md", "changed\n");
        sandbox.write(path, "new.txt", "untracked\n");
        let before = sandbox.portrait(path);
        let (world, fuse) = Fuse::world(&sandbox.world, at, fault);
        let git = Git::new(&world, "git", SLOW);
        let store = SavedStore::new(&world, sandbox.base.join("saved"));
        let remove = || git.remove(&store, &no_lock, &checkout, Why::Reset, false);
        let tried = catch_unwind(AssertUnwindSafe(remove));
        if path.exists() {
            assert_eq!(sandbox.portrait(path), before, "call {at}: changed");
            assert!(!matches!(tried, Ok(Ok(_))), "call {at}: said to be removed");
        } else {
            // Gone, so it was saved.
            let manifests = sandbox.manifests();
            assert_eq!(manifests.len(), 1, "call {at}");
            sandbox.restores_to(&manifests[0], &before);
        }
        if let Ok(Err(RemoveError::SaveFailed(_))) = &tried {
            assert!(path.exists(), "call {at}: gone, but not saved");
        }
        sandbox
            .try_remove(&checkout)
            .unwrap_or_else(|e| panic!("call {at}: {e}"));
        assert!(!path.exists());
        assert_eq!(sandbox.leftovers(), Vec::<String>::new(), "call {at}");
        let manifests = sandbox.manifests();
        assert_eq!(manifests.len(), 1, "call {at}: saved more than once");
        sandbox.restores_to(&manifests[0], &before);
        assert!(sandbox.prepare(&sandbox.request(15, strategy)).made);
        std::fs::remove_dir_all(&sandbox.base).unwrap();
        if !fuse.burnt() {
            assert!(at > 5, "the fault was never reached");
            return;
        }
    }
    panic!("more than {CALLS_MAX} calls");
}

#[test]
fn di48_a_worktree_is_saved_or_intact_when_a_call_fails() {
    remove_with_faults(Strategy::Worktree, Fault::FailBefore);
    remove_with_faults(Strategy::Worktree, Fault::FailAfter);
}

#[test]
fn di48_a_worktree_is_saved_or_intact_when_the_program_is_killed() {
    remove_with_faults(Strategy::Worktree, Fault::CrashBefore);
    remove_with_faults(Strategy::Worktree, Fault::CrashAfter);
}

#[test]
fn di48_a_clone_is_saved_or_intact_when_a_call_fails() {
    remove_with_faults(Strategy::Clone, Fault::FailBefore);
    remove_with_faults(Strategy::Clone, Fault::FailAfter);
}

#[test]
fn di48_a_clone_is_saved_or_intact_when_the_program_is_killed() {
    remove_with_faults(Strategy::Clone, Fault::CrashBefore);
    remove_with_faults(Strategy::Clone, Fault::CrashAfter);
}
