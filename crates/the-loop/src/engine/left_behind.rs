//! Starts that a verb journaled and did not finish, because it was killed (ST-42).

use the_loop_core::session::SessionStatus;

use super::Engine;
use super::examine::Settled;
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
        drop(held);
        match settled {
            Settled::Adopted => self.touched(item),
            Settled::Kept | Settled::TakenBack => {
                if gathered.settings.routing.tmux.recover_on_start {
                    self.bring_back_later(found);
                }
                self.touched(item);
            }
            Settled::Unknown => {}
        }
    }
}
