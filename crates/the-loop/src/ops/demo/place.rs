//! Where a demo happens: a directory with a repository, a configuration and a state root of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use super::{Demo, REPO, STEP_WITHIN};
use crate::ops::daemon::{Enabled, Stop, stop as stop_daemon};
use crate::ops::desk::Desk;
use crate::ops::error::{Kind, OpError};
use crate::process::{Answer, Call};
use crate::settings::{self, Overrides};
use crate::world::World;

/// Names of ours that would lead the demo to another configuration or root.
const NOT_INHERITED: [&str; 5] = [
    "THE_LOOP_CLI_CONFIG",
    "THE_LOOP_STATE_ROOT",
    "THE_LOOP_WORK_ITEM",
    "THE_LOOP_INSTANCE",
    "NOTIFY_SOCKET",
];

/// Where it happens.
pub(super) struct Place {
    /// The world without the operator's own configuration.
    pub(super) world: World,
    /// The directory that holds everything.
    pub(super) dir: Utf8PathBuf,
    /// Name of the private tmux server.
    pub(super) socket: String,
}

impl Place {
    pub(super) fn make(world: &World, asked: &Demo) -> Result<Self, OpError> {
        let unique = world.ids.hex::<4>();
        let temporary = world.var("TMPDIR").filter(|dir| dir.starts_with('/'));
        let dir =
            Utf8Path::new(temporary.unwrap_or("/tmp")).join(format!("the-loop-demo-{unique}"));
        let disk = &world.disk;
        let failed = |e: std::io::Error| OpError::failed(format!("{dir}: cannot make it"), &e);
        disk.create_dir_all(&dir).map_err(failed)?;
        let dir = disk.canonicalize(&dir).map_err(failed)?;
        let mut env: BTreeMap<String, String> = (*world.env).clone();
        for name in NOT_INHERITED {
            env.remove(name);
        }
        let place = Self {
            world: World {
                env: Arc::new(env),
                cwd: dir.clone(),
                ..world.clone()
            },
            socket: format!("the-loop-demo-{unique}"),
            dir,
        };
        place.make_repository()?;
        let config = place.config_text(asked);
        let written = disk.create_new(&place.config(), config.as_bytes(), 0o600);
        written.map_err(|e| OpError::failed(format!("{}: cannot write it", place.config()), &e))?;
        Ok(place)
    }

    fn config(&self) -> Utf8PathBuf {
        self.dir.join("cli-config.yaml")
    }
    pub(super) fn root(&self) -> Utf8PathBuf {
        self.dir.join("state")
    }
    fn remote(&self) -> Utf8PathBuf {
        self.dir.join("hello.git")
    }

    /// A small configuration; the limits of this machine are no part of the demo.
    fn config_text(&self, asked: &Demo) -> String {
        let text = |path: Utf8PathBuf| Value::from(path.into_string()).to_string();
        let probe = if asked.harness == "demo" { "0.3" } else { "2" };
        format!(
            "version: 1.0.0\n\
             state:\n  root: {root}\n\
             routing:\n  \
               defaultHarness: {harness}\n  \
               spawnOnUnmatched: labeled\n  \
               workspace:\n    root: {workspace}\n  \
               tmux:\n    socketName: {socket}\n    resumeProbeSeconds: {probe}\n  \
               limits:\n    minFreeMemoryMb: 0\n    minFreeDiskMb: 0\n\
             tracker:\n  local:\n    repos:\n      {REPO}: {remote}\n",
            root = text(self.root()),
            harness = Value::from(asked.harness.as_str()),
            workspace = text(self.dir.join("work")),
            socket = self.socket,
            remote = text(self.remote()),
        )
    }

    /// A bare repository with one commit.
    fn make_repository(&self) -> Result<(), OpError> {
        let seed = self.dir.join("seed");
        let disk = &self.world.disk;
        let failed = |e: std::io::Error| OpError::failed(format!("{seed}: cannot make it"), &e);
        disk.create_dir_all(&seed).map_err(failed)?;
        let readme = b"# hello\n\nA repository for the demo of the-loop.\n";
        disk.create_new(&seed.join("README.md"), readme, 0o644)
            .map_err(failed)?;
        let remote = self.remote();
        self.git(
            &self.dir,
            &["init", "--quiet", "--bare", "-b", "main", remote.as_str()],
        )?;
        self.git(&seed, &["init", "--quiet", "-b", "main", "."])?;
        self.git(&seed, &["add", "README.md"])?;
        let commit = [
            "-c",
            "user.name=the-loop demo",
            "-c",
            "user.email=demo@localhost",
            "-c",
            "commit.gpgSign=false",
            "commit",
            "--quiet",
            "-m",
            "first commit",
        ];
        self.git(&seed, &commit)?;
        self.git(&seed, &["push", "--quiet", remote.as_str(), "main"])?;
        disk.remove_dir_all(&seed).map_err(failed)?;
        Ok(())
    }

    pub(super) fn git(&self, dir: &Utf8Path, args: &[&str]) -> Result<Answer, OpError> {
        let call = Call::new("git", args.iter().copied())
            .cwd(dir)
            .env("GIT_TERMINAL_PROMPT", "0")
            .timeout(Duration::from_secs(30));
        let answer = self.world.processes.run(&call);
        if answer.ok() {
            return Ok(answer);
        }
        let what = args
            .iter()
            .find(|word| !word.starts_with('-'))
            .unwrap_or(&"");
        let made = OpError::new(Kind::Failed, format!("git {what}: {}", answer.describe()));
        Err(made.hint("is git installed?"))
    }

    /// This program again, over the demo's configuration.
    pub(super) fn program(&self, args: &[&str]) -> Answer {
        let config = self.config();
        let words = ["--config", config.as_str()].into_iter();
        let mut call = Call::new(
            self.world.program.as_str(),
            words.chain(args.iter().copied()),
        )
        .cwd(&self.dir)
        .timeout(Duration::from_mins(1));
        for name in NOT_INHERITED {
            call = call.without_env(name);
        }
        self.world.processes.run(&call)
    }

    pub(super) fn desk(&self) -> Result<Desk, OpError> {
        let config = self.config();
        let loaded = settings::load(&self.world, Some(config.as_str()), &Overrides::default());
        let loaded = loaded.map_err(|e| OpError::failed("the demo's configuration", e.as_ref()))?;
        Ok(Desk::new(&self.world, loaded, None, STEP_WITHIN))
    }

    /// Ends the daemon and the private tmux server, whatever became of the demo.
    pub(super) fn end(&self) {
        if let Ok(desk) = self.desk() {
            let how = Stop {
                timeout: Duration::from_secs(10),
                force: true,
                restart: false,
            };
            stop_daemon(&self.world, &desk.layout, Enabled::of(desk.settings()), how);
        }
        let call = Call::new("tmux", ["-L", &self.socket, "kill-server"]);
        let _ = self.world.processes.run(&call);
    }

    pub(super) fn left(&self) -> Vec<(String, String)> {
        let (config, dir) = (self.config(), &self.dir);
        let on = |words: &str| format!("the-loop -c {config} {words}");
        vec![
            ("files".to_owned(), dir.to_string()),
            ("daemon".to_owned(), on("status")),
            (
                "ticket".to_owned(),
                on(&format!("tickets show local:{REPO}#1")),
            ),
            ("trail".to_owned(), on("events")),
            ("end it".to_owned(), on("stop")),
            (
                "tmux".to_owned(),
                format!("tmux -L {} kill-server", self.socket),
            ),
            ("remove it".to_owned(), format!("rm -r {dir}")),
        ]
    }
}
