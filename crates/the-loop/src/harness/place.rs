//! Where the files of a running session are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use camino::Utf8PathBuf;
use the_loop_core::ids::HarnessSessionId;

/// A session's conversation and directories. Everything that a harness derives a path from is in its
/// pane's environment.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The conversation; `None` while it is not known (DI-33).
    pub session_id: Option<HarnessSessionId>,
    /// Where the harness runs.
    pub cwd: Utf8PathBuf,
    /// `local/hooks/<slug>.jsonl`.
    pub hook_file: Utf8PathBuf,
    /// The whole environment of the pane. It holds secrets and is never shown.
    pub env: Arc<BTreeMap<String, String>>,
}

impl Place {
    /// A variable of the pane, unless it is empty.
    pub fn var(&self, name: &str) -> Option<&str> {
        let value = self.env.get(name).map(String::as_str);
        value.filter(|value| !value.is_empty())
    }

    /// The directory that a variable of the pane names.
    pub fn dir(&self, name: &str) -> Option<Utf8PathBuf> {
        self.var(name).map(Utf8PathBuf::from)
    }

    /// `HOME` of the pane.
    pub fn home(&self) -> Option<Utf8PathBuf> {
        self.dir("HOME")
    }
}

/// Without the values of the environment.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("session_id", &self.session_id)
            .field("cwd", &self.cwd)
            .field("hook_file", &self.hook_file)
            .finish_non_exhaustive()
    }
}
