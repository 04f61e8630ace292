//! The poller: asks trackers what is new, and puts it into the inbox (ingress page, section 8).
//!
//! It decides only what is worth a delivery; what one means for its item is the engine's matter, as with
//! webhooks. The path of a cycle: [`cycle`] goes over the repositories, [`repo`] reads the four lists of one
//! and gathers what is new, [`item`] judges an item that moved, [`thread`] one that is seen for the first
//! time, [`ends`] those that ended, [`merge`] pull requests with conflicts; [`ledger`] keeps what was seen, and [`ask`] is the way to GitHub.
//! [`rows`] are GitHub's lists as far as they are read.

mod ask;
mod cycle;
mod ends;
mod item;
mod ledger;
mod merge;
mod repo;
mod rows;
mod thread;

pub use cycle::{sources, why_disabled};

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use the_loop_core::config::{PollMonitor, Settings};
use the_loop_core::event::{LogEvent, Source};
use the_loop_core::ids::{ItemKey, RepoRef, WorkItemRef};
use the_loop_core::route::Owner;
use the_loop_core::time::Timestamp;

use crate::store::eventlog::EventLog;
use crate::store::inbox::Inbox;
use crate::store::layout::Layout;
use crate::store::lock::Locks;
use crate::store::poll_status::LastCycle;
use crate::store::portable::Portable;
use crate::store::registry::Registry;
use crate::tracker::github::client::{Github, WriteError};
use crate::world::World;

/// How often every session's item is asked for by itself, and every item whose session is missed (IN-49).
const LOOK_AROUND_EVERY: Duration = Duration::from_hours(1);
/// How long a host that refuses the credential is left alone.
const REFUSED_FOR: Duration = Duration::from_mins(5);
/// What one run remembers of each kind.
const REMEMBERED_MAX: usize = 20_000;

/// What the poller works with.
#[derive(Clone)]
pub struct PollContext {
    /// The outside.
    pub world: World,
    /// Where everything is.
    pub layout: Layout,
    /// The settings of the moment.
    pub settings: Arc<dyn Fn() -> Arc<Settings> + Send + Sync>,
    /// Where deliveries go.
    pub inbox: Inbox,
    /// The operators' log.
    pub log: EventLog,
    /// The way to GitHub.
    pub github: Github,
    /// Is called after something was put into the inbox.
    pub on_accept: Arc<dyn Fn() + Send + Sync>,
    /// Is it to end? Asked between items.
    pub is_ending: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// The poller, and what it remembers of one run. All that matters is in the inbox and the portable records.
#[derive(Debug)]
pub struct Poller {
    context: PollContext,
    registry: Registry,
    portable: Portable,
    locks: Locks,
    memory: Memory,
}

/// What spares requests and lines in the log. Forgetting it costs nothing else.
#[derive(Debug, Default)]
struct Memory {
    /// Items as they were when they were judged last: their rows, hashed. Their `updated_at` knows seconds only,
    /// and an item may be closed in the second in which somebody spoke.
    judged: HashMap<ItemKey, u64>,
    /// Pull requests of a repository whose reviews are read once more: more may have come in the second of the
    /// last change, and change nothing that a list shows.
    unsettled: HashMap<String, Vec<u64>>,
    /// Ids of deliveries that were offered to the inbox.
    offered: HashSet<String>,
    /// When every session's item was asked for last.
    looked_around_at: Option<Timestamp>,
    /// Validators of items that are asked for by themselves.
    validators: HashMap<String, String>,
    /// What was said once.
    said: HashSet<String>,
    /// The last fault of each repository, so that it is said when it changes.
    faults: HashMap<String, String>,
    /// Hosts that refused the credential, until when they are left alone.
    refused: HashMap<String, Timestamp>,
}

/// What a cycle came to (IN-52).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Items whose rows or threads were looked at.
    pub items_seen: u64,
    /// Items for which a session was asked.
    pub spawns: u64,
    /// Words and results that were put into the inbox.
    pub comments_forwarded: u64,
    /// Items that were found to have ended.
    pub closures: u64,
    /// Items and repositories that met an error.
    pub errors: u64,
    /// It was told to end, or a host would take no more calls.
    pub interrupted: bool,
    /// Requests.
    pub requests: u64,
    /// Those of them that were answered with "as before".
    pub not_modified: u64,
}

impl Tally {
    /// Deliveries that were put into the inbox.
    pub fn accepted(&self) -> u64 {
        self.spawns + self.comments_forwarded + self.closures
    }
}

impl From<Tally> for LastCycle {
    fn from(tally: Tally) -> Self {
        Self {
            items_seen: tally.items_seen,
            spawns: tally.spawns,
            comments_forwarded: tally.comments_forwarded,
            closures: tally.closures,
            failures: 0,
            errors: tally.errors,
            interrupted: tally.interrupted,
        }
    }
}

/// Why something could not be asked or kept.
#[derive(Debug)]
enum Fault {
    /// GitHub did not answer, or refused.
    Github(WriteError),
    /// It answered with something else.
    Malformed(&'static str),
    /// There are more labelled items than are followed.
    TooLarge,
    /// A file, lock or database of ours.
    Ours(String),
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        Self::Github(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Github(error) => error.fmt(f),
            Self::Malformed(what) => write!(f, "{what} is not what it should be"),
            Self::TooLarge => f.write_str("more items with the label than can be followed"),
            Self::Ours(words) => f.write_str(words),
        }
    }
}

/// A repository of the sources, and what of it is followed.
#[derive(Clone, Debug)]
struct Followed {
    repo: RepoRef,
    monitor: PollMonitor,
}

/// The sessions that live, as far as they make items interesting.
#[derive(Debug, Default)]
struct Sessions {
    owners: Vec<Owner>,
    since: HashMap<ItemKey, Timestamp>,
}

impl Sessions {
    /// The session of which this is the item, or a recorded pull request.
    fn of(&self, key: &ItemKey) -> Option<&Owner> {
        self.owners
            .iter()
            .find(|owner| owner.item.key() == *key || owner.pulls.contains(key))
    }

    fn knows(&self, key: &ItemKey) -> bool {
        self.of(key).is_some()
    }

    fn since(&self, owner: &Owner) -> Option<Timestamp> {
        self.since.get(&owner.item.key()).copied()
    }

    /// Does any session live in this repository?
    fn are_in(&self, repo: &RepoRef) -> bool {
        let key = repo.key();
        self.owners
            .iter()
            .any(|owner| owner.item.repo().key() == key)
    }

    /// The session that has this branch, or the number in it, in this repository.
    fn of_branch(&self, repo: &RepoRef, branch: &str) -> Option<&Owner> {
        let number = the_loop_core::link::branch_issue(branch);
        let key = repo.key();
        self.owners
            .iter()
            .filter(|owner| owner.item.repo().key() == key)
            .find(|owner| {
                owner.branch.as_deref() == Some(branch) || number == Some(owner.item.number())
            })
    }
}

impl Poller {
    /// Asks nothing yet.
    pub fn new(context: PollContext) -> Self {
        Self {
            registry: Registry::new(&context.world, &context.layout),
            portable: Portable::new(&context.world, &context.layout),
            locks: Locks::new(&context.world, &context.layout),
            memory: Memory::default(),
            context,
        }
    }

    fn emit(&self, event: LogEvent) {
        self.context.log.emit(Source::Poll, event);
    }

    fn now(&self) -> Timestamp {
        self.context.world.clock.now()
    }

    /// `true` the first time in this run.
    fn first_time(&mut self, what: String) -> bool {
        if self.memory.said.len() >= REMEMBERED_MAX {
            self.memory.said.clear();
        }
        self.memory.said.insert(what)
    }

    fn item_error(&self, item: &WorkItemRef, fault: &Fault) {
        self.emit(LogEvent::PollItemError {
            work_item: item.clone(),
            error: fault.to_string(),
        });
    }
}

impl fmt::Debug for PollContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollContext").finish_non_exhaustive()
    }
}
