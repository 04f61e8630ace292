//! What is over goes, what is not stays, and the file does not grow for ever (ST-59).

use super::*;

const DAY: u64 = 86_400;

fn count(inbox: &Inbox, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    inbox
        .read(|connection| Ok(connection.query_row(&sql, (), |row| row.get(0))?))
        .unwrap()
}

#[test]
fn st59_each_kind_of_row_is_kept_for_its_time() {
    let bench = Bench::new();
    let inbox = bench.open();
    let in_state = |name: &str, states: &[State]| {
        let seq = bench.queued(&inbox, &comment(name), &[A]);
        walk(&inbox, seq, A, states);
        seq
    };
    use State::{Abandoned, Confirmed, Dropped, Failed, Pasted, Sending, Settled, Uncertain};
    let over = [
        in_state("confirmed", &[Sending, Confirmed]),
        in_state("settled", &[Settled]),
        in_state("dropped", &[Dropped]),
        in_state("for good", &[Sending, Pasted]),
    ];
    let for_good = OutcomeChange::pasted_for_good("screen-seen");
    inbox.change(&AllLocks, over[3], &key(A), for_good).unwrap();
    let unfinished = [
        in_state("queued", &[]),
        in_state("sending", &[Sending]),
        in_state("pasted", &[Sending, Pasted]),
        in_state("failed", &[Failed]),
    ];
    let undecided = [
        in_state("abandoned", &[Abandoned]),
        in_state("uncertain", &[Sending, Uncertain]),
    ];
    let refused = new_seq(inbox.accept(&comment("refused")).unwrap());
    inbox
        .end_delivery(refused, Dropped, "unauthorized-actor")
        .unwrap();
    let accepted = new_seq(inbox.accept(&comment("accepted")).unwrap());
    inbox.once("said").unwrap();
    inbox.add_own_comment(&item(A), "IC_own").unwrap();
    inbox.set_meta("heartbeat", "x").unwrap();
    inbox
        .set_watermark(&AllLocks, &key(B), Mark::Reset)
        .unwrap();
    inbox
        .park(&Scope::Item(item(A)), "self-conversation", 60, bench.now())
        .unwrap();
    inbox
        .park(&Scope::Machine, "tokens-per-day", 60, bench.now())
        .unwrap();
    inbox.release(&Scope::Machine, bench.now(), None).unwrap();

    let there = |seq: &Seq| inbox.delivery(*seq).unwrap();
    let has_text = |seq: &Seq| there(seq).is_some_and(|row| row.delivery.is_ok());

    bench.pass(DAY - 1);
    let pruned = inbox.prune(bench.now(), 30).unwrap();
    assert_eq!((pruned.deliveries, pruned.bodies), (0, 0));
    bench.pass(2);
    let pruned = inbox.prune(bench.now(), 30).unwrap();
    assert_eq!((pruned.deliveries, pruned.bodies), (0, 5));
    assert!(over.iter().chain([&refused]).all(|seq| !has_text(seq)));
    assert!(
        unfinished
            .iter()
            .chain(&undecided)
            .chain([&accepted])
            .all(has_text)
    );

    // It came again: the days count from then.
    bench.pass(10 * DAY);
    inbox.accept(&comment("settled")).unwrap();
    bench.pass(20 * DAY);
    let pruned = inbox.prune(bench.now(), 30).unwrap();
    assert_eq!(pruned.deliveries, 4);
    assert_eq!(
        pruned.before,
        bench.now().minus(Duration::from_secs(30 * DAY))
    );
    assert!(there(&over[1]).is_some());
    assert!(there(&over[0]).is_none() && there(&refused).is_none());
    assert_eq!(
        inbox.once("said"),
        Ok(true),
        "forgotten with the deliveries"
    );
    assert_eq!(inbox.is_own_comment(&item(A), "IC_own"), Ok(false));
    // What was forgotten is new again, with a number of its own.
    let again = new_seq(inbox.accept(&comment("confirmed")).unwrap());
    assert!(again > accepted);
    inbox.end_delivery(again, Settled, "test").unwrap();

    bench.pass(140 * DAY);
    inbox.prune(bench.now(), 30).unwrap();
    assert!(undecided.iter().all(|seq| there(seq).is_some()));
    bench.pass(20 * DAY);
    assert_eq!(inbox.prune(bench.now(), 30).unwrap().deliveries, 2);
    assert!(undecided.iter().all(|seq| there(seq).is_none()));

    bench.pass(400 * DAY);
    inbox.prune(bench.now(), 30).unwrap();
    assert!(unfinished.iter().chain([&accepted]).all(has_text), "never");
    assert_eq!(count(&inbox, "deliveries"), 5);
    assert_eq!(count(&inbox, "outcomes"), 4);
    assert_eq!(count(&inbox, "dedupe"), 10);
    assert!(inbox.meta("heartbeat").unwrap().is_some());
    assert!(inbox.watermark(&key(B)).unwrap().is_some());
    assert!(inbox.parked(&Scope::Item(item(A))).unwrap().is_some());
    assert_eq!(inbox.parked(&Scope::Machine), Ok(None));
}

#[test]
fn st59_one_undecided_or_unfinished_outcome_keeps_its_delivery() {
    let bench = Bench::new();
    let inbox = bench.open();
    let seq = bench.queued(&inbox, &comment("a"), &[A, B]);
    walk(&inbox, seq, A, &[State::Settled]);
    bench.pass(1000 * DAY);
    assert_eq!(inbox.prune(bench.now(), 2).unwrap().deliveries, 0);
    walk(&inbox, seq, B, &[State::Abandoned]);
    assert_eq!(inbox.prune(bench.now(), 2).unwrap().deliveries, 0);
    let delivery = inbox.delivery(seq).unwrap().unwrap();
    assert!(delivery.delivery.is_ok(), "an operator may still retry it");
}

/// Puts finished deliveries in, as `rounds` of a busy month would leave them.
fn fill(inbox: &Inbox, now: Timestamp, from: i64, many: i64) {
    inbox
        .write(move |connection| {
            connection.execute_batch(&format!(
                "WITH RECURSIVE n(i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
                 INSERT INTO deliveries (seq, delivery_id, content_key, ingress, provider, host, event,
                   received_at, state, body)
                 SELECT i, 'guid-' || i, 'key-' || i, 'webhook', 'github', 'github.com', 'issues',
                   {at}, 'routed', zeroblob(300) FROM n;
                 INSERT INTO outcomes (seq, item_key, item, state, marker, updated_at)
                 SELECT seq, 'github:octo/repo#' || (seq % 500 + 1), 'github:octo/repo#' || (seq % 500 + 1),
                   'confirmed', 'dlv-' || seq, {at} FROM deliveries WHERE seq >= {from};
                 INSERT INTO dedupe SELECT 'key-' || seq, 'content', seq, {at}, {at}, 0
                   FROM deliveries WHERE seq >= {from};
                 INSERT INTO dedupe SELECT 'guid-' || seq, 'transport', seq, {at}, {at}, 0
                   FROM deliveries WHERE seq >= {from};",
                last = from + many - 1,
                at = now.unix_ms(),
            ))?;
            Ok(())
        })
        .unwrap();
}

#[test]
fn st59_a_hundred_thousand_deliveries_leave_a_small_file() {
    let bench = Bench::new();
    let inbox = bench.open();
    let on_disk = || {
        let of = |suffix: &str| {
            let path = Utf8PathBuf::from(format!("{}{suffix}", bench.path));
            OsDisk.meta(&path).unwrap().map_or(0, |meta| meta.len)
        };
        of("") + of("-wal")
    };
    let pages = || {
        let ask = |connection: &Connection| {
            Ok(connection.query_row("PRAGMA page_count", (), |row| row.get::<_, i64>(0))?)
        };
        inbox.read(ask).unwrap()
    };
    fill(&inbox, bench.now(), 1, 100_000);
    let full = pages();
    assert!(full > 10_000, "{full}");
    bench.pass(31 * DAY);
    let commits = bench.disk.commits();
    let pruned = inbox.prune(bench.now(), 30).unwrap();
    assert_eq!(pruned.deliveries, 100_000);
    assert!(
        bench.disk.commits() - commits >= 100,
        "in batches, so that acceptance goes on"
    );
    for table in ["deliveries", "outcomes", "dedupe"] {
        assert_eq!(count(&inbox, table), 0, "{table}");
    }
    assert!(pages() < 64, "{} of {full}", pages());
    // A second month does not need more room than the first.
    fill(&inbox, bench.now(), 200_001, 20_000);
    bench.pass(31 * DAY);
    assert_eq!(inbox.prune(bench.now(), 30).unwrap().deliveries, 20_000);
    assert!(pages() < 64);
    // The files follow: the write-ahead log keeps no more than its bound.
    let bound = the_loop_core::limits::INBOX_WAL_BYTES_MAX as u64 + (8 << 20);
    assert!(on_disk() < bound, "{}", on_disk());
}
