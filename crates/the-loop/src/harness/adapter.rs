//! What the engine asks of a harness (DI-33). The answers are data of its declaration, and a few
//! functions of its [`Kind`] where data does not reach.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::config::pattern::Signal;
use the_loop_core::config::{HarnessTrust, Settings};
use the_loop_core::confirm::{AgentState, Composer};
use the_loop_core::dispatch::Launch;
use the_loop_core::ids::{HarnessSessionId, Marker, Slug};
use the_loop_core::time::Timestamp;

use super::argv::fill;
use super::declaration::{ComposerRule, Declaration, IdSource, KnownDialog, Program};
use super::kind::Kind;
use super::place::Place;
use super::screen::ScreenView;
use super::trust::TrustError;
use super::{declared, glob};
use crate::world::World;

/// A coding agent that can be hosted. Clones share the declaration.
#[derive(Clone, Debug)]
pub struct Adapter {
    kind: Kind,
    pub(super) declared: Arc<Declaration>,
}

/// All harnesses that the settings allow.
#[derive(Clone, Debug)]
pub struct Adapters(Arc<Vec<Adapter>>);

/// What a launch needs to know.
#[derive(Clone, Copy, Debug)]
pub struct LaunchContext<'a> {
    /// The world.
    pub world: &'a World,
    /// The session's slug.
    pub slug: &'a Slug,
    /// The conversation; `None` for a new one whose id is learnt (DI-33).
    pub session_id: Option<&'a HarnessSessionId>,
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

/// What is at hand when the id of a new conversation is looked for (DI-33).
#[derive(Clone, Copy, Debug)]
pub struct Learning<'a> {
    /// The world.
    pub world: &'a World,
    /// Where the session's files are.
    pub place: &'a Place,
    /// When the process in the pane was launched: nothing older is its conversation.
    pub since: Timestamp,
    /// What the pane shows, where that was looked at.
    pub screen: Option<&'a ScreenView>,
    /// The newest conversation id that one of its hooks told since then.
    pub told: Option<&'a HarnessSessionId>,
    /// Conversations of other sessions: never this one's.
    pub taken: &'a [HarnessSessionId],
    /// When other sessions of this harness were launched whose conversation is not known either.
    pub rivals: &'a [Timestamp],
}

impl Adapters {
    /// Those that this release knows and those that the settings declare.
    pub fn of(settings: &Settings) -> Self {
        let declared = &settings.routing.harnesses;
        let mut all = Adapter::built_in();
        for adapter in &mut all {
            if let Some(harness) = declared.get(adapter.name()) {
                *adapter = declared::changed(adapter, harness);
            }
        }
        for (name, harness) in declared {
            if !all.iter().any(|adapter| adapter.name() == name) {
                all.push(declared::adapter(name, harness));
            }
        }
        Self(Arc::new(all))
    }

    /// By its name in settings and records.
    pub fn named(&self, name: &str) -> Option<Adapter> {
        self.0.iter().find(|a| a.name() == name).cloned()
    }

    /// The one whose running program has this command line; `None` when it is none of ours.
    pub fn of_argv(&self, world: &World, argv: &[String]) -> Option<Adapter> {
        let program = Utf8Path::new(argv.first()?);
        // A script's interpreter stands before it.
        let heads = || argv.iter().take(2).map(Utf8Path::new);
        let runs = |adapter: &&Adapter| match &adapter.declared.program {
            Program::Named(name) => {
                heads().any(|head| head == name || head.file_name() == Some(name.as_str()))
            }
            Program::Ourselves => {
                program == world.program && argv.get(1).map(String::as_str) == Some("demo-agent")
            }
            Program::Unknown => false,
        };
        self.0.iter().find(runs).cloned()
    }

    /// Their names, for people.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(Adapter::name).collect()
    }
}

impl Adapter {
    /// An adapter of this kind.
    pub fn new(kind: Kind, declared: Declaration) -> Self {
        Self {
            kind,
            declared: Arc::new(declared),
        }
    }

    /// By its name, as the settings have it.
    pub fn named(name: &str, settings: &Settings) -> Option<Self> {
        Adapters::of(settings).named(name)
    }

    /// One that is not known any more, or not yet: it is never launched, and nothing of it is
    /// recognised.
    pub fn unknown(name: &str) -> Self {
        Self::new(Kind::Declared, Declaration::bare(name, Program::Unknown))
    }

    /// Is it known?
    pub fn is_known(&self) -> bool {
        self.declared.program != Program::Unknown
    }

    /// The code behind it.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What is declared about it.
    pub fn declaration(&self) -> &Declaration {
        &self.declared
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.declared.name
    }

    /// Its program: a name for the pane's `PATH`, or an absolute path; empty when it is not known.
    pub fn program(&self, world: &World) -> String {
        match &self.declared.program {
            Program::Named(name) => name.clone(),
            Program::Ourselves => world.program.to_string(),
            Program::Unknown => String::new(),
        }
    }

    /// Can it take up a recorded conversation?
    pub fn can_resume(&self) -> bool {
        !self.declared.resume.is_empty()
    }

    /// Is the id of a new conversation ours to choose?
    pub fn assigns_id(&self) -> bool {
        match self.declared.session_id {
            IdSource::Assigned => true,
            IdSource::Learnt | IdSource::File(_) | IdSource::Screen(_) | IdSource::Never => false,
        }
    }

    /// Is the id of a new conversation learnt from what its harness does?
    pub fn learns_id(&self) -> bool {
        match self.declared.session_id {
            IdSource::Learnt | IdSource::File(_) | IdSource::Screen(_) => true,
            IdSource::Assigned | IdSource::Never => false,
        }
    }

    /// Is it learnt from the screen?
    pub fn learns_from_screen(&self) -> bool {
        matches!(self.declared.session_id, IdSource::Screen(_))
    }

    /// Does a prompt come with the launch? Else it is pasted when the harness is ready (DI-25).
    pub fn carries_prompt(&self, launch: Launch) -> bool {
        match launch {
            Launch::Fresh => !self.declared.prompt_args.is_empty(),
            Launch::Resume => !self.declared.prompt_args.is_empty() && self.declared.resume_carries,
        }
    }

    /// Variables that its pane gets, over `env.pass` and under the env file and our own names.
    pub fn env(&self, world: &World, mail_dir: &Utf8Path) -> BTreeMap<String, String> {
        let mut env = self.declared.env.clone();
        env.extend(self.kind.env(world, mail_dir));
        env
    }

    /// Does only its screen tell what it does and waits for? Then the look at all sessions takes the
    /// screen as well.
    pub fn is_told_by_screen(&self) -> bool {
        let on_screen = |signal: &Signal| matches!(signal, Signal::Screen(_));
        let mut signals = self.declared.signals.all().into_iter().flatten();
        // Of a dialog that was declared, nothing else is known.
        let dialogs = self.kind == Kind::Declared && !self.declared.dialogs.is_empty();
        self.kind.is_told_by_screen() || dialogs || signals.any(on_screen)
    }

    /// Writes the settings file of this session and the pre-answers, before a launch (DI-35). Safe to
    /// do again.
    pub fn prepare(&self, context: &LaunchContext<'_>) -> Result<Prepared, HarnessError> {
        Ok(Prepared {
            hooks: self.declared.hooks.clone(),
            trust: self.kind.prepare(context, &self.declared)?,
        })
    }

    /// The known dialog that is on the screen.
    pub fn known_dialog(&self, screen: &ScreenView) -> Option<&KnownDialog> {
        let below = self.input_line(screen).map_or(0, |rows| rows.end + 1);
        let mut dialogs = self.declared.dialogs.iter();
        dialogs.find(|dialog| dialog.is_on(screen, below))
    }

    /// The rows of the input line.
    pub fn input_line(&self, screen: &ScreenView) -> Option<Range<usize>> {
        self.kind.input_line(screen, &self.declared)
    }

    /// What is in the input line; with a marker, whether it is that delivery's text. Hints that are
    /// drawn faint are not there.
    pub fn composer(&self, screen: &ScreenView, marker: Option<&Marker>) -> Composer {
        if self.known_dialog(screen).is_some() {
            return Composer::Unknown;
        }
        if let Some(composer) = self.kind.composer(screen, marker) {
            return composer;
        }
        if let ComposerRule::EmptyWhen(empty) = &self.declared.composer {
            return match marker {
                _ if empty.is_match(&screen.text()) => Composer::Empty,
                // Something is in it, and whether that is ours cannot be told: what was pasted may have
                // scrolled away, and somebody's words may stand below an earlier prompt of ours.
                Some(_) => Composer::Unknown,
                None => Composer::Draft,
            };
        }
        let Some(rows) = self.input_line(screen) else {
            return Composer::Unknown;
        };
        // A narrow pane breaks a marker over two rows. A first character other than the usual prompt
        // means a mode that somebody switched on, and stays as a part of the draft.
        let usual = match &self.declared.composer {
            ComposerRule::Ruled { prompts, .. } | ComposerRule::Open { prompts } => {
                prompts.first().copied()
            }
            ComposerRule::EmptyWhen(_) | ComposerRule::Unseen => None,
        };
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

    /// Where its transcript is, before a hook has told; `None` while it cannot be known.
    /// `since` is when the process was launched.
    pub fn transcript_path(
        &self,
        world: &World,
        place: &Place,
        since: Timestamp,
    ) -> Option<Utf8PathBuf> {
        let declared = &self.declared.transcript;
        if declared.is_empty() {
            return self.kind.transcript_path(world, place, since);
        }
        let id = place.session_id.as_ref().map(HarnessSessionId::as_str);
        if id.is_none() && declared.contains("{session_id}") {
            return None;
        }
        let values = [
            ("session_id", id.unwrap_or_default()),
            ("cwd", glob::literal(&place.cwd)?),
        ];
        let pattern = fill(declared, &values);
        if pattern.contains('*') {
            glob::newest(&*world.disk, &pattern)
        } else {
            Some(pattern.into())
        }
    }

    /// The id of the conversation that the process launched at `since` has begun; `None` while it is
    /// not known.
    pub fn learn_id(&self, learning: &Learning<'_>) -> Option<HarnessSessionId> {
        match &self.declared.session_id {
            IdSource::Learnt => self.kind.learn_id(learning),
            IdSource::Screen(pattern) => {
                let text = learning.screen?.text();
                HarnessSessionId::parse(pattern.last_group(&text)?)
            }
            IdSource::File(pattern) => learn_from_file(pattern, learning),
            IdSource::Assigned | IdSource::Never => None,
        }
    }

    /// Does a state of its own have to be seen before it counts as ready? Where nothing is declared, a
    /// process that lives is taken for one that reads (DI-21).
    pub fn baseline(&self) -> Option<AgentState> {
        let signals = &self.declared.signals;
        match self.kind {
            Kind::Claude | Kind::Codex | Kind::OpenCode | Kind::Gemini | Kind::Demo => None,
            Kind::Declared => {
                let shows = signals.ready.is_some() || signals.idle.is_some();
                (!shows && self.is_known()).then_some(AgentState::Ready)
            }
        }
    }
}

/// The file that a new conversation has made since the launch, and nobody else's: with another session of
/// the harness that could have made it too, nothing is learnt until that one is known.
fn learn_from_file(pattern: &str, learning: &Learning<'_>) -> Option<HarnessSessionId> {
    let by_directory = pattern.contains("{cwd}");
    let cwd = glob::literal(&learning.place.cwd)?;
    let files = glob::files(&*learning.world.disk, &fill(pattern, &[("cwd", cwd)]));
    let mut ids = files.into_iter().filter_map(|file| {
        let created = Timestamp::from_unix_ms(file.created_ms?);
        let rival = |launched: &Timestamp| *launched <= created;
        let disputed = !by_directory && learning.rivals.iter().any(rival);
        let id = HarnessSessionId::parse(&file.star)?;
        let ours = created >= learning.since && !disputed && !learning.taken.contains(&id);
        ours.then_some((created, id))
    });
    // Two that nobody else has are no answer.
    let first = ids.next()?;
    ids.next().is_none().then_some(first.1)
}

/// Does our text stand there from its beginning? Words of somebody else before it, or a mode that was
/// switched on, make the whole a draft. What has scrolled out above is taken for ours. No white space.
pub(super) fn is_our_text(text: &str, marker: &Marker) -> bool {
    text.split_once(marker.as_str())
        .is_some_and(|(before, _)| "the-loopdelivery".ends_with(before))
}
