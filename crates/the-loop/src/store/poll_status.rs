//! What the poller did last, for `status` (IN-52). Derived: losing it costs nothing.

use serde::{Deserialize, Serialize};
use the_loop_core::time::Timestamp;

use super::layout::Layout;
use crate::world::World;

/// Bytes of the file.
const BYTES_MAX: u64 = 64 << 10;

/// The file `poll-status.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PollStatus {
    /// When this run of the poller began.
    pub started_at: Timestamp,
    /// When its last cycle ended; `None` before the first.
    pub last_cycle_at: Option<Timestamp>,
    /// Seconds between two cycles.
    pub interval_seconds: u32,
    /// Until when no host takes calls from it.
    #[serde(default)]
    pub waiting_for_quota_until: Option<Timestamp>,
    /// What the last cycle came to.
    pub last_cycle: Option<LastCycle>,
}

/// Counts of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LastCycle {
    /// Items whose rows or threads were looked at.
    pub items_seen: u64,
    /// Items for which a session was asked.
    pub spawns: u64,
    /// Words and results that were put into the inbox.
    pub comments_forwarded: u64,
    /// Items that were found to have ended.
    pub closures: u64,
    /// Deliveries of `poll --once` that failed or were given up.
    pub failures: u64,
    /// Items and repositories that met an error.
    pub errors: u64,
    /// It was told to end, or a host took no more calls.
    pub interrupted: bool,
}

impl PollStatus {
    /// Reads it; `None` when there is none that can be read.
    pub fn read(world: &World, layout: &Layout) -> Option<Self> {
        let bytes = world.disk.read(&layout.poll_status(), BYTES_MAX).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Writes it, without waiting for the disk. A failure costs nothing.
    pub fn write(&self, world: &World, layout: &Layout) {
        let bytes = the_loop_core::record::to_bytes(&serde_json::json!(self));
        let written = world
            .disk
            .write_atomic(&layout.poll_status(), &bytes, false);
        if let Err(error) = written {
            tracing::warn!(%error, "what the poller did cannot be written down");
        }
    }
}
