//! What is written to GitHub (IN-57, IN-59) and asked of it (`read`), over its REST interface. Nothing is asked of a host that is not configured (IN-13), and no redirect is followed (CF-17).

mod app;
mod gate;
pub mod hooks;
pub mod list;
mod read;

use std::fmt;
use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use the_loop_core::config::Settings;
use the_loop_core::delivery::{Actor, Delivery};
use the_loop_core::ids::{RepoRef, WorkItemRef};
use the_loop_core::quota::Caller;
use ureq::http::Response;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, RequestBuilder};

pub use self::gate::{HostQuota, Teller};
use super::credential::NoToken;
use crate::world::World;

/// Time for a call, from its first byte to its last (IN-57).
const CALL_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// The version of the interface that is asked for (IN-39).
const API_VERSION: &str = "2022-11-28";

/// The client. Clones share what it remembers.
#[derive(Clone)]
pub struct Github {
    world: World,
    agent: Agent,
    kept: Arc<Mutex<read::Kept>>,
    gates: Arc<gate::Gates>,
}

/// A comment that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Its opaque id.
    pub node_id: String,
}

/// Where a reaction goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReactionPlace {
    /// A comment in a conversation, by its number.
    Comment(u64),
    /// A comment on changed lines, by its number.
    Inline(u64),
    /// The ticket or pull request itself.
    Item,
}

/// Why nothing was written, or answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The host is no configured one.
    #[error("{0} is not configured")]
    UnknownHost(String),
    /// There is no credential for it.
    #[error("{0}")]
    NoToken(#[from] NoToken),
    /// The credential, or what it may do, was refused: 401, 403.
    #[error("refused with status {0}")]
    Refused(u16),
    /// The item or comment is not there: 404, 410.
    #[error("not found")]
    NotFound,
    /// Too many calls; nothing was written.
    #[error("too many calls, to wait {} s", .0.as_secs())]
    Throttled(Duration),
    /// Any other answer.
    #[error("answered with status {0}")]
    Status(u16),
    /// The host was not reached: nothing was written.
    #[error("not reached: {0}")]
    NotReached(String),
    /// The call ended half-way: it may have been written.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// It answered with something else.
    #[error("an answer that is none")]
    Malformed,
}

impl WriteError {
    /// Is it certain that nothing was written, and may another try help?
    pub fn may_be_repeated(&self) -> bool {
        match self {
            Self::NotReached(_) | Self::Throttled(_) => true,
            Self::UnknownHost(_)
            | Self::NoToken(_)
            | Self::Refused(_)
            | Self::NotFound
            | Self::Status(_)
            | Self::NoAnswer(_)
            | Self::Malformed => false,
        }
    }

    /// May another moment bring another answer, without anybody changing anything at GitHub? A credential that
    /// was refused may be renewed meanwhile (IN-27).
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused(status) => *status == 401,
            Self::Status(status) => *status >= 500,
            Self::Throttled(_) | Self::NotReached(_) | Self::NoAnswer(_) | Self::Malformed => true,
            Self::UnknownHost(_) | Self::NoToken(_) | Self::NotFound => false,
        }
    }

    /// The error as a prompt may show it: without the name of a file or host.
    pub fn in_words(&self) -> String {
        match self {
            Self::UnknownHost(_) => "the host is not configured".to_owned(),
            Self::NoToken(_) => "no credential".to_owned(),
            Self::NotReached(_) => "the host was not reached".to_owned(),
            Self::Refused(_)
            | Self::NotFound
            | Self::Throttled(_)
            | Self::Status(_)
            | Self::NoAnswer(_)
            | Self::Malformed => self.to_string(),
        }
    }

    /// The status that was answered.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(status) | Self::Status(status) => Some(*status),
            Self::NotFound => Some(404),
            Self::Throttled(_) => Some(429),
            Self::UnknownHost(_)
            | Self::NoToken(_)
            | Self::NotReached(_)
            | Self::NoAnswer(_)
            | Self::Malformed => None,
        }
    }
}

impl ReactionPlace {
    /// Where a reaction to this delivery goes (IN-58): its own comment, else the item. `None` for what is no
    /// text of a person at GitHub.
    pub fn of(delivery: &Delivery) -> Self {
        let number = delivery.numeric_key.as_deref().and_then(number_in);
        match (delivery.event.as_str(), number) {
            ("issue_comment", Some(number)) => Self::Comment(number),
            ("pull_request_review_comment", Some(number)) => Self::Inline(number),
            _ => Self::Item,
        }
    }

    fn path(&self, item: &WorkItemRef) -> String {
        match self {
            Self::Comment(number) => format!("issues/comments/{number}/reactions"),
            Self::Inline(number) => format!("pulls/comments/{number}/reactions"),
            Self::Item => format!("issues/{}/reactions", item.number()),
        }
    }
}

/// The number in a numeric key: `…/comment/#99/created`.
fn number_in(key: &str) -> Option<u64> {
    let (_, rest) = key.split_once("/#")?;
    rest.split('/').next()?.parse().ok()
}

impl Github {
    /// Builds it; nothing is called.
    pub fn new(world: &World) -> Self {
        Self::build(world, None)
    }

    /// One that tells how it stands with the calls that hosts take (IN-51).
    pub fn telling(world: &World, teller: Teller) -> Self {
        Self::build(world, Some(teller))
    }

    fn build(world: &World, teller: Option<Teller>) -> Self {
        let roots = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let config = Agent::config_builder()
            .timeout_global(Some(CALL_WITHIN))
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("the-loop/", env!("CARGO_PKG_VERSION")))
            .tls_config(roots.build())
            .build();
        Self {
            world: world.clone(),
            agent: Agent::new_with_config(config),
            kept: Arc::default(),
            gates: Arc::new(gate::Gates::new(teller)),
        }
    }

    /// Puts a comment on an item.
    pub fn comment(
        &self,
        settings: &Settings,
        item: &WorkItemRef,
        body: &str,
    ) -> Result<Posted, WriteError> {
        let path = format!("issues/{}/comments", item.number());
        let answer = self.post(settings, item, &path, &json!({ "body": body }))?;
        let node_id = answer.get("node_id").and_then(Value::as_str);
        Ok(Posted {
            node_id: node_id.ok_or(WriteError::Malformed)?.to_owned(),
        })
    }

    /// Puts a reaction of the credential's account on a comment or an item; one that stands stays.
    pub fn react(
        &self,
        settings: &Settings,
        item: &WorkItemRef,
        place: &ReactionPlace,
        content: &str,
    ) -> Result<(), WriteError> {
        let body = json!({ "content": content });
        self.post(settings, item, &place.path(item), &body)
            .map(drop)
    }

    /// Whose the credential of a host is (IN-24).
    pub fn account(&self, settings: &Settings, host: &str) -> Result<Actor, WriteError> {
        if let Some(app) = settings.integrations.github.app_of(host) {
            return self.app_account(settings, host, app);
        }
        let api = settings.integrations.github.api_of(host);
        let api = api.ok_or_else(|| WriteError::UnknownHost(host.to_owned()))?;
        let (url, token) = (format!("{api}/user"), self.login_token(settings, host)?);
        let call = || prepared(self.agent.get(&url), &token).call();
        let account = judged(self.through_gate(settings, host, Caller::Other, call)?)?;
        let login = account.get("login").and_then(Value::as_str);
        let is_bot = account.get("type").and_then(Value::as_str) == Some("Bot");
        Ok(Actor {
            login: login.ok_or(WriteError::Malformed)?.to_owned(),
            id: account.get("id").and_then(Value::as_u64),
            bot: is_bot,
        })
    }

    /// `path` is below the item's repository and made of our words and numbers.
    fn post(
        &self,
        settings: &Settings,
        item: &WorkItemRef,
        path: &str,
        body: &Value,
    ) -> Result<Value, WriteError> {
        let repo = item.repo();
        let below = format!("repos/{}/{path}", repo.full_name());
        let (url, token) = self.call(settings, repo, &below)?;
        let call = || prepared(self.agent.post(&url), &token).send_json(body);
        judged(self.through_gate(settings, &repo.host, Caller::Other, call)?)
    }

    /// Address and token of a call about a repository of a configured host.
    fn call(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        path: &str,
    ) -> Result<(String, SecretString), WriteError> {
        let api = settings.integrations.github.api_of(&repo.host);
        let api = api.ok_or_else(|| WriteError::UnknownHost(repo.host.clone()))?;
        let token = self.token(settings, repo)?;
        Ok((format!("{api}/{path}"), token))
    }
}

fn prepared<B>(request: RequestBuilder<B>, token: &SecretString) -> RequestBuilder<B> {
    request
        .header("Accept", "application/vnd.github+json")
        .header("X-GitHub-Api-Version", API_VERSION)
        .header("Authorization", bearer(token))
}

/// What an answer says, or why it says nothing.
fn judged(answer: Response<Body>) -> Result<Value, WriteError> {
    let bytes = body_of(checked(answer)?, ANSWER_BYTES_MAX)?;
    serde_json::from_slice(&bytes).map_err(|_| WriteError::Malformed)
}

/// An answer that is none of a fault.
fn checked(answer: Response<Body>) -> Result<Response<Body>, WriteError> {
    let status = answer.status().as_u16();
    match status {
        200..=299 => Ok(answer),
        401 | 403 => Err(WriteError::Refused(status)),
        404 | 410 => Err(WriteError::NotFound),
        _ => Err(WriteError::Status(status)),
    }
}

/// Its body up to the bound.
fn body_of(mut answer: Response<Body>, bytes_max: u64) -> Result<Vec<u8>, WriteError> {
    let mut bytes = Vec::new();
    let reader = answer.body_mut().as_reader();
    let read = reader.take(bytes_max).read_to_end(&mut bytes);
    read.map_err(|e| WriteError::NoAnswer(e.kind().to_string()))?;
    Ok(bytes)
}

fn bearer(token: &SecretString) -> String {
    format!("Bearer {}", token.expose_secret())
}

/// The words of a fault are ours: those of libraries may hold the address with what was in it.
fn fault(error: ureq::Error) -> WriteError {
    match error {
        ureq::Error::HostNotFound => WriteError::NotReached("no such host".to_owned()),
        ureq::Error::ConnectionFailed => WriteError::NotReached("no connection".to_owned()),
        ureq::Error::Io(e) if e.kind() == std::io::ErrorKind::ConnectionRefused => {
            WriteError::NotReached("connection refused".to_owned())
        }
        ureq::Error::Timeout(at) => WriteError::NoAnswer(format!("timeout ({at})")),
        ureq::Error::Io(e) => WriteError::NoAnswer(e.kind().to_string()),
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
            WriteError::NotReached("its certificate is not trusted".to_owned())
        }
        _ => WriteError::NoAnswer("the call failed".to_owned()),
    }
}

impl fmt::Debug for Github {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Github").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
