//! The one thread that writes. Whatever waits when it begins is one transaction with one sync
//! (DI-1); a request that fails takes back its own savepoint and no other's.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use rusqlite::Connection;
use the_loop_core::limits::{INBOX_COMMIT_MAX, INBOX_QUEUE_MAX};
use the_loop_core::time::Timestamp;

use super::{InboxError, InboxReader, schema};
use crate::world::World;

/// A change in whether commits work (ST-55).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Commits fail: `inbox.unavailable`.
    Unavailable {
        /// What the first failing one met.
        error: InboxError,
    },
    /// They work again: `inbox.recovered`.
    Recovered {
        /// Since when they had failed.
        since: Timestamp,
    },
}

type Teller = Box<dyn Fn(Health) + Send + Sync>;

/// What the writer shares with those who wait for it.
#[derive(Default)]
pub(super) struct Shared {
    generation: Mutex<u64>,
    moved: Condvar,
    unavailable_since: Mutex<Option<Timestamp>>,
    teller: Mutex<Option<Teller>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn bump(&self) {
        *locked(&self.generation) += 1;
        self.moved.notify_all();
    }

    pub(super) fn set_teller(&self, teller: Teller) {
        *locked(&self.teller) = Some(teller);
    }

    pub(super) fn unavailable_since(&self) -> Option<Timestamp> {
        *locked(&self.unavailable_since)
    }

    /// Notes how a commit went and tells of a change.
    fn went(&self, result: Result<(), &InboxError>, now: Timestamp) {
        let news = {
            let mut since = locked(&self.unavailable_since);
            match (result, *since) {
                (Ok(()), Some(at)) => {
                    *since = None;
                    Some(Health::Recovered { since: at })
                }
                (Err(error), None) => {
                    *since = Some(now);
                    Some(Health::Unavailable {
                        error: error.clone(),
                    })
                }
                (Ok(()), None) | (Err(_), Some(_)) => None,
            }
        };
        if let (Some(news), Some(tell)) = (news, locked(&self.teller).as_ref()) {
            tell(news);
        }
    }
}

/// A place in the stream of changes: no commit after it is missed, however late one waits.
pub struct Changes {
    shared: Arc<Shared>,
    reader: InboxReader,
    seen: u64,
    version: Option<i64>,
}

impl Changes {
    pub(super) fn new(shared: Arc<Shared>, reader: InboxReader) -> Self {
        let seen = *locked(&shared.generation);
        let version = reader.data_version().ok();
        Self {
            shared,
            reader,
            seen,
            version,
        }
    }

    /// Waits until this process has committed something or was woken, at most `timeout`; then looks
    /// whether another process has written. `true` when there is something to look at. Called with
    /// at most a second, it notices every row in time (ST-53).
    pub fn wait_change(&mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut generation = locked(&self.shared.generation);
        while *generation == self.seen {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            generation = self
                .shared
                .moved
                .wait_timeout(generation, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        let ours = *generation != self.seen;
        self.seen = *generation;
        drop(generation);
        // A version that cannot be asked for counts as a change: looking again is never wrong.
        let version = self.reader.data_version().ok();
        let theirs = version.is_none() || version != self.version;
        self.version = version;
        ours || theirs
    }
}

/// One request. `run` inside the transaction, `answer` after its end.
trait Job: Send {
    /// Does its work; gives back an error that concerns the whole file.
    fn run(&mut self, connection: &Connection) -> Result<(), InboxError>;
    fn answer(self: Box<Self>, committed: Result<(), InboxError>);
}

struct Task<T, W, R> {
    work: Option<W>,
    result: Option<Result<T, InboxError>>,
    reply: R,
}

impl<T, W, R> Job for Task<T, W, R>
where
    T: Send,
    W: FnOnce(&Connection) -> Result<T, InboxError> + Send,
    R: FnOnce(Result<T, InboxError>) + Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), InboxError> {
        let Some(work) = self.work.take() else {
            return Ok(());
        };
        let result = in_savepoint(connection, work);
        let fatal = match &result {
            Err(e) if e.is_of_the_file() => Err(e.clone()),
            Ok(_) | Err(_) => Ok(()),
        };
        self.result = Some(result);
        fatal
    }

    fn answer(self: Box<Self>, committed: Result<(), InboxError>) {
        let answer = match committed {
            Ok(()) => self.result.unwrap_or_else(|| Err(ended())),
            Err(e) => Err(e),
        };
        (self.reply)(answer);
    }
}

fn in_savepoint<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, InboxError>,
) -> Result<T, InboxError> {
    let run = |sql| connection.prepare_cached(sql)?.execute(());
    run("SAVEPOINT request")?;
    match work(connection) {
        Ok(value) => {
            run("RELEASE request")?;
            Ok(value)
        }
        Err(e) => {
            // SQLite takes the whole transaction back by itself when the disk fails.
            if !connection.is_autocommit() {
                run("ROLLBACK TO request")?;
                run("RELEASE request")?;
            }
            Err(e)
        }
    }
}

/// The writer is gone: its thread met a defect.
pub(super) fn ended() -> InboxError {
    InboxError::Unavailable("its writer has ended".to_owned())
}

/// The queue in front of the thread. Dropping it lets the thread finish what waits, and waits for
/// that.
pub(super) struct Writer {
    jobs: Option<SyncSender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Writer {
    pub(super) fn start(
        world: World,
        path: Utf8PathBuf,
        connection: Connection,
    ) -> Result<Self, InboxError> {
        let shared = Arc::new(Shared::default());
        let (send, receive) = sync_channel(INBOX_QUEUE_MAX);
        let mut committer = Committer {
            world,
            path,
            connection,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new()
            .name("inbox".to_owned())
            .spawn(move || committer.serve(&receive))?;
        Ok(Self {
            jobs: Some(send),
            thread: Some(thread),
            shared,
        })
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Waits for room in the queue.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, InboxError> + Send + 'static,
        reply: impl FnOnce(Result<T, InboxError>) + Send + 'static,
    ) {
        let job = boxed(work, reply);
        let refused = match &self.jobs {
            Some(jobs) => jobs.send(job).err().map(|e| e.0),
            None => Some(job),
        };
        if let Some(job) = refused {
            job.answer(Err(ended()));
        }
    }

    /// Never waits: a full queue is an answer.
    pub(super) fn submit_now<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, InboxError> + Send + 'static,
        reply: impl FnOnce(Result<T, InboxError>) + Send + 'static,
    ) {
        let job = boxed(work, reply);
        let Some(jobs) = &self.jobs else {
            return job.answer(Err(ended()));
        };
        match jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job)) => job.answer(Err(InboxError::Unavailable(
                "too many requests wait for the disk".to_owned(),
            ))),
            Err(TrySendError::Disconnected(job)) => job.answer(Err(ended())),
        }
    }
}

fn boxed<T: Send + 'static>(
    work: impl FnOnce(&Connection) -> Result<T, InboxError> + Send + 'static,
    reply: impl FnOnce(Result<T, InboxError>) + Send + 'static,
) -> Box<dyn Job> {
    Box::new(Task {
        work: Some(work),
        result: None,
        reply,
    })
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's own half.
struct Committer {
    world: World,
    path: Utf8PathBuf,
    connection: Connection,
    shared: Arc<Shared>,
}

impl Committer {
    fn serve(&mut self, jobs: &Receiver<Box<dyn Job>>) {
        while let Ok(first) = jobs.recv() {
            let mut batch = vec![first];
            let committed = self
                .commit_batch(&mut batch, jobs)
                .map_err(schema::at(&self.path));
            match &committed {
                Ok(false) => {}
                Ok(true) => {
                    self.shared.went(Ok(()), self.world.clock.now());
                    self.shared.bump();
                }
                Err(e) => {
                    self.take_back();
                    self.shared.went(Err(e), self.world.clock.now());
                    // A disk may fail after the rows are in it; whoever waits looks again.
                    self.shared.bump();
                }
            }
            let committed = committed.map(|_| ());
            for job in batch {
                job.answer(committed.clone());
            }
        }
    }

    /// One transaction: `batch`, and what comes in while it runs. `false` when nothing was changed,
    /// so that the disk was not asked.
    fn commit_batch(
        &self,
        batch: &mut Vec<Box<dyn Job>>,
        jobs: &Receiver<Box<dyn Job>>,
    ) -> Result<bool, InboxError> {
        let connection = &self.connection;
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
        let before = connection.total_changes();
        let mut next = 0;
        loop {
            while let Some(job) = batch.get_mut(next) {
                job.run(connection)?;
                next += 1;
                if connection.is_autocommit() {
                    let why = "SQLite took the transaction back".to_owned();
                    return Err(InboxError::Unavailable(why));
                }
            }
            if batch.len() >= INBOX_COMMIT_MAX {
                break;
            }
            match jobs.try_recv() {
                Ok(job) => batch.push(job),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        if connection.total_changes() == before {
            connection.prepare_cached("COMMIT")?.execute(())?;
            return Ok(false);
        }
        schema::commit(&self.world, &self.path, connection)?;
        Ok(true)
    }

    /// After a failure: no transaction may stay open. A connection that cannot get out of one is
    /// replaced, so that the next commit is tried anew.
    fn take_back(&mut self) {
        if self.connection.is_autocommit() {
            return;
        }
        let _ = self.connection.execute_batch("ROLLBACK");
        if !self.connection.is_autocommit()
            && let Ok(fresh) = schema::connect(&self.path)
        {
            self.connection = fresh;
        }
    }
}
