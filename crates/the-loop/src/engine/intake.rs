//! What was accepted is judged: guards, then the work item it is about (DI-8, DI-9).

use std::collections::HashSet;
use std::time::Duration;

use the_loop_core::ci::CheckResult;
use the_loop_core::config::Settings;
use the_loop_core::delivery::{Delivery, Effect, State};
use the_loop_core::dispatch::HoldReason;
use the_loop_core::event::{DispatchDropReason, LinkageReason, LogEvent, RoutingDropReason};
use the_loop_core::guard::{self, AuthorizedUsers, Judgement};
use the_loop_core::ids::{ItemKey, WorkItemRef};
use the_loop_core::route::{self, Routed};

use super::Engine;
use super::lookup::Asked;
use crate::store::inbox::{CheckEnd, DeliveryRow, InboxError, NewOutcome};
use crate::store::registry::RecordFault;

/// How long a delivery waits for the records to be readable again.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// What became of a delivery in this look.
enum Judged {
    /// It was routed, ended or put off.
    Over,
    /// It waits for answers; nothing of it changed.
    Waits,
}

impl Engine {
    /// Judges everything that is accepted and not judged yet, in the order of acceptance.
    pub fn intake(&self) {
        while !self.is_stopping() {
            let Ok(rows) = self.0.parts.inbox.unrouted(self.world().clock.now()) else {
                return;
            };
            // Behind a delivery that waits for answers waits what comes after it for the same item (DI-5).
            let mut waiting: HashSet<ItemKey> = HashSet::new();
            let mut has_judged = false;
            for row in rows {
                let judged = match &row.delivery {
                    Ok(delivery) if concerns(delivery).any(|key| waiting.contains(&key)) => {
                        Ok(Judged::Waits)
                    }
                    Ok(delivery) => self.judge(&row, delivery),
                    // A text that this version cannot read can go nowhere.
                    Err(_) => self.end(&row, State::Dropped, "unreadable"),
                };
                match (judged, &row.delivery) {
                    (Ok(Judged::Waits), Ok(delivery)) => waiting.extend(concerns(delivery)),
                    (Ok(Judged::Over | Judged::Waits), _) => has_judged = true,
                    (Err(_), _) => return,
                }
            }
            if !has_judged {
                return;
            }
        }
    }

    fn judge(&self, row: &DeliveryRow, delivery: &Delivery) -> Result<Judged, InboxError> {
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

    fn route(&self, row: &DeliveryRow, delivery: &Delivery) -> Result<Judged, InboxError> {
        let settings = self.settings();
        let hosts = settings.integrations.github.hosts.keys();
        if !route::is_known_item(&delivery.item, hosts.map(String::as_str)) {
            return self.refuse(row, delivery, RoutingDropReason::UnknownHost);
        }
        let asked = match self.ask_first(row, delivery, &settings) {
            Ok(Asked::Waits) => return Ok(Judged::Waits),
            Ok(asked) => asked,
            Err(fault) => return self.ask_again(row, &fault),
        };
        let delivery = match &asked {
            Asked::Answered(delivery) => delivery,
            Asked::Enough | Asked::Waits => delivery,
        };
        let named = match self.name_targets(delivery, &settings) {
            Ok(named) => named,
            Err(fault) => return self.ask_again(row, &fault),
        };
        for doubted in &named.untrusted {
            self.tell_left_out(delivery, doubted, LinkageReason::UntrustedLink);
        }
        for gone in &named.missing {
            self.tell_left_out(delivery, gone, LinkageReason::NotFound);
        }
        if let Some(owner) = &named.owner {
            self.tell_kept_open(delivery, owner);
        }
        let outcome = |item: &WorkItemRef| NewOutcome {
            item: item.clone(),
            endpoint: None,
            marker: self.world().ids.marker(),
        };
        let outcomes: Vec<NewOutcome> = named.targets.iter().map(outcome).collect();
        let inbox = &self.0.parts.inbox;
        let routed = match &delivery.effect {
            Effect::Check(check) => {
                let end = end_of_check(delivery, check);
                let Some(routed) = inbox.route_check(row.seq, &outcomes, end)? else {
                    self.tell_refused(delivery, RoutingDropReason::UnchangedSuccess);
                    return Ok(Judged::Over);
                };
                self.tell_routed(delivery, &named, &settings);
                routed
            }
            Effect::Text(_)
            | Effect::Presence
            | Effect::Opened
            | Effect::Notice { .. }
            | Effect::Close { .. }
            | Effect::Start { .. } => {
                self.tell_routed(delivery, &named, &settings);
                inbox.route(row.seq, &outcomes)?
            }
        };
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
        Ok(Judged::Over)
    }

    fn tell_routed(&self, delivery: &Delivery, named: &Routed, settings: &Settings) {
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
    }

    /// A session that cannot be read now may be the one it is for.
    fn ask_again(&self, row: &DeliveryRow, fault: &RecordFault) -> Result<Judged, InboxError> {
        self.say_corrupt(fault);
        let later = self.world().clock.now().plus(ASK_AGAIN_AFTER);
        let inbox = &self.0.parts.inbox;
        inbox.fail_delivery(row.seq, HoldReason::RecordCorrupt.as_str(), later, false)?;
        Ok(Judged::Over)
    }

    fn refuse(
        &self,
        row: &DeliveryRow,
        delivery: &Delivery,
        reason: RoutingDropReason,
    ) -> Result<Judged, InboxError> {
        self.tell_refused(delivery, reason);
        self.end(row, State::Dropped, reason.as_str())
    }

    pub(super) fn tell_refused(&self, delivery: &Delivery, reason: RoutingDropReason) {
        self.emit(LogEvent::RoutingDropped {
            reason,
            gh_event: delivery.event.clone(),
            action: delivery.action.clone(),
            delivery_id: delivery.delivery_id.clone(),
            actor: delivery.actor.as_ref().map(|actor| actor.login.clone()),
            work_items: Some(vec![delivery.item.clone()]),
        });
    }

    fn end(&self, row: &DeliveryRow, state: State, reason: &str) -> Result<Judged, InboxError> {
        let ended = self.0.parts.inbox.end_delivery(row.seq, state, reason);
        ended.map(|()| Judged::Over)
    }
}

/// The items by which the order of deliveries is kept until they are routed: that which it names, and the
/// pull requests of a check.
fn concerns(delivery: &Delivery) -> impl Iterator<Item = ItemKey> {
    let pulls = match &delivery.effect {
        Effect::Check(check) => &*check.pulls,
        Effect::Text(_)
        | Effect::Presence
        | Effect::Opened
        | Effect::Notice { .. }
        | Effect::Close { .. }
        | Effect::Start { .. } => &[],
    };
    pulls.iter().chain([&delivery.item]).map(WorkItemRef::key)
}

fn end_of_check(delivery: &Delivery, check: &CheckResult) -> CheckEnd {
    let pulls = check.pulls.iter().map(WorkItemRef::key);
    let of: Vec<_> = pulls.collect();
    CheckEnd {
        of: if of.is_empty() {
            vec![delivery.item.key()]
        } else {
            of
        },
        name: check.name.clone().unwrap_or_default(),
        conclusion: check.conclusion.clone(),
    }
}
