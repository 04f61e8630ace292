//! The look at all sessions, once a second, with one tmux call (DI-14, DI-31).

use std::sync::Arc;

use the_loop_core::config::Settings;
use the_loop_core::confirm::AgentState;
use the_loop_core::event::{ExitedState, LogEvent, StateKind};
use the_loop_core::ids::TmuxTarget;
use the_loop_core::probe::TmuxState;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::item::Gathered;
use super::screens::Screens;
use super::{Engine, lock};
use crate::process::NoAnswer;
use crate::store::registry::{RecordFault, Registered};
use crate::tmux::{Pane, Snapshot, Tmux, agent_pane};

/// An outage of tmux, so that it is said once.
#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<Timestamp>,
    said: bool,
}

impl Engine {
    /// One tick: what every session does, what ended, what waits for a person; then those who wait to be
    /// brought back.
    pub fn supervise(&self) {
        let settings = self.settings();
        self.release_what_is_over(&settings);
        self.look_at_all(&settings);
        self.bring_back_due();
    }

    fn look_at_all(&self, settings: &Arc<Settings>) {
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
        let tmux = self.tmux(settings);
        let snapshot = match self.look_at_server(&tmux) {
            Ok(snapshot) => {
                self.answered();
                snapshot
            }
            Err(why) => {
                self.count_places(settings, None);
                return self.unanswered(&why.to_string());
            }
        };
        self.count_places(settings, Some((&snapshot, &live)));
        self.look_at_environments(&live, &snapshot);
        let screens = self.screens(&live, &self.adapters(settings), &snapshot, &tmux);
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
                self.hear_of_doubts(&self.gathered_of(found));
            }
        }
    }

    fn look_at(&self, found: &Registered, snapshot: &Snapshot, screens: &Screens) {
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
        let item = &found.record.item;
        let is_ours = |pid| self.marked(pid, item).is_some();
        let own = agent_pane(snapshot.panes(&target), found.record.pid, is_ours);
        let pane = own.filter(|pane| !pane.dead);
        if pane.is_some() {
            self.learn_in_passing(found, &adapter, &agent);
        }
        let now = self.world().clock.now();
        let mut watched = lock(&agent);
        watched.pane = own.map(|pane| pane.id);
        // A process that was put into the pane a moment ago carries its mark only once it is the harness.
        let out_of_sight = own.is_none() && snapshot.state(&target) == TmuxState::Live;
        if std::mem::replace(&mut watched.said.out_of_sight, out_of_sight) != out_of_sight
            && out_of_sight
        {
            return;
        }
        let observation = if let Some(pane) = pane {
            watched.observe(now, screens.get(&pane.id), Some(&pane.title))
        } else {
            watched.last_look();
            None
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
            self.say_exited(found, &target, own);
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

    fn say_exited(&self, found: &Registered, target: &TmuxTarget, own: Option<&Pane>) {
        // The record as it is now: an end that was wanted may have been written since the listing.
        let now = self.0.registry.get(&found.record.item).ok().flatten();
        let expected = now.is_some_and(|now| now.record.idle_stopped_at.is_some());
        self.emit(LogEvent::SessionExited {
            work_item: found.record.item.clone(),
            endpoint: None,
            harness: found.record.harness.clone(),
            tmux_target: target.to_string(),
            state: match own {
                Some(_) => ExitedState::Dead,
                None => ExitedState::Absent,
            },
            exit_code: own.and_then(|pane| pane.exit_status),
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
            seen: None,
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

    /// One look at all panes of a server, which also notices that the server is gone. Looks are taken one
    /// after the other, so that a server that went and came back between two ticks is told of, and told
    /// once (DI-41).
    pub(super) fn look_at_server(&self, tmux: &Tmux) -> Result<Snapshot, NoAnswer> {
        let settings = self.settings();
        if tmux.socket() != settings.routing.tmux.socket_name {
            return tmux.snapshot();
        }
        let mut gone = lock(&self.0.server_gone);
        let snapshot = tmux.snapshot()?;
        if !snapshot.is_empty() {
            *gone = false;
        } else if !*gone {
            *gone = self.server_is_gone(tmux.socket());
        }
        Ok(snapshot)
    }

    /// Tells it when sessions are gone with it, and brings them back where that is wanted.
    fn server_is_gone(&self, socket: &str) -> bool {
        let Ok(listing) = self.0.registry.list() else {
            return false;
        };
        let had_a_session = |found: &&Registered| {
            let record = &found.record;
            let is_first = record
                .spawn
                .as_ref()
                .is_some_and(|spawn| spawn.previous.is_none());
            let here = record.tmux_socket.as_deref().is_none_or(|s| s == socket);
            record.status.is_live() && !is_first && here && record.idle_stopped_at.is_none()
        };
        let lost: Vec<&Registered> = listing.records.iter().filter(had_a_session).collect();
        if lost.is_empty() {
            return false;
        }
        self.emit(LogEvent::TmuxServerGone {
            socket: socket.to_owned(),
            count: lost.len() as u64,
        });
        if self.settings().routing.tmux.recover_on_start {
            for found in lost {
                if found.record.status == SessionStatus::Active {
                    self.bring_back_later(&found.record);
                }
            }
        }
        true
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
