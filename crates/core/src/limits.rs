//! Every bound of the program in one table, with what happens when it is reached.

use std::time::Duration;

/// Steps of one dispatch (DI-10). A dispatch that would take more is a defect: `dispatch.error`.
pub const DISPATCH_STEPS_MAX: usize = 16;
/// Bytes of a record; a larger file is corrupt (ST-15).
pub const RECORD_BYTES_MAX: u64 = 4 << 20;
/// Bytes of a ticket; a larger file is corrupt (ST-15).
pub const TICKET_BYTES_MAX: u64 = 8 << 20;
/// Delivery ids kept in a session record; the oldest goes out (DI-30).
pub const RECENT_DELIVERIES_MAX: usize = 50;
/// Waits between tries of one delivery; the last one repeats (DI-4).
pub const RETRY_WAITS: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
];
/// Bytes of an argument that tmux is given; longer commands go through standard input (DI-15).
pub const TMUX_ARGUMENT_BYTES_MAX: usize = 8 << 10;
/// Characters of the WHAT part of a prompt's first line; the rest is cut (DI-25).
pub const PROMPT_WHAT_CHARS_MAX: usize = 80;
