//! OpenCode.

use std::path::Path;

use serde_json::json;

use crate::agent::Agent;
use crate::rig::SECRET;
use crate::scenario::{self, close, started};

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

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di27_di39_questions_menus_errors_and_a_server_that_goes() {
    let Some(rig) = started(&OPENCODE) else {
        return;
    };
    // A question of its own takes the place of the input line.
    rig.comment("[[ask]]");
    rig.confirmed(2);
    rig.shows("Which colour?");
    rig.state("waiting");
    rig.comment("Meanwhile [[run touch made-second]].");
    rig.stays_held("dialog");
    rig.types(&["Escape"]);
    rig.confirmed(3);
    rig.made("made-second");
    rig.state("idle");

    // A menu lies over it, which then still shows.
    rig.types(&["C-p"]);
    rig.shows("Suggested");
    rig.comment("Meanwhile [[run touch made-third]].");
    rig.until("the hold", || {
        let waiting = rig.json(&["deliveries", "list"]);
        (waiting[0]["heldBecause"] == "dialog").then_some(())
    });
    assert!(rig.screen().contains("Suggested"), "{}", rig.screen());
    rig.types(&["Escape"]);
    rig.confirmed(4);
    rig.made("made-third");
    rig.state("idle");

    // It tries again by itself when the provider refuses, and what comes meanwhile is queued.
    rig.model.fail(429, "rate_limit_error");
    rig.comment("Over a limit [[run touch made-fourth]].");
    rig.confirmed(5);
    rig.shows("retrying");
    rig.state("working");
    rig.model.mend();
    rig.made("made-fourth");
    rig.state("idle");

    // The whole tmux server goes; the conversation does not.
    let before = rig.session();
    rig.tmux(&["kill-server"]);
    rig.comment("Over another [[run touch made-fifth]].");
    rig.confirmed(6);
    rig.made("made-fifth");
    let after = rig.session();
    assert_eq!(after["harnessSessionId"], before["harnessSessionId"]);
    assert!(rig.model.conversation().contains("made-second"));
    assert!(rig.events("delivery.uncertain").is_empty());
    assert!(rig.events("delivery.unconfirmed").is_empty());
    // Its settings came in the environment: the operator's own file is as it was.
    let config = rig.path("home/.config/opencode/opencode.json");
    let config = std::fs::read_to_string(config).unwrap();
    assert!(!config.contains("external_directory"), "{config}");
    close(&rig);
}
