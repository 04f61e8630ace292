use super::*;
use crate::harness::testing::world;

fn launch(cwd: &Utf8Path) -> LaunchFile {
    LaunchFile {
        program: "no-such-program-anywhere".to_owned(),
        argv: vec!["--secret-looking".to_owned()],
        cwd: cwd.to_owned(),
        env: BTreeMap::from([("TOKEN".to_owned(), "s3cret".to_owned())]),
    }
}

#[test]
fn di20_the_file_is_private_and_gone_before_anything_is_executed() {
    let (_dir, path, world) = world();
    let file = path.join("launch/local-o-r-1-00ff.json");
    launch(&path).write(&*world.disk, &file).unwrap();
    assert_eq!(world.disk.meta(&file).unwrap().unwrap().mode, 0o600);
    assert!(
        launch(&path).write(&*world.disk, &file).is_err(),
        "a name is used once"
    );
    let error = run(&world, &file);
    assert_eq!(error.exit_code(), 127);
    let said = error.to_string();
    assert!(
        said.contains("no-such-program-anywhere") && !said.contains("s3cret"),
        "{said}"
    );
    assert_eq!(world.disk.meta(&file).unwrap(), None);
}

#[test]
fn di20_what_cannot_be_done_is_said_in_one_line_without_values() {
    let (_dir, path, world) = world();
    let file = path.join("f.json");
    assert_eq!(run(&world, &file).exit_code(), 126);
    let bad = r#"{"program": "x", "argv": [], "cwd": "/", "env": {"TOKEN": ["s3cret"]}}"#;
    world.disk.create_new(&file, bad.as_bytes(), 0o600).unwrap();
    let error = run(&world, &file);
    assert_eq!(error.exit_code(), 126);
    assert!(!error.to_string().contains("s3cret") && !error.to_string().contains('\n'));
    assert_eq!(world.disk.meta(&file).unwrap(), None, "it may hold secrets");
    launch(&path.join("gone"))
        .write(&*world.disk, &file)
        .unwrap();
    assert!(matches!(
        run(&world, &file),
        PaneExecError::Directory { .. }
    ));
    let text = LaunchFile {
        program: file.to_string(),
        ..launch(&path)
    };
    text.write(&*world.disk, &file).unwrap();
    assert!(format!("{text:?}").contains("TOKEN") && !format!("{text:?}").contains("s3cret"));
    let plain = path.join("plain");
    world.disk.create_new(&plain, b"no program", 0o600).unwrap();
    let file = path.join("g.json");
    let text = LaunchFile {
        program: plain.to_string(),
        ..launch(&path)
    };
    text.write(&*world.disk, &file).unwrap();
    assert_eq!(run(&world, &file).exit_code(), 126);
}
