//! Checkouts of pull requests.

use crate::*;

fn pull(sandbox: &Sandbox, number: u64, strategy: Strategy, start: StartFrom) -> WorkspaceRequest {
    WorkspaceRequest {
        start,
        ..sandbox.request(number, strategy)
    }
}

#[test]
fn di46_a_pull_request_gets_its_head_branch_and_can_be_pushed() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let head = sandbox.push("fix/7", "fix.txt", "1");
        let start = StartFrom::PullHead("fix/7".to_owned());
        let request = pull(&sandbox, 8, strategy, start);
        let prepared = sandbox.prepare(&request);
        assert_eq!(prepared.branch.as_deref(), Some("fix/7"));
        assert_eq!(sandbox.git(&prepared.cwd, &["rev-parse", "HEAD"]), head);
        sandbox.write(&prepared.cwd, "fix.txt", "2");
        let next = sandbox.commit(&prepared.cwd, "more");
        sandbox.git(&prepared.cwd, &["push", "-q"]);
        assert_eq!(sandbox.git(&sandbox.origin, &["rev-parse", "fix/7"]), next);
    }
}

#[test]
fn di46_a_head_branch_that_came_back_is_brought_forward() {
    let sandbox = Sandbox::new();
    sandbox.push("fix", "fix.txt", "1");
    let request = pull(
        &sandbox,
        8,
        Strategy::Worktree,
        StartFrom::PullHead("fix".to_owned()),
    );
    let path = sandbox.prepare(&request).cwd;
    let checkout = Checkout {
        item: request.item.clone(),
        slug: request.slug.clone(),
        strategy: Strategy::Worktree,
        path,
    };
    assert!(sandbox.try_remove(&checkout).unwrap().saved.is_none());
    let newer = sandbox.push("fix", "fix.txt", "2");
    let path = sandbox.prepare(&request).cwd;
    assert_eq!(sandbox.git(&path, &["rev-parse", "HEAD"]), newer);
}

#[test]
fn di46_a_forks_head_is_read_through_the_pull_ref_and_never_pushed() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let head = sandbox.push("fork", "fork.txt", "1");
        sandbox.git(&sandbox.origin, &["update-ref", "refs/pull/8/head", &head]);
        sandbox.git(&sandbox.origin, &["update-ref", "-d", "refs/heads/fork"]);
        let request = pull(&sandbox, 8, strategy, StartFrom::PullRef);
        let prepared = sandbox.prepare(&request);
        assert_eq!(prepared.branch.as_deref(), Some("loop/github-octo-repo-8"));
        assert!(prepared.note.is_none());
        assert_eq!(sandbox.git(&prepared.cwd, &["rev-parse", "HEAD"]), head);
        sandbox.git_fails(&prepared.cwd, &["rev-parse", "@{upstream}"]);
        // Its commits are on the remote, so there is nothing to save.
        let checkout = Checkout {
            item: request.item,
            slug: request.slug,
            strategy,
            path: prepared.cwd,
        };
        assert!(sandbox.adapter().unsaved(&checkout).unwrap().is_empty());
        assert!(sandbox.try_remove(&checkout).unwrap().saved.is_none());
    }
}

#[test]
fn di46_without_a_pull_ref_it_starts_from_the_default_branch_and_says_so() {
    let sandbox = Sandbox::new();
    for (number, start) in [
        (8, StartFrom::PullRef),
        (9, StartFrom::PullHead("deleted".to_owned())),
        (10, StartFrom::PullHead("--upload-pack=touch x".to_owned())),
    ] {
        let request = pull(&sandbox, number, Strategy::Worktree, start);
        let prepared = sandbox.prepare(&request);
        assert!(prepared.note.unwrap().contains("default branch"));
        assert!(prepared.cwd.join("README.md").is_file());
        assert_eq!(prepared.branch.unwrap(), request.slug.branch());
    }
}

#[test]
fn di46_a_head_branch_checked_out_elsewhere_is_started_from() {
    let sandbox = Sandbox::new();
    let head = sandbox.push("fix", "fix.txt", "1");
    let start = StartFrom::PullHead("fix".to_owned());
    sandbox.prepare(&pull(&sandbox, 8, Strategy::Worktree, start.clone()));
    let prepared = sandbox.prepare(&pull(&sandbox, 9, Strategy::Worktree, start));
    assert_eq!(prepared.branch.unwrap(), "loop/github-octo-repo-9");
    assert!(prepared.note.unwrap().contains("checked out elsewhere"));
    assert_eq!(sandbox.git(&prepared.cwd, &["rev-parse", "HEAD"]), head);
}

#[test]
fn di47_a_pull_request_first_seen_by_a_comment_moves_to_its_head_when_clean() {
    for strategy in [Strategy::Worktree, Strategy::Clone] {
        let sandbox = Sandbox::new();
        let head = sandbox.push("fix", "fix.txt", "1");
        let first = sandbox.prepare(&pull(&sandbox, 8, strategy, StartFrom::PullRef));
        assert_eq!(first.branch.as_deref(), Some("loop/github-octo-repo-8"));
        let known = pull(&sandbox, 8, strategy, StartFrom::PullHead("fix".to_owned()));

        sandbox.write(&first.cwd, "work.txt", "w");
        let dirty = sandbox.prepare(&known);
        assert_eq!(dirty.branch.as_deref(), Some("loop/github-octo-repo-8"));
        assert!(dirty.note.unwrap().contains("not saved"));

        let work = sandbox.commit(&first.cwd, "work");
        assert!(sandbox.prepare(&known).note.is_some());
        assert_eq!(sandbox.git(&first.cwd, &["rev-parse", "HEAD"]), work);

        sandbox.git(
            &first.cwd,
            &["push", "-q", "origin", "HEAD:refs/heads/kept"],
        );
        let aside = sandbox.base.join("aside");
        std::fs::rename(&sandbox.origin, &aside).unwrap();
        let offline = sandbox.prepare(&known);
        assert!(offline.note.unwrap().contains("stays off"));
        std::fs::rename(&aside, &sandbox.origin).unwrap();
        let moved = sandbox.prepare(&known);
        assert!(!moved.made && moved.note.is_none());
        assert_eq!(moved.branch.as_deref(), Some("fix"));
        assert_eq!(sandbox.git(&moved.cwd, &["rev-parse", "HEAD"]), head);
        assert!(moved.cwd.join("fix.txt").is_file());
        assert_eq!(sandbox.git(&moved.cwd, &["status", "--porcelain"]), "");
    }
}
