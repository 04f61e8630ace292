//! `webhook setup`: the repositories' webhooks at GitHub, made or checked.

use secrecy::ExposeSecret;
use serde_json::{Value, json};
use the_loop_core::hook::{Difference, Hook, Wanted, differences, is_address, of_address, of_path};
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
    /// What GitHub remembers of its calls, or why that cannot be had.
    pub calls: Result<Calls, WriteError>,
}

/// The last calls of a webhook.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    /// How many GitHub shows.
    pub count: usize,
    /// Those that were not answered well, newest first.
    pub failed: Vec<Call>,
}

/// Everything that was done.
#[derive(Clone, Debug)]
pub struct Report {
    /// By repository.
    pub rows: Vec<Row>,
    /// From where each host calls, as far as it says.
    pub ranges: Vec<(String, Vec<String>)>,
    /// What is worth a look, although nothing failed by it: what could not be asked, and what is wrong with the secret.
    pub warnings: Vec<String>,
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
                "calls": seen.calls.as_ref().ok().map(|calls| calls.count),
                "failed": seen.failed().iter().map(|call| json!({
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
            "warnings": self.warnings,
        })
    }
}

/// `OWNER/REPO`, with the host where it is another one.
pub fn name(repo: &RepoRef) -> String {
    repo.to_string()
}

impl Calls {
    fn of(all: Vec<Call>) -> Self {
        let count = all.len();
        let mut failed = all;
        failed.retain(|call| !call.went_well());
        failed.truncate(FAILED_MAX);
        Self { count, failed }
    }
}

impl Seen {
    /// The last calls that were not answered well, as far as that is known.
    pub fn failed(&self) -> &[Call] {
        self.calls.as_ref().map_or(&[], |calls| &calls.failed)
    }
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
        // It is not repeated: a password may be in it.
        let made = OpError::usage("--url must be an https address without user and query");
        return Err(made.hint("https://hooks.example.com/gh-webhook"));
    }
    let github = Github::new(&desk.world);
    let mut warnings = secrets.warnings.clone();
    let mut rows = Vec::new();
    for repo in &repos {
        let outcome = one(desk, &github, repo, asked, secret.expose_secret());
        if let Ok(Seen { calls: Err(e), .. }) = &outcome {
            warnings.push(format!("{repo}: the last calls cannot be read: {e}"));
        }
        let repo = repo.clone();
        rows.push(Row { repo, outcome });
    }
    let mut of_hosts: Vec<&RepoRef> = repos.iter().collect();
    of_hosts.sort_by(|a, b| a.host.cmp(&b.host));
    of_hosts.dedup_by(|a, b| a.host == b.host);
    let mut ranges = Vec::new();
    for repo in of_hosts {
        let host = &repo.host;
        match github.hook_ranges(desk.settings(), repo) {
            Ok(found) if found.is_empty() => {}
            Ok(found) => ranges.push((host.clone(), found)),
            Err(e) => warnings.push(format!("{host} does not say from where it calls: {e}")),
        }
    }
    Ok(Report {
        rows,
        ranges,
        warnings,
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
        Some(hook) => github.hook_calls(settings, repo, hook.id).map(Calls::of),
        None => Ok(Calls::default()),
    };
    Ok(Seen {
        done,
        id,
        url: wanted.url,
        differences,
        calls,
    })
}

/// The address of the only webhook with our path.
fn own_address(hooks: &[Hook], path: &str, repo: &RepoRef) -> Result<String, OpError> {
    let mut ours = of_path(hooks, path);
    match (ours.next(), ours.next()) {
        (Some(hook), None) => Ok(hook.config.url.clone()),
        (Some(_), Some(_)) => {
            let made = format!("{repo} has several webhooks with the path {path}");
            Err(OpError::new(Kind::Usage, made).hint("--url says which"))
        }
        (None, _) => {
            let made = format!("{repo} has no webhook with the path {path}");
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
        WriteError::Status(301 | 307 | 308) => made.hint("it was renamed or moved: give its new name"),
        WriteError::Status(422) => made.hint(
            "GitHub refuses the address, or as many webhooks as it allows are there: look at the \
             repository's settings",
        ),
        WriteError::NoAnswer(_) => made.hint("it may have been done: another try finds out"),
        WriteError::UnknownHost(_)
        | WriteError::Throttled(_)
        | WriteError::Status(_)
        | WriteError::NotReached(_)
        | WriteError::Malformed => made,
    }
}
