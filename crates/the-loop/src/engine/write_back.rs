//! What is written to GitHub: comments and reactions (IN-57 to IN-59). Best effort and after the effect: they
//! wait in memory, one thread writes them one after the other, and what fails is told and over.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use the_loop_core::config::Settings;
use the_loop_core::event::{CommentKind, LogEvent, ReactionState};
use the_loop_core::ids::{ItemKey, WorkItemRef};
use the_loop_core::time::Timestamp;

use super::{Engine, lock};
use crate::tracker::github::client::{Github, ReactionPlace, WriteError};
use crate::tracker::github::credential;

/// Writes that may wait; a further one is not taken.
const WAITING_MAX: usize = 256;
/// Time between two writes (IN-51).
const APART: Duration = Duration::from_secs(1);
/// Comments on one item within an hour; further ones are told in the log instead (IN-57).
const COMMENTS_PER_HOUR: usize = 20;
const HOUR: Duration = Duration::from_hours(1);
/// A host that asks for more patience than this gets no second try.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a host for which there is no credential is left alone.
const WITHOUT_TOKEN: Duration = Duration::from_mins(5);
/// How long the end of the engine waits for what is still to be written.
const FINISH_WITHIN: Duration = Duration::from_secs(10);
/// Reactions that are remembered, so that one that several sessions hear of gets one.
const REACTIONS_KEPT: usize = 1_000;

/// Something to write.
#[derive(Clone, Debug)]
pub(super) enum Write {
    /// A comment, signed.
    Comment {
        item: WorkItemRef,
        kind: CommentKind,
        text: String,
        /// The tmux session that it announces.
        announces: Option<String>,
    },
    /// A reaction.
    Reaction {
        item: WorkItemRef,
        state: ReactionState,
        content: String,
        /// What it is about, for the log: a comment's opaque id.
        target: String,
        place: ReactionPlace,
    },
}

/// What waits, and what was written.
#[derive(Debug, Default)]
pub(super) struct WriteBack {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Write>,
    is_running: bool,
    last: Option<Instant>,
    commented: HashMap<ItemKey, VecDeque<Timestamp>>,
    reacted: VecDeque<(String, ReactionState)>,
    refused_at: HashMap<String, Timestamp>,
    without_token: HashMap<String, Timestamp>,
}

/// A defect in the thread that writes costs one write: the next one begins another thread.
struct EndsWithPanic<'a>(&'a WriteBack);

impl Drop for EndsWithPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.state).is_running = false;
            self.0.done.notify_all();
        }
    }
}

impl Write {
    fn item(&self) -> &WorkItemRef {
        match self {
            Self::Comment { item, .. } | Self::Reaction { item, .. } => item,
        }
    }
}

impl Engine {
    /// Takes something to write. The thread that writes begins when there is something, and ends when there
    /// is nothing any more.
    /// `false`: there is no credential for its host, so that nothing is ever written there.
    pub(super) fn write(&self, write: Write) -> Result<bool, String> {
        let host = write.item().repo().host.to_ascii_lowercase();
        if !credential::is_possible(self.world(), &self.settings(), &host) {
            return Ok(false);
        }
        let now = self.world().clock.now();
        let mut state = lock(&self.0.write_back.state);
        let missed = state.without_token.get(&host).copied();
        if missed.is_some_and(|at| now.since(at) < WITHOUT_TOKEN) {
            return Ok(false);
        }
        if let Write::Reaction {
            target, state: of, ..
        } = &write
        {
            let key = (target.clone(), *of);
            if state.reacted.contains(&key) {
                return Ok(true);
            }
            if state.reacted.len() == REACTIONS_KEPT {
                state.reacted.pop_front();
            }
            state.reacted.push_back(key);
        }
        if state.waiting.len() == WAITING_MAX {
            return Err("too much waits to be written".to_owned());
        }
        state.waiting.push_back(write);
        if state.is_running {
            return Ok(true);
        }
        let engine = self.clone();
        let thread = std::thread::Builder::new().name("write-back".to_owned());
        match thread.spawn(move || engine.write_all()) {
            Ok(_) => {
                state.is_running = true;
                Ok(true)
            }
            Err(e) => {
                state.waiting.pop_back();
                Err(format!("no thread can be started: {e}"))
            }
        }
    }

    /// Waits a while for what is still to be written; the rest is lost.
    pub(super) fn finish_writes(&self) {
        let deadline = Instant::now() + FINISH_WITHIN;
        let mut state = lock(&self.0.write_back.state);
        while state.is_running {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.write_back.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn write_all(&self) {
        let _ended = EndsWithPanic(&self.0.write_back);
        let client = self.0.parts.github.clone();
        loop {
            let (write, last) = {
                let mut state = lock(&self.0.write_back.state);
                let Some(write) = state.waiting.pop_front() else {
                    state.is_running = false;
                    self.0.write_back.done.notify_all();
                    return;
                };
                (write, state.last)
            };
            if let Some(last) = last {
                self.rest(APART.saturating_sub(last.elapsed()));
            }
            if self.write_one(&client, &write) {
                lock(&self.0.write_back.state).last = Some(Instant::now());
            }
        }
    }

    /// Sleeps, unless the engine is ending.
    fn rest(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_stopping() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            self.world()
                .clock
                .wait(left.min(Duration::from_millis(200)));
        }
    }

    /// Writes one; `false` when nothing was sent.
    fn write_one(&self, client: &Github, write: &Write) -> bool {
        let settings = self.settings();
        if let Write::Comment { item, kind, .. } = write
            && let Some(count) = self.too_many(item)
        {
            self.emit(LogEvent::CommentWithheld {
                work_item: item.clone(),
                what: *kind,
                count,
            });
            return false;
        }
        let mut answer = try_once(client, &settings, write);
        if let Err(error) = &answer
            && (error.may_be_repeated() || is_harmless_again(write, error))
            && let Some(pause) = pause_after(error)
        {
            self.rest(pause);
            answer = try_once(client, &settings, write);
        }
        let was_sent = !matches!(
            answer,
            Err(WriteError::NoToken(_) | WriteError::UnknownHost(_))
        );
        match answer {
            Ok(node_id) => self.tell_written(write, node_id),
            Err(error) => self.tell_unwritten(write, &error),
        }
        was_sent
    }

    /// How many comments the item had within the hour, where that is as many as it may have; else this one is
    /// counted.
    fn too_many(&self, item: &WorkItemRef) -> Option<u32> {
        let now = self.world().clock.now();
        let mut state = lock(&self.0.write_back.state);
        let times = state.commented.entry(item.key()).or_default();
        while times.front().is_some_and(|at| now.since(*at) >= HOUR) {
            times.pop_front();
        }
        if times.len() >= COMMENTS_PER_HOUR {
            return Some(u32::try_from(times.len()).unwrap_or(u32::MAX));
        }
        times.push_back(now);
        None
    }

    fn tell_written(&self, write: &Write, node_id: Option<String>) {
        match write {
            Write::Comment {
                item, announces, ..
            } => {
                if let Some(node_id) = node_id {
                    // It is known by its mark as well; the id is for one whose text somebody edits (IN-25).
                    let _ = self.0.parts.inbox.add_own_comment(item, &node_id);
                }
                if let Some(tmux_target) = announces {
                    self.emit(LogEvent::SessionAnnounced {
                        work_item: item.clone(),
                        tmux_target: tmux_target.clone(),
                    });
                }
            }
            Write::Reaction {
                item,
                state,
                content,
                target,
                ..
            } => self.emit(LogEvent::ReactionAdded {
                work_item: Some(item.clone()),
                state: *state,
                content: content.clone(),
                target: target.clone(),
            }),
        }
    }

    fn tell_unwritten(&self, write: &Write, error: &WriteError) {
        let item = write.item();
        let host = item.repo().host.to_ascii_lowercase();
        if let WriteError::NoToken(why) = error {
            // Nothing is written to this host at all: that is told once.
            let now = self.world().clock.now();
            let mut state = lock(&self.0.write_back.state);
            let is_known = state.without_token.insert(host.clone(), now).is_some();
            drop(state);
            if !is_known {
                self.tell_tracker_error(operation(write), &host, None, &why.to_string());
            }
            return;
        }
        if let WriteError::Refused(status) = error {
            self.tell_refused_credential(&host, operation(write), *status);
        }
        match write {
            Write::Comment {
                announces: Some(tmux_target),
                ..
            } => {
                if *error == WriteError::NotFound {
                    self.emit(LogEvent::SessionWorkItemMissing {
                        work_item: item.clone(),
                        tmux_target: Some(tmux_target.clone()),
                        error: error.to_string(),
                    });
                }
                self.emit(LogEvent::SessionAnnounceFailed {
                    work_item: item.clone(),
                    tmux_target: tmux_target.clone(),
                    error: error.to_string(),
                });
            }
            Write::Comment {
                announces: None, ..
            } => {
                self.tell_tracker_error(
                    operation(write),
                    &host,
                    error.status(),
                    &error.to_string(),
                );
            }
            Write::Reaction {
                state,
                content,
                target,
                ..
            } => self.emit(LogEvent::ReactionFailed {
                work_item: Some(item.clone()),
                state: *state,
                content: content.clone(),
                target: target.clone(),
                error: error.to_string(),
            }),
        }
    }

    /// Says why a question was not answered, where somebody can do something about it.
    pub(super) fn tell_unanswered(&self, host: &str, operation: &str, error: &WriteError) {
        match error {
            WriteError::Refused(status) => self.tell_refused_credential(host, operation, *status),
            WriteError::Throttled(_)
            | WriteError::Status(_)
            | WriteError::NotReached(_)
            | WriteError::NoAnswer(_)
            | WriteError::Malformed => {
                self.tell_tracker_error(operation, host, error.status(), &error.to_string());
            }
            WriteError::UnknownHost(_) | WriteError::NoToken(_) | WriteError::NotFound => {
                tracing::info!(%host, %operation, %error, "a question was not answered");
            }
        }
    }

    fn tell_refused_credential(&self, host: &str, operation: &str, status: u16) {
        let now = self.world().clock.now();
        let mut state = lock(&self.0.write_back.state);
        let before = state.refused_at.get(host).copied();
        if before.is_none_or(|at| now.since(at) >= HOUR) {
            state.refused_at.insert(host.to_owned(), now);
            drop(state);
            self.emit(LogEvent::TrackerAuthFailed {
                host: host.to_owned(),
                operation: operation.to_owned(),
                status: u32::from(status),
            });
        }
    }

    fn tell_tracker_error(&self, operation: &str, host: &str, status: Option<u16>, error: &str) {
        self.emit(LogEvent::TrackerError {
            host: host.to_owned(),
            operation: operation.to_owned(),
            status: status.map(u32::from),
            error: error.to_owned(),
            will_retry: false,
        });
    }
}

fn operation(write: &Write) -> &'static str {
    match write {
        Write::Comment { .. } => "comment",
        Write::Reaction { .. } => "reaction",
    }
}

/// A reaction that stands already stays as it is; a comment would stand twice.
fn is_harmless_again(write: &Write, error: &WriteError) -> bool {
    let may_pass = match error {
        WriteError::NoAnswer(_) | WriteError::Status(500..=599) => true,
        WriteError::UnknownHost(_)
        | WriteError::NoToken(_)
        | WriteError::Refused(_)
        | WriteError::NotFound
        | WriteError::Throttled(_)
        | WriteError::Status(_)
        | WriteError::NotReached(_)
        | WriteError::Malformed => false,
    };
    may_pass && matches!(write, Write::Reaction { .. })
}

fn try_once(
    client: &Github,
    settings: &Settings,
    write: &Write,
) -> Result<Option<String>, WriteError> {
    match write {
        Write::Comment { item, text, .. } => client
            .comment(settings, item, text)
            .map(|posted| Some(posted.node_id)),
        Write::Reaction {
            item,
            content,
            place,
            ..
        } => client.react(settings, item, place, content).map(|()| None),
    }
}

/// How long to wait before the second try; `None`: it is not made.
fn pause_after(error: &WriteError) -> Option<Duration> {
    match error {
        WriteError::Throttled(wait) => Some(*wait).filter(|wait| *wait <= PATIENCE),
        WriteError::UnknownHost(_)
        | WriteError::NoToken(_)
        | WriteError::Refused(_)
        | WriteError::NotFound
        | WriteError::Status(_)
        | WriteError::NotReached(_)
        | WriteError::NoAnswer(_)
        | WriteError::Malformed => Some(APART),
    }
}
