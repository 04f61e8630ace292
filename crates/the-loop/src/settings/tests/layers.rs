//! CF-7, CF-8: what goes over what, and where a value comes from.

use super::Machine;
use crate::settings::{Overrides, check_file, load, warnings_of_machine};

#[test]
fn cf8_every_value_keeps_its_origin() {
    let mut machine = Machine::new();
    machine.config(
        "state:\n  root: /srv/a\nrouting:\n  enabled: true\n  harnessArgs:\n    claude: [-x]\n",
    );
    let overrides = Overrides {
        registry_dir: Some("reg".to_owned()),
    };
    let loaded = load(&machine.world, None, &overrides).unwrap();
    let origin = |key: &str| loaded.origins.of(key).to_string();
    assert_eq!(origin("state.root"), "file 2:3");
    assert_eq!(origin("routing.enabled"), "file 4:3");
    assert_eq!(origin("routing.harnessArgs"), "file 5:3");
    assert_eq!(origin("routing.announce.enabled"), "default");
    assert_eq!(origin("routing.registryDir"), "flag --registry-dir");
    assert_eq!(
        loaded.settings.routing.registry_dir,
        machine.cwd.join("reg")
    );
    machine.env("THE_LOOP_STATE_ROOT", "/srv/b/");
    let loaded = load(&machine.world, None, &Overrides::default()).unwrap();
    assert_eq!(
        loaded.origins.of("state.root").to_string(),
        "env THE_LOOP_STATE_ROOT"
    );
    assert_eq!(loaded.settings.state.root, "/srv/b");
    assert_eq!(loaded.settings.routing.registry_dir, "/srv/b/local");
    assert_eq!(loaded.settings.event_log.path, "/srv/b/logs/events.jsonl");
}

#[test]
fn cf7_the_state_root_of_the_environment_is_absolute() {
    let mut machine = Machine::new();
    machine.env("THE_LOOP_STATE_ROOT", "relative");
    let fault = load(&machine.world, None, &Overrides::default()).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "THE_LOOP_STATE_ROOT must be an absolute path"
    );
}

#[test]
fn cf12_a_fault_is_written_with_its_place() {
    let machine = Machine::new();
    machine.config("routing:\n  enabled: yes\n  zzzzzz: 1\nstate: {root: /srv/r}\n");
    let fault = load(&machine.world, None, &Overrides::default()).unwrap_err();
    let lines = fault.lines(machine.world.home.as_deref());
    assert_eq!(
        lines[0],
        "~/.the-loop/cli-config.yaml:2:12: `routing.enabled` must be true or false, found the string \
         \"yes\" (write true)"
    );
    assert_eq!(lines.len(), 2);
    assert_eq!(fault.readable.state.root, "/srv/r");
    assert_eq!(
        fault.readable.webhooks.gh_webhook.pidfile,
        "/srv/r/gh-webhook.pid"
    );
}

#[test]
fn cf6_a_path_below_an_unknown_home_is_a_fault() {
    let mut machine = Machine::new();
    machine.write(&machine.cwd.join("c.yaml"), "env: {file: ~/x}\n");
    machine.world.home = None;
    let fault = load(&machine.world, Some("c.yaml"), &Overrides::default()).unwrap_err();
    assert!(
        fault.to_string().contains("no home directory is known"),
        "{fault}"
    );
}

#[test]
fn cf14_warnings_of_the_machine() {
    let mut machine = Machine::new();
    let path = machine.config(
        "env: {file: e.env}\nrouting: {promptTemplate: p.md}\nwebhooks: {ghWebhook: {enabled: true, secretFile: s}}\n",
    );
    machine.write(&machine.home.join(".the-loop/s"), "short\n");
    machine.write(&machine.home.join(".the-loop/e.env"), "A=1\nbad line\n");
    for name in ["cli-config.yaml", "s", "e.env"] {
        let file = machine.home.join(".the-loop").join(name);
        machine.world.disk.set_mode(&file, 0o644).unwrap();
    }
    let loaded = check_file(&machine.world, path.as_str()).unwrap();
    let warnings = || -> String {
        let found = warnings_of_machine(&machine.world, &loaded.settings, loaded.path.as_deref());
        found.iter().map(|p| p.line("") + "\n").collect()
    };
    let text = warnings();
    for part in [
        "the configuration ~/.the-loop/cli-config.yaml can be read by others",
        "the env file ~/.the-loop/e.env can be read by others",
        "skipped what is not NAME=VALUE: line 2",
        "secretFile ~/.the-loop/s can be read by others",
        "shorter than 16 characters",
        "there is no file ~/p.md",
        "claude, is not on PATH",
        "tmux is not on PATH: no session can be started",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    for name in ["claude", "tmux"] {
        let program = machine.home.join("bin").join(name);
        machine.write(&program, "#!/bin/sh\n");
        machine.world.disk.set_mode(&program, 0o755).unwrap();
    }
    let bin = format!("/nowhere:{}", machine.home.join("bin"));
    machine.env("PATH", &bin);
    let found = warnings_of_machine(&machine.world, &loaded.settings, None);
    assert!(
        found.iter().all(|p| !p.message.contains("PATH")),
        "{found:?}"
    );
}
