//! What the engine asks of a harness (DI-33). The answers are data of the harness's own module, and a
//! few functions where data does not reach.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::config::HarnessTrust;
use the_loop_core::confirm::{By, Composer, WaitingKind};
use the_loop_core::ids::{HarnessSessionId, Marker, Slug};

use super::screen::ScreenView;
use super::trust::TrustError;
use super::{claude, demo};
use crate::world::World;

/// A coding agent that this release can host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Adapter {
    /// Claude Code.
    Claude,
    /// The agent in this program, for demonstrations and tests (DI-38).
    Demo,
}

/// What is declared about a harness. Words in braces are filled in: `{session_id}`, `{settings_file}`,
/// `{slug}` and, in `prompt_args`, `{prompt}`.
#[derive(Debug)]
pub struct Declaration {
    /// Its name in settings, records and output.
    pub name: &'static str,
    /// Its program, looked up on the pane's `PATH`; `None`: this program itself.
    pub program: Option<&'static str>,
    /// Arguments that make it print its version.
    pub version_args: &'static [&'static str],
    /// The version that the facts here were seen on.
    pub seen_on: &'static str,
    /// Arguments of a new conversation.
    pub spawn: &'static [&'static str],
    /// Arguments that take up a recorded conversation; empty: it cannot.
    pub resume: &'static [&'static str],
    /// Arguments that carry a first prompt, put last; empty: it is pasted when ready.
    pub prompt_args: &'static [&'static str],
    /// Lines of a prompt that is pasted as it is (DI-25).
    pub inline_lines_max: usize,
    /// Characters of one.
    pub inline_chars_max: usize,
    /// Between paste and submit (DI-28).
    pub submit_delay: Duration,
    /// Hooks that call `the-loop hook`; told by `hook.installed`.
    pub hooks: &'static [&'static str],
    /// What best confirms a delivery; the other kind of evidence counts as well.
    pub confirms: By,
    /// What the rows above and below its input line begin with.
    pub rule: &'static str,
    /// What the input line begins with.
    pub prompts: &'static [char],
    /// Dialogs that it is known to show, the first that fits counts.
    pub dialogs: &'static [KnownDialog],
}

/// A dialog, and how it is known: every text stands in some row, below the input line where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownDialog {
    /// Its name, told to people.
    pub name: &'static str,
    /// What it waits for.
    pub kind: WaitingKind,
    /// Texts that it shows.
    pub shows: &'static [&'static str],
}

/// What a launch needs to know.
#[derive(Clone, Copy, Debug)]
pub struct LaunchContext<'a> {
    /// The world.
    pub world: &'a World,
    /// The session's slug.
    pub slug: &'a Slug,
    /// The conversation.
    pub session_id: &'a HarnessSessionId,
    /// Where the harness will run.
    pub cwd: &'a Utf8Path,
    /// `routing.workspace.root`, where set.
    pub workspace_root: Option<&'a Utf8Path>,
    /// `local/hooks/<slug>.settings.json`.
    pub settings_file: &'a Utf8Path,
    /// `local/mail/<slug>`.
    pub mail_dir: &'a Utf8Path,
    /// `routing.harnessArgs` of this harness.
    pub harness_args: &'a [String],
    /// The environment that the pane will have.
    pub pane_env: &'a BTreeMap<String, String>,
    /// `routing.harnessTrust`.
    pub trust: &'a HarnessTrust,
}

/// What was prepared for a launch.
#[derive(Debug)]
pub struct Prepared {
    /// The hooks that will report (`hook.installed`).
    pub hooks: Vec<String>,
    /// The pre-answers that were set now (`workspace.trusted`), or why none could be
    /// (`workspace.trust_failed`). The harness can be launched either way.
    pub trust: Result<Vec<String>, TrustError>,
}

/// Why a launch cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// The settings file could not be written; a retry can help.
    #[error("cannot write {path}: {source}")]
    Settings {
        /// Which file.
        path: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Where the files of a running session are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The conversation.
    pub session_id: HarnessSessionId,
    /// Where the harness runs.
    pub cwd: Utf8PathBuf,
    /// `local/hooks/<slug>.jsonl`.
    pub hook_file: Utf8PathBuf,
    /// `local/demo/<id>.jsonl`.
    pub demo_transcript: Utf8PathBuf,
    /// `HOME` of the pane.
    pub home: Option<Utf8PathBuf>,
    /// `CLAUDE_CONFIG_DIR` of the pane.
    pub claude_config_dir: Option<Utf8PathBuf>,
}

impl Adapter {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Claude, Self::Demo];

    /// By its name in settings and records.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.declaration().name == name)
    }

    /// The one whose running program has this command line; `None` when it is none of ours.
    pub fn of_argv(world: &World, argv: &[String]) -> Option<Self> {
        let program = Utf8Path::new(argv.first()?);
        Self::ALL
            .into_iter()
            .find(|adapter| match adapter.declaration().program {
                Some(name) => program.file_name() == Some(name),
                None => {
                    program == world.program
                        && argv.get(1).map(String::as_str) == Some("demo-agent")
                }
            })
    }

    /// What is declared about it.
    pub fn declaration(self) -> &'static Declaration {
        match self {
            Self::Claude => &claude::DECLARATION,
            Self::Demo => &demo::DECLARATION,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.declaration().name
    }

    /// Its program: a name for the pane's `PATH`, or this program's own path.
    pub fn program(self, world: &World) -> String {
        self.declaration()
            .program
            .map_or_else(|| world.program.to_string(), str::to_owned)
    }

    /// Can it take up a recorded conversation?
    pub fn can_resume(self) -> bool {
        !self.declaration().resume.is_empty()
    }

    /// Does a first prompt come with the launch? Else it is pasted when the harness is ready (DI-25).
    pub fn carries_first_prompt(self) -> bool {
        !self.declaration().prompt_args.is_empty()
    }

    /// Arguments of a new conversation.
    pub fn spawn_argv(self, context: &LaunchContext<'_>, prompt: Option<&str>) -> Vec<String> {
        self.argv(self.declaration().spawn, context, prompt)
    }

    /// Arguments that take up the recorded conversation.
    pub fn resume_argv(self, context: &LaunchContext<'_>, prompt: Option<&str>) -> Vec<String> {
        self.argv(self.declaration().resume, context, prompt)
    }

    /// Declared words, then the operator's, then the prompt.
    fn argv(
        self,
        declared: &[&str],
        context: &LaunchContext<'_>,
        prompt: Option<&str>,
    ) -> Vec<String> {
        let fill = |word: &&str| {
            word.replace("{session_id}", context.session_id.as_str())
                .replace("{settings_file}", context.settings_file.as_str())
                .replace("{slug}", context.slug.as_str())
        };
        let mut argv: Vec<String> = declared.iter().map(fill).collect();
        argv.extend(context.harness_args.iter().cloned());
        if let Some(prompt) = prompt {
            let words = self.declaration().prompt_args.iter();
            argv.extend(words.map(|word| word.replace("{prompt}", prompt)));
        }
        argv
    }

    /// Writes the settings file of this session and the pre-answers, before a launch (DI-35). Safe to
    /// do again.
    pub fn prepare(self, context: &LaunchContext<'_>) -> Result<Prepared, HarnessError> {
        let hooks = self.declaration().hooks.iter().map(|h| (*h).to_owned());
        let hooks = hooks.collect();
        let trust = match self {
            Self::Claude => {
                claude::write_settings(context)?;
                claude::pre_answer(context)
            }
            Self::Demo => Ok(Vec::new()),
        };
        Ok(Prepared { hooks, trust })
    }

    /// The known dialog that is on the screen. What stands above an input line is conversation, and
    /// could only quote one.
    pub fn known_dialog(self, screen: &ScreenView) -> Option<&'static KnownDialog> {
        let from = self.input_line(screen).map_or(0, |rows| rows.end + 1);
        let rows = &screen.rows[from..];
        let shows = |text: &&str| rows.iter().any(|row| row.contains(*text));
        let fits = |dialog: &&KnownDialog| dialog.shows.iter().all(&shows);
        self.declaration().dialogs.iter().find(fits)
    }

    /// The rows of the input line.
    pub fn input_line(self, screen: &ScreenView) -> Option<Range<usize>> {
        let declared = self.declaration();
        screen.input_line(declared.rule, declared.prompts)
    }

    /// What is in the input line; with a marker, whether it is that delivery's text. Hints that are
    /// drawn faint are not there.
    pub fn composer(self, screen: &ScreenView, marker: Option<&Marker>) -> Composer {
        let Some(rows) = self.input_line(screen) else {
            return Composer::Unknown;
        };
        if self.known_dialog(screen).is_some() {
            return Composer::Unknown;
        }
        // A narrow pane breaks a marker over two rows. A first character other than the usual prompt
        // means a mode that somebody switched on, and stays as a part of the draft.
        let usual = self.declaration().prompts.first().copied();
        let text: String = screen.solid[rows]
            .iter()
            .map(|row| usual.and_then(|p| row.strip_prefix(p)).unwrap_or(row))
            .flat_map(str::chars)
            .filter(|c| !c.is_whitespace())
            .collect();
        match marker {
            _ if text.is_empty() => Composer::Empty,
            Some(marker) if is_our_text(&text, marker) => Composer::Ours,
            Some(_) | None => Composer::Draft,
        }
    }

    /// Where its transcript is, before a hook has told.
    pub fn transcript_path(self, place: &Place) -> Option<Utf8PathBuf> {
        match self {
            Self::Claude => claude::transcript_path(place),
            Self::Demo => Some(place.demo_transcript.clone()),
        }
    }
}

/// Does our text stand there from its beginning? Words of somebody else before it, or a mode that was
/// switched on, make the whole a draft. What has scrolled out above is taken for ours. No white space.
fn is_our_text(text: &str, marker: &Marker) -> bool {
    text.split_once(marker.as_str())
        .is_some_and(|(before, _)| "the-loopdelivery".ends_with(before))
}
