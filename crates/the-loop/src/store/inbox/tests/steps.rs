//! The way of an outcome, and who may take it.

use std::thread;

use the_loop_core::answers::Answers;

use super::*;

struct LockOf(ItemKey);

impl HoldsItem for LockOf {
    fn covers(&self, key: &ItemKey) -> bool {
        self.0 == *key
    }
}

#[test]
fn di3_a_delivery_goes_from_accepted_to_confirmed() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = new_seq(inbox.accept(&comment("a")).unwrap());
    let unrouted = inbox.unrouted(bench.now()).unwrap();
    assert_eq!(unrouted.len(), 1);
    assert_eq!(unrouted[0].delivery, Ok(comment("a")));
    assert_eq!(unrouted[0].actor.as_deref(), Some("ada"));

    let new = bench.outcomes(&[A]);
    let routed = inbox.route(seq, &new).unwrap();
    assert_eq!(routed.queued.len(), 1);
    assert_eq!(routed.queued[0].marker.as_ref(), Some(&new[0].marker));
    assert_eq!(inbox.unrouted(bench.now()).unwrap(), []);

    bench.pass(1);
    walk(&inbox, seq, A, &[State::Sending]);
    let sending_at = bench.now();
    bench.pass(1);
    walk(&inbox, seq, A, &[State::Pasted]);
    let pasted_at = bench.now();
    bench.pass(1);
    let confirmed = OutcomeChange::to(State::Confirmed).confirmed(ConfirmedBy::Hook, bench.now());
    let row = inbox.change(&AllLocks, seq, &key(A), confirmed).unwrap();
    assert!(row.is_finished());
    assert_eq!(row.intent_at, Some(sending_at));
    assert_eq!(row.pasted_at, Some(pasted_at));
    assert_eq!(row.confirmed_at, Some(bench.now()));
    assert_eq!(row.confirmed_by, Some(ConfirmedBy::Hook));
    assert_eq!(inbox.open_outcomes(&key(A)).unwrap(), []);
    assert_eq!(inbox.items_with_work(bench.now()).unwrap(), []);
}

#[test]
fn st54_the_intent_is_on_disk_when_the_call_returns() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    walk(&inbox, seq, A, &[State::Sending]);
    drop(inbox);
    let row = bench.open().outcome(seq, &key(A)).unwrap().unwrap();
    assert_eq!(row.state, State::Sending);
    assert_eq!(row.intent_at, Some(bench.now()));
    assert!(row.marker.is_some());
}

#[test]
fn st53_an_outcome_changes_only_under_its_items_lock() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    let wrong = LockOf(key(B));
    let change = OutcomeChange::to(State::Sending);
    assert_eq!(
        inbox.change(&wrong, seq, &key(A), change.clone()),
        Err(InboxError::NotHeld(key(A)))
    );
    assert!(inbox.set_watermark(&wrong, &key(A), Mark::Reset).is_err());
    assert!(inbox.rearm(&wrong, &key(A), "1.0.0").is_err());
    assert_eq!(state(&inbox, seq, A), State::Queued);
    inbox.change(&LockOf(key(A)), seq, &key(A), change).unwrap();
}

#[test]
fn st53_of_two_processes_one_takes_the_step() {
    let bench = Bench::new();
    let handles = [bench.open(), bench.open()];
    for round in 0..20 {
        let seq = bench.queued(&handles[0], &comment(&round.to_string()), &[A]);
        let threads: Vec<_> = handles
            .iter()
            .cloned()
            .map(|inbox| {
                thread::spawn(move || {
                    inbox.change(&AllLocks, seq, &key(A), OutcomeChange::to(State::Sending))
                })
            })
            .collect();
        let taken: Vec<bool> = threads
            .into_iter()
            .map(|thread| match thread.join().unwrap() {
                Ok(_) => true,
                Err(e) => {
                    let (from, to) = (State::Sending, State::Sending);
                    assert_eq!(e, InboxError::Refused { from, to });
                    false
                }
            })
            .collect();
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1);
    }
}

#[test]
fn st53_a_row_that_ended_meanwhile_is_not_brought_back_by_a_step() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    let dropped = inbox.drop_deliveries(DropWhat::Ids(vec![seq.to_string()]));
    assert!(matches!(dropped.unwrap()[0].1, DropAnswer::Dropped(_)));
    for to in State::ALL {
        let refused = inbox.change(&AllLocks, seq, &key(A), OutcomeChange::to(to));
        let from = State::Dropped;
        assert_eq!(refused, Err(InboxError::Refused { from, to }));
    }
    let hold = inbox.change(&AllLocks, seq, &key(A), OutcomeChange::hold("typing"));
    assert!(hold.is_err());
    let unknown = inbox.change(&AllLocks, 99, &key(A), OutcomeChange::to(State::Sending));
    assert_eq!(unknown, Err(InboxError::Unknown));
}

#[test]
fn a_hold_is_kept_while_it_waits_and_forgotten_when_it_leaves() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    let change = |change| inbox.change(&AllLocks, seq, &key(A), change).unwrap();
    assert_eq!(
        change(OutcomeChange::hold("parked")).reason.as_deref(),
        Some("parked")
    );
    assert_eq!(inbox.counts().unwrap().held, 1);
    assert_eq!(change(OutcomeChange::unhold()).reason, None);
    assert_eq!(inbox.counts().unwrap().waiting, 1);
    change(OutcomeChange::hold("parked"));
    assert_eq!(change(OutcomeChange::to(State::Sending)).reason, None);
    // A hold is for the queue only.
    let late = inbox.change(&AllLocks, seq, &key(A), OutcomeChange::hold("parked"));
    assert!(late.is_err());
}

#[test]
fn di4_attempts_and_retry_times_are_kept() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    let later = bench.now().plus(Duration::from_secs(5));
    let failed = |reason: &str| {
        OutcomeChange::to(State::Failed)
            .reason(reason)
            .retry_at(later)
    };
    let step = |change| inbox.change(&AllLocks, seq, &key(A), change).unwrap();
    assert_eq!(step(failed("tmux-unanswered")).attempts, 0);
    let work = &inbox.items_with_work(bench.now()).unwrap()[0];
    assert_eq!((work.ready, work.retry_at), (false, Some(later)));
    bench.pass(5);
    let work = &inbox.items_with_work(bench.now()).unwrap()[0];
    assert_eq!((work.ready, work.retry_at), (true, None));
    let row = step(OutcomeChange::to(State::Queued));
    assert_eq!((row.reason, row.retry_at), (None, None));
    assert_eq!(step(failed("paste-failed").count_attempt()).attempts, 1);
    let given_up = OutcomeChange::to(State::Abandoned)
        .reason("attempts-spent")
        .given_up_by("1.0.0");
    let row = step(given_up);
    assert_eq!(row.given_up_by.as_deref(), Some("1.0.0"));
    assert_eq!(inbox.items_with_work(bench.now()).unwrap(), []);
    assert_eq!(inbox.open_outcomes(&key(A)).unwrap(), []);
}

#[test]
fn di4_a_delivery_that_could_not_be_judged_comes_again_at_its_time() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = new_seq(inbox.accept(&comment("a")).unwrap());
    let later = bench.now().plus(Duration::from_secs(30));
    assert_eq!(
        inbox.fail_delivery(seq, "provider-error", later, true),
        Ok(1)
    );
    assert_eq!(
        inbox.fail_delivery(seq, "provider-error", later, false),
        Ok(1)
    );
    assert_eq!(inbox.counts().unwrap().failed, 1);
    assert_eq!(inbox.unrouted(bench.now()).unwrap(), []);
    bench.pass(30);
    assert_eq!(inbox.unrouted(bench.now()).unwrap()[0].seq, seq);
    inbox
        .end_delivery(seq, State::Dropped, "unauthorized-actor")
        .unwrap();
    let (from, to) = (State::Dropped, State::Settled);
    assert_eq!(
        inbox.end_delivery(seq, to, "again"),
        Err(InboxError::Refused { from, to })
    );
    assert!(inbox.route(seq, &bench.outcomes(&[A])).is_err());
    let row = inbox.delivery(seq).unwrap().unwrap();
    assert_eq!(row.reason.as_deref(), Some("unauthorized-actor"));
}

#[test]
fn di5_items_come_in_order_of_their_oldest_delivery_and_outcomes_in_order_of_acceptance() {
    let bench = Bench::new();
    let inbox = bench.open();
    let first = bench.queued(&inbox, &comment("1"), &[B]);
    let second = bench.queued(&inbox, &comment("2"), &[A, B, A]);
    let third = bench.queued(&inbox, &comment("3"), &[A]);
    let work = inbox.items_with_work(bench.now()).unwrap();
    let shape: Vec<_> = work
        .iter()
        .map(|w| (w.item.to_string(), w.oldest_seq, w.unfinished, w.ready))
        .collect();
    assert_eq!(
        shape,
        [
            (B.to_owned(), first, 2, true),
            (A.to_owned(), second, 2, true)
        ]
    );
    let of_a: Vec<Seq> = inbox
        .open_outcomes(&key(A))
        .unwrap()
        .iter()
        .map(|row| row.seq)
        .collect();
    assert_eq!(of_a, [second, third]);
}

#[test]
fn a_paste_that_no_harness_confirms_is_over() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    walk(&inbox, seq, A, &[State::Sending, State::Pasted]);
    assert_eq!(inbox.open_outcomes(&key(A)).unwrap().len(), 1);
    let over = OutcomeChange::pasted_for_good("no-confirmation");
    assert!(
        inbox
            .change(&AllLocks, seq, &key(A), over)
            .unwrap()
            .is_finished()
    );
    assert_eq!(inbox.open_outcomes(&key(A)).unwrap(), []);
    assert_eq!(inbox.counts().unwrap(), InboxCounts::default());
}

#[test]
fn di51_prompts_count_and_commands_and_presence_do_not() {
    let bench = Bench::new();
    let inbox = bench.open();
    let sent = [State::Sending, State::Pasted, State::Confirmed];
    let mut presence = comment("presence");
    presence.effect = Effect::Presence;
    let seq = bench.queued(&inbox, &presence, &[A]);
    walk(&inbox, seq, A, &sent);
    let seq = bench.queued(&inbox, &comment("command"), &[A]);
    walk(&inbox, seq, A, &[State::Settled]);
    let seq = bench.queued(&inbox, &comment("early"), &[A]);
    walk(&inbox, seq, A, &sent);
    bench.pass(1800);
    let seq = bench.queued(&inbox, &comment("late"), &[A]);
    walk(&inbox, seq, A, &sent[..1]);
    // Evidence after a crash: it was sent though nobody saw the paste.
    walk(&inbox, seq, A, &sent[2..]);
    let seq = bench.queued(&inbox, &comment("elsewhere"), &[B]);
    walk(&inbox, seq, B, &sent);
    let hour_ago = |now: Timestamp| now.minus(Duration::from_hours(1));
    assert_eq!(inbox.prompts_sent(&key(A), hour_ago(bench.now())), Ok(2));
    bench.pass(2000);
    assert_eq!(inbox.prompts_sent(&key(A), hour_ago(bench.now())), Ok(1));
}

#[test]
fn di52_parking_is_told_once_and_counting_starts_anew_when_released() {
    let bench = Bench::new();
    let inbox = bench.open();
    let of_a = Scope::Item(item(A));
    assert_eq!(
        inbox.park(&of_a, "deliveries-per-hour", 60, bench.now()),
        Ok(true)
    );
    assert_eq!(
        inbox.park(&of_a, "tokens-per-item", 60, bench.now()),
        Ok(false)
    );
    assert_eq!(
        inbox.park(&Scope::Machine, "tokens-per-day", 60, bench.now()),
        Ok(true)
    );
    inbox.parked_told(&of_a, bench.now()).unwrap();
    let all = inbox.all_parked().unwrap();
    assert_eq!(all.len(), 2);
    assert!(all.iter().any(|parked| parked.scope == Scope::Machine));
    let parked = inbox.parked(&of_a).unwrap().unwrap();
    assert_eq!(parked.reason, "deliveries-per-hour");
    assert_eq!(parked.told_at, Some(bench.now()));
    assert!(parked.is_in_force());

    bench.pass(60);
    let released = inbox.release(&of_a, bench.now(), Some(12_000)).unwrap();
    assert_eq!(released, Some(parked));
    assert_eq!(inbox.release(&of_a, bench.now(), None), Ok(None));
    let parked = inbox.parked(&of_a).unwrap().unwrap();
    assert!(!parked.is_in_force());
    assert_eq!(
        (parked.released_at, parked.base),
        (Some(bench.now()), Some(12_000))
    );
    assert_eq!(inbox.all_parked().unwrap().len(), 1);
    // A second parking is news again.
    assert_eq!(
        inbox.park(&of_a, "self-conversation", 60, bench.now()),
        Ok(true)
    );
    assert_eq!(inbox.parked(&of_a).unwrap().unwrap().told_at, None);
}

#[test]
fn small_memories_are_kept() {
    let bench = Bench::new();
    let inbox = bench.open();
    assert_eq!(inbox.once("gave-up:IC_1"), Ok(true));
    assert_eq!(inbox.once("gave-up:IC_1"), Ok(false));
    assert_eq!(bench.open().once("gave-up:IC_1"), Ok(false));
    inbox.add_own_comment(&item(A), "IC_own").unwrap();
    inbox.add_own_comment(&item(A), "IC_own").unwrap();
    assert_eq!(inbox.is_own_comment(&item(A), "IC_own"), Ok(true));
    assert_eq!(inbox.is_own_comment(&item(A), "IC_OWN"), Ok(false));
    assert_eq!(
        inbox.is_own_comment(&item("local:octo/repo#1"), "IC_own"),
        Ok(false)
    );
    assert_eq!(inbox.meta("heartbeat"), Ok(None));
    inbox.set_meta("heartbeat", "one").unwrap();
    inbox.set_meta("heartbeat", "two").unwrap();
    assert_eq!(
        inbox.meta("heartbeat"),
        Ok(Some(("two".to_owned(), bench.now())))
    );
}

#[test]
fn di37_usage_is_counted_once_by_item_conversation_and_day() {
    use the_loop_core::tokens::{Step, Usage};
    let bench = Bench::new();
    let inbox = bench.open();
    let step = |day: &str, input: u64| Step {
        day: day.to_owned(),
        running: Usage {
            input,
            cache_write: 2 * input,
            ..Usage::default()
        },
    };
    let steps = [step("2026-03-01", 10), step("2026-03-02", 15)];
    inbox.count_usage(&key(A), "one", &steps).unwrap();
    inbox.count_usage(&key(A), "one", &steps).unwrap();
    inbox.count_usage(&key(A), "two", &steps[..1]).unwrap();
    inbox.count_usage(&key(B), "three", &steps[1..]).unwrap();
    let all = inbox.usage_of(&key(A)).unwrap();
    assert_eq!((all.input, all.cache_write, all.output), (25, 50, 0));
    let day = |day: &str| inbox.usage_on(day).unwrap().input;
    assert_eq!((day("2026-03-01"), day("2026-03-02")), (20, 20));
    let by_item = inbox.usage_by_item("2026-03-02").unwrap();
    let inputs: Vec<(u64, u64)> = by_item
        .iter()
        .map(|(_, all, today)| (all.input, today.input))
        .collect();
    assert_eq!(inputs, [(25, 5), (15, 15)]);
    assert_eq!(inbox.counted("one").unwrap().input, 15);
    bench.pass(403 * 86_400);
    inbox.prune(bench.now(), 30).unwrap();
    assert!(inbox.counted("one").unwrap().is_zero());
    assert!(inbox.usage_of(&key(A)).unwrap().is_zero());
}

#[test]
fn di31_what_was_told_is_kept_until_it_is_over() {
    use the_loop_core::attention::Signs;
    use the_loop_core::confirm::WaitingKind;
    let bench = Bench::new();
    let inbox = bench.open();
    assert_eq!(inbox.attention(&key(A)), Ok(Attention::default()));
    let told = Attention {
        wait: Some((WaitingKind::UsageLimit, bench.now())),
        stalled: Some((
            bench.now(),
            Signs {
                transcript_len: 7,
                transcript_at: -1,
                output_at: Some(3),
                child_ticks: None,
            },
        )),
    };
    inbox.set_attention(&key(A), told).unwrap();
    assert_eq!(inbox.attention(&key(A)), Ok(told));
    assert_eq!(
        inbox.all_attention(),
        Ok(vec![(key(A).as_str().to_owned(), told)])
    );
    inbox.set_attention(&key(A), Attention::default()).unwrap();
    assert_eq!(inbox.all_attention(), Ok(Vec::new()));
}

#[test]
fn in18_answers_are_kept_with_a_delivery_until_it_is_judged() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = new_seq(inbox.accept(&comment("a")).unwrap());
    let mut answered = comment("a");
    answered.asked = Some(Box::new(Answers {
        missing: vec![item(B)],
        ..Answers::default()
    }));
    inbox.answered(seq, &answered).unwrap();
    let rows = inbox.unrouted(bench.now()).unwrap();
    assert_eq!(rows[0].delivery.as_ref().unwrap().asked, answered.asked);
    inbox
        .end_delivery(seq, State::Dropped, "no-work-item")
        .unwrap();
    let refused = inbox.answered(seq, &comment("a"));
    assert!(
        matches!(refused, Err(InboxError::Refused { .. })),
        "{refused:?}"
    );
    assert!(matches!(
        inbox.answered(seq + 1, &answered),
        Err(InboxError::Unknown)
    ));
}

#[test]
fn in18_a_delivery_of_an_earlier_release_is_read() {
    let mut known = serde_json::to_value(comment("a")).unwrap();
    known.as_object_mut().unwrap().remove("asked");
    known["pull"] = serde_json::json!({"head_ref": "x", "is_own_branch": true});
    let read: Delivery = serde_json::from_value(known).unwrap();
    assert_eq!(read.asked, None);
    assert!(!read.pull.unwrap().is_partial);
    let check = serde_json::json!({"conclusion": "failure"});
    let check: the_loop_core::ci::CheckResult = serde_json::from_value(check).unwrap();
    assert_eq!(check.run, None);
}
