//! Reset and close put deliveries behind, and nothing comes back (ST-56, ST-58).

use super::*;

#[test]
fn st56_a_reset_drops_what_is_unfinished_and_keeps_the_names() {
    let bench = Bench::new();
    let inbox = bench.open();
    let confirmed = bench.queued(&inbox, &comment("confirmed"), &[A]);
    walk(&inbox, confirmed, A, &[State::Sending, State::Confirmed]);
    let mut unfinished = Vec::new();
    for (name, states) in [
        ("queued", &[][..]),
        ("sending", &[State::Sending]),
        ("pasted", &[State::Sending, State::Pasted]),
        ("failed", &[State::Failed]),
    ] {
        let seq = bench.queued(&inbox, &comment(name), &[A, B]);
        walk(&inbox, seq, A, states);
        unfinished.push(seq);
    }
    let uncertain = bench.queued(&inbox, &comment("uncertain"), &[A]);
    walk(&inbox, uncertain, A, &[State::Sending, State::Uncertain]);
    let unrouted = new_seq(inbox.accept(&comment("unrouted")).unwrap());
    inbox
        .park(
            &Scope::Item(item(A)),
            "deliveries-per-hour",
            60,
            bench.now(),
        )
        .unwrap();
    inbox
        .write(|connection| {
            connection.execute_batch(
                "INSERT INTO asks VALUES ('github:octo/repo#1', 0, 'which?', NULL);
                 INSERT INTO usage VALUES ('github:octo/repo#1', '2026-03-01', 1, 1, 1, 1);",
            )?;
            Ok(())
        })
        .unwrap();

    bench.pass(60);
    let planned = inbox.would_drop(&key(A), Mark::Reset).unwrap();
    let forgotten = inbox
        .set_watermark(&AllLocks, &key(A), Mark::Reset)
        .unwrap();
    let seqs = |rows: &[OutcomeRow]| rows.iter().map(|row| row.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&planned), unfinished);
    assert_eq!(seqs(&forgotten.dropped), unfinished);
    assert!(forgotten.asked && forgotten.usage && forgotten.parked.is_some());
    for seq in &unfinished {
        let row = inbox.outcome(*seq, &key(A)).unwrap().unwrap();
        assert_eq!(
            (row.state, row.reason.as_deref()),
            (State::Dropped, Some("reset"))
        );
        assert_eq!(
            state(&inbox, *seq, B),
            State::Queued,
            "another item's is untouched"
        );
    }
    assert_eq!(state(&inbox, confirmed, A), State::Confirmed);
    assert_eq!(state(&inbox, uncertain, A), State::Uncertain);
    assert_eq!(
        inbox.open_outcomes(&key(A)).unwrap(),
        [],
        "nothing is acted on any more"
    );
    assert_eq!(inbox.parked(&Scope::Item(item(A))), Ok(None));
    let mark = inbox.watermark(&key(A)).unwrap().unwrap();
    assert_eq!(
        (mark.through_seq, mark.at, mark.by_close),
        (unrouted, bench.now(), false)
    );

    // Routed later, and dropped the same way.
    let routed = inbox.route(unrouted, &bench.outcomes(&[A, B])).unwrap();
    assert_eq!(routed.dropped.len(), 1);
    assert_eq!(routed.dropped[0].reason.as_deref(), Some("reset"));
    assert_eq!(routed.queued.len(), 1);

    // A start comment obeyed before does not run again; a new one does.
    let again = inbox.accept(&comment("confirmed")).unwrap();
    assert!(matches!(again, Accepted::Duplicate { .. }));
    let fresh = bench.queued(&inbox, &comment("fresh"), &[A]);
    assert_eq!(state(&inbox, fresh, A), State::Queued);

    let nothing = inbox
        .set_watermark(&AllLocks, &key(A), Mark::Reset)
        .unwrap();
    assert_eq!(seqs(&nothing.dropped), [fresh]);
    assert!(!nothing.asked && !nothing.usage && nothing.parked.is_none());
}

#[test]
fn st56_a_close_drops_what_came_before_it_and_keeps_the_usage() {
    let bench = Bench::new();
    let inbox = bench.open();
    let before = bench.queued(&inbox, &comment("before"), &[A]);
    let late = new_seq(inbox.accept(&comment("routed late")).unwrap());
    let mut close = comment("close");
    close.effect = Effect::Close {
        ending: the_loop_core::delivery::Ending::Closed,
        at: None,
        moved_to: None,
    };
    let seq = bench.queued(&inbox, &close, &[A]);
    let after = bench.queued(&inbox, &comment("after"), &[A]);
    inbox
        .write(|connection| {
            connection.execute_batch(
                "INSERT INTO usage VALUES ('github:octo/repo#1', '2026-03-01', 1, 1, 1, 1);",
            )?;
            Ok(())
        })
        .unwrap();
    let closed_at = bench.now().minus(Duration::from_secs(9));
    let mark = Mark::Close {
        seq,
        closed_at: Some(closed_at),
    };
    let forgotten = inbox.set_watermark(&AllLocks, &key(A), mark).unwrap();
    assert_eq!(forgotten.dropped.len(), 1);
    assert!(!forgotten.usage);
    let row = inbox.outcome(before, &key(A)).unwrap().unwrap();
    assert_eq!(
        (row.state, row.reason.as_deref()),
        (State::Dropped, Some("item-closed"))
    );
    assert_eq!(
        state(&inbox, seq, A),
        State::Queued,
        "the close goes to its own end"
    );
    assert_eq!(state(&inbox, after, A), State::Queued);
    let routed = inbox.route(late, &bench.outcomes(&[A])).unwrap();
    assert_eq!(routed.dropped[0].reason.as_deref(), Some("item-closed"));
    let mark = inbox.watermark(&key(A)).unwrap().unwrap();
    assert_eq!(
        (mark.through_seq, mark.at, mark.by_close),
        (seq, closed_at, true)
    );

    // A mark never moves backwards: the reset that follows reaches further, an older close does not.
    inbox
        .set_watermark(&AllLocks, &key(A), Mark::Reset)
        .unwrap();
    let older = Mark::Close {
        seq,
        closed_at: Some(closed_at),
    };
    inbox.set_watermark(&AllLocks, &key(A), older).unwrap();
    let mark = inbox.watermark(&key(A)).unwrap().unwrap();
    assert_eq!((mark.through_seq, mark.by_close), (after, false));
}

fn abandon(bench: &Bench, inbox: &Inbox, name: &str, version: &str) -> Seq {
    let seq = bench.queued(inbox, &comment(name), &[A]);
    let failed = OutcomeChange::to(State::Failed).count_attempt();
    inbox.change(&AllLocks, seq, &key(A), failed).unwrap();
    let given_up = OutcomeChange::to(State::Abandoned)
        .reason("attempts-spent")
        .given_up_by(version);
    inbox.change(&AllLocks, seq, &key(A), given_up).unwrap();
    seq
}

fn came_again(name: &str, ingress: Ingress) -> Delivery {
    let mut delivery = comment(name);
    delivery.delivery_id = format!("guid-{name}-again");
    delivery.ingress = ingress;
    delivery
}

fn reopened(accepted: Accepted) -> bool {
    match accepted {
        Accepted::New { .. } => panic!("a second delivery for one content key"),
        Accepted::Duplicate { reopened, .. } => reopened,
    }
}

#[test]
fn st58_a_webhook_redelivery_gives_an_abandoned_one_a_full_budget() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = abandon(&bench, &inbox, "a", "1.0.0");
    let polled = inbox.accept(&came_again("a", Ingress::Poll)).unwrap();
    assert!(!reopened(polled), "a poller reads a thread again and again");
    for _ in 0..2 {
        let again = inbox.accept(&came_again("a", Ingress::Webhook)).unwrap();
        assert!(reopened(again));
        let row = inbox.outcome(seq, &key(A)).unwrap().unwrap();
        assert_eq!(
            (row.state, row.attempts, row.given_up_by),
            (State::Queued, 0, None)
        );
        let more = inbox.accept(&came_again("a", Ingress::Webhook)).unwrap();
        assert!(!reopened(more), "it waits already");
        walk(&inbox, seq, A, &[State::Failed, State::Abandoned]);
    }
    assert_eq!(ids(&inbox).len(), 1);
}

#[test]
fn st58_what_a_reset_put_behind_is_not_opened_again() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = abandon(&bench, &inbox, "a", "0.9.0");
    inbox
        .set_watermark(&AllLocks, &key(A), Mark::Reset)
        .unwrap();
    assert!(!reopened(
        inbox.accept(&came_again("a", Ingress::Webhook)).unwrap()
    ));
    assert_eq!(inbox.rearm(&AllLocks, &key(A), "1.0.0"), Ok(vec![]));
    let retried = inbox.retry(&[seq.to_string()], true).unwrap();
    assert_eq!(retried[0].1, RetryAnswer::Overtaken { by_close: false });
    assert_eq!(state(&inbox, seq, A), State::Abandoned);
}

#[test]
fn st58_a_new_version_opens_what_another_one_gave_up() {
    let bench = Bench::new();
    let inbox = bench.open();
    let old = abandon(&bench, &inbox, "old", "0.9.0");
    let own = abandon(&bench, &inbox, "own", "1.0.0");
    let changed = inbox.rearm(&AllLocks, &key(A), "1.0.0").unwrap();
    assert_eq!(changed.len(), 1);
    assert_eq!((changed[0].seq, changed[0].was), (old, State::Abandoned));
    assert_eq!(state(&inbox, old, A), State::Queued);
    assert_eq!(state(&inbox, own, A), State::Abandoned);
    assert_eq!(inbox.rearm(&AllLocks, &key(A), "1.0.0"), Ok(vec![]));
}

#[test]
fn st58_a_session_occupied_drop_stays_over_across_restarts() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    let occupied = OutcomeChange::to(State::Dropped).reason("session-occupied");
    inbox.change(&AllLocks, seq, &key(A), occupied).unwrap();
    drop(inbox);
    let inbox = bench.open();
    assert!(!reopened(
        inbox.accept(&came_again("a", Ingress::Webhook)).unwrap()
    ));
    assert_eq!(inbox.rearm(&AllLocks, &key(A), "9.9.9"), Ok(vec![]));
    assert_eq!(inbox.items_with_work(bench.now()).unwrap(), []);
    assert_eq!(state(&inbox, seq, A), State::Dropped);
}
