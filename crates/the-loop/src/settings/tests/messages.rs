//! CF-12 to CF-14, CF-37, CF-46: the words for what a document may not hold.

use super::document::{checked, only, problems};

#[test]
fn cf12_an_unknown_key_gets_the_nearest_one() {
    only(
        "routing:\n  autoExecuteLable: x\n",
        "F:2:3: unknown key `routing.autoExecuteLable` (did you mean `routing.autoExecuteLabel`?)",
    );
    only(
        "routing:\n  confirmTimeoutSeconds: 3\n",
        "F:2:3: unknown key `routing.confirmTimeoutSeconds` \
         (did you mean `routing.tmux.confirmTimeoutSeconds`?)",
    );
    only(
        "tracker:\n  zzzzzzzz: 1\n",
        "F:2:3: unknown key `tracker.zzzzzzzz` (keys here: local)",
    );
    only(
        "\"a.b\": 1\n",
        "F:1:1: unknown key `\"a.b\"` (keys here: version, state, env, routing, polling, webhooks, \
         integrations, tracker, eventLog)",
    );
}

#[test]
fn cf12_wrong_types_say_what_was_found_and_the_obvious_fix() {
    only(
        "routing:\n  dispatchTimeoutSeconds: \"60s\"\n",
        "F:2:27: `routing.dispatchTimeoutSeconds` must be a whole number, found the string \"60s\" \
         (write 60)",
    );
    for (text, line) in [
        (
            "routing: {dispatchTimeoutSeconds: 5m}",
            "F:1:35: `routing.dispatchTimeoutSeconds` must be a whole number, found the string \"5m\" (write 300)",
        ),
        (
            "routing: {dispatchTimeoutSeconds: 60.0}",
            "F:1:35: `routing.dispatchTimeoutSeconds` must be a whole number, found 60.0 (write 60)",
        ),
        (
            "routing: {dispatchTimeoutSeconds: soon}",
            "F:1:35: `routing.dispatchTimeoutSeconds` must be a whole number, found the string \"soon\"",
        ),
        (
            "routing: {dispatchTimeoutSeconds: [1]}",
            "F:1:35: `routing.dispatchTimeoutSeconds` must be a whole number, found a list",
        ),
        (
            "routing: {tmux: {timeoutSeconds: {}}}",
            "F:1:34: `routing.tmux.timeoutSeconds` must be a number, found a mapping",
        ),
        (
            "routing: {limits: {minFreeDiskMb: 2GB}}",
            "F:1:35: `routing.limits.minFreeDiskMb` must be a whole number, found the string \"2GB\" (write 2048)",
        ),
        (
            "routing: {autoExecuteLabel: 15}",
            "F:1:29: `routing.autoExecuteLabel` must be a string, found 15 (write \"15\")",
        ),
        (
            "routing: {authorizedUsers: octo}",
            "F:1:28: `routing.authorizedUsers` must be a list, found the string \"octo\" (write [octo])",
        ),
        (
            "routing: {authorizedUsers: [octo, 7]}",
            "F:1:35: `routing.authorizedUsers[1]` must be a string, found 7 (write \"7\")",
        ),
        (
            "routing: {tmux: fast}",
            "F:1:17: `routing.tmux` must be a mapping, found the string \"fast\"",
        ),
        (
            "routing: {harnessArgs: {claude: --yolo}}",
            "F:1:33: `routing.harnessArgs.claude` must be a list, found the string \"--yolo\" (write [--yolo])",
        ),
        (
            "state: {root: 5}",
            "F:1:15: `state.root` must be a path, found 5",
        ),
        (
            "- a\n- b\n",
            "F:1:1: the document must be a mapping at the top",
        ),
        (
            "version: 1.0",
            "F:1:10: `version` must be a string, found 1.0",
        ),
    ] {
        only(text, line);
    }
}

#[test]
fn cf12_yes_and_no_are_no_booleans() {
    for (word, fix) in [
        ("yes", "true"),
        ("on", "true"),
        ("no", "false"),
        ("Off", "false"),
        ("True", "true"),
    ] {
        only(
            &format!("routing:\n  enabled: {word}\n"),
            &format!(
                "F:2:12: `routing.enabled` must be true or false, found the string \"{word}\" (write {fix})"
            ),
        );
    }
    only(
        "routing:\n  enabled: 3\n",
        "F:2:12: `routing.enabled` must be true or false, found 3",
    );
}

#[test]
fn cf12_ranges() {
    let port = |value: &str| format!("webhooks:\n  ghWebhook:\n    port: {value}\n");
    for value in [
        "70000",
        "0",
        "-1",
        "340282366920938463463374607431768211455",
    ] {
        let line =
            format!("F:3:11: `webhooks.ghWebhook.port` must be between 1 and 65535, found {value}");
        only(&port(value), &line);
    }
    assert!(problems(&port("65535")).is_empty());
    only(
        "polling: {maxRetries: 0}",
        "F:1:23: `polling.maxRetries` must be at least 1, found 0",
    );
    only(
        "routing: {tmux: {resumeProbeSeconds: 60.5}}",
        "F:1:38: `routing.tmux.resumeProbeSeconds` must be between 0 and 60, found 60.5",
    );
    assert!(problems("routing: {tmux: {resumeProbeSeconds: 0.25}}").is_empty());
    assert_eq!(
        problems("routing: {tmux: {resumeProbeSeconds: .inf}}").len(),
        1
    );
}

#[test]
fn cf12_choices() {
    only(
        "routing:\n  spawnOnUnmatched: labelled\n",
        "F:2:21: `routing.spawnOnUnmatched` must be one of never, labeled, always; found \"labelled\" \
         (did you mean `labeled`?)",
    );
    only(
        "routing:\n  spawnOnUnmatched: 3\n",
        "F:2:21: `routing.spawnOnUnmatched` must be one of never, labeled, always; found 3",
    );
}

#[test]
fn cf12_shapes() {
    for (text, line) in [
        (
            "tracker: {local: {repos: {octo: /srv}}}",
            "F:1:27: the name \"octo\" in `tracker.local.repos` must be OWNER/REPO",
        ),
        (
            "routing: {authorizedUsers: [ok, \"a b\"]}",
            "F:1:33: `routing.authorizedUsers[1]` must be a login, name[bot] or id:NUMBER, found \"a b\"",
        ),
        (
            "webhooks: {ghWebhook: {events: [issue]}}",
            "F:1:33: `webhooks.ghWebhook.events[0]` must be an event the receiver knows, found \"issue\" (did you mean `issues`?)",
        ),
        (
            "webhooks: {ghWebhook: {path: /a?b}}",
            "F:1:30: `webhooks.ghWebhook.path` must be a path that begins with / and has no ?, found \"/a?b\"",
        ),
        (
            "env: {pass: ['*']}",
            "F:1:14: `env.pass[0]` must be the name of a variable or PREFIX_*, found \"*\"",
        ),
        (
            "state: {root: ''}",
            "F:1:15: `state.root` must be a path on one line, absolute, relative or below ~/, found \"\"",
        ),
        (
            "state: {root: ~other/x}",
            "F:1:15: `state.root` must be a path on one line, absolute, relative or below ~/, found \"~other/x\"",
        ),
        (
            "env: {file: \"a\\nb\"}",
            "F:1:13: `env.file` must be \"\" or a path on one line, absolute, relative or below ~/, found \"a\\nb\"",
        ),
        (
            "integrations: {github: {hosts: {'-x': {}}}}",
            "F:1:33: the name \"-x\" in `integrations.github.hosts` must be a host name such as ghe.corp.example",
        ),
        (
            "routing: {reactions: {started: '+2'}}",
            "F:1:32: `routing.reactions.started` must be one of +1, -1, laugh, confused, heart, hooray, rocket, eyes or \"\", found \"+2\" (did you mean `+1`?)",
        ),
    ] {
        let found = problems(text);
        let near = line.replace(" (did you mean `+1`?)", "");
        assert!(
            found == [line] || found == [near.as_str()],
            "{text}\n{found:?}"
        );
    }
}

#[test]
fn cf12_given_twice_is_placed_at_the_second() {
    only(
        "routing:\n  enabled: true\n  announce:\n    enabled: false\n  enabled: false\n",
        "F:5:3: `routing.enabled` is given twice (lines 2 and 5)",
    );
    only(
        "routing: {}\nstate: {}\nrouting:\n  enabled: true\n",
        "F:3:1: `routing` is given twice (lines 1 and 3)",
    );
    only(
        "tracker: {local: {repos: {o/r: /a, o/r: /b}}}",
        "F:1:36: `tracker.local.repos.o/r` is given twice (lines 1 and 1)",
    );
}

#[test]
fn cf13_an_app_has_a_number_and_a_key_or_neither() {
    for (app, missing) in [("id: 7", "privateKeyFile"), ("privateKeyFile: k.pem", "id")] {
        for (text, section) in [
            (
                format!("integrations: {{github: {{app: {{{app}}}}}}}"),
                "integrations.github.app",
            ),
            (
                format!("integrations: {{github: {{hosts: {{ghe.example: {{app: {{{app}}}}}}}}}}}"),
                "integrations.github.hosts.ghe.example.app",
            ),
        ] {
            let lines = problems(&text);
            let words = format!("`{section}` needs `{missing}` as well");
            assert!(lines.len() == 1 && lines[0].contains(&words), "{lines:?}");
        }
    }
}

#[test]
fn cf37_keys_that_are_gone_and_keys_that_are_to_come() {
    only(
        "polling:\n  stateFile: x\n",
        "F:2:3: `polling.stateFile` is no longer a key: the ledger lives under state.root (remove the line)",
    );
    only(
        "routing: {reactions: {ghBinary: gh}}",
        "F:1:23: `routing.reactions.ghBinary` is no longer a key: it is integrations.github.cli.binary now \
         (move it there)",
    );
    only(
        "webhooks:\n  ghWebhook:\n    routing: {enabled: true}\n",
        "F:3:5: `webhooks.ghWebhook.routing` is no longer a key: it is the section routing at the top now \
         (move what is below it to routing)",
    );
    only(
        "service:\n  port: 4114\n",
        "F:2:3: `service.port` is a key of a later release; this one does not read it (remove the line)",
    );
    let lines = problems("service:\n  tls: {certFile: x}\n  prot: 1\n  cors: {}\n");
    assert_eq!(
        lines[0],
        "F:2:9: `service.tls.certFile` is a key of a later release; this one does not read it (remove the line)"
    );
    assert!(
        lines[1].starts_with("F:3:3: unknown key `service.prot`"),
        "{lines:?}"
    );
    assert!(
        lines[2].starts_with("F:4:3: `service.cors` is no longer a key"),
        "{lines:?}"
    );
    for text in [
        "routing: {tmux: {sessionPerPr: always}}",
        "integrations: {github: {hosts: {ghe.corp.example: {caFile: x}}}}",
        "notifications:",
    ] {
        let lines = problems(text);
        assert!(
            lines.len() == 1 && lines[0].contains("of a later release"),
            "{lines:?}"
        );
    }
}

#[test]
fn cf37_versions() {
    only(
        "version: 0.4.0\n",
        "F:1:10: configuration version 0.4.0 is older than 1.0.0 \
         (mend what is named here, then write version: 1.0.0)",
    );
    only(
        "version: 2.0.0\n",
        "F:1:10: configuration version 2.0.0 is newer than this program understands (1.0.0) (upgrade the-loop)",
    );
    only(
        "version: latest\n",
        "F:1:10: `version` must be a version such as 1.0.0, found \"latest\"",
    );
    assert!(problems("version: 1.0.0\n").is_empty());
}

#[test]
fn cf13_two_keywords_that_read_the_same() {
    only(
        "routing:\n  control:\n    keywords:\n      stop: The-Loop  START\n",
        "F:4:7: `routing.control.keywords.stop` is the same keyword as `routing.control.keywords.start`: \
         \"The-Loop  START\"",
    );
    assert!(problems("routing: {control: {keywords: {stop: '', pause: ''}}}").is_empty());
}

#[test]
fn cf14_warnings_of_the_document() {
    let warnings = |text: &str| -> Vec<String> {
        let checked = checked(text);
        assert!(checked.problems.is_empty(), "{:?}", checked.problems);
        checked.warnings.iter().map(|p| p.line("F")).collect()
    };
    assert!(warnings("").is_empty());
    let lines = warnings("routing:\n  enabled: true\n");
    assert!(
        lines[0].starts_with("F:2:3: `routing.authorizedUsers` is empty"),
        "{lines:?}"
    );
    let lines = warnings("webhooks: {ghWebhook: {events: [issue_comment]}}");
    assert!(lines[0].contains("without issues") && lines[1].contains("without pull_request"));
    let lines =
        warnings("routing: {spawnOnUnmatched: always, control: {requireStartCommand: false}}");
    assert_eq!(lines.len(), 1);
}

#[test]
fn cf46_what_may_be_a_secret_is_not_repeated() {
    let lines = problems("webhooks: {ghWebhook: {secretEnv: hunter2-hunter2}}");
    assert!(
        !lines[0].contains("hunter2") && lines[0].contains("not shown"),
        "{lines:?}"
    );
    let lines = problems("webhooks: {ghWebhook: {secret: hunter2}}");
    assert!(
        !lines[0].contains("hunter2") && lines[0].contains("secretFile"),
        "{lines:?}"
    );
    let lines = problems("webhooks: {ghWebhook: {secretFile: [hunter2]}}");
    assert!(!lines[0].contains("hunter2"), "{lines:?}");
    let url = "integrations: {github: {cloneUrls: {github.com: 'https://me:hunter2@h/x'}}}";
    let lines = problems(url);
    assert!(
        lines.len() == 1 && !lines[0].contains("hunter2"),
        "{lines:?}"
    );
    let long = format!("routing: {{defaultHarness: {}}}", "x".repeat(100));
    let lines = problems(&long);
    assert!(
        lines[0].contains(&format!("\"{}…\"", "x".repeat(40))),
        "{lines:?}"
    );
    let lines = problems("routing: {defaultHarness: \"a\\e[31mb\"}");
    assert!(!lines[0].contains('\u{1b}'), "{lines:?}");
}
