//! Who holds another environment than the env file declares (DI-14, SE-26).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use camino::Utf8Path;
use the_loop_core::environment::{Declared, Verdict, deciding};
use the_loop_core::event::LogEvent;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::{Engine, lock};
use crate::ops::desk::keep_secrets_out;
use crate::settings::declared_environment;
use crate::store::registry::Registered;
use crate::tmux::Snapshot;
use crate::world::World;

/// Between two looks at environments; a changed env file is looked at sooner.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// What was seen last, so that a change is told once.
#[derive(Debug, Default)]
pub(super) struct Drift {
    looked: Option<Timestamp>,
    /// Size, inode and time of the env file.
    stamp: Option<(u64, u64, i64)>,
    /// Stale sessions and the names that differ.
    stale: BTreeMap<String, (WorkItemRef, BTreeSet<String>)>,
}

/// Does a live session hold what is declared? `recorded` is the pid its record names, `live` are those of
/// its live panes (SE-60).
pub fn environment_of(
    world: &World,
    declared: &Declared,
    recorded: Option<i32>,
    live: &[i32],
) -> Verdict {
    let deciding = deciding(recorded, live).into_iter();
    let held: Vec<_> = deciding.map(|pid| world.processes.environ(pid)).collect();
    declared.verdict(&held)
}

impl Engine {
    /// Looks at the environments of all sessions, every 30 s and when the env file changed. Costs no call of
    /// tmux: the panes are those of the tick's snapshot.
    pub(super) fn look_at_environments(&self, live: &[&Registered], snapshot: &Snapshot) {
        let settings = self.settings();
        if settings.env.file.is_empty() {
            return;
        }
        let now = self.world().clock.now();
        let mut drift = lock(&self.0.drift);
        let stamp = self.stamp_of(Utf8Path::new(&settings.env.file));
        let changed = stamp != drift.stamp;
        let due = drift.looked.is_none_or(|at| now.since(at) >= LOOK_EVERY);
        if !due && !changed {
            return;
        }
        if changed {
            // Values that were declared when this process started stay hidden beside the new ones: agents
            // may hold them yet.
            keep_secrets_out(self.world(), &settings, &self.0.parts.log);
            self.say_env_file(&settings);
        }
        drift.looked = Some(now);
        drift.stamp = stamp;
        // A file that cannot be read says nothing about anybody; that it cannot was said.
        let Ok(Some(declared)) = declared_environment(self.world(), &settings) else {
            return;
        };
        let mut stale = BTreeMap::new();
        let mut running = 0;
        for found in live {
            let record = &found.record;
            let Some(target) = record.target() else {
                continue;
            };
            let panes = snapshot.panes(&target).iter().filter(|pane| !pane.dead);
            let pids: Vec<i32> = panes.map(|pane| pane.pid).collect();
            if record.status == SessionStatus::Starting || pids.is_empty() {
                continue;
            }
            running += 1;
            let verdict = environment_of(self.world(), &declared, record.pid, &pids);
            let names: BTreeSet<String> = verdict.names().into_iter().collect();
            if !names.is_empty() {
                stale.insert(record.item.to_string(), (record.item.clone(), names));
            }
        }
        if stale == drift.stale {
            return;
        }
        let was = std::mem::replace(&mut drift.stale, stale.clone());
        drop(drift);
        if stale.is_empty() {
            if !was.is_empty() {
                self.emit(LogEvent::EnvFresh { count: running });
            }
            return;
        }
        let names: BTreeSet<String> = stale
            .values()
            .flat_map(|(_, names)| names.clone())
            .collect();
        self.emit(LogEvent::EnvDrift {
            count: stale.len() as u64,
            work_items: stale.into_values().map(|(item, _)| item).collect(),
            names: names.into_iter().collect(),
        });
    }

    fn stamp_of(&self, path: &Utf8Path) -> Option<(u64, u64, i64)> {
        let disk = &self.world().disk;
        let meta = disk.meta(&disk.canonicalize(path).ok()?).ok()??;
        Some((meta.len, meta.inode, meta.modified_ms))
    }
}
