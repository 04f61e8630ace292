//! The last conclusion of every check, by the pull request whose commit was checked (IN-32).

use rusqlite::{Connection, OptionalExtension, params};
use the_loop_core::ci::is_news;
use the_loop_core::delivery::State;
use the_loop_core::event::RoutingDropReason;
use the_loop_core::ids::ItemKey;
use the_loop_core::time::Timestamp;

use super::outcomes::{leave_acceptance, queue};
use super::{Inbox, InboxError, InboxReader, NewOutcome, Routed, Seq};

/// Characters of a check's name by which it is known; what follows is cut.
const NAME_CHARS_MAX: usize = 200;

/// How a check ended.
#[derive(Clone, Debug)]
pub struct CheckEnd {
    /// The pull requests, or else the item, whose commit was checked.
    pub of: Vec<ItemKey>,
    /// Its name.
    pub name: String,
    /// The provider's word for its end.
    pub conclusion: String,
}

impl Inbox {
    /// Remembers how a check ended, and routes its delivery as [`Inbox::route`] does when that is news to
    /// any of those it concerns; else the delivery ends as `unchanged-success`, and `None` is answered. All
    /// of it is one commit, so that a crash neither loses a piece of news nor tells it twice.
    pub fn route_check(
        &self,
        seq: Seq,
        outcomes: &[NewOutcome],
        end: CheckEnd,
    ) -> Result<Option<Routed>, InboxError> {
        let outcomes = outcomes.to_vec();
        let now = self.now();
        self.write(move |connection| {
            if remember(connection, &end, now)? {
                return queue(connection, seq, outcomes, now).map(Some);
            }
            let reason = RoutingDropReason::UnchangedSuccess.as_str();
            leave_acceptance(connection, seq, State::Dropped, Some(reason))?;
            Ok(None)
        })
    }
}

impl InboxReader {
    /// How a check of a pull request, or else of an item, ended last, in the provider's word.
    pub fn last_end(&self, of: &ItemKey, name: &str) -> Result<Option<String>, InboxError> {
        let name: String = name.chars().take(NAME_CHARS_MAX).collect();
        self.read(|connection| {
            Ok(connection
                .prepare_cached("SELECT conclusion FROM ci_last WHERE item_key = ?1 AND name = ?2")?
                .query_row(params![of.as_str(), name], |row| row.get(0))
                .optional()?)
        })
    }
}

/// Was it news to any of them?
fn remember(connection: &Connection, end: &CheckEnd, now: Timestamp) -> Result<bool, InboxError> {
    let name: String = end.name.chars().take(NAME_CHARS_MAX).collect();
    let mut is_any_news = false;
    for key in &end.of {
        let mut known = connection
            .prepare_cached("SELECT name, conclusion FROM ci_last WHERE item_key = ?1")?;
        let rows = known.query_map([key.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let before: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
        let before = before.iter().map(|(name, last)| (&**name, &**last));
        is_any_news |= is_news(before, &name, &end.conclusion);
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO ci_last (item_key, name, conclusion, at) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![key.as_str(), name, end.conclusion, now.unix_ms()])?;
    }
    Ok(is_any_news)
}
