//! Faults of the way, of the host and of what it says (IN-49, IN-51, IN-52).

use the_loop_testkit::fake_github::Fault;

use super::bench::{Bench, REPO};

fn followed() -> Bench {
    let mut bench = Bench::new();
    bench.change(|world| world.issue(REPO, 1, "octocat", &["loop"]));
    bench.session(1);
    bench.cycle();
    bench.passes(300);
    bench
}

fn status(status: u16, headers: &str, body: &str) -> Fault {
    Fault::Status(status, headers.to_owned(), body.to_owned())
}

#[test]
fn in52_whatever_a_list_answers_nothing_is_lost_and_nothing_ends() {
    for fault in [
        status(500, "", "<html>"),
        status(502, "", ""),
        status(200, "", "<html>"),
        status(200, "", "{}"),
        status(200, "", "[{\"number\": \"x\"}]"),
        status(200, "", "[[]]"),
        status(404, "", "{}"),
        Fault::Hangup,
        Fault::LeadsToItself,
        Fault::LeadsAway,
    ] {
        for list in [
            "issues?state=all",
            "issues/comments",
            "pulls/comments",
            "actions/runs",
        ] {
            let mut bench = followed();
            bench.change(|world| world.comment(REPO, 1, "octocat", "words"));
            bench.hub.fails(list, fault.clone());
            let tally = bench.cycle();
            assert_eq!(tally.errors, 1, "{list} {fault:?}");
            let told = bench.events("poll.provider_error");
            assert_eq!(told.len(), 1, "{list} {fault:?}");
            bench.passes(600);
            bench.cycle();
            assert_eq!(bench.told(), ["words"], "{list} {fault:?}");
        }
    }
}

#[test]
fn in51_a_host_that_wants_a_pause_is_left_alone_until_it_is_over() {
    for (fault, pause) in [
        (status(429, "retry-after: 90\r\n", "{}"), 90),
        (status(403, "retry-after: 90\r\n", "{}"), 90),
        (
            status(
                403,
                "",
                r#"{"message": "You have exceeded a secondary rate limit."}"#,
            ),
            60,
        ),
    ] {
        let mut bench = followed();
        bench.change(|world| world.comment(REPO, 1, "octocat", "words"));
        bench.asked();
        bench.hub.fails("issues?state=all", fault);
        let tally = bench.cycle();
        assert!(tally.interrupted);
        assert_eq!(tally.errors, 0, "a pause is no fault");
        assert_eq!(bench.asked().len(), 1);
        assert_eq!(bench.events("quota.throttled")[0]["retry_after_s"], pause);
        bench.passes(600);
        bench.cycle();
        assert_eq!(bench.told(), ["words"]);
    }
}

#[test]
fn in51_the_reserve_is_left_and_polling_goes_on_with_the_next_hour() {
    let mut bench = followed();
    let now = bench.now().unix_ms() / 1000;
    bench.hub.has_left(400, now + 1_800);
    bench.change(|world| world.comment(REPO, 1, "octocat", "words"));
    bench.cycle();
    bench.asked();
    bench.passes(300);
    bench.change(|world| world.comment(REPO, 1, "octocat", "more words"));
    let tally = bench.cycle();
    assert!(tally.interrupted);
    assert_eq!(bench.asked(), []);
    let low = bench.events("quota.low");
    assert_eq!(
        (low.len(), &low[0]["effect"]),
        (1, &"polling-paused".into())
    );
    bench.passes(1_800);
    bench.hub.has_left(5_000, now + 7_200);
    bench.cycle();
    assert!(bench.told().contains(&"more words".to_owned()));
}

#[test]
fn in52_a_refused_credential_is_told_once_and_asked_again_in_a_while() {
    let mut bench = followed();
    bench.asked();
    bench.hub.fails("issues?state=all", status(401, "", "{}"));
    bench.cycle();
    bench.cycle();
    assert_eq!(bench.asked().len(), 1);
    assert_eq!(bench.events("poll.provider_error").len(), 1);
    bench.passes(600);
    bench.change(|world| world.comment(REPO, 1, "octocat", "words"));
    bench.cycle();
    assert_eq!(bench.told(), ["words"]);
}

#[test]
fn in52_a_fault_in_one_item_keeps_the_others_going_and_is_tried_again() {
    let mut bench = followed();
    bench.change(|world| {
        world.issue(REPO, 2, "octocat", &["loop"]);
        world.comment(REPO, 1, "octocat", "words");
    });
    bench.hub.fails("issues/2/comments", status(404, "", "{}"));
    let tally = bench.cycle();
    assert_eq!(tally.errors, 1);
    assert_eq!(bench.told(), ["words"]);
    assert_eq!(
        bench.events("poll.item_error")[0]["work_item"],
        "github:octo/repo#2"
    );
    bench.cycle();
    assert_eq!(bench.events("poll.baselined").len(), 2);
}

#[test]
fn in52_a_stop_is_honoured_between_items_and_what_was_not_read_is_read_later() {
    let mut bench = followed();
    bench.change(|world| world.comment(REPO, 1, "octocat", "words"));
    bench
        .ending
        .store(true, std::sync::atomic::Ordering::SeqCst);
    assert!(bench.cycle().interrupted);
    bench
        .ending
        .store(false, std::sync::atomic::Ordering::SeqCst);
    bench.cycle();
    assert_eq!(bench.told(), ["words"]);
}

#[test]
fn cf16_a_github_app_is_a_credential_whose_tokens_are_renewed() {
    let mut bench = Bench::of_app();
    bench.change(|world| world.issue(REPO, 1, "octocat", &["loop"]));
    bench.session(1);
    assert_eq!(bench.cycle().errors, 0);
    let given = |bench: &Bench| {
        let asked = bench.asked();
        asked
            .iter()
            .filter(|(path, _)| path.ends_with("access_tokens"))
            .count()
    };
    assert_eq!(given(&bench), 1);
    bench.cycle();
    assert_eq!(given(&bench), 0, "one for an hour");
    bench.passes(3_400);
    bench.change(|world| world.comment(REPO, 1, "octocat", "words"));
    bench.cycle();
    assert_eq!(given(&bench), 1);
    assert_eq!(bench.told(), ["words"]);
}

#[test]
fn cf16_an_app_that_is_not_installed_is_told_and_its_key_is_nowhere() {
    let mut bench = Bench::of_app();
    bench.hub.fails("/installation", status(404, "", "{}"));
    assert_eq!(bench.cycle().errors, 1);
    let told = bench.events("poll.provider_error");
    assert_eq!(told[0]["error"], "the GitHub App: not found");
    let log = std::fs::read_to_string(bench.layout.events_log()).unwrap();
    assert!(
        !log.contains("PRIVATE KEY") && !log.contains("ghs_"),
        "{log}"
    );
}
