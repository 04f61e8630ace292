//! Which work item a delivery is for (IN-13, IN-14).
//!
//! In this version an issue names itself, and so does a pull request that a comment on it made known.

use std::time::Duration;

use crate::delivery::{Delivery, Effect};
use crate::ids::{DEFAULT_HOST, WorkItemRef};

/// Where a delivery goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// To this item.
    To(WorkItemRef),
    /// Nowhere: its host is not, or no longer, configured. `routing.dropped`, `unknown-host`.
    UnknownHost,
}

/// The item of a delivery. `hosts` are the keys of `integrations.github.hosts`.
pub fn route<'a>(delivery: &Delivery, hosts: impl IntoIterator<Item = &'a str>) -> Route {
    let item = &delivery.item;
    if item.is_local() || is_known_host(&item.repo().host, hosts) {
        Route::To(item.clone())
    } else {
        Route::UnknownHost
    }
}

/// `github.com` and the configured hosts are known; any other would be an address that a payload
/// chose (IN-13).
pub fn is_known_host<'a>(host: &str, hosts: impl IntoIterator<Item = &'a str>) -> bool {
    host.eq_ignore_ascii_case(DEFAULT_HOST)
        || hosts
            .into_iter()
            .any(|known| known.eq_ignore_ascii_case(host))
}

/// Is the arming label among these? Trackers compare label names without case, so we do.
pub fn has_label<S: AsRef<str>>(labels: &[S], wanted: &str) -> bool {
    let wanted = wanted.trim().to_lowercase();
    !wanted.is_empty()
        && labels
            .iter()
            .any(|l| l.as_ref().trim().to_lowercase() == wanted)
}

/// Begins a label that chooses the harness of an item.
pub const HARNESS_LABEL: &str = "harness:";

/// The harness that the labels of an item choose, in small letters: `harness:NAME`, in any case and
/// with blanks around the name. `None` without such a label; the error holds the names when there are
/// several.
pub fn harness_label<S: AsRef<str>>(labels: &[S]) -> Result<Option<String>, Vec<String>> {
    let mut names: Vec<String> = labels
        .iter()
        .map(|label| label.as_ref().trim().to_lowercase())
        .filter_map(|label| Some(label.strip_prefix(HARNESS_LABEL)?.trim().to_owned()))
        .filter(|name| !name.is_empty())
        .collect();
    names.sort();
    names.dedup();
    match names.len() {
        0 | 1 => Ok(names.pop()),
        _ => Err(names),
    }
}

/// Was this comment too old when it came (IN-11)? Rows are forgotten after `retention_days`; a
/// comment that may have had one, less a day for clocks, is never new. Counted from the moment it
/// was accepted, so that waiting in the inbox ages nothing.
pub fn is_too_old(delivery: &Delivery, retention_days: u32) -> bool {
    let Effect::Text(text) = &delivery.effect else {
        return false;
    };
    let limit = Duration::from_secs(u64::from(retention_days.saturating_sub(1)) * 86_400);
    text.created_at
        .is_some_and(|at| delivery.received_at.since(at) > limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn di33_a_label_chooses_the_harness_in_any_case_and_two_choose_none() {
        assert_eq!(harness_label::<&str>(&[]), Ok(None));
        assert_eq!(harness_label(&["bug", "harness", "harness:"]), Ok(None));
        let chosen = Ok(Some("codex".to_owned()));
        assert_eq!(harness_label(&["bug", "harness:codex"]), chosen);
        assert_eq!(harness_label(&["Harness: Codex ", "harness:codex"]), chosen);
        let both = harness_label(&["harness:codex", "harness:demo"]);
        assert_eq!(both, Err(vec!["codex".to_owned(), "demo".to_owned()]));
    }
}
