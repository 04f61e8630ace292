//! What sessions show, for harnesses of which nothing else tells that they wait for a person (DI-31).

use std::collections::BTreeMap;

use the_loop_core::ids::TmuxTarget;
use the_loop_core::probe::TmuxState;

use super::Engine;
use crate::harness::adapter::Adapters;
use crate::store::registry::Registered;
use crate::tmux::{Snapshot, Tmux, View};

impl Engine {
    /// The screens of live sessions whose harness is told by its screen: none for most, else one more
    /// call of tmux for all of them.
    pub(super) fn screens(
        &self,
        live: &[&Registered],
        adapters: &Adapters,
        snapshot: &Snapshot,
        tmux: &Tmux,
    ) -> BTreeMap<String, View> {
        let shown = live.iter().filter_map(|found| {
            let target = TmuxTarget::parse(&found.record.tmux_target)?;
            let adapter = adapters.named(&found.record.harness)?;
            (adapter.is_told_by_screen() && snapshot.state(&target) == TmuxState::Live)
                .then_some(target)
        });
        let shown: Vec<TmuxTarget> = shown.collect();
        tmux.screens(&shown)
    }
}
