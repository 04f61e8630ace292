//! The fields that are read of events about pull requests.

use serde::Deserialize;
use serde_json::Number;
use the_loop_core::delivery::PullFacts;

use super::{Changes, Comment, Inline, Issue, Label, Object, Present, Repository, User};

/// Events `pull_request`, `pull_request_review`, `pull_request_review_comment` and
/// `pull_request_review_thread`: each has the pull request, and something of its own.
#[derive(Deserialize)]
pub(in super::super) struct PullEvent {
    pub(in super::super) action: Option<String>,
    pub(in super::super) repository: Option<Object<Repository>>,
    pub(in super::super) sender: Option<Object<User>>,
    pub(in super::super) pull_request: Option<Object<Pull>>,
    pub(in super::super) label: Option<Object<Label>>,
    pub(in super::super) changes: Option<Object<Changes>>,
    pub(in super::super) review: Option<Object<Review>>,
    pub(in super::super) comment: Option<Object<Inline>>,
    pub(in super::super) thread: Option<Object<Thread>>,
}

#[derive(Default, Deserialize)]
pub(in super::super) struct Pull {
    number: Option<Number>,
    node_id: Option<String>,
    title: Option<String>,
    state: Option<String>,
    labels: Option<Vec<Option<Object<Label>>>>,
    user: Option<Object<User>>,
    html_url: Option<String>,
    updated_at: Option<String>,
    closed_at: Option<String>,
    draft: Option<bool>,
    merged: Option<bool>,
    body: Option<String>,
    head: Option<Object<End>>,
    base: Option<Object<End>>,
}

/// Where a pull request comes from, or goes to.
#[derive(Deserialize)]
struct End {
    #[serde(rename = "ref")]
    branch: Option<String>,
    sha: Option<String>,
    repo: Option<Object<EndRepository>>,
}

#[derive(Deserialize)]
struct EndRepository {
    id: Option<Number>,
}

#[derive(Deserialize)]
pub(in super::super) struct Review {
    id: Option<Number>,
    node_id: Option<String>,
    user: Option<Object<User>>,
    body: Option<String>,
    html_url: Option<String>,
    submitted_at: Option<String>,
    pub(in super::super) state: Option<String>,
}

#[derive(Deserialize)]
pub(in super::super) struct Thread {
    pub(in super::super) node_id: Option<String>,
    pub(in super::super) comments: Option<Vec<Option<Object<Inline>>>>,
}

impl Pull {
    /// What it has of a ticket.
    pub(in super::super) fn ticket(&mut self) -> Issue {
        Issue {
            number: self.number.take(),
            node_id: self.node_id.take(),
            title: self.title.take(),
            state: self.state.take(),
            labels: self.labels.take(),
            user: self.user.take(),
            html_url: self.html_url.take(),
            updated_at: self.updated_at.take(),
            closed_at: self.closed_at.take(),
            body: self.body.take(),
            pull_request: Some(Object(Present {})),
        }
    }

    /// What it has beyond one, without the items that its body closes.
    pub(in super::super) fn facts(&self) -> PullFacts {
        let head = self.head.as_ref().map(|head| &head.0);
        PullFacts {
            head_ref: head.and_then(|head| head.branch.clone()),
            head_sha: head.and_then(|head| head.sha.clone()),
            is_own_branch: repository(self.head.as_ref())
                .is_some_and(|id| repository(self.base.as_ref()) == Some(id)),
            draft: self.draft,
            merged: self.merged,
            closes: Vec::new(),
            references: Vec::new(),
            is_partial: false,
        }
    }
}

fn repository(end: Option<&Object<End>>) -> Option<u64> {
    end?.0.repo.as_ref()?.0.id.as_ref()?.as_u64()
}

impl Review {
    /// Its words.
    pub(in super::super) fn words(self) -> Comment {
        Comment {
            id: self.id,
            node_id: self.node_id,
            user: self.user,
            body: self.body,
            html_url: self.html_url,
            created_at: self.submitted_at,
        }
    }
}
