//! The look at all sessions, once a second, with one tmux call (DI-14, DI-31).

use the_loop_core::confirm::AgentState;
use the_loop_core::event::{ExitedState, LogEvent, StateKind};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::probe::TmuxState;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::item::Gathered;
use super::{Engine, lock};
use crate::store::registry::{RecordFault, Registered};
use crate::tmux::Snapshot;

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
        let settings = self.settings();
        self.release_what_is_over(&settings);
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
        let snapshot = match self.tmux(&settings).snapshot() {
            Ok(snapshot) => {
                self.answered();
                snapshot
            }
            Err(why) => return self.unanswered(&why.to_string()),
        };
        self.note_server(&snapshot, live.len());
        self.look_at_environments(&live, &snapshot);
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
                self.look_at(found, &snapshot);
            }
        }
    }

    fn look_at(&self, found: &Registered, snapshot: &Snapshot) {
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
        let pane = snapshot.panes(&target).iter().find(|pane| !pane.dead);
        if pane.is_some() {
            self.learn_in_passing(found, &adapter, &agent);
        }
        let now = self.world().clock.now();
        let mut watched = lock(&agent);
        let observation = match pane {
            Some(pane) => watched.observe(now, None, Some(&pane.title)),
            None => {
                watched.last_look();
                None
            }
        };
        let seen = match pane {
            Some(_) => observation.map_or(AgentState::Unknown, |o| o.state),
            None => AgentState::Exited,
        };
        let malformed = std::mem::take(&mut watched.said.malformed);
        let before = watched.said.state.replace(seen);
        let changed = before.is_some_and(|before| before != seen);
        let has_ended = pane.is_none() && !watched.said.exited;
        watched.said.exited = pane.is_none();
        let news = self.attend(&gathered, &mut watched, observation, pane, now);
        let standing = watched.standing().filter(|_| pane.is_some());
        drop(watched);
        if malformed > 0 {
            self.say_malformed(&gathered, malformed);
        }
        if has_ended {
            self.say_exited(found, &target, snapshot);
        }
        if changed {
            self.say_turn(&gathered, &found.record.harness, seen);
            self.touched(&found.record.item);
        }
        self.tell_news(&gathered, news, &target, &found.record.harness);
        self.count_tokens(&gathered, &agent);
        if found.record.status == SessionStatus::Active {
            self.stop_if_idle(&gathered, standing, now);
        }
    }

    fn say_malformed(&self, gathered: &Gathered, count: usize) {
        let file = self.0.parts.layout.hook_file(&gathered.slug);
        let file = file
            .strip_prefix(self.0.parts.layout.root())
            .unwrap_or(&file);
        self.emit(LogEvent::HookMalformed {
            file: file.to_string(),
            count: count as u64,
            error: "not a line a hook of ours writes".to_owned(),
        });
    }

    fn say_exited(&self, found: &Registered, target: &TmuxTarget, snapshot: &Snapshot) {
        let dead = snapshot.state(target) == TmuxState::Dead;
        // The record as it is now: an end that was wanted may have been written since the listing.
        let now = self.0.registry.get(&found.record.item).ok().flatten();
        let expected = now.is_some_and(|now| now.record.idle_stopped_at.is_some());
        self.emit(LogEvent::SessionExited {
            work_item: found.record.item.clone(),
            endpoint: None,
            harness: found.record.harness.clone(),
            tmux_target: target.to_string(),
            state: if dead {
                ExitedState::Dead
            } else {
                ExitedState::Absent
            },
            exit_code: snapshot
                .panes(target)
                .first()
                .and_then(|pane| pane.exit_status),
            expected,
        });
    }

    /// A turn began or ended.
    fn say_turn(&self, gathered: &Gathered, harness: &str, seen: AgentState) {
        let (work_item, harness) = (gathered.item.clone(), harness.to_owned());
        match seen {
            AgentState::Working => self.emit(LogEvent::SessionWorking {
                work_item,
                endpoint: None,
                harness,
            }),
            AgentState::Idle => self.emit(LogEvent::SessionIdle {
                work_item,
                endpoint: None,
                harness,
            }),
            AgentState::Starting
            | AgentState::Ready
            | AgentState::Waiting(_)
            | AgentState::Exited
            | AgentState::Unknown => {}
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
