//! `sessions list` (SE-29).

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use the_loop_core::confirm::{AgentState, ObservationSource};
use the_loop_core::dispatch::HoldReason;
use the_loop_core::ids::{ItemKey, Slug, WorkItemRef};
use the_loop_core::record::{Control, SessionRecord};
use the_loop_core::session::SessionStatus;
use the_loop_core::time::{Timestamp, age};
use the_loop_core::tokens::Usage;

use super::view::{Panes, View};
use crate::ops::desk::{Desk, inbox_error};
use crate::ops::error::OpError;
use crate::store::files::RecordFault;
use crate::store::inbox::{Attention, InboxReader, ListFilter, States};

/// The status of an item that waits for a place and has no session yet.
pub const WAITING_CAPACITY: &str = HoldReason::WaitingCapacity.as_str();
/// What an item without a session can wait for: a place, memory, disk (DI-51).
const WAITS_FOR: [HoldReason; 3] = [
    HoldReason::WaitingCapacity,
    HoldReason::LowMemory,
    HoldReason::LowDisk,
];

/// Which sessions to list; empty lists are no filter.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Words of statuses.
    pub statuses: Vec<String>,
    /// Words of states.
    pub states: Vec<String>,
    /// Ask tmux and look at the agents.
    pub probe: bool,
}

/// A session, or an item that waits for a place.
#[derive(Clone, Debug)]
pub struct Line {
    /// The item, or the pull request with a session of its own.
    pub item: WorkItemRef,
    /// It belongs to the item in the line above.
    pub indented: bool,
    /// Its record; `None` for one that waits for a place.
    pub record: Option<SessionRecord>,
    /// The last command given for it.
    pub control: Option<Control>,
    /// What is going on.
    pub view: View,
    /// Pids of its live panes, where tmux was asked.
    pub pids: Vec<i32>,
    /// The command that attaches; `None` without a target.
    pub attach: Option<String>,
    /// How its harness shows that it took a delivery; `None` for one that waits for a place.
    pub confirms: Option<&'static str>,
    /// What its harness cannot do, one sentence each.
    pub cannot: Vec<String>,
    /// What a new session for it waits for, and since when.
    pub waits: Option<(HoldReason, Timestamp)>,
    /// Since when its agent has worked without a sign of life, when people were told of it (DI-32).
    pub stalled_since: Option<Timestamp>,
    /// Tokens it used, over all days and today (DI-37).
    pub tokens: (Usage, Usage),
}

/// The list and the records that cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Sorted by ref; pull requests follow their item.
    pub lines: Vec<Line>,
    /// One warning each.
    pub problems: Vec<RecordFault>,
    /// Why the inbox tells nothing: who waits for room and what was used is not known then.
    pub inbox_fault: Option<String>,
}

/// What the inbox tells of sessions.
#[derive(Debug, Default)]
struct Told {
    waits: Vec<Waits>,
    attention: HashMap<String, Attention>,
    tokens: HashMap<String, (Usage, Usage)>,
}

/// An item whose new session waits for room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Which.
    pub item: WorkItemRef,
    /// For what.
    pub reason: HoldReason,
    /// Since when.
    pub since: Timestamp,
}

/// The JSON of a count of tokens.
pub fn tokens_json(usage: Usage) -> Value {
    json!({
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "total": usage.total(),
    })
}

impl Line {
    /// Word of the Status column.
    pub fn status(&self) -> &'static str {
        match (&self.record, self.waits) {
            (Some(record), _) => record.status.as_str(),
            (None, Some((reason, _))) => reason.as_str(),
            (None, None) => WAITING_CAPACITY,
        }
    }

    /// `working (hook, 3m)`, as the State column has it: what, who says so, for how long (DI-31).
    pub fn state_words(&self, now: Timestamp) -> String {
        let source = self.view.source.map(|source| source.as_str().to_owned());
        let age = self.view.since.map(|since| age(now.since(since)));
        let stalled = self.stalled_since.map(|_| "stalled".to_owned());
        let said: Vec<String> = [stalled, source, age].into_iter().flatten().collect();
        if said.is_empty() {
            self.view.state.to_string()
        } else {
            format!("{} ({})", self.view.state, said.join(", "))
        }
    }

    /// `start (comment)`, as the Control column has it.
    pub fn control_words(&self) -> Option<String> {
        let control = self.control.as_ref()?;
        let command = control.command.as_str();
        Some(format!("{command} ({})", control.source.as_str()))
    }

    /// The JSON of SE-29: `ref`, every field of the record, and what was seen.
    pub fn json(&self, now: Timestamp) -> Value {
        let mut value = json!({ "ref": self.item });
        let fields = self.record.as_ref().map(SessionRecord::to_map);
        for (name, field) in fields.unwrap_or_default() {
            value[name.as_str()] = field;
        }
        if self.record.is_none() {
            value["status"] = json!(self.status());
        }
        value["control"] = json!(
            self.control
                .as_ref()
                .map(|c| c.to_section(&self.item, None))
        );
        value["state"] = json!(self.view.state.as_str());
        let since = self.view.since.or(self.waits.map(|(_, since)| since));
        value["waitingKind"] = json!(match self.view.state {
            AgentState::Waiting(kind) => Some(kind.as_str()),
            AgentState::Starting
            | AgentState::Ready
            | AgentState::Working
            | AgentState::Idle
            | AgentState::Exited
            | AgentState::Unknown => None,
        });
        value["stateSince"] = json!(since);
        value["stateAgeSeconds"] = json!(since.map(|since| now.since(since).as_secs()));
        value["stateSource"] = json!(self.view.source.map(ObservationSource::as_str));
        value["stalledSince"] = json!(self.stalled_since);
        value["tokens"] = tokens_json(self.tokens.0);
        value["tokens"]["today"] = tokens_json(self.tokens.1);
        value["attach"] = json!(self.attach);
        value["confirms"] = json!(self.confirms);
        value["cannot"] = json!(self.cannot);
        value
    }
}

/// Longest wait for tmux before the list goes without it.
const TMUX_WITHIN: Duration = Duration::from_secs(5);

/// What this machine hosts.
pub fn list(desk: &Desk, query: &SessionQuery) -> Result<Sessions, OpError> {
    let listing = desk.registry().list();
    let listing = listing.map_err(|e| OpError::failed("cannot list the session records", &e))?;
    // Read once: a look-up reads the whole directory, and there may be thousands (SE-16).
    let portable = desk.portable().list();
    let portable = portable.map_err(|e| OpError::failed("cannot list the portable records", &e))?;
    let wishes: HashMap<ItemKey, Control> = portable
        .records
        .into_iter()
        .filter_map(|entry| Some((entry.record.item.key(), entry.record.control()?)))
        .collect();
    let control = |item: &WorkItemRef| wishes.get(&item.key()).cloned();
    let mut panes = Panes::new(&desk.with_tmux_within(TMUX_WITHIN));
    let (told, inbox_fault) = match told(desk) {
        Ok(told) => (told, None),
        Err(fault) => (Told::default(), Some(fault.message)),
    };
    let mut all = Sessions {
        lines: Vec::new(),
        problems: listing.problems,
        inbox_fault,
    };
    let mut known = Vec::new();
    for found in listing.records {
        let mut line = |record: &SessionRecord, slug: &Slug, indented: bool| {
            let mut view = if query.probe {
                panes.view(desk, slug, record)
            } else {
                View::UNKNOWN
            };
            let item_key = record.item.key();
            let attention = told.attention.get(item_key.as_str());
            let attention = attention.copied().unwrap_or_default();
            // What shows on the screen alone has no time of its own: since people were told, it is known.
            if let (AgentState::Waiting(kind), Some((known, since))) = (view.state, attention.wait)
                && kind == known
            {
                view.since = view.since.map(|seen| seen.min(since)).or(Some(since));
            }
            let pids = if query.probe {
                panes.pids(record)
            } else {
                Vec::new()
            };
            let read_only = matches!(
                record.status,
                SessionStatus::Starting | SessionStatus::Closed
            );
            let server = panes.server(record);
            Line {
                item: record.item.clone(),
                indented,
                control: control(&record.item),
                view,
                pids,
                attach: record
                    .target()
                    .map(|target| server.attach_command(&target, read_only)),
                confirms: Some(panes.confirms(&record.harness)),
                cannot: panes.cannot(&record.harness),
                waits: None,
                stalled_since: attention
                    .stalled
                    .filter(|_| view.state == AgentState::Working)
                    .map(|(since, _)| since),
                tokens: told.tokens_of(&item_key),
                record: Some(record.clone()),
            }
        };
        let own = line(&found.record, &found.slug, false);
        let endpoints: Vec<Line> = found
            .record
            .endpoints()
            .map(|endpoint| line(endpoint, &endpoint.item.slug(), true))
            .collect();
        if found.record.status.is_live() {
            known.push(found.record.item.key());
        }
        all.lines.push(own);
        all.lines.extend(endpoints);
    }
    for waits in &told.waits {
        if known.contains(&waits.item.key()) {
            continue;
        }
        all.lines.push(Line {
            control: control(&waits.item),
            item: waits.item.clone(),
            indented: false,
            record: None,
            view: View::UNKNOWN,
            pids: Vec::new(),
            attach: None,
            confirms: None,
            cannot: Vec::new(),
            waits: Some((waits.reason, waits.since)),
            stalled_since: None,
            tokens: told.tokens_of(&waits.item.key()),
        });
    }
    all.lines = grouped(all.lines);
    all.lines.retain(|line| query.wants(line));
    Ok(all)
}

impl SessionQuery {
    fn wants(&self, line: &Line) -> bool {
        let status = line.status();
        let state = line.view.state.as_str();
        let among =
            |words: &[String], word: &str| words.is_empty() || words.iter().any(|w| w == word);
        among(&self.statuses, status) && among(&self.states, state)
    }
}

/// Sorted by ref, pull requests behind their item.
fn grouped(lines: Vec<Line>) -> Vec<Line> {
    let mut groups: Vec<Vec<Line>> = Vec::new();
    for line in lines {
        match groups.last_mut() {
            Some(group) if line.indented => group.push(line),
            Some(_) | None => groups.push(vec![line]),
        }
    }
    let place = |line: &Line| {
        let item = &line.item;
        (item.provider().to_owned(), item.repo().key(), item.number())
    };
    groups.sort_by_key(|group| group.first().map(place));
    groups.into_iter().flatten().collect()
}

impl Told {
    fn tokens_of(&self, key: &ItemKey) -> (Usage, Usage) {
        self.tokens.get(key.as_str()).copied().unwrap_or_default()
    }
}

fn told(desk: &Desk) -> Result<Told, OpError> {
    let Some(inbox) = desk.inbox_to_read()? else {
        return Ok(Told::default());
    };
    let attention = inbox.all_attention().map_err(|e| inbox_error(&e))?;
    let today = desk.world.clock.now().day();
    let tokens = inbox.usage_by_item(&today).map_err(|e| inbox_error(&e))?;
    Ok(Told {
        waits: waiting_for_room(&inbox)?,
        attention: attention.into_iter().collect(),
        tokens: tokens
            .into_iter()
            .map(|(key, all, today)| (key, (all, today)))
            .collect(),
    })
}

/// Items whose new session waits for a place, memory or disk, each once.
fn waiting_for_room(inbox: &InboxReader) -> Result<Vec<Waits>, OpError> {
    let filter = ListFilter {
        states: States::These(vec![the_loop_core::delivery::State::Queued]),
        ..ListFilter::default()
    };
    let mut found: Vec<Waits> = Vec::new();
    for row in inbox.list(&filter).map_err(|e| inbox_error(&e))? {
        let item = row.item.and_then(|item| item.parse::<WorkItemRef>().ok());
        let waits_for = |reason: &HoldReason| row.reason.as_deref() == Some(reason.as_str());
        let (Some(item), Some(reason)) = (item, WAITS_FOR.into_iter().find(waits_for)) else {
            continue;
        };
        if !found.iter().any(|known| known.item.key() == item.key()) {
            found.push(Waits {
                item,
                reason,
                since: row.updated_at,
            });
        }
    }
    Ok(found)
}
