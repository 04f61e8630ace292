//! The bounds of the receiver (IN-2). None can be configured; tests make them smaller.

use std::time::Duration;

/// Header fields of one request; one more is refused with 431.
pub(super) const HEADERS_MAX: usize = 64;

/// What one receiver takes on, and how long it waits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a body; refused with 413 at the first byte over.
    pub body_bytes: u64,
    /// Bytes of request line and header fields; refused with 431.
    pub head_bytes: usize,
    /// Connections held at once; one more is answered 503 and closed.
    pub connections: usize,
    /// From the beginning of a head to its end; then 408.
    pub head_time: Duration,
    /// From the end of the head to the end of the body; then 408.
    pub body_time: Duration,
    /// A connection that waits for its next request is closed without a word after this.
    pub idle_time: Duration,
    /// The inbox has this long to commit; then 503. GitHub gives up at 10 s.
    pub commit_time: Duration,
    /// Bytes of bodies held in memory over all connections. A body that finds no room waits for it
    /// within its own time.
    pub buffered_bytes: usize,
    /// A closed connection is read on for this long, so that its peer can take the answer.
    pub linger_time: Duration,
    /// Bytes read and thrown away meanwhile.
    pub linger_bytes: usize,
    /// A failing `accept` is tried again after this.
    pub accept_pause: Duration,
    /// Rejections of one reason are logged at most this often (IN-6).
    pub log_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 25 << 20,
            head_bytes: 16 << 10,
            connections: 256,
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(30),
            commit_time: Duration::from_secs(8),
            buffered_bytes: 256 << 20,
            linger_time: Duration::from_secs(1),
            linger_bytes: 4 << 20,
            accept_pause: Duration::from_millis(100),
            log_every: Duration::from_secs(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in2_the_numbers() {
        let limits = Limits::default();
        assert_eq!((limits.body_bytes, limits.head_bytes), (26_214_400, 16_384));
        assert_eq!((limits.connections, HEADERS_MAX), (256, 64));
        let seconds = [
            limits.head_time,
            limits.body_time,
            limits.idle_time,
            limits.commit_time,
        ];
        assert_eq!(seconds.map(|time| time.as_secs()), [10, 10, 30, 8]);
    }
}
