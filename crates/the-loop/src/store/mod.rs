//! What is kept on disk.

pub mod eventlog;
pub mod files;
pub mod inbox;
pub mod layout;
pub mod lock;
pub(crate) mod names;
pub mod portable;
pub mod registry;
pub mod saved;

#[cfg(test)]
pub(crate) mod testing;
