//! A world in a temporary directory for the tests of the stores.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::time::Timestamp;

use super::layout::Layout;
use crate::clock::Clock;
use crate::disk::OsDisk;
use crate::ids::Ids;
use crate::process::OsProcesses;
use crate::world::World;

/// A root of its own, removed with the value.
pub(crate) struct Place {
    pub world: World,
    pub layout: Layout,
    dir: tempfile::TempDir,
}

impl Place {
    /// With a clock that a test moves.
    pub fn new() -> Self {
        Self::with_clock(Clock::manual(at("2026-03-01T09:00:00Z")))
    }

    /// With the machine's clock, for tests in which threads wait for each other.
    pub fn with_clock(clock: Clock) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let world = World {
            disk: Arc::new(OsDisk),
            processes: Arc::new(OsProcesses),
            clock,
            ids: Ids::seeded(7),
            env: Arc::default(),
            cwd: base.clone(),
            home: None,
            user: "ada".to_owned(),
            program: base.join("the-loop"),
            pid: std::process::id(),
        };
        let layout = Layout::new(base.join(".the-loop"));
        layout.ensure(&world).unwrap();
        Self { world, layout, dir }
    }

    pub fn base(&self) -> &Utf8Path {
        Utf8Path::from_path(self.dir.path()).unwrap()
    }

    /// Puts a file there as somebody else would.
    pub fn put(&self, path: &Utf8Path, bytes: &[u8]) {
        let disk = &self.world.disk;
        disk.create_dir_all(path.parent().unwrap()).unwrap();
        disk.write_atomic(path, bytes, false).unwrap();
    }

    /// The text of a file, `None` when there is none.
    pub fn text(&self, path: &Utf8Path) -> Option<String> {
        let bytes = self.world.disk.read(path, 1 << 24).ok()?;
        Some(String::from_utf8(bytes).unwrap())
    }

    /// Every file below the root, relative to it, sorted.
    pub fn files(&self) -> Vec<String> {
        let root = self.layout.root();
        let mut found = Vec::new();
        let mut dirs = vec![root.clone()];
        while let Some(dir) = dirs.pop() {
            for name in self.world.disk.list(&dir).unwrap() {
                let path = dir.join(name);
                let meta = self.world.disk.meta(&path).unwrap().unwrap();
                if meta.kind == crate::disk::Kind::Dir {
                    dirs.push(path);
                } else {
                    found.push(path.strip_prefix(&root).unwrap().to_string());
                }
            }
        }
        found.sort_unstable();
        found
    }
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn item(text: &str) -> WorkItemRef {
    text.parse().unwrap()
}
