//! `routing` and everything below it.

use std::collections::BTreeMap;

use crate::config::key::{Entry, Kind, PathFrom, choice, section};
use crate::config::sections::Harness;
use crate::config::shape;
use crate::ids::RepoRef;

choice! {
    /// May an event of an item without a session start one?
    SpawnOnUnmatched = Never {
        /// No.
        Never = "never",
        /// When the item carries the arming label.
        Labeled = "labeled",
        /// Yes.
        Always = "always",
    }
}

choice! {
    /// Where an agent asks its questions.
    InteractionMode = WorkItem {
        /// On the ticket.
        WorkItem = "work-item",
        /// In its terminal.
        Cli = "cli",
    }
}

choice! {
    /// What happens to a delivery of which nobody can know whether it was pasted.
    OnUncertain = Hold {
        /// It waits for a person.
        Hold = "hold",
        /// It is pasted again.
        Resend = "resend",
    }
}

choice! {
    /// How a checkout is made.
    Strategy = Worktree {
        /// A worktree of one shared clone.
        Worktree = "worktree",
        /// A clone of its own.
        Clone = "clone",
    }
}

choice! {
    /// How repositories are cloned.
    CloneProtocol = Https {
        /// Over HTTPS.
        Https = "https",
        /// Over SSH.
        Ssh = "ssh",
    }
}

choice! {
    /// What a harness is told to trust.
    TrustScope = WorkspaceRoot {
        /// The workspace root with all below it.
        WorkspaceRoot = "workspace-root",
        /// The one checkout.
        Directory = "directory",
    }
}

choice! {
    /// Whether the harness's warning about skipped permissions is accepted beforehand.
    AcceptBypass = Auto {
        /// Only when `harnessArgs` already ask for it.
        Auto = "auto",
        /// Yes.
        Always = "always",
        /// No.
        Never = "never",
    }
}

section! {
    /// `routing`: what happens with a delivery.
    Routing {
        /// Off: the receiver verifies, logs, and does nothing else; verbs and the embedded tracker work.
        enabled: bool = false, Kind::Bool, Yes;
        /// Who may drive it: logins in any case, `name[bot]` for a bot, or `id:NUMBER`; an empty list admits nobody.
        authorized_users: Vec<String> = Vec::new(), Kind::List(shape::LOGIN), Yes;
        /// The arming label, in any case.
        auto_execute_label: String = "the-loop: auto-execute".to_owned(), Kind::Text(shape::WORD), Yes;
        /// May an event of an item without a session start one?
        spawn_on_unmatched: SpawnOnUnmatched = SpawnOnUnmatched::Never, Kind::Choice(SpawnOnUnmatched::WORDS), Yes;
        /// Harness of new sessions.
        default_harness: String = "claude".to_owned(), Kind::Text(shape::HARNESS), Yes;
        /// Harness of a repository's new sessions: `OWNER/REPO`, or `HOST/OWNER/REPO`, which counts more, to its name.
        repo_harness: BTreeMap<String, String> = BTreeMap::new(), Kind::Map { name: "repository", keys: shape::ANY_REPO, value: Entry::Text(shape::HARNESS), max: 1000 }, Yes;
        /// Dispatches at one time over all items.
        max_concurrent_dispatches: u32 = 4, Kind::Int { min: 1, max: 64 }, Start;
        /// Seconds a whole dispatch may take, clone included.
        dispatch_timeout_seconds: u32 = 1800, Kind::Int { min: 1, max: 86_400 }, Yes;
        /// Directory of the session records; `<state.root>/local` when unset.
        registry_dir: String = String::new(), Kind::Path { from: PathFrom::Base, optional: true }, Start;
        /// Working directory of sessions when no workspace is configured.
        spawn_workdir: String = ".".to_owned(), Kind::Path { from: PathFrom::Base, optional: false }, New;
        /// Template of later prompts; `""` for the built-in one.
        prompt_template: String = String::new(), Kind::Path { from: PathFrom::Base, optional: true }, Yes;
        /// Template of the first prompt; `""` for the built-in one.
        spawn_prompt_template: String = String::new(), Kind::Path { from: PathFrom::Base, optional: true }, Yes;
        /// Where an agent asks.
        interaction: Interaction = Interaction::default(), Kind::Section(Interaction::keys), New;
        /// Emoji reactions.
        reactions: Reactions = Reactions::default(), Kind::Section(Reactions::keys), Yes;
        /// Sessions that wait for a person.
        attention: Attention = Attention::default(), Kind::Section(Attention::keys), Yes;
        /// Accepted deliveries.
        inbox: InboxSettings = InboxSettings::default(), Kind::Section(InboxSettings::keys), Yes;
        /// The comment after a first spawn.
        announce: Announce = Announce::default(), Kind::Section(Announce::keys), Yes;
        /// Commands in comments.
        control: Control = Control::default(), Kind::Section(Control::keys), Yes;
        /// tmux.
        tmux: Tmux = Tmux::default(), Kind::Section(Tmux::keys), Yes;
        /// Checkouts.
        workspace: Workspace = Workspace::default(), Kind::Section(Workspace::keys), New;
        /// Harnesses of your own, and single fields of built-in ones.
        harnesses: BTreeMap<String, Harness> = BTreeMap::new(), Kind::Map { name: "name", keys: shape::HARNESS, value: Entry::Section(Harness::keys), max: 32 }, New;
        /// Arguments for a harness, passed as they are after its own and before the prompt.
        harness_args: BTreeMap<String, Vec<String>> = BTreeMap::new(), Kind::Map { name: "name", keys: shape::HARNESS, value: Entry::List(shape::ARGUMENT), max: 32 }, New;
        /// Trust in checkouts.
        harness_trust: HarnessTrust = HarnessTrust::default(), Kind::Section(HarnessTrust::keys), New;
        /// Limits.
        limits: Limits = Limits::default(), Kind::Section(Limits::keys), Yes;
    }
}

section! {
    /// `routing.interaction`.
    Interaction {
        /// Where an agent asks: on the ticket, or in its terminal.
        mode: InteractionMode = InteractionMode::WorkItem, Kind::Choice(InteractionMode::WORDS), New;
    }
}

section! {
    /// `routing.reactions`.
    Reactions {
        /// Whether comments get emoji reactions.
        enabled: bool = true, Kind::Bool, Yes;
        /// When work on it began; `""` for none.
        started: String = "eyes".to_owned(), Kind::Text(shape::REACTION), Yes;
        /// When it was done; `""` for none.
        completed: String = "hooray".to_owned(), Kind::Text(shape::REACTION), Yes;
        /// When it failed; `""` for none.
        error: String = "confused".to_owned(), Kind::Text(shape::REACTION), Yes;
    }
}

section! {
    /// `routing.attention`.
    Attention {
        /// Seconds a session may wait for a person before that is reported.
        after_seconds: u32 = 60, Kind::Int { min: 0, max: 86_400 }, Yes;
    }
}

section! {
    /// `routing.inbox`.
    InboxSettings {
        /// What happens to a delivery of which a crash makes it unknowable whether it was pasted.
        on_uncertain: OnUncertain = OnUncertain::Hold, Kind::Choice(OnUncertain::WORDS), Yes;
    }
}

section! {
    /// `routing.announce`.
    Announce {
        /// Whether a first spawn is announced on the ticket.
        enabled: bool = true, Kind::Bool, Yes;
    }
}

section! {
    /// `routing.control`.
    Control {
        /// Off: no keyword is read and no start is required.
        enabled: bool = true, Kind::Bool, Yes;
        /// A label alone does not start a session; a recorded stop, pause or cleanup holds either way.
        require_start_command: bool = true, Kind::Bool, Yes;
        /// The keywords.
        keywords: Keywords = Keywords::default(), Kind::Section(Keywords::keys), Yes;
    }
}

section! {
    /// `routing.control.keywords`: what people write; `""` switches one off.
    Keywords {
        /// Starts a session.
        start: String = "the-loop start".to_owned(), Kind::Text(shape::KEYWORD), Yes;
        /// Ends it until somebody starts it again.
        stop: String = "the-loop stop".to_owned(), Kind::Text(shape::KEYWORD), Yes;
        /// Holds its deliveries back.
        pause: String = "the-loop pause".to_owned(), Kind::Text(shape::KEYWORD), Yes;
        /// Lets them through again.
        resume: String = "the-loop resume".to_owned(), Kind::Text(shape::KEYWORD), Yes;
        /// Starts a session and says what to do.
        execute: String = "the-loop execute".to_owned(), Kind::Text(shape::KEYWORD), Yes;
        /// Starts a session that contributes to somebody's pull request.
        contribute: String = "the-loop contribute".to_owned(), Kind::Text(shape::KEYWORD), Yes;
        /// Gives an agent an order.
        r#do: String = "the-loop do".to_owned(), Kind::Text(shape::KEYWORD), Yes;
        /// Gives the item's local resources back.
        cleanup: String = "the-loop cleanup".to_owned(), Kind::Text(shape::KEYWORD), Yes;
    }
}

section! {
    /// `routing.tmux`.
    Tmux {
        /// The tmux program, 3.2 or newer.
        binary: String = "tmux".to_owned(), Kind::Text(shape::WORD), Start;
        /// Socket of the tmux server (`-L`); `""` is the operator's default server.
        socket_name: String = "the-loop".to_owned(), Kind::Text(shape::SOCKET), Start;
        /// Seconds each call of tmux may take.
        timeout_seconds: f64 = 10.0, Kind::Number { min: 1, max: 120 }, Yes;
        /// Seconds since a writable client's last activity during which nothing is pasted.
        typing_hold_seconds: u32 = 10, Kind::Int { min: 0, max: 600 }, Yes;
        /// Seconds that an unanswered probe is asked again before the attempt counts as failed.
        unknown_patience_seconds: u32 = 120, Kind::Int { min: 5, max: 3600 }, Yes;
        /// Seconds after which a held delivery is logged, once; it stays held.
        hold_max_seconds: u32 = 300, Kind::Int { min: 1, max: 86_400 }, Yes;
        /// Keep the tmux session when a session closes.
        keep_session_on_close: bool = true, Kind::Bool, Yes;
        /// Keep a pane whose process ended.
        remain_on_exit: bool = true, Kind::Bool, New;
        /// End the process when the tmux session is kept.
        kill_harness_on_close: bool = true, Kind::Bool, Yes;
        /// Seconds between SIGTERM and SIGKILL; 0 escalates at once.
        harness_kill_grace_seconds: f64 = 5.0, Kind::Number { min: 0, max: 600 }, Yes;
        /// Try to continue the recorded conversation.
        resume_on_respawn: bool = true, Kind::Bool, Yes;
        /// Seconds to wait before believing that a spawn lives; 0 looks at once.
        resume_probe_seconds: f64 = 2.0, Kind::Number { min: 0, max: 60 }, Yes;
        /// Seconds a started harness may take to accept input.
        ready_timeout_seconds: u32 = 60, Kind::Int { min: 1, max: 600 }, Yes;
        /// Seconds a pasted delivery may go unconfirmed.
        confirm_timeout_seconds: u32 = 20, Kind::Int { min: 1, max: 600 }, Yes;
        /// Bring dead sessions back when the daemon starts or their tmux server is gone, not on their next event.
        recover_on_start: bool = true, Kind::Bool, Start;
    }
}

section! {
    /// `routing.workspace`.
    Workspace {
        /// Directory of clones and worktrees; `""` for none.
        root: String = String::new(), Kind::Path { from: PathFrom::Base, optional: true }, New;
        /// How a checkout is made.
        strategy: Strategy = Strategy::Worktree, Kind::Choice(Strategy::WORDS), New;
        /// How repositories are cloned.
        clone_protocol: CloneProtocol = CloneProtocol::Https, Kind::Choice(CloneProtocol::WORDS), New;
        /// Host when a payload names none.
        default_host: String = "github.com".to_owned(), Kind::Text(shape::HOST), Yes;
        /// Keep the checkout on close and stop.
        keep_checkout_on_close: bool = false, Kind::Bool, Yes;
        /// The git program.
        git_binary: String = "git".to_owned(), Kind::Text(shape::WORD), Start;
    }
}

section! {
    /// `routing.harnessTrust`.
    HarnessTrust {
        /// Mark the checkout as trusted in the harness's own settings before a spawn.
        enabled: bool = true, Kind::Bool, New;
        /// What is marked.
        scope: TrustScope = TrustScope::WorkspaceRoot, Kind::Choice(TrustScope::WORDS), New;
        /// Whether the harness's warning about skipped permissions is accepted beforehand; `auto`: only when `harnessArgs` ask for it.
        accept_bypass_permissions: AcceptBypass = AcceptBypass::Auto, Kind::Choice(AcceptBypass::WORDS), New;
    }
}

/// The highest limit on tokens: what a JSON number holds exactly.
const TOKENS_MAX: u64 = (1 << 53) - 1;

section! {
    /// `routing.limits`: 0 switches one off.
    Limits {
        /// Sessions alive at one time; further ones wait in order.
        max_live_sessions: u32 = 8, Kind::Int { min: 0, max: 1000 }, Yes;
        /// MiB of free memory below which nothing is spawned.
        min_free_memory_mb: u64 = 1024, Kind::Int { min: 0, max: u64::from(u32::MAX) }, Yes;
        /// MiB of free disk below which nothing is spawned or checked out.
        min_free_disk_mb: u64 = 2048, Kind::Int { min: 0, max: u64::from(u32::MAX) }, Yes;
        /// Deliveries of one item in an hour; one more parks it.
        max_deliveries_per_item_per_hour: u32 = 60, Kind::Int { min: 0, max: 100_000 }, Yes;
        /// Deliveries of one item in a day; one more parks it.
        max_deliveries_per_item_per_day: u32 = 300, Kind::Int { min: 0, max: 100_000 }, Yes;
        /// Tokens of one item, over all its conversations; reaching it parks the item.
        max_tokens_per_item: u64 = 0, Kind::Int { min: 0, max: TOKENS_MAX }, Yes;
        /// Tokens of all items in a UTC day; reaching it parks the whole machine until the day ends.
        max_tokens_per_day: u64 = 0, Kind::Int { min: 0, max: TOKENS_MAX }, Yes;
        /// Minutes of a turn without transcript growth, output or busy child after which it is reported; never ended.
        stall_minutes: u32 = 20, Kind::Int { min: 0, max: 100_000 }, Yes;
        /// Hours after which the process of an idle session ends; its conversation is kept.
        idle_stop_after_hours: f64 = 0.0, Kind::Number { min: 0, max: 100_000 }, Yes;
        /// Refuse `resume` of a parked item and `cleanup` in a comment written through the shared login during a working turn.
        strict_self_control: bool = true, Kind::Bool, Yes;
    }
}

impl Routing {
    /// The harness of new sessions of a repository: `HOST/OWNER/REPO` counts more than `OWNER/REPO`,
    /// which is the repository of that name on any host and in the embedded tracker.
    pub fn harness_of_repo(&self, repo: &RepoRef) -> &str {
        let whole = repo.key();
        let named = |wanted: &str| {
            let mut entries = self.repo_harness.iter();
            entries
                .find(|(key, _)| key.to_ascii_lowercase() == wanted)
                .map(|(_, harness)| harness.as_str())
        };
        named(&whole)
            .or_else(|| named(&repo.full_name().to_ascii_lowercase()))
            .unwrap_or(&self.default_harness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn di33_a_repository_s_own_harness_goes_over_the_default_and_its_host_counts_more() {
        let mut routing = Routing::default();
        let of = |routing: &Routing, host: &str| {
            let repo = RepoRef::new(host, "Octo", "repo").unwrap();
            routing.harness_of_repo(&repo).to_owned()
        };
        assert_eq!(of(&routing, "github.com"), "claude");
        let named = |repo: &str, name: &str| (repo.to_owned(), name.to_owned());
        routing.repo_harness.extend([named("octo/Repo", "demo")]);
        assert_eq!(of(&routing, "github.com"), "demo");
        assert_eq!(of(&routing, ""), "demo", "the embedded tracker");
        let exact = named("ghe.example/octo/repo", "cursor");
        routing.repo_harness.extend([exact]);
        assert_eq!(of(&routing, "ghe.example"), "cursor");
        assert_eq!(of(&routing, "github.com"), "demo");
    }
}
