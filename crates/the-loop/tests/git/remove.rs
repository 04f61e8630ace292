//! What may be removed, and what a removal leaves.

use crate::*;

#[test]
fn di48_a_clean_checkout_goes_without_a_bundle_and_its_branch_stays() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    sandbox.write(&checkout.path, "target/big", "ignored");
    sandbox.write(&checkout.path, "a.log", "ignored");
    assert!(sandbox.adapter().unsaved(&checkout).unwrap().is_empty());
    let removed = sandbox.try_remove(&checkout).unwrap();
    assert_eq!((removed.saved, removed.removed), (None, true));
    assert!(!checkout.path.exists());
    assert_eq!(sandbox.saved(), []);
    assert_eq!(sandbox.leftovers(), Vec::<String>::new());
    let shared = sandbox.shared();
    sandbox.git(
        &shared,
        &["rev-parse", "refs/heads/loop/github-octo-repo-15"],
    );
    let list = sandbox.git(&shared, &["worktree", "list"]);
    assert_eq!(list.lines().count(), 1, "{list}");
    // A second time there is nothing.
    let again = sandbox.try_remove(&checkout).unwrap();
    assert_eq!((again.saved, again.removed), (None, false));
}

#[test]
fn di48_a_clone_goes_with_the_empty_directories_above_it() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Clone);
    sandbox.try_remove(&checkout).unwrap();
    let items = sandbox.root.join(".work-items");
    assert_eq!(std::fs::read_dir(&items).unwrap().count(), 0);
    assert!(!sandbox.try_remove(&checkout).unwrap().removed);
}

#[test]
fn di48_discard_is_the_only_way_around_saving() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let checkout = sandbox.checkout(strategy);
        sandbox.write(&checkout.path, "README.md", "changed");
        std::fs::create_dir_all(sandbox.base.join("broken")).unwrap();
        std::fs::write(
            sandbox.base.join("saved"),
            "a file in the directory's place",
        )
        .unwrap();
        let before = sandbox.portrait(&checkout.path);
        assert!(matches!(
            sandbox.try_remove(&checkout),
            Err(RemoveError::SaveFailed(_))
        ));
        assert_eq!(sandbox.portrait(&checkout.path), before);
        let removed = sandbox
            .adapter()
            .remove(&sandbox.store(), &no_lock, &checkout, SavedWhy::Close, true)
            .unwrap();
        assert_eq!((removed.saved, removed.removed), (None, true));
        assert!(!checkout.path.exists());
    }
}

#[test]
fn di48_only_a_checkout_in_its_own_place_is_removed() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    let remove = |checkout: &Checkout| {
        sandbox
            .adapter()
            .remove(&sandbox.store(), &no_lock, checkout, SavedWhy::Reset, true)
    };
    for path in [
        sandbox.base.join("home"),
        sandbox.shared(),
        checkout.path.join("src"),
        checkout.path.join("../github-octo-repo-15"),
        checkout.path.parent().unwrap().to_owned(),
    ] {
        let other = Checkout {
            path: path.clone(),
            ..checkout.clone()
        };
        assert!(
            matches!(remove(&other), Err(RemoveError::NotOurs(_))),
            "{path}"
        );
        assert!(path.exists());
    }
    let none = Checkout {
        strategy: Strategy::None,
        ..checkout.clone()
    };
    assert!(matches!(remove(&none), Err(RemoveError::NotOurs(_))));

    // A link in its place, or on the way to it.
    let real = sandbox.base.join("real");
    std::fs::rename(&checkout.path, &real).unwrap();
    std::os::unix::fs::symlink(&real, &checkout.path).unwrap();
    assert!(matches!(remove(&checkout), Err(RemoveError::NotOurs(_))));
    std::fs::remove_file(&checkout.path).unwrap();
    std::fs::rename(&real, &checkout.path).unwrap();
    let above = sandbox.root.join(".worktrees/github.com");
    std::fs::rename(&above, &real).unwrap();
    std::os::unix::fs::symlink(&real, &above).unwrap();
    assert!(matches!(remove(&checkout), Err(RemoveError::NotOurs(_))));
    assert!(checkout.path.join("README.md").is_file());
}

#[test]
fn di48_links_in_a_checkout_are_not_followed() {
    let sandbox = Sandbox::new();
    let outside = sandbox.base.join("outside");
    sandbox.write(&outside, "precious", "p");
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let checkout = sandbox.checkout(strategy);
        std::os::unix::fs::symlink(&outside, checkout.path.join("link")).unwrap();
        std::os::unix::fs::symlink(&outside, checkout.path.join("target")).unwrap();
        let manifest = sandbox.remove(&checkout);
        assert!(outside.join("precious").is_file());
        let restored = sandbox.restore(&manifest);
        assert_eq!(look(&restored, b"link"), format!("link {outside}"));
    }
}

#[test]
fn di48_what_is_no_checkout_stays_unless_discarded() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    std::fs::remove_file(checkout.path.join(".git")).unwrap();
    assert!(matches!(
        sandbox.try_remove(&checkout),
        Err(RemoveError::SaveFailed(_))
    ));
    assert!(matches!(
        sandbox.adapter().unsaved(&checkout),
        Err(RemoveError::SaveFailed(_))
    ));
    assert!(checkout.path.join("README.md").is_file());
    sandbox
        .adapter()
        .remove(&sandbox.store(), &no_lock, &checkout, SavedWhy::Reset, true)
        .unwrap();
    assert!(!checkout.path.exists());
}

#[test]
fn di48_a_shared_clone_that_is_gone_leaves_its_worktrees_alone() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    std::fs::remove_dir_all(sandbox.shared()).unwrap();
    assert!(matches!(
        sandbox.try_remove(&checkout),
        Err(RemoveError::SaveFailed(_))
    ));
    assert!(checkout.path.join("README.md").is_file());
}

#[test]
fn st62_a_removal_that_failed_late_does_not_save_twice() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    sandbox.write(&checkout.path, "new.txt", "new");
    let busy = || Err("held by pid 7".to_owned());
    let failed =
        sandbox
            .adapter()
            .remove(&sandbox.store(), &busy, &checkout, SavedWhy::Stop, false);
    let Err(RemoveError::RemoveFailed { why, saved }) = failed else {
        panic!("{failed:?}");
    };
    assert!(why.contains("pid 7"));
    let manifest = sandbox.remove(&checkout);
    assert_eq!(saved.as_deref(), Some(&manifest));
    assert_eq!(sandbox.saved().len(), 1);
    assert_eq!(manifest.why, SavedWhy::Stop);

    // Other work in the same place is another bundle.
    let again = sandbox.checkout(Strategy::Worktree);
    sandbox.write(&again.path, "new.txt", "newer");
    let second = sandbox.remove(&again);
    assert_eq!(sandbox.saved().len(), 2);
    assert_eq!(second.name(), "github-octo-repo-15-20260301T091245Z");
}

#[test]
fn di48_removal_copes_with_read_only_directories() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let checkout = sandbox.checkout(strategy);
        sandbox.write(&checkout.path, "target/mod/file", "x");
        let dir = checkout.path.join("target/mod");
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o555)).unwrap();
        sandbox.try_remove(&checkout).unwrap();
        assert!(!checkout.path.exists());
        assert_eq!(sandbox.leftovers(), Vec::<String>::new());
    }
}
