//! The dispatch machine: what to do next with one routed delivery (DI-10).
//!
//! [`Dispatch::begin`] takes the facts and asks for the first effect; [`Dispatch::step`] takes what
//! was seen of it and asks for the next one, or gives the verdict. The machine is total and ends
//! within [`DISPATCH_STEPS_MAX`](crate::limits::DISPATCH_STEPS_MAX) effects. It never asks for a
//! kill without the proof that only a `dead` answer gives, never for a spawn over something live, and
//! for at most one paste; a test walks every answer to every effect.

#[cfg(test)]
mod walk;
mod words;

pub use words::{
    Adoption, Alive, Cleared, Confirmation, Effect, HoldReason, Journaled, Launch, Launched, Made,
    Observed, Readiness, Seen, Sent, SpawnFailure, Step, Trouble, Unproven, Verdict,
};

use crate::limits::DISPATCH_STEPS_MAX;
use crate::probe::{Clearance, Moment, TmuxState, clearance};

/// Effects from a look at a live session to the second confirmation.
const PASTE_STEPS: usize = 5;

/// What the machine has to know before its first step. Admission (guards, control, limits) is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    /// What the session record says.
    pub known: Known,
    /// Is there a prompt to carry? Bringing sessions back at the daemon's start carries none (DI-24).
    pub has_prompt: bool,
    /// Does a launch carry the prompt as its last argument? Else it is pasted when the harness is ready
    /// (DI-25).
    pub carries: bool,
}

/// What the session record says about the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// No live record: a first spawn.
    Nobody,
    /// A spawn was journaled and not finished (ST-42); `resumable` as below.
    Starting {
        /// The record names a conversation that can be resumed.
        resumable: bool,
    },
    /// A live record.
    Session {
        /// Resuming is on, the id is present and well formed, and the harness can (DI-39).
        resumable: bool,
    },
}

impl Known {
    /// Which conversation a launch takes up.
    pub fn launch(self) -> Launch {
        match self {
            Self::Starting { resumable: true } | Self::Session { resumable: true } => {
                Launch::Resume
            }
            Self::Nobody
            | Self::Starting { resumable: false }
            | Self::Session { resumable: false } => Launch::Fresh,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    FirstProbe,
    SecondProbe,
    Adopting,
    Observing,
    Sending,
    Confirming { again: bool },
    SubmittingAgain,
    MakingWorkspace,
    Journaling,
    PreparingHarness,
    ProbingName(Moment),
    Clearing(Moment),
    Launching(Moment),
    ProbingUnanswered,
    ProvingAlive,
    Activating { adopted: bool },
    AwaitingReady,
    ConfirmingFirst,
    TakingBack,
    Over,
}

/// One delivery on its way to an agent.
#[derive(Clone, Debug)]
pub struct Dispatch {
    facts: Facts,
    phase: Phase,
    launch: Launch,
    /// The target was dead or absent in the first look and lives in a later one (seed 004, AC6, AC7).
    averted: bool,
    steps: usize,
}

impl Dispatch {
    /// The first step.
    pub fn begin(facts: Facts) -> (Self, Step) {
        let launch = facts.known.launch();
        let mut machine = Self {
            facts,
            phase: Phase::FirstProbe,
            launch,
            averted: false,
            steps: 0,
        };
        let step = machine.ask(Phase::FirstProbe, Effect::Probe);
        (machine, step)
    }

    /// Takes what was seen of the last effect; asks for the next one or gives the verdict. An answer
    /// that does not belong to the effect asked for is a defect, not a panic.
    pub fn step(&mut self, seen: Seen) -> Step {
        match (self.phase, seen) {
            (Phase::FirstProbe, Seen::Probe(state)) => self.first_probe(state),
            (Phase::SecondProbe, Seen::Probe(state)) => self.second_probe(state),
            (Phase::Adopting, Seen::Adopt(adoption)) => self.adopting(adoption),
            (Phase::Observing, Seen::Observe(observed)) => self.observing(observed),
            (Phase::Sending, Seen::Send(sent)) => self.sending(sent),
            (Phase::SubmittingAgain, Seen::Send(sent)) => self.submitting_again(sent),
            (Phase::Confirming { again }, Seen::Confirm(confirmation)) => {
                self.confirming(confirmation, again)
            }
            (Phase::MakingWorkspace, Seen::Workspace(made)) => self.making_workspace(made),
            (Phase::Journaling, Seen::Journal(journaled)) => self.journaling(journaled),
            (Phase::PreparingHarness, Seen::Harness(made)) => self.preparing_harness(made),
            (Phase::ProbingName(moment), Seen::Probe(state)) => self.probing_name(state, moment),
            (Phase::Clearing(moment), Seen::Clear(cleared)) => self.clearing(cleared, moment),
            (Phase::Launching(moment), Seen::Launch(launched)) => self.launching(launched, moment),
            (Phase::ProbingUnanswered, Seen::Probe(state)) => self.probing_unanswered(state),
            (Phase::ProvingAlive, Seen::Alive(alive)) => self.proving_alive(alive),
            (Phase::Activating { adopted }, Seen::Journal(journaled)) => {
                self.activating(journaled, adopted)
            }
            (Phase::AwaitingReady, Seen::Ready(readiness)) => self.awaiting_ready(readiness),
            (Phase::ConfirmingFirst, Seen::Confirm(confirmation)) => {
                self.confirming_first(confirmation)
            }
            (Phase::TakingBack, Seen::Journal(journaled)) => self.taking_back(journaled),
            (_, _) => self.done(Verdict::Defect),
        }
    }

    /// Was a replacement in hand when the session turned out to live (seed 004, AC6, AC7)?
    pub fn averted(&self) -> bool {
        self.averted
    }

    fn ask(&mut self, phase: Phase, effect: Effect) -> Step {
        if self.steps == DISPATCH_STEPS_MAX {
            return self.done(Verdict::Defect);
        }
        self.steps += 1;
        self.phase = phase;
        Step::Do(effect)
    }

    fn done(&mut self, verdict: Verdict) -> Step {
        self.phase = Phase::Over;
        Step::Done(verdict)
    }

    fn fail(&mut self, trouble: Trouble) -> Step {
        self.done(Verdict::Failed(trouble))
    }

    fn spawn_failed(&mut self, why: SpawnFailure) -> Step {
        self.done(Verdict::SpawnFailed {
            why,
            launch: self.launch,
        })
    }

    fn first_probe(&mut self, state: TmuxState) -> Step {
        match (self.facts.known, state) {
            (Known::Session { .. }, TmuxState::Live) => self.found_live(),
            (Known::Session { .. }, TmuxState::Dead | TmuxState::Absent) => {
                self.ask(Phase::SecondProbe, Effect::Probe)
            }
            (Known::Session { .. } | Known::Starting { .. }, TmuxState::Unknown) => {
                self.done(Verdict::Held(HoldReason::TmuxUnanswered))
            }
            (Known::Nobody | Known::Starting { .. }, TmuxState::Live) => {
                self.ask(Phase::Adopting, Effect::Adopt)
            }
            (Known::Nobody, TmuxState::Dead | TmuxState::Absent | TmuxState::Unknown)
            | (Known::Starting { .. }, TmuxState::Dead | TmuxState::Absent) => {
                self.ask(Phase::MakingWorkspace, Effect::MakeWorkspace)
            }
        }
    }

    /// Asked once more before anything is replaced (seed 004, AC6).
    fn second_probe(&mut self, state: TmuxState) -> Step {
        match state {
            TmuxState::Live => {
                self.averted = true;
                self.found_live()
            }
            TmuxState::Dead | TmuxState::Absent => {
                self.ask(Phase::MakingWorkspace, Effect::MakeWorkspace)
            }
            TmuxState::Unknown => self.done(Verdict::Held(HoldReason::TmuxUnanswered)),
        }
    }

    fn found_live(&mut self) -> Step {
        if self.facts.has_prompt {
            self.ask(Phase::Observing, Effect::Observe)
        } else {
            self.done(Verdict::AlreadyLive)
        }
    }

    /// A live session nobody registered, or a spawn that a crash cut short: only the mark of its own
    /// process proves whose it is (DI-23, ST-42).
    fn adopting(&mut self, adoption: Adoption) -> Step {
        match adoption {
            Adoption::Ours => self.ask(
                Phase::Activating { adopted: true },
                Effect::RecordActive {
                    launch: self.launch,
                    adopted: true,
                },
            ),
            Adoption::NotOurs => self.spawn_failed(SpawnFailure::OccupiedByOther),
            Adoption::Unanswered => self.done(Verdict::Held(HoldReason::TmuxUnanswered)),
        }
    }

    fn observing(&mut self, observed: Observed) -> Step {
        match observed {
            Observed::CanTake => self.ask(Phase::Sending, Effect::Send),
            Observed::MustWait(reason) => self.done(Verdict::Held(reason)),
            Observed::Gone => self.fail(Trouble::Vanished),
            Observed::Unanswered => self.done(Verdict::Held(HoldReason::TmuxUnanswered)),
        }
    }

    fn sending(&mut self, sent: Sent) -> Step {
        match sent {
            Sent::Submitted => self.ask(Phase::Confirming { again: false }, Effect::Confirm),
            Sent::LeftInComposer(reason) => self.done(Verdict::LeftInComposer(reason)),
            Sent::NotPasted => self.fail(Trouble::PasteRefused),
            Sent::Unanswered => self.done(Verdict::PasteUnanswered),
        }
    }

    fn submitting_again(&mut self, sent: Sent) -> Step {
        match sent {
            Sent::Submitted => self.ask(Phase::Confirming { again: true }, Effect::Confirm),
            Sent::LeftInComposer(reason) => self.done(Verdict::LeftInComposer(reason)),
            Sent::NotPasted | Sent::Unanswered => {
                self.done(Verdict::Unconfirmed { in_composer: true })
            }
        }
    }

    fn confirming(&mut self, confirmation: Confirmation, again: bool) -> Step {
        match confirmation {
            Confirmation::By(by) => self.done(Verdict::Confirmed {
                by,
                averted: self.averted,
                launched: None,
            }),
            Confirmation::Silent { in_composer: true } if !again => {
                self.ask(Phase::SubmittingAgain, Effect::SubmitAgain)
            }
            Confirmation::Silent { in_composer } => self.done(Verdict::Unconfirmed { in_composer }),
            Confirmation::Unproven(why) => self.done(Verdict::Unproven(why)),
            Confirmation::Interrupted => self.done(Verdict::Interrupted),
        }
    }

    fn making_workspace(&mut self, made: Made) -> Step {
        match made {
            Made::Ready => self.ask(
                Phase::Journaling,
                Effect::RecordStarting {
                    launch: self.launch,
                },
            ),
            Made::Failed { retry } => self.spawn_failed(SpawnFailure::Workspace { retry }),
            Made::GaveWay => self.done(Verdict::GaveWay),
            Made::MustWait(reason) => self.done(Verdict::Held(reason)),
        }
    }

    fn journaling(&mut self, journaled: Journaled) -> Step {
        match journaled {
            Journaled::Written => self.ask(
                Phase::PreparingHarness,
                Effect::PrepareHarness {
                    launch: self.launch,
                },
            ),
            Journaled::Refused => self.spawn_failed(SpawnFailure::Record),
        }
    }

    fn preparing_harness(&mut self, made: Made) -> Step {
        match made {
            Made::Ready => self.ask(Phase::ProbingName(Moment::Before), Effect::Probe),
            Made::Failed { retry } => self.spawn_failed(SpawnFailure::Harness { retry }),
            Made::GaveWay => self.done(Verdict::GaveWay),
            Made::MustWait(reason) => self.done(Verdict::Held(reason)),
        }
    }

    fn probing_name(&mut self, state: TmuxState, moment: Moment) -> Step {
        match clearance(state, moment) {
            Clearance::Go => self.ask(
                Phase::Launching(moment),
                Effect::Launch {
                    launch: self.launch,
                },
            ),
            Clearance::ClearFirst(proof) => self.ask(Phase::Clearing(moment), Effect::Clear(proof)),
            Clearance::Occupied => self.occupied(),
        }
    }

    /// Something lives under the name (or may): with a record it is this item's own agent, so it is
    /// talked to (seed 004, AC7); without one it is left alone.
    fn occupied(&mut self) -> Step {
        match self.facts.known {
            Known::Session { .. } => self.ask(Phase::TakingBack, Effect::TakeBack),
            Known::Nobody | Known::Starting { .. } => self.ask(Phase::Adopting, Effect::Adopt),
        }
    }

    /// The record names the conversation that lives, not the one that was about to replace it.
    fn taking_back(&mut self, journaled: Journaled) -> Step {
        match journaled {
            Journaled::Written => {
                self.averted = true;
                self.found_live()
            }
            Journaled::Refused => self.fail(Trouble::Record),
        }
    }

    fn clearing(&mut self, cleared: Cleared, moment: Moment) -> Step {
        match cleared {
            Cleared::Gone => self.ask(
                Phase::Launching(moment),
                Effect::Launch {
                    launch: self.launch,
                },
            ),
            Cleared::StillThere => self.done(Verdict::SessionOccupied),
            Cleared::Unanswered => self.done(Verdict::Held(HoldReason::TmuxUnanswered)),
        }
    }

    fn launching(&mut self, launched: Launched, moment: Moment) -> Step {
        match launched {
            Launched::Made => self.ask(
                Phase::ProvingAlive,
                Effect::ProveAlive {
                    launch: self.launch,
                },
            ),
            Launched::NameTaken => match moment {
                Moment::Before => {
                    self.ask(Phase::ProbingName(Moment::AfterCollision), Effect::Probe)
                }
                // One retry at most (DI-16); a second collision is an ordinary failure.
                Moment::AfterCollision => self.spawn_failed(SpawnFailure::NameTaken),
            },
            Launched::Refused => self.spawn_failed(SpawnFailure::Refused),
            Launched::Unanswered => self.ask(Phase::ProbingUnanswered, Effect::Probe),
        }
    }

    /// `new-session` gave no answer: only what holds the name now can tell.
    fn probing_unanswered(&mut self, state: TmuxState) -> Step {
        match state {
            TmuxState::Live => self.ask(
                Phase::ProvingAlive,
                Effect::ProveAlive {
                    launch: self.launch,
                },
            ),
            TmuxState::Absent => self.spawn_failed(SpawnFailure::Unanswered),
            TmuxState::Dead => self.died(),
            // It may have been made; the journal stays and the next look decides (ST-42).
            TmuxState::Unknown => self.done(Verdict::LaunchUnanswered),
        }
    }

    fn died(&mut self) -> Step {
        match self.launch {
            Launch::Resume => self.done(Verdict::ResumeFailed),
            Launch::Fresh => self.spawn_failed(SpawnFailure::DiedAtOnce),
        }
    }

    fn proving_alive(&mut self, alive: Alive) -> Step {
        match alive {
            Alive::Yes => self.ask(
                Phase::Activating { adopted: false },
                Effect::RecordActive {
                    launch: self.launch,
                    adopted: false,
                },
            ),
            Alive::DiedAtOnce => self.died(),
        }
    }

    fn activating(&mut self, journaled: Journaled, adopted: bool) -> Step {
        match (journaled, adopted) {
            // The agent lives and the record still says `starting`: the next look adopts it.
            (Journaled::Refused, true | false) => self.fail(Trouble::Record),
            (Journaled::Written, true) => self.found_live(),
            (Journaled::Written, false) => self.ask(Phase::AwaitingReady, Effect::AwaitReady),
        }
    }

    fn awaiting_ready(&mut self, readiness: Readiness) -> Step {
        let pasted = self.facts.has_prompt && !self.facts.carries;
        match readiness {
            Readiness::Ready if self.facts.has_prompt && self.facts.carries => {
                self.ask(Phase::ConfirmingFirst, Effect::Confirm)
            }
            // After a collision there are too few steps left to see the paste through: the next look
            // finds a live session.
            Readiness::Ready if pasted && self.steps + PASTE_STEPS <= DISPATCH_STEPS_MAX => {
                self.found_live()
            }
            Readiness::Ready => self.done(Verdict::BroughtBack {
                launch: self.launch,
            }),
            Readiness::NotReady(reason) if pasted => self.done(Verdict::Held(reason)),
            Readiness::NotReady(reason) => self.done(Verdict::FirstPromptWaits {
                reason,
                launch: self.launch,
            }),
            Readiness::Died => self.died(),
            Readiness::Interrupted => self.done(Verdict::Interrupted),
        }
    }

    fn confirming_first(&mut self, confirmation: Confirmation) -> Step {
        match confirmation {
            Confirmation::By(by) => self.done(Verdict::Confirmed {
                by,
                averted: false,
                launched: Some(self.launch),
            }),
            // An argument is never in the composer as ours to submit: it stays pasted and is examined.
            Confirmation::Silent { in_composer } => self.done(Verdict::Unconfirmed { in_composer }),
            Confirmation::Unproven(why) => self.done(Verdict::Unproven(why)),
            Confirmation::Interrupted => self.done(Verdict::Interrupted),
        }
    }
}
