//! Coding agents as declarations (DI-33).
//!
//! [`adapter`] is what the engine asks before and at a launch: a [`declaration`], and the [`kind`] of
//! code for what data cannot say. [`watch`] follows one running session's hook file, transcript, title
//! and screen. `hook`, `pane_exec` and `demo` are also the internal
//! commands that run inside a pane.

pub mod adapter;
mod argv;
pub mod claude;
pub mod codex;
pub mod conversation;
pub mod cursor;
pub mod declaration;
pub mod declared;
pub mod demo;
pub mod gemini;
pub mod glob;
pub mod hook;
pub mod kind;
pub mod opencode;
pub mod pane_exec;
pub mod place;
pub mod program;
pub mod screen;
pub mod signals;
pub mod tail;
#[cfg(test)]
mod testing;
pub mod transcript;
pub mod trust;
pub mod watch;
