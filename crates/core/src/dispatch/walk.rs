//! Every answer to every effect, from every beginning (DI-10).

use super::*;
use crate::confirm::By;
use crate::probe::TmuxState;

fn holds() -> impl Iterator<Item = HoldReason> {
    HoldReason::ALL.into_iter()
}

/// Every answer an effect can have.
fn answers(effect: Effect) -> Vec<Seen> {
    match effect {
        Effect::Probe => TmuxState::ALL.into_iter().map(Seen::Probe).collect(),
        Effect::Adopt => [Adoption::Ours, Adoption::NotOurs, Adoption::Unanswered]
            .map(Seen::Adopt)
            .into(),
        Effect::Observe => [Observed::CanTake, Observed::Gone, Observed::Unanswered]
            .into_iter()
            .chain(holds().map(Observed::MustWait))
            .map(Seen::Observe)
            .collect(),
        Effect::Send | Effect::SubmitAgain => [Sent::Submitted, Sent::NotPasted, Sent::Unanswered]
            .into_iter()
            .chain([HoldReason::Dialog, HoldReason::Typing].map(Sent::LeftInComposer))
            .map(Seen::Send)
            .collect(),
        Effect::Confirm => [
            Confirmation::By(By::Hook),
            Confirmation::By(By::Transcript),
            Confirmation::Silent { in_composer: true },
            Confirmation::Silent { in_composer: false },
            Confirmation::Unproven(Unproven::NoConfirmation),
            Confirmation::Unproven(Unproven::ScreenSeen),
            Confirmation::Interrupted,
        ]
        .map(Seen::Confirm)
        .into(),
        Effect::MakeWorkspace => made().map(Seen::Workspace).into(),
        Effect::PrepareHarness { .. } => made().map(Seen::Harness).into(),
        Effect::RecordStarting { .. } | Effect::RecordActive { .. } | Effect::TakeBack => {
            [Journaled::Written, Journaled::Refused]
                .map(Seen::Journal)
                .into()
        }
        Effect::Clear(_) => [Cleared::Gone, Cleared::StillThere, Cleared::Unanswered]
            .map(Seen::Clear)
            .into(),
        Effect::Launch { .. } => [
            Launched::Made,
            Launched::NameTaken,
            Launched::Refused,
            Launched::Unanswered,
        ]
        .map(Seen::Launch)
        .into(),
        Effect::ProveAlive { .. } => [Alive::Yes, Alive::DiedAtOnce].map(Seen::Alive).into(),
        Effect::AwaitReady => [
            Readiness::Ready,
            Readiness::NotReady(HoldReason::NotReady),
            Readiness::NotReady(HoldReason::Dialog),
            Readiness::Died,
            Readiness::Interrupted,
        ]
        .map(Seen::Ready)
        .into(),
    }
}

fn made() -> [Made; 5] {
    [
        Made::Ready,
        Made::Failed { retry: true },
        Made::Failed { retry: false },
        Made::GaveWay,
        Made::MustWait(HoldReason::WaitingCapacity),
    ]
}

fn beginnings() -> Vec<Facts> {
    let mut all = Vec::new();
    for (has_prompt, carries) in [(false, true), (true, true), (true, false)] {
        let facts = |known| Facts {
            known,
            has_prompt,
            carries,
        };
        all.push(facts(Known::Nobody));
        for resumable in [false, true] {
            all.push(facts(Known::Starting { resumable }));
            all.push(facts(Known::Session { resumable }));
        }
    }
    all
}

type Path = Vec<(Effect, Seen)>;

fn walk(
    machine: &Dispatch,
    step: Step,
    path: &mut Path,
    facts: Facts,
    check: &mut dyn FnMut(Facts, &Path, Verdict),
) {
    match step {
        Step::Done(verdict) => check(facts, path, verdict),
        Step::Do(effect) => {
            for seen in answers(effect) {
                let mut next = machine.clone();
                let step = next.step(seen);
                path.push((effect, seen));
                walk(&next, step, path, facts, check);
                path.pop();
            }
        }
    }
}

fn every_path(mut check: impl FnMut(Facts, &Path, Verdict)) -> usize {
    let mut paths = 0;
    for facts in beginnings() {
        let (machine, step) = Dispatch::begin(facts);
        let mut counted = |facts: Facts, path: &Path, verdict: Verdict| {
            paths += 1;
            check(facts, path, verdict);
        };
        walk(&machine, step, &mut Vec::new(), facts, &mut counted);
    }
    paths
}

#[test]
fn di10_every_path_ends_within_its_steps_and_without_a_defect() {
    let paths = every_path(|facts, path, verdict| {
        assert!(path.len() <= DISPATCH_STEPS_MAX, "{facts:?} {path:?}");
        assert_ne!(verdict, Verdict::Defect, "{facts:?} {path:?}");
    });
    assert!(paths > 1_000, "the walk is thinner than it was: {paths}");
}

#[test]
fn di10_p4_a_kill_directly_follows_a_dead_answer() {
    every_path(|facts, path, _| {
        for (at, (effect, _)) in path.iter().enumerate() {
            if matches!(effect, Effect::Clear(_)) {
                let before = path[at - 1];
                assert_eq!(
                    before,
                    (Effect::Probe, Seen::Probe(TmuxState::Dead)),
                    "{facts:?} {path:?}"
                );
            }
        }
    });
}

#[test]
fn di10_p4_no_launch_after_a_live_answer() {
    every_path(|facts, path, _| {
        let mut last = None;
        let mut collided = false;
        for (effect, seen) in path {
            if matches!(effect, Effect::Launch { .. }) {
                assert_ne!(last, Some(TmuxState::Live), "{facts:?} {path:?}");
                // Not knowing lets `new-session` decide once, never after it said "taken" (DI-16).
                assert!(
                    last != Some(TmuxState::Unknown) || !collided,
                    "{facts:?} {path:?}"
                );
            }
            if let Seen::Probe(state) = seen {
                last = Some(*state);
            }
            collided |= *seen == Seen::Launch(Launched::NameTaken);
        }
    });
}

#[test]
fn di16_at_most_one_retry_after_a_collision() {
    every_path(|facts, path, _| {
        let launches = path
            .iter()
            .filter(|(e, _)| matches!(e, Effect::Launch { .. }))
            .count();
        assert!(launches <= 2, "{facts:?} {path:?}");
    });
}

#[test]
fn di10_p2_one_paste_at_most_and_never_after_a_launch_that_carries_it() {
    every_path(|facts, path, _| {
        let pastes = path.iter().filter(|(e, _)| *e == Effect::Send).count();
        assert!(pastes <= 1, "{facts:?} {path:?}");
        let carried = path
            .iter()
            .position(|(_, s)| *s == Seen::Launch(Launched::Made));
        if carried.is_some() && facts.has_prompt && facts.carries {
            assert_eq!(pastes, 0, "{facts:?} {path:?}");
        }
    });
}

#[test]
fn di25_a_prompt_that_the_launch_did_not_carry_is_pasted_into_a_ready_harness_or_stays_queued() {
    let mut pasted = 0;
    every_path(|facts, path, verdict| {
        let ready = path.iter().position(|(e, _)| *e == Effect::AwaitReady);
        let Some(ready) = ready.filter(|_| facts.has_prompt && !facts.carries) else {
            return;
        };
        let sent = path.iter().position(|(e, _)| *e == Effect::Send);
        pasted += usize::from(sent.is_some());
        if path[ready].1 == Seen::Ready(Readiness::Ready) {
            assert!(sent.is_none_or(|sent| sent > ready), "{path:?}");
        } else {
            assert_eq!(sent, None, "{path:?}");
        }
        // Nothing was sent, so nothing may be waited for.
        if sent.is_none() {
            let waits = matches!(
                verdict,
                Verdict::FirstPromptWaits { .. } | Verdict::Unconfirmed { .. }
            );
            assert!(!waits, "{facts:?} {path:?} {verdict:?}");
        }
    });
    assert!(pasted > 0);
}

#[test]
fn di27_nothing_is_pasted_into_a_pane_that_must_wait() {
    every_path(|facts, path, _| {
        for (at, (effect, _)) in path.iter().enumerate() {
            if *effect == Effect::Send {
                let before = path[at - 1];
                assert_eq!(
                    before,
                    (Effect::Observe, Seen::Observe(Observed::CanTake)),
                    "{facts:?} {path:?}"
                );
            }
        }
    });
}

#[test]
fn p3_confirmed_only_on_the_harness_evidence() {
    every_path(|facts, path, verdict| {
        if let Verdict::Confirmed { by, .. } = verdict {
            let last = path.last().map(|(_, seen)| *seen);
            assert_eq!(
                last,
                Some(Seen::Confirm(Confirmation::By(by))),
                "{facts:?} {path:?}"
            );
        }
    });
}

#[test]
fn di29_what_proves_nothing_never_ends_as_confirmed() {
    every_path(|facts, path, verdict| {
        if let Some((_, Seen::Confirm(Confirmation::Unproven(why)))) = path.last() {
            assert_eq!(verdict, Verdict::Unproven(*why), "{facts:?} {path:?}");
        }
    });
}

#[test]
fn seed004_ac6_a_record_is_probed_twice_before_it_is_replaced() {
    every_path(|facts, path, _| {
        let replaced = path.iter().position(|(e, _)| *e == Effect::MakeWorkspace);
        if let (Known::Session { .. }, Some(at)) = (facts.known, replaced) {
            let gone =
                |seen: &Seen| matches!(seen, Seen::Probe(TmuxState::Dead | TmuxState::Absent));
            assert!(
                at == 2 && path[..2].iter().all(|(_, seen)| gone(seen)),
                "{facts:?} {path:?}"
            );
        }
    });
}

#[test]
fn seed004_ac7_what_lives_after_all_has_its_record_back_before_it_is_spoken_to() {
    let mut averted_after_journal = 0;
    every_path(|facts, path, verdict| {
        if !matches!(facts.known, Known::Session { .. }) {
            assert!(!path.iter().any(|(e, _)| *e == Effect::TakeBack));
            return;
        }
        let at = |wanted: fn(&Effect) -> bool| path.iter().position(|(e, _)| wanted(e));
        let journaled = at(|e| matches!(e, Effect::RecordStarting { .. }));
        let sent = at(|e| *e == Effect::Send);
        let launched = at(|e| matches!(e, Effect::ProveAlive { .. })).is_some();
        if let (Some(journaled), Some(sent)) = (journaled, sent) {
            let back = at(|e| *e == Effect::TakeBack);
            assert!(
                back.is_some_and(|back| journaled < back && back < sent) || launched,
                "{path:?}"
            );
            averted_after_journal += usize::from(back.is_some());
        }
        // The log says so (AC10).
        if let Verdict::Confirmed { averted, .. } = verdict {
            let looked_dead = path[0].1 != Seen::Probe(TmuxState::Live);
            assert_eq!(
                averted,
                sent.is_some() && looked_dead && !launched,
                "{path:?}"
            );
        }
    });
    assert!(averted_after_journal > 0);
}

#[test]
fn seed004_ac9_a_paste_that_fails_is_never_followed_by_a_spawn() {
    every_path(|facts, path, _| {
        let failed = path.iter().position(|(_, seen)| {
            matches!(
                seen,
                Seen::Send(Sent::NotPasted | Sent::Unanswered)
                    | Seen::Observe(Observed::Gone | Observed::Unanswered)
            )
        });
        if let Some(failed) = failed {
            let replaces = |(effect, _): &(Effect, Seen)| {
                matches!(
                    effect,
                    Effect::Launch { .. } | Effect::RecordStarting { .. } | Effect::Clear(_)
                )
            };
            assert!(!path[failed..].iter().any(replaces), "{facts:?} {path:?}");
        }
    });
}

#[test]
fn di24_di41_what_is_brought_back_without_a_prompt_is_told_nothing() {
    let mut came_back = 0;
    every_path(|facts, path, verdict| {
        if facts.has_prompt {
            return;
        }
        let tells = |(effect, _): &(Effect, Seen)| {
            matches!(effect, Effect::Send | Effect::SubmitAgain | Effect::Confirm)
        };
        assert!(!path.iter().any(tells), "{facts:?} {path:?}");
        if verdict
            == (Verdict::BroughtBack {
                launch: Launch::Resume,
            })
        {
            came_back += 1;
            assert_eq!(path.last().map(|(e, _)| *e), Some(Effect::AwaitReady));
        }
    });
    assert!(came_back > 0);
}

#[test]
fn di39_only_a_resume_that_died_is_a_failed_resume() {
    every_path(|facts, path, verdict| {
        if verdict == Verdict::ResumeFailed {
            let last = path.last().map(|(_, seen)| *seen);
            let died = matches!(
                last,
                Some(
                    Seen::Alive(Alive::DiedAtOnce)
                        | Seen::Ready(Readiness::Died)
                        | Seen::Probe(TmuxState::Dead)
                )
            );
            let resumed = path.iter().any(|(e, _)| {
                matches!(
                    e,
                    Effect::Launch {
                        launch: Launch::Resume
                    }
                )
            });
            assert!(died && resumed, "{facts:?} {path:?}");
        }
    });
}

#[test]
fn seed004_ac2_no_answer_about_a_recorded_session_holds_and_harms_nothing() {
    every_path(|facts, path, verdict| {
        let known = !matches!(facts.known, Known::Nobody);
        if known && path.first().map(|(_, s)| *s) == Some(Seen::Probe(TmuxState::Unknown)) {
            assert_eq!(
                verdict,
                Verdict::Held(HoldReason::TmuxUnanswered),
                "{path:?}"
            );
            assert_eq!(path.len(), 1);
        }
    });
}

#[test]
fn seed004_ac8_a_dead_session_that_cannot_be_cleared_ends_the_delivery() {
    every_path(|facts, path, verdict| {
        let stuck = path
            .iter()
            .any(|(_, s)| *s == Seen::Clear(Cleared::StillThere));
        assert_eq!(
            stuck,
            verdict == Verdict::SessionOccupied,
            "{facts:?} {path:?}"
        );
    });
}

#[test]
fn st42_a_launch_follows_the_journal_that_announces_it() {
    every_path(|facts, path, _| {
        let launched = path
            .iter()
            .position(|(e, _)| matches!(e, Effect::Launch { .. }));
        let announced = |(effect, seen): &(Effect, Seen)| {
            matches!(effect, Effect::RecordStarting { .. })
                && *seen == Seen::Journal(Journaled::Written)
        };
        if let Some(launched) = launched {
            assert!(path[..launched].iter().any(announced), "{facts:?} {path:?}");
        }
    });
}

#[test]
fn di23_a_session_that_is_not_proved_ours_is_neither_spoken_to_nor_recorded() {
    every_path(|facts, path, verdict| {
        let doubted = path
            .iter()
            .any(|(_, s)| matches!(s, Seen::Adopt(Adoption::NotOurs | Adoption::Unanswered)));
        if doubted {
            let last = path.last().map(|(effect, _)| *effect);
            assert_eq!(last, Some(Effect::Adopt), "{facts:?} {path:?} {verdict:?}");
        }
    });
}

#[test]
fn di10_an_answer_nobody_asked_for_is_a_defect_and_no_panic() {
    let (mut machine, _) = Dispatch::begin(Facts {
        known: Known::Nobody,
        has_prompt: true,
        carries: true,
    });
    assert_eq!(
        machine.step(Seen::Send(Sent::Submitted)),
        Step::Done(Verdict::Defect)
    );
    assert_eq!(
        machine.step(Seen::Probe(TmuxState::Live)),
        Step::Done(Verdict::Defect)
    );
}
