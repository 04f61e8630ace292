//! What is asked of GitHub: a ticket, a pull request, the log of a failed job (IN-18, IN-19, IN-27, IN-33).

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use the_loop_core::answers::{FailedJob, ItemSeen, PullSeen, log_tail};
use the_loop_core::ci::{Outcome, RunTry, outcome};
use the_loop_core::config::Settings;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::quota::Caller;
use ureq::Body;
use ureq::http::{Response, Uri, header};

use super::{Github, WriteError, body_of, checked, fault, prepared};
use crate::tracker::github::payload::{item_seen, pull_seen};

/// Time for a question that a delivery waits for (IN-18).
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Time for all that is asked about a failed job (IN-33).
const LOG_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of a list of jobs.
const JOBS_BYTES_MAX: u64 = 8 << 20;
/// Bytes of a log that are read; what follows is not looked at (IN-33).
const LOG_BYTES_MAX: u64 = 20 << 20;
/// Bytes at the end of what was read that are kept: far more than is shown.
const LOG_BYTES_KEPT: usize = 1 << 20;
/// Answers that are remembered with their validator; the oldest goes.
const KEPT_MAX: usize = 256;

/// Answers by their address, to be asked for again by their validator, which costs nothing.
#[derive(Default)]
pub(super) struct Kept {
    answers: HashMap<String, (String, Answer)>,
    order: VecDeque<String>,
}

/// What an address answered, as far as it is read.
#[derive(Clone)]
enum Answer {
    Item(ItemSeen),
    Pull(Box<PullSeen>),
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    id: u64,
    name: Option<String>,
    conclusion: Option<String>,
    #[serde(default)]
    steps: Option<Vec<Step>>,
}

#[derive(Deserialize)]
struct Step {
    name: Option<String>,
    conclusion: Option<String>,
}

impl Kept {
    fn keep(&mut self, url: String, validator: String, answer: Answer) {
        let before = self.answers.insert(url.clone(), (validator, answer));
        if before.is_none() {
            self.order.push_back(url);
        }
        if self.order.len() > KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.answers.remove(&oldest);
        }
    }
}

impl Github {
    /// A ticket or pull request, as a ticket.
    pub fn item(&self, settings: &Settings, item: &WorkItemRef) -> Result<ItemSeen, WriteError> {
        let path = format!("issues/{}", item.number());
        let read = |json: &str| item_seen(json, item).map(Answer::Item);
        match self.ask(settings, item, &path, read)? {
            Answer::Item(seen) => Ok(seen),
            Answer::Pull(_) => Err(WriteError::Malformed),
        }
    }

    /// A pull request.
    pub fn pull(&self, settings: &Settings, item: &WorkItemRef) -> Result<PullSeen, WriteError> {
        let path = format!("pulls/{}", item.number());
        let read = |json: &str| pull_seen(json, item).map(|seen| Answer::Pull(Box::new(seen)));
        match self.ask(settings, item, &path, read)? {
            Answer::Pull(seen) => Ok(*seen),
            Answer::Item(_) => Err(WriteError::Malformed),
        }
    }

    /// The first failed job of a try of a workflow in the item's repository, with the end of its log. What
    /// cannot be had is said in it.
    pub fn failed_job(
        &self,
        settings: &Settings,
        item: &WorkItemRef,
        run: RunTry,
    ) -> Result<FailedJob, WriteError> {
        let until = Instant::now() + LOG_WITHIN;
        let RunTry { id, attempt } = run;
        let path = format!("actions/runs/{id}/attempts/{attempt}/jobs?per_page=100");
        let answer = self.get(settings, item, &path, None, until)?;
        let bytes = body_of(checked(answer)?, JOBS_BYTES_MAX)?;
        let jobs: Jobs = serde_json::from_slice(&bytes).map_err(|_| WriteError::Malformed)?;
        let failed =
            |end: &Option<String>| end.as_deref().and_then(outcome) == Some(Outcome::Failing);
        let Some(job) = jobs.jobs.into_iter().find(|job| failed(&job.conclusion)) else {
            return Ok(FailedJob::unavailable("no failed job is shown"));
        };
        let steps = job.steps.unwrap_or_default().into_iter();
        let known = FailedJob {
            name: job.name,
            step: steps
                .filter(|step| failed(&step.conclusion))
                .find_map(|step| step.name),
            ..FailedJob::default()
        };
        Ok(match self.log(settings, item, job.id, until) {
            Ok(bytes) => FailedJob {
                log: log_tail(&bytes),
                ..known
            },
            Err(error) => FailedJob {
                unavailable: Some(error.in_words()),
                ..known
            },
        })
    }

    /// The last bytes of a job's log. It lies elsewhere: that host is called without the credential.
    fn log(
        &self,
        settings: &Settings,
        item: &WorkItemRef,
        job: u64,
        until: Instant,
    ) -> Result<Vec<u8>, WriteError> {
        let path = format!("actions/jobs/{job}/logs");
        let answer = self.get(settings, item, &path, None, until)?;
        let status = answer.status().as_u16();
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return tail_of(checked(answer)?);
        }
        let place = answer.headers().get(header::LOCATION);
        let place = place
            .and_then(|place| place.to_str().ok())
            .unwrap_or_default();
        let api = settings.integrations.github.api_of(&item.repo().host);
        if !may_lie_at(place, api.as_deref().unwrap_or_default()) {
            return Err(WriteError::Status(status));
        }
        let request = self.agent.get(place).config();
        let request = request.timeout_global(Some(left(until)?)).build();
        tail_of(checked(request.call().map_err(fault)?)?)
    }

    /// Asks for something below the item's repository that may have been answered before.
    fn ask(
        &self,
        settings: &Settings,
        item: &WorkItemRef,
        path: &str,
        read: impl FnOnce(&str) -> Option<Answer>,
    ) -> Result<Answer, WriteError> {
        let api = settings.integrations.github.api_of(&item.repo().host);
        let url = format!("{}/{}/{path}", api.unwrap_or_default(), item.repo());
        let known = self.kept().answers.get(&url).cloned();
        let validator = known.as_ref().map(|(validator, _)| validator.as_str());
        let until = Instant::now() + ANSWER_WITHIN;
        let answer = self.get(settings, item, path, validator, until)?;
        if let (304, Some((_, answer))) = (answer.status().as_u16(), known) {
            return Ok(answer);
        }
        let answer = checked(answer)?;
        let validator = answer.headers().get(header::ETAG);
        let validator = validator
            .and_then(|tag| tag.to_str().ok())
            .map(str::to_owned);
        let bytes = body_of(answer, super::ANSWER_BYTES_MAX)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| WriteError::Malformed)?;
        let answer = read(text).ok_or(WriteError::Malformed)?;
        if let Some(validator) = validator {
            self.kept().keep(url, validator, answer.clone());
        }
        Ok(answer)
    }

    /// `path` is below the item's repository and made of our words and numbers.
    fn get(
        &self,
        settings: &Settings,
        item: &WorkItemRef,
        path: &str,
        validator: Option<&str>,
        until: Instant,
    ) -> Result<Response<Body>, WriteError> {
        let repo = item.repo();
        let below = format!("repos/{}/{path}", repo.full_name());
        let (url, token) = self.call(settings, repo, &below)?;
        self.through_gate(settings, &repo.host, Caller::Other, || {
            let left = left(until).unwrap_or(Duration::ZERO);
            let request = prepared(self.agent.get(&url), &token).config();
            let mut request = request.timeout_global(Some(left)).build();
            if let Some(validator) = validator {
                request = request.header(header::IF_NONE_MATCH, validator);
            }
            request.call()
        })
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        lock(&self.kept)
    }
}

/// A mutex whose holder never leaves it half changed.
fn lock(kept: &Mutex<Kept>) -> std::sync::MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is left of the time; when it is over, that is no answer.
fn left(until: Instant) -> Result<Duration, WriteError> {
    let left = until.saturating_duration_since(Instant::now());
    let over = || WriteError::NoAnswer("timeout".to_owned());
    (!left.is_zero()).then_some(left).ok_or_else(over)
}

/// May a log lie at this address? Where it is encrypted; else only on this machine, for an interface that is
/// there and not encrypted either.
fn may_lie_at(place: &str, api: &str) -> bool {
    let is_here = |uri: &Uri| {
        matches!(uri.host(), Some("127.0.0.1" | "localhost" | "[::1]"))
            && uri.scheme_str() == Some("http")
    };
    match (place.parse::<Uri>(), api.parse::<Uri>()) {
        (Ok(place), _) if place.scheme_str() == Some("https") => place.host().is_some(),
        (Ok(place), Ok(api)) => is_here(&place) && is_here(&api),
        (Ok(_) | Err(_), _) => false,
    }
}

/// Reads up to the bound and keeps the end.
fn tail_of(mut answer: Response<Body>) -> Result<Vec<u8>, WriteError> {
    let mut reader = answer.body_mut().as_reader().take(LOG_BYTES_MAX);
    let (mut kept, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let read = reader.read(&mut piece);
        let count = read.map_err(|e| WriteError::NoAnswer(e.kind().to_string()))?;
        if count == 0 {
            break;
        }
        kept.extend_from_slice(&piece[..count]);
        if kept.len() > 2 * LOG_BYTES_KEPT {
            kept.drain(..kept.len() - LOG_BYTES_KEPT);
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in33_a_log_lies_where_it_is_encrypted_or_on_this_machine_as_the_interface_does() {
        let (here, there) = ("http://127.0.0.1:9/api/v3", "https://api.github.com");
        for (place, api, may) in [
            ("https://logs.example/x?sig=y", there, true),
            ("https://logs.example/x", here, true),
            ("http://logs.example/x", there, false),
            ("http://logs.example/x", here, false),
            ("http://127.0.0.1:8/x", there, false),
            ("http://127.0.0.1:8/x", here, true),
            ("http://127.0.0.1:8/x", "https://127.0.0.1:9", false),
            ("http://127.0.0.1.evil.example/x", here, false),
            ("http://169.254.169.254/latest", here, false),
            ("file:///etc/passwd", here, false),
            ("/relative", there, false),
            ("", there, false),
            ("https://", there, false),
        ] {
            assert_eq!(may_lie_at(place, api), may, "{place} {api}");
        }
    }

    #[test]
    fn in18_answers_that_are_kept_are_bounded() {
        let mut kept = Kept::default();
        for n in 0..=KEPT_MAX {
            let seen = Answer::Item(ItemSeen::default());
            kept.keep(format!("u{n}"), "v".to_owned(), seen.clone());
            kept.keep(format!("u{n}"), "w".to_owned(), seen);
        }
        assert_eq!((kept.answers.len(), kept.order.len()), (KEPT_MAX, KEPT_MAX));
        assert!(!kept.answers.contains_key("u0"));
    }
}
