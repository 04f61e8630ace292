//! What is written to GitHub, and what is not (IN-57 to IN-59).

use serde_json::Value;

use super::hub::{Hub, TOKEN};
use super::payload::{MAINTAINER, STRANGER, comment, inline, pull};
use super::rig::{Rig, Wish};

const MARK: &str = "<!-- the-loop:agent-comment -->";

/// A machine that writes to a double of GitHub with this token.
fn rig(hub: &Hub, token: &str) -> Rig {
    rig_with(hub, token, "")
}

/// The same, with these lines of the agents' environment.
fn rig_with(hub: &Hub, token: &str, env: &str) -> Rig {
    let github = format!(
        ", apiUrl: 'http://127.0.0.1:{}', tokenFile: token, cli: {{binary: ''}}",
        hub.port
    );
    let rig = Rig::with(&Wish {
        github: &github,
        env,
        ..Wish::default()
    });
    rig.write("home/.the-loop/token", &format!("{token}\n"));
    rig.up();
    rig
}

/// Everything that a person at this machine may see or keep.
fn traces(rig: &Rig) -> String {
    let log: Vec<String> = rig.log().iter().map(Value::to_string).collect();
    let trace = std::fs::read_to_string(rig.path("daemon.log")).unwrap_or_default();
    let status = rig
        .program(&["status", "--format", "json"])
        .output()
        .unwrap();
    format!(
        "{}{trace}{}{}",
        log.join("\n"),
        String::from_utf8_lossy(&status.stdout),
        rig.ok(&["config", "show"])
    )
}

#[test]
fn in57_in58_a_session_is_announced_once_and_comments_get_their_reactions() {
    let hub = Hub::new();
    let rig = rig(&hub, TOKEN);
    rig.start(1);
    let said = rig.event("session.announced", |_| true);
    assert_eq!(said["work_item"], "github:octo/repo#1");
    let announced = &hub.comments(1)[0];
    let join = format!("tmux -L {} attach -t =loop-github-octo-repo-1", rig.socket);
    assert!(announced.contains(&join), "{announced}");
    assert!(announced.ends_with(MARK), "{announced}");
    rig.event("reaction.added", |e| e["state"] == "completed");
    let call = &hub.asked()[0];
    assert_eq!(call.authorization, format!("Bearer {TOKEN}"));
    assert_eq!(call.version, "2022-11-28");
    for content in ["eyes", "hooray"] {
        let places = hub.reactions(content);
        assert_eq!(places.len(), 1, "{content}: {places:?}");
        assert!(
            places[0].starts_with("POST /repos/octo/repo/issues/comments/"),
            "{places:?}"
        );
    }
    // A comment on changed lines has its place elsewhere.
    let about = pull("x", 30, MAINTAINER, ("feature", "Closes #1"));
    rig.confirmed(&rig.accepted(
        "pull_request_review_comment",
        &inline(about, 9001, MAINTAINER, "why?"),
    ));
    rig.until("a reaction there", || {
        let places = hub.reactions("hooray");
        places
            .contains(&"POST /repos/octo/repo/pulls/comments/9001/reactions".to_owned())
            .then_some(())
    });
    // A respawn is no first spawn.
    rig.kill_agent(1);
    rig.confirmed(&rig.say(1, "are you there?"));
    rig.event("session.respawned", |_| true);
    // A stranger gets nothing at all.
    let before = hub.asked().len();
    let id = rig.say_as(1, STRANGER, "the-loop stop");
    rig.event("routing.dropped", |e| e["delivery_id"] == id.as_str());
    rig.confirmed(&rig.say(1, "and now?"));
    rig.until("the last reaction", || {
        (hub.reactions("hooray").len() == 4).then_some(())
    });
    let after = hub.asked().len();
    assert!(after - before <= 4, "{after} {before}");
    assert_eq!(hub.comments(1).len(), 1);
    assert!(!traces(&rig).contains(TOKEN));
    // What we wrote comes back by webhook, and is nobody's prompt.
    let own = comment(1, 7001, MAINTAINER, announced);
    let own = rig.accepted("issue_comment", &own);
    let refused = rig.event("routing.dropped", |e| e["delivery_id"] == own.as_str());
    assert_eq!(refused["reason"], "self-authored");
}

#[test]
fn in36_in58_two_commands_in_a_comment_get_one_reply_that_quotes_nothing() {
    let hub = Hub::new();
    let rig = rig(&hub, TOKEN);
    let order = "the-loop stop\nthe-loop pause\nsecret words";
    let id = rig.say(1, order);
    rig.event("control.ambiguous", |e| e["delivery_id"] == id.as_str());
    rig.until("the reply", || (hub.comments(1).len() == 1).then_some(()));
    let reply = &hub.comments(1)[0];
    assert!(
        reply.contains("more than one command (stop, pause)"),
        "{reply}"
    );
    assert!(!reply.contains("secret words"), "{reply}");
}

#[test]
fn in57_in59_what_github_refuses_is_told_and_decides_nothing() {
    let hub = Hub::new();
    let rig = rig(&hub, "not-the-token");
    rig.start(1);
    let failed = rig.event("session.announce_failed", |_| true);
    assert_eq!(failed["error"], "refused with status 401");
    rig.event("reaction.failed", |e| e["state"] == "completed");
    // Once a host and hour, however many calls.
    let refused = rig.events("tracker.auth_failed");
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["host"], "github.com");
    assert!(!traces(&rig).contains("not-the-token"));
    // The token is read at each call.
    rig.write("home/.the-loop/token", &format!("{TOKEN}\n"));
    hub.answers(502, "");
    hub.answers(429, "retry-after: 1\r\n");
    rig.confirmed(&rig.say(1, "try again"));
    rig.event("reaction.added", |e| e["state"] == "completed");
    // An item that is not there ends nothing.
    hub.answers(404, "");
    hub.answers(404, "");
    hub.answers(404, "");
    rig.start(2);
    let missing = rig.event("session.work_item_missing", |_| true);
    assert_eq!(missing["work_item"], "github:octo/repo#2");
    rig.confirmed(&rig.say(2, "still there?"));
}

#[test]
fn in57_without_a_credential_nothing_is_written_and_that_is_told_once() {
    let hub = Hub::new();
    let github = format!(
        ", apiUrl: 'http://127.0.0.1:{}', cli: {{binary: no-such-gh}}",
        hub.port
    );
    let rig = Rig::with(&Wish {
        github: &github,
        ..Wish::default()
    });
    rig.up();
    rig.start(1);
    let told = rig.event("tracker.error", |_| true);
    let words = told["error"].as_str().unwrap();
    assert!(
        words.starts_with("no credential: set GITHUB_TOKEN or GH_TOKEN"),
        "{words}"
    );
    rig.confirmed(&rig.say(1, "words"));
    rig.start(2);
    assert_eq!(rig.events("tracker.error").len(), 1);
    assert!(hub.asked().is_empty());
    assert!(rig.events("session.announce_failed").is_empty());
}

#[test]
fn in58_a_verb_says_on_the_ticket_what_was_asked_for() {
    let hub = Hub::new();
    let rig = rig(&hub, TOKEN);
    rig.start(1);
    rig.event("session.announced", |_| true);
    rig.ok(&["sessions", "pause", "github:octo/repo#1"]);
    let echo = hub.comments(1).pop().unwrap();
    assert!(
        echo.starts_with("the-loop pause\n\nIssued from the command line by "),
        "{echo}"
    );
    assert!(echo.ends_with(MARK), "{echo}");
    rig.ok(&["sessions", "resume", "github:octo/repo#1", "--no-comment"]);
    assert_eq!(hub.comments(1).len(), 2);
}

/// Waits until the daemon knows whose its token is.
fn knows_account(rig: &Rig) {
    rig.until("the account", || {
        let inbox = rusqlite::Connection::open(rig.root("local/inbox.db")).ok()?;
        let sql = "SELECT value FROM meta WHERE key = 'account/github.com'";
        inbox.query_row(sql, (), |row| row.get::<_, String>(0)).ok()
    });
}

#[test]
fn in22_in24_what_the_own_account_does_without_words_is_not_told() {
    let hub = Hub::of(MAINTAINER);
    let rig = rig(&hub, TOKEN);
    knows_account(&rig);
    rig.start(1);
    let words = ("feature", "Closes #1");
    let own_action = |id: &str| {
        let dropped = rig.event("routing.dropped", |e| e["delivery_id"] == id);
        assert_eq!(dropped["reason"], "own-action", "{dropped}");
    };
    own_action(&rig.accepted("pull_request", &pull("opened", 30, MAINTAINER, words)));
    own_action(&rig.accepted("pull_request", &pull("synchronize", 30, MAINTAINER, words)));
    // It belongs to the session all the same, and people's words do reach it.
    assert_eq!(rig.events("session.pr_linked").len(), 1);
    rig.confirmed(&rig.say(1, "words of a person"));
    // Another start remembers it without an answer.
    rig.kill();
    rig.write("home/.the-loop/token", "revoked\n");
    rig.up();
    let again = pull("reopened", 30, MAINTAINER, words);
    own_action(&rig.accepted("pull_request", &again));
}

#[test]
fn in25_di52_an_agent_that_may_answer_itself_is_stopped_and_does_not_release_itself() {
    let hub = Hub::of(MAINTAINER);
    let rig = rig_with(&hub, TOKEN, "THE_LOOP_DEMO_BUSY_MS=600000\n");
    knows_account(&rig);
    rig.start(1);
    for n in 1..5 {
        next_second(&rig);
        let id = rig.say(1, &format!("maybe its own words {n}"));
        rig.confirmed(&id);
        let queued = rig.event("dispatch.queued", |e| e["delivery_id"] == id.as_str());
        assert_eq!(queued["suspect_self"], true, "{queued}");
    }
    next_second(&rig);
    let fifth = rig.say(1, "and once more");
    let parked = rig.event("limit.parked", |_| true);
    assert_eq!(parked["reason"], "self-conversation", "{parked}");
    rig.event("delivery.held", |e| e["delivery_id"] == fifth.as_str());
    next_second(&rig);
    let order = rig.say(1, "the-loop resume");
    let refused = rig.event("control.rejected", |e| e["delivery_id"] == order.as_str());
    assert_eq!(refused["reason"], "self-control");
    // A shell may release it.
    rig.ok(&["sessions", "resume", "github:octo/repo#1", "--no-comment"]);
    rig.confirmed(&fifth);
}

/// Waits for the second after this one: GitHub's times are whole seconds, and what is said in the second in
/// which a turn began is not known to be said in it.
fn next_second(rig: &Rig) {
    let began = jiff::Timestamp::now().as_second();
    let over = || jiff::Timestamp::now().as_second() > began;
    rig.until("the next second", || over().then_some(()));
}

#[test]
fn in25_a_person_s_review_of_many_comments_is_no_conversation_with_itself() {
    let hub = Hub::of(MAINTAINER);
    let rig = rig_with(&hub, TOKEN, "THE_LOOP_DEMO_BUSY_MS=600000\n");
    knows_account(&rig);
    rig.start(1);
    let about = || pull("x", 30, MAINTAINER, ("feature", "Closes #1"));
    for n in 0..6 {
        // Written before the turn in which they arrive.
        let mut said = inline(about(), 9100 + n, MAINTAINER, &format!("remark {n}"));
        let before = jiff::Timestamp::now() - jiff::SignedDuration::from_mins(1);
        said["comment"]["created_at"] = before.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
        rig.confirmed(&rig.accepted("pull_request_review_comment", &said));
    }
    assert!(rig.events("limit.parked").is_empty());
    let queued = rig.events("dispatch.queued");
    assert!(
        queued.iter().all(|e| e.get("suspect_self").is_none()),
        "{queued:#?}"
    );
}
