//! Starts that a verb journaled and did not finish, because it was killed (ST-42).

use the_loop_core::probe::TmuxState;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;

use super::Engine;
use super::examine::Settled;
use super::item::Gathered;
use crate::store::lock::Patience;
use crate::store::registry::Registered;

impl Engine {
    /// Settles a record that says `starting` although nobody holds its item. A daemon that runs already
    /// would not look at it before the item's next delivery. An agent that a relaunch had ended is brought
    /// back: nobody wanted it gone.
    pub(super) fn settle_left_behind(&self, found: &Registered) {
        let item = &found.record.item;
        if super::lock(&self.0.in_hand).contains(&item.key()) {
            return;
        }
        let Ok(held) = self.0.locks.item(item, "settle", Patience::none()) else {
            return;
        };
        let Ok(gathered) = self.gather(&held, item, self.settings()) else {
            return;
        };
        let is_left = gathered
            .live()
            .is_some_and(|record| record.status == SessionStatus::Starting);
        if !is_left {
            return;
        }
        let settled = self.settle_starting(&held, &gathered);
        self.sweep_launch_files(&gathered, settled);
        drop(held);
        match settled {
            Settled::Adopted => self.touched(item),
            Settled::Kept | Settled::TakenBack => {
                if gathered.settings.routing.tmux.recover_on_start {
                    self.bring_back_later(&found.record);
                }
                self.touched(item);
            }
            Settled::Unknown => {}
        }
    }

    /// What the killed verb wrote for a launcher may hold secrets. While a pane lives that does not carry our
    /// mark yet, its launcher may be about to read it.
    fn sweep_launch_files(&self, gathered: &Gathered, settled: Settled) {
        let record = gathered.record.as_ref();
        let over = match (settled, record.and_then(SessionRecord::target)) {
            (Settled::Adopted, _) | (_, None) => true,
            (Settled::Unknown, Some(_)) => false,
            (Settled::Kept | Settled::TakenBack, Some(target)) => {
                let state = self.tmux_of(&gathered.settings, record).probe(&target);
                matches!(state, TmuxState::Dead | TmuxState::Absent)
            }
        };
        if !over {
            return;
        }
        let (disk, dir) = (&self.world().disk, self.0.parts.layout.launch_dir());
        let prefix = format!("{}-", gathered.slug);
        for name in disk.list(&dir).unwrap_or_default() {
            let unique = name
                .strip_prefix(&prefix)
                .and_then(|n| n.strip_suffix(".json"));
            let is_of_item = unique.is_some_and(|unique| {
                unique.len() == 8 && unique.bytes().all(|b| b.is_ascii_hexdigit())
            });
            if is_of_item && let Err(error) = disk.remove(&dir.join(&name)) {
                tracing::warn!(%error, "{dir}/{name} cannot be removed");
            }
        }
    }
}
