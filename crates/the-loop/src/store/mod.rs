//! What is kept on disk.

pub mod eventlog;
pub mod inbox;
pub mod layout;
pub mod lock;
pub mod portable;
pub mod registry;
pub mod saved;
