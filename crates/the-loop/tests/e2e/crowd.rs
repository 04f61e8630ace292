//! Many sessions whose tmux server dies, and what looking after them costs (DI-14, DI-41).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::payload::{MAINTAINER, labeled};
use super::rig::{Rig, Wish, files};
use super::scripted::{self, calls, configure, count};

/// The supervisor's one look at all sessions.
const TICK: &str = "list-panes -a -F";

fn rig(sessions: u64, at_once: u32) -> Rig {
    let rig = scripted::rig(&Wish::default(), "");
    let limits = format!("maxLiveSessions: {sessions}, minFreeMemoryMb: 0");
    configure(&rig, "minFreeMemoryMb: 0", &limits);
    let at_once = format!("defaultHarness: demo\n  maxConcurrentDispatches: {at_once}");
    configure(&rig, "defaultHarness: demo", &at_once);
    rig.up();
    rig
}

/// Starts them in this order, and waits until every agent has its prompt.
fn start_all(rig: &Rig, items: &[u64]) {
    let mut ids = Vec::new();
    for item in items {
        rig.accepted("issues", &labeled(*item, MAINTAINER));
        ids.push(rig.say(*item, "the-loop start"));
        // The first ones wait for the shared clone alone, so that their ages are in order.
        if ids.len() % 8 == 1 {
            rig.confirmed(&ids[ids.len() - 1]);
        }
    }
    rig.within(Duration::from_mins(8), "all agents", || {
        let told = rig.events("delivery.confirmed");
        let has = |id: &String| told.iter().any(|e| e["delivery_id"] == id.as_str());
        ids.iter().all(has).then_some(())
    });
}

/// Items by the time at which their sessions were made.
fn by_age(rig: &Rig, items: &[u64]) -> Vec<u64> {
    let mut ages = BTreeMap::new();
    for item in items {
        let file = rig.root(&format!("local/github-octo-repo-{item}.json"));
        let text = std::fs::read_to_string(file).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let made = record["createdAt"].as_str().unwrap().to_owned();
        ages.insert((made, format!("github:octo/repo#{item}")), *item);
    }
    ages.into_values().collect()
}

fn number(event: &serde_json::Value) -> u64 {
    let item = event["work_item"].as_str().unwrap();
    item.rsplit('#').next().unwrap().parse().unwrap()
}

/// Once nothing happens, every tick is one tmux process, and it is the look at all of them.
fn costs_one_process_a_tick(rig: &Rig) {
    let quiet = |since: usize| calls(rig)[since..].iter().all(|call| call.contains(TICK));
    rig.within(Duration::from_mins(2), "a quiet time", || {
        let since = calls(rig).len();
        let until = Instant::now() + Duration::from_secs(3);
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            std::thread::park_timeout(left);
        }
        quiet(since).then_some(())
    });
    let (since, began) = (calls(rig).len(), Instant::now());
    rig.until("some ticks", || {
        (calls(rig).len() >= since + 6).then_some(())
    });
    let ticks = began.elapsed().as_secs_f64();
    let made = calls(rig).len() - since;
    assert!(quiet(since), "{:?}", &calls(rig)[since..]);
    assert!(made as f64 <= ticks + 2.0, "{made} processes in {ticks} s");
    println!("{made} tmux processes in {ticks:.1} s");
}

fn server_dies(sessions: u64, at_once: u32) {
    let rig = rig(sessions, at_once);
    // Neither the order of names nor that of numbers is the order of age.
    let items: Vec<u64> = (1..=sessions).map(|n| n * 37 % 1009).collect();
    start_all(&rig, &items);
    costs_one_process_a_tick(&rig);
    let ages = by_age(&rig, &items);
    let since = calls(&rig).len();
    let died = Instant::now();
    let killed = rig.tmux(&["kill-server"]);
    assert!(killed.status.success(), "{killed:?}");
    rig.within(Duration::from_mins(8), "all are back", || {
        (rig.events("session.respawned").len() as u64 >= sessions).then_some(())
    });
    println!(
        "{sessions} are back after {:.1} s",
        died.elapsed().as_secs_f64()
    );
    let back = rig.events("session.respawned");
    assert_eq!(back.len() as u64, sessions, "none twice");
    assert!(back.iter().all(|e| e["resumed"] == true), "{back:#?}");
    assert_eq!(count(&rig, since, "new-session") as u64, sessions);
    let gone = rig.events("tmux.server_gone");
    assert_eq!(gone.len(), 1, "{gone:#?}");
    assert_eq!(gone[0]["count"], sessions);
    assert!(rig.events("session.resume_failed").is_empty());
    assert!(rig.events("session.spawn_failed").is_empty());
    assert_eq!(files(&rig.root("local/demo")).len() as u64, sessions);
    let resumed: Vec<u64> = rig
        .events("session.starting")
        .iter()
        .filter(|e| e["resume"] == true)
        .map(number)
        .collect();
    if at_once == 1 {
        assert_eq!(resumed, ages, "oldest first");
    }
    let late = |(turn, item): (usize, &u64)| {
        let came = resumed.iter().position(|other| other == item).unwrap();
        came.saturating_sub(turn)
    };
    let total: usize = ages.iter().enumerate().map(late).sum();
    assert!(
        total <= ages.len() * at_once as usize,
        "oldest first: {ages:?}, and came {resumed:?}"
    );
    // They are the ones that were, they live, and they listen.
    let ids: Vec<String> = items
        .iter()
        .map(|item| rig.say(*item, &format!("still there, {item}?")))
        .collect();
    for id in &ids {
        rig.within(Duration::from_mins(5), "an answer", || {
            let told = rig.events("delivery.confirmed");
            told.iter()
                .any(|e| e["delivery_id"] == id.as_str())
                .then_some(())
        });
    }
    assert_eq!(rig.events("session.respawned").len() as u64, sessions);
    for item in &items {
        assert_eq!(rig.prompts(*item).len(), 2, "item {item}");
    }
    costs_one_process_a_tick(&rig);
}

#[test]
fn di14_di41_twelve_sessions_come_back_oldest_first() {
    server_dies(12, 1);
}

#[test]
#[ignore = "takes minutes; scripts/soak runs it"]
fn di14_di41_a_hundred_sessions_come_back_after_the_server_died() {
    server_dies(100, 4);
}
