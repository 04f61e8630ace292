//! Webhooks of repositories, and from where GitHub calls them.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use the_loop_core::config::Settings;
use the_loop_core::hook::{Hook, JSON, Wanted};
use the_loop_core::ids::RepoRef;
use the_loop_core::quota::Caller;

use super::{Github, WriteError, judged, prepared};

/// A call of a webhook, as GitHub remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Call {
    /// Its id, as the receiver saw it.
    #[serde(default)]
    pub guid: String,
    /// When.
    #[serde(default)]
    pub delivered_at: String,
    /// Event name.
    #[serde(default)]
    pub event: String,
    /// GitHub's word for how it went.
    #[serde(default)]
    pub status: String,
    /// What was answered; 0: nothing.
    #[serde(default)]
    pub status_code: u16,
}

impl Call {
    /// Was it answered as it should be?
    pub fn went_well(&self) -> bool {
        (200..300).contains(&self.status_code)
    }
}

impl Github {
    /// The webhooks of a repository: the first hundred, of which GitHub allows twenty for an event.
    pub fn hooks(&self, settings: &Settings, repo: &RepoRef) -> Result<Vec<Hook>, WriteError> {
        self.of_repo(settings, repo, "hooks?per_page=100")
    }

    /// Makes a webhook.
    pub fn make_hook(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        wanted: &Wanted,
        secret: &str,
    ) -> Result<Hook, WriteError> {
        let mut body = body(wanted, secret);
        body["name"] = json!("web");
        let (url, token) = self.call(settings, repo, &below(repo, "hooks"))?;
        let call = || prepared(self.agent.post(&url), &token).send_json(&body);
        read(judged(self.through_gate(
            settings,
            &repo.host,
            Caller::Other,
            call,
        )?)?)
    }

    /// Makes a webhook what it should be.
    pub fn change_hook(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        hook: u64,
        wanted: &Wanted,
        secret: &str,
    ) -> Result<Hook, WriteError> {
        let (url, token) = self.call(settings, repo, &below(repo, &format!("hooks/{hook}")))?;
        let body = body(wanted, secret);
        let call = || prepared(self.agent.patch(&url), &token).send_json(&body);
        read(judged(self.through_gate(
            settings,
            &repo.host,
            Caller::Other,
            call,
        )?)?)
    }

    /// The last calls of a webhook, newest first.
    pub fn hook_calls(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        hook: u64,
    ) -> Result<Vec<Call>, WriteError> {
        self.of_repo(
            settings,
            repo,
            &format!("hooks/{hook}/deliveries?per_page=50"),
        )
    }

    /// The address ranges from which the host of a repository calls webhooks.
    pub fn hook_ranges(
        &self,
        settings: &Settings,
        repo: &RepoRef,
    ) -> Result<Vec<String>, WriteError> {
        #[derive(Deserialize)]
        struct Meta {
            #[serde(default)]
            hooks: Vec<String>,
        }
        let (url, token) = self.call(settings, repo, "meta")?;
        let call = || prepared(self.agent.get(&url), &token).call();
        let answer = judged(self.through_gate(settings, &repo.host, Caller::Other, call)?)?;
        read::<Meta>(answer).map(|meta| meta.hooks)
    }

    fn of_repo<T: DeserializeOwned>(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        path: &str,
    ) -> Result<T, WriteError> {
        let (url, token) = self.call(settings, repo, &below(repo, path))?;
        let call = || prepared(self.agent.get(&url), &token).call();
        read(judged(self.through_gate(
            settings,
            &repo.host,
            Caller::Other,
            call,
        )?)?)
    }
}

fn below(repo: &RepoRef, path: &str) -> String {
    format!("repos/{}/{path}", repo.full_name())
}

fn body(wanted: &Wanted, secret: &str) -> Value {
    json!({
        "active": true,
        "events": wanted.events,
        "config": {
            "url": wanted.url, "content_type": JSON, "insecure_ssl": "0", "secret": secret,
        },
    })
}

fn read<T: DeserializeOwned>(answer: Value) -> Result<T, WriteError> {
    serde_json::from_value(answer).map_err(|_| WriteError::Malformed)
}
