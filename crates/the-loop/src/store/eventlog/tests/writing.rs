use super::*;

#[test]
fn ev11_the_file_is_private_and_its_directory_made_on_demand() {
    let place = place();
    let log = place.writer();
    assert!(
        !place.log.exists(),
        "nothing is opened before the first line"
    );
    log.emit(Source::Cli, swept(1));
    let mode = fs::metadata(&place.log).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let line = &place.lines()[0];
    assert_eq!(line["pid"], 4242);
    assert_eq!(line["ts"], "2026-03-01T09:00:00.000Z");
    check_line(line).unwrap();
}

#[test]
fn ev11_a_disabled_log_does_nothing() {
    let place = place();
    let log = EventLog::open(&place.world, &place.log, false, 1, 0);
    log.emit(Source::Cli, swept(1));
    log.tick();
    assert!(!log.is_enabled() && !log.rotate_if_needed().unwrap());
    assert!(log.path().is_none() && log.can_append().is_ok() && log.lost() == 0);
    assert!(!place.log.parent().unwrap().exists());
}

#[test]
fn ev3_every_event_can_be_written() {
    let place = place();
    let log = place.writer();
    for event in LogEvent::examples() {
        log.emit(Source::Engine, event);
    }
    for line in place.lines() {
        check_line(&line).unwrap();
    }
}

#[test]
fn ev10_a_torn_line_does_not_spoil_the_next() {
    let place = place();
    let log = place.writer();
    log.emit(Source::Cli, swept(1));
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(&place.log)
        .unwrap();
    file.write_all(b"{\"ts\":\"2026-").unwrap();
    log.emit(Source::Cli, swept(2));
    log.emit(Source::Cli, swept(3));
    let text = fs::read_to_string(&place.log).unwrap();
    assert_eq!(text.lines().count(), 4);
    assert_eq!(text.lines().nth(1), Some("{\"ts\":\"2026-"));
    let (found, summary) = place.query(&Filter::default(), 0);
    assert_eq!(counts(&found), [1, 2, 3]);
    assert_eq!(summary.invalid, 1);
}

#[test]
fn ev9_whether_the_log_can_be_appended_to_is_known_before_a_removal() {
    let place = place();
    assert!(place.writer().can_append().is_ok());
    assert_eq!(fs::metadata(&place.log).unwrap().len(), 0);
    fs::remove_file(&place.log).unwrap();
    fs::create_dir(&place.log).unwrap();
    assert!(place.writer().can_append().is_err());
    let log = place.writer();
    log.emit(Source::Cli, swept(1));
    assert_eq!(log.lost(), 1);
}

#[test]
fn ev14_rotation_closes_a_segment_and_begins_with_its_base() {
    let place = place();
    let log = place.writer();
    log.emit(Source::Cli, swept(1));
    assert!(!log.rotate_if_needed().unwrap(), "it is small");
    place.rotate(&log);
    let segments = place.segments();
    assert_eq!(
        segments[0].file_name(),
        Some("events-20260301T090000000Z.jsonl")
    );
    let size = fs::metadata(&segments[0]).unwrap().len();
    let first = &place.lines()[0];
    check_line(first).unwrap();
    assert_eq!(first["event"], "log.rotated");
    assert_eq!(
        (&first["base"], &first["bytes"]),
        (&size.into(), &size.into())
    );
    assert_eq!(first["previous"], "events-20260301T090000000Z.jsonl");
    assert_eq!(first["source"], "daemon");
    log.emit(Source::Cli, swept(2));
    place.rotate(&log);
    let segments = place.segments();
    assert_eq!(
        segments[1].file_name(),
        Some("events-20260301T090000001Z.jsonl"),
        "greater than all present though the clock stands still"
    );
    let second = fs::metadata(&segments[1]).unwrap().len();
    assert_eq!(place.lines()[0]["base"], size + second);
    assert!(!log.rotate_if_needed().unwrap());
}

#[test]
fn ev14_a_writer_notices_that_the_path_is_another_file() {
    let place = place();
    let daemon = place.writer();
    let command = place.writer();
    command.emit(Source::Cli, swept(1));
    place.rotate(&daemon);
    let closed = fs::metadata(&place.segments()[0]).unwrap().len();
    command.emit(Source::Cli, swept(2));
    assert_eq!(fs::metadata(&place.segments()[0]).unwrap().len(), closed);
    assert_eq!(place.lines()[1]["count"], 2);
    fs::remove_file(&place.log).unwrap();
    command.emit(Source::Cli, swept(3));
    let lines = place.lines();
    assert_eq!(
        lines[0]["event"], "log.rotated",
        "beside older segments (EV-15)"
    );
    assert_eq!(lines[0]["base"], closed);
    assert_eq!(lines[1]["count"], 3);
}

#[test]
fn ev16_old_segments_go_only_by_setting_and_are_announced() {
    let place = place();
    let log = place.writer();
    for n in 0..3 {
        log.emit(Source::Cli, swept(n));
        place.rotate(&log);
    }
    assert_eq!(place.segments().len(), 3);
    let oldest = place.segments()[0].clone();
    let base_before = place.lines()[0]["base"].clone();
    log.set_rotation(1, 2);
    log.rotate_if_needed().unwrap();
    assert_eq!(place.segments().len(), 2);
    assert!(!oldest.exists());
    let lines = place.lines();
    assert_eq!(lines[1]["event"], "log.removed");
    assert_eq!(lines[1]["file"].as_str(), oldest.file_name());
    check_line(&lines[1]).unwrap();
    place.rotate(&log);
    assert!(
        place.lines()[0]["base"].as_u64() > base_before.as_u64(),
        "positions only grow"
    );
}

#[test]
fn ev12_what_was_written_is_never_changed() {
    let place = place();
    let log = place.writer();
    for n in 0..20 {
        log.emit(Source::Cli, swept(n));
    }
    let before = fs::read(&place.log).unwrap();
    place.rotate(&log);
    log.emit(Source::Cli, swept(99));
    let after = fs::read(&place.segments()[0]).unwrap();
    assert_eq!(after[..before.len()], before[..]);
}

#[test]
fn ev19_the_environment_s_secrets_are_taken_out() {
    let mut place = place();
    let secret = "correct-horse-battery";
    let env = [("DEPLOY_TOKEN".to_owned(), secret.to_owned())].into();
    place.world.env = Arc::new(env);
    let log = place.writer();
    let event = |error: &str| LogEvent::InboxUnavailable {
        error: error.to_owned(),
    };
    log.emit(Source::Engine, event(&format!("refused {secret}")));
    log.set_redactor(the_loop_core::redact::Redactor::new([
        "from-the-file".to_owned()
    ]));
    log.emit(Source::Engine, event("refused from-the-file"));
    for line in place.lines() {
        assert_eq!(line["error"], "refused <redacted:value>");
    }
}

#[test]
fn a_log_behind_a_link_works() {
    let place = place();
    let real = place.log.with_file_name("real.jsonl");
    fs::create_dir_all(real.parent().unwrap()).unwrap();
    fs::write(&real, "").unwrap();
    std::os::unix::fs::symlink(&real, &place.log).unwrap();
    let log = place.writer();
    log.emit(Source::Cli, swept(1));
    assert_eq!(counts(&place.query(&Filter::default(), 50).0), [1]);
    assert_eq!(log.lost(), 0);
}

/// Many writers, each with its own descriptor, and one that rotates all the time: every line is there
/// once, whole, in a file that was open when it was written.
#[test]
fn ev14_no_line_is_lost_or_torn_while_the_log_rotates() {
    const WRITERS: u64 = 6;
    const LINES: u64 = 400;
    let place = place();
    let left = AtomicUsize::new(WRITERS as usize);
    let closed_sizes = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (place, left) = (&place, &left);
            scope.spawn(move || {
                let log = place.writer();
                for n in 0..LINES {
                    // About 2 KiB, so that a segment is full after some 500 lines.
                    let padding = "x".repeat(1900);
                    log.emit(
                        Source::Sessions,
                        LogEvent::StateCorrupt {
                            file: format!("{}", writer * LINES + n),
                            kind: the_loop_core::event::StateKind::Session,
                            error: padding,
                        },
                    );
                }
                assert_eq!(log.lost(), 0);
                left.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let daemon = place.writer();
        let mut sizes = std::collections::BTreeMap::new();
        while left.load(Ordering::SeqCst) > 0 {
            daemon.rotate_if_needed().unwrap();
            for segment in place.segments() {
                let size = fs::metadata(&segment).unwrap().len();
                sizes.entry(segment).or_insert(size);
            }
            std::thread::yield_now();
        }
        sizes
    });
    let segments = place.segments();
    assert!(segments.len() >= 3, "{segments:?}");
    for segment in &segments {
        if let Some(size) = closed_sizes.get(segment) {
            assert_eq!(
                fs::metadata(segment).unwrap().len(),
                *size,
                "closed means closed"
            );
        }
    }
    let mut seen = BTreeSet::new();
    let mut expected_base = 0;
    for path in segments.iter().chain([&place.log]) {
        let lines = lines_of(path);
        let rotated = lines.iter().filter(|l| l["event"] == "log.rotated").count();
        if expected_base > 0 {
            assert_eq!(lines[0]["event"], "log.rotated");
            assert_eq!(lines[0]["base"], expected_base);
            assert_eq!(rotated, 1);
        } else {
            assert_eq!(rotated, 0);
        }
        for line in &lines {
            check_line(line).unwrap();
            if line["event"] == "state.corrupt" {
                assert!(seen.insert(line["file"].as_str().unwrap().to_owned()));
            }
        }
        expected_base += fs::metadata(path).unwrap().len();
    }
    assert_eq!(seen.len() as u64, WRITERS * LINES);
    let (found, summary) = place.query(&only("state.*"), 0);
    assert_eq!(found.len() as u64, WRITERS * LINES);
    assert_eq!(summary.invalid, 0);
}

#[test]
fn clones_share_one_log_between_threads() {
    let place = place();
    let log = place.writer();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let log = log.clone();
            scope.spawn(move || (0..100).for_each(|n| log.emit(Source::Engine, swept(n))));
        }
    });
    assert_eq!(place.lines().len(), 400);
    log.sync();
}
