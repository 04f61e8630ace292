//! `sessions attach` (SE-30).

use std::time::Duration;

use camino::Utf8Path;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::probe::TmuxState;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;

use super::view::Panes;
use crate::ops::desk::{Desk, bad_ref, parse_ref};
use crate::ops::error::{Kind, OpError};
use crate::process::NoAnswer;

/// Longest wait for tmux before somebody at a terminal is told that it does not answer.
const TMUX_WITHIN: Duration = Duration::from_secs(5);

/// What to become, and what to say before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// The command as a person types it.
    pub command: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The caller's own client is switched, so that no terminal is needed.
    pub switches: bool,
    /// Why it is read-only though nobody asked for that.
    pub note: Option<String>,
}

/// The pull request that `REF|N|#N` names for an item: a bare number means the item's own repository.
pub fn pull_request(item: &WorkItemRef, text: &str) -> Result<WorkItemRef, OpError> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return parse_ref(text);
    }
    let number = digits.parse().unwrap_or(0);
    WorkItemRef::new(item.provider(), item.repo().clone(), number).map_err(|e| bad_ref(text, &e))
}

/// Finds what to attach to. `inside` is the value of `TMUX`, when the caller sits in a tmux client.
pub fn attach(
    desk: &Desk,
    item: &WorkItemRef,
    pull_request: Option<&WorkItemRef>,
    read_only: bool,
    inside: Option<&str>,
) -> Result<Attach, OpError> {
    let desk = &desk.with_tmux_within(TMUX_WITHIN);
    let wanted = pull_request.unwrap_or(item);
    let mut panes = Panes::new(desk);
    let record = record(desk, item, pull_request)?;
    let Some(record) = record else {
        return Err(kept_terminal(desk, wanted));
    };
    let Some(target) = record.target() else {
        let made = OpError::not_found(format!("{wanted}: it has no tmux session yet"));
        return Err(made.hint("the-loop sessions list"));
    };
    match panes.state(&record) {
        TmuxState::Live | TmuxState::Dead => {}
        TmuxState::Absent => {
            let made = OpError::not_found(format!("{wanted}: there is no tmux session {target}"));
            let hint = if record.status.is_live() {
                "its next delivery brings it back, or: the-loop sessions start"
            } else {
                "the-loop events --work-item shows what became of it"
            };
            return Err(made.hint(hint));
        }
        TmuxState::Unknown => return Err(silent(wanted, panes.silence(&record))),
    }
    let forced = matches!(
        record.status,
        SessionStatus::Starting | SessionStatus::Closed
    );
    let server = panes.server(&record);
    let note =
        (forced && !read_only).then(|| format!("{wanted} is {}: watching only", record.status));
    let read_only = read_only || forced;
    let command = server.attach_command(&target, read_only);
    let switches = is_same_server(desk, inside, server.socket());
    // A client inside of a client would nest; the one that is there goes to the session.
    let argv = if switches {
        server.switch_argv(&target, read_only)
    } else {
        server.attach_argv(&target, read_only)
    };
    Ok(Attach {
        command,
        argv,
        switches,
        note,
    })
}

/// tmux said nothing: it is not there, or it hangs.
fn silent(item: &WorkItemRef, why: Option<NoAnswer>) -> OpError {
    let (words, hint) = match why {
        Some(NoAnswer::NotStarted(why)) => (
            format!("{item}: tmux cannot be run: {why}"),
            "install tmux, or name the program in routing.tmux.binary",
        ),
        Some(why @ (NoAnswer::TimedOut(_) | NoAnswer::Signal(_))) => (
            format!("{item}: tmux does not answer: {why}"),
            "the session may live all the same; try again, and look at what the tmux server does",
        ),
        None => (
            format!("{item}: tmux does not answer"),
            "the session may live all the same; try again",
        ),
    };
    OpError::new(Kind::Failed, words).hint(hint)
}

fn record(
    desk: &Desk,
    item: &WorkItemRef,
    pull_request: Option<&WorkItemRef>,
) -> Result<Option<SessionRecord>, OpError> {
    let found = desk.registry().get(item);
    let found =
        found.map_err(|e| OpError::failed(format!("{item}: cannot read its record"), &e))?;
    Ok(match pull_request {
        None => found.map(|found| found.record),
        Some(pull_request) => {
            found.and_then(|found| found.record.endpoint(&pull_request.key()).cloned())
        }
    })
}

/// Without a record only a terminal that was kept can be left.
fn kept_terminal(desk: &Desk, item: &WorkItemRef) -> OpError {
    let made = OpError::not_found(format!("{item}: no session is known"));
    let target = item.slug().target();
    let tmux = desk.tmux();
    match tmux.probe(&target) {
        TmuxState::Live | TmuxState::Dead => {
            let command = tmux.attach_command(&target, true);
            made.hint(format!("its terminal is kept: {command}"))
        }
        TmuxState::Absent | TmuxState::Unknown => made.hint("the-loop sessions list"),
    }
}

/// Does `TMUX`, which is `<socket path>,<pid>,<session>`, name the server that we would attach to? tmux puts
/// sockets into `<TMUX_TMPDIR, else /tmp>/tmux-<uid>/`, each under its server's name.
fn is_same_server(desk: &Desk, inside: Option<&str>, socket: &str) -> bool {
    let base = desk.world.var("TMUX_TMPDIR").unwrap_or("/tmp");
    let base = Utf8Path::new(base);
    let real = desk.world.disk.canonicalize(base);
    is_socket_of(inside, socket, &[base, real.as_deref().unwrap_or(base)])
}

fn is_socket_of(inside: Option<&str>, socket: &str, bases: &[&Utf8Path]) -> bool {
    let name = if socket.is_empty() { "default" } else { socket };
    let path = inside.and_then(|value| value.rsplitn(3, ',').nth(2));
    path.map(Utf8Path::new).is_some_and(|path| {
        let base = path.parent().and_then(Utf8Path::parent);
        path.file_name() == Some(name) && base.is_some_and(|base| bases.contains(&base))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se30_a_bare_number_means_the_items_own_repository() {
        let item: WorkItemRef = "github:octo/repo#15".parse().unwrap();
        assert_eq!(
            pull_request(&item, "#16").unwrap().to_string(),
            "github:octo/repo#16"
        );
        assert_eq!(
            pull_request(&item, "github:other/repo#2")
                .unwrap()
                .to_string(),
            "github:other/repo#2"
        );
        assert!(pull_request(&item, "0").is_err());
        assert!(pull_request(&item, "x").is_err());
    }

    #[test]
    fn se30_a_client_of_the_same_server_is_switched() {
        let same = |inside, socket| is_socket_of(inside, socket, &["/tmp".into()]);
        assert!(same(Some("/tmp/tmux-0/the-loop,12,0"), "the-loop"));
        assert!(same(Some("/tmp/tmux-0/default,12,0"), ""));
        assert!(!same(Some("/tmp/tmux-0/default,12,0"), "the-loop"));
        assert!(!same(Some("/tmp/other/tmux-0/the-loop,12,0"), "the-loop"));
        assert!(!same(Some("the-loop"), "the-loop"));
        assert!(!same(None, "the-loop"));
    }

    #[test]
    fn se30_a_tmux_that_is_missing_and_one_that_hangs_are_told_apart() {
        let item: WorkItemRef = "github:octo/repo#15".parse().unwrap();
        let missing = silent(&item, Some(NoAnswer::NotStarted("no such file".into())));
        assert!(missing.message.contains("cannot be run"), "{missing:?}");
        let hung = silent(&item, Some(NoAnswer::TimedOut(TMUX_WITHIN)));
        assert!(hung.message.contains("no answer within 5s"), "{hung:?}");
    }
}
