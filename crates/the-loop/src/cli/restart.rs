//! `sessions restart` (SE-55 to SE-62).

use std::time::Duration;

use the_loop_core::redact::visible;

use super::args::{Dirs, ManyItems};
use super::context::{Context, Ended};
use super::exit::Exit;
use super::render;
use super::signals::Interrupt;
use crate::ops::error::OpError;
use crate::ops::sessions::restart::{How, Plan, RestartRow, Which, restart};

/// Width of the refs before the outcomes.
const REF_WIDTH: usize = 40;

/// What the command line says.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The items named.
    pub items: &'a ManyItems,
    /// All of them.
    pub all: bool,
    /// Look, and do nothing.
    pub dry_run: bool,
    /// Seconds to wait for the end of a turn.
    pub when_idle: Option<u64>,
    /// Although there is a draft.
    pub force: bool,
}

/// Runs it.
pub fn run(cx: &mut Context, asked: &Asked<'_>, dirs: &Dirs) -> Ended {
    let texts: Vec<&String> = asked
        .items
        .work_item
        .iter()
        .chain(&asked.items.refs)
        .collect();
    let items = match (asked.all, texts.is_empty()) {
        (true, false) => {
            let made = OpError::usage("--work-item and --all exclude each other");
            return Err(made.into());
        }
        (false, true) => {
            let made = OpError::usage("name sessions with --work-item REF, or take --all");
            return Err(made.into());
        }
        (true, true) => Vec::new(),
        (false, false) => cx.refs(&texts)?,
    };
    let desk = cx.desk(Some(dirs))?;
    let which = if asked.all {
        Which::All
    } else {
        Which::These(&items)
    };
    let plan = Plan::new(&desk, which)?;
    for problem in &plan.problems {
        cx.out.warning(visible(&problem.to_string()));
    }
    if let Some(words) = plan.malformed() {
        cx.out.warning(visible(&words));
    }
    let interrupt = Interrupt::listen();
    let how = How {
        dry_run: asked.dry_run,
        when_idle: asked.when_idle.map(Duration::from_secs),
        force: asked.force,
        actor: &cx.world.user,
        note: &cx.out,
        interrupted: interrupt.flag(),
    };
    let json = cx.out.json_wanted();
    if !json {
        cx.out.line(plan.header());
    }
    // Each session takes seconds: its row is shown when it is known.
    let mut show = |row: &RestartRow| {
        if !json {
            let item = render::padded(&row.item.to_string(), REF_WIDTH);
            let line = format!("{item} {} \u{2014} {}", row.outcome, row.detail);
            cx.out.line(visible(&line));
            cx.out.flush();
        }
    };
    let (report, told) = restart(&desk, &plan, &how, &mut show)?;
    for told in &told {
        if let Some(words) = told.outcome.words() {
            cx.out
                .note(format!("{}: told to go on: {words}", told.item));
        }
    }
    for item in &report.not_started {
        cx.out.aside(format!("error: {item}: not started"));
    }
    if json {
        cx.out.json(&report);
    }
    Ok(interrupt.exit(Exit::of(report.ok)))
}
