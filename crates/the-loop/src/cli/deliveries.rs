//! `deliveries` (SE-63 to SE-66).

use std::ops::ControlFlow;

use serde_json::{Value, json};
use the_loop_core::delivery::{Effect, State};
use the_loop_core::event::{Filter, LogEvent, RetriedVia, Source, parse_when, row};
use the_loop_core::redact::visible;

use super::args::Deliveries;
use super::context::{Context, Ended};
use super::exit::Exit;
use super::render;
use crate::ops::deliveries::{self, Answer, Detail, Line, OutcomeDetail, Query};
use crate::ops::desk::{Desk, inbox_error, parse_ref};
use crate::ops::error::OpError;
use crate::store::eventlog::Reader;
use crate::store::inbox::DropWhat;

/// Runs it.
pub fn run(cx: &mut Context, command: &Deliveries) -> Ended {
    match command {
        Deliveries::List {
            work_item,
            state,
            since,
            limit,
            all,
        } => {
            let now = cx.world.clock.now();
            let since = since.as_deref().map(|text| parse_when(text, now));
            let since = since.transpose().map_err(|e| {
                OpError::usage(format!("--since: {e}"))
                    .hint("write an RFC 3339 time or date, or 30s 15m 2h 1d 2w ago")
            })?;
            let query = Query {
                work_item: work_item.as_deref().map(parse_ref).transpose()?,
                states: state.iter().filter_map(|word| State::parse(word)).collect(),
                all: *all,
                since,
                limit: *limit,
            };
            list(cx, &query)
        }
        Deliveries::Show { id, payload } => show(cx, id, *payload),
        Deliveries::Retry { ids, force } => retry(cx, ids, *force),
        Deliveries::Drop {
            ids,
            work_item,
            reason,
        } => {
            let what = match work_item {
                Some(text) => DropWhat::Item(parse_ref(text)?.key()),
                None => DropWhat::Ids(ids.clone()),
            };
            drop_them(cx, what, reason.as_deref())
        }
    }
}

fn list(cx: &mut Context, query: &Query) -> Ended {
    let desk = cx.desk(None)?;
    let lines = match desk.inbox_to_read()? {
        Some(inbox) => deliveries::list(&inbox, query).map_err(|e| inbox_error(&e))?,
        None => Vec::new(),
    };
    if cx.out.json_wanted() {
        cx.out.json(&lines);
        return Ok(Exit::OK);
    }
    if lines.is_empty() {
        cx.out.note("no deliveries");
        return Ok(Exit::OK);
    }
    let now = cx.world.clock.now();
    let row = |line: &Line| {
        let event = match &line.action {
            Some(action) => format!("{} {action}", line.event),
            None => line.event.clone(),
        };
        vec![
            line.id.to_string(),
            render::ago(now, line.accepted_at),
            render::or_dash(line.work_item.clone().unwrap_or_default()),
            render::or_dash(line.actor.clone().unwrap_or_default()),
            event,
            line.state.to_string(),
            render::or_dash(detail(line)),
        ]
    };
    let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    let heads = ["Id", "Age", "Work item", "From", "Event", "State", "Detail"];
    for line in render::table(&heads, &rows) {
        cx.out.line(line);
    }
    Ok(Exit::OK)
}

/// Why it stands where it stands.
fn detail(line: &Line) -> String {
    let mut parts = Vec::new();
    parts.extend(line.reason.clone());
    parts.extend(line.held_because.as_ref().map(|why| format!("held: {why}")));
    if line.attempts > 0 {
        parts.push(format!("{} tried", line.attempts));
    }
    parts.extend(line.next_try_at.map(|at| format!("next try {at}")));
    parts.join(", ")
}

/// An id as somebody gave it; one that would not be seen stands in quotes.
fn shown(id: &str) -> String {
    if id.trim().is_empty() {
        format!("\"{id}\"")
    } else {
        visible(id)
    }
}

fn show(cx: &mut Context, id: &str, payload: bool) -> Ended {
    let desk = cx.desk(None)?;
    let found = match desk.inbox_to_read()? {
        Some(inbox) => deliveries::show(&inbox, id).map_err(|e| inbox_error(&e))?,
        None => None,
    };
    let Some(found) = found else {
        let made = OpError::not_found(format!("{}: no such delivery", shown(id)));
        return Err(made.hint("the-loop deliveries list --all").into());
    };
    let trail = trail(&desk, &found)?;
    if cx.out.json_wanted() {
        let mut value = serde_json::to_value(&found)
            .map_err(|e| OpError::failed("cannot write the answer as JSON", &e))?;
        value["trail"] = Value::Array(trail.into_iter().map(Value::Object).collect());
        if payload {
            value["payload"] = json!(found.delivery.as_ref().map(|d| payload_text(&d.effect)));
        }
        cx.out.json(&value);
        return Ok(Exit::OK);
    }
    for (name, text) in fields(&found) {
        cx.out
            .line(format!("{}{}", render::padded(name, 14), visible(&text)));
    }
    for outcome in &found.outcomes {
        cx.out.line("");
        for (name, text) in outcome_fields(outcome) {
            cx.out
                .line(format!("{}{}", render::padded(name, 14), visible(&text)));
        }
    }
    if payload {
        cx.out.line("");
        match (&found.delivery, &found.text_missing) {
            (Some(delivery), _) => {
                let text = payload_text(&delivery.effect).unwrap_or_default();
                for line in render::visible_lines(&text) {
                    cx.out.line(format!("| {line}"));
                }
            }
            (None, missing) => cx
                .out
                .note(visible(missing.as_deref().unwrap_or("no text"))),
        }
    }
    if !trail.is_empty() {
        cx.out.line("");
    }
    for line in trail {
        let row = row(&line);
        let cells = [&row.time, &row.source, &row.event, &row.details];
        let cells: Vec<&str> = cells.into_iter().map(String::as_str).collect();
        cx.out.line(cells.join("  "));
    }
    Ok(Exit::OK)
}

/// What people wrote; other deliveries carry no text of theirs.
fn payload_text(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Text(text) => Some(text.body.clone()),
        Effect::Notice { changed } => Some(format!("changed: {}", changed.join(", "))),
        Effect::Check(check) => Some(check.conclusion.clone()),
        Effect::Presence | Effect::Opened | Effect::Close { .. } | Effect::Start { .. } => None,
    }
}

/// The lines of the log that name any of the delivery's ids.
fn trail(desk: &Desk, found: &Detail) -> Result<Vec<serde_json::Map<String, Value>>, OpError> {
    let filter = Filter {
        delivery_id: Some(found.delivery_id.clone()),
        since: Some(found.accepted_at.minus(std::time::Duration::from_mins(10))),
        ..Filter::default()
    };
    let mut lines = Vec::new();
    let path = desk.layout.events_log();
    let read = Reader::new(&desk.world, &path).query(&filter, 200, &mut |record| {
        lines.push(record.fields.clone());
        ControlFlow::Continue(())
    });
    read.map_err(|e| OpError::failed(format!("{}: cannot read the event log", e.path), &e.source))?;
    Ok(lines)
}

fn fields(found: &Detail) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("id", found.id.to_string()),
        ("delivery", found.delivery_id.clone()),
        ("content key", found.content_key.clone()),
        ("ingress", found.ingress.as_str().to_owned()),
        ("event", found.event.clone()),
    ];
    let optional = [
        ("action", found.action.clone()),
        ("actor", found.actor.clone()),
    ];
    fields.extend(optional.into_iter().filter_map(|(n, v)| Some((n, v?))));
    fields.push(("accepted", found.accepted_at.millis()));
    fields.push(("state", with_reason(found.state, found.reason.as_deref())));
    if found.attempts > 0 {
        fields.push(("attempts", found.attempts.to_string()));
    }
    fields.extend(found.next_try_at.map(|at| ("next try", at.seconds())));
    for name in found.names.iter().filter(|name| name.again > 0) {
        fields.push((
            "again",
            format!("{} times as {} {}", name.again, name.kind, name.key),
        ));
    }
    fields
}

fn outcome_fields(outcome: &OutcomeDetail) -> Vec<(&'static str, String)> {
    let mut fields = vec![("work item", outcome.work_item.to_string())];
    fields.extend(
        outcome
            .endpoint
            .as_ref()
            .map(|e| ("endpoint", e.to_string())),
    );
    fields.push((
        "state",
        with_reason(outcome.state, outcome.reason.as_deref()),
    ));
    fields.extend(outcome.held_because.clone().map(|why| ("held", why)));
    if outcome.attempts > 0 {
        fields.push(("attempts", outcome.attempts.to_string()));
    }
    let times = [
        ("next try", outcome.next_try_at),
        ("intent", outcome.intent_at),
        ("pasted", outcome.pasted_at),
        ("confirmed", outcome.confirmed_at),
    ];
    fields.extend(
        times
            .into_iter()
            .filter_map(|(n, at)| Some((n, at?.millis()))),
    );
    fields.extend(
        outcome
            .confirmed_by
            .map(|by| ("confirmed by", by.to_owned())),
    );
    fields.extend(outcome.marker.clone().map(|marker| ("marker", marker)));
    fields.extend(outcome.given_up_by.clone().map(|by| ("given up by", by)));
    fields
}

fn with_reason(state: State, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{state} ({reason})"),
        None => state.to_string(),
    }
}

fn retry(cx: &mut Context, ids: &[String], force: bool) -> Ended {
    let desk = cx.desk(None)?;
    let inbox = desk.inbox()?;
    let answers = deliveries::retry(&inbox, ids, force).map_err(|e| inbox_error(&e))?;
    for changed in answers.iter().flat_map(|answer| &answer.changed) {
        desk.emit(
            Source::Cli,
            LogEvent::DeliveryRetried {
                work_item: changed.item.as_deref().and_then(|item| item.parse().ok()),
                delivery_id: changed.delivery_id.clone(),
                via: RetriedVia::Cli,
                actor: Some(cx.world.user.clone()),
                was: changed.was.to_string(),
            },
        );
    }
    crate::ops::link::poke(&desk.layout);
    Ok(answered(cx, &answers))
}

fn drop_them(cx: &mut Context, what: DropWhat, reason: Option<&str>) -> Ended {
    let desk = cx.desk(None)?;
    let inbox = desk.inbox()?;
    let answers = deliveries::drop(&inbox, what).map_err(|e| inbox_error(&e))?;
    for changed in answers.iter().flat_map(|answer| &answer.changed) {
        desk.emit(
            Source::Cli,
            LogEvent::DeliveryDiscarded {
                work_item: changed.item.as_deref().and_then(|item| item.parse().ok()),
                delivery_id: changed.delivery_id.clone(),
                actor: cx.world.user.clone(),
                was: changed.was.to_string(),
                note: reason.map(str::to_owned),
            },
        );
    }
    crate::ops::link::poke(&desk.layout);
    if answers.is_empty() {
        cx.out.aside("nothing to drop");
        return Ok(Exit::FAILED);
    }
    Ok(answered(cx, &answers))
}

/// One line an id: what was done on stdout, what was refused on stderr.
fn answered(cx: &Context, answers: &[Answer]) -> Exit {
    if cx.out.json_wanted() {
        let one = |answer: &Answer| {
            json!({ "id": answer.id, "ok": !answer.refused, "answer": answer.words,
                    "changed": answer.changed.len() })
        };
        cx.out
            .json(&answers.iter().map(one).collect::<Vec<Value>>());
    }
    for answer in answers {
        let line = format!("{}: {}", shown(&answer.id), answer.words);
        if answer.refused {
            cx.out.aside(line);
        } else if !cx.out.json_wanted() {
            cx.out.line(line);
        }
    }
    Exit::of(answers.iter().all(|answer| !answer.refused))
}
