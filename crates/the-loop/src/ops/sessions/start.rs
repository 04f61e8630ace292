//! `sessions start` (SE-31): a delivery of its own, tried once (DI-4, DI-6).

use std::sync::atomic::AtomicBool;

use the_loop_core::control::Command;
use the_loop_core::delivery::{Actor, Delivery, Effect, Ingress, ItemFacts, State};
use the_loop_core::event::{ControlEffect, Filter, Glob, Source};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::record::{SessionRecord, TicketState};
use the_loop_core::session::SessionStatus;

use super::control::describe;
use super::echo::echo;
use super::register::harness_named;
use super::report::{ItemReport, Report};
use crate::ops::deliver::{self, Outcome};
use crate::ops::desk::{Desk, inbox_error};
use crate::ops::error::OpError;
use crate::store::eventlog::Reader;
use crate::store::inbox::Inbox;

/// What to start, and how.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Harness asked for.
    pub harness: Option<&'a str>,
    /// Who asked.
    pub actor: &'a str,
    /// Return once it is accepted.
    pub no_wait: bool,
    /// Say so on the ticket; `None`: where this version can.
    pub comment: Option<bool>,
    /// Ends the wait.
    pub stop: &'a AtomicBool,
}

/// Starts each item; a failure never stops the rest. Faults of the arguments are found before anything
/// is touched.
pub fn start(desk: &Desk, items: &[WorkItemRef], how: &Start<'_>) -> Result<Report, OpError> {
    if let Some(name) = how.harness {
        harness_named(desk, name)?;
    }
    if let Some(item) = items.iter().find(|item| !item.has_tracker()) {
        let provider = item.provider();
        return Err(OpError::usage(format!(
            "{item}: no tracker is called {provider}"
        )));
    }
    let inbox = desk.inbox()?;
    let mut reports = Vec::new();
    for item in items {
        let item = desk.registry().canonical(item);
        let mut report = ItemReport::new(&item);
        if how.stop.load(std::sync::atomic::Ordering::SeqCst) {
            report.error("not started");
        } else if let Err(e) = start_one(desk, &inbox, &item, how, &mut report) {
            report.take(&e);
        }
        reports.push(report);
    }
    let mut report = Report::of("start", reports);
    if let Err(e) = desk.portable().flush_index() {
        report.warnings.push(e.to_string());
    }
    Ok(report)
}

fn start_one(
    desk: &Desk,
    inbox: &Inbox,
    item: &WorkItemRef,
    how: &Start<'_>,
    report: &mut ItemReport,
) -> Result<(), OpError> {
    let before = live_record(desk, item)?;
    let delivery = delivery(desk, item, how)?;
    let seq = deliver::submit(desk, inbox, Source::Sessions, &delivery)?;
    report.found = true;
    report.commented = Some(false);
    if how.no_wait {
        crate::ops::link::poke(&desk.layout);
        report.say(format!("{item}: accepted as {}", delivery.delivery_id));
        return Ok(());
    }
    let outcome = deliver::wait(desk, inbox, item, seq, how.stop)?;
    let after = live_record(desk, item)?;
    let target = after.as_ref().or(before.as_ref());
    if let Some(record) = target {
        describe(desk, report, record, false);
    }
    let status = |record: &Option<SessionRecord>| record.as_ref().map(|record| record.status);
    let told = tell(
        &outcome,
        status(&before),
        status(&after),
        parked_words(inbox, item)?,
    );
    report.was_live = before.is_some();
    match told {
        Told::Spawned => {
            report.effect = Some(ControlEffect::Spawned.as_str().to_owned());
            report.say(format!("{item}: spawned {}", where_words(report)));
            if let Some(attach) = report.attach.clone() {
                report.say(format!("  {attach}"));
            }
        }
        Told::Running => {
            report.effect = Some(ControlEffect::Running.as_str().to_owned());
            report.say(format!("{item}: already running ({})", where_words(report)));
        }
        Told::Resumed => {
            report.effect = Some(ControlEffect::Resumed.as_str().to_owned());
            report.say(format!("{item}: resumed"));
        }
        Told::WaitingCapacity => {
            report.effect = Some(ControlEffect::WaitingCapacity.as_str().to_owned());
            let max = desk.settings().routing.limits.max_live_sessions;
            let live = live_sessions(desk)?;
            report.say(format!(
                "{item}: waiting for capacity ({live} of {max} sessions live)"
            ));
        }
        Told::Waits(words) => report.say(format!("{item}: {words}")),
        Told::Rejected(words) => {
            report.effect = Some("rejected".to_owned());
            report.error(format!("not started: {words}"));
        }
        Told::Failed(reason) => {
            report.effect = Some(ControlEffect::Failed.as_str().to_owned());
            let (why, remedy) = why_failed(desk, &delivery.delivery_id);
            report.error(why.unwrap_or_else(|| format!("no session came up: {reason}")));
            if let Some(remedy) = remedy {
                report.hint(&remedy);
            }
            report.hint(&format!(
                "the-loop events --delivery-id {}",
                delivery.delivery_id
            ));
        }
    }
    if report.ok && outcome != Outcome::NotWaited {
        echo(desk, inbox, Command::Start, how.actor, how.comment, report);
    }
    Ok(())
}

/// `claude in loop-github-octo-repo-15`.
fn where_words(report: &ItemReport) -> String {
    let harness = report.harness.as_deref().unwrap_or("a session");
    match &report.tmux_target {
        Some(target) => format!("{harness} in {target}"),
        None => harness.to_owned(),
    }
}

fn live_record(desk: &Desk, item: &WorkItemRef) -> Result<Option<SessionRecord>, OpError> {
    let found = desk.registry().get(item);
    let found =
        found.map_err(|e| OpError::failed(format!("{item}: cannot read its record"), &e))?;
    Ok(found
        .map(|found| found.record)
        .filter(|record| record.status.is_live()))
}

fn live_sessions(desk: &Desk) -> Result<usize, OpError> {
    let listing = desk.registry().list();
    let listing = listing.map_err(|e| OpError::failed("cannot list the session records", &e))?;
    let live = |found: &&crate::store::registry::Registered| found.record.status.is_live();
    Ok(listing.records.iter().filter(live).count())
}

fn parked_words(inbox: &Inbox, item: &WorkItemRef) -> Result<Option<String>, OpError> {
    let parked = inbox.parked(&crate::store::inbox::Scope::Item(item.clone()));
    let parked = parked.map_err(|e| inbox_error(&e))?;
    Ok(parked
        .filter(crate::store::inbox::Parked::is_in_force)
        .map(|parked| super::control::parked_words(&parked)))
}

fn delivery(desk: &Desk, item: &WorkItemRef, how: &Start<'_>) -> Result<Delivery, OpError> {
    let mut facts = ItemFacts::default();
    if item.is_local() {
        let ticket = crate::ops::tickets::show(desk, item)?;
        facts.title = Some(ticket.title);
        facts.closed = Some(ticket.state == TicketState::Closed);
        facts.labels = Some(ticket.labels);
    }
    let uuid = desk.world.ids.uuid();
    Ok(Delivery {
        delivery_id: format!("cli-start-{uuid}"),
        content_key: format!("cli//start/{uuid}/start"),
        numeric_key: None,
        ingress: Ingress::Cli,
        item: item.clone(),
        event: "start".to_owned(),
        action: None,
        actor: Some(Actor {
            login: how.actor.to_owned(),
            id: None,
            bot: false,
        }),
        received_at: desk.world.clock.now(),
        pull: None,
        place: None,
        asked: None,
        facts,
        effect: Effect::Start {
            harness: how.harness.map(str::to_owned),
        },
        entries: Vec::new(),
    })
}

/// What a start came to, in the rows of SE-31.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Spawned,
    Running,
    Resumed,
    WaitingCapacity,
    Waits(String),
    Rejected(String),
    Failed(String),
}

fn tell(
    outcome: &Outcome,
    before: Option<SessionStatus>,
    after: Option<SessionStatus>,
    parked: Option<String>,
) -> Told {
    let up = || match (before, after) {
        (_, None) => Told::Failed("it is gone again".to_owned()),
        (None, Some(_)) => Told::Spawned,
        (Some(SessionStatus::Paused), Some(SessionStatus::Active)) => Told::Resumed,
        (
            Some(
                SessionStatus::Starting
                | SessionStatus::Active
                | SessionStatus::Paused
                | SessionStatus::Closed,
            ),
            Some(_),
        ) => Told::Running,
    };
    match outcome {
        Outcome::NotWaited => Told::Waits("accepted".to_owned()),
        Outcome::Waits { reason, .. } if reason == super::list::WAITING_CAPACITY => {
            Told::WaitingCapacity
        }
        Outcome::Waits { reason, .. } if reason == "busy" => Told::Failed("busy".to_owned()),
        Outcome::Waits { .. } if before.is_none() && after.is_some() => Told::Spawned,
        Outcome::Waits { .. } => Told::Waits(outcome.words().unwrap_or_default()),
        Outcome::Ended { state, reason } => {
            let reason = reason.as_deref().unwrap_or_default();
            let rejected = reason
                .strip_prefix("control-rejected:")
                .map(str::trim_start)
                .or((*state == State::Dropped).then_some(reason));
            match (
                state,
                rejected.and_then(|why| refusal(why, parked.as_deref())),
            ) {
                (_, Some(words)) => Told::Rejected(words),
                (State::Confirmed | State::Pasted | State::Settled, None) => up(),
                (State::Uncertain, None) if after.is_some() => up(),
                (
                    State::Dropped
                    | State::Abandoned
                    | State::Uncertain
                    | State::Failed
                    | State::Accepted
                    | State::Routed
                    | State::Queued
                    | State::Sending,
                    None,
                ) => Told::Failed(if reason.is_empty() {
                    state.to_string()
                } else {
                    reason.to_owned()
                }),
            }
        }
    }
}

/// A closed reason of a refusal in the words of SE-31; `None` for what is no refusal.
fn refusal(reason: &str, parked: Option<&str>) -> Option<String> {
    let words = match reason {
        "spawn-policy" => "routing.spawnOnUnmatched is never".to_owned(),
        "item-closed" => "the ticket is closed".to_owned(),
        "item-parked" => format!("parked: {}", parked.unwrap_or("a limit was reached")),
        "record-unwritable" => "its record cannot be written".to_owned(),
        "reset" => "the item was reset".to_owned(),
        _ => return None,
    };
    Some(words)
}

/// What the log says of a start that failed: `session.spawn_failed`, else `dispatch.failed`, and the
/// remedy that goes with it.
fn why_failed(desk: &Desk, delivery_id: &str) -> (Option<String>, Option<String>) {
    let filter = Filter {
        types: [
            "session.spawn_failed",
            "workspace.failed",
            "dispatch.failed",
        ]
        .map(Glob::new)
        .to_vec(),
        ..Filter::default()
    };
    let filter = Filter {
        since: Some(
            desk.world
                .clock
                .now()
                .minus(std::time::Duration::from_hours(1)),
        ),
        ..filter
    };
    let (mut error, mut remedy) = (None, None);
    let text = |fields: &serde_json::Map<String, serde_json::Value>, name: &str| {
        fields
            .get(name)?
            .as_str()
            .map(the_loop_core::redact::visible)
    };
    let _ = Reader::new(&desk.world, &desk.layout.events_log()).query(&filter, 0, &mut |record| {
        let named = text(&record.fields, "delivery_id");
        // A spawn failure names the item and not always the delivery.
        if named.is_none_or(|id| id == delivery_id) {
            error = text(&record.fields, "error").or(error.take());
            remedy = text(&record.fields, "remedy").or(remedy.take());
        }
        std::ops::ControlFlow::Continue(())
    });
    (
        error.map(|error| format!("no session came up: {error}")),
        remedy,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(state: State, reason: &str) -> Outcome {
        Outcome::Ended {
            state,
            reason: Some(reason.to_owned()).filter(|r| !r.is_empty()),
        }
    }

    #[test]
    fn se31_the_rows_of_start() {
        use SessionStatus::{Active, Paused};
        let confirmed = ended(State::Confirmed, "");
        let executed = ended(State::Settled, "control-executed");
        assert_eq!(tell(&confirmed, None, Some(Active), None), Told::Spawned);
        assert_eq!(
            tell(&executed, Some(Active), Some(Active), None),
            Told::Running
        );
        assert_eq!(
            tell(&executed, Some(Paused), Some(Active), None),
            Told::Resumed
        );
        let waits = Outcome::Waits {
            reason: "waiting-capacity".to_owned(),
            until: None,
        };
        assert_eq!(tell(&waits, None, None, None), Told::WaitingCapacity);
        let policy = ended(State::Settled, "control-rejected: spawn-policy");
        assert!(matches!(tell(&policy, None, None, None), Told::Rejected(_)));
        let parked = ended(State::Dropped, "item-parked");
        let words = Some("more than 60 deliveries in an hour".to_owned());
        assert_eq!(
            tell(&parked, None, None, words),
            Told::Rejected("parked: more than 60 deliveries in an hour".to_owned())
        );
        let spent = ended(State::Abandoned, "attempts-spent");
        assert!(matches!(tell(&spent, None, None, None), Told::Failed(_)));
    }
}
