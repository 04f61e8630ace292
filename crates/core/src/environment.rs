//! What the env file declares, what a process holds, and how the two are compared (seed 003; SE-55 to
//! SE-61). A value is never shown: names and fingerprints are all that leaves this module.

mod restart;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::config::envfile::{EnvFile, is_name};

pub use restart::{Facts, Pane, RowOutcome, Turn, decide, turn_of};

/// Bytes of a SHA-256 that a fingerprint shows.
const FINGERPRINT_BYTES: usize = 4;

/// The only form of a value that may be shown: the first 8 hex digits of its SHA-256 (SE-60).
pub fn fingerprint(value: &[u8]) -> String {
    hex::encode(&Sha256::digest(value)[..FINGERPRINT_BYTES])
}

/// The environment of a process. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environ(BTreeMap<String, Vec<u8>>);

impl Environ {
    /// Reads the kernel's block: `NAME=VALUE`, each ended by a NUL. `None` for an empty one, which is what
    /// a process shows that has ended or is only beginning, and for one without any variable in it.
    pub fn from_block(block: &[u8]) -> Option<Self> {
        let mut vars = BTreeMap::new();
        for entry in block.split(|b| *b == 0) {
            let Some(at) = entry.iter().position(|b| *b == b'=') else {
                continue;
            };
            let Ok(name) = std::str::from_utf8(&entry[..at]) else {
                continue;
            };
            // A program that looks a name up finds the first of two.
            vars.entry(name.to_owned())
                .or_insert_with(|| entry[at + 1..].to_vec());
        }
        (!vars.is_empty()).then_some(Self(vars))
    }

    /// Reads what `ps eww` prints after the arguments: words `NAME=VALUE`. A word without a name belongs to
    /// the value before it, for values may hold blanks; the last of two names counts, because arguments,
    /// which may look like variables, stand first. `None` when no variable is there.
    pub fn from_ps(line: &str) -> Option<Self> {
        let mut vars: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut last: Option<String> = None;
        for word in line.trim_end_matches('\n').split(' ') {
            match word.split_once('=') {
                Some((name, value)) if is_name(name) => {
                    vars.insert(name.to_owned(), value.as_bytes().to_vec());
                    last = Some(name.to_owned());
                }
                Some(_) | None => {
                    if let Some(value) = last.as_ref().and_then(|name| vars.get_mut(name)) {
                        value.push(b' ');
                        value.extend_from_slice(word.as_bytes());
                    }
                }
            }
        }
        (!vars.is_empty()).then_some(Self(vars))
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }
}

impl<N: Into<String>, V: Into<Vec<u8>>> FromIterator<(N, V)> for Environ {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(vars: I) -> Self {
        let vars = vars.into_iter();
        Self(vars.map(|(name, v)| (name.into(), v.into())).collect())
    }
}

impl fmt::Debug for Environ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What an env file declares for panes (SE-56). `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Declared {
    vars: BTreeMap<String, String>,
    bad_lines: Vec<usize>,
}

impl Declared {
    /// The names and values of a file, less those that panes never take from it.
    pub fn of(file: &EnvFile, withheld: impl Fn(&str) -> bool) -> Self {
        let given = file.vars.iter().filter(|(name, _)| !withheld(name));
        Self {
            vars: given.cloned().collect(),
            bad_lines: file.bad_lines.clone(),
        }
    }

    /// Does it declare nothing?
    pub fn is_empty(&self) -> bool {
        self.vars.is_empty()
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.vars.keys().cloned().collect()
    }

    /// Names and fingerprints.
    pub fn fingerprints(&self) -> BTreeMap<String, String> {
        let of = |(name, value): (&String, &String)| (name.clone(), fingerprint(value.as_bytes()));
        self.vars.iter().map(of).collect()
    }

    /// Numbers of the lines that were skipped, from 1.
    pub fn bad_lines(&self) -> &[usize] {
        &self.bad_lines
    }

    /// The names whose values differ, sorted; one that the process lacks differs (SE-60). Whatever else
    /// the process holds is nobody's business here.
    pub fn compare(&self, held: &Environ) -> Vec<Difference> {
        let differs = |(name, value): (&String, &String)| {
            let held = held.get(name);
            (held != Some(value.as_bytes())).then(|| Difference {
                name: name.clone(),
                declared: fingerprint(value.as_bytes()),
                held: held.map(fingerprint),
            })
        };
        self.vars.iter().filter_map(differs).collect()
    }

    /// The verdict over the processes that decide, each with its environment or without when it would not
    /// say: any stale one makes the session stale, and an unreadable one does not outvote a match (SE-60).
    pub fn verdict(&self, held: &[Option<Environ>]) -> Verdict {
        let mut differences: BTreeMap<String, Difference> = BTreeMap::new();
        let mut readable = false;
        for environ in held.iter().flatten() {
            readable = true;
            for difference in self.compare(environ) {
                let name = difference.name.clone();
                differences.entry(name).or_insert(difference);
            }
        }
        match (readable, differences.is_empty()) {
            (false, _) => Verdict::Unverified,
            (true, true) => Verdict::Fresh,
            (true, false) => Verdict::Stale(differences.into_values().collect()),
        }
    }
}

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared")
            .field("names", &self.vars.keys())
            .field("bad_lines", &self.bad_lines)
            .finish()
    }
}

/// A declared variable of which a process holds another value, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// Fingerprint of the declared value.
    pub declared: String,
    /// Fingerprint of the value held; `None` when it is lacking.
    pub held: Option<String>,
}

impl fmt::Display for Difference {
    /// `GITHUB_TOKEN (file 1a2b3c4d, process 99f0e1d2)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held.as_deref().unwrap_or("none");
        write!(f, "{} (file {}, process {held})", self.name, self.declared)
    }
}

/// Does a session hold what the file declares?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of it.
    Fresh,
    /// Not these.
    Stale(Vec<Difference>),
    /// No environment could be read.
    Unverified,
}

impl Verdict {
    /// The word in output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale(_) => "stale",
            Self::Unverified => "unverified",
        }
    }

    /// What differs.
    pub fn differences(&self) -> &[Difference] {
        match self {
            Self::Stale(differences) => differences,
            Self::Fresh | Self::Unverified => &[],
        }
    }

    /// The names that differ.
    pub fn names(&self) -> Vec<String> {
        let differences = self.differences().iter();
        differences.map(|d| d.name.clone()).collect()
    }
}

/// The processes that decide over a session: the pane that was started for it, when that one lives; else
/// every live pane (SE-60).
pub fn deciding(recorded: Option<i32>, live: &[i32]) -> Vec<i32> {
    match recorded.filter(|pid| live.contains(pid)) {
        Some(pid) => vec![pid],
        None => live.to_vec(),
    }
}
