//! `deliveries`, `events` and `config`.

use clap::{Args, Subcommand};

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
