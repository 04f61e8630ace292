//! `sessions restart` (SE-55 to SE-62): running sessions get the environment that the env file declares now.
//!
//! It works in this process, daemon or not: it repairs the case in which the daemon's own credentials have
//! just changed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use the_loop_core::environment::{Declared, RowOutcome};
use the_loop_core::event::{LogEvent, RestartSkipped, Source};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::record::SessionRecord;

use super::control::HolderNote;
use crate::engine::Engine;
use crate::engine::restart::{RestartTarget, RestartWish, Restarted};
use crate::ops::deliver::{self, Outcome};
use crate::ops::desk::{Desk, lock_error};
use crate::ops::error::OpError;
use crate::settings::{EnvFault, declared_environment};
use crate::store::files::RecordFault;
use crate::store::inbox::{Inbox, Seq};
use crate::store::lock::{Holder, Patience};

/// Between two looks at an agent whose turn is waited out.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Which sessions.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// Every live one, those of pull requests too.
    All,
    /// These, in this order.
    These(&'a [WorkItemRef]),
}

/// How they are to be restarted.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Stop before the first effect.
    pub dry_run: bool,
    /// Wait so long for a turn to end.
    pub when_idle: Option<Duration>,
    /// Although somebody's words are in the input box.
    pub force: bool,
    /// Who asked: the operating-system user.
    pub actor: &'a str,
    /// Told who holds an item that is waited for.
    pub note: &'a dyn HolderNote,
    /// Asked between two sessions; true leaves the rest alone (SE-15).
    pub interrupted: &'a AtomicBool,
}

/// What is to be done: everything that can refuse has been asked.
#[derive(Debug)]
pub struct Plan {
    declared: Declared,
    env_file: String,
    targets: Vec<RestartTarget>,
    /// Records that cannot be read.
    pub problems: Vec<RecordFault>,
}

/// The document of SE-61.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartReport {
    /// Nothing was done.
    pub dry_run: bool,
    /// No row failed and none is stale.
    pub ok: bool,
    /// The declared names.
    pub names: Vec<String>,
    /// Their values' fingerprints.
    pub fingerprints: BTreeMap<String, String>,
    /// Numbers of the lines of the env file that were skipped.
    pub malformed_lines: Vec<usize>,
    /// A row for each session.
    pub sessions: Vec<RestartRow>,
    /// Refs that an interrupt left alone.
    #[serde(skip)]
    pub not_started: Vec<WorkItemRef>,
}

/// A session's row.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartRow {
    /// Its ref.
    #[serde(rename = "ref")]
    pub item: WorkItemRef,
    /// Its tmux session.
    pub tmux_target: Option<String>,
    /// What became of it.
    pub outcome: &'static str,
    /// In words.
    pub detail: String,
    /// Names of variables of which it holds another value.
    pub stale: Vec<String>,
}

/// An agent that was told to go on, and whether it has heard.
#[derive(Clone, Debug)]
pub struct Told {
    /// Which.
    pub item: WorkItemRef,
    /// What became of the delivery.
    pub outcome: Outcome,
}

impl Plan {
    /// Reads the env file and the records; refuses as SE-55 says.
    pub fn new(desk: &Desk, which: Which<'_>) -> Result<Self, OpError> {
        let declared = declared(desk)?;
        let env_file = desk.settings().env.file.clone();
        let listing = desk.registry().list();
        let listing =
            listing.map_err(|e| OpError::failed("cannot list the session records", &e))?;
        let records = listing.records.iter().map(|found| &found.record);
        let targets = match which {
            Which::All => all(records),
            Which::These(items) => {
                let records: Vec<&SessionRecord> = records.collect();
                items.iter().map(|item| named(&records, item)).collect()
            }
        };
        Ok(Self {
            declared,
            env_file,
            targets,
            problems: listing.problems,
        })
    }

    /// `4 sessions, 2 declared variables: API_BASE, GITHUB_TOKEN`.
    pub fn header(&self) -> String {
        let count =
            |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let names = self.declared.names();
        format!(
            "{}, {}: {}",
            count(self.targets.len(), "session", "sessions"),
            count(names.len(), "declared variable", "declared variables"),
            names.join(", ")
        )
    }

    /// What to say of lines of the env file that were skipped: numbers, never text (R5).
    pub fn malformed(&self) -> Option<String> {
        let lines = self.declared.bad_lines();
        let numbers: Vec<String> = lines.iter().map(usize::to_string).collect();
        let word = if lines.len() == 1 { "line" } else { "lines" };
        let words = || format!("{}: {word} {} skipped", self.env_file, numbers.join(", "));
        (!lines.is_empty()).then(words)
    }
}

/// What the env file declares, or the refusal (R1.7).
fn declared(desk: &Desk) -> Result<Declared, OpError> {
    let file = &desk.settings().env.file;
    let declared = declared_environment(&desk.world, desk.settings()).map_err(|fault| {
        let why = match &fault {
            EnvFault::Unreadable { why, .. } => why.clone(),
            EnvFault::Refused { why, .. } => why.to_string(),
        };
        OpError::usage(format!("env.file: cannot read {file}: {why}"))
    })?;
    let Some(declared) = declared else {
        let made = OpError::usage("env.file is not set");
        return Err(made.hint("the-loop config set env.file PATH"));
    };
    if declared.is_empty() {
        let made = OpError::usage(format!("env.file: {file} declares no variables"));
        return Err(made.hint("a line of it is NAME=VALUE; see the page on configuration"));
    }
    Ok(declared)
}

fn all<'a>(records: impl Iterator<Item = &'a SessionRecord>) -> Vec<RestartTarget> {
    let mut targets = Vec::new();
    for record in records {
        let item = &record.item;
        if record.status.is_live() {
            targets.push(RestartTarget {
                item: item.clone(),
                endpoint: None,
            });
        }
        let live = record.endpoints().filter(|pr| pr.status.is_live());
        targets.extend(live.map(|pr| RestartTarget {
            item: item.clone(),
            endpoint: Some(pr.item.clone()),
        }));
    }
    targets.sort_by_key(|target| {
        let item = target.session();
        (item.provider().to_owned(), item.repo().key(), item.number())
    });
    targets
}

/// The session of a ref: an item's own, else that of a pull request in an item's record. Output shows the
/// recorded spelling (SE-8).
fn named(records: &[&SessionRecord], item: &WorkItemRef) -> RestartTarget {
    let key = item.key();
    let own = records.iter().find(|record| record.item.key() == key);
    let of_pull_request = || {
        records.iter().find_map(|record| {
            let endpoint = record.endpoint(&key)?;
            Some(RestartTarget {
                item: record.item.clone(),
                endpoint: Some(endpoint.item.clone()),
            })
        })
    };
    match own {
        Some(record) => RestartTarget {
            item: record.item.clone(),
            endpoint: None,
        },
        None => of_pull_request().unwrap_or(RestartTarget {
            item: item.clone(),
            endpoint: None,
        }),
    }
}

/// Does what is planned, one session after the other; a failure never stops the rest. Each row is shown as
/// soon as it is known; the agents that were told to go on are waited for at the end, and no row hangs on
/// what becomes of that.
pub fn restart(
    desk: &Desk,
    plan: &Plan,
    how: &How<'_>,
    show: &mut dyn FnMut(&RestartRow),
) -> Result<(RestartReport, Vec<Told>), OpError> {
    let mut report = RestartReport {
        dry_run: how.dry_run,
        ok: true,
        names: plan.declared.names(),
        fingerprints: plan.declared.fingerprints(),
        malformed_lines: plan.declared.bad_lines().to_vec(),
        sessions: Vec::new(),
        not_started: Vec::new(),
    };
    // Without a session there is nothing to open, and a dry run makes no files.
    if plan.targets.is_empty() {
        return Ok((report, Vec::new()));
    }
    let inbox = desk.inbox()?;
    let engine = deliver::engine(desk, &inbox)?;
    let wish = RestartWish {
        declared: &plan.declared,
        force: how.force,
        when_idle: how.when_idle,
        actor: how.actor,
    };
    let mut told = Vec::new();
    for target in &plan.targets {
        if how.interrupted.load(Ordering::SeqCst) {
            report.not_started.push(target.session().clone());
            continue;
        }
        let done = if how.dry_run {
            let at_once = RestartWish {
                when_idle: None,
                ..wish
            };
            engine.would_restart(target, &at_once)
        } else {
            one(desk, &engine, target, &wish, how)
        };
        told.extend(done.told.map(|seq| (target.session().clone(), seq)));
        if !how.dry_run {
            announce(desk, target, &done);
        }
        report.ok &= !done.outcome.fails();
        let row = RestartRow {
            item: target.session().clone(),
            tmux_target: done.tmux_target,
            outcome: done.outcome.as_str(),
            detail: done.detail,
            stale: done.stale,
        };
        show(&row);
        report.sessions.push(row);
    }
    crate::ops::link::poke(&desk.layout);
    let told = wait_for(desk, &inbox, told, how.interrupted);
    Ok((report, told))
}

/// One session under its lock. A turn is waited out without it, so that deliveries go on meanwhile.
fn one(
    desk: &Desk,
    engine: &Engine,
    target: &RestartTarget,
    wish: &RestartWish<'_>,
    how: &How<'_>,
) -> Restarted {
    let clock = &desk.world.clock;
    let deadline = clock.deadline(how.when_idle.unwrap_or_default());
    loop {
        let waits = how.when_idle.is_some()
            && engine.would_restart(target, wish).reason == Some(RestartSkipped::Working);
        if waits && !clock.is_over(&deadline) && !how.interrupted.load(Ordering::SeqCst) {
            clock.wait(LOOK_EVERY);
            continue;
        }
        let item = &target.item;
        let note = |holder: &Holder| how.note.busy(item, holder);
        let patience = Patience::of(desk.patience).telling(&note);
        let held = match desk.locks().item(item, "restart", patience) {
            Ok(held) => held,
            Err(e) => {
                let error = lock_error(item, &e);
                let prefix = format!("{item}: ");
                let words = error
                    .message
                    .strip_prefix(&prefix)
                    .unwrap_or(&error.message);
                return Restarted {
                    tmux_target: engine.would_restart(target, wish).tmux_target,
                    ..Restarted::failed(format!("{words}; left running"))
                };
            }
        };
        let done = engine.restart(&held, target, wish);
        // Something came in between the look and the lock.
        let over = clock.is_over(&deadline) || how.interrupted.load(Ordering::SeqCst);
        if done.reason != Some(RestartSkipped::Working) || over {
            return done;
        }
    }
}

fn announce(desk: &Desk, target: &RestartTarget, done: &Restarted) {
    let RowOutcome::Done(outcome) = done.outcome else {
        return;
    };
    let failed = outcome == the_loop_core::event::RestartOutcome::Failed;
    desk.emit(
        Source::Sessions,
        LogEvent::SessionRestarted {
            work_item: target.item.clone(),
            endpoint: target.endpoint.clone(),
            tmux_target: done.tmux_target.clone(),
            outcome,
            reason: done.reason,
            stale: (!done.stale.is_empty()).then(|| done.stale.clone()),
            error: failed.then(|| done.detail.clone()),
        },
    );
}

/// Those who were told to go on: a daemon delivers, else this process does (DI-6).
fn wait_for(
    desk: &Desk,
    inbox: &Inbox,
    told: Vec<(WorkItemRef, Seq)>,
    stop: &AtomicBool,
) -> Vec<Told> {
    let wait = |(item, seq)| {
        // What cannot be waited for stays in the inbox, and the row is told all the same.
        let outcome = deliver::wait(desk, inbox, &item, seq, stop);
        let outcome = outcome.unwrap_or(Outcome::NotWaited);
        Told { item, outcome }
    };
    told.into_iter().map(wait).collect()
}
