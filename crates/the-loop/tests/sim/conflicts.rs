//! Merge conflicts reach the session of their pull request, and so does their end (IN-31, IN-32).

use the_loop_core::delivery::State;
use the_loop_testkit::{FakeGithub, Simulator};

const REPO: &str = "octo/repo";

fn has_open(sim: &Simulator) -> bool {
    let ends = [State::Confirmed, State::Settled, State::Dropped];
    sim.rows().iter().any(|row| !ends.contains(&row.state))
}

#[test]
fn in32_merge_conflicts_are_told_to_the_session_and_then_that_they_are_gone() {
    let hub = FakeGithub::start();
    let sim = Simulator::polling(&hub);
    let mut poller = sim.poller();
    let mut moves = |words: &str, mergeable: Option<bool>| {
        sim.clock.advance(std::time::Duration::from_secs(130));
        let now = sim.clock.now().unix_ms() / 1_000;
        hub.change(|world| {
            world.now = Some(now);
            world.merges(REPO, 7, mergeable);
            world.comment(REPO, 7, "mallory", words);
        });
        poller.cycle();
        // What GitHub is asked in between takes its time by the wall clock.
        let is_at_rest = |sim: &Simulator| !has_open(sim);
        assert!(sim.tick_until(2_000, is_at_rest), "{:?}", sim.rows());
    };
    let now = sim.clock.now().unix_ms() / 1_000;
    hub.change(|world| {
        world.now = Some(now);
        world.issue(REPO, 1, "ada", &["the-loop: auto-execute"]);
        world.comment(REPO, 1, "ada", "the-loop start");
        world.pull(REPO, 7, "ada", "feature", "Closes #1");
    });
    moves("nothing yet", None);
    assert_eq!(sim.told("session.spawned").len(), 1);
    moves("a conflict", Some(false));
    moves("the same", Some(false));
    moves("it is gone", Some(true));
    moves("and stays so", Some(true));
    let told: Vec<String> = sim
        .rows()
        .into_iter()
        .filter(|row| row.delivery_id.starts_with("poll-merge-"))
        .map(|row| {
            format!(
                "{} {}",
                row.delivery_id.rsplit('-').next().unwrap(),
                row.state
            )
        })
        .collect();
    assert_eq!(told, ["failure confirmed", "success confirmed"]);
    assert_eq!(sim.taken().len(), 3);
}
