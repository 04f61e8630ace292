//! What an operator sees and does (SE-63 to SE-66), through the operations every surface uses.

use serde_json::json;

use super::*;
use crate::ops::deliveries::{self, Query};

fn words(answers: &[deliveries::Answer]) -> Vec<(String, bool)> {
    let line = |a: &deliveries::Answer| (format!("{}: {}", a.id, a.words), a.refused);
    answers.iter().map(line).collect()
}

fn listed(inbox: &Inbox, query: &Query) -> Vec<(Seq, Option<String>, State)> {
    let lines = deliveries::list(inbox, query).unwrap();
    let shape = |line: deliveries::Line| (line.id, line.work_item, line.state);
    lines.into_iter().map(shape).collect()
}

#[test]
fn se63_the_list_has_a_row_for_each_outcome_and_hides_what_is_over() {
    let bench = Bench::new();
    let inbox = bench.open();
    let both = bench.queued(&inbox, &comment("both"), &[A, B]);
    walk(&inbox, both, A, &[State::Settled]);
    let unrouted = new_seq(inbox.accept(&comment("unrouted")).unwrap());
    let refused = new_seq(inbox.accept(&comment("refused")).unwrap());
    inbox
        .end_delivery(refused, State::Dropped, "unauthorized-actor")
        .unwrap();
    let uncertain = bench.queued(&inbox, &comment("uncertain"), &[A]);
    walk(&inbox, uncertain, A, &[State::Sending, State::Uncertain]);

    let (a, b) = (Some(A.to_owned()), Some(B.to_owned()));
    let open = [
        (both, b.clone(), State::Queued),
        (unrouted, None, State::Accepted),
        (uncertain, a.clone(), State::Uncertain),
    ];
    let query = Query::default();
    assert_eq!(listed(&inbox, &query), open);
    let all = Query {
        all: true,
        ..query.clone()
    };
    assert_eq!(listed(&inbox, &all).len(), 5);
    let newest = Query {
        limit: 2,
        ..query.clone()
    };
    assert_eq!(listed(&inbox, &newest), open[1..]);
    let of_a = Query {
        work_item: Some(item("github:OCTO/Repo#1")),
        ..all.clone()
    };
    assert_eq!(
        listed(&inbox, &of_a),
        [
            (both, a.clone(), State::Settled),
            (uncertain, a, State::Uncertain)
        ]
    );
    let over = Query {
        states: vec![State::Dropped, State::Settled],
        ..query.clone()
    };
    assert_eq!(listed(&inbox, &over).len(), 2);
    let later = Query {
        since: Some(bench.now().plus(Duration::from_secs(1))),
        ..all
    };
    assert_eq!(listed(&inbox, &later), []);
}

#[test]
fn se63_a_row_as_json() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    let hold = OutcomeChange::hold("waiting-capacity");
    inbox.change(&AllLocks, seq, &key(A), hold).unwrap();
    let lines = deliveries::list(&inbox, &Query::default()).unwrap();
    let expected = json!([{
        "id": 1, "deliveryId": "guid-a", "workItem": A, "endpoint": null, "ingress": "webhook",
        "event": "issue_comment", "action": "created", "actor": "ada", "state": "queued",
        "reason": null, "acceptedAt": START, "updatedAt": START, "attempts": 0, "nextTryAt": null,
        "heldBecause": "waiting-capacity"}]);
    assert_eq!(
        serde_json::to_string(&lines).unwrap(),
        serde_json::to_string(&expected).unwrap()
    );
}

#[test]
fn se64_a_delivery_is_shown_by_its_number_or_any_transport_id() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    let mut again = comment("a");
    again.delivery_id = "guid-redelivered".to_owned();
    inbox.accept(&again).unwrap();
    for id in ["1", "guid-a", "guid-redelivered"] {
        let detail = deliveries::show(&inbox, id).unwrap().unwrap();
        assert_eq!(detail.id, seq);
        assert_eq!(detail.delivery_id, "guid-a");
        assert_eq!(detail.delivery, Some(comment("a")));
        assert_eq!(detail.outcomes[0].work_item, item(A));
        assert_eq!(detail.names.len(), 3);
    }
    for id in ["2", "guid-x", "", "-1", "99999999999999999999"] {
        assert_eq!(deliveries::show(&inbox, id).unwrap(), None, "{id}");
    }
}

#[test]
fn se65_retry_gives_a_full_budget_to_what_failed() {
    let bench = Bench::new();
    let inbox = bench.open();
    let in_state = |name: &str, states: &[State]| {
        let seq = bench.queued(&inbox, &comment(name), &[A]);
        walk(&inbox, seq, A, states);
        seq.to_string()
    };
    use State::{Abandoned, Confirmed, Dropped, Failed, Sending, Uncertain};
    let asked = [
        in_state("failed", &[Failed]),
        in_state("abandoned", &[Failed, Abandoned]),
        in_state("dropped", &[Dropped]),
        in_state("queued", &[]),
        in_state("sending", &[Sending]),
        in_state("confirmed", &[Sending, Confirmed]),
        in_state("uncertain", &[Sending, Uncertain]),
        "guid-nobody".to_owned(),
    ];
    let commits = bench.disk.commits();
    let answers = deliveries::retry(&inbox, &asked, false).unwrap();
    assert_eq!(bench.disk.commits(), commits + 1, "one transaction");
    let expected = [
        ("1: queued again", false),
        ("2: queued again", false),
        ("3: queued again", false),
        ("4: already queued", true),
        ("5: sending, nothing to retry", true),
        ("6: confirmed, nothing to retry", true),
        ("7: uncertain, the agent may have it: use --force", true),
        ("guid-nobody: no such delivery", true),
    ];
    let expected = expected.map(|(line, refused)| (line.to_owned(), refused));
    assert_eq!(words(&answers), expected);
    assert_eq!(answers[1].changed[0].was, Abandoned);
    assert_eq!(answers[1].changed[0].item.as_deref(), Some(A));

    let again = deliveries::retry(&inbox, &asked[..1], false).unwrap();
    assert_eq!(words(&again), [("1: already queued".to_owned(), true)]);
    let forced = deliveries::retry(&inbox, &asked[6..7], true).unwrap();
    assert_eq!(words(&forced), [("7: queued again".to_owned(), false)]);
}

#[test]
fn se65_a_delivery_that_was_refused_is_judged_anew() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = new_seq(inbox.accept(&comment("a")).unwrap());
    inbox
        .end_delivery(seq, State::Dropped, "unauthorized-actor")
        .unwrap();
    let answers = deliveries::retry(&inbox, &["guid-a".to_owned()], false).unwrap();
    assert_eq!(
        words(&answers),
        [("guid-a: queued again".to_owned(), false)]
    );
    assert_eq!(answers[0].changed[0].item, None);
    assert_eq!(inbox.unrouted(bench.now()).unwrap()[0].seq, seq);
}

#[test]
fn st58_what_has_no_text_any_more_is_not_retried() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A]);
    walk(&inbox, seq, A, &[State::Dropped]);
    bench.pass(2 * 86_400);
    assert_eq!(inbox.prune(bench.now(), 30).unwrap().bodies, 1);
    let answers = deliveries::retry(&inbox, &[seq.to_string()], true).unwrap();
    assert_eq!(
        words(&answers),
        [("1: its text is no longer kept".to_owned(), true)]
    );
}

#[test]
fn se66_drop_ends_what_is_open_and_a_redelivery_does_not_bring_it_back() {
    let bench = Bench::new();
    let inbox = bench.open();
    let queued = bench.queued(&inbox, &comment("queued"), &[A]);
    let sending = bench.queued(&inbox, &comment("sending"), &[A]);
    walk(&inbox, sending, A, &[State::Sending]);
    let settled = bench.queued(&inbox, &comment("settled"), &[A]);
    walk(&inbox, settled, A, &[State::Settled]);
    let unrouted = new_seq(inbox.accept(&comment("unrouted")).unwrap());
    let asked: Vec<String> = [queued, sending, settled, unrouted]
        .iter()
        .map(ToString::to_string)
        .collect();
    let answers = deliveries::drop(&inbox, DropWhat::Ids(asked.clone())).unwrap();
    let expected = [
        ("1: dropped", false),
        ("2: busy: it is being sent", true),
        ("3: settled, nothing to drop", true),
        ("4: dropped", false),
    ];
    assert_eq!(
        words(&answers),
        expected.map(|(line, refused)| (line.to_owned(), refused))
    );
    let row = inbox.outcome(queued, &key(A)).unwrap().unwrap();
    assert_eq!(row.reason.as_deref(), Some("operator"));
    assert_eq!(state(&inbox, sending, A), State::Sending);
    let again = deliveries::drop(&inbox, DropWhat::Ids(asked[..1].to_vec())).unwrap();
    assert_eq!(words(&again), [("1: already dropped".to_owned(), true)]);
    let redelivered = inbox.accept(&comment("queued")).unwrap();
    assert!(matches!(
        redelivered,
        Accepted::Duplicate {
            reopened: false,
            ..
        }
    ));
    assert_eq!(state(&inbox, queued, A), State::Dropped);
}

#[test]
fn se66_drop_by_item_takes_all_that_is_open_for_it() {
    let bench = Bench::new();
    let inbox = bench.open();
    let both = bench.queued(&inbox, &comment("both"), &[A, B]);
    let abandoned = bench.queued(&inbox, &comment("abandoned"), &[A]);
    walk(&inbox, abandoned, A, &[State::Abandoned]);
    new_seq(inbox.accept(&comment("unrouted")).unwrap());
    let mut elsewhere = comment("elsewhere");
    elsewhere.item = item(B);
    let elsewhere = new_seq(inbox.accept(&elsewhere).unwrap());
    let answers = deliveries::drop(&inbox, DropWhat::Item(key(A))).unwrap();
    let lines: Vec<String> = words(&answers).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, ["1: dropped", "2: dropped", "3: dropped"]);
    assert_eq!(state(&inbox, both, B), State::Queued);
    assert_eq!(
        inbox.delivery(elsewhere).unwrap().unwrap().state,
        State::Accepted
    );
    assert_eq!(
        deliveries::drop(&inbox, DropWhat::Item(key(A))).unwrap(),
        []
    );
}

#[test]
fn status_counts_what_waits_and_for_what() {
    let bench = Bench::new();
    let inbox = bench.open();
    let mut first = comment("accepted");
    first.received_at = bench.now().minus(Duration::from_secs(4));
    inbox.accept(&first).unwrap();
    for (name, states) in [
        ("queued", &[][..]),
        ("sending", &[State::Sending]),
        ("pasted", &[State::Sending, State::Pasted]),
        ("failed", &[State::Failed]),
        ("uncertain", &[State::Sending, State::Uncertain]),
        ("abandoned", &[State::Abandoned]),
        ("dropped", &[State::Dropped]),
    ] {
        let seq = bench.queued(&inbox, &comment(name), &[A]);
        walk(&inbox, seq, A, states);
    }
    let held = bench.queued(&inbox, &comment("held"), &[A]);
    inbox
        .change(&AllLocks, held, &key(A), OutcomeChange::hold("parked"))
        .unwrap();
    let expected = InboxCounts {
        waiting: 2,
        oldest_at: Some(first.received_at),
        in_work: 2,
        held: 1,
        failed: 1,
        uncertain: 1,
        abandoned: 1,
    };
    assert_eq!(inbox.counts(), Ok(expected));
}
