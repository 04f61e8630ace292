//! Which harness a session has, and what happens where there is none (DI-33).

use the_loop_core::delivery::Effect;
use the_loop_core::event::LogEvent;
use the_loop_core::route::{HARNESS_LABEL, harness_label};

use super::Engine;
use super::item::{Gathered, Job, Progress};
use super::perform::Performer;
use crate::harness::adapter::Adapter;

/// The harness of a session, or why none can be taken.
pub(super) struct Choice {
    pub adapter: Adapter,
    pub why_none: Option<String>,
}

impl Engine {
    /// The recorded one of a live session; else the one that a shell asked for, that a label of the item
    /// names, that of its repository, the default one.
    pub(super) fn choose(&self, gathered: &Gathered, job: Option<&Job>) -> Choice {
        let adapters = self.adapters(&gathered.settings);
        let by_name = |name: &str, whose: &str| match adapters.named(name) {
            Some(adapter) => Choice {
                adapter,
                why_none: None,
            },
            None => Choice {
                adapter: Adapter::unknown(name),
                why_none: Some(format!(
                    "{whose} names no harness: there are {}",
                    adapters.names().join(", ")
                )),
            },
        };
        if let Some(record) = gathered.live() {
            return by_name(&record.harness, "the session record");
        }
        let asked = job.and_then(|row| match &row.delivery.effect {
            Effect::Start { harness } => harness.as_deref(),
            Effect::Text(_)
            | Effect::Presence
            | Effect::Opened
            | Effect::Check(_)
            | Effect::Notice { .. }
            | Effect::Close { .. } => None,
        });
        if let Some(name) = asked {
            return by_name(name, "--harness");
        }
        let labels = job.map(|row| self.labels(gathered, &row.delivery));
        match harness_label(&labels.unwrap_or_default()) {
            Ok(Some(name)) => by_name(&name, &format!("its label {HARNESS_LABEL}…")),
            Ok(None) => {
                let routing = &gathered.settings.routing;
                by_name(
                    routing.harness_of_repo(gathered.item.repo()),
                    "routing.repoHarness or routing.defaultHarness",
                )
            }
            Err(names) => Choice {
                adapter: Adapter::unknown(&names.join(" ")),
                why_none: Some(format!("it has more than one label {HARNESS_LABEL}…")),
            },
        }
    }

    /// No harness can be taken: nothing is spawned, and the ticket is told once. What is wrong stays so
    /// until a person changes it, so there is no retry. A session that lives may get its declaration back.
    pub(super) fn no_harness(&self, performer: &Performer<'_>, job: &Job, why: &str) -> Progress {
        let gathered = &performer.gathered;
        if gathered.live().is_some() {
            return self.try_failed(performer.held, gathered, job, why, true);
        }
        self.emit(LogEvent::SessionSpawnFailed {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness: performer.adapter.name().to_owned(),
            tmux_target: None,
            error: why.to_owned(),
            will_retry: false,
            remedy: Some(
                "change the label, or declare it in routing.harnesses; then: the-loop deliveries retry"
                    .to_owned(),
            ),
            tail: None,
        });
        self.give_up(performer.held, gathered, job, why, why)
    }
}
