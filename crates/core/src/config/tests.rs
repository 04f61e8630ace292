use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::key::{KeyRow, Kind, Live, PathFrom};
use super::node::Value;
use super::paths::{Places, is_git_url};
use super::*;

/// Every key with its default and live class, written down once more from the documentation, so that
/// a slip in the types is not copied into the test (CF-44).
fn documented() -> Vec<(&'static str, Json, Live)> {
    use Live::{Never, New, Start, Yes};
    let events = "issues issue_comment pull_request pull_request_review \
                  pull_request_review_comment workflow_run check_run check_suite status";
    let events: Vec<&str> = events.split_whitespace().collect();
    vec![
        ("version", json!(null), Never),
        ("state.root", json!(".the-loop"), Start),
        ("state.inboxRetentionDays", json!(30), Yes),
        ("env.file", json!(""), New),
        ("env.pass", json!([]), New),
        ("routing.enabled", json!(false), Yes),
        ("routing.authorizedUsers", json!([]), Yes),
        (
            "routing.autoExecuteLabel",
            json!("the-loop: auto-execute"),
            Yes,
        ),
        ("routing.spawnOnUnmatched", json!("never"), Yes),
        ("routing.defaultHarness", json!("claude"), Yes),
        ("routing.maxConcurrentDispatches", json!(4), Start),
        ("routing.dispatchTimeoutSeconds", json!(1800), Yes),
        ("routing.registryDir", json!(""), Start),
        ("routing.spawnWorkdir", json!("."), New),
        ("routing.promptTemplate", json!(""), Yes),
        ("routing.spawnPromptTemplate", json!(""), Yes),
        ("routing.interaction.mode", json!("work-item"), New),
        ("routing.reactions.enabled", json!(true), Yes),
        ("routing.reactions.started", json!("eyes"), Yes),
        ("routing.reactions.completed", json!("hooray"), Yes),
        ("routing.reactions.error", json!("confused"), Yes),
        ("routing.attention.afterSeconds", json!(60), Yes),
        ("routing.inbox.onUncertain", json!("hold"), Yes),
        ("routing.announce.enabled", json!(true), Yes),
        ("routing.control.enabled", json!(true), Yes),
        ("routing.control.requireStartCommand", json!(true), Yes),
        (
            "routing.control.keywords.start",
            json!("the-loop start"),
            Yes,
        ),
        ("routing.control.keywords.stop", json!("the-loop stop"), Yes),
        (
            "routing.control.keywords.pause",
            json!("the-loop pause"),
            Yes,
        ),
        (
            "routing.control.keywords.resume",
            json!("the-loop resume"),
            Yes,
        ),
        (
            "routing.control.keywords.execute",
            json!("the-loop execute"),
            Yes,
        ),
        (
            "routing.control.keywords.contribute",
            json!("the-loop contribute"),
            Yes,
        ),
        ("routing.control.keywords.do", json!("the-loop do"), Yes),
        (
            "routing.control.keywords.cleanup",
            json!("the-loop cleanup"),
            Yes,
        ),
        ("routing.tmux.binary", json!("tmux"), Start),
        ("routing.tmux.socketName", json!("the-loop"), Start),
        ("routing.tmux.timeoutSeconds", json!(10.0), Yes),
        ("routing.tmux.typingHoldSeconds", json!(10), Yes),
        ("routing.tmux.unknownPatienceSeconds", json!(120), Yes),
        ("routing.tmux.holdMaxSeconds", json!(300), Yes),
        ("routing.tmux.keepSessionOnClose", json!(true), Yes),
        ("routing.tmux.remainOnExit", json!(true), New),
        ("routing.tmux.killHarnessOnClose", json!(true), Yes),
        ("routing.tmux.harnessKillGraceSeconds", json!(5.0), Yes),
        ("routing.tmux.resumeOnRespawn", json!(true), Yes),
        ("routing.tmux.resumeProbeSeconds", json!(2.0), Yes),
        ("routing.tmux.readyTimeoutSeconds", json!(60), Yes),
        ("routing.tmux.confirmTimeoutSeconds", json!(20), Yes),
        ("routing.tmux.recoverOnStart", json!(true), Start),
        ("routing.workspace.root", json!(""), New),
        ("routing.workspace.strategy", json!("worktree"), New),
        ("routing.workspace.cloneProtocol", json!("https"), New),
        ("routing.workspace.defaultHost", json!("github.com"), Yes),
        ("routing.workspace.keepCheckoutOnClose", json!(false), Yes),
        ("routing.workspace.gitBinary", json!("git"), Start),
        ("routing.repoHarness", json!({}), Yes),
        ("routing.harnesses", json!({}), New),
        ("routing.harnesses.<name>.command", Json::Null, New),
        ("routing.harnesses.<name>.versionArgs", Json::Null, New),
        ("routing.harnesses.<name>.spawn", Json::Null, New),
        ("routing.harnesses.<name>.resume", Json::Null, New),
        ("routing.harnesses.<name>.promptArgs", Json::Null, New),
        ("routing.harnesses.<name>.sessionId", Json::Null, New),
        ("routing.harnesses.<name>.sessionIdPattern", Json::Null, New),
        ("routing.harnesses.<name>.signals.ready", Json::Null, New),
        ("routing.harnesses.<name>.signals.working", Json::Null, New),
        ("routing.harnesses.<name>.signals.waiting", Json::Null, New),
        ("routing.harnesses.<name>.signals.idle", Json::Null, New),
        ("routing.harnesses.<name>.confirm", Json::Null, New),
        ("routing.harnesses.<name>.transcript", Json::Null, New),
        ("routing.harnesses.<name>.composerEmpty", Json::Null, New),
        ("routing.harnesses.<name>.dialogs", Json::Null, New),
        ("routing.harnesses.<name>.dialogs[].name", Json::Null, New),
        ("routing.harnesses.<name>.dialogs[].screen", Json::Null, New),
        ("routing.harnesses.<name>.inlineMaxLines", Json::Null, New),
        ("routing.harnesses.<name>.inlineMaxChars", Json::Null, New),
        ("routing.harnesses.<name>.submitDelayMs", Json::Null, New),
        ("routing.harnesses.<name>.env", Json::Null, New),
        ("routing.harnessArgs", json!({}), New),
        ("routing.harnessTrust.enabled", json!(true), New),
        ("routing.harnessTrust.scope", json!("workspace-root"), New),
        (
            "routing.harnessTrust.acceptBypassPermissions",
            json!("auto"),
            New,
        ),
        ("routing.limits.maxLiveSessions", json!(8), Yes),
        ("routing.limits.minFreeMemoryMb", json!(1024), Yes),
        ("routing.limits.minFreeDiskMb", json!(2048), Yes),
        ("routing.limits.maxDeliveriesPerItemPerHour", json!(60), Yes),
        ("routing.limits.maxDeliveriesPerItemPerDay", json!(300), Yes),
        ("routing.limits.maxTokensPerItem", json!(0), Yes),
        ("routing.limits.maxTokensPerDay", json!(0), Yes),
        ("routing.limits.stallMinutes", json!(20), Yes),
        ("routing.limits.idleStopAfterHours", json!(0.0), Yes),
        ("routing.limits.strictSelfControl", json!(true), Yes),
        ("polling.enabled", json!(false), Start),
        ("polling.intervalSeconds", json!(60), Yes),
        ("polling.maxRetries", json!(3), Yes),
        ("polling.backfillOnStart", json!(true), Start),
        ("polling.sources", json!([]), Yes),
        ("polling.sources[].provider", Json::Null, Yes),
        ("polling.sources[].repos", Json::Null, Yes),
        ("polling.sources[].monitor.issues", Json::Null, Yes),
        ("polling.sources[].monitor.pullRequests", Json::Null, Yes),
        ("polling.sources[].monitor.ci", Json::Null, Yes),
        ("webhooks.ghWebhook.enabled", json!(false), Start),
        ("webhooks.ghWebhook.host", json!("127.0.0.1"), Start),
        ("webhooks.ghWebhook.port", json!(8787), Start),
        ("webhooks.ghWebhook.path", json!("/gh-webhook"), Start),
        (
            "webhooks.ghWebhook.secretEnv",
            json!("THE_LOOP_GH_WEBHOOK_SECRET"),
            Start,
        ),
        ("webhooks.ghWebhook.secretFile", json!(""), Yes),
        ("webhooks.ghWebhook.pidfile", json!(""), Start),
        ("webhooks.ghWebhook.events", json!(events), Yes),
        (
            "integrations.github.apiUrl",
            json!("https://api.github.com"),
            Start,
        ),
        ("integrations.github.tokenFile", json!(""), Yes),
        (
            "integrations.github.tokenEnv",
            json!(["GITHUB_TOKEN", "GH_TOKEN"]),
            Start,
        ),
        ("integrations.github.quotaReservePercent", json!(10), Yes),
        ("integrations.github.app.id", json!(0), Start),
        ("integrations.github.app.installationId", json!(0), Start),
        ("integrations.github.app.privateKeyFile", json!(""), Yes),
        ("integrations.github.cli.binary", json!("gh"), Yes),
        ("integrations.github.hosts", json!({}), Start),
        ("integrations.github.hosts.<host>.apiUrl", Json::Null, Start),
        (
            "integrations.github.hosts.<host>.tokenFile",
            Json::Null,
            Yes,
        ),
        (
            "integrations.github.hosts.<host>.tokenEnv",
            Json::Null,
            Start,
        ),
        (
            "integrations.github.hosts.<host>.quotaReservePercent",
            Json::Null,
            Yes,
        ),
        ("integrations.github.hosts.<host>.app.id", Json::Null, Start),
        (
            "integrations.github.hosts.<host>.app.installationId",
            Json::Null,
            Start,
        ),
        (
            "integrations.github.hosts.<host>.app.privateKeyFile",
            Json::Null,
            Yes,
        ),
        ("integrations.github.cloneUrls", json!({}), New),
        ("tracker.local.repos", json!({}), Yes),
        ("eventLog.enabled", json!(true), Start),
        ("eventLog.path", json!(""), Start),
        ("eventLog.segmentMb", json!(64), Yes),
        ("eventLog.keepSegments", json!(0), Yes),
    ]
}

#[test]
fn cf44_every_key_has_its_documented_default_and_live_class() {
    let rows = Settings::rows();
    let defaults = serde_json::to_value(Settings::default()).unwrap();
    for (path, default, live) in documented() {
        let row = rows.iter().find(|row| row.path == path);
        let row = row.unwrap_or_else(|| panic!("{path} is not in the types"));
        assert_eq!(row.key.live, live, "{path}");
        let pointer = format!("/{}", path.replace('.', "/"));
        // What is below a free name has no default of its own in the document.
        let found = defaults.pointer(&pointer).unwrap_or(&Json::Null);
        assert_eq!(found, &default, "{path}");
    }
    let known: BTreeSet<&str> = documented().iter().map(|(path, ..)| *path).collect();
    for row in &rows {
        assert!(
            known.contains(row.path.as_str()),
            "{} is in no table",
            row.path
        );
        assert!(
            !row.key.doc.trim().is_empty(),
            "{} has no meaning",
            row.path
        );
    }
}

#[test]
fn cf43_every_default_fits_its_own_row() {
    let defaults = serde_json::to_value(Settings::default()).unwrap();
    let below_a_free_name = |row: &KeyRow| row.path.contains('<') || row.path.contains("[]");
    for row in Settings::rows() {
        if below_a_free_name(&row) {
            continue;
        }
        let value = defaults.pointer(&format!("/{}", row.path.replace('.', "/")));
        let value = value.unwrap_or_else(|| panic!("{} is not in the settings", row.path));
        let text = || value.as_str().unwrap_or_else(|| panic!("{}", row.path));
        let fits = match row.key.kind {
            _ if row.path == "version" => value.is_null(),
            Kind::Bool => value.is_boolean(),
            Kind::Int { min, max } => value.as_u64().is_some_and(|n| (min..=max).contains(&n)),
            Kind::Number { min, max } => {
                let range = f64::from(min)..=f64::from(max);
                value.as_f64().is_some_and(|n| range.contains(&n))
            }
            Kind::Text(shape) => (shape.fits)(text()),
            // Unset ones are put below the state root when the settings are settled.
            Kind::Path { .. } => value.is_string(),
            Kind::Choice(words) => words.contains(&text()),
            Kind::List(shape) => value.as_array().is_some_and(|items| {
                items
                    .iter()
                    .all(|item| item.as_str().is_some_and(shape.fits))
            }),
            Kind::Rows { .. } => value.is_array(),
            Kind::Map { .. } | Kind::Section(_) => value.is_object(),
        };
        assert!(fits, "{}: {value}", row.path);
    }
}

#[test]
fn cf12_no_key_is_of_this_and_of_a_later_release_or_gone() {
    for row in Settings::rows() {
        let parts: Vec<String> = row.path.split('.').map(str::to_owned).collect();
        assert_ne!(
            moved::later(&parts),
            Some(moved::Later::Key),
            "{}",
            row.path
        );
        assert_eq!(moved::retired(&row.path, ""), None, "{}", row.path);
    }
}

fn places() -> Places {
    Places {
        base: "/srv/agents".to_owned(),
        file_dir: "/srv/agents/.the-loop".to_owned(),
        home: Some("/home/octo".to_owned()),
    }
}

#[test]
fn cf6_every_path_is_absolute_once_settled() {
    let settled = Settings::default().settled(&places());
    let value = serde_json::to_value(&settled).unwrap();
    for row in Settings::rows() {
        if let Kind::Path { from, .. } = row.key.kind {
            let path = value.pointer(&format!("/{}", row.path.replace('.', "/")));
            // What is below a free name has no value in the defaults.
            let below_a_free_name = row.path.contains('<') || row.path.contains("[]");
            let path = path.and_then(Json::as_str);
            let path = path.unwrap_or_else(|| if below_a_free_name { "" } else { panic!() });
            assert!(
                path.is_empty() || path.starts_with('/'),
                "{}: {path}",
                row.path
            );
            let beside_file = row.path == "env.file" || row.path.ends_with("File");
            assert_eq!(beside_file, from == PathFrom::FileDir, "{}", row.path);
        }
    }
    assert_eq!(settled.state.root, "/srv/agents/.the-loop");
    assert_eq!(settled.routing.registry_dir, "/srv/agents/.the-loop/local");
    assert_eq!(
        settled.event_log.path,
        "/srv/agents/.the-loop/logs/events.jsonl"
    );
    assert_eq!(
        settled.webhooks.gh_webhook.pidfile,
        "/srv/agents/.the-loop/gh-webhook.pid"
    );
    assert_eq!(settled.routing.spawn_workdir, "/srv/agents");
    assert_eq!(settled, settled.clone().settled(&places()));
}

#[test]
fn cf6_where_relative_paths_and_the_home_lead() {
    let mut settings = Settings::default();
    settings.env.file = "agents.env".to_owned();
    settings.webhooks.gh_webhook.secret_file = "./secret".to_owned();
    settings.integrations.github.token_file = "token".to_owned();
    let ghe = GithubHost {
        token_file: "~/ghe".to_owned(),
        ..GithubHost::default()
    };
    let hosts = &mut settings.integrations.github.hosts;
    hosts.insert("ghe.example".to_owned(), ghe);
    settings.routing.workspace.root = "~/agents/".to_owned();
    settings.routing.prompt_template = "prompts/./p.md".to_owned();
    settings.state.root = "~".to_owned();
    let repos = [
        ("o/a", "src/a"),
        ("o/b", "git@host.example:o/b.git"),
        ("o/c", "file:///srv/c"),
        ("o/d", "~/d"),
    ];
    settings.tracker.local.repos = repos.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let settled = settings.settled(&places());
    let github = &settled.integrations.github;
    let beside = &settled.webhooks.gh_webhook.secret_file;
    assert_eq!(github.token_file, beside.replace("secret", "token"));
    let ghe = &github.hosts["ghe.example"].token_file;
    assert!(ghe.starts_with('/') && ghe.ends_with("/ghe"), "{ghe}");
    assert_eq!(settled.env.file, "/srv/agents/.the-loop/agents.env");
    assert_eq!(
        settled.webhooks.gh_webhook.secret_file,
        "/srv/agents/.the-loop/secret"
    );
    assert_eq!(settled.routing.workspace.root, "/home/octo/agents");
    assert_eq!(settled.routing.prompt_template, "/srv/agents/prompts/p.md");
    assert_eq!(settled.state.root, "/home/octo");
    assert_eq!(settled.routing.registry_dir, "/home/octo/local");
    let repos: Vec<&str> = settled
        .tracker
        .local
        .repos
        .values()
        .map(String::as_str)
        .collect();
    let expected = [
        "/srv/agents/src/a",
        "git@host.example:o/b.git",
        "file:///srv/c",
        "/home/octo/d",
    ];
    assert_eq!(repos, expected);
    assert!(!is_git_url("a/b:c") && is_git_url("host:b"));
}

#[test]
fn cf13_logins_that_differ_in_case_are_one() {
    let mut settings = Settings::default();
    settings.routing.authorized_users = ["Octo", "octo", "id:5", "OCTO"].map(str::to_owned).into();
    settings.webhooks.gh_webhook.events = Vec::new();
    let settled = settings.settled(&places());
    assert_eq!(settled.routing.authorized_users, ["Octo", "id:5"]);
    assert_eq!(
        settled.webhooks.gh_webhook.events,
        sections::default_events()
    );
}

#[test]
fn clone_urls_of_a_repository_win_over_those_of_its_host() {
    let mut github = GithubIntegration::default();
    assert_eq!(github.clone_url("github.com", "o", "r"), None);
    let urls = [
        ("github.com", "file:///m/{owner}/{repo}.git"),
        ("github.com/o/special", "/srv/special"),
    ];
    github.clone_urls = urls.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    let url = |owner, repo| github.clone_url("GitHub.com", owner, repo).unwrap();
    assert_eq!(url("o", "r"), "file:///m/o/r.git");
    assert_eq!(url("o", "Special"), "/srv/special");
    assert_eq!(github.clone_url("ghe.example", "o", "r"), None);
    assert!(github.knows_host("github.com") && !github.knows_host("ghe.example"));
}

#[test]
fn cf11_plain_scalars_by_the_core_schema() {
    let text = |s: &str| Value::Text(s.to_owned());
    for (plain, value) in [
        ("", Value::Null),
        ("~", Value::Null),
        ("null", Value::Null),
        ("true", Value::Bool(true)),
        ("True", text("True")),
        ("yes", text("yes")),
        ("12", Value::Int(12)),
        ("-0", Value::Int(0)),
        ("+7", Value::Int(7)),
        ("010", Value::Int(10)),
        ("0o10", Value::Int(8)),
        ("0x1F", Value::Int(31)),
        ("0x", text("0x")),
        ("1_000", text("1_000")),
        ("60s", text("60s")),
        ("1.0.0", text("1.0.0")),
        ("1.5", Value::Number(1.5, "1.5".to_owned())),
        (".5", Value::Number(0.5, ".5".to_owned())),
        ("1e3", Value::Number(1000.0, "1e3".to_owned())),
        (".", text(".")),
        ("e5", text("e5")),
        ("1e", text("1e")),
        ("infinity", text("infinity")),
        ("NaN", text("NaN")),
    ] {
        assert_eq!(Value::plain(plain), value, "{plain}");
    }
    for odd in [".inf", "-.INF", ".nan"] {
        assert!(
            matches!(Value::plain(odd), Value::Number(n, _) if n.is_nan()),
            "{odd}"
        );
    }
    let huge = "9".repeat(60);
    assert!(matches!(Value::plain(&huge), Value::Number(..)));
}

#[test]
fn cf12_the_nearest_name_is_at_most_a_third_away() {
    let known = ["never", "labeled", "always"];
    assert_eq!(nearest("labelled", known), Some("labeled"));
    assert_eq!(nearest("Always", known), Some("always"));
    assert_eq!(nearest("x", known), None);
    assert_eq!(nearest("", known), None);
}

#[test]
fn cf37_versions_compare_part_by_part() {
    assert!(version::parse("1.10.0") > version::parse("1.9.9"));
    assert_eq!(version::parse("01.0.0"), version::parse("1.0.0"));
    for bad in [
        "", "1", "1.0", "1.0.0.0", "v1.0.0", "1.0.x", "1.-1.0", "1..0",
    ] {
        assert_eq!(version::parse(bad), None, "{bad}");
    }
}
