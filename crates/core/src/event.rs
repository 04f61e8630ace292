//! The event-log vocabulary (events page): what may be said, and how a line is made and shown.
//!
//! [`LogEvent`] is the closed list. [`line()`] turns one into the bytes of a line; [`Filter`] and
//! [`row()`] are the reader's half. Nothing here touches a file.

pub mod catalogue;
pub mod fields;
mod filter;
mod line;
mod reasons;
mod row;
mod vocabulary;
mod word;

pub use catalogue::{
    EventType, Field, RESERVED, Reserved, ReservedFor, catalogue_json, catalogue_markdown,
    check_line, event_type, is_known_pattern,
};
pub use filter::{Filter, Glob, WhenError, parse_when};
pub use line::{Envelope, LINE_BYTES_MAX, line};
pub use reasons::*;
pub use row::{Row, row};
pub use vocabulary::{CATALOGUE, LogEvent};
pub use word::{FieldValue, Kind, WordList};

#[cfg(test)]
mod tests;
