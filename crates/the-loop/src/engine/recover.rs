//! What a start has to do before anything is performed (DI-24, DI-43, DI-4).

use the_loop_core::event::{LogEvent, RetriedVia};
use the_loop_core::ids::{TmuxTarget, WorkItemRef};
use the_loop_core::probe::TmuxState;
use the_loop_core::session::SessionStatus;

use super::Engine;
use super::end_harness::ITEM_MARK;
use super::examine::Settled;
use super::perform::Performer;
use crate::store::lock::Patience;
use crate::store::registry::Registered;
use crate::tmux::Snapshot;

/// This version, as a given-up delivery names who gave it up.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Engine {
    /// Settles what the last run left: spawns cut short, attempts without an outcome, sessions whose
    /// agent is gone, agents without a record, deliveries that another version gave up.
    ///
    /// [`Engine::run`] does this first; whoever drives the engine by hand does it before anything else.
    pub fn recover(&self) {
        self.note_doubts();
        self.open_given_up();
        let Ok(listing) = self.0.registry.list() else {
            return;
        };
        let settings = self.settings();
        let snapshot = self.look_at_server(&self.tmux(&settings));
        let mut records: Vec<&Registered> = listing
            .records
            .iter()
            .filter(|r| r.record.status.is_live())
            .collect();
        records.sort_by_key(|found| found.record.created_at);
        for found in &records {
            if self.is_stopping() {
                return;
            }
            let gone = match (&snapshot, TmuxTarget::parse(&found.record.tmux_target)) {
                (Ok(snapshot), Some(target)) => {
                    matches!(snapshot.state(&target), TmuxState::Dead | TmuxState::Absent)
                }
                (Ok(_), None) => true,
                (Err(_), _) => false,
            };
            let brings_back = settings.routing.tmux.recover_on_start;
            match found.record.status {
                SessionStatus::Starting => {
                    // What a relaunch had ended is taken back to a session that is gone: it comes back, too.
                    let settled = self.settle_at_start(found);
                    let stays = matches!(settled, Some(Settled::Kept | Settled::TakenBack));
                    if stays && brings_back {
                        self.bring_back_later(&found.record);
                    }
                }
                // One that was ended for being idle comes back when it is needed (DI-51).
                SessionStatus::Active
                    if gone && found.record.idle_stopped_at.is_none() && brings_back =>
                {
                    self.bring_back_later(&found.record);
                }
                SessionStatus::Active | SessionStatus::Paused | SessionStatus::Closed => {}
            }
        }
        if let Ok(snapshot) = &snapshot {
            self.settle_strays(snapshot, &listing.records);
        }
        self.count_places(&settings, snapshot.as_ref().ok().map(|s| (s, &records[..])));
        self.bring_back_due();
    }

    /// What stays unknown is looked at again with the item's next delivery.
    fn settle_at_start(&self, found: &Registered) -> Option<Settled> {
        let item = &found.record.item;
        let held = self.0.locks.item(item, "recover", Patience::none()).ok()?;
        let gathered = self.gather(&held, item, self.settings()).ok()?;
        gathered
            .live()
            .is_some_and(|record| record.status == SessionStatus::Starting)
            .then(|| self.settle_starting(&held, &gathered))
    }

    /// Sessions that carry our mark and have no record: adopted, or told where that cannot be (DI-24).
    fn settle_strays(&self, snapshot: &Snapshot, records: &[Registered]) {
        let known: Vec<&str> = records
            .iter()
            .map(|found| found.record.tmux_target.as_str())
            .collect();
        for target in snapshot.targets() {
            if known.contains(&target.as_str()) || self.is_stopping() {
                continue;
            }
            let mut live = snapshot.panes(&target).iter().filter(|pane| !pane.dead);
            let item = live.find_map(|pane| {
                let item = self
                    .world()
                    .processes
                    .environment(pane.pid, ITEM_MARK)?
                    .parse::<WorkItemRef>()
                    .ok()?;
                self.marked(pane.pid, &item)?;
                Some(item)
            });
            let Some(item) = item else {
                continue;
            };
            if let Err(error) = self.adopt_stray(&item, &target) {
                self.emit(LogEvent::DispatchError {
                    work_item: Some(item),
                    gh_event: None,
                    delivery_id: None,
                    error: format!("{target} carries our mark and has no record: {error}"),
                    will_retry: false,
                });
            }
        }
    }

    fn adopt_stray(&self, item: &WorkItemRef, target: &TmuxTarget) -> Result<(), String> {
        let held = self.0.locks.item(item, "recover", Patience::none());
        let held = held.map_err(|e| e.to_string())?;
        let gathered = self.gather(&held, item, self.settings())?;
        if gathered.record.is_some() || gathered.fault.is_some() {
            return Ok(());
        }
        let mut performer = Performer::new(self, &held, gathered, None);
        let end_it = performer.tmux.kill_command(target);
        if performer.target != *target {
            return Err(format!(
                "it is not named for its item; end it with: {end_it}"
            ));
        }
        match performer.adopt_starting() {
            // A session that cannot be asked is adopted with the item's next delivery.
            Ok(true) | Err(()) => Ok(()),
            Ok(false) => {
                let why = performer.error.take().unwrap_or_default();
                Err(format!("{why}; end it with: {end_it}"))
            }
        }
    }

    /// What another version gave up has one more budget under this one (seed 004, AC11). A start by a verb
    /// is not among them: whoever asked saw it fail.
    fn open_given_up(&self) {
        let inbox = &self.0.parts.inbox;
        for item in inbox.given_up_by_others(VERSION).unwrap_or_default() {
            if self.is_stopping() {
                return;
            }
            let Ok(held) = self.0.locks.item(&item, "recover", Patience::none()) else {
                continue;
            };
            for changed in inbox.rearm(&held, &item.key(), VERSION).unwrap_or_default() {
                self.emit(LogEvent::DeliveryRetried {
                    work_item: Some(item.clone()),
                    delivery_id: changed.delivery_id,
                    via: RetriedVia::Upgrade,
                    actor: None,
                    was: changed.was.to_string(),
                });
            }
        }
    }
}
