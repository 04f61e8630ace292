use super::*;

fn written(place: &Place, numbers: std::ops::Range<u64>) -> EventLog {
    let log = place.writer();
    for n in numbers {
        log.emit(Source::Engine, swept(n));
        place.world.clock.advance(Duration::from_mins(1));
    }
    log
}

#[test]
fn ev23_a_missing_log_is_an_empty_result() {
    let place = place();
    let (found, summary) = place.query(&Filter::default(), 50);
    assert!(found.is_empty() && summary.missing && summary.matched == 0);
}

#[test]
fn ev21_the_last_ones_oldest_first_across_segments() {
    let place = place();
    let log = written(&place, 0..10);
    place.rotate(&log);
    let log = written(&place, 10..20);
    place.rotate(&log);
    written(&place, 20..25);
    let numbers = |limit| counts(&place.query(&only("state.swept"), limit).0);
    assert_eq!(numbers(3), [22, 23, 24]);
    assert_eq!(numbers(8), (17..25).collect::<Vec<_>>());
    assert_eq!(numbers(18), (7..25).collect::<Vec<_>>());
    assert_eq!(numbers(500), (0..25).collect::<Vec<_>>());
    assert_eq!(numbers(0), (0..25).collect::<Vec<_>>());
}

#[test]
fn ev15_positions_are_the_same_from_both_ends_and_exact() {
    let place = place();
    let log = written(&place, 0..5);
    place.rotate(&log);
    written(&place, 5..9);
    let all = place.query(&Filter::default(), 0).0;
    let last = place.query(&Filter::default(), 10_000).0;
    assert_eq!(all, last);
    let mut whole = Vec::new();
    for path in place.segments().iter().chain([&place.log]) {
        whole.extend(fs::read(path).unwrap());
    }
    let mut before = 0;
    for record in &all {
        let end = record.position as usize;
        assert_eq!(whole[end - 1], b'\n');
        assert_eq!(whole[before..end - 1], record.line[..]);
        before = end;
    }
    assert_eq!(before, whole.len());
}

#[test]
fn ev21_times_pick_from_the_middle_of_several_segments() {
    let place = place();
    let log = written(&place, 0..30);
    place.rotate(&log);
    let log = written(&place, 30..60);
    place.rotate(&log);
    written(&place, 60..90);
    let minute = |n: u64| start().plus(Duration::from_secs(60 * n));
    for (since, until) in [(0, 89), (20, 40), (45, 46), (70, 80), (89, 200), (95, 99)] {
        let filter = Filter {
            since: Some(minute(since)),
            until: Some(minute(until)),
            ..only("state.swept")
        };
        let expected: Vec<u64> = (since..=until.min(89)).collect();
        assert_eq!(
            counts(&place.query(&filter, 0).0),
            expected,
            "{since} {until}"
        );
        assert_eq!(
            counts(&place.query(&filter, 1000).0),
            expected,
            "{since} {until}"
        );
    }
}

#[test]
fn ev22_lines_somewhat_out_of_order_are_still_found() {
    let place = place();
    fs::create_dir_all(place.log.parent().unwrap()).unwrap();
    let mut text = String::new();
    for (n, minute) in [(0, 0), (1, 5), (2, 3), (3, 9), (4, 4), (5, 12)] {
        text.push_str(&format!(
            "{{\"ts\":\"2026-03-01T09:{minute:02}:00.000Z\",\"event\":\"state.swept\",\"count\":{n}}}\n"
        ));
    }
    fs::write(&place.log, text).unwrap();
    let filter = Filter {
        since: Some("2026-03-01T09:05:00Z".parse().unwrap()),
        ..Filter::default()
    };
    assert_eq!(counts(&place.query(&filter, 50).0), [1, 3, 5]);
    assert_eq!(counts(&place.query(&filter, 0).0), [1, 3, 5]);
}

#[test]
fn ev23_what_is_no_line_is_counted_but_for_an_unfinished_end() {
    let place = place();
    fs::create_dir_all(place.log.parent().unwrap()).unwrap();
    let good = "{\"event\":\"state.swept\",\"count\":1}\n";
    let mut bytes = good.as_bytes().to_vec();
    bytes.extend(b"not json\n[1]\n\"text\"\n\xff\xfe\n{\"event\":\"\xff\"}\n\n{\"a\":1\n");
    bytes.extend(good.as_bytes());
    bytes.extend(b"{\"event\":\"state.swept\",\"count\":2}");
    fs::write(&place.log, &bytes).unwrap();
    for limit in [0, 50] {
        let (found, summary) = place.query(&Filter::default(), limit);
        assert_eq!(counts(&found), [1, 1]);
        assert_eq!(summary.invalid, 7);
        assert_eq!(found[0].line, good.trim_end().as_bytes());
    }
    let by_id = Filter {
        delivery_id: Some("d-1".into()),
        ..Filter::default()
    };
    assert_eq!(place.query(&by_id, 50).1.invalid, 7);
    // In a closed segment nobody finishes the last line any more.
    fs::rename(
        &place.log,
        place.log.with_file_name("events-20260301T090000000Z.jsonl"),
    )
    .unwrap();
    for limit in [0, 50] {
        assert_eq!(place.query(&Filter::default(), limit).1.invalid, 8);
    }
}

#[test]
fn overlong_lines_of_strangers_do_not_fill_the_memory() {
    let place = place();
    fs::create_dir_all(place.log.parent().unwrap()).unwrap();
    let good = |n: u64| format!("{{\"event\":\"state.swept\",\"count\":{n}}}\n");
    let long = "x".repeat(LINE_READ_MAX + 300_000);
    let largest = format!(
        "{{\"event\":\"state.swept\",\"count\":7,\"x\":\"{}\"}}\n",
        "y".repeat(LINE_READ_MAX - 1000)
    );
    let text = format!("{}{long}\n{}{largest}{}", good(1), good(2), good(3));
    fs::write(&place.log, &text).unwrap();
    let all = place.query(&Filter::default(), 0);
    let last = place.query(&Filter::default(), 50);
    assert_eq!(counts(&all.0), [1, 2, 7, 3]);
    assert_eq!(all.0, last.0);
    assert_eq!((all.1.invalid, last.1.invalid), (1, 1));
    assert_eq!(all.0[3].position, text.len() as u64);
}

#[test]
fn ev26_a_log_that_cannot_be_read_is_a_fault() {
    let place = place();
    fs::create_dir_all(&place.log).unwrap();
    let fault = Reader::new(&place.world, &place.log)
        .query(&Filter::default(), 50, &mut |_| ControlFlow::Continue(()))
        .unwrap_err();
    assert_eq!(fault.path, place.log);
}

#[test]
fn a_sink_can_end_the_reading() {
    let place = place();
    written(&place, 0..9);
    for limit in [0, 9] {
        let mut seen = 0;
        let summary = Reader::new(&place.world, &place.log)
            .query(&Filter::default(), limit, &mut |_| {
                seen += 1;
                if seen == 3 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .unwrap();
        assert_eq!((seen, summary.matched, summary.stopped), (3, 3, true));
    }
}

#[test]
fn ev21_filters_by_item_level_and_source() {
    let place = place();
    let log = place.writer();
    let paused = |item: &str| LogEvent::SessionPaused {
        work_item: item.parse().unwrap(),
        harness: "claude".into(),
        harness_session_id: None,
    };
    log.emit(Source::Engine, paused("github:Octo/repo#1"));
    log.emit(Source::Sessions, paused("github:octo/repo#15"));
    log.emit(
        Source::Cli,
        LogEvent::InboxUnavailable { error: "x".into() },
    );
    let found = |filter: Filter| place.query(&filter, 50).0.len();
    let item: the_loop_core::ids::WorkItemRef = "github:octo/Repo#1".parse().unwrap();
    assert_eq!(
        found(Filter {
            work_item: Some(item.key()),
            ..Filter::default()
        }),
        1
    );
    assert_eq!(
        found(Filter {
            level: Some(Level::Warning),
            ..Filter::default()
        }),
        1
    );
    assert_eq!(
        found(Filter {
            source: Some("sessions".into()),
            ..Filter::default()
        }),
        1
    );
}

/// 200,000 lines in five segments: the last 50 cost the same as in a small log, and so does a look that
/// `since` bounds.
#[test]
fn ev22_the_cost_depends_on_the_answer() {
    const LINES: u64 = 200_000;
    let place = place();
    fs::create_dir_all(place.log.parent().unwrap()).unwrap();
    let mut n = 0;
    for part in 0..5 {
        let mut text = String::new();
        for _ in 0..LINES / 5 {
            let at = start().plus(Duration::from_secs(n)).millis();
            text.push_str(&format!(
                "{{\"ts\":\"{at}\",\"source\":\"engine\",\"event\":\"state.swept\",\"level\":\"debug\",\"pid\":1,\"count\":{n}}}\n"
            ));
            n += 1;
        }
        let name = match part {
            4 => "events.jsonl".to_owned(),
            part => format!("events-2026030{}T000000000Z.jsonl", part + 2),
        };
        fs::write(place.log.with_file_name(name), text).unwrap();
    }
    let look = |filter: &Filter, limit: usize| {
        let begun = std::time::Instant::now();
        let (found, _) = place.query(filter, limit);
        (counts(&found), begun.elapsed())
    };
    // A look at every line, which the others must not come near, whatever the machine.
    let begun = std::time::Instant::now();
    assert_eq!(place.query(&only("state.*"), 0).1.matched, LINES);
    let whole = begun.elapsed();
    let (found, took) = look(&Filter::default(), 50);
    assert_eq!(found, (LINES - 50..LINES).collect::<Vec<_>>());
    assert!(took * 20 < whole, "{took:?} of {whole:?}");
    let recent = Filter {
        since: Some(start().plus(Duration::from_secs(LINES - 20))),
        ..Filter::default()
    };
    for limit in [0, 50] {
        let (found, took) = look(&recent, limit);
        assert_eq!(found, (LINES - 20..LINES).collect::<Vec<_>>());
        assert!(took * 20 < whole, "{took:?} of {whole:?}");
    }
    let middle = Filter {
        since: Some(start().plus(Duration::from_secs(100_000))),
        until: Some(start().plus(Duration::from_secs(100_010))),
        ..Filter::default()
    };
    assert_eq!(look(&middle, 0).0, (100_000..=100_010).collect::<Vec<_>>());
}
