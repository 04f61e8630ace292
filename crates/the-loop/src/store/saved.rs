//! Saved work: bundles and their manifests in `local/saved/` (ST-62 to ST-64).

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use the_loop_core::ids::{Slug, WorkItemRef};
use the_loop_core::limits::RECORD_BYTES_MAX;
use the_loop_core::time::Timestamp;
use the_loop_core::workspace::SavedWhy;

use crate::disk::{Kind, SharedDisk};
use crate::world::World;

#[cfg(test)]
mod tests;

/// What a bundle holds and where it came from; enough to restore it on another machine (ST-64).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedManifest {
    /// The work item.
    #[serde(rename = "ref")]
    pub item: WorkItemRef,
    /// Its slug.
    pub slug: String,
    /// When it was saved.
    pub saved_at: Timestamp,
    /// On which occasion.
    #[serde(with = "why_word")]
    pub why: SavedWhy,
    /// Where the repository was cloned from, without a user part; null when it has no origin.
    pub repository: Option<String>,
    /// The directory that was removed.
    pub checkout: String,
    /// The branch that was checked out; null when detached.
    pub branch: Option<String>,
    /// The commit that was checked out; null in a repository without any.
    pub head: Option<String>,
    /// File name of the bundle, beside the manifest.
    pub bundle: String,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256 in hex.
    pub sha256: String,
    /// The refs in it.
    pub refs: SavedRefs,
    /// Commits that it builds on, all of them on a remote.
    pub requires: Vec<String>,
    /// Commits that were on no remote.
    pub commits: u64,
    /// Files that were in no commit.
    pub files: SavedFiles,
}

/// Names of the refs in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRefs {
    /// The commit that was checked out; null in a repository without any.
    pub head: Option<String>,
    /// A commit of what was staged.
    pub index: String,
    /// A commit of the files as they were, untracked ones included.
    pub worktree: String,
    /// Whatever else would have been lost: branches and stashes of a clone, what an unfinished
    /// merge or rebase builds on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
}

/// How many files were in no commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFiles {
    /// Tracked files with changes, staged or not.
    pub changed: u64,
    /// Untracked files that are not ignored.
    pub untracked: u64,
}

/// The occasion as its word.
mod why_word {
    use serde::{Deserialize, Deserializer, Serializer};
    use the_loop_core::workspace::SavedWhy;

    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature is serde's"
    )]
    pub(super) fn serialize<S: Serializer>(why: &SavedWhy, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(why.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SavedWhy, D::Error> {
        let word = String::deserialize(from)?;
        SavedWhy::parse(&word)
            .ok_or_else(|| serde::de::Error::custom(format!("unknown occasion {word:?}")))
    }
}

impl SavedManifest {
    /// What people call it: `<slug>-<ts>`.
    pub fn name(&self) -> &str {
        self.bundle.strip_suffix(".bundle").unwrap_or(&self.bundle)
    }
}

/// One thing in `local/saved/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// A bundle with its manifest.
    Complete(Box<SavedManifest>),
    /// A bundle whose manifest was never written, or was dropped first (ST-62).
    Incomplete {
        /// `<slug>-<ts>`.
        name: String,
        /// Length of the bundle.
        bytes: u64,
    },
    /// A manifest that cannot be read, or whose bundle is gone; left as it is.
    Unreadable {
        /// `<slug>-<ts>`.
        name: String,
        /// Why.
        why: String,
    },
}

impl Saved {
    /// Bytes of the bundle; zero where that is not known.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Complete(manifest) => manifest.bytes,
            Self::Incomplete { bytes, .. } => *bytes,
            Self::Unreadable { .. } => 0,
        }
    }
}

/// The directory `local/saved/`.
#[derive(Clone, Debug)]
pub struct SavedStore {
    disk: SharedDisk,
    dir: Utf8PathBuf,
}

impl SavedStore {
    /// The store in this directory, which need not exist yet.
    pub fn new(world: &World, dir: impl Into<Utf8PathBuf>) -> Self {
        Self {
            disk: world.disk.clone(),
            dir: dir.into(),
        }
    }

    /// The path of a bundle.
    pub fn bundle_path(&self, name: &str) -> Utf8PathBuf {
        self.dir.join(format!("{name}.bundle"))
    }

    fn manifest_path(&self, name: &str) -> Utf8PathBuf {
        self.dir.join(format!("{name}.json"))
    }

    /// A name that is not taken: `<slug>-<ts>` of this second or of a later one, with that second.
    /// Makes the directory. Fails after an hour's worth of names.
    pub fn free_name(&self, slug: &Slug, now: Timestamp) -> io::Result<(String, Timestamp)> {
        self.disk.create_dir_all(&self.dir)?;
        for second in 0..3600 {
            let at = now.plus(std::time::Duration::from_secs(second));
            let name = format!("{slug}-{}", at.compact());
            let free = self.disk.meta(&self.bundle_path(&name))?.is_none()
                && self.disk.meta(&self.manifest_path(&name))?.is_none();
            if free {
                return Ok((name, at));
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "no free name for a bundle",
        ))
    }

    /// Makes a finished bundle private and durable; answers with its length and SHA-256 in hex.
    pub fn seal(&self, name: &str) -> io::Result<(u64, String)> {
        let path = self.bundle_path(name);
        self.disk.set_mode(&path, 0o600)?;
        self.disk.sync(&path)?;
        self.disk.sync(&self.dir)?;
        self.digest(&path)
    }

    fn digest(&self, path: &Utf8Path) -> io::Result<(u64, String)> {
        const CHUNK: u64 = 4 << 20;
        let mut hash = Sha256::new();
        let mut length = 0;
        loop {
            let bytes = self.disk.read_from(path, length, CHUNK)?;
            hash.update(&bytes);
            length += bytes.len() as u64;
            if (bytes.len() as u64) < CHUNK {
                return Ok((length, hex::encode(hash.finalize())));
            }
        }
    }

    /// Writes the manifest of a sealed bundle. Only when this has returned may the checkout go (ST-62).
    pub fn write(&self, manifest: &SavedManifest) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(manifest).map_err(io::Error::other)?;
        text.push('\n');
        let path = self.manifest_path(manifest.name());
        self.disk.write_atomic(&path, text.as_bytes(), true)
    }

    /// Reads the manifest `<name>.json`. An error names what is wrong with it.
    pub fn read(&self, name: &str) -> io::Result<SavedManifest> {
        let bytes = self
            .disk
            .read(&self.manifest_path(name), RECORD_BYTES_MAX)?;
        let manifest: SavedManifest = serde_json::from_slice(&bytes)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        if manifest.bundle != format!("{name}.bundle") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "names another bundle",
            ));
        }
        Ok(manifest)
    }

    /// Does the bundle still have the length and SHA-256 of its manifest?
    pub fn is_intact(&self, manifest: &SavedManifest) -> io::Result<bool> {
        let (bytes, sha256) = self.digest(&self.bundle_path(manifest.name()))?;
        Ok(bytes == manifest.bytes && sha256 == manifest.sha256)
    }

    /// Everything that was saved, by name; a file that is neither bundle nor manifest is a stranger's.
    pub fn list(&self) -> io::Result<Vec<Saved>> {
        let files = self.disk.list(&self.dir)?;
        let mut names: Vec<&str> = files
            .iter()
            .filter_map(|f| {
                f.strip_suffix(".bundle")
                    .or_else(|| f.strip_suffix(".json"))
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|name| self.entry(name)).collect()
    }

    fn entry(&self, name: &str) -> io::Result<Saved> {
        let bundle = self.disk.meta(&self.bundle_path(name))?;
        let bundle = bundle.filter(|m| m.kind == Kind::File);
        let name_owned = name.to_owned();
        Ok(match (self.read(name), bundle) {
            (Ok(manifest), Some(_)) => Saved::Complete(Box::new(manifest)),
            (Ok(_), None) => Saved::Unreadable {
                name: name_owned,
                why: "its bundle is gone".to_owned(),
            },
            (Err(e), Some(meta)) if e.kind() == io::ErrorKind::NotFound => Saved::Incomplete {
                name: name_owned,
                bytes: meta.len,
            },
            (Err(e), _) => Saved::Unreadable {
                name: name_owned,
                why: e.to_string(),
            },
        })
    }
}
