//! The rows of `start`, `stop` and `status` (SE-18).

use serde::{Deserialize, Serialize};

/// How a service stands, or what was done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOutcome {
    /// It came up now.
    Started,
    /// Its lock was held already.
    AlreadyRunning,
    /// It is switched off.
    Disabled,
    /// Something it needs is not configured.
    Misconfigured,
    /// It was tried in vain.
    Failed,
    /// It was ended.
    Stopped,
    /// It does not run.
    NotRunning,
    /// It runs.
    Running,
    /// It holds its lock and does not answer.
    NotAnswering,
    /// It runs, and does not do its work.
    Stalled,
}

impl RowOutcome {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::AlreadyRunning => "already-running",
            Self::Disabled => "disabled",
            Self::Misconfigured => "misconfigured",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::NotRunning => "not-running",
            Self::Running => "running",
            Self::NotAnswering => "not-answering",
            Self::Stalled => "stalled",
        }
    }

    /// Is that well for a `start` or a `stop`? For a `status` only `running` is.
    pub fn ok(self) -> bool {
        match self {
            Self::Started
            | Self::AlreadyRunning
            | Self::Disabled
            | Self::Stopped
            | Self::NotRunning
            | Self::Running => true,
            Self::Misconfigured | Self::Failed | Self::NotAnswering | Self::Stalled => false,
        }
    }
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRow {
    /// `service`, `gh-webhook` or `poller`.
    pub name: String,
    /// Is it to run?
    pub enabled: bool,
    /// How it stands.
    pub outcome: RowOutcome,
    /// Does it run?
    pub running: bool,
    /// Its process.
    pub pid: Option<u32>,
    /// The rest, for people.
    pub detail: String,
}

/// All rows of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// In order: service, gh-webhook, poller.
    pub services: Vec<ServiceRow>,
    /// Every one is well.
    pub ok: bool,
}

impl Rows {
    /// Of these.
    pub fn new(services: Vec<ServiceRow>) -> Self {
        let ok = services.iter().all(|row| row.outcome.ok());
        Self { services, ok }
    }
}

impl ServiceRow {
    /// The text: name padded to 13, outcome to 16, enabled to 12, detail.
    pub fn text(&self) -> String {
        let enabled = if self.enabled {
            "[enabled]"
        } else {
            "[disabled]"
        };
        let line = format!(
            "{:<13}{:<16}{:<12}{}",
            self.name,
            self.outcome.as_str(),
            enabled,
            the_loop_core::redact::visible(&self.detail)
        );
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se18_a_row_is_padded() {
        let row = ServiceRow {
            name: "gh-webhook".to_owned(),
            enabled: false,
            outcome: RowOutcome::Disabled,
            running: false,
            pid: None,
            detail: "webhooks.ghWebhook.enabled is false".to_owned(),
        };
        assert_eq!(
            row.text(),
            "gh-webhook   disabled        [disabled]  webhooks.ghWebhook.enabled is false"
        );
        assert!(Rows::new(vec![row]).ok);
    }
}
