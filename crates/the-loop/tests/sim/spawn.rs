//! Spawns: the table of DI-16, adoption, harnesses that die, and limits (DI-22, DI-23, DI-51, DI-52).

use std::collections::BTreeMap;

use the_loop_testkit::Simulator;

use super::script::{ITEM, comment, comment_on, send, started, story, target};

fn confirmed(sim: &Simulator, id: &str) {
    let done = sim.tick_until(400, |sim| sim.stands(id) == "confirmed");
    assert!(done, "{}\n{}", sim.stands(id), story(sim));
    assert_eq!(sim.taken().iter().filter(|t| *t == id).count(), 1);
}

/// Something lives under the item's name that nobody registered.
fn stranger(sim: &Simulator, env: BTreeMap<String, String>, argv: &[&str]) {
    let argv = argv.iter().map(|word| (*word).to_owned()).collect();
    sim.tmux.server(|server| {
        server.add(&target(ITEM), "/".into(), argv, env);
    });
}

#[test]
fn di23_a_live_session_without_our_mark_is_refused_and_left_alone() {
    let sim = Simulator::running("", "");
    stranger(&sim, BTreeMap::new(), &["vim"]);
    send(&sim, &comment("start", "the-loop start"));
    let over = sim.tick_until(2_000, |sim| sim.stands("start").starts_with("abandoned"));
    assert!(over, "{}\n{}", sim.stands("start"), story(&sim));
    let failed = sim.told("session.spawn_failed");
    assert_eq!(failed.len(), 3);
    let remedy = failed[0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("kill-session -t =loop-"), "{remedy}");
    assert_eq!(sim.tmux.live(), [target(ITEM)]);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}

#[test]
fn di23_a_live_session_with_our_mark_is_adopted() {
    let mut sim = Simulator::running("", "");
    started(&sim);
    sim.die();
    let slug = ITEM
        .parse::<the_loop_core::ids::WorkItemRef>()
        .unwrap()
        .slug();
    the_loop::disk::Disk::remove(&the_loop::disk::OsDisk, &sim.layout.session_record(&slug))
        .unwrap();
    sim.start();
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(sim.told("session.adopted").len(), 1);
    assert_eq!(sim.tmux.server(|s| s.made.len()), 1);
}

#[test]
fn di16_a_dead_session_is_cleared_before_a_spawn() {
    let sim = Simulator::running("", "");
    stranger(&sim, BTreeMap::new(), &["vim"]);
    sim.tmux.agent_dies(&target(ITEM));
    started(&sim);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}

#[test]
fn di22_a_harness_that_ends_at_once_is_told_with_its_words_and_tried_again() {
    let sim = Simulator::running("", "");
    sim.tmux.server(|server| server.mood.exit_at_once = 1);
    started(&sim);
    let failed = sim.told("session.spawn_failed");
    assert_eq!(failed.len(), 1, "{}", story(&sim));
    assert_eq!(failed[0]["tail"], "demo-agent: told to exit");
    assert_eq!(sim.taken(), ["start"]);
}

#[test]
fn di39_a_lost_conversation_is_followed_by_a_fresh_one() {
    let sim = Simulator::running("", "");
    started(&sim);
    sim.tmux.server(|server| server.mood.exit_at_once = 1);
    sim.tmux.agent_dies(&target(ITEM));
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(
        sim.told("session.resume_failed").len(),
        1,
        "{}",
        story(&sim)
    );
    assert_eq!(sim.told("session.respawned")[0]["resumed"], false);
}

#[test]
fn p2_p6_a_prompt_that_was_taken_by_a_process_that_ended_at_once_is_not_sent_again() {
    for first in [true, false] {
        let sim = Simulator::running("", "");
        if !first {
            started(&sim);
            sim.tmux.agent_dies(&target(ITEM));
        }
        sim.tmux.server(|server| server.mood.exit_with_prompt = 1);
        let id = if first { "start" } else { "c" };
        let body = if first { "the-loop start" } else { "Words." };
        send(&sim, &comment(id, body));
        confirmed(&sim, id);
        send(&sim, &comment("next", "More words."));
        confirmed(&sim, "next");
        let respawned = sim.told("session.respawned");
        assert_eq!(
            respawned.last().unwrap()["resumed"],
            true,
            "{}",
            story(&sim)
        );
        assert_eq!(
            sim.told("session.resume_failed").len(),
            0,
            "{}",
            story(&sim)
        );
    }
}

#[test]
fn di24_a_reboot_brings_the_conversation_back_without_a_word() {
    let mut sim = Simulator::running("", "");
    started(&sim);
    sim.die();
    sim.tmux.server_dies();
    sim.start();
    assert_eq!(sim.tmux.live(), [target(ITEM)], "{}", story(&sim));
    assert_eq!(sim.taken(), ["start"]);
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
}

#[test]
fn di21_a_slow_harness_is_waited_for() {
    let sim = Simulator::running("", "");
    sim.tmux
        .server(|server| server.mood.slow_start = std::time::Duration::from_secs(90));
    send(&sim, &comment("start", "the-loop start"));
    confirmed(&sim, "start");
    assert_eq!(sim.count("delivery.held", "reason", "not-ready"), 1);
    assert_eq!(sim.told("session.spawned").len(), 1);
}

#[test]
fn di52_the_rate_limit_parks_and_a_resume_releases() {
    let limits = ", limits: {minFreeMemoryMb: 0, minFreeDiskMb: 0, maxDeliveriesPerItemPerHour: 2}";
    let mut sim = Simulator::new(limits, "");
    sim.start();
    started(&sim);
    send(&sim, &comment("one", "First."));
    confirmed(&sim, "one");
    send(&sim, &comment("two", "Second."));
    send(&sim, &comment("three", "Third."));
    let parked = sim.tick_until(20, |sim| sim.stands("two") == "queued(parked)");
    assert!(parked, "{}\n{}", sim.stands("two"), story(&sim));
    sim.restart();
    sim.tick_until(60, |_| false);
    assert_eq!(sim.stands("two"), "queued(parked)");
    assert_eq!(sim.told("limit.parked").len(), 1);
    send(&sim, &comment("resume", "the-loop resume"));
    confirmed(&sim, "two");
    confirmed(&sim, "three");
    assert_eq!(sim.told("limit.released").len(), 1);
    assert_eq!(sim.taken(), ["start", "one", "two", "three"]);
}

#[test]
fn di51_those_who_wait_for_room_are_served_in_the_order_of_their_deliveries() {
    let limits = ", limits: {minFreeMemoryMb: 0, minFreeDiskMb: 0, maxLiveSessions: 1}";
    let mut sim = Simulator::new(limits, "");
    sim.start();
    let items = [
        "github:octo/repo#15",
        "github:octo/repo#9",
        "github:octo/repo#1",
    ];
    for item in items {
        send(&sim, &comment_on(item, item, "the-loop start"));
    }
    confirmed(&sim, items[0]);
    sim.tick_until(30, |_| false);
    assert_eq!(sim.stands(items[1]), "queued(waiting-capacity)");
    assert_eq!(sim.tmux.server(|s| s.made.len()), 1);
    for pair in items.windows(2) {
        let stop = format!("stop {}", pair[0]);
        send(&sim, &comment_on(pair[0], &stop, "the-loop stop"));
        confirmed(&sim, pair[1]);
    }
    assert_eq!(sim.taken(), items);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}
