//! Another process in the pane of a session that stays (SE-59).

use camino::Utf8Path;
use the_loop_core::limits::TMUX_ARGUMENT_BYTES_MAX;

use super::{Spot, Tmux};
use crate::process::NoAnswer;

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

impl Tmux {
    /// Runs `argv` in a pane instead of whatever ran there, without a shell. Session, window and clients
    /// stay; tmux clears the scrollback.
    pub fn respawn_pane(&self, at: impl Into<Spot>, cwd: &Utf8Path, argv: &[&str]) -> Respawned {
        let pane = &at.into().to_string();
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
