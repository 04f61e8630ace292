//! What the program costs: to start its command line, and while nothing happens.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use camino::Utf8Path;
use serde_json::Value;

use super::place::{Place, REPO};
use super::{ms, percentile};

/// How long an idle daemon is watched.
const WATCHED: Duration = Duration::from_secs(20);
/// Clock ticks of /proc in a second, on every Linux we run on.
pub const TICKS: f64 = 100.0;
const RECORDS: usize = 1_000;
const STARTS: usize = 30;

/// CPU and memory of the daemon while its agents are idle.
pub fn idle_daemon(place: &Place) -> Result<()> {
    let pid = daemon_pid(place)?;
    let before = cpu_ticks(pid)?;
    std::thread::sleep(WATCHED);
    let used = cpu_ticks(pid)?.saturating_sub(before);
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let resident = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kb.unwrap_or_default() / 1024.0
    };
    println!(
        "idle: daemon with 100 live demo sessions over {} s: {:.2} % of a core, {:.1} MB resident \
         ({:.1} MB of it its own)",
        WATCHED.as_secs(),
        used as f64 / TICKS / WATCHED.as_secs_f64() * 100.0,
        resident("VmRSS:"),
        resident("RssAnon:"),
    );
    Ok(())
}

pub fn daemon_pid(place: &Place) -> Result<u64> {
    let out = place.the_loop(&["status", "--format", "json"]).output()?;
    let status: Value = serde_json::from_slice(&out.stdout)?;
    find_pid(&status).context("status names the daemon's pid")
}

/// The first number called `pid`, wherever it is in the document.
fn find_pid(value: &Value) -> Option<u64> {
    match value {
        Value::Object(map) => {
            let own = map.get("pid").and_then(Value::as_u64);
            own.or_else(|| map.values().find_map(find_pid))
        }
        Value::Array(values) => values.iter().find_map(find_pid),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

pub fn cpu_ticks(pid: u64) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = text.rsplit(')').next().context("a stat line")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    Ok(ticks(11).context("utime")? + ticks(12).context("stime")?)
}

/// How fast a command answers, beside one of git.
pub fn command_line(program: &Utf8Path) -> Result<()> {
    let mut place = Place::make(program, "")?;
    place.start()?;
    place.ok(&[
        "tickets", "new", "--repo", REPO, "--title", "work", "--start",
    ])?;
    place.ok(&["stop"])?;
    multiply_records(&place)?;
    let mut git = place.command("git");
    git.arg("--version");
    let base = median(git)?;
    println!(
        "cli: median of {STARTS} starts; git --version {:.2} ms",
        ms(base)
    );
    let rows = [
        ("the-loop --version", vec!["--version"]),
        (
            "the-loop sessions list (1000 records)",
            vec!["sessions", "list"],
        ),
    ];
    for (name, words) in rows {
        let time = median(place.the_loop(&words))?;
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        println!("  {name:<40} {:>7.2} ms   ratio {ratio:.2}", ms(time));
    }
    Ok(())
}

/// Copies the one record until there are a thousand.
fn multiply_records(place: &Place) -> Result<()> {
    let dir = place.dir.join("state/local");
    let name = "local-demo-hello-1.json";
    let text = fs::read_to_string(dir.join(name)).context("the session record")?;
    for number in 2..=RECORDS {
        let text = text
            .replace(
                &format!("local:{REPO}#1\""),
                &format!("local:{REPO}#{number}\""),
            )
            .replace("hello-1\"", &format!("hello-{number}\""));
        let name = name.replace("hello-1.json", &format!("hello-{number}.json"));
        fs::write(dir.join(name), text)?;
    }
    let out = place.ok(&["sessions", "list", "--format", "json"])?;
    let listed = String::from_utf8_lossy(&out.stdout)
        .matches(&format!("local:{REPO}#"))
        .count();
    if listed < RECORDS {
        bail!("only {listed} of {RECORDS} records are listed");
    }
    Ok(())
}

fn median(mut command: Command) -> Result<Duration> {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        command.status()?;
        times.push(began.elapsed());
    }
    Ok(percentile(&mut times, 50))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_pid_is_found_wherever_it_is() {
        let status = json!({ "services": [{ "name": "daemon", "pid": 42 }] });
        assert_eq!(find_pid(&status), Some(42));
        assert_eq!(find_pid(&json!({})), None);
    }
}
