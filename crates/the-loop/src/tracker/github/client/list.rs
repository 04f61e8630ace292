//! Lists, page by page, asked by their validator (IN-39 to IN-41), and single things as they stand (IN-49).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use the_loop_core::config::Settings;
use the_loop_core::ids::{GITHUB_PROVIDER, RepoRef, WorkItemRef};
use the_loop_core::quota::Caller;
use the_loop_core::time::Timestamp;
use ureq::Body;
use ureq::http::{HeaderMap, Response, header};

use super::{CALL_WITHIN, Github, WriteError, body_of, judged, prepared};

/// Bytes of a page: a hundred rows whose texts have 64 Ki characters each.
const PAGE_BYTES_MAX: u64 = 64 << 20;
/// Where a page may send us for the next one, in bytes.
const LINK_BYTES_MAX: usize = 8 << 10;

/// What was asked so far, for the log and for whoever counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Requests.
    pub requests: u64,
    /// Those of them that were answered with "as before".
    pub not_modified: u64,
}

/// A page of a list, or a thing.
#[derive(Debug)]
pub struct Page {
    /// Its text, JSON.
    pub text: Vec<u8>,
    /// By what it is asked again.
    pub validator: Option<String>,
    /// The address of the next page.
    pub next: Option<String>,
    /// When it was answered, by the clock of who answered.
    pub answered_at: Option<Timestamp>,
}

/// What an address answered.
#[derive(Debug)]
pub enum Answered {
    /// As before.
    Unchanged,
    /// This.
    Page(Page),
    /// It is to be found there.
    Moved(String),
    /// It was there, and is not any more.
    Gone,
}

impl Page {
    /// Its rows as they came. `None`: it is no list.
    pub fn rows(&self) -> Option<Vec<&RawValue>> {
        serde_json::from_slice(&self.text).ok()
    }

    /// The list below this name, as some answers hold it.
    pub fn rows_of(&self, name: &str) -> Option<Vec<&RawValue>> {
        let whole: HashMap<String, &RawValue> = self.read()?;
        serde_json::from_str(whole.get(name)?.get()).ok()
    }

    /// It as one thing. `None`: it is something else.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_slice(&self.text).ok()
    }
}

impl Github {
    /// The address of something below a repository; `None` for a host that is not configured.
    pub fn address(&self, settings: &Settings, repo: &RepoRef, path: &str) -> Option<String> {
        let api = settings.integrations.github.api_of(&repo.host)?;
        Some(format!("{api}/repos/{}/{path}", repo.full_name()))
    }

    /// Asks an address of a repository's host for the poller. `validator`: by what it was answered before.
    pub fn ask_address(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        address: &str,
        validator: Option<&str>,
        asked: &mut Asked,
    ) -> Result<Answered, WriteError> {
        let api = settings.integrations.github.api_of(&repo.host);
        let api = api.ok_or_else(|| WriteError::UnknownHost(repo.host.clone()))?;
        if !is_below(address, &api) {
            return Err(WriteError::Malformed);
        }
        let token = self.token(settings, repo)?;
        let until = Instant::now() + CALL_WITHIN;
        let answer = self.through_gate(settings, &repo.host, Caller::Poll, || {
            asked.requests += 1;
            let left = until.saturating_duration_since(Instant::now());
            let request = prepared(self.agent.get(address), &token).config();
            let request = request.timeout_global(Some(left.max(Duration::from_millis(1))));
            let mut request = request.build();
            if let Some(validator) = validator {
                request = request.header(header::IF_NONE_MATCH, validator);
            }
            request.call()
        })?;
        let answered = read(answer, &api)?;
        if matches!(answered, Answered::Unchanged) {
            asked.not_modified += 1;
        }
        Ok(answered)
    }
}

/// The query for the items that pull requests are linked to, each under its number (IN-40).
fn links_query(numbers: &[u64]) -> String {
    let mut query =
        "query($o: String!, $r: String!) { repository(owner: $o, name: $r) {".to_owned();
    for number in numbers {
        query.push_str(&format!(
            " p{number}: pullRequest(number: {number}) {{ closingIssuesReferences(first: 20) \
             {{ nodes {{ number repository {{ nameWithOwner }} }} }} }}"
        ));
    }
    query + " } }"
}

#[derive(Deserialize)]
struct Linked {
    #[serde(rename = "closingIssuesReferences")]
    references: Nodes,
}

#[derive(Deserialize)]
struct Nodes {
    nodes: Vec<Option<Node>>,
}

#[derive(Deserialize)]
struct Node {
    number: u64,
    repository: Named,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "nameWithOwner")]
    name: String,
}

impl Github {
    /// The items that GitHub itself links these pull requests of a repository to, by their number. What it
    /// does not say is not there.
    pub fn linked_items(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        numbers: &[u64],
        asked: &mut Asked,
    ) -> Result<HashMap<u64, Vec<WorkItemRef>>, WriteError> {
        let api = settings.integrations.github.api_of(&repo.host);
        let api = api.ok_or_else(|| WriteError::UnknownHost(repo.host.clone()))?;
        let url = format!("{}/graphql", api.strip_suffix("/v3").unwrap_or(&api));
        let token = self.token(settings, repo)?;
        let full_name = repo.full_name();
        let (owner, name) = full_name.split_once('/').unwrap_or_default();
        let body = json!({
            "query": links_query(numbers), "variables": { "o": owner, "r": name },
        });
        let counted = format!("{} graphql", repo.host);
        let of = (repo.host.as_str(), counted.as_str());
        let answer = self.counted_apart(settings, of, Caller::Poll, || {
            asked.requests += 1;
            prepared(self.agent.post(&url), &token).send_json(&body)
        })?;
        let answer = judged(answer)?;
        let repository = answer
            .pointer("/data/repository")
            .and_then(Value::as_object);
        let mut linked = HashMap::new();
        for (name, pull) in repository.ok_or(WriteError::Malformed)? {
            let number = name
                .strip_prefix('p')
                .and_then(|number| number.parse().ok());
            let pull: Option<Linked> = serde_json::from_value(pull.clone()).ok();
            if let (Some(number), Some(pull)) = (number, pull) {
                let nodes = pull.references.nodes.into_iter().flatten();
                let items = nodes.filter_map(|node| {
                    let (owner, name) = node.repository.name.split_once('/')?;
                    let repo = RepoRef::new(&repo.host, owner, name).ok()?;
                    WorkItemRef::new(GITHUB_PROVIDER, repo, node.number).ok()
                });
                linked.insert(number, items.collect());
            }
        }
        Ok(linked)
    }
}

fn read(answer: Response<Body>, api: &str) -> Result<Answered, WriteError> {
    let status = answer.status().as_u16();
    match status {
        200 => {}
        304 => return Ok(Answered::Unchanged),
        301 | 302 | 307 | 308 => {
            let place = text(answer.headers(), header::LOCATION.as_str());
            let place = place.filter(|place| is_below(place, api));
            return Ok(Answered::Moved(place.unwrap_or_default().to_owned()));
        }
        410 => return Ok(Answered::Gone),
        404 => return Err(WriteError::NotFound),
        _ => return Err(WriteError::Status(status)),
    }
    let headers = answer.headers();
    let next = text(headers, header::LINK.as_str()).and_then(next_of);
    if next.is_some_and(|next| !is_below(next, api)) {
        // A page that sends us to another host is no page of this list (CF-17).
        return Err(WriteError::Malformed);
    }
    let validator = text(headers, header::ETAG.as_str()).map(str::to_owned);
    let answered_at = text(headers, header::DATE.as_str()).and_then(http_date);
    let next = next.map(str::to_owned);
    let bytes = body_of(answer, PAGE_BYTES_MAX)?;
    if bytes.len() as u64 == PAGE_BYTES_MAX {
        return Err(WriteError::Malformed);
    }
    Ok(Answered::Page(Page {
        text: bytes,
        validator,
        next,
        answered_at,
    }))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// The address of the next page in a `Link` header.
fn next_of(link: &str) -> Option<&str> {
    if link.len() > LINK_BYTES_MAX {
        return None;
    }
    link.split(',').find_map(|part| {
        let (address, rest) = part.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = rest
            .split(';')
            .any(|of| matches!(of.trim(), "rel=\"next\"" | "rel=next"));
        is_next.then_some(address)
    })
}

/// Does an address lie below that of the interface? `/repositories/…` of a list's pages does too.
fn is_below(address: &str, api: &str) -> bool {
    let rest = address.strip_prefix(api);
    rest.is_some_and(|rest| rest.starts_with('/') && rest.bytes().all(|b| b.is_ascii_graphic()))
}

fn http_date(text: &str) -> Option<Timestamp> {
    let parsed = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(Timestamp::from_jiff(parsed.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in39_the_next_page_is_read_from_the_link_header() {
        let link = "<https://api.github.com/repositories/1/issues?page=1>; rel=\"prev\", \
                    <https://api.github.com/repositories/1/issues?page=3>; rel=\"next\"";
        let next = "https://api.github.com/repositories/1/issues?page=3";
        assert_eq!(next_of(link), Some(next));
        for none in [
            "",
            "<x>",
            "<x>; rel=\"last\"",
            "x; rel=\"next\"",
            "<x; rel=\"next\"",
        ] {
            assert_eq!(next_of(none), None, "{none}");
        }
        assert_eq!(
            next_of(&format!("<{}>; rel=\"next\"", "x".repeat(9_000))),
            None
        );
    }

    #[test]
    fn cf17_only_addresses_of_the_interface_are_asked() {
        let api = "https://ghe.example/api/v3";
        for (address, is) in [
            (
                "https://ghe.example/api/v3/repositories/1/issues?page=2",
                true,
            ),
            ("https://ghe.example/api/v3", false),
            ("https://ghe.example/api/v3x/y", false),
            ("https://ghe.example.evil/api/v3/x", false),
            ("http://ghe.example/api/v3/x", false),
            ("https://ghe.example/api/v3/x y", false),
            ("https://ghe.example/api/v3/x\r\nHost: y", false),
            ("", false),
        ] {
            assert_eq!(is_below(address, api), is, "{address}");
        }
    }

    #[test]
    fn in42_the_moment_of_an_answer_is_that_of_its_host() {
        let at = http_date("Tue, 01 Dec 2026 14:00:00 GMT").unwrap();
        assert_eq!(at.seconds(), "2026-12-01T14:00:00Z");
        assert_eq!(http_date("yesterday"), None);
    }
}
