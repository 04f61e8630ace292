//! A GitHub App as a credential (CF-16): a token of an hour for each account that has it installed.

use std::collections::HashMap;
use std::time::Duration;

use camino::Utf8Path;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use the_loop_core::config::{GithubApp, Settings};
use the_loop_core::delivery::Actor;
use the_loop_core::ids::RepoRef;
use the_loop_core::quota::Caller;
use the_loop_core::time::Timestamp;

use super::{Github, WriteError, judged, prepared};
use crate::tracker::github::credential::{self, NoToken};

/// Bytes of a key file.
const KEY_BYTES_MAX: u64 = 64 << 10;
/// How long the word of an App for itself holds; GitHub takes ten minutes at most.
const WORD_FOR: Duration = Duration::from_mins(8);
/// How much earlier it begins: clocks differ.
const WORD_BEFORE: Duration = Duration::from_mins(1);
/// How long before its end a token is not used any more.
const SPARE: Duration = Duration::from_mins(5);

/// Tokens by the account that has the App installed, lower case, with their ends.
pub(super) type Tokens = HashMap<String, (SecretString, Timestamp)>;

#[derive(Serialize)]
struct Claims {
    iat: i64,
    exp: i64,
    iss: String,
}

#[derive(Deserialize)]
struct Installation {
    id: u64,
}

#[derive(Deserialize)]
struct Given {
    token: String,
    expires_at: String,
}

impl Github {
    /// The token of the App for the account that a repository belongs to.
    pub(super) fn app_token(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        app: &GithubApp,
    ) -> Result<SecretString, NoToken> {
        let owner = repo
            .full_name()
            .split('/')
            .next()
            .unwrap_or_default()
            .to_lowercase();
        let now = self.world.clock.now();
        let known = self.with_app_tokens(&repo.host, |known| known.get(&owner).cloned());
        if let Some((token, _)) = known.filter(|(_, until)| *until > now.plus(SPARE)) {
            return Ok(token);
        }
        let given = self.ask_for_token(settings, repo, app);
        let (token, until) = given.map_err(|error| NoToken::App(error.to_string()))?;
        let known = (token.clone(), until);
        self.with_app_tokens(&repo.host, |tokens| tokens.insert(owner, known));
        Ok(token)
    }

    fn ask_for_token(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        app: &GithubApp,
    ) -> Result<(SecretString, Timestamp), WriteError> {
        let word = self.word_of(app)?;
        let id = if app.installation_id > 0 {
            app.installation_id
        } else {
            let path = format!("repos/{}/installation", repo.full_name());
            let answer = self.as_app(settings, &repo.host, &word, &path, false)?;
            let found: Installation =
                serde_json::from_value(answer).map_err(|_| WriteError::Malformed)?;
            found.id
        };
        let path = format!("app/installations/{id}/access_tokens");
        let answer = self.as_app(settings, &repo.host, &word, &path, true)?;
        let given: Given = serde_json::from_value(answer).map_err(|_| WriteError::Malformed)?;
        let until = given
            .expires_at
            .parse()
            .map_err(|_| WriteError::Malformed)?;
        let token = credential::sound(&given.token).ok_or(WriteError::Malformed)?;
        Ok((token, until))
    }

    /// Whose the App's doings are: an account of its name, a bot.
    pub(super) fn app_account(
        &self,
        settings: &Settings,
        host: &str,
        app: &GithubApp,
    ) -> Result<Actor, WriteError> {
        let word = self.word_of(app)?;
        let answer = self.as_app(settings, host, &word, "app", false)?;
        let slug = answer.get("slug").and_then(Value::as_str);
        Ok(Actor {
            login: format!("{}[bot]", slug.ok_or(WriteError::Malformed)?),
            id: None,
            bot: true,
        })
    }

    fn as_app(
        &self,
        settings: &Settings,
        host: &str,
        word: &SecretString,
        path: &str,
        posts: bool,
    ) -> Result<Value, WriteError> {
        let api = settings.integrations.github.api_of(host);
        let api = api.ok_or_else(|| WriteError::UnknownHost(host.to_owned()))?;
        let url = format!("{api}/{path}");
        // An App's own calls are counted apart from those with its tokens.
        let name = format!("{host} app");
        let answer = self.counted_apart(settings, (host, &name), Caller::Other, || {
            if posts {
                prepared(self.agent.post(&url), word).send_json(serde_json::json!({}))
            } else {
                prepared(self.agent.get(&url), word).call()
            }
        })?;
        judged(answer)
    }

    /// The App's word for itself, signed with its key.
    fn word_of(&self, app: &GithubApp) -> Result<SecretString, NoToken> {
        let fault = |why: &str| NoToken::File {
            path: app.private_key_file.clone(),
            why: why.to_owned(),
        };
        let path = Utf8Path::new(&app.private_key_file);
        let bytes =
            credential::own_file(&self.world, path, KEY_BYTES_MAX).map_err(|why| fault(&why))?;
        let key = EncodingKey::from_rsa_pem(&bytes);
        let key = key.map_err(|_| fault("it holds no RSA key in PEM"))?;
        let now = self.world.clock.now();
        let seconds = |at: Timestamp| at.unix_ms() / 1_000;
        let claims = Claims {
            iat: seconds(now.minus(WORD_BEFORE)),
            exp: seconds(now.plus(WORD_FOR)),
            iss: app.id.to_string(),
        };
        let word = encode(&Header::new(Algorithm::RS256), &claims, &key);
        let word = word.map_err(|_| fault("nothing can be signed with it"))?;
        Ok(SecretString::from(word))
    }
}
