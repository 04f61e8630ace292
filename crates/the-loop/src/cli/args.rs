//! The grammar of the command line (SE-1, SE-2). Help, man pages, completions and the command reference
//! all come from these definitions (SE-17).

use clap::builder::styling::Styles;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::harness::demo::DemoArgs;

/// Turns tickets and pull requests into coding-agent sessions on machines you own.
///
/// A daemon takes in what happens on tickets; each ticket that is armed gets one coding agent in a tmux
/// session of its own, and every authorised comment on it is carried into that session.
#[derive(Debug, Parser)]
#[command(
    name = "the-loop",
    version,
    styles = Styles::plain(),
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = false,
    after_long_help = "Examples:\n  \
        the-loop start                                      bring the daemon up\n  \
        the-loop tickets new --title 'Add a flag' --start   make a ticket and start on it\n  \
        the-loop sessions list                              what is hosted here\n  \
        the-loop sessions attach local:octo/repo#1          be in its terminal\n  \
        the-loop events --follow                            what happens, as it happens\n\n\
        Exit codes: 0 done, 1 refused, failed or not found, 2 usage or unusable configuration."
)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that stand before or after the command (SE-2).
#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Use this configuration file and no other.
    #[arg(
        short,
        long,
        value_name = "FILE",
        global = true,
        help_heading = "Global options"
    )]
    pub config: Option<String>,
    /// How results are printed; `events` also takes jsonl.
    #[arg(long, value_enum, default_value_t = Format::Text, global = true, hide_possible_values = true,
          value_name = "text|json", help_heading = "Global options")]
    pub format: Format,
    /// Colour: auto means on a terminal and without NO_COLOR.
    #[arg(long, value_enum, default_value_t = Color::Auto, global = true, hide_possible_values = true,
          value_name = "auto|always|never", help_heading = "Global options")]
    pub color: Color,
    /// No notes and no progress; warnings and errors stay.
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// Developers' trace on stderr; repeat for more.
    #[arg(short, long, action = ArgAction::Count, global = true, help_heading = "Global options")]
    pub verbose: u8,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[value(alias = "table")]
    Text,
    /// One document.
    Json,
    /// One document a line.
    Jsonl,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring the daemon up.
    ///
    /// The daemon takes in what happens, starts agents and carries comments to them. It goes into the
    /// background once it is ready; agents live in tmux and do not depend on it.
    #[command(after_long_help = "Examples:\n  \
        the-loop start                 in the background\n  \
        the-loop start --foreground    in this terminal, log on stderr\n\n\
        Exit codes: 0 every enabled service is up, 1 one is not, 2 unusable configuration.")]
    Start(StartArgs),
    /// Run the daemon in front; short for `start --foreground`.
    #[command(
        after_long_help = "Examples:\n  the-loop run    in this terminal, log on stderr; end it with Ctrl-C"
    )]
    Run,
    /// End the daemon and leave the agents.
    ///
    /// Nothing that was accepted is lost: what is queued waits for the next start.
    #[command(after_long_help = "Examples:\n  \
        the-loop stop\n  \
        the-loop stop --timeout 5 --force    kill it when it is not gone by then\n\n\
        Exit codes: 0 stopped or not running, 1 it is still there.")]
    Stop(StopArgs),
    /// Stop the daemon, then start it.
    #[command(
        after_long_help = "Examples:\n  the-loop restart    after a change of the configuration that needs one"
    )]
    Restart(RestartArgs),
    /// Is it working?
    ///
    /// Reads locks, inbox and the daemon's socket; works with the daemon down or tmux hung.
    #[command(after_long_help = "Examples:\n  \
        the-loop status\n  \
        the-loop status --format json\n\n\
        Exit codes: 0 the daemon runs and every enabled service with it, 1 otherwise.")]
    Status,
    /// What this machine hosts: list, join, start, pause and end sessions.
    #[command(subcommand)]
    Sessions(Sessions),
    /// What came in and where it stands.
    #[command(subcommand)]
    Deliveries(Deliveries),
    /// The trail: what happened, and why nothing happened.
    ///
    /// Filters are ANDed. Output is oldest first; the last 50 matches unless --limit says otherwise.
    #[command(after_long_help = "Examples:\n  \
        the-loop events --work-item github:octo/repo#15\n  \
        the-loop events --type 'session.*' --type 'limit.*' --since 2h\n  \
        the-loop events --level warning --follow\n  \
        the-loop events --delivery-id 72d3162e-cc78-11e3-81ab-4c9367dc0958 --format jsonl\n  \
        the-loop events --types\n\n\
        Exit codes: 0 also when nothing matched, 1 the log cannot be read, 2 bad option.")]
    Events(EventsArgs),
    /// Tickets of the embedded tracker.
    #[command(subcommand)]
    Tickets(Tickets),
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// The whole loop in a throwaway place, offline.
    ///
    /// Makes a repository, a ticket and a daemon of its own in a temporary directory with a private
    /// tmux server, and shows each step when it was observed. Everything is removed afterwards.
    #[command(after_long_help = "Examples:\n  \
        the-loop demo\n  \
        the-loop demo --keep              leave ticket, daemon and files; paths are printed\n  \
        the-loop demo --harness claude    with a real agent\n\n\
        Exit codes: 0 every step was observed, 1 one was not.")]
    Demo(DemoRun),
    /// Print a completion script for a shell.
    #[command(after_long_help = "Examples:\n  \
        the-loop completions bash > ~/.local/share/bash-completion/completions/the-loop\n  \
        the-loop completions fish > ~/.config/fish/completions/the-loop.fish")]
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print manual pages as roff.
    #[command(after_long_help = "Examples:\n  \
        the-loop man sessions attach | man -l -\n  \
        the-loop man --dir ~/.local/share/man/man1")]
    Man {
        /// Write all pages into this directory.
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        dir: Option<String>,
        /// Command whose page is printed; none: the-loop's own.
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Called by a harness: notes what it reports.
    #[command(hide = true)]
    Hook {
        /// Name of the hook.
        name: String,
        /// Whose hook file.
        #[arg(long)]
        slug: Option<String>,
    },
    /// Runs in a pane: becomes what the launch file names.
    #[command(hide = true)]
    PaneExec {
        /// The launch file.
        file: String,
    },
    /// The demo harness.
    #[command(hide = true)]
    DemoAgent(DemoArgs),
}

/// Flags of `start`.
#[derive(Clone, Debug, Args)]
pub struct StartArgs {
    /// Stay in front, with the log on stderr.
    #[arg(long)]
    pub foreground: bool,
    /// Seconds to wait until the daemon is ready.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// This is the child of a `start`: its answer goes to stdout, its log to the file.
    #[arg(long, hide = true, conflicts_with = "foreground")]
    pub as_child: bool,
}

/// Flags of `stop`.
#[derive(Clone, Debug, Args)]
pub struct StopArgs {
    /// Seconds to wait until it is gone.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub timeout: u64,
    /// Kill it when it is still there after that; nothing accepted is lost.
    #[arg(long)]
    pub force: bool,
}

/// Flags of `restart`.
#[derive(Clone, Debug, Args)]
pub struct RestartArgs {
    /// Seconds to wait until the new daemon is ready.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
}

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
        The Harness column has a * where the harness cannot confirm that it took a prompt.")]
    List {
        /// Only sessions of this status; repeatable.
        #[arg(long, value_name = "STATUS", value_parser = ["active", "paused", "closed", "starting", "waiting-capacity"])]
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
        /// Harness to start [default: routing.defaultHarness].
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

/// `deliveries`.
#[derive(Debug, Subcommand)]
pub enum Deliveries {
    /// List what came in and where it stands.
    ///
    /// By default what is not over: unfinished, uncertain and abandoned deliveries.
    #[command(after_long_help = "Examples:\n  \
        the-loop deliveries list\n  \
        the-loop deliveries list --work-item github:octo/repo#15 --all\n  \
        the-loop deliveries list --state failed --state abandoned --since 2h")]
    List {
        /// Only of this work item.
        #[arg(long, value_name = "REF")]
        work_item: Option<String>,
        /// Only in this state; repeatable.
        #[arg(long, value_name = "STATE",
              value_parser = ["accepted", "routed", "queued", "sending", "pasted", "confirmed", "settled",
                              "dropped", "failed", "abandoned", "uncertain"])]
        state: Vec<String>,
        /// Only since this time: RFC 3339, or 30s 15m 2h 1d 2w ago.
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// The newest so many; 0 for all.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
        /// Those that are over, too.
        #[arg(long)]
        all: bool,
    },
    /// Show one delivery with its trail.
    #[command(after_long_help = "Examples:\n  \
        the-loop deliveries show 1042\n  \
        the-loop deliveries show 1042 --payload    also what came in, escaped")]
    Show {
        /// The inbox's number, or the transport's id.
        #[arg(value_name = "ID")]
        id: String,
        /// Show the text, too.
        #[arg(long)]
        payload: bool,
    },
    /// Try deliveries once more, with a full budget.
    #[command(after_long_help = "Examples:\n  \
        the-loop deliveries retry 1042 1043\n  \
        the-loop deliveries retry 1044 --force    although the agent may have it")]
    Retry {
        /// Numbers or transport ids.
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        /// Uncertain ones, too: the agent may have them already.
        #[arg(long)]
        force: bool,
    },
    /// Drop unfinished deliveries; a redelivery does not bring them back.
    #[command(after_long_help = "Examples:\n  \
        the-loop deliveries drop 1042 --reason 'answered by hand'\n  \
        the-loop deliveries drop --work-item github:octo/repo#15")]
    Drop {
        /// Numbers or transport ids.
        #[arg(
            value_name = "ID",
            required_unless_present = "work_item",
            conflicts_with = "work_item"
        )]
        ids: Vec<String>,
        /// All unfinished ones of this work item.
        #[arg(long, value_name = "REF")]
        work_item: Option<String>,
        /// Why, for the event log.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// `events`.
#[derive(Clone, Debug, Args)]
pub struct EventsArgs {
    /// Only events whose name matches this glob; repeatable.
    #[arg(long = "type", value_name = "GLOB")]
    pub types: Vec<String>,
    /// Only about this work item.
    #[arg(long, value_name = "REF")]
    pub work_item: Option<String>,
    /// Only about this delivery.
    #[arg(long, value_name = "ID")]
    pub delivery_id: Option<String>,
    /// Only made by this component.
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Only of this level or above: debug, info, warning, error.
    #[arg(long, value_name = "LEVEL")]
    pub level: Option<String>,
    /// Not before: RFC 3339 time or date, or 30s 15m 2h 1d 2w ago.
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Not after.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// The last so many; 0 for all.
    #[arg(long, value_name = "N", default_value_t = crate::ops::events::LIMIT_DEFAULT)]
    pub limit: usize,
    /// Go on with what comes, until Ctrl-C.
    #[arg(long)]
    pub follow: bool,
    /// Another log file, with the segments beside it.
    #[arg(long, value_name = "PATH")]
    pub file: Option<String>,
    /// Print the catalogue of event types instead.
    #[arg(long = "types", id = "types_list")]
    pub types_list: bool,
}

/// A body, as text or from a file.
#[derive(Clone, Debug, Args)]
pub struct Body {
    /// The text.
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    pub body: Option<String>,
    /// A file with the text; - for stdin.
    #[arg(long, value_name = "FILE|-")]
    pub body_file: Option<String>,
}

/// `tickets`.
#[derive(Debug, Subcommand)]
pub enum Tickets {
    /// Make a ticket.
    #[command(after_long_help = "Examples:\n  \
        the-loop tickets new --title 'Add a --verbose flag' --body-file notes.md\n  \
        the-loop tickets new --repo octo/repo --title 'Fix the build' --start")]
    New {
        /// Repository; needed when several are configured.
        #[arg(long, value_name = "OWNER/REPO")]
        repo: Option<String>,
        /// Title.
        #[arg(long, value_name = "TEXT")]
        title: String,
        /// Body.
        #[command(flatten)]
        body: Body,
        /// A label; repeatable.
        #[arg(long, value_name = "LABEL")]
        label: Vec<String>,
        /// Set the arming label and say the start keyword, too.
        #[arg(long)]
        start: bool,
        /// Wait or not.
        #[command(flatten)]
        wait: Wait,
    },
    /// List tickets.
    #[command(after_long_help = "Examples:\n  \
        the-loop tickets list\n  \
        the-loop tickets list --state all --label bug")]
    List {
        /// Only of this repository.
        #[arg(long, value_name = "OWNER/REPO")]
        repo: Option<String>,
        /// Which.
        #[arg(long, value_name = "open|closed|all", value_parser = ["open", "closed", "all"], default_value = "open",
              hide_possible_values = true)]
        state: String,
        /// Only with this label.
        #[arg(long, value_name = "LABEL")]
        label: Option<String>,
    },
    /// Show a ticket and its thread.
    #[command(after_long_help = "Examples:\n  the-loop tickets show local:octo/repo#3 --limit 10")]
    Show {
        /// The ticket.
        #[arg(value_name = "REF")]
        item: String,
        /// The last so many entries; 0 for all.
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Comment on a ticket.
    ///
    /// A comment may hold a control keyword on a line of its own, such as "the-loop start".
    #[command(after_long_help = "Examples:\n  \
        the-loop tickets comment local:octo/repo#3 --body 'please add a test'\n  \
        the-loop tickets comment local:octo/repo#3 --body 'the-loop stop'")]
    Comment {
        /// The ticket.
        #[arg(value_name = "REF")]
        item: String,
        /// The words.
        #[command(flatten)]
        body: Body,
        /// Wait or not.
        #[command(flatten)]
        wait: Wait,
    },
    /// Change title or body.
    #[command(
        after_long_help = "Examples:\n  the-loop tickets edit local:octo/repo#3 --title 'Add a --quiet flag'"
    )]
    Edit {
        /// The ticket.
        #[arg(value_name = "REF")]
        item: String,
        /// New title.
        #[arg(long, value_name = "TEXT")]
        title: Option<String>,
        /// New body.
        #[command(flatten)]
        body: Body,
        /// Wait or not.
        #[command(flatten)]
        wait: Wait,
    },
    /// Set and take off labels.
    #[command(after_long_help = "Examples:\n  \
        the-loop tickets label local:octo/repo#3 --add bug --remove wontfix\n  \
        the-loop tickets label local:octo/repo#3 --add 'the-loop: auto-execute'")]
    Label {
        /// The ticket.
        #[arg(value_name = "REF")]
        item: String,
        /// Set this label; repeatable.
        #[arg(long, value_name = "LABEL", required_unless_present = "remove")]
        add: Vec<String>,
        /// Take this label off; repeatable.
        #[arg(long, value_name = "LABEL")]
        remove: Vec<String>,
        /// Wait or not.
        #[command(flatten)]
        wait: Wait,
    },
    /// Close a ticket; its session ends.
    #[command(
        after_long_help = "Examples:\n  the-loop tickets close local:octo/repo#3 --reason not-planned"
    )]
    Close {
        /// The ticket.
        #[arg(value_name = "REF")]
        item: String,
        /// Why.
        #[arg(long, value_name = "completed|not-planned", value_parser = ["completed", "not-planned"],
              default_value = "completed", hide_possible_values = true)]
        reason: String,
        /// Wait or not.
        #[command(flatten)]
        wait: Wait,
    },
    /// Open a closed ticket again.
    #[command(after_long_help = "Examples:\n  the-loop tickets reopen local:octo/repo#3")]
    Reopen {
        /// The ticket.
        #[arg(value_name = "REF")]
        item: String,
        /// Wait or not.
        #[command(flatten)]
        wait: Wait,
    },
}

/// `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the path of the file in use.
    #[command(
        after_long_help = "Examples:\n  the-loop config path --all    every place, and why it was or was not taken"
    )]
    Path {
        /// Every candidate.
        #[arg(long)]
        all: bool,
    },
    /// Check a file: every fault with line and column.
    #[command(after_long_help = "Examples:\n  \
        the-loop config check\n  \
        the-loop config check ./cli-config.yaml --format json\n\n\
        Exit codes: 0 it can be used, 2 it cannot.")]
    Check {
        /// The file; none: the one in use.
        #[arg(value_name = "FILE")]
        file: Option<String>,
    },
    /// Print effective values, defaults included.
    #[command(after_long_help = "Examples:\n  \
        the-loop config show\n  \
        the-loop config show routing.tmux --origin")]
    Show {
        /// Only below this key.
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// Say where each value comes from.
        #[arg(long)]
        origin: bool,
    },
    /// Print the JSON schema of the file.
    #[command(after_long_help = "Examples:\n  the-loop config schema > cli-config.schema.json")]
    Schema,
}

/// Flags of `demo`.
#[derive(Clone, Debug, Args)]
pub struct DemoRun {
    /// A real harness instead of the demo one.
    #[arg(long, value_name = "NAME", default_value = "demo")]
    pub harness: String,
    /// Leave everything there afterwards; paths are printed.
    #[arg(long)]
    pub keep: bool,
    /// Without the follow-up comment.
    #[arg(long)]
    pub once: bool,
}

/// A shell with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
    /// Elvish.
    Elvish,
    /// PowerShell.
    #[value(name = "powershell")]
    PowerShell,
}
