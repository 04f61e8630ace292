//! The pane that the demo agent runs in: raw mode, drawing, and one wait for everything.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::agent::{Agent, Said};
use super::input::{Decoder, Key};
use super::view;

/// Things said that are drawn again after the pane changed its size.
const REMEMBERED: usize = 60;
/// Exit codes as a shell tells them: 128 and the signal.
const CODE_SIGTERM: i32 = 143;
const CODE_SIGHUP: i32 = 129;

/// Why a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Woken {
    /// Something was typed or pasted.
    Keys(Vec<Key>),
    /// The work is done, with this answer.
    Worked(String),
    /// The pane has another size.
    Resized,
    /// A signal asked for the end; the exit code for it.
    Signal(i32),
    /// The pane is gone.
    Closed,
    /// The time is over.
    Time,
}

/// The terminal.
pub struct Terminal {
    before: Option<Termios>,
    size: (usize, usize),
    decoder: Decoder,
    input_is_open: bool,
    terminate: UnixStream,
    hang_up: UnixStream,
    resize: UnixStream,
    worked: UnixStream,
    worked_sender: UnixStream,
    answers: (mpsc::Sender<String>, mpsc::Receiver<String>),
    /// Row of the cursor within the bottom rows that are drawn now; `None` when none are.
    cursor_row: Option<usize>,
    remembered: VecDeque<Said>,
}

/// Prints one line on the terminal before there is any drawing; answers the code.
pub fn say(line: &str, code: i32) -> i32 {
    let mut out = io::stdout();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
    code
}

fn signal_stream(signal: i32) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, write)?;
    Ok(read)
}

impl Terminal {
    /// Begins to watch for signals; nothing is drawn or read yet.
    pub fn open() -> io::Result<Self> {
        let (worked, worked_sender) = UnixStream::pair()?;
        worked.set_nonblocking(true)?;
        Ok(Self {
            before: None,
            size: (80, 24),
            decoder: Decoder::default(),
            input_is_open: true,
            terminate: signal_stream(signal_hook::consts::SIGTERM)?,
            hang_up: signal_stream(signal_hook::consts::SIGHUP)?,
            resize: signal_stream(signal_hook::consts::SIGWINCH)?,
            worked,
            worked_sender,
            answers: mpsc::channel(),
            cursor_row: None,
            remembered: VecDeque::new(),
        })
    }

    /// Takes the terminal over: raw mode and bracketed paste.
    pub fn begin(&mut self) -> io::Result<()> {
        let input = rustix::stdio::stdin();
        let before = tcgetattr(input)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(input, OptionalActions::Now, &raw)?;
        self.before = Some(before);
        self.measure();
        write_all("\x1b[?2004h");
        Ok(())
    }

    /// Gives the terminal back.
    pub fn end(&mut self) {
        self.erase_bottom(&mut String::new());
        write_all("\r\x1b[J\x1b[?2004l\x1b]2;\x07");
        if let Some(before) = self.before.take() {
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &before);
        }
    }

    fn measure(&mut self) {
        if let Ok(size) = tcgetwinsize(rustix::stdio::stdout()) {
            self.size = (
                usize::from(size.ws_col).max(12),
                usize::from(size.ws_row).max(4),
            );
        }
    }

    /// Waits only for a signal that asks for the end; its exit code.
    pub fn wait_for_signal(&mut self, at_most: Duration) -> Option<i32> {
        let fds = [self.terminate.as_fd(), self.hang_up.as_fd()];
        let ready = wait_readable(&fds, Some(at_most));
        self.signalled(ready[0], ready[1])
    }

    fn signalled(&mut self, terminate: bool, hang_up: bool) -> Option<i32> {
        if terminate {
            drain(&self.terminate);
            return Some(CODE_SIGTERM);
        }
        if hang_up {
            drain(&self.hang_up);
            return Some(CODE_SIGHUP);
        }
        None
    }

    /// Waits until something happens.
    pub fn wait(&mut self, at_most: Option<Duration>) -> Woken {
        let mut fds = vec![
            self.terminate.as_fd(),
            self.hang_up.as_fd(),
            self.resize.as_fd(),
            self.worked.as_fd(),
        ];
        if self.input_is_open {
            fds.push(rustix::stdio::stdin());
        }
        let ready = wait_readable(&fds, at_most);
        if let Some(code) = self.signalled(ready[0], ready[1]) {
            return Woken::Signal(code);
        }
        if ready[2] {
            drain(&self.resize);
            return Woken::Resized;
        }
        if ready[3] {
            drain_one(&self.worked);
            if let Ok(answer) = self.answers.1.try_recv() {
                return Woken::Worked(answer);
            }
        }
        if ready.get(4) == Some(&true) {
            return self.read_keys();
        }
        Woken::Time
    }

    fn read_keys(&mut self) -> Woken {
        let mut chunk = [0u8; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut chunk) {
            Ok(0) => self.closed(),
            Ok(n) => Woken::Keys(self.decoder.take(&chunk[..n])),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Woken::Keys(Vec::new()),
            Err(_) => self.closed(),
        }
    }

    fn closed(&mut self) -> Woken {
        self.input_is_open = false;
        Woken::Closed
    }

    /// Does work beside the waiting; its answer comes as [`Woken::Worked`].
    pub fn work(&self, work: impl FnOnce() -> String + Send + 'static) {
        let sender = self.answers.0.clone();
        let Ok(mut wake) = self.worked_sender.try_clone() else {
            return;
        };
        std::thread::spawn(move || {
            let _ = sender.send(work());
            let _ = wake.write_all(b".");
        });
    }

    /// Prints things said above the bottom rows.
    pub fn show(&mut self, things: &[Said]) {
        let mut out = String::new();
        self.erase_bottom(&mut out);
        for thing in things {
            for row in view::said(thing, self.size.0) {
                out.push_str(&row);
                out.push_str("\r\n");
            }
            if self.remembered.len() == REMEMBERED {
                self.remembered.pop_front();
            }
            self.remembered.push_back(thing.clone());
        }
        write_all(&out);
    }

    /// Draws the bottom rows anew, and tells the state as the title.
    pub fn redraw(&mut self, agent: &Agent) {
        let mut out = String::new();
        self.erase_bottom(&mut out);
        let (columns, rows) = self.size;
        let (lines, cursor_row, cursor_column) = view::bottom(agent, columns, rows);
        out.push_str(&lines.join("\r\n"));
        let up = lines.len() - 1 - cursor_row;
        if up > 0 {
            out.push_str(&format!("\x1b[{up}A"));
        }
        out.push_str(&format!("\r\x1b[{cursor_column}C"));
        out.push_str(&format!("\x1b]2;{}\x07", view::status_row(agent.status())));
        write_all(&out);
        self.cursor_row = Some(cursor_row);
    }

    /// After a change of size nothing is where it was: the conversation is drawn again from the top.
    pub fn resized(&mut self) {
        self.measure();
        self.cursor_row = None;
        write_all("\x1b[2J\x1b[H");
        let (columns, rows) = self.size;
        let all: Vec<String> = self
            .remembered
            .iter()
            .flat_map(|thing| view::said(thing, columns))
            .collect();
        let shown = rows.saturating_sub(5);
        let mut out = all[all.len().saturating_sub(shown)..].join("\r\n");
        if !out.is_empty() {
            out.push_str("\r\n");
        }
        write_all(&out);
    }

    /// Moves to the first of the bottom rows and clears from there on.
    fn erase_bottom(&mut self, out: &mut String) {
        if let Some(row) = self.cursor_row.take() {
            if row > 0 {
                out.push_str(&format!("\x1b[{row}A"));
            }
            out.push_str("\r\x1b[J");
        }
    }
}

/// Which of these can be read, after waiting for one of them.
fn wait_readable(fds: &[BorrowedFd<'_>], at_most: Option<Duration>) -> Vec<bool> {
    let mut waits: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    // One more millisecond, so that the time asked for is over when it wakes.
    let timeout = at_most.map(|d| d + Duration::from_millis(1));
    let timeout = timeout.and_then(|d| Timespec::try_from(d).ok());
    // An interrupted wait is one in which nothing came; whoever waits comes again.
    let _ = poll(&mut waits, timeout.as_ref());
    waits.iter().map(|w| !w.revents().is_empty()).collect()
}

fn drain(from: &UnixStream) {
    let mut bytes = [0u8; 64];
    while matches!(rustix::io::read(from, &mut bytes), Ok(1..)) {}
}

fn drain_one(from: &UnixStream) {
    let _ = rustix::io::read(from, &mut [0u8; 1]);
}

/// Writes to the terminal; one that is gone takes nothing, and says so by a signal.
fn write_all(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}
