//! What every operation works with: the settings and the places they name.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::config::Settings;
use the_loop_core::event::{LogEvent, Source};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::redact::{Redactor, secret_values};

use super::error::{Kind, OpError};
use crate::settings::Loaded;
use crate::store::eventlog::EventLog;
use crate::store::inbox::{Inbox, InboxError, InboxReader, Opened};
use crate::store::layout::{Layout, LayoutError, Overrides};
use crate::store::lock::{LockError, Locks};
use crate::store::portable::Portable;
use crate::store::registry::Registry;
use crate::tmux::Tmux;
use crate::tracker::local::LocalTracker;
use crate::world::World;

/// Settings, places and the log of one command. Cheap to clone; opens nothing by itself.
#[derive(Clone, Debug)]
pub struct Desk {
    /// The outside.
    pub world: World,
    /// The settings and where they come from.
    pub loaded: Loaded,
    /// Where everything is.
    pub layout: Layout,
    /// The operators' log.
    pub log: EventLog,
    /// How long a busy item is waited for (SE-9).
    pub patience: Duration,
    /// How long tmux may take at most; `None` as configured.
    tmux_within: Option<Duration>,
}

/// Where everything is, as these settings say.
pub fn layout_of(settings: &Settings, portable_dir: Option<Utf8PathBuf>) -> Layout {
    let moved = Overrides {
        registry_dir: Some(settings.routing.registry_dir.clone().into()),
        portable_dir,
        events_log: Some(settings.event_log.path.clone().into()),
        webhook_pid: Some(settings.webhooks.gh_webhook.pidfile.clone().into()),
    };
    Layout::with(settings.state.root.clone(), moved)
}

fn tmux_within(world: &World, settings: &Settings, layout: &Layout, within: Duration) -> Tmux {
    let tmux = &settings.routing.tmux;
    Tmux::new(
        world,
        &tmux.binary,
        &tmux.socket_name,
        &layout.tmux_conf(),
        within,
    )
}

impl Desk {
    /// Over loaded settings; `portable_dir` is `--portable-dir`, absolute.
    pub fn new(
        world: &World,
        loaded: Loaded,
        portable_dir: Option<Utf8PathBuf>,
        patience: Duration,
    ) -> Self {
        let settings = &loaded.settings;
        let layout = layout_of(settings, portable_dir);
        let log = EventLog::open(
            world,
            &layout.events_log(),
            settings.event_log.enabled,
            settings.event_log.segment_mb,
            settings.event_log.keep_segments,
        );
        keep_secrets_out(world, settings, &log);
        Self {
            world: world.clone(),
            layout,
            log,
            patience,
            loaded,
            tmux_within: None,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.loaded.settings
    }
    /// The session records.
    pub fn registry(&self) -> Registry {
        Registry::new(&self.world, &self.layout)
    }
    /// The portable records.
    pub fn portable(&self) -> Portable {
        Portable::new(&self.world, &self.layout)
    }
    /// The embedded tracker's files.
    pub fn tickets(&self) -> LocalTracker {
        LocalTracker::new(&self.world, &self.layout)
    }
    /// The locks.
    pub fn locks(&self) -> Locks {
        Locks::new(&self.world, &self.layout)
    }
    /// The tmux server of new sessions.
    pub fn tmux(&self) -> Tmux {
        let configured = Duration::from_secs_f64(self.settings().routing.tmux.timeout_seconds);
        let within = self
            .tmux_within
            .map_or(configured, |most| most.min(configured));
        tmux_within(&self.world, self.settings(), &self.layout, within)
    }
    /// The same desk, for which tmux has at most this long to answer.
    #[must_use]
    pub fn with_tmux_within(&self, most: Duration) -> Self {
        Self {
            tmux_within: Some(most),
            ..self.clone()
        }
    }

    /// Makes the state root fit for writing; every acting operation begins with it.
    pub fn ready_to_write(&self) -> Result<(), OpError> {
        self.layout
            .ensure(&self.world)
            .map_err(|e| unusable_root(&e))
    }

    /// Opens the inbox for one command.
    pub fn inbox(&self) -> Result<Inbox, OpError> {
        self.ready_to_write()?;
        let path = self.layout.inbox_db();
        let Opened {
            inbox,
            created,
            migrated,
        } = Inbox::open_for_a_verb(&self.world, &path).map_err(|e| inbox_error(&e))?;
        if created {
            tell_created(&self.world, &self.layout, &self.log);
        }
        if let Some(migrated) = migrated {
            tell_migrated(&self.log, &migrated);
        }
        Ok(inbox)
    }

    /// Opens the inbox for looking; `None` when there is none.
    pub fn inbox_to_read(&self) -> Result<Option<InboxReader>, OpError> {
        Inbox::open_read_only(&self.world, &self.layout.inbox_db()).map_err(|e| inbox_error(&e))
    }

    /// Writes a line of the operators' log.
    pub fn emit(&self, source: Source, event: LogEvent) {
        self.log.emit(source, event);
    }
}

/// Takes the values of the env file, as it is now, out of the log's free texts (EV-19).
pub fn keep_secrets_out(world: &World, settings: &Settings, log: &EventLog) {
    if settings.env.file.is_empty() || !log.is_enabled() {
        return;
    }
    let declared = crate::settings::read_env_file(world, settings);
    let vars = declared.map(|(file, _)| file.vars).unwrap_or_default();
    log.set_redactor(Redactor::new(secret_values(&world.env, &vars)));
}

/// A new inbox beside session records means that a queue was lost.
pub fn tell_created(world: &World, layout: &Layout, log: &EventLog) {
    let records = Registry::new(world, layout)
        .list()
        .map_or(0, |listing| listing.records.len() as u64);
    let path = layout.inbox_db().to_string();
    log.emit(Source::Engine, LogEvent::InboxCreated { path, records });
}

/// An older inbox was brought up to date.
pub fn tell_migrated(log: &EventLog, migrated: &crate::store::inbox::Migrated) {
    let version = |v: i64| u32::try_from(v).unwrap_or(0);
    log.emit(
        Source::Engine,
        LogEvent::InboxMigrated {
            from: version(migrated.from),
            to: version(migrated.to),
            backup: migrated.backup.to_string(),
        },
    );
}

/// A state root that cannot be used is a fault of the configuration (ST-14).
pub fn unusable_root(e: &LayoutError) -> OpError {
    let made = OpError::new(Kind::Usage, "the state root cannot be used").because(e);
    made.hint("look at state.root: the-loop config show state --origin")
}

/// The inbox's faults in the words of a command.
pub fn inbox_error(e: &InboxError) -> OpError {
    let made = OpError::of(e);
    match e {
        InboxError::Damaged { .. } => {
            made.hint("stop the daemon, move local/inbox.db* of the state root aside, start again")
        }
        InboxError::Newer { .. } => made.hint("upgrade the-loop"),
        InboxError::Unavailable(_)
        | InboxError::Foreign { .. }
        | InboxError::Unknown
        | InboxError::Refused { .. }
        | InboxError::NotHeld(_)
        | InboxError::Unreadable { .. }
        | InboxError::Conflict(_) => made,
    }
}

/// A lock that was not had, in the words of SE-9.
pub fn lock_error(item: &WorkItemRef, e: &LockError) -> OpError {
    match e {
        LockError::Busy(_) | LockError::GaveWay => {
            OpError::new(Kind::Busy, format!("{item}: busy"))
        }
        LockError::NotLocking { .. } | LockError::Io { .. } => {
            OpError::failed(format!("{item}: cannot lock it"), e)
        }
    }
}

/// Reads refs; all bad ones are reported together and nothing is done (SE-8, ST-2). Repeats collapse,
/// the first place stays.
pub fn parse_refs<S: AsRef<str>>(texts: &[S]) -> Result<Vec<WorkItemRef>, Vec<OpError>> {
    let mut items: Vec<WorkItemRef> = Vec::new();
    let mut bad = Vec::new();
    for text in texts {
        match text.as_ref().parse::<WorkItemRef>() {
            Ok(item) if items.iter().any(|known| known.key() == item.key()) => {}
            Ok(item) => items.push(item),
            Err(e) => bad.push(bad_ref(text.as_ref(), &e)),
        }
    }
    if bad.is_empty() { Ok(items) } else { Err(bad) }
}

/// `not a work-item ref`, with what is wrong and what to write.
pub fn bad_ref(text: &str, e: &the_loop_core::ids::RefError) -> OpError {
    let echo = the_loop_core::redact::visible(text);
    OpError::usage(format!("not a work-item ref: \"{echo}\" ({e})")).hint(e.hint())
}

/// Reads one ref.
pub fn parse_ref(text: &str) -> Result<WorkItemRef, OpError> {
    text.parse().map_err(|e| bad_ref(text, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st2_se8_all_bad_refs_are_named_and_repeats_collapse() {
        let good = parse_refs(&["github:octo/repo#15", "github:Octo/Repo#015"]).unwrap();
        assert_eq!(good.len(), 1);
        let bad = parse_refs(&["github:a/b#1", "nope", "github:../..#1"]).unwrap_err();
        assert_eq!(bad.len(), 2);
        assert!(
            bad[1]
                .message
                .starts_with("not a work-item ref: \"github:../..#1\" (")
        );
        assert_eq!(bad[0].kind.exit_code(), 2);
    }
}
