//! Agents that need somebody, told once over all runs of the program (DI-31, DI-32, DI-51).

use std::time::Duration;

use the_loop::disk::{Disk, OsDisk};
use the_loop_core::ids::WorkItemRef;
use the_loop_testkit::Simulator;

use super::script::{ITEM, comment, send, started, story, target};

fn slug() -> the_loop_core::ids::Slug {
    ITEM.parse::<WorkItemRef>().unwrap().slug()
}

fn limits(more: &str) -> Simulator {
    let limits = format!(", limits: {{minFreeMemoryMb: 0, minFreeDiskMb: 0, {more}}}");
    let mut sim = Simulator::new(&limits, "");
    sim.start();
    started(&sim);
    sim
}

#[test]
fn di31_a_wait_is_told_once_and_the_next_one_again() {
    let mut sim = Simulator::running("", "");
    started(&sim);
    let name = target(ITEM);
    sim.tmux.server(|server| server.mood.ask = 2);
    send(&sim, &comment("asks", "Do it."));
    assert!(sim.tick_until(20, |sim| sim.tmux.asks(&name)));
    sim.tick_until(50, |_| false);
    assert_eq!(sim.told("session.waiting").len(), 0, "{}", story(&sim));
    assert!(
        sim.tick_until(30, |sim| sim.count("session.waiting", "kind", "permission")
            == 1)
    );
    // Another run of the program knows what the last one told.
    sim.restart();
    sim.tick_until(100, |_| false);
    assert_eq!(sim.told("session.waiting").len(), 1, "{}", story(&sim));
    sim.tmux.types(&name, "y");
    assert!(sim.tick_until(20, |sim| sim.stands("asks") == "confirmed"));
    send(&sim, &comment("again", "And that."));
    assert!(sim.tick_until(20, |sim| sim.tmux.asks(&name)));
    let twice = |sim: &Simulator| sim.told("session.waiting").len() == 2;
    assert!(sim.tick_until(80, twice), "{}", story(&sim));
    sim.tick_until(80, |_| false);
    assert!(twice(&sim), "{}", story(&sim));
}

#[test]
fn di32_a_turn_without_a_sign_of_life_is_told_once_and_never_ended() {
    let mut sim = limits("stallMinutes: 1");
    sim.tmux
        .server(|server| server.mood.busy = Duration::from_hours(5));
    send(&sim, &comment("long", "Think."));
    assert!(sim.tick_until(30, |sim| sim.stands("long") == "confirmed"));
    sim.tick_until(50, |_| false);
    assert_eq!(sim.told("session.stalled").len(), 0, "{}", story(&sim));
    let told = |sim: &Simulator| sim.told("session.stalled").len() == 1;
    assert!(sim.tick_until(30, told), "{}", story(&sim));
    sim.restart();
    sim.tick_until(150, |_| false);
    assert!(told(&sim), "{}", story(&sim));
    assert_eq!(sim.tmux.live(), [target(ITEM)]);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}

#[test]
fn di51_an_idle_agent_is_ended_and_its_conversation_is_taken_up() {
    let mut sim = limits("idleStopAfterHours: 0.02");
    let over = |sim: &Simulator| sim.told("limit.idle_stopped").len() == 1;
    assert!(sim.tick_until(200, over), "{}", story(&sim));
    sim.engine().wait_for_workers();
    assert_eq!(sim.tmux.live(), [] as [String; 0]);
    sim.tick_until(3, |_| false);
    let exits = sim.told("session.exited");
    assert_eq!(exits.len(), 1, "{}", story(&sim));
    assert_eq!(exits[0]["expected"], true);
    // A start of the daemon brings back what died, not what was ended.
    sim.restart();
    sim.tick_until(30, |_| false);
    assert_eq!(sim.tmux.live(), [] as [String; 0], "{}", story(&sim));
    send(&sim, &comment("c", "Words."));
    assert!(
        sim.tick_until(60, |sim| sim.stands("c") == "confirmed"),
        "{}",
        story(&sim)
    );
    let back = sim.told("session.respawned");
    assert_eq!(back.len(), 1, "{}", story(&sim));
    assert_eq!(back[0]["resumed"], true);
}

#[test]
fn di51_a_draft_keeps_an_idle_agent_alive() {
    let sim = limits("idleStopAfterHours: 0.02");
    sim.tmux.types(&target(ITEM), "half a thought");
    sim.tick_until(200, |_| false);
    sim.engine().wait_for_workers();
    assert_eq!(sim.told("limit.idle_stopped").len(), 0, "{}", story(&sim));
    assert_eq!(sim.tmux.composer(&target(ITEM)), "half a thought");
}

#[test]
fn di29_hooks_that_are_silent_are_told_once() {
    let sim = Simulator::running("", "");
    sim.tmux.server(|server| server.mood.no_hooks = true);
    started(&sim);
    for id in ["c", "d"] {
        send(&sim, &comment(id, "Words."));
        assert!(sim.tick_until(120, |sim| sim.stands(id) == "confirmed"));
    }
    assert_eq!(sim.count("hook.silent", "next", "transcript"), 1);
    assert_eq!(sim.told("hook.silent").len(), 1, "{}", story(&sim));
}

#[test]
fn di31_lines_of_a_hook_file_that_cannot_be_read_are_told_and_skipped() {
    let sim = Simulator::running("", "");
    started(&sim);
    let file = sim.layout.hook_file(&slug());
    OsDisk.append(&file, b"not json\n{\"hook\":1}\n").unwrap();
    let told = |sim: &Simulator| sim.told("hook.malformed").len() == 1;
    assert!(sim.tick_until(5, told), "{}", story(&sim));
    let event = &sim.told("hook.malformed")[0];
    assert_eq!(event["count"], 2);
    assert_eq!(
        event["file"],
        format!("local/hooks/{}.jsonl", slug().as_str())
    );
    send(&sim, &comment("c", "Words."));
    assert!(sim.tick_until(30, |sim| sim.stands("c") == "confirmed"));
    assert!(told(&sim));
}
