//! Names that are not keys of this release though somebody may well have written them: keys that are
//! gone (CF-37) and keys that a later release reads.

/// A key that is gone: the rest of the sentence "is no longer a key: …", and what to do.
pub struct Retired {
    /// Its path; `*` stands for one name.
    pub path: &'static str,
    /// What became of it.
    pub became: &'static str,
    /// What to do.
    pub hint: &'static str,
}

const fn gone(path: &'static str, became: &'static str) -> Retired {
    Retired {
        path,
        became,
        hint: "remove the line",
    }
}

/// Every key that is gone.
pub const RETIRED: &[Retired] = &[
    gone("polling.stateFile", "the ledger lives under state.root"),
    Retired {
        path: "webhooks.ghWebhook.routing",
        became: "it is the section routing at the top now",
        hint: "move what is below it to routing",
    },
    gone("integrations.slack", "Slack is not read from there"),
    gone("integrations.jira", "it is not read"),
    gone("collaborators", "it is not read"),
    gone("routing.runner", "tmux is the only runner"),
    gone(
        "routing.dedupCacheSize",
        "accepted deliveries are on disk, see state.inboxRetentionDays",
    ),
    gone("routing.webTerminal", "there is no web terminal"),
    gone(
        "routing.harnessPlugins",
        "plugins are not installed by this release",
    ),
    gone("service.hostIngresses", "one daemon hosts everything"),
    gone("service.autoStart", "no command needs it"),
    gone("service.cors", "it is not read"),
    gone("channels.slack.appTokenEnv", "it is not read"),
    gone("standingSessions", "it is not in this release"),
    gone("selfDiagnosis", "it is not in this release"),
];

/// The row of a key that is gone; `ghBinary` is so in every section.
pub fn retired(path: &str, name: &str) -> Option<(&'static str, &'static str)> {
    if name == "ghBinary" {
        return Some(("it is integrations.github.cli.binary now", "move it there"));
    }
    let row = RETIRED.iter().find(|row| row.path == path)?;
    Some((row.became, row.hint))
}

/// What a path is to a later release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    /// A key.
    Key,
    /// A section with keys of a later release in it.
    Section,
}

/// Keys of later releases; `*` stands for one name of the operator's own.
pub const LATER: &[&str] = &[
    "routing.graph.enabled",
    "routing.graph.repoHooks",
    "routing.graph.specDir",
    "routing.tmux.sessionPerPr",
    "integrations.github.hosts.*.caFile",
    "service.enabled",
    "service.host",
    "service.port",
    "service.exposed",
    "service.behindProxy",
    "service.tls.certFile",
    "service.tls.keyFile",
    "service.allowedHosts",
    "service.allowedOrigins",
    "service.mcp.enabled",
    "service.mcp.allowActions",
    "service.stream.keepAliveSeconds",
    "service.stream.maxSubscribers",
    "notifications.enabled",
    "notifications.events",
    "notifications.webhook.url",
    "notifications.webhook.urlFile",
    "notifications.webhook.format",
    "notifications.webhook.secretFile",
    "notifications.command",
    "channels.slack.enabled",
    "channels.slack.botTokenEnv",
    "channels.slack.channel",
    "channels.slack.events",
    "channels.slack.verbosity",
    "channels.slack.authorizedUsers",
    "channels.slack.read.mode",
    "channels.slack.read.intervalSeconds",
];

/// Is this the path, by its names, of a key of a later release, or of a section of one?
pub fn later(parts: &[String]) -> Option<Later> {
    let mut found = None;
    for row in LATER {
        let mut names = row.split('.');
        let same = parts
            .iter()
            .all(|part| names.next().is_some_and(|name| name == "*" || name == part));
        if same {
            match names.next() {
                None => return Some(Later::Key),
                Some(_) => found = Some(Later::Section),
            }
        }
    }
    found
}
