//! Items that ended: by their row, or asked for one by one (IN-49). Absence proves nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use the_loop_core::config::Settings;
use the_loop_core::delivery::Ingress;
use the_loop_core::event::{ClosureKind, ClosureState};
use the_loop_core::ids::{RepoRef, WorkItemRef};

use super::repo::{Finding, FindingKind, Round};
use super::rows::{ItemRow, time};
use super::{Fault, Followed, LOOK_AROUND_EVERY, Poller, Sessions, Tally};
use crate::store::inbox::Stream;
use crate::tracker::github::client::WriteError;
use crate::tracker::github::client::list::Answered;
use crate::tracker::github::payload::pull_seen;

impl Poller {
    /// A row says that an item of a session is closed.
    pub(super) fn ended(
        &mut self,
        round: &mut Round<'_>,
        item: &WorkItemRef,
        row: &ItemRow<'_>,
        text: &str,
    ) -> Result<(), Fault> {
        let (settings, now) = (Arc::clone(&round.settings), self.now());
        let history = self.history(&settings, item, &mut round.asked)?;
        let closer = history.closed.and_then(|(closer, _)| closer);
        let sender = closer.as_deref().unwrap_or("null");
        let closed_at = row.closed_at.clone().unwrap_or_default();
        let delivery_id = format!("poll-close-{item}-{closed_at}");
        let (state, kind, made) = if row.is_pull() {
            let pull = self.pull_text(round, row.number)?;
            let shown = pull_seen(&pull, item).ok_or(Fault::Malformed("a pull request"))?;
            let state = match shown.facts.merged {
                Some(true) => ClosureState::Merged,
                Some(false) | None => ClosureState::Closed,
            };
            let parts = [("pull_request", &*pull), ("sender", sender)];
            let made = round.made("pull_request", "closed", &parts, &delivery_id, now);
            (state, ClosureKind::PullRequest, made)
        } else {
            let parts = [("issue", text), ("sender", sender)];
            let made = round.made("issues", "closed", &parts, &delivery_id, now);
            (ClosureState::Closed, ClosureKind::Issue, made)
        };
        round.found.extend(made.map(|delivery| Finding {
            at: time(row.closed_at.as_ref()).unwrap_or(now),
            delivery,
            kind: FindingKind::Closure(state, kind),
        }));
        Ok(())
    }

    /// At the start and every hour: asks for every item with a session, and for every item whose start is
    /// recorded and whose session is missed.
    pub(super) fn look_around(
        &mut self,
        settings: &Arc<Settings>,
        sessions: &Sessions,
        tally: &mut Tally,
    ) {
        let now = self.now();
        let last = self.memory.looked_around_at;
        if last.is_some_and(|at| now >= at && now.since(at) < LOOK_AROUND_EVERY) {
            return;
        }
        self.memory.looked_around_at = Some(now);
        let mut by_repo: BTreeMap<String, (RepoRef, Vec<WorkItemRef>)> = BTreeMap::new();
        let wanted = self.with_a_session(sessions).into_iter();
        for item in wanted.chain(self.missing_a_session(sessions)) {
            let repo = item.repo().clone();
            let known = settings.integrations.github.knows_host(&repo.host);
            if !item.is_local() && item.has_tracker() && known {
                let entry = by_repo.entry(repo.key()).or_insert((repo, Vec::new()));
                entry.1.push(item);
            }
        }
        for (repo, items) in by_repo.into_values() {
            if (self.context.is_ending)() || self.has_to_wait(settings, &repo.host) {
                tally.interrupted = true;
                return;
            }
            // An item that is judged here is not judged again when its list shows it: what is new to the list
            // is new here.
            let cursor = self
                .context
                .inbox
                .cursor(&repo, Stream::Items)
                .ok()
                .flatten();
            let since = cursor.map_or(now, |cursor| cursor.since);
            let followed = Followed {
                repo,
                monitor: the_loop_core::config::PollMonitor::default(),
            };
            let settings = Arc::clone(settings);
            let mut round = Round::new(settings, followed, sessions, Ingress::Poll, since);
            for item in items {
                if let Err(fault) = self.look_at(&mut round, &item)
                    && self.first_time(format!("look {} {fault}", item.key().as_str()))
                {
                    self.item_error(&item, &fault);
                    round.tally.errors += 1;
                }
            }
            if let Err(fault) = self.hand_over(&mut round) {
                self.tell_fault(&mut round, &fault);
            }
            tally.add(&round);
        }
    }

    fn with_a_session(&self, sessions: &Sessions) -> Vec<WorkItemRef> {
        let records = self.registry.list().map(|listing| listing.records);
        let mut all: Vec<WorkItemRef> = Vec::new();
        for found in records.unwrap_or_default() {
            if sessions.knows(&found.record.item.key()) {
                all.push(found.record.item.clone());
                all.extend(found.record.endpoints().map(|pull| pull.item.clone()));
            }
        }
        all
    }

    fn missing_a_session(&self, sessions: &Sessions) -> Vec<WorkItemRef> {
        let listing = self.portable.list().map(|listing| listing.records);
        let armed = listing.unwrap_or_default().into_iter().filter(|entry| {
            let control = entry.record.control();
            control.is_some_and(|control| control.armed())
                && !sessions.knows(&entry.record.item.key())
        });
        armed.map(|entry| entry.record.item).collect()
    }

    fn look_at(&mut self, round: &mut Round<'_>, item: &WorkItemRef) -> Result<(), Fault> {
        let settings = Arc::clone(&round.settings);
        let (github, repo) = (self.context.github.clone(), item.repo().clone());
        let path = format!("issues/{}", item.number());
        let address = github.address(&settings, &repo, &path);
        let address = address.ok_or(Fault::Malformed("the host"))?;
        let is_known = round.sessions.knows(&item.key());
        let validators = &self.memory.validators;
        let validator = validators.get(&address).filter(|_| is_known).cloned();
        let validator = validator.as_deref();
        match github.ask_address(&settings, &repo, &address, validator, &mut round.asked)? {
            Answered::Page(page) => {
                if let Some(validator) = page.validator {
                    self.memory.validators.insert(address, validator);
                }
                let text = String::from_utf8(page.text);
                let text = text.map_err(|_| Fault::Malformed("an item"))?;
                round.items.insert(item.number(), text);
                self.memory.judged.remove(&item.key());
                self.judge_item(round, item.number())
            }
            Answered::Gone if is_known => {
                self.is_gone(round, item, "deleted", None, ClosureState::Deleted);
                Ok(())
            }
            Answered::Moved(place) if is_known => {
                let moved = self.moved_to(&settings, round, &place)?;
                let (number, page) = moved;
                // With the same number it is most often its repository that has another name.
                if number != item.number() {
                    let state = ClosureState::Transferred;
                    self.is_gone(round, item, "transferred", page, state);
                }
                Ok(())
            }
            // Its target may have moved all the same.
            Answered::Unchanged if is_pull_of(round.sessions, item) => {
                self.find_conflict(round, item)
            }
            Answered::Unchanged | Answered::Gone | Answered::Moved(_) => Ok(()),
        }
    }

    fn moved_to(
        &self,
        settings: &Settings,
        round: &mut Round<'_>,
        place: &str,
    ) -> Result<(u64, Option<String>), Fault> {
        #[derive(serde::Deserialize)]
        struct There {
            number: u64,
            html_url: Option<String>,
        }
        let repo = round.repo().clone();
        let github = &self.context.github;
        match github.ask_address(settings, &repo, place, None, &mut round.asked)? {
            Answered::Page(page) => {
                let there: There = page.read().ok_or(Fault::Malformed("an item"))?;
                Ok((there.number, there.html_url))
            }
            Answered::Unchanged | Answered::Moved(_) | Answered::Gone => {
                Err(Fault::Github(WriteError::NotFound))
            }
        }
    }

    fn is_gone(
        &mut self,
        round: &mut Round<'_>,
        item: &WorkItemRef,
        action: &str,
        page: Option<String>,
        state: ClosureState,
    ) {
        let now = self.now();
        let issue = json!({ "number": item.number() }).to_string();
        let changes = json!({ "new_issue": { "html_url": page } }).to_string();
        let parts = [("issue", &*issue), ("changes", &*changes)];
        let delivery_id = format!("poll-close-{item}-{action}");
        let made = round.made("issues", action, &parts, &delivery_id, now);
        round.found.extend(made.map(|delivery| Finding {
            at: now,
            delivery,
            kind: FindingKind::Closure(state, ClosureKind::Issue),
        }));
    }
}

/// Is this a recorded pull request of a session, and not its item?
fn is_pull_of(sessions: &Sessions, item: &WorkItemRef) -> bool {
    let key = item.key();
    sessions
        .owners
        .iter()
        .any(|owner| owner.pulls.contains(&key))
}
