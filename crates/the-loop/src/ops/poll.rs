//! `poll` (SE-23): the poller in front, for cron.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use the_loop_core::delivery::State;
use the_loop_core::event::{LogEvent, Source};
use the_loop_core::ids::RepoRef;

use super::deliver::{self, Outcome};
use super::desk::{Desk, inbox_error};
use super::error::{Kind, OpError};
use super::link;
use crate::poll::{PollContext, Poller, Tally, sources};
use crate::store::inbox::{Inbox, ListFilter, Seq};
use crate::store::lock::{ServiceLock, ServiceLockError};
use crate::store::poll_status::{LastCycle, PollStatus};
use crate::tracker::github::client::Github;
use crate::tracker::github::credential;

/// Between two looks at whether somebody wants it to end.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What a cycle came to, with what became of what it accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// The cycle itself.
    pub tally: Tally,
    /// Deliveries that failed or were given up.
    pub failures: u64,
}

impl Cycle {
    /// Errors and failures together.
    pub fn failed(&self) -> u64 {
        self.tally.errors + self.failures
    }

    /// `18 items, 2 accepted, 0 closed, 0 failed` (IN-52).
    pub fn words(&self) -> String {
        format!(
            "{} items, {} accepted, {} closed, {} failed",
            self.tally.items_seen,
            self.tally.accepted(),
            self.tally.closures,
            self.failed(),
        )
    }
}

/// Polls: once, or until `stop`. `each` is told every cycle. What an earlier run left is finished first.
pub fn poll(
    desk: &Desk,
    once: bool,
    stop: &Arc<AtomicBool>,
    each: &mut dyn FnMut(&Cycle),
) -> Result<(), OpError> {
    must_be_possible(desk)?;
    let inbox = desk.inbox()?;
    let path = desk.layout.poll_pid();
    let _lock = ServiceLock::acquire(&desk.world, &path).map_err(|e| blocked(desk, e))?;
    let interval = desk.settings().polling.interval_seconds;
    desk.emit(
        Source::Poll,
        LogEvent::PollerStarted {
            interval_seconds: interval,
            sources: sources(desk.settings()),
        },
    );
    let mut status = PollStatus {
        started_at: desk.world.clock.now(),
        last_cycle_at: None,
        interval_seconds: interval,
        waiting_for_quota_until: None,
        last_cycle: None,
    };
    status.write(&desk.world, &desk.layout);
    let mut poller = Poller::new(context(desk, &inbox, stop));
    let ended = loop {
        let cycle = match carried_cycle(desk, &inbox, &mut poller, stop) {
            Ok(cycle) => cycle,
            Err(error) => break Err(error),
        };
        status.last_cycle_at = Some(desk.world.clock.now());
        status.waiting_for_quota_until = poller.waits_until();
        status.last_cycle = Some(LastCycle {
            failures: cycle.failures,
            ..cycle.tally.into()
        });
        status.write(&desk.world, &desk.layout);
        each(&cycle);
        if once || stop.load(Ordering::SeqCst) {
            break Ok(());
        }
        rest(desk, Duration::from_secs(u64::from(interval)), stop);
        if stop.load(Ordering::SeqCst) {
            break Ok(());
        }
    };
    desk.emit(Source::Poll, LogEvent::PollerStopped {});
    ended
}

fn rest(desk: &Desk, pause: Duration, stop: &AtomicBool) {
    let deadline = desk.world.clock.deadline(pause);
    while !stop.load(Ordering::SeqCst) && !desk.world.clock.is_over(&deadline) {
        desk.world.clock.wait(LOOK_EVERY);
    }
}

fn must_be_possible(desk: &Desk) -> Result<(), OpError> {
    let settings = desk.settings();
    if !settings.routing.enabled {
        let made = OpError::refused("nothing is polled: routing.enabled is false");
        return Err(made.hint("set routing.enabled: true"));
    }
    let none = || {
        OpError::new(Kind::Usage, "polling.sources names no repository")
            .hint("polling: {sources: [{repos: [OWNER/REPO]}]}")
    };
    let repos = settings.polling.sources.iter().flat_map(|s| &s.repos);
    let hosts: Vec<String> = repos
        .filter_map(|repo| Some(RepoRef::parse(repo).ok()?.host))
        .collect();
    if hosts.is_empty() {
        return Err(none());
    }
    let github = &settings.integrations.github;
    if let Some(host) = hosts.iter().find(|host| !github.knows_host(host)) {
        let made = format!("{host} of polling.sources is not configured");
        return Err(OpError::new(Kind::Usage, made).hint("integrations.github.hosts"));
    }
    let has_none = |host: &&String| !credential::is_possible(&desk.world, settings, host);
    if let Some(host) = hosts.iter().find(has_none) {
        let made = OpError::new(Kind::Failed, format!("no credential for {host}"));
        return Err(made.hint("set integrations.github.tokenFile, or log in with gh"));
    }
    Ok(())
}

fn blocked(desk: &Desk, error: ServiceLockError) -> OpError {
    match error {
        ServiceLockError::Held { path, pid } => {
            let path = path.to_string();
            desk.emit(Source::Poll, LogEvent::PollerBlocked { path, holder: pid });
            let who = pid.map_or_else(|| "another process".to_owned(), |pid| format!("pid {pid}"));
            OpError::refused(format!("a poller runs already: {who}")).hint("the-loop status")
        }
        e @ ServiceLockError::Io { .. } => OpError::of(&e),
    }
}

/// What is left is carried on, then comes the cycle, and what it accepted is carried to an end or to a time
/// of its own.
fn carried_cycle(
    desk: &Desk,
    inbox: &Inbox,
    poller: &mut Poller,
    stop: &AtomicBool,
) -> Result<Cycle, OpError> {
    let mut cycle = Cycle {
        failures: carry_on(desk, inbox, stop)?,
        ..Cycle::default()
    };
    if !stop.load(Ordering::SeqCst) {
        cycle.tally = poller.cycle();
        cycle.failures += carry_on(desk, inbox, stop)?;
    }
    Ok(cycle)
}

/// Carries everything that is open to an end or to a reason to wait; how much of it failed. A running daemon
/// does that by itself.
fn carry_on(desk: &Desk, inbox: &Inbox, stop: &AtomicBool) -> Result<u64, OpError> {
    if link::daemon(&desk.world, &desk.layout).locked {
        link::poke(&desk.layout);
        return Ok(0);
    }
    let rows = inbox.list(&ListFilter::default());
    let rows = rows.map_err(|e| inbox_error(&e))?;
    let mut seqs: Vec<Seq> = rows.iter().map(|row| row.seq).collect();
    seqs.sort_unstable();
    seqs.dedup();
    let mut failures = 0;
    for seq in seqs {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let row = inbox.delivery(seq).map_err(|e| inbox_error(&e))?;
        let Some(Ok(delivery)) = row.map(|row| row.delivery) else {
            continue;
        };
        let outcome = deliver::wait(desk, inbox, &delivery.item, seq, stop)?;
        failures += u64::from(has_failed(&outcome));
    }
    Ok(failures)
}

fn has_failed(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ended { state, .. } => {
            matches!(state, State::Failed | State::Abandoned | State::Uncertain)
        }
        Outcome::Waits { until, .. } => until.is_some(),
        Outcome::NotWaited => false,
    }
}

fn context(desk: &Desk, inbox: &Inbox, stop: &Arc<AtomicBool>) -> PollContext {
    let (settings, stop) = (Arc::clone(desk.settings()), Arc::clone(stop));
    let teller = desk.log.clone();
    let tell = move |event| teller.emit(Source::Tracker, event);
    PollContext {
        world: desk.world.clone(),
        layout: desk.layout.clone(),
        settings: Arc::new(move || Arc::clone(&settings)),
        inbox: inbox.clone(),
        log: desk.log.clone(),
        github: Github::telling(&desk.world, Arc::new(tell)),
        on_accept: Arc::new(|| {}),
        is_ending: Arc::new(move || stop.load(Ordering::SeqCst)),
    }
}
