//! The criteria of seed 004 on the built program: a tmux that is asked, and believed only in what it says
//! by its exit status.

use serde_json::Value;

use super::payload::{MAINTAINER, labeled};
use super::rig::{Rig, Wish, files};
use super::scripted::{self, calls, count, mode, times};

/// A call that asks what holds one name.
const PROBE: &str = "list-panes -F";

/// The ways of a scripted tmux.
const RULES: &str = "
hang,*) exec sleep 600 ;;
signal,*list-panes*) kill -9 $$ ;;
nonsense,*list-panes*) echo 'what is this'; exit 0 ;;
absent,*'list-panes -F'*) one && absent ;;
duplicate,*new-session*) one && { echo 'duplicate session: x' >&2; exit 1; } ;;
uncleared,*kill-session*) echo 'not now' >&2; exit 1 ;;
unpasted,*'list-panes -F'*) one && absent ;;
unpasted,*paste-buffer*) rm -f \"$dir/mode\"; : > \"$dir/mode\"; echo 'not now' >&2; exit 1 ;;
refused,*paste-buffer*) echo 'not now' >&2; exit 1 ;;
slow,*) sleep 0.2 ;;
";

fn rig_with(tmux: &str, more: &str) -> Rig {
    let wish = Wish {
        tmux,
        more,
        ..Wish::default()
    };
    scripted::rig(&wish, RULES)
}

fn rig() -> Rig {
    let rig = rig_with(", timeoutSeconds: 3", "");
    rig.up();
    rig.start(1);
    rig
}

fn conversations(rig: &Rig) -> usize {
    files(&rig.root("local/demo")).len()
}

fn record(rig: &Rig, number: u64) -> Value {
    let file = rig.root(&format!("local/github-octo-repo-{number}.json"));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn heard_once(rig: &Rig, number: u64, words: &str) {
    let told = rig.prompts(number).concat();
    assert_eq!(told.matches(words).count(), 1, "{told}");
}

/// A session of somebody else's under an item's name.
fn stranger(rig: &Rig, number: u64, program: &[&str]) {
    let name = format!("loop-github-octo-repo-{number}");
    let mut words = vec!["new-session", "-d", "-s", &name, "--"];
    words.extend(program);
    let done = rig.tmux(&words);
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn ac1_live_dead_and_absent_are_told_apart_by_exit_status_alone() {
    let rig = rig();
    // Live: it is spoken to.
    let pid = rig.pane_pid(1);
    rig.confirmed(&rig.say(1, "said to a live one"));
    assert_eq!(rig.pane_pid(1), pid);
    // Dead: it is cleared away, and comes back.
    rig.kill_agent(1);
    let since = calls(&rig).len();
    rig.confirmed(&rig.say(1, "said to a dead one"));
    assert_eq!(count(&rig, since, "kill-session"), 1);
    assert_eq!(rig.events("session.respawned").len(), 1);
    // Absent, with words that no tmux says: there is nothing to clear, and it comes back.
    rig.start(2);
    let gone = rig.tmux(&["kill-session", "-t", "=loop-github-octo-repo-1"]);
    assert!(gone.status.success(), "{gone:?}");
    let since = calls(&rig).len();
    rig.confirmed(&rig.say(1, "said to an absent one"));
    assert_eq!(count(&rig, since, "kill-session"), 0);
    let back = rig.events("session.respawned");
    assert_eq!(back.len(), 2);
    assert!(back.iter().all(|e| e["resumed"] == true), "{back:#?}");
    for words in ["live", "dead", "absent"] {
        heard_once(
            &rig,
            1,
            &format!("said to a {words} one").replace("a absent", "an absent"),
        );
    }
}

#[test]
fn ac1_ac2_no_answer_is_not_absence_and_never_leads_to_a_respawn() {
    let rig = rig();
    let pid = rig.pane_pid(1);
    for no_answer in ["hang", "signal", "nonsense"] {
        mode(&rig, no_answer);
        let since = calls(&rig).len();
        let id = rig.say(1, &format!("said to a tmux in the mode {no_answer}"));
        let held = rig.event("delivery.held", |e| e["delivery_id"] == id.as_str());
        assert_eq!(held["reason"], "tmux-unanswered", "{held}");
        assert_eq!(count(&rig, since, "new-session"), 0, "{no_answer}");
        assert_eq!(count(&rig, since, "kill-session"), 0, "{no_answer}");
        mode(&rig, "");
        rig.confirmed(&id);
        heard_once(&rig, 1, &format!("in the mode {no_answer}"));
    }
    assert_eq!(rig.pane_pid(1), pid);
    assert!(rig.events("session.respawned").is_empty());
    assert_eq!(conversations(&rig), 1);
}

#[test]
fn ac3_ac4_a_live_occupant_is_refused_and_a_dead_one_is_cleared() {
    let rig = rig();
    stranger(&rig, 7, &["sleep", "600"]);
    let pid = rig.pane_pid(7);
    let since = calls(&rig).len();
    rig.accepted("issues", &labeled(7, MAINTAINER));
    rig.say(7, "the-loop start");
    let failed = rig.event("session.spawn_failed", |_| true);
    let remedy = failed["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("kill-session -t =loop-github-octo-repo-7"),
        "{failed}"
    );
    assert_eq!(rig.pane_pid(7), pid, "it lives");
    assert_eq!(count(&rig, since, "kill-session"), 0);
    stranger(&rig, 8, &["true"]);
    rig.until("a dead one", || rig.is_dead(8).then_some(()));
    rig.start(8);
    assert_eq!(count(&rig, since, "kill-session"), 1);
    assert_eq!(rig.prompts(8).len(), 1);
}

#[test]
fn ac5_a_name_that_is_taken_is_asked_about_and_tried_once_more() {
    let rig = rig();
    times(&rig, "duplicate", 1);
    let since = calls(&rig).len();
    rig.start(2);
    assert_eq!(count(&rig, since, "new-session"), 2);
    assert_eq!(rig.prompts(2).len(), 1);
    // One that stays taken costs one more try, no loop.
    times(&rig, "duplicate", 1000);
    let since = calls(&rig).len();
    rig.accepted("issues", &labeled(3, MAINTAINER));
    rig.say(3, "the-loop start");
    let failed = rig.event("session.spawn_failed", |_| true);
    assert_eq!(failed["will_retry"], true, "{failed}");
    assert_eq!(count(&rig, since, "new-session"), 2);
    assert_eq!(count(&rig, since, "kill-session"), 0);
}

#[test]
fn ac6_ac10_what_lives_after_all_is_spoken_to_and_the_log_says_so() {
    let rig = rig();
    let pid = rig.pane_pid(1);
    let since = calls(&rig).len();
    times(&rig, "absent", 1);
    let id = rig.say(1, "said to one that seemed gone");
    rig.confirmed(&id);
    let told = rig.event("session.respawn_averted", |_| true);
    assert_eq!(told["delivery_id"], id.as_str());
    assert_eq!(told["work_item"], "github:octo/repo#1");
    assert_eq!(told["harness"], "demo");
    assert_eq!(told["tmux_target"], "loop-github-octo-repo-1");
    assert_eq!(told["gh_event"], "issue_comment");
    assert_eq!(rig.pane_pid(1), pid);
    assert_eq!(count(&rig, since, "new-session"), 0);
    assert!(rig.events("session.resume_failed").is_empty());
    heard_once(&rig, 1, "said to one that seemed gone");
}

#[test]
fn ac7_a_collision_of_a_respawn_ends_in_the_session_that_lives() {
    let rig = rig();
    let (pid, before) = (rig.pane_pid(1), record(&rig, 1));
    let since = calls(&rig).len();
    // Both looks at the session and the one at its name find nothing; tmux itself knows better.
    times(&rig, "absent", 3);
    let id = rig.say(1, "said to one that seemed gone for long");
    rig.confirmed(&id);
    rig.event("session.respawn_averted", |e| {
        e["delivery_id"] == id.as_str()
    });
    assert_eq!(count(&rig, since, "new-session"), 1);
    // Two looks at the session, one at its name, one after the collision, one for the agent's own pane.
    assert_eq!(count(&rig, since, PROBE), 5);
    assert_eq!(rig.pane_pid(1), pid);
    let after = record(&rig, 1);
    for kept in ["status", "createdAt", "harnessSessionId", "pid"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    assert!(rig.events("session.resume_failed").is_empty());
    assert!(files(&rig.root("local/launch")).is_empty());
    heard_once(&rig, 1, "said to one that seemed gone for long");
}

#[test]
fn ac8_ac10_a_dead_session_that_cannot_be_cleared_ends_the_delivery_for_good() {
    let rig = rig();
    rig.kill_agent(1);
    mode(&rig, "uncleared");
    let id = rig.say(1, "said to one that stands in the way");
    let dropped = rig.event("dispatch.dropped", |e| e["delivery_id"] == id.as_str());
    assert_eq!(dropped["reason"], "session-occupied", "{dropped}");
    assert_eq!(dropped["level"], "error", "{dropped}");
    assert_eq!(dropped["will_retry"], false, "{dropped}");
    rig.kept(&id, "dropped");
    rig.kill();
    mode(&rig, "");
    rig.up();
    rig.confirmed(&rig.say(1, "said when the way was free"));
    let told = rig.prompts(1).concat();
    assert!(!told.contains("in the way"), "{told}");
    let ends = rig.events("dispatch.dropped");
    let of_it = ends.iter().filter(|e| e["delivery_id"] == id.as_str());
    assert_eq!(of_it.count(), 1);
    assert_eq!(conversations(&rig), 1);
}

#[test]
fn ac9_a_paste_that_fails_into_what_lives_is_an_ordinary_failure() {
    let rig = rig();
    let pid = rig.pane_pid(1);
    let since = calls(&rig).len();
    times(&rig, "unpasted", 1);
    let id = rig.say(1, "said past the first try");
    let failed = rig.event("dispatch.failed", |e| e["delivery_id"] == id.as_str());
    assert_eq!(failed["will_retry"], true, "{failed}");
    rig.confirmed(&id);
    assert_eq!(rig.pane_pid(1), pid);
    assert_eq!(count(&rig, since, "new-session"), 0);
    heard_once(&rig, 1, "said past the first try");
}

#[test]
fn ac11_what_another_version_gave_up_is_tried_once_more() {
    let rig = rig_with(", timeoutSeconds: 3", "polling: {maxRetries: 1}\n");
    rig.up();
    rig.start(1);
    mode(&rig, "refused");
    let id = rig.say(1, "said in vain at first");
    let lost = rig.event("delivery.abandoned", |e| e["delivery_id"] == id.as_str());
    assert_eq!(lost["reason"], "attempts-spent", "{lost}");
    rig.kept(&id, "abandoned");
    mode(&rig, "");
    // The version that gave it up leaves it at that.
    rig.kill();
    rig.up();
    rig.confirmed(&rig.say(1, "said to the same version"));
    assert!(rig.events("delivery.retried").is_empty());
    rig.kill();
    let inbox = rusqlite::Connection::open(rig.root("local/inbox.db")).unwrap();
    let changed = inbox.execute(
        "UPDATE outcomes SET given_up_by = '0.1.0' WHERE state = 'abandoned'",
        (),
    );
    assert_eq!(changed.unwrap(), 1);
    drop(inbox);
    rig.up();
    rig.confirmed(&id);
    let again = rig.event("delivery.retried", |e| e["delivery_id"] == id.as_str());
    assert_eq!(again["via"], "upgrade", "{again}");
    heard_once(&rig, 1, "said in vain at first");
}

#[test]
fn ac12_a_killed_tmux_session_keeps_its_conversation_also_when_tmux_is_slow() {
    let rig = rig();
    rig.start(2);
    let before = record(&rig, 1);
    mode(&rig, "slow");
    let gone = rig.tmux(&["kill-session", "-t", "=loop-github-octo-repo-1"]);
    assert!(gone.status.success(), "{gone:?}");
    rig.confirmed(&rig.say(1, "said after the end of the session"));
    let back = rig.event("session.respawned", |_| true);
    assert_eq!(back["resumed"], true, "{back}");
    assert_eq!(back["harness_session_id"], before["harnessSessionId"]);
    assert!(rig.events("session.resume_failed").is_empty());
    let after = record(&rig, 1);
    for kept in ["createdAt", "harnessSessionId", "cwd", "workspace"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    // The process itself was told which conversation to take up.
    let argv = std::fs::read(format!("/proc/{}/cmdline", rig.pane_pid(1))).unwrap();
    let argv = String::from_utf8_lossy(&argv).replace('\0', " ");
    let id = before["harnessSessionId"].as_str().unwrap();
    assert!(argv.contains(&format!("--resume {id}")), "{argv}");
    assert_eq!(rig.prompts(1).len(), 2);
    assert_eq!(conversations(&rig), 2);
}
