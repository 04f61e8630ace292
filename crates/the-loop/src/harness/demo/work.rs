//! What the demo agent can do: note a delivery in a file of the repository, commit it, and reply on the
//! ticket.

use std::time::Duration;

use camino::Utf8Path;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::prompt::markers_in;

use crate::process::{Answer, Call};
use crate::world::World;

/// The file it writes into.
const NOTES: &str = "demo-agent.md";
/// Bytes of a mail file that it reads.
const MAIL_BYTES_MAX: u64 = 1 << 20;
/// How often it tries a git command that another session's lock is in the way of.
const GIT_TRIES: usize = 5;

/// Works a prompt; answers what it did. A prompt that is no delivery of ours gets words and no work.
pub fn perform(world: &World, prompt: &str) -> String {
    let Some(marker) = markers_in(prompt).into_iter().next() else {
        let lines = prompt.lines().count();
        return format!("You said {lines} line(s). I only work deliveries of the-loop.");
    };
    let first = prompt.lines().next().unwrap_or_default();
    let what = first
        .split_once(": ")
        .map_or("a delivery", |(_, what)| what);
    let mut did = Vec::new();
    if let Some(path) = pointed_to(prompt) {
        match world.disk.read(Utf8Path::new(path), MAIL_BYTES_MAX) {
            Ok(mail) => did.push(format!("read {} bytes of mail", mail.len())),
            Err(e) => did.push(format!("cannot read {path}: {e}")),
        }
    }
    did.push(match note(world, &format!("- {what} ({marker})\n"), what) {
        Ok(commit) => format!("committed {NOTES} as {commit}"),
        Err(why) => why,
    });
    if let Some(item) = local_item(world) {
        let words = format!("demo-agent: {}.", did.join("; "));
        did.push(reply(world, &item, &words));
    }
    format!("Done with {what}: {}.", did.join("; "))
}

/// The path of `Read PATH and do what it says.`, which stands on a line of its own.
fn pointed_to(prompt: &str) -> Option<&str> {
    prompt.lines().find_map(|line| {
        let path = line
            .strip_prefix("Read ")?
            .strip_suffix(" and do what it says.")?;
        path.starts_with('/').then_some(path)
    })
}

/// The work item of this pane, where it is one of the embedded tracker.
fn local_item(world: &World) -> Option<WorkItemRef> {
    let item: WorkItemRef = world.var("THE_LOOP_WORK_ITEM")?.parse().ok()?;
    item.is_local().then_some(item)
}

fn note(world: &World, line: &str, what: &str) -> Result<String, String> {
    let top = git(world, &["rev-parse", "--show-toplevel"]);
    if !top.ok() {
        return Err("not in a git repository, so nothing was written".to_owned());
    }
    let file = Utf8Path::new(top.out().trim_end()).join(NOTES);
    let is_new = matches!(world.disk.meta(&file), Ok(None));
    let written = world.disk.append(&file, line.as_bytes());
    written.map_err(|e| format!("cannot write {NOTES}: {e}"))?;
    if is_new {
        let _ = world.disk.set_mode(&file, 0o644);
    }
    let message = format!("demo-agent: {what}");
    let commit = [
        "-c",
        "user.name=demo-agent",
        "-c",
        "user.email=demo-agent@localhost",
        "-c",
        "commit.gpgSign=false",
        "commit",
        "--quiet",
        "-m",
        &message,
        "--",
        file.as_str(),
    ];
    for command in [&["add", "--", file.as_str()][..], &commit[..]] {
        let answer = git(world, command);
        if !answer.ok() {
            return Err(format!("cannot commit: {}", answer.describe()));
        }
    }
    Ok(git(world, &["rev-parse", "--short", "HEAD"])
        .out()
        .trim()
        .to_owned())
}

/// Runs git here; where several sessions share a checkout, another's lock may be in the way a moment.
fn git(world: &World, args: &[&str]) -> Answer {
    let call = Call::new("git", args.iter().copied())
        .cwd(world.cwd.clone())
        .env("GIT_TERMINAL_PROMPT", "0")
        .timeout(Duration::from_secs(30));
    let mut answer = world.processes.run(&call);
    for _ in 1..GIT_TRIES {
        if answer.ok() || !answer.err().contains(".lock") {
            break;
        }
        world.clock.wait(Duration::from_millis(200));
        answer = world.processes.run(&call);
    }
    answer
}

fn reply(world: &World, item: &WorkItemRef, words: &str) -> String {
    let item = item.to_string();
    let args = ["tickets", "comment", &item, "--body", words, "--no-wait"];
    let call = Call::new(world.program.as_str(), args)
        .cwd(world.cwd.clone())
        .timeout(Duration::from_mins(1));
    let answer = world.processes.run(&call);
    if answer.ok() {
        format!("replied on {item}")
    } else {
        format!("cannot reply on {item}: {}", answer.describe())
    }
}
