//! What each field means, and the sample of it in examples (events page, section 5).

/// Name, sample text, meaning. Words of closed lists take their first word as sample.
pub(super) const FIELDS: &[(&str, &str, &str)] = &[
    (
        "work_item",
        "github:octo/repo#15",
        "canonical ref of the work item",
    ),
    (
        "work_items",
        "github:octo/repo#15",
        "canonical refs of the work items",
    ),
    (
        "endpoint",
        "github:octo/repo#16",
        "the pull request whose own session is meant",
    ),
    (
        "delivery_id",
        "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "id of the delivery in the inbox",
    ),
    (
        "first_delivery_id",
        "1f0a4c52-cc78-11e3-9d2c-6d1d6b0f8a31",
        "id under which it was accepted first",
    ),
    ("ingress", "", "the way in"),
    ("closed_as", "", "how the item ended"),
    (
        "gh_event",
        "issue_comment",
        "event name; the embedded tracker uses the same names",
    ),
    ("action", "created", "action name"),
    ("actor", "mona", "login, or operating-system user"),
    ("harness", "claude", "name of the coding-agent program"),
    (
        "harness_session_id",
        "0195c1c2-7d3e-7aa0-8f0e-5a1b9c3d2e10",
        "id of its conversation",
    ),
    (
        "tmux_target",
        "loop-github-octo-repo-15",
        "name of the tmux session",
    ),
    (
        "cwd",
        "/home/mona/work/octo/repo-15",
        "directory the harness runs in",
    ),
    (
        "checkout",
        "/home/mona/work/octo/repo-15",
        "directory of the checkout",
    ),
    (
        "branch",
        "loop/github-octo-repo-15",
        "branch of the checkout",
    ),
    ("reason", "", "why, from the closed list of the event"),
    ("via", "", "how it came about"),
    ("by", "", "what told"),
    ("effect", "", "what it did"),
    ("outcome", "", "how it ended"),
    ("next", "", "what follows"),
    (
        "error",
        "cannot connect: connection refused",
        "what failed; redacted, at most 2,000 characters",
    ),
    ("will_retry", "false", "it is tried again by itself"),
    ("attempts", "5", "how often it was tried"),
    ("waited_ms", "1840", "how long it took, milliseconds"),
    ("bytes", "67108911", "size in bytes"),
    ("count", "3", "how many"),
    ("what", "", "which comment"),
    (
        "retry_at",
        "2026-03-01T09:13:14.000Z",
        "when it is tried again",
    ),
    ("since", "2026-03-01T09:10:02.117Z", "from when on"),
    ("host", "127.0.0.1", "host name or address"),
    (
        "path",
        "/home/mona/.the-loop/local/inbox.db",
        "file, or path of a URL",
    ),
    (
        "file",
        "local/sessions/github-octo-repo-15.json",
        "file, relative to the root",
    ),
    ("version", "1.0.0", "version of the program"),
    ("command", "", "the command"),
    ("commands", "", "the commands"),
    ("verified", "true", "a signature was checked"),
    ("secret", "1", "which of two secrets matched, from 1"),
    ("status", "401", "HTTP status answered"),
    (
        "content_key",
        "github/github.com/comment/IC_kwDO1/created",
        "identity of what the delivery tells",
    ),
    ("seq", "1042", "number of the delivery in the inbox"),
    (
        "intent_at",
        "2026-03-01T09:12:40.002Z",
        "when the intent to send was written",
    ),
    ("was", "abandoned", "state before"),
    ("note", "wrong ticket", "the operator's words"),
    ("records", "0", "session records found beside it"),
    ("from", "1", "version before"),
    ("to", "2", "version after"),
    ("backup", "local/inbox.db.v1.bak", "copy of what was before"),
    (
        "before",
        "2026-02-01T00:00:00.000Z",
        "older ones were removed",
    ),
    ("labeled", "true", "the ticket carries the label"),
    (
        "link_incomplete",
        "true",
        "the pull request could not be read",
    ),
    ("spawn", "true", "there is no session yet"),
    ("suspect_self", "true", "may be the agent's own comment"),
    ("state", "", "state, from the closed list of the event"),
    ("content", "eyes", "the reaction"),
    ("target", "IC_kwDO1", "id of the comment or ticket"),
    ("replied", "true", "a comment says so"),
    ("replaced", "true", "another session was bound before"),
    ("resume", "false", "an earlier conversation is taken up"),
    ("resumed", "true", "the conversation is the same"),
    ("runner", "", "what hosts the session"),
    ("interaction", "", "where the agent asks its people"),
    (
        "remedy",
        "tmux kill-session -t =loop-github-octo-repo-15",
        "what an operator can do",
    ),
    (
        "tail",
        "claude: command not found",
        "last lines of the pane: at most 20, 2,000 characters, redacted",
    ),
    ("kind", "", "kind, from the closed list of the event"),
    (
        "summary",
        "May I run cargo test?",
        "what it waits for; redacted, at most 200 characters",
    ),
    ("exit_code", "1", "exit status of the harness"),
    ("expected", "false", "it was asked to end"),
    ("merged", "false", "the pull request was merged"),
    (
        "pull_request",
        "github:octo/repo#16",
        "ref of a pull request that belongs to the item",
    ),
    (
        "closed_ref",
        "github:octo/repo#16",
        "ref of what was closed",
    ),
    (
        "moved_to",
        "https://github.com/octo/other/issues/7",
        "where a transferred item went",
    ),
    ("ok", "true", "it worked"),
    (
        "stale",
        "GITHUB_TOKEN",
        "names of variables of which it holds another value than the env file",
    ),
    (
        "names",
        "GITHUB_TOKEN",
        "names of environment variables, never values",
    ),
    ("strategy", "", "how the checkout is made"),
    ("applied", "claude.trusted", "settings that were written"),
    (
        "bundle",
        "local/saved/github-octo-repo-15/20260301T091244Z.bundle",
        "the saved work",
    ),
    ("commits", "2", "commits saved"),
    ("files", "5", "changed files saved"),
    ("why", "", "what was about to remove the checkout"),
    ("limit", "60", "the bound"),
    ("value", "61", "what was counted"),
    ("idle_hours", "12", "whole hours since its last turn"),
    ("told", "true", "a comment on the ticket says so"),
    ("lines", "4", "line numbers"),
    ("hooks", "Stop", "hook names"),
    ("socket", "the-loop", "name of the tmux socket"),
    ("operation", "list-sessions", "what was asked"),
    ("root", "/home/mona/.the-loop", "directory of the state"),
    ("services", "engine", "tasks of the daemon"),
    (
        "config",
        "/home/mona/.the-loop/cli-config.yaml",
        "configuration file",
    ),
    ("previous_pid", "4102", "process of the last run"),
    ("starting", "1", "sessions whose start was under way"),
    ("sending", "1", "deliveries whose sending was under way"),
    ("queued", "4", "deliveries that wait"),
    ("holder", "4102", "process that holds the lock"),
    ("uptime_s", "86400", "length of the run, seconds"),
    ("port", "8477", "TCP port"),
    ("routing", "true", "requests are routed, not only seen"),
    (
        "verifying_signatures",
        "true",
        "unsigned requests are refused",
    ),
    ("service", "", "the task"),
    (
        "changed",
        "routing.maxConcurrentDispatches",
        "key paths that changed",
    ),
    (
        "restart_required",
        "webhooks.ghWebhook.port",
        "changed key paths that need a restart",
    ),
    ("line", "12", "line number"),
    ("schema", "3", "version of the file"),
    ("known", "1", "latest version this program knows"),
    (
        "previous",
        "events-20260301T091244318Z.jsonl",
        "name of the segment before",
    ),
    ("base", "67108911", "bytes in all earlier segments"),
    ("change", "", "what changed"),
];

/// What a field means; empty for one that no event of this version has.
pub fn meaning(name: &str) -> &'static str {
    row(name).map_or("", |(_, _, meaning)| meaning)
}

/// The sample text of a field.
pub(super) fn sample(name: &str) -> &'static str {
    row(name).map_or("", |(_, sample, _)| sample)
}

fn row(name: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    FIELDS.iter().find(|(known, _, _)| *known == name)
}
