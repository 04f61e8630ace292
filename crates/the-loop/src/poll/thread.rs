//! An item that is seen for the first time: its thread is read whole, and nearly all of it is history (IN-45).

use std::collections::HashMap;
use std::sync::Arc;

use the_loop_core::control::Keywords;
use the_loop_core::guard::AuthorizedUsers;
use the_loop_core::poll::{FirstSight, first_sight, is_command_of_ours, last_command};
use the_loop_core::time::Timestamp;

use super::repo::{Begun, Round, said};
use super::rows::{ItemRow, WordsRow};
use super::{Fault, Poller};
use crate::store::inbox::Stream;
use crate::tracker::github::client::list::Page;

/// Which part of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Conversation,
    Reviews,
    Inline,
}

impl Poller {
    /// Reads the thread of an item; what counts of it is found, and its ledger begins with the rest.
    pub(super) fn first_sight(
        &mut self,
        round: &mut Round<'_>,
        row: &ItemRow<'_>,
    ) -> Result<(), Fault> {
        let number = row.number;
        let item = round.item(number)?;
        if !round.fresh.insert(number) {
            return Ok(());
        }
        let pages = self.read_thread(round, row)?;
        let mut thread = Vec::new();
        for (part, page) in &pages {
            for raw in page.rows().ok_or(Fault::Malformed("a thread"))? {
                let words: WordsRow<'_> =
                    serde_json::from_str(raw.get()).map_err(|_| Fault::Malformed("a comment"))?;
                if let Some(said) = said(&words) {
                    thread.push((said, *part, words, raw));
                }
            }
        }
        let submitted: HashMap<u64, Timestamp> = thread
            .iter()
            .filter(|(_, part, ..)| *part == Part::Reviews)
            .map(|(said, _, words, _)| (words.id, said.at))
            .collect();
        for (said, _, words, _) in &mut thread {
            // What was drafted with a review was said with it.
            let of = words.pull_request_review_id;
            let with = of.and_then(|id| submitted.get(&id).copied());
            said.at = with.unwrap_or(said.at);
            said.is_edited = words.is_edited(said.at);
        }
        thread.sort_by_key(|(said, ..)| said.at);
        let says: Vec<_> = thread.iter().map(|(said, ..)| said.clone()).collect();
        let settings = Arc::clone(&round.settings);
        let keywords = Keywords::configured(&settings.routing.control);
        let authorized = AuthorizedUsers::new(&settings.routing.authorized_users);
        let control = self.portable.control(&item);
        let control = control.map_err(|fault| Fault::Ours(fault.to_string()))?;
        let mut facts = FirstSight {
            keywords: &keywords,
            authorized: &authorized,
            over_until: self.over_until(&item.key())?,
            has_control: control.is_some(),
            session_since: self.owned_since(round, row)?,
        };
        if !facts.has_control && last_command(&says, &facts).is_some() {
            // A command that was given before the item was closed the last time is over.
            let history = self.history(&settings, &item, &mut round.asked)?;
            facts.over_until = facts.over_until.max(history.closed.map(|(_, at)| at));
        }
        let counts = first_sight(&says, &facts);
        for at in &counts {
            let (said, part, words, raw) = &thread[*at];
            let row = (words, raw.get());
            match part {
                Part::Conversation => {
                    self.find_words(round, Stream::Conversation, number, row, said.at)?;
                }
                Part::Inline => self.find_words(round, Stream::Inline, number, row, said.at)?,
                Part::Reviews => self.find_review(round, number, words, raw.get())?,
            }
        }
        let commands = counts
            .iter()
            .filter(|at| is_command_of_ours(&says[**at], &keywords, &authorized))
            .count();
        let history = says.iter().enumerate();
        let seen = history.filter(|(at, _)| !counts.contains(at));
        round.ledgers.push(Begun {
            item,
            seen: seen.map(|(_, said)| said.id.clone()).collect(),
            commands,
        });
        Ok(())
    }

    fn read_thread(
        &self,
        round: &mut Round<'_>,
        row: &ItemRow<'_>,
    ) -> Result<Vec<(Part, Page)>, Fault> {
        let number = row.number;
        let (settings, repo) = (Arc::clone(&round.settings), round.repo().clone());
        let mut parts = vec![(Part::Conversation, format!("issues/{number}/comments"))];
        if row.is_pull() {
            parts.push((Part::Reviews, format!("pulls/{number}/reviews")));
            parts.push((Part::Inline, format!("pulls/{number}/comments")));
        }
        let mut all = Vec::new();
        for (part, path) in parts {
            let path = format!("{path}?per_page=100");
            let pages = self.whole(&settings, &repo, &path, &mut round.asked)?;
            all.extend(pages.into_iter().map(|page| (part, page)));
        }
        Ok(all)
    }

    /// The item's last reset or close here.
    fn over_until(&self, key: &the_loop_core::ids::ItemKey) -> Result<Option<Timestamp>, Fault> {
        let mark = self.context.inbox.watermark(key);
        let mark = mark.map_err(|e| Fault::Ours(e.to_string()))?;
        Ok(mark.map(|mark| mark.at))
    }
}
