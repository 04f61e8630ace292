//! tmux that hangs, vanishes, and says that a name is taken (DI-13, DI-16, DI-39; seed 004).

use the_loop_testkit::{Simulator, Trouble};

use super::script::{ITEM, comment, send, started, story, target};

/// More failing calls than a test makes.
const EVER: u32 = 100_000;

fn confirmed(sim: &Simulator, id: &str) {
    let done = sim.tick_until(400, |sim| sim.stands(id) == "confirmed");
    assert!(done, "{}\n{}", sim.stands(id), story(sim));
    assert_eq!(sim.taken().iter().filter(|t| *t == id).count(), 1);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}

#[test]
fn di13_a_tmux_that_hangs_holds_deliveries_and_kills_nothing() {
    let sim = Simulator::running("", "");
    started(&sim);
    sim.tmux.plan("-L", 0, EVER, Trouble::Hangs);
    send(&sim, &comment("c", "Words."));
    let failed = sim.tick_until(60, |sim| sim.stands("c").starts_with("failed"));
    assert!(failed, "{}\n{}", sim.stands("c"), story(&sim));
    assert_eq!(sim.count("delivery.held", "reason", "tmux-unanswered"), 1);
    assert_eq!(sim.told("tmux.unanswered").len(), 1);
    sim.tick_until(200, |_| false);
    assert!(sim.told("delivery.abandoned").is_empty());
    assert_eq!(sim.tmux.live(), [target(ITEM)]);
    sim.tmux.mend();
    confirmed(&sim, "c");
    assert_eq!(sim.told("tmux.answered").len(), 1);
    assert_eq!(sim.told("session.spawned").len(), 1);
}

#[test]
fn di28_a_paste_of_which_the_end_is_unknown_is_never_given_twice() {
    for trouble in [Trouble::Hangs, Trouble::HangsAfter] {
        for word in ["paste-buffer -p", "paste-buffer -d", "capture-pane"] {
            let sim = Simulator::running("", "");
            started(&sim);
            sim.tmux.plan(word, 0, 1, trouble);
            send(&sim, &comment("c", "Words."));
            send(&sim, &comment("d", "More."));
            confirmed(&sim, "d");
            let times = sim.taken().iter().filter(|t| *t == "c").count();
            let doubt = sim.count("delivery.uncertain", "delivery_id", "c");
            assert!(times == 1, "{word} {trouble:?}: {times}\n{}", story(&sim));
            assert!(doubt > 0 || word == "capture-pane", "{}", story(&sim));
        }
    }
}

#[test]
fn di41_a_server_that_vanished_is_told_once_and_the_conversation_comes_back() {
    let sim = Simulator::running("", "");
    started(&sim);
    sim.tmux.server_dies();
    sim.tick_until(5, |_| false);
    assert_eq!(sim.told("tmux.server_gone").len(), 1);
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    let back = sim.told("session.respawned");
    assert_eq!(back.len(), 1, "{}", story(&sim));
    assert_eq!(back[0]["resumed"], true);
}

#[test]
fn di39_a_session_that_answers_at_the_second_look_is_not_replaced() {
    let sim = Simulator::running("", "");
    started(&sim);
    // The supervisor's look comes first; then the first probe of the delivery.
    sim.tmux.plan("list-panes -F", 0, 1, Trouble::NoServer);
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(
        sim.told("session.respawn_averted").len(),
        1,
        "{}",
        story(&sim)
    );
    assert!(sim.told("session.respawned").is_empty());
}

#[test]
fn di16_a_name_that_is_taken_is_looked_at_again_and_tried_once_more() {
    let sim = Simulator::running("", "");
    sim.tmux.plan("new-session", 0, 1, Trouble::Duplicate);
    started(&sim);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
    assert_eq!(sim.taken(), ["start"]);
}

#[test]
fn di16_names_that_stay_taken_cost_attempts_and_lose_nothing_silently() {
    let sim = Simulator::running("", "");
    sim.tmux.plan("new-session", 0, EVER, Trouble::Duplicate);
    send(&sim, &comment("start", "the-loop start"));
    let over = sim.tick_until(2_000, |sim| sim.stands("start").starts_with("abandoned"));
    assert!(over, "{}\n{}", sim.stands("start"), story(&sim));
    assert_eq!(sim.told("session.spawn_failed").len(), 3);
    assert_eq!(sim.told("delivery.abandoned").len(), 1);
    assert!(sim.launch_files().is_empty());
}

#[test]
fn di39_a_collision_of_a_respawn_delivers_into_the_session_that_lives() {
    let sim = Simulator::running("", "");
    started(&sim);
    // Both looks see nothing, the third one does not come to it: the name itself is taken.
    sim.tmux.plan("list-panes -F", 0, 3, Trouble::NoServer);
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(sim.tmux.server(|s| s.made.len()), 1);
    assert_eq!(
        sim.told("session.respawn_averted").len(),
        1,
        "{}",
        story(&sim)
    );
    assert!(sim.told("session.resume_failed").is_empty());
}

#[test]
fn di39_a_dead_session_that_cannot_be_cleared_ends_the_delivery_for_good() {
    let mut sim = Simulator::running("", "");
    started(&sim);
    sim.tmux.agent_dies(&target(ITEM));
    sim.tmux.plan("kill-session", 0, EVER, Trouble::Refuses);
    send(&sim, &comment("c", "Words."));
    let over = sim.tick_until(60, |sim| sim.stands("c").contains("session-occupied"));
    assert!(over, "{}\n{}", sim.stands("c"), story(&sim));
    let stands = sim.stands("c");
    sim.restart();
    sim.tick_until(60, |_| false);
    assert_eq!(sim.stands("c"), stands);
    assert_eq!(
        sim.count("dispatch.dropped", "reason", "session-occupied"),
        1
    );
    sim.tmux.mend();
    send(&sim, &comment("d", "More."));
    confirmed(&sim, "d");
}

#[test]
fn di49_a_close_that_tmux_does_not_answer_is_carried_out_later() {
    let sim = Simulator::running("", "");
    started(&sim);
    sim.tmux.plan("-L", 0, EVER, Trouble::Hangs);
    send(&sim, &super::script::close("close"));
    sim.tick_until(5, |_| false);
    assert!(sim.stands("close").starts_with("queued"), "{}", story(&sim));
    sim.tmux.mend();
    let over = sim.tick_until(100, |sim| sim.stands("close") == "settled(item-closed)");
    assert!(over, "{}\n{}", sim.stands("close"), story(&sim));
    assert!(sim.tmux.live().is_empty());
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}
