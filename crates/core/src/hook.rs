//! A repository's webhook at GitHub: is it what this configuration needs (IN-1, IN-7)?

use serde::{Deserialize, Serialize};

/// What GitHub takes for a content type of JSON.
pub const JSON: &str = "json";

/// What is wanted of a webhook. Its secret is sent and never read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The address that GitHub is to call.
    pub url: String,
    /// The events that are acted on.
    pub events: Vec<String>,
}

/// A webhook as GitHub shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Hook {
    /// Its number.
    pub id: u64,
    /// Is it called at all?
    #[serde(default)]
    pub active: bool,
    /// The events it is called for; `*` is all of them.
    #[serde(default)]
    pub events: Vec<String>,
    /// Where and how.
    #[serde(default)]
    pub config: HookConfig,
}

/// Where and how a webhook is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HookConfig {
    /// The address.
    #[serde(default)]
    pub url: String,
    /// `json` or `form`.
    #[serde(default)]
    pub content_type: String,
    /// `1`, or the number: certificates are not verified.
    #[serde(default)]
    pub insecure_ssl: serde_json::Value,
    /// Stars where there is a secret.
    #[serde(default)]
    pub secret: Option<String>,
}

/// What is other than it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// It is switched off.
    Inactive,
    /// It is called for other events.
    Events,
    /// Its payloads are not JSON.
    ContentType,
    /// It has no secret.
    Secret,
    /// Certificates are not verified.
    Tls,
}

impl Difference {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Events => "events",
            Self::ContentType => "content type",
            Self::Secret => "no secret",
            Self::Tls => "certificates not verified",
        }
    }
}

/// The webhook that calls this address, where there is one. Addresses are compared without a slash at the end.
pub fn of_address<'a>(hooks: &'a [Hook], url: &str) -> Option<&'a Hook> {
    let plain = |url: &str| url.trim_end_matches('/').to_owned();
    hooks
        .iter()
        .find(|hook| plain(&hook.config.url) == plain(url))
}

/// The webhooks whose address has this path, at whatever host. A longer path that only ends so belongs to somebody else.
/// Paths are compared without a slash at the end.
pub fn of_path<'a>(hooks: &'a [Hook], path: &str) -> impl Iterator<Item = &'a Hook> {
    let path = path.trim_end_matches('/').to_owned();
    let has = move |hook: &&Hook| path_of(&hook.config.url) == Some(&*path);
    hooks.iter().filter(has)
}

/// The path of an address, without a slash at the end.
fn path_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let rest = rest.split(['?', '#']).next()?;
    let at = rest.find('/').unwrap_or(rest.len());
    Some(rest[at..].trim_end_matches('/'))
}

/// Can GitHub be told to call this address? Over TLS, or on this machine itself where a test listens; with a host, and
/// without user, query or fragment.
pub fn is_address(url: &str) -> bool {
    let here = ["http://127.0.0.1:", "http://localhost:"];
    let is_here = here.iter().any(|begin| url.starts_with(begin));
    let rest = url.strip_prefix("https://");
    let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', ':']));
    let plain = url.bytes().all(|b| b.is_ascii_graphic());
    plain && (has_host || is_here) && !url.contains(['?', '#', '@'])
}

/// What is other than it is wanted, in a fixed order. That GitHub sends more than is wanted is no fault: it is
/// answered and costs nothing else; `*` is everything.
pub fn differences(hook: &Hook, wanted: &Wanted) -> Vec<Difference> {
    let has = |event: &String| {
        hook.events
            .iter()
            .any(|known| known == event || known == "*")
    };
    let insecure = &hook.config.insecure_ssl;
    let is_insecure = !insecure.is_null() && insecure != "0" && insecure != 0;
    let has_secret = hook
        .config
        .secret
        .as_ref()
        .is_some_and(|secret| !secret.is_empty());
    [
        (Difference::Inactive, !hook.active),
        (Difference::Events, !wanted.events.iter().all(has)),
        (Difference::ContentType, hook.config.content_type != JSON),
        (Difference::Secret, !has_secret),
        (Difference::Tls, is_insecure),
    ]
    .into_iter()
    .filter_map(|(difference, is)| is.then_some(difference))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(json: &str) -> Hook {
        serde_json::from_str(json).unwrap()
    }

    const GOOD: &str = r#"{"id": 1, "active": true, "events": ["issues", "status", "push"], "config":
        {"url": "https://x.example/hook/", "content_type": "json", "insecure_ssl": "0", "secret": "********"}}"#;

    fn wanted() -> Wanted {
        Wanted {
            url: "https://x.example/hook".to_owned(),
            events: vec!["issues".to_owned(), "status".to_owned()],
        }
    }

    #[test]
    fn in1_a_webhook_that_is_as_it_should_be_is_left_alone() {
        let good = hook(GOOD);
        assert_eq!(differences(&good, &wanted()), []);
        let all = hook(&GOOD.replace(r#""issues", "status", "push""#, "\"*\""));
        assert_eq!(differences(&all, &wanted()), []);
        let hooks = [hook(r#"{"id": 9}"#), good];
        assert_eq!(of_address(&hooks, &wanted().url).unwrap().id, 1);
        assert_eq!(of_address(&hooks, "https://x.example/hook2"), None);
    }

    #[test]
    fn in1_whatever_would_keep_deliveries_away_or_open_is_a_difference() {
        use Difference::{ContentType, Events, Inactive, Secret, Tls};
        for (from, to, difference) in [
            ("true", "false", Inactive),
            ("\"status\",", "", Events),
            ("\"json\"", "\"form\"", ContentType),
            ("\"********\"", "null", Secret),
            ("\"********\"", "\"\"", Secret),
            ("\"0\"", "\"1\"", Tls),
            ("\"0\"", "1", Tls),
        ] {
            let other = hook(&GOOD.replace(from, to));
            assert_eq!(differences(&other, &wanted()), [difference], "{from} {to}");
        }
        let bare = hook(r#"{"id": 9}"#);
        assert_eq!(
            differences(&bare, &wanted()),
            [Inactive, Events, ContentType, Secret]
        );
    }

    fn at(url: &str) -> Hook {
        let config = serde_json::json!({"id": 1, "config": {"url": url}});
        serde_json::from_value(config).unwrap()
    }

    #[test]
    fn in1_a_webhook_is_ours_by_its_whole_path_only() {
        for (url, path, is) in [
            ("https://x.example/gh-webhook", "/gh-webhook", true),
            ("https://x.example:8443/gh-webhook/", "/gh-webhook", true),
            ("https://x.example/gh-webhook?x=/y", "/gh-webhook", true),
            (
                "https://ci.example/plugins/gh-webhook",
                "/gh-webhook",
                false,
            ),
            ("https://x.example/other-gh-webhook", "/gh-webhook", false),
            ("https://x.example/?to=/gh-webhook", "/gh-webhook", false),
            ("https://x.example", "/", true),
            ("https://x.example/", "/", true),
            ("https://ci.example/github-webhook/", "/", false),
            ("gh-webhook", "/gh-webhook", false),
            ("", "/", false),
        ] {
            let hooks = [at(url)];
            assert_eq!(of_path(&hooks, path).next().is_some(), is, "{url} {path}");
        }
    }

    #[test]
    fn in1_an_address_is_encrypted_and_has_a_host() {
        for (url, is) in [
            ("https://x.example/gh-webhook", true),
            ("https://x.example", true),
            ("http://127.0.0.1:8787/gh-webhook", true),
            ("http://x.example/gh-webhook", false),
            ("https://", false),
            ("https:///gh-webhook", false),
            ("https://:443/x", false),
            ("https://user:word@x.example/x", false),
            ("https://x.example/x?secret=1", false),
            ("https://x.example/a b", false),
            ("", false),
        ] {
            assert_eq!(is_address(url), is, "{url}");
        }
    }
}
