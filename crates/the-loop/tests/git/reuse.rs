//! Taking the checkout that is there, and what may be in its way.

use crate::*;

#[test]
fn di47_a_checkout_is_reused_as_it_is_without_asking_the_remote() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let request = sandbox.request(15, strategy);
        let path = sandbox.prepare(&request).path.unwrap();
        sandbox.git(&path, &["switch", "-q", "-c", "my-own"]);
        sandbox.write(&path, "README.md", "changed\n");
        std::fs::rename(&sandbox.origin, sandbox.base.join("gone")).unwrap();
        let again = sandbox.prepare(&request);
        assert!(!again.made && again.note.is_none());
        assert_eq!(again.branch.as_deref(), Some("my-own"));
        assert_eq!(
            std::fs::read_to_string(path.join("README.md")).unwrap(),
            "changed\n"
        );
    }
}

#[test]
fn di47_a_checkout_of_another_repository_is_refused() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let mut request = sandbox.request(15, strategy);
        let path = sandbox.prepare(&request).path.unwrap();
        request.source = Some(CloneSource::parse("https://u:secret@github.com/octo/repo").unwrap());
        let error = sandbox.try_prepare(&request).unwrap_err();
        assert!(!error.retryable());
        let text = error.to_string();
        assert!(
            text.contains("remote set-url") && !text.contains("secret"),
            "{text}"
        );
        // Another spelling of the same repository is taken over.
        sandbox.git(
            &path,
            &[
                "remote",
                "set-url",
                "origin",
                "git@github.com:Octo/repo.git",
            ],
        );
        assert!(!sandbox.prepare(&request).made);
        let url = sandbox.git(&path, &["config", "remote.origin.url"]);
        assert_eq!(url, "https://u:secret@github.com/octo/repo");
    }
}

#[test]
fn di47_what_is_no_checkout_is_left_alone() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let request = sandbox.request(15, strategy);
        let path = sandbox.prepare(&request).path.unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        sandbox.write(&path, "notes.txt", "mine");
        let error = sandbox.try_prepare(&request).unwrap_err();
        assert!(
            !error.retryable() && error.to_string().contains("in the way"),
            "{error}"
        );
        assert!(path.join("notes.txt").is_file());
        // An empty directory, and none, are nothing.
        std::fs::remove_file(path.join("notes.txt")).unwrap();
        assert!(sandbox.prepare(&request).made);
        std::fs::remove_dir_all(&path).unwrap();
        assert!(sandbox.prepare(&request).made);
        // A link to a checkout is none.
        std::fs::rename(&path, sandbox.base.join("real")).unwrap();
        std::os::unix::fs::symlink(sandbox.base.join("real"), &path).unwrap();
        assert!(sandbox.try_prepare(&request).is_err());
    }
}

#[test]
fn di45_a_link_inside_the_workspace_leads_nowhere() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let outside = sandbox.base.join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::create_dir(&sandbox.root).unwrap();
        for name in [".worktrees", ".work-items", "github.com"] {
            std::os::unix::fs::symlink(&outside, sandbox.root.join(name)).unwrap();
        }
        let error = sandbox
            .try_prepare(&sandbox.request(15, strategy))
            .unwrap_err();
        assert!(
            !error.retryable() && error.to_string().contains("in the way"),
            "{error}"
        );
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }
}

#[test]
fn di45_the_root_itself_may_be_a_link() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.base.join("disk2")).unwrap();
    std::os::unix::fs::symlink(sandbox.base.join("disk2"), &sandbox.root).unwrap();
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let checkout = sandbox.checkout(strategy);
        assert!(!sandbox.prepare(&sandbox.request(15, strategy)).made);
        sandbox.write(&checkout.path, "new", "new");
        let before = sandbox.portrait(&checkout.path);
        let manifest = sandbox.remove(&checkout);
        sandbox.restores_to(&manifest, &before);
        assert_eq!(sandbox.leftovers(), Vec::<String>::new());
    }
    let list = sandbox.git(&sandbox.shared(), &["worktree", "list"]);
    assert_eq!(list.lines().count(), 1, "{list}");
}

#[test]
fn di47_locks_of_dead_processes_go_and_those_of_live_ones_stay() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let request = sandbox.request(15, strategy);
        let path = sandbox.prepare(&request).path.unwrap();
        let lock = sandbox.git(&path, &["rev-parse", "--absolute-git-dir"]) + "/index.lock";
        std::fs::write(&lock, "").unwrap();
        sandbox.prepare(&request);
        sandbox.git(&path, &["add", "-A"]);

        std::fs::write(&lock, "").unwrap();
        let mut live = std::process::Command::new("git")
            .args(["cat-file", "--batch"])
            .current_dir(&path)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let error = sandbox.try_prepare(&request).unwrap_err();
        assert!(
            error.retryable() && error.to_string().contains("index.lock"),
            "{error}"
        );
        assert!(Utf8Path::new(&lock).exists());
        live.kill().unwrap();
        live.wait().unwrap();
    }
}

#[test]
fn di46_locks_that_a_killed_git_left_in_the_shared_clone_are_cleared() {
    let sandbox = Sandbox::new();
    sandbox.prepare(&sandbox.request(15, Strategy::Worktree));
    let git = sandbox.shared().join(".git");
    sandbox.push("main", "n", "n");
    for lock in ["refs/remotes/origin/main.lock", "config.lock"] {
        std::fs::write(git.join(lock), "").unwrap();
    }
    let work = sandbox.push("loop/github-octo-repo-16", "w.txt", "w");
    let path = sandbox
        .prepare(&sandbox.request(16, Strategy::Worktree))
        .cwd;
    assert_eq!(sandbox.git(&path, &["rev-parse", "HEAD"]), work);
}
