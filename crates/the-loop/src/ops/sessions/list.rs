//! `sessions list` (SE-29).

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use the_loop_core::ids::{ItemKey, Slug, WorkItemRef};
use the_loop_core::record::{Control, SessionRecord};
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::view::{Panes, View};
use crate::ops::desk::{Desk, inbox_error};
use crate::ops::error::OpError;
use crate::store::files::RecordFault;
use crate::store::inbox::{ListFilter, States};

/// The status of an item that waits for a place and has no session yet.
pub const WAITING_CAPACITY: &str = "waiting-capacity";

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
    /// Since when it waits for a place.
    pub waits_since: Option<Timestamp>,
}

/// The list and the records that cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Sorted by ref; pull requests follow their item.
    pub lines: Vec<Line>,
    /// One warning each.
    pub problems: Vec<RecordFault>,
}

impl Line {
    /// Word of the Status column.
    pub fn status(&self) -> &'static str {
        match &self.record {
            Some(record) => record.status.as_str(),
            None => WAITING_CAPACITY,
        }
    }

    /// `start (comment)`, as the Control column has it.
    pub fn control_words(&self) -> Option<String> {
        let control = self.control.as_ref()?;
        let command = control.command.as_str();
        Some(format!("{command} ({})", control.source.as_str()))
    }

    /// The JSON of SE-29: `ref`, every field of the record, and what was seen.
    pub fn json(&self) -> Value {
        let mut value = json!({ "ref": self.item });
        let fields = self.record.as_ref().map(SessionRecord::to_map);
        for (name, field) in fields.unwrap_or_default() {
            value[name.as_str()] = field;
        }
        if self.record.is_none() {
            value["status"] = json!(WAITING_CAPACITY);
        }
        value["control"] = json!(
            self.control
                .as_ref()
                .map(|c| c.to_section(&self.item, None))
        );
        value["state"] = json!(self.view.state.as_str());
        value["stateSince"] = json!(self.view.since.or(self.waits_since));
        value["attach"] = json!(self.attach);
        value["confirms"] = json!(self.confirms);
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
    let mut all = Sessions {
        lines: Vec::new(),
        problems: listing.problems,
    };
    let mut known = Vec::new();
    for found in listing.records {
        let mut line = |record: &SessionRecord, slug: &Slug, indented: bool| {
            let view = if query.probe {
                panes.view(desk, slug, record)
            } else {
                View::UNKNOWN
            };
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
                waits_since: None,
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
    for (item, since) in waiting_for_capacity(desk)? {
        if known.contains(&item.key()) {
            continue;
        }
        all.lines.push(Line {
            control: control(&item),
            item,
            indented: false,
            record: None,
            view: View::UNKNOWN,
            pids: Vec::new(),
            attach: None,
            confirms: None,
            waits_since: Some(since),
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

/// Items whose spawn waits for a place, and since when.
pub fn waiting_for_capacity(desk: &Desk) -> Result<Vec<(WorkItemRef, Timestamp)>, OpError> {
    let Some(inbox) = desk.inbox_to_read()? else {
        return Ok(Vec::new());
    };
    let filter = ListFilter {
        states: States::These(vec![the_loop_core::delivery::State::Queued]),
        ..ListFilter::default()
    };
    let mut found: Vec<(WorkItemRef, Timestamp)> = Vec::new();
    for row in inbox.list(&filter).map_err(|e| inbox_error(&e))? {
        let item = row.item.and_then(|item| item.parse::<WorkItemRef>().ok());
        let Some(item) = item.filter(|_| row.reason.as_deref() == Some(WAITING_CAPACITY)) else {
            continue;
        };
        if !found.iter().any(|(known, _)| known.key() == item.key()) {
            found.push((item, row.updated_at));
        }
    }
    Ok(found)
}
