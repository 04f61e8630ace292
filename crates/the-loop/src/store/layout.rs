//! Every path this program makes, and what of it may travel (ST-12).
//!
//! Paths are built from slugs, numbers and ids that have been checked, never from other text
//! (ST-6). [`declared`] says what each path holds and why it does or does not travel; only tests
//! and documents read that.

pub mod declared;
mod prepare;

use camino::Utf8PathBuf;
use the_loop_core::ids::{HarnessSessionId, RepoRef, Slug, WorkItemRef};
use the_loop_core::time::Timestamp;

pub use prepare::{LayoutError, Prepared};

/// Paths that settings or flags move out of their place; absent ones stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `routing.registryDir`: the session records alone.
    pub registry_dir: Option<Utf8PathBuf>,
    /// `--portable-dir`: the portable records and their index.
    pub portable_dir: Option<Utf8PathBuf>,
    /// `eventLog.path`.
    pub events_log: Option<Utf8PathBuf>,
    /// `webhooks.ghWebhook.pidfile`.
    pub webhook_pid: Option<Utf8PathBuf>,
}

/// Where everything is. Cheap enough to clone; holds no handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: Utf8PathBuf,
    registry_dir: Utf8PathBuf,
    portable_dir: Utf8PathBuf,
    events_log: Utf8PathBuf,
    webhook_pid: Utf8PathBuf,
}

/// What a lock file guards (ST-23, ST-24).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockName {
    /// A work item, shared by the items that collide with it.
    Item(Slug),
    /// The wish of a verb that ends things to have an item's lock (ST-25).
    Want(Slug),
    /// A shared clone.
    Clone(RepoRef),
    /// A ticket's file.
    Ticket(Slug),
    /// The numbers of new tickets.
    Tickets,
    /// The index of portable records.
    Index,
    /// The making of `local/instance`.
    Instance,
    /// The proof that locking works at all (ST-28).
    Probe,
}

impl LockName {
    /// The file's name without `.lock`. A dot never stands in a folded slug, so the kinds are apart.
    fn stem(&self) -> String {
        match self {
            Self::Item(slug) => slug.folded(),
            Self::Want(slug) => format!("{}.want", slug.folded()),
            Self::Clone(repo) => format!("g.{}", folded_repo(repo)),
            Self::Ticket(slug) => format!("t.{}", slug.folded()),
            Self::Tickets => "tickets".to_owned(),
            Self::Index => "index".to_owned(),
            Self::Instance => "instance".to_owned(),
            Self::Probe => "probe".to_owned(),
        }
    }
}

/// Host, owner and name in lower case, with `-` for what a file name or a fold does not take. Two
/// repositories that come out alike share one lock, which is safe.
fn folded_repo(repo: &RepoRef) -> String {
    let mut name: String = repo
        .key()
        .trim_start_matches('/')
        .chars()
        .map(|c| match c {
            '/' | ':' => '-',
            '.' => '_',
            other => other,
        })
        .collect();
    name.truncate(200);
    name
}

impl Layout {
    /// The default layout below an absolute root.
    pub fn new(root: impl Into<Utf8PathBuf>) -> Self {
        Self::with(root, Overrides::default())
    }

    /// The layout below an absolute root, with some paths elsewhere.
    pub fn with(root: impl Into<Utf8PathBuf>, moved: Overrides) -> Self {
        let root = root.into();
        let or = |path: Option<Utf8PathBuf>, default: &str| path.unwrap_or(root.join(default));
        Self {
            registry_dir: or(moved.registry_dir, "local"),
            portable_dir: or(moved.portable_dir, "portable"),
            events_log: or(moved.events_log, "logs/events.jsonl"),
            webhook_pid: or(moved.webhook_pid, "gh-webhook.pid"),
            root,
        }
    }

    // What travels.

    /// Portable record of an item.
    pub fn portable(&self, slug: &Slug) -> Utf8PathBuf {
        self.portable_dir.join(format!("{slug}.json"))
    }
    /// List of the portable records.
    pub fn portable_index(&self) -> Utf8PathBuf {
        self.portable_dir.join("index.json")
    }
    /// A ticket in the spelling of its ref. One that is there may be spelled otherwise.
    pub fn ticket(&self, item: &WorkItemRef) -> Utf8PathBuf {
        self.tickets_dir()
            .join(&item.repo().owner)
            .join(&item.repo().name)
            .join(format!("{}.json", item.number()))
    }

    // This machine's handles.

    /// Session record of an item.
    pub fn session_record(&self, slug: &Slug) -> Utf8PathBuf {
        self.registry_dir.join(format!("{slug}.json"))
    }
    /// A lock file.
    pub fn lock(&self, name: &LockName) -> Utf8PathBuf {
        self.locks_dir().join(format!("{}.lock", name.stem()))
    }
    /// The inbox.
    pub fn inbox_db(&self) -> Utf8PathBuf {
        self.local_dir().join("inbox.db")
    }
    /// A saved work's bundle; `at` counts whole seconds.
    pub fn saved_bundle(&self, slug: &Slug, at: Timestamp) -> Utf8PathBuf {
        self.saved_dir()
            .join(format!("{slug}-{}.bundle", at.compact()))
    }
    /// A saved work's manifest.
    pub fn saved_manifest(&self, slug: &Slug, at: Timestamp) -> Utf8PathBuf {
        self.saved_dir()
            .join(format!("{slug}-{}.json", at.compact()))
    }
    /// What the harness's hooks reported.
    pub fn hook_file(&self, slug: &Slug) -> Utf8PathBuf {
        self.hooks_dir().join(format!("{slug}.jsonl"))
    }
    /// The part of the hook file before the last change of file.
    pub fn hook_file_before(&self, slug: &Slug) -> Utf8PathBuf {
        self.hooks_dir().join(format!("{slug}.1.jsonl"))
    }
    /// The settings a harness is handed.
    pub fn hook_settings(&self, slug: &Slug) -> Utf8PathBuf {
        self.hooks_dir().join(format!("{slug}.settings.json"))
    }
    /// What one pane is to run, until its launcher has read it.
    pub fn launch_file(&self, slug: &Slug, unique: [u8; 4]) -> Utf8PathBuf {
        self.launch_dir()
            .join(format!("{slug}-{}.json", hex::encode(unique)))
    }
    /// A prompt that the agent is pointed to; `seq` is its delivery's.
    pub fn mail(&self, slug: &Slug, seq: i64) -> Utf8PathBuf {
        self.mail_dir(slug).join(format!("{seq}.md"))
    }
    /// A transcript of the demo harness.
    pub fn demo_transcript(&self, id: &HarnessSessionId) -> Utf8PathBuf {
        self.demo_dir().join(format!("{}.jsonl", id.as_str()))
    }
    /// The daemon's socket for the command line.
    pub fn socket(&self) -> Utf8PathBuf {
        self.local_dir().join("the-loop.sock")
    }
    /// The random id of this root.
    pub fn instance(&self) -> Utf8PathBuf {
        self.local_dir().join("instance")
    }
    /// The configuration of our tmux server.
    pub fn tmux_conf(&self) -> Utf8PathBuf {
        self.local_dir().join("tmux.conf")
    }
    /// The event log.
    pub fn events_log(&self) -> Utf8PathBuf {
        self.events_log.clone()
    }
    /// The developers' trace.
    pub fn daemon_log(&self) -> Utf8PathBuf {
        self.logs_dir().join("daemon.log")
    }
    /// Lock and pid of the daemon.
    pub fn service_pid(&self) -> Utf8PathBuf {
        self.root.join("service.pid")
    }
    /// Lock and pid of the receiver.
    pub fn webhook_pid(&self) -> Utf8PathBuf {
        self.webhook_pid.clone()
    }

    /// Lock and pid of the poller.
    pub fn poll_pid(&self) -> Utf8PathBuf {
        self.root.join("poll.pid")
    }
    /// What the poller did last.
    pub fn poll_status(&self) -> Utf8PathBuf {
        self.root.join("poll-status.json")
    }

    // Directories.

    /// The state root.
    pub fn root(&self) -> Utf8PathBuf {
        self.root.clone()
    }
    /// What stays on this machine.
    pub fn local_dir(&self) -> Utf8PathBuf {
        self.root.join("local")
    }
    /// The session records.
    pub fn registry_dir(&self) -> Utf8PathBuf {
        self.registry_dir.clone()
    }
    /// The portable records.
    pub fn portable_dir(&self) -> Utf8PathBuf {
        self.portable_dir.clone()
    }
    /// The tickets, by owner and repository.
    pub fn tickets_dir(&self) -> Utf8PathBuf {
        self.root.join("tickets")
    }
    /// The lock files.
    pub fn locks_dir(&self) -> Utf8PathBuf {
        self.local_dir().join("locks")
    }
    /// Saved work.
    pub fn saved_dir(&self) -> Utf8PathBuf {
        self.local_dir().join("saved")
    }
    /// Hook files and the settings handed to harnesses.
    pub fn hooks_dir(&self) -> Utf8PathBuf {
        self.local_dir().join("hooks")
    }
    /// Launch files.
    pub fn launch_dir(&self) -> Utf8PathBuf {
        self.local_dir().join("launch")
    }
    /// The mail of one item.
    pub fn mail_dir(&self, slug: &Slug) -> Utf8PathBuf {
        self.local_dir().join("mail").join(slug.as_str())
    }
    /// The demo harness's transcripts.
    pub fn demo_dir(&self) -> Utf8PathBuf {
        self.local_dir().join("demo")
    }
    /// Logs other than a moved event log.
    pub fn logs_dir(&self) -> Utf8PathBuf {
        self.root.join("logs")
    }
}

#[cfg(test)]
mod tests;
