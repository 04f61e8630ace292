//! One running agent as the engine sees it: its state, and what it has taken.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use the_loop_core::config::Settings;
use the_loop_core::confirm::{AgentState, By, Composer, Observation};
use the_loop_core::event::LogEvent;
use the_loop_core::ids::{HarnessSessionId, Marker};
use the_loop_core::record::SessionRecord;
use the_loop_core::time::Timestamp;
use the_loop_core::tokens::{self, Step, Usage};

use super::attention::Needs;
use super::item::Gathered;
use super::{Engine, lock};
use crate::harness::adapter::Adapter;
use crate::harness::place::Place;
use crate::harness::screen::ScreenView;
use crate::harness::transcript::Growth;
use crate::harness::watch::Watch;
use crate::settings::{pane_environment, read_env_file};
use crate::tmux::{PaneId, View};
use crate::world::World;

/// A watched session. Rebuilt from its record at any time; remembers nothing that matters.
#[derive(Debug)]
pub(super) struct Agent {
    world: World,
    adapter: Adapter,
    watch: Option<Watch>,
    pid: Option<i32>,
    /// Where it sits, as it was last seen there.
    pub pane: Option<PaneId>,
    /// The record this watches, to notice that it was replaced.
    conversation: String,
    /// The process its record names, to notice that another program relaunched it.
    leader: Option<i32>,
    /// What the supervisor last said about it.
    pub said: Said,
    /// Whether it needs somebody.
    pub needs: Needs,
    /// Tokens of its transcript so far, and those of them that are not in the inbox yet.
    running: Usage,
    steps: Vec<Step>,
}

/// What was told about an agent, so that it is told once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Said {
    pub state: Option<AgentState>,
    pub exited: bool,
    pub malformed: usize,
    pub hooks_silent: bool,
    /// When the conversation's id was looked for last.
    pub learning_at: Option<Timestamp>,
    /// Its pane was not among those of its session at the last look.
    pub out_of_sight: bool,
}

impl Agent {
    fn new(world: &World, adapter: &Adapter, place: Place, record: &SessionRecord) -> Self {
        let launched_at = record.launch_began_at();
        Self {
            world: world.clone(),
            adapter: adapter.clone(),
            watch: Some(Watch::new(adapter.clone(), place, launched_at)),
            pid: record.pid,
            pane: None,
            conversation: record.harness_session_id.clone(),
            leader: record.pid,
            said: Said::default(),
            needs: Needs::default(),
            running: Usage::default(),
            steps: Vec::new(),
        }
    }

    /// Reads what is new, and keeps what has to be told or counted of it.
    fn look(&mut self, title: Option<&str>, screen: Option<&ScreenView>) {
        let Some(watch) = self.watch.as_mut() else {
            return;
        };
        let looked = watch.look(&self.world, self.pid, title, screen);
        self.said.malformed += looked.malformed;
        if looked.restarted {
            self.running = Usage::default();
        }
        for (at, usage) in looked.usage {
            tokens::note(&mut self.steps, &mut self.running, at.day(), usage);
        }
    }

    /// Reads its files, without a look at its pane.
    pub fn last_look(&mut self) {
        self.look(None, None);
    }

    /// The tokens that are not counted yet; they stay until [`Agent::counted`].
    pub fn uncounted(&self) -> &[Step] {
        &self.steps
    }

    /// They are in the inbox.
    pub fn counted(&mut self) {
        self.steps.clear();
    }

    /// The transcript's size and last change.
    pub fn growth(&self) -> Growth {
        self.watch.as_ref().map(Watch::growth).unwrap_or_default()
    }

    /// The state now; a view of the pane makes it more certain.
    pub fn state(&mut self, now: Timestamp, view: Option<&View>) -> AgentState {
        self.observe(now, view, None)
            .map_or(AgentState::Unknown, |observation| observation.state)
    }

    /// The state with its source and age.
    pub fn observe(
        &mut self,
        now: Timestamp,
        view: Option<&View>,
        title: Option<&str>,
    ) -> Option<Observation> {
        let screen = view.map(|view| screen(view, now));
        if let Some(view) = view {
            self.pid = Some(view.pane.pid);
        }
        self.look(title, screen.as_ref());
        self.watch.as_ref()?.state()
    }

    /// The state as it was last seen, with the first one to say so and since when it stands.
    pub fn standing(&self) -> Option<Observation> {
        self.watch.as_ref()?.standing()
    }

    /// The id of its conversation, when it is not known and shows now.
    pub fn learn(
        &mut self,
        now: Timestamp,
        view: Option<&View>,
        taken: &[HarnessSessionId],
        rivals: &[Timestamp],
    ) -> Option<HarnessSessionId> {
        let screen = view.map(|view| screen(view, now));
        let watch = self.watch.as_mut()?;
        watch.look(&self.world, self.pid, None, None);
        watch.learn(&self.world, screen.as_ref(), taken, rivals)
    }

    /// The conversation is known, and recorded, from now on.
    pub fn learnt(&mut self, id: HarnessSessionId) {
        id.as_str().clone_into(&mut self.conversation);
        if let Some(watch) = &mut self.watch {
            watch.learnt(id);
        }
    }

    /// The known dialog on its screen, when that was looked at last.
    pub fn dialog(&self) -> Option<String> {
        self.watch.as_ref()?.dialog().map(str::to_owned)
    }

    /// Evidence that a delivery with this marker was taken after the attempt was written down.
    pub fn evidence(&mut self, marker: &Marker, intent_at: Timestamp) -> Option<By> {
        self.look(None, None);
        let watch = self.watch.as_ref()?;
        watch.evidence(marker, intent_at).map(|seen| seen.by)
    }

    /// What the composer holds.
    pub fn composer(&self, view: &View, now: Timestamp, marker: Option<&Marker>) -> Composer {
        self.adapter.composer(&screen(view, now), marker)
    }

    /// Could the transcript be read to its end at the last look?
    pub fn transcript_read(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::transcript_read)
    }

    /// Does the transcript hold this marker anywhere, also where it proves nothing?
    pub fn mentions(&self, marker: &Marker) -> bool {
        self.watch
            .as_ref()
            .is_some_and(|watch| watch.mentions(&self.world, marker))
    }

    /// Is there a conversation to take up? `None` when that cannot be told.
    pub fn has_transcript(&self) -> Option<bool> {
        self.watch.as_ref()?.has_transcript(&self.world)
    }

    /// When the newest turn began.
    pub fn last_turn_at(&self) -> Option<Timestamp> {
        self.watch.as_ref().and_then(Watch::last_turn_at)
    }

    /// Does this harness report through hooks?
    pub fn hooks_heard(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::hooks_heard)
    }
}

pub(super) fn screen(view: &View, now: Timestamp) -> ScreenView {
    ScreenView::parse(&view.text, &view.pane.title, view.pane.dead, now)
}

impl Engine {
    /// The agent of an item; watched anew when its record names another conversation or process.
    pub(super) fn agent(&self, gathered: &Gathered, adapter: &Adapter) -> Arc<Mutex<Agent>> {
        let mut agents = lock(&self.0.agents);
        if let (Some(agent), Some(record)) = (agents.get(&gathered.key), gathered.record.as_ref()) {
            let mut watched = lock(agent);
            let is_new = watched.leader.is_some() && record.pid.is_some();
            let same_process = !is_new || watched.leader == record.pid;
            if watched.conversation == record.harness_session_id
                && same_process
                && watched.watch.is_some()
            {
                watched.leader = watched.leader.or(record.pid);
                drop(watched);
                return agent.clone();
            }
        }
        let agent = Arc::new(Mutex::new(self.watch(gathered, adapter)));
        agents.insert(gathered.key.clone(), agent.clone());
        agent
    }

    /// Begins to watch anew: another process is in the pane.
    pub(super) fn fresh_agent(&self, gathered: &Gathered, adapter: &Adapter) -> Arc<Mutex<Agent>> {
        let agent = Arc::new(Mutex::new(self.watch(gathered, adapter)));
        lock(&self.0.agents).insert(gathered.key.clone(), agent.clone());
        agent
    }

    fn watch(&self, gathered: &Gathered, adapter: &Adapter) -> Agent {
        let layout = &self.0.parts.layout;
        match &gathered.record {
            Some(record) => {
                let place = Place {
                    session_id: record.conversation(),
                    cwd: Utf8PathBuf::from(&record.cwd),
                    hook_file: layout.hook_file(&gathered.slug),
                    env: Arc::new(self.pane_env(gathered, adapter)),
                };
                Agent::new(self.world(), adapter, place, record)
            }
            None => Agent {
                world: self.world().clone(),
                adapter: adapter.clone(),
                watch: None,
                pid: None,
                pane: None,
                conversation: String::new(),
                leader: None,
                said: Said::default(),
                needs: Needs::default(),
                running: Usage::default(),
                steps: Vec::new(),
            },
        }
    }

    /// The whole environment of the item's pane (CF-33).
    pub(super) fn pane_env(
        &self,
        gathered: &Gathered,
        adapter: &Adapter,
    ) -> BTreeMap<String, String> {
        pane_environment(
            self.world(),
            &gathered.settings,
            &adapter.env(self.world(), &self.0.parts.layout.mail_dir(&gathered.slug)),
            &self.own_names(&gathered.item),
        )
    }

    /// Tells what of the agents' environment file cannot be used: a pane starts without it.
    pub(super) fn say_env_file(&self, settings: &Settings) {
        let (error, lines) = match read_env_file(self.world(), settings) {
            Ok((file, _)) if file.bad_lines.is_empty() => return,
            Ok((file, _)) => {
                let lines = file.bad_lines.iter().map(|line| *line as u64).collect();
                ("lines that are not NAME=VALUE".to_owned(), Some(lines))
            }
            Err(fault) => (fault.to_string(), None),
        };
        self.emit(LogEvent::EnvUnusable {
            path: settings.env.file.clone(),
            error,
            lines,
        });
    }

    /// Our own four names, set last in every pane (DI-20).
    pub(super) fn own_names(
        &self,
        item: &the_loop_core::ids::WorkItemRef,
    ) -> Vec<(&'static str, String)> {
        let parts = &self.0.parts;
        let mut names = vec![
            ("THE_LOOP_INSTANCE", parts.instance.clone()),
            ("THE_LOOP_WORK_ITEM", item.to_string()),
            ("THE_LOOP_STATE_ROOT", parts.layout.root().to_string()),
        ];
        if let Some(path) = parts.settings.path() {
            names.push(("THE_LOOP_CLI_CONFIG", path.to_string()));
        }
        names
    }
}
