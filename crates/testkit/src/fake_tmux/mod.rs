//! A model of a tmux server and of the agents in its panes, which outlives the program that talks to it.
//!
//! It answers exactly the commands that the program gives, and writes down what must never happen: a live
//! pane killed, a name that is not exact, a paste into a question. Other programs, such as git, are real.

mod agent;
mod server;

use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use the_loop::clock::Clock;
use the_loop::process::{Answer, Call, NoAnswer, OsProcesses, ProcessId, Processes, Signal};
use the_loop_core::environment::Environ;

pub use agent::Mood;
pub use server::{FakeClient, Server, Session};

use crate::fuse::{Fuse, Turn};

/// What a tmux command does instead of answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It has no effect and does not answer.
    Hangs,
    /// It has its effect and does not answer.
    HangsAfter,
    /// There is no server.
    NoServer,
    /// It says that the name is taken.
    Duplicate,
    /// It refuses.
    Refuses,
}

#[derive(Clone, Debug)]
struct Planned {
    word: String,
    skip: u32,
    times: u32,
    trouble: Trouble,
}

/// What happens beside a command, once.
struct Beside {
    word: String,
    act: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Beside")
            .field("word", &self.word)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Model {
    server: Server,
    planned: Vec<Planned>,
    beside: Vec<Beside>,
}

/// A handle to the model, as one run of the program has it: its fuse ends that run, not the model.
#[derive(Clone, Debug)]
pub struct FakeTmux {
    model: Arc<Mutex<Model>>,
    clock: Clock,
    fuse: Fuse,
}

impl FakeTmux {
    /// A machine without a tmux server.
    pub fn new(clock: &Clock) -> Self {
        let server = Server::new(clock.clone());
        let model = Model {
            server,
            planned: Vec::new(),
            beside: Vec::new(),
        };
        Self {
            model: Arc::new(Mutex::new(model)),
            clock: clock.clone(),
            fuse: Fuse::new(),
        }
    }

    /// The same machine for another run of the program.
    #[must_use]
    pub fn under(&self, fuse: Fuse) -> Self {
        Self {
            fuse,
            ..self.clone()
        }
    }

    /// Looks at the server, or changes it as a person at the machine would.
    pub fn server<T>(&self, look: impl FnOnce(&mut Server) -> T) -> T {
        let mut model = self.model();
        model.server.progress();
        look(&mut model.server)
    }

    /// The next `times` commands that contain `word` go wrong, after `skip` that do not.
    pub fn plan(&self, word: &str, skip: u32, times: u32, trouble: Trouble) {
        self.model().planned.push(Planned {
            word: word.to_owned(),
            skip,
            times,
            trouble,
        });
    }

    /// Does something else in the world right before the next command that contains `word`.
    pub fn beside(&self, word: &str, act: impl FnOnce() + Send + 'static) {
        self.model().beside.push(Beside {
            word: word.to_owned(),
            act: Box::new(act),
        });
    }

    /// Nothing goes wrong any more.
    pub fn mend(&self) {
        self.model().planned.clear();
    }

    /// The server dies with everything in it.
    pub fn server_dies(&self) {
        self.server(|server| server.sessions.clear());
    }

    /// The process in a pane dies without a word, as by SIGKILL.
    pub fn agent_dies(&self, name: &str) {
        self.server(|server| server.exit(name, 137, String::new()));
    }

    /// Somebody types into a pane.
    pub fn types(&self, name: &str, keys: &str) {
        self.server(|server| {
            let Some(session) = server.sessions.get_mut(name) else {
                return;
            };
            if let Some(agent) = &mut session.agent {
                for key in keys.chars() {
                    agent.key(key, &mut server.mood);
                }
            }
        });
    }

    /// Is there a live pane whose agent asks?
    pub fn asks(&self, name: &str) -> bool {
        self.server(|server| {
            let session = server.sessions.get(name);
            session
                .and_then(|s| s.agent.as_ref())
                .is_some_and(agent::FakeAgent::asks)
        })
    }

    /// What stands in the composer of a pane.
    pub fn composer(&self, name: &str) -> String {
        self.server(|server| {
            let agent = server.sessions.get(name).and_then(|s| s.agent.as_ref());
            agent.map_or_else(String::new, |agent| agent.composer().to_owned())
        })
    }

    /// Names of sessions with a living process.
    pub fn live(&self) -> Vec<String> {
        self.server(|server| {
            let live = server.sessions.iter().filter(|(_, s)| s.dead.is_none());
            live.map(|(name, _)| name.clone()).collect()
        })
    }

    /// What must never happen and did.
    pub fn violations(&self) -> Vec<String> {
        self.server(|server| server.violations.clone())
    }

    fn model(&self) -> std::sync::MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tmux(&self, call: &Call) -> Answer {
        let words = call.args.join(" ");
        let due = {
            let mut model = self.model();
            let at = model.beside.iter().position(|b| words.contains(&b.word));
            at.map(|at| model.beside.remove(at))
        };
        if let Some(due) = due {
            (due.act)();
        }
        let mut model = self.model();
        model.server.progress();
        match model.trouble(&words) {
            None => answer(model.server.run(call)),
            Some(Trouble::Hangs) => self.hang(call),
            Some(Trouble::HangsAfter) => {
                model.server.run(call);
                self.hang(call)
            }
            Some(Trouble::NoServer) => answer((1, String::new(), "no server running".to_owned())),
            Some(Trouble::Duplicate) => {
                answer((1, String::new(), "duplicate session: as told".to_owned()))
            }
            Some(Trouble::Refuses) => answer((1, String::new(), "refused, as told".to_owned())),
        }
    }

    fn hang(&self, call: &Call) -> Answer {
        self.clock.advance(call.timeout);
        no_answer(call)
    }
}

impl Model {
    fn trouble(&mut self, words: &str) -> Option<Trouble> {
        let at = self.planned.iter().position(|p| words.contains(&p.word))?;
        let planned = &mut self.planned[at];
        if planned.skip > 0 {
            planned.skip -= 1;
            return None;
        }
        let trouble = planned.trouble;
        planned.times = planned.times.saturating_sub(1);
        if planned.times == 0 {
            self.planned.remove(at);
        }
        Some(trouble)
    }
}

fn answer((code, out, err): server::Said) -> Answer {
    Answer {
        exit: Ok(code),
        stdout: out.into_bytes(),
        stderr: err.into_bytes(),
    }
}

fn no_answer(call: &Call) -> Answer {
    Answer {
        exit: Err(NoAnswer::TimedOut(call.timeout)),
        stdout: Vec::new(),
        stderr: Vec::new(),
    }
}

impl Processes for FakeTmux {
    fn run(&self, call: &Call) -> Answer {
        let run = || match call.program.as_str() {
            "tmux" => self.tmux(call),
            _ => OsProcesses.run(call),
        };
        let what = || format!("run {} {}", call.program, call.args.join(" "));
        match self.fuse.turn(what) {
            Turn::Go => run(),
            Turn::Fail => no_answer(call),
            Turn::GoThenFail => {
                run();
                no_answer(call)
            }
        }
    }

    fn started(&self, pid: i32) -> Option<u64> {
        self.server(|server| server.process(pid).map(|s| s.process.started))
    }

    fn environment(&self, pid: i32, name: &str) -> Option<String> {
        self.server(|server| server.process(pid)?.env.get(name).cloned())
    }

    fn environ(&self, pid: i32) -> Option<Environ> {
        self.server(|server| {
            let session = server.process(pid).filter(|s| !s.secretive)?;
            let vars = session.env.iter();
            Some(vars.map(|(name, value)| (name, value.as_bytes())).collect())
        })
    }

    fn argv(&self, pid: i32) -> Vec<String> {
        self.server(|server| server.process(pid).map(|s| s.argv.clone()))
            .unwrap_or_default()
    }

    fn cwd(&self, pid: i32) -> Option<Utf8PathBuf> {
        self.server(|server| server.process(pid).map(|s| s.cwd.clone()))
    }

    fn carrying(&self, name: &str, value: &str) -> Vec<ProcessId> {
        self.server(|server| {
            let live = server.sessions.values().filter(|s| s.dead.is_none());
            live.filter(|s| s.env.get(name).is_some_and(|v| v == value))
                .map(|s| s.process)
                .collect()
        })
    }

    fn signal(&self, process: ProcessId, signal: Signal) -> bool {
        match self.fuse.turn(|| format!("signal {process:?}")) {
            Turn::Go => self.server(|server| server.signal(process, signal)),
            Turn::Fail => false,
            Turn::GoThenFail => {
                self.server(|server| server.signal(process, signal));
                false
            }
        }
    }

    fn signal_group(&self, leader: ProcessId, signal: Signal) -> bool {
        self.signal(leader, signal)
    }
}
