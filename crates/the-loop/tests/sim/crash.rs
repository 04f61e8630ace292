//! A crash, or a failing call, at every call of a scripted run (DI-44).

use the_loop_testkit::{Blow, Simulator};

use super::script::{faults, play, story};

/// How many parts the calls are dealt to, so that they are walked side by side.
const PARTS: u64 = 4;

/// Calls of the undisturbed script, and their names.
fn calls() -> Vec<String> {
    let mut sim = Simulator::running("", "");
    let before = sim.fuse.calls();
    play(&mut sim);
    let found = faults(&sim);
    assert!(found.is_empty(), "{found:?}\n{}", story(&sim));
    sim.fuse.log().split_off(before as usize)
}

/// Walks every `PARTS`th call from `part` on.
fn walk(part: u64, blow: Blow) {
    let calls = calls();
    let mut failed = Vec::new();
    for (at, name) in (1u64..).zip(&calls) {
        if at % PARTS != part {
            continue;
        }
        let outcome = std::panic::catch_unwind(|| {
            let mut sim = Simulator::running("", "");
            sim.fuse.plan(sim.fuse.calls() + at, blow);
            play(&mut sim);
            (faults(&sim), story(&sim))
        });
        match outcome {
            Ok((found, _)) if found.is_empty() => {}
            Ok((found, story)) => failed.push(format!("{at}: {name}: {found:?}\n{story}")),
            Err(_) => failed.push(format!("{at}: {name}: it does not end")),
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
    ($($name:ident($part:expr, $blow:expr);)*) => {$(
        #[test]
        fn $name() {
            walk($part, $blow);
        }
    )*};
}

walks! {
    di44_a_crash_before_any_call_loses_and_doubles_nothing_0(0, Blow::CrashBefore);
    di44_a_crash_before_any_call_loses_and_doubles_nothing_1(1, Blow::CrashBefore);
    di44_a_crash_before_any_call_loses_and_doubles_nothing_2(2, Blow::CrashBefore);
    di44_a_crash_before_any_call_loses_and_doubles_nothing_3(3, Blow::CrashBefore);
    di44_a_crash_after_any_call_loses_and_doubles_nothing_0(0, Blow::CrashAfter);
    di44_a_crash_after_any_call_loses_and_doubles_nothing_1(1, Blow::CrashAfter);
    di44_a_crash_after_any_call_loses_and_doubles_nothing_2(2, Blow::CrashAfter);
    di44_a_crash_after_any_call_loses_and_doubles_nothing_3(3, Blow::CrashAfter);
    p1_a_call_that_fails_once_loses_and_doubles_nothing_0(0, Blow::FailOnce);
    p1_a_call_that_fails_once_loses_and_doubles_nothing_1(1, Blow::FailOnce);
    p1_a_call_that_fails_once_loses_and_doubles_nothing_2(2, Blow::FailOnce);
    p1_a_call_that_fails_once_loses_and_doubles_nothing_3(3, Blow::FailOnce);
}

#[test]
fn di44_the_script_itself_runs_through() {
    let calls = calls();
    assert!(calls.len() > 50, "{} calls", calls.len());
    eprintln!("{} calls", calls.len());
}
