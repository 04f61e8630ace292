//! From the places of CF-1 to one value (CF-7).

use std::io;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use sha2::{Digest, Sha256};
use the_loop_core::config::Settings;
use the_loop_core::config::check::{Checked, check};
use the_loop_core::config::paths::Places;
use the_loop_core::config::problem::Problem;

use super::fault::words;
use super::find::{Found, Place, find, named_path, places, shown};
use super::yaml::{self, DOCUMENT_BYTES_MAX};
use super::{ConfigFault, Origin, Origins, envfile};
use crate::world::World;

/// The variable that moves `state.root`.
pub const ROOT_VARIABLE: &str = "THE_LOOP_STATE_ROOT";

/// What a command's flags put over the file (CF-7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--registry-dir`: the session records' directory, relative to the current directory.
    pub registry_dir: Option<String>,
}

/// Settings that can be used.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Every effective value, paths absolute.
    pub settings: Arc<Settings>,
    /// The file; none for built-in defaults. Children are told this path and never search (CF-4).
    pub path: Option<Utf8PathBuf>,
    /// How the file was found.
    pub place: Option<Place>,
    /// From where relative paths are taken (CF-5).
    pub base_dir: Utf8PathBuf,
    /// Where each value comes from.
    pub origins: Origins,
    /// A file that was passed over (CF-2): every command says so.
    pub notices: Vec<Problem>,
    /// What the document is worth warning of (CF-14): said at start, at reload and by `config check`,
    /// together with [`warnings_of_machine`](super::warnings_of_machine).
    pub warnings: Vec<Problem>,
    /// SHA-256 of the file's bytes, hex (CF-9).
    pub hash: String,
}

/// What `main` goes on with.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The world, its environment filled up from the env file (CF-33).
    pub world: World,
    /// The settings, or why there are none.
    pub loaded: Result<Loaded, Box<ConfigFault>>,
    /// What is wrong with the env file (CF-32); said at start.
    pub env_warnings: Vec<Problem>,
}

/// Finds, reads and checks.
///
/// # Errors
/// A file that was named and is not there, that cannot be read, or that has any problem.
pub fn load(
    world: &World,
    flag: Option<&str>,
    overrides: &Overrides,
) -> Result<Loaded, Box<ConfigFault>> {
    let search = find(world, flag);
    load_found(world, search.found.as_ref(), overrides, search.warnings)
}

/// Checks one file, whatever the search would find: `config check FILE`.
///
/// # Errors
/// As [`load`].
pub fn check_file(world: &World, file: &str) -> Result<Loaded, Box<ConfigFault>> {
    let found = Found {
        path: named_path(world, file),
        place: Place::Flag,
    };
    load_found(world, Some(&found), &Overrides::default(), Vec::new())
}

/// As [`load`], and fills the environment from the env file, even when the rest cannot be used.
pub fn prepare(world: World, flag: Option<&str>, overrides: &Overrides) -> Prepared {
    let loaded = load(&world, flag, overrides);
    let settings = match &loaded {
        Ok(loaded) => &loaded.settings,
        Err(fault) => &fault.readable,
    };
    let (filled, env_warnings) = envfile::fill(&world, settings);
    // The env file may hold the variables that the search and the layers look at.
    let again = [super::find::CONFIG_VARIABLE, ROOT_VARIABLE]
        .iter()
        .any(|name| filled.var(name) != world.var(name));
    let loaded = if again {
        load(&filled, flag, overrides)
    } else {
        loaded
    };
    Prepared {
        world: filled,
        loaded,
        env_warnings,
    }
}

pub(super) fn load_found(
    world: &World,
    found: Option<&Found>,
    overrides: &Overrides,
    notices: Vec<Problem>,
) -> Result<Loaded, Box<ConfigFault>> {
    let path = found.map(|found| found.path.clone());
    let (bytes, unread) = match found.map(|found| read(world, found)) {
        None => (Vec::new(), None),
        Some(Ok(bytes)) => (bytes, None),
        Some(Err(problem)) => (Vec::new(), Some(problem)),
    };
    let mut layers = layers(world, path.as_deref(), overrides, &bytes);
    let readable = unread.is_none();
    layers.checked.problems.splice(0..0, unread);
    let hash = if readable {
        hex::encode(Sha256::digest(&bytes))
    } else {
        String::new()
    };
    let settings = Arc::new(layers.checked.settings.settled(&layers.places));
    if !layers.checked.problems.is_empty() {
        let mut warnings = notices;
        warnings.extend(layers.checked.warnings);
        return Err(Box::new(ConfigFault {
            path,
            problems: layers.checked.problems,
            warnings,
            readable: settings,
            hash,
        }));
    }
    Ok(Loaded {
        settings,
        path,
        place: found.map(|found| found.place),
        base_dir: layers.places.base.into(),
        origins: layers.origins,
        notices,
        warnings: layers.checked.warnings,
        hash,
    })
}

struct Layers {
    checked: Checked,
    origins: Origins,
    places: Places,
}

/// Default, file, environment, flag, from low to high (CF-7).
fn layers(world: &World, path: Option<&Utf8Path>, overrides: &Overrides, bytes: &[u8]) -> Layers {
    let document = yaml::parse(bytes);
    let home = world.home.is_some();
    let mut checked = check(document.root.as_ref(), document.problems, home);
    let mut origins = Origins::of_file(&checked.positions);
    let places = places(world, path);
    if let Some(root) = world.var(ROOT_VARIABLE) {
        if root.starts_with('/') && !root.contains(['\n', '\r', '\0']) {
            root.clone_into(&mut checked.settings.state.root);
            origins.set("state.root", Origin::Env(ROOT_VARIABLE));
        } else {
            let message = format!("{ROOT_VARIABLE} must be an absolute path");
            checked.problems.insert(0, Problem::whole(message));
        }
    }
    if let Some(dir) = &overrides.registry_dir {
        let dir = named_path(world, dir).into_string();
        checked.settings.routing.registry_dir = dir;
        origins.set("routing.registryDir", Origin::Flag("--registry-dir"));
    }
    Layers {
        checked,
        origins,
        places,
    }
}

/// The bytes of a file, links followed.
fn read(world: &World, found: &Found) -> Result<Vec<u8>, Problem> {
    let path = &found.path;
    let real = world.disk.canonicalize(path);
    match real.and_then(|real| world.disk.read(&real, DOCUMENT_BYTES_MAX)) {
        Ok(bytes) => Ok(bytes),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let problem = Problem::whole(format!("no configuration at {}", shown(world, path)));
            Err(match found.place {
                Place::Flag | Place::Env => problem.hint(format!("from {}", found.place.words())),
                Place::CurrentDir | Place::Home => problem,
            })
        }
        Err(e) => {
            let why = if e.kind() == io::ErrorKind::FileTooLarge {
                "it is larger than 1 MiB".to_owned()
            } else {
                words(&e)
            };
            let message = format!("cannot read {}: {why}", shown(world, path));
            Err(Problem::whole(message))
        }
    }
}
