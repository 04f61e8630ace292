//! Paths of the document made absolute (CF-6), and the other things that are settled once at load.

use super::Settings;
use super::key::PathFrom;

/// From where relative paths are taken. All are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// The base directory (CF-5).
    pub base: String,
    /// The configuration file's own directory; the current one without a file.
    pub file_dir: String,
    /// The home directory, where one is known.
    pub home: Option<String>,
}

impl Places {
    fn dir(&self, from: PathFrom) -> &str {
        match from {
            PathFrom::Base => &self.base,
            PathFrom::FileDir => &self.file_dir,
        }
    }

    /// An absolute path without `.` parts; `""` stays `""`. A `~` without a known home stays as it is
    /// and so names nothing.
    pub fn absolute(&self, text: &str, from: PathFrom) -> String {
        if text.is_empty() {
            return String::new();
        }
        expand(text, self.dir(from), self.home.as_deref())
    }
}

/// `~` and `~/…` below `home`, the rest below `dir` unless absolute.
pub fn expand(text: &str, dir: &str, home: Option<&str>) -> String {
    let whole = match (text.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            format!("{home}{rest}")
        }
        _ if text.starts_with('/') => text.to_owned(),
        _ => format!("{dir}/{text}"),
    };
    let parts: Vec<&str> = whole
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    format!("/{}", parts.join("/"))
}

/// Is this what git takes for a URL rather than a path: a scheme, or `host:path`?
pub fn is_git_url(text: &str) -> bool {
    if text.contains("://") {
        return true;
    }
    let head = text.split('/').next().unwrap_or(text);
    head.contains(':')
}

impl Settings {
    /// These settings as they take effect: paths absolute, unset ones at their place below
    /// `state.root`, logins once each, an empty list of events standing for the default one.
    #[must_use]
    pub fn settled(mut self, places: &Places) -> Self {
        let base = |text: &str| places.absolute(text, PathFrom::Base);
        let beside = |text: &str| places.absolute(text, PathFrom::FileDir);
        self.state.root = base(&self.state.root);
        let root = self.state.root.clone();
        let or_below_root = |text: &str, name: &str| {
            if text.is_empty() {
                base(&format!("{root}/{name}"))
            } else {
                base(text)
            }
        };
        self.env.file = beside(&self.env.file);
        self.event_log.path = or_below_root(&self.event_log.path, "logs/events.jsonl");
        let routing = &mut self.routing;
        routing.registry_dir = or_below_root(&routing.registry_dir, "local");
        routing.spawn_workdir = base(&routing.spawn_workdir);
        routing.prompt_template = base(&routing.prompt_template);
        routing.spawn_prompt_template = base(&routing.spawn_prompt_template);
        routing.workspace.root = base(&routing.workspace.root);
        for harness in routing.harnesses.values_mut() {
            let by_file = harness.session_id == Some(super::SessionIdBy::File);
            let pattern = harness.session_id_pattern.as_mut().filter(|_| by_file);
            // A path that begins with a word to be filled in is absolute once that is done.
            let places = pattern.into_iter().chain(harness.transcript.as_mut());
            for place in places.filter(|place| !place.starts_with('{')) {
                *place = base(place);
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        routing
            .authorized_users
            .retain(|login| seen.insert(login.to_lowercase()));
        let webhook = &mut self.webhooks.gh_webhook;
        webhook.secret_file = beside(&webhook.secret_file);
        webhook.pidfile = or_below_root(&webhook.pidfile, "gh-webhook.pid");
        if webhook.events.is_empty() {
            webhook.events = super::sections::default_events();
        }
        let github = &mut self.integrations.github;
        github.token_file = beside(&github.token_file);
        github.app.private_key_file = beside(&github.app.private_key_file);
        for host in github.hosts.values_mut() {
            host.token_file = beside(&host.token_file);
            host.app.private_key_file = beside(&host.app.private_key_file);
        }
        for source in self.tracker.local.repos.values_mut() {
            if !is_git_url(source) {
                *source = base(source);
            }
        }
        self
    }
}
