//! One pane on a private tmux server, watched as the engine watches it.
#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "shared by test binaries that use different parts; a test may start tmux and panic"
)]

use std::collections::BTreeMap;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use serde_json::Value;
use the_loop::clock::Clock;
use the_loop::disk::OsDisk;
use the_loop::harness::adapter::Adapter;
use the_loop::harness::pane_exec::LaunchFile;
use the_loop::harness::place::Place;
use the_loop::harness::screen::ScreenView;
use the_loop::harness::watch::Watch;
use the_loop::ids::Ids;
use the_loop::process::OsProcesses;
use the_loop::world::World;
use the_loop_core::confirm::{AgentState, By, Composer};
use the_loop_core::ids::{HarnessSessionId, Marker};
use the_loop_core::time::Timestamp;

pub const SESSION: &str = "11111111-2222-4333-8444-000000000001";
pub const MARKER: &str = "dlv-9f3c0a1b2d4e5f60";
pub const SLUG: &str = "local-octo-repo-15";

pub fn world_of_this_process() -> World {
    let env: BTreeMap<String, String> = std::env::vars().collect();
    let cwd = std::env::current_dir().unwrap();
    World {
        disk: Arc::new(OsDisk),
        processes: Arc::new(OsProcesses),
        clock: Clock::System,
        ids: Ids::Random,
        env: Arc::new(env),
        cwd: Utf8PathBuf::from_path_buf(cwd).unwrap(),
        home: None,
        user: "ada".to_owned(),
        program: "/bin/true".into(),
        pid: std::process::id(),
    }
}

pub fn session() -> HarnessSessionId {
    HarnessSessionId::parse(SESSION).unwrap()
}

pub fn marker() -> Marker {
    Marker::parse(MARKER).unwrap()
}

/// The words of the line that this test binary was asked to be.
pub fn asked_for() -> Vec<String> {
    let words = std::env::var("CHILD").unwrap_or_default();
    words.split('\u{1f}').map(str::to_owned).collect()
}

/// A private tmux server with one pane; killed with everything in it when it goes.
pub struct Pane {
    pub dir: tempfile::TempDir,
    adapter: Adapter,
    socket: String,
    pub pid: i32,
    pub watch: Watch,
    pub world: World,
}

impl Drop for Pane {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
        if self.pid > 1 {
            let _ = Command::new("kill")
                .args(["-9", &self.pid.to_string()])
                .output();
        }
    }
}

pub fn root_of(dir: &tempfile::TempDir) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap()
}

/// Program, arguments and variable that run `child` with these words as its command line.
pub fn child_words(words: &[&str]) -> (String, Vec<String>, (String, String)) {
    let exe = std::env::current_exe().unwrap().display().to_string();
    let args = ["child", "--exact", "--ignored", "--nocapture", "--quiet"];
    let args = args.iter().map(|a| (*a).to_owned()).collect();
    (exe, args, ("CHILD".to_owned(), words.join("\u{1f}")))
}

impl Pane {
    /// Starts a harness as the engine does: a launch file, and the launcher in a new session.
    pub fn launch(
        dir: tempfile::TempDir,
        adapter: Adapter,
        launch: &LaunchFile,
        place: Place,
    ) -> Self {
        let root = root_of(&dir);
        let file = root.join("local/launch/local-octo-repo-15-00ff.json");
        launch.write(&OsDisk, &file).unwrap();
        let (exe, args, (name, value)) = child_words(&["pane-exec", file.as_str()]);
        std::fs::write(root.join("tmux.conf"), "set -g remain-on-exit on\n").unwrap();
        let launched_at = Clock::System.now();
        let mut pane = Self {
            watch: Watch::new(adapter.clone(), place, launched_at),
            world: world_of_this_process(),
            dir,
            adapter,
            socket: format!("tl-test-{}", Ids::Random.hex::<6>()),
            pid: 0,
        };
        let assignment = format!("{name}={value}");
        let mut words = vec![
            "-f",
            "tmux.conf",
            "new-session",
            "-d",
            "-x",
            "90",
            "-y",
            "24",
            "-s",
            "a",
            "env",
            &assignment,
            &exe,
        ];
        words.extend(args.iter().map(String::as_str));
        let started = pane.tmux(&words);
        assert!(started.status.success(), "{started:?}");
        // One that has ended at once may have none any more: tmux 3.8 forgets it.
        pane.pid = pane.ask("#{pane_pid}").parse().unwrap_or_default();
        pane
    }

    /// Ends the server and hands the directory on to the next pane.
    pub fn into_dir(mut self) -> tempfile::TempDir {
        self.tmux(&["kill-server"]);
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }

    pub fn root(&self) -> Utf8PathBuf {
        root_of(&self.dir)
    }

    pub fn tmux(&self, words: &[&str]) -> Output {
        Command::new("tmux")
            .args(["-L", &self.socket])
            .args(words)
            .current_dir(self.dir.path())
            .env_remove("TMUX")
            .env("TMUX_TMPDIR", self.dir.path())
            .output()
            .unwrap()
    }

    pub fn ask(&self, format: &str) -> String {
        let out = self.tmux(&["display-message", "-p", "-t", "=a:", format]);
        String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
    }

    pub fn screen(&self) -> ScreenView {
        let out = self.tmux(&["capture-pane", "-p", "-e", "-t", "=a:"]);
        let rows = String::from_utf8_lossy(&out.stdout).into_owned();
        let dead = self.ask("#{pane_dead}") == "1";
        ScreenView::parse(&rows, &self.ask("#{pane_title}"), dead, Clock::System.now())
    }

    pub fn paste_raw(&self, text: &str, how: &[&str]) {
        let file = self.root().join("paste");
        std::fs::write(&file, text).unwrap();
        self.tmux(&["load-buffer", "-b", "z", file.as_str()]);
        let words = [&["paste-buffer", "-d", "-b", "z", "-t", "=a:"][..], how].concat();
        self.tmux(&words);
    }

    pub fn paste(&self, text: &str) {
        self.paste_raw(text, &["-p"]);
    }

    pub fn submit(&self) {
        self.paste_raw("\r", &["-r"]);
    }

    pub fn key(&self, key: &str) {
        self.tmux(&["send-keys", "-t", "=a:", key]);
    }

    /// Waits for a named condition.
    pub fn until<T>(&mut self, what: &str, mut found: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(value) = found(self) {
                return value;
            }
            assert!(
                Instant::now() < deadline,
                "no {what}:\n{:#?}",
                self.screen().rows
            );
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    pub fn state(&mut self) -> Option<AgentState> {
        let screen = self.screen();
        self.watch
            .look(&self.world, Some(self.pid), None, Some(&screen));
        self.watch.state().map(|o| o.state)
    }

    pub fn until_state(&mut self, state: AgentState) {
        self.until(&format!("{state}"), |pane| {
            (pane.state() == Some(state)).then_some(())
        });
    }

    pub fn until_row(&mut self, text: &str) {
        let shows = |screen: &ScreenView| screen.rows.iter().any(|row| row.contains(text));
        self.until(text, |pane| shows(&pane.screen()).then_some(()));
    }

    /// Exit status or signal of the pane. tmux 3.3a now and then misses the end of a process: the pane is
    /// dead, its process a zombie, and the status stays unknown until tmux hears of another child.
    pub fn until_dead(&mut self) -> String {
        self.until("end", |pane| {
            let ended = pane.ask("#{pane_dead}:#{pane_dead_status}#{pane_dead_signal}");
            let how = ended.strip_prefix("1:")?.to_owned();
            if how.is_empty() {
                pane.tmux(&["run-shell", "-b", "true"]);
            }
            (!how.is_empty()).then_some(how)
        })
    }

    pub fn composer(&self) -> Composer {
        self.adapter.composer(&self.screen(), Some(&marker()))
    }

    pub fn until_composer(&mut self, composer: Composer) {
        self.until(&format!("{composer:?}"), |pane| {
            (pane.composer() == composer).then_some(())
        });
    }

    pub fn evidence(&mut self) -> Option<By> {
        self.state();
        let seen = self.watch.evidence(&marker(), Timestamp::from_unix_ms(0));
        seen.map(|s| s.by)
    }

    pub fn until_evidence(&mut self, by: By) {
        self.until("evidence", |p| (p.evidence() == Some(by)).then_some(()));
    }

    pub fn lines(&self, path: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.root().join(path)).unwrap_or_default();
        text.lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }

    pub fn transcript(&self) -> Vec<Value> {
        self.lines(&format!("local/demo/{SESSION}.jsonl"))
    }

    pub fn hook_lines(&self) -> Vec<Value> {
        self.lines(&format!("local/hooks/{SLUG}.jsonl"))
    }

    pub fn hooks(&self) -> Vec<String> {
        let lines = self.hook_lines();
        lines
            .iter()
            .map(|l| l["hook"].as_str().unwrap().to_owned())
            .collect()
    }
}
