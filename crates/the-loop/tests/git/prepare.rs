//! Making and reusing checkouts of tickets.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::*;

#[test]
fn di45_without_a_root_the_session_works_in_spawn_workdir() {
    let sandbox = Sandbox::empty();
    let mut request = sandbox.request(15, Strategy::Worktree);
    request.root = None;
    let prepared = sandbox.prepare(&request);
    assert_eq!(prepared.cwd, sandbox.base);
    assert_eq!(
        (prepared.strategy, prepared.path, prepared.made),
        (Strategy::None, None, false)
    );
    request.spawn_workdir = sandbox.base.join("gitconfig");
    assert!(!sandbox.try_prepare(&request).unwrap_err().retryable());
    request.spawn_workdir = sandbox.base.join("nowhere");
    assert!(!sandbox.try_prepare(&request).unwrap_err().retryable());
}

#[test]
fn di45_a_worktree_and_its_shared_clone_lie_where_they_should() {
    let sandbox = Sandbox::new();
    let prepared = sandbox.prepare(&sandbox.request(15, Strategy::Worktree));
    let path = sandbox
        .root
        .join(".worktrees/github.com/octo/repo/github-octo-repo-15");
    assert_eq!(prepared.path.as_ref(), Some(&path));
    assert_eq!(prepared.branch.unwrap(), "loop/github-octo-repo-15");
    assert!(prepared.made && prepared.note.is_none());
    assert_eq!(
        std::fs::read_to_string(path.join("README.md")).unwrap(),
        "hello\n"
    );
    assert!(sandbox.shared().join(".git").is_dir());
    assert_eq!(sandbox.git(&path, &["status", "--porcelain"]), "");
    assert_eq!(sandbox.leftovers(), Vec::<String>::new());
    let list = sandbox.git(&sandbox.shared(), &["worktree", "list", "--porcelain"]);
    assert!(
        list.contains(path.as_str()) && !list.contains("locked"),
        "{list}"
    );
    // It survives what a person may run at any time.
    sandbox.git(&sandbox.shared(), &["worktree", "prune"]);
    sandbox.git(&path, &["status"]);
}

#[test]
fn di45_a_clone_lies_where_it_should() {
    let sandbox = Sandbox::new();
    let prepared = sandbox.prepare(&sandbox.request(15, Strategy::Clone));
    let path = sandbox
        .root
        .join(".work-items/github-octo-repo-15/github.com/octo/repo");
    assert_eq!(prepared.path.as_ref(), Some(&path));
    assert_eq!(prepared.branch.unwrap(), "loop/github-octo-repo-15");
    assert!(path.join(".git").is_dir() && path.join("src/lib.rs").is_file());
    assert!(!sandbox.shared().exists());
    assert_eq!(sandbox.leftovers(), Vec::<String>::new());
}

#[test]
fn di45_a_local_trackers_repository_is_cloned_from_its_path() {
    let sandbox = Sandbox::new();
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let item: WorkItemRef = "local:octo/repo#3".parse().unwrap();
        let request = WorkspaceRequest {
            slug: item.slug(),
            item,
            source: Some(CloneSource::parse(sandbox.base.join("seed").as_str()).unwrap()),
            ..sandbox.request(3, strategy)
        };
        let path = sandbox.prepare(&request).path.unwrap();
        assert!(path.join("README.md").is_file());
        assert!(path.as_str().contains("/local/octo/repo"), "{path}");
        assert!(!sandbox.prepare(&request).made);
    }
}

#[test]
fn di46_a_second_item_shares_the_clone_and_sees_new_commits() {
    let sandbox = Sandbox::new();
    sandbox.prepare(&sandbox.request(15, Strategy::Worktree));
    sandbox.push("main", "new.txt", "new\n");
    let prepared = sandbox.prepare(&sandbox.request(16, Strategy::Worktree));
    assert!(prepared.path.unwrap().join("new.txt").is_file());
}

#[test]
fn di46_the_default_branch_is_the_remotes_also_after_it_changed() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        sandbox.push("trunk", "trunk.txt", "x\n");
        sandbox.prepare(&sandbox.request(15, strategy));
        sandbox.git(
            &sandbox.origin,
            &["symbolic-ref", "HEAD", "refs/heads/trunk"],
        );
        let path = sandbox
            .prepare(&sandbox.request(16, strategy))
            .path
            .unwrap();
        assert!(path.join("trunk.txt").is_file());
        // Detached, and naming a branch that is not there.
        let main = sandbox.git(&sandbox.origin, &["rev-parse", "main"]);
        sandbox.git(
            &sandbox.origin,
            &["update-ref", "--no-deref", "HEAD", &main],
        );
        let path = sandbox
            .prepare(&sandbox.request(17, strategy))
            .path
            .unwrap();
        assert!(!path.join("trunk.txt").exists() && path.join("README.md").is_file());
        sandbox.git(
            &sandbox.origin,
            &["symbolic-ref", "HEAD", "refs/heads/none"],
        );
        let path = sandbox
            .prepare(&sandbox.request(18, strategy))
            .path
            .unwrap();
        assert!(!path.join("trunk.txt").exists() && path.join("README.md").is_file());
    }
}

#[test]
fn di46_a_repository_without_a_commit_gives_an_unborn_branch() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::empty();
        let request = sandbox.request(15, strategy);
        let prepared = sandbox.prepare(&request);
        assert_eq!(prepared.branch.as_deref(), Some("loop/github-octo-repo-15"));
        assert!(!sandbox.prepare(&request).made);
        let path = prepared.path.unwrap();
        sandbox.write(&path, "a", "a");
        sandbox.commit(&path, "first");
        sandbox.git(&path, &["push", "-q", "origin", "HEAD:main"]);
    }
}

#[test]
fn di46_an_items_earlier_branch_goes_on_and_is_only_moved_forward() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    let first = sandbox.git(&checkout.path, &["rev-parse", "HEAD"]);
    assert!(sandbox.try_remove(&checkout).unwrap().saved.is_none());
    let newer = sandbox.push("main", "new.txt", "new\n");
    let again = sandbox.checkout(Strategy::Worktree);
    assert_eq!(sandbox.git(&again.path, &["rev-parse", "HEAD"]), newer);
    assert_ne!(first, newer);

    sandbox.write(&again.path, "work.txt", "w");
    let work = sandbox.commit(&again.path, "work");
    sandbox.remove(&again);
    sandbox.push("main", "newer.txt", "newer\n");
    let third = sandbox.checkout(Strategy::Worktree);
    assert_eq!(sandbox.git(&third.path, &["rev-parse", "HEAD"]), work);
}

#[test]
fn di46_a_pushed_branch_of_the_item_is_continued_on_another_machine() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let work = sandbox.push("loop/github-octo-repo-15", "w.txt", "w");
        let prepared = sandbox.prepare(&sandbox.request(15, strategy));
        let path = prepared.path.unwrap();
        assert_eq!(sandbox.git(&path, &["rev-parse", "HEAD"]), work);
        let upstream = sandbox.git(&path, &["rev-parse", "--abbrev-ref", "@{upstream}"]);
        assert_eq!(upstream, "origin/loop/github-octo-repo-15");
    }
}

#[test]
fn di46_a_branch_checked_out_elsewhere_gets_another_and_a_note() {
    let sandbox = Sandbox::new();
    let checkout = sandbox.checkout(Strategy::Worktree);
    sandbox.write(&checkout.path, "work.txt", "w");
    let work = sandbox.commit(&checkout.path, "work");
    sandbox.remove(&checkout);
    let elsewhere = sandbox.base.join("elsewhere");
    let branch = "loop/github-octo-repo-15";
    sandbox.git(
        &sandbox.shared(),
        &["worktree", "add", "-q", elsewhere.as_str(), branch],
    );
    let prepared = sandbox.prepare(&sandbox.request(15, Strategy::Worktree));
    assert_eq!(prepared.branch.unwrap(), "loop/github-octo-repo-15-2");
    assert!(prepared.note.unwrap().contains("checked out elsewhere"));
    let head = sandbox.git(&prepared.cwd, &["rev-parse", "HEAD"]);
    assert_eq!(head, work);
}

#[test]
fn a_failing_remote_is_told_apart_from_a_wrong_one() {
    let sandbox = Sandbox::new();
    let mut request = sandbox.request(15, Strategy::Worktree);
    request.source = Some(CloneSource::parse("/nowhere/repo.git").unwrap());
    assert!(!sandbox.try_prepare(&request).unwrap_err().retryable());
    request.source = Some(CloneSource::parse("http://127.0.0.1:9/octo/repo.git").unwrap());
    assert!(sandbox.try_prepare(&request).unwrap_err().retryable());
    request.source = None;
    let error = sandbox.try_prepare(&request).unwrap_err();
    assert!(
        !error.retryable() && error.to_string().contains("octo/repo"),
        "{error}"
    );
    let missing = Git::new(&sandbox.world, "no-such-git", SLOW);
    let request = sandbox.request(15, Strategy::Worktree);
    let error = missing.prepare(&request, &no_lock, &never).unwrap_err();
    assert!(!error.retryable(), "{error}");
    let busy = || Err("the shared clone is busy".to_owned());
    let error = sandbox
        .adapter()
        .prepare(&request, &busy, &never)
        .unwrap_err();
    assert!(error.retryable(), "{error}");
    assert_eq!(sandbox.leftovers(), Vec::<String>::new());
    assert!(sandbox.prepare(&request).made);
}

#[test]
fn st25_slow_outside_work_gives_way() {
    let sandbox = Sandbox::new();
    let hangs = sandbox.base.join("hangs");
    std::fs::write(
        &hangs,
        format!("#!/bin/sh\necho $$ > {hangs}.pid\nexec sleep 600\n"),
    )
    .unwrap();
    std::fs::set_permissions(&hangs, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut world = sandbox.world.clone();
    let mut env = (*world.env).clone();
    env.insert("GIT_SSH_COMMAND".to_owned(), hangs.to_string());
    world.env = Arc::new(env);
    let mut request = sandbox.request(15, Strategy::Worktree);
    request.source = Some(CloneSource::parse("ssh://git@localhost/octo/repo.git").unwrap());
    let started = hangs.with_extension("pid");
    let wanted = || started.exists();
    let error = Git::new(&world, "git", SLOW)
        .prepare(&request, &no_lock, &wanted)
        .unwrap_err();
    assert_eq!(error, WorkspaceError::GaveWay);
    let pid = std::fs::read_to_string(&started).unwrap();
    assert_eq!(OsProcesses.started(pid.trim().parse().unwrap()), None);
    // Nobody waits any more.
    assert!(
        sandbox
            .prepare(&sandbox.request(15, Strategy::Worktree))
            .made
    );
    assert_eq!(sandbox.leftovers(), Vec::<String>::new());
}

#[test]
fn no_hook_of_the_repository_or_the_operator_runs() {
    let sandbox = Sandbox::new();
    let hooks = sandbox.base.join("hooks");
    std::fs::create_dir(&hooks).unwrap();
    let ran = sandbox.base.join("ran");
    for name in [
        "post-checkout",
        "pre-commit",
        "post-index-change",
        "reference-transaction",
    ] {
        let hook = hooks.join(name);
        std::fs::write(&hook, format!("#!/bin/sh\necho {name} >> {ran}\n")).unwrap();
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    }
    let config = sandbox.base.join("gitconfig");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}[core]\nhooksPath={hooks}\n")).unwrap();
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let checkout = sandbox.checkout(strategy);
        std::fs::write(checkout.path.join("new"), "new").unwrap();
        sandbox.remove(&checkout);
    }
    assert!(!ran.exists(), "{:?}", std::fs::read_to_string(&ran));
}

#[test]
fn variables_of_an_outer_git_do_not_lead_astray() {
    let sandbox = Sandbox::new();
    let mut world = sandbox.world.clone();
    let mut env = (*world.env).clone();
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
    ] {
        env.insert(name.to_owned(), sandbox.base.join("seed/.git").to_string());
    }
    world.env = Arc::new(env);
    let git = Git::new(&world, "git", SLOW);
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let request = sandbox.request(15, strategy);
        let prepared = git.prepare(&request, &no_lock, &never).unwrap();
        assert!(prepared.cwd.join("README.md").is_file());
    }
}

#[test]
fn di46_items_of_one_repository_are_prepared_at_once() {
    let sandbox = Sandbox::new();
    let mutex: Arc<Mutex<()>> = Arc::default();
    let inside = AtomicUsize::new(0);
    let overlapped = AtomicBool::new(false);
    struct Held(#[allow(dead_code, reason = "held, not read")] std::sync::mpsc::Sender<()>);
    let lock = || -> Result<Box<dyn Send>, String> {
        // A guard that may be dropped on any thread: its owner waits for the channel to close.
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel::<()>();
        let mutex = mutex.clone();
        std::thread::spawn(move || {
            let _guard = mutex.lock();
            let _ = ready.send(());
            let _ = receive.recv();
        });
        is_ready.recv().map_err(|e| e.to_string())?;
        Ok(Box::new(Held(send)))
    };
    std::thread::scope(|scope| {
        for number in 1..=4 {
            let (sandbox, lock, inside, overlapped) = (&sandbox, &lock, &inside, &overlapped);
            scope.spawn(move || {
                if inside.fetch_add(1, Ordering::SeqCst) > 0 {
                    overlapped.store(true, Ordering::SeqCst);
                }
                let request = sandbox.request(number, Strategy::Worktree);
                let prepared = sandbox.adapter().prepare(&request, lock, &never).unwrap();
                assert!(prepared.cwd.join("README.md").is_file());
                inside.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    assert!(overlapped.load(Ordering::SeqCst));
    let list = sandbox.git(&sandbox.shared(), &["worktree", "list"]);
    assert_eq!(list.lines().count(), 5, "{list}");
    assert_eq!(sandbox.leftovers(), Vec::<String>::new());
}
