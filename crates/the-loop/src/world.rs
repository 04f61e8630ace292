//! Everything the program gets from outside, built once in `main` and passed down.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

use crate::clock::Clock;
use crate::disk::SharedDisk;
use crate::ids::Ids;
use crate::process::SharedProcesses;

/// Disk, processes, clock, ids, and what was read from the environment at start. Cheap to clone.
#[derive(Clone, Debug)]
pub struct World {
    /// The file system.
    pub disk: SharedDisk,
    /// Outside programs.
    pub processes: SharedProcesses,
    /// Time.
    pub clock: Clock,
    /// Randomness.
    pub ids: Ids,
    /// The environment as it was at start, the env file's names added (CF-33).
    pub env: std::sync::Arc<BTreeMap<String, String>>,
    /// The current directory at start.
    pub cwd: Utf8PathBuf,
    /// The user's home directory, where one is known.
    pub home: Option<Utf8PathBuf>,
    /// The operating-system user: the actor of verbs.
    pub user: String,
    /// This program's own file, for panes and hooks.
    pub program: Utf8PathBuf,
    /// This process.
    pub pid: u32,
}

impl World {
    /// A variable of the environment; an empty one counts as unset.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.env
            .get(name)
            .map(String::as_str)
            .filter(|v| !v.is_empty())
    }
}
