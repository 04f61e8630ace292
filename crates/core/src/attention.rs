//! When an agent needs somebody's attention: it waits for a person, or works without a sign of life
//! (DI-31, DI-32); and when an idle one may be ended (DI-51).

use std::time::Duration;

use crate::confirm::{AgentState, Observation, ObservationSource, WaitingKind};
use crate::time::Timestamp;

/// A hook that tells of a question this much later than the wait began tells of another question:
/// between the two somebody answered, which no hook tells. Hooks are programs of their own, and one that
/// tells of the same question may be this late.
const SAME_QUESTION: Duration = Duration::from_secs(2);
/// Busy children count as a sign of life from a hundredth of a processor on: helpers that only wait for
/// work use less.
const BUSY_TICKS_A_SECOND: u64 = 1;

/// One wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// For what.
    pub kind: WaitingKind,
    /// Since when.
    pub since: Timestamp,
    /// People were told.
    pub told: bool,
}

/// What a look makes of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The wait that goes on, if one does.
    pub wait: Option<Wait>,
    /// It has now lasted long enough to be told, and was not.
    pub tell: bool,
}

/// Follows a wait: it begins, goes on, is another one, or is over. `after` is
/// `routing.attention.afterSeconds`.
pub fn wait(
    before: Option<Wait>,
    seen: Option<Observation>,
    now: Timestamp,
    after: Duration,
) -> Waited {
    let Some((kind, seen)) = seen.and_then(|seen| match seen.state {
        AgentState::Waiting(kind) => Some((kind, seen)),
        AgentState::Starting
        | AgentState::Ready
        | AgentState::Working
        | AgentState::Idle
        | AgentState::Exited
        | AgentState::Unknown => None,
    }) else {
        return Waited {
            wait: None,
            tell: false,
        };
    };
    let is_same = |wait: &Wait| {
        let another =
            seen.source == ObservationSource::Hook && seen.at.since(wait.since) > SAME_QUESTION;
        wait.kind == kind && !another
    };
    let mut wait = before.filter(is_same).unwrap_or(Wait {
        kind,
        since: seen.at,
        told: false,
    });
    let tell = !wait.told && now.since(wait.since) >= after;
    wait.told |= tell;
    Waited {
        wait: Some(wait),
        tell,
    }
}

/// What shows that an agent in a turn lives (DI-32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// Bytes of its transcript.
    pub transcript_len: u64,
    /// The transcript's last change, Unix milliseconds.
    pub transcript_at: i64,
    /// The last output in its window, Unix seconds, where tmux tells.
    pub output_at: Option<i64>,
    /// Processor time its children have used so far, in clock ticks, where it was looked at.
    pub child_ticks: Option<u64>,
}

/// An agent that works, and since when it has shown no sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quiet {
    /// The last signs.
    pub signs: Signs,
    /// When its children were last looked at.
    pub children_at: Timestamp,
    /// Since when nothing has changed.
    pub since: Timestamp,
    /// People were told.
    pub told: bool,
}

/// What a look makes of a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listened {
    /// The silence that goes on; `None` when the agent does not work.
    pub quiet: Option<Quiet>,
    /// It has now lasted long enough to be told, and was not.
    pub tell: bool,
}

/// Follows the silence of a working agent. `limit` is `routing.limits.stallMinutes`; zero never tells.
pub fn listen(
    before: Option<Quiet>,
    state: AgentState,
    signs: Signs,
    now: Timestamp,
    limit: Duration,
) -> Listened {
    if state != AgentState::Working {
        return Listened {
            quiet: None,
            tell: false,
        };
    }
    let begins = Quiet {
        signs,
        children_at: now,
        since: now,
        told: false,
    };
    let Some(mut quiet) = before else {
        return Listened {
            quiet: Some(begins),
            tell: false,
        };
    };
    let busy = match (signs.child_ticks, quiet.signs.child_ticks) {
        (Some(ticks), Some(before)) => {
            let seconds = now.since(quiet.children_at).as_secs().max(1);
            // Children that ended may take their count along: fewer ticks are a sign as well.
            ticks < before || ticks - before >= BUSY_TICKS_A_SECOND.saturating_mul(seconds)
        }
        (Some(_) | None, None) | (None, Some(_)) => false,
    };
    let lives = busy
        || signs.transcript_len != quiet.signs.transcript_len
        || signs.transcript_at != quiet.signs.transcript_at
        || signs.output_at != quiet.signs.output_at;
    if lives {
        return Listened {
            quiet: Some(begins),
            tell: false,
        };
    }
    if signs.child_ticks.is_some() {
        quiet.signs.child_ticks = signs.child_ticks;
        quiet.children_at = now;
    }
    let tell = !limit.is_zero() && !quiet.told && now.since(quiet.since) >= limit;
    quiet.told |= tell;
    Listened {
        quiet: Some(quiet),
        tell,
    }
}

/// Is it time to look at the children of a quiet agent? A look reads every process of the machine, so it
/// comes twenty times within the limit and at most once a second.
pub fn children_due(quiet: Option<&Quiet>, now: Timestamp, limit: Duration) -> bool {
    let every = (limit / 20).max(Duration::from_secs(1));
    !limit.is_zero()
        && quiet.is_none_or(|quiet| {
            quiet.signs.child_ticks.is_none() || now.since(quiet.children_at) >= every
        })
}

/// Has the agent been idle for `routing.limits.idleStopAfterHours`? How long, if so.
pub fn idle_over(seen: Option<Observation>, now: Timestamp, hours: f64) -> Option<Duration> {
    let seen = seen?;
    let takes_input = matches!(seen.state, AgentState::Idle | AgentState::Ready);
    let idle = now.since(seen.at);
    (hours > 0.0 && takes_input && idle.as_secs_f64() >= hours * 3600.0).then_some(idle)
}

#[cfg(test)]
mod tests;
