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
    Duration::from_mins(2),
    Duration::from_mins(10),
];
/// Requests that may wait for the inbox's writer. A blocking caller waits for room; the receiver is
/// refused and answers 503 (DI-1).
pub const INBOX_QUEUE_MAX: usize = 1024;
/// Requests in one transaction of the inbox; more are the next one's (DI-1).
pub const INBOX_COMMIT_MAX: usize = 256;
/// How long one process waits for another that writes the inbox; then it is unavailable (ST-55).
pub const INBOX_BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Read connections to the inbox kept open; more are opened for more readers and closed after.
pub const INBOX_IDLE_READERS_MAX: usize = 4;
/// Bytes the inbox's write-ahead log keeps after a checkpoint; what is more is given back.
pub const INBOX_WAL_BYTES_MAX: i64 = 16 << 20;
/// Deliveries handed to the router at a time, oldest first; the others come with the next look.
pub const INBOX_UNROUTED_MAX: i64 = 256;
/// Rows, or pages, that one pruning transaction touches; more take another one (ST-59).
pub const INBOX_PRUNE_BATCH: i64 = 1000;
/// How long the text of a finished delivery is kept after its end; then it cannot be retried (ST-58).
pub const INBOX_BODY_KEPT: Duration = Duration::from_hours(24);
/// How long `abandoned` and `uncertain` deliveries wait for an operator; then they are removed.
pub const INBOX_UNDECIDED_KEPT: Duration = Duration::from_hours(180 * 24);
/// How long token counts and released limits are kept.
pub const USAGE_KEPT: Duration = Duration::from_hours(400 * 24);
/// How long the last conclusion of a check is kept.
pub const CI_CONCLUSION_KEPT: Duration = Duration::from_hours(90 * 24);
/// Bytes of an argument that tmux is given; longer commands go through standard input (DI-15).
pub const TMUX_ARGUMENT_BYTES_MAX: usize = 8 << 10;
/// Characters of the WHAT part of a prompt's first line; the rest is cut (DI-25).
pub const PROMPT_WHAT_CHARS_MAX: usize = 80;
/// Characters of a comment on a ticket of the embedded tracker; a longer one is refused.
pub const TICKET_COMMENT_CHARS_MAX: usize = 65_536;
/// A temporary file of ours that is older was left by a crash and is removed (ST-20).
pub const STALE_TEMPORARY_AGE: Duration = Duration::from_mins(10);
/// Between two looks at a lock that another holds; the wait for it doubles up to this (ST-25).
pub const LOCK_POLL_MAX: Duration = Duration::from_millis(100);
/// After this long a verb that waits for a lock says who holds it (SE-9).
pub const LOCK_NOTE_AFTER: Duration = Duration::from_secs(1);
/// Tries to take a service lock whose file is replaced meanwhile (ST-26).
pub const SERVICE_LOCK_TRIES: usize = 5;
