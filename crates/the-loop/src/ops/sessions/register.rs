//! `sessions register` (SE-27): binds an existing conversation to a work item.

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::event::{LogEvent, Source};
use the_loop_core::ids::{HarnessSessionId, WorkItemRef};
use the_loop_core::probe::TmuxState;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::{Next, SessionEvent, SessionStatus, next};

use crate::disk::Kind as FileKind;
use crate::harness::adapter::{Adapter, Adapters};
use crate::ops::desk::{Desk, lock_error};
use crate::ops::error::OpError;
use crate::store::lock::{Holder, Patience};

/// What to bind.
#[derive(Clone, Debug)]
pub struct Registration {
    /// The item.
    pub item: WorkItemRef,
    /// Name of the harness.
    pub harness: String,
    /// Id of the conversation.
    pub conversation: String,
    /// Directory, absolute.
    pub cwd: Utf8PathBuf,
    /// Replace a live record.
    pub force: bool,
}

/// What was bound.
#[derive(Clone, Debug)]
pub struct RegisteredNow {
    /// The record as it was written.
    pub record: SessionRecord,
    /// Another live one was replaced.
    pub replaced: bool,
    /// What deserves a look.
    pub warnings: Vec<String>,
    /// What its harness cannot do.
    pub cannot: Vec<String>,
}

/// Binds. All faults of the arguments are usage errors, and nothing is written then.
pub fn register(
    desk: &Desk,
    asked: &Registration,
    note: &dyn Fn(&Holder),
) -> Result<RegisteredNow, OpError> {
    if !asked.item.has_tracker() {
        let provider = asked.item.provider();
        return Err(OpError::usage(format!(
            "{}: no tracker is called {provider}",
            asked.item
        )));
    }
    let adapter = adapter(desk, &asked.harness)?;
    let conversation = HarnessSessionId::parse(&asked.conversation).ok_or_else(|| {
        let shown = the_loop_core::redact::visible(&asked.conversation);
        OpError::usage(format!("not a conversation id: \"{shown}\"")).hint(
            "1 to 128 of letters, digits, \".\", \"_\", \"-\", beginning with a letter or digit",
        )
    })?;
    let cwd = directory(desk, &asked.cwd)?;
    desk.ready_to_write()?;
    let registry = desk.registry();
    let locks = desk.locks();
    let patience = Patience::of(desk.patience).telling(note);
    let held = locks
        .item(&asked.item, "registering", patience)
        .map_err(|e| lock_error(&asked.item, &e))?;
    let item = registry.canonical(&asked.item);
    let found = registry
        .get(&item)
        .map_err(|e| OpError::failed(format!("{item}: cannot read its record"), &e))?;
    let now = found.as_ref().map(|found| found.record.status);
    let event = SessionEvent::Bind { force: asked.force };
    if let (Next::Refused, Some(found)) = (next(now, event), &found) {
        let record = &found.record;
        let made = OpError::usage(format!(
            "{item} already has a live session ({})",
            conversation_words(record)
        ));
        return Err(made.hint("--force replaces its record"));
    }
    let slug = match &found {
        Some(found) => found.slug.clone(),
        None => registry
            .slug_for(&held, &item)
            .map_err(|e| OpError::failed(format!("{item}: cannot name its record"), &e))?,
    };
    let replaced = now.is_some_and(SessionStatus::is_live);
    let at = desk.world.clock.now();
    // A bound conversation is another session: nothing of an old record is true of it. What this
    // release does not know of the record stays (ST-21).
    let fresh = SessionRecord::new(
        &item,
        adapter.name(),
        cwd.as_str(),
        SessionStatus::Active,
        at,
    );
    let mut record = match found {
        Some(found) => {
            let mut record = found.record;
            record.harness = fresh.harness;
            record.cwd = fresh.cwd;
            record.status = SessionStatus::Active;
            record.created_at = at;
            record.closed_at = None;
            record.idle_stopped_at = None;
            record.last_event_at = None;
            record.workspace = None;
            record.spawn = None;
            record.pid = None;
            record.pid_start_time = None;
            record.launched_at = None;
            record.tmux_target = String::new();
            record.tmux_socket = None;
            record
        }
        None => fresh,
    };
    conversation
        .as_str()
        .clone_into(&mut record.harness_session_id);
    let target = slug.target();
    let tmux = desk.tmux();
    if tmux.probe(&target) == TmuxState::Live {
        record.tmux_target = target.to_string();
        record.tmux_socket = Some(tmux.socket().to_owned()).filter(|name| !name.is_empty());
    }
    registry
        .put(&held, &slug, &record)
        .map_err(|e| OpError::failed(format!("{item}: cannot write its record"), &e))?;
    desk.emit(
        Source::Sessions,
        LogEvent::SessionRegistered {
            work_item: item.clone(),
            harness: record.harness.clone(),
            harness_session_id: record.harness_session_id.clone(),
            cwd: record.cwd.clone(),
            replaced: replaced.then_some(true),
        },
    );
    drop(held);
    crate::ops::link::poke(&desk.layout);
    Ok(RegisteredNow {
        record,
        replaced,
        warnings: missing_program(desk, &adapter, &cwd).into_iter().collect(),
        cannot: adapter.declaration().cannot.clone(),
    })
}

/// The harness of this name, else a usage error that tells which there are.
pub fn harness_named(desk: &Desk, name: &str) -> Result<Adapter, OpError> {
    let adapters = Adapters::of(desk.settings());
    adapters.named(name).ok_or_else(|| {
        let shown = the_loop_core::redact::visible(name);
        let names = adapters.names().join(", ");
        OpError::usage(format!("no harness is called \"{shown}\""))
            .hint(format!("there are {names}"))
    })
}

/// `claude:0f1e2d3c`.
pub fn conversation_words(record: &SessionRecord) -> String {
    let id = if record.harness_session_id.is_empty() {
        "-"
    } else {
        &record.harness_session_id
    };
    format!("{}:{id}", record.harness)
}

fn adapter(desk: &Desk, name: &str) -> Result<Adapter, OpError> {
    let adapter = harness_named(desk, name)?;
    if adapter.can_resume() {
        Ok(adapter)
    } else {
        Err(OpError::usage(format!(
            "{name} cannot resume a conversation"
        )))
    }
}

/// The directory, with links resolved.
fn directory(desk: &Desk, cwd: &Utf8Path) -> Result<Utf8PathBuf, OpError> {
    let disk = desk.world.disk.as_ref();
    let looked = disk
        .canonicalize(cwd)
        .and_then(|real| Ok((disk.meta(&real)?, real)));
    match looked {
        Ok((Some(meta), real)) if meta.kind == FileKind::Dir => Ok(real),
        Ok(_) => Err(OpError::usage(format!("{cwd} is not a directory"))),
        Err(e) => Err(OpError::usage(format!("{cwd}: cannot use it as --cwd")).because(&e)),
    }
}

/// A harness whose program is not found can be registered all the same.
fn missing_program(desk: &Desk, adapter: &Adapter, cwd: &Utf8Path) -> Option<String> {
    let declared = &adapter.declaration().env;
    let env = crate::settings::pane_environment(&desk.world, desk.settings(), declared, &[]);
    crate::harness::program::missing(&desk.world, adapter, &env, cwd)
}
