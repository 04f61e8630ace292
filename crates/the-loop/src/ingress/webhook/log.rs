//! What the receiver says to the operator.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use the_loop_core::delivery::{Actor, Delivery};
use the_loop_core::event::{LogEvent, RetriedVia, Source};

use super::answer::{Answer, Refusal};
use super::check::Named;
use super::throttle::Throttle;
use crate::clock::Clock;
use crate::store::eventlog::EventLog;
use crate::store::inbox::Accepted;
use crate::tracker::github::payload::Ignored;
use crate::tracker::github::signature::SecretNumber;

/// The event log with the receiver's own habits. Cheap to clone.
#[derive(Clone)]
pub(super) struct Log {
    events: Arc<EventLog>,
    clock: Clock,
    throttle: Arc<Mutex<Throttle>>,
}

impl Log {
    pub(super) fn new(events: Arc<EventLog>, clock: Clock, every: Duration) -> Self {
        Self {
            events,
            clock,
            throttle: Arc::new(Mutex::new(Throttle::new(every))),
        }
    }

    /// Logs a refusal, unless its reason was logged just now (IN-6), and makes the answer.
    pub(super) fn refuse(&self, refusal: Refusal, named: Option<&Named>) -> Answer {
        let reason = refusal.reason();
        let line = {
            let mut throttle = self.throttle.lock().unwrap_or_else(PoisonError::into_inner);
            throttle.note(reason, self.clock.now())
        };
        if let Some(line) = line {
            self.receiver(LogEvent::WebhookRejected {
                reason,
                status: refusal.status(),
                count: line.count,
                gh_event: named.map(|n| n.event.clone()),
                delivery_id: named.map(|n| n.delivery_id.clone()),
            });
        }
        refusal.answer()
    }

    /// A request that routing, being off, leaves alone (IN-1).
    pub(super) fn seen(&self, named: &Named, action: Option<String>, secret: Option<SecretNumber>) {
        self.receiver(LogEvent::WebhookReceived {
            gh_event: named.event.clone(),
            action,
            delivery_id: named.delivery_id.clone(),
            verified: secret.is_some(),
            secret: secret.map(|number| u32::from(number.get())),
        });
    }

    /// Row 13.
    pub(super) fn ignored(&self, named: &Named, ignored: Ignored) {
        self.receiver(LogEvent::RoutingDropped {
            reason: ignored.reason,
            gh_event: named.event.clone(),
            action: ignored.action,
            delivery_id: named.delivery_id.clone(),
            actor: ignored.actor.map(|actor| actor.login),
            work_items: ignored.item.map(|item| vec![item]),
        });
    }

    /// Rows 14 and 15, after the commit.
    pub(super) fn committed(&self, delivery: &Delivery, secret: SecretNumber, how: &Accepted) {
        match how {
            Accepted::New { .. } => {
                let named = Named {
                    event: delivery.event.clone(),
                    delivery_id: delivery.delivery_id.clone(),
                };
                self.seen(&named, delivery.action.clone(), Some(secret));
                self.inbox(how.event(delivery));
            }
            Accepted::Duplicate {
                first_delivery_id,
                reopened,
                ..
            } => {
                self.inbox(how.event(delivery));
                if *reopened {
                    self.inbox(LogEvent::DeliveryRetried {
                        work_item: Some(delivery.item.clone()),
                        delivery_id: first_delivery_id.clone(),
                        via: RetriedVia::Redelivery,
                        actor: login(delivery.actor.as_ref()),
                        was: "abandoned".to_owned(),
                    });
                }
            }
        }
    }

    fn receiver(&self, event: LogEvent) {
        self.events.emit(Source::GhWebhook, event);
    }

    fn inbox(&self, event: LogEvent) {
        self.events.emit(Source::Engine, event);
    }
}

fn login(actor: Option<&Actor>) -> Option<String> {
    actor.map(|actor| actor.login.clone())
}
