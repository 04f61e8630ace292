//! `config path`, `check`, `show` and `schema` (SE-78 to SE-80, SE-83, CF-42), as data and as text.

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value as Json, json};
use the_loop_core::config::Settings;
use the_loop_core::config::key::join;
use the_loop_core::config::problem::{Problem, key_part};
use the_loop_core::config::version;

use crate::settings::{self, Candidate, Loaded, Origins, Overrides};
use crate::world::World;

pub use the_loop_core::config::schema::{json_schema, json_schema_text};

mod render;

/// Which file is in use, and why.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// The file; none for built-in defaults.
    pub path: Option<Utf8PathBuf>,
    /// Every place, in order.
    pub candidates: Vec<Candidate>,
    /// A file that was passed over.
    pub warnings: Vec<Problem>,
}

/// `config path`: never fails, whatever the file holds.
pub fn path(world: &World, flag: Option<&str>) -> PathReport {
    let search = settings::find(world, flag);
    PathReport {
        path: search.found.map(|found| found.path),
        candidates: search.candidates,
        warnings: search.warnings,
    }
}

impl PathReport {
    /// What stands for a path when there is none; on stderr.
    pub const NONE: &str = "(none: built-in defaults)";

    /// One line a place: `> --config  PATH: taken`.
    pub fn all_lines(&self) -> Vec<String> {
        let line = |candidate: &Candidate| {
            let mark = if candidate.taken { '>' } else { ' ' };
            let place = candidate.place.words();
            match &candidate.path {
                Some(path) => format!("{mark} {place}: {path}: {}", candidate.why),
                None => format!("{mark} {place}: {}", candidate.why),
            }
        };
        self.candidates.iter().map(line).collect()
    }

    /// `{path, candidates: [{place, path, taken, why}]}`.
    pub fn json(&self) -> Json {
        let candidate = |candidate: &Candidate| {
            json!({
                "place": candidate.place.words(),
                "path": candidate.path,
                "taken": candidate.taken,
                "why": candidate.why,
            })
        };
        let candidates: Vec<Json> = self.candidates.iter().map(candidate).collect();
        json!({ "path": self.path, "candidates": candidates })
    }
}

/// What a check of the file came to.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// The file; none for built-in defaults.
    pub path: Option<Utf8PathBuf>,
    /// Its version; the current one when it names none.
    pub version: String,
    /// All that is wrong.
    pub problems: Vec<Problem>,
    /// All that deserves a look.
    pub warnings: Vec<Problem>,
}

/// `config check [FILE]`: contacts nobody, starts nothing but git for CF-2.
pub fn check(world: &World, flag: Option<&str>, file: Option<&str>) -> CheckReport {
    let loaded = match file {
        Some(file) => settings::check_file(world, file),
        None => settings::load(world, flag, &Overrides::default()),
    };
    let named = |settings: &Settings| {
        let version = settings.version.as_deref();
        version.unwrap_or(version::CURRENT).to_owned()
    };
    match loaded {
        Ok(loaded) => {
            let mut warnings = loaded.notices;
            warnings.extend(loaded.warnings);
            let path = loaded.path.as_deref();
            let settings = &loaded.settings;
            warnings.extend(settings::warnings_of_machine(world, settings, path));
            CheckReport {
                version: named(settings),
                path: loaded.path,
                problems: Vec::new(),
                warnings,
            }
        }
        Err(fault) => CheckReport {
            version: named(&fault.readable),
            path: fault.path,
            problems: fault.problems,
            warnings: fault.warnings,
        },
    }
}

impl CheckReport {
    /// Whether the file can be used.
    pub fn ok(&self) -> bool {
        self.problems.is_empty()
    }

    /// 0, or 2 when it cannot be used (SE-79).
    pub fn exit_code(&self) -> u8 {
        if self.ok() { 0 } else { 2 }
    }

    /// Every problem as in CF-12, or `ok: FILE (version 1.0.0)`; for stdout.
    pub fn lines(&self, home: Option<&Utf8Path>) -> Vec<String> {
        let shown = self.shown_path(home);
        if self.ok() {
            return vec![format!("ok: {shown} (version {})", self.version)];
        }
        self.problems.iter().map(|p| p.line(&shown)).collect()
    }

    /// Every warning, without `warning: ` in front; for stderr.
    pub fn warning_lines(&self, home: Option<&Utf8Path>) -> Vec<String> {
        let shown = self.shown_path(home);
        self.warnings.iter().map(|p| p.line(&shown)).collect()
    }

    fn shown_path(&self, home: Option<&Utf8Path>) -> String {
        self.path.as_deref().map_or_else(
            || "built-in defaults".to_owned(),
            |path| settings::tilde(path, home),
        )
    }

    /// `{path, version, ok, problems, warnings}` (CF-42).
    pub fn json(&self) -> Json {
        let list = |problems: &[Problem]| -> Vec<Json> {
            let one = |problem: &Problem| {
                json!({
                    "line": problem.pos.map(|pos| pos.line),
                    "column": problem.pos.map(|pos| pos.column),
                    "key": problem.key,
                    "message": problem.message,
                    "hint": problem.hint,
                })
            };
            problems.iter().map(one).collect()
        };
        json!({
            "path": self.path,
            "version": self.version,
            "ok": self.ok(),
            "problems": list(&self.problems),
            "warnings": list(&self.warnings),
        })
    }
}

/// No key is called so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown key `{key}`")]
pub struct UnknownKey {
    /// As it was asked for.
    pub key: String,
    /// What may have been meant.
    pub hint: Option<String>,
}

/// Effective values, all or of one key.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Path of the key, by its parts; empty for all.
    parts: Vec<String>,
    value: Json,
    origins: Origins,
}

/// `config show [KEY]`. No key of this release holds a secret, so nothing is left out (CF-45).
///
/// # Errors
/// When there is no such key (exit code 1).
pub fn show(loaded: &Loaded, key: Option<&str>) -> Result<Shown, UnknownKey> {
    let mut settings = (*loaded.settings).clone();
    let current = || version::CURRENT.to_owned();
    settings.version = Some(settings.version.take().unwrap_or_else(current));
    let mut value = serde_json::to_value(&settings).unwrap_or(Json::Null);
    let parts = match key {
        Some(key) => key_parts(key).ok_or_else(|| unknown(key))?,
        None => Vec::new(),
    };
    for part in &parts {
        value = value
            .get_mut(part)
            .map(Json::take)
            .ok_or_else(|| unknown(key.unwrap_or_default()))?;
    }
    Ok(Shown {
        parts,
        value,
        origins: loaded.origins.clone(),
    })
}

fn unknown(key: &str) -> UnknownKey {
    let rows = Settings::rows();
    let near = the_loop_core::config::nearest(key, rows.iter().map(|row| row.path.as_str()));
    UnknownKey {
        key: the_loop_core::config::problem::echo(key),
        hint: near.map(|near| format!("did you mean `{near}`?")),
    }
}

/// `a.b."c.d"` by its parts (CF-40); `None` when a quote is not closed or a part is empty.
fn key_parts(key: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = key;
    loop {
        let (part, after) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted.split_once('"')?
        } else {
            let end = rest.find('.').unwrap_or(rest.len());
            rest.split_at(end)
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part.to_owned());
        if after.is_empty() {
            return Some(parts);
        }
        rest = after.strip_prefix('.')?;
    }
}

impl Shown {
    /// As YAML that loads again, with a line break at the end; with `origin`, where each value comes
    /// from as a comment.
    pub fn yaml(&self, origin: bool) -> String {
        render::yaml(&self.value, &self.path(), &|path| {
            origin.then(|| self.origin_of(path))
        })
    }

    /// As JSON; with `origin`, each value as `{value, origin}`.
    pub fn json(&self, origin: bool) -> Json {
        if origin {
            self.with_origins(&self.value, &self.path())
        } else {
            self.value.clone()
        }
    }

    fn path(&self) -> String {
        let parts = self.parts.iter();
        parts.fold(String::new(), |path, part| join(&path, &key_part(part)))
    }

    /// A value below a mapping with free names comes from where the mapping does.
    fn origin_of(&self, path: &str) -> String {
        let rows = Settings::rows();
        let owner = rows.iter().find(|row| {
            let below = path.strip_prefix(&row.path);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        let path = owner.map_or(path, |row| row.path.as_str());
        self.origins.of(path).to_string()
    }

    fn with_origins(&self, value: &Json, path: &str) -> Json {
        match value {
            Json::Object(members) if !is_key(path) => {
                let inner = members.iter().map(|(name, value)| {
                    let path = join(path, &key_part(name));
                    (name.clone(), self.with_origins(value, &path))
                });
                Json::Object(inner.collect::<Map<_, _>>())
            }
            _ => json!({ "value": value, "origin": self.origin_of(path) }),
        }
    }
}

/// Is this the path of a key, or of something below a key with free names, not of a section?
fn is_key(path: &str) -> bool {
    Settings::rows().iter().any(|row| {
        let below = path.strip_prefix(&row.path);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

#[cfg(test)]
mod tests;
