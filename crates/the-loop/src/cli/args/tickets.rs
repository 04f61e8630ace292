//! `tickets`.

use clap::{Args, Subcommand};

use super::sessions::Wait;

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
