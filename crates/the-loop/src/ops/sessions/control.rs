//! `sessions pause|resume|stop|close` (SE-31 to SE-33).

use the_loop_core::control::Command;
use the_loop_core::event::{
    ControlEffect, ControlRejectReason, ControlVia, LimitReason, LogEvent, Source,
};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;

use super::echo::echo;
use super::report::{EndpointReport, ItemReport, MachineReport, Report, WorkspaceReport};
use crate::engine::verbs::{VerbDeed, VerbOutcome};
use crate::engine::{EndLine, Engine, limit_words};
use crate::ops::deliver;
use crate::ops::desk::{Desk, inbox_error, lock_error};
use crate::ops::error::OpError;
use crate::store::inbox::{Inbox, Parked, Scope};
use crate::store::lock::{Holder, ItemLock, Patience};

/// A verb on sessions that live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlVerb {
    /// Deliver nothing.
    Pause,
    /// Deliver again.
    Resume,
    /// End it, and remember that it is not to run.
    Stop {
        /// Save no work.
        discard: bool,
    },
    /// End it, and remember nothing.
    Close {
        /// Keep the tmux session; `None` as configured.
        keep_tmux: Option<bool>,
        /// Save no work.
        discard: bool,
    },
}

impl ControlVerb {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Stop { .. } => "stop",
            Self::Close { .. } => "close",
        }
    }

    /// The command it records; a close records none.
    fn command(self) -> Option<Command> {
        match self {
            Self::Pause => Some(Command::Pause),
            Self::Resume => Some(Command::Resume),
            Self::Stop { .. } => Some(Command::Stop),
            Self::Close { .. } => None,
        }
    }

    /// It makes a holder that waits for something slow give way (SE-9).
    fn ends(self) -> bool {
        match self {
            Self::Pause | Self::Resume => false,
            Self::Stop { .. } | Self::Close { .. } => true,
        }
    }
}

/// How a verb is to be done.
#[derive(Clone, Copy, Debug)]
pub struct How<'a> {
    /// Who asked: the operating-system user.
    pub actor: &'a str,
    /// Say so on the ticket; `None`: where this version can.
    pub comment: Option<bool>,
    /// Told who holds an item that is waited for.
    pub note: &'a dyn HolderNote,
    /// It was asked for everything (`--all`): a resume releases the machine from its limit, too.
    pub all: bool,
    /// Asked between two items; true leaves the rest alone (SE-15).
    pub interrupted: &'a std::sync::atomic::AtomicBool,
}

/// Somebody who is told that an item is busy.
pub trait HolderNote: std::fmt::Debug {
    /// `item` is held by `holder`.
    fn busy(&self, item: &WorkItemRef, holder: &Holder);
}

/// The items `--all` means: those on which the verb has an effect.
pub fn all_items(desk: &Desk, verb: ControlVerb) -> Result<Vec<WorkItemRef>, OpError> {
    let listing = desk.registry().list();
    let listing = listing.map_err(|e| OpError::failed("cannot list the session records", &e))?;
    let wanted = |status: SessionStatus| match verb {
        ControlVerb::Pause => matches!(status, SessionStatus::Starting | SessionStatus::Active),
        ControlVerb::Resume => status == SessionStatus::Paused,
        ControlVerb::Stop { .. } | ControlVerb::Close { .. } => status.is_live(),
    };
    let mut items: Vec<WorkItemRef> = listing
        .records
        .into_iter()
        .map(|found| found.record)
        .filter(|record| wanted(record.status))
        .map(|record| record.item)
        .collect();
    if verb == ControlVerb::Resume
        && let Some(inbox) = desk.inbox_to_read()?
    {
        for parked in inbox.all_parked().map_err(|e| inbox_error(&e))? {
            if let Scope::Item(item) = parked.scope
                && !items.iter().any(|known| known.key() == item.key())
            {
                items.push(item);
            }
        }
    }
    Ok(items)
}

/// The limit that stops something, in words.
pub fn parked_words(parked: &Parked) -> String {
    let reason = LimitReason::parse(&parked.reason);
    let limit = parked.base.unwrap_or(0);
    reason.map_or_else(
        || parked.reason.clone(),
        |reason| limit_words(reason, limit),
    )
}

/// Does a limit stop the whole machine?
pub fn machine_is_parked(desk: &Desk) -> Result<bool, OpError> {
    let Some(inbox) = desk.inbox_to_read()? else {
        return Ok(false);
    };
    let parked = inbox.parked(&Scope::Machine).map_err(|e| inbox_error(&e))?;
    Ok(parked.is_some_and(|parked| parked.is_in_force()))
}

/// Does the verb on each item, one lock at a time; a failure never stops the rest.
pub fn control(
    desk: &Desk,
    verb: ControlVerb,
    items: &[WorkItemRef],
    how: &How<'_>,
) -> Result<Report, OpError> {
    let inbox = desk.inbox()?;
    let engine = deliver::engine(desk, &inbox)?;
    let machine = (verb == ControlVerb::Resume && how.all)
        .then(|| engine.release_machine(how.actor))
        .flatten();
    let mut reports = Vec::new();
    for item in items {
        let mut report = ItemReport::new(item);
        if how.interrupted.load(std::sync::atomic::Ordering::SeqCst) {
            report.error("not started");
        } else {
            match act(desk, &inbox, &engine, verb, item, how) {
                Ok(done) => report = done,
                Err(e) => report.take(&e),
            }
        }
        reports.push(report);
    }
    let mut report = Report::of(verb.as_str(), reports);
    report.machine = machine.map(|(was, limit)| MachineReport {
        released: true,
        was: was.as_str(),
        message: format!("the machine: released (was: {})", limit_words(was, limit)),
    });
    if let Err(e) = desk.portable().flush_index() {
        report.warnings.push(e.to_string());
    }
    crate::ops::link::poke(&desk.layout);
    Ok(report)
}

fn act(
    desk: &Desk,
    inbox: &Inbox,
    engine: &Engine,
    verb: ControlVerb,
    item: &WorkItemRef,
    how: &How<'_>,
) -> Result<ItemReport, OpError> {
    let item = desk.registry().canonical(item);
    let locks = desk.locks();
    let note = |holder: &Holder| how.note.busy(&item, holder);
    let patience = Patience::of(desk.patience).telling(&note);
    let held = if verb.ends() {
        locks.want(&item, verb.as_str(), patience)
    } else {
        locks.item(&item, verb.as_str(), patience)
    };
    let held = held.map_err(|e| lock_error(&item, &e))?;
    let outcome = perform(engine, &held, verb, &item, how.actor);
    drop(held);
    let mut report = told(desk, verb, &outcome);
    announce_event(desk, verb, &outcome, how.actor);
    comment_on(desk, inbox, verb, &outcome, how, &mut report);
    Ok(report)
}

fn perform(
    engine: &Engine,
    held: &ItemLock,
    verb: ControlVerb,
    item: &WorkItemRef,
    actor: &str,
) -> VerbOutcome {
    match verb {
        ControlVerb::Pause => engine.verb(held, item, Command::Pause, actor, false),
        ControlVerb::Resume => engine.verb(held, item, Command::Resume, actor, false),
        ControlVerb::Stop { discard } => engine.verb(held, item, Command::Stop, actor, discard),
        ControlVerb::Close { keep_tmux, discard } => {
            engine.verb_close(held, item, actor, keep_tmux, discard)
        }
    }
}

/// The lines of SE-31's table and the fields of SE-11.
fn told(desk: &Desk, verb: ControlVerb, outcome: &VerbOutcome) -> ItemReport {
    let item = &outcome.item;
    let mut report = ItemReport::new(item);
    report.found = outcome.before.is_some();
    report.was_live = outcome.was_live;
    if let Some(record) = &outcome.before {
        describe(desk, &mut report, record, verb.ends());
    }
    for line in &outcome.lines {
        end_line(&mut report, line);
    }
    for error in &outcome.errors {
        report.error(error.clone());
    }
    let word = |effect: ControlEffect| Some(effect.as_str().to_owned());
    match &outcome.deed {
        VerbDeed::Paused => {
            report.effect = word(ControlEffect::Paused);
            report.say(format!(
                "{item}: paused (events are not delivered and not replayed)"
            ));
        }
        VerbDeed::Resumed => {
            report.effect = word(ControlEffect::Resumed);
            report.say(format!("{item}: resumed"));
        }
        VerbDeed::Released { was, limit } => {
            report.found = true;
            report.effect = word(ControlEffect::Released);
            report.say(format!(
                "{item}: released (was: {})",
                limit_words(*was, *limit)
            ));
        }
        VerbDeed::Ended => {
            for endpoint in outcome.before.iter().flat_map(SessionRecord::endpoints) {
                report.endpoints.push(EndpointReport {
                    item: endpoint.item.clone(),
                    harness: endpoint.harness.clone(),
                    ended: true,
                });
            }
            let (effect, said) = match verb {
                ControlVerb::Close { .. } => ("closed", "closed"),
                ControlVerb::Pause | ControlVerb::Resume | ControlVerb::Stop { .. } => {
                    (ControlEffect::Stopped.as_str(), "stopped")
                }
            };
            report.effect = Some(effect.to_owned());
            if outcome.errors.is_empty() {
                report.say(format!("{item}: {said}"));
            } else {
                report.effect = word(ControlEffect::Partial);
            }
        }
        VerbDeed::Nothing => {
            let (effect, words) = match verb {
                ControlVerb::Pause => ("noop", "nothing to pause (recorded)"),
                ControlVerb::Resume => ("rejected", "nothing to resume"),
                ControlVerb::Stop { .. } => ("noop", "nothing to stop (recorded)"),
                ControlVerb::Close { .. } => ("noop", "no live session to close"),
            };
            report.effect = Some(effect.to_owned());
            report.aside(format!("{item}: {words}"));
            if verb == ControlVerb::Resume && machine_is_parked(desk).unwrap_or(false) {
                report.hint("a limit stops the whole machine: the-loop sessions resume --all");
            }
            report.fail();
        }
        VerbDeed::Failed(why) => {
            report.effect = word(ControlEffect::Failed);
            report.error(why.clone());
        }
    }
    report
}

/// Harness, target and attach command of a record.
pub fn describe(desk: &Desk, report: &mut ItemReport, record: &SessionRecord, closed: bool) {
    report.harness = Some(record.harness.clone());
    let Some(target) = record.target() else {
        return;
    };
    let tmux = desk.tmux();
    let server = match &record.tmux_socket {
        Some(socket) => tmux.on_socket(socket),
        None => tmux,
    };
    report.tmux_target = Some(target.to_string());
    report.attach = Some(server.attach_command(&target, closed));
}

/// One irreversible fact, one line (SE-47).
fn end_line(report: &mut ItemReport, line: &EndLine) {
    let item = report.item.clone();
    match line {
        EndLine::Ended { harness } => report.say(format!("{item}: ended a live {harness} session")),
        EndLine::Saved {
            name,
            files,
            commits,
        } => {
            report.say(format!(
                "{item}: saved {} as {name}",
                saved_words(*files, *commits)
            ));
            report.saved.push(name.clone());
        }
        EndLine::Removed { path } => {
            report.say(format!("{item}: removed the workspace checkout {path}"));
            report.workspaces.push(WorkspaceReport {
                path: path.clone(),
                removed: true,
            });
        }
        EndLine::Kept { path } => {
            report.say(format!("{item}: kept the workspace checkout {path}"));
            report.workspaces.push(WorkspaceReport {
                path: path.clone(),
                removed: false,
            });
        }
        EndLine::GoesOn => report.say(format!(
            "{item}: its agent goes on (routing.tmux.killHarnessOnClose is false)"
        )),
        EndLine::Terminal { attach } => {
            report.aside(format!("note: {item}: its terminal is kept: {attach}"));
        }
    }
}

/// `3 changed files and 2 commits`; a part that is zero is left out.
pub fn saved_words(files: u64, commits: u64) -> String {
    let count = |n: u64, one: &str, many: &str| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {many}")),
    };
    let parts: Vec<String> = [
        count(files, "changed file", "changed files"),
        count(commits, "commit", "commits"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if parts.is_empty() {
        "its work".to_owned()
    } else {
        parts.join(" and ")
    }
}

/// The one control event of a verb (SE-31). A close is no command and has `session.closed` only.
fn announce_event(desk: &Desk, verb: ControlVerb, outcome: &VerbOutcome, actor: &str) {
    let Some(command) = verb.command() else {
        return;
    };
    let effect = match &outcome.deed {
        VerbDeed::Paused => ControlEffect::Paused,
        VerbDeed::Resumed => ControlEffect::Resumed,
        VerbDeed::Released { .. } => ControlEffect::Released,
        VerbDeed::Ended if outcome.errors.is_empty() => ControlEffect::Stopped,
        VerbDeed::Ended => ControlEffect::Partial,
        VerbDeed::Nothing if verb == ControlVerb::Resume => {
            let reason = ControlRejectReason::NothingToResume;
            desk.emit(
                Source::Sessions,
                LogEvent::ControlRejected {
                    work_items: vec![outcome.item.clone()],
                    command,
                    via: ControlVia::Cli,
                    actor: Some(actor.to_owned()),
                    reason,
                    delivery_id: None,
                },
            );
            return;
        }
        VerbDeed::Nothing => ControlEffect::Noop,
        VerbDeed::Failed(_) => ControlEffect::Failed,
    };
    desk.emit(
        Source::Sessions,
        LogEvent::ControlCommand {
            work_item: outcome.item.clone(),
            command,
            via: ControlVia::Cli,
            actor: Some(actor.to_owned()),
            effect,
            delivery_id: None,
        },
    );
}

fn comment_on(
    desk: &Desk,
    inbox: &Inbox,
    verb: ControlVerb,
    outcome: &VerbOutcome,
    how: &How<'_>,
    report: &mut ItemReport,
) {
    let Some(command) = verb.command() else {
        return;
    };
    let acted = match &outcome.deed {
        VerbDeed::Paused | VerbDeed::Resumed | VerbDeed::Released { .. } | VerbDeed::Ended => true,
        VerbDeed::Nothing | VerbDeed::Failed(_) => false,
    };
    report.commented = Some(false);
    if acted {
        echo(desk, inbox, command, how.actor, how.comment, report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se47_a_part_that_is_zero_is_left_out() {
        assert_eq!(saved_words(3, 2), "3 changed files and 2 commits");
        assert_eq!(saved_words(1, 0), "1 changed file");
        assert_eq!(saved_words(0, 1), "1 commit");
    }
}
