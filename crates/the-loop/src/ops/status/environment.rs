//! Who holds another environment than the env file declares (SE-26).

use serde::Serialize;
use the_loop_core::environment::Verdict;
use the_loop_core::ids::WorkItemRef;

use crate::engine::environment_of;
use crate::ops::desk::Desk;
use crate::ops::sessions::list::Sessions;
use crate::settings::declared_environment;

/// The block `sessionEnvironment` of SE-25: computed when asked, never stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionEnvironment {
    /// `env.file` is set.
    configured: bool,
    /// Live sessions with a live pane.
    running: usize,
    /// Those that hold another value, or lack one.
    stale: usize,
    /// Those of which no environment could be read.
    unverified: usize,
    /// Every live session.
    sessions: Vec<SessionVerdict>,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionVerdict {
    #[serde(rename = "ref")]
    item: WorkItemRef,
    tmux_target: Option<String>,
    verdict: &'static str,
    /// Names only.
    stale: Vec<String>,
}

impl SessionEnvironment {
    /// The one line of `status`; only when somebody is stale (R3.2).
    pub(super) fn line(&self) -> Option<String> {
        (self.stale > 0).then(|| {
            format!(
                "sessions {} of {} running with a stale environment \u{2014} `the-loop sessions restart --all`",
                self.stale, self.running
            )
        })
    }
}

/// Looks. Any fault yields zero counts: a status that cannot see environments is a status (R3.4).
pub(super) fn look(desk: &Desk, sessions: &Sessions) -> SessionEnvironment {
    let configured = !desk.settings().env.file.is_empty();
    let mut block = SessionEnvironment {
        configured,
        ..SessionEnvironment::default()
    };
    let Ok(Some(declared)) = declared_environment(&desk.world, desk.settings()) else {
        return block;
    };
    for line in &sessions.lines {
        let Some(record) = line.record.as_ref().filter(|r| r.status.is_live()) else {
            continue;
        };
        let mut stale = Vec::new();
        let verdict = if line.pids.is_empty() {
            "not-running"
        } else {
            block.running += 1;
            let verdict = environment_of(&desk.world, &declared, record.pid, &line.pids);
            match &verdict {
                Verdict::Fresh => {}
                Verdict::Stale(_) => block.stale += 1,
                Verdict::Unverified => block.unverified += 1,
            }
            stale = verdict.names();
            verdict.as_str()
        };
        let target = record.tmux_target.clone();
        block.sessions.push(SessionVerdict {
            item: line.item.clone(),
            tmux_target: Some(target).filter(|target| !target.is_empty()),
            verdict,
            stale,
        });
    }
    block
}
