//! The look at all sessions, once a second, with one tmux call (DI-14, DI-31).

use std::collections::BTreeMap;
use std::time::Duration;

use the_loop_core::confirm::{AgentState, WaitingKind};
use the_loop_core::event::{ExitedState, LogEvent, StateKind, WaitingKind as WaitingWord};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::probe::TmuxState;
use the_loop_core::prompt::comment;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::item::Gathered;
use super::{Engine, lock};
use crate::store::registry::{RecordFault, Registered};
use crate::tmux::{Snapshot, View};

/// An outage of tmux, so that it is said once.
#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<Timestamp>,
    said: bool,
    server_gone: bool,
}

impl Engine {
    /// One tick: what every session does, what ended, what waits for a person.
    pub fn supervise(&self) {
        let Ok(listing) = self.0.registry.list() else {
            return;
        };
        for fault in &listing.problems {
            self.say_corrupt(fault);
        }
        let live: Vec<&Registered> = listing
            .records
            .iter()
            .filter(|found| found.record.status.is_live())
            .collect();
        if live.is_empty() {
            return;
        }
        let settings = self.settings();
        let tmux = self.tmux(&settings);
        let snapshot = match tmux.snapshot() {
            Ok(snapshot) => {
                self.answered();
                snapshot
            }
            Err(why) => return self.unanswered(&why.to_string()),
        };
        self.note_server(&snapshot, live.len());
        self.look_at_environments(&live, &snapshot);
        let screens = self.screens(&live, &self.adapters(&settings), &snapshot, &tmux);
        for found in live {
            // A session on another server is looked at when something is delivered to it.
            let elsewhere = found
                .record
                .tmux_socket
                .as_ref()
                .is_some_and(|s| *s != settings.routing.tmux.socket_name);
            if found.record.status == SessionStatus::Starting {
                self.settle_left_behind(found);
            } else if !elsewhere {
                self.look_at(found, &snapshot, &screens);
            }
        }
    }

    fn look_at(&self, found: &Registered, snapshot: &Snapshot, screens: &BTreeMap<String, View>) {
        let Some(target) = TmuxTarget::parse(&found.record.tmux_target) else {
            return;
        };
        let gathered = self.gathered_of(found);
        let Some(adapter) = self
            .adapters(&gathered.settings)
            .named(&found.record.harness)
        else {
            return;
        };
        let agent = self.agent(&gathered, &adapter);
        let state = snapshot.state(&target);
        let pane = snapshot.panes(&target).iter().find(|pane| !pane.dead);
        if pane.is_some() {
            self.learn_in_passing(found, &adapter, &agent);
        }
        let now = self.world().clock.now();
        let mut agent = lock(&agent);
        let seen = match pane {
            Some(pane) => agent
                .observe(now, screens.get(target.as_str()), Some(&pane.title))
                .map_or(AgentState::Unknown, |o| o.state),
            None => AgentState::Exited,
        };
        let malformed = std::mem::take(&mut agent.said.malformed);
        if malformed > 0 {
            let file = self.0.parts.layout.hook_file(&gathered.slug);
            self.emit(LogEvent::HookMalformed {
                file: file.to_string(),
                count: malformed as u64,
                error: "not a line a hook of ours writes".to_owned(),
            });
        }
        let before = agent.said.state.replace(seen);
        let changed = before.is_some_and(|before| before != seen);
        if pane.is_none() && !agent.said.exited {
            agent.said.exited = true;
            self.emit(LogEvent::SessionExited {
                work_item: found.record.item.clone(),
                endpoint: None,
                harness: found.record.harness.clone(),
                tmux_target: target.to_string(),
                state: if state == TmuxState::Dead {
                    ExitedState::Dead
                } else {
                    ExitedState::Absent
                },
                exit_code: snapshot
                    .panes(&target)
                    .first()
                    .and_then(|pane| pane.exit_status),
                expected: false,
            });
        } else if pane.is_some() {
            agent.said.exited = false;
        }
        let (work_item, harness) = (found.record.item.clone(), found.record.harness.clone());
        match seen {
            AgentState::Working if changed => self.emit(LogEvent::SessionWorking {
                work_item,
                endpoint: None,
                harness: harness.clone(),
            }),
            AgentState::Idle if changed => self.emit(LogEvent::SessionIdle {
                work_item,
                endpoint: None,
                harness: harness.clone(),
            }),
            AgentState::Working
            | AgentState::Idle
            | AgentState::Starting
            | AgentState::Ready
            | AgentState::Waiting(_)
            | AgentState::Exited
            | AgentState::Unknown => {}
        }
        let attention =
            Duration::from_secs(u64::from(gathered.settings.routing.attention.after_seconds));
        let kind = match seen {
            AgentState::Waiting(kind) => kind,
            AgentState::Starting
            | AgentState::Ready
            | AgentState::Working
            | AgentState::Idle
            | AgentState::Exited
            | AgentState::Unknown => {
                agent.said.waiting_since = None;
                agent.said.waiting_told = false;
                drop(agent);
                if changed {
                    self.touched(&found.record.item);
                }
                return;
            }
        };
        let since = *agent.said.waiting_since.get_or_insert(now);
        let tell = !agent.said.waiting_told && now.since(since) >= attention;
        agent.said.waiting_told |= tell;
        drop(agent);
        if tell {
            self.tell_waiting(&gathered, kind, &target, &harness);
        }
    }

    fn tell_waiting(
        &self,
        gathered: &Gathered,
        kind: WaitingKind,
        target: &TmuxTarget,
        harness: &str,
    ) {
        let word = match kind {
            WaitingKind::Permission => WaitingWord::Permission,
            WaitingKind::Question => WaitingWord::Question,
            WaitingKind::Dialog => WaitingWord::Dialog,
            WaitingKind::UsageLimit => WaitingWord::UsageLimit,
            WaitingKind::Login => WaitingWord::Login,
        };
        self.emit(LogEvent::SessionWaiting {
            work_item: gathered.item.clone(),
            endpoint: None,
            harness: harness.to_owned(),
            kind: word,
            summary: None,
        });
        let on_ticket = matches!(
            kind,
            WaitingKind::Permission | WaitingKind::Question | WaitingKind::Dialog
        ) && gathered.settings.routing.interaction.mode
            == the_loop_core::config::InteractionMode::WorkItem;
        if on_ticket {
            let socket = gathered
                .record
                .as_ref()
                .and_then(|r| r.tmux_socket.clone())
                .unwrap_or_default();
            let _ = self.tell(
                &gathered.item,
                &comment::waiting(kind.as_str(), target, &socket),
            );
        }
    }

    /// A look without the item's lock: good for showing and for hints, never for deciding (ST-29).
    pub(super) fn gathered_of(&self, found: &Registered) -> Gathered {
        Gathered {
            key: found.record.item.key(),
            item: found.record.item.clone(),
            slug: found.slug.clone(),
            settings: self.settings(),
            record: Some(found.record.clone()),
            control: None,
            parked: false,
            fault: None,
            prepared: None,
        }
    }

    fn unanswered(&self, operation: &str) {
        let now = self.world().clock.now();
        let mut outage = lock(&self.0.outage);
        let since = *outage.since.get_or_insert(now);
        if !outage.said {
            outage.said = true;
            self.emit(LogEvent::TmuxUnanswered {
                operation: operation.to_owned(),
                waited_ms: now.since(since).as_millis() as u64,
            });
        }
    }

    fn answered(&self) {
        let mut outage = lock(&self.0.outage);
        if let Some(since) = outage.since.take() {
            outage.said = false;
            let waited = self.world().clock.now().since(since);
            self.emit(LogEvent::TmuxAnswered {
                waited_ms: waited.as_millis() as u64,
            });
        }
    }

    fn note_server(&self, snapshot: &Snapshot, live: usize) {
        let mut outage = lock(&self.0.outage);
        let gone = snapshot.is_empty();
        if gone && !outage.server_gone {
            self.emit(LogEvent::TmuxServerGone {
                socket: self.settings().routing.tmux.socket_name.clone(),
                count: live as u64,
            });
        }
        outage.server_gone = gone;
    }

    /// Says a file that cannot be used once for each change of it (ST-31).
    pub(super) fn say_corrupt(&self, fault: &RecordFault) {
        let file = fault.file().to_owned();
        let changed = self
            .world()
            .disk
            .meta(&file)
            .ok()
            .flatten()
            .map_or(0, |meta| meta.modified_ms);
        if lock(&self.0.faults_said).insert(file.clone(), changed) == Some(changed) {
            return;
        }
        let name = file
            .strip_prefix(self.0.parts.layout.root())
            .unwrap_or(&file)
            .to_string();
        self.emit(match fault {
            RecordFault::Newer { schema, known, .. } => LogEvent::StateNewer {
                file: name,
                schema: *schema,
                known: *known,
            },
            RecordFault::Corrupt { .. }
            | RecordFault::Foreign { .. }
            | RecordFault::Unreadable { .. } => LogEvent::StateCorrupt {
                file: name,
                kind: StateKind::Session,
                error: fault.to_string(),
            },
        });
    }
}
