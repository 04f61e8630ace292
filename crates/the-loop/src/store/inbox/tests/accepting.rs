//! One thing is one delivery, and many share one sync.

use std::sync::mpsc;
use std::thread;

use super::*;

fn duplicate(first: &str, seq: Seq, by: DuplicateBy) -> Accepted {
    Accepted::Duplicate {
        seq,
        first_delivery_id: first.to_owned(),
        by,
        reopened: false,
    }
}

#[test]
fn st51_one_thing_is_one_delivery_by_any_of_its_names() {
    let bench = Bench::new();
    let inbox = bench.open();
    let mut first = comment("a");
    first.numeric_key = Some("github/github.com/comment/#5/created".to_owned());
    let seq = new_seq(inbox.accept(&first).unwrap());

    let mut by_poller = comment("a");
    by_poller.delivery_id = "poll-comment-IC_a".to_owned();
    by_poller.ingress = Ingress::Poll;
    let content = duplicate("guid-a", seq, DuplicateBy::Content);
    assert_eq!(inbox.accept(&by_poller).unwrap(), content);

    let mut without_node_id = comment("?");
    without_node_id.content_key = "github/github.com/comment/-/created".to_owned();
    without_node_id.numeric_key.clone_from(&first.numeric_key);
    let numeric = duplicate("guid-a", seq, DuplicateBy::Numeric);
    assert_eq!(inbox.accept(&without_node_id).unwrap(), numeric);

    // The new transport ids were remembered: either is enough now.
    let mut only_transport = comment("other");
    only_transport.delivery_id = "poll-comment-IC_a".to_owned();
    let transport = duplicate("guid-a", seq, DuplicateBy::Transport);
    assert_eq!(inbox.accept(&only_transport).unwrap(), transport);

    assert_eq!(ids(&inbox), ["guid-a"]);
    let shown = inbox.show("guid-?").unwrap().unwrap();
    assert_eq!(shown.delivery.seq, seq);
    let known = |kind: &str| shown.keys.iter().filter(|k| k.kind == kind).count();
    assert_eq!(
        (known("content"), known("numeric"), known("transport")),
        (2, 1, 3)
    );
    let again: u64 = shown.keys.iter().map(|k| k.again).sum();
    assert_eq!(again, 3);
}

#[test]
fn in12_a_key_that_lacks_a_field_is_neither_looked_up_nor_entered() {
    let bench = Bench::new();
    let inbox = bench.open();
    for name in ["one", "two"] {
        let mut without = comment(name);
        without.content_key = "github/github.com/comment/-/created".to_owned();
        new_seq(inbox.accept(&without).unwrap());
    }
    assert_eq!(ids(&inbox), ["guid-one", "guid-two"]);
}

#[test]
fn in11_the_text_accepted_first_is_the_text_used() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = new_seq(inbox.accept(&comment("a")).unwrap());
    let mut other = comment("a");
    other.delivery_id = "guid-later".to_owned();
    other.effect = Effect::Presence;
    inbox.accept(&other).unwrap();
    let row = inbox.delivery(seq).unwrap().unwrap();
    assert_eq!(row.delivery, Ok(comment("a")));
}

#[test]
fn di1_whatever_waits_when_a_commit_starts_shares_the_next_one() {
    let bench = Bench::new();
    let inbox = bench.open();
    let (entered, has_entered) = mpsc::channel();
    let (open_gate, gate) = mpsc::channel::<()>();
    bench.disk.watch(move |n, work| {
        if n == 1 {
            entered.send(()).unwrap();
            gate.recv().unwrap();
        }
        work()
    });
    let first = inbox.accept_later(comment("first"));
    has_entered.recv().unwrap();
    let (queued, has_queued) = mpsc::channel();
    let threads: Vec<_> = (0..64)
        .map(|n| {
            let (inbox, queued) = (inbox.clone(), queued.clone());
            thread::spawn(move || {
                let answer = inbox.accept_later(comment(&n.to_string()));
                queued.send(()).unwrap();
                answer.blocking_recv().unwrap().unwrap()
            })
        })
        .collect();
    for _ in 0..64 {
        has_queued.recv().unwrap();
    }
    open_gate.send(()).unwrap();
    let mut seqs: Vec<Seq> = threads
        .into_iter()
        .map(|thread| new_seq(thread.join().unwrap()))
        .collect();
    new_seq(first.blocking_recv().unwrap().unwrap());
    seqs.sort_unstable();
    assert_eq!(seqs, (2..=65).collect::<Vec<Seq>>());
    assert_eq!(bench.disk.commits(), 2, "64 acceptances, one sync");
}

#[test]
fn di1_a_bad_request_fails_alone() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = new_seq(inbox.accept(&comment("a")).unwrap());
    let (entered, has_entered) = mpsc::channel();
    let (open_gate, gate) = mpsc::channel::<()>();
    bench.disk.watch(move |n, work| {
        if n == 1 {
            entered.send(()).unwrap();
            gate.recv().unwrap();
        }
        work()
    });
    let before = inbox.accept_later(comment("before"));
    has_entered.recv().unwrap();
    let marker = bench.marker();
    let used_twice: Vec<NewOutcome> = [A, B]
        .iter()
        .map(|name| NewOutcome {
            item: item(name),
            endpoint: None,
            marker: marker.clone(),
        })
        .collect();
    let bad = {
        let inbox = inbox.clone();
        thread::spawn(move || inbox.route(seq, &used_twice))
    };
    let after = inbox.accept_later(comment("after"));
    open_gate.send(()).unwrap();
    assert!(matches!(bad.join().unwrap(), Err(InboxError::Conflict(_))));
    new_seq(before.blocking_recv().unwrap().unwrap());
    new_seq(after.blocking_recv().unwrap().unwrap());
    // Nothing of the bad one stayed.
    assert_eq!(inbox.delivery(seq).unwrap().unwrap().state, State::Accepted);
    assert_eq!(inbox.outcomes_of(seq).unwrap(), []);
}

#[test]
fn di1_a_full_queue_is_an_answer_and_no_wait() {
    let bench = Bench::new();
    let inbox = bench.open();
    let (entered, has_entered) = mpsc::channel();
    let (open_gate, gate) = mpsc::channel::<()>();
    bench.disk.watch(move |n, work| {
        if n == 1 {
            entered.send(()).unwrap();
            gate.recv().unwrap();
        }
        work()
    });
    let mut waiting = vec![inbox.accept_later(comment("first"))];
    has_entered.recv().unwrap();
    for n in 0..the_loop_core::limits::INBOX_QUEUE_MAX {
        waiting.push(inbox.accept_later(comment(&n.to_string())));
    }
    let refused = inbox.accept_later(comment("one too many"));
    let answer = refused.blocking_recv().unwrap();
    assert!(
        answer.as_ref().is_err_and(InboxError::may_pass),
        "{answer:?}"
    );
    open_gate.send(()).unwrap();
    for answer in waiting {
        new_seq(answer.blocking_recv().unwrap().unwrap());
    }
}

#[test]
fn st53_two_processes_accept_each_thing_once() {
    let bench = Bench::new();
    let handles = [bench.open(), bench.open()];
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let inbox = handles[n % 2].clone();
            thread::spawn(move || {
                let accept = |name: usize| inbox.accept(&comment(&name.to_string())).unwrap();
                (0..25)
                    .filter(|name| matches!(accept(*name), Accepted::New { .. }))
                    .count()
            })
        })
        .collect();
    let new: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    assert_eq!(new, 25);
    assert_eq!(ids(&handles[0]).len(), 25);
}

#[test]
fn st53_rows_of_another_process_are_noticed() {
    let bench = Bench::new();
    let (ours, theirs) = (bench.open(), bench.open());
    let mut changes = ours.changed();
    assert!(!changes.wait_change(Duration::ZERO));
    theirs.accept(&comment("a")).unwrap();
    assert!(changes.wait_change(Duration::ZERO));
    assert!(!changes.wait_change(Duration::ZERO));
    // Our own commits are not missed either, though they come before the wait.
    ours.accept(&comment("b")).unwrap();
    assert!(changes.wait_change(Duration::from_mins(1)));
    ours.wake();
    assert!(changes.wait_change(Duration::from_mins(1)));
}
