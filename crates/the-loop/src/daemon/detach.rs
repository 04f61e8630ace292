//! How a `start` becomes a daemon (SE-19): the parent runs this program again and waits until the child
//! says on its standard output that it is ready; the child leaves the terminal and goes on alone.
#![allow(
    clippy::disallowed_methods,
    reason = "the daemon outlives whoever started it, so it is no call that is waited for"
)]

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use camino::Utf8Path;

use crate::ops::rows::Rows;
use crate::world::World;

/// Bytes of a child's answer.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// Lines of the log that are shown when a child dies (SE-19).
const TAIL_LINES: usize = 20;
/// Bytes in which those lines are looked for.
const TAIL_BYTES: u64 = 64 << 10;

/// What a parent saw of its child.
#[derive(Debug)]
pub enum Seen {
    /// It is ready.
    Ready(Rows),
    /// It ended before it was ready.
    Died {
        /// Its exit code; 1 when it had none.
        code: u8,
        /// How it ended.
        how: String,
        /// What it logged last.
        tail: Vec<String>,
    },
    /// It neither was ready nor ended in time; it goes on.
    Silent {
        /// Its process.
        pid: u32,
    },
}

/// Starts the child with these arguments and waits for its word. Its stderr goes to `log`.
pub fn start(
    world: &World,
    args: &[String],
    log: &Utf8Path,
    patience: Duration,
) -> io::Result<Seen> {
    let file = world.disk.open_append(log)?;
    let from = file.metadata()?.len();
    let mut child = Command::new(&world.program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file)
        .spawn()?;
    match first_words(&mut child, patience) {
        Some(answer) if answer.is_empty() => Ok(died(world, &mut child, log, from)?),
        Some(answer) => match serde_json::from_slice(&answer) {
            Ok(rows) => Ok(Seen::Ready(rows)),
            Err(e) => Err(io::Error::new(io::ErrorKind::InvalidData, e)),
        },
        None => Ok(Seen::Silent { pid: child.id() }),
    }
}

/// All that the child writes until it closes its output; `None` when that takes too long.
fn first_words(child: &mut Child, patience: Duration) -> Option<Vec<u8>> {
    let stdout = child.stdout.take()?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answer = Vec::new();
        let _ = stdout.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
        let _ = send.send(answer);
    });
    receive.recv_timeout(patience).ok()
}

fn died(world: &World, child: &mut Child, log: &Utf8Path, from: u64) -> io::Result<Seen> {
    // Its output is closed, so it is about to end.
    let deadline = Instant::now() + Duration::from_secs(5);
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if Instant::now() >= deadline => break None,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let code = status.and_then(|status| status.code());
    let how = match status {
        Some(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(signal)) => format!("ended by signal {signal}"),
            (None, None) => "ended".to_owned(),
        },
        None => "it closed its output and goes on".to_owned(),
    };
    Ok(Seen::Died {
        code: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
        how,
        tail: tail(world, log, from),
    })
}

/// The last lines that were written since `from`.
fn tail(world: &World, log: &Utf8Path, from: u64) -> Vec<String> {
    let len = world.disk.meta(log).ok().flatten().map_or(0, |m| m.len);
    let from = from.max(len.saturating_sub(TAIL_BYTES));
    let bytes = world
        .disk
        .read_from(log, from, TAIL_BYTES)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text.lines().map(the_loop_core::redact::visible).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].to_vec()
}

/// The child leaves the terminal it was started in: what ends that does not end it.
pub fn leave_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// The child says that it is ready, and has no standard output from then on.
pub fn say_ready(rows: &Rows) -> io::Result<()> {
    let mut out = io::stdout();
    serde_json::to_writer(&mut out, rows)?;
    out.write_all(b"\n")?;
    out.flush()?;
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nowhere)?;
    Ok(())
}
