//! A throw-away machine: home, state root, remote repository, tmux server and daemon, all ended on drop.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

use super::http::{SECRET, is_up, post};
use super::payload::{MAINTAINER, comment, labeled};

/// Longest wait for one thing on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Nothing is written to GitHub, wherever the machine might have a credential.
const NOBODY_ASKED: &str = ", cli: {binary: ''}";

pub struct Rig {
    dir: TempDir,
    pub socket: String,
    pub port: u16,
    daemon: Mutex<Option<Child>>,
    next_id: AtomicU64,
}

/// What a test wants otherwise.
#[derive(Default)]
pub struct Wish<'a> {
    /// Lines of the agents' environment file.
    pub env: &'a str,
    /// More of `routing.tmux`, each with a comma before it.
    pub tmux: &'a str,
    /// More of `routing`: lines that begin with two blanks.
    pub routing: &'a str,
    /// More of `integrations.github`, each with a comma before it.
    pub github: &'a str,
    /// More of the configuration.
    pub more: &'a str,
}

impl Rig {
    pub fn new() -> Self {
        Self::with(&Wish::default())
    }

    pub fn with(wish: &Wish<'_>) -> Self {
        let dir = tempfile::Builder::new().prefix("tl").tempdir().unwrap();
        let name = dir.path().file_name().unwrap().to_string_lossy();
        let rig = Self {
            socket: format!("tl-e2e-{}", name.replace('.', "")),
            dir,
            port: free_port(),
            daemon: Mutex::new(None),
            next_id: AtomicU64::new(1),
        };
        for made in ["home/.the-loop", "tmux", "octo"] {
            std::fs::create_dir_all(rig.path(made)).unwrap();
        }
        rig.make_repository();
        rig.configure(wish);
        rig
    }

    fn configure(&self, wish: &Wish<'_>) {
        let config = format!(
            "version: 1.0.0\nenv: {{file: env}}\nrouting:\n  enabled: true\n  defaultHarness: demo\n  \
             authorizedUsers: [{MAINTAINER}]\n  spawnOnUnmatched: labeled\n  \
             workspace: {{root: {work}}}\n  tmux: {{socketName: {socket}, resumeProbeSeconds: 0, \
             confirmTimeoutSeconds: 2, harnessKillGraceSeconds: 1{tmux}}}\n{routing}  \
             limits: {{minFreeMemoryMb: 0, minFreeDiskMb: 0, maxDeliveriesPerItemPerHour: 0, \
             maxDeliveriesPerItemPerDay: 0}}\n\
             integrations: {{github: {{cloneUrls: {{github.com: 'file://{dir}/{{owner}}/{{repo}}.git'}}{github}}}}}\n\
             webhooks: {{ghWebhook: {{enabled: true, port: {port}, secretFile: secret}}}}\n{more}",
            work = self.path("work").display(),
            socket = self.socket,
            tmux = wish.tmux,
            routing = wish.routing,
            github = if wish.github.is_empty() {
                NOBODY_ASKED
            } else {
                wish.github
            },
            dir = self.dir.path().display(),
            port = self.port,
            more = wish.more,
        );
        self.write("home/.the-loop/cli-config.yaml", &config);
        self.write("home/.the-loop/env", wish.env);
        self.write("home/.the-loop/secret", &format!("{SECRET}\n"));
    }

    /// Writes a file that only its owner may read.
    pub fn write(&self, below: &str, text: &str) {
        let file = self.path(below);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn make_repository(&self) {
        let seed = self.path("seed");
        std::fs::create_dir(&seed).unwrap();
        std::fs::write(seed.join("keep-me"), "hello\n").unwrap();
        self.git(
            self.dir.path(),
            &["init", "-q", "--bare", "-b", "main", "octo/repo.git"],
        );
        self.git(&seed, &["init", "-q", "-b", "main", "."]);
        self.git(&seed, &["add", "."]);
        self.git(&seed, &["commit", "-q", "-m", "first"]);
        self.git(&seed, &["push", "-q", "../octo/repo.git", "main"]);
    }

    pub fn git(&self, dir: &Path, args: &[&str]) -> String {
        let done = Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@localhost"])
            .args(["-c", "commit.gpgSign=false"])
            .args(args)
            .current_dir(dir)
            .env("HOME", self.path("home"))
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    pub fn root(&self, below: &str) -> PathBuf {
        self.path("home/.the-loop").join(below)
    }

    pub fn checkout(&self, number: u64) -> PathBuf {
        let below = "work/.worktrees/github.com/octo/repo/github-octo-repo-";
        self.path(&format!("{below}{number}"))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            // As given: another version of tmux may stand first on it.
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("LANG", "C.UTF-8")
            .env("TMUX_TMPDIR", self.path("tmux"))
            .env("TMPDIR", self.path("tmux"))
            .current_dir(self.dir.path());
        command
    }

    /// The program, for one command line.
    pub fn program(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_the-loop"));
        command.args(args).stdin(Stdio::null());
        command
    }

    /// Runs a command line that must succeed; its stdout.
    pub fn ok(&self, args: &[&str]) -> String {
        let done = self.program(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Starts the daemon and waits until it receives.
    pub fn up(&self) {
        self.launch(self.program(&["start", "--foreground"]));
        self.until("the receiver answers", || is_up(self.port).then_some(()));
    }

    /// Starts the daemon by this command and does not wait.
    pub fn launch(&self, mut command: Command) {
        let append = |name: &str| {
            let file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(self.path(name));
            Stdio::from(file.unwrap())
        };
        let child = command
            .stdout(append("out"))
            .stderr(append("err"))
            .spawn()
            .unwrap();
        assert!(self.daemon().replace(child).is_none(), "one daemon");
    }

    fn daemon(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.daemon
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The daemon's pid.
    pub fn pid(&self) -> u32 {
        self.daemon().as_ref().unwrap().id()
    }

    /// `kill -9`.
    pub fn kill(&self) {
        if let Some(mut daemon) = self.daemon().take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }

    /// Has the daemon ended by another's doing?
    pub fn is_over(&self) -> bool {
        let over = self.daemon().as_mut().map(Child::try_wait);
        over.unwrap().unwrap().is_some()
    }

    /// Waits until the daemon has ended by another's doing.
    pub fn ended(&self) {
        self.until("the end of the daemon", || self.is_over().then_some(()));
        self.kill();
    }

    /// Posts a delivery; its status and word.
    pub fn post(&self, event: &str, id: &str, body: &Value) -> std::io::Result<(u16, String)> {
        post(self.port, event, id, body)
    }

    /// A number that no delivery had yet.
    pub fn fresh(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::SeqCst)
    }

    /// Posts a delivery that must be accepted; its id.
    pub fn accepted(&self, event: &str, body: &Value) -> String {
        let id = format!("e2e-{}", self.fresh());
        let answer = self.post(event, &id, body).unwrap();
        assert_eq!(answer, (202, "accepted".to_owned()), "{body}");
        id
    }

    /// An authorised comment; its delivery's id.
    pub fn say(&self, number: u64, body: &str) -> String {
        self.say_as(number, MAINTAINER, body)
    }

    pub fn say_as(&self, number: u64, login: &str, body: &str) -> String {
        let payload = comment(number, self.fresh(), login, body);
        self.accepted("issue_comment", &payload)
    }

    /// Label and start by an authorised person; waits until the agent has its first prompt.
    pub fn start(&self, number: u64) {
        self.accepted("issues", &labeled(number, MAINTAINER));
        let id = self.say(number, "the-loop start");
        self.confirmed(&id);
    }

    pub fn confirmed(&self, id: &str) {
        self.event("delivery.confirmed", |event| event["delivery_id"] == id);
    }

    /// Waits until the inbox has this outcome of a delivery: the log tells it a moment before.
    pub fn kept(&self, id: &str, state: &str) {
        let word = format!("\"{state}\"");
        self.until("a kept outcome", || {
            let told = self.ok(&["deliveries", "show", id, "--format", "json"]);
            told.contains(&word).then_some(())
        });
    }

    /// The whole log. Every line is checked against the vocabulary (EV-4).
    pub fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.root("logs/events.jsonl")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .map(|line| {
                let value: Value =
                    serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
                let checked = the_loop_core::event::check_line(value.as_object().unwrap());
                assert_eq!(checked, Ok(()), "{line}");
                value
            })
            .collect()
    }

    /// Every event of a name so far.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let mut log = self.log();
        log.retain(|event| event["event"] == name);
        log
    }

    /// Waits for an event.
    pub fn event(&self, name: &str, is: impl Fn(&Value) -> bool) -> Value {
        self.until(name, || self.events(name).into_iter().find(&is))
    }

    /// Every prompt that the agent of an item took, in order, with the mail it was pointed to.
    pub fn prompts(&self, number: u64) -> Vec<String> {
        let ours = format!("for github:octo/repo#{number}: ");
        let mut found = Vec::new();
        for file in files(&self.root("local/demo")) {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            for line in text.lines() {
                let entry: Value = serde_json::from_str(line).unwrap();
                let text = entry["text"].as_str().unwrap();
                let first = text.lines().next().unwrap_or_default();
                if entry["role"] == "user" && first.contains(&ours) {
                    found.push((entry["at"].as_u64(), with_mail(text)));
                }
            }
        }
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, text)| text).collect()
    }

    pub fn target(number: u64) -> String {
        format!("=loop-github-octo-repo-{number}:")
    }

    pub fn tmux(&self, args: &[&str]) -> Output {
        let mut command = self.command("tmux");
        command.args(["-L", &self.socket]).args(args);
        command.output().unwrap()
    }

    /// The other server, whose windows are people's terminals.
    pub fn outer(&self, args: &[&str]) -> Output {
        let mut command = self.command("tmux");
        let socket = format!("{}-outer", self.socket);
        command.args(["-f", "/dev/null", "-L", &socket]).args(args);
        command.output().unwrap()
    }

    pub fn screen(&self, number: u64) -> String {
        let target = Self::target(number);
        let done = self.tmux(&["capture-pane", "-p", "-S", "-", "-t", &target]);
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Types into the pane as a person does.
    pub fn types(&self, number: u64, keys: &[&str]) {
        let target = Self::target(number);
        let mut words = vec!["send-keys", "-t", &target];
        words.extend(keys);
        let done = self.tmux(&words);
        assert!(done.status.success(), "{done:?}");
    }

    /// The process in the pane.
    pub fn pane_pid(&self, number: u64) -> String {
        let target = Self::target(number);
        let done = self.tmux(&["list-panes", "-t", &target, "-F", "#{pane_pid}"]);
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Kills what runs in the pane and waits until tmux has noticed.
    pub fn kill_agent(&self, number: u64) {
        let pid = self.pane_pid(number);
        let done = Command::new("kill").args(["-9", &pid]).status();
        assert!(done.unwrap().success());
        self.until("a dead pane", || self.is_dead(number).then_some(()));
    }

    /// Is there a pane without a process?
    pub fn is_dead(&self, number: u64) -> bool {
        let target = Self::target(number);
        let done = self.tmux(&["list-panes", "-t", &target, "-F", "#{pane_dead}"]);
        String::from_utf8_lossy(&done.stdout).trim() == "1"
    }

    /// Waits for a named condition.
    pub fn until<T>(&self, what: &str, seen: impl FnMut() -> Option<T>) -> T {
        self.within(PATIENCE, what, seen)
    }

    pub fn within<T>(
        &self,
        patience: Duration,
        what: &str,
        mut seen: impl FnMut() -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(seen) = seen() {
                return seen;
            }
            assert!(Instant::now() < deadline, "never: {what}\n{}", self.trace());
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    /// What a failure is understood by.
    pub fn trace(&self) -> String {
        let log = std::fs::read_to_string(self.root("logs/events.jsonl")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(60)..].join("\n");
        let err = std::fs::read_to_string(self.path("err")).unwrap_or_default();
        let err = &err[err.len().saturating_sub(2000)..];
        let list = self.program(&["deliveries", "list"]).output();
        let list = list.map(|done| String::from_utf8_lossy(&done.stdout).into_owned());
        format!("{last}\n{}\n{err}", list.unwrap_or_default())
    }

    /// Processes that carry this root's mark.
    pub fn marked(&self) -> Vec<i32> {
        let Ok(instance) = std::fs::read_to_string(self.root("local/instance")) else {
            return Vec::new();
        };
        let mark = format!("THE_LOOP_INSTANCE={}", instance.trim());
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|b| *b == 0).any(|var| var == mark.as_bytes())
        })
        .collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.kill();
        for server in [Self::outer, Self::tmux] {
            let _ = server(self, &["kill-server"]);
        }
        for pid in self.marked() {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// The files of a directory, if it exists.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// A prompt as the agent knows it once it did what the prompt says.
fn with_mail(prompt: &str) -> String {
    let pointed = prompt.lines().find_map(|line| {
        let path = line.strip_prefix("Read ")?;
        path.strip_suffix(" and do what it says.")
    });
    match pointed {
        Some(path) => std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}")),
        None => prompt.to_owned(),
    }
}

/// A port below those that the system gives to connections, so that none takes it while the daemon is down.
fn free_port() -> u16 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let base = u64::from(std::process::id()) * 7;
    let mut tries = (0..1000).map(|_| {
        let step = NEXT.fetch_add(1, Ordering::SeqCst);
        10_000 + u16::try_from((base + step) % 20_000).unwrap()
    });
    tries
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}
