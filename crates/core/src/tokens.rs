//! Tokens: what agents use, counted from their transcripts without counting anything twice, and the
//! limits on them (DI-37, DI-51, DI-52).

use std::ops::AddAssign;

/// Token counts, each class on its own (DI-37).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens sent anew.
    pub input: u64,
    /// Tokens answered.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens written to it.
    pub cache_write: u64,
}

impl Usage {
    /// Nothing at all?
    pub fn is_zero(self) -> bool {
        self == Self::default()
    }
    /// All classes together: what limits are compared with.
    pub fn total(self) -> u64 {
        [self.output, self.cache_read, self.cache_write]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }
    /// What this count has more than an earlier one, class by class.
    #[must_use]
    pub fn beyond(self, earlier: Self) -> Self {
        Self {
            input: self.input.saturating_sub(earlier.input),
            output: self.output.saturating_sub(earlier.output),
            cache_read: self.cache_read.saturating_sub(earlier.cache_read),
            cache_write: self.cache_write.saturating_sub(earlier.cache_write),
        }
    }
    /// The greater of the two, class by class.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: self.cache_read.max(other.cache_read),
            cache_write: self.cache_write.max(other.cache_write),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
    }
}

/// How far the counts of a transcript had come at the end of a day's entries. A transcript is read from
/// its beginning by every process that follows it, so each sees the same running sums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The UTC day (`2026-03-01`) of the entries.
    pub day: String,
    /// The sum of everything in the transcript up to there.
    pub running: Usage,
}

/// Adds an entry to the steps of a look; entries of one day in a row are one step.
pub fn note(steps: &mut Vec<Step>, running: &mut Usage, day: String, more: Usage) {
    *running += more;
    match steps.last_mut() {
        Some(last) if last.day == day => last.running = last.running.at_least(*running),
        Some(_) | None => steps.push(Step {
            day,
            running: *running,
        }),
    }
}

/// What these steps have beyond what was `counted` of the conversation before, by day, and what is
/// counted after. The same steps a second time give nothing.
pub fn fresh(counted: Usage, steps: &[Step]) -> (Vec<(String, Usage)>, Usage) {
    let mut counted = counted;
    let mut days: Vec<(String, Usage)> = Vec::new();
    for step in steps {
        let more = step.running.beyond(counted);
        counted = counted.at_least(step.running);
        if more.is_zero() {
            continue;
        }
        match days.iter_mut().find(|(day, _)| *day == step.day) {
            Some((_, sum)) => *sum += more,
            None => days.push((step.day.clone(), more)),
        }
    }
    (days, counted)
}

/// Tokens used since the last release, when they reach the limit; `None` when they do not or there is no
/// limit. `base`: what was used when it was released (DI-52: counting starts anew).
pub fn over(limit: u64, used: u64, base: u64) -> Option<u64> {
    let since = used.saturating_sub(base);
    (limit > 0 && since >= limit).then_some(since)
}

/// Does a limit of tokens that was changed to `limit` let go of what it stopped at `stopped_at`? Higher,
/// or none at all (DI-52).
pub fn is_raised(limit: u64, stopped_at: u64) -> bool {
    limit == 0 || limit > stopped_at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(input: u64, output: u64) -> Usage {
        Usage {
            input,
            output,
            ..Usage::default()
        }
    }

    fn steps(entries: &[(&str, Usage)]) -> Vec<Step> {
        let (mut steps, mut running) = (Vec::new(), Usage::default());
        for (day, more) in entries {
            note(&mut steps, &mut running, (*day).to_owned(), *more);
        }
        steps
    }

    #[test]
    fn di37_what_was_counted_is_not_counted_again_by_the_next_process() {
        let all = [
            ("2026-03-01", used(10, 1)),
            ("2026-03-01", used(20, 2)),
            ("2026-03-02", used(30, 3)),
        ];
        let (first, counted) = fresh(Usage::default(), &steps(&all[..2]));
        assert_eq!(first, [("2026-03-01".to_owned(), used(30, 3))]);
        // A process that begins anew reads the transcript from its beginning.
        let (second, counted) = fresh(counted, &steps(&all));
        assert_eq!(second, [("2026-03-02".to_owned(), used(30, 3))]);
        assert_eq!(counted, used(60, 6));
        assert_eq!(fresh(counted, &steps(&all)).0, []);
    }

    #[test]
    fn di37_every_class_counts_on_its_own_and_all_of_them_for_a_limit() {
        let all = Usage {
            input: 1,
            output: 2,
            cache_read: 4,
            cache_write: 8,
        };
        assert_eq!(all.total(), 15);
        assert_eq!(all.beyond(used(1, 1)).total(), 13);
        assert_eq!(used(u64::MAX, 1).total(), u64::MAX);
    }

    #[test]
    fn di37_a_transcript_that_begins_anew_takes_nothing_away() {
        let (days, counted) = fresh(used(50, 5), &steps(&[("2026-03-02", used(10, 1))]));
        assert_eq!(days, []);
        assert_eq!(counted, used(50, 5));
    }

    #[test]
    fn di52_a_limit_is_reached_by_what_came_since_its_release() {
        assert_eq!(over(0, 1_000, 0), None);
        assert_eq!(over(100, 99, 0), None);
        assert_eq!(over(100, 100, 0), Some(100));
        assert_eq!(over(100, 199, 100), None);
        assert_eq!(over(100, 230, 100), Some(130));
        assert!(is_raised(200, 100) && is_raised(0, 100));
        assert!(!is_raised(100, 100) && !is_raised(50, 100));
    }
}
