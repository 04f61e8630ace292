//! Which results of checks are told, and that a commit that fails changes nothing (IN-32).

use super::*;
use crate::store::inbox::CheckEnd;

fn end(of: &[&str], name: &str, conclusion: &str) -> CheckEnd {
    CheckEnd {
        of: of.iter().map(|text| key(text)).collect(),
        name: name.to_owned(),
        conclusion: conclusion.to_owned(),
    }
}

#[test]
fn in32_each_pull_request_has_its_own_table_and_any_news_is_told() {
    let bench = Bench::new();
    let inbox = bench.open();
    let told = |id: &str, end: CheckEnd| {
        let seq = new_seq(inbox.accept(&comment(id)).unwrap());
        let routed = inbox.route_check(seq, &bench.outcomes(&[A]), end).unwrap();
        let is_told = routed.is_some();
        assert_eq!(inbox.outcome(seq, &key(A)).unwrap().is_some(), is_told);
        is_told
    };
    assert!(told("a", end(&[A], "build", "failure")));
    assert!(told("b", end(&[B], "build", "success")));
    assert!(!told("c", end(&[A], "lint", "success")));
    assert!(!told("d", end(&[B], "lint", "success")));
    // To B nothing is new, to A everything is well at last.
    assert!(told("e", end(&[B, A], "build", "success")));
    // Names that differ only where they are cut are one.
    let long = |tail: &str| format!("{}{tail}", "n".repeat(200));
    assert!(told("f", end(&[A], &long("x"), "failure")));
    assert!(told("g", end(&[A], &long("y"), "success")));
}

#[test]
fn in32_st52_a_commit_that_fails_leaves_the_result_to_be_told() {
    for fails_after_the_rows_are_in in [false, true] {
        let bench = Bench::new();
        let inbox = bench.open();
        let seq = new_seq(inbox.accept(&comment("a")).unwrap());
        bench.disk.watch(move |n, work| {
            if n != 1 {
                return work();
            }
            if fails_after_the_rows_are_in {
                work()?;
            }
            Err(io::Error::other("no space left on device"))
        });
        let route = || inbox.route_check(seq, &bench.outcomes(&[A]), end(&[A], "build", "success"));
        assert!(route().is_err());
        bench.pass(60);
        // It was told by the commit that seemed to fail, or is told now: once, and not as unchanged.
        let again = route();
        assert!(
            matches!(again, Ok(Some(_)) | Err(InboxError::Refused { .. })),
            "{again:?}"
        );
        assert_eq!(state(&inbox, seq, A), State::Queued);
    }
}
