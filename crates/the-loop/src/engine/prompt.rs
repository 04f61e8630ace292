//! What an authorised delivery that is no command does (IN-27), and the way into the dispatch machine.

use the_loop_core::delivery::{Effect, State};
use the_loop_core::dispatch::{self, Dispatch, HoldReason, Known, Step, Verdict};
use the_loop_core::event::{DispatchDropReason, LogEvent, ReactionState};
use the_loop_core::guard::{Admission, Asks, admit, end_of};
use the_loop_core::session::SessionStatus;

use super::Engine;
use super::close::CloseWish;
use super::item::{Gathered, Job, Progress};
use super::parking::Reached;
use super::perform::Performer;
use crate::store::inbox::OutcomeChange;
use crate::store::lock::ItemLock;

impl Engine {
    /// Looks the delivery up in the table of admissions and does what it says.
    pub(super) fn admit(&self, held: &ItemLock, gathered: &Gathered, row: &Job) -> Progress {
        let state = self.item_state(gathered, &row.delivery);
        let Some(asks) = Asks::of(&row.delivery.effect) else {
            return Progress::Wait;
        };
        match admit(asks, state) {
            Admission::Drop(_) if asks == Asks::Close && Self::was_cut_short(gathered, row) => {
                self.autoclose(held, gathered, row)
            }
            Admission::Drop(reason) => {
                if asks == Asks::Close {
                    self.forget_closed(held, gathered, row);
                }
                self.drop_it(held, gathered, row, reason, None);
                Progress::Again
            }
            Admission::Wait => self.hold(held, gathered, row, HoldReason::Parked),
            Admission::End => self.autoclose(held, gathered, row),
            Admission::Deliver | Admission::Spawn => self.dispatch(held, gathered, row),
        }
    }

    /// Ends a delivery without a prompt.
    pub(super) fn drop_it(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        row: &Job,
        reason: DispatchDropReason,
        error: Option<String>,
    ) {
        let target = gathered.live().map(|record| record.tmux_target.clone());
        self.emit(LogEvent::DispatchDropped {
            reason,
            work_item: Some(gathered.item.clone()),
            work_items: None,
            gh_event: row.delivery.event.clone(),
            delivery_id: row.delivery.delivery_id.clone(),
            tmux_target: target,
            error,
            will_retry: false,
        });
        self.change(
            held,
            &gathered.key,
            row,
            OutcomeChange::to(end_of(reason)).reason(reason.as_str()),
        );
    }

    /// The close of an item: its session ends, its resources come back, what waited is dropped (IN-26).
    fn autoclose(&self, held: &ItemLock, gathered: &Gathered, row: &Job) -> Progress {
        let Effect::Close {
            ending, moved_to, ..
        } = &row.delivery.effect
        else {
            return Progress::Wait;
        };
        let wish = CloseWish::close_event(Self::closer_is_authorised(
            &gathered.settings,
            &row.delivery,
        ));
        if !wish.give_back {
            self.defer_cleanup(gathered, row, *ending);
        }
        let closed = self.close_session(held, gathered, &wish);
        if !closed.recorded() {
            return self.try_failed(
                held,
                gathered,
                row,
                "the session record could not be written",
                true,
            );
        }
        if closed.unanswered {
            return self.hold(held, gathered, row, HoldReason::TmuxUnanswered);
        }
        self.told_autoclosed(gathered, row, *ending, moved_to.clone());
        // The close ends last: a crash before it finds the same close again, and forgetting twice is once.
        self.forget_closed(held, gathered, row);
        self.change(
            held,
            &gathered.key,
            row,
            OutcomeChange::to(State::Settled).reason("item-closed"),
        );
        Progress::Again
    }

    /// Takes a prompt through the dispatch machine.
    pub(super) fn dispatch(&self, held: &ItemLock, gathered: &Gathered, row: &Job) -> Progress {
        self.count_before_prompt(gathered);
        if self.parked_by_now(gathered) {
            return self.hold(held, gathered, row, HoldReason::Parked);
        }
        if let Some(reached) = self.over_limit(gathered) {
            self.park(&gathered.item, &gathered.settings, &reached);
            return self.hold(held, gathered, row, HoldReason::Parked);
        }
        let suspect = self.is_suspect(gathered, &row.delivery);
        if suspect && row.reason.is_none() && self.answers_itself(gathered) {
            self.park(
                &gathered.item,
                &gathered.settings,
                &Reached::self_conversation(&gathered.item),
            );
            return self.hold(held, gathered, row, HoldReason::Parked);
        }
        let mut gathered = gathered.clone();
        self.learn_late(held, &mut gathered);
        let mut performer = Performer::new(self, held, gathered.clone(), Some(row.clone()));
        if let Some(why) = performer.why_none.clone() {
            return self.no_harness(&performer, row, &why);
        }
        let known = self.known(&gathered);
        let facts = dispatch::Facts {
            known,
            has_prompt: true,
            carries: performer.adapter.carries_prompt(known.launch()),
        };
        if row.reason.is_none() {
            self.emit(LogEvent::DispatchQueued {
                work_item: gathered.item.clone(),
                endpoint: None,
                gh_event: row.delivery.event.clone(),
                delivery_id: row.delivery.delivery_id.clone(),
                spawn: facts.known == Known::Nobody,
                suspect_self: suspect.then_some(true),
            });
            self.react(row, ReactionState::Started);
        }
        let verdict = performer.run(facts);
        self.conclude(performer, verdict)
    }

    /// What the dispatch machine has to know of the record.
    pub(super) fn known(&self, gathered: &Gathered) -> Known {
        let Some(record) = gathered.live() else {
            return Known::Nobody;
        };
        let resumable = gathered.settings.routing.tmux.resume_on_respawn
            && record.conversation().is_some()
            && self
                .adapters(&gathered.settings)
                .named(&record.harness)
                .is_some_and(|adapter| adapter.can_resume());
        match record.status {
            SessionStatus::Starting => {
                let resume = record.spawn.as_ref().is_some_and(|spawn| spawn.resume);
                Known::Starting {
                    resumable: resumable && resume,
                }
            }
            SessionStatus::Active | SessionStatus::Paused | SessionStatus::Closed => {
                Known::Session { resumable }
            }
        }
    }
}

impl Performer<'_> {
    /// Runs the machine to its verdict.
    pub(super) fn run(&mut self, facts: dispatch::Facts) -> Verdict {
        let (mut machine, mut step) = Dispatch::begin(facts);
        loop {
            match step {
                Step::Done(verdict) => {
                    self.averted = machine.averted();
                    return verdict;
                }
                Step::Do(effect) => {
                    let seen = self.perform(effect);
                    step = machine.step(seen);
                }
            }
        }
    }
}
