//! Session records in a directory: whose they are, what they are called, what goes with them.

use camino::Utf8Path;
use proptest::prelude::*;
use the_loop_core::session::SessionStatus;

use super::*;
use crate::store::lock::Locks;
use crate::store::portable::Portable;
use crate::store::testing::{Place, at, item};

fn registry(place: &Place) -> Registry {
    Registry::new(&place.world, &place.layout)
}

fn lock(place: &Place, text: &str) -> ItemLock {
    let locks = Locks::new(&place.world, &place.layout);
    locks.try_item(&item(text), "test").unwrap().unwrap()
}

fn record(text: &str) -> SessionRecord {
    let when = at("2026-03-01T09:12:50Z");
    SessionRecord::new(&item(text), "demo", "/w", SessionStatus::Active, when)
}

/// Writes a record where its lookup says it belongs.
fn register(place: &Place, record: &SessionRecord) -> Slug {
    let lock = lock(place, &record.item.to_string());
    let registry = registry(place);
    let slug = registry.slug_for(&lock, &record.item).unwrap();
    assert!(registry.put(&lock, &slug, record).unwrap());
    slug
}

/// Puts a record's bytes under a name, as another program would.
fn place_record(place: &Place, stem: &str, record: &SessionRecord) {
    let file = place.layout.registry_dir().join(format!("{stem}.json"));
    place.put(&file, &record.to_bytes());
}

fn slug_for(place: &Place, text: &str) -> Result<Slug, StoreError> {
    registry(place).slug_for(&lock(place, text), &item(text))
}

#[test]
fn a_record_comes_back_as_it_was_put() {
    let place = Place::new();
    let mut it = record("github:octo/repo#15");
    it.remember_delivery("d-1");
    let slug = register(&place, &it);
    let found = registry(&place).get(&it.item).unwrap().unwrap();
    assert_eq!((found.slug, found.record), (slug.clone(), it));
    assert_eq!(found.file, place.layout.session_record(&slug));
    let mode = place.world.disk.meta(&found.file).unwrap().unwrap().mode;
    assert_eq!(mode, 0o600);
    assert_eq!(
        registry(&place).get(&item("github:octo/repo#16")).unwrap(),
        None
    );
}

#[test]
fn st19_a_write_of_the_same_bytes_is_not_made() {
    let place = Place::new();
    let it = record("github:octo/repo#15");
    let slug = register(&place, &it);
    let inode = || {
        let file = place.layout.session_record(&slug);
        place.world.disk.meta(&file).unwrap().unwrap().inode
    };
    let before = inode();
    let lock = lock(&place, "github:octo/repo#15");
    assert!(!registry(&place).put(&lock, &slug, &it).unwrap());
    assert_eq!(inode(), before);
}

#[test]
fn st23_another_items_lock_is_no_licence() {
    let place = Place::new();
    let other = lock(&place, "github:octo/repo#16");
    let it = record("github:octo/repo#15");
    let registry = registry(&place);
    let refused = [
        registry.put(&other, &it.item.slug(), &it).unwrap_err(),
        registry.forget(&other, &it.item).unwrap_err(),
        registry.slug_for(&other, &it.item).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, StoreError::NotLocked { .. }), "{error}");
    }
}

#[test]
fn st4_two_spellings_are_one_item_and_the_first_one_stays() {
    let place = Place::new();
    let slug = register(&place, &record("github:Octo/Repo#15"));
    let registry = registry(&place);
    let given = item("github:octo/repo#15");
    let found = registry.get(&given).unwrap().unwrap();
    assert_eq!(found.record.item.to_string(), "github:Octo/Repo#15");
    assert_eq!(registry.canonical(&given), found.record.item);
    assert_eq!(slug_for(&place, "github:octo/repo#15").unwrap(), slug);
    assert_eq!(slug.as_str(), "github-Octo-Repo-15");
}

#[test]
fn st5_the_portable_record_decides_the_spelling_then_session_then_ticket() {
    let place = Place::new();
    let given = item("local:octo/repo#1");
    let registry = registry(&place);
    assert_eq!(registry.canonical(&given), given);
    let ticket = the_loop_core::record::Ticket::new(
        &item("local:OCTO/repo#1"),
        "t",
        "",
        "ada",
        at("2026-03-01T09:00:00Z"),
    );
    place.put(&place.layout.ticket(&ticket.item), &ticket.to_bytes());
    assert_eq!(registry.canonical(&given).to_string(), "local:OCTO/repo#1");
    register(&place, &record("local:Octo/Repo#1"));
    assert_eq!(registry.canonical(&given).to_string(), "local:Octo/Repo#1");
    let file = place.layout.portable(&item("local:octo/REPO#1").slug());
    place.put(&file, b"{\"ref\": \"local:octo/REPO#1\", \"graph\": {}}");
    assert_eq!(registry.canonical(&given).to_string(), "local:octo/REPO#1");
}

#[test]
fn st8_the_second_of_two_colliding_items_gets_the_suffix() {
    let place = Place::new();
    assert_eq!(
        register(&place, &record("github:a-b/c#1")).as_str(),
        "github-a-b-c-1"
    );
    let second = register(&place, &record("github:a/b-c#1"));
    assert_eq!(second.as_str(), "github-a-b-c-1~96674c03");
    let registry = registry(&place);
    for text in ["github:a-b/c#1", "github:a/b-c#1"] {
        let found = registry.get(&item(text)).unwrap().unwrap();
        assert_eq!(found.record.item, item(text));
    }
    // One tmux name for both, so they collide although the file names differ.
    register(&place, &record("github:o/foo.js#15"));
    let dotted = register(&place, &record("github:o/foo_js#15"));
    assert!(
        dotted.as_str().starts_with("github-o-foo_js-15~"),
        "{dotted}"
    );
}

#[test]
fn st9_an_item_keeps_its_slug_while_any_file_of_it_is_there() {
    let first = "github:a-b/c#1";
    let second = "github:a/b-c#1";
    let suffixed = "github-a-b-c-1~96674c03";
    // The first item is gone, and a file of the second is left: it keeps the suffix.
    let left: [fn(&Place); 4] = [
        |place| {
            let file = place
                .layout
                .portable_dir()
                .join("github-a-b-c-1~96674c03.json");
            place.put(&file, b"{\"ref\": \"github:a/b-c#1\", \"graph\": {}}");
        },
        |place| {
            let slug = item("github:a/b-c#1").suffixed_slug();
            let file = place
                .layout
                .saved_manifest(&slug, at("2026-03-01T09:00:00Z"));
            place.put(&file, b"{\"ref\": \"github:a/b-c#1\"}");
        },
        |place| {
            let slug = item("github:a/b-c#1").suffixed_slug();
            place.put(&place.layout.hook_file(&slug), b"");
        },
        |place| {
            let slug = item("github:a/b-c#1").suffixed_slug();
            place.put(&place.layout.mail(&slug, 3), b"");
        },
    ];
    for leave in left {
        let place = Place::new();
        leave(&place);
        assert_eq!(slug_for(&place, second).unwrap().as_str(), suffixed);
        assert_eq!(slug_for(&place, first).unwrap().as_str(), "github-a-b-c-1");
    }
    // The first item's saved work holds the plain name for it.
    let place = Place::new();
    let file = place
        .layout
        .saved_manifest(&item(first).slug(), at("2026-03-01T09:00:00Z"));
    place.put(&file, b"{\"ref\": \"github:a-b/c#1\"}");
    assert_eq!(slug_for(&place, second).unwrap().as_str(), suffixed);
    assert_eq!(slug_for(&place, first).unwrap().as_str(), "github-a-b-c-1");
}

#[test]
fn st8_a_second_collision_names_both() {
    let place = Place::new();
    register(&place, &record("github:a-b/c#1"));
    let file = place
        .layout
        .registry_dir()
        .join("github-a-b-c-1~96674c03.json");
    place.put(&file, b"{\"ref\": 1}");
    // The broken file has the very name of the second item, so it is the second item's.
    let slug = slug_for(&place, "github:a/b-c#1").unwrap();
    assert_eq!(slug.as_str(), "github-a-b-c-1~96674c03");
    // A stranger's file in that place is not.
    place.put(&file, b"{\"name\": \"x\"}");
    let error = slug_for(&place, "github:a/b-c#1").unwrap_err().to_string();
    let words = format!("github:a/b-c#1 and {file} come to the same file name {slug}");
    assert_eq!(error, words);
}

#[test]
fn st10_the_ref_inside_decides_not_the_name() {
    let place = Place::new();
    let other = record("github:octo/repo#16");
    place_record(&place, "github-octo-repo-15", &other);
    let registry = registry(&place);
    assert_eq!(registry.get(&item("github:octo/repo#15")).unwrap(), None);
    // Its own name would be another one, so it is a stranger's for its own item as well.
    assert_eq!(registry.get(&item("github:octo/repo#16")).unwrap(), None);
    assert!(registry.list().unwrap().records.is_empty());
    let mine = lock(&place, "github:octo/repo#15");
    assert!(
        !registry
            .forget(&mine, &item("github:octo/repo#15"))
            .unwrap()
    );
    let misnamed = registry.put(&mine, &other.item.slug(), &record("github:octo/repo#15"));
    assert!(matches!(misnamed, Err(StoreError::NotItsName { .. })));
    let error = registry
        .put(
            &mine,
            &item("github:octo/repo#15").slug(),
            &record("github:octo/repo#15"),
        )
        .unwrap_err();
    assert!(matches!(error, StoreError::OtherItem { .. }), "{error}");
    let file = place.layout.registry_dir().join("github-octo-repo-15.json");
    assert_eq!(place.text(&file).unwrap().into_bytes(), other.to_bytes());
}

#[test]
fn st11_of_two_files_of_one_item_the_live_one_counts() {
    let place = Place::new();
    let mut old = record("github:octo/repo#15");
    old.last_event_at = Some(at("2026-03-02T00:00:00Z"));
    old.status = SessionStatus::Closed;
    place_record(&place, "github-octo-repo-15", &old);
    place_record(
        &place,
        "github-Octo-Repo-15",
        &record("github:Octo/Repo#15"),
    );
    let registry = registry(&place);
    let found = registry.get(&item("github:octo/repo#15")).unwrap().unwrap();
    assert_eq!(found.slug.as_str(), "github-Octo-Repo-15");
    let listing = registry.list().unwrap();
    assert_eq!(listing.records, std::slice::from_ref(&found));
    let shadowed = Shadowed {
        item: old.item.clone(),
        file: place.layout.registry_dir().join("github-octo-repo-15.json"),
        by: found.file,
    };
    assert_eq!(listing.shadowed.len(), 1);
    assert_eq!(listing.shadowed[0].file, shadowed.file);
    assert_eq!(listing.shadowed[0].by, shadowed.by);
    // Forgetting the item takes both.
    let lock = lock(&place, "github:octo/repo#15");
    assert!(registry.forget(&lock, &old.item).unwrap());
    assert!(registry.list().unwrap().records.is_empty());
}

#[test]
fn st31_a_corrupt_record_is_named_and_left_and_sets_its_item_aside() {
    let place = Place::new();
    register(&place, &record("github:octo/repo#16"));
    let it = item("github:octo/repo#15");
    let file = place.layout.session_record(&it.slug());
    let broken = b"{\n  \"workItem\": 3\n}\n";
    place.put(&file, broken);
    let registry = registry(&place);
    let fault = registry.get(&it).unwrap_err();
    let words =
        format!("{file}: not a session record (workItem is not an object, line 2, column 15)");
    assert_eq!(fault.to_string(), words);
    let listing = registry.list().unwrap();
    assert_eq!(listing.records.len(), 1);
    assert_eq!(listing.problems, [fault]);
    let lock = lock(&place, "github:octo/repo#15");
    let slug = registry.slug_for(&lock, &it).unwrap();
    assert_eq!(slug, it.slug());
    for error in [
        registry
            .put(&lock, &slug, &record("github:octo/repo#15"))
            .unwrap_err(),
        registry.forget(&lock, &it).unwrap_err(),
    ] {
        assert!(matches!(
            error,
            StoreError::Fault(RecordFault::Corrupt { .. })
        ));
    }
    assert_eq!(place.text(&file).unwrap().as_bytes(), broken);
}

#[test]
fn st15_links_directories_and_large_files_are_corrupt() {
    let place = Place::new();
    let it = item("github:octo/repo#15");
    let file = place.layout.session_record(&it.slug());
    let why = || match registry(&place).get(&it).unwrap_err() {
        RecordFault::Corrupt {
            why, place: None, ..
        } => why,
        other => panic!("{other:?}"),
    };
    let elsewhere = place.base().join("elsewhere.json");
    place.put(&elsewhere, &record("github:octo/repo#15").to_bytes());
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert_eq!(why(), "not a regular file");
    place.world.disk.remove(&file).unwrap();
    place.world.disk.create_dir_all(&file).unwrap();
    assert_eq!(why(), "not a regular file");
    place.world.disk.remove_dir_all(&file).unwrap();
    let mut large = vec![b' '; 4 << 20];
    large.extend(record("github:octo/repo#15").to_bytes());
    place.put(&file, &large);
    assert_eq!(why(), "larger than 4194304 bytes");
}

#[test]
fn st33_a_corrupt_file_belongs_to_the_item_of_its_name_unless_another_claims_it() {
    let place = Place::new();
    let (first, second) = (item("github:a-b/c#1"), item("github:a/b-c#1"));
    let file = place.layout.session_record(&first.slug());
    place.put(&file, b"{");
    let registry = registry(&place);
    assert!(registry.get(&first).is_err() && registry.get(&second).is_err());
    // The portable record of the first item says whose name it is.
    place.put(
        &place.layout.portable(&first.slug()),
        b"{\"ref\": \"github:a-b/c#1\"}",
    );
    assert!(registry.get(&first).is_err());
    assert_eq!(registry.get(&second).unwrap(), None);
    let slug = slug_for(&place, "github:a/b-c#1").unwrap();
    assert_eq!(slug, second.suffixed_slug());
    assert_eq!(slug_for(&place, "github:a-b/c#1").unwrap(), first.slug());
}

#[test]
fn st34_strangers_files_are_not_read_listed_or_touched() {
    let place = Place::new();
    let strangers = [
        ("notes.json", "{"),
        ("github-octo-repo-15.json.bak", "{"),
        ("github-octo-repo-15~zz.json", "{"),
        ("github-octo-repo-x.json", "{"),
        ("sub/github-octo-repo-15.json", "{"),
        ("github-octo-repo-15.json", "{\"name\": \"a list of mine\"}"),
    ];
    for (name, text) in strangers {
        place.put(&place.layout.registry_dir().join(name), text.as_bytes());
    }
    let registry = registry(&place);
    let it = item("github:octo/repo#15");
    let listing = registry.list().unwrap();
    assert!(listing.records.is_empty() && listing.problems.is_empty());
    assert_eq!(registry.get(&it).unwrap(), None);
    // The name is taken by the stranger, so the item gets its suffix.
    let slug = register(&place, &record("github:octo/repo#15"));
    assert_eq!(slug, it.suffixed_slug());
    assert!(
        registry
            .forget(&lock(&place, "github:octo/repo#15"), &it)
            .unwrap()
    );
    for (name, text) in strangers {
        let there = place.text(&place.layout.registry_dir().join(name));
        assert_eq!(there.as_deref(), Some(text), "{name}");
    }
}

#[test]
fn st35_a_newer_record_is_the_items_and_not_written() {
    let place = Place::new();
    let it = record("github:octo/repo#15");
    let mut map = it.to_map();
    map.insert("schema".to_owned(), 3.into());
    let file = place.layout.session_record(&it.item.slug());
    place.put(&file, serde_json::Value::Object(map).to_string().as_bytes());
    let before = place.text(&file);
    let registry = registry(&place);
    let fault = registry.get(&it.item).unwrap_err();
    let RecordFault::Newer { item: stated, .. } = &fault else {
        panic!("{fault:?}");
    };
    assert_eq!(stated.as_deref(), Some(&it.item));
    let lock = lock(&place, "github:octo/repo#15");
    assert!(registry.put(&lock, &it.item.slug(), &it).is_err());
    assert!(registry.forget(&lock, &it.item).is_err());
    assert_eq!(place.text(&file), before);
    // Another item with the name of this file is not held up by it.
    assert_eq!(registry.get(&item("github:octo-repo/x#15")).unwrap(), None);
}

#[test]
fn st44_forgetting_takes_the_files_of_the_session_and_no_others() {
    let place = Place::new();
    let it = item("github:octo/repo#1");
    let slug = register(&place, &record("github:octo/repo#1"));
    let layout = &place.layout;
    let mut goes = vec![
        layout.session_record(&slug),
        layout.hook_file(&slug),
        layout.hook_file_before(&slug),
        layout.hook_settings(&slug),
        layout.launch_file(&slug, [1, 2, 3, 4]),
        layout.mail(&slug, 1),
        layout.mail(&slug, 2),
    ];
    let near = item("github:octo/repo#15").slug();
    let mut stays = vec![
        layout.portable(&slug),
        layout.saved_bundle(&slug, at("2026-03-01T09:00:00Z")),
        layout.hook_file(&near),
        layout.launch_file(&near, [1, 2, 3, 4]),
        layout.mail(&near, 1),
        layout.launch_dir().join("github-octo-repo-1-notes.json"),
    ];
    for file in goes[1..].iter().chain(&stays) {
        place.put(file, b"x");
    }
    stays.push(layout.lock(&crate::store::layout::LockName::Item(slug.clone())));
    let registry = registry(&place);
    let held = lock(&place, "github:octo/repo#1");
    assert!(registry.forget(&held, &it).unwrap());
    goes.push(layout.mail_dir(&slug));
    let there = |file: &Utf8Path| place.world.disk.meta(file).unwrap().is_some();
    assert!(!goes.iter().any(|file| there(file)), "{:?}", place.files());
    assert!(stays.iter().all(|file| there(file)), "{:?}", place.files());
    assert!(!registry.forget(&held, &it).unwrap());
}

#[test]
fn st29_nothing_is_remembered_between_two_looks() {
    let place = Place::new();
    let registry = registry(&place);
    let slug = register(&place, &record("github:octo/repo#15"));
    assert!(
        registry
            .get(&item("github:octo/repo#15"))
            .unwrap()
            .is_some()
    );
    let file = place.layout.session_record(&slug);
    place.world.disk.remove(&file).unwrap();
    assert_eq!(registry.get(&item("github:octo/repo#15")).unwrap(), None);
    let portable = Portable::new(&place.world, &place.layout);
    assert_eq!(
        portable.control(&item("github:octo/repo#15")).unwrap(),
        None
    );
}

#[test]
fn registry_dir_moves_the_session_records_and_the_rules_still_see_both() {
    let mut place = Place::new();
    let elsewhere = place.base().join("sessions");
    let moved = crate::store::layout::Overrides {
        registry_dir: Some(elsewhere.clone()),
        ..Default::default()
    };
    place.layout = Layout::with(place.layout.root(), moved);
    let slug = register(&place, &record("github:a-b/c#1"));
    assert!(
        place
            .text(&elsewhere.join(format!("{slug}.json")))
            .is_some()
    );
    assert!(
        slug_for(&place, "github:a/b-c#1")
            .unwrap()
            .as_str()
            .contains('~')
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Items of a small, collision-rich world, registered and forgotten in any order.
    #[test]
    fn st8_st9_no_two_items_ever_share_a_name(
        steps in prop::collection::vec((0usize..7, any::<bool>()), 1..14),
    ) {
        let refs = [
            "github:a-b/c#1", "github:a/b-c#1", "github:A/B-c#1", "github:o/x.js#1",
            "github:o/x_js#1", "github:o-x/js#1", "github:o/x-js#1",
        ];
        let place = Place::new();
        let registry = registry(&place);
        let mut names = std::collections::BTreeMap::new();
        for (which, put) in steps {
            let it = record(refs[which]);
            let lock = lock(&place, refs[which]);
            if put {
                let slug = registry.slug_for(&lock, &it.item).unwrap();
                registry.put(&lock, &slug, &it).unwrap();
                let kept = names.insert(it.item.key(), slug.clone());
                prop_assert!(kept.is_none_or(|kept| kept == slug), "{} changed its name", it.item);
            } else {
                let there = names.remove(&it.item.key()).is_some();
                prop_assert_eq!(registry.forget(&lock, &it.item).unwrap(), there);
            }
            let mut targets: Vec<_> = names.values().map(|s| s.target().to_string().to_lowercase()).collect();
            targets.sort_unstable();
            targets.dedup();
            prop_assert_eq!(targets.len(), names.len());
            let listing = registry.list().unwrap();
            prop_assert_eq!(listing.records.len(), names.len());
            prop_assert!(listing.shadowed.is_empty() && listing.problems.is_empty());
        }
    }
}
