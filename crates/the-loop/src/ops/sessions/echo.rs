//! What a verb says on the ticket (IN-58).

use the_loop_core::control::{Command, Keywords};
use the_loop_core::event::{LogEvent, Source};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::prompt::comment;
use the_loop_core::record::TicketChange;

use super::report::ItemReport;
use crate::ops::desk::Desk;
use crate::store::inbox::Inbox;
use crate::tracker::github::client::{Github, WriteError};
use crate::tracker::local::OWN_ACTOR;

/// Says on the ticket what was asked for in a shell (IN-58). `wanted`: `None` is "where it can be done".
pub fn echo(
    desk: &Desk,
    inbox: &Inbox,
    command: Command,
    actor: &str,
    wanted: Option<bool>,
    report: &mut ItemReport,
) {
    report.commented = Some(false);
    let item = report.item.clone();
    if wanted == Some(false) {
        return;
    }
    let keywords = Keywords::configured(&desk.settings().routing.control);
    let phrase = keywords
        .phrase(command)
        .map_or_else(|| format!("the-loop {}", command.as_str()), str::to_owned);
    let actor = the_loop_core::redact::visible(actor);
    let text = comment::sign(&format!(
        "{phrase}\n\nIssued from the command line by {actor}."
    ));
    match post(desk, inbox, &item, &text) {
        Ok(()) => {
            report.commented = Some(true);
            desk.emit(
                Source::Sessions,
                LogEvent::ControlAnnounced {
                    work_item: item,
                    command,
                },
            );
        }
        // Nobody asked for it, and nothing is ever written there.
        Err(Unsaid::NoCredential(_)) if wanted.is_none() => {}
        Err(Unsaid::NoCredential(error) | Unsaid::Failed(error)) => {
            report.aside(format!(
                "note: {item}: could not comment on the ticket: {error}"
            ));
            desk.emit(
                Source::Sessions,
                LogEvent::ControlAnnounceFailed {
                    work_item: item,
                    command,
                    error,
                },
            );
        }
    }
}

/// Why a comment was not made.
enum Unsaid {
    NoCredential(String),
    Failed(String),
}

fn post(desk: &Desk, inbox: &Inbox, item: &WorkItemRef, text: &str) -> Result<(), Unsaid> {
    let failed = |error: &dyn std::error::Error| Unsaid::Failed(error.to_string());
    if !item.is_local() {
        let client = Github::new(&desk.world);
        let posted = client.comment(desk.settings(), item, text);
        let posted = posted.map_err(|error| match error {
            WriteError::NoToken(why) => Unsaid::NoCredential(why.to_string()),
            other => failed(&other),
        })?;
        return inbox
            .add_own_comment(item, &posted.node_id)
            .map_err(|e| failed(&e));
    }
    let tracker = desk.tickets();
    let entry = tracker.comment(OWN_ACTOR, text);
    inbox
        .add_own_comment(item, &entry.id)
        .map_err(|e| failed(&e))?;
    let change = TicketChange::Entry(entry);
    tracker.apply(item, &change).map_err(|e| failed(&e))?;
    Ok(())
}
