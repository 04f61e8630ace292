//! Gemini CLI.

use std::path::Path;

use crate::agent::Agent;
use crate::rig::{Rig, SECRET};
use crate::scenario::{self, close, start, started};

const GEMINI: Agent = Agent {
    name: "gemini",
    variable: "THE_LOOP_TEST_GEMINI",
    args: &[],
    env: |model| {
        vec![
            ("GOOGLE_GEMINI_BASE_URL", model.to_owned()),
            ("GEMINI_API_KEY", SECRET.to_owned()),
        ]
    },
    settle,
    confirms: "transcript",
    asks: "Allow execution of",
    allow: &["1"],
    clear: &["C-u"],
};

/// How it logs in, and that it may run `touch` unasked.
fn settle(home: &Path, _: &str) {
    let folder = home.join(".gemini");
    std::fs::create_dir_all(folder.join("policies")).unwrap();
    let settings = r#"{"security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}}"#;
    std::fs::write(folder.join("settings.json"), settings).unwrap();
    let policy = "[[rule]]\ntoolName = \"run_shell_command\"\ncommandPrefix = \"touch\"\n\
        decision = \"allow\"\npriority = 100\n";
    std::fs::write(folder.join("policies/touch.toml"), policy).unwrap();
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_a_ticket_from_start_to_close() {
    scenario::a_ticket_from_start_to_close(&GEMINI);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di26_every_text_is_only_text() {
    scenario::every_text_is_only_text(&GEMINI);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di21_a_first_run_question_is_left_to_a_person() {
    let Some(rig) = Rig::new(&GEMINI, "harnessTrust: {enabled: false}") else {
        return;
    };
    start(&rig);
    // Its title says that it is ready meanwhile.
    rig.shows("Do you trust the files in this folder?");
    rig.state("waiting");
    rig.comment("Meanwhile [[run touch made-second]].");
    rig.until("two that wait", || {
        let waiting = rig.json(&["deliveries", "list"]);
        (waiting.as_array().unwrap().len() == 2).then_some(())
    });
    assert!(rig.screen().contains("Do you trust"), "{}", rig.screen());
    assert!(rig.model.prompts().is_empty());
    rig.types(&["1"]);
    // The mail directory is another question.
    rig.shows("Do you trust the following folders");
    rig.types(&["1"]);
    rig.confirmed(2);
    rig.made("made-second");
    assert_eq!(rig.events("session.spawned").len(), 1);
    close(&rig);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di29_what_is_queued_a_question_and_a_lost_server() {
    let Some(rig) = started(&GEMINI) else { return };

    // What comes within a turn is queued by the agent, and comes to the model as one.
    rig.comment("Take your time: [[slow 4000]]");
    rig.state("working");
    rig.comment("the first of two");
    rig.comment("the second of two");
    rig.confirmed(4);
    rig.until("both came, in order", || {
        let said = rig.model.conversation();
        let (first, second) = (said.find("/4.md and do"), said.find("/5.md and do"));
        (first.is_some() && first < second).then_some(())
    });
    rig.state("idle");

    // A question of its own is a person's.
    rig.comment("[[ask]]");
    rig.confirmed(5);
    rig.shows("Which colour?");
    rig.comment("Meanwhile [[run touch made-second]].");
    rig.stays_held("dialog");
    rig.types(&["Escape"]);
    rig.confirmed(6);
    rig.made("made-second");
    rig.state("idle");

    // The whole tmux server goes; the conversation does not.
    let before = rig.session();
    rig.tmux(&["kill-server"]);
    rig.comment("Over another [[run touch made-third]].");
    rig.confirmed(7);
    rig.made("made-third");
    let after = rig.session();
    assert_eq!(after["harnessSessionId"], before["harnessSessionId"]);
    assert!(rig.model.conversation().contains("/4.md and do"));
    assert!(rig.events("delivery.uncertain").is_empty());
    assert!(rig.events("delivery.unconfirmed").is_empty());
    close(&rig);
}
