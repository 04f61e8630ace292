//! Nothing is pasted where it would be an answer, or be glued to what a person types (DI-27).

use std::time::{Duration, Instant};

use super::rig::{Rig, Wish};

/// Several ticks of the supervision, each of which would try again.
const WATCHED: Duration = Duration::from_secs(3);

/// Watches for a while that the agent hears nothing and that `stays`.
fn nothing_comes(rig: &Rig, prompts: usize, stays: impl Fn() -> bool) {
    let since = Instant::now();
    rig.until("the end of the watch", || {
        assert!(stays(), "{}", rig.screen(1));
        assert_eq!(rig.prompts(1).len(), prompts, "{}", rig.screen(1));
        (since.elapsed() > WATCHED).then_some(())
    });
}

#[test]
fn di27_a_permission_question_is_left_to_the_person_who_is_asked() {
    let rig = Rig::with(&Wish {
        env: "THE_LOOP_DEMO_ASK_PERMISSION=1\n",
        ..Wish::default()
    });
    rig.up();
    rig.start(1);
    let asks = || rig.screen(1).trim_end().contains("Allow this? [y/n]");
    rig.until("the question", || asks().then_some(()));
    let id = rig.say(1, "yes, and a comment that begins with an answer");
    let held = rig.event("delivery.held", |e| e["delivery_id"] == id.as_str());
    assert_eq!(held["reason"], "dialog", "{held}");
    nothing_comes(&rig, 1, asks);
    let worked = rig.checkout(1).join("demo-agent.md");
    assert!(!worked.exists(), "nobody allowed it");
    rig.types(1, &["y"]);
    rig.confirmed(&id);
    assert!(worked.exists(), "the person allowed it");
    let prompts = rig.prompts(1);
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    assert!(prompts[1].contains("begins with an answer"), "{prompts:?}");
    let of_it = |name: &str| {
        let mut all = rig.events(name);
        all.retain(|e| e["delivery_id"] == id.as_str());
        all.len()
    };
    assert_eq!(of_it("delivery.held"), 1);
    assert_eq!(of_it("delivery.pasted"), 1);
    assert_eq!(of_it("delivery.uncertain"), 0);
}

#[test]
fn di27_a_half_typed_draft_survives_and_is_not_submitted() {
    let rig = Rig::with(&Wish {
        tmux: ", holdMaxSeconds: 1",
        ..Wish::default()
    });
    rig.up();
    rig.start(1);
    rig.types(1, &["-l", "half a thought"]);
    let drafted = || rig.screen(1).contains("> half a thought");
    rig.until("the draft", || drafted().then_some(()));
    let id = rig.say(1, "a comment in between");
    let held = rig.event("delivery.held", |e| e["delivery_id"] == id.as_str());
    assert_eq!(held["reason"], "draft", "{held}");
    nothing_comes(&rig, 1, drafted);
    // Erased by the one who typed it.
    rig.types(1, &["C-u"]);
    rig.confirmed(&id);
    let prompts = rig.prompts(1);
    assert_eq!(prompts.len(), 2, "{prompts:?}");
    assert!(prompts[1].contains("a comment in between"), "{prompts:?}");
    let all = rig.root("local/demo");
    for file in super::rig::files(&all) {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(!text.contains("half a thought"), "{text}");
    }
    assert_eq!(rig.events("delivery.held").len(), 1);
}
