//! The whole program with real coding agents (DI-54): the built binary, its daemon, real tmux, and a
//! model server of ours on loopback.
//!
//! Each agent is described in a module of its own, which runs the scenarios of `scenario` and, where
//! there is more to say about it, tests of its own. `scripts/test-harnesses` installs the pinned programs
//! and runs this; nothing leaves the machine.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may look at its environment, start programs and panic"
)]

mod agent;
mod claude;
mod codex;
mod gemini;
mod opencode;
mod rig;
mod scenario;
