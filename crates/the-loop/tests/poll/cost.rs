//! What a cycle costs (IN-40, IN-41).

use super::bench::{Bench, REPO};

#[test]
fn in40_a_quiet_cycle_is_four_conditional_requests_however_many_items_there_are() {
    let mut bench = Bench::new();
    for number in 1..=250 {
        bench.passes(1);
        bench.change(|world| {
            world.issue(REPO, number, "octocat", &[]);
            world.comment(REPO, number, "octocat", "words");
        });
    }
    bench.change(|world| world.issue(REPO, 999, "octocat", &["loop"]));
    bench.session(999);
    bench.cycle();
    // The overlap is read once more, then the lists stand.
    bench.passes(600);
    for _ in 0..4 {
        bench.cycle();
    }
    bench.asked();
    let tally = bench.cycle();
    let asked = bench.asked();
    assert_eq!(asked.len(), 4, "{asked:#?}");
    assert!(asked.iter().all(|(_, status)| *status == 304), "{asked:#?}");
    assert_eq!((tally.requests, tally.not_modified), (4, 4));
}

#[test]
fn in40_an_active_cycle_grows_with_what_changed() {
    let mut bench = Bench::new();
    for number in 1..=250 {
        bench.passes(1);
        bench.change(|world| world.issue(REPO, number, "octocat", &[]));
    }
    bench.change(|world| world.issue(REPO, 999, "octocat", &["loop"]));
    bench.session(999);
    bench.cycle();
    bench.passes(600);
    for _ in 0..4 {
        bench.cycle();
    }
    bench.asked();
    bench.change(|world| {
        world.comment(REPO, 3, "octocat", "words on a thread nobody follows");
        world.comment(REPO, 999, "octocat", "words");
    });
    bench.cycle();
    let asked = bench.asked();
    assert!(asked.len() <= 4, "{asked:#?}");
    assert_eq!(bench.told(), ["words"]);
}

#[test]
fn in41_a_list_of_many_pages_is_read_on_in_the_next_cycle() {
    let mut bench = Bench::new();
    bench.change(|world| world.issue(REPO, 1, "octocat", &["loop"]));
    bench.session(1);
    bench.cycle();
    for _ in 0..23 {
        bench.passes(200);
        bench.change(|world| {
            for _ in 0..100 {
                world.comment(REPO, 1, "octocat", "one of many");
            }
        });
    }
    bench.cycle();
    assert_eq!(bench.told().len(), 2_000);
    bench.cycle();
    assert_eq!(bench.told().len(), 2_300);
}
