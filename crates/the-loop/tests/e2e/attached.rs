//! Deliveries while people are attached: watching, typing, reading back, in small terminals, and with windows
//! and panes of their own beside the agent's (DI-13, DI-17, DI-27).

use super::person::{Person, USUAL};
use super::rig::{Rig, Wish};

fn rig(tmux: &str) -> Rig {
    let rig = Rig::with(&Wish {
        tmux,
        ..Wish::default()
    });
    rig.up();
    rig.start(1);
    rig
}

fn told_once(rig: &Rig, words: &str) {
    let told = rig.prompts(1).concat();
    assert_eq!(told.matches(words).count(), 1, "{told}");
}

fn held_for(rig: &Rig, id: &str) -> Vec<String> {
    let mut held = rig.events("delivery.held");
    held.retain(|event| event["delivery_id"] == id);
    held.iter()
        .map(|event| event["reason"].as_str().unwrap().to_owned())
        .collect()
}

/// A tmux command of the person's own, at the agents' server.
fn tmux(rig: &Rig, words: &[&str]) -> String {
    let told = rig.tmux(words);
    assert!(told.status.success(), "{words:?}: {told:?}");
    String::from_utf8_lossy(&told.stdout).trim().to_owned()
}

fn session() -> String {
    Rig::target(1).trim_end_matches(':').to_owned()
}

#[test]
fn di17_whoever_only_watches_keeps_no_delivery_waiting() {
    let rig = rig(", holdMaxSeconds: 1");
    let watcher = Person::attaches(&rig, USUAL, &["-r", "-t", &session()]);
    watcher.sees("demo");
    watcher.types(&["-l", "nobody reads this"]);
    let id = rig.say(1, "said before a watcher");
    rig.confirmed(&id);
    told_once(&rig, "said before a watcher");
    assert!(held_for(&rig, &id).is_empty(), "{:?}", held_for(&rig, &id));
    assert!(!rig.screen(1).contains("nobody reads this"));
}

#[test]
fn di27_a_writable_client_that_is_quiet_keeps_no_delivery_waiting() {
    let rig = rig(", typingHoldSeconds: 1, holdMaxSeconds: 1");
    let person = Person::attaches(&rig, USUAL, &["-t", &session()]);
    person.sees("demo");
    let id = rig.say(1, "said before somebody quiet");
    rig.confirmed(&id);
    told_once(&rig, "said before somebody quiet");
    assert!(!held_for(&rig, &id).contains(&"draft".to_owned()));
}

#[test]
fn di27_whoever_types_is_waited_for_and_it_is_said_after_a_while() {
    let rig = rig(", holdMaxSeconds: 1");
    let person = Person::attaches(&rig, USUAL, &["-t", &session()]);
    person.sees("demo");
    // A key that leaves nothing in the composer.
    person.types(&["C-u"]);
    let id = rig.say(1, "said while somebody types");
    rig.until("the hold is said", || {
        person.types(&["C-u"]);
        (!held_for(&rig, &id).is_empty()).then_some(())
    });
    assert_eq!(held_for(&rig, &id), ["typing"]);
    assert!(
        !rig.prompts(1)
            .concat()
            .contains("said while somebody types")
    );
    rig.confirmed(&id);
    told_once(&rig, "said while somebody types");
    rig.event("delivery.unheld", |e| e["delivery_id"] == id.as_str());
}

#[test]
fn di27_a_draft_typed_at_a_terminal_survives() {
    let rig = rig(", typingHoldSeconds: 1, holdMaxSeconds: 1");
    let person = Person::attaches(&rig, USUAL, &["-t", &session()]);
    person.types(&["-l", "half a thought"]);
    person.sees("half a thought");
    let id = rig.say(1, "said in between");
    let draft = || held_for(&rig, &id).contains(&"draft".to_owned());
    rig.until("held for the draft", || draft().then_some(()));
    person.sees("half a thought");
    person.types(&["-l", " and the rest"]);
    person.sees("half a thought and the rest");
    person.types(&["Enter"]);
    rig.confirmed(&id);
    told_once(&rig, "said in between");
    let files = super::rig::files(&rig.root("local/demo"));
    let all = files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap());
    let all = all.collect::<String>();
    assert!(all.contains("\"half a thought and the rest\""), "{all}");
}

#[test]
fn di27_copy_mode_is_left_only_when_nobody_writable_is_attached() {
    let rig = rig(", typingHoldSeconds: 1, holdMaxSeconds: 1");
    let watcher = Person::attaches(&rig, USUAL, &["-r", "-t", &session()]);
    let person = Person::attaches(&rig, USUAL, &["-t", &session()]);
    let in_mode = || {
        tmux(
            &rig,
            &[
                "display-message",
                "-p",
                "-t",
                &Rig::target(1),
                "#{pane_in_mode}",
            ],
        )
    };
    person.types(&["C-b", "["]);
    rig.until("copy mode", || (in_mode() == "1").then_some(()));
    let id = rig.say(1, "said to somebody who reads back");
    let reading = || held_for(&rig, &id).contains(&"copy-mode".to_owned());
    rig.until("held for copy mode", || reading().then_some(()));
    assert_eq!(in_mode(), "1", "the reader was not thrown out");
    // The window is closed by its owner; copy mode stays behind, and the watcher with it.
    person.types(&["C-b", "d"]);
    person.is_done();
    rig.confirmed(&id);
    assert_eq!(in_mode(), "0");
    told_once(&rig, "said to somebody who reads back");
    watcher.sees("demo");
}

#[test]
fn di13_di27_windows_and_panes_of_a_persons_own_are_not_written_into() {
    let rig = rig(", typingHoldSeconds: 1, holdMaxSeconds: 1");
    let target = Rig::target(1);
    let agent = tmux(
        &rig,
        &["display-message", "-p", "-t", &target, "#{pane_id}"],
    );
    // Their pane before the agent's, their window in front, and everything under other names.
    let beside = [
        "split-window",
        "-b",
        "-P",
        "-F",
        "#{pane_id}",
        "-t",
        &target,
        "cat",
    ];
    let beside = tmux(&rig, &beside);
    let window = ["new-window", "-P", "-F", "#{pane_id}", "-t", &target, "cat"];
    let window = tmux(&rig, &window);
    tmux(&rig, &["rename-window", "-t", &target, "my own"]);
    tmux(&rig, &["swap-window", "-s", &agent, "-t", &window]);
    tmux(&rig, &["select-window", "-t", &window]);
    let person = Person::attaches(&rig, USUAL, &["-t", &session()]);
    person.types(&["-l", "typed into a window of my own"]);
    person.sees("typed into a window of my own");
    let shows = |pane: &str| tmux(&rig, &["capture-pane", "-p", "-t", pane]);
    for (words, front) in [
        ("said the first time", &window),
        ("said the second time", &beside),
    ] {
        tmux(&rig, &["select-window", "-t", front]);
        tmux(&rig, &["select-pane", "-t", front]);
        let id = rig.say(1, words);
        rig.confirmed(&id);
        told_once(&rig, words);
    }
    for pane in [&beside, &window] {
        assert!(
            !shows(pane).contains("the-loop delivery"),
            "{}",
            shows(pane)
        );
    }
    assert!(shows(&window).contains("typed into a window of my own"));
    let list = rig.ok(&["sessions", "list"]);
    assert!(!list.contains("exited"), "{list}");
}

#[test]
fn di13_di16_a_pane_beside_an_agent_that_ended_is_neither_written_into_nor_killed() {
    let rig = rig(", typingHoldSeconds: 1");
    let target = Rig::target(1);
    let agent = rig.pane_pid(1);
    let beside = [
        "split-window",
        "-P",
        "-F",
        "#{pane_id}",
        "-t",
        &target,
        "cat",
    ];
    let beside = tmux(&rig, &beside);
    let killed = std::process::Command::new("kill")
        .args(["-9", &agent])
        .output();
    assert!(killed.unwrap().status.success());
    rig.event("session.exited", |_| true);
    let id = rig.say(1, "said to nobody");
    let held = rig.event("delivery.held", |e| e["delivery_id"] == id.as_str());
    assert_eq!(held["reason"], "not-ready", "{held}");
    let shows = || tmux(&rig, &["capture-pane", "-p", "-t", &beside]);
    assert!(!shows().contains("the-loop"), "{}", shows());
    let list = rig.ok(&["sessions", "list"]);
    assert!(list.contains("exited"), "{list}");
    // When they close it, the session is dead, and the conversation comes back.
    tmux(&rig, &["kill-pane", "-t", &beside]);
    rig.confirmed(&id);
    told_once(&rig, "said to nobody");
    let back = rig.events("session.respawned");
    assert!(
        back.iter().all(|event| event["resumed"] == true),
        "{back:?}"
    );
    assert_eq!(back.len(), 1);
    assert_eq!(
        super::rig::files(&rig.root("local/demo")).len(),
        1,
        "one conversation"
    );
}

#[test]
fn di27_a_person_counts_also_in_a_session_that_shows_the_window_too() {
    let rig = rig(", holdMaxSeconds: 1");
    tmux(&rig, &["new-session", "-d", "-s", "mine", "cat"]);
    tmux(
        &rig,
        &["link-window", "-s", &Rig::target(1), "-t", "=mine:9"],
    );
    tmux(&rig, &["select-window", "-t", "=mine:9"]);
    let person = Person::attaches(&rig, USUAL, &["-t", "=mine"]);
    person.sees("demo");
    person.types(&["C-u"]);
    let id = rig.say(1, "said to a linked window");
    rig.until("the hold is said", || {
        person.types(&["C-u"]);
        (!held_for(&rig, &id).is_empty()).then_some(())
    });
    assert_eq!(held_for(&rig, &id), ["typing"]);
    // In their other window they may type as they like.
    tmux(&rig, &["select-window", "-t", "=mine:0"]);
    rig.until("the delivery", || {
        person.types(&["x"]);
        let confirmed = rig.events("delivery.confirmed");
        confirmed
            .iter()
            .any(|e| e["delivery_id"] == id.as_str())
            .then_some(())
    });
    told_once(&rig, "said to a linked window");
}

#[test]
fn di27_a_tiny_terminal_hides_no_draft_and_takes_a_delivery() {
    let rig = rig(", typingHoldSeconds: 1, holdMaxSeconds: 1");
    let person = Person::attaches(&rig, (20, 5), &["-t", &session()]);
    let width = || {
        tmux(
            &rig,
            &[
                "display-message",
                "-p",
                "-t",
                &Rig::target(1),
                "#{window_width}",
            ],
        )
    };
    rig.until("the window is small", || (width() == "20").then_some(()));
    let first = rig.say(
        1,
        "said in a tiny terminal, in more words than a row of it holds",
    );
    rig.confirmed(&first);
    told_once(&rig, "said in a tiny terminal");
    person.types(&["-l", "a draft that takes more than one row"]);
    person.sees("more lines");
    let id = rig.say(1, "said over a draft");
    let draft = || held_for(&rig, &id).contains(&"draft".to_owned());
    rig.until("held for the draft", || draft().then_some(()));
    person.types(&["C-u"]);
    rig.confirmed(&id);
    told_once(&rig, "said over a draft");
    assert_eq!(rig.prompts(1).len(), 3);
}

#[test]
fn di28_a_terminal_that_is_resized_meanwhile_loses_nothing() {
    let rig = rig(", typingHoldSeconds: 0");
    let person = Person::attaches(&rig, USUAL, &["-t", &session()]);
    let ids: Vec<String> = (0..5)
        .map(|n| rig.say(1, &format!("resized number {n}")))
        .collect();
    let mut step = 0;
    rig.until("all of them", || {
        step += 1;
        person.resizes(40 + step % 7 * 15, 8 + step % 5 * 6);
        let confirmed = rig.events("delivery.confirmed");
        let has = |id: &String| confirmed.iter().any(|e| e["delivery_id"] == id.as_str());
        ids.iter().all(has).then_some(())
    });
    for n in 0..5 {
        told_once(&rig, &format!("resized number {n}"));
    }
    assert!(rig.events("delivery.uncertain").is_empty());
}

#[test]
fn di22_a_changed_remain_on_exit_reaches_a_server_that_runs() {
    let rig = rig(", remainOnExit: true");
    let file = rig.root("cli-config.yaml");
    let config = std::fs::read_to_string(file).unwrap();
    let config = config.replace("remainOnExit: true", "remainOnExit: false");
    rig.write("home/.the-loop/cli-config.yaml", &config);
    rig.event("config.reloaded", |_| true);
    rig.start(2);
    for number in [1, 2] {
        let killed = std::process::Command::new("kill")
            .args(["-9", &rig.pane_pid(number)])
            .output();
        assert!(killed.unwrap().status.success());
    }
    let exited = |number: u64| {
        let item = format!("github:octo/repo#{number}");
        rig.event("session.exited", |e| e["work_item"] == item.as_str())
    };
    assert_eq!(exited(1)["state"], "dead", "it was made to stay");
    assert_eq!(exited(2)["state"], "absent", "it was made to go");
}
