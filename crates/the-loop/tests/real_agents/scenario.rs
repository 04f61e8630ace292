//! What every agent has to stand.

use serde_json::Value;
use the_loop_testkit::fake_model::cost;

use crate::agent::Agent;
use crate::rig::{ITEM, Rig, SECRET, TARGET};

/// A ticket whose session is up and has had its first turn, in which it made a file.
pub fn started(agent: &'static Agent) -> Option<Rig> {
    let rig = Rig::new(agent, "")?;
    start(&rig);
    rig.confirmed(1);
    rig.made("made-first");
    assert_eq!(rig.events("session.spawned").len(), 1);
    assert_eq!(rig.events("session.ready").len(), 1);
    rig.state("idle");
    assert!(rig.events("hook.silent").is_empty());
    Some(rig)
}

/// The daemon up, and a ticket that is to be worked on.
pub fn start(rig: &Rig) {
    rig.ok(&["start"]);
    let label = ["--label", "the-loop: auto-execute", "--no-wait"];
    rig.ok(&[&["tickets", "new", "--title", "Say hello"][..], &label].concat());
    rig.comment("the-loop start\nPlease [[run touch made-first]] to begin with.");
}

pub fn close(rig: &Rig) {
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

/// A ticket from its start to its close: work, work while busy, a question that only a person may answer,
/// a draft, a crash, and the same conversation afterwards.
pub fn a_ticket_from_start_to_close(agent: &'static Agent) {
    let Some(rig) = started(agent) else { return };

    rig.comment("Please [[run touch made-second]] as well.");
    rig.confirmed(2);
    rig.made("made-second");

    // While a turn is in work, what comes is given to the agent all the same.
    rig.comment("Take your time: [[slow 4000]]");
    rig.state("working");
    rig.comment("Meanwhile [[run touch made-busy]].");
    rig.confirmed(4);
    rig.made("made-busy");
    rig.state("idle");

    // A command that nobody allowed beforehand: it asks, and until a person answers nothing is pasted.
    rig.comment("And [[permit touch needs-leave]] now.");
    rig.confirmed(5);
    rig.state("waiting");
    rig.shows(agent.asks);
    rig.comment("Then [[run touch made-third]].");
    rig.stays_held("dialog");
    assert!(rig.screen().contains(agent.asks), "it is still asked");
    assert!(!rig.checkout("needs-leave").exists(), "nobody has answered");
    rig.types(agent.allow);
    rig.made("needs-leave");
    rig.confirmed(6);
    rig.made("made-third");
    rig.state("idle");

    // Half a thought in the composer is neither sent nor lost, and what comes meanwhile waits.
    rig.types(&["-l", "half a thought"]);
    rig.shows("half a thought");
    rig.comment("Then [[run touch made-fourth]].");
    rig.stays_held("draft");
    assert!(rig.screen().contains("half a thought"), "{}", rig.screen());
    rig.types(agent.clear);
    rig.confirmed(7);
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
    rig.confirmed(8);
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
    tokens_are_counted(&rig);
    close(&rig);
}

/// Each answer of the model costs the same: so many answers were counted, each once and in its classes.
fn tokens_are_counted(rig: &Rig) {
    let deliveries = rig.events("delivery.confirmed").len();
    let most = rig.model.prompts().len();
    rig.until("the tokens of every turn", || {
        let tokens = rig.session()["tokens"].clone();
        let of = |class: &str, each: u64| {
            let count = tokens[class].as_u64().unwrap();
            assert_eq!(count % each, 0, "{class}: {tokens}");
            usize::try_from(count / each).unwrap()
        };
        let answers = of("output", cost::OUTPUT);
        assert!(answers <= most, "{most} answers: {tokens}");
        assert_eq!(of("input", cost::INPUT), answers, "{tokens}");
        assert_eq!(of("cacheRead", cost::CACHE_READ), answers, "{tokens}");
        (answers >= deliveries).then_some(())
    });
}

/// Texts that some agent takes for more than text (DI-26), and long ones.
pub fn every_text_is_only_text(agent: &'static Agent) {
    let Some(rig) = started(agent) else { return };
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

/// New values of the environment reach an agent that is busy, and its conversation goes on (SE-59).
pub fn a_relaunch_with_new_values_in_the_middle_of_a_turn(agent: &'static Agent) {
    let Some(rig) = started(agent) else { return };
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
        // A prompt is longer in bytes than a comment may be in characters.
        format!("!{}\\", "漢字 ".repeat((100 << 10) / 7)),
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

/// Has the agent read exactly this in a mail, with its own tool for reading? It may have read it in parts.
fn heard(rig: &Rig, text: &str) -> bool {
    let wanted = shown(text);
    let read = rig.model.prompts().join("\n");
    let lines: Vec<&str> = read.lines().collect();
    let begins = |at: &usize| lines[*at].ends_with(BEGIN);
    let mut mails = (0..lines.len()).filter(begins);
    mails.any(|at| body_of(&lines[at..]).as_ref() == Some(&wanted))
}

/// What the first line of a comment's fence ends with.
const BEGIN: &str = " BEGIN =====";

/// The comment in what the agent read, from between the lines of the fence. Where each line stands behind
/// its number, the lines without one are not the file's.
fn body_of(read: &[&str]) -> Option<String> {
    let numbered = |line: &str| -> Option<String> {
        let line = line.trim_start_matches(' ');
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let text = ["→", "\t", ": "]
            .iter()
            .find_map(|gap| rest.strip_prefix(gap))?;
        (rest.len() < line.len()).then(|| text.to_owned())
    };
    let has_numbers = numbered(read[0]).is_some();
    let lines = read.iter().filter_map(|line| {
        if has_numbers {
            numbered(line)
        } else {
            Some((*line).to_owned())
        }
    });
    let fenced = lines
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
