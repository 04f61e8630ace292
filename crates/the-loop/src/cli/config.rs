//! `config path|check|show|schema` (SE-78 to SE-80, SE-83).

use the_loop_core::redact::visible;

use super::args::ConfigCommand;
use super::context::{Context, Ended};
use super::exit::Exit;
use crate::ops::config::{self, PathReport};
use crate::ops::error::{Kind, OpError};

/// Runs it. All but `show` work whatever the file holds (SE-12).
pub fn run(cx: &mut Context, command: &ConfigCommand) -> Ended {
    match command {
        ConfigCommand::Path { all } => {
            path(cx, *all);
            Ok(Exit::OK)
        }
        ConfigCommand::Check { file } => Ok(check(cx, file.as_deref())),
        ConfigCommand::Show { key, origin } => show(cx, key.as_deref(), *origin),
        ConfigCommand::Schema => {
            cx.out.bytes(config::json_schema_text().as_bytes());
            Ok(Exit::OK)
        }
    }
}

fn path(cx: &Context, all: bool) {
    let report = config::path(&cx.world, cx.global.config.as_deref());
    for warning in &report.warnings {
        cx.out.warning(visible(&warning.message));
        if let Some(hint) = &warning.hint {
            cx.out.hint(visible(hint));
        }
    }
    if cx.out.json_wanted() {
        cx.out.json(&report.json());
    } else if all {
        for line in report.all_lines() {
            cx.out.line(visible(&line));
        }
    } else if let Some(path) = &report.path {
        cx.out.line(visible(path.as_str()));
    }
    if report.path.is_none() {
        cx.out.aside(PathReport::NONE);
    }
}

fn check(cx: &Context, file: Option<&str>) -> Exit {
    let report = config::check(&cx.world, cx.global.config.as_deref(), file);
    let home = cx.world.home.clone();
    for line in report.warning_lines(home.as_deref()) {
        cx.out.warning(visible(&line));
    }
    if cx.out.json_wanted() {
        cx.out.json(&report.json());
    } else {
        for line in report.lines(home.as_deref()) {
            cx.out.line(visible(&line));
        }
    }
    Exit(report.exit_code())
}

fn show(cx: &mut Context, key: Option<&str>, origin: bool) -> Ended {
    let loaded = cx.loaded(None)?;
    let shown = config::show(&loaded, key).map_err(|e| {
        let made = OpError::new(Kind::NotFound, visible(&e.to_string()));
        match e.hint {
            Some(hint) => made.hint(hint),
            None => made,
        }
    })?;
    if cx.out.json_wanted() {
        cx.out.json(&shown.json(origin));
    } else {
        cx.out.bytes(shown.yaml(origin).as_bytes());
    }
    Ok(Exit::OK)
}
