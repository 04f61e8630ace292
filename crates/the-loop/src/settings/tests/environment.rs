//! CF-31 to CF-33, CF-36, CF-45: variables and secrets.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::ExposeSecret;

use super::Machine;
use crate::settings::{
    EnvFault, Overrides, SecretFault, Secrets, SecretsHolder, load, pane_environment, prepare,
    read_env_file, webhook_secrets,
};

fn settings(machine: &Machine) -> std::sync::Arc<the_loop_core::config::Settings> {
    load(&machine.world, None, &Overrides::default())
        .unwrap()
        .settings
}

#[test]
fn cf33_a_start_fills_up_what_the_environment_lacks() {
    let mut machine = Machine::new();
    machine.config("env: {file: e.env}\n");
    machine.write(
        &machine.home.join(".the-loop/e.env"),
        "A=file\nB=file\nEMPTY=\n",
    );
    machine.env("A", "here");
    let prepared = prepare(machine.world.clone(), None, &Overrides::default());
    assert!(prepared.loaded.is_ok() && prepared.env_warnings.is_empty());
    let env = &prepared.world.env;
    assert_eq!(
        (env["A"].as_str(), env["B"].as_str(), env["EMPTY"].as_str()),
        ("here", "file", "")
    );
}

#[test]
fn cf33_a_broken_document_still_gives_its_env_file() {
    let machine = Machine::new();
    machine.config("env: {file: e.env}\nzzzzz: 1\n");
    machine.write(&machine.home.join(".the-loop/e.env"), "B=file\n");
    let prepared = prepare(machine.world.clone(), None, &Overrides::default());
    assert!(prepared.loaded.is_err());
    assert_eq!(prepared.world.env["B"], "file");
}

#[test]
fn cf33_the_env_file_may_name_the_state_root() {
    let machine = Machine::new();
    machine.config("env: {file: e.env}\n");
    machine.write(
        &machine.home.join(".the-loop/e.env"),
        "THE_LOOP_STATE_ROOT=/srv/root\n",
    );
    let prepared = prepare(machine.world.clone(), None, &Overrides::default());
    assert_eq!(prepared.loaded.unwrap().settings.state.root, "/srv/root");
}

#[test]
fn cf32_an_env_file_that_cannot_be_used() {
    let machine = Machine::new();
    machine.config("env: {file: e.env}\n");
    let settings = settings(&machine);
    let file = machine.home.join(".the-loop/e.env");
    let missing = read_env_file(&machine.world, &settings).unwrap_err();
    let expected = "cannot read the env file ~/.the-loop/e.env: there is no such file";
    assert_eq!(missing.to_string(), expected);
    machine.write(&file, "A=1\nTOKEN=\0hunter2\n");
    let binary = read_env_file(&machine.world, &settings).unwrap_err();
    assert!(matches!(binary, EnvFault::Refused { .. }) && !binary.to_string().contains("hunter2"));
    machine.world.disk.remove(&file).unwrap();
    machine.world.disk.create_dir_all(&file).unwrap();
    let folder = read_env_file(&machine.world, &settings).unwrap_err();
    assert!(
        folder.to_string().contains("not a regular file"),
        "{folder}"
    );
    let prepared = prepare(machine.world.clone(), None, &Overrides::default());
    assert_eq!(
        (prepared.loaded.is_ok(), prepared.env_warnings.len()),
        (true, 1)
    );
}

#[test]
fn cf33_what_a_pane_gets() {
    let mut machine = Machine::new();
    machine.config(
        "env: {file: e.env, pass: [ACME_*, ONE]}\nwebhooks: {ghWebhook: {secretEnv: HOOK}}\n",
    );
    machine.write(
        &machine.home.join(".the-loop/e.env"),
        "ACME_A=file\nNEW=\nHOOK=s\nHOOK_PREVIOUS=s\nTHE_LOOP_INSTANCE=no\nLANG=de\n",
    );
    for (name, value) in [
        ("PATH", "/bin"),
        ("HOME", "/h"),
        ("LC_ALL", "C"),
        ("XDG_RUNTIME_DIR", "/x"),
        ("LANG", "en"),
        ("TERM", "dumb"),
        ("TMUX", "other"),
        ("AWS_SECRET", "x"),
        ("ACME_A", "env"),
        ("ACME_B", "env"),
        ("ONE", "1"),
        ("ONE_MORE", "1"),
        ("HOOK", "s"),
        ("THE_LOOP_WORK_ITEM", "old"),
    ] {
        machine.env(name, value);
    }
    let own = [("THE_LOOP_INSTANCE", "0123".to_owned())];
    let env = pane_environment(&machine.world, &settings(&machine), &BTreeMap::new(), &own);
    let pairs: Vec<(&str, &str)> = env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let expected = [
        ("ACME_A", "file"),
        ("ACME_B", "env"),
        ("HOME", "/h"),
        ("LANG", "de"),
        ("LC_ALL", "C"),
        ("NEW", ""),
        ("ONE", "1"),
        ("PATH", "/bin"),
        ("THE_LOOP_INSTANCE", "0123"),
        ("XDG_RUNTIME_DIR", "/x"),
    ];
    assert_eq!(pairs, expected);
}

#[test]
fn cf33_passing_everything_of_a_prefix_gives_no_secret_away() {
    let mut machine = Machine::new();
    machine.config("env: {pass: ['THE_LOOP_*']}\n");
    machine.env("THE_LOOP_GH_WEBHOOK_SECRET", "s");
    machine.env("THE_LOOP_GH_WEBHOOK_SECRET_PREVIOUS", "s");
    machine.env("THE_LOOP_STATE_ROOT", "/srv/x");
    machine.env("THE_LOOP_DEMO_BUSY_MS", "1");
    let env = pane_environment(&machine.world, &settings(&machine), &BTreeMap::new(), &[]);
    assert_eq!(env.keys().collect::<Vec<_>>(), ["THE_LOOP_DEMO_BUSY_MS"]);
}

fn values(secrets: &Secrets) -> Vec<String> {
    let values = secrets.values.iter();
    values
        .map(|secret| secret.expose_secret().to_owned())
        .collect()
}

#[test]
fn in5_secrets_of_the_environment() {
    let mut machine = Machine::new();
    let fault = webhook_secrets(&machine.world, &settings(&machine)).unwrap_err();
    assert_eq!(
        fault,
        SecretFault::NotSet("THE_LOOP_GH_WEBHOOK_SECRET".to_owned())
    );
    machine.env("THE_LOOP_GH_WEBHOOK_SECRET", "0123456789abcdef");
    machine.env("THE_LOOP_GH_WEBHOOK_SECRET_PREVIOUS", "");
    let one = webhook_secrets(&machine.world, &settings(&machine)).unwrap();
    assert_eq!(
        (values(&one), one.warnings.len()),
        (vec!["0123456789abcdef".to_owned()], 0)
    );
    machine.env("THE_LOOP_GH_WEBHOOK_SECRET_PREVIOUS", "old");
    let two = webhook_secrets(&machine.world, &settings(&machine)).unwrap();
    assert_eq!((values(&two)[1].as_str(), two.warnings.len()), ("old", 1));
    assert!(!format!("{two:?}").contains("0123456789abcdef"));
}

#[test]
fn in5_secrets_of_a_file() {
    let mut machine = Machine::new();
    machine.config("webhooks: {ghWebhook: {secretFile: s}}\n");
    machine.env("THE_LOOP_GH_WEBHOOK_SECRET", "never read");
    let file = machine.home.join(".the-loop/s");
    let settings = settings(&machine);
    let read = |text: &str| {
        machine.write(&file, text);
        webhook_secrets(&machine.world, &settings).map(|secrets| values(&secrets))
    };
    assert_eq!(
        read("a secret of good length\n").unwrap(),
        ["a secret of good length"]
    );
    assert_eq!(read("one\r\ntwo").unwrap(), ["one", "two"]);
    assert_eq!(read(""), Err(SecretFault::EmptyFile));
    assert_eq!(read("\n"), Err(SecretFault::EmptyFile));
    assert_eq!(read("\ntwo\n"), Err(SecretFault::EmptyLine(1)));
    assert_eq!(read("one\n\n"), Err(SecretFault::EmptyLine(2)));
    assert_eq!(read("one\ntwo\nthree\n"), Err(SecretFault::TooMany));
    assert_eq!(SecretFault::EmptyFile.to_string(), "secretFile is empty");
    machine.world.disk.remove(&file).unwrap();
    let missing = webhook_secrets(&machine.world, &settings).unwrap_err();
    assert!(matches!(missing, SecretFault::Unreadable { .. }));
}

#[test]
fn cf36_the_last_good_secret_is_kept_and_warned_of_once_a_minute() {
    let machine = Machine::new();
    machine.config("webhooks: {ghWebhook: {secretFile: s}}\n");
    let file = machine.home.join(".the-loop/s");
    let settings = settings(&machine);
    let holder = SecretsHolder::default();
    let now = || holder.current(&machine.world, &settings);
    assert!(matches!(now(), Err(SecretFault::Unreadable { .. })));
    machine.write(&file, "first\n");
    let (secrets, due) = now().unwrap();
    assert_eq!((values(&secrets), due), (vec!["first".to_owned()], None));
    machine.write(&file, "");
    let (secrets, due) = now().unwrap();
    assert_eq!(values(&secrets), ["first"]);
    assert_eq!(
        due.unwrap(),
        "secretFile is empty; still using the secret read before"
    );
    assert_eq!(now().unwrap().1, None);
    machine.world.clock.advance(Duration::from_mins(1));
    assert!(now().unwrap().1.is_some());
    machine.write(&file, "second, new\nfirst\n");
    let (secrets, due) = now().unwrap();
    assert_eq!(
        (values(&secrets), due),
        (vec!["second, new".to_owned(), "first".to_owned()], None)
    );
}
