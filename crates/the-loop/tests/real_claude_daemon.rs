//! The whole program with the real Claude Code (DI-54): the built binary, its daemon, real tmux, and a
//! model server of ours on loopback.
//!
//! `scripts/test-harnesses` installs the pinned program and runs this; nothing leaves the machine.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may look at its environment, start programs and panic"
)]

mod real_rig;

use std::time::{Duration, Instant};

use serde_json::Value;

use real_rig::{ITEM, Rig, SECRET, TARGET};

/// A ticket whose session is up and has had its first turn, in which it made a file.
fn started() -> Option<Rig> {
    let rig = Rig::new("")?;
    start(&rig);
    rig.confirmed(1);
    rig.made("made-first");
    assert_eq!(rig.events("session.spawned").len(), 1);
    assert_eq!(rig.events("session.ready").len(), 1);
    rig.state("idle");
    Some(rig)
}

/// The daemon up, and a ticket that is to be worked on.
fn start(rig: &Rig) {
    rig.ok(&["start"]);
    let label = ["--label", "the-loop: auto-execute", "--no-wait"];
    rig.ok(&[&["tickets", "new", "--title", "Say hello"][..], &label].concat());
    rig.comment("the-loop start\nPlease [[run touch made-first]] to begin with.");
}

fn close(rig: &Rig) {
    assert!(!rig.marked().is_empty(), "a live agent carries our mark");
    rig.ok(&["tickets", "close", ITEM]);
    rig.until("the close", || rig.events("session.autoclosed").pop());
    assert_eq!(
        rig.marked(),
        Vec::<String>::new(),
        "nothing of ours is left"
    );
    let closed = rig.ok(&["events", "--limit", "8"]);
    assert!(!rig.checkout("").exists(), "{closed}");
    let saved = rig.events("work.saved");
    assert_eq!(saved.len(), 1, "what the agent made is kept");
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_a_ticket_from_start_to_close() {
    let Some(rig) = started() else { return };

    rig.comment("Please [[run touch made-second]] as well.");
    rig.confirmed(2);
    rig.made("made-second");

    // A command that nobody allowed beforehand: it asks, and until a person answers nothing is pasted.
    rig.comment("And [[run sh -c 'touch needs-leave']] now.");
    rig.confirmed(3);
    rig.state("waiting");
    rig.until("the question", || {
        rig.screen().contains("Do you want to").then_some(())
    });
    rig.comment("Meanwhile [[run touch made-third]].");
    rig.stays_held("dialog");
    assert!(rig.screen().contains("Do you want to"), "it is still asked");
    assert!(!rig.checkout("needs-leave").exists(), "nobody has answered");
    rig.types(&["1"]);
    rig.made("needs-leave");
    rig.confirmed(4);
    rig.made("made-third");
    rig.state("idle");

    // Half a thought in the composer is neither sent nor lost, and what comes meanwhile waits.
    rig.types(&["-l", "half a thought"]);
    rig.until("the draft", || {
        rig.screen().contains("half a thought").then_some(())
    });
    rig.comment("Then [[run touch made-fourth]].");
    rig.stays_held("draft");
    assert!(rig.screen().contains("half a thought"), "{}", rig.screen());
    rig.types(&["C-u"]);
    rig.confirmed(5);
    rig.made("made-fourth");
    let heard = rig.model.prompts();
    assert!(heard.iter().all(|text| !text.contains("half a thought")));

    // Killed without a word; the next comment finds the same conversation.
    let before = rig.session();
    Rig::crash(&before["pid"]);
    rig.until("the end of the agent", || {
        rig.events("session.exited").pop()
    });
    rig.comment("Back again: [[run touch made-fifth]].");
    rig.confirmed(6);
    rig.made("made-fifth");
    let respawned = rig.events("session.respawned");
    assert_eq!(respawned.len(), 1, "{respawned:#?}");
    assert_eq!(respawned[0]["resumed"], true);
    let after = rig.session();
    assert_eq!(after["harnessSessionId"], before["harnessSessionId"]);
    assert_ne!(after["pid"], before["pid"]);
    let conversation = rig.model.conversation();
    for earlier in ["made-first", "made-second", "made-fifth"] {
        assert!(conversation.contains(earlier), "{earlier} is remembered");
    }
    close(&rig);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di26_every_text_is_only_text() {
    let Some(rig) = started() else { return };
    let before = rig.session();
    let texts = [
        "!rm -rf keep-me",
        "/exit",
        "/clear\nand more",
        "# remember this",
        "@keep-me",
        "-p --resume",
        "red \u{1b}[31mtext\u{1b}[0m, an end of paste \u{1b}[201~ and \u{7}\u{8} a bell",
        "turned \u{202e}around\u{202c} and \u{200b}nothing",
        "a line that goes on \\",
        "one\r\ntwo\r\n\r\nthree\tfour\rfive",
        "$(touch made-by-shell) `touch made-by-shell` ; touch made-by-shell",
        "quotes ' and \" and \\n and %s and #{pane_id} and ünïcödé 漢字 🦀",
    ];
    for (at, text) in texts.iter().enumerate() {
        rig.comment(text);
        rig.confirmed(2 + at);
        rig.until(text, || heard(&rig, text).then_some(()));
    }
    long_texts(&rig, 2 + texts.len());
    rig.state("idle");
    let after = rig.session();
    assert_eq!(after["pid"], before["pid"], "it is the same process");
    assert!(rig.checkout("keep-me").exists(), "nothing was removed");
    assert!(!rig.checkout("made-by-shell").exists(), "nothing was run");
    assert!(rig.events("session.exited").is_empty());
    assert!(rig.events("delivery.unconfirmed").is_empty());
    secret_stays_inside(&rig);
    close(&rig);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di21_a_first_run_question_is_left_to_a_person() {
    let Some(rig) = Rig::new("harnessTrust: {enabled: false}") else {
        return;
    };
    let onboarded = r#"{"hasCompletedOnboarding": true}"#;
    std::fs::write(rig.path("home/.claude.json"), onboarded).unwrap();
    start(&rig);
    rig.state("waiting");
    rig.until("the question", || {
        rig.screen().contains("Yes, I trust").then_some(())
    });
    rig.comment("Meanwhile [[run touch made-second]].");
    rig.until("two that wait", || {
        let waiting = rig.json(&["deliveries", "list"]);
        (waiting.as_array().unwrap().len() == 2).then_some(())
    });
    assert!(rig.screen().contains("Yes, I trust"), "{}", rig.screen());
    assert!(rig.model.prompts().is_empty());
    // It draws the question before it reads keys: one that it did not see is typed again.
    let mut typed: Option<Instant> = None;
    rig.until("the other answer", || {
        let screen = rig.screen();
        let mut rows = screen.lines().map(str::trim_start);
        let yes = rows.any(|row| row.starts_with('❯') && row.contains("Yes, I trust"));
        if !yes && typed.is_none_or(|at| at.elapsed() > Duration::from_secs(1)) {
            rig.types(&["Down"]);
            typed = Some(Instant::now());
        }
        yes.then_some(())
    });
    rig.types(&["Enter"]);
    // The second may reach the agent within its first turn, and the model does the newest wish.
    rig.confirmed(2);
    rig.made("made-second");
    assert_eq!(rig.events("session.spawned").len(), 1);
    close(&rig);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_di29_a_busy_agent_a_limit_and_crashes() {
    let Some(rig) = started() else { return };

    // While a turn is in work, what comes is queued by the agent itself, in order.
    rig.comment("Take your time: [[slow 4000]]");
    rig.confirmed(2);
    rig.comment("the first of two");
    rig.comment("the second of two");
    rig.confirmed(4);
    // It looks idle between its turn and what it has queued.
    rig.until("both came, in order", || {
        let said = rig.model.conversation();
        let (first, second) = (said.find("/4.md and do"), said.find("/5.md and do"));
        (first.is_some() && first < second).then_some(())
    });
    rig.state("idle");

    // A question of its own is a person's as well.
    rig.comment("[[ask]]");
    rig.confirmed(5);
    rig.until("the question", || {
        rig.screen().contains("Which colour?").then_some(())
    });
    rig.comment("Meanwhile [[run touch made-second]].");
    rig.stays_held("dialog");
    rig.types(&["Escape"]);
    rig.confirmed(6);
    rig.made("made-second");
    rig.state("idle");

    // A usage limit holds what comes, until a turn has gone well again.
    rig.model.fail(429, "rate_limit_error");
    rig.comment("this one meets the limit");
    rig.confirmed(7);
    rig.state("waiting");
    rig.comment("After it [[run touch made-third]].");
    rig.stays_held("usage-limit");
    rig.model.mend();
    rig.types(&["-l", "go on"]);
    rig.types(&["Enter"]);
    rig.confirmed(8);
    rig.made("made-third");
    rig.state("idle");

    // The daemon is killed while a delivery is held; its successor delivers it, once.
    rig.types(&["-l", "a thought"]);
    rig.until("the draft", || {
        rig.screen().contains("a thought").then_some(())
    });
    rig.comment("Over a crash [[run touch made-fourth]].");
    rig.until("the hold", || {
        let waiting = rig.json(&["deliveries", "list"]);
        (waiting[0]["heldBecause"] == "draft").then_some(())
    });
    Rig::crash(&rig.json(&["status"])["services"][0]["pid"]);
    rig.types(&["C-u"]);
    rig.ok(&["start"]);
    rig.confirmed(9);
    rig.made("made-fourth");
    rig.state("idle");
    assert!(rig.events("session.exited").is_empty());
    assert!(rig.events("session.respawned").is_empty());

    // The whole tmux server goes; the conversation does not.
    let before = rig.session();
    rig.tmux(&["kill-server"]);
    rig.comment("Over another [[run touch made-fifth]].");
    rig.confirmed(10);
    rig.made("made-fifth");
    let after = rig.session();
    assert_eq!(after["harnessSessionId"], before["harnessSessionId"]);
    assert!(rig.model.conversation().contains("/4.md and do"));
    assert!(rig.events("delivery.uncertain").is_empty());
    close(&rig);
}

#[test]
#[ignore = "needs the real program: scripts/test-harnesses"]
fn di54_se59_a_relaunch_with_new_values_in_the_middle_of_a_turn() {
    let Some(rig) = started() else { return };
    let before = rig.session();
    rig.comment("Take your time: [[slow 30000]]");
    rig.confirmed(2);
    rig.state("working");
    let file = rig.path("home/.the-loop/env");
    let env = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{env}ROTATED=canary-of-the-rotation\n")).unwrap();
    let done = rig.json(&["sessions", "restart", "--all"]);
    let row = &done["sessions"][0];
    assert_eq!(row["outcome"], "restarted", "{done:#}");
    assert!(!done.to_string().contains("canary"), "{done:#}");
    // It was cut off in its turn, so it is told to go on.
    rig.confirmed(3);
    rig.state("idle");
    let after = rig.session();
    assert_eq!(after["harnessSessionId"], before["harnessSessionId"]);
    assert_ne!(after["pid"], before["pid"]);
    let environ = std::fs::read(format!("/proc/{}/environ", after["pid"])).unwrap();
    let environ = String::from_utf8_lossy(&environ).into_owned();
    assert!(environ.contains("ROTATED=canary-of-the-rotation"));
    rig.comment("And [[run touch made-second]].");
    rig.confirmed(4);
    rig.made("made-second");
    let conversation = rig.model.conversation();
    for earlier in ["made-first", "environment renewed", "made-second"] {
        assert!(conversation.contains(earlier), "{earlier} is remembered");
    }
    assert!(rig.events("session.exited").is_empty());
    assert!(rig.events("session.respawned").is_empty());
    secret_stays_inside(&rig);
    close(&rig);
}

/// Texts over what is pasted, the longest comment there can be, and one that no comment can be.
fn long_texts(rig: &Rig, confirmed: usize) {
    let words = |bytes: usize| -> String {
        let numbered: Vec<String> = (0..=bytes / 10).map(|n| format!("word{n:05} ")).collect();
        let numbered = numbered.concat();
        format!("!{}\\", &numbered[..bytes - 2])
    };
    let lines = |bytes: usize| words(bytes).replace("5 word", "5\n\n/exit ");
    let texts = [
        words(3_400),
        lines(60 << 10),
        words(60 << 10),
        words(65_536),
    ];
    for (at, text) in texts.iter().enumerate() {
        rig.comment(text);
        rig.confirmed(confirmed + at);
        rig.until(&format!("long text {at}"), || {
            heard(rig, text).then_some(())
        });
    }
    let file = rig.path("body");
    std::fs::write(&file, words(100 << 10)).unwrap();
    let file = file.display().to_string();
    let refused = rig.refused(&["tickets", "comment", ITEM, "--body-file", &file]);
    assert!(refused.contains("65,536"), "{refused}");
}

/// Has the agent read exactly this in a mail, with its own tool for reading?
fn heard(rig: &Rig, text: &str) -> bool {
    let wanted = shown(text);
    rig.model
        .prompts()
        .iter()
        .any(|prompt| body_of(prompt).as_ref() == Some(&wanted))
}

/// The comment in what the agent read, from between the lines of the fence. Each line stands there
/// behind its number.
fn body_of(read: &str) -> Option<String> {
    let lines = read.lines().map(|line| {
        let numbered = line.trim_start_matches(' ').split_once(['→', '\t']);
        let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
        numbered
            .filter(|(n, _)| is_number(n))
            .map_or(line, |(_, rest)| rest)
    });
    let fenced = lines.skip_while(|line| !line.ends_with(" BEGIN ====="));
    let fenced = fenced
        .skip(1)
        .take_while(|line| !line.ends_with(" END ====="));
    let json = fenced.collect::<Vec<_>>().join("\n");
    let json: Value = serde_json::from_str(&json).ok()?;
    if let Some(body) = json["body"].as_str() {
        return Some(body.to_owned());
    }
    let line = |line: &Value| match line.as_array() {
        Some(pieces) => pieces.iter().filter_map(Value::as_str).collect(),
        None => line.as_str().unwrap_or_default().to_owned(),
    };
    let lines: Vec<String> = json["body_lines"].as_array()?.iter().map(line).collect();
    Some(lines.join("\n"))
}

/// What IN-61 leaves of a text before it is quoted.
fn shown(text: &str) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
    };
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    lines.chars().filter(|c| !hidden(*c)).collect()
}

/// Neither an argument nor tmux shows a value of the environment file.
fn secret_stays_inside(rig: &Rig) {
    for pid in rig.marked() {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        assert!(!words.contains(SECRET), "{words}");
        assert!(!words.contains("made-first"), "{words}");
    }
    let target = format!("={TARGET}");
    for words in [
        &["show-environment", "-g"][..],
        &["show-environment", "-t", &target],
    ] {
        let shown = rig.tmux(words);
        assert!(shown.status.success(), "{shown:?}");
        let shown = String::from_utf8_lossy(&shown.stdout);
        assert!(!shown.contains(SECRET), "{shown}");
    }
}
