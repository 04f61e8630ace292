//! Limits that stop an item or the machine until they are released (DI-51, DI-52).

use std::time::Duration;

use the_loop_core::config::{Limits, Settings};
use the_loop_core::control::{Command, Keywords};
use the_loop_core::event::{CommentKind, LimitReason, LogEvent, ReleasedVia};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::prompt::comment;
use the_loop_core::tokens::{is_raised, over};

use super::Engine;
use super::item::Gathered;
use super::own_account::SELF_ANSWERS_MAX;
use crate::store::inbox::{Parked, Scope};

/// A limit that was reached.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    scope: Scope,
    reason: LimitReason,
    limit: u64,
    value: u64,
}

impl Reached {
    /// The agent answers itself (IN-25).
    pub(super) fn self_conversation(item: &WorkItemRef) -> Self {
        Self {
            scope: Scope::Item(item.clone()),
            reason: LimitReason::SelfConversation,
            limit: SELF_ANSWERS_MAX as u64,
            value: SELF_ANSWERS_MAX as u64,
        }
    }
}

/// A limit in words, for people.
pub fn limit_words(reason: LimitReason, limit: u64) -> String {
    match reason {
        LimitReason::DeliveriesPerHour => format!("more than {limit} deliveries in an hour"),
        LimitReason::DeliveriesPerDay => format!("more than {limit} deliveries in a day"),
        LimitReason::TokensPerItem => format!("{limit} tokens are used up"),
        LimitReason::TokensPerDay => format!("the day's {limit} tokens are used up"),
        LimitReason::SelfConversation => "the agent answers itself".to_owned(),
    }
}

/// The configured value of a limit; `None` for one that is not configured by a number.
pub fn limit_of(limits: &Limits, reason: LimitReason) -> Option<u64> {
    match reason {
        LimitReason::DeliveriesPerHour => Some(limits.max_deliveries_per_item_per_hour.into()),
        LimitReason::DeliveriesPerDay => Some(limits.max_deliveries_per_item_per_day.into()),
        LimitReason::TokensPerItem => Some(limits.max_tokens_per_item),
        LimitReason::TokensPerDay => Some(limits.max_tokens_per_day),
        LimitReason::SelfConversation => None,
    }
}

impl Engine {
    /// Is the item stopped, or the whole machine? Counting may have done it a moment ago.
    pub(super) fn parked_by_now(&self, gathered: &Gathered) -> bool {
        let scopes = [Scope::Machine, Scope::Item(gathered.item.clone())];
        scopes.iter().any(|scope| {
            let parked = self.0.parts.inbox.parked(scope).ok().flatten();
            parked.is_some_and(|parked| parked.is_in_force())
        })
    }

    /// The limit that keeps the item's next prompt from its agent, if one does.
    pub(super) fn over_limit(&self, gathered: &Gathered) -> Option<Reached> {
        self.over_tokens(&gathered.item, &gathered.settings)
            .or_else(|| self.over_rate(gathered))
    }

    /// The limit on tokens that the item, or the machine, has reached.
    pub(super) fn over_tokens(&self, item: &WorkItemRef, settings: &Settings) -> Option<Reached> {
        let (limits, inbox) = (&settings.routing.limits, &self.0.parts.inbox);
        let today = self.world().clock.now().day();
        if limits.max_tokens_per_day > 0 {
            let released = inbox.parked(&Scope::Machine).ok().flatten();
            // What was used at a release counts for the day of that release.
            let base = released
                .filter(|parked| parked.released_at.is_some_and(|at| at.day() == today))
                .and_then(|parked| parked.base);
            let used = inbox
                .usage_on(&today)
                .map_or(0, the_loop_core::tokens::Usage::total);
            let limit = limits.max_tokens_per_day;
            if let Some(value) = over(limit, used, base.unwrap_or(0)) {
                return Some(Reached {
                    scope: Scope::Machine,
                    reason: LimitReason::TokensPerDay,
                    limit,
                    value,
                });
            }
        }
        let limit = limits.max_tokens_per_item;
        if limit == 0 {
            return None;
        }
        let scope = Scope::Item(item.clone());
        let released = inbox.parked(&scope).ok().flatten();
        let base = released
            .filter(|parked| !parked.is_in_force())
            .and_then(|parked| parked.base);
        let value = over(limit, self.used_by(item), base.unwrap_or(0))?;
        Some(Reached {
            scope,
            reason: LimitReason::TokensPerItem,
            limit,
            value,
        })
    }

    fn used_by(&self, item: &WorkItemRef) -> u64 {
        let used = self.0.parts.inbox.usage_of(&item.key());
        used.map_or(0, the_loop_core::tokens::Usage::total)
    }

    fn over_rate(&self, gathered: &Gathered) -> Option<Reached> {
        let limits = &gathered.settings.routing.limits;
        let now = self.world().clock.now();
        let hour = Duration::from_hours(1);
        // A release begins the counting anew, else the next prompt would park the item again.
        let scope = Scope::Item(gathered.item.clone());
        let released = self.0.parts.inbox.parked(&scope).ok().flatten();
        let released_at = released.and_then(|parked| parked.released_at);
        for (limit, window, reason) in [
            (
                limits.max_deliveries_per_item_per_hour,
                hour,
                LimitReason::DeliveriesPerHour,
            ),
            (
                limits.max_deliveries_per_item_per_day,
                hour * 24,
                LimitReason::DeliveriesPerDay,
            ),
        ] {
            let limit = u64::from(limit);
            if limit == 0 {
                continue;
            }
            let since = now.minus(window);
            let since = released_at.map_or(since, |released| since.max(released));
            let sent = self
                .0
                .parts
                .inbox
                .prompts_sent(&gathered.key, since)
                .unwrap_or(0);
            if sent >= limit {
                return Some(Reached {
                    scope,
                    reason,
                    limit,
                    value: sent + 1,
                });
            }
        }
        None
    }

    /// Stops the prompts of an item, or of the machine, and says so once. `item` is the one at which the
    /// limit was reached: its ticket is told (DI-52).
    pub(super) fn park(&self, item: &WorkItemRef, settings: &Settings, reached: &Reached) {
        let Reached {
            scope,
            reason,
            limit,
            value,
        } = reached;
        let now = self.world().clock.now();
        let inbox = &self.0.parts.inbox;
        if !inbox
            .park(scope, reason.as_str(), *limit, now)
            .unwrap_or(false)
        {
            return;
        }
        let words = limit_words(*reason, *limit);
        let (work_item, text) = match scope {
            Scope::Machine => (None, comment::machine_parked(&words)),
            Scope::Item(item) => {
                let keywords = Keywords::configured(&settings.routing.control);
                let resume = keywords.phrase(Command::Resume);
                (Some(item.clone()), comment::parked(&words, resume, item))
            }
        };
        let told = self.tell(item, CommentKind::Parked, &text).is_ok();
        if told {
            let _ = inbox.parked_told(scope, now);
        }
        self.emit(LogEvent::LimitParked {
            work_item,
            reason: *reason,
            limit: *limit,
            value: *value,
            told,
        });
    }

    /// Takes a limit away; counting starts anew. Gives what it was, `None` when nothing was in force.
    pub(super) fn release(
        &self,
        scope: &Scope,
        actor: Option<String>,
        via: ReleasedVia,
    ) -> Option<Parked> {
        let now = self.world().clock.now();
        let inbox = &self.0.parts.inbox;
        let (work_item, used) = match scope {
            Scope::Item(item) => (Some(item.clone()), self.used_by(item)),
            Scope::Machine => {
                let used = inbox.usage_on(&now.day());
                (None, used.map_or(0, the_loop_core::tokens::Usage::total))
            }
        };
        let parked = inbox.release(scope, now, Some(used)).ok().flatten()?;
        self.emit(LogEvent::LimitReleased {
            work_item,
            reason: LimitReason::parse(&parked.reason).unwrap_or(LimitReason::DeliveriesPerHour),
            via,
            actor,
        });
        self.wake();
        Some(parked)
    }

    /// Takes the machine's limit away on somebody's wish (`resume --all`); which it was, and its value.
    pub fn release_machine(&self, actor: &str) -> Option<(LimitReason, u64)> {
        let released = self.release(&Scope::Machine, Some(actor.to_owned()), ReleasedVia::Cli)?;
        let reason = LimitReason::parse(&released.reason).unwrap_or(LimitReason::TokensPerDay);
        Some((reason, released.base.unwrap_or(0)))
    }

    /// Lets go what a limit no longer stops: it was raised or switched off, or its day is over.
    pub(super) fn release_what_is_over(&self, settings: &Settings) {
        let today = self.world().clock.now().day();
        for parked in self.0.parts.inbox.all_parked().unwrap_or_default() {
            let Some(reason) = LimitReason::parse(&parked.reason) else {
                continue;
            };
            let limit = limit_of(&settings.routing.limits, reason);
            let raised = limit
                .zip(parked.base)
                .is_some_and(|(limit, stopped_at)| is_raised(limit, stopped_at));
            if reason == LimitReason::TokensPerDay && parked.since.day() != today {
                self.release(&parked.scope, None, ReleasedVia::NewDay);
            } else if raised {
                self.release(&parked.scope, None, ReleasedVia::Config);
            }
        }
    }
}
