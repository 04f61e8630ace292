//! What a conversation keeps through a respawn, and what is said of attempts in doubt (DI-39, DI-40, DI-43,
//! DI-52; seed 004).

use serde_json::{Value, json};
use the_loop::disk::{Disk, OsDisk};
use the_loop_testkit::{Blow, Simulator, Trouble};

use super::recovery::{configure, confirmed, edit, item, record};
use super::script::{ITEM, comment, comment_on, send, started, story, target};

#[test]
fn di40_st43_a_respawn_keeps_what_the_record_knows() {
    let sim = Simulator::running("", "");
    started(&sim);
    edit(&sim, "url", json!("https://example.test/15"));
    edit(&sim, "yours", json!({"kept": [1, 2]}));
    let before = record(&sim);
    sim.tick_until(30, |_| false);
    sim.tmux.agent_dies(&target(ITEM));
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    let after = record(&sim);
    for kept in [
        "createdAt",
        "harnessSessionId",
        "cwd",
        "url",
        "yours",
        "workItem",
    ] {
        assert_eq!(after[kept], before[kept], "{kept}");
        assert!(!after[kept].is_null(), "{kept}: {after}");
    }
    assert_eq!(after["status"], "active");
    assert_eq!(after["recentDeliveries"], json!(["start", "c"]));
    assert_ne!(after["pid"], before["pid"]);
    let told = sim.told("session.respawned");
    assert_eq!(told.len(), 1, "{}", story(&sim));
    assert_eq!(told[0]["resumed"], true);
    assert_eq!(sim.conversations(), 1);
}

#[test]
fn di40_a_paused_session_is_neither_brought_back_nor_woken() {
    let mut sim = Simulator::running("", "");
    started(&sim);
    send(&sim, &comment("pause", "the-loop pause"));
    assert!(sim.tick_until(10, |sim| sim.stands("pause").starts_with("settled")));
    sim.tmux.server_dies();
    sim.tick_until(10, |_| false);
    sim.restart();
    sim.tick_until(10, |_| false);
    assert!(sim.tmux.live().is_empty(), "{}", story(&sim));
    assert_eq!(record(&sim)["status"], "paused");
    send(&sim, &comment("resume", "the-loop resume"));
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(record(&sim)["status"], "active");
    assert_eq!(sim.told("session.respawned")[0]["resumed"], true);
}

#[test]
fn di40_a_pause_set_meanwhile_wins() {
    let sim = Simulator::running("", "");
    started(&sim);
    sim.tmux.agent_dies(&target(ITEM));
    // While the resumed agent comes up, somebody writes the pause into the record.
    let file = sim.layout.session_record(&item(ITEM).slug());
    sim.tmux.beside("new-session", move || {
        let mut record: Value =
            serde_json::from_slice(&OsDisk.read(&file, 1 << 20).unwrap()).unwrap();
        record["status"] = json!("paused");
        let text = serde_json::to_vec_pretty(&record).unwrap();
        OsDisk.write_atomic(&file, &text, false).unwrap();
    });
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(record(&sim)["status"], "paused", "{}", story(&sim));
    send(&sim, &comment("d", "More."));
    let over = sim.tick_until(20, |sim| sim.stands("d") == "settled(session-paused)");
    assert!(over, "{}", sim.stands("d"));
}

#[test]
fn di40_a_pause_outlives_a_respawn_that_a_crash_cut_short() {
    for lives in [true, false] {
        let mut sim = Simulator::running("", "");
        started(&sim);
        sim.tmux.agent_dies(&target(ITEM));
        send(&sim, &comment("c", "Words."));
        // The program is gone right after the journal is written, or after the agent is launched.
        let word = if lives {
            "new-session"
        } else {
            "local/github-octo-repo-15.json"
        };
        let fuse = sim.fuse.clone();
        let mut at = fuse.calls();
        let undisturbed = {
            let probe = Simulator::running("", "");
            started(&probe);
            probe.tmux.agent_dies(&target(ITEM));
            send(&probe, &comment("c", "Words."));
            let from = probe.fuse.calls() as usize;
            confirmed(&probe, "c");
            probe.fuse.log().split_off(from)
        };
        let steps = undisturbed.iter().position(|call| call.contains(word));
        at += steps.unwrap() as u64 + 1;
        fuse.plan(at, Blow::CrashAfter);
        sim.tick_until(60, |_| false);
        assert!(sim.fuse.crashed());
        assert_eq!(record(&sim)["status"], "starting", "{undisturbed:#?}");
        let mut spawn = record(&sim)["spawn"].clone();
        spawn["previous"] = json!("paused");
        edit(&sim, "spawn", spawn);
        sim.restart();
        sim.tick_until(20, |_| false);
        assert_eq!(record(&sim)["status"], "paused", "{lives}\n{}", story(&sim));
        assert_eq!(!sim.tmux.live().is_empty(), lives, "{}", story(&sim));
    }
}

#[test]
fn di39_a_conversation_that_must_not_be_resumed_is_told_lost_and_follows_afresh() {
    let sim = Simulator::running(", tmux: {resumeOnRespawn: false}", "");
    started(&sim);
    let before = record(&sim);
    sim.tmux.agent_dies(&target(ITEM));
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    let lost = sim.told("session.resume_failed");
    assert_eq!(lost.len(), 1, "{}", story(&sim));
    assert!(
        lost[0]["error"]
            .as_str()
            .unwrap()
            .contains("resumeOnRespawn")
    );
    assert_eq!(sim.told("session.respawned")[0]["resumed"], false);
    let after = record(&sim);
    assert_ne!(after["harnessSessionId"], before["harnessSessionId"]);
    assert_eq!(after["createdAt"], before["createdAt"]);
    assert_eq!(after["recentDeliveries"], json!(["start", "c"]));
}

#[test]
fn di39_a_lost_conversation_is_told_once_and_the_fresh_one_is_told_to_read_everything() {
    let sim = Simulator::running("", "");
    started(&sim);
    sim.tmux.server(|server| server.mood.exit_at_once = 1);
    sim.tmux.server_dies();
    sim.tick_until(20, |_| false);
    // Nobody is told a blank conversation's words, so none is begun before there are some.
    assert_eq!(
        sim.told("session.resume_failed").len(),
        1,
        "{}",
        story(&sim)
    );
    assert!(sim.tmux.live().is_empty(), "{}", story(&sim));
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(
        sim.told("session.resume_failed").len(),
        1,
        "{}",
        story(&sim)
    );
    let mail = sim.layout.mail_dir(&item(ITEM).slug());
    let read = |name: String| {
        let bytes = OsDisk.read(&mail.join(name), 1 << 20).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let mails: Vec<String> = OsDisk.list(&mail).unwrap().into_iter().map(read).collect();
    assert!(
        mails.iter().any(|m| m.contains("whole thread")),
        "{mails:#?}"
    );
}

#[test]
fn di39_a_conversation_is_resumed_in_the_directory_where_it_was() {
    let mut sim = Simulator::running("", "");
    started(&sim);
    let cwd = record(&sim)["cwd"].as_str().unwrap().to_owned();
    let elsewhere = sim.layout.root().join("elsewhere");
    OsDisk.create_dir_all(&elsewhere).unwrap();
    sim.die();
    configure(
        &sim,
        &format!("spawnWorkdir: '{cwd}'"),
        &format!("spawnWorkdir: '{elsewhere}'"),
    );
    sim.tmux.server_dies();
    sim.start();
    send(&sim, &comment("c", "Words."));
    confirmed(&sim, "c");
    assert_eq!(record(&sim)["cwd"], cwd.as_str());
    let runs_in = sim.tmux.server(|s| s.sessions[&target(ITEM)].cwd.clone());
    assert_eq!(runs_in, cwd);
    // A first session goes where the settings say.
    let other = "github:octo/repo#16";
    send(&sim, &comment_on(other, "other", "the-loop start"));
    confirmed(&sim, "other");
    let runs_in = sim.tmux.server(|s| s.sessions[&target(other)].cwd.clone());
    assert_eq!(runs_in, elsewhere);
}

#[test]
fn seed004_ac7_a_collision_leaves_the_record_to_the_conversation_that_lives() {
    for resumes in [true, false] {
        let sim = Simulator::running(&format!(", tmux: {{resumeOnRespawn: {resumes}}}"), "");
        started(&sim);
        let before = record(&sim);
        sim.tmux.plan("list-panes -F", 0, 3, Trouble::NoServer);
        send(&sim, &comment("c", "Words."));
        confirmed(&sim, "c");
        let after = record(&sim);
        assert_eq!(after["status"], "active", "{resumes}\n{}", story(&sim));
        assert!(after["spawn"].is_null());
        for kept in ["harnessSessionId", "createdAt", "pid", "pidStartTime"] {
            assert_eq!(after[kept], before[kept], "{kept}");
        }
        assert_eq!(sim.told("session.respawn_averted").len(), 1);
        assert!(sim.told("session.respawned").is_empty());
        assert!(sim.launch_files().is_empty());
        send(&sim, &comment("d", "More."));
        confirmed(&sim, "d");
    }
}

#[test]
fn seed004_ac9_a_paste_that_fails_in_an_averted_respawn_is_an_ordinary_failure() {
    let sim = Simulator::running("", "");
    started(&sim);
    sim.tmux.plan("list-panes -F", 0, 1, Trouble::NoServer);
    sim.tmux.plan("paste-buffer -p", 0, 1, Trouble::Refuses);
    send(&sim, &comment("c", "Words."));
    assert!(
        sim.tick_until(5, |sim| sim.stands("c").starts_with("failed")),
        "{}",
        story(&sim)
    );
    let failed = sim.told("dispatch.failed");
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["will_retry"], true);
    confirmed(&sim, "c");
    assert_eq!(sim.tmux.server(|s| s.made.len()), 1);
    assert!(sim.told("session.respawned").is_empty());
}

#[test]
fn seed004_ac11_what_another_version_gave_up_is_tried_once_more_and_no_more() {
    let mut sim = Simulator::running("", "");
    started(&sim);
    sim.tmux
        .plan("paste-buffer -p", 0, 100_000, Trouble::Refuses);
    send(&sim, &comment("c", "Words."));
    let gave_up = |sim: &Simulator| sim.stands("c").starts_with("abandoned");
    assert!(sim.tick_until(2_000, gave_up), "{}", story(&sim));
    // The same version does not try it again, however often it starts.
    sim.restart();
    sim.tick_until(20, |_| false);
    assert!(gave_up(&sim));
    assert!(sim.told("delivery.retried").is_empty());
    let given_up_by_an_older_one = |sim: &mut Simulator| {
        sim.die();
        let inbox = rusqlite::Connection::open(sim.layout.inbox_db()).unwrap();
        let changed = inbox.execute(
            "UPDATE outcomes SET given_up_by = '0.1.0' WHERE state = 'abandoned'",
            (),
        );
        assert_eq!(changed.unwrap(), 1);
        drop(inbox);
        sim.start();
    };
    given_up_by_an_older_one(&mut sim);
    assert_eq!(sim.count("delivery.retried", "via", "upgrade"), 1);
    // It has a whole budget, and then this version has given it up.
    assert!(sim.tick_until(2_000, gave_up), "{}", story(&sim));
    assert_eq!(sim.told("delivery.abandoned").len(), 2);
    sim.restart();
    sim.tick_until(20, |_| false);
    assert_eq!(sim.told("delivery.retried").len(), 1);
    sim.tmux.mend();
    given_up_by_an_older_one(&mut sim);
    confirmed(&sim, "c");
}

#[test]
fn di43_evidence_that_comes_late_ends_a_doubt() {
    for again in [false, true] {
        let mut sim = Simulator::running("", "");
        started(&sim);
        let minutes = std::time::Duration::from_mins;
        sim.tmux.server(|server| server.mood.busy = minutes(10));
        send(&sim, &comment("long", "Work long."));
        confirmed(&sim, "long");
        // The agent takes the next one behind its turn, and says so nowhere before its turn comes.
        sim.tmux.server(|server| {
            server.mood.no_hooks = true;
            server.mood.busy = minutes(0);
        });
        send(&sim, &comment("c", "Words."));
        let doubt = |sim: &Simulator| sim.stands("c").starts_with("uncertain");
        assert!(
            sim.tick_until(120, doubt),
            "{}\n{}",
            sim.stands("c"),
            story(&sim)
        );
        assert_eq!(sim.count("delivery.resolved", "delivery_id", "c"), 0);
        if again {
            sim.restart();
        }
        let ended = sim.tick_until(900, |sim| sim.stands("c") == "confirmed");
        assert!(ended, "{}\n{}", sim.stands("c"), story(&sim));
        assert_eq!(sim.taken(), ["start", "long", "c"]);
        let resolved = sim.told("delivery.resolved");
        assert_eq!(resolved.len(), 1, "{}", story(&sim));
        assert_eq!(resolved[0]["outcome"], "sent");
        assert_eq!(resolved[0]["by"], "transcript");
        assert_eq!(sim.count("delivery.confirmed", "delivery_id", "c"), 1);
    }
}

#[test]
fn di52_a_release_that_a_crash_cut_short_is_not_refused() {
    let limits = ", limits: {minFreeMemoryMb: 0, minFreeDiskMb: 0, maxDeliveriesPerItemPerHour: 1}";
    let parked = || {
        let mut sim = Simulator::new(limits, "");
        sim.start();
        started(&sim);
        send(&sim, &comment("one", "First."));
        assert!(sim.tick_until(20, |sim| sim.stands("one") == "queued(parked)"));
        let from = sim.fuse.calls();
        send(&sim, &comment("resume", "the-loop resume"));
        (sim, from)
    };
    let over = |sim: &Simulator| sim.stands("resume").starts_with("settled");
    let (sim, from) = parked();
    assert!(sim.tick_until(20, over));
    let calls = sim.fuse.calls() - from;
    for at in 2..=calls {
        for blow in [Blow::CrashBefore, Blow::CrashAfter] {
            let (mut sim, from) = parked();
            sim.fuse.plan(from + at, blow);
            sim.tick_until(20, over);
            if sim.fuse.crashed() {
                sim.restart();
            }
            assert!(sim.tick_until(60, over), "{}", story(&sim));
            assert_eq!(
                sim.stands("resume"),
                "settled(control-executed)",
                "{at} {blow:?}\n{}",
                story(&sim)
            );
            confirmed(&sim, "one");
        }
    }
}
