//! What a delivery that may have been sent turns out to be (DI-29, DI-43).

use std::time::Duration;

use super::words::ConfirmedBy;

/// What can be found out about an attempt whose outcome is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trace {
    /// Evidence with this delivery's marker, in its own session, after the intent.
    pub evidence: Option<ConfirmedBy>,
    /// The transcript could be read from its beginning to its end and does not hold the marker.
    pub transcript_lacks_it: bool,
    /// What the composer holds; `None` when it cannot be seen.
    pub composer: Option<ComposerHolds>,
    /// The agent was seen idle, or ended a turn, after the attempt; or its process is gone.
    pub agent_moved_on: bool,
    /// Time since the intent was written down.
    pub waited: Duration,
    /// `routing.tmux.confirmTimeoutSeconds`.
    pub confirm_timeout: Duration,
}

/// What a visible composer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComposerHolds {
    /// Nothing; also when the session is gone.
    Nothing,
    /// This delivery's text.
    Ours,
    /// Somebody's draft.
    Draft,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Examined {
    /// The harness has it.
    Confirmed(ConfirmedBy),
    /// It stands in the composer: submit it.
    Submit,
    /// Proved not to have arrived: send it again.
    SendAgain,
    /// Too early to tell.
    Wait,
    /// It cannot be told (P2).
    Uncertain,
}

/// How many times the confirmation time an attempt may stay undecided.
const PATIENCE: u32 = 3;

/// Decides from what was found. Only proof of absence lets a prompt be sent a second time.
pub fn examine(trace: &Trace) -> Examined {
    if let Some(by) = trace.evidence {
        return Examined::Confirmed(by);
    }
    if trace.composer == Some(ComposerHolds::Ours) {
        return Examined::Submit;
    }
    let proved_absent = trace.transcript_lacks_it
        && trace.composer == Some(ComposerHolds::Nothing)
        && trace.agent_moved_on;
    if trace.waited < trace.confirm_timeout {
        Examined::Wait
    } else if proved_absent {
        Examined::SendAgain
    } else if trace.waited < trace.confirm_timeout.saturating_mul(PATIENCE) {
        Examined::Wait
    } else {
        Examined::Uncertain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_trace() -> impl Iterator<Item = Trace> {
        let evidence = [None, Some(ConfirmedBy::Hook), Some(ConfirmedBy::Transcript)];
        let composers = [
            None,
            Some(ComposerHolds::Nothing),
            Some(ComposerHolds::Ours),
            Some(ComposerHolds::Draft),
        ];
        let waits = [0u64, 19, 20, 59, 60, 1000];
        evidence.into_iter().flat_map(move |evidence| {
            composers.into_iter().flat_map(move |composer| {
                waits.into_iter().flat_map(move |waited| {
                    [(false, false), (false, true), (true, false), (true, true)].map(
                        |(transcript_lacks_it, agent_moved_on)| Trace {
                            evidence,
                            transcript_lacks_it,
                            composer,
                            agent_moved_on,
                            waited: Duration::from_secs(waited),
                            confirm_timeout: Duration::from_secs(20),
                        },
                    )
                })
            })
        })
    }

    #[test]
    fn di43_only_proof_of_absence_sends_again() {
        for trace in every_trace() {
            let examined = examine(&trace);
            if examined == Examined::SendAgain {
                assert!(trace.evidence.is_none() && trace.transcript_lacks_it);
                assert!(trace.agent_moved_on && trace.composer == Some(ComposerHolds::Nothing));
                assert!(trace.waited >= trace.confirm_timeout);
            }
            if trace.evidence.is_some() {
                assert!(matches!(examined, Examined::Confirmed(_)));
            }
            if trace.waited >= Duration::from_secs(60) {
                assert_ne!(
                    examined,
                    Examined::Wait,
                    "an attempt may not stay undecided for ever"
                );
            }
        }
    }
}
