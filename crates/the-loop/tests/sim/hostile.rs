//! Words that look like a command, and people who look like somebody, by polling and by webhook alike: nobody
//! starts anything by them, and the log says why of each (IN-23, IN-35, IN-61).

use serde_json::{Value, json};
use the_loop::tracker::github::payload::{Encoding, Incoming, Parsed, parse};
use the_loop_core::config::Settings;
use the_loop_testkit::{FakeGithub, Simulator};

const REPO: &str = "octo/repo";
const LABEL: &str = "the-loop: auto-execute";

/// Who says it, what, and how it ends.
const HOSTILE: [(&str, &str, &str); 16] = [
    ("mallory", "the-loop start", "dropped(unauthorized-actor)"),
    // A Cyrillic letter, a suffix, blanks, an id for a name.
    ("ad\u{430}", "the-loop start", "dropped(unauthorized-actor)"),
    ("ada[bot]", "the-loop start", "dropped(unauthorized-actor)"),
    ("ada ", "the-loop start", "dropped(unauthorized-actor)"),
    ("id:1", "the-loop start", "dropped(unauthorized-actor)"),
    ("ada-", "the-loop start", "dropped(unauthorized-actor)"),
    // Quoted, in a fence, in code, hidden, in a sentence.
    ("ada", "> the-loop start", "settled(awaiting-start)"),
    ("ada", "```\nthe-loop start\n```", "settled(awaiting-start)"),
    (
        "ada",
        "~~~sh\nthe-loop start\n~~~",
        "settled(awaiting-start)",
    ),
    (
        "ada",
        "<!--\nthe-loop start\n-->",
        "settled(awaiting-start)",
    ),
    (
        "ada",
        "please do not the-loop start",
        "settled(awaiting-start)",
    ),
    // Letters that only look like it.
    ("ada", "the-loop st\u{200b}art", "settled(awaiting-start)"),
    ("ada", "the-l\u{43e}op start", "settled(awaiting-start)"),
    ("ada", "\u{ff54}he-loop start", "settled(awaiting-start)"),
    // Two at once, and one that an agent wrote.
    (
        "ada",
        "the-loop start\nthe-loop stop",
        "settled(control-ambiguous)",
    ),
    (
        "ada",
        "the-loop start\n<!-- the-loop:agent-comment -->",
        "dropped(self-authored)",
    ),
];

fn started() -> (FakeGithub, Simulator) {
    let hub = FakeGithub::start();
    let sim = Simulator::polling(&hub);
    let now = sim.clock.now().unix_ms() / 1_000;
    hub.change(|world| {
        world.now = Some(now);
        world.issue(REPO, 1, "ada", &[LABEL]);
    });
    (hub, sim)
}

fn ticks(hub: &FakeGithub, sim: &Simulator, count: usize) {
    for _ in 0..count {
        sim.tick();
    }
    let now = sim.clock.now().unix_ms() / 1_000;
    hub.change(|world| world.now = Some(now));
}

fn nothing_was_started(sim: &Simulator) {
    assert!(sim.told("control.command").is_empty());
    assert!(sim.told("session.starting").is_empty());
    assert_eq!(sim.taken(), [""; 0]);
}

#[test]
fn in23_in35_what_looks_like_a_command_starts_nothing_by_polling() {
    let (hub, sim) = started();
    let mut poller = sim.poller();
    poller.cycle();
    ticks(&hub, &sim, 130);
    let said: Vec<Value> = HOSTILE
        .iter()
        .map(|(who, words, _)| hub.change(|world| world.comment(REPO, 1, who, words)))
        .collect();
    poller.cycle();
    ticks(&hub, &sim, 10);
    for (row, (who, words, end)) in said.iter().zip(HOSTILE) {
        let id = format!("poll-comment-{}", row["node_id"].as_str().unwrap());
        assert_eq!(sim.stands(&id), end, "{who:?} {words:?}");
    }
    nothing_was_started(&sim);
}

#[test]
fn in23_in35_what_looks_like_a_command_starts_nothing_by_webhook() {
    let (hub, sim) = started();
    for (n, (who, words, end)) in HOSTILE.iter().enumerate() {
        let row = hub.change(|world| world.comment(REPO, 1, who, words));
        let body = json!({
            "action": "created", "issue": hub.item(REPO, 1), "comment": row, "sender": row["user"],
            "repository": {"id": 7, "full_name": REPO, "html_url": format!("https://github.com/{REPO}")},
        })
        .to_string();
        let id = format!("hook-{n}");
        let incoming = Incoming {
            event: "issue_comment",
            delivery_id: &id,
            encoding: Encoding::Json,
            body: body.as_bytes(),
            received_at: sim.clock.now(),
        };
        let Parsed::Delivery(delivery) = parse(&incoming, &Settings::default()) else {
            panic!("{body}");
        };
        sim.accept(&delivery).unwrap();
        ticks(&hub, &sim, 3);
        assert_eq!(sim.stands(&id), *end, "{who:?} {words:?}");
    }
    nothing_was_started(&sim);
}

#[test]
fn in44_a_flood_of_a_stranger_keeps_nobody_s_words_away() {
    let (hub, sim) = started();
    let mut poller = sim.poller();
    poller.cycle();
    ticks(&hub, &sim, 130);
    for second in 0..4 {
        hub.change(|world| {
            for n in 0..50 {
                world.comment(REPO, 1, "mallory", &format!("noise {second} {n}"));
            }
        });
        ticks(&hub, &sim, 1);
    }
    let start = hub.change(|world| world.comment(REPO, 1, "ada", "the-loop start"));
    poller.cycle();
    let id = format!("poll-comment-{}", start["node_id"].as_str().unwrap());
    let heard = |sim: &Simulator| sim.stands(&id) == "confirmed";
    assert!(sim.tick_until(60, heard), "{}", sim.stands(&id));
    assert_eq!(sim.taken(), [id]);
    let refused = sim.told("routing.dropped");
    assert_eq!(refused.len(), 200);
    assert!(
        refused
            .iter()
            .all(|event| event["reason"] == "unauthorized-actor")
    );
}
