//! A disk and processes that fail, or end the world, at a chosen call.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};

use crate::disk::{Disk, LockMode, Meta, OsDisk};
use crate::process::{Answer, Call, NoAnswer, OsProcesses, ProcessId, Processes, Signal};
use crate::world::World;

/// What happens at the chosen call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It fails without having done anything.
    FailBefore,
    /// It is done, but says that it failed.
    FailAfter,
    /// The program is killed before it.
    CrashBefore,
    /// The program is killed after it.
    CrashAfter,
}

/// Counts down to one fault, over disk and processes together.
#[derive(Debug)]
pub(super) struct Fuse {
    left: AtomicI64,
    fault: Fault,
}

impl Fuse {
    /// The world with a fault at call `at`, counted from 0.
    pub(super) fn world(world: &World, at: i64, fault: Fault) -> (World, Arc<Self>) {
        let fuse = Arc::new(Self {
            left: AtomicI64::new(at),
            fault,
        });
        let mut world = world.clone();
        world.disk = Arc::new(FaultyDisk(fuse.clone()));
        world.processes = Arc::new(FaultyProcesses(fuse.clone()));
        (world, fuse)
    }

    /// Was the chosen call reached?
    pub(super) fn burnt(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }

    /// Runs one call; `None` stands for a failure.
    fn pass<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 0 {
            return Some(work());
        }
        match self.fault {
            Fault::FailBefore => None,
            Fault::FailAfter => {
                work();
                None
            }
            Fault::CrashBefore => panic!("killed"),
            Fault::CrashAfter => {
                work();
                panic!("killed")
            }
        }
    }

    fn io<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.pass(work)
            .unwrap_or_else(|| Err(io::Error::other("a fault")))
    }
}

#[derive(Debug)]
struct FaultyProcesses(Arc<Fuse>);

impl Processes for FaultyProcesses {
    fn run(&self, call: &Call) -> Answer {
        self.0
            .pass(|| OsProcesses.run(call))
            .unwrap_or_else(|| Answer {
                exit: Err(NoAnswer::TimedOut(call.timeout)),
                stdout: Vec::new(),
                stderr: Vec::new(),
            })
    }
    fn started(&self, pid: i32) -> Option<u64> {
        OsProcesses.started(pid)
    }
    fn environment(&self, pid: i32, name: &str) -> Option<String> {
        OsProcesses.environment(pid, name)
    }
    fn carrying(&self, name: &str, value: &str) -> Vec<ProcessId> {
        OsProcesses.carrying(name, value)
    }
    fn signal(&self, process: ProcessId, signal: Signal) -> bool {
        OsProcesses.signal(process, signal)
    }
    fn signal_group(&self, leader: ProcessId, signal: Signal) -> bool {
        OsProcesses.signal_group(leader, signal)
    }
}

#[derive(Debug)]
struct FaultyDisk(Arc<Fuse>);

impl Disk for FaultyDisk {
    fn read(&self, path: &Utf8Path, max: u64) -> io::Result<Vec<u8>> {
        OsDisk.read(path, max)
    }
    fn read_from(&self, path: &Utf8Path, offset: u64, max: u64) -> io::Result<Vec<u8>> {
        OsDisk.read_from(path, offset, max)
    }
    fn write_atomic(&self, path: &Utf8Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        self.0.io(|| OsDisk.write_atomic(path, bytes, durable))
    }
    fn create_new(&self, path: &Utf8Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.0.io(|| OsDisk.create_new(path, bytes, mode))
    }
    fn append(&self, path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
        self.0.io(|| OsDisk.append(path, bytes))
    }
    fn remove(&self, path: &Utf8Path) -> io::Result<bool> {
        self.0.io(|| OsDisk.remove(path))
    }
    fn remove_dir_all(&self, path: &Utf8Path) -> io::Result<bool> {
        self.0.io(|| OsDisk.remove_dir_all(path))
    }
    fn rename(&self, from: &Utf8Path, to: &Utf8Path) -> io::Result<()> {
        self.0.io(|| OsDisk.rename(from, to))
    }
    fn list(&self, dir: &Utf8Path) -> io::Result<Vec<String>> {
        OsDisk.list(dir)
    }
    fn create_dir_all(&self, dir: &Utf8Path) -> io::Result<()> {
        self.0.io(|| OsDisk.create_dir_all(dir))
    }
    fn meta(&self, path: &Utf8Path) -> io::Result<Option<Meta>> {
        OsDisk.meta(path)
    }
    fn set_mode(&self, path: &Utf8Path, mode: u32) -> io::Result<()> {
        self.0.io(|| OsDisk.set_mode(path, mode))
    }
    fn canonicalize(&self, path: &Utf8Path) -> io::Result<Utf8PathBuf> {
        OsDisk.canonicalize(path)
    }
    fn try_lock(
        &self,
        path: &Utf8Path,
        mode: LockMode,
        create: bool,
    ) -> io::Result<Option<std::fs::File>> {
        OsDisk.try_lock(path, mode, create)
    }
    fn sync(&self, path: &Utf8Path) -> io::Result<()> {
        self.0.io(|| OsDisk.sync(path))
    }
    fn commit(&self, path: &Utf8Path, work: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        OsDisk.commit(path, work)
    }
    fn free_bytes(&self, path: &Utf8Path) -> io::Result<u64> {
        OsDisk.free_bytes(path)
    }
}
