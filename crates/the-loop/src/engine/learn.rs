//! The id of a conversation that its harness chose (DI-33).
//!
//! It is looked for while a launch is awaited, at every supervision and before a session is brought back;
//! a crash in between loses nothing, because the next look finds the same. It is written under the item's
//! lock, and only when no other session has it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use the_loop_core::ids::HarnessSessionId;
use the_loop_core::record::{Endpoint, SessionRecord};
use the_loop_core::time::Timestamp;

use super::agent::Agent;
use super::item::Gathered;
use super::perform::Performer;
use super::{Engine, lock};
use crate::harness::adapter::Adapter;
use crate::store::lock::{ItemLock, Patience};
use crate::store::registry::Registered;
use crate::tmux::View;

/// How often supervision looks for an id that has not shown.
const LEARN_AGAIN_AFTER: Duration = Duration::from_secs(3);

/// What other sessions have.
#[derive(Default)]
struct Others {
    taken: Vec<HarnessSessionId>,
    rivals: Vec<Timestamp>,
}

impl Performer<'_> {
    /// Learns the conversation's id when it shows now.
    pub(super) fn learn(&mut self) {
        if !unknown_yet(&self.gathered, &self.adapter) {
            return;
        }
        let view = if self.adapter.learns_from_screen() {
            self.view().ok().flatten()
        } else {
            None
        };
        let (engine, held) = (self.engine, self.held);
        engine.learn(
            held,
            &mut self.gathered,
            &self.adapter,
            &self.agent,
            view.as_ref(),
        );
    }
}

impl Engine {
    /// Learns the id of the item's conversation when it shows now; `true` when it is known since.
    pub(super) fn learn(
        &self,
        held: &ItemLock,
        gathered: &mut Gathered,
        adapter: &Adapter,
        agent: &Arc<Mutex<Agent>>,
        view: Option<&View>,
    ) -> bool {
        if !unknown_yet(gathered, adapter) {
            return false;
        }
        let now = self.world().clock.now();
        // Without a first hint the other records need not be read.
        if lock(agent).learn(now, view, &[], &[]).is_none() {
            return false;
        }
        let others = self.others(gathered, adapter);
        let found = lock(agent).learn(now, view, &others.taken, &others.rivals);
        let Some(id) = found.filter(|id| !others.taken.contains(id)) else {
            return false;
        };
        let Ok(Some(found)) = self.0.registry.get(&gathered.item) else {
            return false;
        };
        let mut record = found.record;
        id.as_str().clone_into(&mut record.harness_session_id);
        if self.0.registry.put(held, &gathered.slug, &record).is_err() {
            return false;
        }
        tracing::info!(item = %gathered.item, harness = adapter.name(), "the conversation's id is known");
        if let Some(known) = &mut gathered.record {
            known.harness_session_id = record.harness_session_id;
        }
        lock(agent).learnt(id);
        true
    }

    /// Learns late what a crash or a slow harness kept from us: before the session is judged.
    pub(super) fn learn_late(&self, held: &ItemLock, gathered: &mut Gathered) {
        let adapter = gathered
            .live()
            .and_then(|record| self.adapters(&gathered.settings).named(&record.harness));
        let Some(adapter) = adapter.filter(|adapter| unknown_yet(gathered, adapter)) else {
            return;
        };
        let agent = self.agent(gathered, &adapter);
        let view = if adapter.learns_from_screen() {
            let tmux = self.tmux_of(&gathered.settings, gathered.live());
            let (target, item) = (Self::target_of(gathered), &gathered.item);
            let recorded = gathered.live().and_then(|record| record.pid);
            let seen = self.look(&tmux, &target, item, recorded, &agent);
            seen.ok().flatten()
        } else {
            None
        };
        self.learn(held, gathered, &adapter, &agent, view.as_ref());
    }

    /// A look in passing at a session whose conversation is not known. An item that is worked on learns
    /// by itself.
    pub(super) fn learn_in_passing(
        &self,
        found: &Registered,
        adapter: &Adapter,
        agent: &Arc<Mutex<Agent>>,
    ) {
        if !adapter.learns_id() || found.record.conversation().is_some() {
            return;
        }
        let now = self.world().clock.now();
        let tried = lock(agent).said.learning_at;
        if tried.is_some_and(|at| now >= at && now.since(at) < LEARN_AGAIN_AFTER) {
            return;
        }
        lock(agent).said.learning_at = Some(now);
        let item = &found.record.item;
        let Ok(held) = self.0.locks.item(item, "learn", Patience::none()) else {
            return;
        };
        if let Ok(mut gathered) = self.gather(&held, item, self.settings()) {
            self.learn_late(&held, &mut gathered);
        }
    }

    /// What the other sessions of this machine have.
    fn others(&self, gathered: &Gathered, adapter: &Adapter) -> Others {
        let mut others = Others::default();
        let listing = self.0.registry.list();
        for found in listing.map(|l| l.records).unwrap_or_default() {
            let endpoints = found.record.pull_requests.iter();
            let endpoints = endpoints.filter_map(|endpoint| match endpoint {
                Endpoint::Session(record) => Some(&**record),
                Endpoint::Unreadable(_) => None,
            });
            for record in std::iter::once(&found.record).chain(endpoints) {
                if record.item.key() != gathered.key {
                    others.add(record, adapter);
                }
            }
        }
        others
    }
}

impl Others {
    fn add(&mut self, record: &SessionRecord, adapter: &Adapter) {
        match record.conversation() {
            Some(id) => self.taken.push(id),
            None if record.status.is_live() && record.harness == adapter.name() => {
                self.rivals.push(record.launch_began_at());
            }
            None => {}
        }
    }
}

fn unknown_yet(gathered: &Gathered, adapter: &Adapter) -> bool {
    let unknown = |record: &SessionRecord| record.conversation().is_none();
    adapter.learns_id() && gathered.live().is_some_and(unknown)
}
