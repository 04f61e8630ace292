//! What a running daemon does from time to time: it follows its configuration and keeps its files small.

use std::sync::Arc;
use std::time::Duration;

use the_loop_core::event::{LogEvent, Source};
use the_loop_core::time::Timestamp;

use super::Shared;
use crate::disk::Kind;
use crate::harness::hook;
use crate::ops::desk::keep_secrets_out;
use crate::settings::Look;
use crate::store::eventlog::EventLog;
use crate::store::layout::{Layout, Prepared};
use crate::telemetry::DaemonLog;
use crate::world::World;

/// Between two looks at what is due.
const PAUSE: Duration = Duration::from_millis(500);
/// Between two syncs of the log.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// Between two looks at the configuration file (CF-34).
const CONFIG_EVERY: Duration = Duration::from_secs(2);
/// Between two looks at the sizes of files.
const SIZES_EVERY: Duration = Duration::from_secs(10);
/// Between two prunings (ST-59).
const PRUNE_EVERY: Duration = Duration::from_hours(1);

/// When what was done last.
#[derive(Debug)]
pub(super) struct Upkeep<'a> {
    shared: &'a Arc<Shared>,
    trace: Option<&'a DaemonLog>,
    synced: Timestamp,
    looked: Timestamp,
    sized: Timestamp,
    pruned: Option<Timestamp>,
}

/// What a start found and did in the root, in the log; and launch files that a crash left, which may
/// hold secrets, go.
pub(super) fn after_prepare(world: &World, layout: &Layout, log: &EventLog, done: &Prepared) {
    if !done.swept.is_empty() {
        let count = done.swept.len() as u64;
        log.emit(Source::Daemon, LogEvent::StateSwept { count });
    }
    for (path, why) in &done.left {
        tracing::warn!("{path} cannot be removed: {why}");
    }
    if done.tightened {
        tracing::warn!(
            "{} was open to others and is not any more",
            layout.local_dir()
        );
    }
    let dir = layout.launch_dir();
    for name in world.disk.list(&dir).unwrap_or_default() {
        if is_launch_file(&name)
            && let Err(e) = world.disk.remove(&dir.join(&name))
        {
            tracing::warn!("{dir}/{name} cannot be removed: {e}");
        }
    }
}

/// `<slug>-<8 hex digits>.json`; a file with another name is a stranger's.
fn is_launch_file(name: &str) -> bool {
    let unique = name
        .strip_suffix(".json")
        .and_then(|stem| stem.rsplit_once('-'));
    unique.is_some_and(|(slug, unique)| {
        unique.len() == 8
            && unique.bytes().all(|b| b.is_ascii_hexdigit())
            && the_loop_core::ids::Slug::from_file_stem(slug).is_some()
    })
}

impl<'a> Upkeep<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>, trace: Option<&'a DaemonLog>) -> Self {
        let now = shared.world.clock.now();
        Self {
            shared,
            trace,
            synced: now,
            looked: now,
            sized: now,
            pruned: None,
        }
    }

    /// How long the main thread may wait for a message.
    #[allow(clippy::unused_self, reason = "the caller asks whoever does the work")]
    pub(super) fn pause(&self) -> Duration {
        PAUSE
    }

    /// Does what is due.
    pub(super) fn due(&mut self) {
        let now = self.shared.world.clock.now();
        if now.since(self.synced) >= SYNC_EVERY {
            self.synced = now;
            self.shared.log.tick();
        }
        if self.shared.receiver.is_up() {
            super::polling::beat(self.shared);
        }
        if now.since(self.looked) >= CONFIG_EVERY {
            self.looked = now;
            self.reload(false);
        }
        if now.since(self.sized) >= SIZES_EVERY {
            self.sized = now;
            self.rotate();
        }
        if self.pruned.is_none_or(|at| now.since(at) >= PRUNE_EVERY) {
            self.pruned = Some(now);
            self.prune(now);
        }
    }

    /// Follows the configuration file; `always` reads it whatever it looks like.
    pub(super) fn reload(&mut self, always: bool) {
        let shared = self.shared;
        let look = if always {
            shared.live.reload()
        } else {
            shared.live.poll()
        };
        let path = || {
            shared
                .live
                .path()
                .map(ToString::to_string)
                .unwrap_or_default()
        };
        match look {
            Look::Unchanged => {}
            Look::Reloaded {
                changed,
                restart_required,
                warnings,
            } => {
                for warning in warnings {
                    tracing::warn!("configuration: {}", warning.message);
                }
                let settings = shared.live.current();
                let log = &settings.event_log;
                shared.log.set_rotation(log.segment_mb, log.keep_segments);
                keep_secrets_out(&shared.world, &settings, &shared.log);
                shared.emit(LogEvent::ConfigReloaded {
                    path: path(),
                    changed,
                    restart_required,
                });
                shared.receiver.configuration_changed();
                shared.polling.configuration_changed();
                shared.engine().wake();
            }
            Look::Rejected { line, error } => shared.emit(LogEvent::ConfigRejected {
                path: path(),
                line: line.map(u64::from),
                error,
            }),
        }
    }

    /// Log, trace and hook files that have grown are put aside.
    fn rotate(&self) {
        let shared = self.shared;
        if let Err(e) = shared.log.rotate_if_needed() {
            tracing::warn!("the event log cannot be rotated: {e}");
        }
        if let Some(Err(e)) = self.trace.map(DaemonLog::rotate_if_needed) {
            tracing::warn!("the trace cannot be rotated: {e}");
        }
        let disk = shared.world.disk.as_ref();
        let dir = shared.layout.hooks_dir();
        for name in disk.list(&dir).unwrap_or_default() {
            let current = is_current_hook_file(&name);
            if current && let Err(e) = hook::rotate_if_needed(disk, &dir.join(&name)) {
                tracing::warn!("{dir}/{name} cannot be put aside: {e}");
            }
        }
    }

    /// What is over is forgotten after its time (ST-59); so is mail that nobody needs any more.
    fn prune(&self, now: Timestamp) {
        let shared = self.shared;
        let days = shared.live.current().state.inbox_retention_days;
        match shared.inbox.prune(now, days) {
            Ok(pruned) if pruned.deliveries > 0 => shared.log.emit(
                Source::Engine,
                LogEvent::InboxPruned {
                    count: pruned.deliveries,
                    before: pruned.before,
                },
            ),
            Ok(_) => {}
            Err(e) => tracing::warn!("the inbox cannot be pruned: {e}"),
        }
        let keep = Duration::from_secs(u64::from(days) * 86_400);
        forget_mail(&shared.world, &shared.layout, now.minus(keep));
    }
}

/// `<slug>.jsonl`; what was put aside is called `<slug>.1.jsonl`.
fn is_current_hook_file(name: &str) -> bool {
    let path = camino::Utf8Path::new(name);
    let aside = path
        .file_stem()
        .is_some_and(|stem| stem.strip_suffix(".1").is_some());
    path.extension() == Some("jsonl") && !aside
}

/// Removes mail files that are older than `before`.
fn forget_mail(world: &World, layout: &Layout, before: Timestamp) {
    let disk = world.disk.as_ref();
    let root = layout.local_dir().join("mail");
    for slug in disk.list(&root).unwrap_or_default() {
        let dir = root.join(slug);
        for name in disk.list(&dir).unwrap_or_default() {
            let file = dir.join(&name);
            let old =
                disk.meta(&file).ok().flatten().is_some_and(|meta| {
                    meta.kind == Kind::File && meta.modified_ms < before.unix_ms()
                });
            if old
                && camino::Utf8Path::new(&name).extension() == Some("md")
                && let Err(e) = disk.remove(&file)
            {
                tracing::warn!("{file} cannot be removed: {e}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st34_only_launch_files_of_ours_go() {
        assert!(is_launch_file("github-octo-repo-15-0a1b2c3d.json"));
        assert!(!is_launch_file("notes.json"));
        assert!(!is_launch_file("github-octo-repo-15.json"));
    }
}
