//! Effects on a live session: look, paste, submit, hear of it (DI-27 to DI-29).

use std::time::Duration;

use the_loop_core::config::pattern::Confirms;
use the_loop_core::confirm::{By, Composer};
use the_loop_core::delivery::State;
use the_loop_core::dispatch::{Confirmation, HoldReason, Observed, Sent, Unproven};
use the_loop_core::event::{LogEvent, SilentNext, UnconfirmedNext};
use the_loop_core::probe::TmuxState;
use the_loop_core::time::Timestamp;

use super::agent::screen;
use super::item::Job;
use super::lock;
use super::perform::{GLANCE, LOOK, Performer, WANTED};
use crate::store::inbox::OutcomeChange;
use crate::tmux::{TmuxError, View};

impl Performer<'_> {
    /// Everything DI-27 asks before a paste.
    pub(super) fn observe(&mut self) -> Observed {
        let view = match self.view() {
            Err(()) => return Observed::Unanswered,
            Ok(None) => return self.without_a_pane(),
            Ok(Some(view)) => view,
        };
        if view.pane.dead {
            return if view.others_live {
                Observed::MustWait(HoldReason::NotReady)
            } else {
                Observed::Gone
            };
        }
        if view.pane.in_mode {
            let writable = view.clients.iter().any(|client| !client.read_only);
            if writable || self.tmux.leave_mode(self.spot()).is_err() {
                return Observed::MustWait(HoldReason::CopyMode);
            }
        }
        match self.must_wait(&view) {
            Some(reason) => Observed::MustWait(reason),
            None => Observed::CanTake,
        }
    }

    /// The agent is gone and its session is not: somebody opened a pane of their own in it, which is neither
    /// written into nor ended.
    fn without_a_pane(&self) -> Observed {
        match self.tmux.probe(&self.target) {
            TmuxState::Live => Observed::MustWait(HoldReason::NotReady),
            TmuxState::Dead | TmuxState::Absent => Observed::Gone,
            TmuxState::Unknown => Observed::Unanswered,
        }
    }

    pub(super) fn must_wait(&self, view: &View) -> Option<HoldReason> {
        let now = self.now();
        let mut agent = lock(&self.agent);
        let state = agent.state(now, Some(view));
        if let Some(hold) = state.hold() {
            return Some(hold);
        }
        if let Some(hold) = agent.composer(view, now, None).hold() {
            return Some(hold);
        }
        let quiet = self.gathered.settings.routing.tmux.typing_hold_seconds;
        view.is_typed_into(now, quiet).then_some(HoldReason::Typing)
    }

    pub(super) fn send(&mut self) -> Sent {
        let Some(row) = self.job.clone() else {
            return Sent::NotPasted;
        };
        let Some(marker) = row.marker.clone() else {
            return Sent::NotPasted;
        };
        let text = match self.engine.text_to_paste(self, &row) {
            Ok(text) => text,
            Err(error) => {
                self.error = Some(error);
                return Sent::NotPasted;
            }
        };
        if !self.mark_sending() {
            return Sent::NotPasted;
        }
        match self.tmux.paste(self.spot(), marker.as_str(), &text) {
            Ok(()) => {}
            Err(TmuxError::Refused(words)) => {
                self.error = Some(words);
                return Sent::NotPasted;
            }
            Err(TmuxError::NoAnswer(why)) => {
                self.error = Some(why.to_string());
                return Sent::Unanswered;
            }
        }
        self.clock().wait(self.adapter.declaration().submit_delay);
        self.submit(marker.as_str(), Some(&text))
    }

    /// Looks again, then submits: a dialog may have opened since the paste (DI-28). `pasted` is what was put
    /// into an empty composer a moment ago.
    pub(super) fn submit(&mut self, buffer: &str, pasted: Option<&str>) -> Sent {
        match self.view() {
            Ok(Some(view)) => {
                let now = self.now();
                let marker = self.job.as_ref().and_then(|row| row.marker.as_ref());
                let mut agent = lock(&self.agent);
                if let Some(hold) = agent.state(now, Some(&view)).hold() {
                    return Sent::LeftInComposer(hold);
                }
                // Somebody typed between the look and the paste: their words are not ours to submit.
                // In a terminal too small for our own text nothing can be told; nobody typed before either.
                let hidden = pasted.is_some_and(|text| view.is_too_small_for(text));
                if agent.composer(&view, now, marker) == Composer::Draft && !hidden {
                    return Sent::LeftInComposer(HoldReason::Draft);
                }
            }
            Ok(None) => {
                self.error = Some("the session went away after the paste".to_owned());
                return Sent::Unanswered;
            }
            Err(()) => {
                self.error = Some("tmux gave no answer after the paste".to_owned());
                return Sent::Unanswered;
            }
        }
        match self.tmux.submit(self.spot(), buffer) {
            Ok(()) => {
                self.mark_pasted();
                Sent::Submitted
            }
            Err(error) => {
                self.error = Some(error.to_string());
                Sent::Unanswered
            }
        }
    }

    /// Submits our text, which still stands in the composer, once more.
    pub(super) fn submit_again(&mut self) -> Sent {
        let Some(row) = self.job.clone() else {
            return Sent::NotPasted;
        };
        let Some(marker) = row.marker.clone() else {
            return Sent::NotPasted;
        };
        *lock(&self.engine.0.submits).entry(row.seq).or_insert(0) += 1;
        if let (State::Pasted, Some(intent)) = (row.state, row.intent_at) {
            self.engine.emit(LogEvent::DeliveryUnconfirmed {
                work_item: self.gathered.item.clone(),
                endpoint: None,
                delivery_id: row.delivery.delivery_id.clone(),
                harness: self.adapter.name().to_owned(),
                waited_ms: self.now().since(intent).as_millis() as u64,
                next: UnconfirmedNext::SubmitAgain,
            });
        }
        self.submit(marker.as_str(), None)
    }

    pub(super) fn mark_sending(&mut self) -> bool {
        let now = self.now();
        if let Some(job) = &self.job {
            self.engine.goes_on(&self.gathered, job);
        }
        let change = OutcomeChange::to(State::Sending).intent_at(now);
        self.changed(change)
    }

    pub(super) fn mark_pasted(&mut self) {
        let now = self.now();
        let Some(row) = self.job.as_ref().filter(|row| row.state == State::Sending) else {
            return;
        };
        self.engine.emit(LogEvent::DeliveryPasted {
            work_item: self.gathered.item.clone(),
            endpoint: None,
            delivery_id: row.delivery.delivery_id.clone(),
            harness: self.adapter.name().to_owned(),
        });
        self.changed(OutcomeChange::to(State::Pasted).pasted_at(now));
    }

    /// Changes the outcome's row; false when the inbox refused.
    pub(super) fn changed(&mut self, change: OutcomeChange) -> bool {
        let Some(row) = &self.job else { return true };
        if let Some(row) = self
            .engine
            .change(self.held, &self.gathered.key, row, change)
        {
            self.job = Some(row);
            true
        } else {
            self.error = Some("the inbox refused".to_owned());
            false
        }
    }

    /// Waits for the harness's own evidence (DI-29).
    pub(super) fn confirm(&mut self) -> Confirmation {
        let Some(row) = self.job.clone() else {
            return Confirmation::Silent { in_composer: false };
        };
        let timeout = Duration::from_secs(u64::from(
            self.gathered.settings.routing.tmux.confirm_timeout_seconds,
        ));
        let deadline = self.clock().deadline(timeout);
        let mut asked = self.clock().deadline(WANTED);
        let mut looked = self.clock().deadline(LOOK);
        let began = self.now();
        let confirms = self.adapter.declaration().confirms.clone();
        loop {
            if self.clock().is_over(&looked) {
                looked = self.clock().deadline(LOOK);
                self.learn();
                if self.shows(&confirms) {
                    return Confirmation::Unproven(Unproven::ScreenSeen);
                }
            }
            if let Some(by) = self.evidence(&row) {
                self.learn();
                if by == By::Transcript {
                    self.hooks_were_silent(began, SilentNext::Transcript);
                }
                return Confirmation::By(by);
            }
            if confirms == Confirms::Nothing {
                return Confirmation::Unproven(Unproven::NoConfirmation);
            }
            if self.clock().is_over(&deadline) {
                break;
            }
            if self.clock().is_over(&asked) {
                asked = self.clock().deadline(WANTED);
                if self.interrupted() {
                    return Confirmation::Interrupted;
                }
            }
            self.clock().wait(GLANCE);
        }
        if confirms.is_proof() {
            self.hooks_were_silent(began, SilentNext::Screen);
        }
        let in_composer = match self.view() {
            Ok(Some(view)) => {
                let now = self.now();
                lock(&self.agent).composer(&view, now, row.marker.as_ref()) == Composer::Ours
            }
            Ok(None) | Err(()) => false,
        };
        Confirmation::Silent { in_composer }
    }

    /// Does the screen show the hint that this harness declares?
    fn shows(&self, confirms: &Confirms) -> bool {
        match confirms {
            Confirms::Screen(pattern) => {
                let view = self.view().ok().flatten();
                view.is_some_and(|view| {
                    let now = self.now();
                    pattern.is_match(&screen(&view, now).text())
                })
            }
            Confirms::Hook(_) | Confirms::Transcript | Confirms::Nothing => false,
        }
    }

    /// An agent that never reported through a hook is told of once: its hooks may not be installed, and
    /// every confirmation then rests on something slower. One that was given no hooks owes none.
    fn hooks_were_silent(&self, began: Timestamp, next: SilentNext) {
        if self.adapter.declaration().hooks.is_empty() {
            return;
        }
        let mut agent = lock(&self.agent);
        let owes = !self.adapter.declaration().hooks.is_empty();
        if !owes || agent.hooks_heard() || agent.said.hooks_silent {
            return;
        }
        agent.said.hooks_silent = true;
        drop(agent);
        let waited = self.now().since(began);
        self.engine.emit(LogEvent::HookSilent {
            work_item: self.gathered.item.clone(),
            endpoint: None,
            harness: self.adapter.name().to_owned(),
            waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
            next,
        });
    }

    pub(super) fn evidence(&self, row: &Job) -> Option<By> {
        lock(&self.agent).evidence(row.marker.as_ref()?, row.intent_at?)
    }

    pub(super) fn interrupted(&self) -> bool {
        self.engine.is_stopping() || self.engine.0.locks.is_wanted(self.held)
    }
}
