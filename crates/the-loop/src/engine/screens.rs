//! What sessions show, for harnesses of which nothing else tells that they wait for a person (DI-31).

use std::collections::BTreeMap;

use the_loop_core::ids::TmuxTarget;

use super::Engine;
use crate::harness::adapter::Adapters;
use crate::store::registry::Registered;
use crate::tmux::{PaneId, Snapshot, Tmux, View, agent_pane};

/// What the agents' panes show.
pub(super) type Screens = BTreeMap<PaneId, View>;

impl Engine {
    /// The screens of live sessions whose harness is told by its screen: none for most, else one more
    /// call of tmux for all of them.
    pub(super) fn screens(
        &self,
        live: &[&Registered],
        adapters: &Adapters,
        snapshot: &Snapshot,
        tmux: &Tmux,
    ) -> Screens {
        let shown = live.iter().filter_map(|found| {
            let target = TmuxTarget::parse(&found.record.tmux_target)?;
            let adapter = adapters.named(&found.record.harness)?;
            let is_ours = |pid| self.marked(pid, &found.record.item).is_some();
            let pane = agent_pane(snapshot.panes(&target), found.record.pid, is_ours)?;
            (adapter.is_told_by_screen() && !pane.dead).then(|| pane.clone())
        });
        tmux.screens(shown.collect())
    }
}
