//! The daemon is killed over and over while comments come in: none that was answered is lost, none comes
//! twice unsaid (P1, P2, DI-43).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::http::is_up;
use super::order::{heard, text};
use super::payload::{MAINTAINER, comment, labeled};
use super::rig::{Rig, Wish, files};

const ITEMS: [u64; 4] = [1, 2, 15, 150];
/// Between two tries of a sender who got no answer.
const AGAIN_AFTER: Duration = Duration::from_millis(25);
/// The longest life of a daemon after its receiver answers, in microseconds.
const LIFE_MAX_US: u64 = 700_000;
/// The longest life when it is killed in its start.
const START_MAX_US: u64 = 120_000;

/// Numbers that a seed reproduces (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, max: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % max
    }
}

/// Sends one delivery until it is answered 202, as its sender's redeliveries do.
fn insist(rig: &Rig, event: &str, id: &str, payload: &Value) {
    rig.until("an answer", || match rig.post(event, id, payload) {
        Ok((202, _)) => Some(()),
        Ok((503, _)) | Err(_) => {
            std::thread::park_timeout(AGAIN_AFTER);
            None
        }
        Ok(other) => panic!("{id}: {other:?}"),
    });
}

/// Starts an item and sends its comments in order; gives their delivery ids. They are spread over the
/// kills: a share of those must be done before the next one is sent.
fn send(rig: &Rig, item: u64, comments: usize, kills: usize, done: &AtomicUsize) -> Vec<String> {
    let mut ids = Vec::new();
    insist(
        rig,
        "issues",
        &format!("label-{item}"),
        &labeled(item, MAINTAINER),
    );
    let start = comment(item, item * 1000 + 999, MAINTAINER, "the-loop start");
    insist(rig, "issue_comment", &format!("start-{item}"), &start);
    for index in 0..comments {
        let due = index * kills / comments;
        rig.within(Duration::from_mins(10), "the next kill", || {
            (done.load(Ordering::SeqCst) >= due).then_some(())
        });
        let id = format!("kill-{item}-{index}");
        // No other comment has this number.
        let number = item * 1000 + index as u64;
        let payload = comment(item, number, MAINTAINER, &text(item, index));
        insist(rig, "issue_comment", &id, &payload);
        ids.push(id);
    }
    ids
}

/// Kills and restarts the daemon, half of the times before it has begun to receive.
fn torment(rig: &Rig, kills: usize, reboots: bool, dice: &mut Dice, done: &AtomicUsize) {
    for _ in 0..kills {
        let early = dice.below(4) == 0;
        let life = if early {
            dice.below(START_MAX_US)
        } else {
            rig.until("it receives", || is_up(rig.port).then_some(()));
            dice.below(LIFE_MAX_US)
        };
        let at = Instant::now() + Duration::from_micros(life);
        while let Some(left) = at.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(left);
        }
        rig.kill();
        if reboots && dice.below(4) == 0 {
            rig.tmux(&["kill-server"]);
        }
        done.fetch_add(1, Ordering::SeqCst);
        rig.launch(rig.program(&["start", "--foreground"]));
    }
    rig.until("it receives", || is_up(rig.port).then_some(()));
}

fn soak(comments: usize, kills: usize, env: &str, reboots: bool) {
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = seed.unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let rig = Rig::with(&Wish {
        env,
        ..Wish::default()
    });
    rig.up();
    let done = AtomicUsize::new(0);
    let each = comments / ITEMS.len();
    let sent: BTreeMap<u64, Vec<String>> = std::thread::scope(|scope| {
        let (rig, done) = (&rig, &done);
        let senders = ITEMS.map(|item| scope.spawn(move || send(rig, item, each, kills, done)));
        torment(rig, kills, reboots, &mut Dice(seed), done);
        let ids = senders.map(|sender| sender.join().unwrap());
        ITEMS.into_iter().zip(ids).collect()
    });
    let ids = || sent.values().flatten();
    rig.within(Duration::from_mins(3), "every delivery has an end", || {
        let ended = |name: &str| -> Vec<String> {
            let all = rig.events(name).into_iter();
            all.map(|e| e["delivery_id"].as_str().unwrap().to_owned())
                .collect()
        };
        let (confirmed, uncertain) = (ended("delivery.confirmed"), ended("delivery.uncertain"));
        ids()
            .all(|id| confirmed.contains(id) || uncertain.contains(id))
            .then_some(())
    });
    // Every attempt that a crash cut short is said to be uncertain. Most are decided by the transcript; only
    // those that are left to a person excuse a second arrival.
    let doubts = rig.events("delivery.uncertain");
    let left = doubts.iter().filter(|event| event["next"] != "transcript");
    let left: Vec<&str> = left
        .map(|event| event["delivery_id"].as_str().unwrap())
        .collect();
    let mut twice = 0;
    for (item, ids) in &sent {
        rig.until("every comment is in the transcript", || {
            let heard = heard(&rig, *item, each);
            (0..each).all(|index| heard.contains(&index)).then_some(())
        });
        let mut order = heard(&rig, *item, each);
        for (index, id) in ids.iter().enumerate() {
            let times = order.iter().filter(|heard| **heard == index).count();
            assert!(
                times == 1 || left.contains(&id.as_str()),
                "{id} came {times} times and nobody said so (seed {seed})\n{}",
                rig.trace()
            );
            twice += times - 1;
        }
        let mut seen = Vec::new();
        order.retain(|index| {
            !seen.contains(index) && {
                seen.push(*index);
                true
            }
        });
        let expected: Vec<usize> = (0..each).collect();
        assert_eq!(order, expected, "item {item}, seed {seed}");
    }
    let resolved = rig.events("delivery.resolved").len();
    println!(
        "{} comments, {kills} kills: {} times said to be uncertain, {resolved} times resolved, {} left to a \
         person; {twice} came twice; {} conversations for {} items",
        ids().count(),
        doubts.len(),
        left.len(),
        files(&rig.root("local/demo")).len(),
        ITEMS.len(),
    );
}

#[test]
fn p1_p2_di43_sixty_comments_and_twenty_kills() {
    soak(60, 20, "", false);
}

#[test]
fn p1_p2_di43_kills_beside_a_slow_agent_without_hooks() {
    let env = "THE_LOOP_DEMO_NO_HOOKS=1\nTHE_LOOP_DEMO_BUSY_MS=300\n";
    soak(24, 12, env, false);
}

#[test]
fn p1_p2_di39_kills_and_reboots() {
    soak(40, 20, "", true);
}

#[test]
#[ignore = "takes minutes; scripts/soak runs it"]
fn p1_p2_di43_two_hundred_comments_and_a_hundred_kills() {
    soak(200, 100, "", false);
}
