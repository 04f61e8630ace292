//! `tickets` (SE-70 to SE-77).

use serde_json::{Value, json};
use the_loop_core::record::{CloseReason, EntryKind, Ticket, TicketEntry, TicketState};
use the_loop_core::redact::visible;

use super::args::{Body, Tickets, Wait};
use super::context::{Context, Ended};
use super::exit::Exit;
use super::render;
use super::signals::Interrupt;
use crate::ops::desk::{Desk, parse_ref};
use crate::ops::error::{Kind, OpError};
use crate::ops::tickets::{self, Changed, NewTicket, TicketDesk, TicketQuery, Who};

/// Bytes read of a body, a little more than is accepted, so that a longer one is refused for its length.
const BODY_BYTES_MAX: u64 = 1 << 20;

/// Runs it.
pub fn run(cx: &mut Context, command: &Tickets) -> Ended {
    match command {
        Tickets::New {
            repo,
            title,
            body,
            label,
            start,
            wait,
        } => {
            let body = text_of(cx, body)?.unwrap_or_default();
            let new = NewTicket {
                repo: repo.clone(),
                title: title.clone(),
                body,
                labels: label.clone(),
                start: *start,
            };
            change(
                cx,
                *wait,
                |desk| desk.create(&new),
                |ticket| format!("created {}", ticket.item),
            )
        }
        Tickets::List { repo, state, label } => list(cx, repo.as_deref(), state, label.as_deref()),
        Tickets::Show { item, limit } => show(cx, item, *limit),
        Tickets::Comment { item, body, wait } => {
            let item = parse_ref(item)?;
            let body = text_of(cx, body)?;
            let body = body.ok_or_else(|| OpError::usage("give --body or --body-file"))?;
            let done = |ticket: &Ticket| format!("commented on {}", ticket.item);
            change(cx, *wait, |desk| desk.comment(&item, &body), done)
        }
        Tickets::Edit {
            item,
            title,
            body,
            wait,
        } => {
            let item = parse_ref(item)?;
            let body = text_of(cx, body)?;
            let edit = |desk: &TicketDesk<'_>| desk.edit(&item, title.as_deref(), body.as_deref());
            change(cx, *wait, edit, |ticket| format!("edited {}", ticket.item))
        }
        Tickets::Label {
            item,
            add,
            remove,
            wait,
        } => {
            let item = parse_ref(item)?;
            let done = |ticket: &Ticket| {
                let labels: Vec<String> = ticket.labels.iter().map(|l| visible(l)).collect();
                format!("labels: {}", render::or_dash(labels.join(", ")))
            };
            change(cx, *wait, |desk| desk.label(&item, add, remove), done)
        }
        Tickets::Close { item, reason, wait } => {
            let item = parse_ref(item)?;
            let reason = CloseReason::parse(reason).unwrap_or(CloseReason::Completed);
            let done = |ticket: &Ticket| format!("closed {}", ticket.item);
            change(cx, *wait, |desk| desk.close(&item, reason), done)
        }
        Tickets::Reopen { item, wait } => {
            let item = parse_ref(item)?;
            let done = |ticket: &Ticket| format!("reopened {}", ticket.item);
            change(cx, *wait, |desk| desk.reopen(&item), done)
        }
    }
}

/// The text of `--body` or `--body-file`; bytes that are no text are refused.
fn text_of(cx: &Context, body: &Body) -> Result<Option<String>, OpError> {
    let Some(file) = &body.body_file else {
        return Ok(body.body.clone());
    };
    let bytes = if file == "-" {
        use std::io::Read;
        let mut bytes = Vec::new();
        let read = std::io::stdin()
            .take(BODY_BYTES_MAX)
            .read_to_end(&mut bytes);
        read.map_err(|e| OpError::new(Kind::Usage, "cannot read standard input").because(&e))?;
        bytes
    } else {
        let path = cx.absolute(file);
        let real = cx.world.disk.canonicalize(&path);
        let read = real.and_then(|real| cx.world.disk.read(&real, BODY_BYTES_MAX));
        read.map_err(|e| OpError::new(Kind::Usage, format!("{path}: cannot read it")).because(&e))?
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| OpError::usage("the text must be UTF-8 without NUL"))?;
    // The line break that every editor puts at the end is not part of the words.
    let trimmed = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Some(
        trimmed.strip_suffix('\r').unwrap_or(trimmed).to_owned(),
    ))
}

/// Makes a change, prints what was done, and waits for its outcome, which is a note.
fn change(
    cx: &mut Context,
    wait: Wait,
    make: impl FnOnce(&TicketDesk<'_>) -> Result<Changed, OpError>,
    done: impl FnOnce(&Ticket) -> String,
) -> Ended {
    let desk = cx.desk(None)?;
    let inside = cx.world.var("THE_LOOP_WORK_ITEM").is_some();
    let who = if inside {
        Who::Agent
    } else {
        Who::Person(cx.world.user.clone())
    };
    let verbs = TicketDesk::open(&desk, who)?;
    let changed = make(&verbs)?;
    let item = changed.ticket.item.clone();
    if cx.out.json_wanted() {
        cx.out.json(&with_session(&desk, &changed.ticket));
    } else {
        cx.out.line(done(&changed.ticket));
    }
    cx.out.flush();
    let mut exit = Exit::OK;
    if wait.no_wait {
        crate::ops::link::poke(&desk.layout);
    } else {
        let interrupt = Interrupt::listen();
        let outcome = verbs.wait(&changed, interrupt.flag())?;
        exit = interrupt.exit(exit);
        if let Some(words) = outcome.words() {
            cx.out.note(format!("{item}: {words}"));
        }
    }
    flush_index(cx, &desk);
    Ok(exit)
}

/// The index of portable records is written before a command ends (ST-40).
fn flush_index(cx: &Context, desk: &Desk) {
    if let Err(e) = desk.portable().flush_index() {
        cx.out.warning(e);
    }
}

fn list(cx: &mut Context, repo: Option<&str>, state: &str, label: Option<&str>) -> Ended {
    let desk = cx.desk(None)?;
    let query = TicketQuery {
        repo: repo.map(str::to_owned),
        state: TicketState::parse(state),
        label: label.map(str::to_owned),
    };
    let found = tickets::list(&desk, &query)?;
    for problem in &found.problems {
        cx.out.warning(visible(&problem.to_string()));
    }
    if cx.out.json_wanted() {
        let all: Vec<Value> = found
            .tickets
            .iter()
            .map(|t| with_session(&desk, t))
            .collect();
        cx.out.json(&all);
        return Ok(Exit::OK);
    }
    if found.tickets.is_empty() {
        cx.out.aside("(no tickets)");
        return Ok(Exit::OK);
    }
    let row = |ticket: &Ticket| {
        vec![
            ticket.item.to_string(),
            ticket.title.clone(),
            ticket.state.as_str().to_owned(),
            render::or_dash(ticket.labels.join(", ")),
            render::or_dash(session_of(&desk, ticket).unwrap_or_default()),
            ticket.updated_at.seconds(),
        ]
    };
    let rows: Vec<Vec<String>> = found.tickets.iter().map(row).collect();
    let heads = ["Ref", "Title", "State", "Labels", "Session", "Updated"];
    for line in render::table(&heads, &rows) {
        cx.out.line(line);
    }
    Ok(Exit::OK)
}

/// Status of the ticket's session here; a record that cannot be read is none.
fn session_of(desk: &Desk, ticket: &Ticket) -> Option<String> {
    let found = desk.registry().get(&ticket.item).ok()??;
    Some(found.record.status.as_str().to_owned())
}

fn with_session(desk: &Desk, ticket: &Ticket) -> Value {
    let mut value = Value::Object(ticket.to_map());
    value["session"] = json!(session_of(desk, ticket));
    value
}

fn show(cx: &mut Context, item: &str, limit: usize) -> Ended {
    let item = parse_ref(item)?;
    let desk = cx.desk(None)?;
    let ticket = tickets::show(&desk, &item)?;
    if cx.out.json_wanted() {
        cx.out.json(&with_session(&desk, &ticket));
        return Ok(Exit::OK);
    }
    let out = &cx.out;
    out.line(format!("{}  {}", ticket.item, visible(&ticket.title)));
    let labels: Vec<String> = ticket.labels.iter().map(|l| visible(l)).collect();
    out.line(format!(
        "{} by {}, created {}, updated {}",
        ticket.state.as_str(),
        visible(&ticket.author),
        ticket.created_at,
        ticket.updated_at
    ));
    out.line(format!("labels: {}", render::or_dash(labels.join(", "))));
    if let Some(status) = session_of(&desk, &ticket) {
        out.line(format!("session: {status}"));
    }
    if !ticket.body.trim().is_empty() {
        out.line("");
        for line in render::visible_lines(&ticket.body) {
            out.line(line);
        }
    }
    let skipped = match limit {
        0 => 0,
        limit => ticket.entries.len().saturating_sub(limit),
    };
    if skipped > 0 {
        out.line("");
        out.line(format!("… {skipped} earlier entries (--limit 0 shows all)"));
    }
    for entry in &ticket.entries[skipped..] {
        out.line("");
        for line in entry_lines(entry) {
            out.line(line);
        }
    }
    Ok(Exit::OK)
}

fn entry_lines(entry: &TicketEntry) -> Vec<String> {
    let head = |what: String| format!("{}  {}  {what}", entry.at, visible(&entry.actor));
    match &entry.kind {
        EntryKind::Comment { deleted: true, .. } => vec![head("comment (deleted)".to_owned())],
        EntryKind::Comment {
            body,
            reactions,
            edited_at,
            deleted: false,
        } => {
            let mut what = "comment".to_owned();
            if edited_at.is_some() {
                what.push_str(" (edited)");
            }
            if !reactions.is_empty() {
                let all: Vec<String> = reactions.iter().map(|r| visible(r)).collect();
                what.push_str(&format!(" [{}]", all.join(" ")));
            }
            let mut lines = vec![head(what)];
            lines.extend(
                render::visible_lines(body)
                    .into_iter()
                    .map(|line| format!("  {line}").trim_end().to_owned()),
            );
            lines
        }
        EntryKind::Labeled { label } => vec![head(format!("set label {}", visible(label)))],
        EntryKind::Unlabeled { label } => vec![head(format!("took label {} off", visible(label)))],
        EntryKind::Edited { field, .. } => vec![head(format!("edited the {}", field.as_str()))],
        EntryKind::Closed { reason } => vec![head(format!("closed as {}", reason.as_str()))],
        EntryKind::Reopened => vec![head("reopened".to_owned())],
    }
}
