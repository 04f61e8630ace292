//! Following one running session: its state, and the deliveries it has taken (DI-29, DI-31).

use std::collections::VecDeque;
use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::config::pattern::Confirms;
use the_loop_core::confirm::{self, AgentState, By, MarkerSeen, Observation, ObservationSource};
use the_loop_core::ids::{HarnessSessionId, Marker};
use the_loop_core::time::Timestamp;

use super::adapter::{Adapter, Learning};
use super::conversation::Conversation;
use super::hook::{HookLine, HookTail, OPERATOR_RESUME};
use super::kind::Kind;
use super::place::Place;
use super::screen::ScreenView;
use super::signals::Told;
use super::transcript::{Entry, Growth, Usage};
use crate::world::World;

/// Markers remembered of one session; the oldest go out. A delivery is confirmed long before.
const MARKERS_KEPT: usize = 256;
/// How long a transcript that was not found is not sought again.
const SEEK_AGAIN_AFTER: Duration = Duration::from_millis(250);
/// The hook that carries a prompt, where a harness declares no other.
const PROMPT_HOOK: &str = "UserPromptSubmit";

/// Follows a session's hook file, transcript, state file, title and screen. Cheap to look with: only
/// what was appended is read.
#[derive(Debug)]
pub struct Watch {
    adapter: Adapter,
    place: Place,
    launched_at: Timestamp,
    /// When the newest look was.
    looked_at: Timestamp,
    hooks: HookTail,
    transcript: Option<Conversation>,
    transcript_read: bool,
    /// Another transcript is read from now on.
    transcript_is_new: bool,
    transcript_sought_at: Option<Timestamp>,
    markers: VecDeque<MarkerSeen>,
    prompt_hook_heard: bool,
    last_turn_at: Option<Timestamp>,
    /// The newest conversation id that a hook told while ours was not known.
    told_id: Option<HarnessSessionId>,
    from_hooks: Option<Observation>,
    from_file: Option<Observation>,
    from_transcript: Option<Observation>,
    from_title: Since,
    from_screen: Since,
    /// Name of the known dialog that the last look at the screen found.
    dialog: Option<String>,
}

/// What a source without times of its own says and since when, and the newest of that which counts.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    state: Option<(AgentState, Timestamp)>,
    counted: Option<(AgentState, Timestamp)>,
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
        Self {
            hooks: HookTail::new(place.hook_file.clone()),
            transcript: None,
            transcript_sought_at: None,
            adapter,
            place,
            launched_at,
            looked_at: launched_at,
            transcript_read: false,
            transcript_is_new: false,
            markers: VecDeque::new(),
            prompt_hook_heard: false,
            last_turn_at: None,
            told_id: None,
            from_hooks: None,
            from_file: None,
            from_transcript: None,
            from_title: Since::default(),
            from_screen: Since::default(),
            dialog: None,
        }
    }

    /// Which harness.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// The conversation; `None` while it is not known.
    pub fn conversation(&self) -> Option<&HarnessSessionId> {
        self.place.session_id.as_ref()
    }

    /// The id of the conversation that this process has begun, when it is not known yet and shows now.
    /// `taken` are the conversations of other sessions, `rivals` the launches of those whose is not known.
    pub fn learn(
        &self,
        world: &World,
        screen: Option<&ScreenView>,
        taken: &[HarnessSessionId],
        rivals: &[Timestamp],
    ) -> Option<HarnessSessionId> {
        if self.place.session_id.is_some() {
            return None;
        }
        self.adapter.learn_id(&Learning {
            world,
            place: &self.place,
            since: self.launched_at,
            screen,
            told: self.told_id.as_ref(),
            taken,
            rivals,
        })
    }

    /// The conversation is known from now on.
    pub fn learnt(&mut self, id: HarnessSessionId) {
        for seen in &mut self.markers {
            id.as_str().clone_into(&mut seen.session_id);
        }
        self.place.session_id = Some(id);
        self.transcript_sought_at = None;
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
        if let Some(pid) = pid {
            self.from_file = self.adapter.kind().state_file(world, &self.place, pid);
        }
        self.looked_at = now;
        if let Some(screen) = screen {
            let dialog = self.adapter.known_dialog(screen);
            self.dialog = dialog.map(|dialog| dialog.name.clone());
            self.from_screen.note(self.screen_told(screen), screen.at);
        }
        if let Some(title) = screen.map(|s| s.title.as_str()).or(title) {
            self.note_title(title, now);
        }
        looked
    }

    /// Some dialogs leave the title as it was: one that has not changed since there is a dialog on the
    /// screen does not call the agent idle.
    fn note_title(&mut self, title: &str, now: Timestamp) {
        let told = self.adapter.title_told(title);
        let idle = matches!(told, Told::State(AgentState::Idle, _));
        let unchanged = |since: Timestamp| match self.from_title.state {
            Some((AgentState::Idle, idle_since)) => idle_since <= since,
            Some(_) => false,
            None => true,
        };
        match self.from_screen.state {
            Some((AgentState::Waiting(_), since)) if idle && unchanged(since) => {
                self.from_title = Since::default();
            }
            Some(_) | None => self.from_title.note(told, now),
        }
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
        let ours = self.is_ours(&line);
        if self.place.session_id.is_none() && line.at >= self.launched_at {
            self.told_id = HarnessSessionId::parse(&line.session_id).or(self.told_id.take());
        }
        let prompt_hook = match &self.adapter.declaration().confirms {
            Confirms::Hook(name) => name.as_str(),
            Confirms::Transcript | Confirms::Screen(_) | Confirms::Nothing => PROMPT_HOOK,
        };
        if line.hook == prompt_hook && ours {
            self.prompt_hook_heard = true;
            self.last_turn_at = Some(line.at);
        }
        if let Some(path) = line.transcript_path.as_ref().filter(|_| ours) {
            let known = self.transcript.as_ref().map(Conversation::path);
            if known != Some(path.as_path()) {
                self.transcript = self.follow(path.clone());
                self.transcript_read = false;
                self.transcript_is_new = true;
            }
        }
        let state = if line.hook == OPERATOR_RESUME {
            self.is_barred().then_some(AgentState::Idle)
        } else {
            self.adapter.hook_state(&line)
        };
        if let Some(state) = state {
            self.from_hooks = Some(Observation {
                source: ObservationSource::Hook,
                at: line.at,
                state,
            });
        }
        let session_id = if ours {
            self.conversation_text()
        } else {
            line.session_id
        };
        for marker in line.markers {
            self.remember(MarkerSeen {
                marker,
                at: line.at,
                session_id: session_id.clone(),
                by: By::Hook,
            });
        }
    }

    /// Does this hook speak of our conversation? The file is this session's alone; a harness that names
    /// no conversation, or whose conversation is not known yet, speaks of the one in its pane.
    fn is_ours(&self, line: &HookLine) -> bool {
        match &self.place.session_id {
            Some(id) => {
                line.session_id == id.as_str()
                    || (line.session_id.is_empty() && self.adapter.kind() == Kind::Declared)
            }
            None => line.at >= self.launched_at,
        }
    }

    fn conversation_text(&self) -> String {
        let id = self.place.session_id.as_ref();
        id.map(|id| id.as_str().to_owned()).unwrap_or_default()
    }

    /// Finds the transcript, where no hook has told of it. A look at the disk for it is not made with
    /// every look at the session.
    fn seek_transcript(&mut self, world: &World) {
        let now = world.clock.now();
        let recently = |sought: Timestamp| now >= sought && now.since(sought) < SEEK_AGAIN_AFTER;
        if self.transcript.is_some() || self.transcript_sought_at.is_some_and(recently) {
            return;
        }
        self.transcript_sought_at = Some(now);
        let path = self
            .adapter
            .transcript_path(world, &self.place, self.launched_at);
        self.transcript = path.and_then(|path| self.follow(path));
    }

    fn follow(&self, path: Utf8PathBuf) -> Option<Conversation> {
        let format = self.adapter.kind().transcript_format();
        Conversation::at(path, format, self.place.session_id.as_ref())
    }

    fn look_at_transcript(&mut self, world: &World, looked: &mut Looked) {
        self.seek_transcript(world);
        let Some(tail) = &mut self.transcript else {
            return;
        };
        let read = tail.read(&*world.disk);
        self.transcript_read = read.is_ok();
        looked.restarted = std::mem::take(&mut self.transcript_is_new) || tail.restarted();
        for entry in read.unwrap_or_default() {
            let (at, state) = match entry {
                Entry::Mention { at, markers } => {
                    self.remember_all(at, markers);
                    continue;
                }
                Entry::Prompt { at, markers } => {
                    self.remember_all(at, markers);
                    self.last_turn_at = self.last_turn_at.max(Some(at));
                    (at, AgentState::Working)
                }
                Entry::Barred { at, kind } => (at, AgentState::Waiting(kind)),
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

    fn screen_told(&self, screen: &ScreenView) -> Told {
        if screen.dead {
            return Told::State(AgentState::Exited, Duration::ZERO);
        }
        match self.adapter.known_dialog(screen) {
            Some(dialog) => Told::State(AgentState::Waiting(dialog.kind), Duration::ZERO),
            None => self.adapter.screen_told(screen),
        }
    }

    fn remember_all(&mut self, at: Timestamp, markers: Vec<Marker>) {
        let session_id = self.conversation_text();
        for marker in markers {
            self.remember(MarkerSeen {
                marker,
                at,
                session_id: session_id.clone(),
                by: By::Transcript,
            });
        }
    }

    fn remember(&mut self, seen: MarkerSeen) {
        if self.markers.len() == MARKERS_KEPT {
            self.markers.pop_front();
        }
        self.markers.push_back(seen);
    }

    /// The agent's state, who says so and since when that one does (DI-31).
    pub fn state(&self) -> Option<Observation> {
        self.told(confirm::believed)
    }

    /// The same state, with the first one to say so and since when it stands.
    pub fn standing(&self) -> Option<Observation> {
        self.told(confirm::standing)
    }

    fn told(&self, decide: fn(&[Observation]) -> Option<Observation>) -> Option<Observation> {
        let all = [
            self.from_hooks,
            self.from_file,
            self.from_transcript.map(|o| self.rested(o)),
            self.from_title.observation(ObservationSource::Title),
            self.from_screen.observation(ObservationSource::Screen),
        ];
        let of_this_process = |o: &Observation| o.at >= self.launched_at;
        let known: Vec<Observation> = all.into_iter().flatten().filter(of_this_process).collect();
        let Some(mut newest) = decide(&known) else {
            return self.adapter.baseline().map(|state| Observation {
                source: ObservationSource::Screen,
                at: self.launched_at,
                state,
            });
        };
        let had_a_turn = self.last_turn_at.is_some_and(|at| at >= self.launched_at);
        let idles_before = self.adapter.kind().idles_before_first_turn();
        if idles_before && newest.state == AgentState::Idle && !had_a_turn {
            newest.state = AgentState::Ready;
        }
        Some(newest)
    }

    /// An agent that submits what it has queued a moment after its turn has not been idle in that moment.
    fn rested(&self, mut seen: Observation) -> Observation {
        let rest = self.adapter.kind().rest();
        if seen.state == AgentState::Idle && self.looked_at.since(seen.at) < rest {
            seen.state = AgentState::Working;
        }
        seen
    }

    /// The known dialog that it showed when its screen was looked at last (DI-21).
    pub fn dialog(&self) -> Option<&str> {
        self.dialog.as_deref()
    }

    /// Does its last word say that its account may not be used, or has no login (DI-42)?
    fn is_barred(&self) -> bool {
        self.state().is_some_and(|seen| seen.state.is_barred())
    }

    /// The evidence that this delivery was taken, if there is any (DI-29).
    pub fn evidence(&self, marker: &Marker, intent_at: Timestamp) -> Option<&MarkerSeen> {
        confirm::evidence(&self.markers, marker, &self.conversation_text(), intent_at)
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

    /// Is there a transcript, as far as is known where it would be? Without one nothing can be taken up
    /// again (SE-58). `None` when nobody knows where to look, or it cannot be looked at.
    pub fn has_transcript(&self, world: &World) -> Option<bool> {
        let path = self.transcript.as_ref()?.path();
        world.disk.meta(path).ok().map(|meta| meta.is_some())
    }

    /// When the newest turn began, as hooks and transcript tell.
    pub fn last_turn_at(&self) -> Option<Timestamp> {
        self.last_turn_at
    }

    /// The transcript's size and last change at the last look (DI-32).
    pub fn growth(&self) -> Growth {
        self.transcript
            .as_ref()
            .map(Conversation::growth)
            .unwrap_or_default()
    }
}

impl Since {
    /// Notes what is said now. A state that must have stood for a while begins to count later, with the
    /// time since when it has stood; until then the one before it counts.
    fn note(&mut self, told: Told, at: Timestamp) {
        match told {
            // What cannot be recognised says nothing: the last word stands.
            Told::Nothing => {}
            Told::Over => *self = Self::default(),
            Told::State(state, after) => {
                let since = match self.state {
                    Some((before, since)) if before == state => since,
                    Some(_) | None => at,
                };
                self.state = Some((state, since));
                let counted = self.counted.is_some_and(|(s, _)| s == state);
                if counted || at.since(since) >= after {
                    self.counted = self.state;
                }
            }
        }
    }

    fn observation(self, source: ObservationSource) -> Option<Observation> {
        let (state, at) = self.counted?;
        Some(Observation { source, at, state })
    }
}

#[cfg(test)]
mod tests;
