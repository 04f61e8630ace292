//! How git is called: environment, time, words of a failure.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::workspace::strip_userinfo;

use super::WorkspaceError;
use crate::process::{Answer, Call, NoAnswer, Signal};
use crate::world::World;

/// Time of a call that touches neither the network nor the bulk of a repository.
const QUICK: Duration = Duration::from_mins(1);
/// How often slow outside work asks whether it should give way (ST-25).
const GIVE_WAY_EVERY: Duration = Duration::from_millis(250);
/// How long a git that was told to end may take before it is ended.
const ENDING: Duration = Duration::from_secs(2);
/// Bytes of output that are kept. Lists of files and commits are read whole or not at all.
const OUTPUT_MAX: usize = 256 << 20;
/// Characters of git's own words in an error.
const WORDS_MAX: usize = 600;
/// Marks a slow call, so that it can be found and ended.
const CALL_MARK: &str = "THE_LOOP_GIT_CALL";

/// Variables that would make git work on another repository, index or set of paths than the one it
/// is told; they are in the environment when the program was started from a git hook or alias.
const SCRUBBED: [&str; 19] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_ATTR_SOURCE",
    "GIT_DEFAULT_HASH",
    "LANGUAGE",
];

/// Settings of ours over everybody's. No hook and no monitor of a repository runs for our calls, no
/// submodule is entered, and nothing goes on in the background.
const SETTINGS: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.safecrlf=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The git program, in this world.
#[derive(Clone, Debug)]
pub struct Git {
    pub(super) world: World,
    binary: String,
    slow: Duration,
}

/// git said no, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("git {command}: {words}")]
pub(super) struct GitError {
    /// The subcommand.
    pub command: String,
    /// Exit status; absent when there was no answer.
    pub exit: Option<i32>,
    /// What it wrote, without passwords, or why it gave no answer.
    pub words: String,
    /// Can a retry help?
    pub retryable: bool,
}

impl From<GitError> for WorkspaceError {
    fn from(e: GitError) -> Self {
        if e.retryable {
            Self::TryLater(e.to_string())
        } else {
            Self::NeedsOperator(e.to_string())
        }
    }
}

/// Parts of git's words that mean the same tomorrow.
const HOPELESS: [&str; 11] = [
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "Permission denied (",
    "Host key verification failed",
    "Repository not found",
    "does not appear to be a git repository",
    "not a git repository",
    "dubious ownership",
    "' does not exist",
    "' not found",
];

impl Git {
    /// `binary` is `routing.workspace.gitBinary`; `slow` bounds each call that clones, fetches, writes
    /// a checkout or saves one.
    pub fn new(world: &World, binary: &str, slow: Duration) -> Self {
        Self {
            world: world.clone(),
            binary: binary.to_owned(),
            slow,
        }
    }

    /// A quick call in `dir`, which is the top of a repository or no part of one.
    pub(super) fn call<'a>(&self, dir: &Utf8Path, args: impl IntoIterator<Item = &'a str>) -> Call {
        let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        let mut call = Call::new(self.binary.clone(), settings.chain(args)).cwd(dir);
        for (name, value) in self.world.env.iter() {
            call = call.env(name, value);
        }
        for name in SCRUBBED {
            call = call.without_env(name);
        }
        call.output_max = OUTPUT_MAX;
        call.timeout(QUICK.min(self.slow))
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            // What is no repository itself must not be taken for part of one further up.
            .env(
                "GIT_CEILING_DIRECTORIES",
                dir.parent().unwrap_or(dir).as_str(),
            )
    }

    /// The same with the long time.
    pub(super) fn slow_call<'a>(
        &self,
        dir: &Utf8Path,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Call {
        self.call(dir, args).timeout(self.slow)
    }

    /// The same for the network: ssh asks nobody. An `ssh` of the operator's own is left alone.
    pub(super) fn network_call<'a>(
        &self,
        dir: &Utf8Path,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Call {
        let call = self.slow_call(dir, args);
        let own = ["GIT_SSH_COMMAND", "GIT_SSH"]
            .iter()
            .any(|name| self.world.var(name).is_some())
            || self
                .ask(self.call(dir, ["config", "--get", "core.sshCommand"]))
                .is_ok();
        if own {
            call
        } else {
            call.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")
        }
    }

    /// Runs a call; anything but exit 0 is an error.
    pub(super) fn ask(&self, call: Call) -> Result<Vec<u8>, GitError> {
        judge(&call, self.world.processes.run(&call))
    }

    /// Runs a call and takes its output as one trimmed text.
    pub(super) fn ask_text(&self, call: Call) -> Result<String, GitError> {
        let out = self.ask(call)?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    }

    /// Runs a call where exit 1 means "no": `None`.
    pub(super) fn ask_whether(&self, call: Call) -> Result<Option<String>, GitError> {
        match self.ask_text(call) {
            Ok(text) => Ok(Some(text)),
            Err(e) if e.exit == Some(1) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Runs slow outside work, and ends it when `give_way` says so (ST-25).
    pub(super) fn ask_patiently(
        &self,
        call: Call,
        give_way: &dyn Fn() -> bool,
    ) -> Result<String, WorkspaceError> {
        if give_way() {
            return Err(WorkspaceError::GaveWay);
        }
        let mark = self.world.ids.hex::<16>();
        let call = call.env(CALL_MARK, &mark);
        let answer = std::thread::scope(|scope| {
            let (send, receive) = mpsc::sync_channel(1);
            let running = &call;
            scope.spawn(move || {
                let _ = send.send(self.world.processes.run(running));
            });
            loop {
                match receive.recv_timeout(GIVE_WAY_EVERY) {
                    Ok(answer) => return Some(answer),
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) if give_way() => {
                        self.end(&mark, &receive);
                        return None;
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
            }
        });
        let out = judge(&call, answer.ok_or(WorkspaceError::GaveWay)?)?;
        Ok(String::from_utf8_lossy(&out).trim().to_owned())
    }

    /// Ends a running call with all its children, politely first: git then takes its locks along.
    fn end(&self, mark: &str, done: &mpsc::Receiver<Answer>) {
        let processes = &self.world.processes;
        for signal in [Signal::Term, Signal::Kill] {
            let until = Instant::now() + ENDING;
            while Instant::now() < until {
                for process in processes.carrying(CALL_MARK, mark) {
                    processes.signal(process, signal);
                }
                if done.recv_timeout(GIVE_WAY_EVERY) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        }
    }

    /// Runs a call that takes locks in the repository it works in: when it fails on a lock that a
    /// process left behind which is no more, the lock is removed and the call made once more.
    pub(super) fn ask_mending(
        &self,
        call: Call,
        give_way: &dyn Fn() -> bool,
    ) -> Result<String, WorkspaceError> {
        let first = self.ask_patiently(call.clone(), give_way);
        let words = match &first {
            Err(WorkspaceError::TryLater(words) | WorkspaceError::NeedsOperator(words)) => words,
            Ok(_) | Err(WorkspaceError::GaveWay) => return first,
        };
        let dir = call.cwd.clone().unwrap_or_default();
        match lock_in(words).map(|lock| dir.join(lock)) {
            Some(lock) if self.clear_repository_lock(&dir, &lock) => {
                self.ask_patiently(call, give_way)
            }
            Some(_) | None => first,
        }
    }
}

/// The lock file that git says is in its way.
fn lock_in(words: &str) -> Option<Utf8PathBuf> {
    let between = |before: &str, after: &str| {
        let rest = &words[words.find(before)? + before.len()..];
        Some(rest[..rest.find(after)?].to_owned())
    };
    between("Unable to create '", "': File exists")
        .or_else(|| {
            between("could not lock config file ", ": File exists").map(|f| format!("{f}.lock"))
        })
        .map(Utf8PathBuf::from)
}

fn judge(call: &Call, answer: Answer) -> Result<Vec<u8>, GitError> {
    let command = || {
        let mut words = call.args.iter().skip(2 * SETTINGS.len());
        let mut next = words.next().cloned().unwrap_or_default();
        while next == "-c" {
            next = words.nth(1).cloned().unwrap_or_default();
        }
        next
    };
    let fail = |exit, words: &str, retryable| GitError {
        command: command(),
        exit,
        words: shorten(&strip_userinfo(words)),
        retryable,
    };
    match &answer.exit {
        Ok(0) if answer.stdout.len() >= call.output_max => {
            Err(fail(None, "its output is too long to be read whole", false))
        }
        Ok(0) => Ok(answer.stdout),
        Ok(code) => {
            let said = answer.err();
            let words = if said.is_empty() {
                format!("exit {code}")
            } else {
                said
            };
            let hopeless = HOPELESS.iter().any(|part| words.contains(part));
            Err(fail(Some(*code), &words, !hopeless))
        }
        Err(why) => {
            let retryable = !matches!(why, NoAnswer::NotStarted(_));
            Err(fail(None, &why.to_string(), retryable))
        }
    }
}

/// One line of bounded length, the end of it when it is too long: git says what matters last.
fn shorten(words: &str) -> String {
    let lines: Vec<&str> = words
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let line = lines.join("; ");
    let skip = line.chars().count().saturating_sub(WORDS_MAX);
    if skip == 0 {
        line
    } else {
        format!("…{}", line.chars().skip(skip).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn di47_locks_are_found_in_gits_words() {
        for (words, lock) in [
            (
                "fatal: Unable to create '/w/r/.git/index.lock': File exists.; Another",
                "/w/r/.git/index.lock",
            ),
            (
                "error: cannot lock ref 'refs/heads/x': Unable to create '/w/r/.git/refs/heads/x.lock': File exists.",
                "/w/r/.git/refs/heads/x.lock",
            ),
            (
                "error: could not lock config file .git/config: File exists",
                ".git/config.lock",
            ),
        ] {
            assert_eq!(lock_in(words).unwrap(), lock);
        }
        assert_eq!(lock_in("fatal: Unable to create 'x': No space left"), None);
        assert_eq!(
            lock_in("': File exists could not lock config file : Unable to create '"),
            None
        );
    }

    #[test]
    fn errors_are_one_bounded_line_without_passwords() {
        let call = Call::new(
            "git",
            SETTINGS
                .iter()
                .flat_map(|s| ["-c", s])
                .chain(["-c", "a=b", "fetch", "x"]),
        );
        let answer = |exit, stderr: &str| Answer {
            exit,
            stdout: Vec::new(),
            stderr: stderr.as_bytes().to_vec(),
        };
        let e = judge(
            &call,
            answer(Ok(128), "fatal: https://u:pw@h/x\n\nRepository not found"),
        )
        .unwrap_err();
        assert_eq!(
            e.to_string(),
            "git fetch: fatal: https://h/x; Repository not found"
        );
        assert!(!e.retryable);
        let e = judge(&call, answer(Ok(1), &"é".repeat(2000))).unwrap_err();
        assert_eq!(e.words.chars().count(), WORDS_MAX + 1);
        let e = judge(
            &call,
            answer(Err(NoAnswer::TimedOut(Duration::from_secs(1))), ""),
        )
        .unwrap_err();
        assert!(e.retryable && e.exit.is_none());
        let e = judge(
            &call,
            answer(Err(NoAnswer::NotStarted("no such file".to_owned())), ""),
        )
        .unwrap_err();
        assert!(!e.retryable);
    }
}
