//! Agents that need somebody, tokens and limits, as a person sees them: the real binary, real tmux, the
//! demo agent and the embedded tracker (DI-31, DI-37, DI-51, DI-52, SE-24, SE-25, SE-29, SE-31).

use serde_json::Value;

use super::home::{Home, eventually};

const ITEM: &str = "local:demo/hello#1";

/// A home whose configuration has these lines of `routing` and limits, and whose agents get this
/// environment.
fn home(routing: &str, limits: &str, env: &str) -> Home {
    let home = Home::with("");
    configure(&home, routing, limits);
    private(&home, "home/.the-loop/env", env);
    home
}

fn configure(home: &Home, routing: &str, limits: &str) {
    home.config(&format!(
        "version: 1.0.0\nenv: {{file: env}}\nrouting:\n  defaultHarness: demo\n  \
         spawnOnUnmatched: labeled\n  workspace: {{root: {work}}}\n  \
         tmux: {{socketName: {socket}, resumeProbeSeconds: 0.2}}\n  \
         limits: {{minFreeDiskMb: 0, {limits}}}\n{routing}\
         tracker: {{local: {{repos: {{demo/hello: {repo}}}}}}}\n",
        work = home.path("work").display(),
        socket = home.socket(),
        repo = home.path("hello.git").display(),
    ));
}

fn private(home: &Home, below: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let file = home.path(below);
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn status(home: &Home) -> Value {
    home.json(&["status"])
}

fn session(home: &Home) -> Value {
    home.json(&["sessions", "list"])[0].clone()
}

/// Comments of ours on the ticket that hold these words.
fn comments(home: &Home, words: &str) -> Vec<String> {
    let ticket = home.json(&["tickets", "show", ITEM]);
    let entries = ticket["entries"].as_array().unwrap();
    let ours = entries.iter().filter(|entry| entry["actor"] == "the-loop");
    let bodies = ours.filter_map(|entry| entry["body"].as_str().map(str::to_owned));
    bodies.filter(|body| body.contains(words)).collect()
}

fn say(home: &Home, text: &str) {
    home.ok(&["tickets", "comment", ITEM, "--body", text, "--no-wait"]);
}

/// Where the newest comment of a person stands, as `queued (parked)`.
fn newest(home: &Home) -> String {
    let all = home.json(&["deliveries", "list", "--all"]);
    let mut all = all.as_array().unwrap().clone();
    all.retain(|row| row["actor"] != "the-loop");
    let row = all.last().unwrap();
    format!(
        "{} ({})",
        row["state"].as_str().unwrap(),
        row["heldBecause"].as_str().unwrap_or_default()
    )
}

fn start(home: &Home) {
    home.ok(&["start"]);
    home.ok(&["tickets", "new", "--title", "Say hello", "--start"]);
}

#[test]
fn di31_se24_an_agent_that_waits_is_seen_told_once_and_over_when_answered() {
    let env = "THE_LOOP_DEMO_ASK_PERMISSION=1\n";
    let limits = "minFreeMemoryMb: 0";
    let home = home("  attention: {afterSeconds: 1}\n", limits, env);
    start(&home);
    eventually("the notice", || {
        (comments(&home, "waits for an answer in its terminal (permission)").len() == 1)
            .then_some(())
    });
    let seen = session(&home);
    assert_eq!(seen["state"], "waiting", "{seen}");
    assert_eq!(seen["waitingKind"], "permission");
    assert_eq!(seen["stateSource"], "hook");
    assert!(seen["stateAgeSeconds"].as_u64().unwrap() >= 1, "{seen}");
    let text = home.ok(&["sessions", "list"]);
    assert!(text.contains("waiting(permission) (hook, "), "{text}");
    let now = status(&home);
    assert_eq!(now["sessions"]["waiting"], 1, "{now}");
    assert_eq!(now["waiting"][0]["ref"], ITEM);
    assert_eq!(now["waiting"][0]["kind"], "permission");
    assert_eq!(now["waiting"][0]["since"], seen["stateSince"]);
    let text = home.ok(&["status"]);
    let line = format!("waiting      {ITEM}  permission question, ");
    let attach = format!(
        "tmux -L {} attach -t =loop-local-demo-hello-1",
        home.socket()
    );
    let line = text.lines().find(|l| l.starts_with(&line));
    assert!(line.is_some_and(|l| l.ends_with(&attach)), "{text}");
    // A daemon that is started again has told already; and nobody needs one to see it.
    home.ok(&["stop"]);
    assert_eq!(session(&home)["state"], "waiting");
    home.ok(&["start"]);
    home.tmux(&["send-keys", "-t", "=loop-local-demo-hello-1:", "y"]);
    eventually("the answer", || {
        (session(&home)["state"] == "idle").then_some(())
    });
    assert_eq!(status(&home)["waiting"], serde_json::json!([]));
    assert_eq!(home.events("session.waiting").len(), 1);
    assert_eq!(comments(&home, "waits for an answer").len(), 1);
}

#[test]
fn di37_se29_tokens_are_seen_by_item_and_day_and_counted_once() {
    let home = home("", "minFreeMemoryMb: 0", "");
    start(&home);
    let total = |home: &Home| session(home)["tokens"]["total"].as_u64().unwrap();
    eventually("tokens", || (total(&home) > 0).then_some(()));
    eventually("the end of the turn", || {
        (session(&home)["state"] == "idle").then_some(())
    });
    let seen = eventually("a count that stands", || {
        let first = session(&home);
        (status(&home)["limits"]["tokensToday"]["now"] == first["tokens"]["total"]).then_some(first)
    });
    let tokens = &seen["tokens"];
    for class in ["input", "output", "cacheRead", "cacheWrite"] {
        assert!(tokens[class].is_u64(), "{tokens}");
    }
    assert!(tokens["input"].as_u64().unwrap() > 0 && tokens["output"].as_u64().unwrap() > 0);
    assert_eq!(tokens["today"]["total"], tokens["total"]);
    home.ok(&["restart"]);
    eventually("a look by the new daemon", || {
        (!home.events("daemon.started").is_empty()).then_some(())
    });
    say(&home, "And this.");
    eventually("the second turn", || {
        (total(&home) > tokens["total"].as_u64().unwrap()).then_some(())
    });
    let now = status(&home);
    assert_eq!(now["tokens"]["items"][0]["ref"], ITEM, "{now}");
    let transcripts = std::fs::read_dir(home.root().join("local/demo")).unwrap();
    let written: u64 = transcripts
        .flat_map(|file| {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            let lines: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            lines
        })
        .filter_map(|line| {
            Some(line["usage"]["input"].as_u64()? + line["usage"]["output"].as_u64()?)
        })
        .sum();
    eventually("the whole transcript, once", || {
        (total(&home) == written).then_some(())
    });
    let text = home.ok(&["status"]);
    let line = format!("tokens       {ITEM}  {written} today, {written} in all");
    assert!(text.contains(&line), "{text}");
    assert!(
        text.contains(&format!("; {written} tokens today")),
        "{text}"
    );
}

#[test]
fn di52_se31_a_cap_parks_an_item_says_so_once_and_resume_or_a_higher_cap_releases_it() {
    let home = home("", "minFreeMemoryMb: 0, maxTokensPerItem: 1", "");
    start(&home);
    eventually("the notice", || {
        (comments(&home, "Paused by a limit: 1 tokens are used up.").len() == 1).then_some(())
    });
    say(&home, "A comment that has to wait.");
    eventually("a held delivery", || {
        (newest(&home) == "queued (parked)").then_some(())
    });
    let now = status(&home);
    let parked = &now["limits"]["parked"][0];
    assert_eq!(
        (&parked["ref"], &parked["limit"]),
        (&ITEM.into(), &1.into())
    );
    assert_eq!(parked["reason"], "tokens-per-item");
    let text = home.ok(&["status"]);
    let line =
        format!("parked       {ITEM}  1 tokens are used up  the-loop sessions resume {ITEM}");
    assert!(text.contains(&line), "{text}");
    let released = home.run(&["sessions", "resume", ITEM, "--no-comment"]);
    assert_eq!(released.code, 0, "{}", released.err);
    let words = format!("{ITEM}: released (was: 1 tokens are used up)\n");
    assert_eq!(released.out, words);
    // Its answer reaches the limit again: parked anew, said anew.
    eventually("the second notice", || {
        (comments(&home, "Paused by a limit").len() == 2).then_some(())
    });
    say(&home, "Another one.");
    eventually("a held delivery", || {
        (newest(&home) == "queued (parked)").then_some(())
    });
    configure(&home, "", "minFreeMemoryMb: 0, maxTokensPerItem: 1000000");
    eventually("the release by the configuration", || {
        newest(&home).starts_with("confirmed").then_some(())
    });
    let via: Vec<Value> = home
        .events("limit.released")
        .iter()
        .map(|event| event["via"].clone())
        .collect();
    assert_eq!(via, ["cli", "config"]);
    assert_eq!(home.events("limit.parked").len(), 2);
    assert_eq!(home.events("limit.parked")[0]["told"], true);
}

#[test]
fn di52_se31_resume_all_releases_the_machine() {
    let home = home("", "minFreeMemoryMb: 0, maxTokensPerDay: 1", "");
    start(&home);
    eventually("the parking", || {
        (home.events("limit.parked").len() == 1).then_some(())
    });
    assert_eq!(home.events("limit.parked")[0].get("work_item"), None);
    assert_eq!(comments(&home, "for all items of this machine").len(), 1);
    let text = home.ok(&["status"]);
    let line = "parked       the whole machine  the day's 1 tokens are used up  \
                the-loop sessions resume --all";
    assert!(text.contains(line), "{text}");
    say(&home, "A comment that has to wait.");
    eventually("a held delivery", || {
        (newest(&home) == "queued (parked)").then_some(())
    });
    let one = home.run(&["sessions", "resume", ITEM, "--no-comment"]);
    assert_eq!(one.code, 1);
    assert!(
        one.err.contains("the-loop sessions resume --all"),
        "{}",
        one.err
    );
    // An agent cannot lift its own brake.
    let mut inside = home.command();
    let inside = inside.env("THE_LOOP_WORK_ITEM", ITEM);
    let inside = super::home::ran(inside.args(["sessions", "resume", "--all"]));
    assert_eq!(inside.code, 1);
    assert_eq!(home.events("limit.released").len(), 0);
    let all = home.run(&["sessions", "resume", "--all", "--no-comment"]);
    assert_eq!(all.code, 0, "{}", all.err);
    let words = "the machine: released (was: the day's 1 tokens are used up)\n";
    assert_eq!(all.out, words);
    eventually("the delivery", || {
        newest(&home).starts_with("confirmed").then_some(())
    });
}

#[test]
fn di51_what_a_new_session_waits_for_is_named() {
    let home = home("", "minFreeMemoryMb: 4000000000", "");
    start(&home);
    eventually("a held start", || {
        (newest(&home) == "queued (low-memory)").then_some(())
    });
    let listed = session(&home);
    assert_eq!(
        (&listed["ref"], &listed["status"]),
        (&ITEM.into(), &"low-memory".into())
    );
    let only = home.json(&["sessions", "list", "--status", "low-memory"]);
    assert_eq!(only.as_array().unwrap().len(), 1);
    let now = status(&home);
    assert_eq!(now["limits"]["waitingCapacity"][0]["reason"], "low-memory");
    let text = home.ok(&["status"]);
    assert!(text.contains("0 live; 1 waiting for memory"), "{text}");
    configure(&home, "", "minFreeMemoryMb: 0");
    eventually("the session", || {
        newest(&home).starts_with("confirmed").then_some(())
    });
}

#[test]
fn cf32_an_environment_file_that_cannot_be_used_is_told_and_the_agent_starts() {
    let home = home("", "minFreeMemoryMb: 0", "GOOD=1\nnot a line\n");
    start(&home);
    let told = home.events("env.unusable");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["lines"], serde_json::json!([2]));
    assert!(!told[0].to_string().contains("not a line\\n"), "{told:?}");
    std::fs::remove_file(home.path("home/.the-loop/env")).unwrap();
    home.ok(&["sessions", "stop", ITEM, "--no-comment"]);
    home.ok(&["sessions", "start", ITEM, "--no-comment"]);
    let told = home.events("env.unusable");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[1].get("lines").is_none(), "{told:?}");
}

#[test]
fn di29_an_agent_without_hooks_and_transcript_is_told_to_be_silent() {
    let env = "THE_LOOP_DEMO_NO_HOOKS=1\nTHE_LOOP_DEMO_TRANSCRIPT=none\n";
    let home = home("", "minFreeMemoryMb: 0", env);
    home.ok(&["start"]);
    home.ok(&[
        "tickets",
        "new",
        "--title",
        "Say hello",
        "--start",
        "--no-wait",
    ]);
    eventually("the word of its silence", || {
        (home.events("hook.silent").len() == 1).then_some(())
    });
    assert_eq!(home.events("hook.silent")[0]["next"], "screen");
}

#[test]
fn di51_an_idle_agent_ends_and_the_next_comment_finds_its_conversation() {
    let home = home("", "minFreeMemoryMb: 0, idleStopAfterHours: 0.0005", "");
    start(&home);
    let before = session(&home)["harnessSessionId"].clone();
    eventually("the end of the idle agent", || {
        (home.events("limit.idle_stopped").len() == 1).then_some(())
    });
    let stopped = eventually("an exited agent", || {
        let seen = session(&home);
        (seen["state"] == "exited").then_some(seen)
    });
    assert_eq!(stopped["status"], "active", "{stopped}");
    assert_eq!(stopped["stateSince"], stopped["idleStoppedAt"]);
    say(&home, "Are you there?");
    eventually("the delivery", || {
        newest(&home).starts_with("confirmed").then_some(())
    });
    let back = home.events("session.respawned");
    assert_eq!(back[0]["resumed"], true, "{back:?}");
    assert_eq!(session(&home)["harnessSessionId"], before);
    let exits = home.events("session.exited");
    assert!(exits.iter().all(|e| e["expected"] == true), "{exits:?}");
}

#[test]
fn di32_a_turn_that_shows_no_life_is_seen_by_the_real_signs() {
    // Longer than the shortest limit there is, a minute.
    let home = home(
        "",
        "minFreeMemoryMb: 0, stallMinutes: 1",
        "THE_LOOP_DEMO_BUSY_MS=600000\n",
    );
    start(&home);
    let began = std::time::Instant::now();
    while home.events("session.stalled").is_empty() {
        assert!(began.elapsed().as_secs() < 200, "never: the word of it");
        std::thread::park_timeout(std::time::Duration::from_millis(500));
    }
    let told = &home.events("session.stalled")[0];
    assert!(told["waited_ms"].as_u64().unwrap() >= 60_000, "{told}");
    let seen = eventually("the stall in the list", || {
        let seen = session(&home);
        seen["stalledSince"].is_string().then_some(seen)
    });
    assert_eq!(seen["state"], "working", "{seen}");
    assert_eq!(status(&home)["stalled"][0]["ref"], ITEM);
    let text = home.ok(&["status"]);
    let line = format!("stalled      {ITEM}  no sign of life, ");
    assert!(text.contains(&line), "{text}");
    assert!(
        home.ok(&["sessions", "list"])
            .contains("working (stalled, ")
    );
}
