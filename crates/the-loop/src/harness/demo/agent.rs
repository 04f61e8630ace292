//! What the demo agent does, as a value: happenings in, effects out.

use std::collections::VecDeque;
use std::time::Duration;

use the_loop_core::time::Timestamp;

use super::input::Key;
use super::knobs::Knobs;

/// Prompts that wait for the turn in work; more are refused.
const QUEUE_MAX: usize = 100;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A key or a paste.
    Key(Key),
    /// A prompt that came as an argument.
    Prompt(String),
    /// The work of the turn is done, with this answer.
    Worked(String),
    /// The time asked for by [`Agent::wakes_at`] has come.
    Time,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Report that a prompt was taken.
    PromptHook(String),
    /// Report that it asks.
    PermissionHook,
    /// Report that it is idle.
    StopHook,
    /// Write a user's line down.
    WriteUser(String),
    /// Write its own line down.
    WriteAssistant {
        /// The prompt it answers.
        prompt: String,
        /// The answer.
        answer: String,
    },
    /// Do what the prompt asks, elsewhere, and say [`Happening::Worked`].
    Work(String),
    /// Print.
    Say(Said),
    /// Draw composer and status anew.
    Redraw,
    /// Report the end and exit.
    End {
        /// Why.
        reason: &'static str,
        /// Exit code.
        code: i32,
    },
}

/// A line of the conversation on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// By the user.
    User(String),
    /// By the agent.
    Agent(String),
    /// By the program.
    Note(String),
}

/// What it is at.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Turn {
    None,
    /// Waits for a typed `y` or `n`.
    Asking {
        prompt: String,
    },
    /// Works; `answer` when the work is done and only the time is not over.
    Working {
        prompt: String,
        until: Timestamp,
        answer: Option<String>,
    },
}

/// The agent.
#[derive(Clone, Debug)]
pub struct Agent {
    composer: String,
    queue: VecDeque<String>,
    turn: Turn,
    had_a_turn: bool,
    swallow: u64,
    ask: bool,
    busy: Duration,
}

/// What the lowest row tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No turn yet.
    Ready,
    /// A turn is in work, so many prompts wait.
    Working(usize),
    /// It asks.
    Waiting,
    /// No turn is in work.
    Idle,
}

impl Agent {
    /// A new one.
    pub fn new(knobs: &Knobs) -> Self {
        Self {
            composer: String::new(),
            queue: VecDeque::new(),
            turn: Turn::None,
            had_a_turn: false,
            swallow: knobs.swallow_enter,
            ask: knobs.ask_permission,
            busy: knobs.busy,
        }
    }

    /// The text in the composer; `None` while the question stands in its place.
    pub fn composer(&self) -> Option<&str> {
        match self.turn {
            Turn::Asking { .. } => None,
            Turn::None | Turn::Working { .. } => Some(&self.composer),
        }
    }

    /// What the lowest row tells.
    pub fn status(&self) -> Status {
        match self.turn {
            Turn::Asking { .. } => Status::Waiting,
            Turn::Working { .. } => Status::Working(self.queue.len()),
            Turn::None if self.had_a_turn => Status::Idle,
            Turn::None => Status::Ready,
        }
    }

    /// When it wants to be woken.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        match &self.turn {
            Turn::Working {
                until,
                answer: Some(_),
                ..
            } => Some(*until),
            Turn::None | Turn::Asking { .. } | Turn::Working { answer: None, .. } => None,
        }
    }

    /// Takes what happened; answers what to do, in order.
    pub fn take(&mut self, happening: Happening, now: Timestamp) -> Vec<Effect> {
        let mut effects = match happening {
            Happening::Prompt(prompt) => self.prompt(prompt, now),
            Happening::Key(key) => self.key(key, now),
            Happening::Worked(done) => {
                if let Turn::Working { answer, .. } = &mut self.turn {
                    *answer = Some(done);
                }
                self.finish_if_over(now)
            }
            Happening::Time => self.finish_if_over(now),
        };
        effects.push(Effect::Redraw);
        effects
    }

    fn key(&mut self, key: Key, now: Timestamp) -> Vec<Effect> {
        if let Turn::Asking { prompt } = &self.turn {
            // A paste into a question is taken as its first character, as real agents do.
            let answer = match key {
                Key::Char(c) => Some(c),
                Key::Paste(text) => text.chars().next(),
                Key::Submit
                | Key::Newline
                | Key::Backspace
                | Key::Clear
                | Key::Eof
                | Key::Escape => None,
            };
            let prompt = prompt.clone();
            return match answer {
                Some('y' | 'Y') => self.work(prompt, now),
                Some('n' | 'N') => self.answered(&prompt, "Not allowed; nothing was done.", now),
                Some(_) | None => Vec::new(),
            };
        }
        match key {
            Key::Char(c) => self.composer.push(c),
            Key::Newline => self.composer.push('\n'),
            Key::Paste(text) => self.composer.push_str(&text),
            Key::Backspace => {
                self.composer.pop();
            }
            Key::Clear => self.composer.clear(),
            Key::Eof if self.composer.is_empty() => return end("prompt_input_exit", 0),
            Key::Eof => {}
            Key::Escape => return self.interrupt(),
            Key::Submit => return self.submit(now),
        }
        Vec::new()
    }

    /// An interrupt fires no hook, as with real agents; only title and screen tell.
    fn interrupt(&mut self) -> Vec<Effect> {
        match self.turn {
            Turn::Working {
                answer: Some(_), ..
            } => {
                self.turn = Turn::None;
                self.queue.clear();
                vec![Effect::Say(Said::Note("interrupted".to_owned()))]
            }
            Turn::Working { answer: None, .. } | Turn::None | Turn::Asking { .. } => Vec::new(),
        }
    }

    fn submit(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.composer.trim().is_empty() {
            return Vec::new();
        }
        if self.swallow > 0 {
            self.swallow -= 1;
            return Vec::new();
        }
        let text = std::mem::take(&mut self.composer);
        if let Some(command) = text.strip_prefix('!') {
            let words = format!("would run in a shell, without asking: {command}");
            return vec![Effect::Say(Said::Note(words))];
        }
        if text.trim_end() == "/exit" {
            return end("prompt_input_exit", 0);
        }
        if text.starts_with('/') {
            return vec![Effect::Say(Said::Note("unknown command".to_owned()))];
        }
        self.prompt(text, now)
    }

    fn prompt(&mut self, prompt: String, now: Timestamp) -> Vec<Effect> {
        if self.queue.len() == QUEUE_MAX {
            let words = "too many prompts wait; this one is not taken".to_owned();
            return vec![Effect::Say(Said::Note(words))];
        }
        let mut effects = vec![Effect::PromptHook(prompt.clone())];
        if self.turn == Turn::None {
            effects.extend(self.begin(prompt, now));
        } else {
            self.queue.push_back(prompt);
        }
        effects
    }

    fn begin(&mut self, prompt: String, now: Timestamp) -> Vec<Effect> {
        self.had_a_turn = true;
        let mut effects = vec![
            Effect::Say(Said::User(prompt.clone())),
            Effect::WriteUser(prompt.clone()),
        ];
        if self.ask {
            self.turn = Turn::Asking { prompt };
            effects.push(Effect::PermissionHook);
        } else {
            effects.extend(self.work(prompt, now));
        }
        effects
    }

    fn work(&mut self, prompt: String, now: Timestamp) -> Vec<Effect> {
        self.turn = Turn::Working {
            prompt: prompt.clone(),
            until: now.plus(self.busy),
            answer: None,
        };
        vec![Effect::Work(prompt)]
    }

    fn finish_if_over(&mut self, now: Timestamp) -> Vec<Effect> {
        match &self.turn {
            Turn::Working {
                prompt,
                until,
                answer: Some(answer),
            } if *until <= now => {
                let (prompt, answer) = (prompt.clone(), answer.clone());
                self.answered(&prompt, &answer, now)
            }
            Turn::None | Turn::Asking { .. } | Turn::Working { .. } => Vec::new(),
        }
    }

    /// Ends the turn and begins the next one that waits.
    fn answered(&mut self, prompt: &str, answer: &str, now: Timestamp) -> Vec<Effect> {
        self.turn = Turn::None;
        let mut effects = vec![
            Effect::Say(Said::Agent(answer.to_owned())),
            Effect::WriteAssistant {
                prompt: prompt.to_owned(),
                answer: answer.to_owned(),
            },
        ];
        match self.queue.pop_front() {
            Some(next) => effects.extend(self.begin(next, now)),
            None => effects.push(Effect::StopHook),
        }
        effects
    }
}

/// How it ends, for this reason and with this exit code.
pub fn end(reason: &'static str, code: i32) -> Vec<Effect> {
    vec![Effect::End { reason, code }]
}
