//! A world in a temporary directory, for the tests of this folder.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::{HarnessSessionId, Marker};
use the_loop_core::time::Timestamp;

use crate::clock::Clock;
use crate::disk::OsDisk;
use crate::ids::Ids;
use crate::process::OsProcesses;
use crate::world::World;

pub const SESSION: &str = "11111111-2222-4333-8444-000000000001";

/// A temporary directory and a world that has it as its home.
pub fn world() -> (tempfile::TempDir, Utf8PathBuf, World) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
    let world = World {
        disk: Arc::new(OsDisk),
        processes: Arc::new(OsProcesses),
        clock: Clock::manual(at(1_000_000)),
        ids: Ids::seeded(7),
        env: Arc::new(BTreeMap::new()),
        cwd: path.clone(),
        home: Some(path.clone()),
        user: "ada".to_owned(),
        program: "/opt/the loop/the-loop".into(),
        pid: 1,
    };
    (dir, path, world)
}

/// The same world with these variables.
pub fn with_env(mut world: World, env: &[(&str, &str)]) -> World {
    let mut all = (*world.env).clone();
    all.extend(env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
    world.env = Arc::new(all);
    world
}

/// The environment of a pane, for a place.
pub fn pane_env(vars: &[(&str, &Utf8Path)]) -> Arc<BTreeMap<String, String>> {
    let vars = vars.iter();
    Arc::new(
        vars.map(|(name, value)| ((*name).to_owned(), value.to_string()))
            .collect(),
    )
}

pub fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(ms)
}

pub fn session() -> HarnessSessionId {
    HarnessSessionId::parse(SESSION).unwrap()
}

pub fn marker() -> Marker {
    Marker::parse("dlv-9f3c0a1b2d4e5f60").unwrap()
}

pub fn header() -> String {
    format!(
        "the-loop delivery {} for local:octo/repo#15: start",
        marker()
    )
}
