//! The clock: the system's, or one that a test moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use the_loop_core::time::Timestamp;

/// Where "now" comes from, and the only way to wait for time to pass.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// A test's: stands still until it is moved; waiting moves it.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A manual clock that starts at `at`.
    pub fn manual(at: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(at.unix_ms())))
    }

    /// This moment.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::from_jiff(jiff::Timestamp::now()),
            Self::Manual(ms) => Timestamp::from_unix_ms(ms.load(Ordering::SeqCst)),
        }
    }

    /// Waits. On a manual clock this moves it and returns at once.
    pub fn wait(&self, by: Duration) {
        match self {
            Self::System => std::thread::sleep(by),
            Self::Manual(_) => self.advance(by),
        }
    }

    /// Moves a manual clock; the system's cannot be moved.
    pub fn advance(&self, by: Duration) {
        if let Self::Manual(ms) = self {
            ms.fetch_add(
                i64::try_from(by.as_millis()).unwrap_or(i64::MAX),
                Ordering::SeqCst,
            );
        }
    }
}

/// The end of a wait. On the system's clock it is monotonic: a corrected wall clock neither cuts a wait
/// short nor draws it out.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(End);

#[derive(Clone, Copy, Debug)]
enum End {
    System(std::time::Instant),
    Manual(i64),
}

impl Clock {
    /// The end of a wait that begins now.
    pub fn deadline(&self, after: Duration) -> Deadline {
        Deadline(match self {
            Self::System => End::System(std::time::Instant::now() + after),
            Self::Manual(ms) => {
                let after = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
                End::Manual(ms.load(Ordering::SeqCst).saturating_add(after))
            }
        })
    }

    /// Has that wait come to its end?
    pub fn is_over(&self, deadline: &Deadline) -> bool {
        match deadline.0 {
            End::System(at) => std::time::Instant::now() >= at,
            End::Manual(at) => self.now().unix_ms() >= at,
        }
    }
}
