//! Another process in the pane of a session that stays (SE-59).

use camino::Utf8Path;
use the_loop_core::ids::TmuxTarget;
use the_loop_core::limits::TMUX_ARGUMENT_BYTES_MAX;

use super::{SEP, Tmux, TmuxError};
use crate::process::NoAnswer;

/// A pane and the process it was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The pane's id, `%7`: unlike its place in a session it never means another one.
    pub pane: String,
    /// Its process's pid.
    pub pid: i32,
    /// Its process has ended.
    pub dead: bool,
    /// Exit status of a dead one, when it exited.
    pub exit_status: Option<i32>,
}

/// Outcome of `respawn-pane`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Respawned {
    /// Another process runs in the pane; its pid.
    Made {
        /// Pid of the launcher, which becomes the harness.
        pid: i32,
    },
    /// tmux answered and refused; its words.
    Refused(String),
    /// No answer: it may or may not have happened.
    NoAnswer(NoAnswer),
}

const LEADER_FORMAT: &str = "L\t#{pane_id}\t#{pane_pid}\t#{pane_dead}\t#{pane_dead_status}";

impl Tmux {
    /// Every pane of a session with its process, in all of its windows: a person may have opened some.
    /// Empty when there is no session of that name.
    pub fn leaders(&self, target: &TmuxTarget) -> Result<Vec<Leader>, NoAnswer> {
        let session = target.pane();
        let args = ["list-panes", "-s", "-t", &session, "-F", LEADER_FORMAT];
        let answer = self.call(&args, None);
        match answer.exit {
            Ok(0) => {
                let out = answer.out();
                let leaders = out.lines().map(read_leader).collect::<Option<Vec<_>>>();
                leaders.ok_or(NoAnswer::NotStarted("unreadable listing".into()))
            }
            Ok(_) => Ok(Vec::new()),
            Err(why) => Err(why),
        }
    }

    /// Keeps one pane, whatever is configured, when its process ends; or no longer.
    pub fn keep_pane(&self, pane: &str, keep: bool) -> Result<(), TmuxError> {
        let args: &[&str] = if keep {
            &["set-option", "-p", "-t", pane, "remain-on-exit", "on"]
        } else {
            &["set-option", "-p", "-u", "-t", pane, "remain-on-exit"]
        };
        self.effect(args, None)
    }

    /// Runs `argv` in a pane instead of whatever ran there, without a shell. Session, window and clients
    /// stay; tmux clears the scrollback.
    pub fn respawn_pane(&self, pane: &str, cwd: &Utf8Path, argv: &[&str]) -> Respawned {
        let mut args = vec!["respawn-pane", "-k", "-t", pane, "-c", cwd.as_str(), "--"];
        args.extend_from_slice(argv);
        args.extend([";", "display-message", "-p", "-t", pane, "#{pane_pid}"]);
        let length: usize = args.iter().map(|a| a.len() + 1).sum();
        if length > TMUX_ARGUMENT_BYTES_MAX {
            return Respawned::Refused(format!("the command would be {length} bytes long"));
        }
        let answer = self.call(&args, None);
        match &answer.exit {
            Ok(0) => match answer.out().trim().parse() {
                Ok(pid) => Respawned::Made { pid },
                Err(_) => Respawned::NoAnswer(NoAnswer::NotStarted("unreadable answer".into())),
            },
            Ok(_) => Respawned::Refused(answer.describe()),
            Err(why) => Respawned::NoAnswer(why.clone()),
        }
    }
}

fn read_leader(line: &str) -> Option<Leader> {
    let mut fields = line.split(SEP);
    (fields.next()? == "L").then_some(())?;
    Some(Leader {
        pane: fields.next()?.to_owned(),
        pid: fields.next()?.parse().ok()?,
        dead: fields.next()? == "1",
        exit_status: fields.next()?.parse().ok(),
    })
}
