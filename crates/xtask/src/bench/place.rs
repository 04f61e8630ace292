//! Where a measurement happens: a temporary directory with a repository, a configuration, a daemon and a
//! tmux server of its own. Dropping it ends and removes all of that.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

/// The webhook secret of the measurements.
pub const SECRET: &str = "a secret of the benchmark";
/// The repository whose tickets the demo agents work on.
pub const REPO: &str = "demo/hello";

/// See above.
pub struct Place {
    pub dir: Utf8PathBuf,
    program: Utf8PathBuf,
    _holder: tempfile::TempDir,
}

impl Place {
    /// Makes it; `more` is appended to the configuration.
    pub fn make(program: &Utf8Path, more: &str) -> Result<Self> {
        let holder = tempfile::Builder::new()
            .prefix("the-loop-bench-")
            .tempdir()?;
        let dir = Utf8Path::from_path(holder.path()).context("a temporary path that is text")?;
        let place = Self {
            dir: dir.to_owned(),
            program: program.to_owned(),
            _holder: holder,
        };
        fs::create_dir_all(place.dir.join("home"))?;
        fs::create_dir_all(place.dir.join("tmux"))?;
        let config = format!(
            "version: 1.0.0\n\
             state:\n  root: {dir}/state\n\
             routing:\n  enabled: true\n  authorizedUsers: [nobody-of-the-examples]\n  \
               defaultHarness: demo\n  spawnOnUnmatched: labeled\n  \
               workspace:\n    root: {dir}/work\n  \
               tmux:\n    socketName: bench\n    resumeProbeSeconds: 0\n  \
               limits:\n    maxLiveSessions: 1000\n    minFreeMemoryMb: 0\n    minFreeDiskMb: 0\n    \
                 maxDeliveriesPerItemPerHour: 0\n    maxDeliveriesPerItemPerDay: 0\n\
             tracker:\n  local:\n    repos:\n      {REPO}: {dir}/hello.git\n{more}",
            dir = place.dir
        );
        fs::write(place.dir.join("config.yaml"), config)?;
        place.make_repository()?;
        Ok(place)
    }

    fn make_repository(&self) -> Result<()> {
        let seed = self.dir.join("seed");
        fs::create_dir_all(&seed)?;
        fs::write(seed.join("README.md"), "# hello\n")?;
        let bare = self.dir.join("hello.git");
        let author = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
        self.git(&["init", "-q", "--bare", "-b", "main", bare.as_str()])?;
        self.git(&["-C", seed.as_str(), "init", "-q", "-b", "main"])?;
        self.git(&["-C", seed.as_str(), "add", "README.md"])?;
        let commit = ["-C", seed.as_str(), "commit", "-q", "-m", "first"];
        self.git(&[&author[..], &commit[..]].concat())?;
        self.git(&["-C", seed.as_str(), "push", "-q", bare.as_str(), "main"])
    }

    fn git(&self, words: &[&str]) -> Result<()> {
        let out = self.command("git").args(words).output()?;
        if !out.status.success() {
            bail!("git: {}", String::from_utf8_lossy(&out.stderr));
        }
        Ok(())
    }

    /// A program in this place: nothing of the operator's home or tmux server is seen.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.dir)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", self.dir.join("home"))
            .env("TMUX_TMPDIR", self.dir.join("tmux"))
            .env("THE_LOOP_GH_WEBHOOK_SECRET", SECRET)
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    /// The program that is measured.
    pub fn the_loop(&self, words: &[&str]) -> Command {
        let mut command = self.command(self.program.as_str());
        command.arg("--config").arg(self.dir.join("config.yaml"));
        command.args(words);
        command
    }

    /// Runs it and wants it to succeed.
    pub fn ok(&self, words: &[&str]) -> Result<Output> {
        let out = self.the_loop(words).output()?;
        if !out.status.success() {
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            bail!("the-loop {}: {said}", words.join(" "));
        }
        Ok(out)
    }

    pub fn start(&mut self) -> Result<()> {
        self.ok(&["start"]).map(|_| ())
    }

    /// Every event of a type, in order.
    pub fn events(&self, name: &str) -> Result<Vec<Value>> {
        let text = fs::read_to_string(self.dir.join("state/logs/events.jsonl"))?;
        let parsed = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Ok(parsed
            .filter(|event: &Value| event["event"] == name)
            .collect())
    }

    /// Waits until a condition holds; an error names it.
    pub fn until(
        what: &str,
        within: Duration,
        mut holds: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + within;
        while !holds()? {
            if Instant::now() > deadline {
                bail!("{what}: not within {} s", within.as_secs());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self
            .the_loop(&["stop", "--force", "--timeout", "10"])
            .output();
        let _ = self
            .command("tmux")
            .args(["-L", "bench", "kill-server"])
            .output();
    }
}
