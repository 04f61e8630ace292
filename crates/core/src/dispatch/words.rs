//! The closed vocabulary between the machine and whoever performs its effects.

use crate::confirm::By;
use crate::probe::{ProvedDead, TmuxState};

/// Ask for an effect, or end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Perform this and say what was seen.
    Do(Effect),
    /// It is over.
    Done(Verdict),
}

/// A new conversation, or the recorded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Launch {
    /// A new conversation.
    Fresh,
    /// The recorded conversation.
    Resume,
}

/// One thing to do outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Ask tmux what holds the name.
    Probe,
    /// Look whether the process in the live session carries our mark for this item, and take its
    /// particulars.
    Adopt,
    /// Look whether the live pane can take a prompt now (DI-27).
    Observe,
    /// Write the intent down, paste, look again, submit (DI-28).
    Send,
    /// Submit what is still in the composer.
    SubmitAgain,
    /// Wait for evidence that the harness took this delivery (DI-29).
    Confirm,
    /// Make or check the checkout (DI-45 to DI-47).
    MakeWorkspace,
    /// Journal the spawn in the session record.
    RecordStarting {
        /// Which conversation.
        launch: Launch,
    },
    /// Write trust and hook settings (DI-35).
    PrepareHarness {
        /// Which conversation.
        launch: Launch,
    },
    /// Kill the dead session that holds the name, and verify.
    Clear(ProvedDead),
    /// `new-session` of the launcher; when it carries the prompt, the intent is written first.
    Launch {
        /// Which conversation.
        launch: Launch,
    },
    /// Wait the probe time, then look whether it still lives (DI-22).
    ProveAlive {
        /// Which conversation.
        launch: Launch,
    },
    /// Record `active`.
    RecordActive {
        /// Which conversation.
        launch: Launch,
        /// It was found alive, not launched now.
        adopted: bool,
    },
    /// Wait for the adapter's readiness signal (DI-21).
    AwaitReady,
    /// Make the record what it was before the spawn was journaled: its own session lives (DI-39).
    TakeBack,
}

/// What was seen of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Seen {
    /// Of [`Effect::Probe`].
    Probe(TmuxState),
    /// Of [`Effect::Adopt`].
    Adopt(Adoption),
    /// Of [`Effect::Observe`].
    Observe(Observed),
    /// Of [`Effect::Send`] and [`Effect::SubmitAgain`].
    Send(Sent),
    /// Of [`Effect::Confirm`].
    Confirm(Confirmation),
    /// Of [`Effect::MakeWorkspace`].
    Workspace(Made),
    /// Of [`Effect::RecordStarting`], [`Effect::RecordActive`] and [`Effect::TakeBack`].
    Journal(Journaled),
    /// Of [`Effect::PrepareHarness`].
    Harness(Made),
    /// Of [`Effect::Clear`].
    Clear(Cleared),
    /// Of [`Effect::Launch`].
    Launch(Launched),
    /// Of [`Effect::ProveAlive`].
    Alive(Alive),
    /// Of [`Effect::AwaitReady`].
    Ready(Readiness),
}

/// Whose is the live session?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Adoption {
    /// Its process carries our mark for this very item.
    Ours,
    /// It does not.
    NotOurs,
    /// tmux did not say.
    Unanswered,
}

/// Can the pane take a prompt now?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Observed {
    /// Yes.
    CanTake,
    /// Not now.
    MustWait(HoldReason),
    /// The session is not there any more.
    Gone,
    /// tmux did not say.
    Unanswered,
}

/// Outcome of a paste with its submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sent {
    /// tmux took text and submit.
    Submitted,
    /// The text is in the composer and was not submitted, because a dialog or a person came between.
    LeftInComposer(HoldReason),
    /// tmux refused: nothing was pasted.
    NotPasted,
    /// tmux gave no answer: it may have been pasted.
    Unanswered,
}

/// Outcome of waiting for confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Confirmation {
    /// The harness has it.
    By(By),
    /// Nothing came in time.
    Silent {
        /// Our text still stands in the composer.
        in_composer: bool,
    },
    /// The harness cannot show that it took it: this is all that will ever be known (DI-29).
    Unproven(Unproven),
    /// A stop of the daemon or a verb that ends things came between.
    Interrupted,
}

/// Why a submitted prompt stays `pasted` for good (DI-29).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unproven {
    /// The harness shows nothing.
    NoConfirmation,
    /// The screen showed what is a hint and no proof.
    ScreenSeen,
}

impl Unproven {
    /// The word in the inbox and in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoConfirmation => "no-confirmation",
            Self::ScreenSeen => "screen-seen",
        }
    }
}

/// Outcome of a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Made {
    /// It is there.
    Ready,
    /// It cannot be made.
    Failed {
        /// A retry can help.
        retry: bool,
    },
    /// A verb that ends things asked for the lock (ST-25).
    GaveWay,
    /// No room for another session now (DI-51).
    MustWait(HoldReason),
}

/// Outcome of a record write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Journaled {
    /// On disk.
    Written,
    /// The disk refused.
    Refused,
}

/// Outcome of clearing a dead session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cleared {
    /// Verified: the name is free.
    Gone,
    /// tmux refused, and it is still there.
    StillThere,
    /// tmux did not say: nothing is known to be wrong with the session.
    Unanswered,
}

/// Outcome of `new-session`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Launched {
    /// tmux made it.
    Made,
    /// tmux says that the name is taken.
    NameTaken,
    /// tmux refused, or the launch file could not be written: nothing runs.
    Refused,
    /// tmux gave no answer.
    Unanswered,
}

/// Does a launched harness still live after the probe time? Not knowing counts as yes: a good
/// conversation is not thrown away for a slow answer (seed 004, AC12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alive {
    /// Yes, or unknown.
    Yes,
    /// It is dead or gone.
    DiedAtOnce,
}

/// Outcome of waiting for readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Readiness {
    /// It takes input.
    Ready,
    /// Not in time; a dialog in the way is named by the reason.
    NotReady(HoldReason),
    /// It ended before.
    Died,
    /// A stop of the daemon or a verb that ends things came between.
    Interrupted,
}

/// Why a delivery waits (events page, held reasons).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HoldReason {
    /// Somebody's text is in the composer.
    Draft,
    /// A writable client was active a moment ago.
    Typing,
    /// Somebody reads in copy mode.
    CopyMode,
    /// The agent waits for a person: a permission, a question, a dialog.
    Dialog,
    /// The harness does not take input yet.
    NotReady,
    /// The harness reported a usage limit.
    UsageLimit,
    /// The harness wants a login.
    Login,
    /// As many sessions live as may.
    WaitingCapacity,
    /// Too little free memory for another session.
    LowMemory,
    /// Too little free disk for another session.
    LowDisk,
    /// A limit parked the item.
    Parked,
    /// A record of the item cannot be read.
    RecordCorrupt,
    /// A record of the item was written by a newer release.
    RecordNewer,
    /// tmux does not answer.
    TmuxUnanswered,
}

impl HoldReason {
    /// All reasons.
    pub const ALL: [Self; 14] = [
        Self::Draft,
        Self::Typing,
        Self::CopyMode,
        Self::Dialog,
        Self::NotReady,
        Self::UsageLimit,
        Self::Login,
        Self::WaitingCapacity,
        Self::LowMemory,
        Self::LowDisk,
        Self::Parked,
        Self::RecordCorrupt,
        Self::RecordNewer,
        Self::TmuxUnanswered,
    ];

    /// The word in the inbox, in events and in output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Typing => "typing",
            Self::CopyMode => "copy-mode",
            Self::Dialog => "dialog",
            Self::NotReady => "not-ready",
            Self::UsageLimit => "usage-limit",
            Self::Login => "login",
            Self::WaitingCapacity => "waiting-capacity",
            Self::LowMemory => "low-memory",
            Self::LowDisk => "low-disk",
            Self::Parked => "parked",
            Self::RecordCorrupt => "record-corrupt",
            Self::RecordNewer => "record-newer",
            Self::TmuxUnanswered => "tmux-unanswered",
        }
    }

    /// Reads the inbox's word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// Is it only said after `routing.tmux.holdMaxSeconds`? People type all the time.
    pub fn is_ordinary(self) -> bool {
        match self {
            Self::Draft | Self::Typing | Self::CopyMode => true,
            Self::Dialog
            | Self::NotReady
            | Self::UsageLimit
            | Self::Login
            | Self::WaitingCapacity
            | Self::LowMemory
            | Self::LowDisk
            | Self::Parked
            | Self::RecordCorrupt
            | Self::RecordNewer
            | Self::TmuxUnanswered => false,
        }
    }
}

/// Why no session came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpawnFailure {
    /// A live session that is not ours holds the name.
    OccupiedByOther,
    /// The name was taken twice in a row.
    NameTaken,
    /// No checkout.
    Workspace {
        /// A retry can help.
        retry: bool,
    },
    /// The session record could not be written.
    Record,
    /// Trust and hook settings could not be written.
    Harness {
        /// A retry can help.
        retry: bool,
    },
    /// tmux refused, or the launch file could not be written.
    Refused,
    /// tmux gave no answer, and no session is there.
    Unanswered,
    /// The harness ended before it was ready.
    DiedAtOnce,
}

impl SpawnFailure {
    /// Does this try count against the delivery's budget? A cause outside costs none (DI-4).
    pub fn costs_an_attempt(self) -> bool {
        match self {
            Self::Unanswered => false,
            Self::OccupiedByOther
            | Self::NameTaken
            | Self::Workspace { .. }
            | Self::Record
            | Self::Harness { .. }
            | Self::Refused
            | Self::DiedAtOnce => true,
        }
    }

    /// Can a retry help?
    pub fn may_retry(self) -> bool {
        match self {
            Self::Workspace { retry } | Self::Harness { retry } => retry,
            Self::OccupiedByOther
            | Self::NameTaken
            | Self::Record
            | Self::Refused
            | Self::Unanswered
            | Self::DiedAtOnce => true,
        }
    }
}

/// Why a try with a live session failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// The session went away between probe and paste.
    Vanished,
    /// tmux refused the paste.
    PasteRefused,
    /// The session record could not be written.
    Record,
}

/// How a dispatch ended. The engine turns each into an outcome and its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The harness has the prompt.
    Confirmed {
        /// Its evidence.
        by: By,
        /// A replacement was in hand when the session turned out to live.
        averted: bool,
        /// A process was launched for it.
        launched: Option<Launch>,
    },
    /// Submitted, and nothing was heard in time: stays `pasted` and is examined (DI-29, DI-43).
    Unconfirmed {
        /// Our text still stands in the composer after a second submit.
        in_composer: bool,
    },
    /// Submitted to a harness that cannot show more: `pasted` is its end.
    Unproven(Unproven),
    /// Pasted, not submitted; ours to submit or clear once the dialog is answered (DI-28).
    LeftInComposer(HoldReason),
    /// The paste got no answer: it may or may not be there.
    PasteUnanswered,
    /// Nothing was sent; tried again when something changes.
    Held(HoldReason),
    /// The launched process has the prompt as argument and is not ready.
    FirstPromptWaits {
        /// What is in the way.
        reason: HoldReason,
        /// Which conversation.
        launch: Launch,
    },
    /// This try failed in an ordinary way (seed 004, AC9).
    Failed(Trouble),
    /// No session came up.
    SpawnFailed {
        /// Why.
        why: SpawnFailure,
        /// Which conversation.
        launch: Launch,
    },
    /// The recorded conversation did not come up: a fresh one follows at once (DI-39).
    ResumeFailed,
    /// `new-session` gave no answer and neither did the probe: the journal stays.
    LaunchUnanswered,
    /// A dead session holds the name and cannot be cleared: over for good (seed 004, AC8).
    SessionOccupied,
    /// Brought back without a prompt.
    BroughtBack {
        /// Which conversation.
        launch: Launch,
    },
    /// There was nothing to carry and the session lives.
    AlreadyLive,
    /// A verb that ends things wanted the item: given up for now (ST-25).
    GaveWay,
    /// The daemon stops, or a verb that ends things came while we waited; what was sent stays sent.
    Interrupted,
    /// The performer answered something that was not asked.
    Defect,
}
