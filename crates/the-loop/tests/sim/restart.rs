//! Relaunches with a renewed environment: tmux and agents that misbehave, and a crash or a failing call at every
//! call of one (seed 003; SE-57 to SE-60, DI-44, issue line 7).

use std::time::Duration;

use the_loop::disk::{Disk, OsDisk};
use the_loop::engine::restart::{RestartTarget, RestartWish, Restarted};
use the_loop::store::lock::Patience;
use the_loop_core::config::envfile::parse;
use the_loop_core::environment::Declared;
use the_loop_core::ids::WorkItemRef;
use the_loop_testkit::fake_tmux::FakeClient;
use the_loop_testkit::{Blow, Fuse, Simulator, Trouble};

use super::script::{ITEM, comment, send, started, story, target};

const OLD: &str = "TOKEN=old-value\n";
const NEW: &str = "TOKEN=new-value\n";

fn rotate(sim: &Simulator, text: &str) {
    let file = sim.layout.root().parent().unwrap().join("env");
    OsDisk.write_atomic(&file, text.as_bytes(), false).unwrap();
}

/// A machine with one session that has had its first turn, and an env file that has changed since.
fn rotated() -> Simulator {
    let sim = Simulator::running(", tmux: {resumeProbeSeconds: 1}", "env: {file: env}");
    rotate(&sim, OLD);
    started(&sim);
    rotate(&sim, NEW);
    sim
}

fn declared() -> Declared {
    Declared::of(&parse(NEW.as_bytes()).unwrap(), |_| false)
}

/// The relaunch as a verb beside the daemon does it. `None` when it did not get the item's lock.
fn verb(
    sim: &Simulator,
    blow: Option<(u64, Blow)>,
    wish: impl Fn(&mut RestartWish<'_>),
) -> (Option<Restarted>, Fuse) {
    let fuse = Fuse::new();
    let (engine, locks) = sim.verb(&fuse);
    if let Some((at, blow)) = blow {
        fuse.plan(fuse.calls() + at, blow);
    }
    let item: WorkItemRef = ITEM.parse().unwrap();
    let Ok(held) = locks.item(&item, "restart", Patience::none()) else {
        return (None, fuse);
    };
    let declared = declared();
    let mut wanted = RestartWish {
        declared: &declared,
        force: false,
        when_idle: None,
        actor: "operator",
    };
    wish(&mut wanted);
    let target = RestartTarget {
        item,
        endpoint: None,
    };
    (Some(engine.restart(&held, &target, &wanted)), fuse)
}

fn restart(sim: &Simulator) -> Restarted {
    verb(sim, None, |_| {}).0.unwrap()
}

fn words(done: &Restarted) -> (&str, &str) {
    (done.outcome.as_str(), &done.detail)
}

fn confirmed(sim: &Simulator, id: &str) {
    let done = sim.tick_until(400, |sim| sim.stands(id) == "confirmed");
    assert!(done, "{}\n{}", sim.stands(id), story(sim));
    assert_eq!(sim.taken().iter().filter(|t| *t == id).count(), 1);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}

fn token(sim: &Simulator) -> Option<String> {
    sim.tmux
        .server(|s| s.sessions[&target(ITEM)].env.get("TOKEN").cloned())
}

fn pid(sim: &Simulator) -> i32 {
    sim.tmux
        .server(|s| s.sessions.get(&target(ITEM)).map_or(0, |s| s.process.pid))
}

fn record(sim: &Simulator) -> serde_json::Value {
    let slug = ITEM.parse::<WorkItemRef>().unwrap().slug();
    let bytes = OsDisk
        .read(&sim.layout.session_record(&slug), 1 << 20)
        .unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn se59_the_same_session_and_conversation_with_the_new_values() {
    let sim = rotated();
    let before = pid(&sim);
    let done = restart(&sim);
    let expected = format!("pid {before} to {}, conversation resumed", pid(&sim));
    assert_eq!(
        words(&done),
        ("restarted", expected.as_str()),
        "{}",
        story(&sim)
    );
    assert_eq!(token(&sim).as_deref(), Some("new-value"));
    assert_eq!(
        sim.tmux.server(|s| (s.made.len(), s.respawned.len())),
        (1, 1)
    );
    assert_eq!(record(&sim)["pid"], pid(&sim));
    sim.tick_until(5, |_| false);
    assert!(sim.told("session.exited").is_empty(), "{}", story(&sim));
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(sim.taken(), ["start", "c"], "an idle agent is told nothing");
}

#[test]
fn se59_an_agent_in_its_work_is_told_as_a_confirmed_delivery() {
    let sim = rotated();
    sim.tmux
        .server(|server| server.mood.busy = Duration::from_hours(1));
    send(&sim, &comment("c", "Long work."));
    confirmed(&sim, "c");
    let idle = |wish: &mut RestartWish<'_>| wish.when_idle = Some(Duration::ZERO);
    let waits = verb(&sim, None, idle).0.unwrap();
    assert_eq!(
        words(&waits),
        ("skipped", "still working after 0 s; left running")
    );
    let done = restart(&sim);
    assert!(done.detail.ends_with(", told to go on"), "{}", done.detail);
    sim.tick_until(60, |sim| sim.taken().len() == 3);
    let taken = sim.taken();
    assert!(
        taken[2].starts_with("cli-environment-"),
        "{taken:?}\n{}",
        story(&sim)
    );
    confirmed(&sim, &taken[2]);
}

#[test]
fn se58_who_types_and_what_is_a_draft_are_left_alone_without_force() {
    let sim = rotated();
    let name = target(ITEM);
    let before = pid(&sim);
    let active_at = sim.clock.now().unix_ms() / 1000;
    let attach = |read_only| {
        let client = FakeClient {
            read_only,
            active_at,
        };
        sim.tmux
            .server(|s| s.sessions.get_mut(&name).unwrap().clients = vec![client]);
    };
    attach(false);
    let done = restart(&sim);
    assert_eq!(
        words(&done),
        ("skipped", "somebody types in it; left running (--force)")
    );
    attach(true);
    sim.tmux.types(&name, "half a thought");
    let done = restart(&sim);
    let draft = "somebody's words are in its input box; left running (--force)";
    assert_eq!(words(&done), ("skipped", draft));
    assert_eq!(pid(&sim), before);
    let done = verb(&sim, None, |wish| wish.force = true).0.unwrap();
    assert_eq!(done.outcome.as_str(), "restarted");
    assert_eq!(
        sim.tmux.server(|s| s.sessions[&name].clients.len()),
        1,
        "who watches watches on"
    );
}

#[test]
fn r2_2_an_agent_that_ends_at_once_is_failed_and_comes_back_with_its_next_event() {
    let sim = rotated();
    sim.tmux.server(|server| server.mood.exit_at_once = 1);
    let done = restart(&sim);
    let detail = "its agent ended at once (exit 1); its next event recovers it";
    assert_eq!(words(&done), ("failed", detail));
    assert_eq!(record(&sim)["status"], "active");
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(
        sim.told("session.respawned")[0]["resumed"],
        true,
        "{}",
        story(&sim)
    );
}

#[test]
fn r2_3_an_environment_that_cannot_be_read_is_unverified() {
    let sim = rotated();
    sim.tmux
        .server(|s| s.sessions.get_mut(&target(ITEM)).unwrap().secretive = true);
    let done = restart(&sim);
    assert_eq!(
        words(&done),
        ("unverified", "its environment could not be read")
    );
    assert!(!done.outcome.fails());
    assert_eq!(token(&sim).as_deref(), Some("new-value"));
}

#[test]
fn se61_tmux_that_refuses_is_told_in_its_words_and_nothing_is_told_to_the_agent() {
    let sim = rotated();
    sim.tmux
        .server(|server| server.mood.busy = Duration::from_secs(30));
    send(&sim, &comment("busy", "Work."));
    confirmed(&sim, "busy");
    sim.tmux.plan("respawn-pane", 0, 1, Trouble::Refuses);
    let done = restart(&sim);
    assert_eq!(done.outcome.as_str(), "failed");
    assert!(done.detail.contains("refused, as told"), "{}", done.detail);
    assert_eq!(sim.told("delivery.discarded").len(), 1, "{}", story(&sim));
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(sim.taken(), ["start", "busy", "c"]);
}

#[test]
fn se58_a_tmux_that_does_not_answer_leaves_everything_as_it_is() {
    for word in ["list-panes -s", "set-option -p"] {
        let sim = rotated();
        let before = (pid(&sim), record(&sim));
        sim.tmux.plan(word, 0, 1, Trouble::Hangs);
        let done = restart(&sim);
        assert_eq!(
            words(&done),
            ("skipped", "tmux gave no answer; left running"),
            "{word}"
        );
        assert_eq!((pid(&sim), record(&sim)), before, "{word}");
        assert!(sim.launch_files().is_empty());
    }
}

#[test]
fn se59_a_relaunch_of_which_tmux_says_nothing_is_known_by_its_pid() {
    let sim = rotated();
    sim.tmux.plan("respawn-pane", 0, 1, Trouble::HangsAfter);
    let done = restart(&sim);
    assert_eq!(done.outcome.as_str(), "restarted", "{}", done.detail);
    let sim = rotated();
    sim.tmux.plan("respawn-pane", 0, 1, Trouble::Hangs);
    let done = restart(&sim);
    assert_eq!(done.outcome.as_str(), "failed", "{}", done.detail);
    assert!(
        done.detail
            .starts_with("tmux gave no answer to the relaunch"),
        "{}",
        done.detail
    );
    // Nobody holds the item: the daemon settles it and brings the conversation back.
    let back = sim.tick_until(30, |sim| sim.tmux.live() == [target(ITEM)]);
    assert!(back, "{}", story(&sim));
    assert_eq!(token(&sim).as_deref(), Some("new-value"));
    assert!(sim.launch_files().is_empty());
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
}

#[test]
fn di18_an_agent_that_ignores_the_request_to_end_is_ended_before_the_new_one_begins() {
    let sim = rotated();
    sim.tmux.server(|server| server.mood.stubborn = true);
    let done = restart(&sim);
    assert_eq!(done.outcome.as_str(), "restarted", "{}", done.detail);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}

#[test]
fn di14_env_drift_and_env_fresh_are_said_once() {
    let sim = rotated();
    sim.tick_until(90, |_| false);
    let drift = sim.told("env.drift");
    assert_eq!(drift.len(), 1, "{}", story(&sim));
    assert_eq!(drift[0]["names"], serde_json::json!(["TOKEN"]));
    restart(&sim);
    sim.tick_until(90, |_| false);
    assert_eq!(sim.told("env.drift").len(), 1);
    assert_eq!(sim.told("env.fresh").len(), 1, "{}", story(&sim));
}

#[test]
fn r4_3_values_go_through_the_launchers_file_and_no_tmux_is_too_old_for_it() {
    let sim = rotated();
    restart(&sim);
    assert_eq!(token(&sim).as_deref(), Some("new-value"));
    let commands = sim.tmux.server(|server| server.log.clone());
    assert!(
        commands
            .iter()
            .any(|words| words.contains("respawn-pane -k"))
    );
    for words in commands {
        assert!(!words.contains("-value"), "{words}");
        assert!(!words.contains("TOKEN"), "{words}");
    }
}

/// The names of all calls of an undisturbed relaunch.
fn calls(busy: bool) -> Vec<String> {
    let sim = ready(busy);
    let before = {
        let fuse = Fuse::new();
        let _ = sim.verb(&fuse);
        fuse.calls()
    };
    let (done, fuse) = verb(&sim, None, |_| {});
    assert_eq!(
        done.unwrap().outcome.as_str(),
        "restarted",
        "{}",
        story(&sim)
    );
    fuse.log().split_off(before as usize)
}

fn ready(busy: bool) -> Simulator {
    let sim = rotated();
    if busy {
        sim.tmux
            .server(|server| server.mood.busy = Duration::from_hours(1));
        send(&sim, &comment("busy", "Long work."));
        confirmed(&sim, "busy");
    }
    sim
}

/// One relaunch with one blow; what was wrong after the dust has settled.
fn struck(busy: bool, at: u64, blow: Blow) -> Option<String> {
    let mut sim = ready(busy);
    let before = pid(&sim);
    let (done, fuse) = verb(&sim, Some((at, blow)), |_| {});
    // An agent that was left at its work comes to its end.
    sim.tmux.server(|server| server.mood.busy = Duration::ZERO);
    sim.clock.advance(Duration::from_mins(61));
    // Half of the crashes take the daemon with them.
    if fuse.crashed() && at.is_multiple_of(2) {
        sim.restart();
    }
    sim.tick_until(3, |_| false);
    send(&sim, &comment("c", "Words."));
    let heard = sim.tick_until(400, |sim| sim.stands("c") == "confirmed");
    sim.tick_until(3, |_| false);
    let mut faults = Vec::new();
    if !heard {
        faults.push(format!("c stands {}", sim.stands("c")));
    }
    if sim.tmux.live() != [target(ITEM)] {
        faults.push(format!("alive: {:?}", sim.tmux.live()));
    }
    let record = record(&sim);
    if record["status"] != "active" {
        faults.push(format!("the record says {}", record["status"]));
    }
    if record["pid"]
        .as_i64()
        .is_some_and(|recorded| recorded != i64::from(pid(&sim)))
    {
        faults.push(format!(
            "the record names {}, {} lives",
            record["pid"],
            pid(&sim)
        ));
    }
    let conversations = OsDisk
        .list(&sim.layout.demo_dir())
        .unwrap_or_default()
        .len();
    if conversations != 1 {
        faults.push(format!("{conversations} conversations"));
    }
    if !sim.launch_files().is_empty() {
        faults.push(format!("left: {:?}", sim.launch_files()));
    }
    faults.extend(sim.tmux.violations());
    let taken = sim.taken();
    for id in ["start", "c"] {
        let times = taken.iter().filter(|t| *t == id).count();
        if times != 1 {
            faults.push(format!("{id} was taken {times} times"));
        }
    }
    let told = taken
        .iter()
        .filter(|t| t.starts_with("cli-environment-"))
        .count();
    let replaced = pid(&sim) != before;
    if told > 1 || (told == 0 && busy && replaced && fuse.crashed()) {
        faults.push(format!("told {told} times to go on"));
    }
    (!faults.is_empty()).then(|| format!("{faults:?} after {done:?}\n{}", story(&sim)))
}

fn walk(busy: bool, blow: Blow) {
    let calls = calls(busy);
    assert!(calls.len() > 9, "{calls:#?}");
    let mut failed = Vec::new();
    for (at, name) in (1u64..).zip(&calls) {
        if let Some(wrong) = struck(busy, at, blow) {
            failed.push(format!("{at}: {name}: {wrong}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{blow:?} at {} of {} calls:\n{}",
        failed.len(),
        calls.len(),
        failed.join("\n")
    );
}

macro_rules! walks {
    ($($name:ident($busy:expr, $blow:expr);)*) => {$(
        #[test]
        fn $name() {
            walk($busy, $blow);
        }
    )*};
}

walks! {
    di44_a_restart_that_is_killed_before_any_call(false, Blow::CrashBefore);
    di44_a_restart_that_is_killed_after_any_call(false, Blow::CrashAfter);
    di44_a_restart_in_which_any_call_fails_once(false, Blow::FailOnce);
    di44_a_restart_in_which_any_call_works_and_says_nothing(false, Blow::FailAfter);
    di44_a_restart_of_a_working_agent_that_is_killed_before_any_call(true, Blow::CrashBefore);
    di44_a_restart_of_a_working_agent_that_is_killed_after_any_call(true, Blow::CrashAfter);
    di44_a_restart_of_a_working_agent_in_which_any_call_fails_once(true, Blow::FailOnce);
}
