use super::*;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

fn repo(text: &str) -> RepoRef {
    RepoRef::parse(text).unwrap()
}

fn slug(text: &str) -> Slug {
    text.parse::<crate::ids::WorkItemRef>().unwrap().slug()
}

#[test]
fn di45_paths_of_the_two_strategies() {
    let octo = repo("octo/repo");
    let item = slug("github:octo/repo#15");
    assert_eq!(shared_clone_path(&octo), "github.com/octo/repo");
    assert_eq!(
        checkout_path(Strategy::Worktree, &octo, &item).unwrap(),
        ".worktrees/github.com/octo/repo/github-octo-repo-15"
    );
    assert_eq!(
        checkout_path(Strategy::Clone, &octo, &item).unwrap(),
        ".work-items/github-octo-repo-15/github.com/octo/repo"
    );
    assert_eq!(checkout_path(Strategy::None, &octo, &item), None);
    let other = repo("localhost:3000/octo/repo");
    assert_eq!(shared_clone_path(&other), "localhost_3000/octo/repo");
    let local = RepoRef::new("", "octo", "repo").unwrap();
    assert_eq!(shared_clone_path(&local), "local/octo/repo");
}

#[test]
fn di48_only_the_items_own_place_may_be_removed() {
    let octo = repo("octo/repo");
    let item = slug("github:octo/repo#15");
    let of = |path: &'static str, strategy| workspace_of(path, strategy, &octo, &item);
    assert_eq!(
        of(
            "/w/.worktrees/github.com/octo/repo/github-octo-repo-15",
            Strategy::Worktree
        ),
        Some("/w")
    );
    for path in [
        "/.worktrees/github.com/octo/repo/github-octo-repo-15",
        "/w/x/../.worktrees/github.com/octo/repo/github-octo-repo-15",
        "/w/.worktrees/github.com/octo/repo/github-octo-repo-16",
        "/w/.worktrees/github.com/octo/repo/github-octo-repo-15/src",
        "/w/x.worktrees/github.com/octo/repo/github-octo-repo-15",
        "w/.worktrees/github.com/octo/repo/github-octo-repo-15",
        "/home/ada",
        "/",
        "",
    ] {
        assert_eq!(of(path, Strategy::Worktree), None, "{path}");
    }
    assert_eq!(
        of(
            "/w/.worktrees/github.com/octo/repo/github-octo-repo-15",
            Strategy::Clone
        ),
        None
    );
}

#[test]
fn di45_below_is_by_whole_parts() {
    assert!(is_below("/w", "/w/a"));
    assert!(is_below("/", "/a"));
    assert!(is_below("/w/", "/w/a"));
    for root in ["", "w", "/w//", "/w/.."] {
        assert!(!is_below(root, "/w/a"), "{root}");
    }
    for path in ["/w", "/w/", "/wa", "/w/../x", "/w//x", "/w/./x", "w/a", ""] {
        assert!(!is_below("/w", path), "{path}");
    }
}

#[test]
fn di46_temporary_names_are_nobodys() {
    let octo = repo("octo/repo");
    let name = making_name(&octo, "0123abcd");
    assert_eq!(name, "repo~0123abcd");
    assert!(is_making_name(&octo, &name));
    for other in [
        "repo",
        "repo~",
        "repo~0123ABCD",
        "repo~0123abcd0",
        "rep~0123abcd",
        "repo2~0123abcd",
    ] {
        assert!(!is_making_name(&octo, other), "{other}");
    }
    assert!(RepoRef::new("github.com", "octo", &name).is_err());
}

#[test]
fn di46_branch_names_of_strangers() {
    for good in [
        "main",
        "fix/issue-7",
        "loop/github-o-r-1",
        "é",
        "a.b",
        "x@y",
    ] {
        assert!(is_branch_name(good), "{good}");
    }
    for bad in [
        "",
        "-f",
        "--upload-pack=x",
        "a..b",
        "a b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "a*",
        "a[",
        "a\\b",
        "/a",
        "a/",
        "a//b",
        ".a",
        "a/.b",
        "a.lock",
        "a.lock/b",
        "a.",
        "@",
        "HEAD",
        "a@{1}",
        "a\nb",
        "a\0",
    ] {
        assert!(!is_branch_name(bad), "{bad:?}");
    }
    assert!(!is_branch_name(&"a".repeat(201)));
}

#[test]
fn clone_urls_by_protocol_and_override() {
    let mut settings = Settings::default();
    let url = |item: &str, settings: &Settings| {
        let item = item.parse().unwrap();
        CloneSource::of(&item, settings)
            .unwrap()
            .as_str()
            .to_owned()
    };
    let (octo, ported) = ("github:octo/repo#1", "github:ghe.example:8443/octo/repo#1");
    assert_eq!(url(octo, &settings), "https://github.com/octo/repo.git");
    assert_eq!(
        url(ported, &settings),
        "https://ghe.example:8443/octo/repo.git"
    );
    settings.routing.workspace.clone_protocol = CloneProtocol::Ssh;
    assert_eq!(url(octo, &settings), "ssh://git@github.com/octo/repo.git");
    assert_eq!(
        url(ported, &settings),
        "ssh://git@ghe.example/octo/repo.git"
    );
    let urls = &mut settings.integrations.github.clone_urls;
    for (from, to) in [
        ("github.com", "file:///srv/mirror/{owner}/{repo}.git"),
        ("GitHub.com/Octo/Special", "git@mirror:special.git"),
    ] {
        urls.insert(from.to_owned(), to.to_owned());
    }
    assert_eq!(url(octo, &settings), "file:///srv/mirror/octo/repo.git");
    assert_eq!(
        url("github:octo/special#1", &settings),
        "git@mirror:special.git"
    );
    assert_eq!(
        url(ported, &settings),
        "ssh://git@ghe.example/octo/repo.git"
    );
}

#[test]
fn local_repositories_are_declared() {
    let item = "local:octo/repo#1".parse().unwrap();
    let mut settings = Settings::default();
    assert_eq!(
        CloneSource::of(&item, &settings).unwrap_err().to_string(),
        "tracker.local.repos has no entry for octo/repo"
    );
    let repos = &mut settings.tracker.local.repos;
    repos.insert("Octo/Repo".to_owned(), "/srv/repo".to_owned());
    assert_eq!(
        CloneSource::of(&item, &settings).unwrap().as_str(),
        "/srv/repo"
    );
}

#[test]
fn sources_that_git_could_take_for_something_else() {
    for bad in [
        "",
        "-oProxyCommand=x:y",
        "--upload-pack=x",
        "ext::sh -c x",
        "relative/path",
        "repo",
        "https://",
        "javascript://x",
        "a\nb:c",
        ":x",
    ] {
        assert!(CloneSource::parse(bad).is_err(), "{bad:?}");
    }
    for good in [
        "/srv/x",
        "file:///srv/x",
        "git@github.com:o/r.git",
        "ssh://git@h:22/x",
        "http://localhost:3000/o/r.git",
    ] {
        assert!(CloneSource::parse(good).is_ok(), "{good:?}");
    }
}

#[test]
fn p11_user_parts_are_never_shown() {
    for (text, shown) in [
        ("https://u:p@h/x.git", "https://h/x.git"),
        ("https://u:p@ss@h/x.git", "https://h/x.git"),
        ("ssh://git@h:22/x", "ssh://h:22/x"),
        ("git@h:o/r.git", "h:o/r.git"),
        ("https://h/a@b", "https://h/a@b"),
        ("/srv/a@b:c", "/srv/a@b:c"),
        (
            "fatal: unable to access 'https://tok@h/x/': no",
            "fatal: unable to access 'https://h/x/': no",
        ),
        (
            "a https://t@h/x and http://k@i",
            "a https://h/x and http://i",
        ),
    ] {
        assert_eq!(strip_userinfo(text), shown);
    }
    let source = CloneSource::parse("https://u:secret@h/x.git").unwrap();
    assert!(!format!("{source} {source:?}").contains("secret"));
}

#[test]
fn di47_the_right_remote_whatever_its_spelling() {
    for (a, b) in [
        (
            "https://github.com/octo/repo.git",
            "git@github.com:Octo/Repo",
        ),
        (
            "https://t@github.com/octo/repo",
            "ssh://git@github.com:22/octo/repo.git",
        ),
        ("file:///srv/x/", "/srv/x"),
        ("/srv/x/.git", "/srv/x"),
    ] {
        assert!(same_repository(a, b), "{a} {b}");
    }
    for (a, b) in [
        (
            "https://github.com/octo/repo",
            "https://github.com/octo/repo2",
        ),
        ("https://github.com/octo/repo", "https://evil.com/octo/repo"),
        ("http://localhost:1/o/r", "http://localhost:2/o/r"),
        ("/srv/x", "/srv/X"),
        ("/srv/x.git", "/srv/x"),
        ("https://github.com/srv/x", "/srv/x"),
    ] {
        assert!(!same_repository(a, b), "{a} {b}");
    }
}

proptest! {
    #[test]
    fn nothing_panics_and_no_password_survives(text in ".{0,80}", pass in "[a-z]{12}") {
        let _ = (CloneSource::parse(&text), is_branch_name(&text), same_repository(&text, &text));
        let _ = is_below(&text, &text);
        let url = format!("{text} https://u:{pass}@h/x");
        prop_assert!(!strip_userinfo(&url).contains(&pass));
        prop_assert_eq!(strip_userinfo(&strip_userinfo(&url)), strip_userinfo(&url));
    }
}
