//! What a hostile but fair user does to the binary: places that are gone, programs that are gone, tmux
//! that does not answer (SE-21, SE-69, DI-6, DI-11, DI-22, DI-49).

use std::process::{Child, Command, Stdio};

use super::home::{Home, eventually, ran};

const ITEM: &str = "local:demo/hello#1";
const TARGET: &str = "loop-local-demo-hello-1";

/// A tmux server that is stopped, not ended; it goes on when the test is over, so that it can be ended.
struct Hung(rustix::process::Pid);

impl Hung {
    fn server_of(home: &Home) -> Self {
        let said = home.tmux(&["display-message", "-p", "#{pid}"]);
        let pid = String::from_utf8(said.stdout).unwrap();
        let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(self.0, rustix::process::Signal::CONT);
    }
}

#[test]
fn di11_di22_the_server_starts_with_our_file() {
    let home = Home::with("");
    home.ok(&["tickets", "new", "--title", "x", "--start"]);
    let conf = std::fs::read_to_string(home.root().join("local/tmux.conf")).unwrap();
    assert!(conf.contains("remain-on-exit on"), "{conf}");
    let kept = home.tmux(&["show-options", "-gv", "remain-on-exit"]);
    assert_eq!(String::from_utf8(kept.stdout).unwrap(), "on\n");
}

#[test]
fn di49_p10_a_checkout_stays_when_tmux_does_not_say_that_the_agent_ended() {
    let home = Home::with("");
    let config = home.root().join("cli-config.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    home.config(&text.replace("tmux: {", "tmux: {timeoutSeconds: 1, "));
    home.ok(&["tickets", "new", "--title", "x", "--start"]);
    let hung = Hung::server_of(&home);
    let stopped = home.run(&["sessions", "stop", ITEM]);
    drop(hung);
    assert_eq!(stopped.code, 1, "{}{}", stopped.out, stopped.err);
    assert!(stopped.err.contains("gave no answer"), "{}", stopped.err);
    let checkout = home.path("work/.worktrees/local/demo/hello/local-demo-hello-1");
    assert!(checkout.join("README.md").exists(), "{}", stopped.out);
    let kept = home.events("workspace.kept");
    assert_eq!(kept[0]["reason"], "in-use", "{kept:?}");
    let panes = home.tmux(&[
        "list-panes",
        "-t",
        &format!("={TARGET}:"),
        "-F",
        "#{pane_dead}",
    ]);
    assert_eq!(String::from_utf8(panes.stdout).unwrap(), "0\n");
}

#[test]
fn di6_who_sends_behind_a_held_delivery_is_told_and_not_kept() {
    let home = Home::with("");
    let nothing = home.path("nothing");
    std::fs::create_dir(&nothing).unwrap();
    let without_programs = |args: &[&str]| ran(home.command().env("PATH", &nothing).args(args));
    let first = without_programs(&["tickets", "new", "--title", "x", "--start"]);
    assert!(
        first.err.contains("waiting (tmux-unanswered)"),
        "{}",
        first.err
    );
    let comment = ["tickets", "comment", ITEM, "--body", "hello"];
    for args in [&["sessions", "start", ITEM][..], &comment, &comment] {
        let next = without_programs(args);
        let said = format!("{}{}", next.out, next.err);
        assert_eq!(next.code, 0, "{said}");
        assert!(said.contains("waiting (tmux-unanswered)"), "{said}");
    }
    // Nothing of it is lost.
    home.ok(&["start"]);
    eventually("all of it is over", || {
        let open = home.json(&["deliveries", "list"]);
        (open.as_array().unwrap().is_empty()).then_some(())
    });
    assert_eq!(home.events("delivery.confirmed").len(), 3);
}

#[test]
fn se21_stop_does_not_wait_for_a_daemon_that_somebody_else_started() {
    let home = Home::with("");
    let binary = assert_cmd::cargo::cargo_bin("the-loop");
    let spawn = |verb: &str| -> Child {
        Command::new(&binary)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.path("home"))
            .env("TMUX_TMPDIR", home.path("tmux"))
            .current_dir(home.path("home"))
            .arg(verb)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut stops = Vec::new();
    let mut starts = Vec::new();
    for _ in 0..8 {
        starts.push(spawn("start"));
        stops.push(spawn("stop"));
    }
    for start in starts {
        start.wait_with_output().unwrap();
    }
    for stop in stops {
        let said = stop.wait_with_output().unwrap();
        assert!(
            said.status.success(),
            "{}",
            String::from_utf8_lossy(&said.stdout)
        );
    }
}

#[test]
fn se69_se2_a_directory_that_is_gone_stops_no_hook_and_no_help() {
    let home = Home::with("");
    let gone = home.path("gone");
    std::fs::create_dir(&gone).unwrap();
    // The shell stands in a directory that it removes itself.
    let script = r#"cd "$1" && rmdir "$1" && shift && exec "$@""#;
    let binary = assert_cmd::cargo::cargo_bin("the-loop");
    for args in [
        &["hook", "Stop", "--slug", "local-demo-hello-1"][..],
        &["--version"],
        &["--help"],
        &["sessions", "list"],
    ] {
        std::fs::create_dir_all(&gone).unwrap();
        let done = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(&gone)
            .arg(&binary)
            .args(args)
            .env("HOME", home.path("home"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?} {done:?}");
    }
    // Nothing can be made in it, and nothing is made elsewhere instead.
    std::fs::create_dir_all(&gone).unwrap();
    let start = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(&gone)
        .arg(&binary)
        .arg("start")
        .env("HOME", home.path("nobody"))
        .output()
        .unwrap();
    assert_eq!(start.status.code(), Some(2), "{start:?}");
}
