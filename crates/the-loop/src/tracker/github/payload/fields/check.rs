//! The fields that are read of results of checks.

use serde::Deserialize;
use serde_json::Number;
use the_loop_core::ci::RunTry;
use the_loop_core::time::Timestamp;

use super::{Object, Repository, User, time};

/// Events `workflow_run`, `check_run`, `check_suite` and `status`.
#[derive(Deserialize)]
pub(in super::super) struct CheckEvent {
    pub(in super::super) action: Option<String>,
    pub(in super::super) repository: Option<Object<Repository>>,
    pub(in super::super) sender: Option<Object<User>>,
    pub(in super::super) workflow_run: Option<Object<WorkflowRun>>,
    pub(in super::super) check_run: Option<Object<CheckRun>>,
    pub(in super::super) check_suite: Option<Object<CheckSuite>>,
}

#[derive(Deserialize)]
pub(in super::super) struct WorkflowRun {
    id: Option<Number>,
    run_attempt: Option<Number>,
    pub(in super::super) name: Option<String>,
    pub(in super::super) conclusion: Option<String>,
    pub(in super::super) head_branch: Option<String>,
    pub(in super::super) head_sha: Option<String>,
    pub(in super::super) head_repository: Option<Object<Repository>>,
    pub(in super::super) html_url: Option<String>,
    pub(in super::super) pull_requests: Option<Vec<Option<Object<CheckedPull>>>>,
}

#[derive(Deserialize)]
pub(in super::super) struct CheckRun {
    id: Option<Number>,
    pub(in super::super) name: Option<String>,
    pub(in super::super) conclusion: Option<String>,
    completed_at: Option<String>,
    pub(in super::super) html_url: Option<String>,
    pub(in super::super) details_url: Option<String>,
    pub(in super::super) app: Option<Object<App>>,
    pub(in super::super) check_suite: Option<Object<CheckSuite>>,
}

#[derive(Default, Deserialize)]
pub(in super::super) struct CheckSuite {
    id: Option<Number>,
    pub(in super::super) conclusion: Option<String>,
    pub(in super::super) head_branch: Option<String>,
    pub(in super::super) head_sha: Option<String>,
    updated_at: Option<String>,
    pub(in super::super) app: Option<Object<App>>,
    pub(in super::super) pull_requests: Option<Vec<Option<Object<CheckedPull>>>>,
}

/// Event `status`, whose fields stand at the top.
#[derive(Deserialize)]
pub(in super::super) struct StatusEvent {
    pub(in super::super) repository: Option<Object<Repository>>,
    pub(in super::super) sender: Option<Object<User>>,
    id: Option<Number>,
    pub(in super::super) state: Option<String>,
    pub(in super::super) context: Option<String>,
    pub(in super::super) sha: Option<String>,
    pub(in super::super) target_url: Option<String>,
    pub(in super::super) branches: Option<Vec<Option<Object<Branch>>>>,
}

#[derive(Deserialize)]
pub(in super::super) struct Branch {
    pub(in super::super) name: Option<String>,
    pub(in super::super) commit: Option<Object<Commit>>,
}

#[derive(Deserialize)]
pub(in super::super) struct Commit {
    pub(in super::super) sha: Option<String>,
}

#[derive(Deserialize)]
pub(in super::super) struct App {
    slug: Option<String>,
}

/// A pull request in the list of a check.
#[derive(Deserialize)]
pub(in super::super) struct CheckedPull {
    number: Option<Number>,
    head: Option<Object<CheckedEnd>>,
    base: Option<Object<CheckedEnd>>,
}

#[derive(Deserialize)]
struct CheckedEnd {
    sha: Option<String>,
    repo: Option<Object<Repository>>,
}

impl WorkflowRun {
    /// Its number and which try it is, as they stand in a key.
    pub(in super::super) fn key(&self) -> String {
        let attempt = digits(self.run_attempt.as_ref());
        format!("run/{}/{attempt}/completed", digits(self.id.as_ref()))
    }

    /// Which try of which run it is.
    pub(in super::super) fn run_try(&self) -> Option<RunTry> {
        let of = |number: &Option<Number>| number.as_ref().and_then(Number::as_u64);
        Some(RunTry {
            id: of(&self.id)?,
            attempt: of(&self.run_attempt)?,
        })
    }
}

impl CheckRun {
    /// What follows provider and host in its key.
    pub(in super::super) fn key(&self) -> String {
        let at = stamp(self.completed_at.as_ref());
        format!("check-run/{}/completed@{at}", digits(self.id.as_ref()))
    }
}

impl CheckSuite {
    /// What follows provider and host in its key.
    pub(in super::super) fn key(&self) -> String {
        let at = stamp(self.updated_at.as_ref());
        format!("check-suite/{}/completed@{at}", digits(self.id.as_ref()))
    }
}

impl StatusEvent {
    /// What follows provider and host in its key.
    pub(in super::super) fn key(&self, state: &str) -> String {
        format!("status/{}/{state}", digits(self.id.as_ref()))
    }
}

impl App {
    /// The provider's own workflows.
    pub(in super::super) fn is_workflows(&self) -> bool {
        self.slug.as_deref() == Some("github-actions")
    }
}

impl CheckedPull {
    /// Its number, when its branch and its target are both in this repository.
    pub(in super::super) fn number_in(&self, repository: u64) -> Option<u64> {
        let here = |end: &Option<Object<CheckedEnd>>| {
            let repo = end.as_ref().and_then(|end| end.0.repo.as_ref());
            repo.and_then(|repo| repo.0.id()) == Some(repository)
        };
        let number = self.number.as_ref().and_then(Number::as_u64);
        number.filter(|number| *number > 0 && here(&self.head) && here(&self.base))
    }

    /// Has its branch moved on since this commit? Unknown is no.
    pub(in super::super) fn is_past(&self, sha: Option<&str>) -> bool {
        let head = self.head.as_ref().and_then(|head| head.0.sha.as_deref());
        head.is_some_and(|head| sha.is_some_and(|sha| head != sha))
    }
}

fn digits(number: Option<&Number>) -> String {
    let number = number.and_then(Number::as_u64);
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn stamp(at: Option<&String>) -> String {
    time(at).map_or_else(|| "-".to_owned(), Timestamp::seconds)
}
