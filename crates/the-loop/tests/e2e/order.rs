//! Every prompt whole, once, in order, and in its own pane only (DI-5, DI-12, DI-15).

use std::time::Duration;

use super::rig::Rig;

/// Words that are in one comment only.
fn words(item: u64, index: usize) -> String {
    format!("<<comment {index} of item {item}>>")
}

/// The comments of an item that its agent heard, in order; each must be whole, and none another item's.
pub fn heard(rig: &Rig, item: u64, comments: usize) -> Vec<usize> {
    let mut heard = Vec::new();
    for prompt in rig.prompts(item) {
        let found = (0..comments).find(|index| prompt.contains(&words(item, *index)));
        let told = prompt.matches("<<comment ").count();
        let whole = found.is_none_or(|index| prompt.contains(&text(item, index)));
        assert!(
            whole && told == usize::from(found.is_some()),
            "{item}: {prompt}"
        );
        heard.extend(found);
    }
    heard
}

pub fn text(item: u64, index: usize) -> String {
    // Long enough to be more than one line on a screen and one write on a pipe.
    format!("{} {}", words(item, index), "and so on ".repeat(20))
}

#[test]
fn di12_item_1_and_item_15_are_never_mixed_up() {
    let rig = Rig::new();
    rig.up();
    rig.start(15);
    let other = rig.pane_pid(15);
    // No session of item 1 exists: only item 15's name begins with its name.
    rig.start(1);
    rig.confirmed(&rig.say(1, &text(1, 0)));
    let killed = rig.tmux(&["kill-session", "-t", "=loop-github-octo-repo-1"]);
    assert!(killed.status.success(), "{killed:?}");
    rig.confirmed(&rig.say(1, &text(1, 1)));
    rig.confirmed(&rig.say(15, &text(15, 0)));
    let stop = rig.say(1, "the-loop stop");
    rig.event("control.command", |e| e["delivery_id"] == stop.as_str());
    rig.confirmed(&rig.say(15, &text(15, 1)));
    assert_eq!(rig.pane_pid(15), other, "item 15's agent was left alone");
    assert_eq!(heard(&rig, 15, 2), [0, 1]);
    let screen = rig.screen(15);
    assert!(screen.contains("octo/repo#15: "), "{screen}");
    assert!(!screen.contains("octo/repo#1: "), "{screen}");
    let pasted = rig.events("delivery.confirmed");
    let of = |item: &str| pasted.iter().filter(|e| e["work_item"] == item).count();
    assert_eq!(
        (of("github:octo/repo#1"), of("github:octo/repo#15")),
        (3, 3)
    );
}

#[test]
fn di5_di15_two_hundred_events_to_four_sessions_at_once() {
    const EACH: usize = 50;
    let rig = Rig::new();
    rig.up();
    let items = [1, 2, 3, 15];
    for item in items {
        rig.start(item);
    }
    std::thread::scope(|scope| {
        for item in items {
            let rig = &rig;
            scope.spawn(move || {
                for index in 0..EACH {
                    rig.say(item, &text(item, index));
                }
            });
        }
    });
    let all = items.len() * (EACH + 1);
    rig.within(Duration::from_mins(4), "all confirmed", || {
        (rig.events("delivery.confirmed").len() >= all).then_some(())
    });
    assert_eq!(rig.events("delivery.confirmed").len(), all);
    for item in items {
        rig.until("all in the transcript", || {
            (heard(&rig, item, EACH).len() >= EACH).then_some(())
        });
        let expected: Vec<usize> = (0..EACH).collect();
        assert_eq!(heard(&rig, item, EACH), expected, "item {item}");
    }
    assert!(rig.events("delivery.uncertain").is_empty());
}
