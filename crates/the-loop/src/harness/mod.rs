//! Coding agents as declarations (DI-33).

pub mod claude;
pub mod demo;
pub mod hook;
pub mod transcript;
