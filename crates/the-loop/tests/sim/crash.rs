//! A crash, or a failing call, at every call of a scripted run (DI-44).

use the_loop_testkit::{Blow, Simulator, Trouble};

use super::script::{Script, comment, faults, play, send, story};

/// How many parts the calls are dealt to, so that they are walked side by side.
const PARTS: u64 = 4;

/// Calls of the undisturbed script, and their names.
fn calls(script: Script) -> Vec<String> {
    let mut sim = Simulator::running("", "");
    let before = sim.fuse.calls();
    play(&mut sim, script);
    let found = faults(&sim, script);
    assert!(found.is_empty(), "{found:?}\n{}", story(&sim));
    sim.fuse.log().split_off(before as usize)
}

/// Plays the script with one blow, and another one in the life after it where asked; what was wrong.
fn struck(script: Script, at: u64, blow: Blow, again: Option<u64>) -> Option<String> {
    let outcome = std::panic::catch_unwind(|| {
        let mut sim = Simulator::running("", "");
        sim.fuse.plan(sim.fuse.calls() + at, blow);
        if let Some(again) = again {
            sim.plan_next_life(again, blow);
        }
        play(&mut sim, script);
        (faults(&sim, script), story(&sim))
    });
    match outcome {
        Ok((found, _)) if found.is_empty() => None,
        Ok((found, story)) => Some(format!("{found:?}\n{story}")),
        Err(_) => Some("it does not end".to_owned()),
    }
}

/// Walks every `PARTS`th call from `part` on.
fn walk(script: Script, part: u64, blow: Blow) {
    let calls = calls(script);
    let mut failed = Vec::new();
    for (at, name) in (1u64..).zip(&calls) {
        if at % PARTS == part
            && let Some(wrong) = struck(script, at, blow, None)
        {
            failed.push(format!("{at}: {name}: {wrong}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{script:?}, {blow:?} at {} of {} calls:\n{}",
        failed.len(),
        calls.len(),
        failed.join("\n")
    );
}

macro_rules! walks {
    ($($name:ident($script:ident, $part:expr, $blow:expr);)*) => {$(
        #[test]
        fn $name() {
            walk(Script::$script, $part, $blow);
        }
    )*};
}

walks! {
    di44_a_crash_before_any_call_loses_and_doubles_nothing_0(Talk, 0, Blow::CrashBefore);
    di44_a_crash_before_any_call_loses_and_doubles_nothing_1(Talk, 1, Blow::CrashBefore);
    di44_a_crash_before_any_call_loses_and_doubles_nothing_2(Talk, 2, Blow::CrashBefore);
    di44_a_crash_before_any_call_loses_and_doubles_nothing_3(Talk, 3, Blow::CrashBefore);
    di44_a_crash_after_any_call_loses_and_doubles_nothing_0(Talk, 0, Blow::CrashAfter);
    di44_a_crash_after_any_call_loses_and_doubles_nothing_1(Talk, 1, Blow::CrashAfter);
    di44_a_crash_after_any_call_loses_and_doubles_nothing_2(Talk, 2, Blow::CrashAfter);
    di44_a_crash_after_any_call_loses_and_doubles_nothing_3(Talk, 3, Blow::CrashAfter);
    p1_a_call_that_fails_once_loses_and_doubles_nothing_0(Talk, 0, Blow::FailOnce);
    p1_a_call_that_fails_once_loses_and_doubles_nothing_1(Talk, 1, Blow::FailOnce);
    p1_a_call_that_fails_once_loses_and_doubles_nothing_2(Talk, 2, Blow::FailOnce);
    p1_a_call_that_fails_once_loses_and_doubles_nothing_3(Talk, 3, Blow::FailOnce);
    p1_a_call_that_works_and_says_nothing_doubles_nothing_0(Talk, 0, Blow::FailAfter);
    p1_a_call_that_works_and_says_nothing_doubles_nothing_1(Talk, 1, Blow::FailAfter);
    p1_a_call_that_works_and_says_nothing_doubles_nothing_2(Talk, 2, Blow::FailAfter);
    p1_a_call_that_works_and_says_nothing_doubles_nothing_3(Talk, 3, Blow::FailAfter);
    di44_di39_a_crash_before_any_call_of_a_recovery_leaves_no_twin_and_no_orphan_0(Recovery, 0, Blow::CrashBefore);
    di44_di39_a_crash_before_any_call_of_a_recovery_leaves_no_twin_and_no_orphan_1(Recovery, 1, Blow::CrashBefore);
    di44_di39_a_crash_before_any_call_of_a_recovery_leaves_no_twin_and_no_orphan_2(Recovery, 2, Blow::CrashBefore);
    di44_di39_a_crash_before_any_call_of_a_recovery_leaves_no_twin_and_no_orphan_3(Recovery, 3, Blow::CrashBefore);
    di44_di39_a_crash_after_any_call_of_a_recovery_leaves_no_twin_and_no_orphan_0(Recovery, 0, Blow::CrashAfter);
    di44_di39_a_crash_after_any_call_of_a_recovery_leaves_no_twin_and_no_orphan_1(Recovery, 1, Blow::CrashAfter);
    di44_di39_a_crash_after_any_call_of_a_recovery_leaves_no_twin_and_no_orphan_2(Recovery, 2, Blow::CrashAfter);
    di44_di39_a_crash_after_any_call_of_a_recovery_leaves_no_twin_and_no_orphan_3(Recovery, 3, Blow::CrashAfter);
    p6_di39_a_call_of_a_recovery_that_fails_once_costs_no_conversation_0(Recovery, 0, Blow::FailOnce);
    p6_di39_a_call_of_a_recovery_that_fails_once_costs_no_conversation_1(Recovery, 1, Blow::FailOnce);
    p6_di39_a_call_of_a_recovery_that_fails_once_costs_no_conversation_2(Recovery, 2, Blow::FailOnce);
    p6_di39_a_call_of_a_recovery_that_fails_once_costs_no_conversation_3(Recovery, 3, Blow::FailOnce);
    p6_di39_a_call_of_a_recovery_that_says_nothing_costs_no_conversation_0(Recovery, 0, Blow::FailAfter);
    p6_di39_a_call_of_a_recovery_that_says_nothing_costs_no_conversation_1(Recovery, 1, Blow::FailAfter);
    p6_di39_a_call_of_a_recovery_that_says_nothing_costs_no_conversation_2(Recovery, 2, Blow::FailAfter);
    p6_di39_a_call_of_a_recovery_that_says_nothing_costs_no_conversation_3(Recovery, 3, Blow::FailAfter);
}

#[test]
fn di44_the_script_itself_runs_through() {
    for script in [Script::Talk, Script::Recovery] {
        let calls = calls(script);
        assert!(calls.len() > 50, "{} calls", calls.len());
        eprintln!("{script:?}: {} calls", calls.len());
    }
}

#[test]
fn di44_a_second_crash_during_recovery_loses_and_doubles_nothing() {
    let mut failed = Vec::new();
    for script in [Script::Talk, Script::Recovery] {
        let count = calls(script).len() as u64;
        for at in (1..=count).step_by(9) {
            for again in [1, 3, 6, 11] {
                if let Some(wrong) = struck(script, at, Blow::CrashAfter, Some(again)) {
                    failed.push(format!("{script:?}, {at} and {again}: {wrong}"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn di24_a_spawn_that_was_cut_short_is_settled_before_its_start_is_obeyed() {
    let calls = calls(Script::Talk);
    let journaled = calls
        .iter()
        .position(|call| call.contains("write") && call.contains("/local/"));
    let mut sim = Simulator::running("", "");
    let at = sim.fuse.calls() + journaled.unwrap() as u64 + 1;
    sim.fuse.plan(at, Blow::CrashAfter);
    send(&sim, &comment("start", "the-loop start"));
    assert!(!sim.tick_until(60, |_| false) && sim.fuse.crashed());
    sim.tmux.plan("-L", 0, 100, Trouble::Hangs);
    sim.restart();
    sim.tick_until(5, |_| false);
    assert_eq!(
        sim.stands("start"),
        "queued(tmux-unanswered)",
        "{}",
        story(&sim)
    );
    sim.tmux.mend();
    let up = sim.tick_until(60, |sim| sim.stands("start") == "confirmed");
    assert!(up, "{}\n{}", sim.stands("start"), story(&sim));
    assert_eq!(sim.taken(), ["start"]);
}
