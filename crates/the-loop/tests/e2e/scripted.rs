//! A tmux of which a test decides how it answers. It notes every call.

use std::os::unix::fs::PermissionsExt;

use super::rig::{Rig, Wish};

/// What every scripted tmux knows: how to answer as told for so many calls.
const HEAD: &str = "\
printf '%s\\n' \"$*\" >> \"$dir/calls\"
# One of so many calls that are to go wrong; false when there are none left.
one() { left=$(cat \"$dir/left\" 2>/dev/null || echo 0); [ \"$left\" -gt 0 ] && echo $((left - 1)) > \"$dir/left\"; }
absent() { echo 'no such session, in words of another release' >&2; exit 1; }
";

/// A machine whose daemon takes a script for tmux: `rules` are arms of a shell `case` over `MODE,ARGUMENTS`.
pub fn rig(wish: &Wish<'_>, rules: &str) -> Rig {
    let tmux = format!(", binary: ../bin/tmux{}", wish.tmux);
    let rig = Rig::with(&Wish {
        tmux: &tmux,
        ..*wish
    });
    let bin = rig.path("home/bin");
    std::fs::create_dir(&bin).unwrap();
    let file = bin.join("tmux");
    let script = format!(
        "#!/bin/sh\ndir={dir}\n{HEAD}mode=$(cat \"$dir/mode\")\ncase \"$mode,$*\" in\n{rules}\nesac\n\
         exec tmux \"$@\"\n",
        dir = rig.path("").display(),
    );
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    configure(&rig, "../bin/tmux", file.to_str().unwrap());
    rig.write("mode", "");
    rig
}

/// Replaces a piece of the configuration.
pub fn configure(rig: &Rig, from: &str, to: &str) {
    let config = std::fs::read_to_string(rig.root("cli-config.yaml")).unwrap();
    assert!(config.contains(from), "{config}");
    rig.write("home/.the-loop/cli-config.yaml", &config.replace(from, to));
}

/// From now on.
pub fn mode(rig: &Rig, mode: &str) {
    rig.write("mode", mode);
}

/// For so many calls.
pub fn times(rig: &Rig, mode: &str, times: u32) {
    rig.write("left", &times.to_string());
    rig.write("mode", mode);
}

/// How many of the calls that were told to go wrong are still to come.
pub fn left(rig: &Rig) -> u32 {
    let left = std::fs::read_to_string(rig.path("left")).unwrap_or_default();
    left.trim().parse().unwrap_or(0)
}

/// Every call so far.
pub fn calls(rig: &Rig) -> Vec<String> {
    let calls = std::fs::read_to_string(rig.path("calls")).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

/// How many calls from `since` on held these words.
pub fn count(rig: &Rig, since: usize, words: &str) -> usize {
    let calls = calls(rig);
    calls[since.min(calls.len())..]
        .iter()
        .filter(|call| call.contains(words))
        .count()
}
