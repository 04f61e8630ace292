//! Which address shows what.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::world::{OWN_LOGIN, World, user};

/// What an address shows.
#[derive(Debug)]
pub(super) enum Shown {
    /// Rows, of which a page is shown.
    List(Vec<Value>),
    /// Rows below a name.
    Named(&'static str, Vec<Value>),
    /// A thing.
    Thing(Value),
    /// Something was made.
    Made(Value),
    /// Only a status, and where to look instead.
    Status(u16, String),
}

/// The parameters of an address.
pub(super) type Query = HashMap<String, String>;

/// Answers a request for a path below the interface.
pub(super) fn answer(
    world: &mut World,
    method: &str,
    path: &str,
    query: &Query,
    body: &Value,
) -> Shown {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method, &parts[..]) {
        ("GET", ["user"]) => Shown::Thing(user(OWN_LOGIN)),
        ("GET", ["repos", owner, name, rest @ ..]) => {
            show(world, &format!("{owner}/{name}"), rest, query)
        }
        ("POST", ["repos", owner, name, "issues", number, "comments"]) => {
            let text = body["body"].as_str().unwrap_or_default();
            let number = number.parse().unwrap_or(0);
            Shown::Made(world.comment(&format!("{owner}/{name}"), number, OWN_LOGIN, text))
        }
        ("POST", ["graphql" | "api", ..]) => Shown::Thing(linked(world, body)),
        ("GET", ["meta"]) => {
            Shown::Thing(json!({ "hooks": ["192.30.252.0/22", "2606:50c0::/32"] }))
        }
        ("POST", ["repos", owner, name, "hooks"]) => {
            let made = world.put_hook(&format!("{owner}/{name}"), None, body);
            Shown::Made(masked(made.unwrap_or_default()))
        }
        ("PATCH", ["repos", owner, name, "hooks", id]) => {
            let changed = world.put_hook(&format!("{owner}/{name}"), id.parse().ok(), body);
            changed.map_or(Shown::Status(404, String::new()), |hook| {
                Shown::Thing(masked(hook))
            })
        }
        ("POST", ["repos", .., "reactions"]) => Shown::Made(json!({ "id": 1 })),
        _ => Shown::Status(404, String::new()),
    }
}

fn show(world: &World, repo: &str, rest: &[&str], query: &Query) -> Shown {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    let list = |rows: Vec<&Value>| Shown::List(rows.into_iter().cloned().collect());
    match rest {
        ["issues"] => Shown::List(items(world, repo, query)),
        ["issues", "comments"] => Shown::List(since(world.comments_in(repo), query)),
        ["pulls", "comments"] => Shown::List(since(world.inline_in(repo), query)),
        ["issues", n] => thing(world, repo, number(n), world.item(repo, number(n))),
        ["pulls", n] => thing(world, repo, number(n), world.pull_row(repo, number(n))),
        ["issues", n, "comments"] => list(world.comments_of(repo, number(n)).collect()),
        ["issues", n, "events"] => Shown::List(world.events_of(repo, number(n))),
        ["pulls", n, "reviews"] => list(world.reviews_of(repo, number(n)).collect()),
        ["pulls", n, "comments"] => list(world.inline_of(repo, number(n)).collect()),
        ["pulls", n, "reviews", id, "comments"] => {
            let of = number(id);
            let rows = world.inline_of(repo, number(n));
            list(
                rows.filter(|row| row["pull_request_review_id"] == of)
                    .collect(),
            )
        }
        ["hooks"] => Shown::List(world.hooks_of(repo).into_iter().map(masked).collect()),
        ["hooks", _, "deliveries"] => Shown::List(world.hook_calls.clone()),
        ["actions", "runs"] => {
            Shown::Named("workflow_runs", world.runs_in(repo).cloned().collect())
        }
        _ => Shown::Status(404, String::new()),
    }
}

/// The one query that is known: the issues that pull requests are linked to.
fn linked(world: &World, body: &Value) -> Value {
    let variable = |name: &str| {
        body["variables"][name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let repo = format!("{}/{}", variable("o"), variable("r"));
    let query = body["query"].as_str().unwrap_or_default();
    let mut pulls = serde_json::Map::new();
    for part in query.split("pullRequest(number: ").skip(1) {
        let number: u64 = part
            .split(')')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0);
        let of = world
            .links
            .iter()
            .filter(|(of, pull, _)| *of == repo && *pull == number);
        let nodes: Vec<Value> = of
            .map(
                |(_, _, issue)| json!({ "number": issue, "repository": { "nameWithOwner": repo } }),
            )
            .collect();
        let references = json!({ "closingIssuesReferences": { "nodes": nodes } });
        pulls.insert(format!("p{number}"), references);
    }
    json!({ "data": { "repository": pulls } })
}

/// A webhook as it is shown: its secret is stars.
fn masked(mut hook: Value) -> Value {
    if hook["config"]["secret"].is_string() {
        hook["config"]["secret"] = "********".into();
    }
    hook
}

fn thing(world: &World, repo: &str, number: u64, row: Option<&Value>) -> Shown {
    let gone = world.gone.get(&(repo.to_ascii_lowercase(), number));
    match (row, gone) {
        (Some(row), _) => Shown::Thing(row.clone()),
        (None, Some((status, to))) => Shown::Status(*status, to.clone()),
        (None, None) => Shown::Status(404, String::new()),
    }
}

fn items(world: &World, repo: &str, query: &Query) -> Vec<Value> {
    let state = query.get("state").map_or("open", String::as_str);
    let label = query.get("labels").map(|label| label.to_lowercase());
    let rows = since(world.items_in(repo), query).into_iter();
    rows.filter(|row| state == "all" || row["state"] == state)
        .filter(|row| {
            label.as_ref().is_none_or(|wanted| {
                let labels = row["labels"].as_array().into_iter().flatten();
                let mut names = labels.filter_map(|label| label["name"].as_str());
                names.any(|name| name.to_lowercase() == *wanted)
            })
        })
        .collect()
}

/// In order of change; those that changed since.
fn since<'a>(rows: impl Iterator<Item = &'a Value>, query: &Query) -> Vec<Value> {
    let changed = |row: &Value| row["updated_at"].as_str().unwrap_or_default().to_owned();
    let from = query.get("since").cloned().unwrap_or_default();
    let mut rows: Vec<Value> = rows.filter(|row| changed(row) >= from).cloned().collect();
    rows.sort_by_key(changed);
    rows
}
