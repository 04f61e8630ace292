//! An item that moved: has it ended, is it followed, were reviews submitted, should it have a session
//! (IN-43, IN-46)?

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use the_loop_core::config::SpawnOnUnmatched;
use the_loop_core::control::start_required;
use the_loop_core::delivery::Actor;
use the_loop_core::event::LogEvent;
use the_loop_core::guard::AuthorizedUsers;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::link::closing_links;
use the_loop_core::poll::{Gate, Presence, gate};
use the_loop_core::route::has_label;
use the_loop_core::time::Timestamp;

use super::ask::rows;
use super::repo::{Finding, FindingKind, Round};
use super::rows::{ItemRow, WordsRow, time};
use super::{Fault, Poller};
use crate::store::inbox::Stream;
use crate::tracker::github::payload::pull_seen;

/// After this long nothing more happens in the second of a change.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

impl Poller {
    /// Judges an item as its row shows it, once for each of its changes.
    pub(super) fn judge_item(&mut self, round: &mut Round<'_>, number: u64) -> Result<(), Fault> {
        let text = self.item_text(round, number)?;
        let row: ItemRow<'_> =
            serde_json::from_str(&text).map_err(|_| Fault::Malformed("an item"))?;
        let item = round.item(number)?;
        let key = item.key();
        let changed = hashed(&text);
        if self.memory.judged.get(&key) == Some(&changed) {
            return Ok(());
        }
        round.tally.items_seen += 1;
        let is_known = round.sessions.knows(&key);
        let monitor = &round.followed.monitor;
        let is_followed = if row.is_pull() {
            monitor.pull_requests
        } else {
            monitor.issues
        };
        if row.is_closed() {
            if is_known {
                self.ended(round, &item, &row, &text)?;
            }
        } else if (is_followed || is_known) && self.is_of_interest(round, &row)? {
            self.follow(round, &item, &row, &text)?;
        }
        round.judged.push((key, changed));
        Ok(())
    }

    fn follow(
        &mut self,
        round: &mut Round<'_>,
        item: &WorkItemRef,
        row: &ItemRow<'_>,
        text: &str,
    ) -> Result<(), Fault> {
        let ledger = if round.keeps_ledgers() {
            self.ledger(item)?
        } else {
            None
        };
        let gave_up = ledger.as_ref().is_some_and(super::ledger::Ledger::gave_up);
        if ledger.is_none() && round.keeps_ledgers() {
            self.first_sight(round, row)?;
        } else if row.is_pull() {
            self.reviews(round, row.number)?;
        }
        let now = round.answered_at.unwrap_or_else(|| self.now());
        let changed = time(row.updated_at.as_ref());
        if row.is_pull() && changed.is_none_or(|at| at.plus(SETTLED_AFTER) > now) {
            round.unsettled.push(row.number);
        }
        if row.is_pull() && self.owned_since(round, row)?.is_some() {
            self.find_conflict(round, item)?;
        }
        self.ask_for_session(round, item, row, text, gave_up)
    }

    /// Is it worth a look: by its label, or because a session lives that it may belong to (IN-43)?
    pub(super) fn is_of_interest(
        &self,
        round: &mut Round<'_>,
        row: &ItemRow<'_>,
    ) -> Result<bool, Fault> {
        let is_armed = !row.is_closed() && has_arming_label(round, row);
        Ok(is_armed || self.owned_since(round, row)?.is_some())
    }

    /// Since when a session lives that it belongs to; `None`: it belongs to none. Of a pull request its body
    /// and its branch are asked as well.
    pub(super) fn owned_since(
        &self,
        round: &mut Round<'_>,
        row: &ItemRow<'_>,
    ) -> Result<Option<Timestamp>, Fault> {
        let (key, sessions) = (round.item(row.number)?.key(), round.sessions);
        if let Some(owner) = sessions.of(&key) {
            return Ok(sessions.since(owner));
        }
        if !row.is_pull() || row.is_closed() {
            return Ok(None);
        }
        let body = row.body.as_deref().unwrap_or_default();
        let mut closes = closing_links(body, round.repo());
        closes.extend(round.linked.get(&row.number).into_iter().flatten().cloned());
        if let Some(owner) = closes.iter().find_map(|item| sessions.of(&item.key())) {
            return Ok(sessions.since(owner));
        }
        if !sessions.are_in(round.repo()) {
            return Ok(None);
        }
        let (item, repo) = (round.item(row.number)?, round.repo().clone());
        let pull = self.pull_text(round, row.number)?;
        let pull = pull_seen(&pull, &item).ok_or(Fault::Malformed("a pull request"))?;
        // A branch of somebody's fork may be called anything.
        let branch = pull.facts.head_ref.filter(|_| pull.facts.is_own_branch);
        let owner = branch.and_then(|branch| sessions.of_branch(&repo, &branch));
        Ok(owner.and_then(|owner| sessions.since(owner)))
    }

    /// Reviews that were submitted since, each with the words on changed lines that it brought: those were
    /// written, and shown to nobody, long before.
    pub(super) fn reviews(&mut self, round: &mut Round<'_>, number: u64) -> Result<(), Fault> {
        let (settings, repo) = (Arc::clone(&round.settings), round.repo().clone());
        let path = format!("pulls/{number}/reviews?per_page=100");
        let pages = self.whole(&settings, &repo, &path, &mut round.asked)?;
        for page in &pages {
            for raw in page.rows().ok_or(Fault::Malformed("a list of reviews"))? {
                let review: WordsRow<'_> =
                    serde_json::from_str(raw.get()).map_err(|_| Fault::Malformed("a review"))?;
                let is_new = review.said_at().is_some_and(|at| at >= round.since);
                let done = format!("review {}", review.key());
                if is_new && !self.memory.offered.contains(&done) {
                    self.find_review(round, number, &review, raw.get())?;
                    let path =
                        format!("pulls/{number}/reviews/{}/comments?per_page=100", review.id);
                    let pages = self.whole(&settings, &repo, &path, &mut round.asked)?;
                    for raw in rows(&pages, "a list of comments")? {
                        self.find_inline_of(round, number, &review, raw)?;
                    }
                    round.reviews.push(done);
                }
            }
        }
        Ok(())
    }

    /// Puts a review among what was found.
    pub(super) fn find_review(
        &mut self,
        round: &mut Round<'_>,
        number: u64,
        review: &WordsRow<'_>,
        raw: &str,
    ) -> Result<(), Fault> {
        let now = self.now();
        let (id, at) = (review.key(), review.said_at().unwrap_or(now));
        let pull = self.pull_text(round, number)?;
        let sender = review.user.map_or("null", |user| user.get());
        let parts = [
            ("pull_request", &*pull),
            ("review", raw),
            ("sender", sender),
        ];
        let delivery_id = format!("poll-comment-{id}");
        let made = round.made(
            "pull_request_review",
            "submitted",
            &parts,
            &delivery_id,
            now,
        );
        round.found.extend(made.map(|delivery| Finding {
            at,
            delivery,
            kind: FindingKind::Words(id),
        }));
        Ok(())
    }

    fn find_inline_of(
        &mut self,
        round: &mut Round<'_>,
        number: u64,
        review: &WordsRow<'_>,
        raw: &serde_json::value::RawValue,
    ) -> Result<(), Fault> {
        let row: WordsRow<'_> =
            serde_json::from_str(raw.get()).map_err(|_| Fault::Malformed("a comment"))?;
        // They were said when the review was submitted, however long before they were drafted.
        let at = review.said_at().unwrap_or_else(|| self.now());
        self.find_words(round, Stream::Inline, number, (&row, raw.get()), at)
    }

    /// The spawn gate (IN-46).
    fn ask_for_session(
        &mut self,
        round: &mut Round<'_>,
        item: &WorkItemRef,
        row: &ItemRow<'_>,
        text: &str,
        gave_up: bool,
    ) -> Result<(), Fault> {
        let settings = Arc::clone(&round.settings);
        match settings.routing.spawn_on_unmatched {
            SpawnOnUnmatched::Never => return Ok(()),
            SpawnOnUnmatched::Labeled | SpawnOnUnmatched::Always => {}
        }
        let control = self.portable.control(item);
        let control = control.map_err(|fault| Fault::Ours(fault.to_string()))?;
        let authorized = AuthorizedUsers::new(&settings.routing.authorized_users);
        let author = row.author();
        let presence = Presence {
            is_armed_by_label: !row.is_closed() && has_arming_label(round, row),
            is_owned: self.owned_since(round, row)?.is_some(),
            gave_up,
            recorded: control.as_ref().map(|c| (c.command, &*c.actor)),
            start_required: start_required(&settings.routing.control),
            author: author.as_ref(),
            authorized: &authorized,
        };
        let behind = match gate(&presence) {
            Gate::Closed => return Ok(()),
            Gate::Open(actor) => actor,
            Gate::AskWhoLabelled => {
                let history = self.history(&settings, item, &mut round.asked)?;
                let labelled = history.labelled_by;
                let Some(actor) = labelled.filter(|who| authorized.admits(who)) else {
                    self.tell_unauthorized(item, author.as_ref());
                    return Ok(());
                };
                actor
            }
        };
        self.find_presence(round, item, row, text, &behind)
    }

    fn tell_unauthorized(&mut self, item: &WorkItemRef, author: Option<&Actor>) {
        if self.first_time(format!("unauthorized {}", item.key().as_str())) {
            self.emit(LogEvent::PollUnauthorized {
                work_item: item.clone(),
                actor: author.map(|actor| actor.login.clone()).unwrap_or_default(),
            });
        }
    }

    fn find_presence(
        &mut self,
        round: &mut Round<'_>,
        item: &WorkItemRef,
        row: &ItemRow<'_>,
        text: &str,
        behind: &Actor,
    ) -> Result<(), Fault> {
        let now = self.now();
        let delivery_id = format!("poll-presence-{item}-{}", self.context.world.ids.uuid());
        let label = json!({ "name": round.settings.routing.auto_execute_label }).to_string();
        let sender = sender(behind).to_string();
        let pull;
        let (event, part) = if row.is_pull() {
            pull = self.pull_text(round, row.number)?;
            ("pull_request", ("pull_request", &*pull))
        } else {
            ("issues", ("issue", text))
        };
        let parts = [part, ("label", &*label), ("sender", &*sender)];
        let made = round.made(event, "labeled", &parts, &delivery_id, now);
        round.found.extend(made.map(|delivery| Finding {
            at: now,
            delivery,
            kind: FindingKind::Presence,
        }));
        Ok(())
    }

    /// An item as it came, asked for where no list showed it.
    pub(super) fn item_text(&self, round: &mut Round<'_>, number: u64) -> Result<String, Fault> {
        if let Some(text) = round.items.get(&number) {
            return Ok(text.clone());
        }
        let (settings, repo) = (Arc::clone(&round.settings), round.repo().clone());
        let text = self.thing(
            &settings,
            &repo,
            &format!("issues/{number}"),
            &mut round.asked,
        )?;
        round.items.insert(number, text.clone());
        Ok(text)
    }

    /// A pull request as it came.
    pub(super) fn pull_text(&self, round: &mut Round<'_>, number: u64) -> Result<String, Fault> {
        if let Some(text) = round.pulls.get(&number) {
            return Ok(text.clone());
        }
        let (settings, repo) = (Arc::clone(&round.settings), round.repo().clone());
        let text = self.thing(
            &settings,
            &repo,
            &format!("pulls/{number}"),
            &mut round.asked,
        )?;
        round.pulls.insert(number, text.clone());
        Ok(text)
    }
}

/// Tells rows of one item apart.
pub(super) fn hashed(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn has_arming_label(round: &Round<'_>, row: &ItemRow<'_>) -> bool {
    let label = &round.settings.routing.auto_execute_label;
    has_label(&row.label_names(), label)
}

/// An account as GitHub shows one.
fn sender(actor: &Actor) -> Value {
    let kind = if actor.bot { "Bot" } else { "User" };
    json!({ "login": actor.login, "id": actor.id, "type": kind })
}
