//! Completion of command lines (SE-17): the script of a shell asks this program, which knows its grammar
//! and the refs on disk.

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use clap::{Arg, Command as Clap, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use the_loop_core::config::Settings;

use super::args::{Cli, Shell};
use super::context::{Context, Ended};
use super::exit::Exit;
use crate::harness::adapter::Adapters;
use crate::ops::desk::Desk;
use crate::ops::error::OpError;
use crate::settings::{self, Overrides};
use crate::world::World;

/// Set by the scripts alone: the shell that asks.
pub const VARIABLE: &str = "THE_LOOP_COMPLETE";
/// How long refs may be looked for.
const REFS_WITHIN: Duration = Duration::from_millis(50);

/// `completions SHELL`.
pub fn script(cx: &mut Context, shell: Shell) -> Ended {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Elvish => "elvish",
        Shell::Power => "powershell",
    };
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let completer = shells
        .completer(name)
        .ok_or_else(|| OpError::usage(format!("no script is known for {name}")))?;
    completer
        .write_registration(VARIABLE, "the-loop", "the-loop", "the-loop", &mut script)
        .map_err(|e| OpError::failed("cannot make the script", &e))?;
    cx.out.bytes(&script);
    Ok(Exit::OK)
}

/// Answers a script: `words` is this program, `--`, and the line so far. Faults are silent.
pub fn answer(world: &World, shell: &str, words: &[OsString]) -> Vec<u8> {
    let mut answer = Vec::new();
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(shell) else {
        return answer;
    };
    let line = words.iter().skip_while(|word| *word != "--").skip(1);
    let line: Vec<OsString> = line.cloned().collect();
    if line.is_empty() {
        return answer;
    }
    let mut command = with_values(Cli::command(), &Arc::new(Values::new(world, &line)));
    command.build();
    let dir = Some(world.cwd.as_std_path());
    let _ = completer.write_complete(&mut command, line, dir, &mut answer);
    answer
}

/// What stands for values on this machine, looked up when it is first asked for.
struct Values {
    world: World,
    config: Option<String>,
    refs: OnceLock<Vec<String>>,
}

impl Values {
    fn new(world: &World, line: &[OsString]) -> Self {
        let config = line.windows(2).rev().find_map(|pair| {
            let flag = pair[0] == "-c" || pair[0] == "--config";
            flag.then(|| pair[1].to_string_lossy().into_owned())
        });
        Self {
            world: world.clone(),
            config,
            refs: OnceLock::new(),
        }
    }

    /// The harnesses of this release and those that the settings declare.
    fn harnesses(&self) -> Vec<String> {
        let (world, config) = (self.world.clone(), self.config.as_deref());
        let loaded = settings::prepare(world, config, &Overrides::default()).loaded;
        let settings = loaded.map_or_else(|_| Arc::default(), |loaded| loaded.settings);
        let adapters = Adapters::of(&settings);
        adapters.names().into_iter().map(str::to_owned).collect()
    }

    /// The items that records and tickets name.
    fn refs(&self) -> &[String] {
        self.refs.get_or_init(|| {
            let (send, receive) = mpsc::channel();
            let (world, config) = (self.world.clone(), self.config.clone());
            std::thread::spawn(move || {
                let _ = send.send(refs_on_disk(world, config.as_deref()));
            });
            receive.recv_timeout(REFS_WITHIN).unwrap_or_default()
        })
    }
}

fn refs_on_disk(world: World, config: Option<&str>) -> Vec<String> {
    let prepared = settings::prepare(world, config, &Overrides::default());
    let Ok(loaded) = prepared.loaded else {
        return Vec::new();
    };
    let desk = Desk::new(&prepared.world, loaded, None, Duration::ZERO);
    let sessions = desk
        .registry()
        .list()
        .map(|l| l.records)
        .unwrap_or_default();
    let portables = desk
        .portable()
        .list()
        .map(|l| l.records)
        .unwrap_or_default();
    let tickets = desk
        .tickets()
        .list(None)
        .map(|t| t.tickets)
        .unwrap_or_default();
    let mut refs: Vec<String> = sessions
        .iter()
        .map(|found| found.record.item.to_string())
        .chain(portables.iter().map(|found| found.record.item.to_string()))
        .chain(tickets.iter().map(|ticket| ticket.item.to_string()))
        .collect();
    refs.sort_unstable();
    refs.dedup();
    refs
}

/// The grammar with completers on the arguments that stand for something on this machine.
fn with_values(command: Clap, values: &Arc<Values>) -> Clap {
    let command = command.mut_args(|arg| complete(arg, values));
    command.mut_subcommands(|below| with_values(below, values))
}

fn complete(arg: Arg, values: &Arc<Values>) -> Arg {
    let names: Vec<String> = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect();
    match names.first().map(String::as_str) {
        Some("REF" | "REF|N") => {
            let values = Arc::clone(values);
            arg.add(ArgValueCompleter::new(move |current: &OsStr| {
                those_that_begin(current, values.refs().iter().cloned())
            }))
        }
        Some("KEY") => arg.add(ArgValueCompleter::new(|current: &OsStr| {
            // What is below a name of the operator's own is no key before that name is there.
            let keys = Settings::rows().into_iter().map(|row| row.path);
            let keys = keys.filter(|path| !path.contains('<'));
            those_that_begin(current, keys)
        })),
        Some("NAME") if arg.get_id() == "harness" => {
            let values = Arc::clone(values);
            arg.add(ArgValueCompleter::new(move |current: &OsStr| {
                those_that_begin(current, values.harnesses())
            }))
        }
        Some(_) | None => arg,
    }
}

fn those_that_begin(
    current: &OsStr,
    all: impl IntoIterator<Item = String>,
) -> Vec<CompletionCandidate> {
    let begin = current.to_string_lossy();
    all.into_iter()
        .filter(|value| value.starts_with(&*begin))
        .map(CompletionCandidate::new)
        .collect()
}
