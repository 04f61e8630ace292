//! `sessions restart`: which sessions are relaunched, and what became of each (SE-57, SE-58, SE-61).

use std::time::Duration;

use the_loop_core::confirm::Composer;
use the_loop_core::delivery::State;
use the_loop_core::environment::{Declared, Facts, Pane, RowOutcome, Verdict, decide, turn_of};
use the_loop_core::event::{RestartOutcome, RestartSkipped};
use the_loop_core::ids::{TmuxTarget, WorkItemRef};
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;

use super::drift::environment_of;
use super::examine::Settled;
use super::item::Gathered;
use super::relaunch::NotUp;
use super::{Engine, lock};
use crate::harness::adapter::Adapter;
use crate::process::NoAnswer;
use crate::store::inbox::Seq;
use crate::store::lock::ItemLock;
use crate::store::registry::Registered;
use crate::tmux::{Spot, Tmux, View, agent_pane};

/// A session that may be relaunched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestartTarget {
    /// The item whose record and lock it is.
    pub item: WorkItemRef,
    /// The pull request whose own session is meant, in the item's record.
    pub endpoint: Option<WorkItemRef>,
}

impl RestartTarget {
    /// The ref of the session.
    pub fn session(&self) -> &WorkItemRef {
        self.endpoint.as_ref().unwrap_or(&self.item)
    }
}

/// How sessions are to be relaunched.
#[derive(Clone, Copy, Debug)]
pub struct RestartWish<'a> {
    /// What they are to hold afterwards.
    pub declared: &'a Declared,
    /// Although somebody's words are in the input box.
    pub force: bool,
    /// Not in the middle of a turn; how long that was waited for.
    pub when_idle: Option<Duration>,
    /// Who asked.
    pub actor: &'a str,
}

/// What became of a session (SE-61).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restarted {
    /// Its tmux session, when one is recorded.
    pub tmux_target: Option<String>,
    /// How it ended.
    pub outcome: RowOutcome,
    /// Why it was skipped.
    pub reason: Option<RestartSkipped>,
    /// In words; no value of a variable in them.
    pub detail: String,
    /// Names of variables of which it holds another value.
    pub stale: Vec<String>,
    /// The delivery that tells an agent which was cut off to go on.
    pub told: Option<Seq>,
}

/// A session as it was found.
pub(super) struct Found {
    pub gathered: Gathered,
    /// The record of the item, when the session is that of a pull request in it.
    pub parent: Option<Registered>,
}

/// What was seen of it.
pub(super) struct Looked {
    pub facts: Facts,
    pub tmux: Tmux,
    pub adapter: Option<Adapter>,
    /// The pane the-loop started, as far as that can be told.
    pub pane: Option<crate::tmux::Pane>,
    /// Pids of every live pane.
    pub live: Vec<i32>,
}

impl Restarted {
    pub(super) fn done(target: Option<String>, outcome: RestartOutcome, detail: String) -> Self {
        Self {
            tmux_target: target,
            outcome: RowOutcome::Done(outcome),
            reason: None,
            detail,
            stale: Vec::new(),
            told: None,
        }
    }

    /// Something stopped it before anything was done to the session.
    pub fn failed(why: impl Into<String>) -> Self {
        Self::done(None, RestartOutcome::Failed, why.into())
    }

    fn skipped(found: Option<&Found>, why: RestartSkipped, wish: &RestartWish<'_>) -> Self {
        let record = found.and_then(|found| found.gathered.record.as_ref());
        let harness = record.map_or("its harness", |record| record.harness.as_str());
        let waited = wish.when_idle.unwrap_or_default().as_secs();
        let detail = match why {
            RestartSkipped::NotRegistered => "no registered session".to_owned(),
            RestartSkipped::NotLive => "not running; never started here".to_owned(),
            RestartSkipped::NoConversation => "no resumable conversation; left running".to_owned(),
            RestartSkipped::NotResumable => {
                format!("{harness} cannot take up a conversation; left running")
            }
            RestartSkipped::Draft => {
                "somebody's words are in its input box; left running (--force)".to_owned()
            }
            RestartSkipped::Typing => "somebody types in it; left running (--force)".to_owned(),
            RestartSkipped::Working => format!("still working after {waited} s; left running"),
            RestartSkipped::TmuxUnanswered => "tmux gave no answer; left running".to_owned(),
        };
        Self {
            reason: Some(why),
            ..Self::done(target_of(record), RestartOutcome::Skipped, detail)
        }
    }
}

fn target_of(record: Option<&SessionRecord>) -> Option<String> {
    let target = record.map(|record| record.tmux_target.clone());
    target.filter(|target| !target.is_empty())
}

impl Engine {
    /// What [`Engine::restart`] would do: looks and decides, and changes nothing (R2.4). Without the item's
    /// lock, so what it says may be over when it is read.
    pub fn would_restart(&self, target: &RestartTarget, wish: &RestartWish<'_>) -> Restarted {
        let found = match self.find_session(target) {
            Ok(Some(found)) => found,
            Ok(None) => return Restarted::skipped(None, RestartSkipped::NotRegistered, wish),
            Err(why) => return Restarted::failed(why),
        };
        let looked = self.look_before_restart(&found);
        if let Err(why) = decide(looked.facts, wish.force, wish.when_idle.is_some()) {
            Restarted::skipped(Some(&found), why, wish)
        } else {
            let record = found.gathered.record.as_ref();
            let recorded = record.and_then(|record| record.pid);
            let verdict = environment_of(self.world(), wish.declared, recorded, &looked.live);
            Restarted {
                tmux_target: target_of(record),
                outcome: RowOutcome::WouldRestart,
                reason: None,
                detail: verdict.as_str().to_owned(),
                stale: verdict.names(),
                told: None,
            }
        }
    }

    /// Relaunches a session in its own pane with what the env file declares, and looks whether the new
    /// process holds it. Under the item's lock; a session that is skipped goes on as it is (SE-58).
    pub fn restart(
        &self,
        held: &ItemLock,
        target: &RestartTarget,
        wish: &RestartWish<'_>,
    ) -> Restarted {
        let mut found = match self.find_session(target) {
            Ok(Some(found)) => found,
            Ok(None) => return Restarted::skipped(None, RestartSkipped::NotRegistered, wish),
            Err(why) => return Restarted::failed(why),
        };
        if target.endpoint.is_none() && is_starting(&found) {
            // Nobody holds the item, so whoever journaled this start is gone (ST-42).
            match self.settle_starting(held, &found.gathered) {
                Settled::Unknown => {
                    let why = RestartSkipped::TmuxUnanswered;
                    return Restarted::skipped(Some(&found), why, wish);
                }
                Settled::Adopted | Settled::Kept | Settled::TakenBack => {}
            }
            found = match self.find_session(target) {
                Ok(Some(found)) => found,
                Ok(None) => return Restarted::skipped(None, RestartSkipped::NotRegistered, wish),
                Err(why) => return Restarted::failed(why),
            };
        }
        let looked = self.look_before_restart(&found);
        if let Err(why) = decide(looked.facts, wish.force, wish.when_idle.is_some()) {
            return Restarted::skipped(Some(&found), why, wish);
        }
        let tmux_target = target_of(found.gathered.record.as_ref());
        let up = match self.relaunch(held, &mut found, &looked, wish.actor) {
            Ok(up) => up,
            Err(NotUp::Unanswered) => {
                return Restarted::skipped(Some(&found), RestartSkipped::TmuxUnanswered, wish);
            }
            Err(NotUp::LeftRunning(why)) => {
                let detail = format!("{why}; left running");
                return Restarted::done(tmux_target, RestartOutcome::Failed, detail);
            }
            Err(NotUp::Unsure(why)) => {
                return Restarted::done(tmux_target, RestartOutcome::Failed, why);
            }
            Err(NotUp::Lost(why)) => {
                let detail = format!("{why}; its next event recovers it");
                return Restarted::done(tmux_target, RestartOutcome::Failed, detail);
            }
        };
        let held_now = self.environ_of_ours(up.pid);
        let verdict = wish.declared.verdict(&[held_now]);
        let (outcome, detail) = match &verdict {
            Verdict::Fresh => {
                let on = if up.told.is_some() {
                    ", told to go on"
                } else {
                    ""
                };
                let was = up.was;
                let detail = format!("pid {was} to {}, conversation resumed{on}", up.pid);
                (RestartOutcome::Restarted, detail)
            }
            Verdict::Stale(differences) => {
                let words: Vec<String> = differences.iter().map(ToString::to_string).collect();
                (RestartOutcome::Stale, words.join(", "))
            }
            Verdict::Unverified => (
                RestartOutcome::Unverified,
                "its environment could not be read".to_owned(),
            ),
        };
        Restarted {
            stale: verdict.names(),
            told: up.told,
            ..Restarted::done(tmux_target, outcome, detail)
        }
    }

    /// The session of a target; `None` when nobody registered it.
    fn find_session(&self, target: &RestartTarget) -> Result<Option<Found>, String> {
        let found = self.0.registry.get(&target.item).map_err(|fault| {
            self.say_corrupt(&fault);
            fault.to_string()
        })?;
        let Some(found) = found else { return Ok(None) };
        let Some(endpoint) = &target.endpoint else {
            let gathered = self.gathered_of(&found);
            return Ok(Some(Found {
                gathered,
                parent: None,
            }));
        };
        let record = found.record.endpoint(&endpoint.key()).cloned();
        Ok(record.map(|record| Found {
            gathered: self.gathered_of(&Registered {
                slug: record.item.slug(),
                file: found.file.clone(),
                record,
            }),
            parent: Some(found),
        }))
    }

    fn look_before_restart(&self, found: &Found) -> Looked {
        let gathered = &found.gathered;
        let record = gathered.record.as_ref();
        let target = record.and_then(SessionRecord::target);
        let tmux = self.tmux_of(&gathered.settings, record);
        let adapter =
            record.and_then(|record| self.adapters(&gathered.settings).named(&record.harness));
        let mut looked = Looked {
            facts: Facts {
                registered: record.is_some(),
                live_record: gathered.live().is_some(),
                conversation: record.is_some_and(|record| record.conversation().is_some()),
                resumable: adapter.as_ref().is_some_and(Adapter::can_resume),
                pane: Pane::NotLive,
                draft: false,
                typing: false,
                turn: the_loop_core::environment::Turn::Over,
            },
            tmux,
            adapter,
            pane: None,
            live: Vec::new(),
        };
        if let (true, Some(target)) = (looked.facts.live_record, target)
            && self.look_at_panes(gathered, &target, &mut looked).is_err()
        {
            looked.facts.pane = Pane::Unanswered;
        }
        looked
    }

    fn look_at_panes(
        &self,
        gathered: &Gathered,
        target: &TmuxTarget,
        looked: &mut Looked,
    ) -> Result<(), NoAnswer> {
        let panes = looked.tmux.panes(target)?;
        let live = panes.iter().filter(|pane| !pane.dead);
        looked.live = live.map(|pane| pane.pid).collect();
        let recorded = gathered.record.as_ref().and_then(|record| record.pid);
        let is_ours = |pid| self.marked(pid, &gathered.item).is_some();
        // What a person runs in a pane beside the agent's is not for us to replace.
        let pane = agent_pane(&panes, recorded, is_ours).filter(|pane| !pane.dead);
        let Some(pane) = pane else { return Ok(()) };
        looked.facts.pane = Pane::Live;
        looked.pane = Some(pane.clone());
        let Some(adapter) = looked.adapter.clone() else {
            return Ok(());
        };
        let view = looked.tmux.view(Spot::of(target, pane))?;
        let agent = self.agent(gathered, &adapter);
        let mut agent = lock(&agent);
        let now = self.world().clock.now();
        looked.facts.turn = turn_of(agent.state(now, view.as_ref()));
        if agent.has_transcript() == Some(false) {
            looked.facts.conversation = false;
        }
        if let Some(view) = &view {
            looked.facts.typing = self.is_typing(gathered, view);
            let drafts = agent.composer(view, now, None) == Composer::Draft;
            // What we pasted and did not submit is looked into afterwards like any attempt (DI-43).
            let is_ours = || {
                let rows = self.0.parts.inbox.open_outcomes(&gathered.key);
                let mut tried = rows
                    .unwrap_or_default()
                    .into_iter()
                    .filter(|row| matches!(row.state, State::Sending | State::Pasted));
                tried.any(|row| {
                    let marker = row.marker.as_ref();
                    marker.is_some() && agent.composer(view, now, marker) == Composer::Ours
                })
            };
            looked.facts.draft = drafts && !is_ours();
        }
        Ok(())
    }

    /// Did a client that may write do so a moment ago (DI-27)?
    fn is_typing(&self, gathered: &Gathered, view: &View) -> bool {
        let quiet = gathered.settings.routing.tmux.typing_hold_seconds;
        view.is_typed_into(self.world().clock.now(), quiet)
    }
}

fn is_starting(found: &Found) -> bool {
    let record = found.gathered.record.as_ref();
    record.is_some_and(|record| record.status == SessionStatus::Starting)
}
