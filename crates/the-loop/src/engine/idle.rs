//! Ending agents that nobody has needed for a long time; their conversations are kept (DI-51).

use std::time::Duration;

use the_loop_core::attention::idle_over;
use the_loop_core::confirm::{AgentState, Observation};
use the_loop_core::event::LogEvent;
use the_loop_core::ids::TmuxTarget;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::item::Gathered;
use super::{Engine, lock};
use crate::store::lock::Patience;

impl Engine {
    /// Ends an agent that has been idle for `routing.limits.idleStopAfterHours`, on a worker of its own:
    /// an end may take its grace. One that something waits for is left alone.
    pub(super) fn stop_if_idle(
        &self,
        gathered: &Gathered,
        seen: Option<Observation>,
        now: Timestamp,
    ) {
        let hours = gathered.settings.routing.limits.idle_stop_after_hours;
        if idle_over(seen, now, hours).is_none() || self.has_work(gathered) {
            return;
        }
        if !lock(&self.0.in_hand).insert(gathered.key.clone()) {
            return;
        }
        let (engine, item, key) = (self.clone(), gathered.item.clone(), gathered.key.clone());
        let worker = move || {
            engine.stop_idle(&item);
            lock(&engine.0.in_hand).remove(&key);
            engine.wake();
        };
        let spawned = std::thread::Builder::new()
            .name(format!("idle {}", gathered.item))
            .spawn(worker);
        if spawned.is_err() {
            lock(&self.0.in_hand).remove(&gathered.key);
        }
    }

    fn has_work(&self, gathered: &Gathered) -> bool {
        let open = self.0.parts.inbox.open_outcomes(&gathered.key);
        open.is_ok_and(|open| !open.is_empty())
    }

    /// Looks again under the item's lock, at the screen as well: a draft or a person at the terminal is a
    /// reason to let it be.
    fn stop_idle(&self, item: &the_loop_core::ids::WorkItemRef) {
        let Ok(held) = self.0.locks.item(item, "idle", Patience::none()) else {
            return;
        };
        let Ok(gathered) = self.gather(&held, item, self.settings()) else {
            return;
        };
        let Some(record) = gathered
            .live()
            .filter(|record| record.status == SessionStatus::Active)
            .cloned()
        else {
            return;
        };
        let (Some(target), Some(adapter)) = (
            TmuxTarget::parse(&record.tmux_target),
            self.adapters(&gathered.settings).named(&record.harness),
        ) else {
            return;
        };
        // What could not be taken up again is not ended.
        if !adapter.can_resume() || record.conversation().is_none() || self.has_work(&gathered) {
            return;
        }
        let tmux = self.tmux_of(&gathered.settings, Some(&record));
        let agent = self.agent(&gathered, &adapter);
        let seen = self.look(&tmux, &target, &gathered.item, record.pid, &agent);
        let Ok(Some(view)) = seen else {
            return;
        };
        let now = self.world().clock.now();
        let idle = {
            let mut agent = lock(&agent);
            let limits = &gathered.settings.routing.limits;
            let idles = agent
                .observe(now, Some(&view), None)
                .is_some_and(|seen| matches!(seen.state, AgentState::Idle | AgentState::Ready));
            let seen = agent.standing().filter(|_| idles);
            let draft = agent.composer(&view, now, None).hold().is_some();
            let joined = view.clients.iter().any(|client| !client.read_only);
            idle_over(seen, now, limits.idle_stop_after_hours).filter(|_| !draft && !joined)
        };
        let Some(idle) = idle else { return };
        let mut stopped = record.clone();
        stopped.idle_stopped_at = Some(now);
        if self
            .0
            .registry
            .put(&held, &gathered.slug, &stopped)
            .is_err()
        {
            return;
        }
        // The mark comes first: the supervision tells by it that the end was wanted.
        let grace = gathered.settings.routing.tmux.harness_kill_grace_seconds;
        let grace = Duration::from_secs_f64(grace.max(0.0));
        if self
            .end_harness(&gathered.item, &tmux, &target, grace)
            .is_err()
        {
            let _ = self.0.registry.put(&held, &gathered.slug, &record);
            return;
        }
        self.emit(LogEvent::LimitIdleStopped {
            work_item: gathered.item.clone(),
            idle_hours: idle.as_secs() / 3600,
        });
    }
}
