//! The command line: thin renderers over `ops` (sessions page).
//!
//! `args` is the grammar; `context`, `out`, `render` and `exit` are what all commands share; the other
//! files hold one group of commands each.

mod args;
mod complete;
mod config;
mod context;
mod daemon;
mod deliveries;
mod demo;
pub mod docs;
mod events;
mod exit;
mod guard;
mod out;
mod poll;
mod render;
mod restart;
mod sessions;
mod signals;
mod tickets;
mod webhook;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use self::args::{Cli, Command, Format};
use self::context::{Context, Ended, Failure};
use self::out::Out;
use crate::ops::error::OpError;
use crate::world::World;

pub use self::docs::{command, reference_markdown};
pub use self::exit::Exit;

/// Runs one command line, the program's name first. Prints; the caller only has to exit.
pub fn run(world: World, words: Vec<OsString>) -> Exit {
    if let Some(shell) = world.var(complete::VARIABLE) {
        use std::io::Write;
        let answer = complete::answer(&world, shell, &words);
        let _ = std::io::stdout().write_all(&answer);
        return Exit::OK;
    }
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(e) => return usage(e),
    };
    let mut cx = Context {
        out: Out::new(&world, &cli.global),
        world,
        global: cli.global.clone(),
    };
    let ended = one_config(&words).and_then(|()| dispatch(&mut cx, &cli.command));
    cx.end(ended)
}

/// Help and version are answers; everything else that the parser says is a usage error (SE-1).
fn usage(mut e: clap::Error) -> Exit {
    leave_hidden_out(&mut e);
    let _ = e.print();
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::OK,
        _ => Exit::USAGE,
    }
}

/// The parser names every subcommand where one is missing, also those that are not for people.
fn leave_hidden_out(e: &mut clap::Error) {
    let Some(ContextValue::Strings(names)) = e.get(ContextKind::ValidSubcommand).cloned() else {
        return;
    };
    let known = Cli::command();
    let is_hidden = |name: &String| {
        known
            .find_subcommand(name)
            .is_some_and(clap::Command::is_hide_set)
    };
    let names = names.into_iter().filter(|name| !is_hidden(name));
    let names = ContextValue::Strings(names.collect());
    e.insert(ContextKind::ValidSubcommand, names);
}

/// `--config` may stand before and after the command, but not with two values (CF-1).
fn one_config(words: &[OsString]) -> Result<(), Failure> {
    let mut seen: Option<String> = None;
    let mut words = words.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        let value = if word == "-c" || word == "--config" {
            words.next().map(std::borrow::Cow::into_owned)
        } else {
            word.strip_prefix("--config=").map(str::to_owned)
        };
        let Some(value) = value else { continue };
        if seen.as_ref().is_some_and(|seen| *seen != value) {
            let made = OpError::usage("--config is given twice with different files");
            return Err(made.into());
        }
        seen = Some(value);
    }
    Ok(())
}

fn dispatch(cx: &mut Context, command: &Command) -> Ended {
    if cx.out.format() == Format::Jsonl && !matches!(command, Command::Events(_)) {
        return Err(OpError::usage("--format jsonl is for events only").into());
    }
    guard::check(cx, command)?;
    match command {
        Command::Start(args) => daemon::start(cx, args),
        Command::Run => daemon::run(cx),
        Command::Stop(args) => Ok(daemon::stop(cx, args)),
        Command::Restart(args) => daemon::restart(cx, args),
        Command::Status => Ok(daemon::status(cx)),
        Command::Poll(args) => poll::run(cx, args),
        Command::Webhook(command) => webhook::run(cx, command),
        Command::Sessions(command) => sessions::run(cx, command),
        Command::Deliveries(command) => deliveries::run(cx, command),
        Command::Tickets(command) => tickets::run(cx, command),
        Command::Events(args) => events::run(cx, args),
        Command::Config(command) => config::run(cx, command),
        Command::Completions { shell } => complete::script(cx, *shell),
        Command::Man { dir, command } => docs::man(cx, dir.as_deref(), command),
        Command::Hook { name, slug } => {
            crate::harness::hook::run(&cx.world, name, slug.as_deref(), std::io::stdin());
            Ok(Exit::OK)
        }
        Command::PaneExec { file } => {
            let file = cx.absolute(file);
            let error = crate::harness::pane_exec::run(&cx.world, &file);
            cx.out.error(&OpError::of(&error));
            Ok(Exit(error.exit_code()))
        }
        Command::DemoAgent(args) => {
            let code = crate::harness::demo::run(&cx.world, args);
            Ok(Exit(u8::try_from(code).unwrap_or(1)))
        }
        Command::Demo(args) => demo::run(cx, args),
    }
}
