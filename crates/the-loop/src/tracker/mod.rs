//! Where work items live.

pub mod github;
pub mod local;
