//! CF-11, CF-43, CF-44, SE-12: what a document may be, and what is made from the table of keys.

use proptest::prelude::*;
use the_loop_core::config::Settings;
use the_loop_core::config::check::{Checked, check};
use the_loop_core::config::node::{Member, Value};

use crate::settings::yaml::parse;

pub(super) fn checked(text: &str) -> Checked {
    let document = parse(text.as_bytes());
    check(document.root.as_ref(), document.problems, true)
}

pub(super) fn problems(text: &str) -> Vec<String> {
    checked(text).problems.iter().map(|p| p.line("F")).collect()
}

#[track_caller]
pub(super) fn only(text: &str, line: &str) {
    assert_eq!(problems(text), [line], "{text}");
}

#[test]
fn cf11_nothing_there_is_empty_for_a_mapping_and_an_error_else() {
    assert!(problems("routing:\nwebhooks:\n  ghWebhook:\nstate: ~\n").is_empty());
    assert!(problems("").is_empty() && problems("# only a comment\n").is_empty());
    only(
        "webhooks:\n  ghWebhook:\n    path:\n",
        "F:3:5: `webhooks.ghWebhook.path` has no value (remove the line to use the default /gh-webhook)",
    );
    only(
        "routing:\n  authorizedUsers:\n",
        "F:2:3: `routing.authorizedUsers` has no value (remove the line to use the default)",
    );
    only(
        "webhooks: {ghWebhook: {port: null}}",
        "F:1:24: `webhooks.ghWebhook.port` has no value (remove the line to use the default 8787)",
    );
    only(
        "routing: {harnessArgs: {claude: }}",
        "F:1:25: `routing.harnessArgs.claude` has no value (remove the line)",
    );
}

#[test]
fn cf11_what_yaml_has_and_a_configuration_has_not() {
    for (text, line) in [
        ("routing: !x {}\n", "F:1:13: tags are not read"),
        (
            "a: &a {}\nrouting:\n  <<: *a\n",
            "F:3:3: merge keys (`<<`) are not read",
        ),
        (
            "state: {}\n---\nstate: {}\n",
            "F:2:1: a second document begins here; only one is read",
        ),
        ("state: *nothing\n", "F:1:8: not valid YAML: "),
        ("state: {root: [\n", "F:1:15: not valid YAML: "),
        ("state:\n\troot: x\n", "F:2:2: not valid YAML: "),
        (
            "? [a]\n: b\n",
            "F:1:3: the name of a value must be plain text",
        ),
    ] {
        let lines = problems(text);
        assert!(
            lines.iter().any(|l| l.starts_with(line)),
            "{text}\n{lines:?}"
        );
    }
    let deep = format!("routing: {}{}", "[".repeat(80), "]".repeat(80));
    assert!(
        problems(&deep)
            .iter()
            .any(|l| l.contains("deeper than 64 levels")),
        "{deep}"
    );
    let many = format!("env: {{pass: [{}]}}", "A,".repeat(10_001));
    assert!(
        problems(&many)
            .iter()
            .any(|l| l.contains("more than 10,000 values"))
    );
    let aliases = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                   c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n";
    assert!(
        problems(aliases)
            .iter()
            .any(|l| l.contains("more than 10,000 values"))
    );
    let own = problems("env: &e\n  pass: [*e]\n");
    assert!(
        own.iter().any(|l| l.contains("inside what it names")),
        "{own:?}"
    );
    let large = "#".repeat((1 << 20) + 1);
    only(&large, "F:1:1: the document is larger than 1 MiB");
    let binary = parse(b"state:\n  root: \"\xff\"\n");
    let lines: Vec<String> = binary.problems.iter().map(|p| p.line("F")).collect();
    assert_eq!(lines, ["F:2:10: not valid YAML: this is not UTF-8 text"]);
}

#[test]
fn cf11_anchors_are_filled_in() {
    let text = "routing:\n  harnessArgs:\n    claude: &args [--a, --b]\n    demo: *args\n";
    let checked = checked(text);
    assert!(checked.problems.is_empty());
    assert_eq!(
        checked.settings.routing.harness_args["demo"],
        ["--a", "--b"]
    );
}

#[test]
fn cf12_all_problems_in_file_order_and_at_most_fifty() {
    let text = "version: 3.0.0\nrouting:\n  enabled: no\n  zzz: 1\nstate:\n  root: 3\n";
    let places: Vec<u32> = checked(text)
        .problems
        .iter()
        .map(|p| p.pos.unwrap().line)
        .collect();
    assert_eq!(places, [1, 3, 4, 6]);
    let many: Vec<String> = (0..80).map(|n| format!("zzzzzzzz{n}: 1\n")).collect();
    assert_eq!(problems(&many.concat()).len(), 50);
}

#[test]
fn se12_what_stands_before_a_fault_can_be_read() {
    let broken =
        checked("state:\n  root: /srv/x\nwebhooks:\n  ghWebhook:\n    pidfile: /run/p\n  - [\n");
    assert!(!broken.problems.is_empty());
    assert_eq!(broken.settings.state.root, "/srv/x");
    assert_eq!(broken.settings.webhooks.gh_webhook.pidfile, "/run/p");
    let broken = checked("state: {root: /srv/x, inboxRetentionDays: 0}\nzzz: 1\n");
    assert_eq!(broken.problems.len(), 2);
    assert_eq!(broken.settings.state.root, "/srv/x");
}

/// A document as an editor's schema sees it.
fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(b) => (*b).into(),
        Value::Int(i) => i64::try_from(*i).unwrap().into(),
        Value::Number(n, _) => (*n).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(|item| json(&item.value)).collect(),
        Value::Map(members) => {
            let pair = |m: &Member| (m.name.clone(), json(&m.value.value));
            serde_json::Value::Object(members.iter().map(pair).collect())
        }
    }
}

/// What the types say to an editor is what the checker says, as far as a schema can say it.
#[test]
fn cf43_schema_and_checker_agree() {
    let schema = the_loop_core::config::schema::json_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let defaults = serde_json::to_value(Settings::default()).unwrap();
    let mut without_version = defaults.clone();
    without_version.as_object_mut().unwrap().remove("version");
    // Unset paths that have their place below the state root are written as "".
    assert!(validator.is_valid(&without_version));
    for (text, good) in [
        ("routing:\n", true),
        ("routing: {enabled: maybe}", false),
        ("routing: {zzz: 1}", false),
        ("routing: {spawnOnUnmatched: labelled}", false),
        ("webhooks: {ghWebhook: {port: 70000}}", false),
        ("webhooks: {ghWebhook: {port: 70}}", true),
        ("webhooks: {ghWebhook: {events: [issue]}}", false),
        ("routing: {harnessArgs: {Codex: []}}", false),
        (
            "routing: {harnesses: {mine: {command: m, dialogs: [{name: d, screen: x}]}}}",
            true,
        ),
        (
            "routing: {harnesses: {mine: {command: m, dialogs: [{title: d}]}}}",
            false,
        ),
        ("routing: {harnessArgs: {claude: [-x]}}", true),
        ("integrations: {github: {hosts: {ghe.example: {}}}}", true),
        (
            "integrations: {github: {hosts: {ghe.example: {x: 1}}}}",
            false,
        ),
        ("version: 1.0", false),
        ("version: 1.0.0", true),
    ] {
        let document = parse(text.as_bytes()).root.map(|node| json(&node.value));
        let document = document.unwrap_or_default();
        assert_eq!(validator.is_valid(&document), good, "schema: {text}");
        assert_eq!(problems(text).is_empty(), good, "checker: {text}");
    }
}

#[test]
fn cf44_every_example_of_the_documentation_loads() {
    let page = the_loop_core::config::reference::markdown();
    let examples: Vec<&str> = page
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(examples.len(), 4);
    for example in examples {
        assert!(
            problems(example).is_empty(),
            "{example}\n{:?}",
            problems(example)
        );
        assert!(checked(example).warnings.is_empty(), "{example}");
    }
}

#[test]
fn cf43_generated_documents_have_not_drifted() {
    let top = camino::Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, text) in the_loop_core::config::generated() {
        let disk: &dyn crate::disk::Disk = &crate::disk::OsDisk;
        let found = disk.read(&top.join(name), 1 << 20).unwrap_or_default();
        assert!(
            found == text.as_bytes(),
            "{name} is not what the types say; generate it again"
        );
    }
}

/// Text that is near enough to a configuration to get past the scanner.
fn near_yaml() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("routing"),
        Just("enabled"),
        Just("harnessArgs"),
        Just("claude"),
        Just("state"),
        Just("root"),
        Just("webhooks"),
        Just("ghWebhook"),
        Just("port"),
        Just("service"),
        Just("hosts"),
        Just("integrations"),
        Just("github"),
        Just("version"),
        Just("1.0.0"),
        Just("true"),
        Just("yes"),
        Just("~"),
        Just("~x"),
        Just("99999999999999999999999"),
        Just("-1"),
        Just("1e400"),
        Just("&a"),
        Just("*a"),
        Just("!t"),
        Just("<<"),
        Just("\"\\u0000\""),
        Just("é"),
    ];
    let glue = prop_oneof![
        Just(": "),
        Just(":\n  "),
        Just("\n"),
        Just("\n  "),
        Just("\n    "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(", "),
        Just(" "),
        Just("- "),
        Just("---\n"),
        Just("#"),
        Just("|\n"),
    ];
    proptest::collection::vec((word, glue), 0..40)
        .prop_map(|parts| parts.into_iter().flat_map(|(w, g)| [w, g]).collect())
}

proptest! {
    #[test]
    fn cf11_any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let document = parse(&bytes);
        let _ = check(document.root.as_ref(), document.problems, false);
    }

    #[test]
    fn cf11_anything_like_a_configuration_is_survived(text in near_yaml()) {
        let checked = checked(&text);
        let places: Vec<_> = checked.problems.iter().map(|p| p.pos).collect();
        let mut sorted = places.clone();
        sorted.sort();
        prop_assert_eq!(places, sorted);
        let lines = text.split(['\n', '\r']).count() as u32 + 1;
        prop_assert!(checked.problems.iter().filter_map(|p| p.pos).all(|p| p.line <= lines));
    }
}
