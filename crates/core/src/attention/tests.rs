use super::*;

const MINUTE: Duration = Duration::from_mins(1);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ms(1_772_000_000_000 + seconds * 1000)
}

#[allow(
    clippy::unnecessary_wraps,
    reason = "what is tested takes an option, and so does every caller here"
)]
fn seen(state: AgentState, source: ObservationSource, since: i64) -> Option<Observation> {
    Some(Observation {
        source,
        at: at(since),
        state,
    })
}

fn asks(source: ObservationSource, since: i64) -> Option<Observation> {
    seen(AgentState::Waiting(WaitingKind::Permission), source, since)
}

/// Looks at each moment; gives the moments at which people are told.
fn told(looks: &[(i64, Option<Observation>)]) -> Vec<i64> {
    let mut before = None;
    let mut told = Vec::new();
    for (now, observation) in looks {
        let waited = wait(before, *observation, at(*now), MINUTE);
        before = waited.wait;
        if waited.tell {
            told.push(*now);
        }
    }
    told
}

#[test]
fn di31_a_wait_is_told_once_when_it_has_lasted_long_enough() {
    let hook = asks(ObservationSource::Hook, 0);
    assert_eq!(
        told(&[(1, hook), (59, hook), (60, hook), (300, hook)]),
        [60]
    );
    // A look that comes late counts from when the agent began to wait.
    assert_eq!(told(&[(90, hook), (91, hook)]), [90]);
}

#[test]
fn di31_an_answer_ends_a_wait_and_the_next_one_is_told_again() {
    let working = seen(AgentState::Working, ObservationSource::Transcript, 70);
    let looks = [
        (60, asks(ObservationSource::Hook, 0)),
        (70, working),
        (80, asks(ObservationSource::Hook, 80)),
        (140, asks(ObservationSource::Hook, 80)),
    ];
    assert_eq!(told(&looks), [60, 140]);
    // Answered and asked again between two looks: only the later hook tells of it.
    let looks = [
        (60, asks(ObservationSource::Hook, 0)),
        (80, asks(ObservationSource::Hook, 79)),
        (138, asks(ObservationSource::Hook, 79)),
        (139, asks(ObservationSource::Hook, 79)),
    ];
    assert_eq!(told(&looks), [60, 139]);
}

#[test]
fn di31_the_same_question_seen_by_another_source_is_one_wait() {
    let looks = [
        (1, asks(ObservationSource::SessionsFile, 0)),
        (2, asks(ObservationSource::Hook, 1)),
        (30, asks(ObservationSource::Screen, 30)),
        (59, asks(ObservationSource::Screen, 30)),
        (60, asks(ObservationSource::Screen, 30)),
        (120, asks(ObservationSource::Screen, 30)),
    ];
    assert_eq!(told(&looks), [60]);
}

#[test]
fn di31_another_kind_of_question_is_another_wait() {
    let question = seen(
        AgentState::Waiting(WaitingKind::Question),
        ObservationSource::Screen,
        61,
    );
    let looks = [
        (60, asks(ObservationSource::Hook, 0)),
        (61, question),
        (121, question),
    ];
    assert_eq!(told(&looks), [60, 121]);
}

const LIMIT: Duration = Duration::from_mins(20);

fn signs(len: u64, output_at: i64) -> Signs {
    Signs {
        transcript_len: len,
        transcript_at: 5,
        output_at: Some(output_at),
        child_ticks: None,
    }
}

fn with_children(ticks: u64) -> Signs {
    Signs {
        child_ticks: Some(ticks),
        ..signs(1, 1)
    }
}

fn stalls(looks: &[(i64, AgentState, Signs)]) -> Vec<i64> {
    let mut before = None;
    let mut told = Vec::new();
    for (now, state, signs) in looks {
        let listened = listen(before, *state, *signs, at(*now), LIMIT);
        before = listened.quiet;
        if listened.tell {
            told.push(*now);
        }
    }
    told
}

#[test]
fn di32_a_turn_without_a_sign_of_life_is_told_once() {
    let working = AgentState::Working;
    let quiet = signs(1, 1);
    let looks = [
        (0, working, quiet),
        (1199, working, quiet),
        (1200, working, quiet),
        (9000, working, quiet),
    ];
    assert_eq!(stalls(&looks), [1200]);
}

#[test]
fn di32_transcript_output_and_children_are_signs_of_life() {
    let working = AgentState::Working;
    let first = (0, working, signs(1, 1));
    assert_eq!(
        stalls(&[
            first,
            (600, working, signs(2, 1)),
            (1300, working, signs(2, 1))
        ]),
        [] as [i64; 0]
    );
    assert_eq!(
        stalls(&[
            first,
            (600, working, signs(1, 9)),
            (1300, working, signs(1, 9))
        ]),
        [] as [i64; 0]
    );
    let busy = [
        (0, working, with_children(0)),
        (600, working, with_children(600)),
        (1300, working, with_children(601)),
    ];
    assert_eq!(stalls(&busy), [] as [i64; 0]);
    // A helper that only waits for work is no sign.
    let helper = [
        (0, working, with_children(0)),
        (600, working, with_children(100)),
        (1300, working, with_children(200)),
    ];
    assert_eq!(stalls(&helper), [1300]);
}

#[test]
fn di32_only_a_turn_can_stall_and_zero_switches_it_off() {
    let quiet = signs(1, 1);
    let waiting = AgentState::Waiting(WaitingKind::Permission);
    let looks = [
        (0, AgentState::Working, quiet),
        (600, waiting, quiet),
        (601, AgentState::Working, quiet),
        (1800, AgentState::Working, quiet),
        (1801, AgentState::Working, quiet),
    ];
    assert_eq!(stalls(&looks), [1801]);
    let begun = listen(None, AgentState::Working, quiet, at(0), Duration::ZERO);
    let later = listen(
        begun.quiet,
        AgentState::Working,
        quiet,
        at(900_000),
        Duration::ZERO,
    );
    assert!(!later.tell);
    assert!(!children_due(
        later.quiet.as_ref(),
        at(900_000),
        Duration::ZERO
    ));
}

#[test]
fn di32_children_are_looked_at_now_and_then() {
    let begun = listen(None, AgentState::Working, with_children(0), at(0), LIMIT);
    assert!(children_due(None, at(0), LIMIT));
    assert!(!children_due(begun.quiet.as_ref(), at(59), LIMIT));
    assert!(children_due(begun.quiet.as_ref(), at(60), LIMIT));
}

#[test]
fn di51_an_agent_that_was_idle_long_enough_may_be_ended() {
    let idle = seen(AgentState::Idle, ObservationSource::Hook, 0);
    assert_eq!(idle_over(idle, at(7199), 2.0), None);
    assert_eq!(
        idle_over(idle, at(7200), 2.0),
        Some(Duration::from_hours(2))
    );
    assert_eq!(idle_over(idle, at(90_000), 0.0), None);
    let working = seen(AgentState::Working, ObservationSource::Hook, 0);
    assert_eq!(idle_over(working, at(90_000), 2.0), None);
    assert_eq!(
        idle_over(asks(ObservationSource::Hook, 0), at(90_000), 2.0),
        None
    );
}
