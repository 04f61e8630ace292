//! Pull requests and the sessions that they belong to (IN-14, IN-17, IN-20, IN-21).

use camino::Utf8Path;
use the_loop_core::config::Settings;
use the_loop_core::delivery::{Delivery, Effect};
use the_loop_core::event::{LinkageReason, LinkageVia, LogEvent};
use the_loop_core::guard::AuthorizedUsers;
use the_loop_core::ids::{ItemKey, WorkItemRef};
use the_loop_core::link::LinkSource;
use the_loop_core::record::SessionRecord;
use the_loop_core::route::{self, Named, Owner, Routed};

use super::Engine;
use super::item::{Gathered, is_command};
use crate::store::lock::ItemLock;
use crate::store::registry::RecordFault;

impl Engine {
    /// Names the items that a delivery goes to, by what is recorded now.
    pub(super) fn name_targets(
        &self,
        delivery: &Delivery,
        settings: &Settings,
    ) -> Result<Routed, RecordFault> {
        let is_check = matches!(delivery.effect, Effect::Check(_));
        let is_pull = delivery.pull.is_some() || delivery.facts.is_pull_request || is_check;
        let owners = if is_pull { self.owners()? } else { Vec::new() };
        Ok(self.judged_by(delivery, settings, &owners, route::route))
    }

    /// Asks the router something about a delivery, with all that it decides by.
    pub(super) fn judged_by<T>(
        &self,
        delivery: &Delivery,
        settings: &Settings,
        owners: &[Owner],
        question: impl FnOnce(&route::Facts<'_>) -> T,
    ) -> T {
        let authorized = AuthorizedUsers::new(&settings.routing.authorized_users);
        let own_account = self.own_account(&delivery.item.repo().host);
        question(&route::Facts {
            delivery,
            owners,
            authorized: &authorized,
            own_account: own_account.as_ref(),
            is_command: is_command(delivery, settings),
        })
    }

    /// The sessions that live. One whose record cannot be read owns nothing that can be told.
    pub(super) fn owners(&self) -> Result<Vec<Owner>, RecordFault> {
        let records = self.0.registry.list()?.records.into_iter();
        let live = records.filter(|found| found.record.status.is_live());
        Ok(live.map(|found| owner(&found.record)).collect())
    }

    /// Records on the item's session that a pull request belongs to it, where that is new and the session is
    /// the first that it belongs to. What is recorded since, for whoever goes on with the delivery.
    pub(super) fn bind_pull(
        &self,
        held: &ItemLock,
        gathered: &Gathered,
        delivery: &Delivery,
    ) -> Option<Gathered> {
        let mut record = gathered.live()?.clone();
        let pull = &delivery.item;
        if delivery.pull.is_none() || pull.key() == gathered.key {
            return None;
        }
        let owners = self.owners().ok()?;
        let is_listed = |owner: &Owner| owner.pulls.contains(&pull.key());
        let routed = self.judged_by(delivery, &gathered.settings, &owners, route::route);
        let first = routed.owner;
        let is_first = first.is_some_and(|owner| owner.key() == gathered.key);
        if owners.iter().any(is_listed) || !is_first {
            return None;
        }
        record.link(pull, self.world().clock.now());
        if let Err(error) = self.0.registry.put(held, &gathered.slug, &record) {
            tracing::warn!(%error, item = %gathered.item, "a pull request could not be recorded");
            return None;
        }
        self.emit(LogEvent::SessionPrLinked {
            work_item: gathered.item.clone(),
            pull_request: pull.clone(),
        });
        let mut bound = gathered.clone();
        bound.record = Some(record);
        Some(bound)
    }

    /// Does it tell a session of commits that its own checkout has? Its agent made them, or has them from
    /// somewhere, and would be woken for nothing (guard 7 of IN-22, as far as it can be told without the
    /// account behind the credential).
    pub(super) fn is_own_push(&self, gathered: &Gathered, delivery: &Delivery) -> bool {
        let tells_of_commits = delivery.brings_commits() || delivery.effect == Effect::Opened;
        let head = delivery
            .pull
            .as_ref()
            .and_then(|pull| pull.head_sha.as_deref());
        let record = gathered.live().filter(|record| record.workspace.is_some());
        let (Some(head), Some(record)) = (head.filter(|_| tells_of_commits), record) else {
            return false;
        };
        let git = self.git(&gathered.settings);
        git.has_commit(Utf8Path::new(&record.cwd), head)
    }

    /// Says that an item was named and is left out: by words of somebody who may not say so (IN-17), or
    /// because it is not there (IN-19).
    pub(super) fn tell_left_out(
        &self,
        delivery: &Delivery,
        doubted: &Named,
        reason: LinkageReason,
    ) {
        for source in &doubted.sources {
            let via = match source {
                LinkSource::Branch => LinkageVia::Branch,
                LinkSource::Keyword => LinkageVia::Keyword,
                LinkSource::ClosingReference => LinkageVia::ClosingReference,
                // These are never doubted.
                LinkSource::Recorded | LinkSource::Entity => continue,
            };
            self.emit(LogEvent::RoutingLinkageDropped {
                work_item: doubted.item.clone(),
                via,
                reason,
                gh_event: delivery.event.clone(),
                delivery_id: delivery.delivery_id.clone(),
            });
        }
    }

    /// Says that a session goes on although its pull request was closed (IN-26).
    pub(super) fn tell_kept_open(&self, delivery: &Delivery, owner: &WorkItemRef) {
        let Effect::Close { ending, .. } = &delivery.effect else {
            return;
        };
        if owner.key() != delivery.item.key() {
            self.emit(LogEvent::SessionKeptOpen {
                work_item: owner.clone(),
                reason: super::tell::autoclosed(*ending, delivery),
                closed_ref: Some(delivery.item.to_string()),
                delivery_id: Some(delivery.delivery_id.clone()),
            });
        }
    }
}

fn owner(record: &SessionRecord) -> Owner {
    let pulls: Vec<ItemKey> = record.endpoints().map(|pull| pull.item.key()).collect();
    let workspace = record.workspace.as_ref();
    Owner {
        item: record.item.clone(),
        pulls,
        branch: workspace.and_then(|workspace| workspace.branch.clone()),
    }
}
