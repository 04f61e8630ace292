//! How a harness is ended, and whose a process is (DI-18).

use std::time::Duration;

use the_loop_core::ids::{TmuxTarget, WorkItemRef};

use super::Engine;
use crate::process::{ProcessId, Signal};
use crate::tmux::{Spot, Tmux};

const MARK: &str = "THE_LOOP_INSTANCE";
/// The variable of a pane that names its item (DI-20).
pub(super) const ITEM_MARK: &str = "THE_LOOP_WORK_ITEM";

/// Why a harness was not ended.
pub(super) enum NotEnded {
    /// tmux gave no answer; a later try may get one.
    Unanswered(String),
    /// It is not ours to end, or it would not.
    Refused(String),
}

impl Engine {
    /// SIGTERM to the pane leader's group, a grace, SIGKILL; then whatever else carries the item's mark.
    /// Nothing without our mark is ever signalled (DI-18).
    pub(super) fn end_harness(
        &self,
        item: &WorkItemRef,
        tmux: &Tmux,
        target: &TmuxTarget,
        grace: Duration,
    ) -> Result<(), NotEnded> {
        let panes = tmux
            .panes(target)
            .map_err(|why| NotEnded::Unanswered(format!("tmux gave no answer: {why}")))?;
        let mut leaders: Vec<ProcessId> = Vec::new();
        for pane in panes.iter().filter(|pane| !pane.dead) {
            if let Some(leader) = self.marked(pane.pid, item) {
                let _ = tmux.remain_on_exit(Spot::of(target, pane), true);
                leaders.push(leader);
            }
        }
        if leaders.is_empty() {
            return Err(NotEnded::Refused(format!(
                "what runs in {target} does not carry our mark; end it with: {}",
                tmux.kill_command(target)
            )));
        }
        if !self.end_marked(item, &leaders, grace) {
            return Err(NotEnded::Refused("the agent did not end".to_owned()));
        }
        Ok(())
    }

    /// Ends these leaders of panes, which carry the item's mark, and whatever else carries it; true when the
    /// leaders are gone.
    pub(super) fn end_marked(
        &self,
        item: &WorkItemRef,
        leaders: &[ProcessId],
        grace: Duration,
    ) -> bool {
        let processes = &self.world().processes;
        for leader in leaders {
            processes.signal_group(*leader, Signal::Term);
        }
        self.wait_for_end(leaders, grace);
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
        self.wait_for_end(leaders, Duration::from_secs(2));
        !leaders.iter().any(|leader| self.lives(*leader))
    }

    /// Does a process carry the mark of another root's instance? Then it is none of ours (SE-27).
    pub(super) fn is_anothers(&self, pid: i32) -> bool {
        let mark = self.world().processes.environment(pid, MARK);
        mark.is_some_and(|mark| mark != self.0.parts.instance)
    }

    pub(super) fn lives(&self, process: ProcessId) -> bool {
        self.world().processes.started(process.pid) == Some(process.started)
    }

    pub(super) fn wait_for_end(&self, which: &[ProcessId], at_most: Duration) {
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
    pub(super) fn carriers(&self, item: &WorkItemRef) -> Vec<ProcessId> {
        let own = i32::try_from(self.world().pid).unwrap_or(0);
        self.world()
            .processes
            .carrying(MARK, &self.0.parts.instance)
            .into_iter()
            .filter(|process| process.pid != own && self.marked(process.pid, item).is_some())
            .collect()
    }
}
