//! What a delivery does not show is asked of the tracker before it is routed (IN-18, IN-19, IN-33).
//!
//! Nobody waits for it but the delivery, and what comes after it for the same item: one thread for each host
//! asks, the answers are written to the delivery's row, and the router goes on with what is there. A host
//! that does not answer is left alone for a while.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use the_loop_core::answers::{Answers, FailedJob, ItemSeen};
use the_loop_core::config::{Settings, SpawnOnUnmatched};
use the_loop_core::control::{Command, Keywords, Spoken};
use the_loop_core::delivery::{Delivery, Effect};
use the_loop_core::ids::{ItemKey, WorkItemRef};
use the_loop_core::route::{self, Owner};
use the_loop_core::time::Timestamp;

use super::item::{Gathered, Job};
use super::{Engine, lock};
use crate::store::inbox::{DeliveryRow, Seq};
use crate::store::registry::RecordFault;
use crate::tracker::github::client::{Github, WriteError};
use crate::tracker::github::credential::{self, NoToken};

/// How long a host that gave no answer is not asked.
const WITHOUT_ANSWER: Duration = Duration::from_mins(1);
/// How long a host is not asked for which there was no credential.
const WITHOUT_TOKEN: Duration = Duration::from_mins(5);
/// Items of which it is remembered whether they are there (IN-19), and answers that deliveries wait with.
const KNOWN_MAX: usize = 256;
/// How long that is remembered.
const KNOWN_FOR: Duration = Duration::from_hours(1);

/// What is being asked, and what was learnt.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Deliveries that are being asked about.
    in_hand: HashSet<Seq>,
    /// Hosts that are being asked.
    busy: HashSet<String>,
    /// Deliveries about which asking ended in a defect: they go on without answers.
    given_up: HashSet<Seq>,
    /// Hosts that are left alone, until when and why.
    resting: HashMap<String, (Timestamp, WriteError)>,
    known: VecDeque<(ItemKey, bool, Timestamp)>,
    /// Items as deliveries to them found them.
    seen: VecDeque<((Seq, ItemKey), Option<ItemSeen>)>,
}

/// How it stands with the questions about a delivery.
pub(super) enum Asked {
    /// It can be routed as it is.
    Enough,
    /// It can be routed so.
    Answered(Box<Delivery>),
    /// It waits for answers.
    Waits,
}

/// Ends a lookup however it ends.
struct InHand<'a> {
    engine: &'a Engine,
    seq: Seq,
    host: String,
    is_over: bool,
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.engine.0.lookups.state);
        state.in_hand.remove(&self.seq);
        state.busy.remove(&self.host);
        if !self.is_over {
            state.given_up.insert(self.seq);
        }
        drop(state);
        self.engine.wake();
    }
}

impl Engine {
    /// Sees to it that what has to be asked about a delivery is asked, once.
    pub(super) fn ask_first(
        &self,
        row: &DeliveryRow,
        delivery: &Delivery,
        settings: &Settings,
    ) -> Result<Asked, RecordFault> {
        if delivery.asked.is_some() || delivery.item.is_local() || !may_lack(delivery) {
            return Ok(Asked::Enough);
        }
        if lock(&self.0.lookups.state).in_hand.contains(&row.seq) {
            return Ok(Asked::Waits);
        }
        let owners = self.owners()?;
        let (has_questions, job) = self.judged_by(delivery, settings, &owners, |facts| {
            let pulls = route::unknown_pulls(facts);
            let is_any = !pulls.is_empty() || !route::doubtful_items(facts).is_empty();
            (is_any, route::job_wanted(facts))
        });
        if (!has_questions && job.is_none())
            || lock(&self.0.lookups.state).given_up.remove(&row.seq)
        {
            return Ok(Asked::Enough);
        }
        let host = delivery.item.repo().host.to_ascii_lowercase();
        if let Some(why) = self.cannot_ask(settings, &host) {
            let job = job.map(|_| FailedJob::unavailable(why.in_words()));
            return Ok(match job {
                None => Asked::Enough,
                Some(job) => self.answered_so(row, delivery, job),
            });
        }
        Ok(self.begin_lookup(row.seq, delivery, host))
    }

    /// Why nothing can be asked of a host now.
    fn cannot_ask(&self, settings: &Settings, host: &str) -> Option<WriteError> {
        if !credential::is_possible(self.world(), settings, host) {
            return Some(WriteError::NoToken(NoToken::NotSet(String::new())));
        }
        let now = self.world().clock.now();
        let resting = lock(&self.0.lookups.state).resting.get(host).cloned();
        let (_, why) = resting.filter(|(until, _)| *until > now)?;
        Some(why)
    }

    fn answered_so(&self, row: &DeliveryRow, delivery: &Delivery, job: FailedJob) -> Asked {
        let mut answered = delivery.clone();
        answered.asked = Some(Box::new(Answers {
            job: Some(job),
            ..Answers::default()
        }));
        match self.0.parts.inbox.answered(row.seq, &answered) {
            Ok(()) => Asked::Answered(Box::new(answered)),
            Err(_) => Asked::Enough,
        }
    }

    fn begin_lookup(&self, seq: Seq, delivery: &Delivery, host: String) -> Asked {
        let mut state = lock(&self.0.lookups.state);
        if state.busy.contains(&host) {
            return Asked::Waits;
        }
        let (engine, delivery, of) = (self.clone(), delivery.clone(), host.clone());
        let thread = std::thread::Builder::new().name("lookup".to_owned());
        let started = thread.spawn(move || {
            let mut in_hand = InHand {
                engine: &engine,
                seq,
                host: of,
                is_over: false,
            };
            let answered = engine.look_up(delivery);
            // What cannot be kept is asked again.
            let _ = engine.0.parts.inbox.answered(seq, &answered);
            in_hand.is_over = true;
        });
        match started {
            Ok(_) => {
                state.in_hand.insert(seq);
                state.busy.insert(host);
                Asked::Waits
            }
            Err(error) => {
                tracing::warn!(%error, "nothing can be asked of a tracker");
                Asked::Enough
            }
        }
    }

    /// Asks everything there is to ask about a delivery.
    fn look_up(&self, mut delivery: Delivery) -> Delivery {
        let settings = self.settings();
        let owners: Vec<Owner> = self.owners().unwrap_or_default();
        let mut answers = Answers::default();
        let pulls = self.judged_by(&delivery, &settings, &owners, route::unknown_pulls);
        for pull in &pulls {
            let seen = self.asked_of(&settings, pull, "pull request", |client| {
                client.pull(&settings, pull)
            });
            answers.pulls.extend(seen.ok());
        }
        delivery.asked = Some(Box::new(answers.clone()));
        let doubtful = self.judged_by(&delivery, &settings, &owners, route::doubtful_items);
        for item in doubtful {
            if self.is_there(&settings, &item) == Some(false) {
                answers.missing.push(item);
            }
        }
        if let Some(run) = self.judged_by(&delivery, &settings, &owners, route::job_wanted) {
            let item = delivery.item.clone();
            let job = self.asked_of(&settings, &item, "log", |client| {
                client.failed_job(&settings, &item, run)
            });
            answers.job = Some(job.unwrap_or_else(|e| FailedJob::unavailable(e.in_words())));
        }
        delivery.asked = Some(Box::new(answers));
        delivery
    }

    /// Is an item there? `None`: nobody could say (IN-19).
    fn is_there(&self, settings: &Settings, item: &WorkItemRef) -> Option<bool> {
        let (key, now) = (item.key(), self.world().clock.now());
        {
            let mut state = lock(&self.0.lookups.state);
            state.known.retain(|(_, _, at)| now.since(*at) < KNOWN_FOR);
            let known = state.known.iter().find(|(known, ..)| *known == key);
            if let Some((_, is_there, _)) = known {
                return Some(*is_there);
            }
        }
        let answer = self.asked_of(settings, item, "issue", |client| {
            client.item(settings, item)
        });
        let is_there = match answer {
            Ok(_) => true,
            Err(WriteError::NotFound) => false,
            Err(_) => return None,
        };
        let mut state = lock(&self.0.lookups.state);
        if state.known.len() == KNOWN_MAX {
            state.known.pop_front();
        }
        state.known.push_back((key, is_there, now));
        Some(is_there)
    }

    /// The item itself, where it may get a session and the delivery does not show its labels, as when a pull
    /// request names it (IN-27). `None`: what the delivery shows is enough, or there is nothing to see, which
    /// is no label. An error is a cause outside, and passes.
    pub(super) fn look_at_item(
        &self,
        gathered: &Gathered,
        job: &Job,
    ) -> Result<Option<ItemSeen>, WriteError> {
        let (item, settings, delivery) = (&gathered.item, &gathered.settings, &job.delivery);
        let shows_labels = delivery.item.key() == gathered.key && delivery.facts.labels.is_some();
        let asks_for_label = match settings.routing.spawn_on_unmatched {
            SpawnOnUnmatched::Labeled => true,
            SpawnOnUnmatched::Never | SpawnOnUnmatched::Always => false,
        };
        if item.is_local()
            || gathered.live().is_some()
            || shows_labels
            || !asks_for_label
            || !may_begin(delivery, settings)
        {
            return Ok(None);
        }
        // A delivery that waits for room is looked at at every tick; its item is not.
        let of = (job.seq, gathered.key.clone());
        let known = |state: &State| state.seen.iter().find(|(seen, _)| *seen == of).cloned();
        if let Some((_, seen)) = known(&lock(&self.0.lookups.state)) {
            return Ok(seen);
        }
        let answer = self.asked_of(settings, item, "issue", |client| {
            client.item(settings, item)
        });
        let seen = match answer {
            Ok(seen) => Some(seen),
            Err(error) if error.is_passing() => return Err(error),
            Err(_) => None,
        };
        let mut state = lock(&self.0.lookups.state);
        if state.seen.len() == KNOWN_MAX {
            state.seen.pop_front();
        }
        state.seen.push_back((of, seen.clone()));
        Ok(seen)
    }

    /// Asks a host something, unless it rests; what went wrong is told, and may let it rest.
    fn asked_of<T>(
        &self,
        settings: &Settings,
        item: &WorkItemRef,
        operation: &str,
        question: impl FnOnce(&Github) -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        let host = item.repo().host.to_ascii_lowercase();
        if let Some(why) = self.cannot_ask(settings, &host) {
            return Err(why);
        }
        let answer = question(&self.0.parts.github);
        if let Err(error) = &answer {
            if let Some(rest) = rest_after(error) {
                let until = self.world().clock.now().plus(rest);
                let mut state = lock(&self.0.lookups.state);
                state.resting.insert(host.clone(), (until, error.clone()));
                drop(state);
            }
            self.tell_unanswered(&host, operation, error);
        }
        answer
    }
}

/// May it begin a session? A verb needs no label, and of the commands only those that arm ask for one.
fn may_begin(delivery: &Delivery, settings: &Settings) -> bool {
    match &delivery.effect {
        Effect::Text(text) if settings.routing.control.enabled => {
            match Keywords::configured(&settings.routing.control).read(&text.body) {
                Spoken::Text => true,
                Spoken::Command(command) => command.arms() || command == Command::Execute,
                Spoken::Ambiguous(_) => false,
            }
        }
        Effect::Text(_) | Effect::Presence | Effect::Opened => true,
        Effect::Notice { .. } | Effect::Check(_) | Effect::Close { .. } | Effect::Start { .. } => {
            false
        }
    }
}

/// A ticket shows all there is to know; a pull request or a check may not.
fn may_lack(delivery: &Delivery) -> bool {
    let is_pull = delivery.pull.is_some() || delivery.facts.is_pull_request;
    match delivery.effect {
        Effect::Check(_) => true,
        Effect::Text(_) | Effect::Presence | Effect::Opened | Effect::Notice { .. } => is_pull,
        Effect::Close { .. } | Effect::Start { .. } => false,
    }
}

/// How long to leave a host alone after this.
fn rest_after(error: &WriteError) -> Option<Duration> {
    match error {
        WriteError::Throttled(wait) => Some(*wait),
        WriteError::NoToken(_) => Some(WITHOUT_TOKEN),
        WriteError::NotReached(_) | WriteError::NoAnswer(_) => Some(WITHOUT_ANSWER),
        WriteError::Status(status) if *status >= 500 => Some(WITHOUT_ANSWER),
        WriteError::UnknownHost(_)
        | WriteError::Refused(_)
        | WriteError::NotFound
        | WriteError::Status(_)
        | WriteError::Malformed => None,
    }
}
