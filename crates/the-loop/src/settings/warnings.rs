//! What deserves a look on this machine but stops nothing (CF-14).

use std::collections::BTreeMap;

use camino::Utf8Path;
use the_loop_core::config::Settings;
use the_loop_core::config::problem::Problem;

use super::find::shown;
use super::{read_env_file, webhook_secrets};
use crate::disk::{Kind, Meta};
use crate::world::World;

/// The warnings that need a look at files and at `PATH`; `path` is the configuration file. Said at
/// start, at reload and by `config check`.
pub fn warnings_of_machine(
    world: &World,
    settings: &Settings,
    path: Option<&Utf8Path>,
) -> Vec<Problem> {
    let mut out = Vec::new();
    if let Some(path) = path
        && target(world, path).is_some_and(|meta| meta.mode & 0o077 != 0)
    {
        let name = shown(world, path);
        let message = format!("the configuration {name} can be read by others");
        out.push(Problem::whole(message).hint(format!("chmod 600 {name}")));
    }
    match read_env_file(world, settings) {
        Ok((_, warnings)) => out.extend(warnings),
        Err(fault) => out.push(about("env.file", fault.to_string())),
    }
    let webhook = &settings.webhooks.gh_webhook;
    if webhook.enabled {
        let key = "webhooks.ghWebhook.secretFile";
        match webhook_secrets(world, settings) {
            Ok(secrets) => out.extend(secrets.warnings.into_iter().map(|w| about(key, w))),
            Err(fault) => out.push(about(key, format!("the receiver cannot start: {fault}"))),
        }
    }
    for (key, template) in [
        ("routing.promptTemplate", &settings.routing.prompt_template),
        (
            "routing.spawnPromptTemplate",
            &settings.routing.spawn_prompt_template,
        ),
    ] {
        if !template.is_empty() && target(world, Utf8Path::new(template)).is_none() {
            let name = shown(world, Utf8Path::new(template));
            let message = format!("there is no file {name}; the built-in text is used");
            out.push(about(key, message));
        }
    }
    out.extend(missing_harness(world, settings));
    out.extend(missing_tmux(world, settings));
    out
}

fn about(key: &str, message: String) -> Problem {
    let mut problem = Problem::whole(message);
    problem.key = Some(key.to_owned());
    problem
}

/// What is at a path, links followed.
fn target(world: &World, path: &Utf8Path) -> Option<Meta> {
    let real = world.disk.canonicalize(path).ok()?;
    world.disk.meta(&real).ok().flatten()
}

/// Is there a program of this name on a `PATH`, or at this absolute path?
fn is_program(world: &World, path: Option<&str>, program: &str) -> bool {
    let runs = |file: &Utf8Path| {
        target(world, file).is_some_and(|m| m.kind == Kind::File && m.mode & 0o111 != 0)
    };
    if program.starts_with('/') {
        return runs(Utf8Path::new(program));
    }
    path.unwrap_or_default()
        .split(':')
        .filter(|dir| dir.starts_with('/'))
        .any(|dir| runs(&Utf8Path::new(dir).join(program)))
}

/// The demo harness is this program itself; another one is looked up on `PATH`, unless its place is
/// declared.
fn missing_harness(world: &World, settings: &Settings) -> Option<Problem> {
    let name = settings.routing.default_harness.as_str();
    let declared = settings.routing.harnesses.get(name);
    let command = match declared.and_then(|harness| harness.command.as_deref()) {
        Some(command) => command,
        None if name == "demo" => return None,
        None if name == "cursor" => "cursor-agent",
        None => name,
    };
    let env = super::pane_environment(world, settings, &BTreeMap::new(), &[]);
    let path = env.get("PATH").map(String::as_str);
    let message = format!("the program of the default harness, {name}, is not on PATH");
    (!is_program(world, path, command)).then(|| about("routing.defaultHarness", message))
}

/// No agent can be hosted without it.
fn missing_tmux(world: &World, settings: &Settings) -> Option<Problem> {
    let program = settings.routing.tmux.binary.as_str();
    let message = if program.starts_with('/') {
        format!("tmux is not at {program}: no session can be started")
    } else {
        format!("{program} is not on PATH: no session can be started")
    };
    (!is_program(world, world.var("PATH"), program)).then(|| about("routing.tmux.binary", message))
}
