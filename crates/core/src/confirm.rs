//! What an agent was seen to do, and whether a delivery has reached it (DI-25, DI-27, DI-29, DI-31, DI-43).
//!
//! The shell reads hook files, transcripts and screens and hands over what they say, with times.
//! Everything here is a decision over such values.

use std::fmt;
use std::time::Duration;

use crate::dispatch::HoldReason;
use crate::ids::Marker;
use crate::time::Timestamp;

/// What an agent waits for, when it waits for a person (DI-31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitingKind {
    /// A yes or no to something it wants to do.
    Permission,
    /// An answer to a question of its own.
    Question,
    /// Any other dialog, such as "do you trust this folder?".
    Dialog,
    /// Its account may not be used for a while.
    UsageLimit,
    /// It has no valid login.
    Login,
}

impl WaitingKind {
    /// The word used in output and events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Dialog => "dialog",
            Self::UsageLimit => "usage-limit",
            Self::Login => "login",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Permission,
            Self::Question,
            Self::Dialog,
            Self::UsageLimit,
            Self::Login,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == word)
    }

    /// The kind in words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Permission => "permission question",
            Self::Question => "question",
            Self::Dialog => "dialog",
            Self::UsageLimit => "usage limit",
            Self::Login => "login",
        }
    }
}

/// What an agent does (DI-31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentState {
    /// Its process runs and does not take input yet.
    Starting,
    /// It takes input and has had no turn in this process.
    Ready,
    /// A turn is in work.
    Working,
    /// It needs a person.
    Waiting(WaitingKind),
    /// Its last turn has ended; it takes input.
    Idle,
    /// It has ended.
    Exited,
    /// Nothing has told. Not knowing never licenses a paste.
    Unknown,
}

impl AgentState {
    /// The word used in output and events; the kind of waiting is left out.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Working => "working",
            Self::Waiting(_) => "waiting",
            Self::Idle => "idle",
            Self::Exited => "exited",
            Self::Unknown => "unknown",
        }
    }

    /// Has the agent shown that it reads its input? It may be in the middle of a turn (DI-21).
    pub fn takes_input(self) -> bool {
        match self {
            Self::Ready | Self::Working | Self::Idle => true,
            Self::Starting | Self::Waiting(_) | Self::Exited | Self::Unknown => false,
        }
    }

    /// Does it wait for somebody?
    pub fn waits_for_person(self) -> bool {
        match self {
            Self::Waiting(_) => true,
            Self::Starting
            | Self::Ready
            | Self::Working
            | Self::Idle
            | Self::Exited
            | Self::Unknown => false,
        }
    }

    /// May its account not be used, or has it no login (DI-42)?
    pub fn is_barred(self) -> bool {
        match self {
            Self::Waiting(WaitingKind::UsageLimit | WaitingKind::Login) => true,
            Self::Waiting(
                WaitingKind::Permission | WaitingKind::Question | WaitingKind::Dialog,
            )
            | Self::Starting
            | Self::Ready
            | Self::Working
            | Self::Idle
            | Self::Exited
            | Self::Unknown => false,
        }
    }

    /// Why nothing may be pasted in this state; `None` when the state allows it (DI-27).
    pub fn hold(self) -> Option<HoldReason> {
        match self {
            Self::Ready | Self::Working | Self::Idle => None,
            Self::Starting | Self::Exited | Self::Unknown => Some(HoldReason::NotReady),
            Self::Waiting(WaitingKind::UsageLimit) => Some(HoldReason::UsageLimit),
            Self::Waiting(WaitingKind::Login) => Some(HoldReason::Login),
            Self::Waiting(
                WaitingKind::Permission | WaitingKind::Question | WaitingKind::Dialog,
            ) => Some(HoldReason::Dialog),
        }
    }
}

impl fmt::Display for AgentState {
    /// `idle`, `waiting(permission)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting(kind) => write!(f, "waiting({})", kind.as_str()),
            Self::Starting
            | Self::Ready
            | Self::Working
            | Self::Idle
            | Self::Exited
            | Self::Unknown => f.write_str(self.as_str()),
        }
    }
}

/// Where an observation comes from. The order is that of DI-31: among equally new ones the first decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObservationSource {
    /// A line of the hook file.
    Hook,
    /// The harness's own state file.
    SessionsFile,
    /// The conversation's transcript.
    Transcript,
    /// The pane's title.
    Title,
    /// The pane's visible rows.
    Screen,
}

impl ObservationSource {
    /// The word used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::SessionsFile => "sessions-file",
            Self::Transcript => "transcript",
            Self::Title => "title",
            Self::Screen => "screen",
        }
    }
}

/// One source's word on an agent's state, and since when it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Who says so.
    pub source: ObservationSource,
    /// Since when it has said so, not when it was looked at: a title that has not changed for an hour
    /// must not win over a hook of a minute ago.
    pub at: Timestamp,
    /// What it says.
    pub state: AgentState,
}

/// The observation that decides: the newest, among equals by source (DI-31). `None` when there is none,
/// which means [`AgentState::Unknown`].
pub fn newest(observations: &[Observation]) -> Option<Observation> {
    observations
        .iter()
        .copied()
        .min_by(|a, b| b.at.cmp(&a.at).then_with(|| a.source.cmp(&b.source)))
}

/// The observation that is believed: the newest, except that a usage limit or a missing login that a
/// hook or the transcript told is not ended by looking idle, which such an agent does. A hook or a turn
/// ends it (DI-42).
pub fn believed(observations: &[Observation]) -> Option<Observation> {
    let newest = newest(observations)?;
    let looks_idle = matches!(newest.state, AgentState::Idle | AgentState::Ready);
    let barred = observations.iter().copied().find(|o| {
        let kind = match o.state {
            AgentState::Waiting(kind) => Some(kind),
            AgentState::Starting
            | AgentState::Ready
            | AgentState::Working
            | AgentState::Idle
            | AgentState::Exited
            | AgentState::Unknown => None,
        };
        matches!(
            o.source,
            ObservationSource::Hook | ObservationSource::Transcript
        ) && matches!(kind, Some(WaitingKind::UsageLimit | WaitingKind::Login))
    });
    Some(barred.filter(|_| looks_idle).unwrap_or(newest))
}

/// The believed observation with the time since when its state stands: that of the earliest word for the
/// same state that no other state was told after. A title has no time of its own, and whoever looks at it
/// first would take that look for the beginning (DI-31).
pub fn standing(observations: &[Observation]) -> Option<Observation> {
    let believed = believed(observations)?;
    let changed_at = observations
        .iter()
        .filter(|o| o.state != believed.state && o.at <= believed.at)
        .map(|o| o.at)
        .max();
    observations
        .iter()
        .copied()
        .filter(|o| o.state == believed.state && o.at <= believed.at)
        .filter(|o| changed_at.is_none_or(|changed| o.at >= changed))
        .min_by(|a, b| a.at.cmp(&b.at).then_with(|| a.source.cmp(&b.source)))
        .or(Some(believed))
}

/// What may confirm a delivery. A screen never does (P3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The prompt-submit hook.
    Hook,
    /// A user's entry in the transcript.
    Transcript,
}

impl By {
    /// The word used in output, events and the inbox.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Transcript => "transcript",
        }
    }
}

/// A delivery's marker, seen in a prompt that the harness took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerSeen {
    /// The marker.
    pub marker: Marker,
    /// When the harness took the prompt, by its own word.
    pub at: Timestamp,
    /// The conversation that took it; `""` when it was not told.
    pub session_id: String,
    /// Who says so.
    pub by: By,
}

/// The evidence that a delivery was taken: its own marker, in its own conversation, not before the
/// attempt was written down (DI-25). A hook wins over a transcript; any other marker proves nothing.
pub fn evidence<'a>(
    seen: impl IntoIterator<Item = &'a MarkerSeen>,
    marker: &Marker,
    session_id: &str,
    intent_at: Timestamp,
) -> Option<&'a MarkerSeen> {
    seen.into_iter()
        .filter(|s| s.marker == *marker && s.session_id == session_id && s.at >= intent_at)
        .min_by_key(|s| match s.by {
            By::Hook => (0, s.at),
            By::Transcript => (1, s.at),
        })
}

/// What is in an agent's input line, as far as the adapter can tell (DI-27).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Composer {
    /// Nothing.
    Empty,
    /// Somebody's text: never appended to, submitted or erased.
    Draft,
    /// Text with the marker that was asked for: ours.
    Ours,
    /// It is not on the screen.
    Unknown,
}

impl Composer {
    /// Why nothing may be pasted over this; `None` when the composer allows it. What cannot be seen
    /// does not hold: the agent's state and the typing time protect a person then.
    pub fn hold(self) -> Option<HoldReason> {
        match self {
            Self::Empty | Self::Unknown => None,
            Self::Draft | Self::Ours => Some(HoldReason::Draft),
        }
    }
}

/// What follows when the confirmation time is over and there is no evidence (DI-29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unconfirmed {
    /// The text is still in the composer: submit it once more.
    SubmitAgain,
    /// It is still there after that: the delivery stays `pasted`, an operator is told.
    StaysPasted,
    /// The agent waits for a person with our text in its composer: nothing is submitted now.
    Wait,
    /// The text is gone, or cannot be seen: [`examine`] decides.
    Examine,
}

/// Decides what follows on a confirmation that did not come. `submits` counts the submits so far, the
/// first one included.
pub fn unconfirmed(composer: Composer, state: AgentState, submits: u32) -> Unconfirmed {
    match composer {
        Composer::Ours if matches!(state, AgentState::Waiting(_)) => Unconfirmed::Wait,
        Composer::Ours if submits < 2 => Unconfirmed::SubmitAgain,
        Composer::Ours => Unconfirmed::StaysPasted,
        Composer::Empty | Composer::Draft | Composer::Unknown => Unconfirmed::Examine,
    }
}

/// What is known about an attempt whose end was not seen (DI-43).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The evidence, when there is any.
    pub evidence: Option<By>,
    /// The composer, asked for this delivery's marker.
    pub composer: Composer,
    /// Could the transcript be read to its end? (One that does not exist yet reads as empty.)
    pub transcript_read: bool,
    /// The agent's state now.
    pub state: AgentState,
    /// Has a turn begun after the attempt that is not ours?
    pub later_turn: bool,
    /// Has this conversation's prompt hook ever been heard? If not, only the transcript can tell, and
    /// it does so when the turn in work has ended (DI-29).
    pub hooks_heard: bool,
    /// When the attempt was written down.
    pub intent_at: Timestamp,
    /// This moment.
    pub now: Timestamp,
    /// `routing.tmux.confirmTimeoutSeconds`.
    pub confirm_timeout: Duration,
}

/// What an examination found (DI-43).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Examined {
    /// The agent has it.
    Confirmed(By),
    /// It lies in the composer: submit and await the confirmation.
    Submit,
    /// It is proved not to have arrived: send it again.
    SendAgain,
    /// Too early to tell: look again.
    LookAgain,
    /// Nobody can know: `delivery.uncertain`.
    Uncertain,
}

/// Looks into an attempt whose end was not seen, after a crash or a confirmation that did not come.
/// Absence is proved only by a transcript that was read, an empty composer, the confirmation time, and
/// a later turn or an idle agent.
pub fn examine(attempt: &Attempt) -> Examined {
    if let Some(by) = attempt.evidence {
        return Examined::Confirmed(by);
    }
    match attempt.composer {
        Composer::Ours if matches!(attempt.state, AgentState::Waiting(_)) => {
            return Examined::LookAgain;
        }
        Composer::Ours => return Examined::Submit,
        Composer::Empty | Composer::Draft | Composer::Unknown => {}
    }
    if attempt.now.since(attempt.intent_at) < attempt.confirm_timeout {
        return Examined::LookAgain;
    }
    let settled = match attempt.state {
        AgentState::Idle | AgentState::Ready => true,
        AgentState::Working if !attempt.hooks_heard && !attempt.later_turn => {
            return Examined::LookAgain;
        }
        AgentState::Starting
        | AgentState::Working
        | AgentState::Waiting(_)
        | AgentState::Exited
        | AgentState::Unknown => attempt.later_turn,
    };
    match attempt.composer {
        Composer::Empty if attempt.transcript_read && settled => Examined::SendAgain,
        Composer::Empty | Composer::Draft | Composer::Ours | Composer::Unknown => {
            Examined::Uncertain
        }
    }
}

#[cfg(test)]
mod tests;
