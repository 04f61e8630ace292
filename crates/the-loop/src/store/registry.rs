//! The session records of this machine (state page, section 7).

use camino::Utf8PathBuf;
use the_loop_core::ids::{Slug, WorkItemRef};
use the_loop_core::limits::RECORD_BYTES_MAX;
use the_loop_core::record::SessionRecord;

use super::files::{self, RecordKind, io_error};
use super::layout::Layout;
use super::lock::ItemLock;
use super::names::Names;
use super::shelf::{Found, is_named_for};
use crate::world::World;

pub use super::files::{RecordFault, StoreError};
pub use super::names::SlugError;
pub use super::shelf::{Listing, Shadowed};

/// A session record and the name of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct Registered {
    /// Name of all files of the item (ST-9).
    pub slug: Slug,
    /// Where it lies.
    pub file: Utf8PathBuf,
    /// What it says.
    pub record: SessionRecord,
}

/// The session records. Caches nothing (ST-29); cheap to clone.
#[derive(Clone, Debug)]
pub struct Registry {
    names: Names,
}

impl Registry {
    /// Over this layout's records.
    pub fn new(world: &World, layout: &Layout) -> Self {
        Self {
            names: Names::new(&world.disk, layout),
        }
    }

    /// All records, sorted by identity, and the files that could not be used. The error is that the
    /// directory cannot be listed.
    pub fn list(&self) -> Result<Listing<Registered>, RecordFault> {
        self.names.sessions.listing(registered)
    }

    /// The record of an item, looked up by the ref inside (ST-10). A file of the item that cannot be
    /// used is an error, and then the item is to be set aside (ST-32).
    pub fn get(&self, item: &WorkItemRef) -> Result<Option<Registered>, RecordFault> {
        let found = self.names.lookup(&self.names.sessions, item)?;
        Ok(found.counts.and_then(registered))
    }

    /// The spelling of a ref that was written down first: in the portable record, else the session
    /// record, else the ticket, else the one given (ST-5).
    pub fn canonical(&self, item: &WorkItemRef) -> WorkItemRef {
        self.names.canonical(item)
    }

    /// The name that all files of the item have, or get (ST-8, ST-9).
    pub fn slug_for(&self, lock: &ItemLock, item: &WorkItemRef) -> Result<Slug, StoreError> {
        must_cover(lock, item)?;
        self.names.slug_for(item)
    }

    /// Writes the item's record and says whether the file changed (ST-19). What is in its place and is
    /// another item's, corrupt, newer or a stranger's is not written over.
    pub fn put(
        &self,
        lock: &ItemLock,
        slug: &Slug,
        record: &SessionRecord,
    ) -> Result<bool, StoreError> {
        must_cover(lock, &record.item)?;
        if !is_named_for(slug, &record.item) {
            let (slug, item) = (slug.clone(), Box::new(record.item.clone()));
            return Err(StoreError::NotItsName { slug, item });
        }
        let file = self.names.layout.session_record(slug);
        let disk = self.names.disk.as_ref();
        let bytes = record.to_bytes();
        let kind = RecordKind::Session;
        if let Some(there) = files::read(disk, &file, kind, RECORD_BYTES_MAX)? {
            if there == bytes {
                return Ok(false);
            }
            let old = SessionRecord::parse(&there)
                .map_err(|fault| RecordFault::of(&file, kind, fault))?;
            if old.item.key() != record.item.key() {
                let item = Box::new(old.item);
                return Err(StoreError::OtherItem { file, item });
            }
        }
        files::write(disk, &file, &bytes, true)?;
        Ok(true)
    }

    /// Deletes the item's record with its hook, settings, launch and mail files; `false` when there
    /// was no record (ST-44). The record goes last, so that a removal that failed can be repeated. A
    /// record that cannot be used is an error and stays.
    pub fn forget(&self, lock: &ItemLock, item: &WorkItemRef) -> Result<bool, StoreError> {
        must_cover(lock, item)?;
        let found = self.names.lookup(&self.names.sessions, item)?;
        let Some(record) = found.counts else {
            return Ok(false);
        };
        let disk = self.names.disk.as_ref();
        self.forget_private_files(&record.slug)?;
        for file in found.shadowed.iter().chain([&record.file]) {
            files::remove(disk, file)?;
        }
        Ok(true)
    }

    fn forget_private_files(&self, slug: &Slug) -> Result<(), StoreError> {
        let layout = &self.names.layout;
        let disk = self.names.disk.as_ref();
        for file in [
            layout.hook_file(slug),
            layout.hook_file_before(slug),
            layout.hook_settings(slug),
        ] {
            files::remove(disk, &file)?;
        }
        self.remove_launch_files(slug)?;
        let mail = layout.mail_dir(slug);
        disk.remove_dir_all(&mail)
            .map_err(io_error("remove", &mail))?;
        Ok(())
    }

    /// Removes the item's launch files: nothing will be launched from them any more.
    pub fn forget_launch_files(
        &self,
        lock: &ItemLock,
        item: &WorkItemRef,
        slug: &Slug,
    ) -> Result<(), StoreError> {
        must_cover(lock, item)?;
        self.remove_launch_files(slug)
    }

    fn remove_launch_files(&self, slug: &Slug) -> Result<(), StoreError> {
        let disk = self.names.disk.as_ref();
        let launch = self.names.layout.launch_dir();
        for name in disk.list(&launch).map_err(io_error("list", &launch))? {
            if is_launch_file_of(&name, slug) {
                files::remove(disk, &launch.join(name))?;
            }
        }
        Ok(())
    }
}

fn is_launch_file_of(name: &str, slug: &Slug) -> bool {
    let unique = name
        .strip_prefix(slug.as_str())
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|rest| rest.strip_suffix(".json"));
    unique.is_some_and(|u| u.len() == 8 && u.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn registered(found: Found<SessionRecord>) -> Option<Registered> {
    let Found { slug, file, read } = found;
    let record = read.ok()?;
    Some(Registered { slug, file, record })
}

/// Refuses a change under a lock that is not the item's.
pub(super) fn must_cover(lock: &ItemLock, item: &WorkItemRef) -> Result<(), StoreError> {
    if lock.covers(item) {
        Ok(())
    } else {
        let item = Box::new(item.clone());
        Err(StoreError::NotLocked { item })
    }
}

#[cfg(test)]
mod tests;
