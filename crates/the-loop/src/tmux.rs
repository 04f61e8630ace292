//! tmux: argv in, classified outcome out (DI-11 to DI-17).
//!
//! Every answer is classified by exit status and format output. A call that gave no exit status says
//! nothing about the world, and nothing is ever killed for it.

mod read;
mod respawn;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::limits::TMUX_ARGUMENT_BYTES_MAX;
use the_loop_core::probe::{ProvedDead, TmuxState};

use crate::process::{Answer, Call, NoAnswer, SharedProcesses};
use crate::world::World;

use read::{
    CLIENT_FORMAT, PANE_FORMAT, SCREEN_FORMAT, read_panes, read_screens, read_view, state_of,
};
pub use read::{Client, Pane, PaneId, Snapshot, View, agent_pane};
pub use respawn::Respawned;

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

/// Panes looked at with one call: their commands stay far below what tmux takes.
const SCREENS_AT_ONCE: usize = 50;

/// Width and height of a session nobody has attached to yet.
const SIZE: (&str, &str) = ("200", "50");

/// A pane of a session. A person may open windows beside the agent's and split its own; then the session's
/// name alone leads to whatever is in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The session.
    pub target: TmuxTarget,
    /// The pane in it; the one in front where it is not known.
    pub pane: Option<PaneId>,
}

impl Spot {
    /// This pane of this session.
    pub fn of(target: &TmuxTarget, pane: &Pane) -> Self {
        Self {
            target: target.clone(),
            pane: Some(pane.id),
        }
    }
}

impl From<&TmuxTarget> for Spot {
    fn from(target: &TmuxTarget) -> Self {
        Self {
            target: target.clone(),
            pane: None,
        }
    }
}

impl From<&Self> for Spot {
    fn from(spot: &Self) -> Self {
        spot.clone()
    }
}

/// As tmux takes it: `=NAME:.%5`, which it refuses unless that very pane is in that very session (DI-12).
impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target.pane())?;
        match self.pane {
            Some(pane) => write!(f, ".{pane}"),
            None => Ok(()),
        }
    }
}

/// Outcome of `new-session`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spawned {
    /// It exists now.
    Made {
        /// Pid of the launcher, which becomes the harness.
        pid: i32,
        /// The pane it runs in.
        pane: PaneId,
    },
    /// tmux refused and says that the name is taken. Only a reason to look again (DI-16).
    NameTaken,
    /// tmux refused for another reason.
    Refused(String),
    /// No answer: it may or may not exist.
    NoAnswer(NoAnswer),
}

/// Outcome of a kill that was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    /// The session is not there any more.
    Gone,
    /// tmux refused, and it is there.
    StillThere,
    /// tmux gave no answer to the kill or to the question after it.
    Unanswered,
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

    /// Program and arguments that bring the caller's own client, which is one of this server, to a session.
    /// `switch-client -r` would make a client that only watches a writable one, so it is asked first.
    pub fn switch_argv(&self, target: &TmuxTarget, read_only: bool) -> Vec<String> {
        let mut argv = vec![self.binary.clone()];
        argv.extend(self.server_args());
        let session = target.session();
        if read_only {
            let switch = |flag: &str| format!("switch-client {flag}-t '{session}'");
            let words = ["if-shell", "-F", "#{client_readonly}"];
            argv.extend(words.map(str::to_owned));
            argv.extend([switch(""), switch("-r ")]);
        } else {
            argv.extend(["switch-client".to_owned(), "-t".to_owned(), session]);
        }
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

    /// Panes of exactly this session, in one call. All are listed and ours picked here: a listing that is
    /// refused for its form, as tmux 3.1 refuses a filter, would look like a session that is not there.
    pub fn panes(&self, target: &TmuxTarget) -> Result<Vec<Pane>, NoAnswer> {
        Ok(self.snapshot()?.panes(target).to_vec())
    }

    /// Panes and clients of a session and the visible text of a pane, in one call; `Ok(None)` when session or
    /// pane is not there.
    pub fn view(&self, at: impl Into<Spot>) -> Result<Option<View>, NoAnswer> {
        let spot = at.into();
        let (panes, shown) = (spot.target.pane(), spot.to_string());
        // Clients of every session: a window may be linked into another one.
        let answer = self.call(
            &[
                "list-panes",
                "-s",
                "-t",
                &panes,
                "-F",
                PANE_FORMAT,
                ";",
                "list-clients",
                "-F",
                CLIENT_FORMAT,
                ";",
                "capture-pane",
                "-p",
                "-e",
                "-t",
                &shown,
            ],
            None,
        );
        match answer.exit {
            Ok(0) => Ok(read_view(&answer.out(), &spot)),
            Ok(_) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// What these panes show, in one call for every fifty; one that is not there is left out. tmux stops at
    /// the first that is not there, so those behind it are left out as well, until the next look.
    pub fn screens(&self, mut panes: Vec<Pane>) -> BTreeMap<PaneId, View> {
        let mut screens = BTreeMap::new();
        while !panes.is_empty() {
            let some: Vec<Pane> = panes.drain(..panes.len().min(SCREENS_AT_ONCE)).collect();
            let ids: Vec<String> = some.iter().map(|pane| pane.id.to_string()).collect();
            let mut args = Vec::new();
            for id in &ids {
                args.extend(["display-message", "-p", "-t", id, SCREEN_FORMAT, ";"]);
                args.extend(["capture-pane", "-p", "-e", "-t", id, ";"]);
            }
            args.pop();
            let texts = read_screens(&self.call(&args, None).out());
            screens.extend(some.into_iter().filter_map(|pane| {
                let text = texts.get(&pane.id)?.clone();
                Some((pane.id, View::shown(pane, text)))
            }));
        }
        screens
    }

    /// The last text of a pane, scrollback included: a dead pane's words scroll up by a line.
    pub fn tail(&self, at: impl Into<Spot>, lines: usize) -> Vec<String> {
        let spot = at.into().to_string();
        let answer = self.call(&["capture-pane", "-p", "-S", "-", "-t", &spot], None);
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

    /// Starts a session that runs `argv` directly, without a shell. Its pane stays or goes with its process as
    /// `remain` says, whatever a server that ran before was configured with; tmux does both before it
    /// notices the end of anything.
    pub fn new_session(
        &self,
        target: &TmuxTarget,
        cwd: &Utf8Path,
        remain: bool,
        argv: &[&str],
    ) -> Spawned {
        let pane = target.pane();
        let mut args = vec![
            "new-session",
            "-d",
            "-P",
            "-F",
            "#{pane_pid} #{pane_id}",
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
        args.extend([
            ";",
            "set-option",
            "-p",
            "-t",
            &pane,
            "remain-on-exit",
            on_or_off(remain),
        ]);
        let length: usize = args.iter().map(|a| a.len() + 1).sum();
        if length > TMUX_ARGUMENT_BYTES_MAX {
            return Spawned::Refused(format!("the command would be {length} bytes long"));
        }
        let answer = self.call(&args, None);
        match &answer.exit {
            Ok(0) => match read::read_made(&answer.out()) {
                Some((pid, pane)) => Spawned::Made { pid, pane },
                None => Spawned::NoAnswer(NoAnswer::NotStarted("unreadable answer".into())),
            },
            Ok(_) if answer.err().contains("duplicate session") => Spawned::NameTaken,
            Ok(_) => Spawned::Refused(answer.describe()),
            Err(why) => Spawned::NoAnswer(why.clone()),
        }
    }

    /// Clears a session that was proved dead, and verifies.
    pub fn clear_dead(&self, target: &TmuxTarget, _proof: ProvedDead) -> Killed {
        self.kill(target)
    }

    /// Ends a session on somebody's wish to end it, and verifies: true when it is gone.
    pub fn end_session(&self, target: &TmuxTarget) -> bool {
        self.kill(target) == Killed::Gone
    }

    fn kill(&self, target: &TmuxTarget) -> Killed {
        let killed = self.effect(&["kill-session", "-t", &target.session()], None);
        let Err(error) = killed else {
            return Killed::Gone;
        };
        match (self.probe(target), error) {
            (TmuxState::Absent, TmuxError::Refused(_) | TmuxError::NoAnswer(_)) => Killed::Gone,
            (TmuxState::Live | TmuxState::Dead, TmuxError::Refused(_)) => Killed::StillThere,
            (TmuxState::Live | TmuxState::Dead, TmuxError::NoAnswer(_))
            | (TmuxState::Unknown, TmuxError::Refused(_) | TmuxError::NoAnswer(_)) => {
                Killed::Unanswered
            }
        }
    }

    /// Keeps a pane when its process ends, or no longer keeps it.
    pub fn remain_on_exit(&self, at: impl Into<Spot>, keep: bool) -> Result<(), TmuxError> {
        let spot = at.into().to_string();
        let words = [
            "set-option",
            "-p",
            "-t",
            &spot,
            "remain-on-exit",
            on_or_off(keep),
        ];
        self.effect(&words, None)
    }

    /// Pastes text, bracketed where the program asked for it, without submitting. The buffer's name must
    /// be this delivery's own (DI-15).
    pub fn paste(&self, at: impl Into<Spot>, buffer: &str, text: &str) -> Result<(), TmuxError> {
        let pane = at.into().to_string();
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
    pub fn submit(&self, at: impl Into<Spot>, buffer: &str) -> Result<(), TmuxError> {
        let pane = at.into().to_string();
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
    pub fn leave_mode(&self, at: impl Into<Spot>) -> Result<(), TmuxError> {
        self.effect(&["copy-mode", "-q", "-t", &at.into().to_string()], None)
    }
}

/// The configuration our server starts with: nobody's `tmux.conf` reaches our agents (DI-11).
pub fn server_config(remain_on_exit: bool) -> String {
    let remain = on_or_off(remain_on_exit);
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

fn on_or_off(set: bool) -> &'static str {
    if set { "on" } else { "off" }
}
