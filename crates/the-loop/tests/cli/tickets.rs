//! `tickets` (SE-70 to SE-77).

use super::home::{Home, ran};

#[test]
fn se70_to_se76_the_life_of_a_ticket() {
    let home = Home::with("");
    let new = |args: &[&str]| home.run(&[&["tickets"], args, &["--no-wait"][..]].concat());
    let made = new(&[
        "new", "--title", "Fix it", "--body", "words", "--label", "bug",
    ]);
    assert_eq!(
        (made.code, made.out.as_str()),
        (0, "created local:demo/hello#1\n")
    );
    let commented = new(&["comment", "local:demo/hello#1", "--body", "more words"]);
    assert_eq!(commented.out, "commented on local:demo/hello#1\n");
    let edited = new(&["edit", "local:demo/hello#1", "--title", "Fix that"]);
    assert_eq!(edited.out, "edited local:demo/hello#1\n");
    let labeled = new(&[
        "label",
        "local:demo/hello#1",
        "--add",
        "the-loop: auto-execute",
    ]);
    assert_eq!(labeled.out, "labels: bug, the-loop: auto-execute\n");
    let closed = new(&["close", "local:demo/hello#1", "--reason", "not-planned"]);
    assert_eq!(closed.out, "closed local:demo/hello#1\n");
    assert_eq!(home.ok(&["tickets", "list", "--format", "json"]), "[]\n");
    let reopened = new(&["reopen", "local:demo/hello#1"]);
    assert_eq!(reopened.out, "reopened local:demo/hello#1\n");
    let ticket = home.json(&["tickets", "show", "local:demo/hello#1"]);
    assert_eq!(ticket["title"], "Fix that");
    assert_eq!(ticket["state"], "open");
    let kinds: Vec<&str> = ticket["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "labeled", "comment", "edited", "labeled", "closed", "reopened"
        ]
    );
    assert_eq!(ticket["entries"][4]["reason"], "not-planned");
    let list = home.ok(&["tickets", "list", "--label", "bug"]);
    assert!(
        list.starts_with("Ref                 Title     State  Labels"),
        "{list}"
    );
    let text = home.ok(&["tickets", "show", "local:demo/hello#1", "--limit", "2"]);
    assert!(text.contains("… 4 earlier entries"), "{text}");
    let changes: Vec<String> = home
        .events("ticket.changed")
        .iter()
        .map(|e| e["change"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        changes,
        [
            "created",
            "commented",
            "edited",
            "labeled",
            "closed",
            "reopened"
        ]
    );
}

#[test]
fn se77_the_inbox_has_the_change_before_the_file_has() {
    let home = Home::with("");
    home.ok(&[
        "tickets",
        "new",
        "--title",
        "one",
        "--label",
        "bug",
        "--no-wait",
    ]);
    home.ok(&[
        "tickets",
        "label",
        "local:demo/hello#1",
        "--add",
        "other",
        "--no-wait",
    ]);
    home.ok(&[
        "tickets",
        "label",
        "local:demo/hello#1",
        "--add",
        "the-loop: auto-execute",
        "--no-wait",
    ]);
    home.ok(&[
        "tickets",
        "edit",
        "local:demo/hello#1",
        "--body",
        "x",
        "--no-wait",
    ]);
    home.ok(&["tickets", "close", "local:demo/hello#1", "--no-wait"]);
    let all = home.json(&["deliveries", "list", "--all"]);
    let whats: Vec<String> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            format!(
                "{} {}",
                row["event"].as_str().unwrap(),
                row["action"].as_str().unwrap()
            )
        })
        .collect();
    // A label that arms nothing is no delivery (IN-55).
    assert_eq!(
        whats,
        [
            "issues opened",
            "issues labeled",
            "issues edited",
            "issues closed"
        ]
    );
    let inbox = home.root().join("local/inbox.db");
    std::fs::remove_file(&inbox).unwrap();
    std::fs::create_dir(&inbox).unwrap();
    let before = home.json(&["tickets", "show", "local:demo/hello#1"]);
    let refused = home.run(&["tickets", "reopen", "local:demo/hello#1", "--no-wait"]);
    assert_eq!(refused.code, 1, "{}", refused.err);
    assert_eq!(
        home.json(&["tickets", "show", "local:demo/hello#1"]),
        before
    );
}

#[test]
fn se77_faults_have_their_exit_codes() {
    let home = Home::with("");
    let code = |args: &[&str]| home.run(args).code;
    assert_eq!(
        code(&["tickets", "new", "--repo", "other/repo", "--title", "x"]),
        2
    );
    let unknown = home.run(&["tickets", "new", "--repo", "other/repo", "--title", "x"]);
    assert!(
        unknown.err.contains("tracker.local.repos"),
        "{}",
        unknown.err
    );
    assert_eq!(code(&["tickets", "new", "--title", ""]), 2);
    assert_eq!(code(&["tickets", "show", "local:demo/hello#9"]), 1);
    assert_eq!(code(&["tickets", "show", "github:demo/hello#9"]), 2);
    assert_eq!(
        code(&["tickets", "comment", "local:demo/hello#9", "--body", "x"]),
        1
    );
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    for args in [
        &["tickets", "reopen", "local:demo/hello#1"][..],
        &["tickets", "edit", "local:demo/hello#1", "--title", "one"],
        &["tickets", "label", "local:demo/hello#1", "--remove", "nope"],
    ] {
        let ran = home.run(args);
        assert_eq!(
            (ran.code, ran.err.as_str()),
            (1, "nothing to do\n"),
            "{args:?}"
        );
    }
    assert_eq!(
        code(&["tickets", "comment", "local:demo/hello#1", "--body", " "]),
        2
    );
    assert_eq!(code(&["tickets", "comment", "local:demo/hello#1"]), 2);
    assert_eq!(code(&["tickets", "edit", "local:demo/hello#1"]), 2);
    assert_eq!(code(&["tickets", "label", "local:demo/hello#1"]), 2);
    let none = Home::bare();
    assert_eq!(none.run(&["tickets", "new", "--title", "x"]).code, 2);
}

#[test]
fn se73_a_body_comes_from_a_file_or_stdin_and_is_shown_escaped() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let mut command = home.command();
    let args = [
        "tickets",
        "comment",
        "local:demo/hello#1",
        "--body-file",
        "-",
        "--no-wait",
    ];
    let done = ran(command
        .args(args)
        .write_stdin("line\n\u{1b}]0;title\u{7}\n"));
    assert_eq!(done.code, 0, "{}", done.err);
    let shown = home.ok(&["tickets", "show", "local:demo/hello#1"]);
    assert!(shown.contains("  line\n"), "{shown}");
    assert!(
        !shown.contains('\u{1b}') && !shown.contains('\u{7}'),
        "{shown}"
    );
    std::fs::write(home.path("bad.txt"), b"a\0b").unwrap();
    let bad = home.path("bad.txt");
    let args = [
        "tickets",
        "comment",
        "local:demo/hello#1",
        "--body-file",
        bad.to_str().unwrap(),
    ];
    assert_eq!(home.run(&args).code, 2);
}

#[test]
fn st65_numbers_go_up_and_case_does_not_matter() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let second = home.ok(&[
        "tickets",
        "new",
        "--repo",
        "Demo/HELLO",
        "--title",
        "two",
        "--no-wait",
    ]);
    assert_eq!(second, "created local:demo/hello#2\n");
    assert!(
        home.ok(&["tickets", "show", "local:DEMO/hello#2"])
            .starts_with("local:demo/hello#2")
    );
}
