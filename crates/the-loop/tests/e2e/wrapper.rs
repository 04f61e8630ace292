//! A tmux that hangs, that says it has no server, and that says a name is taken: nothing live is killed and
//! nothing is lost (DI-13, DI-14, DI-16, DI-39).

use std::os::unix::fs::PermissionsExt;

use super::payload::{MAINTAINER, labeled};
use super::rig::{Rig, Wish};

/// What the daemon takes for tmux; a file says how it behaves.
fn rig() -> Rig {
    let rig = Rig::with(&Wish {
        tmux: ", binary: ../bin/tmux, timeoutSeconds: 1",
        ..Wish::default()
    });
    let bin = rig.path("home/bin");
    std::fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\nmode=$(cat {mode})\ncase \"$mode,$*\" in\n\
         hang,*) exec sleep 600 ;;\n\
         gone,*) echo 'no server running on a socket' >&2; exit 1 ;;\n\
         reboot,*new-session*) tmux \"$@\"\n\
         until grep -q '\"assistant\"' {demo}/*.jsonl; do :; done\n\
         kill -9 $PPID; tmux -L {socket} kill-server; exit 1 ;;\n\
         old,*-V) echo 'tmux 3.1c'; exit 0 ;;\n\
         duplicate,*new-session*) echo 'duplicate session: x' >&2; exit 1 ;;\n\
         esac\nexec tmux \"$@\"\n",
        mode = rig.path("mode").display(),
        demo = rig.root("local/demo").display(),
        socket = rig.socket,
    );
    let file = bin.join("tmux");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = std::fs::read_to_string(rig.root("cli-config.yaml")).unwrap();
    let config = config.replace("../bin/tmux", file.to_str().unwrap());
    rig.write("home/.the-loop/cli-config.yaml", &config);
    rig.write("mode", "");
    rig
}

/// Exactly these agents live, each heard the words once, and no session was replaced.
fn all_is_well(rig: &Rig, pids: &[(u64, String)], words: &str) {
    for (item, pid) in pids {
        assert_eq!(
            &rig.pane_pid(*item),
            pid,
            "the agent of {item} was left alone"
        );
    }
    let told = rig.prompts(1).concat();
    assert_eq!(told.matches(words).count(), 1, "{told}");
    assert!(rig.events("session.respawned").is_empty());
    assert!(rig.events("session.resume_failed").is_empty());
    assert!(rig.events("delivery.abandoned").is_empty());
    let agents = rig.root("local/demo");
    assert_eq!(
        super::rig::files(&agents).len(),
        pids.len(),
        "no second conversation"
    );
}

fn two(rig: &Rig) -> [(u64, String); 2] {
    rig.up();
    rig.start(1);
    rig.start(15);
    [1, 15].map(|item| (item, rig.pane_pid(item)))
}

#[test]
fn di13_di14_a_tmux_that_hangs() {
    let rig = rig();
    let pids = two(&rig);
    rig.write("mode", "hang");
    let id = rig.say(1, "said to a tmux that hangs");
    let held = rig.event("delivery.held", |e| e["delivery_id"] == id.as_str());
    assert_eq!(held["reason"], "tmux-unanswered", "{held}");
    rig.event("tmux.unanswered", |_| true);
    rig.write("mode", "");
    rig.confirmed(&id);
    rig.event("tmux.answered", |_| true);
    all_is_well(&rig, &pids, "said to a tmux that hangs");
    // The program itself goes away for a while.
    let (here, away) = (rig.path("home/bin/tmux"), rig.path("home/bin/away"));
    std::fs::rename(&here, &away).unwrap();
    let id = rig.say(1, "said to no tmux at all");
    let held = rig.event("delivery.held", |e| e["delivery_id"] == id.as_str());
    assert_eq!(held["reason"], "tmux-unanswered", "{held}");
    std::fs::rename(&away, &here).unwrap();
    rig.confirmed(&id);
    all_is_well(&rig, &pids, "said to no tmux at all");
}

#[test]
fn se87_an_old_tmux_is_told_at_the_start_and_used() {
    let rig = rig();
    rig.write("mode", "old");
    rig.up();
    rig.start(1);
    let said = std::fs::read_to_string(rig.path("err")).unwrap();
    let words = "warning: tmux 3.1c is older than 3.2, the oldest that is supported\n";
    assert_eq!(said.matches(words).count(), 1, "{said}");
}

#[test]
fn di39_di41_a_server_that_dies_takes_no_conversation_with_it() {
    let rig = rig();
    two(&rig);
    let killed = rig.tmux(&["kill-server"]);
    assert!(killed.status.success(), "{killed:?}");
    rig.event("tmux.server_gone", |event| event["count"] == 2);
    let ids = [1, 15].map(|item| rig.say(item, &format!("said after the end to {item}")));
    for id in &ids {
        rig.confirmed(id);
    }
    assert_eq!(rig.events("tmux.server_gone").len(), 1);
    let back = rig.events("session.respawned");
    assert!(
        back.iter().all(|event| event["resumed"] == true),
        "{back:#?}"
    );
    assert_eq!(
        super::rig::files(&rig.root("local/demo")).len(),
        2,
        "the same conversations"
    );
    for item in [1, 15] {
        let told = rig.prompts(item).concat();
        let words = format!("said after the end to {item}");
        assert_eq!(told.matches(&words).count(), 1, "{told}");
        assert_eq!(told.matches("said after the end").count(), 1, "{told}");
    }
}

#[test]
fn st42_di43_a_first_session_that_had_its_prompt_when_the_machine_went_down() {
    let rig = rig();
    rig.up();
    rig.write("mode", "reboot");
    rig.accepted("issues", &labeled(1, MAINTAINER));
    let id = rig.say(1, "the-loop start");
    rig.ended();
    rig.write("mode", "");
    rig.up();
    rig.confirmed(&id);
    rig.confirmed(&rig.say(1, "said after the reboot"));
    let prompts = rig.prompts(1);
    assert_eq!(prompts.len(), 2, "{prompts:#?}");
    let agents = rig.root("local/demo");
    assert_eq!(super::rig::files(&agents).len(), 1, "the same conversation");
}

#[test]
fn di16_di39_a_tmux_that_says_it_has_no_server() {
    let rig = rig();
    let pids = two(&rig);
    rig.write("mode", "gone");
    let id = rig.say(1, "said to a tmux without a server");
    let why = rig.until("a word about it", || {
        let log = rig.log().into_iter();
        let mut about = log.filter(|e| {
            e["delivery_id"] == id.as_str() && e["level"] != "info" && e["level"] != "debug"
        });
        about.next()
    });
    let words = why["error"].as_str().unwrap_or_default();
    assert!(words.contains("no server running"), "{why}");
    rig.event("tmux.server_gone", |_| true);
    rig.write("mode", "");
    rig.confirmed(&id);
    all_is_well(&rig, &pids, "said to a tmux without a server");
}

#[test]
fn di16_a_tmux_that_says_a_name_is_taken() {
    let rig = rig();
    let pids = two(&rig);
    rig.write("mode", "duplicate");
    rig.accepted("issues", &labeled(2, MAINTAINER));
    let id = rig.say(2, "the-loop start");
    let failed = rig.event("session.spawn_failed", |_| true);
    assert_eq!(failed["will_retry"], true, "{failed}");
    let why = failed["error"].as_str().unwrap();
    assert!(why.contains("name is taken"), "{failed}");
    // A session that lives is still spoken to, and nobody else's name is touched.
    rig.confirmed(&rig.say(1, "said beside a taken name"));
    all_is_well(&rig, &pids, "said beside a taken name");
    rig.write("mode", "");
    // Whichever comes first, the start's next try or the label, brings the one session up.
    rig.event("control.command", |e| e["delivery_id"] == id.as_str());
    rig.until("the session of item 2", || {
        (rig.prompts(2).len() == 1).then_some(())
    });
    let up = rig.events("session.spawned");
    let of_2 = up.iter().filter(|e| e["work_item"] == "github:octo/repo#2");
    assert_eq!(of_2.count(), 1, "{up:#?}");
}
