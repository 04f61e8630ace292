//! One work item: its lock, its facts, its next delivery.

use std::sync::Arc;

use the_loop_core::answers::ItemSeen;
use the_loop_core::config::Settings;
use the_loop_core::control::{Command, ItemState, Keywords, SessionNow, Spoken, start_required};
use the_loop_core::delivery::{Delivery, Effect, State};
use the_loop_core::dispatch::HoldReason;
use the_loop_core::event::RoutingDropReason;
use the_loop_core::ids::{ItemKey, Slug, WorkItemRef};
use the_loop_core::record::{Control, SessionRecord, Ticket, TicketState};
use the_loop_core::route::has_label;
use the_loop_core::session::SessionStatus;

use super::examine::Settled;
use super::{Engine, lock};
use crate::git::Prepared;
use crate::store::inbox::{OutcomeChange, OutcomeRow, Scope};
use crate::store::lock::{ItemLock, LockError, Patience};
use crate::store::registry::RecordFault;

/// How a worker left an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing is left to do.
    Idle,
    /// What is left waits for something.
    Waits,
    /// Another process holds the item.
    Busy,
}

/// What to do after one delivery was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Look at the item again.
    Again,
    /// Nothing more can be done now.
    Wait,
}

/// Everything known of an item, gathered under its lock; judges nothing (DI-8).
#[derive(Clone, Debug)]
pub(super) struct Gathered {
    pub item: WorkItemRef,
    pub key: ItemKey,
    pub slug: Slug,
    pub settings: Arc<Settings>,
    pub record: Option<SessionRecord>,
    pub control: Option<Control>,
    pub parked: bool,
    /// Why nothing may be done with the item (ST-32).
    pub fault: Option<HoldReason>,
    /// The checkout, once it was made or checked in this dispatch.
    pub prepared: Option<Prepared>,
    /// The item as its tracker shows it, where that had to be asked (IN-27).
    pub seen: Option<ItemSeen>,
}

/// An outcome with its delivery, which can be read.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub row: OutcomeRow,
    pub delivery: Delivery,
}

impl std::ops::Deref for Job {
    type Target = OutcomeRow;
    fn deref(&self) -> &OutcomeRow {
        &self.row
    }
}

impl Gathered {
    /// The session record, when it is live.
    pub fn live(&self) -> Option<&SessionRecord> {
        self.record
            .as_ref()
            .filter(|record| record.status.is_live())
    }
}

/// What a delivery wants, read once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    /// A command, or an end: goes before prompts that wait (DI-5).
    Deed,
    /// Words for the agent, or a question whether it should have a session.
    Prompt,
}

impl Engine {
    /// Works one item until nothing can be done for it now.
    pub(super) fn work(&self, item: &WorkItemRef) -> Rest {
        loop {
            if self.is_stopping() {
                return Rest::Waits;
            }
            let held = match self.0.locks.item(item, "dispatch", Patience::none()) {
                Ok(held) => held,
                Err(LockError::Busy(_) | LockError::GaveWay) => return Rest::Busy,
                Err(LockError::NotLocking { .. } | LockError::Io { .. }) => return Rest::Waits,
            };
            if self.0.locks.is_wanted(&held) {
                return Rest::Busy;
            }
            match self.work_once(&held, item) {
                Some(Progress::Again) => {}
                Some(Progress::Wait) => return Rest::Waits,
                None => return Rest::Idle,
            }
        }
    }

    /// Acts on the next delivery of an item; `None` when there is none.
    fn work_once(&self, held: &ItemLock, item: &WorkItemRef) -> Option<Progress> {
        let Ok(rows) = self.0.parts.inbox.open_outcomes(&item.key()) else {
            return Some(Progress::Wait);
        };
        let rows = self.readable(held, item, rows);
        let settings = self.settings();
        let keywords = Keywords::configured(&settings.routing.control);
        let now = self.world().clock.now();
        let may_act = |row: &&Job| match row.state {
            State::Queued => true,
            State::Failed => row.retry_at.is_none_or(|at| at <= now),
            State::Accepted
            | State::Routed
            | State::Sending
            | State::Pasted
            | State::Confirmed
            | State::Settled
            | State::Dropped
            | State::Abandoned
            | State::Uncertain => false,
        };
        let deed = rows
            .iter()
            .filter(|row| wants(row, &keywords, &settings) == Wants::Deed)
            .find(may_act);
        let in_line = rows.iter().find(|row| {
            row.state != State::Uncertain
                && !(row.state == State::Failed && is_deed(&row.delivery, &keywords, &settings))
        });
        let Some(next) = deed.or(in_line) else {
            return (!rows.iter().all(|row| row.state == State::Uncertain))
                .then_some(Progress::Wait);
        };
        let Ok(gathered) = self.gather(held, item, settings) else {
            return Some(Progress::Wait);
        };
        let progress = match next.state {
            State::Sending | State::Pasted => self.examine(held, &gathered, next),
            State::Queued | State::Failed if may_act(&next) => self.act(held, &gathered, next),
            State::Queued
            | State::Failed
            | State::Accepted
            | State::Routed
            | State::Confirmed
            | State::Settled
            | State::Dropped
            | State::Abandoned
            | State::Uncertain => Progress::Wait,
        };
        // A row that did not move would be acted on again at once, for ever: a disk that refuses changes
        // gets a pause instead.
        let stands = || self.0.parts.inbox.outcome(next.seq, &gathered.key);
        let stuck = progress == Progress::Again
            && stands().map_or(true, |row| row.as_ref() == Some(&next.row));
        Some(if stuck { Progress::Wait } else { progress })
    }

    /// The rows whose delivery can be read; the others are given up, so that they block nothing.
    fn readable(&self, held: &ItemLock, item: &WorkItemRef, rows: Vec<OutcomeRow>) -> Vec<Job> {
        let mut jobs = Vec::with_capacity(rows.len());
        for row in rows {
            match row.delivery.clone() {
                Ok(delivery) => jobs.push(Job { row, delivery }),
                Err(_) if row.state == State::Uncertain => {}
                Err(fault) => self.unsendable(held, &item.key(), &row, &fault.to_string()),
            }
        }
        jobs
    }

    fn act(&self, held: &ItemLock, gathered: &Gathered, row: &Job) -> Progress {
        let Some(row) = self.requeued(held, gathered, row) else {
            return Progress::Wait;
        };
        // A spawn that is journaled while nobody holds the item was cut short. It is settled before anything
        // else is decided: a start would otherwise take it for a running session and end without one.
        if gathered
            .live()
            .is_some_and(|record| record.status == SessionStatus::Starting)
        {
            return match self.settle_starting(held, gathered) {
                Settled::Adopted | Settled::TakenBack | Settled::Kept => Progress::Again,
                Settled::Unknown => self.hold(held, gathered, &row, HoldReason::TmuxUnanswered),
            };
        }
        if let Some(reason) = gathered.fault {
            // A wish to end something is obeyed as far as a session can be found (ST-32).
            if !matches!(row.delivery.effect, Effect::Close { .. }) {
                return self.hold(held, gathered, &row, reason);
            }
        }
        let bound = self.bind_pull(held, gathered, &row.delivery);
        let gathered = bound.as_ref().unwrap_or(gathered);
        if self.is_own_push(gathered, &row.delivery) || self.is_own_action(gathered, &row.delivery)
        {
            let reason = RoutingDropReason::OwnAction;
            self.tell_refused(&row.delivery, reason);
            let change = OutcomeChange::to(State::Dropped).reason(reason.as_str());
            self.change(held, &gathered.key, &row, change);
            return Progress::Again;
        }
        let mut gathered = gathered.clone();
        gathered.seen = match self.look_at_item(&gathered, &row) {
            Ok(seen) => seen,
            Err(error) => {
                return self.try_failed(held, &gathered, &row, &error.to_string(), false);
            }
        };
        let gathered = &gathered;
        let keywords = Keywords::configured(&gathered.settings.routing.control);
        match spoken(&row.delivery, &keywords, &gathered.settings) {
            Said::Command(command) => self.obey(held, gathered, &row, command),
            Said::Ambiguous(commands) => self.ambiguous(held, gathered, &row, &commands),
            Said::Nothing => self.admit(held, gathered, &row),
        }
    }

    /// A failed row whose time has come is queued again, so that every try begins in one state.
    fn requeued(&self, held: &ItemLock, gathered: &Gathered, row: &Job) -> Option<Job> {
        if row.state == State::Queued {
            return Some(row.clone());
        }
        self.change(held, &gathered.key, row, OutcomeChange::to(State::Queued))
    }

    pub(super) fn gather(
        &self,
        held: &ItemLock,
        item: &WorkItemRef,
        settings: Arc<Settings>,
    ) -> Result<Gathered, String> {
        let mut fault = None;
        let record = match self.0.registry.get(item) {
            Ok(found) => found,
            Err(problem) => {
                fault = Some(hold_of(&problem));
                self.say_corrupt(&problem);
                None
            }
        };
        let control = match self.0.portable.control(item) {
            Ok(control) => control,
            Err(problem) => {
                fault = Some(hold_of(&problem));
                self.say_corrupt(&problem);
                None
            }
        };
        let (slug, record) = match record {
            Some(found) => (found.slug, Some(found.record)),
            None => (
                self.0
                    .registry
                    .slug_for(held, item)
                    .map_err(|e| e.to_string())?,
                None,
            ),
        };
        let canonical = record
            .as_ref()
            .map_or_else(|| item.clone(), |record| record.item.clone());
        let key = canonical.key();
        let scope = Scope::Item(canonical.clone());
        let parked = self
            .0
            .parts
            .inbox
            .parked(&scope)
            .map_err(|e| e.to_string())?;
        let parked = parked.is_some_and(|parked| parked.is_in_force());
        Ok(Gathered {
            key,
            item: canonical,
            slug,
            settings,
            record,
            control,
            parked,
            fault,
            prepared: None,
            seen: None,
        })
    }

    /// The state of the item as guards and control see it (IN-27, IN-37).
    pub(super) fn item_state(&self, gathered: &Gathered, delivery: &Delivery) -> ItemState {
        let settings = &gathered.settings;
        let ticket = gathered
            .item
            .is_local()
            .then(|| self.0.tickets.get(&gathered.item).ok().flatten())
            .flatten();
        let labels = labels_of(ticket.as_ref(), gathered, delivery);
        let closed = match &ticket {
            Some(ticket) => ticket.state == TicketState::Closed,
            None if speaks_of(gathered, delivery) => delivery.facts.closed.unwrap_or(false),
            None => gathered.seen.as_ref().is_some_and(|seen| seen.closed),
        };
        ItemState {
            session: match gathered.live().map(|record| record.status) {
                None | Some(SessionStatus::Closed) => SessionNow::None,
                Some(SessionStatus::Starting) => SessionNow::Starting,
                Some(SessionStatus::Active) => SessionNow::Active,
                Some(SessionStatus::Paused) => SessionNow::Paused,
            },
            parked: gathered.parked,
            closed,
            recorded: gathered
                .control
                .as_ref()
                .map(|control| Command::from(control.command)),
            policy: settings.routing.spawn_on_unmatched,
            labeled: has_label(&labels, &settings.routing.auto_execute_label),
            start_required: start_required(&settings.routing.control),
        }
    }

    /// The labels of the item: its ticket's own where that is kept here, else those that came with the
    /// delivery.
    pub(super) fn labels(&self, gathered: &Gathered, delivery: &Delivery) -> Vec<String> {
        let ticket = gathered
            .item
            .is_local()
            .then(|| self.0.tickets.get(&gathered.item).ok().flatten())
            .flatten();
        labels_of(ticket.as_ref(), gathered, delivery)
    }

    /// Works one item now, waiting for its lock: for a verb where no daemon holds the root (DI-6).
    pub fn work_now(&self, item: &WorkItemRef) -> Rest {
        self.intake();
        let rest = self.work(item);
        self.finish_writes();
        self.flush_index();
        rest
    }

    /// Forgets what a look at an item found: a verb changed it.
    pub fn touched(&self, item: &WorkItemRef) {
        lock(&self.0.resting).remove(&item.key());
        self.wake();
    }
}

fn labels_of(ticket: Option<&Ticket>, gathered: &Gathered, delivery: &Delivery) -> Vec<String> {
    if let Some(ticket) = ticket {
        return ticket.labels.clone();
    }
    let shown = delivery.facts.labels.as_ref();
    let shown = shown.filter(|_| speaks_of(gathered, delivery));
    let seen = gathered.seen.as_ref().map(|seen| &seen.labels);
    shown.or(seen).cloned().unwrap_or_default()
}

/// Is what the delivery says of a ticket said of this item? A pull request's labels are not those of the
/// item it belongs to (IN-27).
fn speaks_of(gathered: &Gathered, delivery: &Delivery) -> bool {
    delivery.item.key() == gathered.key
}

/// What a delivery says to us.
enum Said {
    Command(Command),
    Ambiguous(Vec<Command>),
    Nothing,
}

fn spoken(delivery: &Delivery, keywords: &Keywords, settings: &Settings) -> Said {
    match &delivery.effect {
        Effect::Start { .. } => Said::Command(Command::Start),
        Effect::Text(text) if settings.routing.control.enabled => match keywords.read(&text.body) {
            Spoken::Text => Said::Nothing,
            Spoken::Command(command) => Said::Command(command),
            Spoken::Ambiguous(commands) => Said::Ambiguous(commands),
        },
        Effect::Text(_)
        | Effect::Presence
        | Effect::Opened
        | Effect::Check(_)
        | Effect::Notice { .. }
        | Effect::Close { .. } => Said::Nothing,
    }
}

fn wants(row: &Job, keywords: &Keywords, settings: &Settings) -> Wants {
    if is_deed(&row.delivery, keywords, settings) {
        Wants::Deed
    } else {
        Wants::Prompt
    }
}

/// Are its words a command, or several?
pub(super) fn is_command(delivery: &Delivery, settings: &Settings) -> bool {
    let keywords = Keywords::configured(&settings.routing.control);
    match spoken(delivery, &keywords, settings) {
        Said::Command(_) | Said::Ambiguous(_) => true,
        Said::Nothing => false,
    }
}

/// A command, or an end: it goes before prompts that wait (DI-5).
pub fn is_deed(delivery: &Delivery, keywords: &Keywords, settings: &Settings) -> bool {
    if matches!(delivery.effect, Effect::Close { .. }) {
        return true;
    }
    match spoken(delivery, keywords, settings) {
        // These two are words for the agent (IN-37).
        Said::Command(Command::Execute | Command::Cleanup) | Said::Nothing => false,
        Said::Command(_) | Said::Ambiguous(_) => true,
    }
}

fn hold_of(fault: &RecordFault) -> HoldReason {
    match fault {
        RecordFault::Newer { .. } => HoldReason::RecordNewer,
        RecordFault::Corrupt { .. }
        | RecordFault::Foreign { .. }
        | RecordFault::Unreadable { .. } => HoldReason::RecordCorrupt,
    }
}
