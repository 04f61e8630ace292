//! `webhook setup`: the repositories' webhooks at GitHub, made or checked.

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use the_loop_core::hook::{Difference, Hook, Wanted, differences, of_address};
use the_loop_core::ids::RepoRef;

use super::desk::Desk;
use super::error::{Kind, OpError};
use crate::settings::webhook_secrets;
use crate::tracker::github::client::hooks::Call;
use crate::tracker::github::client::{Github, WriteError};

/// Failed calls that are named.
const FAILED_MAX: usize = 5;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Repositories; none: those of `polling.sources`.
    pub repos: Vec<String>,
    /// The address that GitHub is to call; none: that of the only webhook with our path.
    pub url: Option<String>,
    /// Send the secret although nothing else differs.
    pub renew_secret: bool,
    /// Change nothing.
    pub dry_run: bool,
}

/// What was done with a repository's webhook, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was made.
    Created,
    /// It was changed.
    Updated,
    /// It is as it should be.
    Unchanged,
}

impl Done {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
        }
    }
}

/// A repository's webhook.
#[derive(Clone, Debug)]
pub struct Row {
    /// The repository.
    pub repo: RepoRef,
    /// Its webhook, or why nothing can be said of it.
    pub outcome: Result<Seen, OpError>,
}

/// What is known of a webhook.
#[derive(Clone, Debug)]
pub struct Seen {
    /// What was done.
    pub done: Done,
    /// Its number; `None` in a dry run of one that is not there.
    pub id: Option<u64>,
    /// The address.
    pub url: String,
    /// What was other than it should be.
    pub differences: Vec<Difference>,
    /// The last calls that were not answered well, newest first.
    pub failed: Vec<Call>,
    /// Calls that GitHub remembers.
    pub calls: usize,
}

/// Everything that was done.
#[derive(Clone, Debug)]
pub struct Report {
    /// By repository.
    pub rows: Vec<Row>,
    /// From where each host calls, as far as it says.
    pub ranges: Vec<(String, Vec<String>)>,
    /// Nothing was changed.
    pub dry_run: bool,
}

impl Report {
    /// Did everything go well?
    pub fn ok(&self) -> bool {
        self.rows.iter().all(|row| row.outcome.is_ok())
    }

    /// As a document.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| match &row.outcome {
            Ok(seen) => json!({
                "repo": name(&row.repo),
                "outcome": seen.done.as_str(),
                "id": seen.id,
                "url": seen.url,
                "differences": seen.differences,
                "calls": seen.calls,
                "failed": seen.failed.iter().map(|call| json!({
                    "deliveredAt": call.delivered_at, "event": call.event,
                    "status": call.status, "statusCode": call.status_code, "id": call.guid,
                })).collect::<Vec<Value>>(),
                "error": null,
            }),
            Err(error) => json!({
                "repo": name(&row.repo), "outcome": "failed", "error": error.to_string(),
            }),
        });
        let ranges = self.ranges.iter();
        let ranges = ranges.map(|(host, ranges)| json!({ "host": host, "hooks": ranges }));
        json!({
            "ok": self.ok(),
            "dryRun": self.dry_run,
            "repositories": rows.collect::<Vec<Value>>(),
            "firewall": ranges.collect::<Vec<Value>>(),
        })
    }
}

/// `OWNER/REPO`, with the host where it is another one.
pub fn name(repo: &RepoRef) -> String {
    repo.to_string()
}

/// Makes or checks the webhooks.
pub fn setup(desk: &Desk, asked: &Setup) -> Result<Report, OpError> {
    let repos = repositories(desk, &asked.repos)?;
    let secrets = webhook_secrets(&desk.world, desk.settings()).map_err(|fault| {
        OpError::new(Kind::Usage, fault.to_string())
            .hint("a webhook without a secret would be believed by nobody: set one first")
    })?;
    let Some(secret) = secrets.values.first() else {
        return Err(OpError::new(Kind::Usage, "there is no webhook secret"));
    };
    if let Some(url) = &asked.url
        && !is_address(url)
    {
        let made = format!("--url must be an https address, found \"{url}\"");
        return Err(OpError::usage(made).hint("https://hooks.example.com/gh-webhook"));
    }
    let github = Github::new(&desk.world);
    let one = |repo: &RepoRef| Row {
        repo: repo.clone(),
        outcome: one(desk, &github, repo, asked, secret.expose_secret()),
    };
    let rows: Vec<Row> = repos.iter().map(one).collect();
    let mut of_hosts: Vec<&RepoRef> = repos.iter().collect();
    of_hosts.sort_by(|a, b| a.host.cmp(&b.host));
    of_hosts.dedup_by(|a, b| a.host == b.host);
    let ranges = of_hosts.into_iter().filter_map(|repo| {
        let ranges = github.hook_ranges(desk.settings(), repo).ok()?;
        (!ranges.is_empty()).then(|| (repo.host.clone(), ranges))
    });
    Ok(Report {
        ranges: ranges.collect(),
        rows,
        dry_run: asked.dry_run,
    })
}

fn repositories(desk: &Desk, asked: &[String]) -> Result<Vec<RepoRef>, OpError> {
    let settings = desk.settings();
    let configured = settings.polling.sources.iter().flat_map(|s| &s.repos);
    let names: Vec<&String> = if asked.is_empty() {
        configured.collect()
    } else {
        asked.iter().collect()
    };
    let mut repos: Vec<RepoRef> = Vec::new();
    for name in names {
        let repo = RepoRef::parse(name).map_err(|_| {
            let made = format!("--repo must be OWNER/REPO or HOST/OWNER/REPO, found \"{name}\"");
            OpError::usage(made)
        })?;
        if !settings.integrations.github.knows_host(&repo.host) {
            let made = format!("{} is not configured", repo.host);
            return Err(OpError::new(Kind::Usage, made).hint("integrations.github.hosts"));
        }
        if !repos.iter().any(|known| known.key() == repo.key()) {
            repos.push(repo);
        }
    }
    if repos.is_empty() {
        let made = OpError::usage("no repository: polling.sources names none");
        return Err(made.hint("--repo OWNER/REPO"));
    }
    Ok(repos)
}

/// GitHub calls over TLS; on this machine a test may not.
fn is_address(url: &str) -> bool {
    let plain = url.bytes().all(|b| b.is_ascii_graphic());
    let is_here = url.starts_with("http://127.0.0.1:") || url.starts_with("http://localhost:");
    plain && (url.starts_with("https://") || is_here) && !url.contains(['?', '#', '@'])
}

fn one(
    desk: &Desk,
    github: &Github,
    repo: &RepoRef,
    asked: &Setup,
    secret: &str,
) -> Result<Seen, OpError> {
    let settings = desk.settings();
    let failed = |error: WriteError| refused(repo, &error);
    let hooks = github.hooks(settings, repo).map_err(failed)?;
    let wanted = Wanted {
        url: match &asked.url {
            Some(url) => url.clone(),
            None => own_address(&hooks, &settings.webhooks.gh_webhook.path, repo)?,
        },
        events: settings.webhooks.gh_webhook.events.clone(),
    };
    let known = of_address(&hooks, &wanted.url);
    let differences = known.map_or_else(Vec::new, |hook| differences(hook, &wanted));
    let done = match known {
        None => Done::Created,
        Some(_) if differences.is_empty() && !asked.renew_secret => Done::Unchanged,
        Some(_) => Done::Updated,
    };
    let mut id = known.map(|hook| hook.id);
    if !asked.dry_run {
        match (done, known) {
            (Done::Created, _) => {
                let made = github.make_hook(settings, repo, &wanted, secret);
                id = Some(made.map_err(failed)?.id);
            }
            (Done::Updated, Some(hook)) => {
                let changed = github.change_hook(settings, repo, hook.id, &wanted, secret);
                changed.map_err(failed)?;
            }
            (Done::Updated, None) | (Done::Unchanged, _) => {}
        }
    }
    // What was called before it was made right tells what was wrong.
    let calls = match known {
        Some(hook) => github
            .hook_calls(settings, repo, hook.id)
            .unwrap_or_default(),
        None => Vec::new(),
    };
    let count = calls.len();
    let mut failed = calls;
    failed.retain(|call| !call.went_well());
    failed.truncate(FAILED_MAX);
    Ok(Seen {
        done,
        id,
        url: wanted.url,
        differences,
        failed,
        calls: count,
    })
}

/// The address of the only webhook that ends in our path.
fn own_address(hooks: &[Hook], path: &str, repo: &RepoRef) -> Result<String, OpError> {
    let mut ours = hooks.iter().filter(|hook| {
        let url = hook.config.url.trim_end_matches('/');
        url.ends_with(path.trim_end_matches('/'))
    });
    match (ours.next(), ours.next()) {
        (Some(hook), None) => Ok(hook.config.url.clone()),
        (Some(_), Some(_)) => {
            let made = format!("{repo} has several webhooks that end in {path}");
            Err(OpError::new(Kind::Usage, made).hint("--url says which"))
        }
        (None, _) => {
            let made = format!("{repo} has no webhook that ends in {path}");
            let made = OpError::new(Kind::Usage, made);
            Err(made.hint("--url https://YOUR-PROXY/PATH makes one"))
        }
    }
}

fn refused(repo: &RepoRef, error: &WriteError) -> OpError {
    let made = OpError::new(Kind::Failed, format!("{repo}: {error}"));
    match error {
        WriteError::Refused(401) => made.hint("the token was refused: put a new one in place"),
        WriteError::Refused(_) | WriteError::NotFound => made.hint(
            "the token may not see webhooks: it needs \"Webhooks: read and write\" of the repository \
             (a classic one: admin:repo_hook), and its account admin rights there",
        ),
        WriteError::NoToken(_) => made.hint("docs/github.md tells where a token may be"),
        WriteError::UnknownHost(_)
        | WriteError::Throttled(_)
        | WriteError::Status(_)
        | WriteError::NotReached(_)
        | WriteError::NoAnswer(_)
        | WriteError::Malformed => made,
    }
}
