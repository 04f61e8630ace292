//! The event log on a disk that fails (EV-9, EV-15).
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests may panic, and look at files behind the program's back"
)]

use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value};
use the_loop::clock::Clock;
use the_loop::ids::Ids;
use the_loop::process::OsProcesses;
use the_loop::store::eventlog::{EventLog, Reader, Summary};
use the_loop::world::World;
use the_loop_core::event::{Filter, LogEvent, Source, check_line};
use the_loop_testkit::{Blow, FaultyDisk, Fuse};

struct Place {
    _dir: tempfile::TempDir,
    world: World,
    log: Utf8PathBuf,
}

fn place_on(fuse: &Fuse) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
    let world = World {
        disk: Arc::new(FaultyDisk::new(fuse.clone())),
        processes: Arc::new(OsProcesses),
        clock: Clock::manual("2026-03-01T09:00:00Z".parse().unwrap()),
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

    fn lines(&self) -> Vec<Map<String, Value>> {
        let text = fs::read_to_string(&self.log).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The closed segments, oldest first.
    fn segments(&self) -> Vec<Utf8PathBuf> {
        let mut names: Vec<_> = self
            .log
            .parent()
            .unwrap()
            .read_dir_utf8()
            .unwrap()
            .collect();
        names.retain(|e| e.as_ref().unwrap().file_name().starts_with("events-"));
        let mut paths: Vec<_> = names.into_iter().map(|e| e.unwrap().into_path()).collect();
        paths.sort();
        paths
    }

    fn count_all(&self) -> Summary {
        Reader::new(&self.world, &self.log)
            .query(&Filter::default(), 0, &mut |_| ControlFlow::Continue(()))
            .unwrap()
    }
}

fn swept(count: u64) -> LogEvent {
    LogEvent::StateSwept { count }
}

/// Makes the file larger than a segment of 1 MiB.
fn pad(path: &Utf8Path) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    let line = format!("{{\"event\":\"pad\",\"x\":\"{}\"}}\n", "x".repeat(4000));
    for _ in 0..270 {
        file.write_all(line.as_bytes()).unwrap();
    }
}

#[test]
fn ev9_a_failed_write_is_counted_and_told_by_the_first_that_works() {
    let fuse = Fuse::new();
    let place = place_on(&fuse);
    let log = place.writer();
    log.emit(Source::Cli, swept(1));
    fuse.plan(fuse.calls() + 1, Blow::FailFrom);
    log.emit(Source::Cli, swept(2));
    place.world.clock.advance(Duration::from_secs(5));
    log.emit(Source::Cli, swept(3));
    log.tick();
    assert_eq!(log.lost(), 2);
    fuse.mend();
    log.emit(Source::Engine, swept(4));
    assert_eq!(log.lost(), 0);
    let lines = place.lines();
    let names: Vec<&str> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["state.swept", "log.lost", "state.swept"]);
    assert_eq!(lines[1]["count"], 2);
    assert_eq!(lines[1]["since"], "2026-03-01T09:00:00.000Z");
    assert!(lines[1]["error"].as_str().unwrap().contains("no space"));
    check_line(&lines[1]).unwrap();
}

#[test]
fn ev9_lost_lines_are_told_by_a_tick_too() {
    let fuse = Fuse::new();
    let place = place_on(&fuse);
    let log = place.writer();
    fuse.plan(1, Blow::FailOnce);
    log.emit(Source::Cli, swept(1));
    log.tick();
    assert_eq!(log.lost(), 0);
    assert_eq!(place.lines()[0]["event"], "log.lost");
}

#[test]
fn ev15_a_crash_between_rename_and_new_file_is_mended_by_any_writer() {
    let fuse = Fuse::new();
    let place = place_on(&fuse);
    let log = place.writer();
    log.emit(Source::Cli, swept(1));
    pad(&place.log);
    fuse.plan(fuse.calls() + 1, Blow::CrashAfter);
    assert!(log.rotate_if_needed().is_err());
    fuse.mend();
    assert!(!place.log.exists());
    let summary = place.count_all();
    assert_eq!((summary.matched > 1, summary.missing), (true, false));
    let size = fs::metadata(&place.segments()[0]).unwrap().len();
    place.writer().emit(Source::Sessions, swept(2));
    let lines = place.lines();
    assert_eq!(lines[0]["event"], "log.rotated");
    assert_eq!(lines[0]["base"], size);
    assert_eq!(lines[1]["count"], 2);
}
