//! Runs the effects the dispatch machine asks for, one at a time, and says what was seen.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::dispatch::{Effect, Launch, Seen};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::record::SessionRecord;
use the_loop_core::time::Timestamp;

use super::Engine;
use super::agent::Agent;
use super::choose::Choice;
use super::item::{Gathered, Job};
use super::slots::Slot;
use crate::clock::Clock;
use crate::harness::adapter::Adapter;
use crate::process::ProcessId;
use crate::store::lock::ItemLock;
use crate::tmux::Tmux;

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
        Ok(panes
            .iter()
            .find(|pane| !pane.dead)
            .and_then(|pane| self.engine.marked(pane.pid, &self.gathered.item)))
    }
}
