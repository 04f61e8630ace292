//! What is printed, and where (SE-5 to SE-7, SE-14). stdout holds the answer and nothing else.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use the_loop_core::redact::visible;

use super::args::{Color, Format, Global};
use crate::ops::error::{Kind, OpError};
use crate::settings::ConfigFault;
use crate::world::World;

/// The two streams of a command.
#[derive(Debug)]
pub struct Out {
    stdout: RefCell<BufWriter<Stdout>>,
    closed: Cell<bool>,
    failed: RefCell<Option<io::Error>>,
    format: Format,
    quiet: bool,
    color: bool,
}

impl Out {
    /// As the global flags say.
    pub fn new(world: &World, global: &Global) -> Self {
        let color = match global.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => io::stdout().is_terminal() && world.var("NO_COLOR").is_none(),
        };
        Self {
            stdout: RefCell::new(BufWriter::new(io::stdout())),
            closed: Cell::new(false),
            failed: RefCell::new(None),
            format: global.format,
            quiet: global.quiet,
            color: color && global.format == Format::Text,
        }
    }

    /// How results are to be printed.
    pub fn format(&self) -> Format {
        self.format
    }
    /// Is the result one JSON document?
    pub fn json_wanted(&self) -> bool {
        match self.format {
            Format::Json | Format::Jsonl => true,
            Format::Text => false,
        }
    }
    /// May colours be used on stdout?
    pub fn color(&self) -> bool {
        self.color
    }
    /// Has the reader gone (`| head`)? Then there is nobody to answer.
    pub fn closed(&self) -> bool {
        self.closed.get()
    }

    /// Has the reader gone, found out without writing? Who waits for something to print would else
    /// wait on for nobody.
    pub fn abandoned(&self) -> bool {
        let stdout = io::stdout();
        let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
        let at_once = Timespec::default();
        let answered = poll(&mut asked, Some(&at_once)).is_ok();
        let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
        self.closed() || (answered && asked.iter().any(|fd| fd.revents().intersects(gone)))
    }

    /// Bytes of the answer.
    pub fn bytes(&self, bytes: &[u8]) {
        self.try_write(|out| out.write_all(bytes));
    }
    /// One line of the answer. Foreign text in it went through [`visible`].
    pub fn line(&self, text: impl Display) {
        self.try_write(|out| writeln!(out, "{text}"));
    }
    /// The answer as one document and a newline (SE-7).
    pub fn json(&self, value: &impl Serialize) {
        match serde_json::to_string_pretty(value) {
            Ok(text) => self.line(text),
            Err(e) => self.error(&OpError::failed("cannot write the answer as JSON", &e)),
        }
    }
    /// Hands over what is buffered.
    pub fn flush(&self) {
        self.try_write(Write::flush);
    }

    fn try_write(&self, write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<()>) {
        if self.closed.get() {
            return;
        }
        if let Err(e) = write(&mut self.stdout.borrow_mut()) {
            self.closed.set(true);
            if e.kind() != io::ErrorKind::BrokenPipe {
                *self.failed.borrow_mut() = Some(e);
            }
        }
    }

    /// Ends the answer; `false` when it could not be written for another reason than that the reader
    /// went away.
    pub fn finish(&self) -> bool {
        self.flush();
        let failed = self.failed.borrow_mut().take();
        if let Some(e) = &failed {
            self.error(&OpError::failed("cannot write to standard output", e));
        }
        failed.is_none()
    }

    /// A line on stderr; nobody can be told that it failed.
    fn stderr(&self, text: &str) {
        self.flush();
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
    /// A line of a verb that did nothing: on stderr, without a word in front.
    pub fn aside(&self, text: impl Display) {
        self.stderr(&text.to_string());
    }
    /// Something to know.
    pub fn note(&self, text: impl Display) {
        if !self.quiet {
            self.stderr(&format!("note: {text}"));
        }
    }
    /// Something to look at.
    pub fn warning(&self, text: impl Display) {
        self.stderr(&format!("warning: {text}"));
    }
    /// A next step.
    pub fn hint(&self, text: impl Display) {
        self.stderr(&format!("hint: {text}"));
    }
    /// What failed, why, and what to do (SE-6).
    pub fn error(&self, error: &OpError) {
        match error.kind {
            Kind::Nothing => self.stderr(&error.message),
            Kind::Usage | Kind::NotFound | Kind::Refused | Kind::Busy | Kind::Failed => {
                self.stderr(&format!("error: {}", error.message));
            }
        }
        for cause in &error.causes {
            self.stderr(&format!("  caused by: {}", visible(cause)));
        }
        for hint in error.hints.iter().take(3) {
            self.hint(hint);
        }
    }

    /// Why the configuration cannot be used (SE-12).
    pub fn config_fault(&self, world: &World, fault: &ConfigFault) {
        let shown = fault.path.as_deref().map_or_else(String::new, |path| {
            crate::settings::tilde(path, world.home.as_deref())
        });
        for warning in &fault.warnings {
            self.warning(visible(&warning.line(&shown)));
        }
        for line in fault.lines(world.home.as_deref()) {
            self.stderr(&format!("error: {}", visible(&line)));
        }
        self.hint("the-loop config check");
    }
}
