//! `state`, `env`, `tracker`, `eventLog` and `integrations`.

use std::collections::BTreeMap;

use crate::config::key::{Entry, Kind, PathFrom, section};
use crate::config::shape;

section! {
    /// `state`: where the program keeps what it writes.
    State {
        /// Directory of everything the program writes.
        root: String = ".the-loop".to_owned(), Kind::Path { from: PathFrom::Base, optional: false }, Start;
        /// Days that finished deliveries are kept, so that a redelivery is known.
        inbox_retention_days: u32 = 30, Kind::Int { min: 2, max: 3650 }, Yes;
    }
}

section! {
    /// `env`: variables for the daemon and for panes.
    Env {
        /// File of `NAME=VALUE` lines for the daemon and for panes; `""` for none.
        file: String = String::new(), Kind::Path { from: PathFrom::FileDir, optional: true }, New;
        /// Further names that panes are given from the daemon's environment; `PREFIX_*` stands for all that begin so.
        pass: Vec<String> = Vec::new(), Kind::List(shape::PASS), New;
    }
}

section! {
    /// `tracker`: the embedded tracker.
    Tracker {
        /// The embedded tracker.
        local: LocalTracker = LocalTracker::default(), Kind::Section(LocalTracker::keys), Yes;
    }
}

section! {
    /// `tracker.local`.
    LocalTracker {
        /// Repositories of the embedded tracker: `OWNER/REPO` to the path or git URL they are cloned from.
        repos: BTreeMap<String, String> = BTreeMap::new(), Kind::Map { name: "repo", keys: shape::REPO, value: Entry::Text(shape::SOURCE), max: 1000 }, Yes;
    }
}

section! {
    /// `eventLog`: the operator's log of decisions.
    EventLog {
        /// Whether decisions are logged.
        enabled: bool = true, Kind::Bool, Start;
        /// The log file; `<state.root>/logs/events.jsonl` when unset.
        path: String = String::new(), Kind::Path { from: PathFrom::Base, optional: true }, Start;
        /// MiB at which the daemon begins a new file.
        segment_mb: u32 = 64, Kind::Int { min: 1, max: 4096 }, Yes;
        /// Older files kept; 0 keeps all.
        keep_segments: u32 = 0, Kind::Int { min: 0, max: u64::from(u32::MAX) }, Yes;
    }
}

section! {
    /// `integrations`: the services this program talks to.
    Integrations {
        /// GitHub.
        github: GithubIntegration = GithubIntegration::default(), Kind::Section(GithubIntegration::keys), Start;
    }
}

section! {
    /// `integrations.github`.
    GithubIntegration {
        /// Address of the API: https, or http on loopback.
        api_url: String = "https://api.github.com".to_owned(), Kind::Text(shape::API_URL), Start;
        /// File whose first line is the token; wins over `tokenEnv`.
        token_file: String = String::new(), Kind::Path { from: PathFrom::FileDir, optional: true }, Yes;
        /// Variables that may hold the token; the first one that is set and not empty counts.
        token_env: Vec<String> = vec!["GITHUB_TOKEN".to_owned(), "GH_TOKEN".to_owned()], Kind::List(shape::VARIABLE), Start;
        /// Share of an hour's calls, in per cent, that the poller leaves to others.
        quota_reserve_percent: u32 = 10, Kind::Int { min: 0, max: 90 }, Yes;
        /// A GitHub App instead of a token.
        app: GithubApp = GithubApp::default(), Kind::Section(GithubApp::keys), Start;
        /// GitHub's own program.
        cli: GithubCli = GithubCli::default(), Kind::Section(GithubCli::keys), Yes;
        /// Further GitHub hosts whose payloads are accepted and that are written to.
        hosts: BTreeMap<String, GithubHost> = BTreeMap::new(), Kind::Map { name: "host", keys: shape::HOST, value: Entry::Section(GithubHost::keys), max: 100 }, Start;
        /// From where repositories are cloned instead of the host itself: `HOST` or `HOST/OWNER/REPO` to a git URL in which `{owner}` and `{repo}` are filled in, such as `file:///srv/mirror/{owner}/{repo}.git`. The entry of one repository wins over its host's.
        clone_urls: BTreeMap<String, String> = BTreeMap::new(), Kind::Map { name: "from", keys: shape::HOST_OR_REPO, value: Entry::Text(shape::CLONE_URL), max: 1000 }, New;
    }
}

section! {
    /// `integrations.github.app`: a GitHub App. It comes before every token.
    GithubApp {
        /// Its number; 0 for none.
        id: u64 = 0, Kind::Int { min: 0, max: u64::MAX >> 1 }, Start;
        /// The number of its installation; with 0 it is looked up for the account of each repository.
        installation_id: u64 = 0, Kind::Int { min: 0, max: u64::MAX >> 1 }, Start;
        /// File with its private key, PEM.
        private_key_file: String = String::new(), Kind::Path { from: PathFrom::FileDir, optional: true }, Yes;
    }
}

section! {
    /// `integrations.github.cli`.
    GithubCli {
        /// The program that is asked for a token (`gh auth token`) where no other source has one; `""` asks nobody.
        binary: String = "gh".to_owned(), Kind::Text(shape::WORD_OR_NONE), Yes;
    }
}

section! {
    /// `integrations.github.hosts.<host>`.
    GithubHost {
        /// Address of the API; `https://<host>/api/v3` when unset, `https://api.<host>` for a tenant of ghe.com.
        api_url: String = String::new(), Kind::Text(shape::API_URL_OR_NONE), Start;
        /// File whose first line is the token; wins over `tokenEnv`.
        token_file: String = String::new(), Kind::Path { from: PathFrom::FileDir, optional: true }, Yes;
        /// Variables that may hold the token; the first one that is set and not empty counts.
        token_env: Vec<String> = vec!["GH_ENTERPRISE_TOKEN".to_owned(), "GITHUB_ENTERPRISE_TOKEN".to_owned()], Kind::List(shape::VARIABLE), Start;
        /// A GitHub App of this host instead of a token.
        app: GithubApp = GithubApp::default(), Kind::Section(GithubApp::keys), Start;
        /// Share of an hour's calls, in per cent, that the poller leaves to others.
        quota_reserve_percent: u32 = 10, Kind::Int { min: 0, max: 90 }, Yes;
    }
}

impl GithubIntegration {
    /// The git URL that overrides where a repository is cloned from; `None` when no entry does.
    pub fn clone_url(&self, host: &str, owner: &str, repo: &str) -> Option<String> {
        let exact = format!("{host}/{owner}/{repo}");
        let entry = |name: &str| {
            let mut found = self.clone_urls.iter();
            found.find(|(key, _)| key.eq_ignore_ascii_case(name))
        };
        let (_, template) = entry(&exact).or_else(|| entry(host))?;
        Some(template.replace("{owner}", owner).replace("{repo}", repo))
    }

    /// The entry of a further host.
    pub fn host(&self, host: &str) -> Option<&GithubHost> {
        let mut hosts = self.hosts.iter();
        let found = hosts.find(|(known, _)| known.eq_ignore_ascii_case(host));
        found.map(|(_, entry)| entry)
    }

    /// Address of a host's API, without a slash at its end; `None` for a host that is not configured, to
    /// which nothing is ever sent (IN-13).
    pub fn api_of(&self, host: &str) -> Option<String> {
        let host = host.to_ascii_lowercase();
        let address = if host == crate::ids::DEFAULT_HOST {
            self.api_url.clone()
        } else {
            let entry = self.host(&host)?;
            match (&*entry.api_url, host.strip_suffix(".ghe.com")) {
                ("", Some(_)) => format!("https://api.{host}"),
                ("", None) => format!("https://{host}/api/v3"),
                (configured, _) => configured.to_owned(),
            }
        };
        Some(address.trim_end_matches('/').to_owned())
    }

    /// The App that is the credential of a host, where one is.
    pub fn app_of(&self, host: &str) -> Option<&GithubApp> {
        let entry = self
            .host(host)
            .filter(|_| !host.eq_ignore_ascii_case(crate::ids::DEFAULT_HOST));
        let app = entry.map_or(&self.app, |entry| &entry.app);
        (app.id > 0).then_some(app)
    }

    /// Share of an hour's calls of a host, in per cent, that the poller leaves to others (IN-51).
    pub fn reserve_of(&self, host: &str) -> u32 {
        let entry = self
            .host(host)
            .filter(|_| !host.eq_ignore_ascii_case(crate::ids::DEFAULT_HOST));
        entry.map_or(self.quota_reserve_percent, |entry| {
            entry.quota_reserve_percent
        })
    }

    /// Are payloads of this host accepted?
    pub fn knows_host(&self, host: &str) -> bool {
        host.eq_ignore_ascii_case(crate::ids::DEFAULT_HOST)
            || self
                .hosts
                .keys()
                .any(|known| known.eq_ignore_ascii_case(host))
    }
}
