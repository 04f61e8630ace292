//! What was seen of an item: the section `poll` of its portable record (state page, section 6).

use std::time::Duration;

use serde_json::{Value, json};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::poll::{LEDGER, SEEN, SEEN_MAX};
use the_loop_core::record::Map;
use the_loop_core::time::Timestamp;

use super::{Fault, Poller};
use crate::store::lock::Patience;

/// How long an item's lock is waited for; an agent may be started under it meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);

/// The section as it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger(Map);

impl Ledger {
    /// Were these words delivered, or are they history?
    pub fn has_seen(&self, id: &str) -> bool {
        let seen = self.0.get(SEEN).and_then(Value::as_array);
        seen.is_some_and(|seen| seen.iter().any(|known| known.as_str() == Some(id)))
    }

    /// Was starting a session given up?
    pub fn gave_up(&self) -> bool {
        let spawn = self.0.get("spawn").and_then(|spawn| spawn.get("gaveUp"));
        spawn.and_then(Value::as_bool).unwrap_or(false)
    }
}

impl Poller {
    /// What was seen of an item; `None`: it never was looked at.
    pub(super) fn ledger(&self, item: &WorkItemRef) -> Result<Option<Ledger>, Fault> {
        let section = self.portable.section(item, LEDGER);
        let section = section.map_err(|fault| Fault::Ours(fault.to_string()))?;
        Ok(section.map(Ledger))
    }

    /// Begins the ledger of an item whose thread was read whole: these of its words are history.
    pub(super) fn begin_ledger(
        &self,
        item: &WorkItemRef,
        seen: &[String],
        now: Timestamp,
    ) -> Result<(), Fault> {
        let ours = |error: &dyn std::error::Error| Fault::Ours(error.to_string());
        let patience = Patience::of(PATIENCE);
        let held = self.locks.item(item, LEDGER, patience);
        let held = held.map_err(|e| ours(&e))?;
        let first = seen.len().saturating_sub(SEEN_MAX);
        let section = json!({
            SEEN: seen[first..],
            "commentAttempts": {},
            "spawn": {},
            "gaveUp": {},
            "lastPolledAt": now.seconds(),
        });
        let Value::Object(section) = section else {
            return Ok(());
        };
        let portable = &self.portable;
        let written = portable.write_section(&held, item, LEDGER, Some(section));
        written.map(drop).map_err(|e| ours(&e))
    }
}
