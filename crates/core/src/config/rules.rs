//! What is looked at across keys: faults (CF-13) and warnings (CF-14).

mod harnesses;

use std::collections::BTreeMap;

use super::node::Pos;
use super::problem::{Problem, echo};
use super::{GithubApp, Keywords, Settings, SpawnOnUnmatched};

impl Keywords {
    /// Each keyword with the name of its key, in document order.
    pub fn named(&self) -> [(&'static str, &str); 8] {
        [
            ("start", &self.start),
            ("stop", &self.stop),
            ("pause", &self.pause),
            ("resume", &self.resume),
            ("execute", &self.execute),
            ("contribute", &self.contribute),
            ("do", &self.r#do),
            ("cleanup", &self.cleanup),
        ]
    }
}

/// A keyword as it is compared: in lower case, each run of blanks as one space.
fn folded(keyword: &str) -> String {
    let words: Vec<&str> = keyword.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Faults across keys (CF-13).
pub(super) fn problems(settings: &Settings, positions: &BTreeMap<String, Pos>) -> Vec<Problem> {
    let mut out = harnesses::problems(settings, positions);
    let keywords = settings.routing.control.keywords.named();
    let path = |name: &str| format!("routing.control.keywords.{name}");
    for (index, (name, keyword)) in keywords.iter().enumerate() {
        let fold = folded(keyword);
        let same = keywords[..index]
            .iter()
            .find(|(_, earlier)| !fold.is_empty() && folded(earlier) == fold);
        let Some((earlier, _)) = same else {
            continue;
        };
        let (here, there) = (path(name), path(earlier));
        let later = positions.get(&here).max(positions.get(&there));
        out.push(Problem {
            pos: later.copied(),
            key: Some(here.clone()),
            message: format!(
                "`{here}` is the same keyword as `{there}`: \"{}\"",
                echo(keyword)
            ),
            hint: None,
        });
    }
    out.extend(half_apps(settings, positions));
    out
}

/// A GitHub App has a number and a key, or neither.
fn half_apps(settings: &Settings, positions: &BTreeMap<String, Pos>) -> Vec<Problem> {
    let github = &settings.integrations.github;
    let own = std::iter::once(("integrations.github".to_owned(), &github.app));
    let hosts = github.hosts.iter();
    let hosts =
        hosts.map(|(host, entry)| (format!("integrations.github.hosts.{host}"), &entry.app));
    let half = |(section, app): (String, &GithubApp)| {
        let missing = match (app.id, &*app.private_key_file) {
            (1.., "") => "privateKeyFile",
            (0, file) if !file.is_empty() => "id",
            (_, _) => return None,
        };
        Some(Problem {
            pos: positions.get(&format!("{section}.app")).copied(),
            message: format!("`{section}.app` needs `{missing}` as well"),
            key: Some(format!("{section}.app.{missing}")),
            hint: None,
        })
    };
    own.chain(hosts).filter_map(half).collect()
}

/// Warnings that need nothing but the document (CF-14).
pub(super) fn warnings(settings: &Settings, positions: &BTreeMap<String, Pos>) -> Vec<Problem> {
    let mut out = Vec::new();
    let mut warn = |place: &str, key: &str, message: &str, hint: Option<&str>| {
        out.push(Problem {
            pos: positions.get(place).copied(),
            key: Some(key.to_owned()),
            message: message.to_owned(),
            hint: hint.map(str::to_owned),
        });
    };
    let routing = &settings.routing;
    if routing.enabled && routing.authorized_users.is_empty() {
        warn(
            "routing.enabled",
            "routing.authorizedUsers",
            "`routing.authorizedUsers` is empty: every event of a person is refused",
            Some("name the logins that may drive it"),
        );
    }
    let events = &settings.webhooks.gh_webhook.events;
    for needed in ["issues", "pull_request"] {
        if !events.is_empty() && !events.iter().any(|event| event == needed) {
            let message = format!(
                "`webhooks.ghWebhook.events` is without {needed}: sessions of closed items would stay"
            );
            let key = "webhooks.ghWebhook.events";
            warn(key, key, &message, None);
        }
    }
    if routing.spawn_on_unmatched == SpawnOnUnmatched::Always
        && !routing.control.require_start_command
    {
        warn(
            "routing.spawnOnUnmatched",
            "routing.spawnOnUnmatched",
            "`routing.spawnOnUnmatched: always` without `routing.control.requireStartCommand`: \
             every event of an authorised person starts a session",
            None,
        );
    }
    out.sort_by_key(|problem| problem.pos);
    out
}
