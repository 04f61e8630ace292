//! Odd files, odd settings, and repositories inside a checkout.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::*;

const BOTH: [Strategy; 2] = [Strategy::Worktree, Strategy::Clone];

#[test]
fn di48_odd_names_links_modes_and_changes_of_kind_come_back() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        let checkout = sandbox.checkout(strategy);
        let path = &checkout.path;
        sandbox.write(path, "dir/a", "a");
        sandbox.write(path, "dir2/b", "b");
        sandbox.write(path, "file", "f");
        sandbox.write(path, "tool", "#!/bin/sh\n");
        sandbox.commit(path, "base");
        for name in [
            "-rf",
            " lead",
            "trail ",
            "new\nline",
            "tab\t\"quote\"",
            "é",
            ":(top)x",
            "*",
            "a\\b",
            "#x",
        ] {
            sandbox.write(path, name, name);
        }
        let raw = path
            .as_std_path()
            .join(std::ffi::OsStr::from_bytes(b"latin-\xe9"));
        std::fs::write(&raw, "not UTF-8").unwrap();
        std::fs::write(path.join("empty"), "").unwrap();
        symlink("nowhere", path.join("dangling")).unwrap();
        symlink("dir2", path.join("to-dir")).unwrap();
        std::fs::set_permissions(path.join("tool"), PermissionsExt::from_mode(0o755)).unwrap();
        // A directory becomes a file, another a link, a file a directory.
        std::fs::remove_dir_all(path.join("dir")).unwrap();
        std::fs::write(path.join("dir"), "now a file").unwrap();
        std::fs::remove_dir_all(path.join("dir2")).unwrap();
        symlink("src", path.join("dir2")).unwrap();
        std::fs::remove_file(path.join("file")).unwrap();
        sandbox.write(path, "file/inside", "i");
        let before = sandbox.portrait(path);
        let manifest = sandbox.remove(&checkout);
        sandbox.restores_to(&manifest, &before);
    }
}

#[test]
fn di48_files_that_git_was_told_not_to_look_at_are_saved() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        let checkout = sandbox.checkout(strategy);
        let path = &checkout.path;
        sandbox.git(path, &["update-index", "--assume-unchanged", "README.md"]);
        sandbox.git(
            path,
            &["update-index", "--skip-worktree", "old.txt", "src/lib.rs"],
        );
        assert!(sandbox.try_remove(&checkout).unwrap().saved.is_none());

        let checkout = sandbox.checkout(strategy);
        sandbox.git(path, &["update-index", "--assume-unchanged", "README.md"]);
        sandbox.git(
            path,
            &["update-index", "--skip-worktree", "old.txt", "src/lib.rs"],
        );
        sandbox.write(path, "README.md", "my settings\n");
        sandbox.write(path, "old.txt", "mine too\n");
        std::fs::remove_file(path.join("src/lib.rs")).unwrap();
        let manifest = sandbox.remove(&checkout);
        assert_eq!(manifest.files.changed, 2);
        let restored = sandbox.restore(&manifest);
        assert_eq!(look(&restored, b"README.md"), "0 \"my settings\\n\"");
        assert_eq!(look(&restored, b"old.txt"), "0 \"mine too\\n\"");
        assert_eq!(look(&restored, b"src/lib.rs"), "0 \"fn one() {}\\n\"");
    }
}

#[test]
fn di48_a_sparse_checkout_deletes_nothing() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    let path = &checkout.path;
    sandbox.git(
        path,
        &["sparse-checkout", "set", "--cone", "--sparse-index", "docs"],
    );
    assert!(!path.join("src").exists());
    sandbox.write(path, "README.md", "changed\n");
    let manifest = sandbox.remove(&checkout);
    assert_eq!(
        manifest.files,
        the_loop::store::saved::SavedFiles {
            changed: 1,
            untracked: 0
        }
    );
    let restored = sandbox.restore(&manifest);
    assert_eq!(look(&restored, b"src/lib.rs"), "0 \"fn one() {}\\n\"");
    assert_eq!(
        sandbox.git(&restored, &["status", "--porcelain"]),
        " M README.md"
    );
}

#[test]
fn di48_intent_to_add_is_saved_as_a_file_that_is_not_staged() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    sandbox.write(&checkout.path, "planned", "text");
    sandbox.git(&checkout.path, &["add", "-N", "planned"]);
    let manifest = sandbox.remove(&checkout);
    let restored = sandbox.restore(&manifest);
    assert_eq!(
        sandbox.git(&restored, &["status", "--porcelain"]),
        "?? planned"
    );
    assert_eq!(look(&restored, b"planned"), "0 \"text\"");
}

#[test]
fn di48_files_under_a_filter_are_saved_as_they_are() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Clone);
    let path = &checkout.path;
    sandbox.write(path, ".gitattributes", "*.bin filter=store\n");
    sandbox.git(path, &["config", "filter.store.clean", "echo pointer"]);
    sandbox.git(path, &["config", "filter.store.required", "true"]);
    sandbox.write(path, "new.bin", "the content itself");
    let manifest = sandbox.remove(&checkout);
    let restored = sandbox.restore(&manifest);
    assert_eq!(look(&restored, b"new.bin"), "0 \"the content itself\"");
}

#[test]
fn di48_unpushed_commits_with_lfs_objects_of_a_clone_stay() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Clone);
    sandbox.write(&checkout.path, ".git/lfs/objects/ab/cd", "content");
    sandbox.commit(&checkout.path, "pointer");
    sandbox.must_stay(&checkout, "LFS");
}

#[test]
fn di48_a_change_of_the_same_size_in_the_same_second_is_seen() {
    // git itself compares the content of files that are as new as its index; so must saving.
    for _ in 0..5 {
        let sandbox = Sandbox::new();
        let checkout = sandbox.checkout(Strategy::Worktree);
        sandbox.write(&checkout.path, "README.md", "aaaa\n");
        sandbox.commit(&checkout.path, "a");
        sandbox.git(
            &checkout.path,
            &["push", "-q", "origin", "HEAD:refs/heads/a"],
        );
        sandbox.write(&checkout.path, "README.md", "bbbb\n");
        let manifest = sandbox.remove(&checkout);
        let restored = sandbox.restore(&manifest);
        assert_eq!(look(&restored, b"README.md"), "0 \"bbbb\\n\"");
    }
}

/// A repository `lib` as a submodule of the checkout.
fn with_submodule(sandbox: &Sandbox, strategy: Strategy) -> Checkout {
    let lib = sandbox.base.join("remotes/lib");
    sandbox.git(&sandbox.base, &["init", "-q", lib.as_str()]);
    sandbox.write(&lib, "lib.txt", "1");
    sandbox.commit(&lib, "lib");
    let checkout = sandbox.checkout(strategy);
    sandbox.git(
        &checkout.path,
        &["submodule", "add", "-q", lib.as_str(), "lib"],
    );
    sandbox.commit(&checkout.path, "with a submodule");
    checkout
}

#[test]
fn di48_a_clean_submodule_is_recorded_and_goes() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        let checkout = with_submodule(&sandbox, strategy);
        sandbox.write(&checkout.path, "new", "n");
        let index = sandbox.git(&checkout.path, &["ls-files", "--stage"]);
        let manifest = sandbox.remove(&checkout);
        let restored = sandbox.restore(&manifest);
        assert_eq!(sandbox.git(&restored, &["ls-files", "--stage"]), index);
        // A repository with submodules is prepared again.
        let again = sandbox.checkout(strategy);
        assert!(again.path.join(".gitmodules").exists() == (strategy == Strategy::Worktree));
    }
}

#[test]
fn di48_a_submodule_with_work_keeps_the_checkout() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        let checkout = with_submodule(&sandbox, strategy);
        let lib = checkout.path.join("lib");
        sandbox.write(&lib, "lib.txt", "2");
        sandbox.must_stay(&checkout, "repository of its own");
        let commit = sandbox.commit(&lib, "two");
        sandbox.must_stay(&checkout, "repository of its own");
        sandbox.git(&lib, &["push", "-q", "origin", "HEAD:refs/heads/two"]);
        let manifest = sandbox.remove(&checkout);
        let restored = sandbox.restore(&manifest);
        let tree = sandbox.git(
            &restored,
            &["ls-tree", "refs/the-loop/saved/worktree", "lib"],
        );
        assert!(tree.contains(&commit), "{tree}");
    }
}

#[test]
fn di48_repositories_inside_a_checkout_must_have_nothing_to_lose() {
    for strategy in BOTH {
        let sandbox = Sandbox::new();
        let checkout = sandbox.checkout(strategy);
        let inner = checkout.path.join("vendor/inner");
        sandbox.git(
            &checkout.path,
            &["clone", "-q", sandbox.origin.as_str(), "vendor/inner"],
        );
        sandbox.git(&inner, &["switch", "-q", "-C", "main", "origin/main"]);
        sandbox.write(&inner, "README.md", "work");
        sandbox.must_stay(&checkout, "vendor/inner");
        sandbox.git(&inner, &["stash", "push", "-q"]);
        sandbox.must_stay(&checkout, "vendor/inner");
        sandbox.git(&inner, &["stash", "drop", "-q"]);
        sandbox.remove(&checkout);
    }
}

#[test]
fn di48_worktrees_inside_a_checkout_go_when_clean_even_ignored_ones() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    let path = &checkout.path;
    for (place, branch) in [("target/w", "one"), (".claude/worktrees/w", "two")] {
        sandbox.git(path, &["worktree", "add", "-q", "-b", branch, place]);
        sandbox.write(&path.join(place), "work", "w");
        sandbox.must_stay(&checkout, place);
        sandbox.commit(&path.join(place), "work");
    }
    sandbox.try_remove(&checkout).unwrap();
    let shared = sandbox.shared();
    assert_eq!(
        sandbox.git(&shared, &["worktree", "list"]).lines().count(),
        1
    );
    assert_eq!(sandbox.git(&shared, &["show", "one:work"]), "w");
}

#[test]
fn di48_a_clone_that_other_worktrees_hang_on_stays() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Clone);
    let elsewhere = sandbox.base.join("elsewhere");
    sandbox.git(
        &checkout.path,
        &["worktree", "add", "-q", elsewhere.as_str()],
    );
    sandbox.must_stay(&checkout, "would lose its repository");
    sandbox.git(&checkout.path, &["worktree", "remove", elsewhere.as_str()]);
    sandbox.try_remove(&checkout).unwrap();
}

#[test]
fn di48_settings_that_change_what_git_says_change_nothing() {
    let sandbox = Sandbox::new();
    let config = sandbox.base.join("gitconfig");
    let text = std::fs::read_to_string(&config).unwrap();
    let odd = "[status]\nshowUntrackedFiles=no\nrelativePaths=true\nrenames=copies\n\
        [core]\nsplitIndex=true\nautocrlf=input\nsafecrlf=true\nquotePath=true\nuntrackedCache=true\n\
        [diff]\nignoreSubmodules=all\nnoprefix=true\n[color]\nui=always\n[commit]\ngpgSign=true\n\
        [clone]\ndefaultRemoteName=upstream\n[submodule]\nrecurse=true\n[log]\nshowSignature=true\n\
        [branch]\nautoSetupMerge=always\n[push]\ndefault=matching\n[fetch]\nprune=true\n";
    for strategy in BOTH {
        std::fs::write(&config, format!("{text}{odd}")).unwrap();
        let checkout = sandbox.checkout(strategy);
        std::fs::write(&config, &text).unwrap();
        work(&sandbox, &checkout.path);
        let before = sandbox.portrait(&checkout.path);
        std::fs::write(&config, format!("{text}{odd}")).unwrap();
        let manifest = sandbox.remove(&checkout);
        std::fs::write(&config, &text).unwrap();
        sandbox.restores_to(&manifest, &before);
        assert_eq!((manifest.files.changed, manifest.files.untracked), (2, 1));
    }
}

fn work(sandbox: &Sandbox, path: &Utf8Path) {
    std::fs::rename(path.join("old.txt"), path.join("renamed.txt")).unwrap();
    sandbox.write(path, "README.md", "changed\n");
    sandbox.git(path, &["add", "README.md"]);
    sandbox.commit_nothing(path);
}

impl Sandbox {
    /// A commit of nothing, so that there is one that is on no remote.
    fn commit_nothing(&self, path: &Utf8Path) {
        let tree = self.git(path, &["rev-parse", "HEAD^{tree}"]);
        let commit = self.git(path, &["commit-tree", &tree, "-p", "HEAD", "-m", "nothing"]);
        self.git(path, &["update-ref", "HEAD", &commit]);
    }
}

#[test]
fn di48_a_repository_of_the_other_object_format_is_saved() {
    for strategy in BOTH {
        let sandbox = Sandbox::empty();
        std::fs::remove_dir_all(&sandbox.origin).unwrap();
        let origin = sandbox.origin.to_string();
        let args = ["init", "-q", "--bare", "--object-format=sha256", &origin];
        sandbox.git(&sandbox.base, &args);
        let checkout = sandbox.checkout(strategy);
        sandbox.write(&checkout.path, "a", "a");
        sandbox.commit(&checkout.path, "a");
        sandbox.write(&checkout.path, "b", "b");
        let before = sandbox.portrait(&checkout.path);
        let manifest = sandbox.remove(&checkout);
        assert_eq!(manifest.head.as_ref().unwrap().len(), 64);
        sandbox.restores_to(&manifest, &before);
    }
}

#[test]
fn di48_a_shallow_clone_is_saved() {
    let sandbox = Sandbox::new();
    sandbox.push("main", "n", "1");
    sandbox.push("main", "n", "2");
    let checkout = sandbox.checkout(Strategy::Clone);
    let path = &checkout.path;
    sandbox.git(path, &["fetch", "-q", "--depth=1", "origin", "main"]);
    sandbox.git(path, &["reset", "-q", "--hard", "origin/main"]);
    assert!(path.join(".git/shallow").exists());
    sandbox.write(path, "new", "n");
    sandbox.commit(path, "work");
    sandbox.write(path, "new", "n2");
    let before = sandbox.portrait(path);
    let manifest = sandbox.remove(&checkout);
    sandbox.restores_to(&manifest, &before);
}
