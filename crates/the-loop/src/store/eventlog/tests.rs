#![allow(
    clippy::disallowed_methods,
    reason = "these tests look at files behind the program's back"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value};
use the_loop_core::event::{Filter, Glob, Level, LogEvent, Source, check_line};
use the_loop_core::time::Timestamp;

use super::*;
use crate::clock::Clock;
use crate::disk::OsDisk;
use crate::ids::Ids;
use crate::process::OsProcesses;
use crate::world::World;

mod following;
mod reading;
mod writing;

/// A directory, a world with a clock that stands still, and a log path.
struct Place {
    _dir: tempfile::TempDir,
    world: World,
    log: Utf8PathBuf,
}

fn start() -> Timestamp {
    "2026-03-01T09:00:00Z".parse().unwrap()
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
    let world = World {
        disk: Arc::new(OsDisk),
        processes: Arc::new(OsProcesses),
        clock: Clock::manual(start()),
        ids: Ids::seeded(1),
        env: Arc::default(),
        cwd: root.clone(),
        home: None,
        user: "mona".to_owned(),
        program: root.join("the-loop"),
        pid: 4242,
    };
    Place {
        _dir: dir,
        world,
        log: root.join("logs/events.jsonl"),
    }
}

impl Place {
    fn writer(&self) -> EventLog {
        EventLog::open(&self.world, &self.log, true, 1, 0)
    }

    /// Every line of the current file.
    fn lines(&self) -> Vec<Map<String, Value>> {
        lines_of(&self.log)
    }

    fn segments(&self) -> Vec<Utf8PathBuf> {
        let all = segment::list(&OsDisk, &self.log).unwrap();
        all.into_iter().map(|s| s.path).collect()
    }

    fn query(&self, filter: &Filter, limit: usize) -> (Vec<Record>, Summary) {
        let mut found = Vec::new();
        let summary = Reader::new(&self.world, &self.log)
            .query(filter, limit, &mut |record| {
                found.push(record.clone());
                ControlFlow::Continue(())
            })
            .unwrap();
        (found, summary)
    }

    /// Rotates though the file is small.
    fn rotate(&self, log: &EventLog) {
        pad(&self.log);
        assert!(log.rotate_if_needed().unwrap());
    }
}

fn lines_of(path: &Utf8Path) -> Vec<Map<String, Value>> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Makes the file larger than a segment of 1 MiB by lines that no query asks for.
fn pad(path: &Utf8Path) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    let line = format!("{{\"event\":\"pad\",\"x\":\"{}\"}}\n", "x".repeat(4000));
    for _ in 0..270 {
        file.write_all(line.as_bytes()).unwrap();
    }
}

fn swept(count: u64) -> LogEvent {
    LogEvent::StateSwept { count }
}

/// The numbers that [`swept`] wrote, in the order of the records.
fn counts(records: &[Record]) -> Vec<u64> {
    records
        .iter()
        .filter(|r| r.fields["event"] == "state.swept")
        .map(|r| r.fields["count"].as_u64().unwrap())
        .collect()
}

fn only(pattern: &str) -> Filter {
    Filter {
        types: vec![Glob::new(pattern)],
        ..Filter::default()
    }
}
