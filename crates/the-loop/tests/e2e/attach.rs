//! `sessions attach` at a terminal (SE-30).

use std::time::{Duration, Instant};

use super::person::{Person, USUAL, clients};
use super::rig::{Rig, Wish};

const PROGRAM: &str = env!("CARGO_BIN_EXE_the-loop");
const ITEM: &str = "github:octo/repo#1";
const TARGET: &str = "loop-github-octo-repo-1";

fn rig(tmux: &str) -> Rig {
    let rig = Rig::with(&Wish {
        tmux,
        ..Wish::default()
    });
    rig.up();
    rig.start(1);
    rig
}

/// Waits until exactly these clients are there: where each is, and whether it only watches.
fn sees_clients(rig: &Rig, wanted: &[(&str, &str)]) {
    let mut seen = Vec::new();
    let format = "#{session_name} #{client_readonly}";
    rig.until(&format!("the clients {wanted:?}"), || {
        let told = rig.tmux(&["list-clients", "-F", format]);
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        seen = told.lines().map(str::to_owned).collect();
        let wanted = wanted.iter().map(|(name, ro)| format!("{name} {ro}"));
        (seen == wanted.collect::<Vec<_>>()).then_some(())
    });
}

#[test]
fn se30_attach_becomes_the_terminal_and_its_keys_reach_the_agent() {
    let rig = rig("");
    let person = Person::runs(&rig, USUAL, &[PROGRAM, "sessions", "attach", ITEM]);
    sees_clients(&rig, &[(TARGET, "0")]);
    person.types(&["-l", "typed by a person"]);
    person.types(&["Enter"]);
    let typed = || {
        let files = super::rig::files(&rig.root("local/demo"));
        let all = files
            .iter()
            .map(|file| std::fs::read_to_string(file).unwrap());
        all.collect::<String>()
            .contains("\"typed by a person\"")
            .then_some(())
    };
    rig.until("what was typed", typed);
    person.types(&["C-b", "d"]);
    person.is_done();
    assert_eq!(clients(&rig), 0);
}

#[test]
fn se30_attach_works_in_a_window_of_ones_own_tmux() {
    let rig = rig("");
    let person = Person::runs_inside(&rig, USUAL, &[PROGRAM, "sessions", "attach", ITEM]);
    sees_clients(&rig, &[(TARGET, "0")]);
    person.sees("demo-agent");
}

#[test]
fn se30_attach_that_only_watches_types_nothing() {
    let rig = rig("");
    rig.ok(&["sessions", "pause", ITEM]);
    let watcher = Person::runs(&rig, USUAL, &[PROGRAM, "sessions", "attach", "-r", ITEM]);
    sees_clients(&rig, &[(TARGET, "1")]);
    watcher.types(&["-l", "nobody reads this"]);
    // A paused one is writable.
    let person = Person::runs(&rig, USUAL, &[PROGRAM, "sessions", "attach", ITEM]);
    rig.until("both clients", || (clients(&rig) == 2).then_some(()));
    person.types(&["-l", "somebody reads that"]);
    watcher.sees("somebody reads that");
    assert!(!watcher.screen().contains("nobody reads this"));
}

#[test]
fn se30_a_closed_session_is_watched_only_and_it_says_so() {
    let rig = rig(", keepSessionOnClose: true");
    rig.ok(&["sessions", "stop", ITEM]);
    let words = format!("{PROGRAM} sessions attach {ITEM} 2>notes");
    let _person = Person::runs(&rig, USUAL, &["sh", "-c", &words]);
    sees_clients(&rig, &[(TARGET, "1")]);
    let note = format!("note: {ITEM} is closed: watching only\n");
    assert_eq!(std::fs::read_to_string(rig.path("notes")).unwrap(), note);
    let printed = rig.ok(&["sessions", "attach", "--print", ITEM]);
    let command = format!("tmux -L {} attach -r -t ={TARGET}\n", rig.socket);
    assert_eq!(printed, command);
}

#[test]
fn se30_inside_a_client_of_the_same_server_that_client_is_switched() {
    let rig = rig("");
    rig.tmux(&["new-session", "-d", "-s", "mine", "sh"]);
    let person = Person::attaches(&rig, USUAL, &["-t", "=mine"]);
    person.types(&["-l", &format!("{PROGRAM} sessions attach {ITEM}")]);
    person.types(&["Enter"]);
    sees_clients(&rig, &[(TARGET, "0")]);
    // Back, and to a session that is over: the client only watches from then on, also when it did before.
    for before in ["0", "1"] {
        rig.tmux(&["kill-session", "-t", "=mine"]);
        rig.tmux(&["new-session", "-d", "-s", "mine", "sh"]);
        let again = Person::attaches(&rig, USUAL, &["-t", "=mine"]);
        let go = format!("go-{before}");
        let waits = format!("until [ -e {go} ]; do :; done; {PROGRAM} sessions attach -r {ITEM}");
        again.types(&["-l", &format!("cd {}; {waits}", rig.path("").display())]);
        again.types(&["Enter"]);
        let told = rig.tmux(&["list-clients", "-t", "=mine", "-F", "#{client_name}"]);
        let name = String::from_utf8_lossy(&told.stdout).trim().to_owned();
        if before == "1" {
            rig.tmux(&["switch-client", "-c", &name, "-r"]);
        }
        std::fs::write(rig.path(&go), "").unwrap();
        rig.until("that client only watches", || {
            let format = "#{client_name} #{session_name} #{client_readonly}";
            let told = rig.tmux(&["list-clients", "-F", format]);
            let told = String::from_utf8_lossy(&told.stdout).into_owned();
            let wanted = format!("{name} {TARGET} 1");
            told.lines().any(|line| line == wanted).then_some(())
        });
    }
}

#[test]
fn se30_a_tmux_that_hangs_or_is_missing_ends_in_words() {
    let rig = rig("");
    let broken = rig.path("broken");
    rig.write("broken", "#!/bin/sh\nexec sleep 600\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&broken, mode).unwrap();
    let config = std::fs::read_to_string(rig.root("cli-config.yaml")).unwrap();
    let other = |binary: &str| {
        let told = format!("tmux: {{binary: {binary}, timeoutSeconds: 60, ");
        rig.write(
            "home/.the-loop/other.yaml",
            &config.replace("tmux: {", &told),
        );
    };
    let run = |words: &[&str]| {
        let other = rig.root("other.yaml").display().to_string();
        let words = [&["--config", &other], words].concat();
        let began = Instant::now();
        let done = rig.program(&words).output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(30), "{done:?}");
        let err = String::from_utf8_lossy(&done.stderr).into_owned();
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stdout).into_owned(),
            err,
        )
    };
    other(&broken.display().to_string());
    let (code, _, err) = run(&["sessions", "attach", ITEM]);
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("tmux does not answer: no answer within 5s"),
        "{err}"
    );
    let (code, out, err) = run(&["sessions", "list"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(ITEM) && out.contains("unknown"), "{out}");
    other("/nowhere/tmux");
    let (code, _, err) = run(&["sessions", "attach", ITEM]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("tmux cannot be run"), "{err}");
    assert!(err.contains("hint: install tmux"), "{err}");
}
