//! The status of a session and its total transition function (ST-41 to ST-43).

use std::fmt;

/// Where a session stands on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionStatus {
    /// Written down before tmux is asked; finished or taken back by a probe.
    Starting,
    /// Its target was seen alive.
    Active,
    /// Alive, and nothing is delivered into it.
    Paused,
    /// Over; still listed and attachable, never a target.
    Closed,
}

impl SessionStatus {
    /// All four, in the order of their life.
    pub const ALL: [Self; 4] = [Self::Starting, Self::Active, Self::Paused, Self::Closed];

    /// The word in the record and in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Closed => "closed",
        }
    }

    /// Reads the record's word; `None` for any other.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Does a session of this status stand in the way of another one for its item (ST-41)?
    pub fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Active | Self::Paused => true,
            Self::Closed => false,
        }
    }
}

impl fmt::Display for SessionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What may happen to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// A spawn or respawn is about to ask tmux.
    Spawn,
    /// A conversation that exists already is bound to the item: `sessions register`, or a live
    /// session of ours that lost its record. `force` replaces a live one.
    Bind {
        /// Replace a live record.
        force: bool,
    },
    /// The target of a `starting` session was probed live. `previous` is what its record had been.
    Alive {
        /// Status before the spawn; `None` when there was no record.
        previous: Option<SessionStatus>,
    },
    /// The target of a `starting` session was probed dead or absent, or the spawn failed.
    NotAlive {
        /// Status before the spawn; `None` when there was no record.
        previous: Option<SessionStatus>,
    },
    /// Nothing more is to be delivered for now.
    Pause,
    /// Deliveries go on.
    Resume,
    /// The session ends; its record stays.
    Close,
}

/// What an event makes of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The record has this status now.
    Status(SessionStatus),
    /// The record goes: the spawn that made it came to nothing.
    Removed,
    /// The event does not fit; nothing changes.
    Refused,
}

/// What `event` makes of a session with status `now`; `None` means that the item has no record.
///
/// A session that was paused before it was spawned again is paused when it lives (ST-43), and an
/// unknown probe is no event at all: it leaves everything as it is (ST-42).
pub fn next(now: Option<SessionStatus>, event: SessionEvent) -> Next {
    use SessionStatus::{Active, Closed, Paused, Starting};
    match (event, now) {
        (SessionEvent::Spawn, None | Some(Active | Paused | Closed)) => Next::Status(Starting),
        (SessionEvent::Bind { .. }, None | Some(Closed))
        | (SessionEvent::Bind { force: true }, Some(Starting | Active | Paused))
        | (SessionEvent::Resume, Some(Paused)) => Next::Status(Active),
        (SessionEvent::Alive { previous }, Some(Starting)) => match previous {
            Some(Paused) => Next::Status(Paused),
            None | Some(Starting | Active | Closed) => Next::Status(Active),
        },
        (SessionEvent::NotAlive { previous }, Some(Starting)) => match previous {
            Some(status @ (Active | Paused | Closed)) => Next::Status(status),
            // A spawn never begins from `starting`, so such a record says nothing that was true.
            None | Some(Starting) => Next::Removed,
        },
        (SessionEvent::Pause, Some(Starting | Active)) => Next::Status(Paused),
        (SessionEvent::Close, Some(Starting | Active | Paused)) => Next::Status(Closed),
        (SessionEvent::Spawn, Some(Starting))
        | (SessionEvent::Bind { force: false }, Some(Starting | Active | Paused))
        | (
            SessionEvent::Alive { .. } | SessionEvent::NotAlive { .. },
            None | Some(Active | Paused | Closed),
        )
        | (SessionEvent::Pause, None | Some(Paused | Closed))
        | (SessionEvent::Resume, None | Some(Starting | Active | Closed))
        | (SessionEvent::Close, None | Some(Closed)) => Next::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::SessionStatus::{Active, Closed, Paused, Starting};
    use super::*;

    #[test]
    fn st41_closed_alone_is_not_live() {
        let live: Vec<_> = SessionStatus::ALL
            .into_iter()
            .filter(|s| s.is_live())
            .collect();
        assert_eq!(live, [Starting, Active, Paused]);
        for status in SessionStatus::ALL {
            assert_eq!(SessionStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(SessionStatus::parse("Active"), None);
    }

    #[test]
    fn st41_a_live_record_is_bound_again_only_by_force() {
        for now in [Starting, Active, Paused] {
            assert_eq!(
                next(Some(now), SessionEvent::Bind { force: false }),
                Next::Refused
            );
            let forced = next(Some(now), SessionEvent::Bind { force: true });
            assert_eq!(forced, Next::Status(Active));
        }
        for now in [None, Some(Closed)] {
            let bound = next(now, SessionEvent::Bind { force: false });
            assert_eq!(bound, Next::Status(Active));
        }
    }

    #[test]
    fn st42_a_starting_session_becomes_active_or_goes_back() {
        let alive = |previous| next(Some(Starting), SessionEvent::Alive { previous });
        let gone = |previous| next(Some(Starting), SessionEvent::NotAlive { previous });
        assert_eq!(alive(None), Next::Status(Active));
        assert_eq!(alive(Some(Closed)), Next::Status(Active));
        assert_eq!(gone(None), Next::Removed);
        for previous in [Active, Paused, Closed] {
            assert_eq!(gone(Some(previous)), Next::Status(previous));
        }
    }

    #[test]
    fn st43_a_pause_survives_a_respawn() {
        assert_eq!(
            next(Some(Paused), SessionEvent::Spawn),
            Next::Status(Starting)
        );
        let previous = Some(Paused);
        let alive = next(Some(Starting), SessionEvent::Alive { previous });
        assert_eq!(alive, Next::Status(Paused));
    }

    #[test]
    fn every_status_has_an_answer_to_every_event() {
        let events = [
            SessionEvent::Spawn,
            SessionEvent::Bind { force: false },
            SessionEvent::Bind { force: true },
            SessionEvent::Alive { previous: None },
            SessionEvent::NotAlive { previous: None },
            SessionEvent::Pause,
            SessionEvent::Resume,
            SessionEvent::Close,
        ];
        let mut rows = Vec::new();
        for event in events {
            for now in [
                None,
                Some(Starting),
                Some(Active),
                Some(Paused),
                Some(Closed),
            ] {
                rows.push(next(now, event));
            }
        }
        let refused = rows.iter().filter(|n| **n == Next::Refused).count();
        assert_eq!((rows.len(), refused), (40, 21));
    }
}
