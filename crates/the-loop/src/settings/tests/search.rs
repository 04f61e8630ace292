//! CF-1 to CF-5, over real files and the real git.

use camino::Utf8PathBuf;

use super::Machine;
use crate::settings::{Overrides, Place, find, load};

fn here(machine: &Machine) -> Utf8PathBuf {
    machine.cwd.join(".the-loop/cli-config.yaml")
}

fn place(machine: &Machine, flag: Option<&str>) -> Option<Place> {
    find(&machine.world, flag).found.map(|found| found.place)
}

#[test]
fn cf1_the_first_of_four_places_wins() {
    let mut machine = Machine::new();
    assert_eq!(place(&machine, None), None);
    machine.config("");
    assert_eq!(place(&machine, None), Some(Place::Home));
    machine.write(&here(&machine), "");
    assert_eq!(place(&machine, None), Some(Place::CurrentDir));
    machine.env("THE_LOOP_CLI_CONFIG", "");
    assert_eq!(place(&machine, None), Some(Place::CurrentDir));
    machine.env("THE_LOOP_CLI_CONFIG", "/x/y.yaml");
    assert_eq!(place(&machine, None), Some(Place::Env));
    let search = find(&machine.world, Some("~/a/./b.yaml"));
    assert_eq!(search.found.unwrap().path, machine.home.join("a/b.yaml"));
    let whys: Vec<&str> = search.candidates.iter().map(|c| c.why.as_str()).collect();
    assert_eq!(
        whys,
        [
            "taken",
            "an earlier one is taken",
            "an earlier one is taken",
            "an earlier one is taken"
        ]
    );
}

#[test]
fn cf1_parents_are_not_searched() {
    let mut machine = Machine::new();
    machine.write(&here(&machine), "");
    machine.world.cwd = machine.cwd.join("below");
    machine
        .world
        .disk
        .create_dir_all(&machine.world.cwd)
        .unwrap();
    assert_eq!(place(&machine, None), None);
}

#[test]
fn cf2_a_tracked_file_does_not_configure_the_machine() {
    let machine = Machine::new();
    machine.write(&here(&machine), "routing: {enabled: true}\n");
    machine.git(&machine.cwd, &["init", "-q"]);
    assert_eq!(
        place(&machine, None),
        Some(Place::CurrentDir),
        "not tracked yet"
    );
    machine.git(&machine.cwd, &["add", "-f", ".the-loop/cli-config.yaml"]);
    let search = find(&machine.world, None);
    assert_eq!(search.found, None);
    assert_eq!(
        search.warnings[0].line(""),
        "ignoring ./.the-loop/cli-config.yaml: it is tracked by git, and a repository may not configure \
         the daemon (pass --config ./.the-loop/cli-config.yaml if you mean it)"
    );
    let loaded = load(&machine.world, None, &Overrides::default()).unwrap();
    assert!(!loaded.settings.routing.enabled && loaded.notices.len() == 1);
    let flag = Some(".the-loop/cli-config.yaml");
    let loaded = load(&machine.world, flag, &Overrides::default()).unwrap();
    assert!(loaded.settings.routing.enabled && loaded.notices.is_empty());
    machine.config("");
    assert_eq!(place(&machine, None), Some(Place::Home));
}

#[test]
fn cf2_a_tracked_link_does_not_lead_elsewhere() {
    let machine = Machine::new();
    let secret = machine.home.join("elsewhere/cli-config.yaml");
    machine.write(&secret, "routing: {enabled: true}\n");
    machine.git(&machine.cwd, &["init", "-q"]);
    std::os::unix::fs::symlink(secret.parent().unwrap(), machine.cwd.join(".the-loop")).unwrap();
    assert_eq!(
        place(&machine, None),
        Some(Place::CurrentDir),
        "a link of the operator's own"
    );
    machine.git(&machine.cwd, &["add", ".the-loop"]);
    assert_eq!(
        place(&machine, None),
        None,
        "a link that the repository holds"
    );
}

#[test]
fn cf2_a_work_tree_in_which_git_gives_no_answer_counts_as_tracking() {
    let machine = Machine::new();
    machine.write(&here(&machine), "");
    machine.write(&machine.cwd.join(".git"), "gitdir: /nowhere/at/all\n");
    assert_eq!(place(&machine, None), None);
}

#[test]
fn cf2_what_others_may_write_is_passed_over() {
    let machine = Machine::new();
    let file = here(&machine);
    machine.write(&file, "");
    let disk = &machine.world.disk;
    let why = || find(&machine.world, None).candidates[2].why.clone();
    disk.set_mode(&file, 0o620).unwrap();
    assert_eq!(why(), "others may write to it");
    disk.set_mode(&file, 0o600).unwrap();
    disk.set_mode(file.parent().unwrap(), 0o777).unwrap();
    assert_eq!(why(), "others may write to its directory");
    disk.set_mode(file.parent().unwrap(), 0o755).unwrap();
    assert_eq!(why(), "taken");
    disk.remove(&file).unwrap();
    disk.create_dir_all(&file).unwrap();
    assert_eq!(why(), "it is not a regular file");
}

#[test]
fn cf2_the_home_directory_is_no_repository_that_is_worked_on() {
    let mut machine = Machine::new();
    machine.config("");
    machine.world.cwd = machine.home.clone();
    machine.git(&machine.home, &["init", "-q"]);
    machine.git(&machine.home, &["add", "-f", ".the-loop"]);
    let search = find(&machine.world, None);
    assert_eq!(search.found.map(|found| found.place), Some(Place::Home));
    assert!(search.warnings.is_empty());
}

#[test]
fn cf3_a_named_file_that_is_not_there_is_an_error() {
    let mut machine = Machine::new();
    let first = |machine: &Machine, flag| {
        let fault = load(&machine.world, flag, &Overrides::default()).unwrap_err();
        fault.first(machine.world.home.as_deref())
    };
    assert_eq!(
        first(&machine, Some("~/none.yaml")),
        "no configuration at ~/none.yaml (from --config)"
    );
    machine.env("THE_LOOP_CLI_CONFIG", "/none/at.yaml");
    let expected = "no configuration at /none/at.yaml (from THE_LOOP_CLI_CONFIG)";
    assert_eq!(first(&machine, None), expected);
    assert!(first(&machine, Some("~")).starts_with("cannot read ~: "));
}

#[test]
fn cf5_the_base_directory_is_beside_the_state() {
    let machine = Machine::new();
    let loaded = |flag: Option<&str>| load(&machine.world, flag, &Overrides::default()).unwrap();
    let none = loaded(None);
    assert_eq!(none.base_dir, machine.cwd);
    assert_eq!(none.settings.state.root, machine.cwd.join(".the-loop"));
    machine.config("env: {file: x.env}\nrouting: {workspace: {root: w}}\n");
    let home = loaded(None);
    assert_eq!(home.base_dir, machine.home);
    assert_eq!(home.settings.state.root, machine.home.join(".the-loop"));
    assert_eq!(home.settings.env.file, machine.home.join(".the-loop/x.env"));
    assert_eq!(home.settings.routing.workspace.root, machine.home.join("w"));
    machine.write(&machine.cwd.join("etc/loop.yaml"), "env: {file: x.env}\n");
    let named = loaded(Some("etc/loop.yaml"));
    assert_eq!(named.base_dir, machine.cwd.join("etc"));
    assert_eq!(named.settings.state.root, machine.cwd.join("etc/.the-loop"));
    assert_eq!(named.settings.env.file, machine.cwd.join("etc/x.env"));
    assert_eq!(named.path, Some(machine.cwd.join("etc/loop.yaml")));
}
