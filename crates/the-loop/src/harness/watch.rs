//! Following one running session: its state, and the deliveries it has taken (DI-29, DI-31).

use std::collections::VecDeque;
use std::time::Duration;

use the_loop_core::confirm::{self, AgentState, By, MarkerSeen, Observation, ObservationSource};
use the_loop_core::ids::Marker;
use the_loop_core::time::Timestamp;

use super::adapter::{Adapter, Place};
use super::hook::{HookLine, HookTail};
use super::screen::ScreenView;
use super::transcript::{Entry, Growth, TranscriptFormat, TranscriptTail, Usage};
use super::{claude, demo};
use crate::world::World;

/// Markers remembered of one session; the oldest go out. A delivery is confirmed long before.
const MARKERS_KEPT: usize = 256;

/// Follows a session's hook file, transcript, state file, title and screen. Cheap to look with: only
/// what was appended is read.
#[derive(Debug)]
pub struct Watch {
    adapter: Adapter,
    place: Place,
    launched_at: Timestamp,
    hooks: HookTail,
    transcript: Option<TranscriptTail>,
    transcript_read: bool,
    /// Another transcript is read from now on.
    transcript_is_new: bool,
    markers: VecDeque<MarkerSeen>,
    prompt_hook_heard: bool,
    last_turn_at: Option<Timestamp>,
    from_hooks: Option<Observation>,
    from_file: Option<Observation>,
    from_transcript: Option<Observation>,
    from_title: Since,
    from_screen: Since,
}

/// What a source without times of its own says, since when, and when it began to count.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    state: Option<(AgentState, Timestamp)>,
    counts: bool,
}

/// What came with one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Lines of the hook file that could not be read (`hook.malformed`).
    pub malformed: usize,
    /// Tokens counted, with the time of each answer (DI-37).
    pub usage: Vec<(Timestamp, Usage)>,
    /// The transcript was read from its beginning again: earlier counts come once more.
    pub restarted: bool,
}

impl Watch {
    /// Starts to follow; the first look reads what is there already. `launched_at` is when the process
    /// now in the pane was launched: what was seen of an earlier one says nothing about its state. It
    /// may lie earlier than that when it is not known.
    pub fn new(adapter: Adapter, place: Place, launched_at: Timestamp) -> Self {
        let transcript = adapter
            .transcript_path(&place)
            .map(|path| TranscriptTail::new(path, format_of(adapter)));
        Self {
            hooks: HookTail::new(place.hook_file.clone()),
            transcript,
            adapter,
            place,
            launched_at,
            transcript_read: false,
            transcript_is_new: false,
            markers: VecDeque::new(),
            prompt_hook_heard: false,
            last_turn_at: None,
            from_hooks: None,
            from_file: None,
            from_transcript: None,
            from_title: Since::default(),
            from_screen: Since::default(),
        }
    }

    /// Which harness.
    pub fn adapter(&self) -> Adapter {
        self.adapter
    }

    /// Reads what is new. `pid` is the pane's leader; `title` and `screen` are taken where they are at
    /// hand, and what they said last stands otherwise.
    pub fn look(
        &mut self,
        world: &World,
        pid: Option<i32>,
        title: Option<&str>,
        screen: Option<&ScreenView>,
    ) -> Looked {
        let mut looked = Looked::default();
        self.look_at_hooks(world, &mut looked);
        self.look_at_transcript(world, &mut looked);
        let now = world.clock.now();
        match (self.adapter, pid) {
            (Adapter::Claude, Some(pid)) => {
                self.from_file = claude::sessions_file(world, &self.place, pid);
            }
            (Adapter::Claude | Adapter::Demo, _) => {}
        }
        if let Some(title) = screen.map(|s| s.title.as_str()).or(title) {
            let state = match self.adapter {
                Adapter::Claude => claude::title_state(title),
                Adapter::Demo => demo::title_state(title),
            };
            self.from_title
                .note(state.map(|s| (s, Duration::ZERO)), now);
        }
        if let Some(screen) = screen {
            let state = self.screen_state(screen);
            self.from_screen.note(state, screen.at);
        }
        looked
    }

    fn look_at_hooks(&mut self, world: &World, looked: &mut Looked) {
        // A file that cannot be read now is read at the next look; until then its last word stands.
        let Ok(read) = self.hooks.read(&*world.disk) else {
            return;
        };
        looked.malformed = read.malformed;
        for line in read.lines {
            self.take_hook(line);
        }
    }

    fn take_hook(&mut self, line: HookLine) {
        let ours = line.session_id == self.place.session_id.as_str();
        if line.hook == "UserPromptSubmit" && ours {
            self.prompt_hook_heard = true;
            self.last_turn_at = Some(line.at);
        }
        if let Some(path) = line.transcript_path.as_ref().filter(|_| ours) {
            let known = self.transcript.as_ref().map(TranscriptTail::path);
            if known != Some(path.as_path()) {
                let format = format_of(self.adapter);
                self.transcript = Some(TranscriptTail::new(path.clone(), format));
                self.transcript_read = false;
                self.transcript_is_new = true;
            }
        }
        let state = match self.adapter {
            Adapter::Claude => claude::hook_state(&line),
            Adapter::Demo => demo::hook_state(&line),
        };
        if let Some(state) = state {
            self.from_hooks = Some(Observation {
                source: ObservationSource::Hook,
                at: line.at,
                state,
            });
        }
        for marker in line.markers {
            self.remember(MarkerSeen {
                marker,
                at: line.at,
                session_id: line.session_id.clone(),
                by: By::Hook,
            });
        }
    }

    fn look_at_transcript(&mut self, world: &World, looked: &mut Looked) {
        let Some(tail) = &mut self.transcript else {
            return;
        };
        let read = tail.read(&*world.disk);
        self.transcript_read = read.is_ok();
        looked.restarted = std::mem::take(&mut self.transcript_is_new) || tail.restarted();
        for entry in read.unwrap_or_default() {
            let (at, state) = match entry {
                Entry::Prompt { at, markers } => {
                    for marker in markers {
                        self.remember(MarkerSeen {
                            marker,
                            at,
                            session_id: self.place.session_id.as_str().to_owned(),
                            by: By::Transcript,
                        });
                    }
                    self.last_turn_at = self.last_turn_at.max(Some(at));
                    (at, AgentState::Working)
                }
                Entry::Answer {
                    at,
                    ends_turn,
                    usage,
                } => {
                    if usage != Usage::default() {
                        looked.usage.push((at, usage));
                    }
                    let ended = if ends_turn {
                        AgentState::Idle
                    } else {
                        AgentState::Working
                    };
                    (at, ended)
                }
            };
            self.from_transcript = Some(Observation {
                source: ObservationSource::Transcript,
                at,
                state,
            });
        }
    }

    fn screen_state(&self, screen: &ScreenView) -> Option<(AgentState, Duration)> {
        if screen.dead {
            return Some((AgentState::Exited, Duration::ZERO));
        }
        if let Some(dialog) = self.adapter.known_dialog(screen) {
            return Some((AgentState::Waiting(dialog.kind), Duration::ZERO));
        }
        match self.adapter {
            Adapter::Claude => claude::screen_state(screen),
            Adapter::Demo => demo::screen_state(screen).map(|s| (s, Duration::ZERO)),
        }
    }

    fn remember(&mut self, seen: MarkerSeen) {
        if self.markers.len() == MARKERS_KEPT {
            self.markers.pop_front();
        }
        self.markers.push_back(seen);
    }

    /// The agent's state, who says so and since when (DI-31).
    pub fn state(&self) -> Option<Observation> {
        let all = [
            self.from_hooks,
            self.from_file,
            self.from_transcript,
            self.from_title.observation(ObservationSource::Title),
            self.from_screen.observation(ObservationSource::Screen),
        ];
        let of_this_process = |o: &Observation| o.at >= self.launched_at;
        let known: Vec<Observation> = all.into_iter().flatten().filter(of_this_process).collect();
        let mut newest = confirm::believed(&known)?;
        let had_a_turn = self.last_turn_at.is_some_and(|at| at >= self.launched_at);
        match self.adapter {
            // Its idle looks the same before and after the first turn.
            Adapter::Claude if newest.state == AgentState::Idle && !had_a_turn => {
                newest.state = AgentState::Ready;
            }
            Adapter::Claude | Adapter::Demo => {}
        }
        Some(newest)
    }

    /// The evidence that this delivery was taken, if there is any (DI-29).
    pub fn evidence(&self, marker: &Marker, intent_at: Timestamp) -> Option<&MarkerSeen> {
        confirm::evidence(
            &self.markers,
            marker,
            self.place.session_id.as_str(),
            intent_at,
        )
    }

    /// Could the transcript be read to its end at the last look? One that is not there yet reads as
    /// empty (DI-43).
    pub fn transcript_read(&self) -> bool {
        self.transcript_read
    }

    /// Has a prompt hook of this conversation ever been heard?
    pub fn hooks_heard(&self) -> bool {
        self.prompt_hook_heard
    }

    /// Does the transcript hold this marker anywhere? What cannot be read may (DI-43).
    pub fn mentions(&self, world: &World, marker: &Marker) -> bool {
        self.transcript.as_ref().is_some_and(|transcript| {
            let found = transcript.mentions(&*world.disk, marker.as_str());
            found.unwrap_or(true)
        })
    }

    /// When the newest turn began, as hooks and transcript tell.
    pub fn last_turn_at(&self) -> Option<Timestamp> {
        self.last_turn_at
    }

    /// The transcript's size and last change at the last look (DI-32).
    pub fn growth(&self) -> Growth {
        self.transcript
            .as_ref()
            .map(TranscriptTail::growth)
            .unwrap_or_default()
    }
}

impl Since {
    /// Notes what is said now. A state that must have stood for a while begins to count later, with the
    /// time at which it does.
    fn note(&mut self, said: Option<(AgentState, Duration)>, at: Timestamp) {
        match said {
            // What cannot be recognised says nothing: the last word stands.
            None => {}
            Some((state, after)) => {
                let since = match self.state {
                    Some((before, since)) if before == state => since,
                    Some(_) | None => at,
                };
                let counted = self.counts && self.state.is_some_and(|(s, _)| s == state);
                self.counts = counted || at.since(since) >= after;
                self.state = Some((state, since));
            }
        }
    }

    fn observation(self, source: ObservationSource) -> Option<Observation> {
        let (state, at) = self.state.filter(|_| self.counts)?;
        Some(Observation { source, at, state })
    }
}

fn format_of(adapter: Adapter) -> TranscriptFormat {
    match adapter {
        Adapter::Claude => TranscriptFormat::Claude,
        Adapter::Demo => TranscriptFormat::Demo,
    }
}

#[cfg(test)]
mod tests;
