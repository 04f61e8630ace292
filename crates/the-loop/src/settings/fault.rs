//! Settings that cannot be used.

use std::fmt;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::config::Settings;
use the_loop_core::config::problem::Problem;

/// Why there are no settings. Every command but those of SE-12 ends with exit code 2.
#[derive(Clone, Debug)]
pub struct ConfigFault {
    /// The file, where one was found or named.
    pub path: Option<Utf8PathBuf>,
    /// What is wrong, in file order; at least one.
    pub problems: Vec<Problem>,
    /// Warnings all the same: a file that was passed over, and what the document is worth warning of.
    pub warnings: Vec<Problem>,
    /// What could be read, paths absolute, defaults elsewhere: `stop` and `status` take `state.root`
    /// and the lock file's place from it (SE-12), every process its env file (CF-33).
    pub readable: Arc<Settings>,
    /// SHA-256 of the bytes, hex; empty when they could not be read.
    pub hash: String,
}

impl ConfigFault {
    /// One line a problem, `PATH:LINE:COLUMN: MESSAGE (HINT)`, the home directory written `~` (CF-12).
    pub fn lines(&self, home: Option<&Utf8Path>) -> Vec<String> {
        let path = self
            .path
            .as_deref()
            .map_or(String::new(), |path| tilde(path, home));
        self.problems.iter().map(|p| p.line(&path)).collect()
    }

    /// The first line of [`ConfigFault::lines`].
    pub fn first(&self, home: Option<&Utf8Path>) -> String {
        self.lines(home).into_iter().next().unwrap_or_default()
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first(None))
    }
}

impl std::error::Error for ConfigFault {}

/// A path with the home directory written `~`.
pub fn tilde(path: &Utf8Path, home: Option<&Utf8Path>) -> String {
    match home
        .filter(|home| *home != "/")
        .and_then(|home| path.strip_prefix(home).ok())
    {
        Some(rest) if rest.as_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{rest}"),
        None => path.to_string(),
    }
}

/// An I/O error in the words of CF-12.
pub(crate) fn words(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => e.to_string(),
    }
}
