//! Pre-answers: keys set in a harness's own settings file, before it would ask (DI-35).
//!
//! The file is the user's and other programs write it too. So keys are only added, everything else
//! stays as it is, comments among it, a file that cannot be read as JSON or TOML is left alone, and a
//! file that changed between reading and writing is read again.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value};
use the_loop_core::config::TrustScope;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike};

use super::adapter::LaunchContext;
use crate::disk::{Disk, Kind};

/// Bytes of such a file; a longer one is left alone.
const SETTINGS_FILE_BYTES_MAX: u64 = 32 << 20;
/// How often a file that keeps changing is read again.
const TRIES: usize = 5;

/// Why a pre-answer was not given. The harness may show its dialog then; the spawn goes on.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It is not a JSON object or not TOML; it is left as it is.
    #[error("{path} cannot be read as settings: {why}")]
    Unparseable {
        /// Which file.
        path: Utf8PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: Utf8PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another program kept changing it.
    #[error("{0} keeps changing")]
    Busy(Utf8PathBuf),
}

/// A key that must be `true`, by its path from the top of the document.
pub type TruePath = Vec<String>;

/// Sets each key of a JSON object to `true` where it is not yet; answers which were set. A key whose
/// parent is something other than an object is left alone. Nothing to set: the file is not touched. A new
/// file is 0600; an existing one keeps its mode and, when it is a link, its place.
pub fn set_true(
    disk: &dyn Disk,
    path: &Utf8Path,
    keys: &[TruePath],
) -> Result<Vec<String>, TrustError> {
    in_json(disk, path, keys, set)
}

/// Gives each key of a JSON object this text, where there is nothing yet: another answer there is
/// somebody's. Answers which were set; the rest as for [`set_true`].
pub fn set_in_json(
    disk: &dyn Disk,
    path: &Utf8Path,
    keys: &[Vec<String>],
    text: &str,
) -> Result<Vec<String>, TrustError> {
    in_json(disk, path, keys, |document, key| {
        let Some((place, last)) = place_of(document, key) else {
            return false;
        };
        if place.contains_key(last) {
            return false;
        }
        place.insert(last.clone(), Value::String(text.to_owned()));
        true
    })
}

fn in_json(
    disk: &dyn Disk,
    path: &Utf8Path,
    keys: &[Vec<String>],
    set: impl Fn(&mut Map<String, Value>, &[String]) -> bool,
) -> Result<Vec<String>, TrustError> {
    merge(disk, path, |target, before| {
        let mut document = parse(target, before)?;
        let applied = keys.iter().filter(|key| set(&mut document, key));
        let applied = applied.map(|key| key.join(".")).collect();
        let mut bytes = serde_json::to_vec_pretty(&document).map_err(|e| TrustError::Io {
            path: target.to_owned(),
            source: e.into(),
        })?;
        bytes.push(b'\n');
        Ok((bytes, applied))
    })
}

/// Gives each key of a TOML file this text, where there is nothing yet: another answer there is
/// somebody's. Answers which were set; the rest as for [`set_true`].
pub fn set_in_toml(
    disk: &dyn Disk,
    path: &Utf8Path,
    keys: &[Vec<String>],
    text: &str,
) -> Result<Vec<String>, TrustError> {
    merge(disk, path, |target, before| {
        let unparseable = |why: String| TrustError::Unparseable {
            path: target.to_owned(),
            why,
        };
        let before = str::from_utf8(before.unwrap_or_default());
        let before = before.map_err(|e| unparseable(e.to_string()))?;
        // What a parser says of a file quotes from it, and keys are kept in such files.
        let document = before.parse::<DocumentMut>();
        let mut document = document.map_err(|e| unparseable(position_of(&e, before)))?;
        let added = keys.iter().filter(|key| add(&mut document, key, text));
        let applied = added.map(|key| key.join(".")).collect();
        Ok((document.to_string().into_bytes(), applied))
    })
}

/// The checkout, as written and as it resolves, and the workspace root unless it is `/` or the home.
pub fn folders(context: &LaunchContext<'_>) -> Vec<Utf8PathBuf> {
    let disk = &context.world.disk;
    let mut folders = vec![context.cwd.to_owned()];
    folders.extend(disk.canonicalize(context.cwd).ok());
    let root = match context.trust.scope {
        TrustScope::WorkspaceRoot => context.workspace_root,
        TrustScope::Directory => None,
    };
    if let Some(root) = root {
        let home = context.pane_env.get("HOME").map(Utf8Path::new);
        let real = |path: &Utf8Path| disk.canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let resolved = real(root);
        if resolved != "/" && home.map(real) != Some(resolved) {
            folders.push(root.to_owned());
        }
    }
    folders.dedup();
    folders
}

/// Has a settings file changed: the change answers the new bytes and which keys it set.
fn merge(
    disk: &dyn Disk,
    path: &Utf8Path,
    change: impl Fn(&Utf8Path, Option<&[u8]>) -> Result<(Vec<u8>, Vec<String>), TrustError>,
) -> Result<Vec<String>, TrustError> {
    let fault = |source| TrustError::Io {
        path: path.to_owned(),
        source,
    };
    let target = match disk.meta(path).map_err(fault)? {
        Some(meta) if meta.kind == Kind::Link => disk.canonicalize(path).map_err(fault)?,
        Some(_) | None => path.to_owned(),
    };
    for _ in 0..TRIES {
        let (before, mode) = read(disk, &target).map_err(fault)?;
        let (bytes, applied) = change(&target, before.as_deref())?;
        if applied.is_empty() {
            return Ok(applied);
        }
        if read(disk, &target).map_err(fault)?.0 != before {
            continue;
        }
        disk.write_atomic(&target, &bytes, true).map_err(fault)?;
        if let Some(mode) = mode.filter(|mode| *mode != 0o600) {
            disk.set_mode(&target, mode).map_err(fault)?;
        }
        return Ok(applied);
    }
    Err(TrustError::Busy(target))
}

fn read(disk: &dyn Disk, path: &Utf8Path) -> io::Result<(Option<Vec<u8>>, Option<u32>)> {
    match disk.meta(path)? {
        Some(meta) => Ok((
            Some(disk.read(path, SETTINGS_FILE_BYTES_MAX)?),
            Some(meta.mode),
        )),
        None => Ok((None, None)),
    }
}

fn parse(path: &Utf8Path, bytes: Option<&[u8]>) -> Result<Map<String, Value>, TrustError> {
    match bytes {
        None => Ok(Map::new()),
        Some(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Ok(Map::new()),
        Some(bytes) => serde_json::from_slice(bytes).map_err(|e| TrustError::Unparseable {
            path: path.to_owned(),
            why: e.to_string(),
        }),
    }
}

/// Sets one key; `false` when it is set already or cannot be.
fn set(document: &mut Map<String, Value>, key: &[String]) -> bool {
    let Some((place, last)) = place_of(document, key) else {
        return false;
    };
    if place.get(last) == Some(&Value::Bool(true)) {
        return false;
    }
    place.insert(last.clone(), Value::Bool(true));
    true
}

/// The object that a key is in, made where it is missing, and the key's last name; `None` when a parent
/// is something other than an object.
fn place_of<'d, 'k>(
    document: &'d mut Map<String, Value>,
    key: &'k [String],
) -> Option<(&'d mut Map<String, Value>, &'k String)> {
    let (last, parents) = key.split_last()?;
    let mut place = document;
    for name in parents {
        let child = place
            .entry(name.clone())
            .or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(child) = child else {
            return None;
        };
        place = child;
    }
    Some((place, last))
}

/// Gives one key of a TOML document a text; `false` when something is there or cannot be.
fn add(document: &mut DocumentMut, key: &[String], text: &str) -> bool {
    let Some((last, parents)) = key.split_last() else {
        return false;
    };
    let mut place: &mut dyn TableLike = document.as_table_mut();
    let mut inline = false;
    for name in parents {
        let child = place.entry(name).or_insert_with(|| {
            if inline {
                return Item::Value(InlineTable::new().into());
            }
            // A table of tables alone needs no line of its own.
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        inline = child.is_inline_table();
        let Some(child) = child.as_table_like_mut() else {
            return false;
        };
        place = child;
    }
    if place.contains_key(last) {
        return false;
    }
    place.insert(last, toml_edit::value(text));
    true
}

/// Where a file stops being TOML, in words that quote nothing of it.
fn position_of(error: &toml_edit::TomlError, text: &str) -> String {
    let line = error.span().and_then(|span| text.get(..span.start));
    line.map_or_else(
        || "it is not TOML".to_owned(),
        |before| {
            format!(
                "it is not TOML from line {} on",
                before.lines().count().max(1)
            )
        },
    )
}

#[cfg(test)]
mod tests;
