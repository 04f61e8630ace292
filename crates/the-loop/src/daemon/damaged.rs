//! A daemon whose inbox is damaged (ST-61): nothing is accepted and nothing is worked, but it is there
//! to be asked, and says what to do.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use serde_json::json;
use the_loop_core::config::Settings;
use the_loop_core::event::{LogEvent, Source, StopReason};
use the_loop_core::time::Timestamp;
use tokio_util::sync::CancellationToken;

use super::socket::{self, Answers};
use super::{Message, NotStarted, signals, tell_supervisor};
use crate::ops::error::OpError;
use crate::ops::rows::{RowOutcome, Rows, ServiceRow};
use crate::poll::why_disabled;
use crate::store::eventlog::EventLog;
use crate::store::layout::Layout;
use crate::world::World;

/// Between two syncs of the log.
const SYNC_EVERY: Duration = Duration::from_millis(500);

/// What an operator has to do.
const REMEDY: &str = "the-loop stop, move local/inbox.db* of the state root aside, the-loop start";

/// A daemon without an inbox.
pub(super) struct Damaged<'a> {
    pub world: &'a World,
    pub layout: &'a Layout,
    pub settings: &'a Settings,
    pub log: &'a EventLog,
    /// What is wrong with the inbox.
    pub error: String,
}

impl Damaged<'_> {
    /// Stays until it is asked to end.
    pub(super) fn run(self, ready: &mut dyn FnMut(&Rows)) -> Result<(), NotStarted> {
        let since = self.world.clock.now();
        let (send, receive) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(|e| OpError::failed("cannot start the daemon's threads", &e))?;
        let ending = CancellationToken::new();
        runtime.spawn(signals(send.clone()));
        let within = runtime.enter();
        let answers = self.answers(since);
        let served = socket::serve(self.world, self.layout, answers, send, ending.clone());
        drop(within);
        if let Err(e) = served {
            tracing::warn!("no socket for commands: {e}");
        }
        let emit = |event| self.log.emit(Source::Daemon, event);
        emit(LogEvent::DaemonStarted {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            root: self.layout.root().to_string(),
            services: Vec::new(),
            config: None,
        });
        tracing::error!(
            "the inbox is damaged and nothing is accepted: {}",
            self.error
        );
        ready(&self.rows());
        tell_supervisor(self.world, "READY=1");
        let reason = loop {
            match receive.recv_timeout(SYNC_EVERY) {
                Ok(Message::Stop(reason)) => break reason,
                // There is nothing that a changed configuration could be applied to.
                Ok(Message::Reload) => {}
                Err(RecvTimeoutError::Timeout) => self.log.tick(),
                Err(RecvTimeoutError::Disconnected) => break StopReason::Error,
            }
        };
        emit(LogEvent::DaemonStopping { reason });
        tell_supervisor(self.world, "STOPPING=1");
        ending.cancel();
        runtime.shutdown_timeout(Duration::from_millis(200));
        let _ = self.world.disk.remove(&self.layout.socket());
        emit(LogEvent::DaemonStopped {
            reason,
            uptime_s: self.world.clock.now().since(since).as_secs(),
            queued: 0,
        });
        self.log.sync();
        Ok(())
    }

    fn answers(&self, since: Timestamp) -> Answers {
        let (receiver, poller) = (self.receiver(), self.poller());
        let status = json!({
            "pid": self.world.pid,
            "version": env!("CARGO_PKG_VERSION"),
            "since": since,
            "restartNeeded": [],
            "problem": null,
            "loadedAt": null,
            "inboxUnavailableSince": null,
            "inboxDamaged": format!("{}; {REMEDY}", self.error),
            "logLinesLost": self.log.lost(),
            "ghWebhook": {
                "name": receiver.name,
                "enabled": receiver.enabled,
                "running": false,
                "outcome": receiver.outcome,
                "pid": null,
                "reason": receiver.detail,
                "since": null,
                "bind": null,
                "path": null,
                "lastDeliveryAt": null,
            },
            "poller": {
                "name": poller.name,
                "enabled": poller.enabled,
                "running": false,
                "outcome": poller.outcome,
                "pid": null,
                "reason": poller.detail,
                "since": null,
            },
        });
        Answers {
            status: Arc::new(move || status.clone()),
            poke: Arc::new(|| {}),
        }
    }

    fn receiver(&self) -> ServiceRow {
        let enabled = self.settings.webhooks.gh_webhook.enabled;
        let (outcome, detail) = if enabled {
            let why = "the inbox is damaged: nothing could be accepted durably";
            (RowOutcome::Failed, why.to_owned())
        } else {
            (RowOutcome::Disabled, super::services::disabled())
        };
        ServiceRow {
            name: "gh-webhook".to_owned(),
            enabled,
            outcome,
            running: false,
            pid: None,
            detail,
        }
    }

    fn poller(&self) -> ServiceRow {
        let disabled = why_disabled(self.settings);
        let why = "the inbox is damaged: nothing could be accepted durably";
        let outcome = if disabled.is_some() {
            RowOutcome::Disabled
        } else {
            RowOutcome::Failed
        };
        ServiceRow {
            name: "poller".to_owned(),
            enabled: disabled.is_none(),
            outcome,
            running: false,
            pid: None,
            detail: disabled.unwrap_or_else(|| why.to_owned()),
        }
    }

    fn rows(&self) -> Rows {
        let pid = self.world.pid;
        let service = ServiceRow {
            name: "service".to_owned(),
            enabled: true,
            outcome: RowOutcome::Started,
            running: true,
            pid: Some(pid),
            detail: format!("pid {pid}, without its inbox: {}; {REMEDY}", self.error),
        };
        // It is up, and it is not well.
        Rows {
            ok: false,
            ..Rows::new(vec![service, self.receiver(), self.poller()])
        }
    }
}
