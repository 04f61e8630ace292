//! Conversations that outlive tmux servers and machines: who comes first, and what is said (DI-24, DI-41).

use serde_json::Value;
use the_loop::disk::{Disk, OsDisk};
use the_loop_core::ids::WorkItemRef;
use the_loop_testkit::{Simulator, Trouble};

use super::script::{ITEM, comment, comment_on, send, started, story, target};

pub fn confirmed(sim: &Simulator, id: &str) {
    let done = sim.tick_until(400, |sim| sim.stands(id) == "confirmed");
    assert!(done, "{}\n{}", sim.stands(id), story(sim));
    assert_eq!(sim.taken().iter().filter(|t| *t == id).count(), 1);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}

pub fn item(name: &str) -> WorkItemRef {
    name.parse().unwrap()
}

pub fn record(sim: &Simulator) -> Value {
    sim.record(&item(ITEM))
}

/// Changes the record as an older release or an operator's editor would.
pub fn edit(sim: &Simulator, name: &str, value: Value) {
    let mut record = record(sim);
    record[name] = value;
    let file = sim.layout.session_record(&item(ITEM).slug());
    let text = serde_json::to_vec_pretty(&record).unwrap();
    OsDisk.write_atomic(&file, &text, false).unwrap();
}

/// Replaces a piece of the configuration for the next life.
pub fn configure(sim: &Simulator, from: &str, to: &str) {
    let file = sim.layout.root().parent().unwrap().join("config.yaml");
    let text = String::from_utf8(OsDisk.read(&file, 1 << 20).unwrap()).unwrap();
    assert!(text.contains(from), "{text}");
    let text = text.replace(from, to);
    OsDisk.write_atomic(&file, text.as_bytes(), false).unwrap();
}

fn many(count: u64) -> Vec<String> {
    // Neither the order of names nor that of numbers is the order of age.
    (1..=count)
        .map(|n| format!("github:octo/repo#{}", n * 7 % 101))
        .collect()
}

fn all_started(sim: &Simulator, items: &[String]) {
    for name in items {
        send(sim, &comment_on(name, name, "the-loop start"));
        let up = sim.tick_until(60, |sim| sim.stands(name) == "confirmed");
        assert!(up, "{}\n{}", sim.stands(name), story(sim));
    }
}

fn targets(items: &[String]) -> Vec<String> {
    let mut targets: Vec<String> = items.iter().map(|name| target(name)).collect();
    targets.sort();
    targets
}

#[test]
fn di41_a_dead_server_is_one_event_and_all_come_back_oldest_first() {
    let items = many(12);
    let limits = ", limits: {minFreeMemoryMb: 0, minFreeDiskMb: 0, maxLiveSessions: 12}";
    let mut sim = Simulator::new(limits, "");
    sim.start();
    all_started(&sim, &items);
    sim.tmux.server(|server| server.made.clear());
    sim.tmux.server_dies();
    let back = |sim: &Simulator| sim.tmux.live().len() == 12;
    assert!(sim.tick_until(60, back), "{}", story(&sim));
    sim.tick_until(10, |_| false);
    assert_eq!(sim.tmux.live(), targets(&items));
    assert_eq!(sim.told("tmux.server_gone").len(), 1, "{}", story(&sim));
    assert_eq!(sim.told("tmux.server_gone")[0]["count"], 12);
    let told = sim.told("session.respawned");
    assert_eq!(told.len(), 12);
    assert!(told.iter().all(|event| event["resumed"] == true));
    // As many as may dispatch are in work side by side; within that the order is theirs.
    let made = sim.tmux.server(|server| server.made.clone());
    assert_eq!(made.len(), 12, "none twice: {made:?}");
    for (turn, name) in items.iter().enumerate() {
        let came = made.iter().position(|made| *made == target(name)).unwrap();
        assert!(
            came.abs_diff(turn) < 4,
            "{name} is {turn}, came {came}: {made:?}"
        );
    }
    assert_eq!(sim.conversations(), 12);
    assert_eq!(sim.taken(), items, "they are told nothing");
}

#[test]
fn di24_di41_a_reboot_brings_back_as_many_as_may_live_and_the_rest_in_their_turn() {
    let items = many(7);
    let limits = |max: u32| format!("maxLiveSessions: {max}");
    let mut sim = Simulator::new(
        &format!(
            ", limits: {{minFreeMemoryMb: 0, minFreeDiskMb: 0, {}}}",
            limits(7)
        ),
        "",
    );
    sim.start();
    all_started(&sim, &items);
    sim.die();
    sim.tmux.server_dies();
    configure(&sim, &limits(7), &limits(3));
    sim.start();
    sim.tick_until(30, |_| false);
    assert_eq!(sim.tmux.live(), targets(&items[..3]), "{}", story(&sim));
    assert_eq!(sim.told("tmux.server_gone").len(), 1);
    assert!(
        sim.told("session.spawn_failed").is_empty(),
        "{}",
        story(&sim)
    );
    for (ended, next) in [(0, 3), (1, 4)] {
        let stop = format!("stop {ended}");
        send(&sim, &comment_on(&items[ended], &stop, "the-loop stop"));
        let came = |sim: &Simulator| sim.tmux.live().contains(&target(&items[next]));
        assert!(sim.tick_until(30, came), "{}", story(&sim));
        assert_eq!(sim.tmux.live(), targets(&items[ended + 1..=next]));
    }
    // A delivery waits for a place before those that nobody wants anything of.
    let last = &items[6];
    send(&sim, &comment_on(last, "wanted", "Words."));
    let waits = |sim: &Simulator| sim.stands("wanted") == "queued(waiting-capacity)";
    assert!(sim.tick_until(10, waits), "{}", sim.stands("wanted"));
    send(&sim, &comment_on(&items[2], "stop 2", "the-loop stop"));
    confirmed(&sim, "wanted");
    assert!(!sim.tmux.live().contains(&target(&items[5])));
}

#[test]
fn di41_a_server_that_went_and_came_back_between_two_looks_is_told_of() {
    let items = many(3);
    let sim = Simulator::running("", "");
    all_started(&sim, &items);
    sim.tmux.server_dies();
    send(&sim, &comment_on(&items[2], "c", "Words."));
    // The delivery is performed before the supervisor looks again.
    sim.engine().work_now(&item(&items[2]));
    assert_eq!(sim.stands("c"), "confirmed", "{}", story(&sim));
    let gone = sim.told("tmux.server_gone");
    assert_eq!(gone.len(), 1, "{}", story(&sim));
    assert_eq!(gone[0]["count"], 3);
    let all = |sim: &Simulator| sim.tmux.live() == targets(&items);
    assert!(sim.tick_until(20, all), "{}", story(&sim));
    assert_eq!(sim.told("tmux.server_gone").len(), 1);
    assert_eq!(sim.told("session.respawned").len(), 3);
}

#[test]
fn di24_where_recovery_is_off_the_next_delivery_brings_it_back() {
    let mut sim = Simulator::running(", tmux: {recoverOnStart: false}", "");
    started(&sim);
    sim.tmux.server_dies();
    sim.tick_until(20, |_| false);
    sim.restart();
    sim.tick_until(20, |_| false);
    assert!(sim.tmux.live().is_empty(), "{}", story(&sim));
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(sim.told("session.respawned")[0]["resumed"], true);
}

#[test]
fn di41_a_tmux_that_does_not_start_sessions_is_not_asked_for_ever() {
    let sim = Simulator::running("", "");
    started(&sim);
    sim.tmux.server_dies();
    sim.tmux.plan("new-session", 0, 100_000, Trouble::Refuses);
    sim.tick_until(400, |_| false);
    let failed = sim.told("session.spawn_failed");
    assert_eq!(failed.len(), 3, "{}", story(&sim));
    assert_eq!(record(&sim)["status"], "active");
    sim.tmux.mend();
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(sim.told("session.respawned")[0]["resumed"], true);
    assert_eq!(sim.conversations(), 1);
}

#[test]
fn di24_a_recovery_without_an_answer_of_tmux_is_finished_later() {
    for trouble in [Trouble::Hangs, Trouble::HangsAfter] {
        let sim = Simulator::running("", "");
        started(&sim);
        sim.tmux.server_dies();
        sim.tmux.plan("new-session", 0, 1, trouble);
        sim.tmux.plan("list-panes -F", 3, 1, Trouble::Hangs);
        let back =
            |sim: &Simulator| sim.tmux.live().len() == 1 && record(sim)["status"] == "active";
        assert!(sim.tick_until(120, back), "{trouble:?}\n{}", story(&sim));
        assert_eq!(sim.tmux.violations(), Vec::<String>::new());
        send(&sim, &comment("c", "Words."));
        confirmed(&sim, "c");
        assert_eq!(sim.conversations(), 1, "{trouble:?}");
    }
}

#[test]
fn di24_an_agent_without_a_record_is_adopted_at_the_start() {
    let mut sim = Simulator::running("", "");
    started(&sim);
    let id = record(&sim)["harnessSessionId"].clone();
    sim.die();
    OsDisk
        .remove(&sim.layout.session_record(&item(ITEM).slug()))
        .unwrap();
    sim.start();
    assert_eq!(
        sim.count("session.adopted", "was", "none"),
        1,
        "{}",
        story(&sim)
    );
    assert_eq!(record(&sim)["harnessSessionId"], id);
    assert_eq!(record(&sim)["status"], "active");
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(sim.tmux.server(|s| s.made.len()), 1);
}
