//! `polling` and `webhooks`.

use crate::config::key::{Kind, PathFrom, section};
use crate::config::shape;

section! {
    /// `polling`.
    Polling {
        /// Dispatch attempts before a delivery is given up, whichever way it came in.
        max_retries: u32 = 3, Kind::Int { min: 1, max: u64::from(u32::MAX) }, Yes;
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
