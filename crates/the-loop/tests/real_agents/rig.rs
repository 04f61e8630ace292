//! The built program with a real agent: throw-away home and repository, private tmux server, a model
//! server of ours.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use the_loop_testkit::FakeModel;

use crate::agent::Agent;

/// The one ticket of the tests.
pub const ITEM: &str = "local:demo/hello#1";
/// Where its session runs.
pub const TARGET: &str = "loop-local-demo-hello-1";
/// A value that must never be seen in an argument or an environment of tmux.
pub const SECRET: &str = "canary-of-the-environment-file";

/// Longest wait for one thing; a real program on a busy machine takes its time.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a hold is watched for a paste that must not come: several ticks of the supervision.
const WATCHED: Duration = Duration::from_secs(4);

pub struct Rig {
    dir: TempDir,
    socket: String,
    pub agent: &'static Agent,
    pub model: FakeModel,
}

impl Rig {
    /// With one more line of the section `routing`. `None`, said loudly, without the program.
    pub fn new(agent: &'static Agent, routing: &str) -> Option<Self> {
        let variable = agent.variable;
        let Ok(program) = std::env::var(variable) else {
            eprintln!("SKIPPED: {variable} does not name the program; see scripts/test-harnesses");
            return None;
        };
        let dir = tempfile::Builder::new().prefix("tl").tempdir().unwrap();
        let name = dir.path().file_name().unwrap().to_string_lossy();
        let socket = format!("tl-real-{}", name.replace('.', ""));
        let model = FakeModel::start().unwrap();
        let rig = Self {
            dir,
            socket,
            agent,
            model,
        };
        for made in ["home/.the-loop", "tmux", "bin"] {
            std::fs::create_dir_all(rig.path(made)).unwrap();
        }
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, rig.path("bin").join(name)).unwrap();
        };
        link(&program, agent.name);
        link(env!("CARGO_BIN_EXE_the-loop"), "the-loop");
        rig.make_repository();
        rig.configure(routing);
        (agent.settle)(&rig.path("home"), &rig.model.base_url());
        Some(rig)
    }

    fn configure(&self, routing: &str) {
        let root = self.path("home/.the-loop");
        let mut env = String::new();
        for (name, value) in (self.agent.env)(&self.model.base_url()) {
            env += &format!("{name}={value}\n");
        }
        let config = format!(
            "version: 1.0.0\nenv: {{file: env}}\nrouting:\n  defaultHarness: {name}\n  \
             spawnOnUnmatched: labeled\n  harnessArgs: {{{name}: [{args}]}}\n  \
             workspace: {{root: {work}}}\n  tmux: {{socketName: {socket}, holdMaxSeconds: 2}}\n  \
             {routing}\n  limits: {{minFreeMemoryMb: 0, minFreeDiskMb: 0}}\n\
             tracker: {{local: {{repos: {{demo/hello: {repo}}}}}}}\n",
            name = self.agent.name,
            args = self.agent.args.join(", "),
            work = self.path("work").display(),
            socket = self.socket,
            repo = self.path("hello.git").display(),
        );
        for (name, text) in [("env", env), ("cli-config.yaml", config)] {
            let file = root.join(name);
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
    }

    fn make_repository(&self) {
        let seed = self.path("seed");
        std::fs::create_dir(&seed).unwrap();
        std::fs::write(seed.join("keep-me"), "hello\n").unwrap();
        let git = |dir: &Path, args: &[&str]| {
            let done = Command::new("git")
                .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
                .args(["-c", "commit.gpgSign=false"])
                .args(args)
                .current_dir(dir)
                .env("HOME", self.path("home"))
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        git(
            self.dir.path(),
            &["init", "-q", "--bare", "-b", "main", "hello.git"],
        );
        git(&seed, &["init", "-q", "-b", "main", "."]);
        git(&seed, &["add", "."]);
        git(&seed, &["commit", "-q", "-m", "first"]);
        git(&seed, &["push", "-q", "../hello.git", "main"]);
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// The ticket's checkout.
    pub fn checkout(&self, below: &str) -> PathBuf {
        let work = "work/.worktrees/local/demo/hello/local-demo-hello-1";
        self.path(work).join(below)
    }

    fn program(&self, args: &[&str]) -> Output {
        let path = format!(
            "{}:/usr/local/bin:/usr/bin:/bin",
            self.path("bin").display()
        );
        assert_cmd::Command::new(env!("CARGO_BIN_EXE_the-loop"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("LANG", "C.UTF-8")
            .env("TMUX_TMPDIR", self.path("tmux"))
            .env("TMPDIR", self.path("tmux"))
            .current_dir(self.dir.path())
            .timeout(Duration::from_secs(90))
            .args(args)
            .output()
            .unwrap()
    }

    /// Runs a command line that must succeed.
    pub fn ok(&self, args: &[&str]) -> String {
        let done = self.program(args);
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Runs a command line that must fail; what it said.
    pub fn refused(&self, args: &[&str]) -> String {
        let done = self.program(args);
        assert!(!done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stderr).unwrap()
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let mut words = args.to_vec();
        words.extend(["--format", "json"]);
        serde_json::from_str(&self.ok(&words)).unwrap()
    }

    /// Every event of a name so far, read from the log itself.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let log = self.path("home/.the-loop/logs/events.jsonl");
        let text = std::fs::read_to_string(log).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| event["event"] == name)
            .collect()
    }

    /// Says something on the ticket without waiting for what becomes of it.
    pub fn comment(&self, body: &str) {
        let file = self.path("body");
        std::fs::write(&file, body).unwrap();
        let file = file.display().to_string();
        self.ok(&[
            "tickets",
            "comment",
            ITEM,
            "--body-file",
            &file,
            "--no-wait",
        ]);
    }

    /// Waits for so many confirmed deliveries, all of them told by what the agent is known to tell.
    pub fn confirmed(&self, count: usize) {
        let what = format!("{count} confirmed deliveries");
        self.until(&what, || {
            (self.events("delivery.confirmed").len() >= count).then_some(())
        });
        let all = self.events("delivery.confirmed");
        assert_eq!(all.len(), count, "{all:#?}");
        let by = self.agent.confirms;
        assert!(all.iter().all(|event| event["by"] == by), "{all:#?}");
    }

    /// Waits for a file in the checkout that the agent makes.
    pub fn made(&self, name: &str) {
        let file = self.checkout(name);
        self.until(name, || file.exists().then_some(()));
    }

    /// The ticket's session as `sessions list` shows it.
    pub fn session(&self) -> Value {
        self.json(&["sessions", "list"])[0].clone()
    }

    pub fn state(&self, wanted: &str) {
        self.until(wanted, || (self.session()["state"] == wanted).then_some(()));
    }

    /// Watches for a while that a delivery waits for this reason, and that nothing reaches the agent.
    pub fn stays_held(&self, reason: &str) {
        let waits = || self.json(&["deliveries", "list"])[0]["heldBecause"] == reason;
        self.until(&format!("a delivery held for {reason}"), || {
            waits().then_some(())
        });
        let (since, prompts) = (Instant::now(), self.model.prompts().len());
        self.until("the end of the watch", || {
            assert!(waits(), "it is held as long as it has to be");
            assert_eq!(
                self.model.prompts().len(),
                prompts,
                "the agent heard something"
            );
            (since.elapsed() > WATCHED).then_some(())
        });
        let told = |event: &&Value| event["reason"] == reason;
        let held = self.events("delivery.held");
        assert_eq!(held.iter().filter(told).count(), 1, "{held:#?}");
    }

    /// Types into the pane as a person does.
    pub fn types(&self, keys: &[&str]) {
        let target = format!("={TARGET}:");
        let mut words = vec!["send-keys", "-t", &target];
        words.extend(keys);
        let done = self.tmux(&words);
        assert!(done.status.success(), "{done:?}");
    }

    /// Kills a process as a crash does.
    pub fn crash(pid: &Value) {
        let pid = pid.to_string();
        let killed = Command::new("kill").args(["-9", &pid]).output().unwrap();
        assert!(killed.status.success(), "{killed:?}");
    }

    /// Waits until the pane shows this.
    pub fn shows(&self, text: &str) {
        self.until(text, || self.screen().contains(text).then_some(()));
    }

    pub fn screen(&self) -> String {
        let target = format!("={TARGET}:");
        let done = self.tmux(&["capture-pane", "-p", "-t", &target]);
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    pub fn tmux(&self, args: &[&str]) -> Output {
        Command::new("tmux")
            .args(["-L", &self.socket])
            .args(args)
            .env("TMUX_TMPDIR", self.path("tmux"))
            .env_remove("TMUX")
            .output()
            .unwrap()
    }

    /// Waits for a named condition.
    pub fn until<T>(&self, what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(seen) = seen() {
                return seen;
            }
            assert!(
                Instant::now() < deadline,
                "never: {what}\n{}\n{:#}\n{}\n{}",
                self.screen(),
                self.json(&["deliveries", "list"]),
                self.ok(&["events", "--limit", "30"]),
                self.daemon(),
            );
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    /// What the daemon's threads do, of which a test that fails for a daemon that hangs has to tell.
    fn daemon(&self) -> String {
        let status = self.program(&["status", "--format", "json"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        let service = &status["services"][0];
        let tasks = format!("/proc/{}/task", service["pid"]);
        let read = |task: &Path, file: &str| {
            let text = std::fs::read_to_string(task.join(file));
            text.unwrap_or_default().trim().to_owned()
        };
        let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
        let told = tasks.map(|task| {
            let task = task.path();
            let files = ["comm", "wchan", "syscall"].map(|file| read(&task, file));
            files.join(" ")
        });
        format!("{service:#}\n{}", told.collect::<Vec<_>>().join("\n"))
    }

    /// Processes that carry this root's mark.
    pub fn marked(&self) -> Vec<String> {
        let instance = self.path("home/.the-loop/local/instance");
        let instance = std::fs::read_to_string(instance).unwrap();
        let mark = format!("THE_LOOP_INSTANCE={}", instance.trim());
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
        pids.filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|b| *b == 0).any(|var| var == mark.as_bytes())
        })
        .collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = self.program(&["stop", "--timeout", "5", "--force"]);
        let _ = self.tmux(&["kill-server"]);
    }
}
