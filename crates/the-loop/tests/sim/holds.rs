//! What a person at the terminal does to a delivery (DI-27 to DI-29).

use the_loop_testkit::Simulator;
use the_loop_testkit::fake_tmux::FakeClient;

use super::script::{ITEM, comment, send, started, story, target};

fn ready() -> Simulator {
    let sim = Simulator::running("", "");
    started(&sim);
    sim
}

fn waits(sim: &Simulator, id: &str, reason: &str) {
    let wanted = format!("queued({reason})");
    let held = sim.tick_until(10, |sim| sim.stands(id) == wanted);
    assert!(held, "{} is not {wanted}\n{}", sim.stands(id), story(sim));
}

fn taken_once(sim: &Simulator, id: &str) {
    let done = sim.tick_until(120, |sim| sim.stands(id) == "confirmed");
    assert!(done, "{}\n{}", sim.stands(id), story(sim));
    assert_eq!(sim.taken().iter().filter(|t| *t == id).count(), 1);
    assert_eq!(sim.tmux.violations(), Vec::<String>::new());
}

#[test]
fn di27_a_draft_is_neither_appended_to_nor_submitted_nor_erased() {
    let sim = ready();
    let name = target(ITEM);
    sim.tmux.types(&name, "half a thou");
    send(&sim, &comment("c", "Words."));
    waits(&sim, "c", "draft");
    assert!(!sim.tick_until(290, |sim| !sim.told("delivery.held").is_empty()));
    assert!(sim.tick_until(30, |sim| sim.count("delivery.held", "reason", "draft") == 1));
    assert_eq!(sim.tmux.composer(&name), "half a thou");
    sim.tmux.types(&name, "ght\r");
    taken_once(&sim, "c");
    assert_eq!(sim.told("delivery.held").len(), 1);
    assert_eq!(sim.told("delivery.unheld").len(), 1);
}

#[test]
fn di27_somebody_who_types_is_waited_for_and_a_watcher_is_not() {
    let sim = ready();
    let name = target(ITEM);
    let now = sim.clock.now().unix_ms() / 1000;
    let attach = |read_only| {
        let client = FakeClient {
            read_only,
            active_at: now,
        };
        sim.tmux.server(|server| {
            let session = server.sessions.get_mut(&name).unwrap();
            session.clients = vec![client];
        });
    };
    attach(false);
    send(&sim, &comment("c", "Words."));
    waits(&sim, "c", "typing");
    taken_once(&sim, "c");
    assert!(sim.clock.now().unix_ms() / 1000 >= now + 10);
    attach(true);
    send(&sim, &comment("d", "More."));
    taken_once(&sim, "d");
    assert_eq!(sim.told("delivery.held").len(), 0);
}

#[test]
fn di27_copy_mode_is_left_when_nobody_is_attached_writable() {
    let sim = ready();
    let name = target(ITEM);
    let attach = |clients: Vec<FakeClient>| {
        sim.tmux.server(|server| {
            let session = server.sessions.get_mut(&name).unwrap();
            session.in_mode = true;
            session.clients = clients;
        });
    };
    attach(vec![FakeClient {
        read_only: false,
        active_at: 0,
    }]);
    send(&sim, &comment("c", "Words."));
    waits(&sim, "c", "copy-mode");
    attach(Vec::new());
    taken_once(&sim, "c");
    assert!(!sim.tmux.server(|s| s.sessions[&name].in_mode));
}

#[test]
fn di27_nothing_is_pasted_into_a_permission_question() {
    let sim = ready();
    let name = target(ITEM);
    sim.tmux.server(|server| server.mood.ask = 1);
    send(&sim, &comment("asks", "Do it."));
    taken_once(&sim, "asks");
    send(&sim, &comment("c", "Words."));
    waits(&sim, "c", "dialog");
    sim.tick_until(30, |_| false);
    assert_eq!(sim.count("delivery.held", "reason", "dialog"), 1);
    assert!(sim.tmux.asks(&name));
    sim.tmux.types(&name, "y");
    taken_once(&sim, "c");
}

#[test]
fn di28_a_dialog_between_paste_and_submit_keeps_the_text_unsubmitted() {
    let sim = ready();
    let name = target(ITEM);
    sim.tmux.server(|server| server.mood.ask_after_paste = true);
    send(&sim, &comment("c", "Words."));
    assert!(
        sim.tick_until(10, |sim| sim.count("delivery.held", "reason", "dialog")
            == 1)
    );
    sim.tick_until(60, |_| false);
    assert!(sim.tmux.asks(&name), "{}", story(&sim));
    assert!(sim.tmux.composer(&name).contains("the-loop delivery"));
    assert_eq!(sim.stands("c"), "sending");
    sim.tmux.types(&name, "n");
    taken_once(&sim, "c");
}

#[test]
fn p2_our_text_that_a_person_submitted_behind_words_of_theirs_is_not_sent_again() {
    let sim = ready();
    let name = target(ITEM);
    sim.tmux.server(|server| server.mood.ask_after_paste = true);
    send(&sim, &comment("c", "Words."));
    assert!(sim.tick_until(10, |sim| sim.stands("c") == "sending"));
    let ours = sim.tmux.composer(&name);
    sim.tmux.types(&name, "n");
    sim.tmux.types(&name, "\u{3}");
    sim.tmux.types(&name, &format!("a thought {ours}\r"));
    let over = sim.tick_until(400, |sim| sim.stands("c").starts_with("uncertain"));
    assert!(over, "{}\n{}", sim.stands("c"), story(&sim));
    assert_eq!(sim.count("delivery.uncertain", "next", "operator"), 1);
    assert_eq!(
        sim.taken().iter().filter(|id| *id == "c").count(),
        0,
        "{}",
        story(&sim)
    );
    send(&sim, &comment("d", "More."));
    taken_once(&sim, "d");
}

#[test]
fn di29_a_swallowed_submit_is_given_again_once() {
    let sim = ready();
    sim.tmux.server(|server| server.mood.swallow = 1);
    send(&sim, &comment("c", "Words."));
    taken_once(&sim, "c");
    assert_eq!(sim.count("delivery.unconfirmed", "next", "submit-again"), 1);
}

#[test]
fn di29_text_that_stays_is_left_to_a_person_and_holds_what_follows() {
    let sim = ready();
    let name = target(ITEM);
    sim.tmux.server(|server| server.mood.swallow = 2);
    send(&sim, &comment("c", "Words."));
    send(&sim, &comment("d", "More."));
    let told = |sim: &Simulator| sim.count("delivery.unconfirmed", "next", "operator") == 1;
    assert!(sim.tick_until(120, told), "{}", story(&sim));
    sim.tick_until(60, |_| false);
    assert_eq!(sim.stands("c"), "pasted");
    assert!(told(&sim));
    assert!(!sim.taken().contains(&"d".to_owned()));
    sim.tmux.types(&name, "\r");
    taken_once(&sim, "c");
    taken_once(&sim, "d");
}

#[test]
fn di29_a_transcript_confirms_where_hooks_are_silent() {
    let sim = Simulator::running("", "");
    sim.tmux.server(|server| server.mood.no_hooks = true);
    started(&sim);
    send(&sim, &comment("c", "Words."));
    taken_once(&sim, "c");
    assert_eq!(sim.count("delivery.confirmed", "by", "transcript"), 2);
}
