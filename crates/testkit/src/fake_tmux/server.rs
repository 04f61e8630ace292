//! The tmux server of the model: sessions of one pane, buffers, clients, and the commands that the
//! program gives.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use the_loop::clock::Clock;
use the_loop::disk::{Disk, OsDisk};
use the_loop::harness::pane_exec::LaunchFile;
use the_loop::process::{Call, ProcessId, Signal};

use super::agent::{FakeAgent, Mood};

/// Bytes of a launch file that are read.
const LAUNCH_FILE_BYTES_MAX: u64 = 4 << 20;

/// Somebody attached.
#[derive(Clone, Copy, Debug)]
pub struct FakeClient {
    /// It only watches.
    pub read_only: bool,
    /// Its last key, Unix seconds.
    pub active_at: i64,
}

/// A session with its one pane.
#[derive(Debug)]
pub struct Session {
    pub process: ProcessId,
    pub env: BTreeMap<String, String>,
    pub argv: Vec<String>,
    pub cwd: Utf8PathBuf,
    /// Exit status of a dead pane.
    pub dead: Option<i32>,
    pub in_mode: bool,
    /// Number of its pane.
    pub pane: u32,
    /// The pane stays when its process ends, whatever the server says.
    pub kept: bool,
    /// Nobody can read its process's environment.
    pub secretive: bool,
    pub clients: Vec<FakeClient>,
    pub last_words: Vec<String>,
    /// The agent in it; a pane that runs something else has none.
    pub agent: Option<FakeAgent>,
}

/// Exit status, standard output and error of a command.
pub type Said = (i32, String, String);

/// Everything the model knows.
#[derive(Debug)]
pub struct Server {
    pub clock: Clock,
    pub sessions: BTreeMap<String, Session>,
    pub mood: Mood,
    /// Dead panes stay to be looked at.
    pub remain_on_exit: bool,
    /// Things that must never happen, in words.
    pub violations: Vec<String>,
    /// Names of sessions made, in order.
    pub made: Vec<String>,
    /// Names of sessions whose process was replaced, in order.
    pub respawned: Vec<String>,
    /// Every command, in words.
    pub log: Vec<String>,
    buffers: BTreeMap<String, Vec<u8>>,
    pids: i32,
}

fn refused(words: impl Into<String>) -> Said {
    (1, String::new(), words.into())
}

impl Server {
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            sessions: BTreeMap::new(),
            mood: Mood::default(),
            remain_on_exit: true,
            violations: Vec::new(),
            made: Vec::new(),
            respawned: Vec::new(),
            log: Vec::new(),
            buffers: BTreeMap::new(),
            pids: 40_000,
        }
    }

    /// Lets every agent do what is due.
    pub fn progress(&mut self) {
        for session in self.sessions.values_mut() {
            if let (None, Some(agent)) = (session.dead, &mut session.agent) {
                agent.progress(&mut self.mood);
            }
        }
    }

    /// One run of the program: commands in a row, until one fails.
    pub fn run(&mut self, call: &Call) -> Said {
        self.log.push(call.args.join(" "));
        let words: Vec<&str> = call.args.iter().map(String::as_str).collect();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += match *word {
                "-u" => 1,
                "-f" | "-L" => 2,
                _ => break,
            };
        }
        let mut out = String::new();
        for command in words[at.min(words.len())..].split(|word| *word == ";") {
            let (code, said, error) = self.command(command, call.stdin.as_deref());
            out.push_str(&said);
            if code != 0 {
                return (code, out, error);
            }
        }
        (0, out, String::new())
    }

    fn command(&mut self, words: &[&str], stdin: Option<&[u8]>) -> Said {
        let value_of = |flag: &str| {
            let at = words.iter().position(|word| *word == flag)?;
            words.get(at + 1).copied()
        };
        let has = |flag: &str| words.contains(&flag);
        let name = words.first().copied().unwrap_or_default();
        if self.sessions.is_empty() && !matches!(name, "new-session" | "-V") {
            return refused("no server running");
        }
        match name {
            "-V" => (0, "tmux 3.3a\n".to_owned(), String::new()),
            "new-session" => {
                let argv = words.iter().position(|word| *word == "--");
                let argv = argv.map_or(&[][..], |at| &words[at + 1..]);
                self.new_session(
                    value_of("-s").unwrap_or_default(),
                    value_of("-c").unwrap_or("/"),
                    argv,
                )
            }
            "load-buffer" => {
                let bytes = stdin.unwrap_or_default().to_vec();
                let name = value_of("-b").unwrap_or_default().to_owned();
                self.buffers.insert(name, bytes);
                (0, String::new(), String::new())
            }
            "delete-buffer" => match self.buffers.remove(value_of("-b").unwrap_or_default()) {
                Some(_) => (0, String::new(), String::new()),
                None => refused("no buffer"),
            },
            "list-panes" if has("-a") => {
                let format = value_of("-F").unwrap_or_default();
                let listed = self.sessions.iter();
                let rows: String = listed.map(|(name, s)| pane_row(format, name, s)).collect();
                (0, rows, String::new())
            }
            "list-clients" => {
                let format = value_of("-F").unwrap_or_default();
                let listed = self.sessions.iter();
                let rows = listed.map(|(name, s)| client_rows(format, name, s));
                (0, rows.collect(), String::new())
            }
            _ => {
                let Some(target) = self.target(value_of("-t")) else {
                    return refused("can't find session");
                };
                self.on_session(name, &target, words)
            }
        }
    }

    /// The session a command names. A name that is not exact is the mistake of which the real tmux makes
    /// a prefix match.
    fn target(&mut self, given: Option<&str>) -> Option<String> {
        let given = given?;
        let Some(exact) = given.strip_prefix('=') else {
            self.violations
                .push(format!("the target {given} is not exact"));
            return None;
        };
        let (name, pane) = exact.split_once(':').unwrap_or((exact, ""));
        let session = self.sessions.get(name)?;
        let found = pane.is_empty() || pane == format!(".{}", session.pane());
        found.then(|| name.to_owned())
    }

    fn on_session(&mut self, name: &str, target: &str, words: &[&str]) -> Said {
        let value_of = |flag: &str| {
            let at = words.iter().position(|word| *word == flag)?;
            words.get(at + 1).copied()
        };
        let nothing = (0, String::new(), String::new());
        let Some(session) = self.sessions.get_mut(target) else {
            return refused("can't find session");
        };
        match name {
            "list-panes" => {
                let row = pane_row(value_of("-F").unwrap_or_default(), target, session);
                (0, row, String::new())
            }
            "capture-pane" => {
                let mut rows = session.last_words.clone();
                if let (None, Some(agent)) = (session.dead, &session.agent) {
                    rows.extend(agent.rows());
                }
                (0, rows.join("\n") + "\n", String::new())
            }
            "paste-buffer" => {
                let buffer = value_of("-b").unwrap_or_default();
                let Some(bytes) = self.buffers.remove(buffer) else {
                    return refused("no buffer");
                };
                if session.dead.is_some() {
                    self.buffers.insert(buffer.to_owned(), bytes);
                    return refused("target pane has exited");
                }
                let text = String::from_utf8_lossy(&bytes);
                let bracketed = words.contains(&"-p");
                if let Some(agent) = &mut session.agent
                    && agent.paste(&text, bracketed, &mut self.mood)
                {
                    self.violations
                        .push(format!("pasted into a question of {target}"));
                }
                nothing
            }
            "copy-mode" => {
                session.in_mode = false;
                nothing
            }
            "set-option" => {
                if words.contains(&"-p") {
                    session.kept = words.last() == Some(&"on");
                }
                nothing
            }
            "display-message" => (0, format!("{}\n", session.process.pid), String::new()),
            "respawn-pane" => {
                if session.dead.is_none() && self.mood.stubborn {
                    self.violations
                        .push(format!("the old process of {target} lives on"));
                }
                let argv = words.iter().position(|word| *word == "--");
                let argv = argv.map_or(&[][..], |at| &words[at + 1..]);
                self.respawn(target, argv);
                nothing
            }
            "kill-session" => {
                if session.dead.is_none() {
                    self.violations
                        .push(format!("the live {target} was killed"));
                }
                self.sessions.remove(target);
                nothing
            }
            other => {
                self.violations
                    .push(format!("the command {other} is not in the model"));
                refused("unknown command")
            }
        }
    }

    fn new_session(&mut self, name: &str, cwd: &str, argv: &[&str]) -> Said {
        if self.sessions.contains_key(name) {
            return refused(format!("duplicate session: {name}"));
        }
        self.made.push(name.to_owned());
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let pid = self.add(name, cwd.into(), argv, BTreeMap::new());
        let pane = self.sessions[name].pane();
        self.become_harness(name);
        (0, format!("{pid} {pane}\n"), String::new())
    }

    /// Puts a session there that runs something.
    pub fn add(
        &mut self,
        name: &str,
        cwd: Utf8PathBuf,
        argv: Vec<String>,
        env: BTreeMap<String, String>,
    ) -> i32 {
        self.pids += 1;
        let process = ProcessId {
            pid: self.pids,
            started: u64::from(self.pids.unsigned_abs()) * 7,
        };
        let session = Session {
            process,
            env,
            argv,
            cwd,
            dead: None,
            in_mode: false,
            pane: self.pids.unsigned_abs(),
            kept: false,
            secretive: false,
            clients: Vec::new(),
            last_words: Vec::new(),
            agent: None,
        };
        self.sessions.insert(name.to_owned(), session);
        self.pids
    }

    /// Another process in the pane of a session.
    fn respawn(&mut self, name: &str, argv: &[&str]) {
        self.pids += 1;
        let process = ProcessId {
            pid: self.pids,
            started: u64::from(self.pids.unsigned_abs()) * 7,
        };
        if let Some(session) = self.sessions.get_mut(name) {
            session.process = process;
            session.argv = argv.iter().map(|word| (*word).to_owned()).collect();
            session.dead = None;
            session.agent = None;
            session.last_words.clear();
        }
        self.respawned.push(name.to_owned());
        self.become_harness(name);
    }

    /// What `pane-exec` does: reads the launch file, removes it, becomes the program.
    fn become_harness(&mut self, name: &str) {
        let Some(session) = self.sessions.get_mut(name) else {
            return;
        };
        let Some([_, verb, file]) = session.argv.get(..3) else {
            return self.exit(name, 127, "pane-exec: no launch file".to_owned());
        };
        let bytes = OsDisk.read(file.as_str().into(), LAUNCH_FILE_BYTES_MAX);
        let _ = OsDisk.remove(file.as_str().into());
        let launch: Option<LaunchFile> = bytes.ok().and_then(|b| serde_json::from_slice(&b).ok());
        let Some(launch) = launch.filter(|_| verb == "pane-exec") else {
            return self.exit(name, 126, "pane-exec: cannot read its file".to_owned());
        };
        session.argv = std::iter::once(launch.program).chain(launch.argv).collect();
        session.env = launch.env;
        session.cwd = launch.cwd;
        self.start_agent(name);
    }

    /// Starts the agent that a session's command line asks for.
    pub fn start_agent(&mut self, name: &str) {
        let Some(session) = self.sessions.get_mut(name) else {
            return;
        };
        match FakeAgent::start(&self.clock, &session.argv, &session.env, &mut self.mood) {
            Ok(mut agent) => {
                agent.progress(&mut self.mood);
                if self.mood.exit_with_prompt > 0 {
                    self.mood.exit_with_prompt -= 1;
                    session.dead = Some(1);
                }
                session.agent = Some(agent);
            }
            Err(words) => self.exit(name, 1, words),
        }
    }

    /// The pane's process ends.
    pub fn exit(&mut self, name: &str, code: i32, words: String) {
        if let Some(session) = self.sessions.get_mut(name) {
            session.dead = Some(code);
            session.agent = None;
            session.last_words.push(words);
            if !self.remain_on_exit && !session.kept {
                self.sessions.remove(name);
            }
        }
    }

    /// A signal to a pane's process.
    pub fn signal(&mut self, process: ProcessId, signal: Signal) -> bool {
        let found = self
            .sessions
            .iter_mut()
            .find(|(_, s)| s.process == process && s.dead.is_none());
        let Some((name, session)) = found else {
            return false;
        };
        if signal == Signal::Term {
            if self.mood.stubborn {
                return true;
            }
            if let Some(agent) = &mut session.agent {
                agent.end(&self.mood);
            }
        }
        let name = name.clone();
        self.exit(&name, 143, "ended by a signal".to_owned());
        true
    }

    /// The living process with this pid.
    pub fn process(&self, pid: i32) -> Option<&Session> {
        self.sessions
            .values()
            .find(|s| s.process.pid == pid && s.dead.is_none())
    }
}

impl Session {
    /// The number of its pane.
    fn pane(&self) -> String {
        format!("%{}", self.pane)
    }
}

fn client_rows(format: &str, name: &str, session: &Session) -> String {
    let rows = session.clients.iter().map(|client| {
        let read_only = if client.read_only { "1" } else { "0" };
        let row = format
            .replace("#{client_readonly}", read_only)
            .replace("#{client_activity}", &client.active_at.to_string())
            .replace("#{session_name}", name)
            .replace("#{pane_id}", &session.pane());
        format!("{row}\n")
    });
    rows.collect()
}

fn pane_row(format: &str, name: &str, session: &Session) -> String {
    let flag = |set: bool| if set { "1" } else { "0" };
    let status = session.dead.map_or_else(String::new, |c| c.to_string());
    let title = session.agent.as_ref().map(FakeAgent::title);
    let row = format
        .replace("#{session_name}", name)
        .replace("#{pane_pid}", &session.process.pid.to_string())
        .replace("#{pane_dead}", flag(session.dead.is_some()))
        .replace("#{pane_dead_status}", &status)
        .replace("#{pane_in_mode}", flag(session.in_mode))
        .replace("#{pane_id}", &session.pane())
        .replace("#{pane_width}", "200")
        .replace("#{pane_height}", "50")
        .replace("#{pane_title}", &title.unwrap_or_default());
    format!("{row}\n")
}
