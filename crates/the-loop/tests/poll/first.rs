//! Repositories and items that are seen for the first time (IN-42, IN-45, IN-46).

use the_loop_core::record::ControlCommand;

use super::bench::{Bench, REPO};

#[test]
fn in42_in45_a_new_repository_is_history_but_for_the_last_command() {
    let mut bench = Bench::new();
    bench.change(|world| {
        world.issue(REPO, 1, "octocat", &["loop"]);
        world.comment(REPO, 1, "octocat", "words from before");
        world.comment(REPO, 1, "octocat", "the-loop start");
        world.issue(REPO, 2, "octocat", &["loop"]);
        world.comment(REPO, 2, "octocat", "nobody started this");
        world.issue(REPO, 3, "octocat", &[]);
        world.comment(REPO, 3, "octocat", "the-loop start");
    });
    bench.passes(300);
    let tally = bench.cycle();
    assert_eq!(bench.told(), ["the-loop start"]);
    assert_eq!((tally.comments_forwarded, tally.errors), (1, 0));
    let baselined = bench.events("poll.baselined");
    assert_eq!(baselined.len(), 2, "{baselined:?}");
    assert_eq!(baselined[0]["work_item"], "github:octo/repo#1");
    assert_eq!(
        (&baselined[0]["comments"], &baselined[0]["commands"]),
        (&1.into(), &1.into())
    );
    // What is said from now on is told; what was history stays so, also after a restart.
    bench.restarts();
    bench.cycle();
    bench.passes(5);
    bench.change(|world| world.comment(REPO, 1, "octocat", "a new one"));
    bench.cycle();
    assert_eq!(bench.told(), ["the-loop start", "a new one"]);
}

#[test]
fn in45_a_command_from_before_the_last_close_is_over() {
    let mut bench = Bench::new();
    bench.change(|world| {
        world.issue(REPO, 1, "octocat", &["loop"]);
        world.comment(REPO, 1, "octocat", "the-loop start");
    });
    bench.passes(60);
    bench.change(|world| world.close(REPO, 1, "octocat", false));
    bench.passes(60);
    bench.change(|world| world.reopen(REPO, 1, "octocat"));
    bench.cycle();
    assert_eq!(bench.told(), [""; 0]);
}

#[test]
fn in45_an_edited_command_is_history() {
    let mut bench = Bench::new();
    bench.change(|world| {
        world.issue(REPO, 1, "octocat", &["loop"]);
        let words = world.comment(REPO, 1, "octocat", "words");
        world.edit(
            words["id"].as_u64().unwrap(),
            "the-loop start",
            "2027-01-15T09:00:00Z",
        );
    });
    bench.cycle();
    assert_eq!(bench.told(), [""; 0]);
}

#[test]
fn in46_an_item_whose_start_is_recorded_and_whose_session_is_missed_is_asked_for() {
    let mut bench = Bench::new();
    bench.change(|world| world.issue(REPO, 1, "octocat", &["loop"]));
    bench.recorded(1, ControlCommand::Start);
    bench.cycle();
    assert_eq!(bench.told(), ["presence"]);
    let asked = bench.deliveries().remove(0);
    assert_eq!(asked.actor.unwrap().login, "octocat");
    assert!(
        asked
            .delivery_id
            .starts_with("poll-presence-github:octo/repo#1-")
    );
    // Once for each change of it, and again in an hour.
    bench.cycle();
    bench.cycle();
    assert_eq!(bench.told(), ["presence"]);
    bench.passes(3_600);
    bench.cycle();
    assert_eq!(bench.told(), ["presence", "presence"]);
}

#[test]
fn in46_what_is_held_or_has_a_session_is_not_asked_for() {
    for command in [
        ControlCommand::Stop,
        ControlCommand::Pause,
        ControlCommand::Cleanup,
    ] {
        let mut bench = Bench::new();
        bench.change(|world| world.issue(REPO, 1, "octocat", &["loop"]));
        bench.recorded(1, command);
        bench.cycle();
        assert_eq!(bench.told(), [""; 0], "{command:?}");
    }
    let mut bench = Bench::new();
    bench.change(|world| world.issue(REPO, 1, "octocat", &["loop"]));
    bench.recorded(1, ControlCommand::Start);
    bench.session(1);
    bench.cycle();
    assert_eq!(bench.told(), [""; 0]);
}

#[test]
fn in46_without_a_start_somebody_authorised_has_to_stand_behind_a_session() {
    let mut bench = Bench::free();
    bench.change(|world| {
        world.issue(REPO, 1, "octocat", &["loop"]);
        world.issue(REPO, 2, "mallory", &[]);
        world.label(REPO, 2, "loop", "octocat");
        world.issue(REPO, 3, "mallory", &[]);
        world.label(REPO, 3, "loop", "mallory");
    });
    bench.cycle();
    let asked: Vec<u64> = bench.deliveries().iter().map(|d| d.item.number()).collect();
    assert_eq!(asked, [1, 2]);
    let told = bench.events("poll.unauthorized");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        (&told[0]["work_item"], &told[0]["actor"]),
        (&"github:octo/repo#3".into(), &"mallory".into())
    );
    bench.change(|world| world.comment(REPO, 3, "mallory", "please"));
    bench.cycle();
    assert_eq!(
        bench.events("poll.unauthorized").len(),
        1,
        "once an item and run"
    );
}
