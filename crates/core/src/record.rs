//! The shapes on disk, each with its own version; nothing else in this crate is written to a file.
//!
//! A record is a typed view *beside* the document it was read from. Writing changes in that
//! document only what differs from it, so that unknown fields at every level, the order of keys
//! and the spelling of what was not touched survive (ST-21).

mod document;
mod entry;
mod place;
mod portable;
mod session;
mod ticket;

pub use document::{Fault, Map, to_bytes};
pub use entry::{CloseReason, EditedField, EntryKind, TicketEntry};
pub use portable::{Control, ControlCommand, ControlSource, PortableRecord};
pub use session::{Endpoint, SessionRecord, SpawnIntent, WorkspaceRecord, WorkspaceStrategy};
pub use ticket::{CommentError, Ticket, TicketChange, TicketState, check_comment};

/// The newest `schema` of a session record this release knows; absent means 1 (ST-35).
pub const SESSION_SCHEMA: u64 = 1;
/// The newest `schema` of a portable record this release knows.
pub const PORTABLE_SCHEMA: u64 = 1;
/// The newest `schema` of a ticket this release knows.
pub const TICKET_SCHEMA: u64 = 1;

#[cfg(test)]
mod tests;
