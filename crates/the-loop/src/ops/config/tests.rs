use serde_json::json;

use super::*;
use crate::settings::tests::Machine;

fn loaded(machine: &Machine) -> Loaded {
    settings::load(&machine.world, None, &Overrides::default()).unwrap()
}

#[test]
fn se78_the_path_in_use_and_every_place() {
    let machine = Machine::new();
    let none = path(&machine.world, None);
    assert_eq!(none.path, None);
    let file = machine.config("zzzzz: [");
    let report = path(&machine.world, None);
    assert_eq!(report.path.as_ref(), Some(&file));
    let here = machine.cwd.join(".the-loop/cli-config.yaml");
    let expected = [
        "  --config: not set".to_owned(),
        "  THE_LOOP_CLI_CONFIG: not set".to_owned(),
        format!("  current directory: {here}: not there"),
        format!("> home directory: {file}: taken"),
    ];
    assert_eq!(report.all_lines(), expected);
    assert_eq!(report.json()["candidates"][3]["taken"], json!(true));
}

#[test]
fn se79_a_check_lists_faults_or_says_ok() {
    let machine = Machine::new();
    let home = machine.world.home.as_deref();
    let none = check(&machine.world, None, None);
    assert_eq!(none.lines(home), ["ok: built-in defaults (version 1.0.0)"]);
    machine.config("version: 1.0.0\n");
    let good = check(&machine.world, None, None);
    assert_eq!(
        good.lines(home),
        ["ok: ~/.the-loop/cli-config.yaml (version 1.0.0)"]
    );
    assert_eq!(good.exit_code(), 0);
    machine.write(&machine.cwd.join("c.yaml"), "routing:\n  enabled: yes\n");
    let bad = check(&machine.world, None, Some("c.yaml"));
    assert_eq!(bad.exit_code(), 2);
    let file = machine.cwd.join("c.yaml");
    let message = "`routing.enabled` must be true or false, found the string \"yes\"";
    assert_eq!(
        bad.lines(home),
        [format!("{file}:2:12: {message} (write true)")]
    );
    let problem = json!({
        "line": 2, "column": 12, "key": "routing.enabled", "message": message, "hint": "write true",
    });
    assert_eq!(bad.json()["problems"], json!([problem]));
    assert_eq!(bad.json()["ok"], json!(false));
    let absent = check(&machine.world, None, Some("none.yaml"));
    assert_eq!(absent.exit_code(), 2);
}

#[test]
fn se80_what_is_shown_loads_again_as_the_same() {
    let machine = Machine::new();
    machine.config(concat!(
        "version: 1.0.0\nrouting:\n  enabled: true\n  autoExecuteLabel: 'yes'\n",
        "  authorizedUsers: [octo, 'x[bot]', 'id:12']\n  harnessArgs: {claude: ['--a b', '#x', \"q\\\"'\"]}\n",
        "  tmux: {resumeProbeSeconds: 0.5}\n  control: {keywords: {stop: ''}}\n",
        "integrations: {github: {hosts: {ghe.corp.example: {}}, cloneUrls: {github.com: 'file:///m/{owner}/{repo}'}}}\n",
        "tracker: {local: {repos: {o/r: src}}}\n",
    ));
    let first = loaded(&machine);
    for origin in [false, true] {
        let text = show(&first, None).unwrap().yaml(origin);
        machine.config(&text);
        let again = settings::load(&machine.world, None, &Overrides::default());
        let again = again.unwrap_or_else(|fault| panic!("{fault}\n{text}"));
        assert_eq!(again.settings, first.settings, "{text}");
    }
}

#[test]
fn se80_one_key_with_its_origin() {
    let machine = Machine::new();
    machine.config("routing:\n  enabled: true\n  harnessArgs:\n    claude: [-x]\nintegrations: {github: {hosts: {ghe.corp.example: {}}}}\n");
    let loaded = loaded(&machine);
    let yaml = |key: &str, origin| show(&loaded, Some(key)).unwrap().yaml(origin);
    assert_eq!(yaml("routing.enabled", false), "true\n");
    assert_eq!(yaml("routing.enabled", true), "true # file 2:3\n");
    assert_eq!(
        yaml("routing.harnessArgs.claude", true),
        "[\"-x\"] # file 3:3\n"
    );
    assert_eq!(
        yaml("integrations.github.hosts.\"ghe.corp.example\"", false),
        "apiUrl: \"\"\ntokenFile: \"\"\ntokenEnv: [GH_ENTERPRISE_TOKEN, GITHUB_ENTERPRISE_TOKEN]\napp:\n  id: 0\n  installationId: 0\n  privateKeyFile: \"\"\nquotaReservePercent: 10\n"
    );
    assert_eq!(
        yaml("routing.control", true).lines().next().unwrap(),
        "enabled: true # default"
    );
    assert_eq!(yaml("version", true), "\"1.0.0\" # default\n");
    let all = show(&loaded, None).unwrap().json(true);
    let expected = json!({ "value": true, "origin": "file 2:3" });
    assert_eq!(all["routing"]["enabled"], expected);
    let expected = json!({ "value": { "claude": ["-x"] }, "origin": "file 3:3" });
    assert_eq!(all["routing"]["harnessArgs"], expected);
    assert_eq!(
        show(&loaded, Some("routing")).unwrap().json(false)["enabled"],
        json!(true)
    );
}

#[test]
fn se80_an_unknown_key_gets_the_nearest() {
    let machine = Machine::new();
    let loaded = loaded(&machine);
    let unknown = show(&loaded, Some("routing.enabledd")).unwrap_err();
    assert_eq!(unknown.to_string(), "unknown key `routing.enabledd`");
    assert_eq!(
        unknown.hint.as_deref(),
        Some("did you mean `routing.enabled`?")
    );
    for bad in [
        "",
        ".",
        "routing.",
        "routing..enabled",
        "\"routing",
        "routing.enabled.x",
    ] {
        assert!(show(&loaded, Some(bad)).is_err(), "{bad}");
    }
}

#[test]
fn se83_the_schema_is_one_document() {
    let text = json_schema_text();
    let parsed: Json = serde_json::from_str(&text).unwrap();
    assert!(text.ends_with("}\n") && parsed == json_schema());
}
