//! Tokens, and what a limit on them stops (DI-37, DI-51, DI-52).

use std::time::Duration;

use the_loop_core::ids::WorkItemRef;
use the_loop_core::tokens::Usage;
use the_loop_testkit::Simulator;

use super::script::{ITEM, comment, comment_on, send, started, story};

const OTHER: &str = "github:octo/repo#16";

fn limits(more: &str) -> Simulator {
    let limits = format!(", limits: {{minFreeMemoryMb: 0, minFreeDiskMb: 0, {more}}}");
    let mut sim = Simulator::new(&limits, "");
    sim.start();
    sim
}

fn used(sim: &Simulator) -> Usage {
    let key = ITEM.parse::<WorkItemRef>().unwrap().key();
    sim.inbox().usage_of(&key).unwrap()
}

fn confirmed(sim: &Simulator, id: &str) {
    let done = sim.tick_until(120, |sim| sim.stands(id) == "confirmed");
    assert!(done, "{} {}\n{}", id, sim.stands(id), story(sim));
}

#[test]
fn di37_tokens_are_counted_once_over_all_runs() {
    let mut sim = limits("maxDeliveriesPerItemPerHour: 0");
    started(&sim);
    assert!(sim.tick_until(10, |sim| !used(sim).is_zero()));
    sim.tick_until(5, |_| false);
    let first = used(&sim);
    assert!(first.input > 0 && first.output > 0, "{first:?}");
    // Every run reads the transcript from its beginning.
    sim.restart();
    sim.tick_until(10, |_| false);
    assert_eq!(used(&sim), first);
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert!(sim.tick_until(10, |sim| used(sim).total() > first.total()));
    sim.tick_until(5, |_| false);
    let second = used(&sim);
    assert_eq!(second.output, 2 * first.output, "each answer is the same");
    // The next day is counted on its own.
    sim.clock.advance(Duration::from_hours(24));
    send(&sim, &comment("d", "Words."));
    confirmed(&sim, "d");
    assert!(sim.tick_until(10, |sim| used(sim).total() > second.total()));
    let today = sim.inbox().usage_on(&sim.clock.now().day()).unwrap();
    assert_eq!(today.total(), used(&sim).total() - second.total());
}

#[test]
fn di52_a_cap_on_an_item_parks_it_once_and_a_resume_lets_it_go() {
    let mut sim = limits("maxTokensPerItem: 1");
    started(&sim);
    let parked = |sim: &Simulator| sim.count("limit.parked", "reason", "tokens-per-item");
    assert!(
        sim.tick_until(10, |sim| parked(sim) == 1),
        "{}",
        story(&sim)
    );
    send(&sim, &comment("c", "Words."));
    send(&sim, &comment("d", "More."));
    assert!(sim.tick_until(10, |sim| sim.stands("c") == "queued(parked)"));
    sim.restart();
    sim.tick_until(30, |_| false);
    assert_eq!(parked(&sim), 1, "{}", story(&sim));
    assert_eq!(sim.count("delivery.held", "reason", "parked"), 1);
    assert!(!sim.taken().contains(&"c".to_owned()));
    send(&sim, &comment("go", "the-loop resume"));
    // Counting starts anew: the next prompt goes through, and its answer reaches the limit again.
    confirmed(&sim, "c");
    assert_eq!(sim.count("limit.released", "via", "comment"), 1);
    assert!(
        sim.tick_until(10, |sim| parked(sim) == 2),
        "{}",
        story(&sim)
    );
    sim.tick_until(20, |_| false);
    assert_eq!(sim.stands("d"), "queued(parked)");
}

#[test]
fn di52_a_cap_on_the_day_parks_the_machine_until_the_day_is_over() {
    let sim = limits("maxTokensPerDay: 1");
    started(&sim);
    let parked = |sim: &Simulator| sim.told("limit.parked").len();
    assert!(
        sim.tick_until(10, |sim| parked(sim) == 1),
        "{}",
        story(&sim)
    );
    let event = &sim.told("limit.parked")[0];
    assert_eq!(event["reason"], "tokens-per-day");
    assert_eq!(event.get("work_item"), None, "the whole machine");
    send(&sim, &comment("c", "Words."));
    send(&sim, &comment_on(OTHER, "o", "the-loop start"));
    let waits = |sim: &Simulator, id: &str| sim.stands(id) == "queued(parked)";
    assert!(
        sim.tick_until(20, |sim| waits(sim, "c") && waits(sim, "o")),
        "{}",
        story(&sim)
    );
    // An item's own resume is not the machine's.
    send(&sim, &comment("go", "the-loop resume"));
    assert!(sim.tick_until(10, |sim| sim.stands("go").starts_with("settled")));
    assert!(waits(&sim, "c"));
    assert_eq!(sim.told("limit.released").len(), 0);
    sim.clock.advance(Duration::from_hours(24));
    assert!(sim.tick_until(10, |sim| sim.count("limit.released", "via", "new-day") == 1));
    // The new day has the same limit: whichever is first, the other waits again.
    let one = |sim: &Simulator| {
        ["c", "o"].iter().any(|id| sim.stands(id) == "confirmed") && parked(sim) == 2
    };
    assert!(sim.tick_until(120, one), "{}", story(&sim));
}

#[test]
fn di52_an_operator_releases_the_machine() {
    let sim = limits("maxTokensPerDay: 1");
    started(&sim);
    assert!(sim.tick_until(10, |sim| sim.told("limit.parked").len() == 1));
    send(&sim, &comment("c", "Words."));
    assert!(sim.tick_until(10, |sim| sim.stands("c") == "queued(parked)"));
    let (was, limit) = sim.engine().release_machine("ada").unwrap();
    assert_eq!((was.as_str(), limit), ("tokens-per-day", 1));
    assert_eq!(sim.engine().release_machine("ada"), None);
    confirmed(&sim, "c");
    assert_eq!(sim.count("limit.released", "actor", "ada"), 1);
}
