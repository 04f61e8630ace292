//! What the events about checks say (IN-28 to IN-31). What is no news of ours is turned away at once: a busy
//! repository sends hundreds a day.

use the_loop_core::ci::{self, CheckResult};
use the_loop_core::config::Settings;
use the_loop_core::event::RoutingDropReason;
use the_loop_core::link::branch_issue;

use super::fields::check::{CheckEvent, CheckSuite, CheckedPull, StatusEvent};
use super::fields::{self, Common, Object, Repository};
use super::{About, Meaning, Seen};

/// A result of any of the four events, in one shape.
struct Found {
    common: Common,
    event: &'static str,
    key: String,
    check: CheckResult,
    by_workflows: bool,
    is_foreign: bool,
    pulls: Vec<CheckedPull>,
}

pub(super) fn see_workflow_run(json: &str, settings: &Settings) -> Option<Seen> {
    let read: CheckEvent = fields::read(json)?;
    let common = common(read.action, read.repository, read.sender);
    let run = read.workflow_run.map(|run| run.0);
    let Some(run) = run.filter(|_| is_completed(&common)) else {
        return Some(passed_over(common));
    };
    let (key, run_try) = (run.key(), run.run_try());
    let head = run.head_repository.and_then(|repository| repository.0.id());
    let found = Found {
        is_foreign: head.is_none() || head != repository_id(&common),
        common,
        event: "workflow_run",
        key,
        check: CheckResult {
            name: run.name,
            conclusion: run.conclusion.unwrap_or_default(),
            head_branch: run.head_branch,
            head_sha: run.head_sha,
            html_url: run.html_url,
            run: run_try,
            ..CheckResult::default()
        },
        by_workflows: true,
        pulls: listed(run.pull_requests),
    };
    Some(judge(found, settings))
}

pub(super) fn see_check_run(json: &str, settings: &Settings) -> Option<Seen> {
    let read: CheckEvent = fields::read(json)?;
    let common = common(read.action, read.repository, read.sender);
    let run = read.check_run.map(|run| run.0);
    let Some(run) = run.filter(|_| is_completed(&common)) else {
        return Some(passed_over(common));
    };
    let key = run.key();
    let suite = run
        .check_suite
        .map_or_else(CheckSuite::default, |suite| suite.0);
    let found = Found {
        is_foreign: suite.head_branch.is_none(),
        common,
        event: "check_run",
        key,
        by_workflows: run.app.is_some_and(|app| app.0.is_workflows()),
        check: CheckResult {
            name: run.name,
            conclusion: run.conclusion.unwrap_or_default(),
            head_branch: suite.head_branch,
            head_sha: suite.head_sha,
            html_url: run.html_url,
            details_url: run.details_url,
            ..CheckResult::default()
        },
        pulls: listed(suite.pull_requests),
    };
    Some(judge(found, settings))
}

pub(super) fn see_check_suite(json: &str, settings: &Settings) -> Option<Seen> {
    let read: CheckEvent = fields::read(json)?;
    let common = common(read.action, read.repository, read.sender);
    let suite = read.check_suite.map(|suite| suite.0);
    let Some(suite) = suite.filter(|_| is_completed(&common)) else {
        return Some(passed_over(common));
    };
    let key = suite.key();
    let found = Found {
        is_foreign: suite.head_branch.is_none(),
        common,
        event: "check_suite",
        key,
        by_workflows: suite.app.is_some_and(|app| app.0.is_workflows()),
        check: CheckResult {
            conclusion: suite.conclusion.unwrap_or_default(),
            head_branch: suite.head_branch,
            head_sha: suite.head_sha,
            ..CheckResult::default()
        },
        pulls: listed(suite.pull_requests),
    };
    Some(judge(found, settings))
}

pub(super) fn see_status(json: &str, settings: &Settings) -> Option<Seen> {
    let read: StatusEvent = fields::read(json)?;
    let conclusion = read.state.clone().unwrap_or_default();
    let key = read.key(&conclusion);
    // A branch counts when the status is about its newest commit. Several may have that commit: the one that
    // names an item says more than a default branch.
    let branches = read.branches.unwrap_or_default().into_iter().flatten();
    let sha = read.sha.clone();
    let counting = branches.map(|branch| branch.0).filter(|branch| {
        let newest = branch
            .commit
            .as_ref()
            .and_then(|commit| commit.0.sha.as_ref());
        sha.is_some() && newest == sha.as_ref()
    });
    let names: Vec<String> = counting.filter_map(|branch| branch.name).collect();
    let names_item = |name: &&String| branch_issue(name).is_some();
    let branch = names.iter().find(names_item).or(names.first()).cloned();
    let found = Found {
        common: common(None, read.repository, read.sender),
        event: "status",
        key,
        by_workflows: false,
        is_foreign: false,
        check: CheckResult {
            name: read.context,
            conclusion,
            head_branch: branch,
            head_sha: read.sha,
            html_url: read.target_url,
            ..CheckResult::default()
        },
        pulls: Vec::new(),
    };
    Some(judge(found, settings))
}

fn judge(found: Found, settings: &Settings) -> Seen {
    let repository = repository_id(&found.common).unwrap_or(0);
    let sha = found.check.head_sha.as_deref();
    let here = found.pulls.iter();
    let here: Vec<(u64, bool)> = here
        .filter_map(|pull| Some((pull.number_in(repository)?, pull.is_past(sha))))
        .collect();
    let refusal = ci::refusal(&ci::Facts {
        event: found.event,
        events: &settings.webhooks.gh_webhook.events,
        conclusion: &found.check.conclusion,
        by_workflows: found.by_workflows,
        is_foreign: found.is_foreign,
        is_stale: !here.is_empty() && here.iter().all(|(_, past)| *past),
    });
    let current = here.iter().filter(|(_, past)| !past);
    let pulls: Vec<u64> = current.map(|(number, _)| *number).collect();
    let branch = found.check.head_branch.as_deref().and_then(branch_issue);
    Seen {
        common: found.common,
        number: pulls.first().copied().or(branch),
        about: match refusal {
            Some(reason) => Err(reason),
            None => Ok(About {
                issue: fields::Issue::default(),
                pull: None,
                place: None,
                meaning: Meaning::Check {
                    key: found.key,
                    check: Box::new(found.check),
                    pulls,
                },
            }),
        },
    }
}

fn common(
    action: Option<String>,
    repository: Option<Object<Repository>>,
    sender: Option<Object<fields::User>>,
) -> Common {
    Common {
        action,
        repository,
        sender,
    }
}

fn is_completed(common: &Common) -> bool {
    common.action.as_deref() == Some("completed")
}

fn passed_over(common: Common) -> Seen {
    Seen {
        common,
        number: None,
        about: Err(RoutingDropReason::ActionIgnored),
    }
}

fn repository_id(common: &Common) -> Option<u64> {
    common.repository.as_ref()?.0.id()
}

fn listed(pulls: Option<Vec<Option<Object<CheckedPull>>>>) -> Vec<CheckedPull> {
    let pulls = pulls.unwrap_or_default().into_iter().flatten();
    pulls.map(|pull| pull.0).collect()
}
