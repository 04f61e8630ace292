//! The typed settings, one struct a section. A field is a key: `confirm_timeout_seconds` of [`Tmux`]
//! is `routing.tmux.confirmTimeoutSeconds`.

mod harnesses;
mod ingress;
mod routing;
#[allow(
    clippy::zero_sized_map_values,
    reason = "a host has no keys in this release; those of a later one have their place already"
)]
mod top;

pub use harnesses::{Harness, HarnessDialog, HarnessSignals, SessionIdBy};
pub(crate) use ingress::default_events;
pub use ingress::{GhWebhook, PollMonitor, PollProvider, PollSource, Polling, Webhooks};
pub use routing::{
    AcceptBypass, Announce, Attention, CloneProtocol, Control, HarnessTrust, InboxSettings,
    Interaction, InteractionMode, Keywords, Limits, OnUncertain, Reactions, Routing,
    SpawnOnUnmatched, Strategy, Tmux, TrustScope, Workspace,
};
pub use top::{
    Env, EventLog, GithubApp, GithubHost, GithubIntegration, Integrations, LocalTracker, State,
    Tracker,
};
