//! Writing and checking a bundle, beside the repository whose work it holds.

use std::collections::BTreeMap;
use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use super::save::{Saving, Snapshot};
use super::survey::{Facts, Survey};
use crate::process::Call;

/// Bytes of a bundle's header that are read: its refs and what it requires.
const HEADER_BYTES_MAX: u64 = 16 << 20;
/// Commits on a remote that a bundle is told to leave out; further ones only make it larger.
const EXCLUDED_MAX: usize = 5000;

impl Saving<'_> {
    /// An empty repository beside the checkout's, that sees its objects.
    fn repository(&self, name: &str, facts: &Facts) -> Result<Utf8PathBuf, String> {
        let dir = self.scratch.join(name);
        let format = format!("--object-format={}", facts.format);
        let mut args = vec!["init", "--quiet", "--bare", "--template="];
        if facts.format != "sha1" {
            args.push(&format);
        }
        args.push(dir.as_str());
        self.text(self.git.call(&self.scratch, args))?;
        let disk = &self.git.world.disk;
        match disk.read(&facts.common.join("shallow"), HEADER_BYTES_MAX) {
            Ok(bytes) => disk
                .create_new(&dir.join("shallow"), &bytes, 0o600)
                .map_err(|e| format!("{dir}: {e}"))?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(format!("{}/shallow: {e}", facts.common)),
        }
        Ok(dir)
    }

    fn in_repository<'a>(
        &self,
        dir: &Utf8Path,
        objects: String,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Call {
        self.git
            .slow_call(dir, args)
            .env("GIT_DIR", dir.as_str())
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", objects)
    }

    fn make_refs<'a>(
        &self,
        dir: &Utf8Path,
        objects: &str,
        refs: impl Iterator<Item = (String, &'a String)>,
    ) -> Result<(), String> {
        let mut update = String::new();
        for (name, commit) in refs {
            update.push_str(&format!("create {name} {commit}\n"));
        }
        let call = self.in_repository(dir, objects.to_owned(), ["update-ref", "--stdin"]);
        self.text(call.stdin(update)).map(drop)
    }

    pub(super) fn write_bundle(
        &self,
        file: &Utf8Path,
        survey: &Survey,
        snapshot: &Snapshot,
    ) -> Result<(), String> {
        let dir = self.repository("bundle.git", &survey.facts)?;
        let objects = format!(
            "{}:{}",
            quoted(&self.scratch.join("objects")),
            quoted(&self.objects)
        );
        let refs = snapshot.refs.iter();
        self.make_refs(&dir, &objects, refs.map(|(name, id)| (name.clone(), id)))?;
        let excluded = self.excluded(survey)?;
        let mut args = vec!["bundle", "create", "--quiet", file.as_str()];
        args.extend(snapshot.refs.keys().map(String::as_str));
        args.extend(excluded.iter().map(String::as_str));
        self.text(self.in_repository(&dir, objects, args)).map(drop)
    }

    /// Commits on a remote, as `^id`, that the bundle builds on instead of holding them. The commit
    /// that is checked out is never among what these reach, so that its ref is always in the bundle.
    fn excluded(&self, survey: &Survey) -> Result<Vec<String>, String> {
        let pushed = survey
            .facts
            .head
            .as_ref()
            .filter(|head| !survey.commits.contains(head));
        let mut excluded = Vec::new();
        for commit in survey.boundary.iter().take(EXCLUDED_MAX) {
            let reaches = match pushed {
                Some(head) => {
                    let args = ["merge-base", "--is-ancestor", head, commit];
                    let answer = self.git.ask_whether(self.call(args));
                    answer.map_err(|e| e.to_string())?.is_some()
                }
                None => false,
            };
            if !reaches {
                excluded.push(format!("^{commit}"));
            }
        }
        if let Some(head) = pushed {
            let parents = self.text(self.call(["rev-parse", &format!("{head}^@")]))?;
            excluded.extend(parents.lines().map(|parent| format!("^{parent}")));
        }
        Ok(excluded)
    }

    /// Unpacks the bundle into an empty repository that sees nothing but what the checkout's had
    /// before, and follows every object of it. Answers with the commits that it requires.
    pub(super) fn verify(
        &self,
        file: &Utf8Path,
        facts: &Facts,
        snapshot: &Snapshot,
    ) -> Result<Vec<String>, String> {
        let header = self
            .git
            .world
            .disk
            .read_from(file, 0, HEADER_BYTES_MAX)
            .map_err(|e| format!("{file}: {e}"))?;
        let requires = parse_requires(&header);
        let dir = self.repository("check.git", facts)?;
        let objects = quoted(&self.objects);
        let run = |args: Vec<&str>| self.in_repository(&dir, objects.clone(), args);
        let required = requires.iter().enumerate();
        let required = required.map(|(n, id)| (format!("refs/required/{n}"), id));
        self.make_refs(&dir, &objects, required)?;
        self.text(run(vec!["bundle", "verify", "--quiet", file.as_str()]))?;
        let heads = self.text(run(vec!["bundle", "unbundle", file.as_str()]))?;
        if parse_heads(&heads) != snapshot.refs {
            return Err(format!("{file} does not hold all it should"));
        }
        let mut args = vec!["rev-list", "--objects", "--quiet"];
        args.extend(snapshot.refs.values().map(String::as_str));
        args.push("--not");
        args.extend(requires.iter().map(String::as_str));
        self.text(run(args))?;
        Ok(requires)
    }
}

/// A path in a list of object directories: quoted, so that a `:` in it separates nothing.
pub(super) fn quoted(path: &Utf8Path) -> String {
    let escaped = path.as_str().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

/// `<commit> <ref>` lines.
pub(super) fn parse_heads(said: &str) -> BTreeMap<String, String> {
    said.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(commit, name)| (name.to_owned(), commit.to_owned()))
        .collect()
}

/// The commits that a bundle says it builds on.
fn parse_requires(header: &[u8]) -> Vec<String> {
    header
        .split(|b| *b == b'\n')
        .take_while(|line| !line.is_empty())
        .filter_map(|line| std::str::from_utf8(line).ok()?.strip_prefix('-'))
        .filter_map(|line| line.split(' ').next())
        .map(ToOwned::to_owned)
        .collect()
}
