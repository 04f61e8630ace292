//! OpenCode.

use std::path::Path;

use serde_json::json;

use crate::agent::Agent;
use crate::rig::SECRET;
use crate::scenario;

const OPENCODE: Agent = Agent {
    name: "opencode",
    variable: "THE_LOOP_TEST_OPENCODE",
    args: &[],
    env: |_| {
        vec![
            ("FAKE_KEY", SECRET.to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ]
    },
    settle,
    confirms: "transcript",
    asks: "Permission required",
    allow: &["Enter"],
    clear: &["C-u"],
};

/// Names the model server as a provider of models; a `touch` is allowed, other commands are asked about.
fn settle(home: &Path, model: &str) {
    let folder = home.join(".config/opencode");
    std::fs::create_dir_all(&folder).unwrap();
    let config = json!({
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "share": "disabled",
        "permission": {"bash": {"*": "ask", "touch *": "allow"}},
        "provider": {"fake": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Fake",
            "options": {"baseURL": format!("{model}/v1"), "apiKey": "{env:FAKE_KEY}"},
            "models": {"fake-model": {
                "name": "Fake Model",
                "limit": {"context": 200_000, "output": 8_000},
            }},
        }},
    });
    std::fs::write(folder.join("opencode.json"), config.to_string()).unwrap();
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_a_ticket_from_start_to_close() {
    scenario::a_ticket_from_start_to_close(&OPENCODE);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di26_every_text_is_only_text() {
    scenario::every_text_is_only_text(&OPENCODE);
}
