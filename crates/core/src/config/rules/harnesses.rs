//! What is looked at across the keys that name or declare harnesses (CF-13, DI-33).

use std::collections::BTreeMap;

use crate::config::node::Pos;
use crate::config::pattern::{Confirms, Pattern, Signal};
use crate::config::problem::{Problem, echo};
use crate::config::shape::HARNESSES;
use crate::config::{Harness, SessionIdBy, Settings, nearest};

/// Words that are filled in where a harness is launched.
const LAUNCH_WORDS: &[&str] = &["session_id", "settings_file", "mail_dir", "cwd"];
/// Words that are filled in in the path of a transcript.
const TRANSCRIPT_WORDS: &[&str] = &["session_id", "cwd"];

struct Findings<'a> {
    positions: &'a BTreeMap<String, Pos>,
    problems: Vec<Problem>,
}

impl Findings<'_> {
    fn add(&mut self, key: &str, words: &str) {
        self.add_with(key, words, None);
    }

    /// The problem stands where the key is; for one that is missing, where its parent is.
    fn add_with(&mut self, key: &str, words: &str, hint: Option<String>) {
        let mut place = key;
        let pos = loop {
            if let Some(pos) = self.positions.get(place) {
                break Some(*pos);
            }
            match place.rsplit_once('.') {
                Some((parent, _)) => place = parent,
                None => break None,
            }
        };
        self.problems.push(Problem {
            pos,
            key: Some(key.to_owned()),
            message: format!("`{key}` {words}"),
            hint,
        });
    }
}

/// Faults of the keys that name or declare harnesses.
pub(super) fn problems(settings: &Settings, positions: &BTreeMap<String, Pos>) -> Vec<Problem> {
    let mut found = Findings {
        positions,
        problems: Vec::new(),
    };
    let routing = &settings.routing;
    let declared = routing.harnesses.keys().map(String::as_str);
    let mut known: Vec<&str> = HARNESSES.to_vec();
    known.extend(declared.filter(|name| !HARNESSES.contains(name)));
    let mut named = vec![(
        "routing.defaultHarness".to_owned(),
        routing.default_harness.as_str(),
    )];
    let of_repos = routing.repo_harness.iter();
    named.extend(of_repos.map(|(repo, name)| {
        let key = crate::config::problem::key_part(repo);
        (format!("routing.repoHarness.{key}"), name.as_str())
    }));
    let with_args = routing.harness_args.keys();
    named.extend(with_args.map(|name| (format!("routing.harnessArgs.{name}"), name.as_str())));
    for (key, name) in named {
        if !known.contains(&name) {
            let words = format!(
                "names no harness: there are {}; found \"{}\"",
                known.join(", "),
                echo(name)
            );
            let near = nearest(name, known.iter().copied());
            let hint = near.map(|word| format!("did you mean `{word}`?"));
            found.add_with(&key, &words, hint);
        }
    }
    for (name, harness) in &routing.harnesses {
        declaration(
            &mut found,
            &format!("routing.harnesses.{name}"),
            name,
            harness,
        );
    }
    found.problems
}

fn declaration(found: &mut Findings<'_>, at: &str, name: &str, harness: &Harness) {
    let built_in = HARNESSES.contains(&name);
    match &harness.command {
        None if !built_in => {
            let near = nearest(name, HARNESSES.iter().copied());
            let hint = near.map(|word| format!("did you mean `{word}`?"));
            let words = "is required for a harness that is not built in";
            found.add_with(&format!("{at}.command"), words, hint);
        }
        Some(command) if command.contains('/') && !command.starts_with('/') => {
            found.add(
                &format!("{at}.command"),
                "must be a name on the pane's PATH or an absolute path",
            );
        }
        Some(_) | None => {}
    }
    arguments(found, at, built_in, harness);
    session_id(found, at, harness);
    expressions(found, at, built_in, harness);
}

/// What is filled in, and what may be.
fn arguments(found: &mut Findings<'_>, at: &str, built_in: bool, harness: &Harness) {
    let holds = |words: &Option<Vec<String>>, word: &str| {
        let mut words = words.iter().flatten();
        words.any(|argument| argument.contains(&format!("{{{word}}}")))
    };
    for (key, words) in [("spawn", &harness.spawn), ("resume", &harness.resume)] {
        for argument in words.iter().flatten() {
            placeholders(found, &format!("{at}.{key}"), argument, LAUNCH_WORDS);
        }
    }
    for argument in harness.prompt_args.iter().flatten() {
        placeholders(found, &format!("{at}.promptArgs"), argument, &["prompt"]);
    }
    let carries = harness.prompt_args.as_ref().is_some_and(|a| !a.is_empty());
    if carries && !holds(&harness.prompt_args, "prompt") {
        found.add(&format!("{at}.promptArgs"), "must hold {prompt}");
    }
    let resumes = harness.resume.as_ref().is_some_and(|a| !a.is_empty());
    if resumes && !holds(&harness.resume, "session_id") {
        found.add(&format!("{at}.resume"), "must hold {session_id}");
    }
    let assigned = harness.session_id == Some(SessionIdBy::Assigned);
    let given = holds(&harness.spawn, "session_id");
    if assigned && !given && (!built_in || harness.spawn.is_some()) {
        let words = "must hold {session_id}: `sessionId` is assigned";
        found.add(&format!("{at}.spawn"), words);
    }
    if given && !assigned && (!built_in || harness.session_id.is_some()) {
        let words = "holds {session_id}, and `sessionId` is not assigned";
        found.add(&format!("{at}.spawn"), words);
    }
}

fn session_id(found: &mut Findings<'_>, at: &str, harness: &Harness) {
    let key = format!("{at}.sessionIdPattern");
    let pattern = harness.session_id_pattern.as_deref().unwrap_or_default();
    match harness.session_id {
        Some(SessionIdBy::File) => {
            placeholders(found, &key, pattern, &["cwd"]);
            if !pattern.contains('*') {
                found.add(&key, "must be a path with *, which stands for the id");
            }
        }
        Some(SessionIdBy::Screen) => match Pattern::parse(pattern) {
            Ok(parsed) if parsed.groups() == 1 => {}
            Ok(_) => found.add(&key, "must have one group, which is the id"),
            Err(words) => found.add(&key, &format!("is no expression: {words}")),
        },
        Some(SessionIdBy::Assigned | SessionIdBy::None) | None if !pattern.is_empty() => {
            found.add(&key, "needs `sessionId: file` or `sessionId: screen`");
        }
        Some(SessionIdBy::Assigned | SessionIdBy::None) | None => {}
    }
}

fn expressions(found: &mut Findings<'_>, at: &str, built_in: bool, harness: &Harness) {
    let signals = &harness.signals;
    for (key, signal) in [
        ("ready", &signals.ready),
        ("working", &signals.working),
        ("waiting", &signals.waiting),
        ("idle", &signals.idle),
    ] {
        if let Some(Err(words)) = signal.as_deref().map(Signal::parse) {
            found.add(
                &format!("{at}.signals.{key}"),
                &format!("is no signal: {words}"),
            );
        }
    }
    match harness.confirm.as_deref().map(Confirms::parse) {
        Some(Err(words)) => found.add(
            &format!("{at}.confirm"),
            &format!("is not understood: {words}"),
        ),
        Some(Ok(Confirms::Transcript))
            if !built_in && harness.transcript.as_deref().unwrap_or_default().is_empty() =>
        {
            found.add(&format!("{at}.confirm"), "needs a `transcript`");
        }
        Some(Ok(_)) | None => {}
    }
    if let Some(transcript) = &harness.transcript {
        placeholders(
            found,
            &format!("{at}.transcript"),
            transcript,
            TRANSCRIPT_WORDS,
        );
    }
    if let Some(Err(words)) = harness.composer_empty.as_deref().map(Pattern::parse) {
        found.add(
            &format!("{at}.composerEmpty"),
            &format!("is no expression: {words}"),
        );
    }
    for (index, dialog) in harness.dialogs.iter().flatten().enumerate() {
        let at = format!("{at}.dialogs[{index}]");
        if dialog.name.is_empty() {
            found.add(&format!("{at}.name"), "is required");
        }
        if dialog.screen.is_empty() {
            found.add(&format!("{at}.screen"), "is required");
        } else if let Err(words) = Pattern::parse(&dialog.screen) {
            found.add(
                &format!("{at}.screen"),
                &format!("is no expression: {words}"),
            );
        }
    }
}

/// A small word in braces that is none of those known is a slip: it would reach the program as it is.
fn placeholders(found: &mut Findings<'_>, key: &str, text: &str, known: &[&str]) {
    for rest in text.split('{').skip(1) {
        let Some((word, _)) = rest.split_once('}') else {
            continue;
        };
        let small = !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        if small && !known.contains(&word) {
            let filled: Vec<String> = known.iter().map(|word| format!("{{{word}}}")).collect();
            let words = format!(
                "holds {{{word}}}, which is not filled in there; {} {}",
                filled.join(", "),
                if known.len() == 1 { "is" } else { "are" }
            );
            found.add(key, &words);
        }
    }
}
