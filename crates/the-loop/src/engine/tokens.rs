//! Counting what agents use (DI-37).

use std::sync::Mutex;

use super::agent::Agent;
use super::item::Gathered;
use super::{Engine, lock};

impl Engine {
    /// Counts what came since the last look, so that a limit is compared with what is used now.
    pub(super) fn count_before_prompt(&self, gathered: &Gathered) {
        let limits = &gathered.settings.routing.limits;
        if limits.max_tokens_per_item == 0 && limits.max_tokens_per_day == 0 {
            return;
        }
        let agent = lock(&self.0.agents).get(&gathered.key).cloned();
        if let Some(agent) = agent {
            lock(&agent).last_look();
            self.count_tokens(gathered, &agent);
        }
    }

    /// Puts what the agent's transcript has told of tokens into the inbox, and parks what has reached its
    /// limit by it. What cannot be written now stays with the agent.
    pub(super) fn count_tokens(&self, gathered: &Gathered, agent: &Mutex<Agent>) {
        let Some(record) = &gathered.record else {
            return;
        };
        let conversation = &record.harness_session_id;
        if conversation.is_empty() {
            // It is counted when its id is learnt: what follows it then reads from the beginning.
            return;
        }
        let mut agent = lock(agent);
        let Some(last) = agent.uncounted().last() else {
            return;
        };
        let inbox = &self.0.parts.inbox;
        // Every process reads a transcript from its beginning; most of it was counted before.
        let known = inbox.counted(conversation);
        if known.is_ok_and(|known| last.running.beyond(known).is_zero()) {
            return agent.counted();
        }
        let counted = inbox.count_usage(&gathered.key, conversation, agent.uncounted());
        if counted.is_err() {
            return;
        }
        agent.counted();
        drop(agent);
        if let Some(reached) = self.over_tokens(&gathered.item, &gathered.settings) {
            self.park(&gathered.item, &gathered.settings, &reached);
        }
    }
}
