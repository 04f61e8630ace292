//! `sessions` (SE-27 to SE-33).

use std::collections::BTreeSet;

use serde_json::Value;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::redact::visible;
use the_loop_core::time::Timestamp;

use super::args::{Comment, ControlArgs, Dirs, ManyItems, OneItem, Sessions};
use super::context::{Context, Ended, Failure};
use super::exit::Exit;
use super::out::Out;
use super::render;
use super::signals::Interrupt;
use crate::ops::desk::parse_ref;
use crate::ops::error::OpError;
use crate::ops::sessions::attach;
use crate::ops::sessions::control::{self, ControlVerb, HolderNote, How};
use crate::ops::sessions::link_pr::link_pr;
use crate::ops::sessions::list::{Line, SessionQuery, list as list_sessions};
use crate::ops::sessions::register::{Registration, conversation_words, register};
use crate::ops::sessions::report::{Report, Stream};
use crate::ops::sessions::start::{Start, start as start_sessions};
use crate::store::lock::Holder;

/// Runs it.
pub fn run(cx: &mut Context, command: &Sessions) -> Ended {
    match command {
        Sessions::List {
            status,
            state,
            no_probe,
            dirs,
        } => {
            let query = SessionQuery {
                statuses: status.clone(),
                states: state.clone(),
                probe: !no_probe,
            };
            list(cx, &query, dirs)
        }
        Sessions::Attach {
            item,
            read_only,
            print,
            pull_request,
            dirs,
        } => attach_to(cx, item, pull_request.as_deref(), *read_only, *print, dirs),
        Sessions::Register {
            item,
            harness,
            harness_session_id,
            cwd,
            force,
            dirs,
        } => {
            let item = one(item)?;
            super::guard::own_item(cx, &item)?;
            let asked = Registration {
                cwd: cx.absolute(cwd),
                item,
                harness: harness.clone(),
                conversation: harness_session_id.clone(),
                force: *force,
            };
            bind(cx, &asked, dirs)
        }
        Sessions::LinkPr {
            item,
            pull_request,
            remove,
            dirs,
        } => link(cx, &one(item)?, pull_request, *remove, dirs),
        Sessions::Start {
            items,
            harness,
            wait,
            comment,
            dirs,
        } => {
            let items = many(cx, items)?;
            let desk = cx.desk(Some(dirs))?;
            let interrupt = Interrupt::listen();
            let how = Start {
                harness: harness.as_deref(),
                actor: &cx.world.user,
                no_wait: wait.no_wait,
                comment: wanted(*comment),
                stop: interrupt.flag(),
            };
            let report = start_sessions(&desk, &items, &how)?;
            Ok(interrupt.exit(print(cx, &report)))
        }
        Sessions::Pause { control } => act(cx, ControlVerb::Pause, control),
        Sessions::Resume { control } => act(cx, ControlVerb::Resume, control),
        Sessions::Stop { control, discard } => {
            act(cx, ControlVerb::Stop { discard: *discard }, control)
        }
        Sessions::Restart {
            items,
            all,
            dry_run,
            when_idle,
            force,
            dirs,
        } => {
            let asked = super::restart::Asked {
                items,
                all: *all,
                dry_run: *dry_run,
                when_idle: *when_idle,
                force: *force,
            };
            super::restart::run(cx, &asked, dirs)
        }
        Sessions::Close {
            items,
            keep_tmux,
            kill_tmux,
            discard,
            dirs,
        } => {
            let items = many(cx, items)?;
            let keep_tmux = match (keep_tmux, kill_tmux) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                (false, false) => None,
            };
            let verb = ControlVerb::Close {
                keep_tmux,
                discard: *discard,
            };
            let asked = Asked {
                comment: Some(false),
                all: false,
            };
            verb_on(cx, verb, &items, asked, dirs)
        }
    }
}

/// The one item that a flag or a position names.
fn one(item: &OneItem) -> Result<WorkItemRef, OpError> {
    let text = item.work_item.as_ref().or(item.positional.as_ref());
    parse_ref(text.map_or("", String::as_str))
}

/// The items that flags and positions name; at least one.
fn many(cx: &Context, items: &ManyItems) -> Result<Vec<WorkItemRef>, Failure> {
    let texts: Vec<&String> = items.work_item.iter().chain(&items.refs).collect();
    if texts.is_empty() {
        return Err(OpError::usage("name work items with --work-item or as arguments").into());
    }
    cx.refs(&texts)
}

/// `None`: nobody said.
fn wanted(comment: Comment) -> Option<bool> {
    match (comment.comment, comment.no_comment) {
        (_, true) => Some(false),
        (true, false) => Some(true),
        (false, false) => None,
    }
}

fn list(cx: &mut Context, query: &SessionQuery, dirs: &Dirs) -> Ended {
    let desk = cx.desk(Some(dirs))?;
    let found = list_sessions(&desk, query)?;
    for problem in &found.problems {
        cx.out.warning(visible(&problem.to_string()));
    }
    if let Some(fault) = &found.inbox_fault {
        cx.out.warning(visible(fault));
    }
    let now = cx.world.clock.now();
    if cx.out.json_wanted() {
        let all: Vec<Value> = found.lines.iter().map(|line| line.json(now)).collect();
        cx.out.json(&all);
        return Ok(Exit::OK);
    }
    let heads = [
        "Work item",
        "Harness",
        "Session id",
        "Tmux",
        "Status",
        "State",
        "Control",
        "Last event",
    ];
    let rows: Vec<Vec<String>> = found.lines.iter().map(|line| row(line, now)).collect();
    for line in render::table(&heads, &rows) {
        cx.out.line(line);
    }
    if rows.is_empty() {
        cx.out.aside("(no sessions registered)");
    }
    let mut said = BTreeSet::new();
    for line in &found.lines {
        let harness = line.record.as_ref().map(|record| record.harness.as_str());
        if let Some(harness) = harness.filter(|name| said.insert(*name)) {
            for cannot in &line.cannot {
                cx.out.note(format!("{harness}: {}", visible(cannot)));
            }
        }
    }
    Ok(Exit::OK)
}

fn row(line: &Line, now: Timestamp) -> Vec<String> {
    let record = line.record.as_ref();
    let indent = if line.indented { "  " } else { "" };
    let harness = record.map_or(String::new(), |record| {
        let star = match line.confirms {
            Some("none" | "screen") => "*",
            Some(_) | None => "",
        };
        format!("{}{star}", record.harness)
    });
    let text = |of: fn(&the_loop_core::record::SessionRecord) -> String| {
        render::or_dash(record.map_or(String::new(), of))
    };
    let last = record
        .and_then(|record| record.last_event_at)
        .or(line.waits.map(|(_, since)| since));
    vec![
        format!("{indent}{}", line.item),
        render::or_dash(harness),
        text(|record| record.harness_session_id.clone()),
        text(|record| record.tmux_target.clone()),
        line.status().to_owned(),
        line.state_words(now),
        render::or_dash(line.control_words().unwrap_or_default()),
        render::or_dash(last.map_or(String::new(), Timestamp::seconds)),
    ]
}

fn attach_to(
    cx: &mut Context,
    item: &OneItem,
    pull_request: Option<&str>,
    read_only: bool,
    print: bool,
    dirs: &Dirs,
) -> Ended {
    let item = one(item)?;
    let pull_request = match pull_request {
        Some(text) => Some(attach::pull_request(&item, text)?),
        None => None,
    };
    let desk = cx.desk(Some(dirs))?;
    let inside = cx.world.var("TMUX");
    let found = attach::attach(&desk, &item, pull_request.as_ref(), read_only, inside)?;
    if print {
        if cx.out.json_wanted() {
            cx.out
                .json(&serde_json::json!({ "command": found.command, "argv": found.argv }));
        } else {
            cx.out.line(&found.command);
        }
        return Ok(Exit::OK);
    }
    if !found.switches && !std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        let made = OpError::refused("this is no terminal");
        return Err(made.hint(found.command).into());
    }
    if let Some(note) = &found.note {
        cx.out.note(note);
    }
    cx.out.flush();
    let error = become_program(&found.argv);
    let made = OpError::failed(format!("cannot run {}", found.command), &error);
    Err(made
        .hint("is tmux installed? see routing.tmux.binary")
        .into())
}

/// This process goes on as the other program, in the same terminal. Comes back only with an error.
#[allow(
    clippy::disallowed_methods,
    reason = "nothing is run here and waited for: this process becomes tmux"
)]
fn become_program(argv: &[String]) -> std::io::Error {
    use std::os::unix::process::CommandExt;
    let Some((program, args)) = argv.split_first() else {
        return std::io::ErrorKind::NotFound.into();
    };
    std::process::Command::new(program).args(args).exec()
}

fn link(cx: &mut Context, item: &WorkItemRef, pull: &str, remove: bool, dirs: &Dirs) -> Ended {
    super::guard::own_item(cx, item)?;
    let pull = attach::pull_request(item, pull)?;
    let desk = cx.desk(Some(dirs))?;
    let note = |holder: &Holder| cx.out.note(format!("{item} is busy ({holder}); waiting"));
    let told = link_pr(&desk, item, &pull, remove, &note)?;
    if cx.out.json_wanted() {
        cx.out.json(&serde_json::json!({
            "ref": told.item, "pullRequest": told.pull_request, "linked": told.linked, "changed": told.changed,
        }));
    } else {
        cx.out.line(told.words());
    }
    Ok(Exit::OK)
}

fn bind(cx: &mut Context, asked: &Registration, dirs: &Dirs) -> Ended {
    let desk = cx.desk(Some(dirs))?;
    let note = |holder: &Holder| {
        cx.out
            .note(format!("{} is busy ({holder}); waiting", asked.item));
    };
    let bound = register(&desk, asked, &note)?;
    for warning in &bound.warnings {
        cx.out.warning(visible(warning));
    }
    let record = &bound.record;
    for cannot in &bound.cannot {
        cx.out
            .note(format!("{}: {}", record.harness, visible(cannot)));
    }
    if cx.out.json_wanted() {
        let mut value = serde_json::json!({ "ref": record.item, "replaced": bound.replaced });
        for (name, field) in record.to_map() {
            value[name.as_str()] = field;
        }
        cx.out.json(&value);
    } else {
        cx.out.line(format!(
            "registered {} -> {}",
            record.item,
            visible(&conversation_words(record))
        ));
    }
    Ok(Exit::OK)
}

fn act(cx: &mut Context, verb: ControlVerb, control: &ControlArgs) -> Ended {
    let items = if control.all {
        let desk = cx.desk(Some(&control.dirs))?;
        let all = control::all_items(&desk, verb)?;
        let machine = verb == ControlVerb::Resume && control::machine_is_parked(&desk)?;
        if all.is_empty() && !machine {
            cx.out.aside(format!("nothing to {}", verb.as_str()));
            return Ok(Exit::FAILED);
        }
        all
    } else {
        many(cx, &control.items)?
    };
    let asked = Asked {
        comment: wanted(control.comment),
        all: control.all,
    };
    verb_on(cx, verb, &items, asked, &control.dirs)
}

/// How a verb was asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    comment: Option<bool>,
    all: bool,
}

fn verb_on(
    cx: &mut Context,
    verb: ControlVerb,
    items: &[WorkItemRef],
    asked: Asked,
    dirs: &Dirs,
) -> Ended {
    let desk = cx.desk(Some(dirs))?;
    let interrupt = Interrupt::listen();
    let how = How {
        actor: &cx.world.user,
        comment: asked.comment,
        all: asked.all,
        note: &cx.out,
        interrupted: interrupt.flag(),
    };
    let report = control::control(&desk, verb, items, &how)?;
    Ok(interrupt.exit(print(cx, &report)))
}

impl HolderNote for Out {
    fn busy(&self, item: &WorkItemRef, holder: &Holder) {
        self.note(format!("{item} is busy ({holder}); waiting"));
    }
}

/// The report, as lines or as one document. With JSON only the warnings and errors go to stderr.
fn print(cx: &Context, report: &Report) -> Exit {
    for warning in &report.warnings {
        cx.out.warning(visible(warning));
    }
    let json = cx.out.json_wanted();
    if let Some(machine) = report.machine.as_ref().filter(|_| !json) {
        cx.out.line(&machine.message);
    }
    for message in report.items.iter().flat_map(|item| &item.messages) {
        match message.stream {
            Stream::Stdout if json => {}
            Stream::Stdout => cx.out.line(visible(&message.text)),
            Stream::Stderr => match message.text.strip_prefix("note: ") {
                Some(note) => cx.out.note(visible(note)),
                None => cx.out.aside(visible(&message.text)),
            },
        }
    }
    if json {
        cx.out.json(report);
    }
    Exit(report.exit_code)
}
