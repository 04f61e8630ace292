//! How often a rejection is logged (IN-6): a pure function of reasons and times.

use std::time::Duration;

use the_loop_core::event::WebhookRejectReason;
use the_loop_core::time::Timestamp;

/// What was said of each reason, and what was not.
#[derive(Debug)]
pub(super) struct Throttle {
    every: Duration,
    reasons: Vec<(WebhookRejectReason, Said)>,
}

#[derive(Clone, Copy, Debug)]
struct Said {
    at: Timestamp,
    since_then: u64,
}

/// A line that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Rejections since the last line of this reason, this one included; absent in the first line.
    pub(super) count: Option<u64>,
}

impl Throttle {
    /// At most one line of a reason in `every`.
    pub(super) fn new(every: Duration) -> Self {
        Self {
            every,
            reasons: Vec::new(),
        }
    }

    /// Counts a rejection; the line to write for it, if one is due.
    pub(super) fn note(&mut self, reason: WebhookRejectReason, now: Timestamp) -> Option<Line> {
        let Some((_, said)) = self.reasons.iter_mut().find(|(r, _)| *r == reason) else {
            let said = Said {
                at: now,
                since_then: 0,
            };
            self.reasons.push((reason, said));
            return Some(Line { count: None });
        };
        said.since_then += 1;
        // A clock that was set back must not silence a reason until it has caught up.
        let due = now < said.at || now.since(said.at) >= self.every;
        due.then(|| {
            let count = Some(said.since_then);
            *said = Said {
                at: now,
                since_then: 0,
            };
            Line { count }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in6_at_once_then_one_line_in_ten_seconds_with_a_count() {
        let mut throttle = Throttle::new(Duration::from_secs(10));
        let reason = WebhookRejectReason::InvalidSignature;
        let at = |ms: i64| Timestamp::from_unix_ms(1_000_000 + ms);
        assert_eq!(throttle.note(reason, at(0)), Some(Line { count: None }));
        for ms in [1, 500, 9_999] {
            assert_eq!(throttle.note(reason, at(ms)), None);
        }
        assert_eq!(
            throttle.note(reason, at(10_000)),
            Some(Line { count: Some(4) })
        );
        assert_eq!(throttle.note(reason, at(10_001)), None);
        assert_eq!(
            throttle.note(reason, at(60_000)),
            Some(Line { count: Some(2) })
        );
    }

    #[test]
    fn in6_reasons_do_not_silence_each_other() {
        let mut throttle = Throttle::new(Duration::from_secs(10));
        let now = Timestamp::from_unix_ms(0);
        for reason in [WebhookRejectReason::Busy, WebhookRejectReason::Timeout] {
            assert!(throttle.note(reason, now).is_some());
            assert!(throttle.note(reason, now).is_none());
        }
    }

    #[test]
    fn in6_a_clock_set_back_does_not_silence() {
        let mut throttle = Throttle::new(Duration::from_secs(10));
        throttle.note(
            WebhookRejectReason::Busy,
            Timestamp::from_unix_ms(1_000_000),
        );
        assert!(
            throttle
                .note(WebhookRejectReason::Busy, Timestamp::from_unix_ms(0))
                .is_some()
        );
    }
}
