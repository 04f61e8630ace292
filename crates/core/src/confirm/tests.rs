use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(ms)
}

fn marker(n: u8) -> Marker {
    Marker::from_bytes([n; 8])
}

const STATES: [AgentState; 11] = [
    AgentState::Starting,
    AgentState::Ready,
    AgentState::Working,
    AgentState::Waiting(WaitingKind::Permission),
    AgentState::Waiting(WaitingKind::Question),
    AgentState::Waiting(WaitingKind::Dialog),
    AgentState::Waiting(WaitingKind::UsageLimit),
    AgentState::Waiting(WaitingKind::Login),
    AgentState::Idle,
    AgentState::Exited,
    AgentState::Unknown,
];

const SOURCES: [ObservationSource; 5] = [
    ObservationSource::Hook,
    ObservationSource::SessionsFile,
    ObservationSource::Transcript,
    ObservationSource::Title,
    ObservationSource::Screen,
];

#[test]
fn di27_only_an_agent_that_takes_input_lets_a_paste_through() {
    for state in STATES {
        assert_eq!(state.takes_input(), state.hold().is_none(), "{state}");
    }
    let hold = |kind| AgentState::Waiting(kind).hold().map(HoldReason::as_str);
    assert_eq!(hold(WaitingKind::Permission), Some("dialog"));
    assert_eq!(hold(WaitingKind::Question), Some("dialog"));
    assert_eq!(hold(WaitingKind::Dialog), Some("dialog"));
    assert_eq!(hold(WaitingKind::UsageLimit), Some("usage-limit"));
    assert_eq!(hold(WaitingKind::Login), Some("login"));
    assert_eq!(AgentState::Unknown.hold(), Some(HoldReason::NotReady));
}

#[test]
fn di31_states_are_shown_by_their_words() {
    let words: Vec<String> = STATES.iter().map(ToString::to_string).collect();
    assert_eq!(words[3], "waiting(permission)");
    assert_eq!(words[6], "waiting(usage-limit)");
    assert_eq!(words[8], "idle");
    assert_eq!(AgentState::Waiting(WaitingKind::Login).as_str(), "waiting");
}

#[test]
fn di31_an_answered_dialog_fires_no_hook_and_the_screen_tells() {
    let hook = Observation {
        source: ObservationSource::Hook,
        at: at(10),
        state: AgentState::Waiting(WaitingKind::Permission),
    };
    let screen = Observation {
        source: ObservationSource::Screen,
        at: at(20),
        state: AgentState::Working,
    };
    assert_eq!(newest(&[hook, screen]), Some(screen));
    assert_eq!(newest(&[]), None);
}

#[test]
fn di42_looking_idle_does_not_end_a_limit_or_a_missing_login() {
    let see = |source, ms, state| Observation {
        source,
        at: at(ms),
        state,
    };
    for kind in [WaitingKind::UsageLimit, WaitingKind::Login] {
        for told in [ObservationSource::Hook, ObservationSource::Transcript] {
            let told = see(told, 10, AgentState::Waiting(kind));
            for source in SOURCES[1..].iter().filter(|s| **s != told.source) {
                let idle = see(*source, 20, AgentState::Idle);
                assert_eq!(believed(&[told, idle]), Some(told));
                for state in [AgentState::Working, AgentState::Exited] {
                    let other = see(*source, 20, state);
                    assert_eq!(believed(&[told, other]), Some(other), "{state}");
                }
            }
        }
    }
    let hook = AgentState::Waiting(WaitingKind::Permission);
    let hook = see(ObservationSource::Hook, 10, hook);
    let idle = see(ObservationSource::Screen, 20, AgentState::Idle);
    assert_eq!(
        believed(&[hook, idle]),
        Some(idle),
        "a refused permission ends with the dialog"
    );
    assert_eq!(believed(&[]), None);
}

proptest! {
    #[test]
    fn di31_the_newest_decides_and_among_equals_the_source(
        seen in prop::collection::vec((0i64..5, 0usize..5, 0usize..11), 0..12)
    ) {
        let all: Vec<Observation> = seen
            .iter()
            .map(|(ms, source, state)| Observation {
                source: SOURCES[*source],
                at: at(*ms),
                state: STATES[*state],
            })
            .collect();
        let found = newest(&all);
        prop_assert_eq!(found.is_none(), all.is_empty());
        if let Some(found) = found {
            for other in &all {
                prop_assert!(other.at <= found.at);
                prop_assert!(other.at < found.at || other.source >= found.source);
            }
        }
    }
}

fn seen(n: u8, ms: i64, session: &str, by: By) -> MarkerSeen {
    MarkerSeen {
        marker: marker(n),
        at: at(ms),
        session_id: session.to_owned(),
        by,
    }
}

#[test]
fn di25_only_the_own_marker_in_the_own_session_after_the_intent_confirms() {
    let ask = |all: &[MarkerSeen]| evidence(all, &marker(1), "s", at(100)).map(|s| s.by);
    assert_eq!(ask(&[seen(1, 100, "s", By::Hook)]), Some(By::Hook));
    assert_eq!(ask(&[seen(2, 100, "s", By::Hook)]), None, "another marker");
    assert_eq!(ask(&[seen(1, 100, "t", By::Hook)]), None, "another session");
    assert_eq!(
        ask(&[seen(1, 99, "s", By::Hook)]),
        None,
        "before the intent"
    );
    let both = [
        seen(1, 101, "s", By::Transcript),
        seen(1, 300, "s", By::Hook),
    ];
    assert_eq!(ask(&both), Some(By::Hook), "a hook wins");
    assert_eq!(ask(&both[..1]), Some(By::Transcript));
}

#[test]
fn di29_text_that_stays_is_submitted_once_more_and_never_a_third_time() {
    let idle = AgentState::Idle;
    assert_eq!(
        unconfirmed(Composer::Ours, idle, 1),
        Unconfirmed::SubmitAgain
    );
    assert_eq!(
        unconfirmed(Composer::Ours, idle, 2),
        Unconfirmed::StaysPasted
    );
    for composer in [Composer::Empty, Composer::Draft, Composer::Unknown] {
        assert_eq!(unconfirmed(composer, idle, 1), Unconfirmed::Examine);
    }
    for kind in [
        WaitingKind::Permission,
        WaitingKind::Question,
        WaitingKind::Dialog,
    ] {
        let waiting = AgentState::Waiting(kind);
        assert_eq!(unconfirmed(Composer::Ours, waiting, 1), Unconfirmed::Wait);
    }
}

#[test]
fn di27_a_draft_holds_and_an_unseen_composer_does_not() {
    assert_eq!(Composer::Empty.hold(), None);
    assert_eq!(Composer::Unknown.hold(), None);
    assert_eq!(Composer::Draft.hold(), Some(HoldReason::Draft));
    assert_eq!(Composer::Ours.hold(), Some(HoldReason::Draft));
}

fn attempt() -> Attempt {
    Attempt {
        evidence: None,
        composer: Composer::Empty,
        transcript_read: true,
        state: AgentState::Idle,
        later_turn: false,
        hooks_heard: true,
        intent_at: at(0),
        now: at(20_000),
        confirm_timeout: Duration::from_secs(20),
    }
}

#[test]
fn di43_absence_needs_every_part_of_its_proof() {
    assert_eq!(examine(&attempt()), Examined::SendAgain);
    let unread = Attempt {
        transcript_read: false,
        ..attempt()
    };
    assert_eq!(examine(&unread), Examined::Uncertain);
    for composer in [Composer::Draft, Composer::Unknown] {
        assert_eq!(
            examine(&Attempt {
                composer,
                ..attempt()
            }),
            Examined::Uncertain
        );
    }
    let early = Attempt {
        now: at(19_999),
        ..attempt()
    };
    assert_eq!(examine(&early), Examined::LookAgain);
    let busy = Attempt {
        state: AgentState::Working,
        ..attempt()
    };
    assert_eq!(examine(&busy), Examined::Uncertain);
    assert_eq!(
        examine(&Attempt {
            later_turn: true,
            ..busy
        }),
        Examined::SendAgain
    );
}

#[test]
fn di29_where_only_the_transcript_can_tell_the_turn_in_work_is_waited_out() {
    let busy = Attempt {
        state: AgentState::Working,
        hooks_heard: false,
        ..attempt()
    };
    assert_eq!(examine(&busy), Examined::LookAgain);
}

#[test]
fn di43_evidence_and_our_text_come_before_everything() {
    for state in STATES {
        let taken = Attempt {
            evidence: Some(By::Hook),
            state,
            ..attempt()
        };
        assert_eq!(examine(&taken), Examined::Confirmed(By::Hook));
        let lying = Attempt {
            composer: Composer::Ours,
            state,
            ..attempt()
        };
        let next = match state {
            AgentState::Waiting(_) => Examined::LookAgain,
            AgentState::Starting
            | AgentState::Ready
            | AgentState::Working
            | AgentState::Idle
            | AgentState::Exited
            | AgentState::Unknown => Examined::Submit,
        };
        assert_eq!(examine(&lying), next, "{state}");
    }
}

#[test]
fn di43_nothing_is_sent_again_to_an_agent_that_is_not_known_to_be_settled() {
    for state in STATES {
        let sent_again = examine(&Attempt { state, ..attempt() }) == Examined::SendAgain;
        let settled = matches!(state, AgentState::Idle | AgentState::Ready);
        assert_eq!(sent_again, settled, "{state}");
    }
}

#[test]
fn di31_a_state_stands_since_its_first_word_and_not_since_somebody_looked() {
    let word = |source, ms, state| Observation {
        source,
        at: at(ms),
        state,
    };
    let asks = AgentState::Waiting(WaitingKind::Permission);
    let hook = word(ObservationSource::Hook, 10, asks);
    let title = word(ObservationSource::Title, 90, asks);
    assert_eq!(standing(&[hook, title]), Some(hook));
    // It worked in between: the wait is the later one.
    let turn = word(ObservationSource::Transcript, 50, AgentState::Working);
    assert_eq!(standing(&[hook, turn, title]), Some(title));
    // Another state now: nobody's earlier word counts.
    let works = word(ObservationSource::Title, 90, AgentState::Working);
    assert_eq!(standing(&[hook, works]), Some(works));
    assert_eq!(standing(&[]), None);
}
