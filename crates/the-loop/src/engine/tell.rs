//! What is written back on tickets (IN-56 to IN-58). Best effort, after the effect, never deciding an outcome.

use the_loop_core::config::Settings;
use the_loop_core::delivery::{Delivery, Effect, Ending, Ingress};
use the_loop_core::event::{AutoclosedReason, CommentKind, LogEvent, ReactionState};
use the_loop_core::guard::AuthorizedUsers;
use the_loop_core::ids::{TmuxTarget, WorkItemRef};
use the_loop_core::prompt::comment;
use the_loop_core::record::{SessionRecord, TicketChange};

use super::Engine;
use super::item::{Gathered, Job};
use super::write_back::Write;
use crate::tracker::github::client::ReactionPlace;

/// The author of entries that the program writes.
pub const OWN_ACTOR: &str = "the-loop";

impl Engine {
    /// Puts a comment of ours on the ticket. One of the embedded tracker stands when this returns; one of GitHub
    /// waits to be written.
    pub(super) fn tell(
        &self,
        item: &WorkItemRef,
        kind: CommentKind,
        text: &str,
    ) -> Result<(), String> {
        if !item.is_local() {
            let taken = self.write(Write::Comment {
                item: item.clone(),
                kind,
                text: comment::sign(text),
                announces: None,
            })?;
            return if taken {
                Ok(())
            } else {
                Err("there is no credential for its host".to_owned())
            };
        }
        let entry = self.0.tickets.comment(OWN_ACTOR, &comment::sign(text));
        self.0
            .parts
            .inbox
            .add_own_comment(item, &entry.id)
            .map_err(|e| e.to_string())?;
        self.0
            .tickets
            .apply(item, &TicketChange::Entry(entry))
            .map_err(|e| e.to_string())?;
        Ok(())
    }

    /// Says on the ticket how to watch and join.
    pub(super) fn announce(
        &self,
        gathered: &Gathered,
        record: &SessionRecord,
        target: &TmuxTarget,
    ) {
        if !gathered.settings.routing.announce.enabled {
            return;
        }
        let socket = record.tmux_socket.as_deref().unwrap_or_default();
        let work_item = gathered.item.clone();
        let tmux_target = target.to_string();
        let text = comment::announcement(&record.harness, target, socket);
        let told = if work_item.is_local() {
            self.tell(&work_item, CommentKind::Announcement, &text)
                .map(|()| {
                    self.emit(LogEvent::SessionAnnounced {
                        work_item: work_item.clone(),
                        tmux_target: tmux_target.clone(),
                    });
                })
        } else {
            self.write(Write::Comment {
                item: work_item.clone(),
                kind: CommentKind::Announcement,
                text,
                announces: Some(tmux_target.clone()),
            })
            .map(drop)
        };
        if let Err(error) = told {
            self.emit(LogEvent::SessionAnnounceFailed {
                work_item,
                tmux_target,
                error,
            });
        }
    }

    /// Puts a reaction on the comment that a delivery is (IN-58).
    pub(super) fn react(&self, job: &Job, state: ReactionState) {
        let settings = self.settings();
        let reactions = &settings.routing.reactions;
        let content = match state {
            ReactionState::Started => &reactions.started,
            ReactionState::Completed => &reactions.completed,
            ReactionState::Error => &reactions.error,
        };
        let Effect::Text(text) = &job.delivery.effect else {
            return;
        };
        let (true, false, Some(target)) = (
            reactions.enabled,
            content.is_empty(),
            text.comment_id.clone(),
        ) else {
            return;
        };
        // It goes to what was said, whichever session heard it.
        let item = job.delivery.item.clone();
        let content = content.clone();
        let done = if item.is_local() {
            let added = self.0.tickets.add_reaction(&item, &target, &content);
            added.map_err(|e| e.to_string())
        } else {
            let write = Write::Reaction {
                item: item.clone(),
                state,
                content: content.clone(),
                target: target.clone(),
                place: ReactionPlace::of(&job.delivery),
            };
            self.write(write).map(|_| false)
        };
        let work_item = Some(item);
        match done {
            Ok(true) => self.emit(LogEvent::ReactionAdded {
                work_item,
                state,
                content,
                target,
            }),
            Ok(false) => {}
            Err(error) => self.emit(LogEvent::ReactionFailed {
                work_item,
                state,
                content,
                target,
                error,
            }),
        }
    }

    /// Is the comment of a delivery one that the program wrote?
    pub(super) fn is_own_comment(&self, delivery: &Delivery) -> bool {
        let Effect::Text(text) = &delivery.effect else {
            return false;
        };
        text.comment_id.as_ref().is_some_and(|id| {
            self.0
                .parts
                .inbox
                .is_own_comment(&delivery.item, id)
                .unwrap_or(false)
        })
    }

    /// Brings what an accepted delivery carries into the ticket's file, if the verb that accepted it did
    /// not come to it (ST-66).
    pub(super) fn apply_entries(&self, delivery: &Delivery) {
        for entry in &delivery.entries {
            let Ok(change) = serde_json::from_value::<TicketChange>(entry.clone()) else {
                continue;
            };
            let _ = self.0.tickets.apply(&delivery.item, &change);
        }
    }

    /// May the one who closed the item give its local resources back (IN-26)?
    pub(super) fn closer_is_authorised(settings: &Settings, delivery: &Delivery) -> bool {
        match delivery.ingress {
            Ingress::Tracker | Ingress::Cli | Ingress::Api => true,
            Ingress::Webhook | Ingress::Poll | Ingress::Backfill | Ingress::Channel => {
                delivery.actor.as_ref().is_some_and(|actor| {
                    AuthorizedUsers::new(&settings.routing.authorized_users).admits(actor)
                })
            }
        }
    }

    pub(super) fn told_autoclosed(
        &self,
        gathered: &Gathered,
        job: &Job,
        ending: Ending,
        moved_to: Option<String>,
    ) {
        self.emit(LogEvent::SessionAutoclosed {
            work_item: gathered.item.clone(),
            reason: autoclosed(ending, &job.delivery),
            merged: is_merged(&job.delivery),
            moved_to,
            delivery_id: Some(job.delivery.delivery_id.clone()),
        });
    }
}

/// How a ticket or pull request ended.
pub(super) fn autoclosed(ending: Ending, delivery: &Delivery) -> AutoclosedReason {
    match ending {
        Ending::Closed if is_merged(delivery) => AutoclosedReason::PrMerged,
        Ending::Closed if delivery.pull.is_some() => AutoclosedReason::PrClosed,
        Ending::Closed => AutoclosedReason::IssueClosed,
        Ending::Deleted => AutoclosedReason::Deleted,
        Ending::Transferred => AutoclosedReason::Transferred,
    }
}

fn is_merged(delivery: &Delivery) -> bool {
    delivery
        .pull
        .as_ref()
        .is_some_and(|pull| pull.merged == Some(true))
}
