//! Runs the effects the dispatch machine asks for, one at a time, and says what was seen.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::dispatch::{Effect, Launch, Seen};
use the_loop_core::ids::{TmuxTarget, WorkItemRef};
use the_loop_core::record::SessionRecord;
use the_loop_core::time::Timestamp;

use super::agent::Agent;
use super::choose::Choice;
use super::item::{Gathered, Job};
use super::slots::Slot;
use super::{Engine, lock};
use crate::clock::Clock;
use crate::harness::adapter::Adapter;
use crate::process::ProcessId;
use crate::store::lock::ItemLock;
use crate::tmux::{Spot, Tmux, View, agent_pane};

/// How often a file is looked at while something is awaited.
pub(super) const GLANCE: Duration = Duration::from_millis(15);
/// How often tmux is asked while something is awaited.
pub(super) const LOOK: Duration = Duration::from_millis(500);
/// How often a wait asks whether a verb that ends things wants the item (ST-25).
pub(super) const WANTED: Duration = Duration::from_millis(250);
/// Lines of a dead pane that an event may show (EV-18).
pub(super) const TAIL_LINES: usize = 20;

/// One dispatch in progress.
pub(super) struct Performer<'a> {
    pub engine: &'a Engine,
    pub held: &'a ItemLock,
    pub gathered: Gathered,
    pub job: Option<Job>,
    pub adapter: Adapter,
    /// Why there is no harness to work with.
    pub why_none: Option<String>,
    /// What helps against the error, where that can be told.
    pub remedy: Option<String>,
    /// Which conversation was launched in this dispatch, when the launch did not carry the prompt.
    pub told_by_launch: Option<Launch>,
    pub target: TmuxTarget,
    pub tmux: Tmux,
    pub agent: Arc<Mutex<Agent>>,
    /// What went wrong, in words for the log.
    pub error: Option<String>,
    /// The last lines of a pane whose harness died.
    pub tail: Vec<String>,
    /// The session record as it was before a spawn was journaled.
    pub before: Option<SessionRecord>,
    /// A replacement was in hand when the session turned out to live.
    pub averted: bool,
    pub launch_file: Option<Utf8PathBuf>,
    pub launched: Option<ProcessId>,
    pub room: Option<super::limits::Reservation>,
    pub slot: Option<Slot>,
    pub began: Timestamp,
}

impl<'a> Performer<'a> {
    pub fn new(
        engine: &'a Engine,
        held: &'a ItemLock,
        gathered: Gathered,
        job: Option<Job>,
    ) -> Self {
        let settings = &gathered.settings;
        let Choice { adapter, why_none } = engine.choose(&gathered, job.as_ref());
        let tmux = engine.tmux_of(settings, gathered.live());
        let target = Engine::target_of(&gathered);
        let agent = engine.agent(&gathered, &adapter);
        let began = engine.world().clock.now();
        Self {
            engine,
            held,
            before: gathered.record.clone(),
            gathered,
            job,
            adapter,
            why_none,
            remedy: None,
            told_by_launch: None,
            target,
            tmux,
            agent,
            error: None,
            tail: Vec::new(),
            averted: false,
            launch_file: None,
            launched: None,
            room: None,
            slot: None,
            began,
        }
    }

    pub(super) fn perform(&mut self, effect: Effect) -> Seen {
        // Slow waits give the slot back, so that they never keep another item from acting (DI-5).
        match effect {
            Effect::MakeWorkspace
            | Effect::ProveAlive { .. }
            | Effect::AwaitReady
            | Effect::Confirm => self.slot = None,
            Effect::Probe
            | Effect::Adopt
            | Effect::Observe
            | Effect::Send
            | Effect::SubmitAgain
            | Effect::RecordStarting { .. }
            | Effect::PrepareHarness { .. }
            | Effect::Clear(_)
            | Effect::Launch { .. }
            | Effect::TakeBack
            | Effect::RecordActive { .. } => {
                if self.slot.is_none() {
                    self.slot = Some(self.engine.0.slots.take());
                }
            }
        }
        match effect {
            Effect::Probe => Seen::Probe(self.tmux.probe(&self.target)),
            Effect::Adopt => Seen::Adopt(self.adopt()),
            Effect::Observe => Seen::Observe(self.observe()),
            Effect::Send => Seen::Send(self.send()),
            Effect::SubmitAgain => Seen::Send(self.submit_again()),
            Effect::Confirm => Seen::Confirm(self.confirm()),
            Effect::MakeWorkspace => Seen::Workspace(self.make_workspace()),
            Effect::RecordStarting { launch } => Seen::Journal(self.record_starting(launch)),
            Effect::PrepareHarness { .. } => Seen::Harness(self.prepare_harness()),
            Effect::Clear(proof) => Seen::Clear(self.clear(proof)),
            Effect::Launch { launch } => Seen::Launch(self.launch(launch)),
            Effect::ProveAlive { .. } => Seen::Alive(self.prove_alive()),
            Effect::RecordActive { launch, adopted } => {
                Seen::Journal(self.record_active(launch, adopted))
            }
            Effect::AwaitReady => Seen::Ready(self.await_ready()),
            Effect::TakeBack => Seen::Journal(self.take_journal_back()),
        }
    }

    pub fn clock(&self) -> &Clock {
        &self.engine.world().clock
    }

    pub fn now(&self) -> Timestamp {
        self.engine.world().clock.now()
    }

    /// The process in the pane, when it carries our mark for this very item.
    pub fn ours(&self) -> Result<Option<ProcessId>, ()> {
        let panes = self.tmux.panes(&self.target).map_err(|_| ())?;
        let mut live = panes.iter().filter(|pane| !pane.dead);
        Ok(live.find_map(|pane| self.engine.marked(pane.pid, &self.gathered.item)))
    }

    /// The agent's pane, as it was last seen.
    pub fn spot(&self) -> Spot {
        Spot {
            target: self.target.clone(),
            pane: lock(&self.agent).pane,
        }
    }

    /// A look at the agent's pane; `Ok(None)` when there is none, whatever else its session may hold.
    pub fn view(&self) -> Result<Option<View>, ()> {
        let record = self.gathered.record.as_ref();
        let launched = self.launched.map(|process| process.pid);
        let recorded = launched.or_else(|| record.and_then(|record| record.pid));
        let item = &self.gathered.item;
        self.engine
            .look(&self.tmux, &self.target, item, recorded, &self.agent)
    }
}

impl Engine {
    /// A look at the pane of an item's agent, which is the one with the recorded process or with our mark.
    /// Where it is not known, or holds another process by now, it is looked for first. `Ok(None)`: it is not
    /// there; `Err`: tmux did not say.
    pub(super) fn look(
        &self,
        tmux: &Tmux,
        target: &TmuxTarget,
        item: &WorkItemRef,
        recorded: Option<i32>,
        agent: &Mutex<Agent>,
    ) -> Result<Option<View>, ()> {
        let is_ours = |pid| self.marked(pid, item).is_some();
        let spot = |pane| Spot {
            target: target.clone(),
            pane,
        };
        let known = lock(agent).pane;
        if known.is_some()
            && let Some(view) = tmux.view(spot(known)).map_err(|_| ())?
            && recorded.is_none_or(|pid| pid == view.pane.pid || is_ours(view.pane.pid))
        {
            return Ok(Some(view));
        }
        let panes = tmux.panes(target).map_err(|_| ())?;
        let found = agent_pane(&panes, recorded, is_ours).map(|pane| pane.id);
        lock(agent).pane = found;
        match found {
            Some(_) => tmux.view(spot(found)).map_err(|_| ()),
            None => Ok(None),
        }
    }
}
