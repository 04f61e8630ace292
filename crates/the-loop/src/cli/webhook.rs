//! `webhook setup`.

use std::time::Duration;

use the_loop_core::redact::visible;

use super::args::Webhook;
use super::context::{Context, Ended};
use super::exit::Exit;
use crate::ops::desk::Desk;
use crate::ops::hooks::{Report, Row, Seen, Setup, name, setup};

/// Nothing is waited for.
const PATIENCE: Duration = Duration::ZERO;

/// Runs it.
pub fn run(cx: &mut Context, command: &Webhook) -> Ended {
    let Webhook::Setup {
        repo,
        url,
        renew_secret,
        dry_run,
    } = command;
    let loaded = cx.loaded(None)?;
    let desk = Desk::new(&cx.world, loaded, None, PATIENCE);
    let asked = Setup {
        repos: repo.clone(),
        url: url.clone(),
        renew_secret: *renew_secret,
        dry_run: *dry_run,
    };
    let report = setup(&desk, &asked)?;
    for warning in &report.warnings {
        cx.out.warning(visible(warning));
    }
    if cx.out.json_wanted() {
        cx.out.json(&report.json());
    } else {
        print(cx, &report);
    }
    for row in &report.rows {
        if let Err(error) = &row.outcome {
            cx.out.error(error);
        }
    }
    Ok(Exit::of(report.ok()))
}

fn print(cx: &Context, report: &Report) {
    for row in &report.rows {
        if let Ok(seen) = &row.outcome {
            print_row(cx, row, seen, report.dry_run);
        }
    }
    for (host, ranges) in &report.ranges {
        let ranges: Vec<String> = ranges.iter().map(|range| visible(range)).collect();
        cx.out
            .line(format!("firewall   {host} calls from {}", ranges.join(" ")));
    }
}

fn print_row(cx: &Context, row: &Row, seen: &Seen, dry_run: bool) {
    let would = if dry_run { "would be " } else { "" };
    let why: Vec<&str> = seen.differences.iter().map(|d| d.as_str()).collect();
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(" ({})", why.join(", "))
    };
    let url = visible(&seen.url);
    let done = match seen.done.as_str() {
        "unchanged" => "unchanged".to_owned(),
        done => format!("{would}{done}"),
    };
    cx.out
        .line(format!("{}: webhook {done}{why}, {url}", name(&row.repo)));
    for call in seen.failed() {
        cx.out.line(format!(
            "  failed   {}  {}  {} {}",
            visible(&call.delivered_at),
            visible(&call.event),
            call.status_code,
            visible(&call.status)
        ));
    }
}
