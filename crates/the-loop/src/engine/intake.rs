//! What was accepted is judged: guards, then the work item it is about (DI-8, DI-9).

use std::time::Duration;

use the_loop_core::delivery::{Delivery, State};
use the_loop_core::dispatch::HoldReason;
use the_loop_core::event::{DispatchDropReason, LogEvent, RoutingDropReason};
use the_loop_core::guard::{self, AuthorizedUsers, Judgement};
use the_loop_core::route;

use super::Engine;
use crate::store::inbox::{DeliveryRow, InboxError, NewOutcome};
use crate::store::registry::RecordFault;

/// How long a delivery waits for the records to be readable again.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(30);

impl Engine {
    /// Judges everything that is accepted and not judged yet, in the order of acceptance.
    pub fn intake(&self) {
        while !self.is_stopping() {
            let Ok(rows) = self.0.parts.inbox.unrouted(self.world().clock.now()) else {
                return;
            };
            if rows.is_empty() {
                return;
            }
            for row in rows {
                let judged = match &row.delivery {
                    Ok(delivery) => self.judge(&row, delivery),
                    // A text that this version cannot read can go nowhere.
                    Err(_) => self.end(&row, State::Dropped, "unreadable"),
                };
                if judged.is_err() {
                    return;
                }
            }
        }
    }

    fn judge(&self, row: &DeliveryRow, delivery: &Delivery) -> Result<(), InboxError> {
        let settings = self.settings();
        self.apply_entries(delivery);
        let authorized = AuthorizedUsers::new(&settings.routing.authorized_users);
        let own_comment = self.is_own_comment(delivery);
        let facts = guard::Facts {
            delivery,
            authorized: &authorized,
            own_comment,
            retention_days: settings.state.inbox_retention_days,
        };
        match guard::judge(&facts) {
            Judgement::Allowed => self.route(row, delivery),
            Judgement::TooOld => {
                self.emit(LogEvent::DispatchDropped {
                    reason: DispatchDropReason::AlreadyProcessed,
                    work_item: Some(delivery.item.clone()),
                    work_items: None,
                    gh_event: delivery.event.clone(),
                    delivery_id: delivery.delivery_id.clone(),
                    tmux_target: None,
                    error: None,
                    will_retry: false,
                });
                self.end(
                    row,
                    State::Dropped,
                    DispatchDropReason::AlreadyProcessed.as_str(),
                )
            }
            Judgement::Refused(refusal) => self.refuse(row, delivery, refusal),
        }
    }

    fn route(&self, row: &DeliveryRow, delivery: &Delivery) -> Result<(), InboxError> {
        let settings = self.settings();
        let hosts = settings
            .integrations
            .github
            .hosts
            .keys()
            .map(String::as_str);
        if !route::is_known_item(&delivery.item, hosts) {
            return self.refuse(row, delivery, RoutingDropReason::UnknownHost);
        }
        let named = match self.name_targets(delivery, &settings) {
            Ok(named) => named,
            Err(fault) => return self.ask_again(row, &fault),
        };
        for doubted in &named.untrusted {
            self.tell_untrusted(delivery, doubted);
        }
        if let Some(owner) = &named.owner {
            self.tell_kept_open(delivery, owner);
        }
        let labels = delivery.facts.labels.as_deref().unwrap_or_default();
        self.emit(LogEvent::RoutingRouted {
            gh_event: delivery.event.clone(),
            action: delivery.action.clone(),
            delivery_id: delivery.delivery_id.clone(),
            actor: delivery.actor.as_ref().map(|actor| actor.login.clone()),
            work_items: named.targets.clone(),
            labeled: route::has_label(labels, &settings.routing.auto_execute_label),
            link_incomplete: named.is_incomplete.then_some(true),
        });
        let outcome = |item| NewOutcome {
            item,
            endpoint: None,
            marker: self.world().ids.marker(),
        };
        let outcomes: Vec<NewOutcome> = named.targets.into_iter().map(outcome).collect();
        let routed = self.0.parts.inbox.route(row.seq, &outcomes)?;
        for behind in routed.dropped {
            self.emit(LogEvent::DispatchDropped {
                reason: DispatchDropReason::parse(behind.reason.as_deref().unwrap_or_default())
                    .unwrap_or(DispatchDropReason::ItemClosed),
                work_item: Some(behind.item.clone()),
                work_items: None,
                gh_event: delivery.event.clone(),
                delivery_id: delivery.delivery_id.clone(),
                tmux_target: None,
                error: None,
                will_retry: false,
            });
        }
        Ok(())
    }

    /// A session that cannot be read now may be the one it is for.
    fn ask_again(&self, row: &DeliveryRow, fault: &RecordFault) -> Result<(), InboxError> {
        self.say_corrupt(fault);
        let later = self.world().clock.now().plus(ASK_AGAIN_AFTER);
        let inbox = &self.0.parts.inbox;
        inbox.fail_delivery(row.seq, HoldReason::RecordCorrupt.as_str(), later, false)?;
        Ok(())
    }

    fn refuse(
        &self,
        row: &DeliveryRow,
        delivery: &Delivery,
        reason: RoutingDropReason,
    ) -> Result<(), InboxError> {
        self.emit(LogEvent::RoutingDropped {
            reason,
            gh_event: delivery.event.clone(),
            action: delivery.action.clone(),
            delivery_id: delivery.delivery_id.clone(),
            actor: delivery.actor.as_ref().map(|actor| actor.login.clone()),
            work_items: Some(vec![delivery.item.clone()]),
        });
        self.end(row, State::Dropped, reason.as_str())
    }

    fn end(&self, row: &DeliveryRow, state: State, reason: &str) -> Result<(), InboxError> {
        self.0.parts.inbox.end_delivery(row.seq, state, reason)
    }
}
