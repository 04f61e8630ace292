//! What a cycle of the poller costs, against a double of GitHub on loopback: requests are the program's own
//! count, seconds hold what the double takes to answer.

use std::time::{Duration, Instant};

use anyhow::Result;
use camino::Utf8Path;
use serde_json::Value;
use the_loop_testkit::FakeGithub;
use the_loop_testkit::fake_github::TOKEN;

use super::cost::{TICKS, cpu_ticks, daemon_pid};
use super::place::Place;

/// The label that arms.
const LABEL: &str = "the-loop: auto-execute";
/// Longest wait for a cycle.
const PATIENCE: Duration = Duration::from_mins(5);
/// Quiet cycles over which processor time is counted.
const CYCLES: usize = 20;

/// Items, then repositories.
pub fn run(program: &Utf8Path) -> Result<()> {
    println!(
        "poll: one repository; a cycle that is the first, one with a new comment, one in which nothing is new"
    );
    for items in [10, 100, 1_000] {
        one_repository(program, items)?;
    }
    many_repositories(program)
}

fn one_repository(program: &Utf8Path, items: u64) -> Result<()> {
    let hub = FakeGithub::start();
    hub.change(|world| {
        for number in 1..=items {
            world.now = Some(1_700_000_000 + i64::try_from(number).unwrap_or(0));
            world.issue("octo/repo", number, "octocat", &[LABEL]);
        }
        world.now = None;
    });
    let place = polling(program, &hub, "octo/repo")?;
    let first = cycle(&place, 0, |_| true)?;
    tell(&format!("{items} items, first"), &first);
    let quiet = |cycle: &Value| cycle["requests"] == cycle["not_modified"];
    let at_rest = cycle(&place, 1, quiet)?;
    hub.change(|world| world.comment("octo/repo", 1, "octocat", "words"));
    let seen = cycles(&place)?.len();
    let active = cycle(&place, seen, |cycle| {
        cycle["requests"] != cycle["not_modified"]
    })?;
    tell(&format!("{items} items, one comment"), &active);
    tell(&format!("{items} items, nothing new"), &at_rest);
    Ok(())
}

fn many_repositories(program: &Utf8Path) -> Result<()> {
    let hub = FakeGithub::start();
    let names: Vec<String> = (1..=20).map(|n| format!("octo/repo{n}")).collect();
    hub.change(|world| {
        for name in &names {
            for number in 1..=50_u64 {
                let at = i64::try_from(number).unwrap_or(0);
                world.now = Some(1_700_000_000 + at);
                world.issue(name, number, "octocat", &[]);
                for _ in 0..5 {
                    world.comment(name, number, "octocat", "words");
                }
            }
        }
        world.now = None;
    });
    let place = polling(program, &hub, &names.join(", "))?;
    let quiet = |cycle: &Value| cycle["requests"] == cycle["not_modified"];
    let rest = cycle(&place, 1, quiet)?;
    let pid = daemon_pid(&place)?;
    let (before, began) = (cpu_ticks(pid)?, cycles(&place)?.len());
    cycle(&place, began + CYCLES, |_| true)?;
    let used = cpu_ticks(pid)?.saturating_sub(before) as f64 / TICKS * 1_000.0;
    let count = cycles(&place)?.len() - began;
    tell("20 repositories, 1000 items, 5000 comments, quiet", &rest);
    println!(
        "  {:<52} {:.1} ms of the daemon's processor time a cycle, all else of a daemon included",
        "the same, over so many cycles",
        used / count as f64
    );
    Ok(())
}

fn polling(program: &Utf8Path, hub: &FakeGithub, repos: &str) -> Result<Place> {
    let more = format!(
        "integrations: {{github: {{apiUrl: '{}', tokenFile: token, cli: {{binary: ''}}}}}}\n\
         polling: {{enabled: true, intervalSeconds: 1, sources: [{{repos: [{repos}]}}]}}\n",
        hub.api()
    );
    let mut place = Place::make(program, &more)?;
    std::fs::write(place.dir.join("token"), TOKEN)?;
    hub.has_left(1_000_000, i64::from(u32::MAX));
    place.start()?;
    Ok(place)
}

fn cycles(place: &Place) -> Result<Vec<Value>> {
    place.events("poll.cycle")
}

/// The first cycle from that one on of which this holds.
fn cycle(place: &Place, from: usize, is: impl Fn(&Value) -> bool) -> Result<Value> {
    let until = Instant::now() + PATIENCE;
    loop {
        let all = cycles(place)?;
        if let Some(found) = all.iter().skip(from).find(|cycle| is(cycle)) {
            return Ok(found.clone());
        }
        anyhow::ensure!(Instant::now() < until, "no such cycle came");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn tell(what: &str, cycle: &Value) {
    let number = |name: &str| cycle[name].as_u64().unwrap_or(0);
    println!(
        "  {what:<52} {:>5} requests, {:>5} of them answered 304, {:>6} ms",
        number("requests"),
        number("not_modified"),
        number("duration_ms"),
    );
}
