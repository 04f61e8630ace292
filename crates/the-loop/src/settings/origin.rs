//! Where an effective value comes from (CF-8).

use std::collections::BTreeMap;
use std::fmt;

use the_loop_core::config::node::Pos;

/// Where one value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// The file, at this place.
    File(Pos),
    /// A variable of the environment.
    Env(&'static str),
    /// A flag of this command.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(pos) => write!(f, "file {pos}"),
            Origin::Env(name) => write!(f, "env {name}"),
            Origin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// The origins that are not [`Origin::Default`], by key path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    pub(super) fn of_file(positions: &BTreeMap<String, Pos>) -> Self {
        let at = |(key, pos): (&String, &Pos)| (key.clone(), Origin::File(*pos));
        Self(positions.iter().map(at).collect())
    }

    pub(super) fn set(&mut self, key: &str, origin: Origin) {
        self.0.insert(key.to_owned(), origin);
    }

    /// Where the value of this key comes from.
    pub fn of(&self, key: &str) -> Origin {
        self.0.get(key).cloned().unwrap_or(Origin::Default)
    }
}
