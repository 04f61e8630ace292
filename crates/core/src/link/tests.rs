use proptest::prelude::*;

use super::*;

fn repo() -> RepoRef {
    RepoRef::new("github.com", "octo", "repo").unwrap()
}

fn links(body: &str) -> Vec<String> {
    let links = closing_links(body, &repo());
    links.iter().map(ToString::to_string).collect()
}

#[test]
fn in16_each_keyword_names_the_item_after_it() {
    let one = ["github:octo/repo#1"];
    for body in [
        "Closes #1",
        "closed: #1",
        "FIX\t#1.",
        "fixes: \u{a0}#1)",
        "resolved GH-1",
        "resolve octo/repo#1",
        "Fixes https://github.com/octo/repo/issues/1#issuecomment-5",
        "does not fix #1",
        "close #1, #2",
        "closes #1 and closes #1",
        "(closes #1)",
    ] {
        assert_eq!(links(body), one, "{body:?}");
    }
    let both = ["github:octo/repo#1", "github:octo/repo#2"];
    assert_eq!(links("fixes #1 and closes #2"), both);
    assert_eq!(links("closes other/repo#3"), ["github:other/repo#3"]);
}

#[test]
fn in16_what_github_does_not_link_is_no_link() {
    for body in [
        "closes:#1",
        "closes#1",
        "encloses #1",
        "pre-fix #1",
        "_close #1",
        "éclose #1",
        "closes\n#1",
        "closes #0",
        "closes #1a",
        "closes #",
        "closes #1234567890123456789",
        "closes https://evil.example/octo/repo/issues/1",
        "closes https://github.com/octo/repo/pull/1",
        "closes ../..#1",
        "closes a/b/c#1",
        "<!-- closes #1 -->",
        "```\ncloses #1\n```",
        "`closes #1`",
        "``closes ` #1``",
        "`closes` #1",
    ] {
        assert_eq!(links(body), [""; 0], "{body:?}");
    }
    assert_eq!(links("`a` closes #1 ``"), ["github:octo/repo#1"]);
}

#[test]
fn in16_a_body_of_keywords_is_read_up_to_a_bound() {
    let words: Vec<String> = (1..100).map(|n| format!("closes #{n}")).collect();
    let body = words.join("\n");
    assert_eq!(links(&body).len(), KEYWORD_LINKS_MAX);
}

#[test]
fn in15_a_branch_names_an_issue_as_a_word() {
    for (branch, number) in [
        ("issue-7", Some(7)),
        ("fix/issue/7-x", Some(7)),
        ("ISSUE-16-title", Some(16)),
        ("x_issue-3", Some(3)),
        ("issue-x-issue-4", Some(4)),
        ("reissue-5", None),
        ("issue_9", None),
        ("issue-", None),
        ("issue-0", None),
        ("issue", None),
        ("issue-1234567890123456789", None),
        ("ünïssue-5", None),
        ("", None),
    ] {
        assert_eq!(branch_issue(branch), number, "{branch}");
    }
}

proptest! {
    #[test]
    fn in16_no_body_and_no_branch_makes_it_panic(body in "(closes |fix: |#|`|\\PC|[0-9]|\n|<!--|```){0,60}") {
        let _ = closing_links(&body, &repo());
        let _ = branch_issue(&body);
    }
}
