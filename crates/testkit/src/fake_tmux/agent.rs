//! A model of the demo agent: it writes the real hook and transcript lines and draws the real screen, and
//! its turns happen when the model is looked at.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use serde_json::{Value, json};
use the_loop::clock::Clock;
use the_loop::disk::OsDisk;
use the_loop::harness::hook::{self, HookLine};
use the_loop::ids::Ids;
use the_loop::process::OsProcesses;
use the_loop::store::layout::Layout;
use the_loop::world::World;
use the_loop_core::ids::HarnessSessionId;
use the_loop_core::prompt::markers_in;
use the_loop_core::time::Timestamp;

/// How the agents of a server behave from now on.
#[derive(Clone, Debug, Default)]
pub struct Mood {
    /// So many of the next turns begin with a permission question.
    pub ask: u32,
    /// A question opens right after the next paste, before it can be submitted.
    pub ask_after_paste: bool,
    /// So many of the next submits are ignored; the text stays in the composer.
    pub swallow: u32,
    /// A turn takes this long.
    pub busy: Duration,
    /// So many of the next starts end at once.
    pub exit_at_once: u32,
    /// So many of the next starts take their first prompt and end.
    pub exit_with_prompt: u32,
    /// Banner, composer and first hook come this late.
    pub slow_start: Duration,
    /// No hook is called: the transcript alone tells.
    pub no_hooks: bool,
    /// SIGTERM is ignored.
    pub stubborn: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Turn {
    NotStarted { at: Timestamp },
    None,
    Asking { prompt: Option<String> },
    Working { prompt: String, until: Timestamp },
}

/// One running agent.
#[derive(Debug)]
pub struct FakeAgent {
    world: World,
    session_id: String,
    resumed: bool,
    transcript: Utf8PathBuf,
    hook_file: Option<Utf8PathBuf>,
    first_prompt: Option<String>,
    composer: String,
    queue: VecDeque<String>,
    turn: Turn,
    had_a_turn: bool,
    said: Vec<String>,
}

impl FakeAgent {
    /// Starts with the command line and environment of its process; an error is what its last words are.
    pub fn start(
        clock: &Clock,
        argv: &[String],
        env: &BTreeMap<String, String>,
        mood: &mut Mood,
    ) -> Result<Self, String> {
        if mood.exit_at_once > 0 {
            mood.exit_at_once -= 1;
            return Err("demo-agent: told to exit".to_owned());
        }
        let value_of = |flag: &str| {
            let at = argv.iter().position(|word| word == flag)?;
            argv.get(at + 1).cloned()
        };
        let resume = value_of("--resume");
        let id = resume.clone().or_else(|| value_of("--session-id"));
        let id = id.and_then(|id| HarnessSessionId::parse(&id));
        let id = id.ok_or("demo-agent: not a conversation id")?;
        let world = World {
            disk: Arc::new(OsDisk),
            processes: Arc::new(OsProcesses),
            clock: clock.clone(),
            ids: Ids::seeded(0),
            env: Arc::new(env.clone()),
            cwd: Utf8PathBuf::from("/"),
            home: None,
            user: String::new(),
            program: Utf8PathBuf::new(),
            pid: 0,
        };
        let root = world.var("THE_LOOP_STATE_ROOT");
        let root = root.ok_or("demo-agent: no state root")?;
        let transcript = Layout::new(root).demo_transcript(&id);
        let exists = matches!(world.disk.meta(&transcript), Ok(Some(_)));
        if exists != resume.is_some() {
            return Err(format!(
                "demo-agent: conversation {} exists: {exists}",
                id.as_str()
            ));
        }
        let prompt = argv.iter().position(|word| word == "--");
        Ok(Self {
            hook_file: hook::hook_file_of(&world, value_of("--slug").as_deref()),
            session_id: id.as_str().to_owned(),
            resumed: resume.is_some(),
            transcript,
            first_prompt: prompt.and_then(|at| argv.get(at + 1).cloned()),
            composer: String::new(),
            queue: VecDeque::new(),
            turn: Turn::NotStarted {
                at: clock.now().plus(mood.slow_start),
            },
            had_a_turn: false,
            said: Vec::new(),
            world,
        })
    }

    /// Does what time has made due.
    pub fn progress(&mut self, mood: &mut Mood) {
        let now = self.world.clock.now();
        match self.turn.clone() {
            Turn::NotStarted { at } if at <= now => {
                self.turn = Turn::None;
                let source = if self.resumed { "resume" } else { "startup" };
                self.hook("SessionStart", json!({ "source": source }), mood);
                if let Some(prompt) = self.first_prompt.take() {
                    self.prompt(prompt, mood);
                }
            }
            Turn::Working { prompt, until } if until <= now => self.answer(&prompt, "Done.", mood),
            Turn::NotStarted { .. } | Turn::None | Turn::Asking { .. } | Turn::Working { .. } => {}
        }
    }

    /// A paste, bracketed or as if typed. Answers whether it went into a question.
    pub fn paste(&mut self, text: &str, bracketed: bool, mood: &mut Mood) -> bool {
        if matches!(self.turn, Turn::Asking { .. }) {
            if let Some(first) = text.chars().next() {
                self.key(first, mood);
            }
            return true;
        }
        if !bracketed {
            for c in text.chars() {
                self.key(c, mood);
            }
            return false;
        }
        self.composer.push_str(text);
        if std::mem::take(&mut mood.ask_after_paste) {
            self.turn = Turn::Asking { prompt: None };
            self.hook("PermissionRequest", json!({ "tool_name": "Work" }), mood);
        }
        false
    }

    /// One key.
    pub fn key(&mut self, key: char, mood: &mut Mood) {
        match (self.turn.clone(), key) {
            (Turn::Asking { prompt }, 'y' | 'n') => {
                self.turn = Turn::None;
                if let Some(prompt) = prompt {
                    self.work(prompt, mood);
                }
            }
            (Turn::NotStarted { .. } | Turn::Asking { .. }, _) => {}
            (Turn::None | Turn::Working { .. }, '\r') => self.submit(mood),
            (Turn::None | Turn::Working { .. }, '\u{3}') => self.composer.clear(),
            (Turn::None | Turn::Working { .. }, key) => self.composer.push(key),
        }
    }

    fn submit(&mut self, mood: &mut Mood) {
        if self.composer.is_empty() {
            return;
        }
        if mood.swallow > 0 {
            mood.swallow -= 1;
            return;
        }
        let prompt = std::mem::take(&mut self.composer);
        self.prompt(prompt, mood);
    }

    fn prompt(&mut self, prompt: String, mood: &mut Mood) {
        self.hook("UserPromptSubmit", json!({ "prompt": prompt }), mood);
        if self.turn == Turn::None {
            self.begin(prompt, mood);
        } else {
            self.queue.push_back(prompt);
        }
    }

    fn begin(&mut self, prompt: String, mood: &mut Mood) {
        self.had_a_turn = true;
        self.said.push("} (a prompt)".to_owned());
        self.write_down(&json!({
            "role": "user",
            "text": prompt,
            "marker": markers_in(&prompt).first(),
            "usage": null,
            "at": self.world.clock.now().millis(),
        }));
        if mood.ask > 0 {
            mood.ask -= 1;
            self.turn = Turn::Asking {
                prompt: Some(prompt),
            };
            self.hook("PermissionRequest", json!({ "tool_name": "Work" }), mood);
        } else {
            self.work(prompt, mood);
        }
    }

    fn work(&mut self, prompt: String, mood: &mut Mood) {
        let until = self.world.clock.now().plus(mood.busy);
        self.turn = Turn::Working { prompt, until };
        self.progress(mood);
    }

    fn answer(&mut self, prompt: &str, answer: &str, mood: &mut Mood) {
        self.turn = Turn::None;
        self.said.push(format!("* {answer}"));
        self.write_down(&json!({
            "role": "assistant",
            "text": answer,
            "marker": null,
            "usage": {
                "input": prompt.chars().count(),
                "output": answer.chars().count(),
                "cacheRead": 0,
                "cacheWrite": 0,
            },
            "at": self.world.clock.now().millis(),
        }));
        match self.queue.pop_front() {
            Some(next) => self.begin(next, mood),
            None => self.hook("Stop", json!({}), mood),
        }
    }

    /// It ends in order, as on SIGTERM.
    pub fn end(&mut self, mood: &Mood) {
        self.hook("SessionEnd", json!({ "reason": "other" }), mood);
    }

    /// Does it ask?
    pub fn asks(&self) -> bool {
        matches!(self.turn, Turn::Asking { .. })
    }

    /// What stands in its composer.
    pub fn composer(&self) -> &str {
        &self.composer
    }

    /// The visible rows.
    pub fn rows(&self) -> Vec<String> {
        if matches!(self.turn, Turn::NotStarted { .. }) {
            return Vec::new();
        }
        let rule = "-".repeat(120);
        let mut rows = self.said.clone();
        rows.push(rule.clone());
        if self.asks() {
            rows.push("Allow this? [y/n]".to_owned());
        } else {
            for (at, line) in self.composer.split('\n').enumerate() {
                rows.push(format!("{} {line}", if at == 0 { '>' } else { ' ' }));
            }
        }
        rows.push(rule);
        rows.push(self.title());
        rows
    }

    /// The pane's title, which is its status row.
    pub fn title(&self) -> String {
        let words = match &self.turn {
            Turn::NotStarted { .. } => return "host".to_owned(),
            Turn::None if self.had_a_turn => "idle",
            Turn::None => "ready",
            Turn::Asking { .. } => "waiting for an answer",
            Turn::Working { .. } => "working",
        };
        format!("demo-agent: {words}")
    }

    fn hook(&self, name: &str, mut input: Value, mood: &Mood) {
        let Some(file) = self.hook_file.as_ref().filter(|_| !mood.no_hooks) else {
            return;
        };
        input["session_id"] = json!(self.session_id);
        input["transcript_path"] = json!(self.transcript);
        let line = HookLine::from_input(self.world.clock.now(), name, &input);
        hook::append(&self.world, file, &line);
    }

    fn write_down(&self, entry: &Value) {
        if let Some(dir) = self.transcript.parent() {
            let _ = self.world.disk.create_dir_all(dir);
        }
        let line = format!("{entry}\n");
        let _ = self.world.disk.append(&self.transcript, line.as_bytes());
    }
}
