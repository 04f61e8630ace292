//! What is kept on disk.

pub mod eventlog;
pub mod files;
pub mod inbox;
pub mod layout;
pub mod lock;
mod names;
pub mod poll_status;
pub mod portable;
pub mod registry;
pub mod saved;
mod shelf;

#[cfg(test)]
pub(crate) mod testing;
