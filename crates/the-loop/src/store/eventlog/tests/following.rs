use super::*;

fn poll(follower: &mut Follower) -> (Vec<u64>, Vec<FollowNote>) {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    let flow = follower
        .poll(
            &only("state.swept"),
            &mut |record| {
                found.push(record.clone());
                ControlFlow::Continue(())
            },
            &mut |note| notes.push(note),
        )
        .unwrap();
    assert!(flow.is_continue());
    (counts(&found), notes)
}

fn follower(place: &Place) -> Follower {
    place.query(&Filter::default(), 50).1.follower
}

#[test]
fn ev25_each_match_as_it_comes_and_never_half_a_line() {
    let place = place();
    let log = place.writer();
    log.emit(Source::Cli, swept(1));
    let mut follower = follower(&place);
    assert_eq!(poll(&mut follower), (vec![], vec![]));
    log.emit(Source::Cli, swept(2));
    log.emit(Source::Cli, LogEvent::ServerStopped {});
    assert_eq!(poll(&mut follower).0, [2]);
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&place.log)
        .unwrap();
    file.write_all(b"{\"event\":\"state.swept\",").unwrap();
    assert_eq!(poll(&mut follower).0, [0; 0]);
    file.write_all(b"\"count\":3}\n").unwrap();
    assert_eq!(poll(&mut follower).0, [3]);
    assert_eq!(
        follower.position(),
        Some(fs::metadata(&place.log).unwrap().len())
    );
    file.write_all(b"nonsense\n").unwrap();
    assert_eq!(poll(&mut follower).1, [FollowNote::Invalid(1)]);
}

#[test]
fn ev25_begins_before_there_is_a_log() {
    let place = place();
    let mut follower = follower(&place);
    assert_eq!(poll(&mut follower).0, [0; 0]);
    assert_eq!(follower.position(), None);
    place.writer().emit(Source::Cli, swept(1));
    assert_eq!(poll(&mut follower).0, [1]);
}

#[test]
fn ev25_an_unfinished_line_at_the_start_is_shown_when_it_is_whole() {
    let place = place();
    place.writer().emit(Source::Cli, swept(1));
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&place.log)
        .unwrap();
    file.write_all(b"{\"event\":\"state.swept\",").unwrap();
    for limit in [0, 50] {
        let mut follower = place.query(&Filter::default(), limit).1.follower;
        assert_eq!(poll(&mut follower).0, [0; 0]);
    }
    let mut follower = follower(&place);
    file.write_all(b"\"count\":2}\n").unwrap();
    assert_eq!(poll(&mut follower).0, [2]);
}

#[test]
fn ev25_the_old_file_is_finished_before_the_next() {
    let place = place();
    let log = place.writer();
    log.emit(Source::Cli, swept(1));
    let mut follower = follower(&place);
    log.emit(Source::Cli, swept(2));
    place.rotate(&log);
    log.emit(Source::Cli, swept(3));
    place.rotate(&log);
    log.emit(Source::Cli, swept(4));
    place.rotate(&log);
    log.emit(Source::Cli, swept(5));
    assert_eq!(poll(&mut follower).0, [2, 3, 4, 5]);
    let whole: u64 = place
        .segments()
        .iter()
        .chain([&place.log])
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert_eq!(follower.position(), Some(whole));
    log.emit(Source::Cli, swept(6));
    assert_eq!(poll(&mut follower).0, [6]);
}

#[test]
fn ev25_a_segment_given_up_meanwhile_is_skipped() {
    let place = place();
    let log = place.writer();
    log.emit(Source::Cli, swept(1));
    let mut follower = follower(&place);
    for n in 2..5 {
        place.rotate(&log);
        log.emit(Source::Cli, swept(n));
    }
    for path in &place.segments()[..2] {
        fs::remove_file(path).unwrap();
    }
    assert_eq!(poll(&mut follower).0, [3, 4]);
}

#[test]
fn ev25_a_file_that_shrank_is_read_from_its_beginning_and_it_is_said() {
    let place = place();
    let log = place.writer();
    for n in 1..5 {
        log.emit(Source::Cli, swept(n));
    }
    let mut follower = follower(&place);
    fs::File::options()
        .write(true)
        .truncate(true)
        .open(&place.log)
        .unwrap();
    log.emit(Source::Cli, swept(9));
    assert_eq!(poll(&mut follower), (vec![9], vec![FollowNote::Shrank]));
}

#[test]
fn ev25_following_ends_when_it_is_told_to() {
    let place = place();
    let log = place.writer();
    log.emit(Source::Cli, swept(0));
    let mut follower = follower(&place);
    let stop = AtomicBool::new(false);
    let mut seen = Vec::new();
    log.emit(Source::Cli, swept(1));
    follower
        .follow(
            &Filter::default(),
            &place.world.clock,
            &|| stop.load(Ordering::SeqCst),
            &mut |record| {
                seen.push(record.fields["count"].as_u64().unwrap());
                // The next line comes while this one is shown.
                if seen.len() < 5 {
                    log.emit(Source::Cli, swept(seen.len() as u64 + 1));
                } else {
                    stop.store(true, Ordering::SeqCst);
                }
                ControlFlow::Continue(())
            },
            &mut |_| {},
        )
        .unwrap();
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    log.emit(Source::Cli, swept(6));
    let broken = follower.follow(
        &Filter::default(),
        &place.world.clock,
        &|| false,
        &mut |_| ControlFlow::Break(()),
        &mut |_| {},
    );
    assert!(broken.is_ok(), "a closed output ends it");
}

/// Followed while writers and a rotator are at work, every line comes once and in its writer's order.
#[test]
fn ev25_nothing_is_missed_or_shown_twice_under_rotation() {
    const WRITERS: u64 = 3;
    const LINES: u64 = 600;
    let place = place();
    let mut follower = follower(&place);
    let left = AtomicUsize::new(WRITERS as usize);
    let mut seen: Vec<Vec<u64>> = vec![Vec::new(); WRITERS as usize];
    let mut last_position = 0;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (place, left) = (&place, &left);
            scope.spawn(move || {
                let log = place.writer();
                for n in 0..LINES {
                    let event = LogEvent::HookMalformed {
                        file: format!("{writer}"),
                        count: n,
                        error: "x".repeat(1900),
                    };
                    log.emit(Source::Engine, event);
                    if writer == 0 {
                        log.rotate_if_needed().unwrap();
                    }
                }
                left.fetch_sub(1, Ordering::SeqCst);
            });
        }
        loop {
            let finished = left.load(Ordering::SeqCst) == 0;
            let flow = follower
                .poll(
                    &only("hook.*"),
                    &mut |record| {
                        assert!(record.position > last_position);
                        last_position = record.position;
                        let writer: usize =
                            record.fields["file"].as_str().unwrap().parse().unwrap();
                        seen[writer].push(record.fields["count"].as_u64().unwrap());
                        ControlFlow::Continue(())
                    },
                    &mut |note| panic!("{note:?}"),
                )
                .unwrap();
            assert!(flow.is_continue());
            if finished {
                break;
            }
            std::thread::yield_now();
        }
    });
    // The writer that rotates alone fills one; how much the others bring into its time is the machine's matter.
    assert!(!place.segments().is_empty());
    for numbers in seen {
        assert_eq!(numbers, (0..LINES).collect::<Vec<_>>());
    }
}
