//! Room for another session (DI-51).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::config::{Settings, Strategy as Configured};
use the_loop_core::delivery::Delivery;
use the_loop_core::dispatch::HoldReason;
use the_loop_core::event::{LogEvent, Strategy};
use the_loop_core::ids::ItemKey;
use the_loop_core::record::{WorkspaceRecord, WorkspaceStrategy};
use the_loop_core::workspace::{CloneSource, StartFrom, checkout_path};

use super::item::Gathered;
use super::{Engine, lock};
use crate::disk::Kind;
use crate::git::{Prepared, WorkspaceError, WorkspaceRequest};
use crate::store::lock::{ItemLock, Patience};

/// Sessions being launched by this process, and who waits for room, oldest delivery first.
#[derive(Clone, Debug, Default)]
pub(super) struct Room(Arc<Mutex<RoomState>>);

#[derive(Debug, Default)]
struct RoomState {
    launching: usize,
    waiting: BTreeMap<i64, ItemKey>,
}

impl Room {
    /// Places that are spoken for: sessions in launch, and deliveries that wait for one.
    pub fn claimed(&self) -> usize {
        let room = lock(&self.0);
        room.launching + room.waiting.len()
    }

    /// Lets those go who no longer have anything to wait for: their deliveries were dropped or ended.
    pub fn keep_waiting(&self, still: impl Fn(&ItemKey) -> bool) {
        lock(&self.0).waiting.retain(|_, key| still(key));
    }
}

/// A place taken for a session that is being launched; given back when dropped.
#[derive(Debug)]
pub(super) struct Reservation(Room);

impl Drop for Reservation {
    fn drop(&mut self) {
        lock(&self.0.0).launching -= 1;
    }
}

/// Why there is no checkout.
pub(super) enum NoWorkspace {
    GaveWay,
    Failed { error: String, retry: bool },
}

impl Engine {
    /// Takes a place for one more session, or says what it has to wait for. Those who wait are served
    /// in the order of their deliveries; who comes without one (`None`) has a line of its own, behind.
    pub(super) fn ask_for_room(
        &self,
        gathered: &Gathered,
        seq: Option<i64>,
    ) -> Result<Reservation, HoldReason> {
        let limits = &gathered.settings.routing.limits;
        if let Some(reason) = self.short_of(&gathered.settings) {
            return Err(reason);
        }
        let live = self
            .live_sessions(gathered)
            .map_err(|()| HoldReason::TmuxUnanswered)?;
        let mut room = lock(&self.0.room.0);
        let max = limits.max_live_sessions as usize;
        let older_waits = room
            .waiting
            .first_key_value()
            .is_some_and(|(first, _)| seq.is_none_or(|seq| *first < seq));
        let is_in_line = seq.is_some_and(|seq| room.waiting.contains_key(&seq));
        let claims = room.waiting.len() + usize::from(!is_in_line);
        let is_full = max > 0
            && (live + room.launching >= max
                || (older_waits && live + room.launching + claims > max));
        if is_full {
            if let Some(seq) = seq {
                room.waiting.insert(seq, gathered.key.clone());
            }
            return Err(HoldReason::WaitingCapacity);
        }
        if let Some(seq) = seq {
            room.waiting.remove(&seq);
        }
        room.launching += 1;
        drop(room);
        Ok(Reservation(self.0.room.clone()))
    }

    /// A delivery no longer waits for room.
    pub(super) fn leaves_the_line(&self, seq: i64) {
        lock(&self.0.room.0).waiting.remove(&seq);
    }

    pub(super) fn short_of(&self, settings: &Settings) -> Option<HoldReason> {
        let limits = &settings.routing.limits;
        let disk = &self.world().disk;
        let mb = |bytes: u64| bytes >> 20;
        let memory = free_memory(disk.as_ref());
        if limits.min_free_memory_mb > 0
            && memory.is_some_and(|free| mb(free) < limits.min_free_memory_mb)
        {
            return Some(HoldReason::LowMemory);
        }
        let place = match settings.routing.workspace.root.as_str() {
            "" => self.0.parts.layout.root(),
            root => nearest_existing(disk.as_ref(), Utf8Path::new(root)),
        };
        let free = disk.free_bytes(&place).ok();
        (limits.min_free_disk_mb > 0 && free.is_some_and(|free| mb(free) < limits.min_free_disk_mb))
            .then_some(HoldReason::LowDisk)
    }

    /// Live sessions of this root other than the item's own.
    fn live_sessions(&self, gathered: &Gathered) -> Result<usize, ()> {
        let listing = self.0.registry.list().map_err(|_| ())?;
        let snapshot = self.tmux(&gathered.settings).snapshot().map_err(|_| ())?;
        let lives = |target: &str| {
            the_loop_core::ids::TmuxTarget::parse(target).is_some_and(|target| {
                snapshot.state(&target) == the_loop_core::probe::TmuxState::Live
            })
        };
        Ok(listing
            .records
            .iter()
            .filter(|found| {
                found.record.status.is_live() && found.record.item.key() != gathered.key
            })
            .filter(|found| found.record.spawn.is_none() && lives(&found.record.tmux_target))
            .count())
    }

    /// The directory of a recorded session that is not where the settings of now would put it. It is used
    /// as it is: a conversation is resumed where it was (DI-39), and its work lies there.
    pub(super) fn recorded_place(&self, gathered: &Gathered) -> Option<Prepared> {
        let record = gathered.live().filter(|record| !record.cwd.is_empty())?;
        let cwd = Utf8PathBuf::from(&record.cwd);
        let workspace = &gathered.settings.routing.workspace;
        let strategy = strategy_of(workspace.strategy);
        let usual = match workspace.root.as_str() {
            "" => Utf8PathBuf::from(&gathered.settings.routing.spawn_workdir),
            root => {
                let below = checkout_path(strategy, gathered.item.repo(), &gathered.slug);
                Utf8Path::new(root).join(below?)
            }
        };
        let meta = self.world().disk.meta(&cwd).ok().flatten()?;
        if cwd == usual || meta.kind != Kind::Dir {
            return None;
        }
        let recorded = record.workspace.as_ref();
        Some(Prepared {
            strategy: match recorded.map(|workspace| workspace.strategy) {
                Some(WorkspaceStrategy::Worktree) => Strategy::Worktree,
                Some(WorkspaceStrategy::Clone) => Strategy::Clone,
                Some(WorkspaceStrategy::None) | None => Strategy::None,
            },
            path: recorded
                .filter(|workspace| workspace.strategy != WorkspaceStrategy::None)
                .map(|workspace| Utf8PathBuf::from(&workspace.path)),
            branch: recorded.and_then(|workspace| workspace.branch.clone()),
            made: false,
            note: None,
            cwd,
        })
    }

    /// The item's checkout, made or checked.
    pub(super) fn workspace(
        &self,
        gathered: &Gathered,
        held: &ItemLock,
        delivery: Option<&Delivery>,
    ) -> Result<Prepared, NoWorkspace> {
        let settings = &gathered.settings;
        let workspace = &settings.routing.workspace;
        let failed = |error: String, retry: bool| {
            self.emit(LogEvent::WorkspaceFailed {
                work_item: gathered.item.clone(),
                endpoint: None,
                strategy: strategy_of(workspace.strategy),
                error: error.clone(),
                will_retry: retry,
            });
            NoWorkspace::Failed { error, retry }
        };
        let root = (!workspace.root.is_empty()).then(|| Utf8PathBuf::from(&workspace.root));
        let source = match &root {
            None => None,
            Some(_) => Some(
                CloneSource::of(&gathered.item, settings)
                    .map_err(|e| failed(e.to_string(), false))?,
            ),
        };
        let request = WorkspaceRequest {
            item: gathered.item.clone(),
            slug: gathered.slug.clone(),
            strategy: strategy_of(workspace.strategy),
            root,
            source,
            spawn_workdir: Utf8PathBuf::from(&settings.routing.spawn_workdir),
            start: StartFrom::of(&gathered.item, delivery),
        };
        let repo = gathered.item.repo().clone();
        let locks = self.0.locks.clone();
        let clone_lock = move || {
            locks
                .clone_lock(&repo, "checkout", Patience::of(Duration::from_mins(10)))
                .map(|held| Box::new(held) as Box<dyn Send>)
                .map_err(|e| e.to_string())
        };
        let give_way = || self.is_stopping() || self.0.locks.is_wanted(held);
        let prepared = self.git(settings).prepare(&request, &clone_lock, &give_way);
        let prepared = prepared.map_err(|error| match error {
            WorkspaceError::GaveWay => NoWorkspace::GaveWay,
            WorkspaceError::TryLater(_) | WorkspaceError::NeedsOperator(_) => {
                failed(error.to_string(), error.retryable())
            }
        })?;
        if let Some(path) = &prepared.path {
            self.emit(LogEvent::WorkspacePrepared {
                work_item: gathered.item.clone(),
                endpoint: None,
                strategy: prepared.strategy,
                checkout: path.to_string(),
                branch: prepared.branch.clone(),
            });
        }
        Ok(prepared)
    }
}

/// The nearest directory above `path`, or itself, that is there.
fn nearest_existing(disk: &dyn crate::disk::Disk, path: &Utf8Path) -> Utf8PathBuf {
    path.ancestors()
        .find(|dir| disk.meta(dir).is_ok_and(|meta| meta.is_some()))
        .unwrap_or(path)
        .to_owned()
}

/// Memory that programs can have, in bytes; `None` where the machine does not say.
pub fn free_memory(disk: &dyn crate::disk::Disk) -> Option<u64> {
    let text = disk.read(Utf8Path::new("/proc/meminfo"), 64 << 10).ok()?;
    let text = String::from_utf8(text).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kb: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kb << 10)
}

fn strategy_of(configured: Configured) -> Strategy {
    match configured {
        Configured::Worktree => Strategy::Worktree,
        Configured::Clone => Strategy::Clone,
    }
}

/// The workspace as the session record keeps it.
pub(super) fn workspace_record(prepared: &Prepared) -> WorkspaceRecord {
    WorkspaceRecord {
        strategy: match prepared.strategy {
            Strategy::Worktree => WorkspaceStrategy::Worktree,
            Strategy::Clone => WorkspaceStrategy::Clone,
            Strategy::None => WorkspaceStrategy::None,
        },
        path: prepared.path.as_ref().unwrap_or(&prepared.cwd).to_string(),
        branch: prepared.branch.clone(),
    }
}
