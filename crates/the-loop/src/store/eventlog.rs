//! The event log: writing, rotating, reading (EV-6 to EV-26).
//!
//! [`EventLog`] writes: one line a call, from any thread and any process. Only the daemon rotates.
//! [`Reader`] reads for every surface, and follows.

mod follow;
mod lines;
mod part;
mod read;
mod segment;
mod writer;

pub use follow::{FollowNote, Follower};
pub use lines::LINE_READ_MAX;
pub use read::{ReadFault, Reader, Record, Sink, Summary};
pub use segment::Segment;
pub use writer::EventLog;

#[cfg(test)]
mod tests;
