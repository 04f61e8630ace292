//! The variables that make the demo agent misbehave (DI-38).

use std::time::Duration;

use camino::Utf8PathBuf;

use crate::world::World;

/// Milliseconds of the longest wait that may be asked for: an hour.
const WAIT_MS_MAX: u64 = 3_600_000;

/// What it was told to do wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// Wait this long before banner, composer and first hook.
    pub slow_start: Duration,
    /// Ignore the first so many submits.
    pub swallow_enter: u64,
    /// Ask before each turn acts.
    pub ask_permission: bool,
    /// Exit before it is ready.
    pub exit_at_once: bool,
    /// Ignore SIGTERM and SIGHUP.
    pub ignore_sigterm: bool,
    /// Each turn takes at least this long.
    pub busy: Duration,
    /// Call no hook.
    pub no_hooks: bool,
    /// Where the conversation is written down.
    pub transcript: TranscriptAt,
}

/// Where the conversation is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptAt {
    /// In the state root.
    Default,
    /// Elsewhere.
    Path(Utf8PathBuf),
    /// Not at all.
    Nowhere,
}

impl Knobs {
    /// Reads the variables; an error says which one is bad.
    pub fn read(world: &World) -> Result<Self, String> {
        let bad = |name: &str, want: &str| format!("THE_LOOP_DEMO_{name} must be {want}");
        let var = |name: &str| world.var(&format!("THE_LOOP_DEMO_{name}"));
        let number = |name: &str, max: u64| match var(name) {
            None => Ok(0),
            Some(text) => match text.parse::<u64>() {
                Ok(n) if n <= max && text.bytes().all(|b| b.is_ascii_digit()) => Ok(n),
                Ok(_) | Err(_) => Err(bad(name, &format!("a number from 0 to {max}"))),
            },
        };
        let flag = |name: &str| match var(name) {
            None | Some("0") => Ok(false),
            Some("1") => Ok(true),
            Some(_) => Err(bad(name, "0 or 1")),
        };
        let transcript = match var("TRANSCRIPT") {
            None | Some("0") => TranscriptAt::Default,
            Some("none") => TranscriptAt::Nowhere,
            Some(path) if path.starts_with('/') => TranscriptAt::Path(path.into()),
            Some(_) => return Err(bad("TRANSCRIPT", "an absolute path or none")),
        };
        Ok(Self {
            slow_start: Duration::from_millis(number("SLOW_START_MS", WAIT_MS_MAX)?),
            swallow_enter: number("SWALLOW_ENTER", u64::MAX)?,
            ask_permission: flag("ASK_PERMISSION")?,
            exit_at_once: flag("EXIT_AT_ONCE")?,
            ignore_sigterm: flag("IGNORE_SIGTERM")?,
            busy: Duration::from_millis(number("BUSY_MS", WAIT_MS_MAX)?),
            no_hooks: flag("NO_HOOKS")?,
            transcript,
        })
    }
}
