//! What is new on items that are followed: words, reviews, runs, ends (IN-43, IN-44, IN-49, IN-50).

use the_loop_core::delivery::{Effect, Ending, Ingress};

use the_loop_testkit::fake_github::Fault;

use super::bench::{Bench, REPO};

/// A repository whose item 1 has a session.
fn followed() -> Bench {
    let mut bench = Bench::new();
    bench.change(|world| world.issue(REPO, 1, "octocat", &["loop"]));
    bench.session(1);
    bench.cycle();
    assert_eq!(bench.told(), [""; 0]);
    bench.passes(300);
    bench
}

#[test]
fn in44_words_come_in_the_order_of_their_creation_over_all_lists() {
    let mut bench = followed();
    bench.change(|world| world.pull(REPO, 7, "octocat", "feature", "Closes #1"));
    bench.cycle();
    bench.passes(1);
    bench.change(|world| world.comment(REPO, 1, "octocat", "first"));
    bench.passes(1);
    bench.change(|world| {
        let review = ("CHANGES_REQUESTED", "second");
        world.review(REPO, 7, "octocat", review, &["third", "fourth"]);
    });
    bench.passes(1);
    bench.change(|world| world.comment(REPO, 7, "octocat", "fifth"));
    bench.cycle();
    assert_eq!(
        bench.told(),
        ["first", "second", "third", "fourth", "fifth"]
    );
    let all = bench.deliveries();
    assert_eq!(
        all[2].place.as_ref().unwrap().path.as_deref(),
        Some("src/lib.rs")
    );
    assert!(all.iter().all(|d| d.ingress == Ingress::Poll));
    bench.cycle();
    assert_eq!(bench.told().len(), 5, "each once");
}

#[test]
fn in43_words_on_other_threads_are_dropped_unread_but_for_a_command() {
    let mut bench = followed();
    bench.change(|world| {
        world.issue(REPO, 2, "octocat", &[]);
        world.comment(REPO, 2, "octocat", "words");
        world.comment(REPO, 2, "mallory", "the-loop start");
        world.comment(REPO, 2, "octocat", "the-loop start");
    });
    bench.cycle();
    assert_eq!(bench.told(), ["the-loop start"]);
    assert_eq!(
        bench.deliveries()[0].actor.as_ref().unwrap().login,
        "octocat"
    );
}

#[test]
fn in44_an_old_comment_that_was_edited_is_not_new() {
    let mut bench = followed();
    let words = bench.change(|world| world.comment(REPO, 1, "octocat", "words"));
    bench.cycle();
    bench.passes(600);
    let now = bench.now().seconds();
    bench.change(|world| world.edit(words["id"].as_u64().unwrap(), "the-loop stop", &now));
    bench.cycle();
    assert_eq!(bench.told(), ["words"]);
}

#[test]
fn in44_words_that_were_changed_before_they_were_read_are_marked() {
    let mut bench = followed();
    let words = bench.change(|world| world.comment(REPO, 1, "octocat", "words"));
    bench.passes(10);
    let now = bench.now().seconds();
    bench.change(|world| {
        world.edit(words["id"].as_u64().unwrap(), "the-loop stop", &now);
        world.pull(REPO, 7, "octocat", "feature", "Closes #1");
    });
    bench.cycle();
    bench.passes(1);
    bench.change(|world| world.review(REPO, 7, "octocat", ("COMMENTED", ""), &["on a line"]));
    bench.cycle();
    let edited: Vec<(String, bool)> = bench
        .deliveries()
        .into_iter()
        .filter_map(|delivery| match delivery.effect {
            Effect::Text(text) => Some((text.body, text.edited)),
            _ => None,
        })
        .collect();
    // What was drafted with a review changed when that was submitted.
    let expected = [
        ("the-loop stop".to_owned(), true),
        ("on a line".to_owned(), false),
    ];
    assert_eq!(edited, expected);
}

#[test]
fn in44_our_own_comments_are_skipped_unlogged() {
    let mut bench = followed();
    let item = "github:octo/repo#1".parse().unwrap();
    let row = bench.change(|world| world.comment(REPO, 1, "octo-robot", "announced"));
    bench
        .inbox
        .add_own_comment(&item, row["node_id"].as_str().unwrap())
        .unwrap();
    bench.cycle();
    assert_eq!(bench.told(), [""; 0]);
    assert!(bench.events("delivery.accepted").is_empty());
}

#[test]
fn in43_a_pull_request_is_followed_by_its_body_or_its_branch() {
    for (branch, body) in [
        ("feature", "Fixes #1"),
        ("issue-1", ""),
        ("loop/issue-1-x", ""),
    ] {
        let mut bench = followed();
        bench.change(|world| {
            world.pull(REPO, 7, "octocat", branch, body);
            world.comment(REPO, 7, "octocat", "words");
        });
        // Its thread is read whole: what was said since the session lives counts.
        bench.cycle();
        assert_eq!(bench.told(), ["words"], "{branch} {body}");
    }
    let mut bench = followed();
    bench.change(|world| {
        world.pull(REPO, 7, "octocat", "other", "Fixes #9");
        world.comment(REPO, 7, "octocat", "words");
    });
    bench.cycle();
    assert_eq!(bench.told(), [""; 0]);
}

#[test]
fn in40_merge_conflicts_are_told_once_for_a_state_of_the_branch() {
    let mut bench = followed();
    bench.change(|world| {
        world.pull(REPO, 7, "octocat", "feature", "Closes #1");
        world.merges(REPO, 7, None);
    });
    bench.cycle();
    assert_eq!(bench.told(), [""; 0]);
    bench.change(|world| world.merges(REPO, 7, Some(false)));
    bench.change(|world| world.comment(REPO, 7, "octocat", "words"));
    bench.cycle();
    let told = bench.told();
    assert!(
        told.contains(&"check failure".to_owned()) && told.len() == 2,
        "{told:?}"
    );
    let found = bench
        .deliveries()
        .into_iter()
        .find(|d| d.action.as_deref() == Some("mergeable"));
    let Effect::Check(check) = found.unwrap().effect else {
        panic!("no check");
    };
    assert_eq!(check.name.as_deref(), Some("merge conflicts with main"));
    bench.restarts();
    bench.change(|world| world.comment(REPO, 7, "octocat", "more"));
    bench.cycle();
    assert_eq!(bench.told().len(), 3, "once for a state of its branch");
}

#[test]
fn in15_a_branch_of_a_fork_names_nothing_whatever_it_is_called() {
    let mut bench = followed();
    for (number, branch) in [
        (7, "issue-1"),
        (8, "loop/github-octo-repo-1"),
        (9, "issue-1$(reboot)"),
    ] {
        bench.change(|world| {
            world.pull(REPO, number, "mallory", branch, "");
            world.is_from_fork(REPO, number, "mallory/repo");
            world.comment(REPO, number, "mallory", "listen to me");
            world.run("mallory/repo", branch, "failure");
        });
    }
    bench.cycle();
    assert_eq!(bench.told(), [""; 0]);
}

#[test]
fn in14_a_pull_request_that_github_itself_links_is_followed() {
    let mut bench = followed();
    bench.change(|world| {
        world.pull(REPO, 7, "octocat", "feature", "no words of it");
        world.links.push((REPO.to_owned(), 7, 1));
        world.comment(REPO, 7, "octocat", "words");
    });
    bench.asked();
    bench.cycle();
    assert_eq!(bench.told(), ["words"]);
    let asked = bench.asked();
    let queries = asked.iter().filter(|(path, _)| path == "/graphql").count();
    assert_eq!(queries, 1, "{asked:?}");
    let found = bench.deliveries().remove(0).pull.unwrap();
    let linked: Vec<String> = found.references.iter().map(ToString::to_string).collect();
    assert_eq!(linked, ["github:octo/repo#1"]);
    // One when something moved, and none else.
    bench.cycle();
    assert!(!bench.asked().iter().any(|(path, _)| path == "/graphql"));
}

#[test]
fn in40_without_an_answer_about_links_branch_and_body_stand_alone() {
    let mut bench = followed();
    bench.change(|world| {
        world.pull(REPO, 7, "octocat", "feature", "Closes #1");
        world.comment(REPO, 7, "octocat", "words");
    });
    bench.hub.fails(
        "/graphql",
        Fault::Status(404, String::new(), "{}".to_owned()),
    );
    assert_eq!(bench.cycle().errors, 0);
    assert_eq!(bench.told(), ["words"]);
}

#[test]
fn in40_finished_runs_of_a_session_are_told() {
    let mut bench = followed();
    bench.change(|world| {
        world.run(REPO, "issue-1", "failure");
        world.run(REPO, "issue-99", "failure");
        world.run(REPO, "main", "success");
    });
    bench.cycle();
    assert_eq!(bench.told(), ["check failure"]);
    bench.cycle();
    assert_eq!(bench.told(), ["check failure"]);
}

#[test]
fn in49_a_closed_row_of_a_session_ends_it_and_names_who_closed_it() {
    let mut bench = followed();
    bench.change(|world| {
        world.comment(REPO, 1, "octocat", "thanks");
    });
    bench.passes(2);
    bench.change(|world| world.close(REPO, 1, "octocat", false));
    let tally = bench.cycle();
    assert_eq!(bench.told(), ["thanks", "Closed"]);
    assert_eq!(tally.closures, 1);
    let closed = bench.deliveries().remove(1);
    assert_eq!(closed.actor.unwrap().login, "octocat");
    let told = bench.events("poll.closure_detected");
    assert_eq!(
        (&told[0]["state"], &told[0]["kind"]),
        (&"closed".into(), &"issue".into())
    );
    bench.cycle();
    assert_eq!(bench.told().len(), 2, "once");
}

#[test]
fn in49_an_end_in_the_second_of_the_last_words_is_seen() {
    let mut bench = followed();
    bench.change(|world| world.comment(REPO, 1, "octocat", "thanks"));
    bench.cycle_now();
    assert_eq!(bench.told(), ["thanks"]);
    bench.change(|world| world.close(REPO, 1, "octocat", false));
    bench.cycle_now();
    assert_eq!(bench.told(), ["thanks", "Closed"]);
}

#[test]
fn in44_a_review_in_the_second_of_another_change_is_read() {
    let mut bench = followed();
    bench.change(|world| world.pull(REPO, 7, "octocat", "feature", "Closes #1"));
    bench.cycle_now();
    bench.passes(300);
    bench.change(|world| world.label(REPO, 7, "some", "octocat"));
    bench.cycle_now();
    // The row of the pull request stays as it is to the byte.
    bench.change(|world| world.review(REPO, 7, "octocat", ("APPROVED", "well done"), &["here"]));
    bench.cycle();
    assert_eq!(bench.told(), ["well done", "here"]);
    bench.asked();
    bench.cycle();
    let asked = bench.asked();
    assert!(
        !asked.iter().any(|(path, _)| path.contains("/reviews")),
        "{asked:?}"
    );
}

#[test]
fn in49_what_was_deleted_or_moved_is_found_by_asking_for_it() {
    for (status, to, ending) in [
        (410, "", Some(Ending::Deleted)),
        (301, "repos/octo/other/issues/31", Some(Ending::Transferred)),
        (404, "", None),
    ] {
        let mut bench = followed();
        let api = bench.hub.api();
        bench.change(|world| {
            world.issue("octo/other", 31, "octocat", &[]);
            let to = if to.is_empty() {
                String::new()
            } else {
                format!("{api}/{to}")
            };
            world.goes(REPO, 1, status, &to);
        });
        bench.restarts();
        bench.cycle();
        let ended: Vec<Ending> = bench
            .deliveries()
            .into_iter()
            .filter_map(|delivery| match delivery.effect {
                Effect::Close {
                    ending, moved_to, ..
                } => {
                    assert_eq!(moved_to.is_some(), ending == Ending::Transferred);
                    Some(ending)
                }
                _ => None,
            })
            .collect();
        assert_eq!(ended, ending.into_iter().collect::<Vec<_>>(), "{status}");
        let warned = bench.events("poll.item_error").len();
        assert_eq!(warned, usize::from(ending.is_none()), "{status}");
    }
}

#[test]
fn in49_a_renamed_repository_ends_nothing() {
    let mut bench = followed();
    let api = bench.hub.api();
    bench.change(|world| {
        world.issue("octo/renamed", 1, "octocat", &["loop"]);
        world.goes(REPO, 1, 301, &format!("{api}/repos/octo/renamed/issues/1"));
    });
    bench.restarts();
    bench.cycle();
    assert_eq!(bench.told(), [""; 0]);
}

#[test]
fn in50_a_night_off_is_caught_up_without_a_ledger() {
    let mut bench = Bench::with("  backfillOnStart: true\n");
    bench.change(|world| world.issue(REPO, 1, "octocat", &["loop"]));
    bench.session(1);
    let down = bench.now();
    bench.passes(3_600);
    bench.change(|world| {
        world.comment(REPO, 1, "octocat", "at night");
        world.issue(REPO, 2, "octocat", &["loop"]);
        world.comment(REPO, 2, "octocat", "the-loop start");
    });
    bench.passes(3_600);
    bench.backfill(down);
    assert_eq!(bench.told(), ["at night", "the-loop start"]);
    assert!(
        bench
            .deliveries()
            .iter()
            .all(|d| d.ingress == Ingress::Backfill)
    );
    let told = bench.events("poll.backfill");
    assert_eq!(
        (&told[0]["host"], &told[0]["count"]),
        (&"github.com".into(), &2.into())
    );
    // The poller comes to the same, once.
    bench.cycle();
    assert_eq!(bench.told().len(), 2);
}
