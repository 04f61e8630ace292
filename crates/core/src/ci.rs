//! Results of checks: which are news, and for whom (IN-28 to IN-32).

use serde::{Deserialize, Serialize};

use crate::event::RoutingDropReason;
use crate::ids::WorkItemRef;

/// The event of GitHub's own workflows.
const WORKFLOW_RUN: &str = "workflow_run";
/// The event of a single check.
const CHECK_RUN: &str = "check_run";
/// The event of all checks of one application.
const CHECK_SUITE: &str = "check_suite";

/// A finished check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Name of the workflow, check or context as it came: untrusted text. A suite has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How it ended, in the provider's word.
    pub conclusion: String,
    /// Branch as it came: untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_branch: Option<String>,
    /// The commit that was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_sha: Option<String>,
    /// Its page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html_url: Option<String>,
    /// The page of whoever checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details_url: Option<String>,
    /// The pull requests whose head it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pulls: Vec<WorkItemRef>,
    /// The try of a workflow that it is the end of; its jobs have logs (IN-33).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunTry>,
}

/// One try of a workflow run, by the provider's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTry {
    /// The run.
    pub id: u64,
    /// Which try of it, from 1.
    pub attempt: u64,
}

impl CheckResult {
    /// Has somebody to look at it?
    pub fn is_failing(&self) -> bool {
        outcome(&self.conclusion) == Some(Outcome::Failing)
    }
}

/// What an end says (IN-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Somebody has to look.
    Failing,
    /// It is well.
    Passing,
}

/// What a provider's word for an end says; `None` where it says nothing new.
pub fn outcome(conclusion: &str) -> Option<Outcome> {
    match conclusion {
        "failure" | "error" | "timed_out" | "startup_failure" | "action_required" => {
            Some(Outcome::Failing)
        }
        "success" => Some(Outcome::Passing),
        _ => None,
    }
}

/// A result before it is taken in.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The event it came by.
    pub event: &'a str,
    /// The events that are acted on.
    pub events: &'a [String],
    /// How it ended.
    pub conclusion: &'a str,
    /// It was made by the provider's own workflows.
    pub by_workflows: bool,
    /// The checked commit is no branch of the repository.
    pub is_foreign: bool,
    /// Every pull request that it names has a newer commit.
    pub is_stale: bool,
}

/// Why a result is not taken in; the first reason that applies (IN-28, IN-30, IN-29).
pub fn refusal(facts: &Facts<'_>) -> Option<RoutingDropReason> {
    let listed = |event: &str| facts.events.iter().any(|listed| listed == event);
    let is_told_elsewhere = match facts.event {
        CHECK_RUN => facts.by_workflows && listed(WORKFLOW_RUN),
        CHECK_SUITE if facts.by_workflows => listed(WORKFLOW_RUN),
        CHECK_SUITE => listed(CHECK_RUN),
        _ => false,
    };
    if outcome(facts.conclusion).is_none() {
        Some(RoutingDropReason::ConclusionIgnored)
    } else if is_told_elsewhere {
        Some(RoutingDropReason::CoveredElsewhere)
    } else if facts.is_foreign {
        Some(RoutingDropReason::ForeignHead)
    } else if facts.is_stale {
        Some(RoutingDropReason::StaleHead)
    } else {
        None
    }
}

/// Is this worth a turn (IN-32)? `before` has the last conclusion of every check by its name. A failure is;
/// a success is when it is the first news, or the last thing that was missing.
pub fn is_news<'a>(
    before: impl IntoIterator<Item = (&'a str, &'a str)>,
    name: &str,
    conclusion: &str,
) -> bool {
    let is_failing = |conclusion: &str| outcome(conclusion) == Some(Outcome::Failing);
    if is_failing(conclusion) {
        return true;
    }
    let (mut is_empty, mut was_failing, mut others_fail) = (true, false, false);
    for (known, last) in before {
        is_empty = false;
        was_failing |= is_failing(last);
        others_fail |= known != name && is_failing(last);
    }
    (is_empty || was_failing) && !others_fail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn in28_only_ends_that_say_something_count() {
        for failing in [
            "failure",
            "error",
            "timed_out",
            "startup_failure",
            "action_required",
        ] {
            assert_eq!(outcome(failing), Some(Outcome::Failing), "{failing}");
        }
        assert_eq!(outcome("success"), Some(Outcome::Passing));
        for nothing in [
            "cancelled",
            "skipped",
            "neutral",
            "stale",
            "pending",
            "",
            "Success",
        ] {
            assert_eq!(outcome(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn in28_in29_in30_the_first_reason_that_applies() {
        let all = events(&[WORKFLOW_RUN, CHECK_RUN, CHECK_SUITE, "status"]);
        let few = events(&[CHECK_SUITE]);
        let facts = |event, events, by_workflows| Facts {
            event,
            events,
            conclusion: "failure",
            by_workflows,
            is_foreign: false,
            is_stale: false,
        };
        let covered = Some(RoutingDropReason::CoveredElsewhere);
        for (event, events, by_workflows, expected) in [
            (WORKFLOW_RUN, &all, true, None),
            (CHECK_RUN, &all, true, covered),
            (CHECK_RUN, &all, false, None),
            (CHECK_RUN, &few, true, None),
            (CHECK_SUITE, &all, true, covered),
            (CHECK_SUITE, &all, false, covered),
            (CHECK_SUITE, &few, true, None),
            (CHECK_SUITE, &few, false, None),
            ("status", &all, false, None),
        ] {
            let facts = facts(event, events, by_workflows);
            assert_eq!(refusal(&facts), expected, "{facts:?}");
        }
        let worst = Facts {
            conclusion: "skipped",
            is_foreign: true,
            is_stale: true,
            ..facts(CHECK_RUN, &all, true)
        };
        assert_eq!(refusal(&worst), Some(RoutingDropReason::ConclusionIgnored));
        let covered = Facts {
            conclusion: "success",
            ..worst
        };
        assert_eq!(refusal(&covered), Some(RoutingDropReason::CoveredElsewhere));
        let foreign = Facts {
            by_workflows: false,
            ..covered
        };
        assert_eq!(refusal(&foreign), Some(RoutingDropReason::ForeignHead));
        let stale = Facts {
            is_foreign: false,
            ..foreign
        };
        assert_eq!(refusal(&stale), Some(RoutingDropReason::StaleHead));
    }

    #[test]
    fn in32_a_failure_is_news_and_a_success_when_it_changes_the_whole() {
        for (before, name, conclusion, expected) in [
            (&[][..], "a", "success", true),
            (&[], "a", "failure", true),
            (&[("a", "success")], "a", "success", false),
            (&[("a", "success")], "b", "success", false),
            (&[("a", "failure")], "a", "failure", true),
            (&[("a", "failure")], "a", "success", true),
            (&[("a", "failure")], "b", "success", false),
            (
                &[("a", "failure"), ("b", "timed_out")],
                "a",
                "success",
                false,
            ),
            (&[("a", "failure"), ("b", "success")], "a", "success", true),
        ] {
            let told = is_news(before.iter().copied(), name, conclusion);
            assert_eq!(told, expected, "{before:?} {name} {conclusion}");
        }
    }
}
