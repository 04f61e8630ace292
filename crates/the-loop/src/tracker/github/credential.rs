//! The token for a host: from a file, a variable, or GitHub's own program (CF-16). No value leaves its
//! [`SecretString`].

use std::time::Duration;

use camino::Utf8Path;
use secrecy::SecretString;
use the_loop_core::config::Settings;
use the_loop_core::ids::DEFAULT_HOST;

use crate::disk::Meta;
use crate::process::Call;
use crate::world::World;

/// Bytes of a token file.
const TOKEN_FILE_BYTES_MAX: u64 = 64 << 10;
/// Characters of a token.
const TOKEN_CHARS_MAX: usize = 1_000;
/// How long GitHub's own program may take.
const PROGRAM_WITHIN: Duration = Duration::from_secs(10);

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// Nothing that could have one is there.
    #[error("no credential: set {0}, or integrations.github.tokenFile, or log in with gh")]
    NotSet(String),
    /// A GitHub App is configured and got none.
    #[error("the GitHub App: {0}")]
    App(String),
    /// The configured file has none that can be used.
    #[error("tokenFile {path}: {why}")]
    File {
        /// As configured.
        path: String,
        /// The cause.
        why: String,
    },
}

/// The token of a configured host. A file that is configured and cannot be used is an error, and no other
/// source is taken in its place.
pub fn token(world: &World, settings: &Settings, host: &str) -> Result<SecretString, NoToken> {
    let github = &settings.integrations.github;
    let (file, names) = sources(settings, host);
    if !file.is_empty() {
        return from_file(world, file);
    }
    if let Some(value) = names.iter().find_map(|name| world.var(name)) {
        return sound(value).ok_or_else(|| NoToken::NotSet(names.join(" or ")));
    }
    from_program(world, &github.cli.binary, host).ok_or_else(|| NoToken::NotSet(names.join(" or ")))
}

/// Is there any source that might have a token? Asks nobody.
pub fn is_possible(world: &World, settings: &Settings, host: &str) -> bool {
    let github = &settings.integrations.github;
    let (file, names) = sources(settings, host);
    let is_set = names.iter().any(|name| world.var(name).is_some());
    let has_app = github.app_of(host).is_some();
    has_app || !file.is_empty() || is_set || !github.cli.binary.is_empty()
}

/// Is the token asked of GitHub's own program, which takes a while?
pub fn is_from_program(world: &World, settings: &Settings, host: &str) -> bool {
    let (file, names) = sources(settings, host);
    file.is_empty() && !names.iter().any(|name| world.var(name).is_some())
}

/// The file and the variables of a host.
fn sources<'a>(settings: &'a Settings, host: &str) -> (&'a str, &'a [String]) {
    let github = &settings.integrations.github;
    let is_default = host.eq_ignore_ascii_case(DEFAULT_HOST);
    match github.host(host).filter(|_| !is_default) {
        Some(entry) => (&entry.token_file, &entry.token_env),
        None => (&github.token_file, &github.token_env),
    }
}

fn from_file(world: &World, file: &str) -> Result<SecretString, NoToken> {
    let fault = |why: String| NoToken::File {
        path: file.to_owned(),
        why,
    };
    let bytes = own_file(world, Utf8Path::new(file), TOKEN_FILE_BYTES_MAX).map_err(fault)?;
    let text = String::from_utf8(bytes).map_err(|_| fault("it is not text".to_owned()))?;
    let first = text.lines().next().unwrap_or_default();
    sound(first).ok_or_else(|| fault("its first line is no token".to_owned()))
}

/// Reads a file that is ours or root's; why it cannot be used.
pub(super) fn own_file(world: &World, path: &Utf8Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let read = world.disk.canonicalize(path).and_then(|real| {
        let meta = world.disk.meta(&real)?;
        Ok((world.disk.read(&real, bytes_max)?, meta))
    });
    let (bytes, meta) = read.map_err(|e| format!("cannot read it ({})", e.kind()))?;
    if meta.is_some_and(|meta| is_foreign(&meta)) {
        return Err("it belongs to another user".to_owned());
    }
    Ok(bytes)
}

/// Root's files are as good as our own: root can change any.
fn is_foreign(meta: &Meta) -> bool {
    meta.uid != rustix::process::geteuid().as_raw() && meta.uid != 0
}

fn from_program(world: &World, binary: &str, host: &str) -> Option<SecretString> {
    if binary.is_empty() {
        return None;
    }
    let call = Call::new(binary, ["auth", "token", "--hostname", host]).timeout(PROGRAM_WITHIN);
    let answer = world.processes.run(&call);
    answer.ok().then(|| sound(&answer.out())).flatten()
}

/// A token as it can stand in a header.
pub(super) fn sound(text: &str) -> Option<SecretString> {
    let text = text.trim();
    let is_sound =
        (1..=TOKEN_CHARS_MAX).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    is_sound.then(|| SecretString::from(text))
}

#[cfg(test)]
mod tests;
