//! The portable records: what is true of an item on any machine (state page, section 6).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use camino::Utf8PathBuf;
use serde_json::{Value, json};
use the_loop_core::ids::{Slug, WorkItemRef};
use the_loop_core::limits::RECORD_BYTES_MAX;
use the_loop_core::record::{Control, Map, PortableRecord};

use super::files::{self, RecordFault, RecordKind, StoreError};
use super::layout::Layout;
use super::lock::{ItemLock, LockError, Locks, Patience};
use super::names::Names;
use super::registry::must_cover;
use super::shelf::{Found, Listing};
use crate::world::World;

/// A portable record and the name of its file.
#[derive(Clone, Debug, PartialEq)]
pub struct PortableEntry {
    /// Name of all files of the item (ST-9).
    pub slug: Slug,
    /// Where it lies.
    pub file: Utf8PathBuf,
    /// What it says.
    pub record: PortableRecord,
}

/// Why the index was not written. It is derived, so a caller warns and goes on (ST-40).
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The index lock was not had.
    #[error("cannot write the index of portable records")]
    Lock(#[from] LockError),
    /// The directory cannot be listed, or the index not be written.
    #[error("cannot write the index of portable records")]
    Store(#[from] StoreError),
}

/// The portable records. Caches nothing but "the index is to be written" (ST-29); clones share that.
#[derive(Clone, Debug)]
pub struct Portable {
    names: Names,
    locks: Locks,
    stale_index: Arc<AtomicBool>,
}

impl Portable {
    /// Over this layout's records.
    pub fn new(world: &World, layout: &Layout) -> Self {
        Self {
            names: Names::new(&world.disk, layout),
            locks: Locks::new(world, layout),
            stale_index: Arc::default(),
        }
    }

    /// All records, sorted by identity, and the files that could not be used.
    pub fn list(&self) -> Result<Listing<PortableEntry>, RecordFault> {
        self.names.portables.listing(entry)
    }

    /// The record of an item. A file of the item that cannot be used is an error, and then the item
    /// is to be set aside (ST-32).
    pub fn get(&self, item: &WorkItemRef) -> Result<Option<PortableEntry>, RecordFault> {
        let found = self.names.lookup(&self.names.portables, item)?;
        Ok(found.counts.and_then(entry))
    }

    /// A section of an item, when it has something in it (ST-36).
    pub fn section(&self, item: &WorkItemRef, name: &str) -> Result<Option<Map>, RecordFault> {
        let found = self.get(item)?;
        Ok(found.and_then(|entry| entry.record.section(name).cloned()))
    }

    /// The last command given for an item; none means not armed (ST-38).
    pub fn control(&self, item: &WorkItemRef) -> Result<Option<Control>, RecordFault> {
        Ok(self.get(item)?.and_then(|entry| entry.record.control()))
    }

    /// Writes one section, re-reading all others under the item's lock, or clears it. A cleared
    /// section stays as `null` while another has something in it; a record without any is deleted
    /// (ST-36, ST-37). Says whether a file changed. What is in the record's place and cannot be used
    /// is not written over.
    pub fn write_section(
        &self,
        lock: &ItemLock,
        item: &WorkItemRef,
        name: &str,
        section: Option<Map>,
    ) -> Result<bool, StoreError> {
        must_cover(lock, item)?;
        let found = self.names.lookup(&self.names.portables, item)?;
        self.write(item, found.counts.and_then(entry), name, section)
    }

    /// Writes or clears the last command of an item, keeping what else its section holds.
    pub fn write_control(
        &self,
        lock: &ItemLock,
        item: &WorkItemRef,
        control: Option<&Control>,
    ) -> Result<bool, StoreError> {
        must_cover(lock, item)?;
        let found = self.names.lookup(&self.names.portables, item)?;
        let old = found.counts.and_then(entry);
        let section = control.map(|control| {
            let over = old.as_ref().and_then(|old| old.record.section("control"));
            let named = old.as_ref().map_or(item, |old| &old.record.item);
            control.to_section(named, over)
        });
        self.write(item, old, "control", section)
    }

    fn write(
        &self,
        item: &WorkItemRef,
        old: Option<PortableEntry>,
        name: &str,
        section: Option<Map>,
    ) -> Result<bool, StoreError> {
        let is_new = old.is_none();
        if is_new && section.is_none() {
            // A run before this one may have ended between its last record and the index.
            self.stale_index.store(true, Ordering::SeqCst);
            return Ok(false);
        }
        let (file, mut record) = if let Some(old) = old {
            (old.file, old.record)
        } else {
            let slug = self.names.slug_for(item)?;
            let record = PortableRecord::new(&self.names.canonical(item));
            (self.names.layout.portable(&slug), record)
        };
        let disk = self.names.disk.as_ref();
        let kind = RecordKind::Portable;
        let there = files::read(disk, &file, kind, RECORD_BYTES_MAX)?;
        if is_new && let Some(there) = &there {
            // The lookup found nothing of this item, so what has its name is somebody else's.
            let other = PortableRecord::parse(there)
                .map_err(|fault| RecordFault::of(&file, kind, fault))?;
            let item = Box::new(other.item);
            return Err(StoreError::OtherItem { file, item });
        }
        let before = sections(&record);
        if !record.set_section(name, section) {
            let name = name.to_owned();
            return Err(StoreError::NoSection { name });
        }
        let after = sections(&record);
        // A tombstone goes with the older layout it hides, never with its last section (ST-49).
        let changed = if after.is_empty() && !record.sealed {
            files::remove(disk, &file)?
        } else {
            let bytes = record.to_bytes();
            let changed = there.is_none_or(|there| there != bytes);
            if changed {
                files::write(disk, &file, &bytes, true)?;
            }
            changed
        };
        if is_new || before != after || !changed {
            self.stale_index.store(true, Ordering::SeqCst);
        }
        Ok(changed)
    }

    /// Writes the index anew if records or their sections changed through this handle (ST-40). To be
    /// called once before a command exits; says whether the file changed.
    pub fn flush_index(&self) -> Result<bool, IndexError> {
        if !self.stale_index.load(Ordering::SeqCst) {
            return Ok(false);
        }
        let _lock = self.locks.index(Patience::of(Duration::from_secs(10)))?;
        // A change that comes from now on is for the next time.
        self.stale_index.store(false, Ordering::SeqCst);
        self.write_index().map_err(|e| {
            self.stale_index.store(true, Ordering::SeqCst);
            IndexError::Store(e)
        })
    }

    fn write_index(&self) -> Result<bool, StoreError> {
        let listing = self.list().map_err(StoreError::Fault)?;
        let file = self.names.layout.portable_index();
        let disk = self.names.disk.as_ref();
        if listing.records.is_empty() {
            return files::remove(disk, &file);
        }
        let rows: Vec<Value> = listing.records.iter().map(index_row).collect();
        let bytes = the_loop_core::record::to_bytes(&json!({ "workItems": rows }));
        let there = disk.read(&file, RECORD_BYTES_MAX).ok();
        if there.is_some_and(|there| there == bytes) {
            return Ok(false);
        }
        files::write(disk, &file, &bytes, false)?;
        Ok(true)
    }
}

fn entry(found: Found<PortableRecord>) -> Option<PortableEntry> {
    let Found { slug, file, read } = found;
    let record = read.ok()?;
    Some(PortableEntry { slug, file, record })
}

fn sections(record: &PortableRecord) -> Vec<String> {
    record.sections().into_iter().map(str::to_owned).collect()
}

fn index_row(entry: &PortableEntry) -> Value {
    let mut row = Map::new();
    row.insert("ref".to_owned(), entry.record.item.to_string().into());
    if let Some(url) = &entry.record.url {
        row.insert("url".to_owned(), url.as_str().into());
    }
    row.insert("file".to_owned(), format!("{}.json", entry.slug).into());
    row.insert("sections".to_owned(), entry.record.sections().into());
    if entry.record.sealed {
        row.insert("sealed".to_owned(), true.into());
    }
    Value::Object(row)
}

#[cfg(test)]
mod tests;
