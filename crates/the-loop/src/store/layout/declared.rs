//! The declaration of every generated path as data (ST-12). Nothing at run time reads it: tests
//! hold the layout, the state page and the repository's ignore block against it.

/// Does a file go where the work goes?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travels {
    /// True on any machine; may be committed.
    Portable,
    /// A handle to this machine; never leaves it.
    Local,
}

impl Travels {
    /// The word on the state page.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Local => "local",
        }
    }
}

/// One generated path.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// The property of the layout that gives it.
    pub property: &'static str,
    /// The pattern below the default root; `<name>` stands for what varies.
    pub default: &'static str,
    /// Patterns of files that come and go beside it.
    pub beside: &'static [&'static str],
    /// Does it travel?
    pub travels: Travels,
    /// What it holds.
    pub holds: &'static str,
    /// Why it does or does not travel.
    pub why: &'static str,
}

const fn portable(
    property: &'static str,
    default: &'static str,
    holds: &'static str,
    why: &'static str,
) -> Declared {
    Declared {
        property,
        default,
        beside: &[],
        travels: Travels::Portable,
        holds,
        why,
    }
}

const fn local(
    property: &'static str,
    default: &'static str,
    holds: &'static str,
    why: &'static str,
) -> Declared {
    Declared {
        property,
        default,
        beside: &[],
        travels: Travels::Local,
        holds,
        why,
    }
}

/// All generated paths, in the order of the state page.
pub const DECLARED: &[Declared] = &[
    portable(
        "portable",
        "portable/<slug>.json",
        "what is true of an item on any machine",
        "an item must be armed or stopped, and its thread known, wherever the work goes on",
    ),
    portable(
        "portable_index",
        "portable/index.json",
        "list of the portable records",
        "it tells a reviewer what a change of the records is about",
    ),
    portable(
        "ticket",
        "tickets/<owner>/<repo>/<n>.json",
        "a ticket of the embedded tracker and its thread",
        "the tickets are the work itself",
    ),
    local(
        "session_record",
        "local/<slug>.json",
        "session record: this machine's handle to a conversation",
        "paths, process ids and conversations mean nothing elsewhere, and would block a new session",
    ),
    local(
        "lock",
        "local/locks/<name>.lock",
        "a lock; the text in it is for people",
        "a lock is held by a process of this machine",
    ),
    Declared {
        property: "inbox_db",
        default: "local/inbox.db",
        beside: &[
            "local/inbox.db-wal",
            "local/inbox.db-shm",
            "local/inbox.db.v<n>.bak",
        ],
        travels: Travels::Local,
        holds: "deliveries, outcomes, keys of what was seen, limits",
        why: "two machines would work one queue twice",
    },
    local(
        "saved_bundle",
        "local/saved/<slug>-<ts>.bundle",
        "work of a removed checkout, as a git bundle",
        "it may hold anything an agent left in its checkout; carry it by hand when it is wanted",
    ),
    local(
        "saved_manifest",
        "local/saved/<slug>-<ts>.json",
        "manifest of a saved bundle",
        "it belongs to its bundle and names a path of this machine",
    ),
    local(
        "hook_file",
        "local/hooks/<slug>.jsonl",
        "what the harness's hooks reported",
        "it is about a process of this machine",
    ),
    local(
        "hook_file_before",
        "local/hooks/<slug>.1.jsonl",
        "the part of the hook file before it became too large",
        "it is about a process of this machine",
    ),
    local(
        "hook_settings",
        "local/hooks/<slug>.settings.json",
        "settings handed to the harness",
        "it names programs and paths of this machine",
    ),
    local(
        "launch_file",
        "local/launch/<slug>-<hex>.json",
        "what a pane is to run, for the moment until it runs",
        "it holds secrets of this machine's environment",
    ),
    local(
        "mail",
        "local/mail/<slug>/<seq>.md",
        "a prompt that the agent is pointed to",
        "it is for the agent that runs here",
    ),
    local(
        "demo_transcript",
        "local/demo/<id>.jsonl",
        "transcript of the demo harness",
        "a conversation stays with its harness",
    ),
    local(
        "socket",
        "local/the-loop.sock",
        "the daemon's socket for the command line",
        "a socket is an object of this machine",
    ),
    local(
        "instance",
        "local/instance",
        "random id of this root",
        "it marks the processes that this root started",
    ),
    local(
        "tmux_conf",
        "local/tmux.conf",
        "configuration of the tmux server",
        "it is written anew at every start",
    ),
    Declared {
        property: "events_log",
        default: "logs/events.jsonl",
        beside: &["logs/events-<ts>.jsonl"],
        travels: Travels::Local,
        holds: "the event log, with its closed segments",
        why: "it tells what happened on this machine",
    },
    Declared {
        property: "daemon_log",
        default: "logs/daemon.log",
        beside: &["logs/daemon-<ts>.log"],
        travels: Travels::Local,
        holds: "developers' trace of the daemon, with its older parts",
        why: "it tells what happened on this machine",
    },
    local(
        "service_pid",
        "service.pid",
        "lock and pid of the daemon",
        "a process id means nothing elsewhere",
    ),
    local(
        "webhook_pid",
        "gh-webhook.pid",
        "lock and pid of the receiver",
        "a process id means nothing elsewhere",
    ),
    local(
        "poll_pid",
        "poll.pid",
        "lock and pid of the poller",
        "a process id means nothing elsewhere",
    ),
    local(
        "poll_status",
        "poll-status.json",
        "what the poller did last",
        "it tells what a process of this machine does",
    ),
];
