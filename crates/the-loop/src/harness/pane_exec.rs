//! `the-loop pane-exec FILE`: becomes the harness (DI-20).
#![allow(
    clippy::disallowed_methods,
    reason = "replacing this very process is no call through Processes: there is no answer to wait for"
)]

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, Kind};
use crate::world::World;

/// Bytes of a launch file.
const LAUNCH_FILE_BYTES_MAX: u64 = 4 << 20;
/// What only the pane's own process can know; taken from it over what the file says.
const FROM_THE_PANE: [&str; 3] = ["TERM", "TMUX", "TMUX_PANE"];

/// What a pane is to run: `local/launch/<slug>-<hex>.json`. It holds secrets; the file is 0600 and gone
/// before the harness runs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchFile {
    /// Program: looked up on the `PATH` of `env`, or absolute.
    pub program: String,
    /// Its arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub cwd: Utf8PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
}

impl std::fmt::Debug for LaunchFile {
    /// Without the values of variables.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaunchFile")
            .field("program", &self.program)
            .field("argv", &self.argv.len())
            .field("cwd", &self.cwd)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .finish()
    }
}

impl LaunchFile {
    /// Writes it, 0600, under a name that must not exist yet.
    pub fn write(&self, disk: &dyn Disk, path: &Utf8Path) -> io::Result<()> {
        if let Some(dir) = path.parent() {
            disk.create_dir_all(dir)?;
        }
        disk.create_new(path, &serde_json::to_vec(self)?, 0o600)
    }
}

/// Why this process could not become the harness. Its text is one line for the pane and names no value
/// of a variable.
#[derive(Debug, thiserror::Error)]
pub enum PaneExecError {
    /// The launch file cannot be used; the program was not tried.
    #[error("pane-exec: cannot read {path}: {why}")]
    File {
        /// Which file.
        path: Utf8PathBuf,
        /// Why.
        why: String,
    },
    /// Its directory cannot be entered.
    #[error("pane-exec: cannot enter {cwd}: {why}")]
    Directory {
        /// Which directory.
        cwd: Utf8PathBuf,
        /// Why.
        why: String,
    },
    /// No such program.
    #[error("pane-exec: {program}: not found on the PATH of this session")]
    NotFound {
        /// What was looked for.
        program: String,
    },
    /// It cannot be executed.
    #[error("pane-exec: {program}: {why}")]
    NotExecutable {
        /// What was tried.
        program: String,
        /// Why.
        why: io::Error,
    },
}

impl PaneExecError {
    /// The exit code, as shells have it: 127 for a program that is not there, else 126.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::File { .. } | Self::Directory { .. } | Self::NotExecutable { .. } => 126,
        }
    }
}

/// Reads the launch file, removes it, and becomes the program it names, with exactly the environment
/// it gives. Comes back only with an error.
pub fn run(world: &World, file: &Utf8Path) -> PaneExecError {
    let launch = match read_and_remove(world, file) {
        Ok(launch) => launch,
        Err(why) => {
            return PaneExecError::File {
                path: file.to_owned(),
                why,
            };
        }
    };
    let directory = |why: String| PaneExecError::Directory {
        cwd: launch.cwd.clone(),
        why,
    };
    let real = world.disk.canonicalize(&launch.cwd);
    match real.and_then(|real| world.disk.meta(&real)) {
        Ok(Some(meta)) if meta.kind == Kind::Dir => {}
        Ok(_) => return directory("not a directory".to_owned()),
        Err(e) => return directory(e.to_string()),
    }
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.argv)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(&launch.env);
    for name in FROM_THE_PANE {
        match world.env.get(name) {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let why = command.exec();
    if why.kind() == io::ErrorKind::NotFound {
        PaneExecError::NotFound {
            program: launch.program,
        }
    } else {
        PaneExecError::NotExecutable {
            program: launch.program,
            why,
        }
    }
}

/// The file goes whether or not it can be used: it may hold secrets.
fn read_and_remove(world: &World, file: &Utf8Path) -> Result<LaunchFile, String> {
    let bytes = world.disk.read(file, LAUNCH_FILE_BYTES_MAX);
    let removed = world.disk.remove(file);
    let bytes = bytes.map_err(|e| e.to_string())?;
    removed.map_err(|e| format!("cannot remove it: {e}"))?;
    // The parser's own words could quote a value.
    serde_json::from_slice(&bytes).map_err(|e| {
        format!(
            "not a launch file (line {}, column {})",
            e.line(),
            e.column()
        )
    })
}

#[cfg(test)]
mod tests;
