//! The poller's part of `status`, and the calls that hosts still take (SE-24, IN-51, IN-52).

use std::time::Duration;

use serde_json::{Value, json};
use the_loop_core::time::{Timestamp, age};

use super::Look;
use crate::ops::rows::{RowOutcome, ServiceRow};
use crate::poll::why_disabled;
use crate::store::lock::ServiceLock;
use crate::store::poll_status::PollStatus;

/// What a cycle may take beyond three intervals before the poller counts as stalled.
const STALLED_AFTER: Duration = Duration::from_mins(5);

impl Look<'_> {
    /// What the daemon says of its poller; without it the lock file tells.
    pub(super) fn poller_row(&self) -> ServiceRow {
        let told = self.answer.as_ref().and_then(|a| a.get("poller"));
        let disabled = match told.and_then(|told| told.get("enabled")?.as_bool()) {
            Some(true) => None,
            Some(false) => told.and_then(|told| Some(told.get("reason")?.as_str()?.to_owned())),
            None => why_disabled(self.settings()),
        };
        let holder = {
            let path = self.desk.layout.poll_pid();
            ServiceLock::holder(self.desk.world.disk.as_ref(), &path)
        };
        let outcome = told.and_then(|told| {
            let outcome = told.get("outcome")?.clone();
            serde_json::from_value(outcome).ok()
        });
        let outcome = match (&disabled, outcome) {
            (Some(_), _) => RowOutcome::Disabled,
            (None, Some(outcome)) => outcome,
            (None, None) if holder.locked => RowOutcome::Running,
            (None, None) => RowOutcome::NotRunning,
        };
        let status = PollStatus::read(&self.desk.world, &self.desk.layout);
        let is_running = outcome == RowOutcome::Running;
        let is_stalled = is_running
            && status
                .as_ref()
                .is_some_and(|status| self.is_stalled(status));
        let reason = told.and_then(|told| told.get("reason")?.as_str().map(str::to_owned));
        let detail = match (disabled.clone(), is_running) {
            (Some(why), _) => why,
            (None, true) => {
                let pid = holder
                    .pid
                    .map_or_else(String::new, |pid| format!("pid {pid}, "));
                format!("{pid}{}", self.cycle_words(status.as_ref()))
            }
            (None, false) => reason.unwrap_or_default(),
        };
        ServiceRow {
            name: "poller".to_owned(),
            enabled: disabled.is_none(),
            outcome: if is_stalled {
                RowOutcome::Stalled
            } else {
                outcome
            },
            running: is_running,
            pid: is_running.then_some(holder.pid).flatten(),
            detail,
        }
    }

    fn is_stalled(&self, status: &PollStatus) -> bool {
        let waits = status.waiting_for_quota_until;
        let last = status.last_cycle_at.unwrap_or(status.started_at);
        let patience = Duration::from_secs(3 * u64::from(status.interval_seconds)) + STALLED_AFTER;
        // It goes on some time after a host takes calls again.
        let from = last.max(waits.unwrap_or(last));
        self.now.since(from) > patience
    }

    fn cycle_words(&self, status: Option<&PollStatus>) -> String {
        let waits = status.and_then(|status| status.waiting_for_quota_until);
        if let Some(until) = waits.filter(|until| *until > self.now) {
            return format!("waits {} for calls", age(until.since(self.now)));
        }
        let last = status.and_then(|status| Some((status.last_cycle_at?, status.last_cycle?)));
        let Some((at, last)) = last else {
            return "no cycle yet".to_owned();
        };
        format!(
            "last cycle {} ago: {}, {}, {}",
            age(self.now.since(at)),
            counted(last.items_seen, "item"),
            counted(last.comments_forwarded, "comment"),
            counted(last.errors, "failure"),
        )
    }

    /// The poller in the document of SE-25.
    pub(super) fn poller_json(&self, row: &ServiceRow) -> Value {
        let told = self.answer.as_ref().and_then(|a| a.get("poller"));
        let status = PollStatus::read(&self.desk.world, &self.desk.layout);
        let heartbeat = status.map(|status| {
            let last = status.last_cycle_at;
            let mut made = json!(status);
            made["lastCycleAgeSeconds"] = json!(last.map(|at| self.now.since(at).as_secs()));
            made
        });
        json!({
            "name": row.name,
            "enabled": row.enabled,
            "running": row.running,
            "outcome": row.outcome,
            "pid": row.pid,
            "reason": (!row.running).then_some(&row.detail),
            "since": told.and_then(|told| told.get("since")),
            "heartbeat": heartbeat,
        })
    }

    /// The calls that hosts still take, as the daemon knows.
    pub(super) fn quota(&self) -> Value {
        let told = self.answer.as_ref().and_then(|a| a.get("quota"));
        told.cloned().unwrap_or_else(|| json!([]))
    }

    /// A line for each host that has told something.
    pub(super) fn quota_lines(&self) -> Vec<(String, String)> {
        let all = self.quota();
        let rows = all.as_array().into_iter().flatten();
        rows.filter_map(|row| {
            let number = |name: &str| row.get(name)?.as_u64();
            let time = |name: &str| row.get(name)?.as_str()?.parse::<Timestamp>().ok();
            let host = row.get("host")?.as_str()?.to_owned();
            if let Some(until) = time("secondaryUntil").filter(|until| *until > self.now) {
                let wait = age(until.since(self.now));
                return Some((host, format!("asks for a pause, {wait} left")));
            }
            let (remaining, limit) = (number("remaining")?, number("limit")?);
            let resets = time("resetAt").filter(|at| *at > self.now);
            let resets = resets.map_or_else(String::new, |at| {
                format!(", resets in {}", age(at.since(self.now)))
            });
            Some((
                host,
                format!("{remaining} of {limit} requests left{resets}"),
            ))
        })
        .collect()
    }
}

fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}
