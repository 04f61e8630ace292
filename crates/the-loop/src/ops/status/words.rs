//! The lines of SE-24.

use the_loop_core::dispatch::HoldReason;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::age;
use the_loop_core::tokens::Usage;

use super::Look;
use crate::ops::sessions::control::parked_words;
use crate::store::inbox::Scope;

impl Look<'_> {
    /// The lines below the rows; those with nothing to tell are left out.
    pub(super) fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Lines::default();
        lines.one("inbox", self.inbox_words());
        for (host, words) in self.quota_lines() {
            lines.one(&host, words);
        }
        lines.one("limits", self.limits_words());
        lines.one("work", self.work_words());
        lines.some("waiting", self.waiting_sessions(), |(line, kind)| {
            let since = line.view.since.map(|at| age(self.now.since(at)));
            let since = since.map_or_else(String::new, |since| format!(", {since}"));
            let attach = line.attach.as_deref().unwrap_or_default();
            format!("{}  {}{since}  {attach}", line.item, kind.words())
        });
        lines.some("stalled", self.stalled_sessions(), |(line, since)| {
            let since = age(self.now.since(since));
            let attach = line.attach.as_deref().unwrap_or_default();
            format!("{}  no sign of life, {since}  {attach}", line.item)
        });
        lines.some("parked", self.parked.iter().collect(), |parked| {
            let why = parked_words(parked);
            match &parked.scope {
                Scope::Item(item) => format!("{item}  {why}  the-loop sessions resume {item}"),
                Scope::Machine => {
                    format!("the whole machine  {why}  the-loop sessions resume --all")
                }
            }
        });
        let mut used: Vec<&(String, Usage, Usage)> = self.tokens.1.iter().collect();
        used.retain(|(_, _, today)| !today.is_zero());
        used.sort_by_key(|(_, _, today)| std::cmp::Reverse(today.total()));
        lines.some("tokens", used, |(key, all, today)| {
            let (name, today, all) = (self.name_of(key), today.total(), all.total());
            format!("{name}  {today} today, {all} in all")
        });
        if self.saved.0 > 0 {
            let bundles = if self.saved.0 == 1 {
                "bundle"
            } else {
                "bundles"
            };
            let megabytes = self.saved.1 as f64 / 1_000_000.0;
            let dir = self.desk.layout.saved_dir();
            lines.one(
                "saved",
                format!("{} {bundles}, {megabytes:.1} MB in {dir}", self.saved.0),
            );
        }
        if let Some(line) = self.environment.line() {
            // A sentence of its own, not a row of the table (R3.2).
            lines.0.push((line, String::new()));
        }
        let restart = self.restart_needed();
        if !restart.is_empty() {
            lines.one(
                "restart",
                format!("{}: the-loop restart", restart.join(", ")),
            );
        }
        let config = self.problem_of_config().into_iter();
        let files = self.problems.iter().map(|problem| {
            if problem.words.contains(&problem.file) {
                problem.words.clone()
            } else {
                format!("{}: {}", problem.file, problem.words)
            }
        });
        lines.some("problem", config.chain(files).collect(), |problem| problem);
        lines.0
    }

    fn inbox_words(&self) -> String {
        let Ok(counts) = &self.counts else {
            return "cannot be read".to_owned();
        };
        let refuses = if self.unavailable_since.is_some() {
            "refuses commits; "
        } else {
            ""
        };
        let oldest = counts.oldest_at.map(|at| age(self.now.since(at)));
        let oldest = oldest.map_or_else(String::new, |age| format!(" (oldest {age})"));
        let mut words = format!(
            "{refuses}{} waiting{oldest}, {} in work, {} held, {} uncertain",
            counts.waiting, counts.in_work, counts.held, counts.uncertain
        );
        for (count, what) in [(counts.failed, "failed"), (counts.abandoned, "abandoned")] {
            if count > 0 {
                words.push_str(&format!(", {count} {what}"));
            }
        }
        words
    }

    fn limits_words(&self) -> String {
        let limits = &self.settings().routing.limits;
        let live = self.live().len();
        let sessions = match limits.max_live_sessions {
            0 => format!("{live} sessions"),
            max => format!("{live} of {max} sessions"),
        };
        let gib = |mb: Option<u64>| {
            mb.map_or_else(|| "?".to_owned(), |mb| format!("{:.1}", mb as f64 / 1024.0))
        };
        let tokens = match (self.tokens.0.total(), limits.max_tokens_per_day) {
            (0, 0) => String::new(),
            (used, 0) => format!("; {used} tokens today"),
            (used, max) => format!("; {used} of {max} tokens today"),
        };
        format!(
            "{sessions}; memory {} GiB free ({} needed); disk {} GiB free ({} needed){tokens}",
            gib(self.free_memory_mb),
            gib(Some(limits.min_free_memory_mb)),
            gib(self.free_disk_mb),
            gib(Some(limits.min_free_disk_mb)),
        )
    }

    fn work_words(&self) -> String {
        let states = self.states();
        let order = [
            "starting", "ready", "working", "waiting", "idle", "exited", "unknown",
        ];
        let parts: Vec<String> = order
            .iter()
            .filter_map(|name| Some(format!("{} {name}", states.get(name)?)))
            .collect();
        let mut words = format!("{} live", self.live().len());
        if !parts.is_empty() {
            words.push_str(&format!(": {}", parts.join(", ")));
        }
        let paused = self.of_status(SessionStatus::Paused).count();
        let waiting = |wanted: HoldReason| {
            self.waiting_for_room()
                .filter(|(_, reason, _)| *reason == wanted)
                .count()
        };
        for (count, what) in [
            (paused, "paused"),
            (waiting(HoldReason::WaitingCapacity), "waiting for capacity"),
            (waiting(HoldReason::LowMemory), "waiting for memory"),
            (waiting(HoldReason::LowDisk), "waiting for disk"),
        ] {
            if count > 0 {
                words.push_str(&format!("; {count} {what}"));
            }
        }
        words
    }
}

impl Look<'_> {
    /// An item in its recorded spelling, of which the inbox knows the key.
    pub(super) fn name_of(&self, key: &str) -> String {
        let known = self.sessions.lines.iter();
        let mut known = known.map(|line| &line.item);
        known
            .find(|item| item.key().as_str() == key)
            .map_or_else(|| key.to_owned(), ToString::to_string)
    }
}

/// Lines by their first word; of each kind ten at most.
#[derive(Default)]
struct Lines(Vec<(String, String)>);

impl Lines {
    const EACH_MAX: usize = 10;

    fn one(&mut self, name: &str, text: String) {
        self.0.push((name.to_owned(), text));
    }

    fn some<T>(&mut self, name: &str, all: Vec<T>, text: impl Fn(T) -> String) {
        let more = all.len().saturating_sub(Self::EACH_MAX);
        for thing in all.into_iter().take(Self::EACH_MAX) {
            self.one(name, text(thing));
        }
        if more > 0 {
            self.one(name, format!("… and {more} more"));
        }
    }
}
