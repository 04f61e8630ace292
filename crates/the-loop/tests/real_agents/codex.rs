//! Codex.

use std::path::Path;

use crate::agent::Agent;
use crate::rig::SECRET;
use crate::scenario;

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

/// Names the model server as a provider of models.
fn settle(home: &Path, model: &str) {
    let folder = home.join(".codex");
    std::fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "model = \"fake-model\" # no other\nmodel_provider = \"fake\"\n\
         check_for_update_on_startup = false\n[analytics]\nenabled = false\n\
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
