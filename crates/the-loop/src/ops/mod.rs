//! The operations: one function a verb, used by every surface.

pub mod config;
