use proptest::prelude::*;

use super::*;

fn words(commands: &[Command]) -> String {
    let words: Vec<&str> = commands.iter().map(|c| c.as_str()).collect();
    words.join("+")
}

/// `text`, the command's word, or the words of an ambiguous comment joined by `+`.
fn read(body: &str) -> String {
    match Keywords::default().read(body) {
        Spoken::Text => "text".to_owned(),
        Spoken::Command(command) => command.as_str().to_owned(),
        Spoken::Ambiguous(commands) => words(&commands),
    }
}

#[test]
fn in36_table_of_bodies() {
    for (body, result) in [
        ("the-loop start", "start"),
        ("  The-Loop   START!  ", "start"),
        ("the-loop stop.", "stop"),
        ("Thanks, good.\n\nthe-loop pause", "pause"),
        ("the-loop do fix the flaky test", "do"),
        ("the-loop contribute", "contribute"),
        ("the-loop start\nthe-loop start", "start"),
        ("> the-loop stop\nthe-loop start", "start"),
        ("the-loop start\nthe-loop stop", "start+stop"),
        ("the-loop start\n\nFocus on the parser.", "start"),
        ("the-loop do x\nthe-loop stop", "do+stop"),
        ("please the-loop start", "text"),
        ("the-loop start now", "text"),
        ("the-loop start?", "text"),
        ("/the-loop start", "text"),
        ("@the-loop start", "text"),
        ("**the-loop start**", "text"),
        ("`the-loop start`", "text"),
        ("- the-loop start", "text"),
        ("the-loop: start", "text"),
        ("the-loop do: x", "text"),
        ("the-loop\nstart", "text"),
        ("> the-loop stop", "text"),
        ("```\nthe-loop stop\n```", "text"),
        ("<!-- the-loop stop -->", "text"),
        ("the-loop done", "text"),
        ("the-loop start-now", "text"),
    ] {
        assert_eq!(read(body), result, "{body:?}");
    }
}

#[test]
fn in35_every_command_has_its_phrase() {
    for &command in Command::ALL {
        assert_eq!(read(&format!("the-loop {command}")), command.as_str());
        assert_eq!(Command::parse(command.as_str()), Some(command));
        let with_text = read(&format!("the-loop {command} quickly"));
        let takes_text = matches!(command, Command::Do | Command::Contribute);
        assert_eq!(with_text != "text", takes_text, "{command}");
    }
    assert_eq!(Command::parse("reset"), None);
}

#[test]
fn in35_ends_blanks_and_line_ends() {
    for (body, result) in [
        ("the-loop start!.…!", "start"),
        ("the-loop start !", "text"),
        ("the-loop start,", "text"),
        ("the-loop\u{a0}\tstart", "start"),
        ("\u{a0}the-loop start\u{a0}", "start"),
        ("the-loop do ", "do"),
        ("the-loop do.", "do"),
        ("the-loop do\u{a0}it", "do"),
        ("the-loop dofix", "text"),
        ("hello\r\nthe-loop stop\r\n", "stop"),
        ("hello\rthe-loop stop\r", "stop"),
        ("the-loop stop\nthe-loop pause\nthe-loop stop", "stop+pause"),
        ("", "text"),
        ("\n\n", "text"),
    ] {
        assert_eq!(read(body), result, "{body:?}");
    }
}

#[test]
fn in35_look_alikes_are_text() {
    for body in [
        "the-loop st\u{200b}art",
        "the-loop\u{200b} start",
        "the-lo\u{043e}p start",
        "the-loop ｓｔａｒｔ",
        "the-loop\u{2003}start",
        "the-loop\u{2028}start",
        "\u{feff}the-loop start",
        "the\u{2010}loop start",
    ] {
        assert_eq!(read(body), "text", "{body:?}");
    }
}

#[test]
fn in35_what_is_not_shown_as_text_is_not_read() {
    for (body, result) in [
        // Comments.
        ("<!--\nthe-loop stop\n-->\nthe-loop start", "start"),
        ("<!--\nthe-loop stop", "text"),
        ("the-loop <!-- x --> start", "start"),
        ("the-loop <!--\n--> start", "text"),
        ("the-loop start <!-- a --><!-- b -->", "start"),
        ("<!-- a -- > --> the-loop start", "start"),
        ("<!-->\nthe-loop start", "start"),
        ("<!--->\nthe-loop start", "start"),
        ("<!--\n```\n-->\nthe-loop start", "start"),
        // Fences.
        ("```\nthe-loop stop", "text"),
        ("~~~ sh\nthe-loop stop\n~~~\nthe-loop start", "start"),
        ("````\n```\nthe-loop stop\n````\nthe-loop start", "start"),
        ("```\n~~~\nthe-loop stop\n```", "text"),
        ("```\nx\n``` sh\nthe-loop stop", "text"),
        ("```\nx\n```  \t\nthe-loop stop", "stop"),
        ("```\n    ```\nthe-loop stop", "text"),
        ("``` a`b\nthe-loop stop", "stop"),
        ("~~~ a`b\nthe-loop stop", "text"),
        ("``\nthe-loop stop\n``", "stop"),
        ("    ```\nthe-loop stop", "stop"),
        ("\t```\nthe-loop stop", "stop"),
        ("   ```\nthe-loop stop\n   ```", "text"),
        ("```\n<!--\n```\nthe-loop stop", "stop"),
        ("text ```\nthe-loop stop", "stop"),
        // Fences in lists.
        (
            "10. so:\n    ```\n    the-loop stop\n    ```\nthe-loop start",
            "start",
        ),
        ("- a\n  - b\n    ```\n    the-loop stop\n    ```", "text"),
        ("- ```\n  the-loop stop\n  ```\nthe-loop start", "start"),
        ("1) - ~~~\n     the-loop stop\n     ~~~", "text"),
        (
            "- a\n\n  ```\n  the-loop stop\n  ```\n\nthe-loop pause",
            "pause",
        ),
        ("- a\nb\n    ```\nthe-loop stop", "stop"),
        ("-\n  ```\n  the-loop stop\n  ```", "text"),
        // Quotes.
        ("   > the-loop stop", "text"),
        (">the-loop stop", "text"),
        ("> ```\nthe-loop start", "start"),
    ] {
        assert_eq!(read(body), result, "{body:?}");
    }
}

#[test]
fn in35_the_longest_keyword_wins_and_blank_ones_are_off() {
    let keywords = Keywords::new([
        (Command::Do, "loop"),
        (Command::Start, "loop  Start"),
        (Command::Stop, ""),
        (Command::Pause, " \u{a0} "),
    ]);
    let read = |body: &str| keywords.read(body);
    assert_eq!(read("LOOP start"), Spoken::Command(Command::Start));
    assert_eq!(read("loop start it"), Spoken::Command(Command::Do));
    assert_eq!(read("the-loop stop"), Spoken::Text);
    assert_eq!(read(""), Spoken::Text);
    assert_eq!(keywords.phrase(Command::Start), Some("loop  Start"));
    assert_eq!(keywords.phrase(Command::Stop), None);
    let mut control = config::Control::default();
    assert_eq!(Keywords::configured(&control), Keywords::default());
    assert!(start_required(&control));
    control.enabled = false;
    assert_eq!(
        Keywords::configured(&control).read("the-loop start"),
        Spoken::Text
    );
    assert!(!start_required(&control));
}

/// A reading that looks at a text more than once per nesting would not end within the test's time.
#[test]
fn in35_large_bodies_are_read_in_one_pass() {
    let many = 60_000;
    assert_eq!(read(&"the-loop start\n".repeat(many)), "start");
    assert_eq!(read(&"😀".repeat(65_536)), "text");
    assert_eq!(read(&"x".repeat(1 << 20)), "text");
    assert_eq!(read(&format!("the-loop{}x", " ".repeat(1 << 20))), "text");
    assert_eq!(read(&"<!--".repeat(1 << 20)), "text");
    assert_eq!(read(&"<!---->".repeat(1 << 18)), "text");
    assert_eq!(read(&"- ".repeat(1 << 20)), "text");
    assert_eq!(read(&"```\n".repeat(1 << 18)), "text");
    let deep = (0..2_000).map(|n| [&" ".repeat(n * 2), "- a\n"].concat());
    assert_eq!(read(&deep.collect::<Vec<_>>().concat()), "text");
}

fn noise() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("the-loop start".to_owned()),
        Just("the-loop stop.".to_owned()),
        Just("the-loop do a thing".to_owned()),
        Just("the-loop".to_owned()),
        "[ \t\u{a0}]{1,5}",
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        "[`~]{1,5}",
        Just("<!--".to_owned()),
        Just("-->".to_owned()),
        Just("> ".to_owned()),
        Just("- ".to_owned()),
        Just("1. ".to_owned()),
        "\\PC{0,4}",
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn in35_a_command_always_stands_on_a_line_of_its_own(body in noise()) {
        // Every command that is read must be there as a whole line once comments are blanks.
        let spoken = Keywords::default().read(&body);
        let found = match spoken {
            Spoken::Text => vec![],
            Spoken::Command(command) => vec![command],
            Spoken::Ambiguous(commands) => commands,
        };
        let comment = regex::Regex::new(r"<!--(?:-?>|(?s:.*?)(?:-->|\z))").unwrap();
        let blank = |found: &regex::Captures<'_>| {
            if found[0].contains(['\r', '\n']) { "\n" } else { " " }
        };
        let without_comments = comment.replace_all(&body, blank).into_owned();
        // Where both kinds of blocks meet, this simple reading of comments says nothing.
        let mixed = body.contains("<!--") && (body.contains("```") || body.contains("~~~"));
        for command in found {
            let line = regex::Regex::new(&format!(
                "(?m)^[ \t\u{a0}]*the-loop[ \t\u{a0}]+{command}([.!…]*|[ \t\u{a0}].*)[ \t\u{a0}]*\r?$"
            )).unwrap();
            let lines = |text: &str| line.is_match(&text.replace('\r', "\n"));
            prop_assert!(mixed || lines(&body) || lines(&without_comments), "{body:?}");
        }
    }

    #[test]
    fn in35_what_is_quoted_fenced_or_commented_changes_nothing(body in noise()) {
        let hidden = body.replace("```", "").replace("~~~", "").replace("-->", "").replace("<!--", "");
        let quoted = hidden.split(['\n', '\r']).map(|line| ["> ", line, "\n"].concat());
        let quoted = quoted.collect::<Vec<_>>().concat();
        for wrapped in [
            quoted,
            format!("````\n{}\n````\n", hidden.replace("````", "")),
            format!("<!-- {hidden} -->"),
        ] {
            prop_assert_eq!(Keywords::default().read(&wrapped), Spoken::Text);
            let with_command = format!("{wrapped}\nthe-loop pause");
            prop_assert_eq!(Keywords::default().read(&with_command), Spoken::Command(Command::Pause));
        }
    }

    #[test]
    fn in35_reading_never_panics(body in "\\PC*|[\\x00-\\x7f]*") {
        let _ = Keywords::default().read(&body);
    }
}

const SESSIONS: [SessionNow; 4] = [
    SessionNow::None,
    SessionNow::Starting,
    SessionNow::Active,
    SessionNow::Paused,
];
const POLICIES: [SpawnOnUnmatched; 3] = [
    SpawnOnUnmatched::Never,
    SpawnOnUnmatched::Labeled,
    SpawnOnUnmatched::Always,
];

fn all_states() -> Vec<ItemState> {
    let mut states = Vec::new();
    let recorded = std::iter::once(None).chain(Command::ALL.iter().copied().map(Some));
    for recorded in recorded {
        for session in SESSIONS {
            for policy in POLICIES {
                for bits in 0..16_u8 {
                    states.push(ItemState {
                        session,
                        parked: bits & 1 != 0,
                        closed: bits & 2 != 0,
                        recorded,
                        policy,
                        labeled: bits & 4 != 0,
                        start_required: bits & 8 != 0,
                    });
                }
            }
        }
    }
    states
}

/// The table of IN-37 for an open item that no limit holds and whose policy allows a session.
const EFFECTS: &str = "
    command    | active            | paused            | none              | recorded
    start      | running           | resumed           | spawned           | before
    contribute | running           | resumed           | spawned           | before
    do         | running           | resumed           | spawned           | before
    resume     | nothing-to-resume | resumed           | nothing-to-resume | after
    pause      | paused            | noop              | noop              | before
    stop       | stopped           | stopped           | noop              | before
    cleanup    | text              | text              | text              | never
    execute    | handed-to-graph   | handed-to-graph   | handed-to-graph   | never
";

fn effect(plan: CommandPlan) -> (String, &'static str) {
    let (word, record) = match plan {
        CommandPlan::Act { deed, record } => {
            let word = match deed {
                Deed::Spawn => "spawned",
                Deed::Resume => "resumed",
                Deed::Running => "running",
                Deed::Pause => "paused",
                Deed::Stop => "stopped",
                Deed::Release { .. } => "released",
                Deed::Noop => "noop",
            };
            let record = match record {
                Recording::BeforeActing => "before",
                Recording::AfterActing => "after",
            };
            (word, record)
        }
        CommandPlan::Rejected(why) => (why.as_str(), "never"),
        CommandPlan::HandToAgent => ("handed-to-graph", "never"),
        CommandPlan::AsText => ("text", "never"),
    };
    (word.to_owned(), record)
}

fn wanted(command: Command, state: ItemState, via: Via) -> (String, &'static str) {
    let arming = matches!(command, Command::Start | Command::Contribute | Command::Do);
    let allowed = match state.policy {
        SpawnOnUnmatched::Never => false,
        SpawnOnUnmatched::Labeled => state.labeled || via == Via::Verb,
        SpawnOnUnmatched::Always => true,
    };
    if arming && state.closed {
        return ("item-closed".to_owned(), "never");
    }
    if arming && state.parked {
        return ("item-parked".to_owned(), "never");
    }
    if arming && state.session == SessionNow::None && !allowed {
        return ("spawn-policy".to_owned(), "never");
    }
    if command == Command::Resume && state.parked {
        return ("released".to_owned(), "after");
    }
    let row = EFFECTS
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .find(|cells| cells[0] == command.as_str())
        .unwrap();
    let column = match state.session {
        SessionNow::Active | SessionNow::Starting => 1,
        SessionNow::Paused => 2,
        SessionNow::None => 3,
    };
    let word = row[column].to_owned();
    let record = match (row[4], via) {
        _ if word == "nothing-to-resume" => "never",
        ("before", Via::Verb) if word == "spawned" => "after",
        ("before", _) => "before",
        ("after", _) => "after",
        _ => "never",
    };
    (word, record)
}

#[test]
fn in37_every_command_in_every_state() {
    for state in all_states() {
        for &command in Command::ALL {
            for via in [Via::Comment, Via::Verb] {
                let got = effect(plan(command, state, via));
                assert_eq!(
                    got,
                    wanted(command, state, via),
                    "{command} {via:?} {state:?}"
                );
            }
        }
    }
}

#[test]
fn in37_a_release_takes_a_pause_along() {
    for state in all_states().into_iter().filter(|s| s.parked) {
        let deed = Deed::Release {
            resume: state.session == SessionNow::Paused,
        };
        let record = Recording::AfterActing;
        let got = plan(Command::Resume, state, Via::Comment);
        assert_eq!(got, CommandPlan::Act { deed, record });
    }
}

#[test]
fn in37_every_command_but_execute_can_be_recorded() {
    for &command in Command::ALL {
        let recorded = command.recorded();
        assert_eq!(recorded.is_none(), command == Command::Execute);
        assert_eq!(recorded.map_or(command, Command::from), command);
    }
}

#[test]
fn in38_armed_is_what_says_run() {
    let armed: Vec<Command> = Command::ALL.iter().copied().filter(|c| c.arms()).collect();
    assert_eq!(words(&armed), "start+resume+contribute+do");
    let held: Vec<Command> = Command::ALL.iter().copied().filter(|c| c.holds()).collect();
    assert_eq!(words(&held), "stop+pause+cleanup");
}
