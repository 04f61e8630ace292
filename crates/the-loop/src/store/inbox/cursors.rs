//! How far the lists of a repository were read (IN-41).

use rusqlite::{OptionalExtension, params};
use the_loop_core::ids::{GITHUB_PROVIDER, RepoRef};
use the_loop_core::time::Timestamp;

use super::{Inbox, InboxError, InboxReader};

/// A list of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Tickets and pull requests.
    Items,
    /// Words in conversations.
    Conversation,
    /// Words on changed lines.
    Inline,
    /// Finished workflow runs.
    Runs,
}

impl Stream {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Items, Self::Conversation, Self::Inline, Self::Runs];

    fn as_str(self) -> &'static str {
        match self {
            Self::Items => "items",
            Self::Conversation => "conversation",
            Self::Inline => "inline",
            Self::Runs => "runs",
        }
    }
}

/// How far a list was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// From when on it is read next.
    pub since: Timestamp,
    /// By what the address of that moment is asked.
    pub validator: Option<String>,
}

impl Inbox {
    /// Keeps how far lists were read, all of them or none.
    pub fn set_cursors(
        &self,
        repo: &RepoRef,
        cursors: Vec<(Stream, Cursor)>,
    ) -> Result<(), InboxError> {
        let (host, key, now) = (repo.host.to_ascii_lowercase(), repo.key(), self.now());
        self.write(move |connection| {
            for (stream, cursor) in &cursors {
                connection
                    .prepare_cached(
                        "INSERT OR REPLACE INTO cursors
                         (provider, host, repo_key, stream, since, etag, at)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    )?
                    .execute(params![
                        GITHUB_PROVIDER,
                        host,
                        key,
                        stream.as_str(),
                        cursor.since.seconds(),
                        cursor.validator,
                        now.unix_ms(),
                    ])?;
            }
            Ok(())
        })
    }

    /// Forgets the lists of every repository but these.
    pub fn keep_cursors(&self, repos: &[RepoRef]) -> Result<(), InboxError> {
        let keys: Vec<String> = repos.iter().map(RepoRef::key).collect();
        self.write(move |connection| {
            let mut known = connection.prepare_cached("SELECT DISTINCT repo_key FROM cursors")?;
            let rows = known.query_map((), |row| row.get::<_, String>(0))?;
            let all: Vec<String> = rows.collect::<Result<_, _>>()?;
            for over in all.iter().filter(|key| !keys.contains(key)) {
                connection
                    .prepare_cached("DELETE FROM cursors WHERE repo_key = ?1")?
                    .execute([over])?;
            }
            Ok(())
        })
    }
}

impl InboxReader {
    /// How far a list was read; `None` when it never was.
    pub fn cursor(&self, repo: &RepoRef, stream: Stream) -> Result<Option<Cursor>, InboxError> {
        self.read(|connection| {
            let found = connection
                .prepare_cached(
                    "SELECT since, etag FROM cursors
                     WHERE provider = ?1 AND repo_key = ?2 AND stream = ?3",
                )?
                .query_row(
                    params![GITHUB_PROVIDER, repo.key(), stream.as_str()],
                    |row| Ok((row.get::<_, String>(0)?, row.get(1)?)),
                )
                .optional()?;
            // What cannot be read was never read: the repository is looked at anew.
            Ok(found.and_then(|(since, validator)| {
                let since = since.parse().ok()?;
                Some(Cursor { since, validator })
            }))
        })
    }
}
