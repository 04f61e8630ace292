//! Grammar, streams, exit codes, help (SE-1 to SE-8, SE-12, SE-13, SE-17).

use super::home::{Home, ran};

#[test]
fn se1_a_wrong_word_is_a_usage_error_that_names_the_nearest() {
    let home = Home::bare();
    for (args, named) in [
        (&["sesions", "list"][..], "'sessions'"),
        (&["sessions", "lst"], "'list'"),
        (&["events", "--work-itm", "x"], "'--work-item'"),
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert_eq!(ran.out, "", "{args:?}");
        assert!(ran.err.contains(named), "{args:?}: {}", ran.err);
    }
    for args in [
        &[][..],
        &["sessions"],
        &["sess", "list"],
        &["start", "--timeout", "x"],
    ] {
        assert_eq!(home.run(args).code, 2, "{args:?}");
    }
}

#[test]
fn se2_global_flags_stand_before_or_after_and_version_and_help_answer() {
    let home = Home::bare();
    let version = home.ok(&["--version"]);
    assert_eq!(version, format!("the-loop {}\n", env!("CARGO_PKG_VERSION")));
    assert!(home.ok(&["--help"]).contains("Examples:"));
    let before = home.ok(&["--format", "json", "tickets", "list"]);
    let after = home.ok(&["tickets", "list", "--format", "json"]);
    assert_eq!(before, after);
    assert_eq!(before, "[]\n");
    assert_eq!(home.run(&["tickets", "list", "--format", "jsonl"]).code, 2);
    assert_eq!(home.run(&["tickets", "list", "--format", "table"]).code, 0);
    let twice = home.run(&["-c", "a.yaml", "status", "--config", "b.yaml"]);
    assert_eq!(twice.code, 2);
    assert!(twice.err.contains("twice"), "{}", twice.err);
}

#[test]
fn se5_a_reader_that_went_away_is_no_failure() {
    let home = Home::bare();
    let words = format!(
        "{} events --types | head -n 1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_the-loop")
    );
    let mut bash = assert_cmd::Command::new("bash");
    bash.args(["-c", &words]).env("HOME", home.path("home"));
    let ran = ran(&mut bash);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.err, "");
}

#[test]
fn se8_st2_every_bad_ref_is_named_and_nothing_is_done() {
    let home = Home::with("");
    let ran = home.run(&[
        "sessions",
        "stop",
        "github:../..#1",
        "local:demo/hello#1",
        "nope",
    ]);
    assert_eq!(ran.code, 2);
    let first = "error: not a work-item ref: \"github:../..#1\" (owner contains \"..\")\n";
    assert!(ran.err.starts_with(first), "{}", ran.err);
    assert!(
        ran.err.contains("not a work-item ref: \"nope\""),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("hint: expected <provider>:[<host>/]<owner>/<repo>#<number>")
    );
    assert!(!home.root().join("local").exists());
    let escaped = home.run(&["sessions", "close", "a\u{1b}[31m"]);
    assert!(!escaped.err.contains('\u{1b}'), "{}", escaped.err);
    assert_eq!(home.run(&["sessions", "close"]).code, 2);
    assert_eq!(
        home.run(&["sessions", "pause", "--all", "github:a/b#1"])
            .code,
        2
    );
}

#[test]
fn se12_a_broken_configuration_stops_all_but_a_few() {
    let home = Home::with("routin: {}\n");
    for args in [
        &["tickets", "list"][..],
        &["sessions", "list"],
        &["start"],
        &["events"],
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(
            ran.err.contains("error: ~/.the-loop/cli-config.yaml:"),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("`routin`"), "{}", ran.err);
        assert!(
            ran.err.contains("hint: the-loop config check"),
            "{}",
            ran.err
        );
    }
    assert_eq!(home.run(&["config", "check"]).code, 2);
    for args in [
        &["config", "path"][..],
        &["config", "schema"],
        &["completions", "bash"],
        &["man"],
        &["hook", "Stop"],
        &["stop"],
    ] {
        assert_eq!(home.run(args).code, 0, "{args:?}");
    }
    let status = home.run(&["status"]);
    assert_eq!(status.code, 1);
    assert!(
        status.err.contains("warning: using the state root "),
        "{}",
        status.err
    );
    assert!(
        status.out.contains("service      not-running"),
        "{}",
        status.out
    );
}

#[test]
fn se13_acting_commands_are_refused_inside_an_agents_session() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let inside = |args: &[&str]| {
        let mut command = home.command();
        ran(command
            .env("THE_LOOP_WORK_ITEM", "local:demo/hello#1")
            .args(args))
    };
    for args in [
        &["start"][..],
        &["stop"],
        &["sessions", "stop", "local:demo/hello#1"],
        &["sessions", "start", "local:demo/hello#1"],
        &["sessions", "restart", "--all"],
        &["tickets", "close", "local:demo/hello#1"],
        &["tickets", "new", "--title", "x"],
        &["deliveries", "retry", "1"],
    ] {
        let ran = inside(args);
        assert_eq!(ran.code, 1, "{args:?}");
        let words = "error: refused inside the agent session of local:demo/hello#1\n";
        assert!(ran.err.starts_with(words), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("hint: run it from a shell of your own"));
    }
    assert_eq!(inside(&["sessions", "list"]).code, 0);
    assert_eq!(inside(&["tickets", "show", "local:demo/hello#1"]).code, 0);
    let other = ["sessions", "register", "local:demo/hello#2"];
    let flags = ["--harness", "demo", "--harness-session-id", "abc"];
    assert_eq!(inside(&[&other[..], &flags].concat()).code, 1);
    let own = ["sessions", "register", "local:demo/hello#1"];
    assert_eq!(inside(&[&own[..], &flags].concat()).code, 0);
}

#[test]
fn se77_in55_an_agents_comment_carries_the_mark() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let mut command = home.command();
    let args = [
        "tickets",
        "comment",
        "local:demo/hello#1",
        "--body",
        "the-loop stop",
        "--no-wait",
    ];
    let done = ran(command
        .env("THE_LOOP_WORK_ITEM", "local:demo/hello#1")
        .args(args));
    assert_eq!(done.code, 0, "{}", done.err);
    let ticket = home.json(&["tickets", "show", "local:demo/hello#1"]);
    let entry = &ticket["entries"][0];
    assert_eq!(entry["actor"], "the-loop");
    let body = entry["body"].as_str().unwrap();
    assert!(body.ends_with("<!-- the-loop:agent-comment -->"), "{body}");
}

#[test]
fn se16_a_command_without_network_is_quick_to_answer() {
    let home = Home::with("");
    let began = std::time::Instant::now();
    home.ok(&["sessions", "list", "--no-probe"]);
    // A debug build on a busy machine; the bound of the page is for the shipped one.
    assert!(began.elapsed() < std::time::Duration::from_secs(2));
}

#[test]
fn se17_completions_and_manual_pages_come_from_the_grammar() {
    let home = Home::bare();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.ok(&["completions", shell]);
        assert!(script.contains("THE_LOOP_COMPLETE"), "{shell}");
    }
    let page = home.ok(&["man", "sessions", "attach"]);
    assert!(page.contains(".TH the-loop-sessions-attach"), "{page}");
    assert_eq!(home.run(&["man", "sessions", "nope"]).code, 2);
    let dir = home.path("man");
    home.ok(&["man", "--dir", dir.to_str().unwrap()]);
    for name in [
        "the-loop.1",
        "the-loop-sessions.1",
        "the-loop-sessions-attach.1",
        "the-loop-demo.1",
    ] {
        assert!(dir.join(name).exists(), "{name}");
    }
    assert!(!dir.join("the-loop-hook.1").exists());
}

#[test]
fn se69_a_hook_never_fails_and_writes_one_line() {
    let home = Home::with("");
    let nothing = home.run(&["hook", "Stop"]);
    assert_eq!(
        (nothing.code, nothing.out.as_str(), nothing.err.as_str()),
        (0, "", "")
    );
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let mut command = home.command();
    let done = ran(command
        .env("THE_LOOP_STATE_ROOT", home.root())
        .args(["hook", "UserPromptSubmit", "--slug", "local-demo-hello-1"])
        .write_stdin(r#"{"session_id":"abc","prompt":"secret words"}"#));
    assert_eq!(
        (done.code, done.out.as_str(), done.err.as_str()),
        (0, "", "")
    );
    let line = std::fs::read_to_string(home.root().join("local/hooks/local-demo-hello-1.jsonl"));
    let line = line.unwrap();
    assert!(line.contains("\"sessionId\":\"abc\""), "{line}");
    assert!(!line.contains("secret words"), "{line}");
}

#[test]
fn se17_a_script_completes_commands_refs_harnesses_and_keys() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "one", "--no-wait"]);
    let complete = |line: &[&str]| {
        let mut command = home.command();
        command
            .env("THE_LOOP_COMPLETE", "fish")
            .args(["--"])
            .args(line);
        ran(&mut command).out
    };
    assert!(complete(&["the-loop", "sess"]).contains("sessions"));
    let refs = complete(&["the-loop", "tickets", "show", "local:"]);
    assert!(refs.contains("local:demo/hello#1"), "{refs}");
    let harness = complete(&["the-loop", "sessions", "start", "--harness", "d"]);
    assert!(harness.contains("demo"), "{harness}");
    let cursor = complete(&["the-loop", "sessions", "start", "--harness", "cu"]);
    assert!(cursor.contains("cursor"), "{cursor}");
    let keys = complete(&["the-loop", "config", "show", "routing.tmux.sock"]);
    assert!(keys.contains("routing.tmux.socketName"), "{keys}");
    home.config("nope: 1\n");
    assert_eq!(complete(&["the-loop", "tickets", "show", "local:"]), "");
}
