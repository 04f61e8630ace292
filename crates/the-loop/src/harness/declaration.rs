//! What data can say of a harness (DI-33).

use std::collections::BTreeMap;
use std::time::Duration;

use the_loop_core::config::pattern::{Confirms, Pattern, Signal};
use the_loop_core::confirm::WaitingKind;

use super::screen::ScreenView;

/// Between paste and submit, where a harness needs no longer (DI-28).
pub const SUBMIT_DELAY: Duration = Duration::from_millis(50);

/// Lines of a prompt that is pasted as it is, where a harness takes no fewer (DI-25).
pub const INLINE_LINES_MAX: usize = 3;
/// Characters of one.
pub const INLINE_CHARS_MAX: usize = 700;

/// What is declared about a harness. Words in braces are filled in at a launch: `{session_id}`,
/// `{settings_file}`, `{mail_dir}`, `{cwd}`, `{slug}` and, in `prompt_args`, `{prompt}`.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Its name in settings, records and output.
    pub name: String,
    /// Its program.
    pub program: Program,
    /// Arguments that make it print its version.
    pub version_args: Vec<String>,
    /// The version that the facts here were seen on; empty for one that an operator declared.
    pub seen_on: String,
    /// Arguments of a new conversation.
    pub spawn: Vec<String>,
    /// Arguments that take up a recorded conversation; empty: it cannot.
    pub resume: Vec<String>,
    /// Arguments that carry a first prompt, put last; empty: it is pasted when ready.
    pub prompt_args: Vec<String>,
    /// Do they carry one to a conversation that is taken up, too?
    pub resume_carries: bool,
    /// How the id of a conversation is known.
    pub session_id: IdSource,
    /// Lines of a prompt that is pasted as it is (DI-25).
    pub inline_lines_max: usize,
    /// Characters of one.
    pub inline_chars_max: usize,
    /// Between paste and submit (DI-28).
    pub submit_delay: Duration,
    /// Hooks that call `the-loop hook`; told by `hook.installed`.
    pub hooks: Vec<String>,
    /// How it shows that a delivery was taken; further evidence of hook or transcript counts as well.
    pub confirms: Confirms,
    /// How its states show, where an operator declared it; asked before the harness's own code.
    pub signals: Signals,
    /// How its input line is known.
    pub composer: ComposerRule,
    /// Dialogs that it is known to show, the first that fits counts.
    pub dialogs: Vec<KnownDialog>,
    /// Path of its transcript with `{session_id}`, `{cwd}` and `*`, where an operator declared it;
    /// empty: as its own code says.
    pub transcript: String,
    /// Variables that its pane gets: over `env.pass`, under the env file and our own names.
    pub env: BTreeMap<String, String>,
    /// What it cannot do, one sentence each, told at registration.
    pub cannot: Vec<String>,
}

impl Declaration {
    /// One of which nothing is known but its program: it is started without arguments, each prompt is
    /// pasted, and nothing is confirmed.
    pub fn bare(name: &str, program: Program) -> Self {
        Self {
            name: name.to_owned(),
            program,
            version_args: Vec::new(),
            seen_on: String::new(),
            spawn: Vec::new(),
            resume: Vec::new(),
            prompt_args: Vec::new(),
            resume_carries: true,
            session_id: IdSource::Never,
            inline_lines_max: INLINE_LINES_MAX,
            inline_chars_max: INLINE_CHARS_MAX,
            submit_delay: SUBMIT_DELAY,
            hooks: Vec::new(),
            confirms: Confirms::Nothing,
            signals: Signals::default(),
            composer: ComposerRule::Unseen,
            dialogs: Vec::new(),
            transcript: String::new(),
            env: BTreeMap::new(),
            cannot: Vec::new(),
        }
    }
}

/// Where a program comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A name for the pane's `PATH`, or an absolute path.
    Named(String),
    /// This program itself.
    Ourselves,
    /// It is not known: a record or a label names a harness that this release and the settings do not.
    Unknown,
}

/// How the id of a conversation is known (DI-33).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdSource {
    /// We choose it: `{session_id}` in `spawn`.
    Assigned,
    /// The harness's own code learns it.
    Learnt,
    /// What stands for the last `*` of the newest file that fits.
    File(String),
    /// The first group, in the last place on the screen where it matches.
    Screen(Pattern),
    /// Never: its conversations cannot be taken up again.
    Never,
}

/// How its states show (`routing.harnesses.<name>.signals`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// It takes input.
    pub ready: Option<Signal>,
    /// A turn is in work.
    pub working: Option<Signal>,
    /// It waits for a person.
    pub waiting: Option<Signal>,
    /// A turn has ended.
    pub idle: Option<Signal>,
}

impl Signals {
    /// All, the one that counts more where several show first.
    pub fn all(&self) -> [Option<&Signal>; 4] {
        [
            self.waiting.as_ref(),
            self.working.as_ref(),
            self.idle.as_ref(),
            self.ready.as_ref(),
        ]
    }
}

/// How an input line is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComposerRule {
    /// Its rows stand between two rows that begin with `rule`, and the first begins with one of `prompts`.
    Ruled {
        /// What the rows above and below begin with.
        rule: String,
        /// What the input line begins with; the first is the usual one.
        prompts: Vec<char>,
    },
    /// Nothing is drawn around it: it goes from the lowest row that begins with one of `prompts` to the
    /// empty row above the lines at the bottom.
    Open {
        /// What the input line begins with; the first is the usual one.
        prompts: Vec<char>,
    },
    /// It is empty when the screen matches.
    EmptyWhen(Pattern),
    /// The harness's own code finds it, or nothing does.
    Unseen,
}

/// A dialog, and how it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownDialog {
    /// Its name, told to people.
    pub name: String,
    /// What it waits for.
    pub kind: WaitingKind,
    /// What it shows.
    pub shows: Shows,
}

/// What a dialog shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shows {
    /// Every text stands in some row, below the input line where there is one: what stands above it is
    /// conversation, and could only quote a dialog.
    Texts(Vec<String>),
    /// The visible rows match.
    Pattern(Pattern),
}

impl KnownDialog {
    /// One that is known by its texts.
    pub fn of_texts(name: &str, kind: WaitingKind, texts: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            shows: Shows::Texts(words(texts)),
        }
    }

    /// Is it there? `below` is the first row under the input line.
    pub fn is_on(&self, screen: &ScreenView, below: usize) -> bool {
        match &self.shows {
            Shows::Texts(texts) => {
                let rows = &screen.rows[below..];
                texts
                    .iter()
                    .all(|text| rows.iter().any(|row| row.contains(text.as_str())))
            }
            Shows::Pattern(pattern) => pattern.is_match(&screen.text()),
        }
    }
}

/// Owned words.
pub fn words(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
