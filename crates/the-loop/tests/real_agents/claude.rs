//! Claude Code.

use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::rig::{Rig, SECRET};
use crate::scenario::{self, close, start, started};

const CLAUDE: Agent = Agent {
    name: "claude",
    variable: "THE_LOOP_TEST_CLAUDE",
    args: &["--permission-mode", "acceptEdits"],
    env: |model| {
        vec![
            ("ANTHROPIC_BASE_URL", model.to_owned()),
            ("ANTHROPIC_AUTH_TOKEN", SECRET.to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "0".to_owned()),
        ]
    },
    settle: |_, _| {},
    confirms: "hook",
    asks: "Do you want to",
    allow: &["1"],
    clear: &["C-u"],
};

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_a_ticket_from_start_to_close() {
    scenario::a_ticket_from_start_to_close(&CLAUDE);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di26_every_text_is_only_text() {
    scenario::every_text_is_only_text(&CLAUDE);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_se59_a_relaunch_with_new_values_in_the_middle_of_a_turn() {
    scenario::a_relaunch_with_new_values_in_the_middle_of_a_turn(&CLAUDE);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di21_a_first_run_question_is_left_to_a_person() {
    let Some(rig) = Rig::new(&CLAUDE, "harnessTrust: {enabled: false}") else {
        return;
    };
    let onboarded = r#"{"hasCompletedOnboarding": true}"#;
    std::fs::write(rig.path("home/.claude.json"), onboarded).unwrap();
    start(&rig);
    rig.state("waiting");
    rig.shows("Yes, I trust");
    rig.comment("Meanwhile [[run touch made-second]].");
    rig.until("two that wait", || {
        let waiting = rig.json(&["deliveries", "list"]);
        (waiting.as_array().unwrap().len() == 2).then_some(())
    });
    assert!(rig.screen().contains("Yes, I trust"), "{}", rig.screen());
    assert!(rig.model.prompts().is_empty());
    // It draws the question before it reads keys: one that it did not see is typed again.
    let mut typed: Option<Instant> = None;
    rig.until("the other answer", || {
        let screen = rig.screen();
        let mut rows = screen.lines().map(str::trim_start);
        let yes = rows.any(|row| row.starts_with('❯') && row.contains("Yes, I trust"));
        if !yes && typed.is_none_or(|at| at.elapsed() > Duration::from_secs(1)) {
            rig.types(&["Down"]);
            typed = Some(Instant::now());
        }
        yes.then_some(())
    });
    rig.types(&["Enter"]);
    // The second may reach the agent within its first turn, and the model does the newest wish.
    rig.confirmed(2);
    rig.made("made-second");
    assert_eq!(rig.events("session.spawned").len(), 1);
    close(&rig);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di29_a_busy_agent_a_limit_and_crashes() {
    let Some(rig) = started(&CLAUDE) else { return };

    // While a turn is in work, what comes is queued by the agent itself, in order.
    rig.comment("Take your time: [[slow 4000]]");
    rig.confirmed(2);
    rig.comment("the first of two");
    rig.comment("the second of two");
    rig.confirmed(4);
    // It looks idle between its turn and what it has queued.
    rig.until("both came, in order", || {
        let said = rig.model.conversation();
        let (first, second) = (said.find("/4.md and do"), said.find("/5.md and do"));
        (first.is_some() && first < second).then_some(())
    });
    rig.state("idle");

    // A question of its own is a person's as well.
    rig.comment("[[ask]]");
    rig.confirmed(5);
    rig.shows("Which colour?");
    rig.comment("Meanwhile [[run touch made-second]].");
    rig.stays_held("dialog");
    rig.types(&["Escape"]);
    rig.confirmed(6);
    rig.made("made-second");
    rig.state("idle");

    // A usage limit holds what comes, until a turn has gone well again.
    rig.model.fail(429, "rate_limit_error");
    rig.comment("this one meets the limit");
    rig.confirmed(7);
    rig.state("waiting");
    rig.comment("After it [[run touch made-third]].");
    rig.stays_held("usage-limit");
    rig.model.mend();
    rig.types(&["-l", "go on"]);
    rig.types(&["Enter"]);
    rig.confirmed(8);
    rig.made("made-third");
    rig.state("idle");

    // The daemon is killed while a delivery is held; its successor delivers it, once.
    rig.types(&["-l", "a thought"]);
    rig.shows("a thought");
    rig.comment("Over a crash [[run touch made-fourth]].");
    rig.until("the hold", || {
        let waiting = rig.json(&["deliveries", "list"]);
        (waiting[0]["heldBecause"] == "draft").then_some(())
    });
    Rig::crash(&rig.json(&["status"])["services"][0]["pid"]);
    rig.types(&["C-u"]);
    rig.ok(&["start"]);
    rig.confirmed(9);
    rig.made("made-fourth");
    rig.state("idle");
    assert!(rig.events("session.exited").is_empty());
    assert!(rig.events("session.respawned").is_empty());

    // The whole tmux server goes; the conversation does not.
    let before = rig.session();
    rig.tmux(&["kill-server"]);
    rig.comment("Over another [[run touch made-fifth]].");
    rig.confirmed(10);
    rig.made("made-fifth");
    let after = rig.session();
    assert_eq!(after["harnessSessionId"], before["harnessSessionId"]);
    assert!(rig.model.conversation().contains("/4.md and do"));
    assert!(rig.events("delivery.uncertain").is_empty());
    close(&rig);
}
