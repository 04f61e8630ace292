//! Harnesses as the settings declare them (`routing.harnesses.<name>`, DI-33).

use std::time::Duration;

use the_loop_core::config::pattern::{Confirms, Pattern, Signal};
use the_loop_core::config::{Harness, HarnessDialog, SessionIdBy};
use the_loop_core::confirm::WaitingKind;

use super::adapter::Adapter;
use super::declaration::{
    ComposerRule, Declaration, IdSource, KnownDialog, Program, Shows, Signals,
};
use super::kind::Kind;

/// A harness of the operator's own.
pub fn adapter(name: &str, settings: &Harness) -> Adapter {
    let program = match &settings.command {
        Some(command) => Program::Named(command.clone()),
        // The settings were checked: there is a command.
        None => Program::Unknown,
    };
    let mut declared = Declaration::bare(name, program);
    declared.version_args = vec!["--version".to_owned()];
    apply(&mut declared, settings);
    declared.hooks = hooks(&declared);
    declared.cannot = cannot(&declared);
    Adapter::new(Kind::Declared, declared)
}

/// A built-in harness with the fields that the settings change.
pub fn changed(built_in: &Adapter, settings: &Harness) -> Adapter {
    let mut declared = built_in.declaration().clone();
    apply(&mut declared, settings);
    for hook in hooks(&declared) {
        if !declared.hooks.contains(&hook) {
            declared.hooks.push(hook);
        }
    }
    Adapter::new(built_in.kind(), declared)
}

fn apply(declared: &mut Declaration, settings: &Harness) {
    if let Some(command) = &settings.command {
        declared.program = Program::Named(command.clone());
    }
    put(&mut declared.version_args, settings.version_args.as_ref());
    put(&mut declared.spawn, settings.spawn.as_ref());
    put(&mut declared.resume, settings.resume.as_ref());
    put(&mut declared.prompt_args, settings.prompt_args.as_ref());
    put(&mut declared.transcript, settings.transcript.as_ref());
    put(&mut declared.env, settings.env.as_ref());
    let pattern = settings.session_id_pattern.clone().unwrap_or_default();
    match settings.session_id {
        None => {}
        Some(SessionIdBy::Assigned) => declared.session_id = IdSource::Assigned,
        Some(SessionIdBy::File) => declared.session_id = IdSource::File(pattern),
        Some(SessionIdBy::Screen) => {
            let parsed = Pattern::parse(&pattern).ok();
            declared.session_id = parsed.map_or(IdSource::Never, IdSource::Screen);
        }
        Some(SessionIdBy::None) => declared.session_id = IdSource::Never,
    }
    let signal = |text: &Option<String>| Signal::parse(text.as_deref()?).ok();
    let signals = Signals {
        ready: signal(&settings.signals.ready),
        working: signal(&settings.signals.working),
        waiting: signal(&settings.signals.waiting),
        idle: signal(&settings.signals.idle),
    };
    declared.signals = signals;
    let confirms = settings.confirm.as_deref().map(Confirms::parse);
    put(
        &mut declared.confirms,
        confirms.and_then(Result::ok).as_ref(),
    );
    let empty = settings.composer_empty.as_deref().map(Pattern::parse);
    if let Some(Ok(empty)) = empty {
        declared.composer = ComposerRule::EmptyWhen(empty);
    }
    if let Some(dialogs) = &settings.dialogs {
        declared.dialogs = dialogs.iter().filter_map(dialog).collect();
    }
    let lines = settings.inline_max_lines.map(|lines| lines as usize);
    put(&mut declared.inline_lines_max, lines.as_ref());
    let chars = settings.inline_max_chars.map(|chars| chars as usize);
    put(&mut declared.inline_chars_max, chars.as_ref());
    let delay = settings.submit_delay_ms;
    let delay = delay.map(|ms| Duration::from_millis(u64::from(ms)));
    put(&mut declared.submit_delay, delay.as_ref());
}

fn put<T: Clone>(field: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        *field = value.clone();
    }
}

fn dialog(dialog: &HarnessDialog) -> Option<KnownDialog> {
    let kind = match dialog.name.as_str() {
        "permission" => WaitingKind::Permission,
        "question" => WaitingKind::Question,
        "usage-limit" => WaitingKind::UsageLimit,
        "login" => WaitingKind::Login,
        _ => WaitingKind::Dialog,
    };
    Some(KnownDialog {
        name: dialog.name.clone(),
        kind,
        shows: Shows::Pattern(Pattern::parse(&dialog.screen).ok()?),
    })
}

/// The hooks that something is expected of.
fn hooks(declared: &Declaration) -> Vec<String> {
    let signals = declared.signals.all().into_iter().flatten();
    let mut names: Vec<String> = signals
        .filter_map(Signal::hook)
        .map(str::to_owned)
        .collect();
    if let Confirms::Hook(name) = &declared.confirms {
        names.push(name.clone());
    }
    names.sort();
    names.dedup();
    names
}

/// What follows from what is not declared.
fn cannot(declared: &Declaration) -> Vec<String> {
    let mut cannot = Vec::new();
    let mut say = |words: &str| cannot.push(words.to_owned());
    if declared.resume.is_empty() {
        say("it cannot continue a conversation: after its process ended a new one begins");
    } else if declared.session_id == IdSource::Never {
        say(
            "the id of a conversation that it begins is not known: only a registered one is continued",
        );
    }
    if !declared.confirms.is_proof() {
        say("it does not prove that it took a prompt: a delivery ends as pasted");
    }
    cannot
}

#[cfg(test)]
mod tests;
