//! The files of a log: the one that is written, and the closed segments beside it (EV-14, EV-15).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value};
use the_loop_core::time::Timestamp;

use crate::disk::Disk;

/// Bytes that the first line of a file is looked for in: `log.rotated` is far shorter.
const HEAD_BYTES: usize = 4096;

/// A closed segment of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// File name; the order of names is the order of writing.
    pub name: String,
    /// Where it is.
    pub path: Utf8PathBuf,
}

/// Name of the log split around the place of a segment's time stamp: `events` and `.jsonl`.
fn name_parts(log: &Utf8Path) -> (&str, String) {
    let stem = log.file_stem().unwrap_or("events");
    let ending = log.extension().map(|e| format!(".{e}")).unwrap_or_default();
    (stem, ending)
}

fn dir_of(log: &Utf8Path) -> &Utf8Path {
    match log.parent() {
        Some(dir) if !dir.as_str().is_empty() => dir,
        Some(_) | None => Utf8Path::new("."),
    }
}

/// The time stamp in a segment's name: `20260301T091244318Z`.
fn stamp_of<'a>(name: &'a str, stem: &str, ending: &str) -> Option<&'a str> {
    let stamp = name
        .strip_prefix(stem)?
        .strip_prefix('-')?
        .strip_suffix(ending)?;
    let shaped = stamp.len() == 19
        && stamp.bytes().enumerate().all(|(at, b)| match at {
            8 => b == b'T',
            18 => b == b'Z',
            _ => b.is_ascii_digit(),
        });
    shaped.then_some(stamp)
}

/// The closed segments of a log, oldest first.
pub(super) fn list(disk: &dyn Disk, log: &Utf8Path) -> io::Result<Vec<Segment>> {
    let (stem, ending) = name_parts(log);
    let dir = dir_of(log);
    let mut segments: Vec<Segment> = disk
        .list(dir)?
        .into_iter()
        .filter(|name| stamp_of(name, stem, &ending).is_some())
        .map(|name| Segment {
            path: dir.join(&name),
            name,
        })
        .collect();
    segments.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(segments)
}

/// The name of the next segment: of this moment, and greater than all present.
pub(super) fn next_path(log: &Utf8Path, present: &[Segment], now: Timestamp) -> Utf8PathBuf {
    let (stem, ending) = name_parts(log);
    let named = |at: Timestamp| {
        let at = at.to_jiff().strftime("%Y%m%dT%H%M%S%3f");
        format!("{stem}-{at}Z{ending}")
    };
    let mut name = named(now);
    if let Some(last) = present.last()
        && name <= last.name
    {
        let after = stamp_of(&last.name, stem, &ending).and_then(later_stamp);
        name = after.map_or(name, named);
    }
    dir_of(log).join(name)
}

/// One millisecond after a stamp.
fn later_stamp(stamp: &str) -> Option<Timestamp> {
    let part = |from: usize, to: usize| stamp.get(from..to);
    let text = format!(
        "{}-{}-{}T{}:{}:{}.{}Z",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(9, 11)?,
        part(11, 13)?,
        part(13, 15)?,
        part(15, 18)?
    );
    let at: Timestamp = text.parse().ok()?;
    Some(at.plus(std::time::Duration::from_millis(1)))
}

/// The first line of a file, when it is a whole JSON object.
pub(super) fn first_line(file: &File) -> io::Result<Option<Map<String, Value>>> {
    let mut head = vec![0; HEAD_BYTES];
    let read = read_full_at(file, &mut head, 0)?;
    let Some(end) = head[..read].iter().position(|b| *b == b'\n') else {
        return Ok(None);
    };
    Ok(serde_json::from_slice(&head[..end]).ok())
}

/// Where the positions of a file begin, when its first line says so.
fn stated_base(file: &File) -> io::Result<Option<u64>> {
    let line = first_line(file)?;
    Ok(line
        .filter(|line| line.get("event").and_then(Value::as_str) == Some("log.rotated"))
        .and_then(|line| line.get("base").and_then(Value::as_u64)))
}

/// Bytes in all files before `file`, given the segments before it, oldest first (EV-15). Without a
/// statement of its own the nearest earlier one counts, and the sizes after it.
pub(super) fn base_of(disk: &dyn Disk, file: &File, before: &[Segment]) -> io::Result<u64> {
    if let Some(base) = stated_base(file)? {
        return Ok(base);
    }
    let mut bytes = 0;
    for segment in before.iter().rev() {
        let file = match disk.open_read(&segment.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        bytes += file.metadata()?.len();
        if let Some(base) = stated_base(&file)? {
            return Ok(base + bytes);
        }
    }
    Ok(bytes)
}

/// Fills `buffer` from `offset` on as far as the file goes.
pub(super) fn read_full_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}
