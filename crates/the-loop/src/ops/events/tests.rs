use super::*;

fn now() -> Timestamp {
    "2026-03-01T09:12:44Z".parse().unwrap()
}

#[test]
fn se67_options_become_filters() {
    let query = EventsQuery {
        types: vec!["session.*".into()],
        work_item: Some("github:Octo/Repo#15".into()),
        delivery_id: Some("d".into()),
        source: Some("diagnose".into()),
        level: Some("warning".into()),
        since: Some("1h".into()),
        until: Some("2026-03-01".into()),
    };
    let parsed = query.parse(now()).unwrap();
    assert!(parsed.notes.is_empty());
    let filter = parsed.filter;
    assert_eq!(filter.work_item.unwrap().as_str(), "github:octo/repo#15");
    assert_eq!(filter.level, Some(Level::Warning));
    assert_eq!(filter.since.unwrap().seconds(), "2026-03-01T08:12:44Z");
    assert_eq!(filter.until.unwrap().seconds(), "2026-03-01T00:00:00Z");
    assert_eq!(filter.source.as_deref(), Some("diagnose"));
}

#[test]
fn ev26_bad_options_say_what_is_there() {
    let error = |query: EventsQuery| query.parse(now()).unwrap_err().to_string();
    assert_eq!(
        error(EventsQuery {
            source: Some("engines".into()),
            ..EventsQuery::default()
        }),
        "no source is called \"engines\"; there are daemon, gh-webhook, poll, tracker, engine, sessions, service, \
         channels, ask, cli"
    );
    assert_eq!(
        error(EventsQuery {
            level: Some("warn".into()),
            ..EventsQuery::default()
        }),
        "no level is called \"warn\"; there are debug, info, warning, error"
    );
    assert!(
        error(EventsQuery {
            since: Some("soon".into()),
            ..EventsQuery::default()
        })
        .starts_with("--since: ")
    );
    assert!(
        error(EventsQuery {
            until: Some("later".into()),
            ..EventsQuery::default()
        })
        .starts_with("--until: ")
    );
    assert!(
        error(EventsQuery {
            work_item: Some("15".into()),
            ..EventsQuery::default()
        })
        .contains("\"15\"")
    );
}

#[test]
fn ev21_a_pattern_that_matches_nothing_known_is_noted_and_still_applies() {
    let query = EventsQuery {
        types: vec![
            "session.spwaned".into(),
            "standing.begun".into(),
            "poll.*".into(),
        ],
        ..EventsQuery::default()
    };
    let parsed = query.parse(now()).unwrap();
    assert_eq!(
        parsed.notes,
        ["no event type matches \"session.spwaned\"; the nearest is session.spawned"]
    );
    assert_eq!(parsed.filter.types.len(), 3);
}
