//! Attempts whose end nobody saw: said once, and decided by what is heard of them later (DI-43).

use the_loop_core::delivery::State;
use the_loop_core::event::{LogEvent, UncertainNext, UncertainReason};
use the_loop_core::ids::WorkItemRef;

use super::item::{Gathered, Job};
use super::{Engine, lock};
use crate::store::inbox::{ListFilter, States};
use crate::store::lock::Patience;

/// The reason of a doubtful delivery that the configuration has sent once more.
pub(super) const RESEND: &str = "resend";

impl Engine {
    /// What the last run left in doubt: attempts that were under way are looked into as their items come
    /// up and said now; those that were said to be uncertain are remembered, so that their end is said.
    pub(super) fn note_doubts(&self) {
        let filter = ListFilter {
            states: States::These(vec![State::Sending, State::Uncertain, State::Queued]),
            ..ListFilter::default()
        };
        for row in self.0.parts.inbox.list(&filter).unwrap_or_default() {
            let item = row.item.as_ref().map(|item| item.parse::<WorkItemRef>());
            let Some(Ok(item)) = item else {
                continue;
            };
            let was_said = row.state == State::Uncertain
                || (row.state == State::Queued && row.reason.as_deref() == Some(RESEND));
            if was_said || row.state == State::Sending {
                lock(&self.0.doubtful).insert(row.seq);
            }
            if row.state == State::Uncertain {
                lock(&self.0.in_doubt).insert(item.key());
            }
            if row.state == State::Sending {
                self.emit(LogEvent::DeliveryUncertain {
                    work_item: item,
                    endpoint: None,
                    delivery_id: row.delivery_id.clone(),
                    reason: UncertainReason::NoOutcome,
                    intent_at: row.updated_at,
                    next: UncertainNext::Transcript,
                });
            }
        }
    }

    /// An agent may show only later that it took a prompt that was left uncertain, for one that is busy
    /// writes it down when its turn comes. Such a prompt is confirmed as any other.
    pub(super) fn hear_of_doubts(&self, gathered: &Gathered) {
        if !lock(&self.0.in_doubt).contains(&gathered.key) {
            return;
        }
        let Some(agent) = lock(&self.0.agents).get(&gathered.key).cloned() else {
            return;
        };
        let Ok(rows) = self.0.parts.inbox.open_outcomes(&gathered.key) else {
            return;
        };
        let mut left = false;
        for row in rows.into_iter().filter(|row| row.state == State::Uncertain) {
            let (Some(marker), Some(at)) = (row.marker.clone(), row.intent_at) else {
                continue;
            };
            let heard = lock(&agent).evidence(&marker, at).is_some();
            if !heard || !self.decide_doubt(&gathered.item, row.seq) {
                left = true;
            }
        }
        if !left {
            lock(&self.0.in_doubt).remove(&gathered.key);
        }
    }

    /// Confirms it under the item's lock, on what is on disk now; false when that has to wait.
    fn decide_doubt(&self, item: &WorkItemRef, seq: crate::store::inbox::Seq) -> bool {
        let Ok(held) = self.0.locks.item(item, "examine", Patience::none()) else {
            return false;
        };
        let Ok(gathered) = self.gather(&held, item, self.settings()) else {
            return false;
        };
        let Ok(Some(row)) = self.0.parts.inbox.outcome(seq, &gathered.key) else {
            return false;
        };
        // Somebody else decided it meanwhile.
        if row.state != State::Uncertain {
            return true;
        }
        let (Ok(delivery), Some(marker), Some(at)) =
            (row.delivery.clone(), row.marker.clone(), row.intent_at)
        else {
            return true;
        };
        let Some(agent) = lock(&self.0.agents).get(&gathered.key).cloned() else {
            return false;
        };
        let Some(by) = lock(&agent).evidence(&marker, at) else {
            return false;
        };
        self.confirmed(&held, &gathered, &Job { row, delivery }, by);
        true
    }
}
