//! The operations: one function a verb, used by every surface.

pub mod config;
pub mod daemon;
pub mod deliver;
pub mod deliveries;
pub mod demo;
pub mod desk;
pub mod error;
pub mod events;
pub mod hooks;
pub mod link;
pub mod poll;
pub mod rows;
pub mod sessions;
pub mod status;
pub mod tickets;
