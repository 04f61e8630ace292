//! The close path (DI-49): status closed, harness ended, tmux kept or killed, work saved, checkout
//! removed. And how a harness is ended (DI-18).

use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::event::{
    CleanupDeferredReason, ClosedVia, KeptReason, LogEvent, SavedWhy, Strategy,
};
use the_loop_core::ids::{TmuxTarget, WorkItemRef};
use the_loop_core::probe::TmuxState;
use the_loop_core::record::{SessionRecord, WorkspaceStrategy};
use the_loop_core::session::SessionStatus;

use super::Engine;
use super::item::{Gathered, Job};
use crate::git::{Checkout, RemoveError};
use crate::process::{ProcessId, Signal};
use crate::store::inbox::Mark;
use crate::store::lock::{ItemLock, Patience};
use crate::tmux::Tmux;

const MARK: &str = "THE_LOOP_INSTANCE";
const ITEM_MARK: &str = "THE_LOOP_WORK_ITEM";

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
        let Some(record) = gathered.live().cloned() else {
            return closed;
        };
        closed.found = true;
        let mut record = record;
        record.status = SessionStatus::Closed;
        record.closed_at = Some(self.world().clock.now());
        record.spawn = None;
        if let Err(error) = self.0.registry.put(held, &gathered.slug, &record) {
            closed.recorded = false;
            closed
                .errors
                .push(format!("cannot record the session as closed: {error}"));
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
            closed.errors.push(format!(
                "tmux gave no answer about {target}; end it with: {}",
                tmux.kill_command(target)
            ));
            return;
        }
        if state == TmuxState::Live && !settings.kill_harness_on_close {
            closed.was_live = true;
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
                Err(error) => {
                    self.told_terminated(gathered, record, Some(error.clone()));
                    closed.errors.push(error);
                    return;
                }
            }
        }
        if state == TmuxState::Absent {
            return;
        }
        if keep && tmux.probe(target) == TmuxState::Dead {
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

    /// SIGTERM to the pane leader's group, a grace, SIGKILL; then whatever else carries the item's mark.
    /// Nothing without our mark is ever signalled (DI-18).
    fn end_harness(
        &self,
        item: &WorkItemRef,
        tmux: &Tmux,
        target: &TmuxTarget,
        grace: Duration,
    ) -> Result<(), String> {
        let _ = tmux.remain_on_exit(target, true);
        let panes = tmux
            .panes(target)
            .map_err(|why| format!("tmux gave no answer: {why}"))?;
        let leaders: Vec<ProcessId> = panes
            .iter()
            .filter(|pane| !pane.dead)
            .filter_map(|pane| self.marked(pane.pid, item))
            .collect();
        if leaders.is_empty() {
            return Err(format!(
                "what runs in {target} does not carry our mark; end it with: {}",
                tmux.kill_command(target)
            ));
        }
        let processes = &self.world().processes;
        for leader in &leaders {
            processes.signal_group(*leader, Signal::Term);
        }
        self.wait_for_end(&leaders, grace);
        for leader in leaders.iter().filter(|leader| self.lives(**leader)) {
            processes.signal_group(*leader, Signal::Kill);
        }
        let left = self.carriers(item);
        for process in &left {
            processes.signal(*process, Signal::Term);
        }
        self.wait_for_end(&left, grace);
        for process in left.iter().filter(|process| self.lives(**process)) {
            processes.signal(*process, Signal::Kill);
        }
        self.wait_for_end(&leaders, Duration::from_secs(2));
        if leaders.iter().any(|leader| self.lives(*leader)) {
            return Err("the agent did not end".to_owned());
        }
        Ok(())
    }

    fn lives(&self, process: ProcessId) -> bool {
        self.world().processes.started(process.pid) == Some(process.started)
    }

    fn wait_for_end(&self, which: &[ProcessId], at_most: Duration) {
        let clock = &self.world().clock;
        let deadline = clock.deadline(at_most);
        while which.iter().any(|process| self.lives(*process)) && !clock.is_over(&deadline) {
            clock.wait(Duration::from_millis(10));
        }
    }

    /// The process, when it carries our mark for this very item.
    pub(super) fn marked(&self, pid: i32, item: &WorkItemRef) -> Option<ProcessId> {
        let processes = &self.world().processes;
        let started = processes.started(pid)?;
        let ours = processes.environment(pid, MARK)? == self.0.parts.instance;
        let named: WorkItemRef = processes.environment(pid, ITEM_MARK)?.parse().ok()?;
        (ours && named.key() == item.key()).then_some(ProcessId { pid, started })
    }

    /// Processes besides ourselves that carry the item's mark.
    fn carriers(&self, item: &WorkItemRef) -> Vec<ProcessId> {
        let own = i32::try_from(self.world().pid).unwrap_or(0);
        self.world()
            .processes
            .carrying(MARK, &self.0.parts.instance)
            .into_iter()
            .filter(|process| process.pid != own && self.marked(process.pid, item).is_some())
            .collect()
    }

    /// Saves the work of a checkout, then removes it (DI-48).
    fn give_back(
        &self,
        gathered: &Gathered,
        record: &SessionRecord,
        wish: &CloseWish,
        closed: &mut Closed,
    ) {
        let Some(workspace) = &record.workspace else {
            return;
        };
        let strategy = match workspace.strategy {
            WorkspaceStrategy::Worktree => Strategy::Worktree,
            WorkspaceStrategy::Clone => Strategy::Clone,
            WorkspaceStrategy::None => return,
        };
        let (work_item, checkout) = (gathered.item.clone(), workspace.path.clone());
        let goes_on = closed.lines.contains(&EndLine::GoesOn);
        if !wish.give_back || goes_on || gathered.settings.routing.workspace.keep_checkout_on_close
        {
            if wish.give_back && !goes_on {
                self.emit(LogEvent::WorkspaceKept {
                    work_item,
                    endpoint: None,
                    checkout: checkout.clone(),
                    reason: KeptReason::Configured,
                });
            }
            closed.lines.push(EndLine::Kept { path: checkout });
            return;
        }
        if closed.was_live && !closed.errors.is_empty() {
            self.emit(LogEvent::WorkspaceKept {
                work_item,
                endpoint: None,
                checkout: checkout.clone(),
                reason: KeptReason::InUse,
            });
            closed.lines.push(EndLine::Kept { path: checkout });
            return;
        }
        let place = Checkout {
            item: gathered.item.clone(),
            slug: gathered.slug.clone(),
            strategy,
            path: Utf8PathBuf::from(&workspace.path),
        };
        let repo = gathered.item.repo().clone();
        let locks = self.0.locks.clone();
        let clone_lock = move || {
            locks
                .clone_lock(&repo, "remove", Patience::of(Duration::from_secs(60)))
                .map(|held| Box::new(held) as Box<dyn Send>)
                .map_err(|e| e.to_string())
        };
        let removed = self.git(&gathered.settings).remove(
            &self.saved(),
            &clone_lock,
            &place,
            wish.why,
            wish.discard,
        );
        self.told_removed(gathered, strategy, &workspace.path, wish, removed, closed);
    }

    fn told_removed(
        &self,
        gathered: &Gathered,
        strategy: Strategy,
        path: &str,
        wish: &CloseWish,
        removed: Result<crate::git::Removed, RemoveError>,
        closed: &mut Closed,
    ) {
        let (work_item, checkout) = (gathered.item.clone(), path.to_owned());
        let saved = match &removed {
            Ok(removed) => removed.saved.clone(),
            Err(RemoveError::RemoveFailed { saved, .. }) => saved.as_deref().cloned(),
            Err(RemoveError::NotOurs(_) | RemoveError::SaveFailed(_)) => None,
        };
        if let Some(saved) = saved {
            self.emit(LogEvent::WorkSaved {
                work_item: work_item.clone(),
                endpoint: None,
                bundle: saved.bundle.clone(),
                commits: saved.commits,
                files: saved.files.changed + saved.files.untracked,
                bytes: saved.bytes,
                why: wish.why,
            });
            closed.lines.push(EndLine::Saved {
                name: saved.name().to_owned(),
                files: saved.files.changed + saved.files.untracked,
                commits: saved.commits,
            });
        } else if removed.is_ok() {
            self.emit(if wish.discard {
                LogEvent::WorkUnsaved {
                    work_item: work_item.clone(),
                    endpoint: None,
                    checkout: checkout.clone(),
                    actor: wish.actor.clone(),
                }
            } else {
                LogEvent::WorkClean {
                    work_item: work_item.clone(),
                    endpoint: None,
                    checkout: checkout.clone(),
                }
            });
        }
        match removed {
            Ok(removed) if removed.removed => {
                self.emit(LogEvent::WorkspaceCleaned {
                    work_item,
                    endpoint: None,
                    strategy,
                    checkout: checkout.clone(),
                });
                closed.lines.push(EndLine::Removed { path: checkout });
            }
            Ok(_) => {}
            Err(error) => {
                let reason = match &error {
                    RemoveError::NotOurs(_) => KeptReason::NotOurs,
                    RemoveError::SaveFailed(_) => KeptReason::SaveFailed,
                    RemoveError::RemoveFailed { .. } => KeptReason::InUse,
                };
                if reason == KeptReason::SaveFailed {
                    self.emit(LogEvent::WorkSaveFailed {
                        work_item: work_item.clone(),
                        endpoint: None,
                        checkout: checkout.clone(),
                        error: error.to_string(),
                    });
                }
                self.emit(LogEvent::WorkspaceKept {
                    work_item,
                    endpoint: None,
                    checkout: checkout.clone(),
                    reason,
                });
                closed.errors.push(error.to_string());
                closed.lines.push(EndLine::Kept { path: checkout });
            }
        }
    }

    /// The item ended: control and poll sections go, what waited is dropped, a watermark is left (IN-26).
    pub(super) fn forget_closed(&self, held: &ItemLock, gathered: &Gathered, job: &Job) {
        let closed_at = match &job.delivery.effect {
            the_loop_core::delivery::Effect::Close { at, .. } => *at,
            the_loop_core::delivery::Effect::Text(_)
            | the_loop_core::delivery::Effect::Presence
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
            closed_as: super::tell::autoclosed(ending),
            delivery_id: Some(job.delivery.delivery_id.clone()),
        });
    }
}
