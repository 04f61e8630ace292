//! `polling` and `webhooks`.

use crate::config::key::{Kind, PathFrom, choice, section};
use crate::config::shape;

choice! {
    /// `polling.sources[].provider`.
    PollProvider = Github {
        /// GitHub, or a GitHub host of one's own.
        Github = "github",
    }
}

section! {
    /// `polling`.
    Polling {
        /// Whether the daemon asks its sources for what is new.
        enabled: bool = false, Kind::Bool, Start;
        /// Seconds between two cycles.
        interval_seconds: u32 = 60, Kind::Int { min: 1, max: 86_400 }, Yes;
        /// Dispatch attempts before a delivery is given up, whichever way it came in.
        max_retries: u32 = 3, Kind::Int { min: 1, max: u64::from(u32::MAX) }, Yes;
        /// Whether a start of the receiver looks for what came while it was down.
        backfill_on_start: bool = true, Kind::Bool, Start;
        /// What is asked.
        sources: Vec<PollSource> = Vec::new(), Kind::Rows { keys: PollSource::keys, max: 100 }, Yes;
    }
}

section! {
    /// `polling.sources[]`.
    PollSource {
        /// Which tracker.
        provider: PollProvider = PollProvider::default(), Kind::Choice(PollProvider::WORDS), Yes;
        /// Repositories, `OWNER/REPO` or `HOST/OWNER/REPO`; repeats are dropped. Required.
        repos: Vec<String> = Vec::new(), Kind::List(shape::REPO_OF_HOST), Yes;
        /// What of them is followed.
        monitor: PollMonitor = PollMonitor::default(), Kind::Section(PollMonitor::keys), Yes;
    }
}

section! {
    /// `polling.sources[].monitor`.
    PollMonitor {
        /// Tickets.
        issues: bool = true, Kind::Bool, Yes;
        /// Pull requests.
        pull_requests: bool = true, Kind::Bool, Yes;
        /// Finished workflow runs.
        ci: bool = true, Kind::Bool, Yes;
    }
}

section! {
    /// `webhooks`.
    Webhooks {
        /// The receiver of GitHub's webhooks.
        gh_webhook: GhWebhook = GhWebhook::default(), Kind::Section(GhWebhook::keys), Start;
    }
}

section! {
    /// `webhooks.ghWebhook`.
    GhWebhook {
        /// Whether the daemon receives webhooks.
        enabled: bool = false, Kind::Bool, Start;
        /// Address to listen on. Plain HTTP: put a TLS proxy or tunnel in front.
        host: String = "127.0.0.1".to_owned(), Kind::Text(shape::ADDRESS), Start;
        /// Port to listen on.
        port: u16 = 8787, Kind::Int { min: 1, max: 65_535 }, Start;
        /// Path that is posted to.
        path: String = "/gh-webhook".to_owned(), Kind::Text(shape::URL_PATH), Start;
        /// Variable that holds the secret; the one called `<name>_PREVIOUS` holds the outgoing secret while it is changed.
        secret_env: String = "THE_LOOP_GH_WEBHOOK_SECRET".to_owned(), Kind::Text(shape::VARIABLE), Start;
        /// File that holds the secret, one a line, at most two; wins over `secretEnv`.
        secret_file: String = String::new(), Kind::Path { from: PathFrom::FileDir, optional: true }, Yes;
        /// The receiver's lock file; `<state.root>/gh-webhook.pid` when unset.
        pidfile: String = String::new(), Kind::Path { from: PathFrom::Base, optional: true }, Start;
        /// Events that are acted on; an empty list stands for the default.
        events: Vec<String> = default_events(), Kind::List(shape::GITHUB_EVENT), Yes;
    }
}

/// The events that are acted on when none are listed.
pub(crate) fn default_events() -> Vec<String> {
    let mut names = Vec::from(shape::GITHUB_EVENTS);
    names.retain(|name| *name != "pull_request_review_thread");
    names.into_iter().map(str::to_owned).collect()
}
