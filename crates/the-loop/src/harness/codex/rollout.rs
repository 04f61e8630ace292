//! The files in which Codex writes its conversations down:
//! `<config>/sessions/<year>/<month>/<day>/rollout-<local time>-<id>.jsonl`, made with the first prompt
//! and gone on with when the conversation is taken up again. The id is a UUID that holds the time at
//! which the conversation began.

use std::collections::BTreeSet;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use the_loop_core::ids::HarnessSessionId;
use the_loop_core::time::Timestamp;
use uuid::Uuid;

use super::config_dir;
use crate::disk::Disk;
use crate::harness::adapter::Learning;
use crate::harness::place::Place;
use crate::harness::transcript::{Entry, TranscriptFormat, TranscriptTail};
use crate::world::World;

/// Bytes looked at for a file's first line, which holds the instructions of the model; a longer one is
/// not ours to know.
const FIRST_LINE_BYTES_MAX: u64 = 1 << 20;
/// The folders are named by the day where the program runs, which is the day before or after elsewhere.
const DAY: Duration = Duration::from_hours(24);

/// The file of a conversation whose id is known.
pub fn transcript_path(world: &World, place: &Place) -> Option<Utf8PathBuf> {
    let id = place.session_id.as_ref()?.as_str();
    let end = format!("-{id}.jsonl");
    let files = files_of(&*world.disk, place, [begun_at(id)?]);
    files.into_iter().find(|path| path.as_str().ends_with(&end))
}

/// The newest conversation that was begun in this pane: since the launch, in its directory, by a person's
/// program and not by an agent's helper, with a prompt of ours in it, and no other session's.
pub fn learn_id(learning: &Learning<'_>) -> Option<HarnessSessionId> {
    let disk = &*learning.world.disk;
    let times = [learning.since, learning.world.clock.now()];
    let mut found: Vec<(Timestamp, &str, &Utf8PathBuf)> = Vec::new();
    let files = files_of(disk, learning.place, times);
    for path in &files {
        let id = path.file_stem().and_then(id_in);
        let begun = id.and_then(|id| Some((begun_at(id)?, id)));
        found.extend(begun.map(|(at, id)| (at, id, path)));
    }
    let is_taken = |id: &str| learning.taken.iter().any(|taken| taken.as_str() == id);
    found.retain(|(at, id, _)| *at >= learning.since && !is_taken(id));
    found.sort_unstable();
    let is_ours = |path: &Utf8Path| {
        is_begun_in(disk, path, &learning.place.cwd) == Some(true) && holds_our_prompt(disk, path)
    };
    let newest = found.iter().rev().find(|(_, _, path)| is_ours(path));
    newest.and_then(|(_, id, _)| HarnessSessionId::parse(id))
}

/// All files in the folders around these times.
pub(super) fn files_of(
    disk: &dyn Disk,
    place: &Place,
    times: impl IntoIterator<Item = Timestamp>,
) -> BTreeSet<Utf8PathBuf> {
    let Some(sessions) = config_dir(place).map(|dir| dir.join("sessions")) else {
        return BTreeSet::new();
    };
    let around = |at: Timestamp| [at.minus(DAY), at, at.plus(DAY)];
    let days: BTreeSet<Utf8PathBuf> = times
        .into_iter()
        .flat_map(around)
        .filter_map(|at| Some(sessions.join(at.millis().get(..10)?.replace('-', "/"))))
        .collect();
    let files = |day: &Utf8PathBuf| {
        let names = disk.list(day).unwrap_or_default().into_iter();
        let rollouts = names.filter(|name| name.starts_with("rollout-"));
        let paths = rollouts.map(|name| day.join(name));
        paths
            .filter(|path| path.extension() == Some("jsonl"))
            .collect::<Vec<_>>()
    };
    days.iter().flat_map(files).collect()
}

/// The id at the end of a file's name.
fn id_in(stem: &str) -> Option<&str> {
    let from = stem.len().checked_sub(uuid::fmt::Hyphenated::LENGTH)?;
    stem.get(from..)
}

/// When the conversation of this id began.
fn begun_at(id: &str) -> Option<Timestamp> {
    let (seconds, nanos) = Uuid::parse_str(id).ok()?.get_timestamp()?.to_unix();
    let ms = i64::try_from(seconds).ok()?.checked_mul(1000)?;
    Some(Timestamp::from_unix_ms(
        ms.checked_add(i64::from(nanos / 1_000_000))?,
    ))
}

/// Was it begun in this directory, at a terminal? `None` when it does not say.
fn is_begun_in(disk: &dyn Disk, path: &Utf8Path, cwd: &Utf8Path) -> Option<bool> {
    let head = disk.read_from(path, 0, FIRST_LINE_BYTES_MAX).ok()?;
    let line = head.split_inclusive(|b| *b == b'\n').next()?;
    let line: Value = serde_json::from_slice(line).ok()?;
    let told = line.get("payload")?;
    let there = Utf8Path::new(told.get("cwd")?.as_str()?);
    let same = there == cwd || disk.canonicalize(cwd).is_ok_and(|real| real == there);
    Some(same && told.get("source")? == "cli")
}

fn holds_our_prompt(disk: &dyn Disk, path: &Utf8Path) -> bool {
    let read = TranscriptTail::new(path, TranscriptFormat::Codex).read(disk);
    read.is_ok_and(|entries| {
        entries
            .iter()
            .any(|entry| matches!(entry, Entry::Prompt { markers, .. } if !markers.is_empty()))
    })
}
