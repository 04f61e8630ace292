//! Random histories of a repository, seen by webhook and by polling, with outages and restarts in between,
//! against what must hold for every one of them: nothing lost, nothing twice, in order, no stranger obeyed.
//!
//! `THE_LOOP_HISTORIES` is how many are told (`scripts/soak` tells a thousand), `THE_LOOP_HISTORY` the one to
//! tell again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use the_loop::poll::Poller;
use the_loop::tracker::github::payload::{Encoding, Incoming, Parsed, parse};
use the_loop_core::config::Settings;
use the_loop_core::delivery::State;
use the_loop_testkit::fake_github::{Contents, Fault};
use the_loop_testkit::{FakeGithub, Simulator};

const REPO: &str = "octo/repo";
const LABEL: &str = "the-loop: auto-execute";
/// The person whose words count, and one whose words do not.
const ADA: &str = "ada";
const MALLORY: &str = "mallory";
/// Items of a history, and its pull request.
const ITEMS: [u64; 2] = [1, 2];
const PULL: u64 = 7;
/// Things that happen in a history.
const STEPS: usize = 25;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn item(&mut self) -> u64 {
        ITEMS[self.next(ITEMS.len())]
    }
}

struct History {
    dice: Dice,
    hub: FakeGithub,
    sim: Simulator,
    poller: Poller,
    settings: Settings,
    /// Words of Ada on items with a session, by the item, in order.
    owed: BTreeMap<u64, Vec<String>>,
    /// What happened, for whoever reads of a failure.
    told: Vec<String>,
    /// Webhooks that were not sent yet, or may be sent again.
    hooks: Vec<(String, Value)>,
    said: usize,
}

impl History {
    fn new(seed: u64) -> Self {
        let hub = FakeGithub::start();
        let sim = Simulator::polling(&hub);
        let poller = sim.poller();
        let mut history = Self {
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            hub,
            sim,
            poller,
            settings: Settings::default(),
            owed: BTreeMap::new(),
            told: Vec::new(),
            hooks: Vec::new(),
            said: 0,
        };
        LABEL.clone_into(&mut history.settings.routing.auto_execute_label);
        history.passes(0);
        history.hub.change(|world| {
            for number in ITEMS {
                world.issue(REPO, number, ADA, &[LABEL]);
            }
        });
        history.cycle();
        history
    }

    fn passes(&mut self, seconds: u64) {
        self.sim
            .clock
            .advance(std::time::Duration::from_secs(seconds));
        let now = self.sim.clock.now().unix_ms() / 1000;
        self.hub.change(|world| world.now = Some(now));
    }

    fn cycle(&mut self) {
        self.passes(30);
        self.poller.cycle();
        self.works();
    }

    /// The engine does what there is to do.
    fn works(&mut self) {
        for _ in 0..6 {
            self.sim.tick();
        }
        self.passes(0);
    }

    fn has_session(&self, number: u64) -> bool {
        let item = format!("github:{REPO}#{number}").parse().unwrap();
        self.sim.record(&item)["status"] == "active"
    }

    fn is_open(&self, number: u64) -> bool {
        self.hub
            .item(REPO, number)
            .is_some_and(|item| item["state"] == "open")
    }

    /// Somebody says something on an item; a webhook of it may come, now, later, twice or never.
    fn says(&mut self, number: u64, by: &str, body: &str) {
        self.passes(2);
        let row = self
            .hub
            .change(|world| world.comment(REPO, number, by, body));
        let item = self.hub.item(REPO, number);
        let payload = json!({
            "action": "created", "issue": item, "comment": row, "sender": row["user"],
            "repository": {"id": 7, "full_name": REPO, "html_url": format!("https://github.com/{REPO}")},
        });
        self.hooks.push(("issue_comment".to_owned(), payload));
    }

    fn words(&mut self, number: u64) {
        self.said += 1;
        let words = format!("words number {} on {number}", self.said);
        if self.has_session(number) && self.is_open(number) {
            self.owed.entry(number).or_default().push(words.clone());
        }
        self.says(number, ADA, &words);
    }

    /// A webhook comes in: any of those so far, also one that was in already.
    fn webhook(&mut self) {
        if self.hooks.is_empty() {
            return;
        }
        let at = self.dice.next(self.hooks.len());
        let (event, payload) = self.hooks[at].clone();
        let id = format!("hook-{}", self.dice.next(1_000_000));
        let body = payload.to_string();
        let incoming = Incoming {
            event: &event,
            delivery_id: &id,
            encoding: Encoding::Json,
            body: body.as_bytes(),
            received_at: self.sim.clock.now(),
        };
        match parse(&incoming, &self.settings) {
            Parsed::Delivery(delivery) => drop(self.sim.accept(&delivery).unwrap()),
            other => panic!("no delivery: {other:?}"),
        }
    }

    fn step(&mut self) {
        let (what, number) = (self.dice.next(16), self.dice.item());
        self.told.push(format!("{what} on {number}"));
        match what {
            0..=2 => self.words(number),
            3 => self.says(number, ADA, "the-loop start"),
            4 => self.says(number, MALLORY, "the-loop start\n"),
            5 => self.says(number, MALLORY, "the-loop stop"),
            6 => self.says(number, MALLORY, "words of a stranger"),
            7 => self.edits(),
            8 => self.review(),
            9 => {
                let is_open = self.is_open(number);
                self.closes_or_opens(number, is_open);
            }
            10 | 11 => self.webhook(),
            12 => self.outage(),
            13 => {
                self.sim.restart();
                self.poller = self.sim.poller();
            }
            _ => self.cycle(),
        }
        if self.dice.next(3) == 0 {
            self.works();
        }
    }

    /// Somebody writes a command over words of Ada's: before anybody has read them, or minutes later.
    fn edits(&mut self) {
        if self.dice.next(2) == 0 {
            let number = self.dice.item();
            self.says(number, ADA, "words of ada's, to be changed by another");
            let id = self.hooks.pop();
            let id = id.and_then(|(_, payload)| payload["comment"]["id"].as_u64());
            self.passes(5);
            let now = self.sim.clock.now().seconds();
            self.hub
                .change(|world| world.edit(id.unwrap(), "the-loop stop", &now));
            return;
        }
        self.hub.works();
        self.passes(400);
        self.cycle();
        let now = self.sim.clock.now().seconds();
        let old = self.hooks.iter().map(|(_, payload)| &payload["comment"]);
        let old = old
            .filter(|row| row["user"]["login"] == ADA)
            .find_map(|row| row["id"].as_u64());
        if let Some(id) = old {
            self.hub
                .change(|world| world.edit(id, "the-loop stop", &now));
        }
    }

    fn review(&mut self) {
        if self.hub.item(REPO, PULL).is_none() {
            self.hub
                .change(|world| world.pull(REPO, PULL, ADA, "feature", "Closes #1"));
            self.cycle();
        }
        self.passes(2);
        self.said += 1;
        let (review, inline) = (
            format!("review {}", self.said),
            format!("line {}", self.said),
        );
        if self.has_session(1) && self.is_open(1) {
            let owed = self.owed.entry(1).or_default();
            owed.extend([review.clone(), inline.clone()]);
        }
        self.hub.change(|world| {
            world.review(REPO, PULL, ADA, ("COMMENTED", &review), &[&inline]);
        });
        // Reviews come by polling only here, in their order with everything else.
        self.cycle();
    }

    /// What was said is heard before an item is closed: what comes after its end is nobody's any more.
    fn closes_or_opens(&mut self, number: u64, is_open: bool) {
        self.hub.works();
        self.passes(1_000);
        self.cycle();
        self.works();
        self.hooks.clear();
        let change = |world: &mut Contents| {
            if is_open {
                world.close(REPO, number, ADA, false);
            } else {
                world.reopen(REPO, number, ADA);
            }
        };
        self.hub.change(change);
        self.cycle();
    }

    fn outage(&mut self) {
        let faults = [
            Fault::Hangup,
            Fault::Status(502, String::new(), "<html>".to_owned()),
            Fault::Status(403, "retry-after: 45\r\n".to_owned(), "{}".to_owned()),
            Fault::Status(200, String::new(), "[{}]".to_owned()),
            Fault::LeadsToItself,
        ];
        let paths = [
            "issues?state=all",
            "issues/comments",
            "pulls/comments",
            "/issues/",
            "/pulls/",
        ];
        let fault = faults[self.dice.next(faults.len())].clone();
        self.hub.fails(paths[self.dice.next(paths.len())], fault);
    }

    /// Everything comes to rest.
    fn ends(&mut self) {
        self.hub.works();
        for _ in 0..4 {
            self.passes(600);
            self.cycle();
        }
        // What GitHub is asked in between takes its time by the wall clock.
        let ends = [State::Confirmed, State::Settled, State::Dropped];
        let is_over = |sim: &Simulator| sim.rows().iter().all(|row| ends.contains(&row.state));
        self.sim.tick_until(1_000, is_over);
        self.works();
    }

    /// Every prompt that agents took, in order.
    fn prompts(&self) -> Vec<String> {
        let mut all = Vec::new();
        let text_of = |id: &str| {
            let rows = self.sim.rows();
            let seq = rows.iter().find(|row| row.delivery_id == id)?.seq;
            let row = self.sim.inbox().delivery(seq).ok()??;
            match row.delivery.ok()?.effect {
                the_loop_core::delivery::Effect::Text(text) => Some(text.body),
                _ => None,
            }
        };
        for id in self.sim.taken() {
            all.extend(text_of(&id));
        }
        all
    }

    fn check(&self, seed: u64) {
        let prompts = self.prompts();
        let context = || {
            let rows: Vec<String> = self
                .sim
                .rows()
                .iter()
                .map(|row| format!("{} {} {:?}", row.delivery_id, row.state, row.reason))
                .collect();
            let polled: Vec<String> = self
                .sim
                .events()
                .iter()
                .filter(|event| event["source"] == "poll")
                .map(|event| serde_json::to_string(event).unwrap_or_default())
                .collect();
            let asked: Vec<String> = self
                .hub
                .requests()
                .iter()
                .map(|request| format!("{} {}", request.path, request.status))
                .collect();
            format!(
                "{polled:#?}\n{asked:#?}\nTHE_LOOP_HISTORY={seed}\n{:?}\nowed {:?}\nprompts {prompts:#?}\n{rows:#?}",
                self.told, self.owed
            )
        };
        for (number, owed) in &self.owed {
            let heard: Vec<&String> = prompts.iter().filter(|text| owed.contains(text)).collect();
            let as_set: BTreeSet<&String> = heard.iter().copied().collect();
            assert_eq!(
                heard.len(),
                as_set.len(),
                "twice on {number}: {}",
                context()
            );
            for words in owed {
                assert!(
                    as_set.contains(words),
                    "lost on {number}: {words}\n{}",
                    context()
                );
            }
        }
        let strangers = prompts
            .iter()
            .filter(|text| text.contains("stranger"))
            .count();
        assert_eq!(strangers, 0, "{}", context());
        for event in self.sim.told("control.command") {
            assert_eq!(event["actor"], ADA, "{}", context());
            // Nobody in these histories stops anything but by words that were changed.
            assert_eq!(event["command"], "start", "{}", context());
        }
        assert!(self.sim.told("dispatch.error").is_empty(), "{}", context());
        assert!(
            self.sim.told("delivery.uncertain").is_empty(),
            "{}",
            context()
        );
    }
}

#[test]
fn in10_in44_histories_by_webhook_and_polling_lose_nothing_and_obey_no_stranger() {
    #[allow(
        clippy::disallowed_methods,
        reason = "how many are told is for whoever runs it"
    )]
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let seeds = match number("THE_LOOP_HISTORY") {
        Some(seed) => seed..seed + 1,
        None => 1..number("THE_LOOP_HISTORIES").unwrap_or(40) + 1,
    };
    let mut owed = 0;
    for seed in seeds.clone() {
        let mut history = History::new(seed);
        for _ in 0..STEPS {
            history.step();
        }
        history.ends();
        history.check(seed);
        owed += history.owed.values().map(Vec::len).sum::<usize>();
    }
    // Histories in which nothing has to arrive would prove nothing.
    assert!(
        owed as u64 >= seeds.end - seeds.start,
        "only {owed} words had to arrive"
    );
}
