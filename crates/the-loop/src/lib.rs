//! the-loop: adapters, engine, operations and command line around `the-loop-core`.
//!
//! Layers, top to bottom; a layer may use any layer below it and nothing points up
//! (`cargo xtask tidy` checks): `cli, daemon, ingress` → `ops, engine, poll` → `store, tracker, tmux, git,
//! harness` → `disk, process, clock, ids`.

pub mod world;

pub mod clock;
pub mod disk;
pub mod ids;
pub mod process;

pub mod settings;
pub mod telemetry;

pub mod git;
pub mod harness;
pub mod store;
pub mod tmux;
pub mod tracker;

pub mod engine;
pub mod ops;
pub mod poll;

pub mod cli;
pub mod daemon;
pub mod ingress;
