//! One counter over everything a program does to the world.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// What happens at the chosen call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// That call fails once, as a full disk or a refused program; the program goes on.
    FailOnce,
    /// That call has its effect but says that it failed, as one that ran out of time; the program goes on.
    FailAfter,
    /// Every call from that one on fails, until the fuse is mended.
    FailFrom,
    /// The program is gone before the call has any effect.
    CrashBefore,
    /// The call has its effect, and the program is gone before it learns of it.
    CrashAfter,
}

/// What a double does with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Do it.
    Go,
    /// Fail it without effect.
    Fail,
    /// Do it, then answer as if it had failed.
    GoThenFail,
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    plan: Option<(u64, Blow)>,
    crashed: bool,
    log: Vec<String>,
}

/// A shared counter with a plan.
#[derive(Clone, Debug, Default)]
pub struct Fuse(Arc<Mutex<State>>);

impl Fuse {
    /// A fuse that only counts.
    pub fn new() -> Self {
        Self::default()
    }

    /// A fuse that blows at call `at`, counted from 1.
    pub fn at(at: u64, blow: Blow) -> Self {
        let fuse = Self::default();
        fuse.plan(at, blow);
        fuse
    }

    /// Sets the plan anew; calls already made count.
    pub fn plan(&self, at: u64, blow: Blow) {
        self.state().plan = Some((at, blow));
    }

    /// No more failures.
    pub fn mend(&self) {
        let mut state = self.state();
        state.plan = None;
        state.crashed = false;
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Is the program gone?
    pub fn crashed(&self) -> bool {
        self.state().crashed
    }

    /// The names of all calls so far, for a message that says where the fuse blew.
    pub fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    /// Counts a call that changes the world, or looks at it, and says what to do with it.
    pub fn turn(&self, what: impl FnOnce() -> String) -> Turn {
        let mut state = self.state();
        if state.crashed {
            return Turn::Fail;
        }
        state.calls += 1;
        let name = what();
        state.log.push(name);
        match state.plan {
            Some((at, Blow::FailOnce)) if state.calls == at => Turn::Fail,
            Some((at, Blow::FailAfter)) if state.calls == at => Turn::GoThenFail,
            Some((at, Blow::FailFrom)) if state.calls >= at => Turn::Fail,
            Some((at, Blow::CrashBefore)) if state.calls == at => {
                state.crashed = true;
                Turn::Fail
            }
            Some((at, Blow::CrashAfter)) if state.calls == at => {
                state.crashed = true;
                Turn::GoThenFail
            }
            Some((
                _,
                Blow::FailOnce
                | Blow::FailAfter
                | Blow::FailFrom
                | Blow::CrashBefore
                | Blow::CrashAfter,
            ))
            | None => Turn::Go,
        }
    }

    /// Runs an I/O call under the fuse.
    pub fn io<T>(
        &self,
        what: impl FnOnce() -> String,
        call: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let full = || {
            io::Error::new(
                io::ErrorKind::StorageFull,
                "no space left on device (planned)",
            )
        };
        match self.turn(what) {
            Turn::Go => call(),
            Turn::Fail => Err(full()),
            Turn::GoThenFail => {
                let _ = call();
                Err(full())
            }
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
