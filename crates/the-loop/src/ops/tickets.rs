//! `tickets new|list|show|comment|edit|label|close|reopen` (SE-70 to SE-77).
//!
//! A change is first committed to the inbox as a delivery that carries it and then written into the
//! ticket's file (ST-66); what it means for a session is the engine's matter.

mod change;

use the_loop_core::ids::{RefError, RepoRef, WorkItemRef};
use the_loop_core::record::{Ticket, TicketState};

use super::desk::Desk;
use super::error::OpError;
use crate::store::files::RecordFault;

pub use change::{Changed, NewTicket, TicketDesk, Who};

/// Which tickets to list.
#[derive(Clone, Debug, Default)]
pub struct TicketQuery {
    /// Only of this repository.
    pub repo: Option<String>,
    /// Only in this state.
    pub state: Option<TicketState>,
    /// Only with this label.
    pub label: Option<String>,
}

/// Tickets, and the files that cannot be read.
#[derive(Clone, Debug)]
pub struct TicketList {
    /// By repository, then number.
    pub tickets: Vec<Ticket>,
    /// One warning each.
    pub problems: Vec<RecordFault>,
}

/// Lists tickets (SE-71).
pub fn list(desk: &Desk, query: &TicketQuery) -> Result<TicketList, OpError> {
    let repo = match &query.repo {
        Some(text) => Some(repository(desk, text)?),
        None => None,
    };
    let all = desk.tickets().list(repo.as_ref());
    let all = all.map_err(|e| OpError::failed("cannot list the tickets", &e))?;
    let wanted = |ticket: &Ticket| {
        query.state.is_none_or(|state| state == ticket.state)
            && query.label.as_ref().is_none_or(|l| ticket.has_label(l))
    };
    Ok(TicketList {
        tickets: all.tickets.into_iter().filter(wanted).collect(),
        problems: all.problems,
    })
}

/// One ticket (SE-72).
pub fn show(desk: &Desk, item: &WorkItemRef) -> Result<Ticket, OpError> {
    must_be_local(item)?;
    let found = desk.tickets().get(item);
    found
        .map_err(|e| OpError::failed(format!("{item}: cannot read it"), &e))?
        .ok_or_else(|| unknown(item))
}

fn unknown(item: &WorkItemRef) -> OpError {
    OpError::not_found(format!("{item}: no such ticket")).hint("the-loop tickets list --state all")
}

fn must_be_local(item: &WorkItemRef) -> Result<(), OpError> {
    if item.is_local() {
        return Ok(());
    }
    let made = OpError::usage(format!("{item}: not a ticket of the embedded tracker"));
    Err(made.hint("its refs look like local:octo/repo#1"))
}

/// A repository that is configured; the spelling of the configuration wins.
fn repository(desk: &Desk, text: &str) -> Result<RepoRef, OpError> {
    let bad = |e: RefError| {
        let shown = the_loop_core::redact::visible(text);
        OpError::usage(format!("not a repository: \"{shown}\" ({e})")).hint("write OWNER/REPO")
    };
    let (owner, name) = text.split_once('/').ok_or_else(|| bad(RefError::Parts))?;
    let asked = RepoRef::new("", owner, name).map_err(bad)?;
    let repos = &desk.settings().tracker.local.repos;
    let known = repos
        .keys()
        .find(|known| known.eq_ignore_ascii_case(&asked.full_name()));
    match known.and_then(|known| known.split_once('/')) {
        Some((owner, name)) => RepoRef::new("", owner, name).map_err(bad),
        None => Err(unknown_repository(desk, &asked.full_name())),
    }
}

fn unknown_repository(desk: &Desk, name: &str) -> OpError {
    let repos = &desk.settings().tracker.local.repos;
    let known: Vec<&str> = repos.keys().map(String::as_str).collect();
    let made = OpError::usage(format!("{name} is not in tracker.local.repos"));
    if known.is_empty() {
        made.hint("add it to the configuration: tracker.local.repos: {OWNER/REPO: PATH-OR-URL}")
    } else {
        made.hint(format!("there are {}", known.join(", ")))
    }
}

/// The one repository that is configured, when none is named.
fn only_repository(desk: &Desk) -> Result<RepoRef, OpError> {
    let repos = &desk.settings().tracker.local.repos;
    let mut names = repos.keys();
    match (names.next(), names.next()) {
        (Some(one), None) => repository(desk, one),
        (None, _) => {
            let made = OpError::usage("no repository is configured in tracker.local.repos");
            Err(made.hint("add one: tracker.local.repos: {OWNER/REPO: PATH-OR-URL}"))
        }
        (Some(_), Some(_)) => {
            let known: Vec<&str> = repos.keys().map(String::as_str).collect();
            let made = OpError::usage("--repo is needed: tracker.local.repos has several");
            Err(made.hint(format!("there are {}", known.join(", "))))
        }
    }
}
