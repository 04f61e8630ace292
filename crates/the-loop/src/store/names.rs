//! Which files are whose: lookup by stored ref, and the slug an item's files have (ST-5 to ST-11,
//! ST-33, ST-34).

use camino::Utf8PathBuf;
use the_loop_core::ids::{Slug, WorkItemRef};
use the_loop_core::limits::RECORD_BYTES_MAX;
use the_loop_core::record::{Map, PortableRecord, SessionRecord};
use the_loop_core::time::Timestamp;

use super::files::{RecordFault, RecordKind, StoreError, find_ticket, io_error};
use super::layout::Layout;
use super::shelf::{Found, Shelf, is_named_for};
use crate::disk::SharedDisk;

/// No name is free for an item's files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{item} and {other} come to the same file name {slug}")]
pub struct SlugError {
    /// The item that needs a name.
    pub item: WorkItemRef,
    /// Who has it: a ref, or a file that cannot be read.
    pub other: String,
    /// The name.
    pub slug: Slug,
}

/// Who a file near an item's name belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    /// The item its content names, in a file that may be that item's.
    Item(WorkItemRef),
    /// Cannot be told from the content.
    Unknown,
    /// Nobody of ours.
    Stranger,
}

#[derive(Clone, Debug)]
struct Claim {
    slug: Slug,
    file: Utf8PathBuf,
    owner: Owner,
}

/// What a lookup found for one item.
#[derive(Debug)]
pub(super) struct Lookup<R> {
    /// The file that counts.
    pub counts: Option<Found<R>>,
    /// Other files of the item (ST-11).
    pub shadowed: Vec<Utf8PathBuf>,
}

/// The two shelves and whatever else bears an item's name.
#[derive(Clone, Debug)]
pub(super) struct Names {
    pub disk: SharedDisk,
    pub layout: Layout,
    pub sessions: Shelf<SessionRecord>,
    pub portables: Shelf<PortableRecord>,
}

impl Names {
    pub fn new(disk: &SharedDisk, layout: &Layout) -> Self {
        Self {
            sessions: Shelf {
                disk: disk.clone(),
                dir: layout.registry_dir(),
                kind: RecordKind::Session,
                parse: SessionRecord::parse,
                item: |record| &record.item,
                rank: |r| (r.status.is_live(), r.last_event_at, Some(r.created_at)),
            },
            portables: Shelf {
                disk: disk.clone(),
                dir: layout.portable_dir(),
                kind: RecordKind::Portable,
                parse: PortableRecord::parse,
                item: |record| &record.item,
                rank: |r| (false, r.control().map(|c| c.requested_at), last_polled(r)),
            },
            disk: disk.clone(),
            layout: layout.clone(),
        }
    }

    /// The item's file on a shelf. A file of its that cannot be used is the fault (ST-32, ST-33).
    pub fn lookup<R>(
        &self,
        shelf: &Shelf<R>,
        item: &WorkItemRef,
    ) -> Result<Lookup<R>, RecordFault> {
        let near = shelf.near(&item.slug().folded())?;
        let (own, others): (Vec<_>, Vec<_>) = near.into_iter().partition(|f| shelf.is_of(f, item));
        let mut counts: Option<Found<R>> = None;
        let mut shadowed = Vec::new();
        for found in own {
            match counts.take() {
                Some(best) if shelf.beats(&best, &found) => {
                    shadowed.push(found.file);
                    counts = Some(best);
                }
                best => {
                    shadowed.extend(best.map(|b| b.file));
                    counts = Some(found);
                }
            }
        }
        if counts.is_some() {
            return Ok(Lookup { counts, shadowed });
        }
        for found in others {
            if let Err(fault) = found.read
                && self.fault_is_of(&fault, &found.slug, item)?
            {
                return Err(fault);
            }
        }
        Ok(Lookup { counts, shadowed })
    }

    /// Does a file that cannot be used belong to this item? It belongs to the ref whose slug is its
    /// name, unless a readable file of another item claims that name, or the item's own files have
    /// another one (ST-9, ST-33).
    fn fault_is_of(
        &self,
        fault: &RecordFault,
        slug: &Slug,
        item: &WorkItemRef,
    ) -> Result<bool, RecordFault> {
        match fault {
            RecordFault::Foreign { .. } => return Ok(false),
            RecordFault::Newer {
                item: Some(stated), ..
            } => return Ok(stated.key() == item.key() && is_named_for(slug, item)),
            RecordFault::Corrupt { .. }
            | RecordFault::Newer { item: None, .. }
            | RecordFault::Unreadable { .. } => {}
        }
        Ok(is_named_for(slug, item) && Self::unclaimed(&self.claims(item)?, slug, item))
    }

    /// Is the name of an unusable file left to this item by the readable ones?
    fn unclaimed(claims: &[Claim], slug: &Slug, item: &WorkItemRef) -> bool {
        let same = |a: &Slug| a.as_str().eq_ignore_ascii_case(slug.as_str());
        claims.iter().all(|claim| match &claim.owner {
            Owner::Item(owner) if owner.key() == item.key() => same(&claim.slug),
            Owner::Item(_) => !same(&claim.slug),
            Owner::Unknown | Owner::Stranger => true,
        })
    }

    /// Everything whose name collides with the item's.
    fn claims(&self, item: &WorkItemRef) -> Result<Vec<Claim>, RecordFault> {
        let folded = item.slug().folded();
        let mut claims = claims_of(&self.portables, &folded)?;
        claims.extend(claims_of(&self.sessions, &folded)?);
        claims.extend(self.saved_claims(&folded));
        Ok(claims)
    }

    /// Saved work names its item too. A manifest that cannot be read claims nothing.
    fn saved_claims(&self, folded: &str) -> Vec<Claim> {
        let dir = self.layout.saved_dir();
        let mut claims = Vec::new();
        for name in self.disk.list(&dir).unwrap_or_default() {
            let slug = name
                .strip_suffix(".json")
                .and_then(|stem| stem.rsplit_once('-'))
                .and_then(|(slug, _)| Slug::from_file_stem(slug));
            let Some(slug) = slug.filter(|slug| slug.folded() == folded) else {
                continue;
            };
            let file = dir.join(&name);
            let bytes = self.disk.read(&file, RECORD_BYTES_MAX).unwrap_or_default();
            let manifest: Map = serde_json::from_slice(&bytes).unwrap_or_default();
            let stated = manifest.get("ref").and_then(|r| r.as_str());
            if let Some(Ok(owner)) = stated.map(str::parse::<WorkItemRef>)
                && is_named_for(&slug, &owner)
            {
                claims.push(Claim {
                    slug,
                    file,
                    owner: Owner::Item(owner),
                });
            }
        }
        claims
    }

    /// The slug of an item's files. To be asked under the item's lock, which colliding items share.
    pub fn slug_for(&self, item: &WorkItemRef) -> Result<Slug, StoreError> {
        let claims = self.claims(item)?;
        let key = item.key();
        let own = |c: &&Claim| matches!(&c.owner, Owner::Item(owner) if owner.key() == key);
        if let Some(claim) = claims.iter().find(own) {
            return Ok(claim.slug.clone());
        }
        let own_fault = |c: &&Claim| {
            c.owner == Owner::Unknown
                && is_named_for(&c.slug, item)
                && Self::unclaimed(&claims, &c.slug, item)
        };
        if let Some(claim) = claims.iter().find(own_fault) {
            return Ok(claim.slug.clone());
        }
        let (plain, suffixed) = (item.slug(), item.suffixed_slug());
        let fold_taken = |c: &Claim| match c.owner {
            Owner::Item(_) | Owner::Unknown => !c.slug.as_str().contains('~'),
            Owner::Stranger => c.slug.as_str().eq_ignore_ascii_case(plain.as_str()),
        };
        if plain != suffixed
            && !self.has_private_files(&suffixed)?
            && !claims.iter().any(fold_taken)
        {
            return Ok(plain);
        }
        let same = |c: &&Claim| c.slug.as_str().eq_ignore_ascii_case(suffixed.as_str());
        match claims.iter().find(same) {
            None => Ok(suffixed),
            Some(claim) => Err(StoreError::Slug(Box::new(SlugError {
                item: item.clone(),
                other: match &claim.owner {
                    Owner::Item(other) => other.to_string(),
                    Owner::Unknown | Owner::Stranger => claim.file.to_string(),
                },
                slug: suffixed,
            }))),
        }
    }

    /// Does a file without a ref in it bear this suffixed name? The suffix is made of the item's
    /// identity, so then the item had that name before and keeps it (ST-9).
    fn has_private_files(&self, suffixed: &Slug) -> Result<bool, StoreError> {
        let paths = [
            self.layout.hook_file(suffixed),
            self.layout.hook_settings(suffixed),
            self.layout.mail_dir(suffixed),
        ];
        for path in paths {
            if self
                .disk
                .meta(&path)
                .map_err(io_error("look at", &path))?
                .is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The spelling that was written down first (ST-5).
    pub fn canonical(&self, item: &WorkItemRef) -> WorkItemRef {
        let portable = self.lookup(&self.portables, item).ok();
        if let Some(Ok(record)) = portable.and_then(|l| l.counts).map(|f| f.read) {
            return record.item;
        }
        let session = self.lookup(&self.sessions, item).ok();
        if let Some(Ok(record)) = session.and_then(|l| l.counts).map(|f| f.read) {
            return record.item;
        }
        match find_ticket(self.disk.as_ref(), &self.layout, item) {
            Ok(Some((_, ticket))) => ticket.item,
            Ok(None) | Err(_) => item.clone(),
        }
    }
}

fn claims_of<R>(shelf: &Shelf<R>, folded: &str) -> Result<Vec<Claim>, RecordFault> {
    let near = shelf.near(folded)?;
    Ok(near
        .into_iter()
        .map(|found| {
            let owner = match &found.read {
                Ok(record) => Some((shelf.item)(record).clone()),
                Err(RecordFault::Newer { item, .. }) => item.as_deref().cloned(),
                Err(RecordFault::Foreign { .. }) => {
                    return Claim {
                        slug: found.slug,
                        file: found.file,
                        owner: Owner::Stranger,
                    };
                }
                Err(RecordFault::Corrupt { .. } | RecordFault::Unreadable { .. }) => None,
            };
            let owner = match owner {
                Some(item) if is_named_for(&found.slug, &item) => Owner::Item(item),
                Some(_) => Owner::Stranger,
                None => Owner::Unknown,
            };
            Claim {
                slug: found.slug,
                file: found.file,
                owner,
            }
        })
        .collect())
}

fn last_polled(record: &PortableRecord) -> Option<Timestamp> {
    let at = record.section("poll")?.get("lastPolledAt")?;
    at.as_str()?.parse().ok()
}
