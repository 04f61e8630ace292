use super::*;
use crate::harness::testing::world;

fn keys() -> Vec<TruePath> {
    vec![
        vec!["hasCompletedOnboarding".to_owned()],
        vec![
            "projects".to_owned(),
            "/srv/a.b".to_owned(),
            "hasTrustDialogAccepted".to_owned(),
        ],
    ]
}

#[test]
fn di35_keys_are_merged_and_everything_else_stays_in_its_place() {
    let (_dir, path, world) = world();
    let (disk, file) = (&*world.disk, path.join(".claude.json"));
    let before =
        r#"{"z": 1.50, "projects": {"/x": {"hasTrustDialogAccepted": false}}, "a": [1, "é"]}"#;
    disk.create_new(&file, before.as_bytes(), 0o640).unwrap();
    let applied = set_true(disk, &file, &keys()).unwrap();
    assert_eq!(
        applied,
        [
            "hasCompletedOnboarding",
            "projects./srv/a.b.hasTrustDialogAccepted"
        ]
    );
    let after: Value = serde_json::from_slice(&disk.read(&file, 9999).unwrap()).unwrap();
    let names: Vec<&String> = after.as_object().unwrap().keys().collect();
    assert_eq!(names, ["z", "projects", "a", "hasCompletedOnboarding"]);
    assert_eq!(after["projects"]["/x"]["hasTrustDialogAccepted"], false);
    assert_eq!(
        after["projects"]["/srv/a.b"]["hasTrustDialogAccepted"],
        true
    );
    assert_eq!(disk.meta(&file).unwrap().unwrap().mode, 0o640);
    let written = disk.read(&file, 9999).unwrap();
    assert_eq!(set_true(disk, &file, &keys()).unwrap(), [""; 0]);
    assert_eq!(
        disk.read(&file, 9999).unwrap(),
        written,
        "nothing to set, nothing written"
    );
}

#[test]
fn di35_a_new_file_is_private_and_an_empty_one_is_filled() {
    let (_dir, path, world) = world();
    let (disk, file) = (&*world.disk, path.join("new.json"));
    set_true(disk, &file, &keys()).unwrap();
    assert_eq!(disk.meta(&file).unwrap().unwrap().mode, 0o600);
    let empty = path.join("empty.json");
    disk.create_new(&empty, b" \n", 0o600).unwrap();
    assert_eq!(set_true(disk, &empty, &keys()).unwrap().len(), 2);
}

#[test]
fn di35_a_file_that_cannot_be_parsed_is_left_alone() {
    let (_dir, path, world) = world();
    let (disk, file) = (&*world.disk, path.join("bad.json"));
    for text in ["{\"a\": ", "[1]", "// comment\n{}"] {
        let _ = disk.remove(&file);
        disk.create_new(&file, text.as_bytes(), 0o600).unwrap();
        let fault = set_true(disk, &file, &keys()).unwrap_err();
        assert!(matches!(fault, TrustError::Unparseable { .. }), "{text}");
        assert_eq!(disk.read(&file, 99).unwrap(), text.as_bytes());
    }
}

#[test]
fn di35_a_link_keeps_its_place() {
    let (_dir, path, world) = world();
    let (disk, real, link) = (&*world.disk, path.join("real.json"), path.join("link.json"));
    disk.create_new(&real, b"{}", 0o600).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    set_true(disk, &link, &keys()).unwrap();
    assert_eq!(disk.meta(&link).unwrap().unwrap().kind, Kind::Link);
    assert!(disk.read(&real, 999).unwrap().len() > 2);
}

#[test]
fn di35_a_parent_that_is_no_object_is_left_alone() {
    let (_dir, path, world) = world();
    let (disk, file) = (&*world.disk, path.join("odd.json"));
    disk.create_new(&file, br#"{"projects": 5}"#, 0o600)
        .unwrap();
    assert_eq!(
        set_true(disk, &file, &keys()).unwrap(),
        ["hasCompletedOnboarding"]
    );
    let after: Value = serde_json::from_slice(&disk.read(&file, 999).unwrap()).unwrap();
    assert_eq!(after["projects"], 5);
}

fn toml_keys() -> Vec<Vec<String>> {
    let key = |folder: &str| ["projects", folder, "trust_level"].map(str::to_owned);
    vec![key("/srv/a.b").to_vec(), key("/srv/x").to_vec()]
}

#[test]
fn di35_toml_keeps_its_comments_and_the_answers_of_others() {
    let (_dir, path, world) = world();
    let (disk, file) = (&*world.disk, path.join("config.toml"));
    let before = "model = \"m\" # mine\n\n# of mine, too\n[projects.\"/srv/x\"]\n\
                  trust_level = \"untrusted\"\n\n[tui]\nnotify = true\n";
    disk.create_new(&file, before.as_bytes(), 0o644).unwrap();
    let applied = set_in_toml(disk, &file, &toml_keys(), "trusted").unwrap();
    assert_eq!(applied, ["projects./srv/a.b.trust_level"]);
    let after = String::from_utf8(disk.read(&file, 9999).unwrap()).unwrap();
    let added = "\n[projects.\"/srv/a.b\"]\ntrust_level = \"trusted\"\n";
    assert_eq!(after.replacen(added, "", 1), before, "{after}");
    assert_eq!(disk.meta(&file).unwrap().unwrap().mode, 0o644);
    let again = set_in_toml(disk, &file, &toml_keys(), "trusted").unwrap();
    assert_eq!(again, [""; 0]);
}

#[test]
fn di35_toml_in_one_line_and_a_new_file_are_filled() {
    let (_dir, path, world) = world();
    let (disk, file) = (&*world.disk, path.join("config.toml"));
    let inline = "projects = { \"/srv/x\" = { trust_level = \"trusted\" } }\n";
    disk.create_new(&file, inline.as_bytes(), 0o600).unwrap();
    set_in_toml(disk, &file, &toml_keys(), "trusted").unwrap();
    let after = String::from_utf8(disk.read(&file, 9999).unwrap()).unwrap();
    let document: DocumentMut = after.parse().unwrap();
    for folder in ["/srv/a.b", "/srv/x"] {
        let level = document["projects"][folder]["trust_level"].as_str();
        assert_eq!(level, Some("trusted"), "{after}");
    }
    let new = path.join("new.toml");
    assert_eq!(
        set_in_toml(disk, &new, &toml_keys(), "trusted")
            .unwrap()
            .len(),
        2
    );
    assert_eq!(disk.meta(&new).unwrap().unwrap().mode, 0o600);
}

#[test]
fn di35_what_is_no_toml_is_left_alone_and_not_quoted() {
    let (_dir, path, world) = world();
    let (disk, file) = (&*world.disk, path.join("config.toml"));
    let broken = "a = 1\nsecret = swordfish\n";
    disk.create_new(&file, broken.as_bytes(), 0o600).unwrap();
    let told = set_in_toml(disk, &file, &toml_keys(), "trusted").unwrap_err();
    assert!(matches!(told, TrustError::Unparseable { .. }));
    assert!(told.to_string().contains("line 2"), "{told}");
    assert!(!told.to_string().contains("swordfish"), "{told}");
    let other = path.join("other.toml");
    disk.create_new(&other, b"projects = 7\n", 0o600).unwrap();
    let applied = set_in_toml(disk, &other, &toml_keys(), "trusted").unwrap();
    assert_eq!(applied, [""; 0], "what is no table is not replaced");
    for (file, text) in [(file, broken), (other, "projects = 7\n")] {
        assert_eq!(disk.read(&file, 9999).unwrap(), text.as_bytes());
    }
}

#[test]
fn di35_a_text_is_given_only_where_there_is_none() {
    let (_dir, path, world) = world();
    let (disk, file) = (&*world.disk, path.join("folders.json"));
    disk.create_new(&file, br#"{"/a": "DO_NOT_TRUST"}"#, 0o600)
        .unwrap();
    let keys = ["/a", "/b"].map(|key| vec![key.to_owned()]);
    assert_eq!(set_in_json(disk, &file, &keys, "T").unwrap(), ["/b"]);
    let after: Value = serde_json::from_slice(&disk.read(&file, 999).unwrap()).unwrap();
    assert_eq!(after, serde_json::json!({"/a": "DO_NOT_TRUST", "/b": "T"}));
    assert_eq!(set_in_json(disk, &file, &keys, "T").unwrap(), [""; 0]);
}
