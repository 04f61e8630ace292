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
/// Characters of a comment on a ticket of the embedded tracker; a longer one is refused.
pub const TICKET_COMMENT_CHARS_MAX: usize = 65_536;
/// A temporary file of ours that is older was left by a crash and is removed (ST-20).
pub const STALE_TEMPORARY_AGE: Duration = Duration::from_secs(600);
/// Between two looks at a lock that another holds; the wait for it doubles up to this (ST-25).
pub const LOCK_POLL_MAX: Duration = Duration::from_millis(100);
/// After this long a verb that waits for a lock says who holds it (SE-9).
pub const LOCK_NOTE_AFTER: Duration = Duration::from_secs(1);
/// Tries to take a service lock whose file is replaced meanwhile (ST-26).
pub const SERVICE_LOCK_TRIES: usize = 5;
