//! The verbs that change a ticket: inbox first, then the file, then the log (SE-77).

use std::sync::atomic::AtomicBool;

use the_loop_core::control::{Command, Keywords};
use the_loop_core::delivery::{Actor, Delivery, Effect, Ending, Ingress, ItemFacts, Text};
use the_loop_core::event::{LogEvent, Source, TicketChange as ChangeWord};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::prompt::comment;
use the_loop_core::record::{
    CloseReason, CommentError, EditedField, EntryKind, Ticket, TicketChange, TicketEntry,
    TicketState, check_comment,
};
use the_loop_core::route::has_label;

use super::{only_repository, repository, show, unknown};
use crate::ops::deliver::{self, Outcome};
use crate::ops::desk::{Desk, inbox_error};
use crate::ops::error::{Kind, OpError};
use crate::store::inbox::{Inbox, Seq};
use crate::store::lock::NumbersLock;
use crate::tracker::local::{OWN_ACTOR, TicketError};

/// Characters of a title, and of a label.
const TITLE_CHARS_MAX: usize = 256;

/// Who changes a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The operating-system user at a shell: authorised by definition (IN-55).
    Person(String),
    /// An agent in its pane: it can speak and never command.
    Agent,
}

impl Who {
    fn name(&self) -> &str {
        match self {
            Self::Person(name) => name,
            Self::Agent => OWN_ACTOR,
        }
    }
}

/// A new ticket.
#[derive(Clone, Debug, Default)]
pub struct NewTicket {
    /// `OWNER/REPO`; needed when several repositories are configured.
    pub repo: Option<String>,
    /// Title.
    pub title: String,
    /// Body.
    pub body: String,
    /// Labels.
    pub labels: Vec<String>,
    /// Set the arming label and say the start keyword.
    pub start: bool,
}

/// What a change came to.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The ticket as it is now.
    pub ticket: Ticket,
    /// Its delivery, where the change is one.
    pub seq: Option<Seq>,
}

/// The verbs over one inbox.
#[derive(Debug)]
pub struct TicketDesk<'a> {
    desk: &'a Desk,
    inbox: Inbox,
    who: Who,
}

fn good_line(what: &str, text: &str) -> Result<String, OpError> {
    let text = text.trim();
    let length = text.chars().count();
    if text.is_empty() {
        return Err(OpError::usage(format!("the {what} is empty")));
    }
    if length > TITLE_CHARS_MAX || text.chars().any(char::is_control) {
        let limit = format!("the {what} must be one line of at most {TITLE_CHARS_MAX} characters");
        return Err(OpError::usage(limit));
    }
    Ok(text.to_owned())
}

/// A body may be empty; else it follows the rules of a comment.
fn good_body(text: &str) -> Result<(), OpError> {
    match check_comment(text.as_bytes()) {
        Ok(_) | Err(CommentError::Empty) => Ok(()),
        Err(e @ (CommentError::NotText | CommentError::TooLong)) => {
            Err(OpError::usage(e.to_string()))
        }
    }
}

fn nothing() -> OpError {
    OpError::new(Kind::Nothing, "nothing to do")
}

fn ticket_error(e: &TicketError) -> OpError {
    match e {
        TicketError::Unknown(item) => unknown(item),
        TicketError::Lock(_) => OpError::new(Kind::Busy, e.to_string()),
        TicketError::NoComment { .. }
        | TicketError::Taken(_)
        | TicketError::NotLocal(_)
        | TicketError::NumbersSpent(_)
        | TicketError::Store(_) => OpError::of(e),
    }
}

/// The delivery is in the inbox but its ticket is not written; the next start of a daemon does it.
fn unwritten(item: &WorkItemRef, e: &TicketError) -> OpError {
    OpError::failed(format!("{item}: accepted, but its file is not written"), e)
        .hint("the next start of the daemon applies the change: the-loop start")
}

fn json(change: &TicketChange) -> Result<serde_json::Value, OpError> {
    serde_json::to_value(change)
        .map_err(|e| OpError::failed("the change cannot be put into words", &e))
}

/// The key of a change of the ticket itself, by its first entry; nothing to change is an error.
fn key_of(
    ticket: &Ticket,
    what: &str,
    changes: &[(TicketChange, ChangeWord)],
) -> Result<String, OpError> {
    let first = changes.first().map(|(change, _)| change);
    match first {
        Some(TicketChange::Entry(entry) | TicketChange::Edit { entry, .. }) => {
            Ok(format!("local//ticket/{}/{what}@{}", ticket.item, entry.id))
        }
        Some(TicketChange::Created(_)) | None => Err(nothing()),
    }
}

impl<'a> TicketDesk<'a> {
    /// Opens the inbox for changes by `who`.
    pub fn open(desk: &'a Desk, who: Who) -> Result<Self, OpError> {
        Ok(Self {
            inbox: desk.inbox()?,
            desk,
            who,
        })
    }

    /// Waits for what becomes of a change; what is no delivery has no outcome.
    pub fn wait(&self, changed: &Changed, stop: &AtomicBool) -> Result<Outcome, OpError> {
        match changed.seq {
            Some(seq) => deliver::wait(self.desk, &self.inbox, &changed.ticket.item, seq, stop),
            None => Ok(Outcome::NotWaited),
        }
    }

    /// `new` (SE-70).
    pub fn create(&self, new: &NewTicket) -> Result<Changed, OpError> {
        let title = good_line("title", &new.title)?;
        good_body(&new.body)?;
        let repo = match &new.repo {
            Some(text) => repository(self.desk, text)?,
            None => only_repository(self.desk)?,
        };
        let mut labels = Vec::new();
        for label in &new.labels {
            labels.push(good_line("label", label)?);
        }
        let settings = self.desk.settings();
        let keyword = if new.start {
            labels.push(settings.routing.auto_execute_label.clone());
            Some(self.start_keyword()?)
        } else {
            None
        };
        let tracker = self.desk.tickets();
        let numbers = tracker.lock_numbers().map_err(|e| ticket_error(&e))?;
        self.settle_new_tickets(&numbers)?;
        let item = tracker
            .next_ref(&numbers, &repo)
            .map_err(|e| ticket_error(&e))?;
        let now = self.desk.world.clock.now();
        let mut ticket = Ticket::new(&item, &title, &new.body, self.who.name(), now);
        for label in labels {
            if !ticket.has_label(&label) {
                let entry = tracker.entry(self.who.name(), EntryKind::Labeled { label });
                ticket.apply(&entry, None);
            }
        }
        // With a start the delivery is the words that say so: ticket, label and start are accepted
        // together or not at all.
        let (effect, event, action, key) = if let Some(keyword) = keyword {
            let entry = tracker.comment(self.who.name(), &keyword);
            ticket.apply(&entry, None);
            let key = format!("local//comment/{}/created", entry.id);
            (self.text(&entry, &keyword), "issue_comment", "created", key)
        } else {
            let unique = self.desk.world.ids.ordered_uuid(now.unix_ms());
            let key = format!("local//ticket/{item}/presence@{unique}");
            (Effect::Presence, "issues", "opened", key)
        };
        let change = TicketChange::Created(Box::new(ticket.clone()));
        let delivery = self.delivery(
            &ticket,
            effect,
            (event, action),
            key,
            std::slice::from_ref(&change),
        )?;
        let seq = deliver::submit(self.desk, &self.inbox, Source::Tracker, &delivery)?;
        let made = tracker.create(&numbers, &ticket);
        drop(numbers);
        made.map_err(|e| unwritten(&item, &e))?;
        self.told(&item, ChangeWord::Created);
        Ok(Changed {
            ticket,
            seq: Some(seq),
        })
    }

    /// A ticket that was accepted and not written yet has its number; it is written first.
    fn settle_new_tickets(&self, numbers: &NumbersLock) -> Result<(), OpError> {
        let rows = self.inbox.unrouted(self.desk.world.clock.now());
        for row in rows.map_err(|e| inbox_error(&e))? {
            let Ok(delivery) = row.delivery else { continue };
            for entry in delivery.entries {
                if let Ok(TicketChange::Created(ticket)) = serde_json::from_value(entry) {
                    let made = self.desk.tickets().create(numbers, &ticket);
                    made.map_err(|e| ticket_error(&e))?;
                }
            }
        }
        Ok(())
    }

    fn start_keyword(&self) -> Result<String, OpError> {
        let control = &self.desk.settings().routing.control;
        let keywords = Keywords::configured(control);
        let phrase = keywords.phrase(Command::Start).map(str::to_owned);
        phrase.ok_or_else(|| {
            OpError::refused("--start: routing.control has no start keyword")
                .hint("use the-loop sessions start on the new ticket")
        })
    }

    /// `comment` (SE-73). What an agent says carries the self mark and is never obeyed (IN-55).
    pub fn comment(&self, item: &WorkItemRef, body: &str) -> Result<Changed, OpError> {
        check_comment(body.as_bytes()).map_err(|e| OpError::usage(e.to_string()))?;
        let ticket = show(self.desk, item)?;
        let body = match self.who {
            Who::Agent => comment::mark(body),
            Who::Person(_) => body.to_owned(),
        };
        let entry = self.desk.tickets().comment(self.who.name(), &body);
        let key = format!("local//comment/{}/created", entry.id);
        let effect = self.text(&entry, &body);
        self.change(
            ticket,
            Some((effect, "issue_comment", "created", key)),
            vec![(TicketChange::Entry(entry), ChangeWord::Commented)],
        )
    }

    /// `edit` (SE-74).
    pub fn edit(
        &self,
        item: &WorkItemRef,
        title: Option<&str>,
        body: Option<&str>,
    ) -> Result<Changed, OpError> {
        if title.is_none() && body.is_none() {
            return Err(OpError::usage(
                "nothing to edit: give --title, --body or --body-file",
            ));
        }
        let title = title.map(|text| good_line("title", text)).transpose()?;
        body.map(good_body).transpose()?;
        let ticket = show(self.desk, item)?;
        let mut changes = Vec::new();
        let mut names = Vec::new();
        let wanted = [
            (EditedField::Title, title, &ticket.title),
            (EditedField::Body, body.map(str::to_owned), &ticket.body),
        ];
        for (field, new, old) in wanted {
            let Some(text) = new.filter(|new| new != old) else {
                continue;
            };
            let old = old.clone();
            let entry = self
                .desk
                .tickets()
                .entry(self.who.name(), EntryKind::Edited { field, old });
            names.push(field.as_str().to_owned());
            changes.push((TicketChange::Edit { entry, text }, ChangeWord::Edited));
        }
        let key = key_of(&ticket, "edited", &changes)?;
        let effect = Effect::Notice { changed: names };
        self.change(ticket, Some((effect, "issues", "edited", key)), changes)
    }

    /// `label` (SE-75). Only the arming label, newly set, asks whether there should be a session (IN-55).
    pub fn label(
        &self,
        item: &WorkItemRef,
        add: &[String],
        remove: &[String],
    ) -> Result<Changed, OpError> {
        let ticket = show(self.desk, item)?;
        let mut after = ticket.clone();
        let mut changes = Vec::new();
        let mut arms = false;
        let arming = &self.desk.settings().routing.auto_execute_label;
        let tracker = self.desk.tickets();
        for label in remove {
            let label = good_line("label", label)?;
            if after.has_label(&label) {
                let entry = tracker.entry(self.who.name(), EntryKind::Unlabeled { label });
                after.apply(&entry, None);
                changes.push((TicketChange::Entry(entry), ChangeWord::Unlabeled));
            }
        }
        for label in add {
            let label = good_line("label", label)?;
            if !after.has_label(&label) {
                arms |= has_label(&[&label], arming);
                let entry = tracker.entry(self.who.name(), EntryKind::Labeled { label });
                after.apply(&entry, None);
                changes.push((TicketChange::Entry(entry), ChangeWord::Labeled));
            }
        }
        let key = key_of(&ticket, "presence", &changes)?;
        let delivery = arms.then_some((Effect::Presence, "issues", "labeled", key));
        self.change(ticket, delivery, changes)
    }

    /// `close` (SE-76).
    pub fn close(&self, item: &WorkItemRef, reason: CloseReason) -> Result<Changed, OpError> {
        let ticket = show(self.desk, item)?;
        if ticket.state == TicketState::Closed {
            return Err(nothing());
        }
        let entry = self
            .desk
            .tickets()
            .entry(self.who.name(), EntryKind::Closed { reason });
        let effect = Effect::Close {
            ending: Ending::Closed,
            at: Some(entry.at),
            moved_to: None,
        };
        let changes = vec![(TicketChange::Entry(entry), ChangeWord::Closed)];
        let key = key_of(&ticket, "closed", &changes)?;
        self.change(ticket, Some((effect, "issues", "closed", key)), changes)
    }

    /// `reopen` (SE-76).
    pub fn reopen(&self, item: &WorkItemRef) -> Result<Changed, OpError> {
        let ticket = show(self.desk, item)?;
        if ticket.state == TicketState::Open {
            return Err(nothing());
        }
        let entry = self
            .desk
            .tickets()
            .entry(self.who.name(), EntryKind::Reopened);
        let changes = vec![(TicketChange::Entry(entry), ChangeWord::Reopened)];
        let key = key_of(&ticket, "presence", &changes)?;
        let presence = (Effect::Presence, "issues", "reopened", key);
        self.change(ticket, Some(presence), changes)
    }

    /// Inbox first, then the file, then the log (SE-77).
    fn change(
        &self,
        ticket: Ticket,
        delivery: Option<(Effect, &str, &str, String)>,
        changes: Vec<(TicketChange, ChangeWord)>,
    ) -> Result<Changed, OpError> {
        let mut after = ticket;
        let item = after.item.clone();
        for (change, _) in &changes {
            match change {
                TicketChange::Entry(entry) => after.apply(entry, None),
                TicketChange::Edit { entry, text } => after.apply(entry, Some(text)),
                TicketChange::Created(_) => false,
            };
        }
        let carried: Vec<TicketChange> = changes.iter().map(|(change, _)| change.clone()).collect();
        let seq = match delivery {
            Some((effect, event, action, key)) => {
                let delivery = self.delivery(&after, effect, (event, action), key, &carried)?;
                Some(deliver::submit(
                    self.desk,
                    &self.inbox,
                    Source::Tracker,
                    &delivery,
                )?)
            }
            None => None,
        };
        for (change, word) in &changes {
            let written = self.desk.tickets().apply(&item, change);
            written.map_err(|e| match seq {
                Some(_) => unwritten(&item, &e),
                None => ticket_error(&e),
            })?;
            self.told(&item, *word);
        }
        let ticket = show(self.desk, &item).unwrap_or(after);
        Ok(Changed { ticket, seq })
    }

    fn text(&self, entry: &TicketEntry, body: &str) -> Effect {
        Effect::Text(Text {
            comment_id: Some(entry.id.clone()),
            body: body.to_owned(),
            author: Some(self.actor()),
            html_url: None,
            created_at: Some(entry.at),
            decision: None,
            edited: false,
        })
    }

    fn actor(&self) -> Actor {
        Actor {
            login: self.who.name().to_owned(),
            id: None,
            bot: false,
        }
    }

    fn delivery(
        &self,
        after: &Ticket,
        effect: Effect,
        (event, action): (&str, &str),
        content_key: String,
        changes: &[TicketChange],
    ) -> Result<Delivery, OpError> {
        let world = &self.desk.world;
        let now = world.clock.now();
        let entries: Result<Vec<_>, _> = changes.iter().map(json).collect();
        Ok(Delivery {
            delivery_id: format!("tracker-{}", world.ids.ordered_uuid(now.unix_ms())),
            content_key,
            numeric_key: None,
            ingress: Ingress::Tracker,
            item: after.item.clone(),
            event: event.to_owned(),
            action: Some(action.to_owned()),
            actor: Some(self.actor()),
            received_at: now,
            pull: None,
            place: None,
            asked: None,
            facts: ItemFacts {
                node_id: None,
                title: Some(after.title.clone()),
                closed: Some(after.state == TicketState::Closed),
                labels: Some(after.labels.clone()),
                author: Some(Actor {
                    login: after.author.clone(),
                    id: None,
                    bot: false,
                }),
                html_url: None,
                is_pull_request: false,
            },
            effect,
            entries: entries?,
        })
    }

    fn told(&self, item: &WorkItemRef, change: ChangeWord) {
        self.desk.emit(
            Source::Tracker,
            LogEvent::TicketChanged {
                work_item: item.clone(),
                change,
                actor: self.who.name().to_owned(),
            },
        );
    }
}
