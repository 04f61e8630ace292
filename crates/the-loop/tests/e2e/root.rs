//! The state root: one daemon, a disk that refuses, a record that is nonsense (ST-26, ST-32, ST-55, IN-3).

use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::payload::{MAINTAINER, comment};
use super::rig::Rig;

#[test]
fn st26_a_second_daemon_names_the_first_and_leaves() {
    let rig = Rig::new();
    rig.up();
    let second = rig.program(&["start", "--foreground"]).output().unwrap();
    assert_eq!(second.status.code(), Some(1), "{second:?}");
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains(&rig.pid().to_string()), "{said}");
    rig.start(1);
}

/// Limits how large a file the daemon may write; `None` lifts it.
fn limit(rig: &Rig, bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    let pid = Pid::from_raw(i32::try_from(rig.pid()).unwrap());
    prlimit(pid, Resource::Fsize, limit).unwrap();
}

#[test]
fn in3_st55_a_full_disk_is_said_to_the_sender_and_recovers_without_a_restart() {
    let rig = Rig::new();
    // The signal that comes with this limit would end the daemon; a full disk sends none.
    let mut shell = Command::new("sh");
    let start = rig.program(&["start", "--foreground"]);
    shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
    shell.arg(start.get_program()).args(start.get_args());
    shell
        .env_clear()
        .current_dir(start.get_current_dir().unwrap());
    shell.envs(
        start
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    rig.launch(shell);
    rig.until("it receives", || super::http::is_up(rig.port).then_some(()));
    rig.start(1);
    let length = |below: &str| std::fs::metadata(rig.root(below)).unwrap().len();
    // The event log may still grow, the inbox may not.
    let most = length("logs/events.jsonl") + 16_384;
    let mut said = 0;
    rig.until("an inbox larger than the log", || {
        rig.confirmed(&rig.say(1, &format!("filling, {said}")));
        said += 1;
        (length("local/inbox.db-wal") > most).then_some(())
    });
    limit(&rig, Some(most));
    let first = rig.fresh();
    let payload = comment(1, first, MAINTAINER, "said while the disk was full");
    for _ in 0..3 {
        let answer = rig.post("issue_comment", &format!("full-{first}"), &payload);
        assert_eq!(answer.unwrap().0, 503);
    }
    assert_eq!(rig.events("inbox.unavailable").len(), 1);
    assert!(rig.events("inbox.recovered").is_empty());
    limit(&rig, None);
    let answer = rig.until("it accepts again", || {
        let answer = rig.post("issue_comment", &format!("full-{first}"), &payload);
        answer.ok().filter(|(status, _)| *status == 202)
    });
    assert_eq!(answer.1, "accepted");
    rig.confirmed(&format!("full-{first}"));
    rig.event("inbox.recovered", |_| true);
    assert_eq!(rig.events("inbox.unavailable").len(), 1);
    let told = rig.prompts(1).concat();
    assert_eq!(told.matches("said while the disk was full").count(), 1);
    assert_eq!(rig.events("daemon.started").len(), 1);
}

#[test]
fn st32_a_corrupt_record_stops_only_its_own_item() {
    let rig = Rig::new();
    rig.up();
    rig.start(1);
    rig.start(2);
    let pid = rig.pane_pid(1);
    let nonsense = "{\"this is\": no record";
    let record = "home/.the-loop/local/github-octo-repo-1.json";
    let good = std::fs::read_to_string(rig.path(record)).unwrap();
    rig.write(record, nonsense);
    let waits = rig.say(1, "for the broken one");
    let held = rig.event("delivery.held", |e| e["delivery_id"] == waits.as_str());
    assert_eq!(held["reason"], "record-corrupt", "{held}");
    rig.confirmed(&rig.say(2, "for the other one"));
    rig.start(3);
    // A new daemon finds it and goes on as well.
    rig.kill();
    rig.up();
    rig.confirmed(&rig.say(2, "once more"));
    let left = std::fs::read_to_string(rig.path(record)).unwrap();
    assert_eq!(left, nonsense, "it is left in place");
    assert_eq!(rig.pane_pid(1), pid, "its agent lives");
    rig.write(record, &good);
    rig.confirmed(&waits);
    assert_eq!(rig.prompts(1).len(), 2);
}
