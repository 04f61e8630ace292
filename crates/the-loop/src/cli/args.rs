//! The grammar of the command line (SE-1, SE-2). Help, man pages, completions and the command reference
//! all come from these definitions (SE-17).

mod look;
mod sessions;
mod tickets;

use clap::builder::styling::Styles;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::harness::demo::DemoArgs;

pub use self::look::{ConfigCommand, Deliveries, EventsArgs};
pub use self::sessions::{Comment, ControlArgs, Dirs, ManyItems, OneItem, Sessions, Wait};
pub use self::tickets::{Body, Tickets};

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
    /// Reads locks, inbox and the daemon's socket; works with the daemon down or tmux hung. A line says when
    /// agents run with other values than the env file declares now.
    #[command(after_long_help = "Examples:\n  \
        the-loop status\n  \
        the-loop status --format json\n\n\
        Exit codes: 0 the daemon runs and every enabled service with it, 1 otherwise.")]
    Status,
    /// Ask the configured repositories what is new, in front.
    ///
    /// What a run before left in the inbox is finished first. Without a daemon what is found is carried to its
    /// agent before the command ends; a running daemon does that by itself.
    #[command(after_long_help = "Examples:\n  \
        the-loop poll --once                  one cycle, for cron\n  \
        the-loop poll                         a cycle every polling.intervalSeconds, end it with Ctrl-C\n  \
        the-loop poll --once --format json    its counts as a document\n\n\
        Exit codes: 0 the cycle went well, 1 something failed or another poller runs, 2 unusable configuration.")]
    Poll(PollArgs),
    /// Webhooks of repositories at GitHub.
    #[command(subcommand)]
    Webhook(Webhook),
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

/// `webhook`.
#[derive(Debug, Subcommand)]
pub enum Webhook {
    /// Make the repositories' webhooks at GitHub, or check them.
    ///
    /// Each is compared with what the configuration needs: address, events, content type, secret, and that it is
    /// active. What differs is changed. The secret goes to GitHub and is shown nowhere; GitHub does not show it
    /// either, so one that changed has to be renewed. Calls of it that failed lately are listed, and from which
    /// addresses a host calls.
    #[command(after_long_help = "Examples:\n  \
        the-loop webhook setup --repo octo/repo --url https://hooks.example.com/gh-webhook\n  \
        the-loop webhook setup --dry-run              what would be done for the repositories of polling.sources\n  \
        the-loop webhook setup --renew-secret         after the secret was changed\n\n\
        Exit codes: 0 all are as they should be, 1 one could not be made so, 2 usage or unusable configuration.")]
    Setup {
        /// A repository; repeatable. Without it those of `polling.sources`.
        #[arg(long, value_name = "[HOST/]OWNER/REPO")]
        repo: Vec<String>,
        /// The address that GitHub is to call, where your proxy or tunnel takes it. Without it that of the only
        /// webhook whose path is `webhooks.ghWebhook.path`.
        #[arg(long, value_name = "URL")]
        url: Option<String>,
        /// Send the secret although nothing else differs.
        #[arg(long)]
        renew_secret: bool,
        /// Say what would be done, and change nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

/// Flags of `poll`.
#[derive(Clone, Debug, Args)]
pub struct PollArgs {
    /// One cycle, then end.
    #[arg(long)]
    pub once: bool,
    /// Directory of the portable records.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<String>,
}

/// Flags of `restart`.
#[derive(Clone, Debug, Args)]
pub struct RestartArgs {
    /// Seconds to wait until the new daemon is ready.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
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
    Power,
}
