//! Codex.

use std::path::Path;

use crate::agent::Agent;
use crate::rig::{Rig, SECRET};
use crate::scenario::{self, close, start, started};

const CODEX: Agent = Agent {
    name: "codex",
    variable: "THE_LOOP_TEST_CODEX",
    args: &[],
    env: |_| vec![("FAKE_KEY", SECRET.to_owned())],
    settle,
    confirms: "transcript",
    asks: "Would you like to run the following command?",
    allow: &["y"],
    clear: &["C-u"],
};

/// Names the model server as a provider of models, which reads a long mail in one go.
fn settle(home: &Path, model: &str) {
    let folder = home.join(".codex");
    std::fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "model = \"fake-model\" # no other\nmodel_provider = \"fake\"\n\
         check_for_update_on_startup = false\ntool_output_token_limit = 100000\n[analytics]\nenabled = false\n\
         [model_providers.fake]\nname = \"fake\"\nbase_url = \"{model}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"FAKE_KEY\"\n"
    );
    std::fs::write(folder.join("config.toml"), config).unwrap();
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_a_ticket_from_start_to_close() {
    scenario::a_ticket_from_start_to_close(&CODEX);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di26_every_text_is_only_text() {
    scenario::every_text_is_only_text(&CODEX);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_se59_a_relaunch_with_new_values_in_the_middle_of_a_turn() {
    scenario::a_relaunch_with_new_values_in_the_middle_of_a_turn(&CODEX);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di21_a_first_run_question_is_left_to_a_person() {
    let Some(rig) = Rig::new(&CODEX, "harnessTrust: {enabled: false}") else {
        return;
    };
    let question = "Trust this folder?";
    start(&rig);
    rig.state("waiting");
    rig.shows(question);
    rig.comment("Meanwhile [[run touch made-second]].");
    rig.until("two that wait", || {
        let waiting = rig.json(&["deliveries", "list"]);
        (waiting.as_array().unwrap().len() == 2).then_some(())
    });
    assert!(rig.screen().contains(question), "{}", rig.screen());
    assert!(rig.model.prompts().is_empty());
    let config = std::fs::read_to_string(rig.path("home/.codex/config.toml")).unwrap();
    assert!(!config.contains("trust_level"), "nobody has answered");
    rig.types(&["1"]);
    rig.types(&["Enter"]);
    rig.confirmed(2);
    rig.made("made-second");
    assert_eq!(rig.events("session.spawned").len(), 1);
    close(&rig);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di42_a_usage_limit_holds_until_a_turn_goes_well() {
    let Some(rig) = started(&CODEX) else { return };
    // The operator's own words in the settings are kept beside our answer about trust.
    let config = std::fs::read_to_string(rig.path("home/.codex/config.toml")).unwrap();
    assert!(config.contains("# no other"), "{config}");
    assert!(config.contains("trust_level = \"trusted\""), "{config}");
    rig.model.fail(429, "usage_limit_reached");
    rig.comment("this one meets the limit");
    rig.confirmed(2);
    rig.state("waiting");
    rig.comment("After it [[run touch made-second]].");
    rig.stays_held("usage-limit");
    rig.model.mend();
    rig.types(&["-l", "go on"]);
    // Keys that come as fast as these are taken for a paste, and an Enter among them for a new line.
    let heard = rig.model.prompts().len();
    rig.until("a turn of the person's", || {
        rig.types(&["Enter"]);
        (rig.model.prompts().len() > heard).then_some(())
    });
    rig.confirmed(3);
    rig.made("made-second");
    rig.state("idle");
    assert!(rig.events("session.exited").is_empty());
    close(&rig);
}
