//! `events`: from the words of a query to records (SE-67). Nothing is printed here.

use camino::Utf8PathBuf;
use the_loop_core::event::{
    CATALOGUE, Filter, Glob, Level, Source, WhenError, is_known_pattern, parse_when,
};
use the_loop_core::ids::{RefError, WorkItemRef};
use the_loop_core::time::Timestamp;

use crate::store::eventlog::{ReadFault, Reader, Sink, Summary};
use crate::world::World;

/// Records given when no number is asked for.
pub const LIMIT_DEFAULT: usize = 50;

/// The options of a query, as they were written.
#[derive(Clone, Debug, Default)]
pub struct EventsQuery {
    /// Patterns over names; any of them.
    pub types: Vec<String>,
    /// A ref.
    pub work_item: Option<String>,
    /// Id of a delivery.
    pub delivery_id: Option<String>,
    /// A component.
    pub source: Option<String>,
    /// Least level.
    pub level: Option<String>,
    /// Not before.
    pub since: Option<String>,
    /// Not after.
    pub until: Option<String>,
}

/// An option that cannot be understood: exit 2 (EV-26).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOption {
    /// `--work-item` is no ref.
    #[error("not a work item: {text:?}")]
    WorkItem {
        /// What was written.
        text: String,
        /// What is wrong with it.
        source: RefError,
    },
    /// `--source` is not in the list.
    #[error("no source is called {0:?}; there are {list}", list = Source::LIST.words.join(", "))]
    Source(String),
    /// `--level` is not in the list.
    #[error("no level is called {0:?}; there are {list}", list = Level::LIST.words.join(", "))]
    Level(String),
    /// `--since` or `--until` is no time.
    #[error("--{option}: {source}")]
    When {
        /// Which of the two.
        option: &'static str,
        /// What is wrong with it.
        source: WhenError,
    },
}

/// A query that can be run, and what to say about it.
#[derive(Clone, Debug)]
pub struct ParsedQuery {
    /// The filters.
    pub filter: Filter,
    /// Notes for stderr: patterns that match no known name (they still apply: older logs).
    pub notes: Vec<String>,
}

impl EventsQuery {
    /// Reads the options. `now` is what "ago" counts from.
    pub fn parse(&self, now: Timestamp) -> Result<ParsedQuery, BadOption> {
        let when = |option: &'static str, text: &Option<String>| match text {
            Some(text) => parse_when(text, now)
                .map(Some)
                .map_err(|source| BadOption::When { option, source }),
            None => Ok(None),
        };
        let types: Vec<Glob> = self.types.iter().map(|t| Glob::new(t)).collect();
        let notes = types.iter().filter_map(unknown_note).collect();
        let filter = Filter {
            types,
            work_item: match &self.work_item {
                Some(text) => Some(parse_item(text)?.key()),
                None => None,
            },
            delivery_id: self.delivery_id.clone(),
            source: self.source.as_deref().map(parse_source).transpose()?,
            level: self.level.as_deref().map(parse_level).transpose()?,
            since: when("since", &self.since)?,
            until: when("until", &self.until)?,
        };
        Ok(ParsedQuery { filter, notes })
    }
}

fn parse_item(text: &str) -> Result<WorkItemRef, BadOption> {
    text.parse().map_err(|source| BadOption::WorkItem {
        text: text.to_owned(),
        source,
    })
}

fn parse_source(word: &str) -> Result<String, BadOption> {
    let known = Source::LIST.words.iter().chain(Source::LIST.older);
    match known.into_iter().find(|known| **known == word) {
        Some(known) => Ok((*known).to_owned()),
        None => Err(BadOption::Source(word.to_owned())),
    }
}

fn parse_level(word: &str) -> Result<Level, BadOption> {
    Level::parse(word).ok_or_else(|| BadOption::Level(word.to_owned()))
}

fn unknown_note(pattern: &Glob) -> Option<String> {
    if is_known_pattern(pattern) {
        return None;
    }
    let pattern = pattern.as_str();
    let nearest = CATALOGUE
        .iter()
        .map(|event| (strsim::damerau_levenshtein(event.name, pattern), event.name))
        .min()
        .map(|(_, name)| name);
    Some(match nearest {
        Some(name) => format!("no event type matches {pattern:?}; the nearest is {name}"),
        None => format!("no event type matches {pattern:?}"),
    })
}

/// Gives the last `limit` matches (0: all) of the log at `path`, oldest first (EV-21). The summary's
/// follower goes on from there.
pub fn events(
    world: &World,
    path: &Utf8PathBuf,
    filter: &Filter,
    limit: usize,
    sink: &mut Sink<'_>,
) -> Result<Summary, ReadFault> {
    Reader::new(world, path).query(filter, limit, sink)
}

/// What to say on stderr after a query (EV-23).
pub fn notes(path: &Utf8PathBuf, summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.missing {
        notes.push(format!("there is no event log at {path} yet"));
    }
    match summary.invalid {
        0 => {}
        1 => notes.push("1 line that is not a JSON object was skipped".to_owned()),
        n => notes.push(format!("{n} lines that are not JSON objects were skipped")),
    }
    notes
}

#[cfg(test)]
mod tests;
