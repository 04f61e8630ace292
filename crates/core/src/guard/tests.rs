use super::*;
use crate::config::SpawnOnUnmatched;
use crate::control::{Command, ItemState, SessionNow};
use crate::delivery::{Ending, ItemFacts, State};
use crate::event::DispatchDropReason;
use crate::ids::WorkItemRef;
use crate::time::Timestamp;

fn actor(login: &str, id: u64) -> Actor {
    Actor {
        login: login.to_owned(),
        id: (id != 0).then_some(id),
        bot: false,
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn delivery(ingress: Ingress, effect: Effect, by: Option<Actor>) -> Delivery {
    Delivery {
        delivery_id: "d-1".to_owned(),
        content_key: "github/github.com/comment/C/created".to_owned(),
        numeric_key: None,
        ingress,
        item: "github:octo/repo#15".parse::<WorkItemRef>().unwrap(),
        event: "issue_comment".to_owned(),
        action: Some("created".to_owned()),
        actor: by,
        received_at: at("2026-03-30T00:00:00Z"),
        pull: None,
        place: None,
        asked: None,
        facts: ItemFacts::default(),
        effect,
        entries: vec![],
    }
}

fn text(body: &str, author: Option<Actor>) -> Effect {
    Effect::Text(Text {
        comment_id: Some("C".to_owned()),
        body: body.to_owned(),
        author,
        html_url: None,
        created_at: Some(at("2026-03-29T00:00:00Z")),
        decision: None,
        edited: false,
    })
}

fn close() -> Effect {
    Effect::Close {
        ending: Ending::Closed,
        at: None,
        moved_to: None,
    }
}

fn verdict(delivery: &Delivery, own_comment: bool) -> &'static str {
    let authorized = AuthorizedUsers::new(["Ada", "id:7", "helper[bot]"]);
    let facts = Facts {
        delivery,
        authorized: &authorized,
        own_comment,
        retention_days: 30,
    };
    match judge(&facts) {
        Judgement::Allowed => "allowed",
        Judgement::TooOld => "already-processed",
        Judgement::Refused(why) => why.as_str(),
    }
}

#[test]
fn in23_who_is_on_the_list() {
    let bot = |login: &str, id: u64| Actor {
        bot: true,
        ..actor(login, id)
    };
    for (entries, who, admitted) in [
        (&["ada"][..], actor("Ada", 1), true),
        (&["ADA"], actor("ada", 0), true),
        (&["ada"], actor("ada2", 1), false),
        (&["adä"], actor("adÄ", 1), false),
        (&[], actor("ada", 1), false),
        (&[""], actor("", 0), false),
        (&["id:7"], actor("renamed", 7), true),
        (&["id:7"], actor("id:7", 8), false),
        (&["id:7"], actor("x", 0), false),
        (&["id:x", "id:"], actor("id:x", 0), false),
        (&["operator"], actor("operator[bot]", 9), false),
        (&["operator"], bot("operator", 9), false),
        (&["operator[bot]"], actor("Operator[Bot]", 9), true),
        (&["operator[bot]"], bot("operator[bot]", 9), true),
        (&["operator[bot]"], bot("operator", 9), false),
        (&["operator[bot]"], actor("operator", 9), false),
        (&["id:9"], bot("operator", 9), true),
    ] {
        let list = AuthorizedUsers::new(entries);
        assert_eq!(list.admits(&who), admitted, "{entries:?} {who:?}");
    }
}

#[test]
fn in22_the_first_guard_that_refuses_decides() {
    let ada = || Some(actor("ada", 1));
    let eve = || Some(actor("eve", 2));
    let marked = format!("hello {AGENT_COMMENT_MARK}");
    let hook = Ingress::Webhook;
    for (what, delivery, own, wanted) in vec![
        (
            "words",
            delivery(hook, text("hi", ada()), ada()),
            false,
            "allowed",
        ),
        (
            "by id",
            delivery(hook, text("hi", Some(actor("x", 7))), Some(actor("y", 7))),
            false,
            "allowed",
        ),
        (
            "stranger",
            delivery(hook, text("hi", eve()), eve()),
            false,
            "unauthorized-actor",
        ),
        (
            "ours by id",
            delivery(hook, text("hi", ada()), ada()),
            true,
            "self-authored",
        ),
        (
            "marked",
            delivery(hook, text(&marked, ada()), ada()),
            false,
            "self-authored",
        ),
        (
            "stranger, marked",
            delivery(hook, text(&marked, eve()), eve()),
            false,
            "self-authored",
        ),
        (
            "nobody, marked",
            delivery(hook, text(&marked, None), None),
            false,
            "self-authored",
        ),
        (
            "no sender",
            delivery(hook, text("hi", ada()), None),
            false,
            "no-actor",
        ),
        (
            "no author",
            delivery(hook, text("hi", None), ada()),
            false,
            "no-actor",
        ),
        (
            "for another",
            delivery(hook, text("hi", eve()), ada()),
            false,
            "author-mismatch",
        ),
        (
            "by another",
            delivery(hook, text("hi", ada()), eve()),
            false,
            "author-mismatch",
        ),
        (
            "same login, other id",
            delivery(hook, text("hi", Some(actor("ada", 2))), ada()),
            false,
            "author-mismatch",
        ),
        (
            "id on one side",
            delivery(hook, text("hi", Some(actor("ADA", 0))), ada()),
            false,
            "allowed",
        ),
        (
            "label",
            delivery(hook, Effect::Presence, ada()),
            false,
            "allowed",
        ),
        (
            "stranger's label",
            delivery(hook, Effect::Presence, eve()),
            false,
            "unauthorized-actor",
        ),
        (
            "nobody's label",
            delivery(hook, Effect::Presence, None),
            false,
            "no-actor",
        ),
        (
            "edit",
            delivery(hook, Effect::Notice { changed: vec![] }, eve()),
            false,
            "unauthorized-actor",
        ),
        ("close", delivery(hook, close(), eve()), false, "allowed"),
        (
            "nobody's close",
            delivery(hook, close(), None),
            false,
            "allowed",
        ),
    ] {
        assert_eq!(verdict(&delivery, own), wanted, "{what}");
    }
}

#[test]
fn in55_the_user_of_the_machine_is_authorised_by_definition() {
    let user = || Some(actor("whoever", 0));
    for ingress in [Ingress::Tracker, Ingress::Cli, Ingress::Api] {
        assert_eq!(
            verdict(&delivery(ingress, text("hi", None), user()), false),
            "allowed"
        );
        let start = Effect::Start { harness: None };
        assert_eq!(verdict(&delivery(ingress, start, user()), false), "allowed");
        assert_eq!(
            verdict(&delivery(ingress, Effect::Presence, None), false),
            "no-actor"
        );
    }
    let agent = text(&format!("the-loop start\n\n{AGENT_COMMENT_MARK}"), user());
    assert_eq!(
        verdict(&delivery(Ingress::Tracker, agent, user()), false),
        "self-authored"
    );
    for ingress in [
        Ingress::Webhook,
        Ingress::Poll,
        Ingress::Backfill,
        Ingress::Channel,
    ] {
        let words = text("hi", user());
        assert_eq!(
            verdict(&delivery(ingress, words, user()), false),
            "unauthorized-actor"
        );
    }
}

#[test]
fn in11_a_comment_that_may_have_been_forgotten_is_never_new() {
    let written = |when: &str| {
        let mut delivery = delivery(Ingress::Webhook, text(AGENT_COMMENT_MARK, None), None);
        if let Effect::Text(text) = &mut delivery.effect {
            text.created_at = Some(at(when));
        }
        delivery
    };
    // Received on 30 March; 30 days less one are kept: the limit is the first instant of 1 March.
    for (when, wanted) in [
        ("2026-02-28T23:59:59Z", "already-processed"),
        ("2026-03-01T00:00:00Z", "self-authored"),
        ("2026-04-09T00:00:00Z", "self-authored"),
        ("0001-01-01T00:00:00Z", "already-processed"),
    ] {
        assert_eq!(verdict(&written(when), false), wanted, "{when}");
    }
}

/// The table of IN-27; `spawns`, `delivered`, `waits` and `ends` are deeds, the rest are reasons.
const TABLE: &str = "
    item     | presence        | text           | notice         | close
    active   | already-running | delivered      | delivered      | ends
    paused   | session-paused  | session-paused | session-paused | ends
    parked   | item-parked     | waits          | waits          | by session
    policy   | spawn-policy    | spawn-policy   | no-session     | already-closed
    unarmed  | awaiting-start  | awaiting-start | no-session     | already-closed
    armed    | spawns          | spawns         | no-session     | already-closed
    closed   | item-closed     | item-closed    | no-session     | already-closed
";

/// The row that counts, tried in the order of IN-27.
fn row(state: ItemState) -> &'static str {
    let none = state.session == SessionNow::None;
    if state.closed && none {
        return "closed";
    }
    if state.session == SessionNow::Paused {
        return "paused";
    }
    if state.parked {
        return "parked";
    }
    if !none {
        return "active";
    }
    let forbidden = state.policy == SpawnOnUnmatched::Never
        || (state.policy == SpawnOnUnmatched::Labeled && !state.labeled);
    if forbidden {
        return "policy";
    }
    match state.recorded.map(Command::as_str) {
        Some("stop" | "pause" | "cleanup") => "unarmed",
        Some("start" | "resume" | "contribute" | "do") => "armed",
        _ if state.start_required => "unarmed",
        _ => "armed",
    }
}

fn cell(row: &str, asks: Asks, session: SessionNow) -> &'static str {
    let column = match asks {
        Asks::NoticeOrPresence if session != SessionNow::None => 3,
        Asks::Presence | Asks::NoticeOrPresence => 1,
        Asks::Text => 2,
        Asks::Notice => 3,
        Asks::Close => 4,
    };
    let cells = TABLE
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .find(|cells| cells[0] == row)
        .unwrap();
    cells[column]
}

#[test]
fn in27_every_delivery_in_every_state() {
    let mut seen = std::collections::BTreeSet::new();
    let recorded = || std::iter::once(None).chain(Command::ALL.iter().copied().map(Some));
    for recorded in recorded() {
        for session in [
            SessionNow::None,
            SessionNow::Starting,
            SessionNow::Active,
            SessionNow::Paused,
        ] {
            for policy in [
                SpawnOnUnmatched::Never,
                SpawnOnUnmatched::Labeled,
                SpawnOnUnmatched::Always,
            ] {
                for bits in 0..16_u8 {
                    let state = ItemState {
                        session,
                        parked: bits & 1 != 0,
                        closed: bits & 2 != 0,
                        recorded,
                        policy,
                        labeled: bits & 4 != 0,
                        start_required: bits & 8 != 0,
                    };
                    let every = [
                        Asks::Presence,
                        Asks::Text,
                        Asks::Notice,
                        Asks::NoticeOrPresence,
                        Asks::Close,
                    ];
                    for asks in every {
                        let mut wanted = cell(row(state), asks, session);
                        if wanted == "by session" {
                            wanted = if session == SessionNow::None {
                                "already-closed"
                            } else {
                                "ends"
                            };
                        }
                        let got = match admit(asks, state) {
                            Admission::Deliver => "delivered",
                            Admission::Spawn => "spawns",
                            Admission::Wait => "waits",
                            Admission::End => "ends",
                            Admission::Drop(why) => why.as_str(),
                        };
                        assert_eq!(got, wanted, "{asks:?} {state:?}");
                        seen.insert(got);
                    }
                }
            }
        }
    }
    assert_eq!(seen.len(), 12, "{seen:?}");
}

#[test]
fn in27_two_reasons_settle_and_the_others_drop() {
    for (why, end) in [
        (DispatchDropReason::AwaitingStart, State::Settled),
        (DispatchDropReason::SessionPaused, State::Settled),
        (DispatchDropReason::SpawnPolicy, State::Dropped),
        (DispatchDropReason::AlreadyRunning, State::Dropped),
    ] {
        assert_eq!(end_of(why), end);
    }
}

#[test]
fn in27_what_an_effect_asks() {
    assert_eq!(Asks::of(&Effect::Presence), Some(Asks::Presence));
    assert_eq!(Asks::of(&Effect::Opened), Some(Asks::NoticeOrPresence));
    assert_eq!(Asks::of(&text("x", None)), Some(Asks::Text));
    assert_eq!(
        Asks::of(&Effect::Notice { changed: vec![] }),
        Some(Asks::Notice)
    );
    assert_eq!(Asks::of(&close()), Some(Asks::Close));
    assert_eq!(Asks::of(&Effect::Start { harness: None }), None);
}

#[test]
fn in13_only_configured_hosts_are_routed_to() {
    let known = |item: &str, hosts: &[&str]| {
        route::is_known_item(&item.parse().unwrap(), hosts.iter().copied())
    };
    assert!(known("github:octo/repo#15", &[]));
    assert!(known("local:octo/repo#15", &[]));
    let ghe = "github:ghe.corp.example/o/r#1";
    assert!(!known(ghe, &["other.example"]));
    assert!(known(ghe, &["other.example", "GHE.corp.example"]));
    assert!(!route::is_known_host("github.com.evil.example", []));
    assert!(!route::is_known_host("", []));
}

#[test]
fn in27_labels_compare_without_case() {
    let labels = ["bug".to_owned(), "The-Loop: Auto-Execute".to_owned()];
    assert!(route::has_label(&labels, "the-loop: auto-execute"));
    assert!(!route::has_label(&labels, "the-loop"));
    assert!(!route::has_label(&labels, ""));
    assert!(!route::has_label::<&str>(&[], "bug"));
}
