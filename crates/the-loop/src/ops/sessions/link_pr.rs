//! `sessions link-pr` (SE-28): says that a pull request belongs to a work item, or does so no more.

use the_loop_core::event::{LogEvent, Source};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::record::SessionRecord;

use crate::ops::desk::{Desk, lock_error};
use crate::ops::error::OpError;
use crate::store::lock::{Holder, Patience};
use crate::store::registry::Registry;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// The item, as it is recorded.
    pub item: WorkItemRef,
    /// The pull request.
    pub pull_request: WorkItemRef,
    /// Are they linked now?
    pub linked: bool,
    /// Was that different before?
    pub changed: bool,
}

impl Linked {
    /// The sentence for a person.
    pub fn words(&self) -> String {
        let (pull, item) = (&self.pull_request, &self.item);
        match (self.linked, self.changed) {
            (true, true) => format!("linked {pull} to {item}"),
            (true, false) => format!("{pull} is already linked to {item}"),
            (false, true) => format!("unlinked {pull} from {item}"),
            (false, false) => format!("{pull} is not linked to {item}"),
        }
    }
}

/// Links a pull request to the live session of an item, or with `remove` undoes it. Faults of the arguments
/// are usage errors; nothing is written then.
pub fn link_pr(
    desk: &Desk,
    item: &WorkItemRef,
    pull: &WorkItemRef,
    remove: bool,
    note: &dyn Fn(&Holder),
) -> Result<Linked, OpError> {
    if item.key() == pull.key() {
        return Err(OpError::usage(format!("{item} cannot be linked to itself")));
    }
    desk.ready_to_write()?;
    let registry = desk.registry();
    let locks = desk.locks();
    let patience = Patience::of(desk.patience).telling(note);
    let held = locks
        .item(item, "linking", patience)
        .map_err(|e| lock_error(item, &e))?;
    let unreadable = |e| OpError::failed(format!("{item}: cannot read its record"), &e);
    let found = registry.get(item).map_err(unreadable)?;
    let Some(found) = found.filter(|found| found.record.status.is_live()) else {
        let made = OpError::not_found(format!("{item}: no live session"));
        return Err(made.hint("the-loop sessions list"));
    };
    let mut record = found.record;
    let was = record.endpoint(&pull.key()).cloned();
    if remove {
        if was.is_some_and(|own| own.status.is_live()) {
            let made = OpError::refused(format!("{pull} has a live session of its own"));
            return Err(made.hint(format!("the-loop sessions stop {pull}")));
        }
    } else if was.is_none()
        && let Some(other) = other_owner(&registry, &record, pull)?
    {
        let made = OpError::usage(format!("{pull} is linked to {other}"));
        return Err(made.hint(format!(
            "the-loop sessions link-pr {other} --pull-request {pull} --remove"
        )));
    }
    let changed = if remove {
        record.remove_endpoint(&pull.key())
    } else {
        record.link(pull, desk.world.clock.now())
    };
    let told = Linked {
        item: record.item.clone(),
        pull_request: pull.clone(),
        linked: !remove,
        changed,
    };
    if !changed {
        return Ok(told);
    }
    registry
        .put(&held, &found.slug, &record)
        .map_err(|e| OpError::failed(format!("{item}: cannot write its record"), &e))?;
    let (work_item, pull_request) = (record.item, pull.clone());
    let event = if remove {
        LogEvent::SessionPrUnlinked {
            work_item,
            pull_request,
            actor: desk.world.user.clone(),
        }
    } else {
        LogEvent::SessionPrLinked {
            work_item,
            pull_request,
        }
    };
    desk.emit(Source::Sessions, event);
    drop(held);
    crate::ops::link::poke(&desk.layout);
    Ok(told)
}

/// Another live item that lists the pull request.
fn other_owner(
    registry: &Registry,
    record: &SessionRecord,
    pull: &WorkItemRef,
) -> Result<Option<WorkItemRef>, OpError> {
    let listing = registry
        .list()
        .map_err(|e| OpError::failed("cannot read the session records".to_owned(), &e))?;
    let lists = |other: &SessionRecord| {
        other.status.is_live()
            && other.item.key() != record.item.key()
            && other.endpoint(&pull.key()).is_some()
    };
    let mut records = listing.records.into_iter().map(|found| found.record);
    Ok(records.find(lists).map(|other| other.item))
}
