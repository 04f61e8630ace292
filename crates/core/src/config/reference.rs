//! `docs/configuration.md`, made from the table of keys (CF-43).

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::key::{Entry, Key, KeyRow, Kind, Live};
use super::{Settings, version};

/// The page.
pub fn markdown() -> String {
    let mut out = INTRODUCTION.replace("{version}", version::CURRENT);
    let defaults = serde_json::to_value(Settings::default()).unwrap_or(Json::Null);
    let rows = Settings::rows();
    let mut sections: Vec<&str> = Vec::new();
    for row in &rows {
        let section = section_of(&row.path);
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    for section in sections {
        if section.is_empty() {
            out.push_str("\n### Top level\n\n");
        } else {
            let _ = write!(out, "\n### `{section}`\n\n");
        }
        out.push_str("| key | type | default | takes effect | meaning |\n|---|---|---|---|---|\n");
        for row in rows.iter().filter(|row| section_of(&row.path) == section) {
            table_row(&mut out, row, &defaults);
        }
    }
    out.push_str(ENV_FILE);
    out
}

fn section_of(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(section, _)| section)
}

fn table_row(out: &mut String, row: &KeyRow, defaults: &Json) {
    let name = row.path.rsplit('.').next().unwrap_or(&row.path);
    let pointer = format!("/{}", row.path.replace('.', "/"));
    let default = match defaults.pointer(&pointer) {
        _ if row.path == "version" => "unset".to_owned(),
        Some(value) => format!("`{}`", plain(value)),
        None => String::new(),
    };
    let meaning = row.key.doc.trim().replace('\n', " ").replace('|', "\\|");
    let _ = writeln!(
        out,
        "| `{name}` | {} | {default} | {} | {meaning} |",
        type_words(&row.key),
        effect(row.key.live),
    );
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) if !text.is_empty() => text.clone(),
        Json::Array(items) if !items.is_empty() => {
            let items: Vec<String> = items.iter().map(plain).collect();
            items.join(" ")
        }
        Json::Number(number) => number
            .as_f64()
            .map_or(number.to_string(), |n| n.to_string()),
        Json::Null | Json::Bool(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
            value.to_string()
        }
    }
}

fn effect(live: Live) -> &'static str {
    match live {
        Live::Yes => "at once",
        Live::New => "for new sessions",
        Live::Start => "after a restart",
        Live::Never => "–",
    }
}

/// The `type` column.
fn type_words(key: &Key) -> String {
    match key.kind {
        Kind::Bool => "bool".to_owned(),
        Kind::Int { min, max } if max == u64::from(u32::MAX) => format!("int ≥ {min}"),
        Kind::Int { min, max } => format!("int {min}–{max}"),
        Kind::Number { min, max } => format!("number {min}–{max}"),
        Kind::Text(shape) => shape.words.to_owned(),
        Kind::Path { .. } => "path".to_owned(),
        Kind::Choice(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(" \\| "),
        Kind::List(shape) => format!("list; each {}", shape.words),
        Kind::Map {
            keys, value, max, ..
        } => {
            let value = match value {
                Entry::Text(shape) => shape.words.to_owned(),
                Entry::List(shape) => format!("a list, each {}", shape.words),
                Entry::Section(_) => "a mapping".to_owned(),
            };
            format!("mapping, at most {max}: {} → {value}", keys.words)
        }
        Kind::Rows { max, .. } => format!("list of mappings, at most {max}"),
        Kind::Section(_) => "mapping".to_owned(),
    }
}

const INTRODUCTION: &str = r#"# Configuration

<!-- Generated from the types of the settings; an edit here is undone. -->

One YAML file configures the daemon and the command line of a machine. A repository that is worked on cannot: a file
in the current directory is used only when git does not track it, it belongs to you and nobody else may write to it.

The first of these is used; without any, the defaults below hold:

1. the file named by `--config`
2. the file named by `THE_LOOP_CLI_CONFIG`
3. `./.the-loop/cli-config.yaml`
4. `~/.the-loop/cli-config.yaml`

`THE_LOOP_STATE_ROOT`, an absolute path, goes over `state.root`; `--registry-dir` goes over `routing.registryDir`.

The smallest file that does something; the webhook's secret is in the variable `THE_LOOP_GH_WEBHOOK_SECRET`:

```yaml
version: {version}
routing:
  enabled: true
  authorizedUsers: [octocat]
  spawnOnUnmatched: labeled
webhooks:
  ghWebhook:
    enabled: true
```

A tracker of your own machine, with the repository that its tickets are about:

```yaml
version: {version}
routing:
  enabled: true
  authorizedUsers: [me]
  defaultHarness: demo
  workspace:
    root: ~/agents
tracker:
  local:
    repos:
      octo/repo: ~/src/repo
```

A further GitHub host, clones from a mirror, and arguments for the agent:

```yaml
version: {version}
env:
  file: agents.env
  pass: [LANGUAGE, "ACME_*"]
routing:
  authorizedUsers: [octocat, "renovate[bot]", "id:583231"]
  workspace:
    root: /srv/agents
    strategy: clone
  harnessArgs:
    claude: [--permission-mode, acceptEdits]
webhooks:
  ghWebhook:
    secretFile: webhook-secret
integrations:
  github:
    hosts:
      ghe.corp.example: {}
    cloneUrls:
      ghe.corp.example: file:///srv/mirror/{owner}/{repo}.git
      github.com/octo/repo: ssh://git@mirror.example/octo/repo.git
```

An agent of your own. The program calls `the-loop hook` when it takes a prompt and when its turn ends; what a harness
cannot show is left out, and `sessions list` marks one that cannot prove that it took a prompt with `*`:

```yaml
version: {version}
routing:
  authorizedUsers: [octocat]
  defaultHarness: claude
  repoHarness:
    octo/tools: helper
  harnesses:
    helper:
      command: helper
      spawn: [--session, "{session_id}"]
      resume: [--continue, "{session_id}"]
      promptArgs: ["{prompt}"]
      sessionId: assigned
      signals:
        ready: hook:Ready
        working: hook:Taken
        idle: hook:Done
      confirm: hook:Taken
      composerEmpty: '^> $'
      dialogs:
        - name: permission
          screen: 'Allow this\? \[y/n\]'
      env:
        HELPER_COLOR: "0"
    claude:
      submitDelayMs: 200
```

The harness of a new session is the one that `sessions start --harness` names, else the one of the ticket's label
`harness:NAME`, else that of `repoHarness`, else `defaultHarness`.

The file is checked strictly: an unknown key, a value of another type or out of range, a key given twice are errors,
each with its line and column, and nothing starts. `the-loop config check` lists all of them, `the-loop config show
--origin` says where each value comes from, `the-loop config schema` prints a JSON schema for your editor.

A path may begin with `~/`. A relative path is taken from the directory of the file, or from its parent when that
directory is itself called `.the-loop`; only `env.file` and `secretFile` are always taken from the file's own directory.

The daemon looks at the file every two seconds and takes a good change over as a whole; with a bad one it goes on as
before and `status` says so. The column *takes effect* says when a changed value is used.

## Keys
"#;

const ENV_FILE: &str = r#"
## The env file

`env.file` holds variables for the daemon and for the agents it starts, one a line:

```sh
# a comment
ACME_TOKEN=abc            # to the end of the line, or to a blank and a #
export ACME_REGION=eu
GREETING="two\nlines"     # \n \t \r \\ \" are escapes
PATTERN='taken as $it is'
EMPTY=
```

Nothing is filled in and nothing is run. A line that fits none of this is skipped and reported by its number. The file
must be text of at most 256 KiB; keep it at mode 600.

When the daemon starts, names that its environment lacks are set from the file. An agent gets `PATH`, `HOME`, `SHELL`,
`LANG`, `LC_*`, `COLORTERM`, `USER`, `LOGNAME`, `TMPDIR`, `SSH_AUTH_SOCK` and `XDG_*` of the daemon's environment, what
`env.pass` names, and everything in the file, which wins; from its terminal it has `TERM`, `TMUX` and `TMUX_PANE`. The
variables that hold the webhook's secrets never reach an agent.

An agent keeps what it was started with. After a change of the file:

```sh
the-loop sessions restart --all --dry-run     # who holds other values
the-loop sessions restart --all               # relaunch them; their conversations go on
```

`status` says in one line when somebody is stale, and a running daemon says so in the event log (`env.drift`) as soon
as the file has changed. Values are never shown, only names and the first 8 hex digits of a value's SHA-256. A
relaunched agent stays in its tmux session, and whoever is attached stays attached; the scrollback of its pane is lost,
because tmux clears it. An agent that was in the middle of its work is told to go on. A program that writes over its own
environment, as some do to change their name in `ps`, shows as `unverified`.
"#;
