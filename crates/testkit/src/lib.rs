//! Doubles for tests: a disk that fails, scripted processes, a model of tmux and of an agent, GitHub.
//!
//! A [`Fuse`] counts every call to disk and processes together. A test sets it to fail at call *n*, or to
//! "crash" before or after it: from then on nothing that program does reaches the world any more, which is
//! what `kill -9` looks like from outside.

pub mod disk;
pub mod fake_github;
pub mod fake_model;
pub mod fake_tmux;
pub mod fuse;
pub mod processes;
pub mod simulator;

pub use disk::FaultyDisk;
pub use fake_github::FakeGithub;
pub use fake_model::FakeModel;
pub use fake_tmux::{FakeTmux, Mood, Trouble};
pub use fuse::{Blow, Fuse};
pub use processes::FaultyProcesses;
pub use simulator::Simulator;
