//! The env file and the environment of panes (CF-31 to CF-33).

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use the_loop_core::config::Settings;
use the_loop_core::config::envfile::{ENV_FILE_BYTES_MAX, EnvFile, NotAnEnvFile, parse};
use the_loop_core::config::problem::Problem;
use the_loop_core::environment::Declared;

use super::fault::words;
use super::find::{CONFIG_VARIABLE, shown};
use super::load::ROOT_VARIABLE;
use crate::world::World;

/// Names that describe the terminal. tmux sets them in the pane, and whoever starts the program there
/// keeps them from the pane; the daemon's own would be those of another terminal.
pub const NAMES_OF_THE_PANE: [&str; 3] = ["TERM", "TMUX", "TMUX_PANE"];
/// Names that a pane gets from the daemon's environment (CF-33), besides `env.pass`.
const ALLOWED: [&str; 11] = [
    "PATH",
    "HOME",
    "SHELL",
    "LANG",
    "LC_*",
    "COLORTERM",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "SSH_AUTH_SOCK",
    "XDG_*",
];

/// Why nothing was taken from an env file. The path and cause are shown, never the text (CF-32).
#[derive(Debug, thiserror::Error)]
pub enum EnvFault {
    /// It is not there, not a regular file, or cannot be read.
    #[error("cannot read the env file {path}: {why}")]
    Unreadable {
        /// As shown.
        path: String,
        /// The cause.
        why: String,
    },
    /// It is not text, or too large.
    #[error("cannot use the env file {path}: {why}")]
    Refused {
        /// As shown.
        path: String,
        /// The cause.
        why: NotAnEnvFile,
    },
}

/// A fresh parse of `env.file`, and what is worth a warning. Without one: nothing.
pub fn read_env_file(
    world: &World,
    settings: &Settings,
) -> Result<(EnvFile, Vec<Problem>), EnvFault> {
    if settings.env.file.is_empty() {
        return Ok((EnvFile::default(), Vec::new()));
    }
    let path = Utf8Path::new(&settings.env.file);
    let shown = shown(world, path);
    let real = world.disk.canonicalize(path);
    let read = real.and_then(|real| {
        let bytes = world.disk.read(&real, ENV_FILE_BYTES_MAX)?;
        Ok((bytes, world.disk.meta(&real)?))
    });
    let (bytes, meta) = read.map_err(|e| match e.kind() {
        std::io::ErrorKind::FileTooLarge => EnvFault::Refused {
            path: shown.clone(),
            why: NotAnEnvFile::TooLarge,
        },
        _ => EnvFault::Unreadable {
            path: shown.clone(),
            why: words(&e),
        },
    })?;
    let file = parse(&bytes).map_err(|why| EnvFault::Refused {
        path: shown.clone(),
        why,
    })?;
    let mut warnings = Vec::new();
    if meta.is_some_and(|meta| meta.mode & 0o077 != 0) {
        let message = format!("the env file {shown} can be read by others");
        warnings.push(Problem::whole(message).hint(format!("chmod 600 {shown}")));
    }
    if !file.bad_lines.is_empty() {
        let numbers: Vec<String> = file
            .bad_lines
            .iter()
            .take(20)
            .map(usize::to_string)
            .collect();
        let more = file.bad_lines.len().saturating_sub(numbers.len());
        let more = if more == 0 {
            String::new()
        } else {
            format!(" and {more} more")
        };
        let message = format!(
            "the env file {shown}: skipped what is not NAME=VALUE: line {}{more}",
            numbers.join(", ")
        );
        warnings.push(Problem::whole(message));
    }
    for warning in &mut warnings {
        warning.key = Some("env.file".to_owned());
    }
    Ok((file, warnings))
}

/// The names that only the-loop itself sets in a pane, last (CF-33).
pub fn own_names() -> [&'static str; 4] {
    [
        "THE_LOOP_INSTANCE",
        "THE_LOOP_WORK_ITEM",
        CONFIG_VARIABLE,
        ROOT_VARIABLE,
    ]
}

/// The world with the env file's names where its environment has none (CF-33, first row).
pub(super) fn fill(world: &World, settings: &Settings) -> (World, Vec<Problem>) {
    let (file, warnings) = match read_env_file(world, settings) {
        Ok(read) => read,
        Err(fault) => {
            let mut problem = Problem::whole(fault.to_string());
            problem.key = Some("env.file".to_owned());
            return (world.clone(), vec![problem]);
        }
    };
    let mut env = (*world.env).clone();
    for (name, value) in file.vars {
        env.entry(name).or_insert(value);
    }
    let mut filled = world.clone();
    filled.env = Arc::new(env);
    (filled, warnings)
}

/// The environment that a pane's program is given: what is allowed of ours, `env.pass`, what its harness
/// declares, the env file parsed afresh, and `own` last; never a variable that holds one of our own secrets (CF-33). An env
/// file that cannot be read adds nothing; [`read_env_file`] says why.
pub fn pane_environment(
    world: &World,
    settings: &Settings,
    harness: &BTreeMap<String, String>,
    own: &[(&str, String)],
) -> BTreeMap<String, String> {
    let pass = &settings.env.pass;
    let allowed = |name: &str| {
        let patterns = ALLOWED
            .iter()
            .copied()
            .chain(pass.iter().map(String::as_str));
        let mut patterns = patterns.filter(|_| !own_names().contains(&name));
        patterns.any(|pattern| matches(pattern, name))
    };
    let mut out: BTreeMap<String, String> = world
        .env
        .iter()
        .filter(|(name, _)| allowed(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    out.extend(harness.clone());
    if let Ok((file, _)) = read_env_file(world, settings) {
        out.extend(file.vars);
    }
    out.retain(|name, _| !is_withheld(settings, name));
    out.extend(
        own.iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone())),
    );
    out
}

/// Is this a name that a pane never takes from an env file: one of our own secrets, or one that we set?
fn is_withheld(settings: &Settings, name: &str) -> bool {
    let secret = &settings.webhooks.gh_webhook.secret_env;
    name == secret || name.strip_suffix("_PREVIOUS") == Some(secret) || own_names().contains(&name)
}

/// What `env.file` declares for panes at this moment: a fresh parse, never this process's own environment
/// (SE-56). `None` when no file is configured. A name that describes the terminal is the pane's own,
/// whatever the file says, and no declaration.
pub fn declared_environment(
    world: &World,
    settings: &Settings,
) -> Result<Option<Declared>, EnvFault> {
    if settings.env.file.is_empty() {
        return Ok(None);
    }
    let (file, _) = read_env_file(world, settings)?;
    let withheld = |name: &str| is_withheld(settings, name) || NAMES_OF_THE_PANE.contains(&name);
    Ok(Some(Declared::of(&file, withheld)))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}
