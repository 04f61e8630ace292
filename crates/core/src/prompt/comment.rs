//! What the-loop itself writes on a ticket (IN-58). No text here quotes anything that came in.

use crate::control::Command;
use crate::ids::{TmuxTarget, WorkItemRef};

/// Stands in every comment that the-loop or an agent writes; a comment that holds it is never obeyed
/// and never delivered (IN-22).
pub const AGENT_COMMENT_MARK: &str = "<!-- the-loop:agent-comment -->";
const SIGNATURE: &str = "_the-loop, on behalf of the operator_";

/// Ends a comment with signature and mark; one that has them is left as it is.
pub fn sign(text: &str) -> String {
    let end = format!("\n\n{SIGNATURE}\n\n{AGENT_COMMENT_MARK}");
    let text = text.trim_end();
    if text.ends_with(&end) {
        text.to_owned()
    } else {
        format!("{text}{end}")
    }
}

/// Adds the mark alone, for an agent's own words; text that holds it is left as it is.
pub fn mark(text: &str) -> String {
    if text.contains(AGENT_COMMENT_MARK) {
        text.to_owned()
    } else {
        format!("{}\n\n{AGENT_COMMENT_MARK}", text.trim_end())
    }
}

/// The whole command that attaches to a session, with its exact target (DI-11). An empty socket name
/// is the operator's default server.
pub fn attach_command(socket: &str, target: &TmuxTarget, read_only: bool) -> String {
    let server = if socket.is_empty() {
        String::new()
    } else {
        format!(" -L {socket}")
    };
    let mode = if read_only { " -r" } else { "" };
    format!("tmux{server} attach{mode} -t {}", target.session())
}

/// After a first spawn: where the session is and how to watch or join it.
pub fn announcement(harness: &str, target: &TmuxTarget, socket: &str) -> String {
    sign(&format!(
        "A session is working on this.\n\n- session `{target}`, {harness}\n- watch: `{}`\n- join: `{}`",
        attach_command(socket, target, true),
        attach_command(socket, target, false),
    ))
}

/// A comment held different commands, and nothing was done.
pub fn ambiguous(commands: &[Command]) -> String {
    let names: Vec<&str> = commands.iter().map(|command| command.as_str()).collect();
    sign(&format!(
        "This comment holds more than one command ({}). Nothing was done. Please send one command on a \
         line of its own.",
        names.join(", ")
    ))
}

/// A delivery was given up. `url` is the comment's page, where it has one; `reason` is a closed reason
/// in words.
pub fn gave_up(url: Option<&str>, attempts: u32, reason: &str, delivery_id: &str) -> String {
    let what = match url {
        Some(url) => format!("Comment {url}"),
        None => format!("Delivery {delivery_id}"),
    };
    sign(&format!(
        "{what} could not be delivered after {attempts} attempts ({reason}).\nIt is tried once more after \
         an upgrade; to send it again now, post it again or run the-loop deliveries retry {delivery_id}."
    ))
}

/// A limit parked the item. `reason` is the limit in words, `resume` the keyword as configured; without
/// one only a shell can release it.
pub fn parked(reason: &str, resume: Option<&str>, item: &WorkItemRef) -> String {
    let release = match resume {
        Some(keyword) => {
            format!("An authorised person can release it with a comment:\n\n{keyword}")
        }
        None => format!("It is released with the-loop sessions resume {item}."),
    };
    sign(&format!("Paused by a limit: {reason}. {release}"))
}

/// A limit stopped every item of the machine. `reason` is the limit in words. No keyword releases it: it
/// is not this item's.
pub fn machine_parked(reason: &str) -> String {
    sign(&format!(
        "Paused by a limit: {reason}, for all items of this machine together. It ends with the UTC day; \
         the operator can release it earlier with the-loop sessions resume --all."
    ))
}

/// The agent has waited for a person. `kind` is the kind of question.
pub fn waiting(kind: &str, target: &TmuxTarget, socket: &str) -> String {
    sign(&format!(
        "The agent waits for an answer in its terminal ({kind}).\n\n- join: `{}`",
        attach_command(socket, target, false)
    ))
}
