//! `the-loop demo-agent`: a program that behaves like a coding agent, for demonstrations and tests
//! (DI-38).
//!
//! [`agent`] decides (a value without I/O), [`view`] draws, [`input`] reads keys, [`terminal`] is the
//! pane, [`work`] does the little that such an agent can do, and this file puts them together.

mod agent;
mod input;
mod knobs;
mod terminal;
mod view;
mod work;

#[cfg(test)]
mod tests;

use camino::Utf8PathBuf;
use serde_json::{Value, json};
use the_loop_core::config::pattern::Confirms;
use the_loop_core::confirm::{AgentState, WaitingKind};
use the_loop_core::ids::HarnessSessionId;
use the_loop_core::prompt::markers_in;

use self::agent::{Agent, Effect, Happening, Said};
use self::knobs::{Knobs, TranscriptAt};
use self::terminal::{Terminal, Woken};
use super::declaration::{ComposerRule, Declaration, IdSource, KnownDialog, Program, words};
use super::hook::{self, HookLine};
use super::screen::ScreenView;
use crate::store::layout::Layout;
use crate::world::World;

/// The declaration.
pub fn declaration() -> Declaration {
    Declaration {
        version_args: words(&["--version"]),
        seen_on: env!("CARGO_PKG_VERSION").to_owned(),
        spawn: words(&[
            "demo-agent",
            "--session-id",
            "{session_id}",
            "--slug",
            "{slug}",
        ]),
        resume: words(&["demo-agent", "--resume", "{session_id}", "--slug", "{slug}"]),
        prompt_args: words(&["--", "{prompt}"]),
        session_id: IdSource::Assigned,
        hooks: words(&[
            "SessionStart",
            "UserPromptSubmit",
            "PermissionRequest",
            "Stop",
            "SessionEnd",
        ]),
        confirms: Confirms::Hook("UserPromptSubmit".to_owned()),
        composer: ComposerRule::Ruled {
            rule: view::RULE.to_owned(),
            prompts: vec!['>'],
        },
        dialogs: vec![KnownDialog::of_texts(
            "permission",
            WaitingKind::Permission,
            &[view::QUESTION],
        )],
        ..Declaration::bare("demo", Program::Ourselves)
    }
}

/// What a hook says about the state.
pub fn hook_state(line: &HookLine) -> Option<AgentState> {
    match line.hook.as_str() {
        // It reports its start when it reads already.
        "SessionStart" => Some(AgentState::Ready),
        "UserPromptSubmit" => Some(AgentState::Working),
        "PermissionRequest" => Some(AgentState::Waiting(WaitingKind::Permission)),
        "Stop" => Some(AgentState::Idle),
        "SessionEnd" => Some(AgentState::Exited),
        _ => None,
    }
}

/// What the pane's title says.
pub fn title_state(title: &str) -> Option<AgentState> {
    view::state_of_status(title)
}

/// What the lowest row says.
pub fn screen_state(screen: &ScreenView) -> Option<AgentState> {
    let lowest = screen.rows.iter().rev().find(|row| !row.is_empty())?;
    view::state_of_status(lowest)
}

/// The arguments of `demo-agent`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DemoArgs {
    /// Id of a new conversation; random when neither is given.
    #[arg(long, conflicts_with = "resume")]
    pub session_id: Option<String>,
    /// Take up this conversation.
    #[arg(long)]
    pub resume: Option<String>,
    /// Name of the hook file; that of the environment's work item when absent.
    #[arg(long)]
    pub slug: Option<String>,
    /// The first prompt.
    pub prompt: Option<String>,
}

/// Runs the agent in this terminal until it ends; answers its exit code. It talks to a person in a
/// pane, so it writes to the terminal itself.
pub fn run(world: &World, args: &DemoArgs) -> i32 {
    let start = match Start::read(world, args) {
        Ok(start) => start,
        Err(refusal) => return terminal::say(&refusal.words, refusal.code),
    };
    if start.knobs.exit_at_once {
        return terminal::say("demo-agent: told to exit", 1);
    }
    let mut terminal = match Terminal::open() {
        Ok(terminal) => terminal,
        Err(e) => return terminal::say(&format!("demo-agent: cannot watch for signals: {e}"), 1),
    };
    if let Some(code) = wait_for_slow_start(world, &start.knobs, &mut terminal) {
        return code;
    }
    if let Err(e) = terminal.begin() {
        return terminal::say(&format!("demo-agent: needs a terminal: {e}"), 1);
    }
    Running {
        world,
        start,
        terminal,
    }
    .go(args)
}

/// Why it does not start.
struct Refusal {
    words: String,
    code: i32,
}

/// What it starts with.
struct Start {
    knobs: Knobs,
    session_id: HarnessSessionId,
    resumed: bool,
    transcript: Option<Utf8PathBuf>,
    hook_file: Option<Utf8PathBuf>,
}

impl Start {
    fn read(world: &World, args: &DemoArgs) -> Result<Self, Refusal> {
        let refuse = |code: i32, words: String| Refusal {
            words: format!("demo-agent: {words}"),
            code,
        };
        let knobs = Knobs::read(world).map_err(|why| refuse(2, why))?;
        let named = args.resume.as_ref().or(args.session_id.as_ref());
        let named = named.cloned().unwrap_or_else(|| world.ids.uuid());
        let session_id = HarnessSessionId::parse(&named)
            .ok_or_else(|| refuse(2, "not a conversation id".to_owned()))?;
        let transcript = match &knobs.transcript {
            TranscriptAt::Nowhere => None,
            TranscriptAt::Path(path) => Some(path.clone()),
            TranscriptAt::Default => world
                .var("THE_LOOP_STATE_ROOT")
                .map(|root| Layout::new(root).demo_transcript(&session_id)),
        };
        let exists = transcript
            .as_ref()
            .is_some_and(|path| matches!(world.disk.meta(path), Ok(Some(_))));
        let resumed = args.resume.is_some();
        if resumed && !exists && !knobs.exit_at_once {
            return Err(refuse(1, format!("no conversation {named}")));
        }
        if !resumed && exists && knobs.transcript == TranscriptAt::Default {
            return Err(refuse(1, format!("conversation {named} exists already")));
        }
        let hook_file = hook::hook_file_of(world, args.slug.as_deref());
        Ok(Self {
            hook_file: hook_file.filter(|_| !knobs.no_hooks),
            knobs,
            session_id,
            resumed,
            transcript,
        })
    }
}

/// Waits before banner, composer and first hook; an exit code when a signal ended it.
fn wait_for_slow_start(world: &World, knobs: &Knobs, terminal: &mut Terminal) -> Option<i32> {
    let until = world.clock.now().plus(knobs.slow_start);
    loop {
        let left = until.since(world.clock.now());
        if left.is_zero() {
            return None;
        }
        match terminal.wait_for_signal(left) {
            Some(code) if !knobs.ignore_sigterm => return Some(code),
            Some(_) | None => {}
        }
    }
}

struct Running<'a> {
    world: &'a World,
    start: Start,
    terminal: Terminal,
}

impl Running<'_> {
    fn go(mut self, args: &DemoArgs) -> i32 {
        let mut agent = Agent::new(&self.start.knobs);
        let kind = if self.start.resumed {
            "resume"
        } else {
            "startup"
        };
        self.terminal.show(&[
            Said::Note(format!("demo-agent {}", env!("CARGO_PKG_VERSION"))),
            Said::Note(format!(
                "conversation {} ({kind})",
                self.start.session_id.as_str()
            )),
        ]);
        self.hook("SessionStart", json!({ "source": kind }));
        let now = self.world.clock.now();
        let mut effects = vec![Effect::Redraw];
        if let Some(prompt) = &args.prompt {
            effects.extend(agent.take(Happening::Prompt(prompt.clone()), now));
        }
        loop {
            for effect in effects {
                if let Some(code) = self.perform(&agent, effect) {
                    self.terminal.end();
                    return code;
                }
            }
            let now = self.world.clock.now();
            let wait = agent.wakes_at().map(|at| at.since(now));
            let woken = self.terminal.wait(wait);
            let now = self.world.clock.now();
            effects = match woken {
                Woken::Keys(keys) => keys
                    .into_iter()
                    .flat_map(|key| agent.take(Happening::Key(key), now))
                    .collect(),
                Woken::Worked(answer) => agent.take(Happening::Worked(answer), now),
                Woken::Time => agent.take(Happening::Time, now),
                Woken::Resized => {
                    self.terminal.resized();
                    vec![Effect::Redraw]
                }
                Woken::Signal(_) | Woken::Closed if self.start.knobs.ignore_sigterm => Vec::new(),
                Woken::Signal(code) => agent::end("other", code),
                Woken::Closed => agent::end("other", 129),
            };
        }
    }

    /// Performs one effect; an exit code when it was the last.
    fn perform(&mut self, agent: &Agent, effect: Effect) -> Option<i32> {
        match effect {
            Effect::PromptHook(prompt) => {
                self.hook("UserPromptSubmit", json!({ "prompt": prompt }));
            }
            Effect::PermissionHook => {
                self.hook("PermissionRequest", json!({ "tool_name": "Work" }));
            }
            Effect::StopHook => self.hook("Stop", json!({})),
            Effect::WriteUser(prompt) => self.write_down(&json!({
                "role": "user",
                "text": prompt,
                "marker": markers_in(&prompt).first(),
                "usage": null,
                "at": self.world.clock.now().millis(),
            })),
            Effect::WriteAssistant { prompt, answer } => self.write_down(&json!({
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
            })),
            Effect::Work(prompt) => {
                let world = self.world.clone();
                self.terminal.work(move || work::perform(&world, &prompt));
            }
            Effect::Say(said) => self.terminal.show(&[said]),
            Effect::Redraw => self.terminal.redraw(agent),
            Effect::End { reason, code } => {
                self.hook("SessionEnd", json!({ "reason": reason }));
                return Some(code);
            }
        }
        None
    }

    /// Reports as a harness does that calls `the-loop hook`, without the process.
    fn hook(&self, name: &str, mut input: Value) {
        let Some(file) = &self.start.hook_file else {
            return;
        };
        input["session_id"] = json!(self.start.session_id.as_str());
        input["transcript_path"] = json!(self.start.transcript);
        let line = HookLine::from_input(self.world.clock.now(), name, &input);
        hook::append(self.world, file, &line);
    }

    /// Appends to the transcript. One that cannot be written is a transcript that confirms nothing.
    fn write_down(&self, entry: &Value) {
        let Some(path) = &self.start.transcript else {
            return;
        };
        let mut bytes = entry.to_string().into_bytes();
        bytes.push(b'\n');
        if let Some(dir) = path.parent() {
            let _ = self.world.disk.create_dir_all(dir);
        }
        let _ = self.world.disk.append(path, &bytes);
    }
}
