//! A directory of records that are named by slugs (ST-10, ST-11, ST-34).

use camino::Utf8PathBuf;
use the_loop_core::ids::{Slug, WorkItemRef};
use the_loop_core::limits::RECORD_BYTES_MAX;
use the_loop_core::record::Fault;
use the_loop_core::time::Timestamp;

use super::files::{self, RecordFault, RecordKind};
use crate::disk::SharedDisk;

/// What a shelf holds, with what could not be read and what another file hides (ST-11).
#[derive(Clone, Debug)]
pub struct Listing<R> {
    /// The records, one an item, by identity.
    pub records: Vec<R>,
    /// Files that could not be read.
    pub problems: Vec<RecordFault>,
    /// Second files of one item: never routed to.
    pub shadowed: Vec<Shadowed>,
}

/// A second file of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shadowed {
    /// The item.
    pub item: WorkItemRef,
    /// The file that is left alone.
    pub file: Utf8PathBuf,
    /// The file that counts.
    pub by: Utf8PathBuf,
}

/// A directory of records that are named by slugs. It reads nothing but such names and does not
/// descend (ST-34).
#[derive(Clone, Debug)]
pub(super) struct Shelf<R> {
    pub disk: SharedDisk,
    pub dir: Utf8PathBuf,
    pub kind: RecordKind,
    pub parse: fn(&[u8]) -> Result<R, Fault>,
    pub item: fn(&R) -> &WorkItemRef,
    pub rank: fn(&R) -> Rank,
}

/// Of two files of one item the one with the higher rank counts: live, then the later times (ST-11).
pub(super) type Rank = (bool, Option<Timestamp>, Option<Timestamp>);

/// One file of a shelf.
#[derive(Clone, Debug)]
pub(super) struct Found<R> {
    pub slug: Slug,
    pub file: Utf8PathBuf,
    pub read: Result<R, RecordFault>,
}

/// May a file of this item have this name: its slug, with or without suffix, in any case?
pub(super) fn is_named_for(stem: &Slug, item: &WorkItemRef) -> bool {
    let stem = stem.as_str();
    stem.eq_ignore_ascii_case(item.slug().as_str())
        || stem.eq_ignore_ascii_case(item.suffixed_slug().as_str())
}

impl<R> Shelf<R> {
    /// The slugs of the files that look like records.
    fn slugs(&self) -> std::io::Result<Vec<Slug>> {
        let names = self.disk.list(&self.dir)?;
        Ok(names
            .iter()
            .filter_map(|name| Slug::from_file_stem(name.strip_suffix(".json")?))
            .collect())
    }

    fn found(&self, slug: Slug) -> Option<Found<R>> {
        let file = self.dir.join(format!("{slug}.json"));
        let disk = self.disk.as_ref();
        let read = files::load(disk, &file, self.kind, RECORD_BYTES_MAX, self.parse).transpose()?;
        Some(Found { slug, file, read })
    }

    /// The files whose names collide with this one.
    pub fn near(&self, folded: &str) -> Result<Vec<Found<R>>, RecordFault> {
        let slugs = self.slugs().map_err(|e| self.unlisted(&e))?;
        let near = slugs.into_iter().filter(|slug| slug.folded() == folded);
        Ok(near.filter_map(|slug| self.found(slug)).collect())
    }

    fn unlisted(&self, e: &std::io::Error) -> RecordFault {
        RecordFault::Unreadable {
            file: self.dir.clone(),
            kind: self.kind,
            error: e.to_string(),
        }
    }

    /// Is this the record of the item, in a file that may be its?
    pub fn is_of(&self, found: &Found<R>, item: &WorkItemRef) -> bool {
        found.read.as_ref().is_ok_and(|record| {
            (self.item)(record).key() == item.key() && is_named_for(&found.slug, item)
        })
    }

    /// Which of two files of one item counts? The file name decides at last.
    pub fn beats(&self, a: &Found<R>, b: &Found<R>) -> bool {
        match (&a.read, &b.read) {
            (Ok(left), Ok(right)) => {
                let (left, right) = ((self.rank)(left), (self.rank)(right));
                left > right || (left == right && a.file < b.file)
            }
            (Ok(_), Err(_)) => true,
            (Err(_), _) => false,
        }
    }

    /// All records of the shelf, sorted by identity.
    fn all(&self) -> Result<(Vec<Found<R>>, Listing<()>), RecordFault> {
        let mut rest = Listing {
            records: Vec::new(),
            problems: Vec::new(),
            shadowed: Vec::new(),
        };
        let mut kept: std::collections::BTreeMap<_, Found<R>> = std::collections::BTreeMap::new();
        for slug in self.slugs().map_err(|e| self.unlisted(&e))? {
            let Some(found) = self.found(slug) else {
                continue;
            };
            let item = match &found.read {
                Ok(record) => (self.item)(record).clone(),
                Err(RecordFault::Foreign { .. }) => continue,
                Err(fault) => {
                    rest.problems.push(fault.clone());
                    continue;
                }
            };
            if !is_named_for(&found.slug, &item) {
                continue;
            }
            let key = item.key();
            let (winner, loser) = match kept.remove(&key) {
                None => (found, None),
                Some(other) if self.beats(&found, &other) => (found, Some(other)),
                Some(other) => (other, Some(found)),
            };
            rest.shadowed.extend(loser.map(|loser| Shadowed {
                item,
                file: loser.file,
                by: winner.file.clone(),
            }));
            kept.insert(key, winner);
        }
        Ok((kept.into_values().collect(), rest))
    }

    /// All records, each made into what the store hands out.
    pub fn listing<T>(&self, make: fn(Found<R>) -> Option<T>) -> Result<Listing<T>, RecordFault> {
        let (found, rest) = self.all()?;
        Ok(Listing {
            records: found.into_iter().filter_map(make).collect(),
            problems: rest.problems,
            shadowed: rest.shadowed,
        })
    }
}
