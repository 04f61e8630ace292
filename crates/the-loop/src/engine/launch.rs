//! What a launch and a prompt are made of.

use camino::{Utf8Path, Utf8PathBuf};
use the_loop_core::delivery::State;
use the_loop_core::dispatch::Launch;
use the_loop_core::event::{DispatchDropReason as DropReason, LogEvent};
use the_loop_core::guard::AuthorizedUsers;
use the_loop_core::ids::TmuxTarget;
use the_loop_core::prompt::{InlineLimits, Nonce, Occasion, TEMPLATE_BYTES_MAX, Telling, Way};
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;

use super::Engine;
use super::item::{Gathered, Job};
use super::perform::Performer;
use crate::harness::adapter::{Adapter, LaunchContext};
use crate::process::ProcessId;
use crate::store::inbox::{ListFilter, States};
use crate::tmux::Tmux;

impl Engine {
    /// The tmux session of an item: the recorded one, else the one its slug gives (ST-7).
    pub(super) fn target_of(gathered: &Gathered) -> TmuxTarget {
        gathered
            .live()
            .and_then(|record| TmuxTarget::parse(&record.tmux_target))
            .unwrap_or_else(|| gathered.slug.target())
    }

    /// Settings, hooks and pre-answers of the harness, before a launch (DI-35).
    pub(super) fn prepare_harness(
        &self,
        gathered: &Gathered,
        adapter: &Adapter,
    ) -> Result<(), String> {
        let record = gathered
            .record
            .as_ref()
            .ok_or("there is no session record")?;
        let prepared = self.with_context(gathered, record, adapter, |context| {
            adapter.prepare(context)
        });
        let prepared = prepared.map_err(|e| e.to_string())?;
        let (work_item, harness) = (gathered.item.clone(), adapter.name().to_owned());
        match prepared.trust {
            Ok(applied) if applied.is_empty() => {}
            Ok(applied) => self.emit(LogEvent::WorkspaceTrusted {
                work_item: work_item.clone(),
                harness: harness.clone(),
                cwd: record.cwd.clone(),
                applied,
            }),
            Err(error) => self.emit(LogEvent::WorkspaceTrustFailed {
                work_item: work_item.clone(),
                harness: harness.clone(),
                cwd: record.cwd.clone(),
                error: error.to_string(),
            }),
        }
        self.emit(LogEvent::HookInstalled {
            work_item,
            endpoint: None,
            harness,
            hooks: prepared.hooks,
        });
        Ok(())
    }

    /// Program and arguments of a launch.
    pub(super) fn launch_argv(
        &self,
        gathered: &Gathered,
        record: &SessionRecord,
        adapter: &Adapter,
        launch: Launch,
        prompt: Option<&str>,
    ) -> Result<Vec<String>, String> {
        if record.conversation().is_none() && (launch == Launch::Resume || adapter.assigns_id()) {
            return Err("the conversation has no id".to_owned());
        }
        Ok(
            self.with_context(gathered, record, adapter, |context| match launch {
                Launch::Fresh => adapter.spawn_argv(context, prompt),
                Launch::Resume => adapter.resume_argv(context, prompt),
            }),
        )
    }

    fn with_context<T>(
        &self,
        gathered: &Gathered,
        record: &SessionRecord,
        adapter: &Adapter,
        use_it: impl FnOnce(&LaunchContext<'_>) -> T,
    ) -> T {
        let layout = &self.0.parts.layout;
        let settings = &gathered.settings;
        let session_id = record.conversation();
        let args = settings
            .routing
            .harness_args
            .get(adapter.name())
            .cloned()
            .unwrap_or_default();
        let (settings_file, mail_dir) = (
            layout.hook_settings(&gathered.slug),
            layout.mail_dir(&gathered.slug),
        );
        let workspace_root = &settings.routing.workspace.root;
        use_it(&LaunchContext {
            world: self.world(),
            slug: &gathered.slug,
            session_id: session_id.as_ref(),
            cwd: Utf8Path::new(&record.cwd),
            workspace_root: (!workspace_root.is_empty()).then(|| Utf8Path::new(workspace_root)),
            settings_file: &settings_file,
            mail_dir: &mail_dir,
            harness_args: &args,
            pane_env: &self.pane_env(gathered, adapter),
            trust: &settings.routing.harness_trust,
        })
    }

    /// What is pasted for a delivery; a long or foreign prompt goes into its mail file first (DI-25).
    pub(super) fn text_to_paste(
        &self,
        performer: &Performer<'_>,
        job: &Job,
    ) -> Result<String, String> {
        let occasion = self.occasion_of_paste(performer);
        self.text(
            &performer.gathered,
            &performer.adapter,
            job,
            occasion,
            Way::Paste,
        )
    }

    /// What a launch carries as its last argument.
    pub(super) fn text_as_argument(
        &self,
        performer: &Performer<'_>,
        job: &Job,
        launch: Launch,
    ) -> Result<String, String> {
        let occasion = self.occasion_of_launch(performer, launch);
        self.text(
            &performer.gathered,
            &performer.adapter,
            job,
            occasion,
            Way::Argument,
        )
    }

    fn occasion_of_launch(&self, performer: &Performer<'_>, launch: Launch) -> Occasion {
        let had_conversation = performer
            .before
            .as_ref()
            .is_some_and(|before| before.status.is_live() && before.spawn.is_none());
        match launch {
            Launch::Resume => Occasion::Event {
                thread_moved: self.thread_moved(&performer.gathered),
            },
            Launch::Fresh => Occasion::Spawn {
                replaces_lost: had_conversation,
            },
        }
    }

    /// A harness whose launch carries no prompt is told by its first paste what a launch would have told
    /// it, also when that paste came to a later dispatch.
    fn occasion_of_paste(&self, performer: &Performer<'_>) -> Occasion {
        let never_told = |record: &SessionRecord| record.recent_deliveries.is_empty();
        let never_told = performer.gathered.live().is_some_and(never_told);
        match performer.told_by_launch {
            Some(launch) => self.occasion_of_launch(performer, launch),
            None if never_told && !performer.adapter.carries_prompt(Launch::Fresh) => {
                Occasion::Spawn {
                    replaces_lost: false,
                }
            }
            None => Occasion::Event {
                thread_moved: self.thread_moved(&performer.gathered),
            },
        }
    }

    /// Did a pause swallow deliveries since the agent's last prompt? Then it is told to read the thread,
    /// for nothing is replayed (IN-27).
    fn thread_moved(&self, gathered: &Gathered) -> bool {
        let filter = ListFilter {
            item: Some(gathered.key.clone()),
            states: States::All,
            since: None,
            limit: Some(50),
        };
        let rows = self.0.parts.inbox.list(&filter).unwrap_or_default();
        rows.iter()
            .rev()
            .take_while(|row| row.state != State::Confirmed)
            .any(|row| row.reason.as_deref() == Some(DropReason::SessionPaused.as_str()))
    }

    fn text(
        &self,
        gathered: &Gathered,
        adapter: &Adapter,
        job: &Job,
        occasion: Occasion,
        way: Way,
    ) -> Result<String, String> {
        let marker = job.marker.as_ref().ok_or("the delivery has no marker")?;
        let settings = &gathered.settings;
        let path = match occasion {
            Occasion::Spawn { .. } => &settings.routing.spawn_prompt_template,
            Occasion::Event { .. } => &settings.routing.prompt_template,
        };
        let template = self.template(path);
        let authorized = AuthorizedUsers::new(&settings.routing.authorized_users);
        let prompt = Telling {
            marker,
            item: &gathered.item,
            delivery: &job.delivery,
            occasion,
            interaction: settings.routing.interaction.mode,
            authorized: &authorized,
            nonce: Nonce::from_bytes(self.world().ids.bytes()),
            template: template.as_deref(),
        }
        .prompt();
        let declared = adapter.declaration();
        let limits = InlineLimits {
            lines: declared.inline_lines_max,
            chars: declared.inline_chars_max,
        };
        let mail = self.0.parts.layout.mail(&gathered.slug, job.seq);
        let sending = prompt.sending(way, limits, mail.as_str());
        if let Some(whole) = &sending.mail {
            let disk = &self.world().disk;
            let dir = mail.parent().unwrap_or(&mail);
            disk.create_dir_all(dir)
                .and_then(|()| disk.write_atomic(&mail, whole.as_bytes(), true))
                .map_err(|e| format!("cannot write the mail file: {e}"))?;
        }
        Ok(sending.text)
    }

    /// An operator's own prompt text; the built-in one stands in for a file that cannot be used (IN-65).
    fn template(&self, path: &str) -> Option<String> {
        if path.is_empty() {
            return None;
        }
        let real = self.world().disk.canonicalize(Utf8Path::new(path));
        let read = real.and_then(|real| self.world().disk.read(&real, TEMPLATE_BYTES_MAX));
        if let Ok(Ok(text)) = read.map(String::from_utf8) {
            Some(text)
        } else {
            tracing::warn!(
                path,
                "the prompt template cannot be used; the built-in text is"
            );
            None
        }
    }

    /// The record of a live session that lost it, rebuilt from what its own process shows (DI-23).
    pub(super) fn record_of(
        &self,
        gathered: &Gathered,
        process: ProcessId,
        target: &TmuxTarget,
        tmux: &Tmux,
    ) -> Option<SessionRecord> {
        let processes = &self.world().processes;
        let argv = processes.argv(process.pid);
        let adapter = self
            .adapters(&gathered.settings)
            .of_argv(self.world(), &argv)?;
        let id = adapter.id_in_argv(&argv);
        if id.is_none() && adapter.assigns_id() {
            return None;
        }
        let cwd: Utf8PathBuf = processes.cwd(process.pid)?;
        let now = self.world().clock.now();
        let mut record = SessionRecord::new(
            &gathered.item,
            adapter.name(),
            cwd.as_str(),
            SessionStatus::Active,
            now,
        );
        record.harness_session_id = id.map_or_else(String::new, |id| id.as_str().to_owned());
        record.tmux_target = target.to_string();
        record.tmux_socket = Some(tmux.socket().to_owned());
        Some(record)
    }
}
