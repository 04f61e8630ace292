//! `sessions attach` (SE-30).

use the_loop_core::ids::WorkItemRef;
use the_loop_core::probe::TmuxState;
use the_loop_core::record::SessionRecord;
use the_loop_core::session::SessionStatus;

use super::view::Panes;
use crate::ops::desk::{Desk, bad_ref, parse_ref};
use crate::ops::error::{Kind, OpError};

/// What to become, and what to say before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// The command as a person types it.
    pub command: String,
    /// Program and arguments.
    pub argv: Vec<String>,
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
        TmuxState::Unknown => {
            let made = OpError::new(Kind::Failed, format!("{wanted}: tmux does not answer"));
            return Err(made.hint("is tmux installed? see routing.tmux.binary"));
        }
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
    let mut argv = server.attach_argv(&target, read_only);
    if is_same_server(inside, server.socket()) {
        // A client inside of a client would nest; the one that is there goes to the session.
        if let Some(verb) = argv.iter_mut().find(|word| *word == "attach-session") {
            "switch-client".clone_into(verb);
        }
    }
    Ok(Attach {
        command,
        argv,
        note,
    })
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

/// `TMUX` is `<socket path>,<pid>,<session>`; the socket's file bears the server's name.
fn is_same_server(inside: Option<&str>, socket: &str) -> bool {
    let name = if socket.is_empty() { "default" } else { socket };
    inside
        .and_then(|value| value.split(',').next())
        .and_then(|path| path.rsplit('/').next())
        .is_some_and(|here| here == name)
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
        assert!(is_same_server(
            Some("/tmp/tmux-0/the-loop,12,0"),
            "the-loop"
        ));
        assert!(is_same_server(Some("/tmp/tmux-0/default,12,0"), ""));
        assert!(!is_same_server(
            Some("/tmp/tmux-0/default,12,0"),
            "the-loop"
        ));
        assert!(!is_same_server(None, "the-loop"));
    }
}
