//! The vocabulary: every event this version writes, in one table (EV-3).
//!
//! A row is `Variant = "name", level, { fields }` under the words of the catalogue. A level that depends
//! on a field lists all it may be, then the field and the function that tells.

use serde_json::{Map, Value};

use super::catalogue::{EventType, Field};
use super::fields;
use super::reasons::{
    AbandonedReason, AdoptedWas, AutoclosedReason, CleanupDeferredReason, ClosedVia, ClosureKind,
    ClosureState, CommandWord, CommentKind, ConfirmedBy, ControlEffect, ControlRejectReason,
    ControlVia, DispatchDropReason, DispatchVia, DuplicateBy, ExitedState, HeldReason, Interaction,
    KeptReason, Level, LimitReason, LinkageReason, LinkageVia, ProviderErrorReason, QuotaEffect,
    ReactionState, ReleasedVia, ResolvedBy, ResolvedOutcome, RestartOutcome, RestartSkipped,
    RetriedVia, RoutingDropReason, Runner, SavedWhy, ServiceName, SilentNext, StateKind,
    StopReason, Strategy, SucceededReason, SucceededState, TicketChange, UncertainNext,
    UncertainReason, UnconfirmedNext, WaitingKind, WebhookRejectReason,
};
use super::word::FieldValue;
use crate::delivery::Ingress;
use crate::ids::WorkItemRef as Ref;
use crate::time::Timestamp;

macro_rules! level_value {
    ($level:ident) => {
        Level::$level
    };
    ($level:ident $tell:path, $field:ident) => {
        $tell(*$field)
    };
}

macro_rules! log_events {
    ($( section $section:literal $(
        $(#[doc = $doc:literal])+
        $variant:ident = $name:literal, $level:ident $($(| $other:ident)+ by $by:ident: $tell:path)?,
        { $($field:ident: $ty:ty),* $(,)? }
    )+ )+) => {
        /// One line of the event log, without its envelope. The doc comments are the catalogue (EV-3).
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum LogEvent {$($(
            $(#[doc = $doc])+
            $variant {
                $(
                    #[doc = concat!("`", stringify!($field), "`: [`meaning`](fields::meaning) tells what.")]
                    $field: $ty,
                )*
            },
        )+)+}

        /// Every event this version writes, in the catalogue's order.
        pub const CATALOGUE: &[EventType] = &[$($(EventType {
            section: $section,
            name: $name,
            variant: stringify!($variant),
            levels: &[Level::$level $($(, Level::$other)+)?],
            meaning: concat!($($doc),+),
            fields: &[$(Field {
                name: stringify!($field),
                kind: <$ty as FieldValue>::KIND,
                optional: <$ty as FieldValue>::OPTIONAL,
            }),*],
        }),+),+];

        impl LogEvent {
            /// The name on the line.
            pub fn name(&self) -> &'static str {
                match self {
                    $($(Self::$variant { .. } => $name,)+)+
                }
            }

            /// The level, which a field may decide.
            pub fn level(&self) -> Level {
                match self {
                    $($(Self::$variant { $($by,)? .. } => level_value!($level $($tell, $by)?),)+)+
                }
            }

            /// The fields that have a value, in declaration order (EV-2).
            pub fn fields(&self) -> Map<String, Value> {
                let mut line = Map::new();
                self.put(&mut line);
                line
            }

            /// Adds the fields that have a value.
            pub(super) fn put(&self, line: &mut Map<String, Value>) {
                match self {
                    $($(Self::$variant { $($field),* } => {
                        $(put(line, stringify!($field), $field);)*
                    })+)+
                }
            }

            /// One of each, with every optional field, from the samples of [`fields`].
            pub fn examples() -> Vec<Self> {
                vec![$($(Self::$variant { $($field: sample(stringify!($field))),* }),+),+]
            }
        }
    };
}

fn put(line: &mut Map<String, Value>, name: &str, field: &impl FieldValue) {
    if let Some(value) = field.value() {
        line.insert(name.to_owned(), value);
    }
}

fn sample<T: FieldValue>(name: &str) -> T {
    T::sample(fields::sample(name))
}

fn warns_with_records(records: u64) -> Level {
    if records > 0 {
        Level::Warning
    } else {
        Level::Info
    }
}

fn informs_when(moved: bool) -> Level {
    if moved { Level::Info } else { Level::Debug }
}

fn warns_unless(well: bool) -> Level {
    if well { Level::Info } else { Level::Warning }
}

log_events! {
    section "Receiver and inbox"

    /// A verified request was stored; with routing off it was only seen, and answered `routing-off`.
    WebhookReceived = "webhook.received", Info,
    { gh_event: String, action: Option<String>, delivery_id: String, verified: bool, secret: Option<u32> }
    /// A request was answered with 4xx or 503. One reason is said at most every 10 seconds; `count` tells how
    /// often it came meanwhile.
    WebhookRejected = "webhook.rejected", Warning | Error by reason: WebhookRejectReason::level,
    { reason: WebhookRejectReason, status: u16, count: Option<u64>, gh_event: Option<String>, delivery_id: Option<String> }
    /// The delivery is on disk; whoever sent it may be answered.
    DeliveryAccepted = "delivery.accepted", Info,
    { delivery_id: String, ingress: Ingress, gh_event: String, action: Option<String>, actor: Option<String>,
      content_key: String, seq: u64 }
    /// Known already, and not acted on again.
    DeliveryDuplicate = "delivery.duplicate", Debug,
    { delivery_id: String, first_delivery_id: String, by: DuplicateBy, ingress: Ingress, gh_event: Option<String>,
      action: Option<String> }
    /// Has to wait; said once for each reason. `draft`, `typing` and `copy-mode` are said only after
    /// `routing.tmux.holdMaxSeconds`.
    DeliveryHeld = "delivery.held", Warning,
    { work_item: Ref, endpoint: Option<Ref>, delivery_id: String, reason: HeldReason, since: Timestamp }
    /// No longer has to wait.
    DeliveryUnheld = "delivery.unheld", Debug,
    { work_item: Ref, delivery_id: String, reason: HeldReason, waited_ms: u64 }
    /// tmux took text and submit, or the launched process has it as an argument. Nothing more is known.
    DeliveryPasted = "delivery.pasted", Info,
    { work_item: Ref, endpoint: Option<Ref>, delivery_id: String, harness: String }
    /// The harness itself showed that it has the prompt.
    DeliveryConfirmed = "delivery.confirmed", Info,
    { work_item: Ref, endpoint: Option<Ref>, delivery_id: String, harness: String, by: ConfirmedBy, waited_ms: u64 }
    /// No confirmation came in time.
    DeliveryUnconfirmed = "delivery.unconfirmed", Warning,
    { work_item: Ref, endpoint: Option<Ref>, delivery_id: String, harness: String, waited_ms: u64, next: UnconfirmedNext }
    /// It may or may not have been pasted.
    DeliveryUncertain = "delivery.uncertain", Warning,
    { work_item: Ref, endpoint: Option<Ref>, delivery_id: String, reason: UncertainReason, intent_at: Timestamp,
      next: UncertainNext }
    /// An uncertainty ended.
    DeliveryResolved = "delivery.resolved", Info,
    { work_item: Ref, delivery_id: String, outcome: ResolvedOutcome, by: ResolvedBy, actor: Option<String> }
    /// Given up.
    DeliveryAbandoned = "delivery.abandoned", Error,
    { work_item: Ref, endpoint: Option<Ref>, delivery_id: String, reason: AbandonedReason, attempts: u64,
      error: Option<String> }
    /// Opened again with a full budget.
    DeliveryRetried = "delivery.retried", Info,
    { work_item: Option<Ref>, delivery_id: String, via: RetriedVia, actor: Option<String>, was: String }
    /// An operator dropped it.
    DeliveryDiscarded = "delivery.discarded", Info,
    { work_item: Option<Ref>, delivery_id: String, actor: String, was: String, note: Option<String> }
    /// A new inbox. Session records beside it mean that a queue was lost.
    InboxCreated = "inbox.created", Info | Warning by records: warns_with_records,
    { path: String, records: u64 }
    /// The inbox has the shape of this version now; `backup` is the old one.
    InboxMigrated = "inbox.migrated", Info,
    { from: u32, to: u32, backup: String }
    /// The inbox refuses commits.
    InboxUnavailable = "inbox.unavailable", Error,
    { error: String }
    /// The inbox commits again.
    InboxRecovered = "inbox.recovered", Info,
    { since: Timestamp }
    /// The inbox failed its self-check; nothing is let in.
    InboxDamaged = "inbox.damaged", Error,
    { path: String, error: String }
    /// Finished rows were removed by age.
    InboxPruned = "inbox.pruned", Debug,
    { count: u64, before: Timestamp }

    section "Routing, dispatch, reactions"

    /// Concerns these items and may go on.
    RoutingRouted = "routing.routed", Info,
    { gh_event: String, action: Option<String>, delivery_id: String, actor: Option<String>, work_items: Vec<Ref>,
      labeled: bool, link_incomplete: Option<bool> }
    /// Refused; the reason decides the level.
    RoutingDropped = "routing.dropped", Debug | Info | Warning by reason: RoutingDropReason::level,
    { reason: RoutingDropReason, gh_event: String, action: Option<String>, delivery_id: String, actor: Option<String>,
      work_items: Option<Vec<Ref>> }
    /// An item that is only guessed, by a branch name or a closing keyword, is left out.
    RoutingLinkageDropped = "routing.linkage_dropped", Warning,
    { work_item: Ref, via: LinkageVia, reason: LinkageReason, gh_event: String, delivery_id: String }
    /// Waits its turn at its item. `spawn`: there is no session yet. `suspect_self`: it may be the agent's own
    /// comment through a shared login.
    DispatchQueued = "dispatch.queued", Info,
    { work_item: Ref, endpoint: Option<Ref>, gh_event: String, delivery_id: String, spawn: bool,
      suspect_self: Option<bool> }
    /// Ends without a prompt; the reason decides the level.
    DispatchDropped = "dispatch.dropped", Debug | Info | Warning | Error by reason: DispatchDropReason::level,
    { reason: DispatchDropReason, work_item: Option<Ref>, work_items: Option<Vec<Ref>>, gh_event: String,
      delivery_id: String, tmux_target: Option<String>, error: Option<String>, will_retry: bool }
    /// Ended well. State `pasted` has a reason: the harness cannot confirm.
    DispatchSucceeded = "dispatch.succeeded", Info,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, via: DispatchVia, gh_event: String, delivery_id: String,
      state: SucceededState, reason: Option<SucceededReason> }
    /// This try failed.
    DispatchFailed = "dispatch.failed", Error,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, via: DispatchVia, gh_event: String, delivery_id: String,
      error: String, will_retry: bool, retry_at: Option<Timestamp> }
    /// A defect stopped the item's task; the item is set aside.
    DispatchError = "dispatch.error", Error,
    { work_item: Option<Ref>, gh_event: Option<String>, delivery_id: Option<String>, error: String, will_retry: bool }
    /// A reaction stands on the ticket.
    ReactionAdded = "reaction.added", Debug,
    { work_item: Option<Ref>, state: ReactionState, content: String, target: String }
    /// A reaction could not be set; nothing depends on it.
    ReactionFailed = "reaction.failed", Warning,
    { work_item: Option<Ref>, state: ReactionState, content: String, target: String, error: String }
    /// A call to a tracker failed. What it was for is lost when it is not tried again; nothing depends on it.
    TrackerError = "tracker.error", Warning,
    { host: String, operation: String, status: Option<u32>, error: String, will_retry: bool }
    /// A tracker refused the credential, or what it is allowed; told once a host and hour.
    TrackerAuthFailed = "tracker.auth_failed", Error, { host: String, operation: String, status: u32 }
    /// The ticket had as many comments of ours within an hour as it may have; this one was not written.
    CommentWithheld = "comment.withheld", Warning, { work_item: Ref, what: CommentKind, count: u32 }

    /// A host's calls of this hour come to an end; told once an hour of the host's.
    QuotaLow = "quota.low", Warning,
    { host: String, remaining: u64, limit: u64, resets_at: Timestamp, effect: QuotaEffect }
    /// A host takes no more calls within this hour.
    QuotaExhausted = "quota.exhausted", Warning, { host: String, resets_at: Timestamp }
    /// A host asks for a pause; all calls to it wait.
    QuotaThrottled = "quota.throttled", Warning, { host: String, retry_after_s: u64 }
    /// A host takes calls again, within the hour.
    QuotaRecovered = "quota.recovered", Info, { host: String, remaining: u64 }

    section "Control"

    /// A command was obeyed and, where the rules say so, recorded. A start that spawns has one too, once its
    /// outcome is known.
    ControlCommand = "control.command", Info,
    { work_item: Ref, command: CommandWord, via: ControlVia, actor: Option<String>, effect: ControlEffect,
      delivery_id: Option<String> }
    /// An authorised person's command was not obeyed.
    ControlRejected = "control.rejected", Warning,
    { work_items: Vec<Ref>, command: CommandWord, via: ControlVia, actor: Option<String>, reason: ControlRejectReason,
      delivery_id: Option<String> }
    /// Two commands in one comment; nothing was done.
    ControlAmbiguous = "control.ambiguous", Warning,
    { work_items: Vec<Ref>, actor: String, commands: Vec<CommandWord>, delivery_id: Option<String>, replied: bool }
    /// A verb's comment stands on the ticket.
    ControlAnnounced = "control.announced", Info,
    { work_item: Ref, command: CommandWord }
    /// A verb's comment could not be put on the ticket.
    ControlAnnounceFailed = "control.announce_failed", Warning,
    { work_item: Ref, command: CommandWord, error: String }

    section "Sessions"

    /// A session was registered by hand; `replaced` when another was bound before.
    SessionRegistered = "session.registered", Info,
    { work_item: Ref, harness: String, harness_session_id: String, cwd: String, replaced: Option<bool> }
    /// The start is journaled; tmux comes next.
    SessionStarting = "session.starting", Info,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, tmux_target: String, cwd: String, resume: bool,
      delivery_id: Option<String> }
    /// A session runs, and tmux was asked whether it lives.
    SessionSpawned = "session.spawned", Info,
    { work_item: Ref, harness: String, harness_session_id: Option<String>, runner: Runner, interaction: Interaction,
      tmux_target: String, gh_event: Option<String>, action: Option<String>, delivery_id: Option<String> }
    /// No session came up. `tail`: last lines of a pane whose harness died at once.
    SessionSpawnFailed = "session.spawn_failed", Error,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, tmux_target: Option<String>, error: String,
      will_retry: bool, remedy: Option<String>, tail: Option<String> }
    /// The process was replaced; `resumed`: the conversation is the same.
    SessionRespawned = "session.respawned", Info,
    { work_item: Ref, harness: String, harness_session_id: Option<String>, runner: Runner, tmux_target: String,
      gh_event: Option<String>, action: Option<String>, delivery_id: Option<String>, resumed: bool }
    /// It was alive after all; the prompt went into it.
    SessionRespawnAverted = "session.respawn_averted", Info,
    { work_item: Ref, harness: String, tmux_target: String, gh_event: String, action: Option<String>,
      delivery_id: Option<String> }
    /// The conversation could not be taken up again; a fresh one follows.
    SessionResumeFailed = "session.resume_failed", Warning,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, harness_session_id: Option<String>, error: String }
    /// Found alive. `was`: known as `starting`, or `none` when only its mark told whose it is.
    SessionAdopted = "session.adopted", Info,
    { work_item: Ref, endpoint: Option<Ref>, tmux_target: String, was: AdoptedWas }
    /// Takes input for the first time.
    SessionReady = "session.ready", Info,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, waited_ms: u64 }
    /// A turn began.
    SessionWorking = "session.working", Debug,
    { work_item: Ref, endpoint: Option<Ref>, harness: String }
    /// A turn ended.
    SessionIdle = "session.idle", Debug,
    { work_item: Ref, endpoint: Option<Ref>, harness: String }
    /// Has needed a person for `routing.attention.afterSeconds`; once a wait. The summary has at most 200
    /// characters.
    SessionWaiting = "session.waiting", Info,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, kind: WaitingKind, summary: Option<String> }
    /// Works without a sign of life: no line in its transcript, no output, no busy child. Never ended for it.
    SessionStalled = "session.stalled", Warning,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, waited_ms: u64 }
    /// Nothing lives behind the record any more.
    SessionExited = "session.exited", Info | Warning by expected: warns_unless,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, tmux_target: String, state: ExitedState,
      exit_code: Option<i32>, expected: bool }
    /// The ticket says how to attach.
    SessionAnnounced = "session.announced", Info,
    { work_item: Ref, tmux_target: String }
    /// The ticket could not be told how to attach.
    SessionAnnounceFailed = "session.announce_failed", Warning,
    { work_item: Ref, tmux_target: String, error: String }
    /// Takes no prompts until it is resumed.
    SessionPaused = "session.paused", Info,
    { work_item: Ref, harness: String, harness_session_id: Option<String> }
    /// Takes prompts again.
    SessionResumed = "session.resumed", Info,
    { work_item: Ref, harness: String, harness_session_id: Option<String> }
    /// The record is closed.
    SessionClosed = "session.closed", Info,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, harness_session_id: Option<String>, via: ClosedVia }
    /// The item ended, and its session with it.
    SessionAutoclosed = "session.autoclosed", Info,
    { work_item: Ref, reason: AutoclosedReason, merged: bool, moved_to: Option<String>, delivery_id: Option<String> }
    /// The tracker says that the item does not exist. Nothing is ended for it.
    SessionWorkItemMissing = "session.work_item_missing", Error,
    { work_item: Ref, tmux_target: Option<String>, error: String }
    /// Something linked to the item was closed, and the item was not: its session goes on.
    SessionKeptOpen = "session.kept_open", Info,
    { work_item: Ref, reason: AutoclosedReason, closed_ref: Option<String>, delivery_id: Option<String> }
    /// A pull request belongs to the item from now on: what happens to it is told to the item's session.
    SessionPrLinked = "session.pr_linked", Info, { work_item: Ref, pull_request: Ref }
    /// Somebody said that it belongs to the item no more.
    SessionPrUnlinked = "session.pr_unlinked", Info, { work_item: Ref, pull_request: Ref, actor: String }
    /// The item ended, and its local resources were not given back, because nobody authorised ended it.
    CleanupDeferred = "cleanup.deferred", Info,
    { work_item: Ref, reason: CleanupDeferredReason, actor: Option<String>, closed_as: AutoclosedReason,
      delivery_id: Option<String> }
    /// The tmux session was left for reading.
    SessionRetained = "session.retained", Info,
    { work_item: Ref, endpoint: Option<Ref>, tmux_target: String }
    /// The harness was ended, or (`ok` false) could not be.
    SessionHarnessTerminated = "session.harness_terminated", Info | Warning by ok: warns_unless,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, tmux_target: String, ok: bool, error: Option<String> }

    /// `sessions restart`, one for each session; the outcome decides the level. `stale`: variables of which the
    /// process still holds another value.
    SessionRestarted = "session.restarted", Info | Warning | Error by outcome: RestartOutcome::level,
    { work_item: Ref, endpoint: Option<Ref>, tmux_target: Option<String>, outcome: RestartOutcome,
      reason: Option<RestartSkipped>, stale: Option<Vec<String>>, error: Option<String> }

    section "Workspaces and saved work"

    /// The session has a place to work in.
    WorkspacePrepared = "workspace.prepared", Info,
    { work_item: Ref, endpoint: Option<Ref>, strategy: Strategy, checkout: String, branch: Option<String> }
    /// No place to work in could be made.
    WorkspaceFailed = "workspace.failed", Error,
    { work_item: Ref, endpoint: Option<Ref>, strategy: Strategy, error: String, will_retry: bool }
    /// A checkout was not removed.
    WorkspaceKept = "workspace.kept", Info | Warning by reason: KeptReason::level,
    { work_item: Ref, endpoint: Option<Ref>, checkout: String, reason: KeptReason }
    /// A checkout was removed.
    WorkspaceCleaned = "workspace.cleaned", Info,
    { work_item: Ref, endpoint: Option<Ref>, strategy: Strategy, checkout: String }
    /// The harness was told that it may work there.
    WorkspaceTrusted = "workspace.trusted", Info,
    { work_item: Ref, harness: String, cwd: String, applied: Vec<String> }
    /// The harness could not be told that it may work there; it may ask.
    WorkspaceTrustFailed = "workspace.trust_failed", Warning,
    { work_item: Ref, harness: String, cwd: String, error: String }
    /// Unpushed and uncommitted work is in a bundle.
    WorkSaved = "work.saved", Info,
    { work_item: Ref, endpoint: Option<Ref>, bundle: String, commits: u64, files: u64, bytes: u64, why: SavedWhy }
    /// There was nothing to save.
    WorkClean = "work.clean", Debug,
    { work_item: Ref, endpoint: Option<Ref>, checkout: String }
    /// Work could not be saved, so its checkout stays.
    WorkSaveFailed = "work.save_failed", Error,
    { work_item: Ref, endpoint: Option<Ref>, checkout: String, error: String }
    /// A checkout was removed without saving, as asked.
    WorkUnsaved = "work.unsaved", Warning,
    { work_item: Ref, endpoint: Option<Ref>, checkout: String, actor: String }

    section "Limits, environment, hooks, tmux"

    /// Stopped until it is released; without `work_item` the whole machine. `told`: the ticket says so.
    LimitParked = "limit.parked", Warning,
    { work_item: Option<Ref>, reason: LimitReason, limit: u64, value: u64, told: bool }
    /// Goes on after a limit.
    LimitReleased = "limit.released", Info,
    { work_item: Option<Ref>, reason: LimitReason, via: ReleasedVia, actor: Option<String> }
    /// An idle agent's process was ended; its conversation is kept and taken up at the next event.
    LimitIdleStopped = "limit.idle_stopped", Info,
    { work_item: Ref, idle_hours: u64 }
    /// The agents' environment file is missing, unreadable or malformed; line numbers only.
    EnvUnusable = "env.unusable", Warning,
    { path: String, error: String, lines: Option<Vec<u64>> }
    /// Running sessions hold other values than the agents' environment file; once for each change of the set.
    EnvDrift = "env.drift", Warning,
    { count: u64, work_items: Vec<Ref>, names: Vec<String> }
    /// No session is stale any more; `count` of them run.
    EnvFresh = "env.fresh", Info,
    { count: u64 }
    /// The harness will report through these hooks.
    HookInstalled = "hook.installed", Debug,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, hooks: Vec<String> }
    /// No hook reported in time.
    HookSilent = "hook.silent", Warning,
    { work_item: Ref, endpoint: Option<Ref>, harness: String, waited_ms: u64, next: SilentNext }
    /// Lines of a hook file were skipped.
    HookMalformed = "hook.malformed", Warning,
    { file: String, count: u64, error: String }
    /// A tmux server was started.
    TmuxServerStarted = "tmux.server_started", Info,
    { socket: String, version: String }
    /// The server is not there though `count` records are live.
    TmuxServerGone = "tmux.server_gone", Warning,
    { socket: String, count: u64 }
    /// tmux gives no answer; once an outage.
    TmuxUnanswered = "tmux.unanswered", Warning,
    { operation: String, waited_ms: u64 }
    /// tmux answers again.
    TmuxAnswered = "tmux.answered", Info,
    { waited_ms: u64 }

    section "Daemon, services, configuration, state, log"

    /// The daemon runs.
    DaemonStarted = "daemon.started", Info,
    { version: String, root: String, services: Vec<String>, config: Option<String> }
    /// The last run did not end in order; the counts tell what it left.
    DaemonRecovered = "daemon.recovered", Warning,
    { previous_pid: Option<u32>, starting: u64, sending: u64, queued: u64 }
    /// Another process holds the daemon's lock.
    DaemonBlocked = "daemon.blocked", Warning,
    { path: String, holder: Option<u32> }
    /// The daemon begins to end.
    DaemonStopping = "daemon.stopping", Info,
    { reason: StopReason }
    /// Last line of a run that ended in order; what is queued stays queued.
    DaemonStopped = "daemon.stopped", Info,
    { reason: StopReason, uptime_s: u64, queued: u64 }
    /// The receiver listens.
    ServerStarted = "server.started", Info,
    { host: String, port: u16, path: String, routing: bool, verifying_signatures: bool }
    /// The receiver no longer listens.
    ServerStopped = "server.stopped", Info,
    {}
    /// Another process holds the receiver's lock.
    ServerBlocked = "server.blocked", Warning,
    { path: String, holder: Option<u32> }
    /// The poller asks its sources from now on.
    PollerStarted = "poller.started", Info,
    { interval_seconds: u32, sources: Vec<String> }
    /// The poller has ended.
    PollerStopped = "poller.stopped", Info,
    {}
    /// Another process holds the poller's lock.
    PollerBlocked = "poller.blocked", Warning,
    { path: String, holder: Option<u32> }
    /// A task of the daemon died; its lock is released.
    ServiceFailed = "service.failed", Error,
    { service: ServiceName, error: String }
    /// `the-loop restart` came to its end.
    RestartCompleted = "restart.completed", Info | Warning by ok: warns_unless,
    { ok: bool, services: Vec<String> }
    /// A changed configuration is in force. Key paths, never values.
    ConfigReloaded = "config.reloaded", Info,
    { path: String, changed: Vec<String>, restart_required: Vec<String> }
    /// A changed configuration does not load; the one before stays in force.
    ConfigRejected = "config.rejected", Error,
    { path: String, line: Option<u64>, error: String }
    /// A file of state cannot be read as what it should be; it stays as it is.
    StateCorrupt = "state.corrupt", Error,
    { file: String, kind: StateKind, error: String }
    /// A file of a later version: read, not written.
    StateNewer = "state.newer", Warning,
    { file: String, schema: u64, known: u64 }
    /// Stale temporary files were removed.
    StateSwept = "state.swept", Debug,
    { count: u64 }
    /// First line of a new file: `base` bytes are in all the segments before it.
    LogRotated = "log.rotated", Info,
    { previous: String, base: u64, bytes: u64 }
    /// An old segment goes, as `eventLog.keepSegments` asks.
    LogRemoved = "log.removed", Info,
    { file: String, bytes: u64 }
    /// Lines that could not be written since then.
    LogLost = "log.lost", Error,
    { count: u64, since: Timestamp, error: String }

    section "Poller"

    /// A cycle over all sources has ended; told at info when it moved something.
    PollCycle = "poll.cycle", Debug | Info by moved: informs_when,
    { items_seen: u64, spawns: u64, comments_forwarded: u64, closures: u64, failures: u64, errors: u64,
      interrupted: bool, requests: u64, not_modified: u64, duration_ms: u64, moved: bool }
    /// What was missed while the receiver was down was looked for.
    PollBackfill = "poll.backfill", Info,
    { host: String, since: Timestamp, count: u64 }
    /// An item was seen for the first time; what had been said on it counts as known.
    PollBaselined = "poll.baselined", Info,
    { work_item: Ref, comments: u64, commands: u64 }
    /// An item with a session, or a pull request of one, has ended.
    PollClosureDetected = "poll.closure_detected", Info,
    { work_item: Ref, state: ClosureState, kind: ClosureKind, actor: Option<String> }
    /// A repository could not be asked; this cycle goes on without it.
    PollProviderError = "poll.provider_error", Error,
    { host: String, repo: Option<String>, reason: Option<ProviderErrorReason>, error: String }
    /// Something about an item went wrong; this cycle goes on without it.
    PollItemError = "poll.item_error", Warning,
    { work_item: Ref, error: String }
    /// Nobody authorised stands behind a session for this item; told once an item and run.
    PollUnauthorized = "poll.unauthorized", Warning,
    { work_item: Ref, actor: String }
    /// Words, or a result, that a cycle found were put into the inbox.
    PollCommentForwarded = "poll.comment_forwarded", Info,
    { work_item: Ref, comment_id: String, delivery_id: String, attempts: u32 }

    section "Embedded tracker"

    /// A ticket of the embedded tracker changed.
    TicketChanged = "ticket.changed", Info,
    { work_item: Ref, change: TicketChange, actor: String }
}

impl LogEvent {
    /// Must this line be on the platter before the call returns (EV-17)?
    pub fn syncs_at_once(&self) -> bool {
        let name = self.name();
        self.level() == Level::Error
            || name == "session.closed"
            || name == "delivery.uncertain"
            || ["control.", "work.", "limit."]
                .iter()
                .any(|family| name.starts_with(family))
    }
}
