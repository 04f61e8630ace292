//! `sessions` without a session that runs (SE-27, SE-29 to SE-33).

use super::home::Home;

const ITEM: &str = "github:octo/repo#15";

fn register(home: &Home, more: &[&str]) -> super::home::Ran {
    let args = [
        "sessions",
        "register",
        ITEM,
        "--harness",
        "demo",
        "--harness-session-id",
        "0f1e2d3c",
    ];
    home.run(&[&args[..], more].concat())
}

#[test]
fn se27_register_binds_a_conversation_once() {
    let home = Home::with("");
    let bound = register(&home, &[]);
    assert_eq!(bound.code, 0, "{}", bound.err);
    assert_eq!(
        bound.out,
        "registered github:octo/repo#15 -> demo:0f1e2d3c\n"
    );
    let twice = register(&home, &[]);
    assert_eq!(twice.code, 2);
    let words = "error: github:octo/repo#15 already has a live session (demo:0f1e2d3c)\n";
    assert!(twice.err.starts_with(words), "{}", twice.err);
    assert_eq!(register(&home, &["--force"]).code, 0);
    let events = home.events("session.registered");
    assert_eq!(events.len(), 2);
    assert_eq!(events[1]["replaced"], true);
    for bad in [
        &[
            "sessions",
            "register",
            ITEM,
            "--harness",
            "nope",
            "--harness-session-id",
            "x",
        ][..],
        &[
            "sessions",
            "register",
            ITEM,
            "--harness",
            "demo",
            "--harness-session-id",
            "-x",
        ],
        &[
            "sessions",
            "register",
            "jira:a/b#1",
            "--harness",
            "demo",
            "--harness-session-id",
            "x",
        ],
        &[
            "sessions",
            "register",
            "github:a/b#1",
            "--harness",
            "demo",
            "--harness-session-id",
            "x",
            "--cwd",
            "/nope",
        ],
        &["sessions", "register", ITEM],
    ] {
        assert_eq!(home.run(bad).code, 2, "{bad:?}");
    }
}

#[test]
fn se27_a_missing_program_is_a_warning_only() {
    let home = Home::with("");
    let mut command = home.command();
    let ran = super::home::ran(command.env("PATH", "/nowhere").args([
        "sessions",
        "register",
        ITEM,
        "--harness",
        "claude",
        "--harness-session-id",
        "x",
    ]));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("warning: claude is not on PATH"),
        "{}",
        ran.err
    );
}

#[test]
fn se29_list_shows_records_and_the_unreadable_as_warnings() {
    let home = Home::with("");
    let empty = home.run(&["sessions", "list"]);
    assert_eq!(empty.code, 0);
    assert!(
        empty.out.starts_with(
            "Work item  Harness  Session id  Tmux  Status  State  Control  Last event"
        )
    );
    assert_eq!(empty.err, "(no sessions registered)\n");
    register(&home, &[]);
    std::fs::write(
        home.root().join("local/github-octo-repo-7.json"),
        "{\n  \"workItem\": {",
    )
    .unwrap();
    let list = home.run(&["sessions", "list", "--no-probe"]);
    assert_eq!(list.code, 0);
    assert!(list.err.contains("github-octo-repo-7.json"), "{}", list.err);
    assert!(
        list.out
            .contains("github:octo/repo#15  demo     0f1e2d3c    -     active  unknown"),
        "{}",
        list.out
    );
    let json = home.json(&["sessions", "list"]);
    let line = &json[0];
    for field in [
        "ref",
        "workItem",
        "harness",
        "harnessSessionId",
        "cwd",
        "status",
        "createdAt",
        "control",
        "state",
        "stateSince",
        "attach",
        "confirms",
    ] {
        assert!(line.get(field).is_some(), "{field}");
    }
    assert_eq!(line["state"], "exited");
    assert_eq!(
        home.json(&["sessions", "list", "--status", "closed"])
            .as_array()
            .unwrap()
            .len(),
        0
    );
    assert_eq!(
        home.json(&["sessions", "list", "--state", "exited"])
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(home.run(&["sessions", "list", "--status", "nope"]).code, 2);
}

#[test]
fn se30_attach_says_what_there_is_not() {
    let home = Home::with("");
    let unknown = home.run(&["sessions", "attach", ITEM]);
    assert_eq!(unknown.code, 1);
    assert!(
        unknown.err.contains("hint: the-loop sessions list"),
        "{}",
        unknown.err
    );
    assert_eq!(home.run(&["sessions", "attach", "nope"]).code, 2);
    register(&home, &[]);
    let none = home.run(&["sessions", "attach", ITEM]);
    assert_eq!(none.code, 1);
    assert!(none.err.contains("no tmux session"), "{}", none.err);
}

#[test]
fn se30_attach_prints_the_exact_target_of_what_lives() {
    let home = Home::with("");
    let done = home.tmux(&[
        "-f",
        "/dev/null",
        "new-session",
        "-d",
        "-s",
        "loop-github-octo-repo-15",
        "sleep 600",
    ]);
    assert!(done.status.success(), "{done:?}");
    let kept = home.run(&["sessions", "attach", ITEM]);
    assert_eq!(kept.code, 1);
    let hint = format!(
        "hint: its terminal is kept: tmux -L {} attach -r -t =loop-github-octo-repo-15",
        home.socket()
    );
    assert!(kept.err.contains(&hint), "{}", kept.err);
    register(&home, &[]);
    let printed = home.ok(&["sessions", "attach", ITEM, "--print"]);
    let command = format!(
        "tmux -L {} attach -t =loop-github-octo-repo-15\n",
        home.socket()
    );
    assert_eq!(printed, command);
    let watch = home.ok(&["sessions", "attach", "-r", ITEM, "--print"]);
    assert!(watch.contains(" attach -r -t ="), "{watch}");
    let mut inside = home.command();
    let tmux = format!(
        "{}/tmux-7/{},1,0",
        home.path("tmux").display(),
        home.socket()
    );
    let switched = super::home::ran(
        inside
            .env("TMUX", tmux)
            .args(["sessions", "attach", ITEM, "--print", "--format", "json"]),
    );
    assert!(switched.out.contains("switch-client"), "{}", switched.out);
    let piped = home.run(&["sessions", "attach", ITEM]);
    assert_eq!(piped.code, 1);
    let words = format!("error: this is no terminal\nhint: {}", command.trim_end());
    assert!(piped.err.starts_with(&words), "{}", piped.err);
}

#[test]
fn di33_a_ticket_whose_label_names_no_harness_is_told() {
    let home = Home::with("");
    let args = [
        "tickets",
        "new",
        "--title",
        "x",
        "--label",
        "harness:nobody",
        "--start",
    ];
    home.run(&args);
    let shown = home.ok(&["tickets", "show", "local:demo/hello#1"]);
    assert!(
        shown.contains("names no harness: there are claude"),
        "{shown}"
    );
    assert!(home.events("session.starting").is_empty());
}

#[test]
fn se31_a_harness_whose_program_is_missing_is_a_failure_with_a_hint() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "x"]);
    let item = "local:demo/hello#1";
    let ran = home.run(&["sessions", "start", item, "--harness", "cursor"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains("cursor-agent is not on PATH"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("hint: install it"), "{}", ran.err);
    let ran = home.run(&["sessions", "start", item, "--harness", "nobody"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("there are claude, "), "{}", ran.err);
}

#[test]
fn se28_a_pull_request_is_linked_once_and_to_one_item() {
    let home = Home::with("");
    let link = |item: &str, pull: &str, more: &[&str]| {
        let args = ["sessions", "link-pr", item, "--pull-request", pull];
        home.run(&[&args[..], more].concat())
    };
    let nobody = link(ITEM, "16", &[]);
    assert_eq!(nobody.code, 1);
    let words = "error: github:octo/repo#15: no live session\n";
    assert!(nobody.err.starts_with(words), "{}", nobody.err);
    assert_eq!(register(&home, &[]).code, 0);
    let first = link(ITEM, "#16", &[]);
    assert_eq!(
        (first.code, &*first.out),
        (0, "linked github:octo/repo#16 to github:octo/repo#15\n")
    );
    let again = link(ITEM, "github:octo/repo#16", &[]);
    let words = "github:octo/repo#16 is already linked to github:octo/repo#15\n";
    assert_eq!((again.code, &*again.out), (0, words));
    for bad in ["15", "0", "x", "#", "github:octo/repo"] {
        assert_eq!(link(ITEM, bad, &[]).code, 2, "{bad}");
    }
    let args = [
        "sessions",
        "register",
        "github:octo/repo#20",
        "--harness",
        "demo",
    ];
    let args = [&args[..], &["--harness-session-id", "77aa"]].concat();
    assert_eq!(home.run(&args).code, 0);
    let other = link("github:octo/repo#20", "16", &[]);
    assert_eq!(other.code, 2);
    let words = "error: github:octo/repo#16 is linked to github:octo/repo#15\n";
    assert!(other.err.starts_with(words), "{}", other.err);
    let json = link(ITEM, "16", &["--remove", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&json["linked"], &json["changed"]),
        (&false.into(), &true.into())
    );
    let twice = link(ITEM, "16", &["--remove"]);
    let words = "github:octo/repo#16 is not linked to github:octo/repo#15\n";
    assert_eq!((twice.code, &*twice.out), (0, words));
    assert_eq!(link("github:octo/repo#20", "16", &[]).code, 0);
    let linked = home.events("session.pr_linked");
    assert_eq!(linked.len(), 2);
    assert_eq!(linked[1]["work_item"], "github:octo/repo#20");
    assert_eq!(home.events("session.pr_unlinked").len(), 1);
}
