//! Keeping the poller up, and the scan for what the receiver missed (SE-19, SE-24, IN-50, IN-52).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use the_loop_core::config::Settings;
use the_loop_core::event::{LogEvent, ServiceName, Source};
use the_loop_core::time::{Timestamp, age};

use super::{RETRY_MAX, Shared};
use crate::ops::rows::{RowOutcome, ServiceRow};
use crate::poll::{PollContext, Poller, Tally, sources, why_disabled};
use crate::store::lock::{ServiceLock, ServiceLockError};
use crate::store::poll_status::PollStatus;
use crate::tracker::github::credential;

/// Under which the moment is kept when the receiver was last known to listen.
const HEARTBEAT: &str = "receiver-heartbeat";
/// Between two of those moments (IN-50).
const HEARTBEAT_EVERY: Duration = Duration::from_mins(1);
/// How long a start waits for the poller's first try.
const FIRST_WITHIN: Duration = Duration::from_secs(2);
/// After which a scan that came to nothing is made again.
const SCAN_AGAIN: Duration = Duration::from_mins(1);

/// How the poller stands.
#[derive(Debug, Default)]
pub(super) struct Polling {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    standing: Standing,
    /// The configuration changed, or a scan is due.
    is_woken: bool,
    is_ending: bool,
    /// Since when the receiver may have missed something.
    missed_since: Option<Timestamp>,
    beaten_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Default)]
enum Standing {
    /// Not tried yet, or switched off.
    #[default]
    Off,
    Up {
        since: Timestamp,
    },
    Blocked {
        pid: Option<u32>,
    },
    Misconfigured {
        why: String,
    },
    Down {
        why: String,
        at: Timestamp,
        next: Timestamp,
    },
}

/// Why one life of the poller ended.
enum Ended {
    Asked,
    Blocked(Option<u32>),
    Misconfigured(String),
    Failed(String),
}

impl Polling {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, standing: Standing) {
        self.state().standing = standing;
        self.changed.notify_all();
    }

    /// The configuration changed: one that was misconfigured is tried again.
    pub(super) fn configuration_changed(&self) {
        self.state().is_woken = true;
        self.changed.notify_all();
    }

    /// The daemon ends.
    pub(super) fn end(&self) {
        self.state().is_ending = true;
        self.changed.notify_all();
    }

    fn is_ending(&self) -> bool {
        self.state().is_ending
    }

    /// Waits, at most so long, for a change or the end.
    fn rest(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.state();
        while !state.is_woken && !state.is_ending {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_woken = false;
    }

    /// Its row, in the words of `start`.
    pub(super) fn row(&self, shared: &Shared) -> ServiceRow {
        let settings = shared.live.current();
        let (own, now) = (shared.world.pid, shared.world.clock.now());
        let disabled = why_disabled(&settings);
        let (outcome, pid, detail) = match self.state().standing.clone() {
            _ if disabled.is_some() => (RowOutcome::Disabled, None, disabled.unwrap_or_default()),
            Standing::Off => (RowOutcome::NotRunning, None, String::new()),
            Standing::Up { .. } => {
                let detail = format!("pid {own}, {}", sources_words(&settings));
                (RowOutcome::Started, Some(own), detail)
            }
            Standing::Blocked { pid } => {
                let words = pid.map_or_else(|| "pid unknown".to_owned(), |p| format!("pid {p}"));
                let detail = format!("{words}, by another program");
                (RowOutcome::AlreadyRunning, pid, detail)
            }
            Standing::Misconfigured { why } => (RowOutcome::Misconfigured, None, why),
            Standing::Down { why, at, next } => {
                let (ago, next) = (age(now.since(at)), age(next.since(now)));
                let detail = format!("died {ago} ago: {why}, next try in {next}");
                (RowOutcome::NotRunning, None, detail)
            }
        };
        ServiceRow {
            name: "poller".to_owned(),
            enabled: why_disabled(&settings).is_none(),
            running: matches!(outcome, RowOutcome::Started | RowOutcome::AlreadyRunning),
            outcome,
            pid,
            detail,
        }
    }

    /// What `GET /status` says of it (SE-25).
    pub(super) fn json(&self, shared: &Shared) -> Value {
        let row = self.row(shared);
        let since = match &self.state().standing {
            Standing::Up { since } => Some(*since),
            Standing::Off
            | Standing::Blocked { .. }
            | Standing::Misconfigured { .. }
            | Standing::Down { .. } => None,
        };
        let outcome = match row.outcome {
            RowOutcome::Started | RowOutcome::AlreadyRunning => RowOutcome::Running,
            other => other,
        };
        json!({
            "name": row.name,
            "enabled": row.enabled,
            "running": row.running,
            "outcome": outcome,
            "pid": row.pid,
            "reason": if row.running { None } else { Some(row.detail) },
            "since": since,
        })
    }
}

/// `3 repositories every 60 s`.
fn sources_words(settings: &Settings) -> String {
    let count = sources(settings).len();
    let noun = if count == 1 {
        "repository"
    } else {
        "repositories"
    };
    format!(
        "{count} {noun} every {} s",
        settings.polling.interval_seconds
    )
}

/// How many calls the hosts take, as the document of `status` has it.
pub(super) fn quota(shared: &Shared) -> Value {
    let settings = shared.live.current();
    let now = shared.world.clock.now();
    let all = shared.github.quotas(&settings).into_iter();
    let rows = all.map(|host| {
        let told = host.quota.told;
        let pause = host.quota.paused_until.filter(|until| *until > now);
        json!({
            "host": host.host,
            "limit": told.limit,
            "remaining": told.remaining,
            "reserve": host.reserve,
            "resetAt": told.resets_at,
            "secondaryUntil": pause.filter(|_| host.quota.is_throttled),
        })
    });
    rows.collect()
}

/// Starts the poller's thread; returns when its first try came to something. It also makes the scans, whether
/// polling is on or not.
pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<std::thread::JoinHandle<()>> {
    let of_thread = Arc::clone(shared);
    let thread = std::thread::Builder::new()
        .name("poller".to_owned())
        .spawn(move || keep(&of_thread))?;
    let until = Instant::now() + FIRST_WITHIN;
    let is_off = |state: &State| matches!(state.standing, Standing::Off);
    let mut state = shared.polling.state();
    while why_disabled(&shared.live.current()).is_none() && is_off(&state) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let waited = shared.polling.changed.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(state);
    Ok(thread)
}

/// The receiver listens: what came while it did not is to be looked for (IN-50).
pub(super) fn receiver_is_up(shared: &Shared) {
    if !shared.live.current().polling.backfill_on_start {
        return;
    }
    let last = shared.inbox.meta(HEARTBEAT).ok().flatten();
    let last = last.and_then(|(text, _)| text.parse::<Timestamp>().ok());
    if let Some(last) = last {
        let mut state = shared.polling.state();
        state.missed_since = state.missed_since.or(Some(last));
        state.is_woken = true;
        drop(state);
        shared.polling.changed.notify_all();
    } else {
        beat(shared);
    }
}

/// Once a minute: the receiver listens now. As long as a scan is due, its moment stays.
pub(super) fn beat(shared: &Shared) {
    let now = shared.world.clock.now();
    {
        let mut state = shared.polling.state();
        let is_recent = |at: Timestamp| now >= at && now.since(at) < HEARTBEAT_EVERY;
        if state.missed_since.is_some() || state.beaten_at.is_some_and(is_recent) {
            return;
        }
        state.beaten_at = Some(now);
    }
    let _ = shared.inbox.set_meta(HEARTBEAT, &now.seconds());
}

fn keep(shared: &Arc<Shared>) {
    let polling = &shared.polling;
    let mut pause = Duration::from_secs(1);
    while !polling.is_ending() {
        if why_disabled(&shared.live.current()).is_some() {
            polling.set(Standing::Off);
            scan(shared);
            polling.rest(SCAN_AGAIN);
            continue;
        }
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| life(shared)));
        let now = shared.world.clock.now();
        match lived.unwrap_or_else(|_| Ended::Failed("a defect ended it".to_owned())) {
            Ended::Asked => {
                pause = Duration::from_secs(1);
                continue;
            }
            Ended::Blocked(pid) => polling.set(Standing::Blocked { pid }),
            Ended::Misconfigured(why) => polling.set(Standing::Misconfigured { why }),
            Ended::Failed(why) => {
                let service = ServiceName::Poller;
                let error = why.clone();
                let event = LogEvent::ServiceFailed { service, error };
                shared.log.emit(Source::Daemon, event);
                let next = now.plus(pause);
                polling.set(Standing::Down { why, at: now, next });
            }
        }
        polling.rest(pause);
        pause = (pause * 2).min(RETRY_MAX);
    }
}

/// One life: lock, cycles, end. It ends by itself when it is switched off.
fn life(shared: &Arc<Shared>) -> Ended {
    let settings = shared.live.current();
    if let Some(why) = misconfigured(shared, &settings) {
        return Ended::Misconfigured(why);
    }
    let path = shared.layout.poll_pid();
    let _lock = match ServiceLock::acquire(&shared.world, &path) {
        Ok(lock) => lock,
        Err(ServiceLockError::Held { path, pid }) => {
            let path = path.to_string();
            let event = LogEvent::PollerBlocked { path, holder: pid };
            shared.log.emit(Source::Poll, event);
            return Ended::Blocked(pid);
        }
        Err(e @ ServiceLockError::Io { .. }) => return Ended::Failed(e.to_string()),
    };
    let started_at = shared.world.clock.now();
    shared.polling.set(Standing::Up { since: started_at });
    let event = LogEvent::PollerStarted {
        interval_seconds: settings.polling.interval_seconds,
        sources: sources(&settings),
    };
    shared.log.emit(Source::Poll, event);
    let mut status = PollStatus {
        started_at,
        last_cycle_at: None,
        interval_seconds: settings.polling.interval_seconds,
        waiting_for_quota_until: None,
        last_cycle: None,
    };
    status.write(&shared.world, &shared.layout);
    let mut poller = Poller::new(context(shared));
    let ended = loop {
        let settings = shared.live.current();
        if shared.polling.is_ending() || why_disabled(&settings).is_some() {
            break Ended::Asked;
        }
        if let Some(why) = misconfigured(shared, &settings) {
            break Ended::Misconfigured(why);
        }
        scan(shared);
        let tally = poller.cycle();
        let waits = poller.waits_until();
        note(&mut status, &tally, &settings, waits, shared);
        let interval = Duration::from_secs(u64::from(settings.polling.interval_seconds));
        let now = shared.world.clock.now();
        let wait = waits.map_or(Duration::ZERO, |until| {
            let wait = until.since(now);
            wait + poller.jitter(wait)
        });
        shared.polling.rest(interval.max(wait));
    };
    shared.log.emit(Source::Poll, LogEvent::PollerStopped {});
    ended
}

fn note(
    status: &mut PollStatus,
    tally: &Tally,
    settings: &Settings,
    waits: Option<Timestamp>,
    shared: &Shared,
) {
    status.last_cycle_at = Some(shared.world.clock.now());
    status.interval_seconds = settings.polling.interval_seconds;
    status.waiting_for_quota_until = waits;
    status.last_cycle = Some((*tally).into());
    status.write(&shared.world, &shared.layout);
}

/// What is missing for polling.
fn misconfigured(shared: &Shared, settings: &Settings) -> Option<String> {
    if sources(settings).is_empty() {
        return Some("polling.sources names no repository".to_owned());
    }
    let mut repos = settings.polling.sources.iter().flat_map(|s| &s.repos);
    let host = |repo: &String| {
        let parsed = the_loop_core::ids::RepoRef::parse(repo).ok()?;
        Some(parsed.host)
    };
    repos.find_map(|repo| {
        let host = host(repo)?;
        if !settings.integrations.github.knows_host(&host) {
            return Some(format!(
                "{host} of polling.sources is no key of integrations.github.hosts"
            ));
        }
        let is_possible = credential::is_possible(&shared.world, settings, &host);
        (!is_possible).then(|| format!("no credential for {host}: integrations.github.tokenFile"))
    })
}

/// Looks for what the receiver missed, if something may be missing.
fn scan(shared: &Arc<Shared>) {
    let Some(since) = shared.polling.state().missed_since else {
        return;
    };
    let mut poller = Poller::new(context(shared));
    let tally = poller.backfill(since);
    if !tally.interrupted && tally.errors == 0 {
        shared.polling.state().missed_since = None;
        if shared.receiver.is_up() {
            beat(shared);
        }
    }
}

fn context(shared: &Arc<Shared>) -> PollContext {
    let (live, ending, accepted) = (
        Arc::clone(&shared.live),
        Arc::clone(shared),
        Arc::clone(shared),
    );
    PollContext {
        world: shared.world.clone(),
        layout: shared.layout.clone(),
        settings: Arc::new(move || live.current()),
        inbox: shared.inbox.clone(),
        log: shared.log.clone(),
        github: shared.github.clone(),
        on_accept: Arc::new(move || accepted.engine().wake()),
        is_ending: Arc::new(move || ending.polling.is_ending()),
    }
}
