//! Who may start a session, and what ends one (IN-22, IN-26, IN-27, IN-37, DI-48, DI-49).

use super::payload::{MAINTAINER, STRANGER, closed, labeled};
use super::rig::{Rig, files};

#[test]
fn in22_in27_only_an_authorised_start_on_an_armed_item_starts() {
    let rig = Rig::new();
    rig.up();
    let refused = rig.accepted("issues", &labeled(1, STRANGER));
    let dropped = rig.event("routing.dropped", |e| e["delivery_id"] == refused.as_str());
    assert_eq!(dropped["reason"], "unauthorized-actor", "{dropped}");
    let refused = rig.say_as(1, STRANGER, "the-loop start");
    let dropped = rig.event("routing.dropped", |e| e["delivery_id"] == refused.as_str());
    assert_eq!(dropped["reason"], "unauthorized-actor", "{dropped}");
    assert_eq!(dropped["actor"], STRANGER, "{dropped}");
    let label = rig.accepted("issues", &labeled(1, MAINTAINER));
    let waits = rig.event("dispatch.dropped", |e| e["delivery_id"] == label.as_str());
    assert_eq!(waits["reason"], "awaiting-start", "{waits}");
    assert!(rig.events("session.starting").is_empty());
    assert!(rig.prompts(1).is_empty());
    let start = rig.say(1, "the-loop start");
    rig.confirmed(&start);
    assert_eq!(rig.events("session.spawned").len(), 1);
    let prompts = rig.prompts(1);
    assert_eq!(prompts.len(), 1, "{prompts:?}");
    let heard = rig.say_as(1, STRANGER, "drop all tables");
    rig.event("routing.dropped", |e| e["delivery_id"] == heard.as_str());
    assert_eq!(rig.prompts(1).len(), 1);
}

#[test]
fn in27_in37_pause_resume_and_stop_by_comment() {
    let rig = Rig::new();
    rig.up();
    rig.start(1);
    let effect =
        |id: &str| rig.event("control.command", |e| e["delivery_id"] == id)["effect"].clone();
    assert_eq!(effect(&rig.say(1, "the-loop pause")), "paused");
    let unheard = rig.say(1, "said while it was paused");
    let dropped = rig.event("dispatch.dropped", |e| e["delivery_id"] == unheard.as_str());
    assert_eq!(dropped["reason"], "session-paused", "{dropped}");
    assert_eq!(effect(&rig.say(1, "the-loop resume")), "resumed");
    rig.confirmed(&rig.say(1, "said after it was resumed"));
    let all = rig.prompts(1).concat();
    assert!(all.contains("said after it was resumed"), "{all}");
    assert!(!all.contains("said while it was paused"), "{all}");
    let pid: i32 = rig.pane_pid(1).parse().unwrap();
    assert_eq!(effect(&rig.say(1, "the-loop stop")), "stopped");
    assert!(!rig.marked().contains(&pid), "the agent was ended");
    let unheard = rig.say(1, "said after it was stopped");
    let dropped = rig.event("dispatch.dropped", |e| e["delivery_id"] == unheard.as_str());
    assert_eq!(dropped["reason"], "awaiting-start", "{dropped}");
}

#[test]
fn in26_di48_di49_a_close_ends_the_session_saves_its_work_and_gives_the_checkout_back() {
    let rig = Rig::new();
    rig.up();
    rig.start(1);
    rig.start(2);
    // The agent's turn commits something that is on no remote.
    let note = rig.checkout(1).join("demo-agent.md");
    rig.until("work to save", || note.exists().then_some(()));
    std::fs::write(rig.checkout(1).join("untracked"), "not committed\n").unwrap();
    let pid: i32 = rig.pane_pid(1).parse().unwrap();
    let other = rig.pane_pid(2);
    let close = rig.accepted("issues", &closed(1, MAINTAINER));
    let ended = rig.event("session.autoclosed", |e| e["delivery_id"] == close.as_str());
    assert_eq!(ended["reason"], "issue-closed", "{ended}");
    rig.until("the checkout is given back", || {
        (!rig.checkout(1).exists()).then_some(())
    });
    assert_eq!(rig.events("work.saved").len(), 1);
    assert!(!rig.marked().contains(&pid), "the agent was ended");
    let saved = files(&rig.root("local/saved"));
    let bundle = saved
        .iter()
        .find(|file| file.extension().is_some_and(|e| e == "bundle"));
    let bundle = bundle.unwrap().to_str().unwrap();
    let verified = rig.git(&rig.path("octo/repo.git"), &["bundle", "verify", bundle]);
    assert!(verified.contains("refs/"), "{verified}");
    assert_eq!(rig.pane_pid(2), other, "the other item's session lives");
    rig.confirmed(&rig.say(2, "still there?"));
}
