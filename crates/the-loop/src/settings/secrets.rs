//! The receiver's secrets (IN-5, CF-36, CF-45). No value leaves its [`SecretString`].

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use camino::Utf8Path;
use secrecy::{ExposeSecret, SecretString};
use the_loop_core::config::Settings;
use the_loop_core::time::Timestamp;

use super::fault::words;
use super::find::shown;
use crate::disk::Meta;
use crate::world::World;

/// Bytes of a secret file.
const SECRET_FILE_BYTES_MAX: u64 = 64 << 10;
/// A secret with fewer characters is warned of.
const SECRET_CHARS_GOOD: usize = 16;
/// A file that turned unusable is warned of once in this time.
const WARN_EVERY: Duration = Duration::from_mins(1);

/// Secrets that are accepted, the current one first; one or two.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// The values.
    pub values: Vec<SecretString>,
    /// What is worth a warning: short ones, a file that others can read.
    pub warnings: Vec<String>,
}

/// Why there is no secret. The receiver is then `misconfigured`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    /// Neither a file is configured nor the variable set.
    #[error("no secret: set {0}, or webhooks.ghWebhook.secretFile")]
    NotSet(String),
    /// The file has nothing in it.
    #[error("secretFile is empty")]
    EmptyFile,
    /// One of two lines has nothing in it.
    #[error("line {0} of secretFile is empty")]
    EmptyLine(usize),
    /// More than two lines.
    #[error("secretFile has more than two lines")]
    TooMany,
    /// Not text, too large, not there, not readable.
    #[error("cannot read secretFile {path}: {why}")]
    Unreadable {
        /// As shown.
        path: String,
        /// The cause.
        why: String,
    },
    /// Somebody else could change it.
    #[error("secretFile {0} belongs to another user")]
    ForeignOwner(String),
}

/// Reads the secrets from `secretFile`, else from `secretEnv` and its `_PREVIOUS`.
pub fn webhook_secrets(world: &World, settings: &Settings) -> Result<Secrets, SecretFault> {
    let webhook = &settings.webhooks.gh_webhook;
    let mut secrets = if webhook.secret_file.is_empty() {
        from_environment(world, &webhook.secret_env)?
    } else {
        from_file(world, Utf8Path::new(&webhook.secret_file))?
    };
    let short = |secret: &&SecretString| secret.expose_secret().chars().count() < SECRET_CHARS_GOOD;
    if secrets.values.iter().any(|secret| short(&secret)) {
        let warning = "a webhook secret is shorter than 16 characters";
        secrets.warnings.push(warning.to_owned());
    }
    Ok(secrets)
}

fn from_environment(world: &World, name: &str) -> Result<Secrets, SecretFault> {
    let current = world
        .var(name)
        .ok_or_else(|| SecretFault::NotSet(name.to_owned()))?;
    let previous = world.var(&format!("{name}_PREVIOUS")).map(str::to_owned);
    let values = std::iter::once(current.to_owned()).chain(previous);
    Ok(Secrets {
        values: values.map(SecretString::from).collect(),
        warnings: Vec::new(),
    })
}

fn from_file(world: &World, path: &Utf8Path) -> Result<Secrets, SecretFault> {
    let name = shown(world, path);
    let unreadable = |why: String| SecretFault::Unreadable {
        path: name.clone(),
        why,
    };
    let read = world.disk.canonicalize(path).and_then(|real| {
        let meta = world.disk.meta(&real)?;
        Ok((world.disk.read(&real, SECRET_FILE_BYTES_MAX)?, meta))
    });
    let (bytes, meta) = read.map_err(|e| unreadable(words(&e)))?;
    if meta.as_ref().is_some_and(is_foreign) {
        return Err(SecretFault::ForeignOwner(name));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not text".to_owned()))?;
    let lines: Vec<&str> = text.lines().collect();
    if lines.iter().all(|line| line.is_empty()) {
        return Err(SecretFault::EmptyFile);
    }
    if lines.len() > 2 {
        return Err(SecretFault::TooMany);
    }
    if let Some(at) = lines.iter().position(|line| line.is_empty()) {
        return Err(SecretFault::EmptyLine(at + 1));
    }
    let open = meta.is_some_and(|meta| meta.mode & 0o077 != 0);
    Ok(Secrets {
        values: lines.into_iter().map(SecretString::from).collect(),
        warnings: open
            .then(|| format!("secretFile {name} can be read by others"))
            .into_iter()
            .collect(),
    })
}

/// Root's files are as good as our own: root can change any.
fn is_foreign(meta: &Meta) -> bool {
    meta.uid != rustix::process::geteuid().as_raw() && meta.uid != 0
}

/// The secrets in use by a running receiver: read again when the file or its key changes, and kept when it turns
/// unusable (CF-36).
#[derive(Debug, Default)]
pub struct SecretsHolder {
    state: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    source: Option<Source>,
    secrets: Option<Secrets>,
    warned_at: Option<Timestamp>,
    fault: Option<SecretFault>,
}

/// What tells whether the secrets may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    file: String,
    variable: String,
    meta: Option<Meta>,
}

impl SecretsHolder {
    /// The secrets to verify with now, and a warning that is due.
    ///
    /// # Errors
    /// When no secret was ever good.
    pub fn current(
        &self,
        world: &World,
        settings: &Settings,
    ) -> Result<(Secrets, Option<String>), SecretFault> {
        let mut held = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let source = source(world, settings);
        if held.source.as_ref() != Some(&source) {
            match webhook_secrets(world, settings) {
                Ok(secrets) => {
                    held.secrets = Some(secrets);
                    held.fault = None;
                    held.warned_at = None;
                }
                Err(fault) => held.fault = Some(fault),
            }
            held.source = Some(source);
        }
        let now = world.clock.now();
        let mut due = None;
        if let Some(fault) = held.fault.clone() {
            if held.warned_at.is_none_or(|at| now.since(at) >= WARN_EVERY) {
                due = Some(format!("{fault}; still using the secret read before"));
                held.warned_at = Some(now);
            }
            // A file whose permissions are mended shows neither another size nor another time.
            held.source = None;
        }
        match (&held.secrets, &held.fault) {
            (Some(secrets), _) => Ok((secrets.clone(), due)),
            (None, Some(fault)) => Err(fault.clone()),
            (None, None) => {
                let name = settings.webhooks.gh_webhook.secret_env.clone();
                Err(SecretFault::NotSet(name))
            }
        }
    }
}

fn source(world: &World, settings: &Settings) -> Source {
    let webhook = &settings.webhooks.gh_webhook;
    let meta = |path: &str| {
        let real = world.disk.canonicalize(Utf8Path::new(path)).ok()?;
        world.disk.meta(&real).ok().flatten()
    };
    Source {
        file: webhook.secret_file.clone(),
        variable: webhook.secret_env.clone(),
        meta: if webhook.secret_file.is_empty() {
            None
        } else {
            meta(&webhook.secret_file)
        },
    }
}
