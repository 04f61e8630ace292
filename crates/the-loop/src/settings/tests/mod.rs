//! Tests over real directories; each has its own home.

mod document;
mod environment;
mod harnesses;
mod layers;
mod live;
mod messages;
mod search;

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::clock::Clock;
use crate::disk::OsDisk;
use crate::ids::Ids;
use crate::process::OsProcesses;
use crate::world::World;

/// A machine of its own: a home, a directory to stand in, a clock that stands still.
pub(crate) struct Machine {
    /// Removed at the end of the test.
    _dir: tempfile::TempDir,
    pub home: Utf8PathBuf,
    pub cwd: Utf8PathBuf,
    pub world: World,
}

impl Machine {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = Utf8Path::from_path(dir.path()).unwrap();
        let top = crate::disk::Disk::canonicalize(&OsDisk, top).unwrap();
        let (home, cwd) = (top.join("home"), top.join("work"));
        let world = World {
            disk: Arc::new(OsDisk),
            processes: Arc::new(OsProcesses),
            clock: Clock::manual("2026-03-01T09:00:00Z".parse().unwrap()),
            ids: Ids::seeded(1),
            env: Arc::default(),
            cwd: cwd.clone(),
            home: Some(home.clone()),
            user: "octo".to_owned(),
            program: "/usr/bin/the-loop".into(),
            pid: 1,
        };
        for made in [&home, &cwd] {
            world.disk.create_dir_all(made).unwrap();
        }
        Self {
            _dir: dir,
            home,
            cwd,
            world,
        }
    }

    /// Sets a variable.
    pub fn env(&mut self, name: &str, value: &str) {
        Arc::make_mut(&mut self.world.env).insert(name.to_owned(), value.to_owned());
    }

    /// Writes a file, 0600, with its directories.
    pub fn write(&self, path: &Utf8Path, text: &str) {
        let disk = &self.world.disk;
        disk.create_dir_all(path.parent().unwrap()).unwrap();
        disk.write_atomic(path, text.as_bytes(), false).unwrap();
    }

    /// Writes the configuration of the home directory and gives its path.
    pub fn config(&self, text: &str) -> Utf8PathBuf {
        let path = self.home.join(".the-loop/cli-config.yaml");
        self.write(&path, text);
        path
    }

    /// Runs git in a directory, with nobody's configuration but ours.
    pub fn git(&self, dir: &Utf8Path, args: &[&str]) {
        let mut call = crate::process::Call::new("git", args.iter().copied()).cwd(dir);
        for (name, value) in [
            ("HOME", self.home.as_str()),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "o"),
            ("GIT_AUTHOR_EMAIL", "o@example.invalid"),
            ("GIT_COMMITTER_NAME", "o"),
            ("GIT_COMMITTER_EMAIL", "o@example.invalid"),
        ] {
            call.env.insert(name.to_owned(), Some(value.to_owned()));
        }
        let answer = self.world.processes.run(&call);
        assert_eq!(
            answer.exit,
            Ok(0),
            "{}",
            String::from_utf8_lossy(&answer.stderr)
        );
    }
}
