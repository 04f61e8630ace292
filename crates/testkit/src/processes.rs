//! The operating system's processes with a fuse in front.

use camino::Utf8PathBuf;
use the_loop::process::{Answer, Call, NoAnswer, OsProcesses, ProcessId, Processes, Signal};
use the_loop_core::environment::Environ;

use crate::fuse::{Fuse, Turn};

/// Real programs whose runs can be made to fail, or to be the last act of this one.
///
/// A failed run gave no answer. Every run is counted; looks at processes are not.
#[derive(Clone, Debug)]
pub struct FaultyProcesses {
    fuse: Fuse,
}

impl FaultyProcesses {
    /// Processes that obey this fuse.
    pub fn new(fuse: Fuse) -> Self {
        Self { fuse }
    }
}

impl Processes for FaultyProcesses {
    fn run(&self, call: &Call) -> Answer {
        let what = || format!("run {} {}", call.program, call.args.join(" "));
        match self.fuse.turn(what) {
            Turn::Go => return OsProcesses.run(call),
            Turn::GoThenFail => drop(OsProcesses.run(call)),
            Turn::Fail => {}
        }
        Answer {
            exit: Err(NoAnswer::TimedOut(call.timeout)),
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }
    fn started(&self, pid: i32) -> Option<u64> {
        OsProcesses.started(pid)
    }
    fn environment(&self, pid: i32, name: &str) -> Option<String> {
        OsProcesses.environment(pid, name)
    }
    fn environ(&self, pid: i32) -> Option<Environ> {
        OsProcesses.environ(pid)
    }
    fn argv(&self, pid: i32) -> Vec<String> {
        OsProcesses.argv(pid)
    }
    fn cwd(&self, pid: i32) -> Option<Utf8PathBuf> {
        OsProcesses.cwd(pid)
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
