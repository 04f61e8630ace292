//! What tmux answered about a name, and what each answer licenses (DI-13, DI-16).

/// The oldest tmux that is supported, as major and minor version (SE-87).
pub const TMUX_OLDEST: (u32, u32) = (3, 2);

/// Is what `tmux -V` printed the name of a version older than [`TMUX_OLDEST`]? `tmux 3.1c` is; a version that
/// cannot be read, such as `tmux master`, is taken for a new one.
pub fn is_old_tmux(printed: &str) -> bool {
    let number = printed.trim_start_matches(|c: char| !c.is_ascii_digit());
    let Some((major, rest)) = number.split_once('.') else {
        return false;
    };
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    match (major.parse(), digits.map(str::parse)) {
        (Ok(major), Some(Ok(minor))) => (major, minor) < TMUX_OLDEST,
        (_, _) => false,
    }
}

/// The four answers to "what holds this name?" (seed 004, AC1). They come from exit status and format
/// output, never from wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TmuxState {
    /// It exists and some pane is not dead.
    Live,
    /// It exists and every pane is dead.
    Dead,
    /// tmux answered: there is no such session.
    Absent,
    /// tmux did not answer, or not in a way that can be read. Licenses no harm.
    Unknown,
}

impl TmuxState {
    /// All answers, for tests that walk them.
    pub const ALL: [Self; 4] = [Self::Live, Self::Dead, Self::Absent, Self::Unknown];

    /// The word in events and output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Dead => "dead",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }

    /// The proof that a session may be cleared away; only a `dead` answer gives one.
    pub fn proved_dead(self) -> Option<ProvedDead> {
        match self {
            Self::Dead => Some(ProvedDead(())),
            Self::Live | Self::Absent | Self::Unknown => None,
        }
    }
}

/// Proof that every pane of a session was seen dead. Whatever kills a session to free its name takes
/// one; it can only be had from [`TmuxState::proved_dead`] (P4, DI-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProvedDead(());

/// When a name is looked at before a spawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Before `new-session` was tried.
    Before,
    /// After it answered that the name is taken.
    AfterCollision,
}

/// May the name be used for a spawn? The table of DI-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clearance {
    /// `new-session` may be tried.
    Go,
    /// Clear the dead session first, and verify.
    ClearFirst(ProvedDead),
    /// Something lives there, or may: it is not touched.
    Occupied,
}

/// What an answer licenses at a moment.
pub fn clearance(state: TmuxState, moment: Moment) -> Clearance {
    match (state, moment) {
        // Not knowing does not stop a first try: `new-session` itself is the authority. Once it has
        // said that the name is taken, not knowing means hands off.
        (TmuxState::Absent, Moment::Before | Moment::AfterCollision)
        | (TmuxState::Unknown, Moment::Before) => Clearance::Go,
        (TmuxState::Dead, Moment::Before | Moment::AfterCollision) => {
            Clearance::ClearFirst(ProvedDead(()))
        }
        (TmuxState::Live, Moment::Before | Moment::AfterCollision)
        | (TmuxState::Unknown, Moment::AfterCollision) => Clearance::Occupied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se87_a_tmux_before_3_2_is_old() {
        for old in ["tmux 3.1c", "tmux 2.8", "tmux 1.6", "tmux 3.0a"] {
            assert!(is_old_tmux(old), "{old}");
        }
        for fine in [
            "tmux 3.2",
            "tmux 3.3a",
            "tmux 3.10",
            "tmux next-3.6",
            "tmux 4.0",
            "tmux master",
            "",
        ] {
            assert!(!is_old_tmux(fine), "{fine}");
        }
    }

    #[test]
    fn di16_only_a_dead_answer_licenses_a_kill() {
        for moment in [Moment::Before, Moment::AfterCollision] {
            for state in TmuxState::ALL {
                let may_kill = matches!(clearance(state, moment), Clearance::ClearFirst(_));
                assert_eq!(may_kill, state == TmuxState::Dead, "{state:?} {moment:?}");
                assert_eq!(state.proved_dead().is_some(), state == TmuxState::Dead);
            }
        }
    }

    #[test]
    fn di16_unknown_lets_new_session_decide_once() {
        assert_eq!(clearance(TmuxState::Unknown, Moment::Before), Clearance::Go);
        assert_eq!(
            clearance(TmuxState::Unknown, Moment::AfterCollision),
            Clearance::Occupied
        );
    }
}
