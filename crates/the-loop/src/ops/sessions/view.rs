//! What hosts a session, and what its agent does (DI-13, DI-31).

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use the_loop_core::confirm::{AgentState, Observation, ObservationSource};
use the_loop_core::ids::Slug;
use the_loop_core::probe::TmuxState;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use crate::harness::adapter::{Adapter, Adapters};
use crate::harness::place::Place;
use crate::harness::screen::ScreenView;
use crate::harness::watch::Watch;
use crate::ops::desk::Desk;
use crate::process::NoAnswer;
use crate::tmux::{Pane, Snapshot, Spot, Tmux, agent_pane};

/// The panes of the servers that records name, each asked once (SE-16).
#[derive(Debug)]
pub struct Panes {
    tmux: Tmux,
    adapters: Adapters,
    servers: BTreeMap<String, Result<Snapshot, NoAnswer>>,
}

/// A session at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// What holds its target; `Unknown` where tmux was not asked or did not answer.
    pub tmux: TmuxState,
    /// What the agent does.
    pub state: AgentState,
    /// Since when, as the one who says so tells.
    pub since: Option<Timestamp>,
    /// Who says so; `None` where the record or the absence of a process does, or nobody.
    pub source: Option<ObservationSource>,
}

impl View {
    /// Nobody was asked.
    pub const UNKNOWN: Self = Self {
        tmux: TmuxState::Unknown,
        state: AgentState::Unknown,
        since: None,
        source: None,
    };
}

impl Panes {
    /// Nobody is asked before the first [`Panes::view`].
    pub fn new(desk: &Desk) -> Self {
        Self {
            tmux: desk.tmux(),
            adapters: Adapters::of(desk.settings()),
            servers: BTreeMap::new(),
        }
    }

    /// How the harness of this name shows that it took a delivery; `none` for one that is not known.
    pub fn confirms(&self, harness: &str) -> &'static str {
        let adapter = self.adapters.named(harness);
        adapter.map_or("none", |adapter| adapter.declaration().confirms.as_str())
    }

    /// What the harness of this name cannot do.
    pub fn cannot(&self, harness: &str) -> Vec<String> {
        match self.adapters.named(harness) {
            Some(adapter) => adapter.declaration().cannot.clone(),
            None => vec!["no harness is called that here: nothing is delivered to it".to_owned()],
        }
    }

    /// The server a record names.
    pub fn server(&self, record: &SessionRecord) -> Tmux {
        match &record.tmux_socket {
            Some(socket) => self.tmux.on_socket(socket),
            None => self.tmux.clone(),
        }
    }

    /// What holds the record's target.
    pub fn state(&mut self, record: &SessionRecord) -> TmuxState {
        let Some(target) = record.target() else {
            return TmuxState::Absent;
        };
        match self.snapshot(record) {
            Ok(snapshot) => snapshot.state(&target),
            Err(_) => TmuxState::Unknown,
        }
    }

    /// The pids of the record's live panes; none where tmux did not answer.
    pub fn pids(&mut self, record: &SessionRecord) -> Vec<i32> {
        let (Some(target), Ok(snapshot)) = (record.target(), self.snapshot(record)) else {
            return Vec::new();
        };
        let live = snapshot.panes(&target).iter().filter(|pane| !pane.dead);
        live.map(|pane| pane.pid).collect()
    }

    /// Why nothing is known of a record's target; `None` when tmux answered.
    pub fn silence(&mut self, record: &SessionRecord) -> Option<NoAnswer> {
        self.snapshot(record).as_ref().err().cloned()
    }

    fn snapshot(&mut self, record: &SessionRecord) -> &Result<Snapshot, NoAnswer> {
        let server = self.server(record);
        self.servers
            .entry(server.socket().to_owned())
            .or_insert_with(|| server.snapshot())
    }

    /// The session as it is now. `slug` is the one its files bear.
    pub fn view(&mut self, desk: &Desk, slug: &Slug, record: &SessionRecord) -> View {
        if record.status == SessionStatus::Closed {
            return View {
                tmux: self.state(record),
                state: AgentState::Exited,
                since: record.closed_at,
                source: None,
            };
        }
        let tmux = self.state(record);
        match tmux {
            TmuxState::Unknown => View::UNKNOWN,
            TmuxState::Dead | TmuxState::Absent => View {
                tmux,
                state: if record.status == SessionStatus::Starting {
                    AgentState::Starting
                } else {
                    AgentState::Exited
                },
                since: record.idle_stopped_at,
                source: None,
            },
            TmuxState::Live => self.live(desk, slug, record),
        }
    }

    /// The agent's pane; one whose process is not the recorded one may be of somebody else.
    fn pane(&mut self, record: &SessionRecord) -> Option<Pane> {
        let target = record.target()?;
        let snapshot = self.snapshot(record).as_ref().ok()?;
        agent_pane(snapshot.panes(&target), record.pid, |_| false).cloned()
    }

    fn live(&mut self, desk: &Desk, slug: &Slug, record: &SessionRecord) -> View {
        let starting = record.status == SessionStatus::Starting;
        let pane = self.pane(record);
        if pane.as_ref().is_none_or(|pane| pane.dead) && !starting {
            return View {
                tmux: TmuxState::Live,
                state: AgentState::Exited,
                since: record.idle_stopped_at,
                source: None,
            };
        }
        let title = pane.as_ref().map(|pane| pane.title.clone());
        let silent = if starting {
            AgentState::Starting
        } else {
            AgentState::Unknown
        };
        let adapter = self.adapters.named(&record.harness);
        let mut seen = observed(desk, adapter.as_ref(), slug, record, title.as_deref(), None);
        // A question before the first hook shows on the screen alone, and of some harnesses every one.
        let by_screen = adapter.as_ref().is_some_and(Adapter::is_told_by_screen);
        if (seen.is_none() || by_screen)
            && let (Some(target), Some(pane)) = (record.target(), pane)
        {
            let server = self.server(record);
            match server.view(Spot::of(&target, &pane)) {
                Ok(Some(view)) => {
                    let now = desk.world.clock.now();
                    let (title, dead) = (&view.pane.title, view.pane.dead);
                    let screen = ScreenView::parse(&view.text, title, dead, now);
                    seen = observed(desk, adapter.as_ref(), slug, record, None, Some(&screen));
                }
                Ok(None) => {}
                // A server that fell silent is not waited for once more for each of its sessions.
                Err(why) => {
                    self.servers.insert(server.socket().to_owned(), Err(why));
                    return View::UNKNOWN;
                }
            }
        }
        View {
            tmux: TmuxState::Live,
            state: seen.map_or(silent, |seen| seen.state),
            since: seen.map(|seen| seen.at),
            source: seen.map(|seen| seen.source),
        }
    }
}

/// What hooks, transcript, title and screen say of a live agent.
fn observed(
    desk: &Desk,
    adapter: Option<&Adapter>,
    slug: &Slug,
    record: &SessionRecord,
    title: Option<&str>,
    screen: Option<&ScreenView>,
) -> Option<Observation> {
    let adapter = adapter?;
    let own = [("THE_LOOP_STATE_ROOT", desk.layout.root().to_string())];
    let declared = &adapter.declaration().env;
    let env = crate::settings::pane_environment(&desk.world, desk.settings(), declared, &own);
    let place = Place {
        session_id: record.conversation(),
        cwd: Utf8PathBuf::from(&record.cwd),
        hook_file: desk.layout.hook_file(slug),
        env: Arc::new(env),
    };
    let launched_at = record.launch_began_at();
    let mut watch = Watch::new(adapter.clone(), place, launched_at);
    let pid = record.pid;
    watch.look(&desk.world, pid, title, screen);
    watch.standing()
}
