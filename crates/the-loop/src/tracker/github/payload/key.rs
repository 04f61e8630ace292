//! The keys by which one thing is known, whichever way and however often it arrives (IN-10, IN-12).

use the_loop_core::delivery::Ending;
use the_loop_core::time::Timestamp;

use super::fields::Issue;
use super::fields::pull::Pull;
use super::{Meaning, WordsKind};

/// Longest node id that takes part in a content key (IN-12).
const NODE_ID_BYTES_MAX: usize = 256;

/// What follows provider and host in the keys of a thing.
pub(super) struct Keys {
    pub(super) content: String,
    pub(super) numeric: Option<String>,
}

impl WordsKind {
    /// Kind and action in a key.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Comment => ("comment", "created"),
            Self::Review => ("review", "submitted"),
            Self::Inline => ("review-comment", "created"),
        }
    }
}

/// The keys of what happened to a ticket or pull request. A missing field leaves a `-` in its place.
pub(super) fn keys(
    meaning: &Meaning,
    issue: &Issue,
    pull: Option<&Pull>,
    action: Option<&str>,
    transport_id: &str,
) -> Keys {
    let thing = issue.kind();
    let node = part(issue.node_id.as_deref());
    let mut numeric = None;
    let content = match meaning {
        Meaning::Words(kind, comment, _) => {
            let (kind, action) = kind.words();
            numeric = comment.id().map(|id| format!("{kind}/#{id}/{action}"));
            format!("{kind}/{}/{action}", part(comment.node_id.as_deref()))
        }
        Meaning::Presence => format!("{thing}/{node}/presence@{transport_id}"),
        Meaning::Opened if action == Some("reopened") => {
            format!("{thing}/{node}/reopened@{}", time(issue.updated_at()))
        }
        Meaning::Opened => format!("{thing}/{node}/opened"),
        Meaning::Edited(_) => format!("{thing}/{node}/edited@{}", time(issue.updated_at())),
        Meaning::Pushed => {
            let sha = pull.and_then(|pull| pull.facts().head_sha);
            format!("{thing}/{node}/head@{}", part(sha.as_deref()))
        }
        Meaning::Thread(thread) => {
            let (thread, action) = (part(thread.as_deref()), action.unwrap_or("-"));
            format!(
                "review-thread/{thread}/{action}@{}",
                time(issue.updated_at())
            )
        }
        Meaning::Close(Ending::Closed, _) => {
            format!("{thing}/{node}/closed@{}", time(issue.closed_at()))
        }
        Meaning::Close(Ending::Deleted, _) => format!("{thing}/{node}/deleted"),
        Meaning::Close(Ending::Transferred, _) => format!("{thing}/{node}/transferred"),
        Meaning::Check { key, .. } => key.clone(),
    };
    Keys { content, numeric }
}

/// An opaque id as it stands in a key; `-` for one that is missing, empty or longer than 256 bytes.
fn part(id: Option<&str>) -> &str {
    id.filter(|id| (1..=NODE_ID_BYTES_MAX).contains(&id.len()))
        .unwrap_or("-")
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), Timestamp::seconds)
}
