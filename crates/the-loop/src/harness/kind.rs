//! What data cannot say of a harness: one arm for each that has code of its own.
//!
//! A harness's module gives the same functions as [`claude`]: `declaration`, `prepare`,
//! `transcript_path`, `title_state`, `screen_state` and, where there is something to them, `hook_state`,
//! `state_file`, `learn_id`, `input_line` and `composer`.

use std::ops::Range;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::confirm::{AgentState, Composer, Observation};
use the_loop_core::ids::{HarnessSessionId, Marker};
use the_loop_core::time::Timestamp;

use super::adapter::{Adapter, HarnessError, LaunchContext, Learning};
use super::declaration::{ComposerRule, Declaration};
use super::hook::HookLine;
use super::place::Place;
use super::screen::ScreenView;
use super::transcript::TranscriptFormat;
use super::trust::TrustError;
use super::{claude, codex, cursor, demo, gemini, opencode};
use crate::store::layout::Layout;
use crate::world::World;

/// The code behind an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// The agent in this program, for demonstrations and tests (DI-38).
    Demo,
    /// Gemini CLI.
    Gemini,
    /// OpenCode.
    OpenCode,
    /// None: everything about it is declared, in the settings or beside this.
    Declared,
}

/// What was seen of an agent's state, and how long that must have been so before it counts.
pub type Shown = (AgentState, Duration);

impl Adapter {
    /// Claude Code.
    pub fn claude() -> Self {
        Self::new(Kind::Claude, claude::declaration())
    }

    /// Codex.
    pub fn codex() -> Self {
        Self::new(Kind::Codex, codex::declaration())
    }

    /// Cursor's agent: nothing of it needs code.
    pub fn cursor() -> Self {
        Self::new(Kind::Declared, cursor::declaration())
    }

    /// The agent in this program.
    pub fn demo() -> Self {
        Self::new(Kind::Demo, demo::declaration())
    }

    /// Gemini CLI.
    pub fn gemini() -> Self {
        Self::new(Kind::Gemini, gemini::declaration())
    }

    /// OpenCode.
    pub fn opencode() -> Self {
        Self::new(Kind::OpenCode, opencode::declaration())
    }

    /// Those that this release knows without being told.
    pub fn built_in() -> Vec<Self> {
        vec![
            Self::claude(),
            Self::codex(),
            Self::opencode(),
            Self::cursor(),
            Self::gemini(),
            Self::demo(),
        ]
    }
}

impl Kind {
    /// Writes what the harness reads at a launch, and its pre-answers (DI-35); answers those that were
    /// set now.
    pub(super) fn prepare(
        self,
        context: &LaunchContext<'_>,
        declared: &Declaration,
    ) -> Result<Result<Vec<String>, TrustError>, HarnessError> {
        match self {
            Self::Claude => {
                claude::write_settings(context, &declared.hooks)?;
                Ok(claude::pre_answer(context))
            }
            Self::Codex => Ok(codex::pre_answer(context)),
            Self::Gemini => gemini::prepare(context),
            Self::Declared => {
                // A program that takes such settings is told of its hooks and of its mail.
                let settings = |word: &String| word.contains("{settings_file}");
                if declared.spawn.iter().chain(&declared.resume).any(settings) {
                    claude::write_settings(context, &declared.hooks)?;
                }
                Ok(Ok(Vec::new()))
            }
            Self::OpenCode | Self::Demo => Ok(Ok(Vec::new())),
        }
    }

    /// Where its transcript is, before a hook has told.
    pub(super) fn transcript_path(
        self,
        world: &World,
        place: &Place,
        _since: Timestamp,
    ) -> Option<Utf8PathBuf> {
        match self {
            Self::Claude => claude::transcript_path(place),
            Self::Codex => codex::transcript_path(world, place),
            Self::Demo => {
                let root = place.dir("THE_LOOP_STATE_ROOT")?;
                let id = place.session_id.as_ref()?;
                Some(Layout::new(&root).demo_transcript(id))
            }
            Self::Gemini => gemini::transcript_path(world, place),
            Self::OpenCode => opencode::database(place),
            Self::Declared => None,
        }
    }

    /// How its transcript is written.
    pub(super) fn transcript_format(self) -> TranscriptFormat {
        match self {
            Self::Claude => TranscriptFormat::Claude,
            Self::Codex => TranscriptFormat::Codex,
            Self::Demo => TranscriptFormat::Demo,
            Self::Gemini => TranscriptFormat::Gemini,
            Self::OpenCode => TranscriptFormat::OpenCodeRows,
            Self::Declared => TranscriptFormat::Lines,
        }
    }

    /// What its own state file says, where it keeps one.
    pub(super) fn state_file(self, world: &World, place: &Place, pid: i32) -> Option<Observation> {
        match self {
            Self::Claude => claude::sessions_file(world, place, pid),
            Self::Codex | Self::OpenCode | Self::Gemini | Self::Demo | Self::Declared => None,
        }
    }

    /// What a hook says about the state.
    pub(super) fn hook_state(self, line: &HookLine) -> Option<AgentState> {
        match self {
            Self::Claude => claude::hook_state(line),
            Self::Demo => demo::hook_state(line),
            Self::Codex | Self::OpenCode | Self::Gemini | Self::Declared => None,
        }
    }

    /// What the pane's title says; `None`: nothing, and its last word stands.
    pub(super) fn title_state(self, title: &str) -> Option<Shown> {
        let state = match self {
            Self::Claude => claude::title_state(title),
            Self::Codex => codex::title_state(title),
            Self::Demo => demo::title_state(title),
            Self::Gemini => return gemini::title_state(title),
            Self::OpenCode | Self::Declared => None,
        };
        state.map(|state| (state, Duration::ZERO))
    }

    /// What its screen says when no known dialog is in the way; `None`: nothing, and its last word
    /// stands.
    pub(super) fn screen_state(self, screen: &ScreenView) -> Option<Shown> {
        match self {
            Self::Claude => claude::screen_state(screen),
            Self::Codex => codex::screen_state(screen),
            Self::Demo => demo::screen_state(screen).map(|state| (state, Duration::ZERO)),
            Self::Gemini => gemini::screen_state(screen),
            Self::OpenCode => opencode::screen_state(screen),
            Self::Declared => None,
        }
    }

    /// Does its idle look the same before and after the first turn? Then it is ready before it.
    pub(super) fn idles_before_first_turn(self) -> bool {
        match self {
            Self::Claude | Self::Codex | Self::OpenCode | Self::Gemini | Self::Declared => true,
            Self::Demo => false,
        }
    }

    /// The rows of its input line.
    pub(super) fn input_line(
        self,
        screen: &ScreenView,
        declared: &Declaration,
    ) -> Option<Range<usize>> {
        match self {
            Self::Gemini => gemini::input_line(screen),
            Self::Claude | Self::Codex | Self::OpenCode | Self::Demo | Self::Declared => {
                match &declared.composer {
                    ComposerRule::Ruled { rule, prompts } => screen.input_line(rule, prompts),
                    ComposerRule::Open { prompts } => screen.open_input_line(prompts),
                    ComposerRule::EmptyWhen(_) | ComposerRule::Unseen => None,
                }
            }
        }
    }

    /// What is in its input line, where its own code reads that.
    pub(super) fn composer(self, screen: &ScreenView, marker: Option<&Marker>) -> Option<Composer> {
        match self {
            Self::Gemini => Some(gemini::composer(screen, marker)),
            Self::OpenCode => Some(opencode::composer(screen, marker)),
            Self::Claude | Self::Codex | Self::Demo | Self::Declared => None,
        }
    }

    /// How long it must have ended a turn before its transcript proves that it is idle.
    pub(super) fn rest(self) -> Duration {
        match self {
            Self::Gemini => gemini::REST,
            Self::Claude | Self::Codex | Self::OpenCode | Self::Demo | Self::Declared => {
                Duration::ZERO
            }
        }
    }

    /// The id of the conversation that was begun since the launch, where its own code learns it.
    pub(super) fn learn_id(self, learning: &Learning<'_>) -> Option<HarnessSessionId> {
        match self {
            Self::Codex => codex::learn_id(learning),
            Self::OpenCode => opencode::learn_id(learning),
            // We choose it, or the declaration says where it stands.
            Self::Claude | Self::Demo | Self::Gemini | Self::Declared => None,
        }
    }

    /// A variable that its pane gets for this session, where that takes code.
    pub(super) fn env(self, world: &World, mail_dir: &Utf8Path) -> Option<(String, String)> {
        match self {
            Self::OpenCode => Some(opencode::session_settings(world, mail_dir)),
            Self::Claude | Self::Codex | Self::Demo | Self::Gemini | Self::Declared => None,
        }
    }

    /// Does only its screen tell what it does and waits for?
    pub(super) fn is_told_by_screen(self) -> bool {
        match self {
            Self::OpenCode => true,
            Self::Claude | Self::Codex | Self::Demo | Self::Gemini | Self::Declared => false,
        }
    }
}
