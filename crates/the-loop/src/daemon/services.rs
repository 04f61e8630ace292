//! Keeping the webhook receiver up: its lock, its port, and a new try after it failed (SE-19, SE-24).

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use the_loop_core::event::{LogEvent, ServiceName, Source};
use the_loop_core::time::{Timestamp, age};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{RETRY_MAX, Shared};
use crate::ingress::webhook::{BindFault, Bound, Receiver, ReceiverContext};
use crate::ops::rows::{RowOutcome, ServiceRow};
use crate::settings::SecretsHolder;
use crate::store::lock::{ServiceLock, ServiceLockError};

/// How the receiver stands.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    state: Mutex<Standing>,
    changed: Arc<Notify>,
}

#[derive(Clone, Debug, Default)]
enum Standing {
    /// Not tried yet, or switched off.
    #[default]
    Off,
    /// It listens.
    Up {
        address: SocketAddr,
        path: String,
        since: Timestamp,
    },
    /// Another program holds its lock.
    Blocked { pid: Option<u32> },
    /// Something it needs is not configured; tried again when the configuration changes.
    Misconfigured { why: String },
    /// It failed or died; tried again at `next`.
    Down {
        why: String,
        at: Timestamp,
        next: Timestamp,
        was_up: bool,
    },
}

/// Why one life of the receiver ended.
enum Ended {
    Asked,
    Blocked { pid: Option<u32> },
    Misconfigured(String),
    Failed { why: String, was_up: bool },
}

impl Receiving {
    fn standing(&self) -> Standing {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, standing: Standing) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    /// Does it listen?
    pub(super) fn is_up(&self) -> bool {
        matches!(self.standing(), Standing::Up { .. })
    }

    /// The configuration changed: one that was misconfigured is tried again.
    pub(super) fn configuration_changed(&self) {
        self.changed.notify_waiters();
    }

    /// Its row, in the words of `start`.
    pub(super) fn row(&self, shared: &Shared) -> ServiceRow {
        let pid = shared.world.pid;
        let enabled = shared.live.current().webhooks.gh_webhook.enabled;
        let now = shared.world.clock.now();
        let (outcome, running, pid, detail) = match self.standing() {
            _ if !enabled => (RowOutcome::Disabled, false, None, disabled()),
            Standing::Off => (RowOutcome::NotRunning, false, None, String::new()),
            Standing::Up { address, path, .. } => {
                let detail = format!("pid {pid}, {address}{path}");
                (RowOutcome::Started, true, Some(pid), detail)
            }
            Standing::Blocked { pid } => {
                let pid_words =
                    pid.map_or_else(|| "pid unknown".to_owned(), |p| format!("pid {p}"));
                let detail = format!("{pid_words}, by another program");
                (RowOutcome::AlreadyRunning, true, pid, detail)
            }
            Standing::Misconfigured { why } => (RowOutcome::Misconfigured, false, None, why),
            Standing::Down {
                why,
                at,
                next,
                was_up,
            } => {
                let next = age(next.since(now));
                if was_up {
                    let ago = age(now.since(at));
                    let detail = format!("died {ago} ago: {why}, next try in {next}");
                    (RowOutcome::NotRunning, false, None, detail)
                } else {
                    let detail = format!("{why}, next try in {next}");
                    (RowOutcome::Failed, false, None, detail)
                }
            }
        };
        ServiceRow {
            name: "gh-webhook".to_owned(),
            enabled,
            outcome,
            running,
            pid,
            detail,
        }
    }

    /// What `GET /status` says of it (SE-25).
    pub(super) fn json(&self, shared: &Shared) -> Value {
        let row = self.row(shared);
        let (bind, path, since) = match self.standing() {
            Standing::Up {
                address,
                path,
                since,
            } => (Some(address.to_string()), Some(path), Some(since)),
            Standing::Off
            | Standing::Blocked { .. }
            | Standing::Misconfigured { .. }
            | Standing::Down { .. } => (None, None, None),
        };
        let outcome = match row.outcome {
            RowOutcome::Started | RowOutcome::AlreadyRunning => RowOutcome::Running,
            other => other,
        };
        json!({
            "name": row.name,
            "enabled": row.enabled,
            "running": row.running,
            "outcome": outcome,
            "pid": row.pid,
            "reason": if row.running { None } else { Some(row.detail) },
            "since": since,
            "bind": bind,
            "path": path,
            "lastDeliveryAt": shared.last_delivery(),
        })
    }
}

/// The detail of a receiver that is switched off.
pub(super) fn disabled() -> String {
    "webhooks.ghWebhook.enabled is false".to_owned()
}

/// Starts the receiver's keeper; returns when its first try came to something.
pub(super) async fn start(shared: &Arc<Shared>, ending: CancellationToken) -> JoinHandle<()> {
    let (send, first) = oneshot::channel();
    let keeper = tokio::spawn(keep(Arc::clone(shared), ending, send));
    let _ = first.await;
    keeper
}

async fn keep(shared: Arc<Shared>, ending: CancellationToken, first: oneshot::Sender<()>) {
    if !shared.live.current().webhooks.gh_webhook.enabled {
        let _ = first.send(());
        return;
    }
    let secrets = Arc::new(SecretsHolder::default());
    let mut first = Some(first);
    let mut pause = Duration::from_secs(1);
    while !ending.is_cancelled() {
        let changed = shared.receiver.changed.clone();
        let changed = changed.notified();
        let now = || shared.world.clock.now();
        let ended = life(&shared, &secrets, &ending, &mut first).await;
        match ended {
            Ended::Asked => break,
            Ended::Blocked { pid } => shared.receiver.set(Standing::Blocked { pid }),
            Ended::Misconfigured(why) => {
                tracing::warn!("gh-webhook: {why}");
                shared.receiver.set(Standing::Misconfigured { why });
            }
            Ended::Failed { why, was_up } => {
                if was_up {
                    pause = Duration::from_secs(1);
                }
                shared.log.emit(
                    Source::Daemon,
                    LogEvent::ServiceFailed {
                        service: ServiceName::GhWebhook,
                        error: why.clone(),
                    },
                );
                shared.receiver.set(Standing::Down {
                    why,
                    at: now(),
                    next: now().plus(pause),
                    was_up,
                });
            }
        }
        told(&mut first);
        tokio::select! {
            () = ending.cancelled() => break,
            () = changed => {}
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(RETRY_MAX);
    }
    told(&mut first);
}

fn told(first: &mut Option<oneshot::Sender<()>>) {
    if let Some(first) = first.take() {
        let _ = first.send(());
    }
}

/// One life: lock, port, serving, end.
async fn life(
    shared: &Arc<Shared>,
    secrets: &Arc<SecretsHolder>,
    ending: &CancellationToken,
    first: &mut Option<oneshot::Sender<()>>,
) -> Ended {
    let path = shared.layout.webhook_pid();
    let _lock = match ServiceLock::acquire(&shared.world, &path) {
        Ok(lock) => lock,
        Err(ServiceLockError::Held { path, pid }) => {
            let path = path.to_string();
            shared.log.emit(
                Source::GhWebhook,
                LogEvent::ServerBlocked { path, holder: pid },
            );
            return Ended::Blocked { pid };
        }
        Err(e @ ServiceLockError::Io { .. }) => {
            return Ended::Failed {
                why: chain(&e),
                was_up: false,
            };
        }
    };
    let bound = match bind(shared, secrets).await {
        Ok(bound) => bound,
        Err(ended) => return ended,
    };
    let settings = shared.live.current();
    let address = bound.local_addr();
    let webhook = &settings.webhooks.gh_webhook;
    shared.log.emit(
        Source::GhWebhook,
        LogEvent::ServerStarted {
            host: address.ip().to_string(),
            port: address.port(),
            path: webhook.path.clone(),
            routing: settings.routing.enabled,
            verifying_signatures: secrets.current(&shared.world, &settings).is_ok(),
        },
    );
    shared.receiver.set(Standing::Up {
        address,
        path: webhook.path.clone(),
        since: shared.world.clock.now(),
    });
    super::polling::receiver_is_up(shared);
    told(first);
    let served = tokio::spawn(bound.serve(ending.clone())).await;
    shared
        .log
        .emit(Source::GhWebhook, LogEvent::ServerStopped {});
    match served {
        Ok(()) if ending.is_cancelled() => Ended::Asked,
        Ok(()) => Ended::Failed {
            why: "it ended by itself".to_owned(),
            was_up: true,
        },
        Err(_) => Ended::Failed {
            why: "a defect ended it".to_owned(),
            was_up: true,
        },
    }
}

async fn bind(shared: &Arc<Shared>, secrets: &Arc<SecretsHolder>) -> Result<Bound, Ended> {
    let settings = shared.live.current();
    let webhook = &settings.webhooks.gh_webhook;
    let failed = |why: String| Ended::Failed { why, was_up: false };
    let address = match webhook.host.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, webhook.port),
        Err(_) => tokio::net::lookup_host((webhook.host.as_str(), webhook.port))
            .await
            .map_err(|e| failed(format!("{}: {e}", webhook.host)))?
            .next()
            .ok_or_else(|| failed(format!("{}: no address", webhook.host)))?,
    };
    if settings.routing.enabled
        && let Err(fault) = secrets.current(&shared.world, &settings)
    {
        return Err(Ended::Misconfigured(fault.to_string()));
    }
    match Receiver::new(context(shared, secrets)).bind(address).await {
        Ok(bound) => Ok(bound),
        Err(e @ BindFault::NoSecret) => Err(Ended::Misconfigured(e.to_string())),
        Err(e @ BindFault::Address { .. }) => Err(failed(chain(&e))),
    }
}

fn context(shared: &Arc<Shared>, secrets: &Arc<SecretsHolder>) -> ReceiverContext {
    let live = Arc::clone(&shared.live);
    let settings = move || live.current();
    let (of_secrets, holder) = (Arc::clone(shared), Arc::clone(secrets));
    let secrets = move || {
        let settings = of_secrets.live.current();
        match holder.current(&of_secrets.world, &settings) {
            Ok((secrets, warning)) => {
                if let Some(warning) = warning {
                    tracing::warn!("{warning}");
                }
                secrets.values
            }
            Err(_) => Vec::new(),
        }
    };
    let accepted = Arc::clone(shared);
    let on_accept = move || {
        let now = accepted.world.clock.now().unix_ms();
        accepted
            .last_delivery
            .store(now, std::sync::atomic::Ordering::SeqCst);
        accepted.engine().wake();
    };
    ReceiverContext {
        world: shared.world.clone(),
        inbox: shared.inbox.clone(),
        log: Arc::new(shared.log.clone()),
        settings: Arc::new(settings),
        secrets: Arc::new(secrets),
        on_accept: Arc::new(on_accept),
    }
}

/// An error with its reasons on one line.
fn chain(e: &dyn std::error::Error) -> String {
    let mut words = e.to_string();
    let mut next = e.source();
    while let Some(e) = next {
        words.push_str(&format!(": {e}"));
        next = e.source();
    }
    words
}
