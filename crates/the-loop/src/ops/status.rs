//! `status` (SE-24, SE-25): is it working? Reads locks, inbox, records and the daemon's socket; works
//! with the daemon down or tmux hung.

mod document;
mod environment;
mod poller;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use the_loop_core::config::Settings;
use the_loop_core::confirm::{AgentState, WaitingKind};
use the_loop_core::dispatch::HoldReason;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::{Timestamp, age};
use the_loop_core::tokens::Usage;

use super::desk::Desk;
use super::link;
use super::rows::{RowOutcome, ServiceRow};
use super::sessions::list::{Line, SessionQuery, Sessions, list as list_sessions};
use crate::store::files::RecordFault;
use crate::store::inbox::InboxCounts;
use crate::store::lock::{ServiceHolder, ServiceLock};
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
    let runs = rows
        .iter()
        .all(|row| !row.enabled || row.outcome == RowOutcome::Running);
    let ok = runs && looked.inbox_works();
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
    /// Who holds the daemon's lock.
    daemon: ServiceHolder,
    /// What the daemon says of itself.
    answer: Option<Value>,
    broken: Option<&'a BrokenConfig>,
    counts: Result<InboxCounts, String>,
    /// Since when the daemon's commits are refused (ST-55).
    unavailable_since: Option<Timestamp>,
    environment: environment::SessionEnvironment,
    sessions: Sessions,
    /// Tokens of all items today, and of each item: over all days, and today.
    tokens: (Usage, Vec<(String, Usage, Usage)>),
    parked: Vec<crate::store::inbox::Parked>,
    problems: Vec<Problem>,
    saved: (u64, u64),
    free_memory_mb: Option<u64>,
    free_disk_mb: Option<u64>,
}

/// A file or part that is not as it should be.
struct Problem {
    file: String,
    words: String,
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
        let mut tokens = (Usage::default(), Vec::new());
        let today = world.clock.now().day();
        match desk.inbox_to_read() {
            Ok(Some(inbox)) => {
                counts = inbox.counts().map_err(|e| e.to_string());
                parked = inbox.all_parked().unwrap_or_default();
                tokens = (
                    inbox.usage_on(&today).unwrap_or_default(),
                    inbox.usage_by_item(&today).unwrap_or_default(),
                );
            }
            Ok(None) => {}
            Err(e) => counts = Err(e.to_string()),
        }
        if let Err(why) = &counts {
            problems.push(Problem {
                file: "local/inbox.db".to_owned(),
                words: why.clone(),
                line: None,
            });
        }
        let damaged = answer
            .as_ref()
            .and_then(|a| a.get("inboxDamaged")?.as_str());
        if let Some(why) = damaged {
            problems.retain(|problem| problem.file != "local/inbox.db");
            problems.push(Problem {
                file: "local/inbox.db".to_owned(),
                words: why.to_owned(),
                line: None,
            });
            counts = Err(why.to_owned());
        }
        let unavailable_since = answer
            .as_ref()
            .and_then(|a| a.get("inboxUnavailableSince")?.as_str()?.parse().ok());
        if let Some(since) = unavailable_since {
            let ago = age(world.clock.now().since(since));
            problems.push(Problem {
                file: "local/inbox.db".to_owned(),
                words: format!(
                    "refuses commits since {ago}: nothing is accepted until the disk takes writes again"
                ),
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
                words: e.to_string(),
                line: None,
            });
            Sessions::default()
        });
        for fault in &sessions.problems {
            problems.push(Problem {
                file: below_root(desk, fault.file().as_str()),
                words: fault.to_string(),
                line: line_of(fault),
            });
        }
        let saved = SavedStore::new(world, desk.layout.saved_dir()).list();
        let saved = saved.unwrap_or_default();
        Self {
            now: world.clock.now(),
            daemon: holder,
            answer,
            broken,
            counts,
            unavailable_since,
            tokens,
            parked,
            problems,
            saved: (
                saved.len() as u64,
                saved.iter().map(crate::store::saved::Saved::bytes).sum(),
            ),
            free_memory_mb: crate::engine::free_memory(world.disk.as_ref())
                .map(|bytes| bytes >> 20),
            free_disk_mb: free_disk_mb(desk),
            environment: environment::look(desk, &sessions),
            sessions,
            desk,
        }
    }

    fn settings(&self) -> &Settings {
        self.desk.settings()
    }

    /// Can deliveries be accepted? Without that nothing works, whatever runs (ST-55, ST-61).
    fn inbox_works(&self) -> bool {
        self.counts.is_ok() && self.unavailable_since.is_none()
    }

    /// New sessions that wait for room, and for which kind of it.
    fn waiting_for_room(&self) -> impl Iterator<Item = (&Line, HoldReason, Timestamp)> {
        self.sessions
            .lines
            .iter()
            .filter_map(|line| line.waits.map(|(reason, since)| (line, reason, since)))
    }

    fn stalled_sessions(&self) -> Vec<(&Line, Timestamp)> {
        self.live()
            .into_iter()
            .filter_map(|line| Some((line, line.stalled_since?)))
            .collect()
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
        vec![self.daemon_row(), self.receiver_row(), self.poller_row()]
    }

    fn since(&self) -> Option<Timestamp> {
        self.answer.as_ref()?.get("since")?.as_str()?.parse().ok()
    }

    fn daemon_row(&self) -> ServiceRow {
        let pid = self.daemon.pid.filter(|_| self.daemon.locked);
        let pid_words = pid.map_or_else(|| "pid unknown".to_owned(), |pid| format!("pid {pid}"));
        let (outcome, detail) = match (self.daemon.locked, &self.answer) {
            (false, _) => (RowOutcome::NotRunning, "the-loop start".to_owned()),
            (true, Some(_)) => {
                let up = self.since().map(|since| age(self.now.since(since)));
                let up = up.map_or_else(String::new, |up| format!(", up {up}"));
                (RowOutcome::Running, format!("{pid_words}{up}"))
            }
            // Where no socket can be, the lock alone tells.
            (true, None) if self.has_no_socket() => (RowOutcome::Running, pid_words),
            (true, None) => (RowOutcome::NotAnswering, pid_words),
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

    fn waiting_sessions(&self) -> Vec<(&Line, WaitingKind)> {
        let kind = |line: &Line| match line.view.state {
            AgentState::Waiting(kind) => Some(kind),
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
