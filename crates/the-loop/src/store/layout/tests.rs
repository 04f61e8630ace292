//! The declaration, the layout, the state page and the ignore block say the same (ST-68).

use std::collections::BTreeSet;

use the_loop_core::ids::{HarnessSessionId, Slug, WorkItemRef};

use super::declared::{DECLARED, Declared, Travels};
use super::*;
use crate::process::Call;
use crate::store::testing::{Place, at, item};

const SOURCE: &str = include_str!("../layout.rs");
const PAGE: &str = include_str!("../../../../../docs/cli/state.md");
const IGNORED: &str = include_str!("../../../../../.gitignore");

fn slug() -> Slug {
    item("github:octo/repo#15").slug()
}

/// What a property of the layout gives, for the sample that [`filled`] fills in.
fn path_of(layout: &Layout, property: &str) -> Option<Utf8PathBuf> {
    let slug = slug();
    let when = at("2026-03-01T09:12:44Z");
    Some(match property {
        "portable" => layout.portable(&slug),
        "portable_index" => layout.portable_index(),
        "ticket" => layout.ticket(&item("local:octo/repo#1")),
        "session_record" => layout.session_record(&slug),
        "lock" => layout.lock(&LockName::Tickets),
        "inbox_db" => layout.inbox_db(),
        "saved_bundle" => layout.saved_bundle(&slug, when),
        "saved_manifest" => layout.saved_manifest(&slug, when),
        "hook_file" => layout.hook_file(&slug),
        "hook_file_before" => layout.hook_file_before(&slug),
        "hook_settings" => layout.hook_settings(&slug),
        "launch_file" => layout.launch_file(&slug, [1, 2, 3, 4]),
        "mail" => layout.mail(&slug, 7),
        "demo_transcript" => layout.demo_transcript(&HarnessSessionId::parse("0195c1c2").unwrap()),
        "socket" => layout.socket(),
        "instance" => layout.instance(),
        "tmux_conf" => layout.tmux_conf(),
        "events_log" => layout.events_log(),
        "daemon_log" => layout.daemon_log(),
        "service_pid" => layout.service_pid(),
        "webhook_pid" => layout.webhook_pid(),
        "poll_pid" => layout.poll_pid(),
        "poll_status" => layout.poll_status(),
        _ => return None,
    })
}

/// A pattern with the sample's values.
fn filled(pattern: &str) -> String {
    let mut out = pattern.to_owned();
    for (name, value) in [
        ("<slug>", "github-octo-repo-15"),
        ("<owner>", "octo"),
        ("<repo>", "repo"),
        ("<n>", "1"),
        ("<name>", "tickets"),
        ("<ts>", "20260301T091244Z"),
        ("<hex>", "01020304"),
        ("<seq>", "7"),
        ("<id>", "0195c1c2"),
    ] {
        out = out.replace(name, value);
    }
    assert!(!out.contains('<'), "{pattern} has a name the sample lacks");
    out
}

/// All default paths, with what lies beside some and the temporary that writing a record makes.
fn default_paths() -> Vec<(String, Travels)> {
    let mut paths = Vec::new();
    for declared in DECLARED {
        for pattern in [declared.default].iter().chain(declared.beside) {
            let path = filled(pattern);
            paths.push((format!("{path}.1a2b3c4d.tmp"), Travels::Local));
            paths.push((path, declared.travels));
        }
    }
    paths
}

/// Names of the layout's public functions that give a path, directories apart.
fn properties() -> BTreeSet<&'static str> {
    let functions = SOURCE.lines().filter_map(|line| {
        let rest = line.trim().strip_prefix("pub fn ")?;
        rest.contains("-> Utf8PathBuf")
            .then(|| rest.split('(').next())?
    });
    functions
        .filter(|name| !name.ends_with("_dir") && *name != "root")
        .collect()
}

#[test]
fn s1_every_path_of_the_layout_is_declared_once() {
    let mut declared: Vec<&str> = DECLARED.iter().map(|d| d.property).collect();
    declared.sort_unstable();
    let known: Vec<&str> = properties().into_iter().collect();
    assert_eq!(declared, known);
}

#[test]
fn s2_every_default_is_what_the_layout_gives() {
    let layout = Layout::new("/r/.the-loop");
    for declared in DECLARED {
        let path = path_of(&layout, declared.property)
            .unwrap_or_else(|| panic!("no sample for {}", declared.property));
        let expected = format!("/r/.the-loop/{}", filled(declared.default));
        assert_eq!(path, expected);
        assert!(!declared.holds.is_empty() && !declared.why.is_empty());
    }
}

#[test]
fn s2_the_directories_are_those_of_the_files() {
    let layout = Layout::new("/r/.the-loop");
    let dirs = [
        layout.local_dir(),
        layout.registry_dir(),
        layout.portable_dir(),
        layout.tickets_dir(),
        layout.locks_dir(),
        layout.saved_dir(),
        layout.hooks_dir(),
        layout.launch_dir(),
        layout.mail_dir(&slug()),
        layout.demo_dir(),
        layout.logs_dir(),
    ];
    for dir in dirs {
        let held = DECLARED
            .iter()
            .filter_map(|d| path_of(&layout, d.property))
            .any(|path| path.starts_with(&dir));
        assert!(held, "{dir} holds nothing that is declared");
    }
}

/// The rows of the page's table of paths.
fn rows() -> Vec<Vec<&'static str>> {
    let table = PAGE.split("## All paths").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect()
}

#[test]
fn s3_the_page_has_a_row_for_every_declaration() {
    let declared: Vec<_> = DECLARED
        .iter()
        .map(|d| {
            vec![
                format!("`{}`", d.default),
                d.holds.to_owned(),
                d.travels.as_str().to_owned(),
            ]
        })
        .collect();
    assert_eq!(rows(), declared);
}

/// The ignore block of the page.
fn block() -> &'static str {
    let after = PAGE.split("```gitignore\n").nth(1).unwrap();
    after.split("```").next().unwrap()
}

#[test]
fn s4_the_block_of_the_page_stands_in_the_repository() {
    assert!(IGNORED.contains(block()));
}

#[test]
fn st13_the_block_negates_nothing_and_never_names_what_travels() {
    for line in block().lines().filter(|line| !line.starts_with('#')) {
        assert!(!line.starts_with('!'), "{line}");
        for kept in [".the-loop/portable", ".the-loop/tickets", ".the-loop"] {
            assert!(line.trim_end_matches('/') != kept, "{line}");
        }
    }
}

/// Does the block ignore this path? The last match wins, and nothing below an excluded directory can
/// be rescued; the block has no negation, so any match of the path or a parent decides.
fn is_ignored(path: &str) -> bool {
    let patterns: Vec<&str> = block()
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let parts: Vec<&str> = path.split('/').collect();
    (1..=parts.len()).any(|end| {
        let is_dir = end < parts.len();
        patterns.iter().any(|pattern| {
            let (pattern, dirs_only) = match pattern.strip_suffix('/') {
                Some(pattern) => (pattern, true),
                None => (*pattern, false),
            };
            let pattern: Vec<&str> = pattern.split('/').collect();
            (is_dir || !dirs_only)
                && pattern.len() == end
                && pattern.iter().zip(&parts).all(|(p, name)| globs(p, name))
        })
    })
}

/// `*` stands for anything within one name.
fn globs(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| globs(tail, &rest[at..]))
        }),
    }
}

#[test]
fn s5_the_block_ignores_every_local_path_and_no_portable_one() {
    for (path, travels) in default_paths() {
        let ignored = is_ignored(&format!(".the-loop/{path}"));
        assert_eq!(ignored, travels == Travels::Local, "{path}");
    }
    assert!(is_ignored(".the-loop/cli-config.yaml.bak"));
    assert!(!is_ignored("the-loop/local/x"));
}

#[test]
fn s9_git_agrees_with_the_matcher() {
    let place = Place::new();
    let disk = &place.world.disk;
    let path = place.world.cwd.join(".gitignore");
    disk.write_atomic(&path, block().as_bytes(), false).unwrap();
    let git = |args: &[&str], stdin: String| {
        let call = Call::new("git", args.iter().copied())
            .cwd(place.base())
            .stdin(stdin)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_SYSTEM", "/dev/null");
        place.world.processes.run(&call)
    };
    assert_eq!(git(&["init", "-q", "."], String::new()).exit, Ok(0));
    let paths = default_paths();
    let asked: Vec<String> = paths
        .iter()
        .map(|(p, _)| format!(".the-loop/{p}"))
        .collect();
    let answer = git(&["check-ignore", "--stdin"], asked.join("\n"));
    assert_eq!(answer.exit, Ok(0), "{}", answer.describe());
    let out = answer.out();
    let said: BTreeSet<&str> = out.lines().collect();
    let matched = asked.iter().map(String::as_str).filter(|p| is_ignored(p));
    assert_eq!(said, matched.collect());
}

#[test]
fn s10_every_path_has_its_section_on_the_page() {
    for Declared { default, .. } in DECLARED {
        let heading = format!("\n### `{default}`\n");
        let section = PAGE.split(&heading).nth(1);
        let section = section.unwrap_or_else(|| panic!("no section for {default}"));
        let section = section.split("\n### ").next().unwrap();
        for part in ["- *Life*: ", "- *If deleted*: ", "- *Reset*: "] {
            assert_eq!(section.matches(part).count(), 1, "{default}: {part}");
        }
    }
    let headings = PAGE.matches("\n### `").count();
    assert_eq!(headings, DECLARED.len());
}

#[test]
fn overrides_move_their_own_path_and_nothing_else() {
    let moved = Layout::with(
        "/r",
        Overrides {
            registry_dir: Some("/a".into()),
            portable_dir: Some("/b".into()),
            events_log: Some("/c/log.jsonl".into()),
            webhook_pid: Some("/d/hook.pid".into()),
        },
    );
    let plain = Layout::new("/r");
    let mut elsewhere = Vec::new();
    for declared in DECLARED {
        let path = path_of(&moved, declared.property).unwrap();
        if path_of(&plain, declared.property).unwrap() != path {
            elsewhere.push(path.to_string());
        }
    }
    let expected = [
        "/b/github-octo-repo-15.json",
        "/b/index.json",
        "/a/github-octo-repo-15.json",
        "/c/log.jsonl",
        "/d/hook.pid",
    ];
    assert_eq!(elsewhere, expected);
    assert_eq!(moved.locks_dir(), "/r/local/locks");
}

#[test]
fn st23_lock_names_fold_and_never_meet() {
    let layout = Layout::new("/r");
    let name = |lock: LockName| layout.lock(&lock).file_name().unwrap().to_owned();
    let item_lock = |text: &str| name(LockName::Item(item(text).slug()));
    assert_eq!(
        item_lock("github:Octo/foo.js#15"),
        "github-octo-foo_js-15.lock"
    );
    assert_eq!(
        item_lock("github:octo/foo_js#15"),
        "github-octo-foo_js-15.lock"
    );
    let suffixed = item("github:a/b-c#1").suffixed_slug();
    assert_eq!(name(LockName::Item(suffixed)), item_lock("github:a-b/c#1"));
    let want = LockName::Want(slug());
    assert_eq!(name(want), "github-octo-repo-15.want.lock");
    let repo = |text: &str| name(LockName::Clone(RepoRef::parse(text).unwrap()));
    assert_eq!(repo("Octo/foo.js"), "g.github_com-octo-foo_js.lock");
    assert_eq!(repo("localhost:3000/o/r"), "g.localhost-3000-o-r.lock");
    let ticket = item("local:octo/repo#1").slug();
    assert_eq!(name(LockName::Ticket(ticket)), "t.local-octo-repo-1.lock");
}

proptest::proptest! {
    #[test]
    fn st6_no_ref_leads_out_of_its_directory(text in "github:[A-Za-z0-9._:/~-]{1,40}#[0-9]{1,4}") {
        if let Ok(item) = text.parse::<WorkItemRef>() {
            let layout = Layout::new("/r");
            for slug in [item.slug(), item.suffixed_slug()] {
                for path in [
                    layout.portable(&slug),
                    layout.session_record(&slug),
                    layout.hook_file(&slug),
                    layout.hook_settings(&slug),
                    layout.lock(&LockName::Item(slug.clone())),
                    layout.saved_bundle(&slug, at("2026-03-01T09:12:44Z")),
                ] {
                    let dir = path.parent().unwrap();
                    let rest = path.strip_prefix(dir).unwrap();
                    proptest::prop_assert_eq!(rest.components().count(), 1);
                    proptest::prop_assert!(!path.as_str().contains("/.."), "{}", path);
                    proptest::prop_assert!(dir.starts_with("/r"));
                }
                proptest::prop_assert_eq!(layout.mail(&slug, 1).components().count(), 6);
            }
            let ticket = layout.ticket(&item);
            proptest::prop_assert_eq!(ticket.components().count(), 6);
            proptest::prop_assert!(ticket.starts_with("/r/tickets"));
        }
    }
}
