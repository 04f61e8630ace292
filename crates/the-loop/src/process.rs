//! The one way to run an outside program.
//!
//! [`Processes::run`] takes an argv, never a shell line, and answers with an exit status *or no
//! answer*: a program that timed out, could not be started or was ended by a signal said nothing
//! (DI-13).
#![allow(
    clippy::disallowed_methods,
    reason = "this is the one place that starts programs"
)]

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use the_loop_core::environment::Environ;

/// What to run.
#[derive(Clone, Debug)]
pub struct Call {
    /// Program: a name looked up on `PATH`, or an absolute path.
    pub program: String,
    /// Arguments, each one word.
    pub args: Vec<String>,
    /// Working directory; the caller's when absent.
    pub cwd: Option<Utf8PathBuf>,
    /// Names set over the inherited environment; an empty option removes one.
    pub env: BTreeMap<String, Option<String>>,
    /// Start from an empty environment instead of this process's own.
    pub clear_env: bool,
    /// Bytes for its standard input; it is empty when absent.
    pub stdin: Option<Vec<u8>>,
    /// It is ended, with its process group, when this is over.
    pub timeout: Duration,
    /// Bytes kept of each of its two outputs; the rest is read and thrown away.
    pub output_max: usize,
}

impl Call {
    /// A call with ten seconds, 1 MiB of output and nothing else.
    pub fn new(
        program: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            cwd: None,
            env: BTreeMap::new(),
            clear_env: false,
            stdin: None,
            timeout: Duration::from_secs(10),
            output_max: 1 << 20,
        }
    }
    /// In this directory.
    #[must_use]
    pub fn cwd(mut self, dir: impl Into<Utf8PathBuf>) -> Self {
        self.cwd = Some(dir.into());
        self
    }
    /// With this on its standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }
    /// With this much time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
    /// With this variable set.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), Some(value.into()));
        self
    }
    /// With this variable removed.
    #[must_use]
    pub fn without_env(mut self, name: impl Into<String>) -> Self {
        self.env.insert(name.into(), None);
        self
    }
}

/// Why a program gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// It ran out of time and was ended.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// It could not be started.
    #[error("cannot be started: {0}")]
    NotStarted(String),
    /// A signal ended it.
    #[error("ended by signal {0}")]
    Signal(i32),
}

/// What a program answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Exit status, or why there is none.
    pub exit: Result<i32, NoAnswer>,
    /// Its standard output, capped.
    pub stdout: Vec<u8>,
    /// Its standard error, capped.
    pub stderr: Vec<u8>,
}

impl Answer {
    /// Did it exit with 0?
    pub fn ok(&self) -> bool {
        self.exit == Ok(0)
    }
    /// Standard output as text, bad bytes replaced.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
    /// Standard error as text, trimmed, bad bytes replaced.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).trim().to_owned()
    }
    /// One line for an error message: the status, or why there is none, and what it wrote.
    pub fn describe(&self) -> String {
        let words = self.err();
        match &self.exit {
            Ok(0) => "exit 0".to_owned(),
            Ok(code) if words.is_empty() => format!("exit {code}"),
            Ok(code) => format!("exit {code}: {words}"),
            Err(why) => why.to_string(),
        }
    }
}

/// A process of this machine, told apart from a later one with the same pid by its start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// The pid.
    pub pid: i32,
    /// Start time in clock ticks since boot (`/proc/<pid>/stat`, field 22).
    pub started: u64,
}

/// A signal this program sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Please end.
    Term,
    /// End now.
    Kill,
}

/// Every outside program passes this waist; so do looks at and signals to processes.
pub trait Processes: Send + Sync + std::fmt::Debug {
    /// Runs a program to its end, or to the end of its time.
    fn run(&self, call: &Call) -> Answer;
    /// When did the process with this pid start? `None` when it does not exist (or is a zombie).
    fn started(&self, pid: i32) -> Option<u64>;
    /// One variable of another process's environment; `None` when it has none or will not say.
    fn environment(&self, pid: i32, name: &str) -> Option<String>;
    /// The whole environment of another process, as it was started with; `None` when it will not say, also
    /// because it has ended (SE-60).
    fn environ(&self, pid: i32) -> Option<Environ>;
    /// The command line of another process; empty when it will not say.
    fn argv(&self, pid: i32) -> Vec<String>;
    /// The working directory of another process.
    fn cwd(&self, pid: i32) -> Option<Utf8PathBuf>;
    /// Every process that carries `name=value` in its environment.
    fn carrying(&self, name: &str, value: &str) -> Vec<ProcessId>;
    /// Processor time that the children of a process have used so far, in clock ticks: those that live
    /// and those that ended. `None` where it cannot be seen.
    fn child_ticks(&self, _pid: i32) -> Option<u64> {
        None
    }
    /// Signals a process, after its start time was compared; `false` when it is gone.
    fn signal(&self, process: ProcessId, signal: Signal) -> bool;
    /// Signals the process group led by `leader`, after its start time was compared.
    fn signal_group(&self, leader: ProcessId, signal: Signal) -> bool;
}

/// Shared processes.
pub type SharedProcesses = Arc<dyn Processes>;

/// The operating system's.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsProcesses;

fn drain(mut from: impl Read + Send + 'static, max: usize) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut chunk = [0u8; 16 * 1024];
        while let Ok(n @ 1..) = from.read(&mut chunk) {
            let room = max.saturating_sub(kept.len()).min(n);
            kept.extend_from_slice(&chunk[..room]);
        }
        let _ = send.send(kept);
    });
    receive
}

impl Processes for OsProcesses {
    fn run(&self, call: &Call) -> Answer {
        let no_answer = |why| Answer {
            exit: Err(why),
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        let mut command = Command::new(&call.program);
        command
            .args(&call.args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command.stdin(if call.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        if let Some(dir) = &call.cwd {
            command.current_dir(dir);
        }
        if call.clear_env {
            command.env_clear();
        }
        for (name, value) in &call.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let deadline = Instant::now() + call.timeout;
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(e) => return no_answer(NoAnswer::NotStarted(e.to_string())),
        };
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return no_answer(NoAnswer::NotStarted("its outputs are not open".to_owned()));
        };
        let (stdout, stderr) = (
            drain(stdout, call.output_max),
            drain(stderr, call.output_max),
        );
        if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), call.stdin.clone()) {
            std::thread::spawn(move || {
                let _ = pipe.write_all(&bytes);
            });
        }
        let left = || deadline.saturating_duration_since(Instant::now());
        let outputs = stdout
            .recv_timeout(left())
            .and_then(|o| Ok((o, stderr.recv_timeout(left())?)));
        let status = outputs
            .as_ref()
            .ok()
            .and_then(|_| wait_until(&mut child, deadline).ok().flatten());
        let Some(status) = status else {
            if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
                let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            }
            let _ = child.kill();
            let _ = child.wait();
            return no_answer(NoAnswer::TimedOut(call.timeout));
        };
        let (stdout, stderr) = outputs.unwrap_or_default();
        let exit = status.code().ok_or_else(|| {
            use std::os::unix::process::ExitStatusExt;
            NoAnswer::Signal(status.signal().unwrap_or(0))
        });
        Answer {
            exit,
            stdout,
            stderr,
        }
    }

    fn started(&self, pid: i32) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let after_name = stat.rsplit_once(')')?.1;
        let mut fields = after_name.split_whitespace();
        (fields.next()? != "Z").then_some(())?;
        fields.nth(18)?.parse().ok()
    }

    fn environment(&self, pid: i32, name: &str) -> Option<String> {
        let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let prefix = format!("{name}=");
        bytes
            .split(|b| *b == 0)
            .find_map(|entry| entry.strip_prefix(prefix.as_bytes()))
            .map(|value| String::from_utf8_lossy(value).into_owned())
    }

    fn environ(&self, pid: i32) -> Option<Environ> {
        match std::fs::read(format!("/proc/{pid}/environ")) {
            Ok(block) => Environ::from_block(&block),
            // Where there is a /proc without this process, the process is gone.
            Err(e) if e.kind() == io::ErrorKind::NotFound && has_proc() => None,
            Err(_) => {
                let pid = pid.to_string();
                let listed = self.run(&Call::new("ps", ["eww", "-p", &pid, "-o", "command="]));
                listed
                    .ok()
                    .then(|| Environ::from_ps(&listed.out()))
                    .flatten()
            }
        }
    }

    fn argv(&self, pid: i32) -> Vec<String> {
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = bytes
            .split(|b| *b == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned());
        let mut words: Vec<String> = words.collect();
        words.pop();
        words
    }

    fn cwd(&self, pid: i32) -> Option<Utf8PathBuf> {
        let path = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
        Utf8PathBuf::from_path_buf(path).ok()
    }

    fn carrying(&self, name: &str, value: &str) -> Vec<ProcessId> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| self.environment(*pid, name).as_deref() == Some(value))
            .filter_map(|pid| {
                Some(ProcessId {
                    pid,
                    started: self.started(pid)?,
                })
            })
            .collect()
    }

    fn child_ticks(&self, pid: i32) -> Option<u64> {
        let all: BTreeMap<i32, Ticks> = std::fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .filter_map(|pid| Some((pid, ticks_of(pid)?)))
            .collect();
        let mut sum = all.get(&pid)?.of_ended;
        let mut family = vec![pid];
        while let Some(parent) = family.pop() {
            for (child, ticks) in all.iter().filter(|(_, ticks)| ticks.parent == parent) {
                sum += ticks.own + ticks.of_ended;
                family.push(*child);
            }
        }
        Some(sum)
    }

    fn signal(&self, process: ProcessId, signal: Signal) -> bool {
        let Some(pid) = self.same(process) else {
            return false;
        };
        rustix::process::kill_process(pid, unix_signal(signal)).is_ok()
    }

    fn signal_group(&self, leader: ProcessId, signal: Signal) -> bool {
        let Some(pid) = self.same(leader) else {
            return false;
        };
        rustix::process::kill_process_group(pid, unix_signal(signal)).is_ok()
    }
}

/// Processor time of a process, in clock ticks.
#[derive(Clone, Copy, Debug)]
struct Ticks {
    parent: i32,
    own: u64,
    /// Of its children that ended and were waited for.
    of_ended: u64,
}

/// Fields 4 and 14 to 17 of `/proc/<pid>/stat`; the second, a name, may hold anything and ends at the
/// last bracket.
fn ticks_of(pid: i32) -> Option<Ticks> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Ticks {
        parent: fields.get(1)?.parse().ok()?,
        own: number(11)? + number(12)?,
        of_ended: number(13)? + number(14)?,
    })
}

fn has_proc() -> bool {
    std::fs::exists("/proc/self/environ").unwrap_or(false)
}

impl OsProcesses {
    fn same(self, process: ProcessId) -> Option<rustix::process::Pid> {
        (process.pid > 1 && self.started(process.pid) == Some(process.started)).then_some(())?;
        rustix::process::Pid::from_raw(process.pid)
    }
}

fn unix_signal(signal: Signal) -> rustix::process::Signal {
    match signal {
        Signal::Term => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    }
}

/// Waits for the end of a child whose outputs are closed already; it is nearly always there.
fn wait_until(
    child: &mut std::process::Child,
    deadline: Instant,
) -> io::Result<Option<std::process::ExitStatus>> {
    let mut pause = Duration::from_micros(50);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests;
