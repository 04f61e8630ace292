//! One repository in one cycle: its four lists, what is new in them, and how far they were read (IN-40 to
//! IN-44).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;
use the_loop_core::config::Settings;
use the_loop_core::control::Keywords;
use the_loop_core::delivery::{Delivery, Effect, Ingress};
use the_loop_core::event::{ClosureKind, ClosureState, LogEvent};
use the_loop_core::guard::AuthorizedUsers;
use the_loop_core::ids::{GITHUB_PROVIDER, ItemKey, RepoRef, WorkItemRef};
use the_loop_core::poll::{self, OVERLAP, Said};
use the_loop_core::time::Timestamp;

use super::ask::{Listed, PAGES_MAX, rows};
use super::item::hashed;
use super::rows::{ItemRow, RunRow, WordsRow, time};
use super::{Fault, Followed, Poller, REMEMBERED_MAX, Sessions, Tally};
use crate::store::inbox::{Accepted, Cursor, Stream};
use crate::tracker::github::client::list::{Asked, Page};
use crate::tracker::github::payload::{Rows, of_rows};

/// Pages of labelled items of a repository that is new (IN-42).
const FIRST_PAGES_MAX: usize = 50;

/// Pull requests in one query for their links.
const LINKED_MAX: usize = 50;

/// A repository in a cycle, and what was found so far.
pub(super) struct Round<'a> {
    pub settings: Arc<Settings>,
    pub followed: Followed,
    pub sessions: &'a Sessions,
    pub ingress: Ingress,
    pub tally: Tally,
    pub asked: Asked,
    /// What counts as new: from then on.
    pub since: Timestamp,
    /// Items and pull requests as they came, by number.
    pub items: BTreeMap<u64, String>,
    pub pulls: BTreeMap<u64, String>,
    /// The items that GitHub itself links pull requests to, of those that moved.
    pub linked: HashMap<u64, Vec<WorkItemRef>>,
    /// Items whose thread was read whole.
    pub fresh: HashSet<u64>,
    pub found: Vec<Finding>,
    /// Items that were judged, as they were, and reviews that were read with all they brought. What was found
    /// with them counts only once it is in the inbox.
    pub judged: Vec<(ItemKey, u64)>,
    pub reviews: Vec<String>,
    /// When the items were listed, by their host's clock.
    pub answered_at: Option<Timestamp>,
    /// Pull requests whose reviews are read once more in the next cycle.
    pub unsettled: Vec<u64>,
    /// Those of which that was done.
    pub settled: Vec<u64>,
    /// Ledgers to begin, with what is history.
    pub ledgers: Vec<Begun>,
    /// Something went wrong with an item: what was read is read again.
    pub has_errors: bool,
}

/// Something to put into the inbox.
pub(super) struct Finding {
    pub at: Timestamp,
    pub delivery: Delivery,
    pub kind: FindingKind,
}

pub(super) enum FindingKind {
    /// Words or a result, by their id.
    Words(String),
    /// The question whether an item should have a session.
    Presence,
    /// An item has ended.
    Closure(ClosureState, ClosureKind),
}

/// A ledger to begin.
pub(super) struct Begun {
    pub item: WorkItemRef,
    pub seen: Vec<String>,
    pub commands: usize,
}

impl<'a> Round<'a> {
    pub fn new(
        settings: Arc<Settings>,
        followed: Followed,
        sessions: &'a Sessions,
        ingress: Ingress,
        since: Timestamp,
    ) -> Self {
        Self {
            settings,
            followed,
            sessions,
            ingress,
            tally: Tally::default(),
            asked: Asked::default(),
            since,
            items: BTreeMap::new(),
            pulls: BTreeMap::new(),
            linked: HashMap::new(),
            fresh: HashSet::new(),
            found: Vec::new(),
            judged: Vec::new(),
            reviews: Vec::new(),
            answered_at: None,
            unsettled: Vec::new(),
            settled: Vec::new(),
            ledgers: Vec::new(),
            has_errors: false,
        }
    }

    pub fn repo(&self) -> &RepoRef {
        &self.followed.repo
    }

    pub fn item(&self, number: u64) -> Result<WorkItemRef, Fault> {
        WorkItemRef::new(GITHUB_PROVIDER, self.repo().clone(), number)
            .map_err(|_| Fault::Malformed("a number"))
    }

    /// Does the poller keep ledgers here? A scan for what was missed does not.
    pub fn keeps_ledgers(&self) -> bool {
        self.ingress == Ingress::Poll
    }

    /// Takes parts together to a delivery.
    pub fn made(
        &self,
        event: &str,
        action: &str,
        parts: &[(&str, &str)],
        delivery_id: &str,
        now: Timestamp,
    ) -> Option<Delivery> {
        let rows = Rows {
            event,
            action,
            repo: self.repo(),
            parts,
            delivery_id,
            ingress: self.ingress,
            received_at: now,
        };
        let mut delivery = of_rows(&rows, &self.settings)?;
        if let Some(pull) = &mut delivery.pull {
            let linked = self.linked.get(&delivery.item.number());
            pull.references = linked.cloned().unwrap_or_default();
        }
        Some(delivery)
    }
}

/// What a cycle read of a list.
struct Read {
    stream: Stream,
    /// What counts as new in it: from then on.
    since: Timestamp,
    pages: Vec<Page>,
    cursor: Option<Cursor>,
}

impl Poller {
    /// Reads what is new in a repository, hands it over, and remembers how far it came.
    pub(super) fn read_repo(&mut self, round: &mut Round<'_>) -> Result<(), Fault> {
        let known = self.context.inbox.cursor(round.repo(), Stream::Items);
        match known.map_err(|e| Fault::Ours(e.to_string()))? {
            Some(cursor) => {
                round.since = cursor.since;
                self.read_on(round)
            }
            None => self.begin(round),
        }
    }

    /// The first look at a repository: its labelled items, and the moment from which its lists are read.
    fn begin(&mut self, round: &mut Round<'_>) -> Result<(), Fault> {
        let label = percent(&round.settings.routing.auto_execute_label);
        let path = format!("issues?state=open&labels={label}&per_page=100");
        let (settings, repo) = (Arc::clone(&round.settings), round.repo().clone());
        let depth = (None, FIRST_PAGES_MAX);
        let listed = self.list(&settings, &repo, &path, depth, |_| false, &mut round.asked)?;
        let Listed::Pages { pages, is_cut } = listed else {
            return Err(Fault::Malformed("a list"));
        };
        if is_cut {
            return Err(Fault::TooLarge);
        }
        let answered = pages.first().and_then(|page| page.answered_at);
        let since = answered.unwrap_or_else(|| self.now()).minus(OVERLAP);
        round.since = since;
        self.judge_rows(round, &pages)?;
        self.hand_over(round)?;
        if round.has_errors {
            return Ok(());
        }
        let cursor = Cursor {
            since,
            validator: None,
        };
        let all = Stream::ALL.map(|stream| (stream, cursor.clone()));
        self.keep(&repo, all.into())
    }

    /// Every further look: the four lists.
    pub(super) fn read_on(&mut self, round: &mut Round<'_>) -> Result<(), Fault> {
        let mut read = Vec::new();
        for stream in Stream::ALL {
            let monitor = &round.followed.monitor;
            let skipped = match stream {
                Stream::Items | Stream::Conversation => false,
                Stream::Inline => !monitor.pull_requests,
                Stream::Runs => !monitor.ci,
            };
            if !skipped {
                read.extend(self.read_stream(round, stream)?);
            }
        }
        for list in read.iter().filter(|list| list.stream == Stream::Items) {
            round.answered_at = list.pages.first().and_then(|page| page.answered_at);
            self.ask_for_links(round, &list.pages)?;
            self.judge_rows(round, &list.pages)?;
        }
        self.read_unsettled(round)?;
        for list in &read {
            match list.stream {
                Stream::Items => {}
                Stream::Conversation | Stream::Inline => self.judge_all_words(round, list)?,
                Stream::Runs => self.judge_runs(round, list)?,
            }
        }
        self.hand_over(round)?;
        if round.has_errors || !round.keeps_ledgers() {
            return Ok(());
        }
        let moved = read
            .into_iter()
            .filter_map(|list| Some((list.stream, list.cursor?)));
        let repo = round.repo().clone();
        self.keep(&repo, moved.collect())
    }

    fn keep(&self, repo: &RepoRef, cursors: Vec<(Stream, Cursor)>) -> Result<(), Fault> {
        if cursors.is_empty() {
            return Ok(());
        }
        let kept = self.context.inbox.set_cursors(repo, cursors);
        kept.map_err(|e| Fault::Ours(e.to_string()))
    }

    /// Reads one of the lists; `None`: nothing new in it.
    fn read_stream(&self, round: &mut Round<'_>, stream: Stream) -> Result<Option<Read>, Fault> {
        let (settings, repo) = (Arc::clone(&round.settings), round.repo().clone());
        let known = if round.keeps_ledgers() {
            let known = self.context.inbox.cursor(&repo, stream);
            known.map_err(|e| Fault::Ours(e.to_string()))?
        } else {
            None
        };
        let since = known.as_ref().map_or(round.since, |cursor| cursor.since);
        let path = path_of(stream, since);
        let validator = known
            .as_ref()
            .and_then(|cursor| cursor.validator.as_deref());
        let is_past = |page: &Page| stream == Stream::Runs && all_before(page, since);
        let depth = (validator, PAGES_MAX);
        let listed = self.list(&settings, &repo, &path, depth, is_past, &mut round.asked)?;
        let Listed::Pages { pages, .. } = listed else {
            return Ok(None);
        };
        let newest = newest_of(stream, &pages);
        let answered = pages.first().and_then(|page| page.answered_at);
        let next = poll::cursor(since, newest, answered);
        // A validator belongs to its address, which names the moment.
        let same_address = next == since || stream == Stream::Runs;
        let validator = pages.first().and_then(|page| page.validator.clone());
        let cursor = Cursor {
            since: next,
            validator: validator.filter(|_| same_address && pages.len() == 1),
        };
        Ok(Some(Read {
            stream,
            since,
            cursor: (known.as_ref() != Some(&cursor)).then_some(cursor),
            pages,
        }))
    }

    /// Asks, with one query, to which items GitHub links the pull requests that moved. Without an answer their
    /// branch and their body stand alone (IN-40).
    fn ask_for_links(&mut self, round: &mut Round<'_>, pages: &[Page]) -> Result<(), Fault> {
        if !round.followed.monitor.pull_requests || !round.sessions.are_in(round.repo()) {
            return Ok(());
        }
        let mut moved = Vec::new();
        for text in rows::<&RawValue>(pages, "a list of items")? {
            let text = text.get();
            let row: ItemRow<'_> =
                serde_json::from_str(text).map_err(|_| Fault::Malformed("an item"))?;
            let key = round.item(row.number)?.key();
            let is_judged = self.memory.judged.get(&key) == Some(&hashed(text));
            if row.is_pull() && !row.is_closed() && !is_judged {
                moved.push(row.number);
            }
        }
        for numbers in moved.chunks(LINKED_MAX) {
            let (settings, repo) = (Arc::clone(&round.settings), round.repo().clone());
            let github = &self.context.github;
            match github.linked_items(&settings, &repo, numbers, &mut round.asked) {
                Ok(linked) => round.linked.extend(linked),
                Err(error) => tracing::debug!(%error, "links of pull requests are not known"),
            }
        }
        Ok(())
    }

    /// Reads the reviews of pull requests once more that had changed a moment before they were judged.
    fn read_unsettled(&mut self, round: &mut Round<'_>) -> Result<(), Fault> {
        let again = self.memory.unsettled.get(&round.repo().key());
        for number in again.cloned().unwrap_or_default() {
            let key = round.item(number)?.key();
            let is_fresh = round.judged.iter().any(|(judged, _)| *judged == key);
            let read = if is_fresh {
                Ok(())
            } else {
                self.reviews(round, number)
            };
            if read.is_ok() {
                round.settled.push(number);
            }
            self.goes_on(round, number, read)?;
        }
        Ok(())
    }

    fn judge_rows(&mut self, round: &mut Round<'_>, pages: &[Page]) -> Result<(), Fault> {
        let mut numbers = Vec::new();
        for page in pages {
            let rows = page.rows().ok_or(Fault::Malformed("a list of items"))?;
            for row in rows {
                let read: ItemRow<'_> =
                    serde_json::from_str(row.get()).map_err(|_| Fault::Malformed("an item"))?;
                numbers.push(read.number);
                round.items.insert(read.number, row.get().to_owned());
            }
        }
        for number in numbers {
            if (self.context.is_ending)() {
                round.tally.interrupted = true;
                round.has_errors = true;
                return Ok(());
            }
            let judged = self.judge_item(round, number);
            self.goes_on(round, number, judged)?;
        }
        Ok(())
    }

    fn judge_all_words(&mut self, round: &mut Round<'_>, list: &Read) -> Result<(), Fault> {
        for page in &list.pages {
            let rows = page.rows().ok_or(Fault::Malformed("a list of comments"))?;
            for row in rows {
                let read: WordsRow<'_> =
                    serde_json::from_str(row.get()).map_err(|_| Fault::Malformed("a comment"))?;
                let Some(number) = read.number().filter(|_| is_new(&read, list.since)) else {
                    continue;
                };
                let judged = self.judge_words(round, list.stream, number, &read, row.get());
                self.goes_on(round, number, judged)?;
            }
        }
        Ok(())
    }

    /// A fault of one item is told, and the others go on; one of the way to the host ends the repository.
    fn goes_on(
        &self,
        round: &mut Round<'_>,
        number: u64,
        judged: Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Err(fault) = judged else { return Ok(()) };
        if let Fault::Github(error) = &fault
            && error.is_passing()
        {
            return Err(fault);
        }
        let item = round.item(number)?;
        self.item_error(&item, &fault);
        round.tally.errors += 1;
        round.has_errors = true;
        Ok(())
    }

    /// Words on an item that are new.
    fn judge_words(
        &mut self,
        round: &mut Round<'_>,
        stream: Stream,
        number: u64,
        row: &WordsRow<'_>,
        raw: &str,
    ) -> Result<(), Fault> {
        let id = row.key();
        let delivery_id = format!("poll-comment-{id}");
        if round.fresh.contains(&number) || self.memory.offered.contains(&delivery_id) {
            return Ok(());
        }
        let item = round.item(number)?;
        let is_own = self.context.inbox.is_own_comment(&item, &id);
        if is_own.map_err(|e| Fault::Ours(e.to_string()))? {
            return Ok(());
        }
        let shown = self.item_text(round, number)?;
        let shown: ItemRow<'_> =
            serde_json::from_str(&shown).map_err(|_| Fault::Malformed("an item"))?;
        if self.is_of_interest(round, &shown)? {
            if round.keeps_ledgers() {
                match self.ledger(&item)? {
                    None => return self.first_sight(round, &shown),
                    Some(ledger) if ledger.has_seen(&id) => return Ok(()),
                    Some(_) => {}
                }
            }
        } else if !is_command(round, row) {
            return Ok(());
        }
        let at = row.said_at().unwrap_or_else(|| self.now());
        self.find_words(round, stream, number, (row, raw), at)
    }

    /// Puts words among what was found, as said then.
    pub(super) fn find_words(
        &mut self,
        round: &mut Round<'_>,
        stream: Stream,
        number: u64,
        (row, raw): (&WordsRow<'_>, &str),
        at: Timestamp,
    ) -> Result<(), Fault> {
        let (id, now) = (row.key(), self.now());
        let delivery_id = format!("poll-comment-{id}");
        let sender = row.user.map_or("null", |user| user.get());
        let mut made = if stream == Stream::Conversation {
            let item = self.item_text(round, number)?;
            let parts = [("issue", &*item), ("comment", raw), ("sender", sender)];
            round.made("issue_comment", "created", &parts, &delivery_id, now)
        } else {
            let pull = self.pull_text(round, number)?;
            let parts = [
                ("pull_request", &*pull),
                ("comment", raw),
                ("sender", sender),
            ];
            let event = "pull_request_review_comment";
            round.made(event, "created", &parts, &delivery_id, now)
        };
        if let Some(Effect::Text(text)) = made.as_mut().map(|delivery| &mut delivery.effect) {
            text.created_at = Some(at);
            text.edited = row.is_edited(at);
        }
        round.found.extend(made.map(|delivery| Finding {
            at,
            delivery,
            kind: FindingKind::Words(id),
        }));
        Ok(())
    }

    /// Finished runs that are about the commits of a session.
    fn judge_runs(&mut self, round: &mut Round<'_>, list: &Read) -> Result<(), Fault> {
        let now = self.now();
        for page in &list.pages {
            let what = Fault::Malformed("a list of runs");
            for raw in page.rows_of("workflow_runs").ok_or(what)? {
                let read: RunRow<'_> =
                    serde_json::from_str(raw.get()).map_err(|_| Fault::Malformed("a run"))?;
                let Some(at) = time(read.updated_at.as_ref()).filter(|at| *at >= list.since) else {
                    continue;
                };
                let attempt = read.run_attempt.unwrap_or(1);
                let delivery_id = format!("poll-run-{}-{attempt}", read.id);
                let of_session = |number: u64| {
                    let item = round.item(number).ok();
                    item.is_some_and(|item| round.sessions.knows(&item.key()))
                };
                let by_branch = read
                    .head_branch
                    .as_deref()
                    .is_some_and(|branch| round.sessions.of_branch(round.repo(), branch).is_some());
                let counts = by_branch || read.pull_requests.iter().any(|p| of_session(p.number));
                if !counts || self.memory.offered.contains(&delivery_id) {
                    continue;
                }
                let repository = read.repository.map_or("null", |repo| repo.get());
                let parts = [("workflow_run", raw.get()), ("repository", repository)];
                let made = round.made("workflow_run", "completed", &parts, &delivery_id, now);
                round.found.extend(made.map(|delivery| Finding {
                    at,
                    delivery,
                    kind: FindingKind::Words(read.id.to_string()),
                }));
            }
        }
        Ok(())
    }

    /// Puts what was found into the inbox, in the order in which it happened; then ledgers begin.
    pub(super) fn hand_over(&mut self, round: &mut Round<'_>) -> Result<(), Fault> {
        let mut found = std::mem::take(&mut round.found);
        found.sort_by_key(|finding| finding.at);
        for finding in &found {
            let accepted = self.context.inbox.accept(&finding.delivery);
            let accepted = accepted.map_err(|e| Fault::Ours(e.to_string()))?;
            self.emit(accepted.event(&finding.delivery));
            if self.memory.offered.len() >= REMEMBERED_MAX {
                self.memory.offered.clear();
            }
            let id = finding.delivery.delivery_id.clone();
            self.memory.offered.insert(id);
            if matches!(accepted, Accepted::New { .. }) {
                self.tell_found(round, finding);
            }
        }
        if !found.is_empty() {
            (self.context.on_accept)();
        }
        if self.memory.judged.len() >= REMEMBERED_MAX {
            self.memory.judged.clear();
        }
        self.memory.judged.extend(round.judged.drain(..));
        self.memory.offered.extend(round.reviews.drain(..));
        let repo = round.repo().key();
        let unsettled = self.memory.unsettled.entry(repo).or_default();
        unsettled.retain(|number| !round.settled.contains(number));
        unsettled.append(&mut round.unsettled);
        let now = self.now();
        for begun in std::mem::take(&mut round.ledgers) {
            match self.begin_ledger(&begun.item, &begun.seen, now) {
                Ok(()) => self.emit(LogEvent::PollBaselined {
                    work_item: begun.item,
                    comments: begun.seen.len() as u64,
                    commands: begun.commands as u64,
                }),
                // It is a first sight again in the next cycle; what counted of it is known by then.
                Err(fault) => {
                    self.item_error(&begun.item, &fault);
                    self.memory.judged.remove(&begun.item.key());
                    round.tally.errors += 1;
                }
            }
        }
        Ok(())
    }

    fn tell_found(&self, round: &mut Round<'_>, finding: &Finding) {
        let delivery = &finding.delivery;
        match &finding.kind {
            FindingKind::Words(id) => {
                round.tally.comments_forwarded += 1;
                self.emit(LogEvent::PollCommentForwarded {
                    work_item: delivery.item.clone(),
                    comment_id: id.clone(),
                    delivery_id: delivery.delivery_id.clone(),
                    attempts: 0,
                });
            }
            FindingKind::Presence => round.tally.spawns += 1,
            FindingKind::Closure(state, kind) => {
                round.tally.closures += 1;
                self.emit(LogEvent::PollClosureDetected {
                    work_item: delivery.item.clone(),
                    state: *state,
                    kind: *kind,
                    actor: delivery.actor.as_ref().map(|actor| actor.login.clone()),
                });
            }
        }
    }
}

/// Is it a command of somebody who may give one? On a thread nobody follows such a one is refused as it is by
/// webhook (IN-43).
fn is_command(round: &Round<'_>, row: &WordsRow<'_>) -> bool {
    let keywords = Keywords::configured(&round.settings.routing.control);
    let authorized = AuthorizedUsers::new(&round.settings.routing.authorized_users);
    let said = said(row);
    said.is_some_and(|said| poll::is_command_of_ours(&said, &keywords, &authorized))
}

/// The words of a row; `None`: nobody knows when they were said.
pub(super) fn said(row: &WordsRow<'_>) -> Option<Said> {
    let at = row.said_at()?;
    Some(Said {
        id: row.key(),
        body: row.body.clone().unwrap_or_default(),
        author: row.author(),
        at,
        is_edited: row.is_edited(at),
    })
}

fn is_new(row: &WordsRow<'_>, since: Timestamp) -> bool {
    row.said_at().is_some_and(|at| at >= since)
}

fn path_of(stream: Stream, since: Timestamp) -> String {
    let since = percent(&since.seconds());
    let rest = format!("sort=updated&direction=asc&since={since}&per_page=100");
    match stream {
        Stream::Items => format!("issues?state=all&{rest}"),
        Stream::Conversation => format!("issues/comments?{rest}"),
        Stream::Inline => format!("pulls/comments?{rest}"),
        Stream::Runs => "actions/runs?status=completed&per_page=100".to_owned(),
    }
}

fn percent(text: &str) -> String {
    let keep = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
    text.bytes()
        .map(|b| {
            if keep(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// The newest change that a list shows.
fn newest_of(stream: Stream, pages: &[Page]) -> Option<Timestamp> {
    #[derive(serde::Deserialize)]
    struct Changed {
        updated_at: Option<String>,
    }
    let rows = pages.iter().flat_map(|page| match stream {
        Stream::Runs => page.rows_of("workflow_runs").unwrap_or_default(),
        Stream::Items | Stream::Conversation | Stream::Inline => page.rows().unwrap_or_default(),
    });
    rows.filter_map(|row| {
        let row: Changed = serde_json::from_str(row.get()).ok()?;
        time(row.updated_at.as_ref())
    })
    .max()
}

/// Is everything on this page of runs older?
fn all_before(page: &Page, since: Timestamp) -> bool {
    let newest = newest_of(Stream::Runs, std::slice::from_ref(page));
    newest.is_none_or(|newest| newest < since)
}
