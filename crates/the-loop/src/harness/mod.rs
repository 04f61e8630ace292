//! Coding agents as declarations (DI-33).
//!
//! [`adapter`] is what the engine talks to; [`watch`] follows one running session's hook file,
//! transcript and screen. `hook`, `pane-exec` and `demo-agent` are the internal commands that run
//! inside a pane.

pub mod adapter;
pub mod claude;
pub mod demo;
pub mod hook;
pub mod pane_exec;
pub mod screen;
pub mod transcript;
pub mod trust;
pub mod watch;
