use std::collections::BTreeMap;
use std::sync::Arc;

use secrecy::ExposeSecret;
use the_loop_core::config::GithubHost;

use super::*;
use crate::disk::{Disk, OsDisk};
use crate::store::testing::Place;

fn token_of(world: &World, settings: &Settings, host: &str) -> Result<String, String> {
    token(world, settings, host)
        .map(|token| token.expose_secret().to_owned())
        .map_err(|e| e.to_string())
}

fn with_env(world: &World, vars: &[(&str, &str)]) -> World {
    let vars = vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    World {
        env: Arc::new(vars.collect::<BTreeMap<_, _>>()),
        ..world.clone()
    }
}

fn program(dir: &Utf8Path, text: &str) -> String {
    let file = dir.join("gh");
    OsDisk.create_new(&file, text.as_bytes(), 0o755).unwrap();
    file.to_string()
}

#[test]
fn cf16_a_file_wins_over_a_variable_and_that_over_the_program() {
    let place = Place::new();
    let (path, world) = (place.base(), &place.world);
    let mut settings = Settings::default();
    let script = "#!/bin/sh\necho \"from-gh $*\" | tr ' ' _\n";
    settings.integrations.github.cli.binary = program(path, script);
    let bare = with_env(world, &[]);
    let asked = "from-gh_auth_token_--hostname_github.com";
    assert_eq!(token_of(&bare, &settings, "github.com").unwrap(), asked);
    let set = with_env(
        world,
        &[("GITHUB_TOKEN", ""), ("GH_TOKEN", "from-variable")],
    );
    assert_eq!(
        token_of(&set, &settings, "GitHub.com").unwrap(),
        "from-variable"
    );
    let file = path.join("token");
    OsDisk
        .create_new(&file, b" from-file \nmore\n", 0o600)
        .unwrap();
    settings.integrations.github.token_file = file.to_string();
    assert_eq!(
        token_of(&set, &settings, "github.com").unwrap(),
        "from-file"
    );
    // Another host has its own sources, and never gets this one's token.
    let hosts = &mut settings.integrations.github.hosts;
    hosts.insert("ghe.example".to_owned(), GithubHost::default());
    settings.integrations.github.cli.binary = String::new();
    let none = token_of(&set, &settings, "ghe.example").unwrap_err();
    assert!(none.contains("GH_ENTERPRISE_TOKEN"), "{none}");
    let own = with_env(world, &[("GITHUB_ENTERPRISE_TOKEN", "for-ghe")]);
    assert_eq!(token_of(&own, &settings, "ghe.example").unwrap(), "for-ghe");
}

#[test]
fn cf16_a_configured_file_that_is_of_no_use_is_said_and_replaced_by_nothing() {
    let place = Place::new();
    let (path, world) = (place.base(), &place.world);
    let mut settings = Settings::default();
    let world = with_env(world, &[("GITHUB_TOKEN", "from-variable")]);
    for (name, bytes) in [
        ("missing", None),
        ("empty", Some(&b""[..])),
        ("blank", Some(b"\ntoken\n")),
        ("spaced", Some(b"two words\n")),
        ("odd", Some(b"\xff\xfe\n")),
    ] {
        let file = path.join(name);
        if let Some(bytes) = bytes {
            OsDisk.create_new(&file, bytes, 0o600).unwrap();
        }
        settings.integrations.github.token_file = file.to_string();
        let fault = token_of(&world, &settings, "github.com").unwrap_err();
        assert!(fault.starts_with(&format!("tokenFile {file}: ")), "{fault}");
        assert!(!fault.contains("words"), "{fault}");
    }
}

#[test]
fn cf16_a_program_that_fails_or_babbles_has_no_token() {
    let place = Place::new();
    let (path, world) = (place.base(), with_env(&place.world, &[]));
    let mut settings = Settings::default();
    for (n, text) in ["exit 1", "echo a b", "true"].iter().enumerate() {
        let dir = path.join(n.to_string());
        OsDisk.create_dir_all(&dir).unwrap();
        let text = format!("#!/bin/sh\n{text}\n");
        settings.integrations.github.cli.binary = program(&dir, &text);
        assert!(is_possible(&world, &settings, "github.com"));
        token_of(&world, &settings, "github.com").unwrap_err();
    }
    settings.integrations.github.cli.binary = String::new();
    assert!(!is_possible(&world, &settings, "github.com"));
}
