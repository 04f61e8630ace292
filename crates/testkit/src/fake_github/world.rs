//! What there is, and how it changes. Rows have GitHub's names and forms.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use the_loop::clock::Clock;
use the_loop_core::time::Timestamp;

/// The account behind the token.
pub const OWN_LOGIN: &str = "octo-robot";

type Key = (String, u64);

/// Repositories and what is in them.
#[derive(Debug)]
pub struct World {
    /// Now, Unix seconds; `None`: the machine's clock.
    pub now: Option<i64>,
    next_id: u64,
    items: BTreeMap<Key, Value>,
    pulls: BTreeMap<Key, Value>,
    events: BTreeMap<Key, Vec<Value>>,
    /// Words with the repository and number that they are on.
    comments: Vec<(Key, Value)>,
    reviews: Vec<(Key, Value)>,
    inline: Vec<(Key, Value)>,
    runs: Vec<(String, Value)>,
    hooks: Vec<(String, Value)>,
    /// Issues that pull requests are linked to by hand, as GraphQL tells them: repository, pull request, issue.
    pub links: Vec<(String, u64, u64)>,
    /// What a webhook was called with, newest first.
    pub hook_calls: Vec<Value>,
    /// Items that are not there any more: the status that is answered, and where they went.
    pub(super) gone: BTreeMap<Key, (u16, String)>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            now: None,
            next_id: 1_000,
            items: BTreeMap::new(),
            pulls: BTreeMap::new(),
            events: BTreeMap::new(),
            comments: Vec::new(),
            reviews: Vec::new(),
            inline: Vec::new(),
            runs: Vec::new(),
            hooks: Vec::new(),
            links: Vec::new(),
            hook_calls: Vec::new(),
            gone: BTreeMap::new(),
        }
    }
}

/// An account.
pub fn user(login: &str) -> Value {
    let id = login
        .bytes()
        .fold(7_u64, |id, b| id * 31 % 1_000_003 + u64::from(b));
    let kind = if login.ends_with("[bot]") {
        "Bot"
    } else {
        "User"
    };
    json!({ "login": login, "id": id, "node_id": format!("U_{id}"), "type": kind })
}

fn repository(repo: &str) -> Value {
    let id = repo
        .bytes()
        .fold(3_u64, |id, b| id * 31 % 1_000_003 + u64::from(b));
    json!({ "id": id, "full_name": repo, "html_url": format!("https://github.com/{repo}") })
}

impl World {
    /// This moment, Unix seconds.
    pub(super) fn seconds(&self) -> i64 {
        let clock = || Clock::System.now().unix_ms() / 1_000;
        self.now.unwrap_or_else(clock)
    }

    /// This moment, as GitHub writes it.
    pub fn time(&self) -> String {
        Timestamp::from_unix_ms(self.seconds() * 1_000).seconds()
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn key(repo: &str, number: u64) -> Key {
        (repo.to_ascii_lowercase(), number)
    }

    /// A ticket with these labels.
    pub fn issue(&mut self, repo: &str, number: u64, author: &str, labels: &[&str]) {
        let now = self.time();
        let labels: Vec<Value> = labels.iter().map(|name| json!({ "name": name })).collect();
        let item = json!({
            "number": number, "node_id": format!("I_{repo}_{number}"), "title": format!("Item {number}"),
            "state": "open", "labels": labels, "user": user(author), "body": "words",
            "html_url": format!("https://github.com/{repo}/issues/{number}"),
            "created_at": now, "updated_at": now, "closed_at": null,
        });
        self.items.insert(Self::key(repo, number), item);
    }

    /// A pull request from a branch of the same repository.
    pub fn pull(&mut self, repo: &str, number: u64, author: &str, branch: &str, body: &str) {
        self.issue(repo, number, author, &[]);
        let key = Self::key(repo, number);
        let end = |branch: &str| json!({ "ref": branch, "sha": format!("{:040x}", branch.len()), "repo": repository(repo) });
        let mut pull = json!({});
        if let Some(item) = self.items.get_mut(&key) {
            item["body"] = body.into();
            item["pull_request"] = json!({ "merged_at": null });
            item["html_url"] = format!("https://github.com/{repo}/pull/{number}").into();
            pull = item.clone();
        }
        pull["head"] = end(branch);
        pull["base"] = end("main");
        pull["merged"] = false.into();
        pull["draft"] = false.into();
        self.pulls.insert(key, pull);
    }

    /// A pull request can be merged, or not; its row stays as it was.
    pub fn merges(&mut self, repo: &str, number: u64, mergeable: Option<bool>) {
        if let Some(pull) = self.pulls.get_mut(&Self::key(repo, number)) {
            pull["mergeable"] = mergeable.into();
        }
    }

    /// The branch of a pull request is in somebody's fork.
    pub fn is_from_fork(&mut self, repo: &str, number: u64, fork: &str) {
        if let Some(pull) = self.pulls.get_mut(&Self::key(repo, number)) {
            pull["head"]["repo"] = repository(fork);
        }
    }

    fn touch(&mut self, key: &Key) {
        let now = self.time();
        for shown in [self.items.get_mut(key), self.pulls.get_mut(key)]
            .into_iter()
            .flatten()
        {
            shown["updated_at"] = now.clone().into();
        }
    }

    fn happened(&mut self, key: &Key, event: &str, actor: &str, label: Option<&str>) {
        let (id, now) = (self.id(), self.time());
        let mut row = json!({ "id": id, "event": event, "actor": user(actor), "created_at": now });
        if let Some(label) = label {
            row["label"] = json!({ "name": label });
        }
        self.events.entry(key.clone()).or_default().push(row);
    }

    /// Sets a label.
    pub fn label(&mut self, repo: &str, number: u64, label: &str, by: &str) {
        let key = Self::key(repo, number);
        for shown in [self.items.get_mut(&key), self.pulls.get_mut(&key)]
            .into_iter()
            .flatten()
        {
            if let Some(labels) = shown["labels"].as_array_mut() {
                labels.push(json!({ "name": label }));
            }
        }
        self.happened(&key, "labeled", by, Some(label));
        self.touch(&key);
    }

    /// Closes an item; a pull request may be merged by it.
    pub fn close(&mut self, repo: &str, number: u64, by: &str, merged: bool) {
        let (key, now) = (Self::key(repo, number), self.time());
        for shown in [self.items.get_mut(&key), self.pulls.get_mut(&key)]
            .into_iter()
            .flatten()
        {
            shown["state"] = "closed".into();
            shown["closed_at"] = now.clone().into();
        }
        if let Some(pull) = self.pulls.get_mut(&key) {
            pull["merged"] = merged.into();
        }
        self.happened(&key, "closed", by, None);
        self.touch(&key);
    }

    /// Opens an item again.
    pub fn reopen(&mut self, repo: &str, number: u64, by: &str) {
        let key = Self::key(repo, number);
        for shown in [self.items.get_mut(&key), self.pulls.get_mut(&key)]
            .into_iter()
            .flatten()
        {
            shown["state"] = "open".into();
            shown["closed_at"] = Value::Null;
        }
        self.happened(&key, "reopened", by, None);
        self.touch(&key);
    }

    /// An item is deleted (410), or lives elsewhere from now on (301).
    pub fn goes(&mut self, repo: &str, number: u64, status: u16, to: &str) {
        let key = Self::key(repo, number);
        self.items.remove(&key);
        self.gone.insert(key, (status, to.to_owned()));
    }

    /// Somebody says something; the row of it.
    pub fn comment(&mut self, repo: &str, number: u64, by: &str, body: &str) -> Value {
        let (id, now, key) = (self.id(), self.time(), Self::key(repo, number));
        let row = json!({
            "id": id, "node_id": format!("IC_{id}"), "user": user(by), "body": body,
            "html_url": format!("https://github.com/{repo}/issues/{number}#issuecomment-{id}"),
            "issue_url": format!("https://api.github.com/repos/{repo}/issues/{number}"),
            "created_at": now, "updated_at": now,
        });
        self.comments.push((key.clone(), row.clone()));
        self.touch(&key);
        row
    }

    /// Changes what somebody said.
    pub fn edit(&mut self, id: u64, body: &str, at: &str) {
        for (_, row) in self.comments.iter_mut().filter(|(_, row)| row["id"] == id) {
            row["body"] = body.into();
            row["updated_at"] = at.into();
        }
    }

    /// Somebody submits a review with words on lines of `src/lib.rs`.
    pub fn review(
        &mut self,
        repo: &str,
        number: u64,
        by: &str,
        (state, body): (&str, &str),
        inline: &[&str],
    ) {
        let (id, now, key) = (self.id(), self.time(), Self::key(repo, number));
        let page = format!("https://github.com/{repo}/pull/{number}");
        let pull_url = format!("https://api.github.com/repos/{repo}/pulls/{number}");
        let review = json!({
            "id": id, "node_id": format!("PRR_{id}"), "user": user(by), "body": body, "state": state,
            "html_url": format!("{page}#pullrequestreview-{id}"), "pull_request_url": pull_url,
            "submitted_at": now,
        });
        self.reviews.push((key.clone(), review));
        for words in inline {
            let line_id = self.id();
            let row = json!({
                "id": line_id, "node_id": format!("PRRC_{line_id}"), "user": user(by), "body": words,
                "path": "src/lib.rs", "line": 7, "original_line": 7, "side": "RIGHT",
                "diff_hunk": "@@ -1,2 +1,2 @@\n-old\n+new", "pull_request_review_id": id,
                "pull_request_url": pull_url, "html_url": format!("{page}#discussion_r{line_id}"),
                // It was drafted long before.
                "created_at": "2026-01-01T00:00:00Z", "updated_at": now,
            });
            self.inline.push((key.clone(), row));
        }
        self.touch(&key);
    }

    /// A run of a workflow ends on a branch.
    pub fn run(&mut self, repo: &str, branch: &str, conclusion: &str) -> u64 {
        let (id, now) = (self.id(), self.time());
        let row = json!({
            "id": id, "run_attempt": 1, "name": "CI", "status": "completed", "conclusion": conclusion,
            "head_branch": branch, "head_sha": format!("{:040x}", branch.len()),
            "html_url": format!("https://github.com/{repo}/actions/runs/{id}"),
            "created_at": now, "updated_at": now, "pull_requests": [],
            "repository": repository(repo), "head_repository": repository(repo),
        });
        self.runs.push((repo.to_ascii_lowercase(), row));
        id
    }

    /// The webhooks of a repository, with their secrets.
    pub fn hooks_of(&self, repo: &str) -> Vec<Value> {
        let repo = repo.to_ascii_lowercase();
        let hooks = self.hooks.iter().filter(|(of, _)| *of == repo);
        hooks.map(|(_, hook)| hook.clone()).collect()
    }

    /// Somebody makes a webhook.
    pub fn add_hook(&mut self, repo: &str, of: &Value) {
        self.put_hook(repo, None, of);
    }

    /// Somebody changes a webhook.
    pub fn change_hook(&mut self, repo: &str, id: u64, to: &Value) {
        self.put_hook(repo, Some(id), to);
    }

    /// Makes a webhook of what was asked, or changes one.
    pub(super) fn put_hook(&mut self, repo: &str, id: Option<u64>, asked: &Value) -> Option<Value> {
        let repo = repo.to_ascii_lowercase();
        let fields = ["active", "events", "config"];
        if let Some(id) = id {
            let mut hooks = self.hooks.iter_mut();
            let (_, hook) = hooks.find(|(of, hook)| *of == repo && hook["id"] == id)?;
            for field in fields.into_iter().filter(|field| !asked[*field].is_null()) {
                hook[field] = asked[field].clone();
            }
            return Some(hook.clone());
        }
        let mut hook = json!({ "id": self.id(), "type": "Repository", "name": "web" });
        for field in fields {
            hook[field] = asked[field].clone();
        }
        self.hooks.push((repo, hook.clone()));
        Some(hook)
    }

    pub(super) fn item(&self, repo: &str, number: u64) -> Option<&Value> {
        self.items.get(&Self::key(repo, number))
    }

    pub(super) fn pull_row(&self, repo: &str, number: u64) -> Option<&Value> {
        self.pulls.get(&Self::key(repo, number))
    }

    pub(super) fn items_in(&self, repo: &str) -> impl Iterator<Item = &Value> {
        let repo = repo.to_ascii_lowercase();
        self.items
            .iter()
            .filter(move |(key, _)| key.0 == repo)
            .map(|(_, row)| row)
    }

    pub(super) fn comments_of(&self, repo: &str, number: u64) -> impl Iterator<Item = &Value> {
        of(&self.comments, Self::key(repo, number))
    }

    pub(super) fn reviews_of(&self, repo: &str, number: u64) -> impl Iterator<Item = &Value> {
        of(&self.reviews, Self::key(repo, number))
    }

    pub(super) fn inline_of(&self, repo: &str, number: u64) -> impl Iterator<Item = &Value> {
        of(&self.inline, Self::key(repo, number))
    }

    pub(super) fn comments_in(&self, repo: &str) -> impl Iterator<Item = &Value> {
        within(&self.comments, repo)
    }

    pub(super) fn inline_in(&self, repo: &str) -> impl Iterator<Item = &Value> {
        within(&self.inline, repo)
    }

    pub(super) fn runs_in(&self, repo: &str) -> impl Iterator<Item = &Value> {
        let repo = repo.to_ascii_lowercase();
        self.runs
            .iter()
            .rev()
            .filter(move |(of, _)| *of == repo)
            .map(|(_, row)| row)
    }

    pub(super) fn events_of(&self, repo: &str, number: u64) -> Vec<Value> {
        self.events
            .get(&Self::key(repo, number))
            .cloned()
            .unwrap_or_default()
    }
}

fn of(rows: &[(Key, Value)], key: Key) -> impl Iterator<Item = &Value> {
    rows.iter()
        .filter(move |(on, _)| *on == key)
        .map(|(_, row)| row)
}

fn within<'a>(rows: &'a [(Key, Value)], repo: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let repo = repo.to_ascii_lowercase();
    rows.iter()
        .filter(move |(on, _)| on.0 == repo)
        .map(|(_, row)| row)
}
