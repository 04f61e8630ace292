//! One thing that came in, in words that no ingress owns, and the states it goes through.

use serde::{Deserialize, Serialize};

use crate::answers::Answers;
use crate::ci::CheckResult;
use crate::ids::WorkItemRef;
use crate::time::Timestamp;

/// The way in (events page, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ingress {
    /// The webhook receiver.
    Webhook,
    /// The poller.
    Poll,
    /// The scan for what was missed while the receiver was down.
    Backfill,
    /// The embedded tracker.
    Tracker,
    /// A `sessions` verb in a shell.
    Cli,
    /// The HTTP API or the dashboard.
    Api,
    /// A chat channel.
    Channel,
}

impl Ingress {
    /// The word in the inbox and the event log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Poll => "poll",
            Self::Backfill => "backfill",
            Self::Tracker => "tracker",
            Self::Cli => "cli",
            Self::Api => "api",
            Self::Channel => "channel",
        }
    }
    /// Reads the inbox's word.
    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Webhook,
            Self::Poll,
            Self::Backfill,
            Self::Tracker,
            Self::Cli,
            Self::Api,
            Self::Channel,
        ]
        .into_iter()
        .find(|i| i.as_str() == word)
    }
}

/// Who did something, as the ingress could tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// Login, or the operating-system user for the embedded tracker and verbs.
    pub login: String,
    /// The provider's numeric id, where it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The provider calls it a bot, or the login ends in `[bot]`.
    #[serde(default)]
    pub bot: bool,
}

/// What the payload said about the ticket. Absent parts were not in the payload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemFacts {
    /// The provider's opaque id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// Title as it came: untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Is the ticket closed?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<bool>,
    /// Label names, `None` when the payload does not show them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// Who opened the ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Actor>,
    /// Page in a browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html_url: Option<String>,
    /// It is a pull request.
    #[serde(default)]
    pub is_pull_request: bool,
}

/// What is known of a pull request beyond what every ticket has (IN-14, IN-15).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullFacts {
    /// Name of its branch as it came: untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_ref: Option<String>,
    /// Newest commit of its branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_sha: Option<String>,
    /// Its branch is in the repository that it asks to be merged into.
    #[serde(default)]
    pub is_own_branch: bool,
    /// Does its author call it unfinished?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<bool>,
    /// Was it merged?
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<bool>,
    /// The items that its body closes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closes: Vec<WorkItemRef>,
    /// The items that the tracker itself links it to, where it was asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<WorkItemRef>,
    /// Only its body was shown, as by a comment in its conversation: neither branch nor commits are known
    /// (IN-18).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
}

/// What words are about: a place in the changed files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// File as it came: untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Line of the file; of its old version where the new one has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The changed lines around it as they came: untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<String>,
    /// Page in a browser, where the words themselves have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html_url: Option<String>,
}

/// A person's words: the body of a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The comment's opaque id (`node_id`, or the entry id of the embedded tracker).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment_id: Option<String>,
    /// The body as it came: untrusted text.
    pub body: String,
    /// Who wrote it; guard 5 compares with the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Actor>,
    /// Page in a browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html_url: Option<String>,
    /// When it was written, by the provider's clock (IN-11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// What a review decides, in the provider's word; a comment decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// They were changed after they were said, by whomever: only the poller sees that. No command is obeyed in
    /// them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// How a work item ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// Closed.
    Closed,
    /// Deleted from the tracker.
    Deleted,
    /// Moved to another repository.
    Transferred,
}

/// What a delivery does (IN-7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Effect {
    /// A person's words: a command, else delivered; may start a session.
    Text(Text),
    /// The question "should this item have a session?"; never pasted.
    Presence,
    /// A pull request came up: told to a session that lives, else the question whether there should be one.
    Opened,
    /// Told to a live session; never starts one. `changed` names changed fields only.
    Notice {
        /// Names of the fields that changed.
        #[serde(default)]
        changed: Vec<String>,
    },
    /// A check has ended: told to the sessions whose commits were checked; starts none.
    Check(CheckResult),
    /// The item ended.
    Close {
        /// In which way.
        ending: Ending,
        /// When, by the provider's clock.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// Where a transferred item went.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moved_to: Option<String>,
    },
    /// A start asked for by a verb; tried once (DI-4).
    Start {
        /// Harness asked for, else the configured one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        harness: Option<String>,
    },
}

impl Effect {
    /// Text, presence and start may begin a session; notices and closes never do.
    pub fn may_spawn(&self) -> bool {
        match self {
            Self::Text(_) | Self::Presence | Self::Opened | Self::Start { .. } => true,
            Self::Notice { .. } | Self::Check(_) | Self::Close { .. } => false,
        }
    }
    /// Is there something to tell an agent that lives?
    pub fn is_prompt(&self) -> bool {
        match self {
            Self::Text(_) | Self::Notice { .. } | Self::Check(_) | Self::Opened => true,
            Self::Presence | Self::Start { .. } | Self::Close { .. } => false,
        }
    }
}

/// One accepted thing. It is stored in the inbox as JSON (`body`) and read back by later versions, so
/// fields are only added, with defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// What people see: GitHub's id, `cli-start-…`, a tracker id. The transport alias (DI-2).
    pub delivery_id: String,
    /// `<provider>/<host>/<kind>/<id>/<action>` (IN-10). A key with a `-` for a missing field is
    /// neither looked up nor entered (IN-12).
    pub content_key: String,
    /// Numeric alias of a comment, `<provider>/<host>/comment/#<id>/created`, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numeric_key: Option<String>,
    /// The way in.
    pub ingress: Ingress,
    /// The work item it names.
    pub item: WorkItemRef,
    /// Event name as the provider calls it (`issues`, `issue_comment`; the embedded tracker uses the
    /// same names; `start` for a verb's).
    pub event: String,
    /// Action name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Who sent it: the actor that guards judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
    /// When we accepted it.
    pub received_at: Timestamp,
    /// What the payload said of the ticket.
    #[serde(default)]
    pub facts: ItemFacts,
    /// What it said of the pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<PullFacts>,
    /// The place in the changed files that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// What the tracker answered when it was asked for more; `None` as long as nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<Answers>>,
    /// What it does.
    pub effect: Effect,
    /// The tracker entries it carries, applied to the ticket file again after a crash (ST-66).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entries: Vec<serde_json::Value>,
}

/// Event of the notice to an agent whose environment was renewed (SE-59).
const ENVIRONMENT_EVENT: &str = "environment";
/// Its action.
const RENEWED: &str = "renewed";

impl Delivery {
    /// Tells an agent that was cut off in its work that its environment was renewed and that it is to go on
    /// (SE-59). `unique` makes it a delivery of its own; `actor` is who had it relaunched.
    pub fn environment_renewed(
        item: &WorkItemRef,
        unique: &str,
        actor: &str,
        received_at: Timestamp,
    ) -> Self {
        Self {
            delivery_id: format!("cli-{ENVIRONMENT_EVENT}-{unique}"),
            content_key: format!("cli//{ENVIRONMENT_EVENT}/{unique}/{RENEWED}"),
            numeric_key: None,
            ingress: Ingress::Cli,
            item: item.clone(),
            event: ENVIRONMENT_EVENT.to_owned(),
            action: Some(RENEWED.to_owned()),
            actor: Some(Actor {
                login: actor.to_owned(),
                id: None,
                bot: false,
            }),
            received_at,
            facts: ItemFacts::default(),
            pull: None,
            place: None,
            asked: None,
            effect: Effect::Notice {
                changed: Vec::new(),
            },
            entries: Vec::new(),
        }
    }

    /// Is it such a notice, and not one about the ticket? Only a verb of ours makes one.
    pub fn tells_of_environment(&self) -> bool {
        self.ingress == Ingress::Cli && self.event == ENVIRONMENT_EVENT
    }

    /// All that is known of the pull request that it is about: what it shows itself, else what was answered,
    /// else the part that it shows.
    pub fn pull_facts(&self) -> Option<&PullFacts> {
        let shown = self.pull.as_ref();
        let answered = || {
            let answers = self.asked.as_ref()?;
            Some(&answers.pull(&self.item)?.facts)
        };
        shown
            .filter(|pull| !pull.is_partial)
            .or_else(answered)
            .or(shown)
    }

    /// Does it say that the branch of a pull request has new commits?
    pub fn brings_commits(&self) -> bool {
        self.event == "pull_request" && self.action.as_deref() == Some("synchronize")
    }

    /// A key that lacks a field is no identity (IN-12).
    pub fn content_key_is_whole(&self) -> bool {
        !self
            .content_key
            .split('/')
            .any(|part| part == "-" || part.ends_with("@-"))
    }

    /// Event and action as the prompt's first line names them (DI-25).
    pub fn what(&self) -> String {
        match (&self.effect, &self.action) {
            (Effect::Presence | Effect::Start { .. }, _) => "start".to_owned(),
            (
                Effect::Text(_)
                | Effect::Opened
                | Effect::Notice { .. }
                | Effect::Check(_)
                | Effect::Close { .. },
                Some(action),
            ) => format!("{} {action}", self.event),
            (
                Effect::Text(_)
                | Effect::Opened
                | Effect::Notice { .. }
                | Effect::Check(_)
                | Effect::Close { .. },
                None,
            ) => self.event.clone(),
        }
    }
}

/// State of a delivery or of one of its outcomes (DI-3). A delivery is `accepted` and then `routed`
/// (it has outcomes) or ended; the other states are an outcome's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// On disk; not judged yet.
    Accepted,
    /// Judged; its outcomes tell the rest.
    Routed,
    /// Waits its turn.
    Queued,
    /// The intent to send is on disk; whether anything was sent is not (ST-54).
    Sending,
    /// tmux took text and submit, or the launched process has it as argument.
    Pasted,
    /// The harness has it. End.
    Confirmed,
    /// Finished without a prompt. End.
    Settled,
    /// Refused or overtaken. End.
    Dropped,
    /// This try failed; goes back to `queued` at its retry time.
    Failed,
    /// Given up. End until an operator or a new version opens it again.
    Abandoned,
    /// A crash makes it unknowable whether the agent has it.
    Uncertain,
}

impl State {
    /// All states, in the order of life.
    pub const ALL: [Self; 11] = [
        Self::Accepted,
        Self::Routed,
        Self::Queued,
        Self::Sending,
        Self::Pasted,
        Self::Confirmed,
        Self::Settled,
        Self::Dropped,
        Self::Failed,
        Self::Abandoned,
        Self::Uncertain,
    ];

    /// The word in the inbox and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Routed => "routed",
            Self::Queued => "queued",
            Self::Sending => "sending",
            Self::Pasted => "pasted",
            Self::Confirmed => "confirmed",
            Self::Settled => "settled",
            Self::Dropped => "dropped",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
            Self::Uncertain => "uncertain",
        }
    }

    /// Reads the inbox's word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// Is it over with a delivery in this state, until somebody opens it again?
    pub fn is_end(self) -> bool {
        match self {
            Self::Confirmed | Self::Settled | Self::Dropped | Self::Abandoned => true,
            Self::Accepted
            | Self::Routed
            | Self::Queued
            | Self::Sending
            | Self::Pasted
            | Self::Failed
            | Self::Uncertain => false,
        }
    }

    /// May an outcome go from this state to `to`? Total; the only table of transitions.
    pub fn may_become(self, to: Self) -> bool {
        use State::{
            Abandoned, Accepted, Confirmed, Dropped, Failed, Pasted, Queued, Routed, Sending,
            Settled, Uncertain,
        };
        match self {
            Accepted => matches!(to, Routed | Settled | Dropped | Failed),
            Routed => matches!(to, Settled | Dropped),
            Queued => matches!(to, Sending | Settled | Dropped | Failed | Abandoned),
            Sending => {
                matches!(
                    to,
                    Pasted | Confirmed | Queued | Failed | Abandoned | Uncertain | Dropped
                )
            }
            Pasted => matches!(
                to,
                Confirmed | Queued | Uncertain | Dropped | Failed | Abandoned
            ),
            Failed => matches!(to, Queued | Abandoned | Dropped | Settled | Accepted),
            Uncertain => matches!(to, Confirmed | Queued | Dropped),
            Abandoned | Dropped => matches!(to, Queued | Dropped),
            Confirmed | Settled => false,
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
