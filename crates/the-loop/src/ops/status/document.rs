//! The document of SE-25.

use serde_json::{Value, json};
use the_loop_core::confirm::ObservationSource;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::session::SessionStatus;

use super::Look;
use crate::ops::rows::ServiceRow;
use crate::ops::sessions::list::tokens_json;
use crate::store::inbox::Scope;

impl Look<'_> {
    pub(super) fn json(&self, ok: bool, rows: &[ServiceRow]) -> Value {
        let settings = self.settings();
        let limits = &settings.routing.limits;
        let counts = self.counts.clone().unwrap_or_default();
        let states = self.states();
        let state = |name: &str| states.get(name).copied().unwrap_or(0);
        let path = self.desk.loaded.path.as_ref();
        let version = settings.version.as_deref();
        json!({
            "ok": ok,
            "version": env!("CARGO_PKG_VERSION"),
            "stateRoot": self.desk.layout.root(),
            "config": {
                "path": path,
                "version": version.unwrap_or(the_loop_core::config::version::CURRENT),
                "restartNeeded": self.restart_needed(),
                "problem": self.problem_of_config(),
            },
            "services": [
                self.daemon_json(&rows[0]),
                self.receiver_json(&rows[1]),
                self.poller_json(&rows[2]),
            ],
            "inbox": {
                "waiting": counts.waiting,
                "oldestAgeSeconds": counts.oldest_at.map(|at| self.now.since(at).as_secs()),
                "inWork": counts.in_work,
                "held": counts.held,
                "failed": counts.failed,
                "uncertain": counts.uncertain,
                "abandoned": counts.abandoned,
                "unavailableSince": self.unavailable_since,
            },
            "quota": self.quota(),
            "limits": {
                "liveSessions": { "now": self.live().len(), "max": limits.max_live_sessions },
                "freeMemoryMb": { "now": self.free_memory_mb, "min": limits.min_free_memory_mb },
                "freeDiskMb": { "now": self.free_disk_mb, "min": limits.min_free_disk_mb },
                "tokensToday": {
                    "now": self.tokens.0.total(),
                    "max": limits.max_tokens_per_day,
                    "classes": tokens_json(self.tokens.0),
                },
                "waitingCapacity": self.waiting_for_room()
                    .map(|(line, reason, since)| json!({
                        "ref": line.item, "since": since, "reason": reason.as_str(),
                    }))
                    .collect::<Vec<Value>>(),
                "parked": self.parked.iter().map(|parked| json!({
                    "ref": scope_item(&parked.scope),
                    "reason": parked.reason,
                    "since": parked.since,
                    "limit": parked.base,
                })).collect::<Vec<Value>>(),
            },
            "tokens": {
                "day": self.now.day(),
                "items": self.tokens.1.iter().map(|(key, all, today)| {
                    let mut tokens = tokens_json(*all);
                    tokens["ref"] = json!(self.name_of(key));
                    tokens["today"] = tokens_json(*today);
                    tokens
                }).collect::<Vec<Value>>(),
            },
            "sessions": {
                "live": self.live().len(),
                "starting": state("starting"), "ready": state("ready"), "working": state("working"),
                "waiting": state("waiting"), "idle": state("idle"), "exited": state("exited"),
                "unknown": state("unknown"),
                "paused": self.of_status(SessionStatus::Paused).count(),
            },
            "waiting": self.waiting_sessions().iter().map(|(line, kind)| json!({
                "ref": line.item,
                "kind": kind.as_str(),
                "since": line.view.since,
                "source": line.view.source.map(ObservationSource::as_str),
                "tmuxTarget": line.record.as_ref().map(|r| r.tmux_target.clone()),
                "attach": line.attach,
            })).collect::<Vec<Value>>(),
            "stalled": self.stalled_sessions().iter().map(|(line, since)| json!({
                "ref": line.item,
                "since": since,
                "tmuxTarget": line.record.as_ref().map(|r| r.tmux_target.clone()),
                "attach": line.attach,
            })).collect::<Vec<Value>>(),
            "sessionEnvironment": self.environment,
            "saved": { "count": self.saved.0, "bytes": self.saved.1 },
            "problems": self.problems.iter().map(|p| json!({
                "file": p.file, "problem": p.words, "line": p.line,
            })).collect::<Vec<Value>>(),
        })
    }

    fn daemon_json(&self, row: &ServiceRow) -> Value {
        json!({
            "name": row.name,
            "enabled": row.enabled,
            "running": row.running,
            "outcome": row.outcome,
            "pid": row.pid,
            "reason": (!row.running).then_some(&row.detail),
            "since": self.since(),
        })
    }

    fn receiver_json(&self, row: &ServiceRow) -> Value {
        match self.answer.as_ref().and_then(|a| a.get("ghWebhook")) {
            Some(told) => told.clone(),
            None => json!({
                "name": row.name,
                "enabled": row.enabled,
                "running": row.running,
                "outcome": row.outcome,
                "pid": row.pid,
                "reason": (!row.running).then_some(&row.detail),
                "since": null,
                "bind": null,
                "path": self.settings().webhooks.gh_webhook.path,
                "lastDeliveryAt": null,
            }),
        }
    }
}

fn scope_item(scope: &Scope) -> Option<&WorkItemRef> {
    match scope {
        Scope::Item(item) => Some(item),
        Scope::Machine => None,
    }
}
