//! What only the screen of an agent tells (DI-31).

use super::rig::{Rig, Wish};

#[test]
fn di31_a_question_that_only_the_screen_tells_is_seen_while_nothing_is_delivered() {
    let program = env!("CARGO_BIN_EXE_the-loop");
    let mine = format!(
        "  attention: {{afterSeconds: 0}}\n  repoHarness: {{octo/repo: mine}}\n  harnesses:\n    mine:\n      \
         command: {program}\n      spawn: [demo-agent, --session-id, '{{session_id}}']\n      \
         promptArgs: ['--', '{{prompt}}']\n      sessionId: assigned\n      confirm: transcript\n      \
         transcript: '~/.the-loop/local/demo/{{session_id}}.jsonl'\n      \
         dialogs: [{{name: leave, screen: 'Allow this'}}]\n"
    );
    let rig = Rig::with(&Wish {
        routing: &mine,
        // Busy for long enough after an answer that a look finds it without a question.
        env: "THE_LOOP_DEMO_ASK_PERMISSION=1\nTHE_LOOP_DEMO_NO_HOOKS=1\nTHE_LOOP_DEMO_BUSY_MS=6000\n",
        ..Wish::default()
    });
    rig.up();
    rig.start(1);
    let asks = || rig.screen(1).contains("Allow this? [y/n]");
    let waits = || rig.events("session.waiting").len();
    rig.until("the question", || asks().then_some(()));
    rig.until("a notice of it", || (waits() == 1).then_some(()));
    rig.types(1, &["y"]);
    rig.until("its end", || (!asks()).then_some(()));
    // Nothing was delivered since: the question that a person's own prompt leads to is seen all the same.
    rig.types(1, &["-l", "go on"]);
    rig.types(1, &["Enter"]);
    rig.until("another question", || asks().then_some(()));
    rig.until("a notice of that", || (waits() == 2).then_some(()));
    assert_eq!(rig.events("delivery.confirmed").len(), 1);
}
