//! A throwaway home with a state root, a repository and a private tmux server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// What a test works in. Its daemon and its tmux server end with it.
pub struct Home {
    dir: TempDir,
    socket: String,
}

/// What a command printed.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Home {
    /// A home without a configuration.
    pub fn bare() -> Self {
        let dir = tempfile::Builder::new().prefix("tl").tempdir().unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        std::fs::create_dir(dir.path().join("tmux")).unwrap();
        let unique = dir.path().file_name().unwrap().to_string_lossy();
        let socket = format!("tl-test-{}", unique.replace('.', ""));
        Self { dir, socket }
    }

    /// A home whose configuration has the embedded tracker, the demo harness and `more` lines.
    pub fn with(more: &str) -> Self {
        let home = Self::bare();
        home.make_repository();
        let repo = home.path("hello.git");
        let work = home.path("work");
        let socket = &home.socket;
        home.config(&format!(
            "version: 1.0.0\nrouting:\n  defaultHarness: demo\n  spawnOnUnmatched: labeled\n  \
             workspace: {{root: {}}}\n  tmux: {{socketName: {socket}, resumeProbeSeconds: 0.2}}\n  \
             limits: {{minFreeMemoryMb: 0, minFreeDiskMb: 0}}\n\
             tracker: {{local: {{repos: {{demo/hello: {}}}}}}}\n{more}",
            work.display(),
            repo.display()
        ));
        home
    }

    /// Writes the configuration.
    pub fn config(&self, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let dir = self.path("home/.the-loop");
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("cli-config.yaml");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    pub fn root(&self) -> PathBuf {
        self.path("home/.the-loop")
    }

    fn make_repository(&self) {
        let seed = self.path("seed");
        std::fs::create_dir(&seed).unwrap();
        std::fs::write(seed.join("README.md"), "hello\n").unwrap();
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

    /// The binary with a clean environment.
    pub fn command(&self) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_the-loop"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMUX_TMPDIR", self.path("tmux"))
            .env("TMPDIR", self.path("tmux"))
            .current_dir(self.dir.path())
            .timeout(Duration::from_secs(90));
        command
    }

    /// Runs a command line and takes what it printed.
    pub fn run(&self, args: &[&str]) -> Ran {
        ran(self.command().args(args))
    }

    /// Runs a command line that must succeed; its stdout.
    pub fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}\n{}\n{}", ran.out, ran.err);
        ran.out
    }

    /// Runs a command line that must succeed and print one document.
    pub fn json(&self, args: &[&str]) -> Value {
        let mut words = args.to_vec();
        words.extend(["--format", "json"]);
        let ran = self.run(&words);
        serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}\n{}\n{}", ran.out, ran.err))
    }

    /// Every event of a name so far.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let all = self.json(&["events", "--limit", "0", "--type", name]);
        all.as_array().unwrap().clone()
    }

    /// The private tmux server.
    pub fn tmux(&self, args: &[&str]) -> std::process::Output {
        Command::new("tmux")
            .args(["-L", &self.socket])
            .args(args)
            .env("TMUX_TMPDIR", self.path("tmux"))
            .env_remove("TMUX")
            .output()
            .unwrap()
    }

    pub fn socket(&self) -> &str {
        &self.socket
    }
}

/// Runs it and takes what it printed.
pub fn ran(command: &mut assert_cmd::Command) -> Ran {
    let output = command.output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Looks again and again until it is so.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(40);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::yield_now();
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self
            .command()
            .args(["stop", "--timeout", "5", "--force"])
            .output();
        let _ = self.tmux(&["kill-server"]);
    }
}
