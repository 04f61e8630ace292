//! Agents that need somebody: they wait for a person, or work without a sign of life (DI-31, DI-32).

use std::time::Duration;

use the_loop_core::attention::{Quiet, Signs, Wait, children_due, listen, wait};
use the_loop_core::config::InteractionMode;
use the_loop_core::confirm::{AgentState, Observation, ObservationSource, WaitingKind};
use the_loop_core::event::{CommentKind, LogEvent, WaitingKind as WaitingWord};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::prompt::comment;
use the_loop_core::time::Timestamp;

use super::agent::Agent;
use super::item::Gathered;
use super::{Engine, lock};
use crate::harness::hook::{self, HookLine, OPERATOR_RESUME};
use crate::store::inbox::Attention;
use crate::tmux::Pane;

/// Whether an agent needs somebody, and what people were told of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    wait: Option<Wait>,
    quiet: Option<Quiet>,
    /// What the inbox holds; `None` before it was asked.
    kept: Option<Attention>,
}

/// What has to be told now.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    waits: Option<WaitingKind>,
    /// Name of the dialog that it waits at, where it is a known one.
    dialog: Option<String>,
    stalled: Option<Duration>,
    keep: Option<Attention>,
}

impl Engine {
    /// Follows an agent's waits and silences with one more look at it.
    pub(super) fn attend(
        &self,
        gathered: &Gathered,
        agent: &mut Agent,
        seen: Option<Observation>,
        pane: Option<&Pane>,
        now: Timestamp,
    ) -> News {
        let routing = &gathered.settings.routing;
        let after = Duration::from_secs(u64::from(routing.attention.after_seconds));
        let limit = Duration::from_secs(u64::from(routing.limits.stall_minutes) * 60);
        let state = seen.map_or(AgentState::Unknown, |seen| seen.state);
        let signs = self.signs(agent, state, pane, now, limit);
        let mut needs = agent.needs;
        if needs.kept.is_none() {
            self.remember_told(gathered, &mut needs, signs, now);
        }
        // Only a hook tells when a question was asked; every other source is asked since when it stands.
        let asked = match (seen, agent.standing()) {
            (Some(seen), Some(standing)) if seen.source != ObservationSource::Hook => {
                Some(Observation {
                    at: standing.at,
                    ..seen
                })
            }
            (seen, _) => seen,
        };
        let waited = wait(needs.wait, asked.filter(|_| pane.is_some()), now, after);
        let listened = listen(needs.quiet, state, signs, now, limit);
        (needs.wait, needs.quiet) = (waited.wait, listened.quiet);
        let told = Attention {
            wait: needs
                .wait
                .filter(|wait| wait.told)
                .map(|wait| (wait.kind, wait.since)),
            stalled: needs
                .quiet
                .filter(|quiet| quiet.told)
                .map(|quiet| (quiet.since, quiet.signs)),
        };
        let is_news = needs.kept.is_some_and(|kept| !is_same(kept, told));
        if is_news {
            needs.kept = Some(told);
        }
        agent.needs = needs;
        News {
            waits: needs.wait.filter(|_| waited.tell).map(|wait| wait.kind),
            dialog: agent.dialog().filter(|_| waited.tell),
            stalled: needs
                .quiet
                .filter(|_| listened.tell)
                .map(|quiet| now.since(quiet.since)),
            keep: is_news.then_some(told),
        }
    }

    fn signs(
        &self,
        agent: &Agent,
        state: AgentState,
        pane: Option<&Pane>,
        now: Timestamp,
        limit: Duration,
    ) -> Signs {
        let grown = agent.growth();
        let due =
            state == AgentState::Working && children_due(agent.needs.quiet.as_ref(), now, limit);
        let pid = pane.map(|pane| pane.pid).filter(|_| due);
        Signs {
            transcript_len: grown.len,
            transcript_at: grown.modified_ms,
            output_at: pane.and_then(|pane| pane.output_at),
            child_ticks: pid.and_then(|pid| self.world().processes.child_ticks(pid)),
        }
    }

    /// What an earlier run told people is not told again while it goes on.
    fn remember_told(&self, gathered: &Gathered, needs: &mut Needs, signs: Signs, now: Timestamp) {
        let Ok(kept) = self.0.parts.inbox.attention(&gathered.key) else {
            return;
        };
        needs.kept = Some(kept);
        needs.wait = needs.wait.or(kept.wait.map(|(kind, since)| Wait {
            kind,
            since,
            told: true,
        }));
        needs.quiet = kept.stalled.map(|(since, before)| Quiet {
            signs: Signs {
                child_ticks: signs.child_ticks,
                ..before
            },
            children_at: now,
            since,
            told: true,
        });
    }

    /// Tells people, then keeps that they were told: a notice twice is better than none.
    pub(super) fn tell_news(
        &self,
        gathered: &Gathered,
        news: News,
        target: &TmuxTarget,
        harness: &str,
    ) {
        if let Some(kind) = news.waits {
            self.tell_waiting(gathered, kind, news.dialog.clone(), target, harness);
        }
        if let Some(quiet) = news.stalled {
            self.emit(LogEvent::SessionStalled {
                work_item: gathered.item.clone(),
                endpoint: None,
                harness: harness.to_owned(),
                waited_ms: u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX),
            });
        }
        if let Some(told) = news.keep {
            let _ = self.0.parts.inbox.set_attention(&gathered.key, told);
        }
    }

    fn tell_waiting(
        &self,
        gathered: &Gathered,
        kind: WaitingKind,
        dialog: Option<String>,
        target: &TmuxTarget,
        harness: &str,
    ) {
        let (word, on_ticket) = match kind {
            WaitingKind::Permission => (WaitingWord::Permission, true),
            WaitingKind::Question => (WaitingWord::Question, true),
            WaitingKind::Dialog => (WaitingWord::Dialog, true),
            WaitingKind::UsageLimit => (WaitingWord::UsageLimit, false),
            WaitingKind::Login => (WaitingWord::Login, false),
        };
        self.emit(LogEvent::SessionWaiting {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness: harness.to_owned(),
            kind: word,
            summary: dialog,
        });
        let mode = gathered.settings.routing.interaction.mode;
        if on_ticket && mode == InteractionMode::WorkItem {
            let socket = gathered
                .record
                .as_ref()
                .and_then(|r| r.tmux_socket.clone())
                .unwrap_or_default();
            let text = comment::waiting(kind.as_str(), target, &socket);
            if let Err(why) = self.tell(&gathered.item, CommentKind::Waiting, &text) {
                tracing::debug!(item = %gathered.item, "the wait is not on the ticket: {why}");
            }
        }
    }
}

impl Engine {
    /// Lets deliveries through again that wait for the end of a usage limit or for a login: an operator
    /// says that it is over (DI-42). False when the agent waits for neither.
    pub(super) fn lift_bar(&self, gathered: &Gathered) -> bool {
        let Some(record) = gathered.live() else {
            return false;
        };
        let Some(adapter) = self.adapters(&gathered.settings).named(&record.harness) else {
            return false;
        };
        let agent = self.agent(gathered, &adapter);
        let now = self.world().clock.now();
        if !lock(&agent).state(now, None).is_barred() {
            return false;
        }
        let mut line = HookLine::from_input(now, OPERATOR_RESUME, &serde_json::Value::Null);
        line.session_id.clone_from(&record.harness_session_id);
        let file = self.0.parts.layout.hook_file(&gathered.slug);
        hook::append(self.world(), &file, &line);
        !lock(&agent).state(now, None).is_barred()
    }
}

/// The processor time of children changes without being news.
fn is_same(kept: Attention, told: Attention) -> bool {
    let stalled = |of: Attention| of.stalled.map(|(since, _)| since);
    kept.wait == told.wait && stalled(kept) == stalled(told)
}
