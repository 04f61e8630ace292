//! Points in time. There is no way to ask for "now" here.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time in UTC. Records write whole seconds (`2026-03-01T09:12:44Z`), the event log
/// milliseconds, the inbox Unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// From Unix milliseconds; values outside the calendar are clamped to its ends.
    pub fn from_unix_ms(ms: i64) -> Self {
        Self(jiff::Timestamp::from_millisecond(ms).unwrap_or(if ms < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        }))
    }
    /// Unix milliseconds.
    pub fn unix_ms(self) -> i64 {
        self.0.as_millisecond()
    }
    /// From the date library's own type.
    pub fn from_jiff(at: jiff::Timestamp) -> Self {
        Self(at)
    }
    /// The date library's own type, for calendar arithmetic.
    pub fn to_jiff(self) -> jiff::Timestamp {
        self.0
    }
    /// `2026-03-01T09:12:44Z`.
    pub fn seconds(self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
    /// `2026-03-01T09:12:44.318Z`.
    pub fn millis(self) -> String {
        self.0.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
    }
    /// `20260301T091244Z`, for file names.
    pub fn compact(self) -> String {
        self.0.strftime("%Y%m%dT%H%M%SZ").to_string()
    }
    /// `2026-03-01`: the UTC day it lies in.
    pub fn day(self) -> String {
        self.0.strftime("%Y-%m-%d").to_string()
    }
    /// This point moved later by `by`; stays at the end of the calendar.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self::from_unix_ms(self.unix_ms().saturating_add(ms))
    }
    /// This point moved earlier by `by`; stays at the beginning of the calendar.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self::from_unix_ms(self.unix_ms().saturating_sub(ms))
    }
    /// How long ago `earlier` was; zero when it lies ahead.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.unix_ms() - earlier.unix_ms()).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.seconds())
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.seconds())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// An age as people read it: `41s`, `12m`, `3h`, `4d` (SE-5).
pub fn age(of: Duration) -> String {
    let s = of.as_secs();
    match s {
        0..=59 => format!("{s}s"),
        60..=3599 => format!("{}m", s / 60),
        3600..=86_399 => format!("{}h", s / 3600),
        _ => format!("{}d", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_instant() {
        let at: Timestamp = "2026-03-01T10:12:44.318+01:00".parse().unwrap();
        assert_eq!(at.seconds(), "2026-03-01T09:12:44Z");
        assert_eq!(at.millis(), "2026-03-01T09:12:44.318Z");
        assert_eq!(at.compact(), "20260301T091244Z");
        let late: Timestamp = "2026-03-01T00:30:00+01:00".parse().unwrap();
        assert_eq!(late.day(), "2026-02-28");
        assert_eq!(Timestamp::from_unix_ms(at.unix_ms()), at);
    }

    #[test]
    fn arithmetic_never_leaves_the_calendar() {
        let end = Timestamp::from_unix_ms(i64::MAX);
        assert_eq!(end.plus(Duration::MAX), end);
        assert_eq!(end.since(end.plus(Duration::from_secs(9))), Duration::ZERO);
    }

    #[test]
    fn ages() {
        assert_eq!(age(Duration::from_secs(41)), "41s");
        assert_eq!(age(Duration::from_mins(12)), "12m");
        assert_eq!(age(Duration::from_hours(96)), "4d");
    }
}
