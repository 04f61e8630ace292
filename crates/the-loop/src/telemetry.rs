//! The developers' trace: on stderr of a command, in `logs/daemon.log` of the daemon. It never holds
//! payload text or a variable's value; what operators are to know is in the event log.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::world::World;

/// Bytes at which a daemon's log is put aside.
const LOG_BYTES_MAX: u64 = 10 << 20;
/// Older parts that are kept.
const PARTS_KEPT: usize = 5;

/// What `-v` asks for; `least` is the level without it.
fn level(least: LevelFilter, verbose: u8) -> LevelFilter {
    match verbose {
        0 => least,
        1 => LevelFilter::DEBUG.max(least),
        2.. => LevelFilter::TRACE,
    }
}

/// Trace of a command, on stderr; without `-v` there is none.
pub fn to_stderr(least: LevelFilter, verbose: u8) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level(least, verbose))
        .with_ansi(false)
        .with_writer(io::stderr)
        .finish();
    // A second one would be a test's; the first stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Trace of the daemon, into its file.
pub fn to_file(log: &DaemonLog, verbose: u8) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level(LevelFilter::INFO, verbose))
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// A log file that is put aside when it is large; its last five parts stay.
#[derive(Clone, Debug)]
pub struct DaemonLog {
    world: World,
    path: Utf8PathBuf,
    file: Arc<Mutex<std::fs::File>>,
}

impl DaemonLog {
    /// Opens or makes the file.
    pub fn open(world: &World, path: &Utf8Path) -> io::Result<Self> {
        Ok(Self {
            world: world.clone(),
            path: path.to_owned(),
            file: Arc::new(Mutex::new(world.disk.open_append(path)?)),
        })
    }

    /// Puts a large file aside and begins a new one, which stderr goes to as well; `true` when it did.
    pub fn rotate_if_needed(&self) -> io::Result<bool> {
        let disk = &self.world.disk;
        let large = disk
            .meta(&self.path)?
            .is_some_and(|meta| meta.len >= LOG_BYTES_MAX);
        if !large {
            return Ok(false);
        }
        let stamp = self.world.clock.now().compact();
        let part = self.path.with_file_name(format!("daemon-{stamp}.log"));
        if disk.meta(&part)?.is_some() {
            // Two in one second: the next look comes soon enough.
            return Ok(false);
        }
        disk.rename(&self.path, &part)?;
        let fresh = disk.open_append(&self.path)?;
        rustix::stdio::dup2_stderr(&fresh)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        self.forget_old_parts()?;
        Ok(true)
    }

    fn forget_old_parts(&self) -> io::Result<()> {
        let Some(dir) = self.path.parent() else {
            return Ok(());
        };
        let is_part = |name: &String| {
            name.strip_prefix("daemon-")
                .and_then(|rest| rest.strip_suffix(".log"))
                .is_some_and(|stamp| stamp.len() == 16 && stamp.ends_with('Z'))
        };
        let names = self.world.disk.list(dir)?;
        let parts: Vec<String> = names.into_iter().filter(is_part).collect();
        let old = parts.len().saturating_sub(PARTS_KEPT);
        for name in &parts[..old] {
            self.world.disk.remove(&dir.join(name))?;
        }
        Ok(())
    }
}

/// One line on its way into the file.
#[derive(Debug)]
pub struct LogLine(DaemonLog);

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = self.0.file.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.world.disk.append_to(&file, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for DaemonLog {
    type Writer = LogLine;

    fn make_writer(&'a self) -> Self::Writer {
        LogLine(self.clone())
    }
}
