//! The session record: this machine's handle to one harness conversation (state page, section 7).

use serde_json::{Value, json};

use super::document::{self, Bad, Fault, Fields, Map, set, set_or_drop};
use crate::ids::{HarnessSessionId, ItemKey, TmuxTarget, WorkItemRef};
use crate::limits::RECENT_DELIVERIES_MAX;
use crate::session::SessionStatus;
use crate::time::Timestamp;

/// One session as the registry keeps it, of an item or of one of its pull requests.
#[derive(Clone, Debug)]
pub struct SessionRecord {
    /// The item the session is bound to.
    pub item: WorkItemRef,
    /// Name of the adapter.
    pub harness: String,
    /// Conversation id as recorded; empty until known. Read it with [`SessionRecord::conversation`].
    pub harness_session_id: String,
    /// Absolute directory where the conversation lives, which resuming needs; empty when unknown.
    pub cwd: String,
    /// Where the session stands.
    pub status: SessionStatus,
    /// When the session was first made; kept through respawns (ST-43).
    pub created_at: Timestamp,
    /// When something last happened to it.
    pub last_event_at: Option<Timestamp>,
    /// When its agent was ended because nobody had needed it for long; absent once it is back.
    pub idle_stopped_at: Option<Timestamp>,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
    /// tmux session name as recorded; empty until spawned. Read it with [`SessionRecord::target`].
    pub tmux_target: String,
    /// tmux server it was started on; absent means the configured one.
    pub tmux_socket: Option<String>,
    /// Ids of the last deliveries it took, oldest first, at most 50.
    pub recent_deliveries: Vec<String>,
    /// Page of the item in a browser.
    pub url: Option<String>,
    /// Where its files are.
    pub workspace: Option<WorkspaceRecord>,
    /// What is being tried; only while `starting`.
    pub spawn: Option<SpawnIntent>,
    /// When the process in the pane was launched: what is older is none of its doing (DI-33).
    pub launched_at: Option<Timestamp>,
    /// Process id of the pane's leader (DI-13).
    pub pid: Option<i32>,
    /// When that process started, in clock ticks since boot, so that a reused id is noticed.
    pub pid_start_time: Option<u64>,
    /// Sessions and links of the item's pull requests, in the order of the file.
    pub pull_requests: Vec<Endpoint>,
    document: Map,
}

/// A pull request inside its item's record.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// A record of its own, one level deep.
    Session(Box<SessionRecord>),
    /// An entry that cannot be read: skipped and kept.
    Unreadable(Value),
}

/// Where a session's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceRecord {
    /// How the checkout was made.
    pub strategy: WorkspaceStrategy,
    /// Absolute path.
    pub path: String,
    /// Branch it was made on; absent when detached or without a checkout.
    pub branch: Option<String>,
}

/// How a checkout is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkspaceStrategy {
    /// A worktree of the shared clone.
    Worktree,
    /// A clone of its own.
    Clone,
    /// No checkout.
    None,
}

impl WorkspaceStrategy {
    /// The word in the record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worktree => "worktree",
            Self::Clone => "clone",
            Self::None => "none",
        }
    }
    /// Reads the record's word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Worktree, Self::Clone, Self::None]
            .into_iter()
            .find(|s| s.as_str() == word)
    }
}

/// What a `starting` session is trying (ST-42).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnIntent {
    /// When the attempt began.
    pub at: Timestamp,
    /// Delivery that caused it.
    pub delivery_id: Option<String>,
    /// Does it resume a conversation?
    pub resume: bool,
    /// Status before; `None` when there was no record.
    pub previous: Option<SessionStatus>,
}

impl SessionRecord {
    /// A new record with nothing known yet but this.
    pub fn new(
        item: &WorkItemRef,
        harness: &str,
        cwd: &str,
        status: SessionStatus,
        created_at: Timestamp,
    ) -> Self {
        Self {
            item: item.clone(),
            harness: harness.to_owned(),
            harness_session_id: String::new(),
            cwd: cwd.to_owned(),
            status,
            created_at,
            last_event_at: None,
            idle_stopped_at: None,
            closed_at: None,
            tmux_target: String::new(),
            tmux_socket: None,
            recent_deliveries: Vec::new(),
            url: item.url(),
            workspace: None,
            spawn: None,
            launched_at: None,
            pid: None,
            pid_start_time: None,
            pull_requests: Vec::new(),
            document: Map::new(),
        }
    }

    /// Reads a record. Errors say whether it is corrupt, of a newer release, or a stranger's.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let document = document::open(bytes, super::SESSION_SCHEMA)?;
        Self::read(&Fields::root(&document), true).map_err(|bad| document::at_place(bytes, bad))
    }

    fn read(fields: &Fields<'_>, with_pull_requests: bool) -> Result<Self, Bad> {
        let work_item = fields.must_object("workItem")?;
        let item = work_item.item("ref")?;
        for part in ["provider", "owner", "repo"] {
            work_item.text(part)?;
        }
        work_item.integer("number")?;
        let cwd = fields.owned("cwd")?.unwrap_or_default();
        if !cwd.is_empty() && !cwd.starts_with('/') {
            return Err(fields.bad("cwd", "is not an absolute path"));
        }
        let pid = match fields.integer("pid")?.map(i32::try_from) {
            None => None,
            Some(Ok(pid @ 1..)) => Some(pid),
            Some(Ok(_) | Err(_)) => return Err(fields.bad("pid", "is no process id")),
        };
        let pull_requests = if with_pull_requests {
            Self::read_pull_requests(fields, &item)?
        } else {
            Vec::new()
        };
        Ok(Self {
            harness: fields.must_text("harness")?.to_owned(),
            harness_session_id: fields.owned("harnessSessionId")?.unwrap_or_default(),
            cwd,
            status: fields.must_word("status", SessionStatus::parse)?,
            created_at: fields.must_time("createdAt")?,
            last_event_at: fields.time("lastEventAt")?,
            idle_stopped_at: fields.time("idleStoppedAt")?,
            closed_at: fields.time("closedAt")?,
            tmux_target: fields.owned("tmuxTarget")?.unwrap_or_default(),
            tmux_socket: fields.owned("tmuxSocket")?,
            recent_deliveries: fields.texts("recentDeliveries")?,
            url: fields.owned("url")?,
            workspace: read_workspace(fields)?,
            spawn: read_spawn(fields)?,
            launched_at: fields.time("launchedAt")?,
            pid,
            pid_start_time: fields.integer("pidStartTime")?,
            pull_requests,
            document: fields.map().clone(),
            item,
        })
    }

    fn read_pull_requests(fields: &Fields<'_>, item: &WorkItemRef) -> Result<Vec<Endpoint>, Bad> {
        let mut endpoints = Vec::new();
        for (index, value) in fields.array("pullRequests")?.iter().enumerate() {
            let read = fields
                .element("pullRequests", index, value)
                .and_then(|entry| Self::read(&entry, false));
            endpoints.push(match read {
                Ok(record) if record.item.key() != item.key() => {
                    Endpoint::Session(Box::new(record))
                }
                Ok(_) | Err(_) => Endpoint::Unreadable(value.clone()),
            });
        }
        Ok(endpoints)
    }

    /// The bytes to write. Those it was read from, when nothing changed and they had our layout.
    pub fn to_bytes(&self) -> Vec<u8> {
        document::to_bytes(&Value::Object(self.merged(true)))
    }

    /// The document with what differs from it brought in. An empty document takes everything.
    fn merged(&self, with_pull_requests: bool) -> Map {
        let mut map = self.document.clone();
        let old = Self::read(&Fields::root(&self.document), with_pull_requests).ok();
        let old = old.as_ref();
        let new = |same: fn(&Self, &Self) -> bool| old.is_none_or(|old| !same(old, self));
        if new(|a, b| a.item == b.item) {
            self.put_work_item(&mut map);
        }
        if new(|a, b| a.harness == b.harness) {
            set(&mut map, "harness", self.harness.as_str());
        }
        if new(|a, b| a.harness_session_id == b.harness_session_id) {
            set(
                &mut map,
                "harnessSessionId",
                self.harness_session_id.as_str(),
            );
        }
        if new(|a, b| a.cwd == b.cwd) {
            set(&mut map, "cwd", self.cwd.as_str());
        }
        if new(|a, b| a.status == b.status) {
            set(&mut map, "status", self.status.as_str());
        }
        if new(|a, b| a.created_at == b.created_at) {
            set(&mut map, "createdAt", self.created_at.seconds());
        }
        if new(|a, b| a.last_event_at == b.last_event_at) {
            set(
                &mut map,
                "lastEventAt",
                self.last_event_at.map(Timestamp::seconds),
            );
        }
        if new(|a, b| a.idle_stopped_at == b.idle_stopped_at) {
            let at = self.idle_stopped_at.map(Timestamp::seconds);
            set_or_drop(&mut map, "idleStoppedAt", at);
        }
        if new(|a, b| a.closed_at == b.closed_at) {
            set_or_drop(&mut map, "closedAt", self.closed_at.map(Timestamp::seconds));
        }
        if new(|a, b| a.tmux_target == b.tmux_target) {
            set(&mut map, "tmuxTarget", self.tmux_target.as_str());
        }
        if new(|a, b| a.recent_deliveries == b.recent_deliveries) {
            set(&mut map, "recentDeliveries", self.recent_deliveries.clone());
        }
        if new(|a, b| a.url == b.url) {
            set_or_drop(&mut map, "url", self.url.clone());
        }
        if new(|a, b| a.tmux_socket == b.tmux_socket) {
            set_or_drop(&mut map, "tmuxSocket", self.tmux_socket.clone());
        }
        if new(|a, b| a.workspace == b.workspace) {
            let merged = self.workspace.as_ref().map(|w| put_workspace(&map, w));
            set_or_drop(&mut map, "workspace", merged);
        }
        if new(|a, b| a.spawn == b.spawn) {
            let merged = self.spawn.as_ref().map(|s| put_spawn(&map, s));
            set_or_drop(&mut map, "spawn", merged);
        }
        if new(|a, b| a.launched_at == b.launched_at) {
            set_or_drop(
                &mut map,
                "launchedAt",
                self.launched_at.map(Timestamp::millis),
            );
        }
        if new(|a, b| a.pid == b.pid) {
            set_or_drop(&mut map, "pid", self.pid);
        }
        if new(|a, b| a.pid_start_time == b.pid_start_time) {
            set_or_drop(&mut map, "pidStartTime", self.pid_start_time);
        }
        if with_pull_requests && new(|a, b| a.pull_requests == b.pull_requests) {
            let entries: Vec<Value> = self.pull_requests.iter().map(Endpoint::to_value).collect();
            set(&mut map, "pullRequests", entries);
        }
        map
    }

    fn put_work_item(&self, map: &mut Map) {
        let mut work_item = object_at(map, "workItem");
        set(&mut work_item, "ref", self.item.to_string());
        set(&mut work_item, "provider", self.item.provider());
        set(&mut work_item, "owner", self.item.repo().owner.as_str());
        set(&mut work_item, "repo", self.item.repo().name.as_str());
        set(&mut work_item, "number", self.item.number());
        set(map, "workItem", work_item);
    }

    /// The record as a JSON object, with the fields this release does not know.
    pub fn to_map(&self) -> Map {
        self.merged(true)
    }

    /// The conversation id, when one is recorded that may reach an argument list.
    pub fn conversation(&self) -> Option<HarnessSessionId> {
        HarnessSessionId::parse(&self.harness_session_id)
    }

    /// When the process now in the pane was launched, or some time before where that is not known.
    pub fn launch_began_at(&self) -> Timestamp {
        let intent = self.spawn.as_ref().map(|spawn| spawn.at);
        intent.or(self.launched_at).unwrap_or(self.created_at)
    }

    /// The recorded tmux session, when one is recorded whose name is of our shape (ST-7).
    pub fn target(&self) -> Option<TmuxTarget> {
        TmuxTarget::parse(&self.tmux_target)
    }

    /// Remembers a delivery; the oldest goes out at the bound (DI-30). Says whether it was new.
    pub fn remember_delivery(&mut self, delivery_id: &str) -> bool {
        if self.recent_deliveries.iter().any(|id| id == delivery_id) {
            return false;
        }
        self.recent_deliveries.push(delivery_id.to_owned());
        let over = self
            .recent_deliveries
            .len()
            .saturating_sub(RECENT_DELIVERIES_MAX);
        self.recent_deliveries.drain(..over);
        true
    }

    /// The readable pull requests.
    pub fn endpoints(&self) -> impl Iterator<Item = &SessionRecord> {
        self.pull_requests.iter().filter_map(Endpoint::session)
    }

    /// One pull request by identity.
    pub fn endpoint(&self, key: &ItemKey) -> Option<&SessionRecord> {
        self.endpoints().find(|record| record.item.key() == *key)
    }

    /// Puts a pull request in the place it had, or last. The item itself is refused: `false`.
    pub fn put_endpoint(&mut self, record: SessionRecord) -> bool {
        if record.item.key() == self.item.key() {
            return false;
        }
        let key = record.item.key();
        let place = self
            .pull_requests
            .iter_mut()
            .find(|e| e.session().is_some_and(|s| s.item.key() == key));
        let entry = Endpoint::Session(Box::new(record));
        match place {
            Some(place) => *place = entry,
            None => self.pull_requests.push(entry),
        }
        true
    }

    /// Remembers that a pull request belongs to the item, without a session of its own; `false` when it is
    /// known, or is the item itself.
    pub fn link(&mut self, pull: &WorkItemRef, at: Timestamp) -> bool {
        if self.endpoint(&pull.key()).is_some() {
            return false;
        }
        let (harness, cwd) = (&self.harness, &self.cwd);
        let endpoint = Self::new(pull, harness, cwd, SessionStatus::Closed, at);
        self.put_endpoint(endpoint)
    }

    /// Takes a pull request out; `false` when it was not there.
    pub fn remove_endpoint(&mut self, key: &ItemKey) -> bool {
        let before = self.pull_requests.len();
        self.pull_requests
            .retain(|e| e.session().is_none_or(|s| s.item.key() != *key));
        self.pull_requests.len() < before
    }
}

/// Two records are equal when the same would be written for them.
impl PartialEq for SessionRecord {
    fn eq(&self, other: &Self) -> bool {
        self.to_map() == other.to_map()
    }
}

impl Endpoint {
    /// The record, when it can be read.
    pub fn session(&self) -> Option<&SessionRecord> {
        match self {
            Self::Session(record) => Some(record),
            Self::Unreadable(_) => None,
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Session(record) => Value::Object(record.merged(false)),
            Self::Unreadable(value) => value.clone(),
        }
    }
}

/// The object a key holds, to be changed in place; an empty one otherwise.
fn object_at(map: &Map, key: &str) -> Map {
    map.get(key)
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

fn read_workspace(fields: &Fields<'_>) -> Result<Option<WorkspaceRecord>, Bad> {
    let Some(workspace) = fields.object("workspace")? else {
        return Ok(None);
    };
    Ok(Some(WorkspaceRecord {
        strategy: workspace.must_word("strategy", WorkspaceStrategy::parse)?,
        path: workspace.owned("path")?.unwrap_or_default(),
        branch: workspace.owned("branch")?,
    }))
}

fn put_workspace(map: &Map, workspace: &WorkspaceRecord) -> Value {
    let mut out = object_at(map, "workspace");
    set(&mut out, "strategy", workspace.strategy.as_str());
    set(&mut out, "path", workspace.path.as_str());
    set_or_drop(&mut out, "branch", workspace.branch.clone());
    Value::Object(out)
}

fn read_spawn(fields: &Fields<'_>) -> Result<Option<SpawnIntent>, Bad> {
    let Some(spawn) = fields.object("spawn")? else {
        return Ok(None);
    };
    Ok(Some(SpawnIntent {
        at: spawn.must_time("at")?,
        delivery_id: spawn.owned("deliveryId")?,
        resume: spawn.flag("resume")?.unwrap_or(false),
        previous: spawn.word("previous", SessionStatus::parse)?,
    }))
}

fn put_spawn(map: &Map, spawn: &SpawnIntent) -> Value {
    let mut out = object_at(map, "spawn");
    set(&mut out, "at", spawn.at.seconds());
    set_or_drop(&mut out, "deliveryId", spawn.delivery_id.clone());
    set(&mut out, "resume", spawn.resume);
    set(
        &mut out,
        "previous",
        json!(spawn.previous.map(SessionStatus::as_str)),
    );
    Value::Object(out)
}
