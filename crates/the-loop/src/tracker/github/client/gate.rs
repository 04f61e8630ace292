//! The way to a host: one call at a time (IN-39), as many as it takes (IN-51), and with a credential that is
//! not asked for anew with each.

use std::collections::HashMap;
use std::fmt;
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use the_loop_core::config::Settings;
use the_loop_core::event::{LogEvent, QuotaEffect};
use the_loop_core::ids::RepoRef;
use the_loop_core::quota::{Caller, News, Outcome, Quota, Told};
use the_loop_core::time::Timestamp;
use ureq::Body;
use ureq::http::{HeaderMap, Response};

use super::app::Tokens;
use super::{Github, WriteError, fault};
use crate::tracker::github::credential::{self, NoToken};

/// Bytes of a refusal that are read for the words of a pause.
const REFUSAL_BYTES_MAX: u64 = 16 << 10;
/// How long a token that a program gave is used before it is asked again.
const TOKEN_KEPT: Duration = Duration::from_mins(5);
/// Words of a pause, where no header asks for one.
const PAUSE_WORDS: [&str; 2] = ["secondary rate limit", "abuse detection"];

/// Who hears what changed.
pub type Teller = Arc<dyn Fn(LogEvent) + Send + Sync>;

/// The gates by host, lower case.
#[derive(Default)]
pub(super) struct Gates {
    by_host: Mutex<HashMap<String, Arc<Gate>>>,
    teller: Option<Teller>,
}

#[derive(Default)]
struct Gate {
    turn: Mutex<()>,
    quota: Mutex<Quota>,
    token: Mutex<Option<(SecretString, Timestamp)>>,
    app: Mutex<Tokens>,
}

/// How it stands with the calls of a host, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostQuota {
    /// Which.
    pub host: String,
    /// What is known of it.
    pub quota: Quota,
    /// Calls that the poller leaves to others.
    pub reserve: u64,
}

impl Gates {
    pub(super) fn new(teller: Option<Teller>) -> Self {
        Self {
            teller,
            ..Self::default()
        }
    }

    fn of(&self, host: &str) -> Arc<Gate> {
        let mut gates = lock(&self.by_host);
        Arc::clone(gates.entry(host.to_ascii_lowercase()).or_default())
    }

    fn tell(&self, event: LogEvent) {
        if let Some(teller) = &self.teller {
            teller(event);
        }
    }
}

impl Github {
    /// How it stands with every host that was called.
    pub fn quotas(&self, settings: &Settings) -> Vec<HostQuota> {
        let gates = lock(&self.gates.by_host);
        let mut all: Vec<HostQuota> = gates
            .iter()
            .map(|(host, gate)| {
                let quota = *lock(&gate.quota);
                HostQuota {
                    host: host.clone(),
                    reserve: quota.reserve(settings.integrations.github.reserve_of(host)),
                    quota,
                }
            })
            .collect();
        all.sort_by(|a, b| a.host.cmp(&b.host));
        all
    }

    /// How long this caller has to wait before it may call a host; `None`: not at all.
    pub fn wait(&self, settings: &Settings, host: &str, caller: Caller) -> Option<Duration> {
        let reserve = settings.integrations.github.reserve_of(host);
        let gate = self.gates.of(host);
        let quota = *lock(&gate.quota);
        quota.wait(caller, self.world.clock.now(), reserve)
    }

    /// Makes a call when it is its turn and the host takes one, and takes in what the answer says of the next.
    pub(super) fn through_gate(
        &self,
        settings: &Settings,
        host: &str,
        caller: Caller,
        call: impl FnOnce() -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, WriteError> {
        self.counted_apart(settings, (host, host), caller, call)
    }

    /// As [`Github::through_gate`], for calls that the host counts under a name of their own.
    pub(super) fn counted_apart(
        &self,
        settings: &Settings,
        (host, name): (&str, &str),
        caller: Caller,
        call: impl FnOnce() -> Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, WriteError> {
        let gate = self.gates.of(name);
        let _turn = lock(&gate.turn);
        let reserve = settings.integrations.github.reserve_of(host);
        let now = self.world.clock.now();
        let barred = lock(&gate.quota).wait(caller, now, reserve);
        if let Some(wait) = barred {
            return Err(WriteError::Throttled(wait));
        }
        let answer = call();
        let now = self.world.clock.now();
        let (told, outcome, answer) = match answer {
            Ok(answer) => judged(answer),
            Err(error) => (Told::default(), Outcome::Fault, Err(fault(error))),
        };
        let (news, quota) = {
            let mut quota = lock(&gate.quota);
            (quota.heard(told, outcome, now, reserve), *quota)
        };
        if let Some(news) = news {
            self.gates.tell(event(name, news, &quota, settings));
        }
        match (&answer, outcome) {
            (Err(WriteError::Refused(401)), _) => {
                let gate = self.gates.of(host);
                *lock(&gate.token) = None;
                lock(&gate.app).clear();
            }
            (Err(WriteError::Throttled(_)), _) => {
                let wait = quota.wait(caller, now, reserve).unwrap_or(Duration::ZERO);
                return Err(WriteError::Throttled(wait));
            }
            (Ok(_) | Err(_), _) => {}
        }
        answer
    }

    /// The token for a repository: of the App that its host has, else of an account.
    pub(super) fn token(
        &self,
        settings: &Settings,
        repo: &RepoRef,
    ) -> Result<SecretString, NoToken> {
        match settings.integrations.github.app_of(&repo.host) {
            Some(app) => self.app_token(settings, repo, app),
            None => self.login_token(settings, &repo.host),
        }
    }

    /// The tokens that the App of a host was given.
    pub(super) fn with_app_tokens<T>(&self, host: &str, then: impl FnOnce(&mut Tokens) -> T) -> T {
        then(&mut lock(&self.gates.of(host).app))
    }

    /// The token of an account at a host. What a file or a variable holds is read each time; what a program gave is kept a
    /// while, until it is refused.
    pub(super) fn login_token(
        &self,
        settings: &Settings,
        host: &str,
    ) -> Result<SecretString, NoToken> {
        if !credential::is_from_program(&self.world, settings, host) {
            return credential::token(&self.world, settings, host);
        }
        let gate = self.gates.of(host);
        let mut kept = lock(&gate.token);
        let now = self.world.clock.now();
        let fresh = |at: Timestamp| now >= at && now.since(at) < TOKEN_KEPT;
        if let Some((token, _)) = kept.as_ref().filter(|(_, at)| fresh(*at)) {
            return Ok(token.clone());
        }
        let token = credential::token(&self.world, settings, host)?;
        *kept = Some((token.clone(), now));
        Ok(token)
    }
}

/// What an answer says of the next call. One that refuses it, or is a fault of the host, is an error.
fn judged(answer: Response<Body>) -> (Told, Outcome, Result<Response<Body>, WriteError>) {
    let told = told(answer.headers());
    let asked = seconds(answer.headers(), "retry-after").map(Duration::from_secs);
    let status = answer.status().as_u16();
    match status {
        403 | 429 if asked.is_some() => {
            let error = WriteError::Throttled(Duration::ZERO);
            (told, Outcome::Throttled(asked), Err(error))
        }
        403 | 429 if told.remaining == Some(0) => {
            let error = WriteError::Throttled(Duration::ZERO);
            (told, Outcome::Exhausted, Err(error))
        }
        403 | 429 => {
            let words = words_of(answer);
            let asks = status == 429 || PAUSE_WORDS.iter().any(|pause| words.contains(pause));
            if asks {
                let error = WriteError::Throttled(Duration::ZERO);
                (told, Outcome::Throttled(None), Err(error))
            } else {
                (told, Outcome::Answered, Err(WriteError::Refused(status)))
            }
        }
        401 => (told, Outcome::Answered, Err(WriteError::Refused(status))),
        500..=599 => (told, Outcome::Fault, Err(WriteError::Status(status))),
        _ => (told, Outcome::Answered, Ok(answer)),
    }
}

fn told(headers: &HeaderMap) -> Told {
    let resets = seconds(headers, "x-ratelimit-reset").and_then(|at| i64::try_from(at).ok());
    Told {
        limit: seconds(headers, "x-ratelimit-limit"),
        remaining: seconds(headers, "x-ratelimit-remaining"),
        resets_at: resets
            .and_then(|at| at.checked_mul(1000))
            .map(Timestamp::from_unix_ms),
    }
}

fn seconds(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

fn words_of(mut answer: Response<Body>) -> String {
    let mut bytes = Vec::new();
    let reader = answer.body_mut().as_reader();
    let _ = reader.take(REFUSAL_BYTES_MAX).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).to_lowercase()
}

fn event(host: &str, news: News, quota: &Quota, settings: &Settings) -> LogEvent {
    let host = host.to_ascii_lowercase();
    match news {
        News::Low(resets_at) => LogEvent::QuotaLow {
            host,
            remaining: quota.told.remaining.unwrap_or(0),
            limit: quota.told.limit.unwrap_or(0),
            resets_at,
            effect: if settings.polling.enabled {
                QuotaEffect::PollingPaused
            } else {
                QuotaEffect::None
            },
        },
        News::Exhausted(resets_at) => LogEvent::QuotaExhausted { host, resets_at },
        News::Throttled(wait) => LogEvent::QuotaThrottled {
            host,
            retry_after_s: wait.as_secs(),
        },
        News::Recovered => LogEvent::QuotaRecovered {
            host,
            remaining: quota.told.remaining.unwrap_or(0),
        },
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gates").finish_non_exhaustive()
    }
}

/// A mutex whose holder never leaves it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
