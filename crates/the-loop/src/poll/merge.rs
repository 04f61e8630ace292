//! Can a pull request of a session be merged? No webhook tells of a conflict, and a conflict comes without the
//! pull request moving: its target did. What is found counts as a check of its commits.

use serde::Deserialize;
use the_loop_core::ci::CheckResult;
use the_loop_core::delivery::{Delivery, Effect, ItemFacts};
use the_loop_core::ids::{GITHUB_PROVIDER, WorkItemRef};

use super::repo::{Finding, FindingKind, Round};
use super::{Fault, Poller};

/// How it ends where there are conflicts, and where there are none any more.
const ENDS: [&str; 2] = ["failure", "success"];

/// A pull request as far as it says whether it can be merged.
#[derive(Deserialize)]
struct Seen {
    /// `null` until GitHub has tried.
    mergeable: Option<bool>,
    node_id: Option<String>,
    html_url: Option<String>,
    head: End,
    base: End,
}

#[derive(Deserialize)]
struct End {
    #[serde(rename = "ref")]
    branch: String,
    #[serde(default)]
    sha: String,
}

impl Poller {
    /// Finds that a pull request has conflicts with its target, once for each state of its branch; and that it
    /// has none any more.
    pub(super) fn find_conflict(
        &self,
        round: &mut Round<'_>,
        item: &WorkItemRef,
    ) -> Result<(), Fault> {
        let text = self.pull_text(round, item.number())?;
        let pull: Seen =
            serde_json::from_str(&text).map_err(|_| Fault::Malformed("a pull request"))?;
        let name = format!("merge conflicts with {}", pull.base.branch);
        let last = self.context.inbox.last_end(&item.key(), &name);
        let last = last.map_err(|e| Fault::Ours(e.to_string()))?;
        let conclusion = match (pull.mergeable, last.as_deref()) {
            (Some(false), _) => ENDS[0],
            (Some(true), Some(last)) if last == ENDS[0] => ENDS[1],
            (Some(true) | None, _) => return Ok(()),
        };
        let (now, host) = (self.now(), &item.repo().host);
        let delivery_id = format!("poll-merge-{item}-{}-{conclusion}", pull.head.sha);
        if self.memory.offered.contains(&delivery_id) {
            return Ok(());
        }
        let node = pull.node_id.unwrap_or_else(|| "-".to_owned());
        let delivery = Delivery {
            content_key: format!(
                "{GITHUB_PROVIDER}/{host}/pull/{node}/{conclusion}@{}",
                pull.head.sha
            ),
            numeric_key: None,
            ingress: round.ingress,
            item: item.clone(),
            event: "pull_request".to_owned(),
            action: Some("mergeable".to_owned()),
            actor: None,
            received_at: now,
            facts: ItemFacts::default(),
            pull: None,
            place: None,
            asked: None,
            effect: Effect::Check(CheckResult {
                name: Some(name),
                conclusion: conclusion.to_owned(),
                head_branch: Some(pull.head.branch),
                head_sha: Some(pull.head.sha),
                html_url: pull.html_url,
                pulls: vec![item.clone()],
                ..CheckResult::default()
            }),
            entries: Vec::new(),
            delivery_id: delivery_id.clone(),
        };
        round.found.push(Finding {
            at: now,
            delivery,
            kind: FindingKind::Words(delivery_id),
        });
        Ok(())
    }
}
