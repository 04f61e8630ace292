//! What the compiler and clippy cannot see. Each check gives sentences; none means it is tidy.

mod events;
mod layers;
mod length;
mod purity;
mod words;

use anyhow::{Result, bail};
use camino::Utf8Path;

use crate::files;

/// Runs every check and tells everything that is wrong at once.
pub fn run(root: &Utf8Path, ratchet: bool) -> Result<()> {
    let files = files::all(root)?;
    if ratchet {
        length::write(root, &files)?;
    }
    let checks = [
        layers::check(&files),
        purity::check(&files),
        purity::dependencies(&files),
        length::check(root, &files)?,
        events::check(&files),
        words::check(&files),
        words::joined_paths(&files),
        words::decisions(&files),
    ];
    let faults: Vec<String> = checks.into_iter().flatten().collect();
    if faults.is_empty() {
        println!("tidy: {} files are in order", files.len());
        return Ok(());
    }
    for fault in &faults {
        eprintln!("tidy: {fault}");
    }
    bail!("{} things are not tidy", faults.len())
}
