//! The files of the repository.

use std::fs;

use anyhow::{Context, Result};
use camino::{Utf8Path, Utf8PathBuf};

/// A text file of the repository, by its path from the root.
#[derive(Clone, Debug)]
pub struct Text {
    /// Path from the root, with `/`.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// Directories that hold nothing of ours.
const NOT_OURS: [&str; 3] = [".git", ".deps", "target"];

/// The directory of the workspace, found from this crate's manifest.
pub fn workspace_root() -> Result<Utf8PathBuf> {
    let here = Utf8Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().and_then(Utf8Path::parent);
    root.map(Utf8Path::to_owned)
        .context("the manifest of xtask is not two directories below the workspace")
}

/// Every file that is text, sorted by path. What is not UTF-8 is not text.
pub fn all(root: &Utf8Path) -> Result<Vec<Text>> {
    let mut found = Vec::new();
    walk(root, root, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(root: &Utf8Path, dir: &Utf8Path, found: &mut Vec<Text>) -> Result<()> {
    for entry in dir.read_dir_utf8().with_context(|| dir.to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if NOT_OURS.contains(&entry.file_name()) {
            continue;
        }
        if kind.is_dir() {
            walk(root, entry.path(), found)?;
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            let path = entry.path().strip_prefix(root)?.to_string();
            found.push(Text { path, text });
        }
    }
    Ok(())
}

impl Text {
    /// Rust that is shipped: no test file, and without the tests at the end of a file.
    pub fn product_code(&self) -> Option<&str> {
        let rust = self.path.strip_suffix(".rs")?;
        let is_test = rust.contains("/tests/")
            || rust.ends_with("/tests")
            || rust.ends_with("/testing")
            || rust.starts_with("crates/testkit/")
            || rust.starts_with("crates/xtask/");
        let code = self.text.split("\n#[cfg(test)]\nmod tests {").next();
        code.filter(|_| !is_test)
    }
}
