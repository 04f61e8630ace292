//! The way to GitHub: lists with all their pages, single things, what happened to an item.

use std::collections::HashSet;

use serde::Deserialize;
use the_loop_core::config::Settings;
use the_loop_core::delivery::Actor;
use the_loop_core::ids::{RepoRef, WorkItemRef};
use the_loop_core::route::has_label;
use the_loop_core::time::Timestamp;

use super::rows::{EventRow, actor, time};
use super::{Fault, Poller};
use crate::tracker::github::client::list::{Answered, Asked, Page};

/// Pages of a list that a cycle reads; the rest follows in the next (IN-41).
pub(super) const PAGES_MAX: usize = 20;

/// What a list answered.
pub(super) enum Listed {
    /// As before.
    Unchanged,
    /// These pages.
    Pages {
        pages: Vec<Page>,
        /// There are more than were read.
        is_cut: bool,
    },
}

/// What happened to an item, as far as it decides something.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Who closed it last, as GitHub shows the account, and when.
    pub closed: Option<(Option<String>, Timestamp)>,
    /// Who set the label last.
    pub labelled_by: Option<Actor>,
}

impl Poller {
    /// Reads a list; `until` says after which page enough was read.
    pub(super) fn list(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        path: &str,
        (validator, pages_max): (Option<&str>, usize),
        until: impl Fn(&Page) -> bool,
        asked: &mut Asked,
    ) -> Result<Listed, Fault> {
        let github = &self.context.github;
        let unknown = Fault::Malformed("the host");
        let mut address = github.address(settings, repo, path).ok_or(unknown)?;
        let (mut pages, mut known) = (Vec::new(), HashSet::new());
        loop {
            let validator = validator.filter(|_| pages.is_empty());
            let page = match github.ask_address(settings, repo, &address, validator, asked)? {
                Answered::Unchanged => return Ok(Listed::Unchanged),
                Answered::Page(page) => page,
                Answered::Moved(place) if pages.is_empty() && known.insert(address.clone()) => {
                    // A repository that has another name now.
                    address = place;
                    continue;
                }
                Answered::Moved(_) | Answered::Gone => return Err(Fault::Malformed("a list")),
            };
            known.insert(address);
            let next = page.next.clone().filter(|_| !until(&page));
            pages.push(page);
            match next {
                // A page that leads to one that was read would lead on for ever.
                Some(next) if known.contains(&next) => return Err(Fault::Malformed("a list")),
                Some(next) if pages.len() < pages_max => address = next,
                more => {
                    let is_cut = more.is_some();
                    return Ok(Listed::Pages { pages, is_cut });
                }
            }
        }
    }

    /// All pages of something that belongs to one item.
    pub(super) fn whole(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        path: &str,
        asked: &mut Asked,
    ) -> Result<Vec<Page>, Fault> {
        match self.list(settings, repo, path, (None, PAGES_MAX), |_| false, asked)? {
            Listed::Pages { pages, .. } => Ok(pages),
            Listed::Unchanged => Err(Fault::Malformed("a list")),
        }
    }

    /// A thing below a repository, as it came.
    pub(super) fn thing(
        &self,
        settings: &Settings,
        repo: &RepoRef,
        path: &str,
        asked: &mut Asked,
    ) -> Result<String, Fault> {
        let github = &self.context.github;
        let unknown = Fault::Malformed("the host");
        let address = github.address(settings, repo, path).ok_or(unknown)?;
        match github.ask_address(settings, repo, &address, None, asked)? {
            Answered::Page(page) => {
                String::from_utf8(page.text).map_err(|_| Fault::Malformed("an answer"))
            }
            Answered::Unchanged | Answered::Moved(_) | Answered::Gone => {
                Err(Fault::Malformed("an answer"))
            }
        }
    }

    /// What happened to an item (IN-40): who closed it, who set the label.
    pub(super) fn history(
        &self,
        settings: &Settings,
        item: &WorkItemRef,
        asked: &mut Asked,
    ) -> Result<History, Fault> {
        let path = format!("issues/{}/events?per_page=100", item.number());
        let pages = self.whole(settings, item.repo(), &path, asked)?;
        let mut history = History::default();
        for row in rows::<EventRow<'_>>(&pages, "the events of an item")? {
            match row.event.as_deref() {
                Some("closed") => {
                    let closer = row.actor.map(|actor| actor.get().to_owned());
                    history.closed = time(row.created_at.as_ref()).map(|at| (closer, at));
                }
                Some("labeled") => {
                    let name = row.label.as_ref().and_then(|label| label.name());
                    let label = &settings.routing.auto_execute_label;
                    if name.is_some_and(|name| has_label(&[name], label)) {
                        history.labelled_by = actor(row.actor);
                    }
                }
                Some(_) | None => {}
            }
        }
        Ok(history)
    }
}

/// The rows of pages, read as far as they are needed.
pub(super) fn rows<'a, T: Deserialize<'a>>(
    pages: &'a [Page],
    what: &'static str,
) -> Result<Vec<T>, Fault> {
    let mut all = Vec::new();
    for page in pages {
        let rows: Vec<T> = page.read().ok_or(Fault::Malformed(what))?;
        all.extend(rows);
    }
    Ok(all)
}
