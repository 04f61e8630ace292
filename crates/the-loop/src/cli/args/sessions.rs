//! `sessions`, and what its verbs share.

use clap::{Args, Subcommand};

/// A single work item, by flag or position (SE-8).
#[derive(Clone, Debug, Args)]
pub struct OneItem {
    /// The work item.
    #[arg(
        long = "work-item",
        value_name = "REF",
        required_unless_present = "positional",
        conflicts_with = "positional"
    )]
    pub work_item: Option<String>,
    /// The work item, <provider>:[<host>/]<owner>/<repo>#<number>.
    #[arg(value_name = "REF", id = "positional")]
    pub positional: Option<String>,
}

/// Work items, by flag or position (SE-8).
#[derive(Clone, Debug, Args)]
pub struct ManyItems {
    /// A work item; repeatable.
    #[arg(long = "work-item", value_name = "REF")]
    pub work_item: Vec<String>,
    /// Work items, <provider>:[<host>/]<owner>/<repo>#<number>.
    #[arg(value_name = "REF")]
    pub refs: Vec<String>,
}

/// Where records are and how long to wait, on every `sessions` verb (SE-9, SE-10).
#[derive(Clone, Debug, Args)]
pub struct Dirs {
    /// Directory of the session records [default: routing.registryDir].
    #[arg(long, value_name = "DIR")]
    pub registry_dir: Option<String>,
    /// Directory of the portable records [default: <root>/portable].
    #[arg(long, value_name = "DIR")]
    pub portable_dir: Option<String>,
    /// Seconds to wait for a work item that is busy.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub lock_timeout: u64,
}

/// Does the verb also say so on the ticket?
#[derive(Clone, Copy, Debug, Args)]
pub struct Comment {
    /// Say so on the ticket, too (the default).
    #[arg(long, overrides_with = "no_comment")]
    pub comment: bool,
    /// Do not say so on the ticket.
    #[arg(long, overrides_with = "comment")]
    pub no_comment: bool,
}

/// Does the verb wait for what becomes of its delivery?
#[derive(Clone, Copy, Debug, Args)]
pub struct Wait {
    /// Wait for the outcome (the default).
    #[arg(long, overrides_with = "no_wait")]
    pub wait: bool,
    /// Return once it is accepted.
    #[arg(long, overrides_with = "wait")]
    pub no_wait: bool,
}

/// `sessions`.
#[derive(Debug, Subcommand)]
pub enum Sessions {
    /// List what this machine hosts.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions list\n  \
        the-loop sessions list --status active --state waiting\n  \
        the-loop sessions list --no-probe --format json\n\n\
        The Harness column has a * where the harness cannot confirm that it took a prompt; what else it \
        cannot do is told below the table. Behind a state stands who says so and since when. The JSON \
        also has the tokens that each item used.")]
    List {
        /// Only sessions of this status; repeatable.
        #[arg(long, value_name = "STATUS", value_parser = ["active", "paused", "closed", "starting", "waiting-capacity", "low-memory", "low-disk"])]
        status: Vec<String>,
        /// Only sessions in this state; repeatable.
        #[arg(long, value_name = "STATE",
              value_parser = ["starting", "ready", "working", "waiting", "idle", "exited", "unknown"])]
        state: Vec<String>,
        /// Only look at records; every state is then unknown.
        #[arg(long)]
        no_probe: bool,
        /// Where records are.
        #[command(flatten)]
        dirs: Dirs,
    },
    /// Be in the terminal of a session.
    ///
    /// Becomes tmux; inside a client of the same server it switches that client. Sessions that are
    /// starting or closed can only be watched.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions attach github:octo/repo#15\n  \
        the-loop sessions attach -r github:octo/repo#15    watch only\n  \
        the-loop sessions attach --print github:octo/repo#15")]
    Attach {
        /// Which.
        #[command(flatten)]
        item: OneItem,
        /// Watch only.
        #[arg(short, long)]
        read_only: bool,
        /// Print the command instead of running it.
        #[arg(long)]
        print: bool,
        /// That pull request's own session.
        #[arg(long, value_name = "REF|N")]
        pull_request: Option<String>,
        /// Where records are.
        #[command(flatten)]
        dirs: Dirs,
    },
    /// Bind an existing conversation to a work item.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions register github:octo/repo#15 --harness claude \\\n    \
        --harness-session-id 0195c1c2-7d3e-7aa0-8f0e-5a1b9c3d2e10 --cwd ~/src/repo")]
    Register {
        /// Which.
        #[command(flatten)]
        item: OneItem,
        /// A harness that can resume a conversation.
        #[arg(long, value_name = "NAME")]
        harness: String,
        /// Id of the conversation.
        #[arg(long, value_name = "ID")]
        harness_session_id: String,
        /// Directory in which the conversation lives.
        #[arg(long, value_name = "DIR", default_value = ".")]
        cwd: String,
        /// Replace a live record.
        #[arg(long)]
        force: bool,
        /// Where records are.
        #[command(flatten)]
        dirs: Dirs,
    },
    /// Say that a pull request belongs to a work item.
    ///
    /// What happens to the pull request is then told to the item's session. That is found out by itself where the
    /// branch or the description names the item.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions link-pr github:octo/repo#15 --pull-request 16\n  \
        the-loop sessions link-pr github:octo/repo#15 --pull-request github:octo/lib#3 --remove")]
    LinkPr {
        /// Which.
        #[command(flatten)]
        item: OneItem,
        /// The pull request; a bare number is one of the item's own repository.
        #[arg(long, value_name = "REF|N|#N")]
        pull_request: String,
        /// Undo the link.
        #[arg(long)]
        remove: bool,
        /// Where records are.
        #[command(flatten)]
        dirs: Dirs,
    },
    /// Start sessions.
    ///
    /// No label is needed from a shell. A start is tried once: whoever asks sees it fail.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions start github:octo/repo#15\n  \
        the-loop sessions start local:octo/repo#1 --harness demo --no-comment")]
    Start {
        /// Which.
        #[command(flatten)]
        items: ManyItems,
        /// Harness to start [default: by label, by repository, routing.defaultHarness].
        #[arg(long, value_name = "NAME")]
        harness: Option<String>,
        /// Wait or not.
        #[command(flatten)]
        wait: Wait,
        /// Comment or not.
        #[command(flatten)]
        comment: Comment,
        /// Where records are.
        #[command(flatten)]
        dirs: Dirs,
    },
    /// Deliver nothing into sessions until they are resumed.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions pause github:octo/repo#15\n  \
        the-loop sessions pause --all")]
    Pause {
        /// Which, and how.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Take a pause or a limit away.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions resume github:octo/repo#15\n  \
        the-loop sessions resume --all    also every item that a limit has parked")]
    Resume {
        /// Which, and how.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// End sessions and remember that they are not to run.
    ///
    /// Work that is nowhere else is saved before a checkout is removed.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions stop github:octo/repo#15\n  \
        the-loop sessions stop --all --no-comment")]
    Stop {
        /// Which, and how.
        #[command(flatten)]
        control: ControlArgs,
        /// Do not save work before a checkout goes.
        #[arg(long)]
        discard: bool,
    },
    /// Relaunch running agents with the env file's new values; their conversations go on.
    ///
    /// Each agent is relaunched in its own pane, takes up its conversation, and is looked at to prove that it
    /// holds the new values. Its tmux session, window and attached clients stay; the scrollback of its pane
    /// is lost. What is not running is not started, and what cannot take up a conversation is left alone.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions restart --all --dry-run      who is stale, and who would be relaunched\n  \
        the-loop sessions restart --all --when-idle    let turns end first, for ten minutes each\n  \
        the-loop sessions restart --work-item github:octo/repo#15\n\n\
        Values are never shown, only names and the first 8 hex digits of a value's SHA-256.\n\n\
        Exit codes: 0 also when all were skipped, 1 one failed or is still stale, 2 usage, or env.file is \
        not set, cannot be read or declares nothing.")]
    Restart {
        /// Which.
        #[command(flatten)]
        items: ManyItems,
        /// Every live session, those of pull requests too; not together with refs.
        #[arg(long)]
        all: bool,
        /// Stop before the first effect.
        #[arg(long)]
        dry_run: bool,
        /// Wait for the end of a turn, at most this long [default without a value: 600].
        #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "600",
              value_parser = clap::value_parser!(u64).range(0..=86_400))]
        when_idle: Option<u64>,
        /// Also where somebody's words are in the input box.
        #[arg(long)]
        force: bool,
        /// Where records are.
        #[command(flatten)]
        dirs: Dirs,
    },
    /// End sessions and keep the records; nothing is wished, nothing is posted.
    #[command(after_long_help = "Examples:\n  \
        the-loop sessions close github:octo/repo#15\n  \
        the-loop sessions close github:octo/repo#15 --kill-tmux")]
    Close {
        /// Which.
        #[command(flatten)]
        items: ManyItems,
        /// Keep the tmux session for reading.
        #[arg(long, conflicts_with = "kill_tmux")]
        keep_tmux: bool,
        /// End the tmux session, too.
        #[arg(long)]
        kill_tmux: bool,
        /// Do not save work before a checkout goes.
        #[arg(long)]
        discard: bool,
        /// Where records are.
        #[command(flatten)]
        dirs: Dirs,
    },
}

/// What `pause`, `resume` and `stop` take.
#[derive(Clone, Debug, Args)]
pub struct ControlArgs {
    /// Which.
    #[command(flatten)]
    pub items: ManyItems,
    /// Every live item (resume: every parked one, too); not together with refs.
    #[arg(long, conflicts_with_all = ["work_item", "refs"])]
    pub all: bool,
    /// Comment or not.
    #[command(flatten)]
    pub comment: Comment,
    /// Where records are.
    #[command(flatten)]
    pub dirs: Dirs,
}
