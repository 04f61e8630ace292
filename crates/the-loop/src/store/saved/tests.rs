#![allow(
    clippy::disallowed_methods,
    reason = "tests make files beside the code under test"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::clock::Clock;
use crate::disk::OsDisk;
use crate::ids::Ids;
use crate::process::OsProcesses;

const EXAMPLE: &str = r#"{"ref": "github:octo/repo#15", "slug": "github-octo-repo-15", "savedAt": "2026-03-01T09:12:44Z", "why": "reset",
 "repository": "https://github.com/octo/repo.git", "checkout": "/home/ada/w/x", "branch": "loop/github-octo-repo-15",
 "head": "3f1c", "bundle": "github-octo-repo-15-20260301T091244Z.bundle", "bytes": 5, "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
 "refs": {"head": "refs/the-loop/saved/head", "index": "refs/the-loop/saved/index", "worktree": "refs/the-loop/saved/worktree"},
 "requires": ["a90d"], "commits": 3, "files": {"changed": 4, "untracked": 2}}"#;

fn store(dir: &tempfile::TempDir) -> (SavedStore, Utf8PathBuf) {
    let base = Utf8PathBuf::try_from(dir.path().to_owned()).unwrap();
    let world = World {
        disk: Arc::new(OsDisk),
        processes: Arc::new(OsProcesses),
        clock: Clock::System,
        ids: Ids::Random,
        env: Arc::new(BTreeMap::new()),
        cwd: base.clone(),
        home: None,
        user: "ada".to_owned(),
        program: "/usr/bin/the-loop".into(),
        pid: 1,
    };
    let saved = base.join("local/saved");
    (SavedStore::new(&world, &saved), saved)
}

#[test]
fn st62_a_manifest_keeps_its_shape() {
    let temp = tempfile::tempdir().unwrap();
    let (store, dir) = store(&temp);
    assert_eq!(store.list().unwrap(), []);
    let manifest: SavedManifest = serde_json::from_str(EXAMPLE).unwrap();
    let name = manifest.name().to_owned();
    let slug = manifest.item.slug();
    let now = "2026-03-01T09:12:44Z".parse().unwrap();
    assert_eq!(store.free_name(&slug, now).unwrap().0, name);
    std::fs::write(store.bundle_path(&name), "hello").unwrap();
    assert_eq!(
        store.seal(&name).unwrap(),
        (manifest.bytes, manifest.sha256.clone())
    );
    store.write(&manifest).unwrap();
    let text = std::fs::read_to_string(dir.join(format!("{name}.json"))).unwrap();
    assert!(text.ends_with("}\n"));
    let ours: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        ours.to_string(),
        serde_json::from_str::<serde_json::Value>(EXAMPLE)
            .unwrap()
            .to_string()
    );
    assert_eq!(store.read(&name).unwrap(), manifest);
    assert!(store.is_intact(&manifest).unwrap());
    std::fs::write(store.bundle_path(&name), "hellO").unwrap();
    assert!(!store.is_intact(&manifest).unwrap());
    // A second save in one second takes the next.
    let (next, at) = store.free_name(&slug, now).unwrap();
    assert_eq!(next, "github-octo-repo-15-20260301T091245Z");
    assert_eq!(at.seconds(), "2026-03-01T09:12:45Z");
}

#[test]
fn st62_what_is_not_whole_is_listed_as_such_and_left() {
    let temp = tempfile::tempdir().unwrap();
    let (store, dir) = store(&temp);
    std::fs::create_dir_all(&dir).unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    let whole = "github-octo-repo-15-20260301T091244Z";
    write(&format!("{whole}.bundle"), "hello");
    write(&format!("{whole}.json"), EXAMPLE);
    write("alone-1-20260301T091244Z.bundle", "half");
    write("broken-1-20260301T091244Z.bundle", "x");
    write("broken-1-20260301T091244Z.json", "{");
    write(
        "gone-1-20260301T091244Z.json",
        &EXAMPLE.replace(whole, "gone-1-20260301T091244Z"),
    );
    write("other-1-20260301T091244Z.json", EXAMPLE);
    write("x.bundle.lock", "");
    write("README", "");
    let listed = store.list().unwrap();
    let kinds: Vec<(&str, u64)> = listed
        .iter()
        .map(|saved| match saved {
            Saved::Complete(_) => ("complete", saved.bytes()),
            Saved::Incomplete { .. } => ("incomplete", saved.bytes()),
            Saved::Unreadable { .. } => ("unreadable", saved.bytes()),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            ("incomplete", 4),
            ("unreadable", 0),
            ("complete", 5),
            ("unreadable", 0),
            ("unreadable", 0)
        ]
    );
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 9);
}
