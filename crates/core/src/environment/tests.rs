use proptest::prelude::*;

use super::*;
use crate::config::envfile::parse;
use crate::confirm::{AgentState, WaitingKind};
use crate::event::{RestartOutcome, RestartSkipped};

fn declared(text: &str) -> Declared {
    let file = parse(text.as_bytes()).unwrap();
    Declared::of(&file, |name| name == "WITHHELD")
}

fn held(pairs: &[(&str, &str)]) -> Environ {
    pairs.iter().map(|(n, v)| (*n, v.as_bytes())).collect()
}

#[test]
fn se60_a_fingerprint_is_the_first_eight_digits_of_the_digest() {
    // printf 'hello' | sha256sum
    assert_eq!(fingerprint(b"hello"), "2cf24dba");
    assert_eq!(fingerprint(b""), "e3b0c442");
}

#[test]
fn se56_withheld_names_are_not_declared_and_an_empty_value_is_a_value() {
    let declared = declared("A=1\nWITHHELD=2\nB=\nbad line\n");
    assert_eq!(declared.names(), ["A", "B"]);
    assert_eq!(declared.bad_lines(), [4]);
    assert_eq!(declared.fingerprints()["B"], "e3b0c442");
    assert!(declared.compare(&held(&[("A", "1"), ("B", "")])).is_empty());
    let lacks = declared.compare(&held(&[("A", "1")]));
    assert_eq!(lacks.len(), 1);
    assert_eq!(lacks[0].to_string(), "B (file e3b0c442, process none)");
}

#[test]
fn se60_what_differs_is_told_by_name_and_fingerprints_alone() {
    let declared = declared("TOKEN=new-secret\nBASE=x\n");
    let held = held(&[("TOKEN", "old-secret"), ("BASE", "x"), ("ELSE", "y")]);
    let verdict = declared.verdict(&[Some(held.clone())]);
    assert_eq!(verdict.names(), ["TOKEN"]);
    let shown = format!(
        "{verdict:?} {declared:?} {held:?} {}",
        verdict.differences()[0]
    );
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn se60_any_stale_pane_makes_a_session_stale_and_an_unreadable_one_outvotes_nothing() {
    let declared = declared("A=1\n");
    let (fresh, stale) = (Some(held(&[("A", "1")])), Some(held(&[("A", "2")])));
    let word = |panes: &[Option<Environ>]| declared.verdict(panes).as_str();
    assert_eq!(word(&[]), "unverified");
    assert_eq!(word(&[None]), "unverified");
    assert_eq!(word(&[None, fresh.clone()]), "fresh");
    assert_eq!(word(&[fresh.clone(), stale.clone(), None]), "stale");
    assert_eq!(word(&[stale, fresh]), "stale");
}

#[test]
fn se60_the_recorded_pane_decides_and_without_one_every_live_pane_counts() {
    assert_eq!(deciding(Some(7), &[5, 7]), [7]);
    assert_eq!(deciding(None, &[5, 7]), [5, 7]);
    assert_eq!(deciding(Some(9), &[5, 7]), [5, 7]);
}

#[test]
fn se60_the_kernels_block_is_read_and_an_empty_one_says_nothing() {
    let environ = Environ::from_block(b"A=1\0B=\0C=x=y\0A=2\0no name\0\xff=3\0").unwrap();
    let get = |name: &str| environ.get(name);
    assert_eq!(get("A"), Some(b"1".as_slice()));
    assert_eq!(get("B"), Some(b"".as_slice()));
    assert_eq!(get("C"), Some(b"x=y".as_slice()));
    assert_eq!(get("D"), None);
    assert_eq!(Environ::from_block(b""), None);
    assert_eq!(Environ::from_block(b"\0\0"), None);
}

#[test]
fn se60_the_listing_of_ps_is_read_with_blanks_in_values() {
    let line = "/bin/agent --set A=argument A=1 B=two words C= D=x\n";
    let environ = Environ::from_ps(line).unwrap();
    assert_eq!(environ.get("A"), Some(b"1".as_slice()));
    assert_eq!(environ.get("B"), Some(b"two words".as_slice()));
    assert_eq!(environ.get("C"), Some(b"".as_slice()));
    assert_eq!(environ.get("D"), Some(b"x".as_slice()));
    assert_eq!(Environ::from_ps("/bin/agent --verbose\n"), None);
}

const GOOD: Facts = Facts {
    registered: true,
    live_record: true,
    conversation: true,
    resumable: true,
    pane: Pane::Live,
    draft: false,
    typing: false,
    turn: Turn::Over,
};

#[test]
fn se58_what_is_skipped_and_why() {
    use RestartSkipped as Why;
    for (facts, why) in [
        (
            Facts {
                registered: false,
                ..GOOD
            },
            Why::NotRegistered,
        ),
        (
            Facts {
                live_record: false,
                ..GOOD
            },
            Why::NotLive,
        ),
        (
            Facts {
                pane: Pane::NotLive,
                ..GOOD
            },
            Why::NotLive,
        ),
        (
            Facts {
                pane: Pane::Unanswered,
                ..GOOD
            },
            Why::TmuxUnanswered,
        ),
        (
            Facts {
                conversation: false,
                ..GOOD
            },
            Why::NoConversation,
        ),
        (
            Facts {
                resumable: false,
                ..GOOD
            },
            Why::NotResumable,
        ),
        (
            Facts {
                draft: true,
                ..GOOD
            },
            Why::Draft,
        ),
        (
            Facts {
                typing: true,
                ..GOOD
            },
            Why::Typing,
        ),
    ] {
        assert_eq!(decide(facts, false, false), Err(why));
        let overruled = matches!(why, Why::Draft | Why::Typing);
        assert_eq!(decide(facts, true, false).is_ok(), overruled, "{why:?}");
    }
    let working = Facts {
        turn: Turn::InWork,
        ..GOOD
    };
    assert_eq!(decide(working, true, false), Ok(()));
    assert_eq!(decide(working, true, true), Err(Why::Working));
    let cut_off = Facts {
        turn: Turn::CutOff,
        ..GOOD
    };
    assert_eq!(decide(cut_off, false, true), Ok(()));
}

#[test]
fn se59_who_was_in_the_middle_of_something_is_told() {
    assert!(turn_of(AgentState::Working).is_told());
    assert!(turn_of(AgentState::Waiting(WaitingKind::Permission)).is_told());
    assert!(turn_of(AgentState::Waiting(WaitingKind::Login)).is_told());
    for state in [AgentState::Idle, AgentState::Ready, AgentState::Unknown] {
        assert!(!turn_of(state).is_told(), "{state}");
    }
}

#[test]
fn r2_2_r2_3_stale_and_failed_alone_fail_the_run() {
    use RestartOutcome::{Failed, Restarted, Skipped, Stale, Unverified};
    let fails = |outcome| RowOutcome::Done(outcome).fails();
    assert!(fails(Failed) && fails(Stale));
    assert!(!fails(Restarted) && !fails(Skipped) && !fails(Unverified));
    assert!(!RowOutcome::WouldRestart.fails());
}

proptest! {
    #[test]
    fn se60_what_was_handed_over_is_fresh(pairs in proptest::collection::btree_map("[A-Z]{1,4}", "[a-z ]*", 0..6)) {
        let vars = pairs.clone().into_iter().collect();
        let file = EnvFile { vars, bad_lines: Vec::new() };
        let declared = Declared::of(&file, |_| false);
        let block: Vec<u8> = pairs.iter().flat_map(|(n, v)| format!("{n}={v}\0").into_bytes()).collect();
        if let Some(environ) = Environ::from_block(&block) {
            prop_assert_eq!(declared.verdict(&[Some(environ)]), Verdict::Fresh);
        }
    }

    #[test]
    fn se60_any_listing_is_survived(text in "\\PC*") {
        let _ = Environ::from_ps(&text);
        let _ = Environ::from_block(text.as_bytes());
    }
}

#[test]
fn se59_the_notice_is_a_delivery_like_any_other_in_words_that_are_all_ours() {
    use crate::config::InteractionMode;
    use crate::delivery::Delivery;
    use crate::guard::{self, AuthorizedUsers, Judgement};
    use crate::ids::{Marker, WorkItemRef};
    use crate::prompt::{Nonce, Occasion, Telling};

    let item: WorkItemRef = "github:octo/repo#15".parse().unwrap();
    let at = "2026-03-01T09:00:00Z".parse().unwrap();
    let delivery = Delivery::environment_renewed(&item, "0195c1c2", "mona", at);
    assert!(delivery.content_key_is_whole());
    assert!(!delivery.effect.may_spawn());
    let authorized = AuthorizedUsers::default();
    let facts = guard::Facts {
        delivery: &delivery,
        authorized: &authorized,
        own_comment: false,
        retention_days: 30,
    };
    assert_eq!(guard::judge(&facts), Judgement::Allowed);
    let marker = Marker::parse("dlv-9f3c0a1b2d4e5f60").unwrap();
    let prompt = Telling {
        marker: &marker,
        item: &item,
        delivery: &delivery,
        occasion: Occasion::Event {
            thread_moved: false,
        },
        interaction: InteractionMode::WorkItem,
        authorized: &authorized,
        nonce: Nonce::from_bytes([7; 16]),
        template: None,
    }
    .prompt();
    let first =
        "the-loop delivery dlv-9f3c0a1b2d4e5f60 for github:octo/repo#15: environment renewed\n";
    assert!(prompt.text().starts_with(first), "{}", prompt.text());
    assert!(!prompt.is_foreign());
    assert!(prompt.text().contains("Your environment was renewed"));
    // The same event name from elsewhere is an event of the ticket.
    let mut other = delivery.clone();
    other.ingress = crate::delivery::Ingress::Webhook;
    assert!(!other.tells_of_environment());
}
