//! `status` (SE-24, SE-25): is it working? Reads locks, inbox, records and the daemon's socket; works
//! with the daemon down or tmux hung.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use the_loop_core::config::Settings;
use the_loop_core::confirm::AgentState;
use the_loop_core::event::LimitReason;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::{Timestamp, age};

use super::desk::Desk;
use super::link;
use super::rows::{RowOutcome, ServiceRow};
use super::sessions::control::limit_words;
use super::sessions::list::{
    Line, SessionQuery, Sessions, list as list_sessions, waiting_for_capacity,
};
use crate::disk::Disk;
use crate::store::files::RecordFault;
use crate::store::inbox::{InboxCounts, Scope};
use crate::store::lock::ServiceLock;
use crate::store::saved::SavedStore;

/// How long tmux may take to be counted in (SE-24: five seconds in all).
const TMUX_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of a mebibyte.
const MIB: u64 = 1 << 20;

/// Everything that `status` tells.
#[derive(Clone, Debug)]
pub struct Status {
    /// The daemon runs, and every enabled service with it.
    pub ok: bool,
    /// The document of SE-25.
    pub json: Value,
    /// The rows of the services.
    pub rows: Vec<ServiceRow>,
    /// The lines below them, by their first word.
    pub lines: Vec<(String, String)>,
}

/// What is wrong with the configuration file, when the settings at the desk are only what could be read
/// of it.
#[derive(Clone, Debug)]
pub struct BrokenConfig {
    /// The first problem.
    pub problem: String,
}

/// Looks at everything.
pub fn status(desk: &Desk, broken: Option<&BrokenConfig>) -> Status {
    let looked = Look::at(desk, broken);
    let rows = looked.rows();
    let ok = rows
        .iter()
        .all(|row| !row.enabled || row.outcome == RowOutcome::Running);
    Status {
        ok,
        json: looked.json(ok, &rows),
        lines: looked.lines(),
        rows,
    }
}

/// What was seen.
struct Look<'a> {
    desk: &'a Desk,
    now: Timestamp,
    /// The daemon's pid, when it holds its lock.
    daemon: Option<Option<u32>>,
    /// What the daemon says of itself.
    answer: Option<Value>,
    broken: Option<&'a BrokenConfig>,
    counts: Result<InboxCounts, String>,
    sessions: Sessions,
    waiting_capacity: Vec<(WorkItemRef, Timestamp)>,
    parked: Vec<crate::store::inbox::Parked>,
    problems: Vec<Problem>,
    saved: (u64, u64),
    free_memory_mb: Option<u64>,
    free_disk_mb: Option<u64>,
}

/// A file or part that is not as it should be.
struct Problem {
    file: String,
    problem: String,
    line: Option<usize>,
}

impl<'a> Look<'a> {
    fn at(desk: &'a Desk, broken: Option<&'a BrokenConfig>) -> Self {
        let world = &desk.world;
        let mut problems = Vec::new();
        let holder = link::daemon(world, &desk.layout);
        let answer = holder.locked.then(|| link::status(&desk.layout)).flatten();
        let mut counts = Ok(InboxCounts::default());
        let mut parked = Vec::new();
        match desk.inbox_to_read() {
            Ok(Some(inbox)) => {
                counts = inbox.counts().map_err(|e| e.to_string());
                parked = inbox.all_parked().unwrap_or_default();
            }
            Ok(None) => {}
            Err(e) => counts = Err(e.to_string()),
        }
        if let Err(why) = &counts {
            problems.push(Problem {
                file: "local/inbox.db".to_owned(),
                problem: why.clone(),
                line: None,
            });
        }
        let query = SessionQuery {
            probe: true,
            ..SessionQuery::default()
        };
        let quick = desk.with_tmux_within(TMUX_WITHIN);
        let sessions = list_sessions(&quick, &query).unwrap_or_else(|e| {
            problems.push(Problem {
                file: desk.layout.registry_dir().to_string(),
                problem: e.to_string(),
                line: None,
            });
            Sessions::default()
        });
        for fault in &sessions.problems {
            problems.push(Problem {
                file: below_root(desk, fault.file().as_str()),
                problem: fault.to_string(),
                line: line_of(fault),
            });
        }
        let saved = SavedStore::new(world, desk.layout.saved_dir()).list();
        let saved = saved.unwrap_or_default();
        Self {
            now: world.clock.now(),
            daemon: holder.locked.then_some(holder.pid),
            answer,
            broken,
            counts,
            waiting_capacity: waiting_for_capacity(desk).unwrap_or_default(),
            parked,
            problems,
            saved: (
                saved.len() as u64,
                saved.iter().map(crate::store::saved::Saved::bytes).sum(),
            ),
            free_memory_mb: free_memory_mb(world.disk.as_ref()),
            free_disk_mb: free_disk_mb(desk),
            sessions,
            desk,
        }
    }

    fn settings(&self) -> &Settings {
        self.desk.settings()
    }

    fn own_lines(&self) -> impl Iterator<Item = &Line> {
        self.sessions
            .lines
            .iter()
            .filter(|line| line.record.is_some())
    }

    fn of_status(&self, wanted: SessionStatus) -> impl Iterator<Item = &Line> {
        self.own_lines().filter(move |line| {
            let record = line.record.as_ref();
            record.is_some_and(|record| record.status == wanted)
        })
    }

    fn live(&self) -> Vec<&Line> {
        let live = |line: &&Line| line.record.as_ref().is_some_and(|r| r.status.is_live());
        self.own_lines().filter(live).collect()
    }

    fn rows(&self) -> Vec<ServiceRow> {
        vec![self.daemon_row(), self.receiver_row()]
    }

    fn since(&self) -> Option<Timestamp> {
        self.answer.as_ref()?.get("since")?.as_str()?.parse().ok()
    }

    fn daemon_row(&self) -> ServiceRow {
        let pid = self.daemon.flatten();
        let pid_words = pid.map_or_else(|| "pid unknown".to_owned(), |pid| format!("pid {pid}"));
        let (outcome, detail) = match (self.daemon, &self.answer) {
            (None, _) => (RowOutcome::NotRunning, "the-loop start".to_owned()),
            (Some(_), Some(_)) => {
                let up = self.since().map(|since| age(self.now.since(since)));
                let up = up.map_or_else(String::new, |up| format!(", up {up}"));
                (RowOutcome::Running, format!("{pid_words}{up}"))
            }
            // Where no socket can be, the lock alone tells.
            (Some(_), None) if self.has_no_socket() => (RowOutcome::Running, pid_words),
            (Some(_), None) => (RowOutcome::NotAnswering, pid_words),
        };
        ServiceRow {
            name: "service".to_owned(),
            enabled: true,
            running: outcome == RowOutcome::Running,
            outcome,
            pid,
            detail,
        }
    }

    fn has_no_socket(&self) -> bool {
        self.desk.layout.socket().as_str().len() > link::SOCKET_PATH_BYTES_MAX
    }

    /// What the daemon says of its receiver; without it the lock file tells.
    fn receiver_row(&self) -> ServiceRow {
        let name = "gh-webhook".to_owned();
        if let Some(told) = self.answer.as_ref().and_then(|a| a.get("ghWebhook")) {
            let text = |key: &str| told.get(key).and_then(Value::as_str).map(str::to_owned);
            let enabled = told
                .get("enabled")
                .and_then(Value::as_bool)
                .unwrap_or(false);
            let running = told
                .get("running")
                .and_then(Value::as_bool)
                .unwrap_or(false);
            let pid = told.get("pid").and_then(Value::as_u64);
            let pid = pid.and_then(|pid| u32::try_from(pid).ok());
            let outcome = told.get("outcome").cloned().unwrap_or(Value::Null);
            let mut detail = text("reason").unwrap_or_default();
            if running {
                let at = text("lastDeliveryAt").and_then(|at| at.parse().ok());
                let last = at.map_or_else(
                    || "no delivery yet".to_owned(),
                    |at| format!("last delivery {} ago", age(self.now.since(at))),
                );
                let place = format!(
                    "{}{}",
                    text("bind").unwrap_or_default(),
                    text("path").unwrap_or_default()
                );
                let pid = pid.map_or_else(String::new, |pid| format!("pid {pid}, "));
                detail = format!("{pid}{place}, {last}");
            }
            return ServiceRow {
                name,
                enabled,
                outcome: serde_json::from_value(outcome).unwrap_or(RowOutcome::NotRunning),
                running,
                pid,
                detail,
            };
        }
        let webhook = &self.settings().webhooks.gh_webhook;
        let path = self.desk.layout.webhook_pid();
        let holder = ServiceLock::holder(self.desk.world.disk.as_ref(), &path);
        let enabled = webhook.enabled;
        let (outcome, pid, detail) = match (enabled, holder.locked) {
            (false, _) => {
                let why = "webhooks.ghWebhook.enabled is false".to_owned();
                (RowOutcome::Disabled, None, why)
            }
            (true, true) => {
                let pid = holder.pid;
                let words = pid.map_or_else(String::new, |pid| format!("pid {pid}"));
                (RowOutcome::Running, pid, words)
            }
            (true, false) => {
                let fault = crate::settings::webhook_secrets(&self.desk.world, self.settings());
                match fault {
                    Err(fault) if self.settings().routing.enabled => {
                        (RowOutcome::Misconfigured, None, fault.to_string())
                    }
                    Ok(_) | Err(_) => (RowOutcome::NotRunning, None, String::new()),
                }
            }
        };
        ServiceRow {
            name,
            enabled,
            outcome,
            running: outcome == RowOutcome::Running,
            pid,
            detail,
        }
    }

    fn problem_of_config(&self) -> Option<String> {
        let told = self
            .answer
            .as_ref()
            .and_then(|a| a.get("problem")?.as_str());
        match (told, self.broken) {
            (Some(problem), _) => {
                let at = self
                    .answer
                    .as_ref()
                    .and_then(|a| a.get("loadedAt")?.as_str());
                let at = at.and_then(|at| at.parse::<Timestamp>().ok());
                let at = at.map_or_else(String::new, |at| {
                    let ago = age(self.now.since(at));
                    format!("; running on the settings loaded {ago} ago")
                });
                Some(format!("{problem}{at}"))
            }
            (None, Some(broken)) => Some(broken.problem.clone()),
            (None, None) => None,
        }
    }

    fn restart_needed(&self) -> Vec<String> {
        let told = self
            .answer
            .as_ref()
            .and_then(|a| a.get("restartNeeded")?.as_array());
        told.into_iter()
            .flatten()
            .filter_map(|key| key.as_str().map(str::to_owned))
            .collect()
    }

    fn states(&self) -> BTreeMap<&'static str, u64> {
        let mut states = BTreeMap::new();
        for line in self.live() {
            *states.entry(line.view.state.as_str()).or_insert(0) += 1;
        }
        states
    }

    fn json(&self, ok: bool, rows: &[ServiceRow]) -> Value {
        let settings = self.settings();
        let limits = &settings.routing.limits;
        let counts = self.counts.clone().unwrap_or_default();
        let states = self.states();
        let state = |name: &str| states.get(name).copied().unwrap_or(0);
        let path = self.desk.loaded.path.as_ref();
        let version = settings.version.as_deref();
        json!({
            "ok": ok,
            "version": env!("CARGO_PKG_VERSION"),
            "stateRoot": self.desk.layout.root(),
            "config": {
                "path": path,
                "version": version.unwrap_or(the_loop_core::config::version::CURRENT),
                "restartNeeded": self.restart_needed(),
                "problem": self.problem_of_config(),
            },
            "services": [self.daemon_json(&rows[0]), self.receiver_json(&rows[1])],
            "inbox": {
                "waiting": counts.waiting,
                "oldestAgeSeconds": counts.oldest_at.map(|at| self.now.since(at).as_secs()),
                "inWork": counts.in_work,
                "held": counts.held,
                "failed": counts.failed,
                "uncertain": counts.uncertain,
                "abandoned": counts.abandoned,
            },
            "limits": {
                "liveSessions": { "now": self.live().len(), "max": limits.max_live_sessions },
                "freeMemoryMb": { "now": self.free_memory_mb, "min": limits.min_free_memory_mb },
                "freeDiskMb": { "now": self.free_disk_mb, "min": limits.min_free_disk_mb },
                "waitingCapacity": self.waiting_capacity.iter()
                    .map(|(item, since)| json!({ "ref": item, "since": since }))
                    .collect::<Vec<Value>>(),
                "parked": self.parked.iter().map(|parked| json!({
                    "ref": scope_item(&parked.scope),
                    "reason": parked.reason,
                    "since": parked.since,
                })).collect::<Vec<Value>>(),
            },
            "sessions": {
                "live": self.live().len(),
                "starting": state("starting"), "ready": state("ready"), "working": state("working"),
                "waiting": state("waiting"), "idle": state("idle"), "exited": state("exited"),
                "unknown": state("unknown"),
                "paused": self.of_status(SessionStatus::Paused).count(),
            },
            "waiting": self.waiting_sessions().iter().map(|(line, kind)| json!({
                "ref": line.item,
                "kind": kind,
                "since": line.view.since,
                "tmuxTarget": line.record.as_ref().map(|r| r.tmux_target.clone()),
                "attach": line.attach,
            })).collect::<Vec<Value>>(),
            "saved": { "count": self.saved.0, "bytes": self.saved.1 },
            "problems": self.problems.iter().map(|p| json!({
                "file": p.file, "problem": p.problem, "line": p.line,
            })).collect::<Vec<Value>>(),
        })
    }

    fn daemon_json(&self, row: &ServiceRow) -> Value {
        json!({
            "name": row.name,
            "enabled": row.enabled,
            "running": row.running,
            "outcome": row.outcome,
            "pid": row.pid,
            "reason": (!row.running).then_some(&row.detail),
            "since": self.since(),
        })
    }

    fn receiver_json(&self, row: &ServiceRow) -> Value {
        match self.answer.as_ref().and_then(|a| a.get("ghWebhook")) {
            Some(told) => told.clone(),
            None => json!({
                "name": row.name,
                "enabled": row.enabled,
                "running": row.running,
                "outcome": row.outcome,
                "pid": row.pid,
                "reason": (!row.running).then_some(&row.detail),
                "since": null,
                "bind": null,
                "path": self.settings().webhooks.gh_webhook.path,
                "lastDeliveryAt": null,
            }),
        }
    }

    fn waiting_sessions(&self) -> Vec<(&Line, &'static str)> {
        let kind = |line: &Line| match line.view.state {
            AgentState::Waiting(kind) => Some(kind.as_str()),
            AgentState::Starting
            | AgentState::Ready
            | AgentState::Working
            | AgentState::Idle
            | AgentState::Exited
            | AgentState::Unknown => None,
        };
        self.live()
            .into_iter()
            .filter_map(|line| Some((line, kind(line)?)))
            .collect()
    }

    /// The lines below the rows; those with nothing to tell are left out.
    fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Lines::default();
        lines.one("inbox", self.inbox_words());
        lines.one("limits", self.limits_words());
        lines.one("work", self.work_words());
        lines.some("waiting", self.waiting_sessions(), |(line, kind)| {
            let since = line.view.since.map(|at| age(self.now.since(at)));
            let since = since.map_or_else(String::new, |since| format!(", {since}"));
            let attach = line.attach.as_deref().unwrap_or_default();
            format!("{}  {kind}{since}  {attach}", line.item)
        });
        lines.some("parked", self.parked.iter().collect(), |parked| {
            let why = LimitReason::parse(&parked.reason).map_or_else(
                || parked.reason.clone(),
                |reason| limit_words(self.desk, reason),
            );
            match &parked.scope {
                Scope::Item(item) => format!("{item}  {why}  the-loop sessions resume {item}"),
                Scope::Machine => format!("the whole machine  {why}"),
            }
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
        let restart = self.restart_needed();
        if !restart.is_empty() {
            lines.one(
                "restart",
                format!("{}: the-loop restart", restart.join(", ")),
            );
        }
        let config = self.problem_of_config().into_iter();
        let files = self.problems.iter().map(|problem| {
            if problem.problem.contains(&problem.file) {
                problem.problem.clone()
            } else {
                format!("{}: {}", problem.file, problem.problem)
            }
        });
        lines.some("problem", config.chain(files).collect(), |problem| problem);
        lines.0
    }

    fn inbox_words(&self) -> String {
        let Ok(counts) = &self.counts else {
            return "cannot be read".to_owned();
        };
        let oldest = counts.oldest_at.map(|at| age(self.now.since(at)));
        let oldest = oldest.map_or_else(String::new, |age| format!(" (oldest {age})"));
        let mut words = format!(
            "{} waiting{oldest}, {} in work, {} held, {} uncertain",
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
        format!(
            "{sessions}; memory {} GiB free ({} needed); disk {} GiB free ({} needed)",
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
        for (count, what) in [
            (paused, "paused"),
            (self.waiting_capacity.len(), "waiting for capacity"),
        ] {
            if count > 0 {
                words.push_str(&format!("; {count} {what}"));
            }
        }
        words
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

fn scope_item(scope: &Scope) -> Option<&WorkItemRef> {
    match scope {
        Scope::Item(item) => Some(item),
        Scope::Machine => None,
    }
}

fn line_of(fault: &RecordFault) -> Option<usize> {
    match fault {
        RecordFault::Corrupt { place, .. } => place.map(|place| place.line),
        RecordFault::Newer { .. }
        | RecordFault::Foreign { .. }
        | RecordFault::Unreadable { .. } => None,
    }
}

fn below_root(desk: &Desk, file: &str) -> String {
    let root = desk.layout.root();
    camino::Utf8Path::new(file)
        .strip_prefix(&root)
        .map_or_else(|_| file.to_owned(), ToString::to_string)
}

fn free_disk_mb(desk: &Desk) -> Option<u64> {
    let root = desk.layout.root();
    let disk = desk.world.disk.as_ref();
    let there = root
        .ancestors()
        .find(|dir| matches!(disk.meta(dir), Ok(Some(_))))?;
    Some(disk.free_bytes(there).ok()? / MIB)
}

/// `MemAvailable` of Linux; unknown elsewhere.
fn free_memory_mb(disk: &dyn Disk) -> Option<u64> {
    let bytes = disk.read("/proc/meminfo".into(), 64 << 10).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024)
}
