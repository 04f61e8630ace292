//! The words, rules and state machines of the-loop: everything that can be decided without I/O.
//!
//! Nothing here reads a clock, the environment, a file or a random number; time and ids are
//! arguments. Reading order: names, bounds and time first; then what comes in, who may cause
//! what, and what happens now; then what is written down.

pub mod ids;
pub mod limits;
pub mod time;

pub mod config;

pub mod answers;
pub mod ci;
pub mod control;
pub mod delivery;
pub mod guard;
pub mod hook;
pub mod link;
pub mod route;

pub mod attention;
pub mod confirm;
pub mod dispatch;
pub mod environment;
pub mod probe;
pub mod session;
pub mod tokens;

pub mod prompt;
pub mod workspace;

pub mod event;
pub mod poll;
pub mod quota;
pub mod record;
pub mod redact;
