//! The closed lists: sources, levels, reasons, outcomes and every other fixed word (EV-3).

use super::word::words;

words! {
    /// The component that made an event, whatever process it ran in (events page, section 1).
    Source {
        Daemon = "daemon", GhWebhook = "gh-webhook", Poll = "poll", Tracker = "tracker", Engine = "engine",
        Sessions = "sessions", Service = "service", Channels = "channels", Ask = "ask", Cli = "cli",
    } older { "diagnose" }
    /// How much an event asks of a person, least first.
    Level { Debug = "debug", Info = "info", Warning = "warning", Error = "error" }

    /// Why the receiver answered a request with 4xx or 503.
    WebhookRejectReason {
        Busy = "busy", Timeout = "timeout", TooLarge = "too-large", InvalidRequest = "invalid-request",
        InvalidSignature = "invalid-signature", InvalidPayload = "invalid-payload", Unavailable = "unavailable",
    }
    /// By which identity a delivery was known already.
    DuplicateBy { Content = "content", Numeric = "numeric", Transport = "transport" }
    /// Why a delivery has to wait.
    HeldReason {
        Draft = "draft", Typing = "typing", CopyMode = "copy-mode", Dialog = "dialog", NotReady = "not-ready",
        UsageLimit = "usage-limit", Login = "login", WaitingCapacity = "waiting-capacity",
        LowMemory = "low-memory", LowDisk = "low-disk", Parked = "parked", RecordCorrupt = "record-corrupt",
        RecordNewer = "record-newer", TmuxUnanswered = "tmux-unanswered",
    }
    /// What showed that the harness has the prompt.
    ConfirmedBy { Hook = "hook", Transcript = "transcript" }
    /// What follows a confirmation that did not come.
    UnconfirmedNext { Wait = "wait", SubmitAgain = "submit-again", Operator = "operator" }
    /// Why it is unknown whether a prompt was pasted.
    UncertainReason { NoOutcome = "no-outcome", TmuxUnanswered = "tmux-unanswered", NoEvidence = "no-evidence" }
    /// What follows an uncertainty.
    UncertainNext { Transcript = "transcript", Resend = "resend", Operator = "operator" }
    /// How an uncertainty ended.
    ResolvedOutcome { Sent = "sent", NotSent = "not-sent" }
    /// What ended an uncertainty.
    ResolvedBy { Hook = "hook", Transcript = "transcript", Operator = "operator" }
    /// Why a delivery was given up.
    AbandonedReason { AttemptsSpent = "attempts-spent", Unsendable = "unsendable" }
    /// What opened a delivery again.
    RetriedVia { Cli = "cli", Api = "api", Redelivery = "redelivery", Upgrade = "upgrade" }

    /// Why a delivery ended before it reached an item's queue.
    RoutingDropReason {
        DisabledEvent = "disabled-event", ActionIgnored = "action-ignored", UnknownHost = "unknown-host",
        NoWorkItem = "no-work-item", SelfAuthored = "self-authored", OwnAction = "own-action",
        EmptyReview = "empty-review", AuthorMismatch = "author-mismatch", NoActor = "no-actor",
        UnauthorizedActor = "unauthorized-actor", ConclusionIgnored = "conclusion-ignored",
        CoveredElsewhere = "covered-elsewhere", UnchangedSuccess = "unchanged-success",
        ForeignHead = "foreign-head", StaleHead = "stale-head",
    } older { "duplicate-delivery" }
    /// What named an item that is left out.
    LinkageVia { Branch = "branch", ClosingReference = "closing-reference", Keyword = "keyword" }
    /// Why an item that was named is left out.
    LinkageReason { NotFound = "not-found", UntrustedLink = "untrusted-link" }
    /// Why a delivery that reached its item ended without a prompt.
    DispatchDropReason {
        SpawnPolicy = "spawn-policy", AwaitingStart = "awaiting-start", NoSession = "no-session",
        AlreadyRunning = "already-running", SessionPaused = "session-paused", ItemParked = "item-parked",
        ItemClosed = "item-closed", AlreadyClosed = "already-closed", Reset = "reset",
        AlreadyProcessed = "already-processed", WorkItemNotFound = "work-item-not-found",
        NoWorkItem = "no-work-item", SessionVanished = "session-vanished", SessionOccupied = "session-occupied",
    } older { "duplicate-delivery" }
    /// How a dispatch ended well; only `confirmed` means that the agent has it (P3).
    SucceededState { Confirmed = "confirmed", Pasted = "pasted" }
    /// Why a dispatch that ended well is not confirmed.
    SucceededReason { NoConfirmation = "no-confirmation", ScreenSeen = "screen-seen" }
    /// What carried a prompt.
    DispatchVia { Tmux = "tmux" }
    /// What a reaction says.
    ReactionState { Started = "started", Completed = "completed", Error = "error" }

    /// What a comment of ours on a ticket is.
    CommentKind {
        Announcement = "announcement", Echo = "echo", Ambiguous = "ambiguous", GiveUp = "give-up",
        Parked = "parked", Waiting = "waiting",
    } older { "ask", "reply" }

    /// A command of an authorised person.
    CommandWord {
        Start = "start", Stop = "stop", Pause = "pause", Resume = "resume", Execute = "execute",
        Contribute = "contribute", Do = "do", Cleanup = "cleanup",
    }
    /// How a command came.
    ControlVia { Comment = "comment", Cli = "cli", Api = "api" }
    /// What a command did.
    ControlEffect {
        Spawned = "spawned", WaitingCapacity = "waiting-capacity", Resumed = "resumed", Running = "running",
        Released = "released", Paused = "paused", Stopped = "stopped", Noop = "noop", Failed = "failed",
        Cleaned = "cleaned", Partial = "partial", NothingToClean = "nothing-to-clean",
        HandedToGraph = "handed-to-graph",
    } older { "rejected" }
    /// Why an authorised person's command was not obeyed.
    ControlRejectReason {
        Edited = "edited", NoWorkItem = "no-work-item", ItemClosed = "item-closed", ItemParked = "item-parked",
        SpawnPolicy = "spawn-policy", NothingToResume = "nothing-to-resume", SelfControl = "self-control",
        RecordUnwritable = "record-unwritable",
    } older { "unauthorized-actor", "no-actor", "awaiting-start" }

    /// What hosts a session.
    Runner { Tmux = "tmux" }
    /// Where an agent is told to ask.
    Interaction { WorkItem = "work-item", Cli = "cli" }
    /// What was known of a session that was found alive.
    AdoptedWas { Starting = "starting", None = "none" }
    /// What an agent needs a person for.
    WaitingKind {
        Permission = "permission", Question = "question", Dialog = "dialog", UsageLimit = "usage-limit",
        Login = "login",
    }
    /// What tmux answered about a session whose harness is gone.
    ExitedState { Dead = "dead", Absent = "absent" }
    /// What closed a session.
    ClosedVia {
        Cli = "cli", Api = "api", Comment = "comment", CloseEvent = "close-event", Reset = "reset",
        Cleanup = "cleanup", Limit = "limit",
    }
    /// How an item ended.
    AutoclosedReason {
        IssueClosed = "issue-closed", PrMerged = "pr-merged", PrClosed = "pr-closed", Deleted = "deleted",
        Transferred = "transferred",
    }

    /// What a relaunch with a new environment came to.
    RestartOutcome {
        Restarted = "restarted", Skipped = "skipped", Failed = "failed", Stale = "stale",
        Unverified = "unverified",
    }
    /// Why a session was not relaunched and goes on as it is.
    RestartSkipped {
        NotRegistered = "not-registered", NotLive = "not-live", NoConversation = "no-conversation",
        NotResumable = "not-resumable", Draft = "draft", Typing = "typing", Working = "working",
        TmuxUnanswered = "tmux-unanswered",
    }

    /// Why an ended item's local resources stay.
    CleanupDeferredReason { NoActor = "no-actor", UnauthorizedActor = "unauthorized-actor" }

    /// How a checkout is made.
    Strategy { Worktree = "worktree", Clone = "clone", None = "none" }
    /// Why a checkout was not removed.
    KeptReason { Configured = "configured", SaveFailed = "save-failed", InUse = "in-use", NotOurs = "not-ours" }
    /// What was about to remove a checkout when its work was saved (state page).
    SavedWhy { Close = "close", Cleanup = "cleanup", Reset = "reset", Stop = "stop", Replace = "replace" }

    /// Which limit stopped an item or the machine.
    LimitReason {
        DeliveriesPerHour = "deliveries-per-hour", DeliveriesPerDay = "deliveries-per-day",
        TokensPerItem = "tokens-per-item", TokensPerDay = "tokens-per-day",
        SelfConversation = "self-conversation",
    }
    /// What released a limit.
    ReleasedVia { Cli = "cli", Api = "api", Comment = "comment", NewDay = "new-day", Config = "config" }
    /// Where a confirmation is looked for when no hook reports; the screen is only a hint.
    SilentNext { Transcript = "transcript", Screen = "screen" }

    /// Why the daemon ends.
    StopReason { Signal = "signal", Command = "command", Restart = "restart", Error = "error" }
    /// A task of the daemon.
    ServiceName {
        Api = "api", GhWebhook = "gh-webhook", Poller = "poller", Engine = "engine", Channels = "channels",
    }
    /// What it means for us that a host's calls come to an end.
    QuotaEffect { None = "none", PollingPaused = "polling-paused" }
    /// How the poller found an item to have ended.
    ClosureState { Closed = "closed", Merged = "merged", Deleted = "deleted", Transferred = "transferred" }
    /// What ended.
    ClosureKind { Issue = "issue", PullRequest = "pull-request" }
    /// Why a repository cannot be asked, where that is a rule of ours.
    ProviderErrorReason { SourceTooLarge = "source-too-large" }
    /// What a file of state is.
    StateKind {
        Session = "session", Portable = "portable", Ticket = "ticket", Saved = "saved", Status = "status",
        Hook = "hook",
    }
    /// What happened to a ticket of the embedded tracker.
    TicketChange {
        Created = "created", Commented = "commented", Edited = "edited", Labeled = "labeled",
        Unlabeled = "unlabeled", Closed = "closed", Reopened = "reopened",
    }
}

impl WebhookRejectReason {
    /// A payload we cannot read behind a good signature, and an inbox that refuses, need a person.
    pub fn level(self) -> Level {
        match self {
            Self::Busy
            | Self::Timeout
            | Self::TooLarge
            | Self::InvalidRequest
            | Self::InvalidSignature => Level::Warning,
            Self::InvalidPayload | Self::Unavailable => Level::Error,
        }
    }
}

impl RoutingDropReason {
    /// Refused people and hosts are worth a look; what never concerned us is not.
    pub fn level(self) -> Level {
        match self {
            Self::UnknownHost | Self::AuthorMismatch | Self::NoActor | Self::UnauthorizedActor => {
                Level::Warning
            }
            Self::ForeignHead | Self::StaleHead => Level::Info,
            Self::DisabledEvent
            | Self::ActionIgnored
            | Self::NoWorkItem
            | Self::SelfAuthored
            | Self::OwnAction
            | Self::EmptyReview
            | Self::ConclusionIgnored
            | Self::CoveredElsewhere
            | Self::UnchangedSuccess => Level::Debug,
        }
    }
}

impl DispatchDropReason {
    /// Level of the line with this reason.
    pub fn level(self) -> Level {
        match self {
            Self::SpawnPolicy
            | Self::AwaitingStart
            | Self::NoSession
            | Self::SessionPaused
            | Self::ItemParked
            | Self::ItemClosed
            | Self::Reset
            | Self::NoWorkItem => Level::Info,
            Self::AlreadyRunning | Self::AlreadyClosed | Self::AlreadyProcessed => Level::Debug,
            Self::WorkItemNotFound | Self::SessionVanished => Level::Warning,
            Self::SessionOccupied => Level::Error,
        }
    }
}

impl RestartOutcome {
    /// An agent that was lost, and one that still holds old values, need a person.
    pub fn level(self) -> Level {
        match self {
            Self::Restarted | Self::Skipped | Self::Unverified => Level::Info,
            Self::Stale => Level::Warning,
            Self::Failed => Level::Error,
        }
    }
}

impl KeptReason {
    /// A checkout that stays because its work could not be saved needs a look.
    pub fn level(self) -> Level {
        match self {
            Self::SaveFailed => Level::Warning,
            Self::Configured | Self::InUse | Self::NotOurs => Level::Info,
        }
    }
}
