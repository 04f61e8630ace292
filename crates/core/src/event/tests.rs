use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::catalogue::reserved_names;
use super::*;
use crate::delivery::Ingress;
use crate::ids::WorkItemRef;
use crate::redact::Redactor;
use crate::time::Timestamp;

fn at() -> Timestamp {
    "2026-03-01T09:12:44.318Z".parse().unwrap()
}

fn envelope() -> Envelope {
    Envelope {
        at: at(),
        source: Source::Engine,
        pid: 4242,
    }
}

fn parse(bytes: &[u8]) -> Map<String, Value> {
    assert_eq!(bytes.last(), Some(&b'\n'));
    let inner = &bytes[..bytes.len() - 1];
    assert!(!inner.contains(&b'\n'), "one line only");
    serde_json::from_slice(inner).unwrap()
}

fn render(event: &LogEvent) -> Map<String, Value> {
    parse(&line(envelope(), event, &Redactor::default()))
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn item() -> WorkItemRef {
    "github:octo/repo#15".parse().unwrap()
}

#[test]
fn ev3_every_variant_has_an_example_and_all_stay_as_they_are() {
    let examples = LogEvent::examples();
    assert_eq!(examples.len(), CATALOGUE.len());
    let mut text = String::new();
    for (example, known) in examples.iter().zip(CATALOGUE) {
        assert_eq!(example.name(), known.name);
        text.push_str(
            std::str::from_utf8(&line(envelope(), example, &Redactor::default())).unwrap(),
        );
    }
    insta::assert_snapshot!("examples", text);
}

#[test]
fn ev4_examples_have_every_declared_field_and_no_other() {
    for (example, known) in LogEvent::examples().iter().zip(CATALOGUE) {
        let line = render(example);
        check_line(&line).unwrap();
        let keys: Vec<&str> = line.keys().skip(5).map(String::as_str).collect();
        let declared: Vec<&str> = known.fields.iter().map(|f| f.name).collect();
        assert_eq!(keys, declared, "{}", known.name);
    }
}

#[test]
fn ev4_the_page_says_what_the_code_says() {
    let page = include_str!("../../../../docs/events.md");
    assert!(
        page == catalogue_markdown(),
        "docs/events.md is not what the vocabulary says; run `cargo xtask codegen`"
    );
}

#[test]
fn ev4_the_json_catalogue_tells_the_same() {
    let json = catalogue_json();
    let events = json["events"].as_array().unwrap();
    assert_eq!(events.len(), CATALOGUE.len());
    for (told, known) in events.iter().zip(CATALOGUE) {
        assert_eq!(told["event"], known.name);
        assert_eq!(told["levels"].as_array().unwrap().len(), known.levels.len());
        for (field, declared) in told["fields"].as_array().unwrap().iter().zip(known.fields) {
            assert_eq!(field["name"], declared.name);
            assert_eq!(field["optional"], declared.optional);
            assert_ne!(field["meaning"], "", "{}.{}", known.name, declared.name);
        }
    }
    assert_eq!(
        json["reserved"].as_array().unwrap().len(),
        reserved_names().count()
    );
}

#[test]
fn ev1_names_are_unique_and_no_field_hides_the_envelope() {
    let mut names = BTreeSet::new();
    for known in CATALOGUE {
        assert!(names.insert(known.name.to_owned()), "{} twice", known.name);
        assert!(!known.meaning.trim().is_empty());
        let fields: BTreeSet<&str> = known.fields.iter().map(|f| f.name).collect();
        assert_eq!(fields.len(), known.fields.len(), "{}", known.name);
        for reserved in ["ts", "source", "event", "level", "pid", "truncated"] {
            assert!(!fields.contains(reserved), "{}", known.name);
        }
    }
    for (name, _) in reserved_names() {
        assert!(names.insert(name.clone()), "{name} is reserved and written");
    }
}

#[test]
fn ev4_every_field_has_a_meaning_and_no_meaning_is_left_over() {
    let used: BTreeSet<&str> = CATALOGUE
        .iter()
        .flat_map(|e| e.fields.iter().map(|f| f.name))
        .collect();
    let told: BTreeSet<&str> = fields::FIELDS.iter().map(|(name, _, _)| *name).collect();
    assert_eq!(used, told);
}

#[test]
fn ev3_words_that_live_elsewhere_are_listed_whole() {
    let Some(list) = <Ingress as FieldValue>::KIND.words() else {
        panic!("no list");
    };
    for word in list.words {
        assert_eq!(Ingress::parse(word).unwrap().as_str(), *word);
    }
}

#[test]
fn ev3_levels_follow_the_field_that_decides_them() {
    let exited = |expected| LogEvent::SessionExited {
        work_item: item(),
        endpoint: None,
        harness: "claude".into(),
        tmux_target: "loop-github-octo-repo-15".into(),
        state: ExitedState::Dead,
        exit_code: None,
        expected,
    };
    assert_eq!(exited(true).level(), Level::Info);
    assert_eq!(exited(false).level(), Level::Warning);
    let created = |records| LogEvent::InboxCreated {
        path: "/x".into(),
        records,
    };
    assert_eq!(created(0).level(), Level::Info);
    assert_eq!(created(2).level(), Level::Warning);
    for (reason, level) in [
        (DispatchDropReason::AlreadyClosed, "debug"),
        (DispatchDropReason::ItemClosed, "info"),
        (DispatchDropReason::SessionVanished, "warning"),
        (DispatchDropReason::SessionOccupied, "error"),
    ] {
        assert_eq!(reason.level().as_str(), level);
    }
    assert_eq!(RoutingDropReason::UnknownHost.level(), Level::Warning);
    assert_eq!(RoutingDropReason::StaleHead.level(), Level::Info);
    assert_eq!(WebhookRejectReason::InvalidPayload.level(), Level::Error);
    assert_eq!(WebhookRejectReason::Busy.level(), Level::Warning);
}

#[test]
fn ev2_a_field_without_value_is_left_out() {
    let line = render(&LogEvent::DaemonBlocked {
        path: "/x".into(),
        holder: None,
    });
    let text = Value::Object(line).to_string();
    assert_eq!(
        text,
        r#"{"ts":"2026-03-01T09:12:44.318Z","source":"engine","event":"daemon.blocked","level":"warning","pid":4242,"path":"/x"}"#
    );
}

#[test]
fn ev17_lines_that_must_be_on_the_platter() {
    let now = [
        "control.command",
        "session.closed",
        "work.clean",
        "limit.parked",
    ];
    let later = [
        "session.spawned",
        "delivery.pasted",
        "work",
        "webhook.received",
    ];
    for event in LogEvent::examples() {
        if now.contains(&event.name()) || event.level() == Level::Error {
            assert!(event.syncs_at_once(), "{}", event.name());
        }
        if later.contains(&event.name()) {
            assert!(!event.syncs_at_once(), "{}", event.name());
        }
    }
}

fn failed(error: String) -> LogEvent {
    LogEvent::InboxUnavailable { error }
}

#[test]
fn ev7_long_texts_are_cut_counted_and_named() {
    let line = render(&failed("é".repeat(2007)));
    let error = line["error"].as_str().unwrap();
    assert_eq!(error, format!("{}…[+7]", "é".repeat(2000)));
    assert_eq!(line["truncated"], json!(["error"]));
    check_line(&line).unwrap();
    assert_eq!(line.keys().next_back().unwrap(), "truncated");
    let whole = render(&failed("é".repeat(2000)));
    assert!(!whole.contains_key("truncated"));
}

#[test]
fn ev7_lists_are_cut_and_a_line_never_passes_its_bound() {
    let event = LogEvent::ConfigReloaded {
        path: "p".repeat(5000),
        changed: (0..250)
            .map(|n| format!("{n}{}", "\u{1}".repeat(9000)))
            .collect(),
        restart_required: vec!["short".into()],
    };
    let bytes = line(envelope(), &event, &Redactor::default());
    assert!(bytes.len() <= LINE_BYTES_MAX);
    let fields = parse(&bytes);
    check_line(&fields).unwrap();
    assert_eq!(fields["truncated"], json!(["path", "changed"]));
    let event = LogEvent::ConfigReloaded {
        path: "p".into(),
        changed: (0..250).map(|n| n.to_string()).collect(),
        restart_required: vec![],
    };
    let fields = render(&event);
    assert_eq!(fields["changed"].as_array().unwrap().len(), 200);
    assert_eq!(fields["restart_required"], json!([]));
}

fn died(tail: &str) -> LogEvent {
    LogEvent::SessionSpawnFailed {
        work_item: item(),
        endpoint: None,
        harness: "claude".into(),
        tmux_target: None,
        error: "died".into(),
        will_retry: false,
        remedy: None,
        tail: Some(tail.to_owned()),
    }
}

#[test]
fn ev18_of_a_tail_the_last_lines_are_kept() {
    let pane: Vec<String> = (1..=30).map(|n| format!("line {n}")).collect();
    let line = render(&died(&pane.join("\n")));
    let tail = line["tail"].as_str().unwrap();
    assert_eq!(tail.lines().count(), 20);
    assert!(tail.starts_with("line 11\n") && tail.ends_with("line 30"));
    assert_eq!(line["truncated"], json!(["tail"]));
    let wide: Vec<String> = (1..=15)
        .map(|n| format!("{n} {}", "x".repeat(300)))
        .collect();
    let line = render(&died(&wide.join("\n")));
    let tail = line["tail"].as_str().unwrap();
    assert!(tail.chars().count() <= 2000 && tail.contains("\n15 x"));
    assert!(!render(&died("a\nb")).contains_key("truncated"));
}

#[test]
fn ev19_secrets_go_before_the_cut_so_no_half_is_left() {
    let secret = "s3cr3t-value-that-is-long";
    let redactor = Redactor::new([secret.to_owned()]);
    let event = failed(format!("{}{secret} tail", "x".repeat(1995)));
    let text = String::from_utf8(line(envelope(), &event, &redactor)).unwrap();
    assert!(!text.contains("s3cr3"), "{text}");
    assert!(text.contains("<reda"));
}

#[test]
fn ev4_check_line_finds_what_is_wrong() {
    let good = render(&failed("x".into()));
    check_line(&good).unwrap();
    let wrong = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut line = good.clone();
        change(&mut line);
        assert!(check_line(&line).is_err(), "{line:?}");
    };
    wrong(&|l| {
        l.insert("extra".into(), json!(1));
    });
    wrong(&|l| {
        l.insert("event".into(), json!("inbox.unheard_of"));
    });
    wrong(&|l| {
        l.insert("level".into(), json!("info"));
    });
    wrong(&|l| {
        l.insert("error".into(), json!(3));
    });
    wrong(&|l| {
        l.shift_remove("error");
    });
    wrong(&|l| {
        l.shift_remove("ts");
    });
}

#[test]
fn ev21_globs() {
    for (pattern, name, hit) in [
        ("session.*", "session.spawned", true),
        ("*.spawned", "session.spawned", true),
        ("s*n.*ed", "session.spawned", true),
        ("*", "session.spawned", true),
        ("session", "session.spawned", false),
        ("session.spawned", "session.spawned", true),
        ("*spawned*failed", "session.spawn_failed", false),
        ("a*a", "a", false),
        ("a**b", "ab", true),
        ("", "", true),
        ("", "a", false),
    ] {
        assert_eq!(Glob::new(pattern).matches(name), hit, "{pattern} {name}");
    }
}

#[test]
fn known_patterns() {
    for known in [
        "session.*",
        "poll.cycle",
        "standing.started",
        "graph.*",
        "*",
    ] {
        assert!(is_known_pattern(&Glob::new(known)), "{known}");
    }
    assert!(!is_known_pattern(&Glob::new("sesion.*")));
}

#[test]
fn sources_and_levels_are_closed_and_levels_are_ordered() {
    assert_eq!(Source::ALL.len(), 10);
    assert!(Level::Debug < Level::Info && Level::Warning < Level::Error);
    assert_eq!(Source::parse("diagnose"), None);
}

#[test]
fn ev21_filters_are_anded() {
    let line = object(json!({
        "ts": "2026-03-01T10:12:44.318+01:00", "source": "engine", "event": "session.closed", "level": "info",
        "work_items": ["github:Octo/Repo#15"], "delivery_ids": ["a", "b"],
    }));
    let hit = |filter: &Filter| filter.matches(&line);
    assert!(hit(&Filter::default()));
    let good = Filter {
        types: vec![Glob::new("x"), Glob::new("session.*")],
        work_item: Some(item().key()),
        delivery_id: Some("b".into()),
        source: Some("engine".into()),
        level: Some(Level::Info),
        since: Some(at()),
        until: Some(at()),
    };
    assert!(hit(&good));
    for bad in [
        Filter {
            types: vec![Glob::new("x")],
            ..good.clone()
        },
        Filter {
            work_item: Some("github:octo/repo#16".parse::<WorkItemRef>().unwrap().key()),
            ..good.clone()
        },
        Filter {
            delivery_id: Some("c".into()),
            ..good.clone()
        },
        Filter {
            source: Some("cli".into()),
            ..good.clone()
        },
        Filter {
            level: Some(Level::Warning),
            ..good.clone()
        },
        Filter {
            since: Some(at().plus(Duration::from_millis(1))),
            ..good.clone()
        },
        Filter {
            until: Some(at().minus(Duration::from_millis(1))),
            ..good.clone()
        },
    ] {
        assert!(!hit(&bad), "{bad:?}");
    }
    let endpoint = object(json!({"event": "x", "endpoint": "github:octo/repo#15"}));
    let by_item = Filter {
        work_item: Some(item().key()),
        ..Filter::default()
    };
    assert!(by_item.matches(&endpoint));
    assert_eq!(by_item.needle().as_deref(), Some("#15\""));
    let timed = Filter {
        since: Some(at()),
        ..Filter::default()
    };
    assert!(
        !timed.matches(&endpoint),
        "a line without a time is in no time"
    );
}

#[test]
fn ev21_times() {
    let now = at();
    for (text, ago) in [
        ("30s", 30),
        ("15m", 900),
        ("2h", 7200),
        ("1d", 86_400),
        ("2w", 1_209_600),
        ("0s", 0),
    ] {
        assert_eq!(
            parse_when(text, now),
            Ok(now.minus(Duration::from_secs(ago))),
            "{text}"
        );
    }
    assert_eq!(
        parse_when("2026-03-01", now).unwrap().millis(),
        "2026-03-01T00:00:00.000Z"
    );
    assert_eq!(
        parse_when("2026-03-01T10:12:44.318+01:00", now).unwrap(),
        now
    );
    for bad in [
        "",
        "s",
        "5",
        "-5s",
        "5 s",
        "5y",
        "yesterday",
        "2026-3-1",
        "2026-13-01",
        "2026-03-01T10:00:00",
        "99999999999999999999w",
        "9999999999999999w",
        "½h",
    ] {
        assert!(parse_when(bad, now).is_err(), "{bad:?}");
    }
}

#[test]
fn ev24_rows_are_safe_to_print() {
    let line = object(json!({
        "ts": "2026-03-01T09:12:44.318Z", "source": "engine", "event": "inbox.damaged", "level": "error", "pid": 1,
        "work_item": "github:octo/repo#15", "error": "a \u{1b}[31mred\u{202e} \"b\"\nc", "count": 3, "names": ["A", "B"],
        "note": "",
    }));
    let row = row(&line);
    assert_eq!(row.work_item, "github:octo/repo#15");
    assert_eq!(
        row.details,
        r#"error="a \x1b[31mred\u{202e} \"b\"\nc" count=3 names=A,B note="""#
    );
    assert!(
        row.cells()
            .iter()
            .all(|cell| !cell.contains(|c: char| c.is_control()))
    );
    assert_eq!(Row::HEADS.len(), row.cells().len());
}

#[test]
fn rows_of_several_items_and_of_none() {
    let several = object(json!({"event": "x", "work_items": ["a", "b"], "endpoint": "c"}));
    assert_eq!(row(&several).work_item, "a,b");
    assert_eq!(row(&several).details, "endpoint=c");
    assert_eq!(row(&object(json!({"event": "x"}))).work_item, "");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ev7_any_text_makes_one_line_within_its_bound(error in any::<String>(), list in proptest::collection::vec(".{0,600}", 0..260)) {
        let event = LogEvent::ConfigReloaded { path: error.clone(), changed: list, restart_required: vec![error] };
        let bytes = line(envelope(), &event, &Redactor::default());
        prop_assert!(bytes.len() <= LINE_BYTES_MAX);
        prop_assert!(check_line(&parse(&bytes)).is_ok());
    }

    #[test]
    fn parse_when_takes_any_text(text in any::<String>()) {
        let _ = parse_when(&text, at());
    }

    #[test]
    fn globs_without_stars_are_equality(pattern in "[a-z.]{0,8}", name in "[a-z.]{0,8}") {
        prop_assert_eq!(Glob::new(&pattern).matches(&name), pattern == name);
    }
}
