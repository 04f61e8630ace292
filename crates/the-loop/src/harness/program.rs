//! Is a harness's program there?

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};

use super::adapter::Adapter;
use crate::disk::Kind;
use crate::world::World;

/// Why the program of a harness cannot be started in a pane with this environment and directory; `None`
/// when it is there, and when that cannot be told.
pub fn missing(
    world: &World,
    adapter: &Adapter,
    env: &BTreeMap<String, String>,
    cwd: &Utf8Path,
) -> Option<String> {
    let program = adapter.program(world);
    let can_run = |path: Utf8PathBuf| {
        let real = world.disk.canonicalize(&path).ok();
        real.and_then(|real| world.disk.meta(&real).ok().flatten())
            .is_some_and(|meta| meta.kind == Kind::File && meta.mode & 0o111 != 0)
    };
    if program.starts_with('/') {
        return (!can_run(program.clone().into())).then(|| format!("{program} is not there"));
    }
    // Without the variable the system has a search path of its own.
    let path = env.get("PATH")?;
    let mut dirs = path.split(':').map(|dir| cwd.join(dir));
    let found = dirs.any(|dir| can_run(dir.join(&program)));
    (!found).then(|| format!("{program} is not on PATH"))
}
