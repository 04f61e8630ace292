//! The account behind the credential, and what it does (IN-24, IN-25, guard 7 of IN-22, DI-52, DI-53).
//!
//! An agent works with its operator's login. What it does there comes back as that login's doing: without
//! words it is nothing to be told of, and its words may be an answer to itself.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use the_loop_core::config::Settings;
use the_loop_core::confirm::AgentState;
use the_loop_core::delivery::{Actor, Delivery, Effect, Ingress};
use the_loop_core::guard::is_same;
use the_loop_core::ids::{DEFAULT_HOST, ItemKey};
use the_loop_core::time::Timestamp;

use super::item::Gathered;
use super::{Engine, lock};
use crate::tracker::github::credential;

/// Comments within an hour that an agent may have answered itself with; then the item is parked (IN-25).
pub(super) const SELF_ANSWERS_MAX: usize = 5;
const HOUR: Duration = Duration::from_hours(1);
/// What the keys of remembered accounts begin with in `meta`.
const PREFIX: &str = "account/";

/// What is known of the accounts.
#[derive(Debug, Default)]
pub(super) struct OwnAccounts {
    known: Mutex<HashMap<String, Actor>>,
    answers: Mutex<HashMap<ItemKey, VecDeque<Timestamp>>>,
}

impl Engine {
    /// Asks every host for which there may be a credential whose it is, beside everything else. What was answered
    /// before counts until then.
    pub(super) fn ask_accounts(&self) {
        let settings = self.settings();
        let hosts = settings.integrations.github.hosts.keys();
        let hosts: HashSet<String> = hosts
            .map(|host| host.to_ascii_lowercase())
            .chain([DEFAULT_HOST.to_owned()])
            .filter(|host| credential::is_possible(self.world(), &settings, host))
            .collect();
        if hosts.is_empty() || !settings.routing.enabled {
            return;
        }
        for host in &hosts {
            let kept = self.0.parts.inbox.meta(&format!("{PREFIX}{host}"));
            let kept = kept
                .ok()
                .flatten()
                .and_then(|(text, _)| serde_json::from_str(&text).ok());
            if let Some(account) = kept {
                lock(&self.0.accounts.known).insert(host.clone(), account);
            }
        }
        let engine = self.clone();
        let thread = std::thread::Builder::new().name("own-account".to_owned());
        let started = thread.spawn(move || engine.ask_each(&settings, &hosts));
        if let Err(error) = started {
            tracing::warn!(%error, "the account behind the credential cannot be asked for");
        }
    }

    fn ask_each(&self, settings: &Settings, hosts: &HashSet<String>) {
        let client = &self.0.parts.github;
        for host in hosts {
            match client.account(settings, host) {
                Ok(account) => {
                    if let Ok(text) = serde_json::to_string(&account) {
                        let _ = self
                            .0
                            .parts
                            .inbox
                            .set_meta(&format!("{PREFIX}{host}"), &text);
                    }
                    lock(&self.0.accounts.known).insert(host.clone(), account);
                }
                Err(error) => {
                    tracing::info!(%host, %error, "whose the credential is stays unknown");
                }
            }
        }
    }

    /// The account behind the credential of a host, where it is known.
    pub(super) fn own_account(&self, host: &str) -> Option<Actor> {
        let host = host.to_ascii_lowercase();
        lock(&self.0.accounts.known).get(&host).cloned()
    }

    /// Did the account behind the credential of its host send this? Unknown is no.
    fn is_by_own_account(&self, delivery: &Delivery) -> bool {
        let from_outside = match delivery.ingress {
            Ingress::Webhook | Ingress::Poll | Ingress::Backfill => true,
            Ingress::Tracker | Ingress::Cli | Ingress::Api | Ingress::Channel => false,
        };
        let known = self.own_account(&delivery.item.repo().host);
        let actor = delivery.actor.as_ref().filter(|_| from_outside);
        known.is_some_and(|own| actor.is_some_and(|actor| is_same(&own, actor)))
    }

    /// Did that account do something without words, where a session lives? It is most often the agent's own
    /// doing, and told to nobody; that a pull request came up still asks whether there should be a session.
    pub(super) fn is_own_action(&self, gathered: &Gathered, delivery: &Delivery) -> bool {
        match delivery.effect {
            Effect::Notice { .. } => self.is_by_own_account(delivery),
            Effect::Opened => gathered.live().is_some() && self.is_by_own_account(delivery),
            Effect::Text(_)
            | Effect::Presence
            | Effect::Check(_)
            | Effect::Start { .. }
            | Effect::Close { .. } => false,
        }
    }

    /// May these be the agent's own words? They are of that account, and were written after the turn that is
    /// going on began. Words that began it, and those that came with them, are a person's.
    pub(super) fn is_suspect(&self, gathered: &Gathered, delivery: &Delivery) -> bool {
        let Effect::Text(text) = &delivery.effect else {
            return false;
        };
        if gathered.live().is_none() || !self.is_by_own_account(delivery) {
            return false;
        }
        let agent = lock(&self.0.agents).get(&gathered.key).cloned();
        let standing = agent.and_then(|agent| lock(&agent).standing());
        let written = text.created_at.unwrap_or(delivery.received_at);
        standing.is_some_and(|seen| seen.state == AgentState::Working && seen.at <= written)
    }

    /// Counts words that may be the agent's own; `true` when they are too many within an hour. The counting
    /// begins anew then.
    pub(super) fn answers_itself(&self, gathered: &Gathered) -> bool {
        let now = self.world().clock.now();
        let mut answers = lock(&self.0.accounts.answers);
        let times = answers.entry(gathered.key.clone()).or_default();
        while times.front().is_some_and(|at| now.since(*at) >= HOUR) {
            times.pop_front();
        }
        times.push_back(now);
        let too_many = times.len() >= SELF_ANSWERS_MAX;
        if too_many {
            times.clear();
        }
        too_many
    }
}
