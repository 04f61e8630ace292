//! A cycle over all repositories, and the scan for what was missed (IN-50, IN-52).

use std::sync::Arc;
use std::time::Duration;

use the_loop_core::config::{PollMonitor, Settings};
use the_loop_core::delivery::Ingress;
use the_loop_core::event::{LogEvent, ProviderErrorReason};
use the_loop_core::ids::RepoRef;
use the_loop_core::poll::OVERLAP;
use the_loop_core::quota::{Caller, jitter};
use the_loop_core::record::SessionRecord;
use the_loop_core::route::Owner;
use the_loop_core::time::Timestamp;

use super::repo::Round;
use super::{Fault, Followed, Poller, REFUSED_FOR, Sessions, Tally};
use crate::tracker::github::client::WriteError;

impl Tally {
    pub(super) fn add(&mut self, round: &Round<'_>) {
        let more = round.tally;
        self.items_seen += more.items_seen;
        self.spawns += more.spawns;
        self.comments_forwarded += more.comments_forwarded;
        self.closures += more.closures;
        self.errors += more.errors;
        self.interrupted |= more.interrupted;
        self.requests += round.asked.requests;
        self.not_modified += round.asked.not_modified;
    }
}

impl Poller {
    /// One cycle over the sources as they are configured now.
    pub fn cycle(&mut self) -> Tally {
        let (began, mut tally) = (self.now(), Tally::default());
        let settings = (self.context.settings)();
        match self.sessions() {
            Ok(sessions) => {
                self.look_around(&settings, &sessions, &mut tally);
                for followed in followed(&settings) {
                    let since = began.minus(OVERLAP);
                    self.go_through(
                        &settings,
                        followed,
                        &sessions,
                        Ingress::Poll,
                        since,
                        &mut tally,
                    );
                }
                self.forget_repos(&settings);
            }
            Err(fault) => {
                tracing::warn!("the poller cannot see the sessions: {fault}");
                tally.errors += 1;
            }
        }
        if let Err(error) = self.portable.flush_index() {
            tracing::warn!(%error, "the index of portable records could not be written");
        }
        self.emit(LogEvent::PollCycle {
            items_seen: tally.items_seen,
            spawns: tally.spawns,
            comments_forwarded: tally.comments_forwarded,
            closures: tally.closures,
            failures: 0,
            errors: tally.errors,
            interrupted: tally.interrupted,
            requests: tally.requests,
            not_modified: tally.not_modified,
            duration_ms: self.now().since(began).as_millis() as u64,
            moved: tally.accepted() > 0,
        });
        tally
    }

    /// Looks for what came since then and was not received (IN-50): over the sources and the repositories of
    /// sessions.
    pub fn backfill(&mut self, since: Timestamp) -> Tally {
        let mut tally = Tally::default();
        let settings = (self.context.settings)();
        let since = since.minus(OVERLAP);
        let Ok(sessions) = self.sessions() else {
            return tally;
        };
        let mut all = followed(&settings);
        for owner in &sessions.owners {
            let repo = owner.item.repo();
            let is_known = settings.integrations.github.knows_host(&repo.host);
            let is_listed = all.iter().any(|other| other.repo.key() == repo.key());
            if !owner.item.is_local() && is_known && !is_listed {
                all.push(Followed {
                    repo: repo.clone(),
                    monitor: PollMonitor::default(),
                });
            }
        }
        let mut hosts: Vec<String> = all.iter().map(|f| f.repo.host.clone()).collect();
        hosts.sort();
        hosts.dedup();
        for host in hosts {
            let mut of_host = Tally::default();
            for followed in all.iter().filter(|followed| followed.repo.host == host) {
                let followed = followed.clone();
                self.go_through(
                    &settings,
                    followed,
                    &sessions,
                    Ingress::Backfill,
                    since,
                    &mut of_host,
                );
            }
            self.emit(LogEvent::PollBackfill {
                host,
                since,
                count: of_host.accepted(),
            });
            tally.comments_forwarded += of_host.comments_forwarded;
            tally.spawns += of_host.spawns;
            tally.closures += of_host.closures;
            tally.errors += of_host.errors;
            tally.interrupted |= of_host.interrupted;
        }
        // What was judged for the scan is judged anew where ledgers are kept.
        self.memory.judged.clear();
        tally
    }

    fn go_through(
        &mut self,
        settings: &Arc<Settings>,
        followed: Followed,
        sessions: &Sessions,
        ingress: Ingress,
        since: Timestamp,
        tally: &mut Tally,
    ) {
        if (self.context.is_ending)() || self.has_to_wait(settings, &followed.repo.host) {
            tally.interrupted = true;
            return;
        }
        let settings = Arc::clone(settings);
        let mut round = Round::new(settings, followed, sessions, ingress, since);
        let read = match ingress {
            Ingress::Poll => self.read_repo(&mut round),
            Ingress::Backfill
            | Ingress::Webhook
            | Ingress::Tracker
            | Ingress::Cli
            | Ingress::Api
            | Ingress::Channel => self.read_on(&mut round),
        };
        match read {
            Ok(()) => {
                self.memory.faults.remove(&round.repo().key());
            }
            Err(fault) => self.tell_fault(&mut round, &fault),
        }
        tally.add(&round);
    }

    /// May this host not be asked now?
    pub(super) fn has_to_wait(&self, settings: &Settings, host: &str) -> bool {
        let refused = self.memory.refused.get(&host.to_ascii_lowercase());
        refused.is_some_and(|until| *until > self.now())
            || self
                .context
                .github
                .wait(settings, host, Caller::Poll)
                .is_some()
    }

    /// Until when every host of the sources will be waited for; `None`: one of them can be asked.
    pub fn waits_until(&self) -> Option<Timestamp> {
        let settings = (self.context.settings)();
        let now = self.now();
        let waits = followed(&settings).into_iter().map(|followed| {
            let github = &self.context.github;
            github.wait(&settings, &followed.repo.host, Caller::Poll)
        });
        let waits: Option<Vec<Duration>> = waits.collect();
        waits?.into_iter().min().map(|wait| now.plus(wait))
    }

    /// What is added to a wait, so that not everybody comes back in the same second.
    pub fn jitter(&self, wait: Duration) -> Duration {
        jitter(wait, u64::from_be_bytes(self.context.world.ids.bytes()))
    }

    /// Tells a fault of a repository when it is a new one. That a host wants a pause is none: the gate has
    /// told it.
    pub(super) fn tell_fault(&mut self, round: &mut Round<'_>, fault: &Fault) {
        let repo = round.repo().clone();
        match fault {
            Fault::Github(WriteError::Throttled(_)) => {
                round.tally.interrupted = true;
                return;
            }
            Fault::Github(WriteError::Refused(401) | WriteError::NoToken(_)) => {
                let until = self.now().plus(REFUSED_FOR);
                let host = repo.host.to_ascii_lowercase();
                self.memory.refused.insert(host, until);
            }
            Fault::Github(_) | Fault::Malformed(_) | Fault::TooLarge | Fault::Ours(_) => {}
        }
        round.tally.errors += 1;
        let words = fault.to_string();
        let before = self.memory.faults.insert(repo.key(), words.clone());
        if before.as_deref() == Some(&*words) {
            return;
        }
        self.emit(LogEvent::PollProviderError {
            host: repo.host.clone(),
            repo: Some(repo.full_name()),
            reason: match fault {
                Fault::TooLarge => Some(ProviderErrorReason::SourceTooLarge),
                Fault::Github(_) | Fault::Malformed(_) | Fault::Ours(_) => None,
            },
            error: words,
        });
    }

    fn sessions(&self) -> Result<Sessions, Fault> {
        let listing = self.registry.list();
        let listing = listing.map_err(|fault| Fault::Ours(fault.to_string()))?;
        let mut sessions = Sessions::default();
        let live = |record: &SessionRecord| record.status.is_live();
        for found in listing.records.iter().filter(|found| live(&found.record)) {
            let record = &found.record;
            sessions.since.insert(record.item.key(), record.created_at);
            sessions.owners.push(Owner {
                item: record.item.clone(),
                pulls: record.endpoints().map(|pull| pull.item.key()).collect(),
                branch: record
                    .workspace
                    .as_ref()
                    .and_then(|workspace| workspace.branch.clone()),
            });
        }
        Ok(sessions)
    }

    /// The lists of repositories that are no source any more begin anew when they become one again.
    fn forget_repos(&mut self, settings: &Settings) {
        let repos: Vec<RepoRef> = followed(settings).into_iter().map(|f| f.repo).collect();
        let names: Vec<String> = repos.iter().map(RepoRef::key).collect();
        if self.first_time(format!("sources {names:?}")) {
            let _ = self.context.inbox.keep_cursors(&repos);
        }
    }
}

/// The repositories of all sources, each once.
fn followed(settings: &Settings) -> Vec<Followed> {
    let mut all: Vec<Followed> = Vec::new();
    for source in &settings.polling.sources {
        for repo in source.repos.iter().filter_map(|r| RepoRef::parse(r).ok()) {
            if !all.iter().any(|known| known.repo.key() == repo.key()) {
                all.push(Followed {
                    repo,
                    monitor: source.monitor.clone(),
                });
            }
        }
    }
    all
}

/// Names of the repositories that are asked.
pub fn sources(settings: &Settings) -> Vec<String> {
    let name = |followed: Followed| {
        let repo = followed.repo;
        format!("{}/{}", repo.host, repo.full_name())
    };
    followed(settings).into_iter().map(name).collect()
}

/// Why nothing is polled; `None`: it is.
pub fn why_disabled(settings: &Settings) -> Option<String> {
    let key = if !settings.polling.enabled {
        "polling.enabled"
    } else if settings.routing.enabled {
        return None;
    } else {
        "routing.enabled"
    };
    Some(format!("{key} is false"))
}
