//! How many calls a host still takes (IN-51): what its answers say, and who has to wait for what.
//!
//! A host counts an hour's calls (primary limit) and asks for a pause when they come too fast (secondary
//! limit). The poller leaves a reserve of the hour to everybody else; a pause holds for all calls.

use std::time::Duration;

use crate::time::Timestamp;

/// First and longest pause where a host asks for one and does not say how long.
const PAUSE: (Duration, Duration) = (Duration::from_mins(1), Duration::from_mins(15));
/// First and longest wait after a fault of the host or of the way there.
const FAULT_WAIT: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// Longest wait that a host may ask for.
const ASKED_MAX: Duration = Duration::from_mins(15);
/// Longest wait for a new hour: more is a clock that is wrong.
const HOUR_MAX: Duration = Duration::from_hours(1);
/// Most that is added to the wait for a new hour, so that not everybody calls in the same second.
const JITTER_MAX: Duration = Duration::from_secs(30);

/// Who wants to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The poller: it leaves the reserve alone.
    Poll,
    /// A question that a delivery waits for, or something that is written: as long as anything is left.
    Other,
}

/// What an answer said of the calls that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Calls an hour takes.
    pub limit: Option<u64>,
    /// Calls left of it.
    pub remaining: Option<u64>,
    /// When the next hour begins.
    pub resets_at: Option<Timestamp>,
}

/// How an answer ended, as far as it concerns the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered, with whatever status.
    Answered,
    /// The hour's calls are used up.
    Exhausted,
    /// Calls came too fast; it may say how long to wait.
    Throttled(Option<Duration>),
    /// The host, or the way there, is out of order.
    Fault,
}

/// What is known of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// What it said last.
    pub told: Told,
    /// Nobody calls before, by its own word or by ours.
    pub paused_until: Option<Timestamp>,
    /// Is the pause one that the host asked for?
    pub is_throttled: bool,
    /// Pauses and faults in a row.
    in_a_row: u32,
}

/// What changed and is worth a line in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Under the reserve: the poller waits until then.
    Low(Timestamp),
    /// Used up until then.
    Exhausted(Timestamp),
    /// A pause of so long was asked for.
    Throttled(Duration),
    /// Calls are taken again.
    Recovered,
}

impl Quota {
    /// Takes in an answer. `reserve` is the share of the hour, in per cent, that the poller leaves.
    pub fn heard(
        &mut self,
        told: Told,
        outcome: Outcome,
        now: Timestamp,
        reserve: u32,
    ) -> Option<News> {
        let was_barred = self.wait(Caller::Poll, now, reserve).is_some();
        let was_low = self.is_low(now, reserve);
        if told.remaining.is_some() {
            self.told = told;
        }
        match outcome {
            Outcome::Answered => {
                (self.in_a_row, self.paused_until, self.is_throttled) = (0, None, false);
            }
            Outcome::Exhausted => {
                self.told.remaining = Some(0);
                let until = self.hour_ends(now);
                self.told.resets_at = Some(until);
                return (!was_barred).then_some(News::Exhausted(until));
            }
            Outcome::Throttled(asked) => {
                let wait = asked.unwrap_or_else(|| doubled(PAUSE, self.in_a_row));
                let wait = wait.clamp(Duration::from_secs(1), ASKED_MAX);
                self.pause(now.plus(wait), true);
                return Some(News::Throttled(wait));
            }
            Outcome::Fault => {
                self.pause(now.plus(doubled(FAULT_WAIT, self.in_a_row)), false);
                return None;
            }
        }
        let is_low = self.is_low(now, reserve);
        match (self.told.remaining, self.told.resets_at) {
            (Some(0), Some(at)) if is_low && !was_low => Some(News::Exhausted(at)),
            (Some(_), Some(at)) if is_low && !was_low => Some(News::Low(at)),
            (Some(_), _) if was_barred && !is_low => Some(News::Recovered),
            _ => None,
        }
    }

    fn pause(&mut self, until: Timestamp, is_throttled: bool) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.paused_until = self.paused_until.max(Some(until));
        self.is_throttled |= is_throttled;
    }

    /// How long this caller has to wait; `None`: it may call now.
    pub fn wait(&self, caller: Caller, now: Timestamp, reserve: u32) -> Option<Duration> {
        let left = |until: Timestamp| (until > now).then(|| until.since(now));
        if let Some(left) = self.paused_until.and_then(left) {
            return Some(left);
        }
        let barred = match caller {
            Caller::Poll => self.is_low(now, reserve),
            Caller::Other => self.told.remaining == Some(0),
        };
        if barred {
            left(self.hour_ends(now))
        } else {
            None
        }
    }

    /// Calls that the poller leaves to others.
    pub fn reserve(&self, percent: u32) -> u64 {
        self.told
            .limit
            .unwrap_or(0)
            .saturating_mul(u64::from(percent))
            / 100
    }

    fn is_low(&self, now: Timestamp, reserve: u32) -> bool {
        let over = self.told.resets_at.is_some_and(|at| at <= now);
        let remaining = self.told.remaining.filter(|_| !over);
        remaining.is_some_and(|left| left == 0 || left < self.reserve(reserve))
    }

    fn hour_ends(&self, now: Timestamp) -> Timestamp {
        let latest = now.plus(HOUR_MAX);
        let said = self.told.resets_at.filter(|at| *at > now);
        said.map_or_else(|| now.plus(PAUSE.0), |at| at.min(latest))
    }
}

/// What is added to the wait for a new hour: up to half a minute, at most half the wait. `dice`: any number.
pub fn jitter(wait: Duration, dice: u64) -> Duration {
    let most = JITTER_MAX.min(wait / 2).as_millis().max(1);
    Duration::from_millis(dice % u64::try_from(most).unwrap_or(1))
}

fn doubled((first, longest): (Duration, Duration), times: u32) -> Duration {
    first.saturating_mul(1 << times.min(16)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_ms(seconds * 1000)
    }

    fn told(remaining: u64, resets: i64) -> Told {
        Told {
            limit: Some(5000),
            remaining: Some(remaining),
            resets_at: Some(at(resets)),
        }
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn in51_the_poller_leaves_the_reserve_and_everybody_else_goes_on_to_the_last_call() {
        let mut quota = Quota::default();
        let mut heard = |left, now| quota.heard(told(left, 3600), Outcome::Answered, at(now), 10);
        assert_eq!(heard(500, 0), None);
        assert_eq!(heard(499, 1), Some(News::Low(at(3600))));
        assert_eq!(heard(498, 2), None, "once a window");
        assert_eq!(quota.wait(Caller::Poll, at(2), 10), Some(secs(3598)));
        assert_eq!(quota.wait(Caller::Other, at(2), 10), None);
        assert_eq!(quota.wait(Caller::Poll, at(2), 0), None, "no reserve");
        let news = quota.heard(told(0, 3600), Outcome::Answered, at(3), 10);
        assert_eq!(news, None, "it was told");
        assert_eq!(quota.wait(Caller::Other, at(3), 10), Some(secs(3597)));
        assert_eq!(quota.wait(Caller::Poll, at(3600), 10), None, "a new hour");
        let news = quota.heard(told(4999, 7200), Outcome::Answered, at(3600), 10);
        assert_eq!(news, None, "the hour had ended by itself");
    }

    #[test]
    fn in51_what_is_used_up_is_waited_for_and_its_end_is_told() {
        let mut quota = Quota::default();
        let news = quota.heard(told(0, 600), Outcome::Exhausted, at(0), 10);
        assert_eq!(news, Some(News::Exhausted(at(600))));
        assert_eq!(quota.wait(Caller::Other, at(1), 10), Some(secs(599)));
        let news = quota.heard(told(5000, 4000), Outcome::Answered, at(599), 10);
        assert_eq!(news, Some(News::Recovered));
        // A refusal that says nothing of itself is waited for a minute; a clock that is wrong, an hour.
        let mut quota = Quota::default();
        quota.heard(Told::default(), Outcome::Exhausted, at(0), 10);
        assert_eq!(quota.wait(Caller::Other, at(0), 10), Some(secs(60)));
        quota.heard(told(0, 1 << 40), Outcome::Exhausted, at(0), 10);
        assert_eq!(quota.wait(Caller::Other, at(0), 10), Some(secs(3600)));
    }

    #[test]
    fn in51_a_pause_holds_for_all_and_doubles_where_nothing_is_said() {
        let mut quota = Quota::default();
        let mut news =
            |asked, now| quota.heard(Told::default(), Outcome::Throttled(asked), at(now), 0);
        assert_eq!(news(Some(secs(7)), 0), Some(News::Throttled(secs(7))));
        let asked = [120, 240, 480, 900, 900];
        for (n, wait) in asked.into_iter().enumerate() {
            let now = 10_000 * (n as i64 + 1);
            assert_eq!(news(None, now), Some(News::Throttled(secs(wait))));
        }
        assert_eq!(quota.wait(Caller::Other, at(50_001), 0), Some(secs(899)));
        assert_eq!(quota.wait(Caller::Poll, at(50_001), 0), Some(secs(899)));
        // A short word does not cut a longer pause short.
        quota.heard(
            Told::default(),
            Outcome::Throttled(Some(secs(1))),
            at(50_001),
            0,
        );
        assert_eq!(quota.wait(Caller::Other, at(50_001), 0), Some(secs(899)));
        let news = quota.heard(told(10, 99_999), Outcome::Answered, at(51_000), 0);
        assert_eq!(
            (news, quota.wait(Caller::Other, at(51_000), 0)),
            (None, None)
        );
    }

    #[test]
    fn in51_faults_are_waited_for_from_a_second_to_five_minutes() {
        let mut quota = Quota::default();
        for (n, wait) in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
            .into_iter()
            .enumerate()
        {
            let now = at(1_000 * (n as i64 + 1));
            assert_eq!(quota.heard(Told::default(), Outcome::Fault, now, 0), None);
            assert_eq!(quota.wait(Caller::Other, now, 0), Some(secs(wait)));
        }
    }

    #[test]
    fn in51_jitter_is_at_most_half_a_minute_and_half_the_wait() {
        for dice in [0, 1, 7_919, u64::MAX] {
            assert!(jitter(Duration::from_hours(1), dice) < Duration::from_secs(30));
            assert!(jitter(Duration::from_secs(4), dice) < Duration::from_secs(2));
            assert_eq!(jitter(Duration::ZERO, dice), Duration::ZERO);
        }
    }
}
