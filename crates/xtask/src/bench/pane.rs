//! From an accepted event to its text in a ready pane, beside the two calls of tmux that nobody can do
//! without; then what the daemon costs while a hundred agents do nothing.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::place::{Place, REPO};
use super::{cost, ms, percentile};

/// Comments of one measurement.
const COMMENTS: usize = 20;
/// The pause every paste needs before it is submitted (DI-28).
const SUBMIT_DELAY: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_mins(5);

pub fn run(place: &Place) -> Result<()> {
    println!("pane: event accepted until its text is in a ready pane (demo agents)");
    let mut tickets = 0;
    for sessions in [1, 50] {
        grow(place, &mut tickets, sessions)?;
        let mut bare = bare_pair(place)?;
        let mut ours = comments(place, sessions)?;
        let bare = percentile(&mut bare, 50) + SUBMIT_DELAY;
        let mid = percentile(&mut ours, 50);
        let sessions = format!("{sessions} sessions");
        println!(
            "  {sessions:<14} bare load + paste + 50 ms  {:>7.1} ms",
            ms(bare)
        );
        println!(
            "  {sessions:<14} the-loop                   {:>7.1} ms  worst {:.1} ms   ratio {:.2}",
            ms(mid),
            ms(percentile(&mut ours, 100)),
            mid.as_secs_f64() / bare.as_secs_f64()
        );
    }
    grow(place, &mut tickets, 100)?;
    cost::idle_daemon(place)
}

/// Makes tickets until so many agents have confirmed their first prompt.
fn grow(place: &Place, tickets: &mut usize, wanted: usize) -> Result<()> {
    while *tickets < wanted {
        let new = [
            "tickets",
            "new",
            "--repo",
            REPO,
            "--title",
            "work",
            "--start",
            "--no-wait",
        ];
        place.ok(&new)?;
        *tickets += 1;
    }
    Place::until("first prompts confirmed", PATIENCE, || {
        let mut items: Vec<String> = place
            .events("delivery.confirmed")?
            .iter()
            .map(|event| event["work_item"].to_string())
            .collect();
        items.sort();
        items.dedup();
        Ok(items.len() >= wanted)
    })
}

/// Comments one after another, round the sessions; each is over when it is confirmed.
fn comments(place: &Place, sessions: usize) -> Result<Vec<Duration>> {
    let mut waits = Vec::new();
    for number in 0..COMMENTS {
        let item = format!("local:{REPO}#{}", number * 7 % sessions + 1);
        let before = place.events("delivery.accepted")?.len();
        place.ok(&["tickets", "comment", &item, "--body", "Please look again."])?;
        let accepted = place.events("delivery.accepted")?;
        let accepted = accepted.get(before).context("the comment was accepted")?;
        let id = &accepted["delivery_id"];
        let pasted = place.events("delivery.pasted")?;
        let pasted = pasted.iter().find(|event| event["delivery_id"] == *id);
        let pasted = pasted.context("the comment was pasted")?;
        waits.push(instant(pasted)?.saturating_sub(instant(accepted)?));
    }
    Ok(waits)
}

/// The time of an event, from midnight. A measurement over midnight is no measurement.
fn instant(event: &Value) -> Result<Duration> {
    let text = event["ts"].as_str().context("an event has a time")?;
    let clock = text
        .split('T')
        .nth(1)
        .and_then(|rest| rest.strip_suffix('Z'));
    let mut parts = clock.context("a time in UTC")?.split(':');
    let mut next = || -> Result<f64> {
        let part = parts.next().context("a part of a time")?;
        Ok(part.parse()?)
    };
    let seconds = next()? * 3600.0 + next()? * 60.0 + next()?;
    Ok(Duration::from_secs_f64(seconds))
}

/// What two processes of tmux cost here: a buffer loaded, a buffer pasted into a pane of its own.
fn bare_pair(place: &Place) -> Result<Vec<Duration>> {
    let tmux = |words: &[&str]| {
        let mut command = place.command("tmux");
        command.args(["-L", "bench"]).args(words);
        command
    };
    let made = tmux(&["new-session", "-d", "-s", "bare", "cat"]).status()?;
    if !made.success() {
        bail!("tmux makes no session");
    }
    let mut times = Vec::new();
    for _ in 0..COMMENTS {
        let began = Instant::now();
        let mut load = tmux(&["load-buffer", "-b", "bare", "-"])
            .stdin(Stdio::piped())
            .spawn()?;
        let mut input = load.stdin.take().context("tmux has an input")?;
        input.write_all(b"Please look again.\n")?;
        drop(input);
        let loaded = load.wait()?;
        let pasted = tmux(&["paste-buffer", "-d", "-p", "-b", "bare", "-t", "=bare:"]).status()?;
        times.push(began.elapsed());
        if !loaded.success() || !pasted.success() {
            bail!("tmux pastes nothing");
        }
    }
    tmux(&["kill-session", "-t", "=bare"]).status()?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_of_events_are_apart_by_what_passed() {
        let at = |ts: &str| instant(&json!({ "ts": ts })).unwrap();
        let (later, earlier) = ("2026-03-01T09:12:44.318Z", "2026-03-01T09:12:43.300Z");
        let apart = at(later).abs_diff(at(earlier));
        assert_eq!(apart.as_millis(), 1018);
    }
}
