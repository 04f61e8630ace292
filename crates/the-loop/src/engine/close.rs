//! The close path (DI-49): status closed, harness ended, tmux kept or killed, work saved, checkout
//! removed. And how a harness is ended (DI-18).

use std::time::Duration;

use the_loop_core::event::{CleanupDeferredReason, ClosedVia, LogEvent, SavedWhy};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::probe::TmuxState;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;

use super::Engine;
use super::end_harness::NotEnded;
use super::item::{Gathered, Job};
use crate::store::inbox::Mark;
use crate::store::lock::ItemLock;

/// How a session is to be closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseWish {
    /// What asked for it.
    pub via: ClosedVia,
    /// What a saved bundle says of its reason.
    pub why: SavedWhy,
    /// Keep the tmux session; `None` as configured.
    pub keep_tmux: Option<bool>,
    /// Do not save work before the checkout goes.
    pub discard: bool,
    /// The local resources may be given back.
    pub give_back: bool,
    /// Who asked, for what is thrown away.
    pub actor: String,
}

impl CloseWish {
    /// A `stop`.
    pub fn stop(via: ClosedVia) -> Self {
        Self {
            via,
            why: SavedWhy::Stop,
            keep_tmux: None,
            discard: false,
            give_back: true,
            actor: String::new(),
        }
    }
    /// The end of the item; only an authorised closer gives resources back (IN-26).
    pub fn close_event(give_back: bool) -> Self {
        Self {
            via: ClosedVia::CloseEvent,
            why: SavedWhy::Close,
            keep_tmux: None,
            discard: false,
            give_back,
            actor: String::new(),
        }
    }
    /// `sessions close`.
    pub fn close(via: ClosedVia) -> Self {
        Self {
            why: SavedWhy::Close,
            ..Self::stop(via)
        }
    }
}

/// One irreversible fact of a close, for the output (SE-47).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndLine {
    /// The harness was ended.
    Ended {
        /// Which harness.
        harness: String,
    },
    /// Work was saved.
    Saved {
        /// Name of the bundle.
        name: String,
        /// Files with changes, untracked ones included.
        files: u64,
        /// Commits that are on no remote.
        commits: u64,
    },
    /// The checkout is gone.
    Removed {
        /// Where it was.
        path: String,
    },
    /// The checkout stays.
    Kept {
        /// Where it is.
        path: String,
    },
    /// The agent goes on (`routing.tmux.killHarnessOnClose: false`).
    GoesOn,
    /// The tmux session stays for reading.
    Terminal {
        /// Command to look at it.
        attach: String,
    },
}

/// What a close did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closed {
    /// There was a live session.
    pub found: bool,
    /// Its harness lived.
    pub was_live: bool,
    /// What happened, in order.
    pub lines: Vec<EndLine>,
    /// What failed; the next steps were done all the same.
    pub errors: Vec<String>,
    /// The record says `closed`, or there was none.
    recorded: bool,
    /// Nobody proved that its harness ended: what it works in is not taken from under it.
    pub(super) may_live: bool,
    /// tmux gave no answer: the same wish can be carried out later.
    pub(super) unanswered: bool,
}

impl Closed {
    /// Everything went well.
    pub fn ok(&self) -> bool {
        self.errors.is_empty()
    }
    /// Is it written down?
    pub fn recorded(&self) -> bool {
        self.recorded
    }
}

impl Engine {
    /// Takes the close path for the item's session. Each part is done on its own: one that fails is told
    /// and does not stop the rest.
    pub(super) fn close_session(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        wish: &CloseWish,
    ) -> Closed {
        let mut closed = Closed {
            recorded: true,
            ..Closed::default()
        };
        let Some(mut record) = gathered.record.clone() else {
            return closed;
        };
        closed.found = true;
        // A close that was cut short goes on with what comes after the record.
        if record.status.is_live() {
            record.status = SessionStatus::Closed;
            record.closed_at = Some(self.world().clock.now());
            record.spawn = None;
            if let Err(error) = self.0.registry.put(held, &gathered.slug, &record) {
                closed.recorded = false;
                closed
                    .errors
                    .push(format!("cannot record the session as closed: {error}"));
            }
        }
        if let Some(target) = TmuxTarget::parse(&record.tmux_target) {
            self.end_terminal(gathered, &record, &target, wish, &mut closed);
        }
        self.give_back(gathered, &record, wish, &mut closed);
        super::lock(&self.0.agents).remove(&gathered.key);
        self.emit(LogEvent::SessionClosed {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness: record.harness.clone(),
            harness_session_id: Some(record.harness_session_id.clone()).filter(|id| !id.is_empty()),
            via: wish.via,
        });
        closed
    }

    /// Did this very delivery close the session, and was it kept from its end? The record says `closed`
    /// first, so what follows it may be missing: the agent would live on with nobody to end it.
    pub(super) fn was_cut_short(gathered: &Gathered, job: &Job) -> bool {
        let closed_at = gathered
            .record
            .as_ref()
            .filter(|record| record.status == SessionStatus::Closed)
            .and_then(|record| record.closed_at);
        closed_at.is_some_and(|at| at >= job.delivery.received_at)
    }

    fn end_terminal(
        &self,
        gathered: &Gathered,
        record: &SessionRecord,
        target: &TmuxTarget,
        wish: &CloseWish,
        closed: &mut Closed,
    ) {
        let settings = &gathered.settings.routing.tmux;
        let tmux = self.tmux_of(&gathered.settings, Some(record));
        let keep = wish.keep_tmux.unwrap_or(settings.keep_session_on_close);
        let state = tmux.probe(target);
        if state == TmuxState::Unknown {
            closed.may_live = true;
            closed.unanswered = true;
            closed.errors.push(format!(
                "tmux gave no answer about {target}; end it with: {}",
                tmux.kill_command(target)
            ));
            return;
        }
        if state == TmuxState::Live && !settings.kill_harness_on_close {
            closed.was_live = true;
            closed.may_live = true;
            closed.lines.push(EndLine::GoesOn);
            return;
        }
        if state == TmuxState::Live {
            closed.was_live = true;
            let grace = Duration::from_secs_f64(settings.harness_kill_grace_seconds.max(0.0));
            match self.end_harness(&gathered.item, &tmux, target, grace) {
                Ok(()) => {
                    closed.lines.push(EndLine::Ended {
                        harness: record.harness.clone(),
                    });
                    self.told_terminated(gathered, record, None);
                }
                Err(why) => {
                    let error = match why {
                        NotEnded::Unanswered(error) => {
                            closed.unanswered = true;
                            error
                        }
                        NotEnded::Refused(error) => error,
                    };
                    self.told_terminated(gathered, record, Some(error.clone()));
                    closed.may_live = true;
                    closed.errors.push(error);
                    return;
                }
            }
        }
        if state == TmuxState::Absent {
            return;
        }
        // Where somebody opened a pane beside the agent's it still lives, and is kept all the same.
        if keep && matches!(tmux.probe(target), TmuxState::Dead | TmuxState::Live) {
            self.emit(LogEvent::SessionRetained {
                work_item: gathered.item.clone(),
                endpoint: None,
                tmux_target: target.to_string(),
            });
            closed.lines.push(EndLine::Terminal {
                attach: tmux.attach_command(target, true),
            });
        } else if !tmux.end_session(target) {
            closed.errors.push(format!(
                "cannot end the tmux session; end it with: {}",
                tmux.kill_command(target)
            ));
        }
    }

    fn told_terminated(&self, gathered: &Gathered, record: &SessionRecord, error: Option<String>) {
        self.emit(LogEvent::SessionHarnessTerminated {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness: record.harness.clone(),
            tmux_target: record.tmux_target.clone(),
            ok: error.is_none(),
            error,
        });
    }

    /// The item ended: control and poll sections go, what waited is dropped, a watermark is left (IN-26).
    pub(super) fn forget_closed(&self, held: &ItemLock, gathered: &Gathered, job: &Job) {
        let closed_at = match &job.delivery.effect {
            the_loop_core::delivery::Effect::Close { at, .. } => *at,
            the_loop_core::delivery::Effect::Text(_)
            | the_loop_core::delivery::Effect::Presence
            | the_loop_core::delivery::Effect::Opened
            | the_loop_core::delivery::Effect::Check(_)
            | the_loop_core::delivery::Effect::Notice { .. }
            | the_loop_core::delivery::Effect::Start { .. } => None,
        };
        for section in ["control", "poll"] {
            let _ = self
                .0
                .portable
                .write_section(held, &gathered.item, section, None);
        }
        let mark = Mark::Close {
            seq: job.seq,
            closed_at,
        };
        for row in self
            .0
            .parts
            .inbox
            .would_drop(&gathered.key, mark)
            .unwrap_or_default()
        {
            self.emit(LogEvent::DispatchDropped {
                reason: the_loop_core::event::DispatchDropReason::ItemClosed,
                work_item: Some(gathered.item.clone()),
                work_items: None,
                gh_event: row
                    .delivery
                    .as_ref()
                    .map(|d| d.event.clone())
                    .unwrap_or_default(),
                delivery_id: row.delivery_id.clone(),
                tmux_target: None,
                error: None,
                will_retry: false,
            });
        }
        let _ = self.0.parts.inbox.set_watermark(held, &gathered.key, mark);
    }

    /// A closer who is not authorised ends the session and gives nothing back.
    pub(super) fn defer_cleanup(
        &self,
        gathered: &Gathered,
        job: &Job,
        ending: the_loop_core::delivery::Ending,
    ) {
        let actor = job.delivery.actor.as_ref().map(|actor| actor.login.clone());
        self.emit(LogEvent::CleanupDeferred {
            work_item: gathered.item.clone(),
            reason: if actor.is_some() {
                CleanupDeferredReason::UnauthorizedActor
            } else {
                CleanupDeferredReason::NoActor
            },
            actor,
            closed_as: super::tell::autoclosed(ending, &job.delivery),
            delivery_id: Some(job.delivery.delivery_id.clone()),
        });
    }
}
