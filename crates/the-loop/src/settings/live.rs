//! The settings of a running daemon, which follow their file (CF-34 to CF-36).

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use camino::Utf8Path;
use serde_json::Value as Json;
use the_loop_core::config::Settings;
use the_loop_core::config::key::Live as LiveClass;
use the_loop_core::config::problem::Problem;
use the_loop_core::time::Timestamp;

use super::find::{Found, Place};
use super::load::load_found;
use super::{ConfigFault, Loaded, Overrides};
use crate::disk::Meta;
use crate::world::World;

/// What a look at the file came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing to do; also for a broken content that was reported before.
    Unchanged,
    /// The new settings are in force.
    Reloaded {
        /// Key paths whose values differ. Empty when a broken file was put back as it was.
        changed: Vec<String>,
        /// Those of them that take effect only after a restart.
        restart_required: Vec<String>,
        /// What is worth a warning.
        warnings: Vec<Problem>,
    },
    /// The file cannot be used; the running settings stay in force.
    Rejected {
        /// Line of the first problem, where it has one.
        line: Option<u32>,
        /// The first problem, `PATH:LINE:COLUMN: MESSAGE (HINT)`.
        error: String,
    },
}

/// A file that does not load, for `status` (CF-35).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The first problem.
    pub error: String,
    /// When the settings in force were loaded.
    pub loaded_at: Timestamp,
}

/// Holds the settings in force. A value that takes effect only after a restart keeps the one the
/// daemon started with, so that nobody meets half of a change.
#[derive(Debug)]
pub struct Live {
    world: World,
    found: Option<Found>,
    overrides: Overrides,
    current: RwLock<Arc<Settings>>,
    started: Arc<Settings>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// What the file looked like when it was last read.
    meta: Option<Meta>,
    /// The settings as the file says, restart or not.
    wanted: Arc<Settings>,
    /// Hash of the content in force.
    hash: String,
    /// The content that was rejected last, by hash or, unread, by its problem.
    rejected: Option<String>,
    problem: Option<String>,
    loaded_at: Timestamp,
}

impl Live {
    /// Takes over what was loaded at start.
    pub fn new(world: &World, loaded: &Loaded, overrides: Overrides) -> Self {
        let found = loaded.path.clone().map(|path| Found {
            path,
            place: loaded.place.unwrap_or(Place::Env),
        });
        let state = State {
            // A change between load and here is found by the first look.
            meta: None,
            wanted: loaded.settings.clone(),
            hash: loaded.hash.clone(),
            rejected: None,
            problem: None,
            loaded_at: world.clock.now(),
        };
        Self {
            world: world.clone(),
            found,
            overrides,
            current: RwLock::new(loaded.settings.clone()),
            started: loaded.settings.clone(),
            state: Mutex::new(state),
        }
    }

    /// The settings in force. A dispatch takes them once and uses them from gather to record (CF-9).
    pub fn current(&self) -> Arc<Settings> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The configuration file, where there is one.
    pub fn path(&self) -> Option<&Utf8Path> {
        self.found.as_ref().map(|found| found.path.as_path())
    }

    /// Keys whose values in the file wait for a restart.
    pub fn restart_needed(&self) -> Vec<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let start = |key: &Differing| key.live == LiveClass::Start;
        let differing = differences(&self.started, &state.wanted);
        differing
            .into_iter()
            .filter(start)
            .map(|key| key.path)
            .collect()
    }

    /// The problem of the file as it is now, where it has one.
    pub fn pending(&self) -> Option<Pending> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Pending {
            error: state.problem.clone()?,
            loaded_at: state.loaded_at,
        })
    }

    /// Looks at the file's size, time and inode, and reads it when they changed; every 2 s.
    pub fn poll(&self) -> Look {
        self.look(false)
    }

    /// Reads the file whatever it looks like; on SIGHUP.
    pub fn reload(&self) -> Look {
        self.look(true)
    }

    fn look(&self, always: bool) -> Look {
        let Some(found) = &self.found else {
            return Look::Unchanged;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let disk = &self.world.disk;
        let real = disk.canonicalize(&found.path);
        let meta = real.and_then(|real| disk.meta(&real)).ok().flatten();
        if !always && meta.is_some() && meta == state.meta {
            return Look::Unchanged;
        }
        state.meta = meta;
        match load_found(&self.world, Some(found), &self.overrides, Vec::new()) {
            Ok(loaded) => self.accept(&mut state, &loaded),
            Err(fault) => self.reject(&mut state, &fault),
        }
    }

    fn accept(&self, state: &mut State, loaded: &Loaded) -> Look {
        let mended = state.problem.take().is_some();
        state.rejected = None;
        if loaded.hash == state.hash && !mended {
            return Look::Unchanged;
        }
        let differing = differences(&state.wanted, &loaded.settings);
        state.hash.clone_from(&loaded.hash);
        state.wanted = loaded.settings.clone();
        state.loaded_at = self.world.clock.now();
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = pinned(&loaded.settings, &self.started);
        let of_start = |key: &&Differing| key.live == LiveClass::Start;
        let restart = differing.iter().filter(of_start);
        let mut warnings = loaded.warnings.clone();
        warnings.extend(super::warnings_of_machine(
            &self.world,
            &loaded.settings,
            loaded.path.as_deref(),
        ));
        Look::Reloaded {
            restart_required: restart.map(|key| key.path.clone()).collect(),
            changed: differing.into_iter().map(|key| key.path).collect(),
            warnings,
        }
    }

    fn reject(&self, state: &mut State, fault: &ConfigFault) -> Look {
        let error = fault.first(self.world.home.as_deref());
        let content = if fault.hash.is_empty() {
            error.clone()
        } else {
            fault.hash.clone()
        };
        state.problem = Some(error.clone());
        if state.rejected.as_ref() == Some(&content) {
            return Look::Unchanged;
        }
        state.rejected = Some(content);
        let pos = fault.problems.first().and_then(|problem| problem.pos);
        Look::Rejected {
            line: pos.map(|pos| pos.line),
            error,
        }
    }
}

struct Differing {
    path: String,
    live: LiveClass,
}

/// The keys of which two settings hold different values.
fn differences(old: &Settings, new: &Settings) -> Vec<Differing> {
    let (old, new) = (json(old), json(new));
    let rows = Settings::rows().into_iter();
    rows.filter(|row| !row.path.contains('<'))
        .filter(|row| {
            let pointer = pointer(&row.path);
            old.pointer(&pointer) != new.pointer(&pointer)
        })
        .map(|row| Differing {
            path: row.path,
            live: row.key.live,
        })
        .collect()
}

/// `new` with the values of `started` where only a restart changes them.
fn pinned(new: &Arc<Settings>, started: &Settings) -> Arc<Settings> {
    let (mut value, started) = (json(new), json(started));
    for row in Settings::rows() {
        let pointer = pointer(&row.path);
        if row.key.live == LiveClass::Start
            && let (Some(slot), Some(old)) =
                (value.pointer_mut(&pointer), started.pointer(&pointer))
        {
            *slot = old.clone();
        }
    }
    serde_json::from_value(value).map_or_else(|_| new.clone(), Arc::new)
}

fn json(settings: &Settings) -> Json {
    serde_json::to_value(settings).unwrap_or(Json::Null)
}

/// The JSON pointer of a key path.
fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}
