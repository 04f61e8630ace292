//! `events` (SE-67).

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use the_loop_core::event::{Row, catalogue_json, catalogue_markdown, row};

use super::args::{EventsArgs, Format};
use super::context::{Context, Ended};
use super::exit::Exit;
use super::signals::Interrupt;
use crate::ops::error::{Kind, OpError};
use crate::ops::events::{self, BadOption, EventsQuery, ParsedQuery};
use crate::store::eventlog::{FollowNote, ReadFault, Record};

/// Runs it.
pub fn run(cx: &mut Context, args: &EventsArgs) -> Ended {
    if args.types_list {
        if cx.out.json_wanted() {
            cx.out.json(&catalogue_json());
        } else {
            cx.out.bytes(catalogue_markdown().as_bytes());
        }
        return Ok(Exit::OK);
    }
    let query = EventsQuery {
        types: args.types.clone(),
        work_item: args.work_item.clone(),
        delivery_id: args.delivery_id.clone(),
        source: args.source.clone(),
        level: args.level.clone(),
        since: args.since.clone(),
        until: args.until.clone(),
    };
    let ParsedQuery { filter, notes } = query
        .parse(cx.world.clock.now())
        .map_err(|e| bad_option(&e))?;
    for note in notes {
        cx.out.note(note);
    }
    let path = if let Some(file) = &args.file {
        cx.absolute(file)
    } else {
        let desk = cx.desk(None)?;
        if !desk.log.is_enabled() {
            cx.out
                .note("eventLog.enabled is false: nothing new is written");
        }
        desk.layout.events_log()
    };
    let follow_json = args.follow && cx.out.format() == Format::Json;
    let mut printer = Printer::new(cx, follow_json);
    let summary = events::events(&cx.world, &path, &filter, args.limit, &mut |record| {
        printer.print(record)
    })
    .map_err(|e| unreadable(&e))?;
    printer.end_of_array();
    for note in events::notes(&path, &summary) {
        cx.out.note(note);
    }
    if !args.follow || cx.out.closed() {
        return Ok(Exit::OK);
    }
    cx.out.flush();
    // The end by a signal is the ordinary one (SE-15).
    let interrupt = Interrupt::listen();
    let mut follower = summary.follower;
    let mut sink = |record: &Record| {
        let flow = printer.print(record);
        cx.out.flush();
        if cx.out.closed() {
            ControlFlow::Break(())
        } else {
            flow
        }
    };
    let mut note = |note: FollowNote| cx.out.note(words(&note));
    follower
        .follow(
            &filter,
            &cx.world.clock,
            &|| interrupt.flag().load(Ordering::SeqCst) || cx.out.abandoned(),
            &mut sink,
            &mut note,
        )
        .map_err(|e| unreadable(&e))?;
    Ok(Exit::OK)
}

fn words(note: &FollowNote) -> String {
    match note {
        FollowNote::Shrank => "the log shrank; reading it from its beginning".to_owned(),
        FollowNote::Invalid(1) => "1 line that is not a JSON object was skipped".to_owned(),
        FollowNote::Invalid(n) => format!("{n} lines that are not JSON objects were skipped"),
    }
}

fn bad_option(e: &BadOption) -> OpError {
    match e {
        BadOption::WorkItem { text, source } => crate::ops::desk::bad_ref(text, source),
        BadOption::Source(_) | BadOption::Level(_) => OpError::usage(e.to_string()),
        BadOption::When { .. } => OpError::usage(e.to_string())
            .hint("write an RFC 3339 time or date, or 30s 15m 2h 1d 2w ago"),
    }
}

fn unreadable(e: &ReadFault) -> OpError {
    OpError::new(
        Kind::Failed,
        format!("{}: cannot read the event log", e.path),
    )
    .because(&e.source)
}

/// Prints records as they come.
struct Printer<'a> {
    cx: &'a Context,
    by_line: bool,
    printed: u64,
}

impl<'a> Printer<'a> {
    fn new(cx: &'a Context, by_line: bool) -> Self {
        Self {
            cx,
            by_line,
            printed: 0,
        }
    }

    fn print(&mut self, record: &Record) -> ControlFlow<()> {
        let out = &self.cx.out;
        match out.format() {
            Format::Jsonl => self.stored(record),
            Format::Json if self.by_line => self.stored(record),
            Format::Json => {
                out.bytes(if self.printed == 0 { b"[\n" } else { b",\n" });
                out.bytes(record.line.trim_ascii_end());
            }
            Format::Text => {
                if self.printed == 0 {
                    out.line(columns(&Row::HEADS));
                }
                out.line(self.colored(&row(&record.fields)));
            }
        }
        self.printed += 1;
        if out.closed() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// The stored line, byte for byte.
    fn stored(&self, record: &Record) {
        self.cx.out.bytes(&record.line);
        if !record.line.ends_with(b"\n") {
            self.cx.out.bytes(b"\n");
        }
    }

    fn colored(&self, row: &Row) -> String {
        let text = columns(&row.cells());
        let code = match row.level.as_str() {
            "error" => "31",
            "warning" => "33",
            "debug" => "2",
            _ => return text,
        };
        if self.cx.out.color() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text
        }
    }

    /// Closes the array, also one without elements.
    fn end_of_array(&self) {
        let out = &self.cx.out;
        if out.format() == Format::Json && !self.by_line {
            out.bytes(if self.printed == 0 { b"[]\n" } else { b"\n]\n" });
        }
    }
}

/// Widths that hold nearly every cell; a stream cannot know its widest one.
fn columns(cells: &[&str; 6]) -> String {
    let widths = [24, 11, 8, 24, 24];
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(&super::render::padded(cell, width));
        line.push(' ');
    }
    line.push_str(cells[5]);
    line.trim_end().to_owned()
}
