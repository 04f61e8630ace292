//! tmux: argv in, classified outcome out (DI-11 to DI-17).
//!
//! Every answer is classified by exit status and format output. A call that gave no exit status says
//! nothing about the world, and nothing is ever killed for it.

mod respawn;

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::limits::TMUX_ARGUMENT_BYTES_MAX;
use the_loop_core::probe::{ProvedDead, TmuxState};

use crate::process::{Answer, Call, NoAnswer, SharedProcesses};
use crate::world::World;

pub use respawn::{Leader, Respawned};

/// Names of our environment that a tmux server may see. It keeps what it was started with for ever, so
/// it gets nothing that could be a secret (DI-20).
const SERVER_ENV: [&str; 13] = [
    "PATH",
    "HOME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TMUX_TMPDIR",
    "XDG_RUNTIME_DIR",
    "TZ",
];

/// Width and height of a session nobody has attached to yet.
const SIZE: (&str, &str) = ("200", "50");

/// Sessions looked at with one call: their commands stay far below what tmux takes.
const SCREENS_AT_ONCE: usize = 50;

/// The field separator of format output; it cannot occur in a session name, and titles are last.
const SEP: char = '\t';

/// One pane, as a listing tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pane {
    /// Name of its session.
    pub session: String,
    /// Its process's pid.
    pub pid: i32,
    /// Its process has ended.
    pub dead: bool,
    /// Exit status of a dead pane, when it exited.
    pub exit_status: Option<i32>,
    /// It is in copy mode or another mode.
    pub in_mode: bool,
    /// How many clients are attached to the session.
    pub attached: u32,
    /// Title the program set: untrusted text.
    pub title: String,
}

/// All panes of the server by session, or why tmux did not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    panes: BTreeMap<String, Vec<Pane>>,
}

impl Snapshot {
    /// Panes of a session; empty when there is none of that exact name.
    pub fn panes(&self, target: &TmuxTarget) -> &[Pane] {
        self.panes.get(target.as_str()).map_or(&[], Vec::as_slice)
    }
    /// Live, dead or absent: a snapshot always knows.
    pub fn state(&self, target: &TmuxTarget) -> TmuxState {
        state_of(self.panes(target))
    }
    /// Sessions whose name has the shape of ours.
    pub fn targets(&self) -> impl Iterator<Item = TmuxTarget> + '_ {
        self.panes
            .keys()
            .filter_map(|name| TmuxTarget::parse(name).filter(|target| target.as_str() == name))
    }
    /// Is there any session at all?
    pub fn is_empty(&self) -> bool {
        self.panes.is_empty()
    }
}

fn state_of(panes: &[Pane]) -> TmuxState {
    if panes.is_empty() {
        TmuxState::Absent
    } else if panes.iter().all(|pane| pane.dead) {
        TmuxState::Dead
    } else {
        TmuxState::Live
    }
}

/// Somebody attached to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// It can only watch.
    pub read_only: bool,
    /// Last activity, Unix seconds.
    pub active_at: i64,
}

/// What a pane shows right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The session's first pane.
    pub pane: Pane,
    /// The visible rows as captured, with their styles (`harness::screen` reads them).
    pub text: String,
    /// Who is attached.
    pub clients: Vec<Client>,
}

/// Outcome of `new-session`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spawned {
    /// It exists now; the pid of its pane's process.
    Made {
        /// Pid of the launcher, which becomes the harness.
        pid: i32,
    },
    /// tmux refused and says that the name is taken. Only a reason to look again (DI-16).
    NameTaken,
    /// tmux refused for another reason.
    Refused(String),
    /// No answer: it may or may not exist.
    NoAnswer(NoAnswer),
}

/// Why a call for effect failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TmuxError {
    /// tmux answered and refused; its words.
    #[error("tmux refused: {0}")]
    Refused(String),
    /// tmux gave no answer.
    #[error("tmux: {0}")]
    NoAnswer(#[from] NoAnswer),
}

/// One tmux server of ours.
#[derive(Clone, Debug)]
pub struct Tmux {
    processes: SharedProcesses,
    env: BTreeMap<String, Option<String>>,
    binary: String,
    socket: String,
    config: Utf8PathBuf,
    timeout: Duration,
}

impl Tmux {
    /// A server by socket name (empty: the operator's own) with our configuration file.
    pub fn new(
        world: &World,
        binary: &str,
        socket: &str,
        config: &Utf8Path,
        timeout: Duration,
    ) -> Self {
        let env = SERVER_ENV
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), Some(world.env.get(*name)?.clone()))))
            .collect();
        Self {
            processes: world.processes.clone(),
            env,
            binary: binary.to_owned(),
            socket: socket.to_owned(),
            config: config.to_owned(),
            timeout,
        }
    }

    /// The same server under another socket name, for a session that was started on that one.
    #[must_use]
    pub fn on_socket(&self, socket: &str) -> Self {
        Self {
            socket: socket.to_owned(),
            ..self.clone()
        }
    }

    /// The socket's name.
    pub fn socket(&self) -> &str {
        &self.socket
    }

    /// The command a person types to attach, with socket and exact target (DI-11).
    pub fn attach_command(&self, target: &TmuxTarget, read_only: bool) -> String {
        let mut words = vec![self.binary.clone()];
        if !self.socket.is_empty() {
            words.extend(["-L".to_owned(), self.socket.clone()]);
        }
        words.push("attach".to_owned());
        if read_only {
            words.push("-r".to_owned());
        }
        words.extend(["-t".to_owned(), target.session()]);
        words.join(" ")
    }

    /// The command a person types to end a session by hand.
    pub fn kill_command(&self, target: &TmuxTarget) -> String {
        let socket = if self.socket.is_empty() {
            String::new()
        } else {
            format!(" -L {}", self.socket)
        };
        format!(
            "{}{socket} kill-session -t {}",
            self.binary,
            target.session()
        )
    }

    /// Program and arguments of an attach, for a command that becomes it.
    pub fn attach_argv(&self, target: &TmuxTarget, read_only: bool) -> Vec<String> {
        let mut argv = vec![self.binary.clone()];
        argv.extend(self.server_args());
        argv.push("attach-session".to_owned());
        if read_only {
            argv.push("-r".to_owned());
        }
        argv.extend(["-t".to_owned(), target.session()]);
        argv
    }

    fn server_args(&self) -> Vec<String> {
        let mut args = vec!["-f".to_owned(), self.config.to_string()];
        if !self.socket.is_empty() {
            args.extend(["-L".to_owned(), self.socket.clone()]);
        }
        args
    }

    fn call(&self, args: &[&str], stdin: Option<&[u8]>) -> Answer {
        // Where the locale names no character set, tmux would show the tabs of a listing as `_`.
        let mut all = vec!["-u".to_owned()];
        all.extend(self.server_args());
        all.extend(args.iter().map(|a| (*a).to_owned()));
        let mut call = Call::new(&self.binary, all).timeout(self.timeout);
        call.clear_env = true;
        call.env.clone_from(&self.env);
        call.stdin = stdin.map(<[u8]>::to_vec);
        self.processes.run(&call)
    }

    fn effect(&self, args: &[&str], stdin: Option<&[u8]>) -> Result<(), TmuxError> {
        let answer = self.call(args, stdin);
        match answer.exit {
            Ok(0) => Ok(()),
            Ok(_) => Err(TmuxError::Refused(answer.describe())),
            Err(why) => Err(TmuxError::NoAnswer(why)),
        }
    }

    /// The version line, as `tmux 3.3a`.
    pub fn version(&self) -> Result<String, TmuxError> {
        let answer = self.call(&["-V"], None);
        match &answer.exit {
            Ok(0) => Ok(answer.out().trim().to_owned()),
            Ok(_) => Err(TmuxError::Refused(answer.describe())),
            Err(why) => Err(TmuxError::NoAnswer(why.clone())),
        }
    }

    /// Every pane of the server, in one call. A server that does not run has none.
    pub fn snapshot(&self) -> Result<Snapshot, NoAnswer> {
        let answer = self.call(&["list-panes", "-a", "-F", PANE_FORMAT], None);
        match answer.exit {
            Ok(0) => {
                read_panes(&answer.out()).ok_or(NoAnswer::NotStarted("unreadable listing".into()))
            }
            // Exit 1 is also how tmux says that there is no server.
            Ok(_) => Ok(Snapshot::default()),
            Err(why) => Err(why),
        }
    }

    /// What holds this name? (DI-13)
    pub fn probe(&self, target: &TmuxTarget) -> TmuxState {
        match self.panes(target) {
            Ok(panes) => state_of(&panes),
            Err(_) => TmuxState::Unknown,
        }
    }

    /// Panes of exactly this session, in one call.
    pub fn panes(&self, target: &TmuxTarget) -> Result<Vec<Pane>, NoAnswer> {
        let filter = format!("#{{==:#{{session_name}},{target}}}");
        let answer = self.call(
            &["list-panes", "-a", "-f", &filter, "-F", PANE_FORMAT],
            None,
        );
        match answer.exit {
            Ok(0) => read_panes(&answer.out())
                .map(|snapshot| snapshot.panes(target).to_vec())
                .ok_or(NoAnswer::NotStarted("unreadable listing".into())),
            Ok(_) => Ok(Vec::new()),
            Err(why) => Err(why),
        }
    }

    /// Pane, clients and visible text of a session, in one call; `Ok(None)` when it is not there.
    pub fn view(&self, target: &TmuxTarget) -> Result<Option<View>, NoAnswer> {
        let (session, pane) = (target.session(), target.pane());
        let answer = self.call(
            &[
                "list-panes",
                "-s",
                "-t",
                &pane,
                "-F",
                PANE_FORMAT,
                ";",
                "list-clients",
                "-t",
                &session,
                "-F",
                CLIENT_FORMAT,
                ";",
                "capture-pane",
                "-p",
                "-e",
                "-t",
                &pane,
            ],
            None,
        );
        match answer.exit {
            Ok(0) => Ok(read_view(&answer.out(), target)),
            Ok(_) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// What these sessions show, in one call for every fifty; one that is not there is left out. tmux
    /// stops at the first that is not there, so those behind it are left out as well, until the next look.
    pub fn screens(&self, targets: &[TmuxTarget]) -> BTreeMap<String, View> {
        let mut screens = BTreeMap::new();
        for some in targets.chunks(SCREENS_AT_ONCE) {
            let panes: Vec<String> = some.iter().map(TmuxTarget::pane).collect();
            let mut args = Vec::new();
            for pane in &panes {
                args.extend(["list-panes", "-s", "-t", pane, "-F", PANE_FORMAT, ";"]);
                args.extend(["capture-pane", "-p", "-e", "-t", pane, ";"]);
            }
            args.pop();
            screens.extend(read_screens(&self.call(&args, None).out()));
        }
        screens
    }

    /// The last text of a pane, scrollback included: a dead pane's words scroll up by a line.
    pub fn tail(&self, target: &TmuxTarget, lines: usize) -> Vec<String> {
        let answer = self.call(
            &["capture-pane", "-p", "-S", "-", "-t", &target.pane()],
            None,
        );
        let text = if answer.ok() {
            answer.out()
        } else {
            String::new()
        };
        let rows: Vec<String> = text
            .lines()
            .map(|l| l.trim_end().to_owned())
            .filter(|l| !l.is_empty())
            .collect();
        rows[rows.len().saturating_sub(lines)..].to_vec()
    }

    /// Starts a session that runs `argv` directly, without a shell.
    pub fn new_session(&self, target: &TmuxTarget, cwd: &Utf8Path, argv: &[&str]) -> Spawned {
        let mut args = vec![
            "new-session",
            "-d",
            "-P",
            "-F",
            "#{pane_pid}",
            "-s",
            target.as_str(),
            "-x",
            SIZE.0,
            "-y",
            SIZE.1,
            "-c",
            cwd.as_str(),
            "--",
        ];
        args.extend_from_slice(argv);
        let length: usize = args.iter().map(|a| a.len() + 1).sum();
        if length > TMUX_ARGUMENT_BYTES_MAX {
            return Spawned::Refused(format!("the command would be {length} bytes long"));
        }
        let answer = self.call(&args, None);
        match &answer.exit {
            Ok(0) => match answer.out().trim().parse() {
                Ok(pid) => Spawned::Made { pid },
                Err(_) => Spawned::NoAnswer(NoAnswer::NotStarted("unreadable answer".into())),
            },
            Ok(_) if answer.err().contains("duplicate session") => Spawned::NameTaken,
            Ok(_) => Spawned::Refused(answer.describe()),
            Err(why) => Spawned::NoAnswer(why.clone()),
        }
    }

    /// Clears a session that was proved dead, and verifies: true when it is gone.
    pub fn clear_dead(&self, target: &TmuxTarget, _proof: ProvedDead) -> bool {
        self.kill(target)
    }

    /// Ends a session on somebody's wish to end it, and verifies: true when it is gone.
    pub fn end_session(&self, target: &TmuxTarget) -> bool {
        self.kill(target)
    }

    fn kill(&self, target: &TmuxTarget) -> bool {
        let killed = self
            .effect(&["kill-session", "-t", &target.session()], None)
            .is_ok();
        killed || self.probe(target) == TmuxState::Absent
    }

    /// Keeps (or no longer keeps) the panes of a session when their process ends.
    pub fn remain_on_exit(&self, target: &TmuxTarget, keep: bool) -> Result<(), TmuxError> {
        let value = if keep { "on" } else { "off" };
        self.effect(
            &[
                "set-option",
                "-w",
                "-t",
                &target.pane(),
                "remain-on-exit",
                value,
            ],
            None,
        )
    }

    /// Pastes text, bracketed where the program asked for it, without submitting. The buffer's name must
    /// be this delivery's own (DI-15).
    pub fn paste(&self, target: &TmuxTarget, buffer: &str, text: &str) -> Result<(), TmuxError> {
        let pane = target.pane();
        let args = [
            "load-buffer",
            "-b",
            buffer,
            "-",
            ";",
            "paste-buffer",
            "-p",
            "-d",
            "-b",
            buffer,
            "-t",
            &pane,
        ];
        let pasted = self.effect(&args, Some(text.as_bytes()));
        if pasted.is_err() {
            // A refused paste leaves its buffer behind.
            let _ = self.effect(&["delete-buffer", "-b", buffer], None);
        }
        pasted
    }

    /// Submits what is in the composer: an unbracketed carriage return. It is pasted, because keys are
    /// sent in a client's name and a read-only one would refuse them (DI-17).
    pub fn submit(&self, target: &TmuxTarget, buffer: &str) -> Result<(), TmuxError> {
        let pane = target.pane();
        let args = [
            "load-buffer",
            "-b",
            buffer,
            "-",
            ";",
            "paste-buffer",
            "-d",
            "-b",
            buffer,
            "-t",
            &pane,
        ];
        self.effect(&args, Some(b"\r"))
    }

    /// Leaves copy mode.
    pub fn leave_mode(&self, target: &TmuxTarget) -> Result<(), TmuxError> {
        self.effect(&["copy-mode", "-q", "-t", &target.pane()], None)
    }
}

/// The configuration our server starts with: nobody's `tmux.conf` reaches our agents (DI-11).
pub fn server_config(remain_on_exit: bool) -> String {
    let remain = if remain_on_exit { "on" } else { "off" };
    format!(
        "# Written by the-loop at every start; edits are lost.\n\
         set -g default-terminal \"tmux-256color\"\n\
         set -g history-limit 20000\n\
         set -s escape-time 10\n\
         set -g focus-events on\n\
         set -g mouse on\n\
         set -g status-left-length 60\n\
         set -g update-environment \"\"\n\
         set -g remain-on-exit {remain}\n\
         set -g set-clipboard off\n\
         set -g allow-rename off\n\
         set -g window-size latest\n"
    )
}

const PANE_FORMAT: &str = "P\t#{session_name}\t#{pane_pid}\t#{pane_dead}\t#{pane_dead_status}\t#{pane_in_mode}\t#{session_attached}\t#{pane_title}";
const CLIENT_FORMAT: &str = "C\t#{client_readonly}\t#{client_activity}";

fn read_pane(line: &str) -> Option<Pane> {
    let mut fields = line.splitn(8, SEP);
    (fields.next()? == "P").then_some(())?;
    Some(Pane {
        session: fields.next()?.to_owned(),
        pid: fields.next()?.parse().ok()?,
        dead: fields.next()? == "1",
        exit_status: fields.next()?.parse().ok(),
        in_mode: fields.next()? != "0",
        attached: fields.next()?.parse().ok()?,
        title: fields.next()?.to_owned(),
    })
}

/// A listing, whole or not at all: a line that cannot be read makes the answer unknown. A title may
/// hold a line break; its continuation does not look like a pane and belongs to the line before.
fn read_panes(text: &str) -> Option<Snapshot> {
    let mut snapshot = Snapshot::default();
    for line in text.lines().filter(|line| line.starts_with("P\t")) {
        let pane = read_pane(line)?;
        snapshot
            .panes
            .entry(pane.session.clone())
            .or_default()
            .push(pane);
    }
    let unreadable = snapshot.panes.is_empty() && !text.trim().is_empty();
    (!unreadable).then_some(snapshot)
}

fn read_view(text: &str, target: &TmuxTarget) -> Option<View> {
    let mut pane = None;
    let mut clients = Vec::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        if let Some(found) = read_pane(line).filter(|p| p.session == target.as_str()) {
            pane.get_or_insert(found);
        } else if let Some(client) = read_client(line) {
            clients.push(client);
        } else {
            break;
        }
        rest = after;
    }
    Some(View {
        pane: pane?,
        text: rest.to_owned(),
        clients,
    })
}

/// Each begins with its panes. Captured text holds no tabs, so that it cannot look like a pane.
fn read_screens(text: &str) -> BTreeMap<String, View> {
    let mut screens: BTreeMap<String, View> = BTreeMap::new();
    let mut current: Option<View> = None;
    for line in text.split_inclusive('\n') {
        match (read_pane(line.trim_end_matches('\n')), &mut current) {
            (Some(pane), Some(view)) if view.pane.session == pane.session => {}
            (Some(pane), _) => {
                let next = View {
                    pane,
                    text: String::new(),
                    clients: Vec::new(),
                };
                let whole = current.replace(next);
                screens.extend(whole.map(|view| (view.pane.session.clone(), view)));
            }
            (None, Some(view)) => view.text.push_str(line),
            (None, None) => {}
        }
    }
    screens.extend(current.map(|view| (view.pane.session.clone(), view)));
    screens
}

fn read_client(line: &str) -> Option<Client> {
    let mut fields = line.split(SEP);
    (fields.next()? == "C").then_some(())?;
    let read_only = fields.next()? == "1";
    let active_at = fields.next()?.parse().ok()?;
    fields.next().is_none().then_some(Client {
        read_only,
        active_at,
    })
}

#[cfg(test)]
mod tests;
