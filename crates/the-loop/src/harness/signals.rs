//! States as an operator declared them (DI-33), asked before a harness's own code.

use std::time::Duration;

use the_loop_core::config::pattern::Signal;
use the_loop_core::confirm::{AgentState, WaitingKind};

use super::adapter::Adapter;
use super::hook::HookLine;
use super::kind::{Kind, Shown};
use super::screen::ScreenView;

/// What a source without times of its own says now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing: its last word stands.
    Nothing,
    /// What it said before is over, and it says nothing else.
    Over,
    /// The state, and how long that must have been so before it counts.
    State(AgentState, Duration),
}

impl From<Option<Shown>> for Told {
    fn from(shown: Option<Shown>) -> Self {
        shown.map_or(Self::Nothing, |(state, after)| Self::State(state, after))
    }
}

impl Adapter {
    /// What a hook says about the state; `None` when it says nothing.
    pub fn hook_state(&self, line: &HookLine) -> Option<AgentState> {
        let declared = self.signalled(|signal| signal.hook() == Some(line.hook.as_str()));
        declared.or_else(|| self.kind().hook_state(line))
    }

    /// What the pane's title says.
    pub fn title_told(&self, title: &str) -> Told {
        let matched = self.signalled(|signal| match signal {
            Signal::Title(pattern) => pattern.is_match(title),
            Signal::Hook(_) | Signal::Screen(_) => false,
        });
        let declares = self.declares(|signal| matches!(signal, Signal::Title(_)));
        Self::told(matched, declares, self.kind().title_state(title))
    }

    /// What the screen says when no known dialog is in the way.
    pub fn screen_told(&self, screen: &ScreenView) -> Told {
        let declares = self.declares(|signal| matches!(signal, Signal::Screen(_)));
        let matched = declares.then(|| screen.text()).and_then(|text| {
            self.signalled(|signal| match signal {
                Signal::Screen(pattern) => pattern.is_match(&text),
                Signal::Hook(_) | Signal::Title(_) => false,
            })
        });
        // A dialog that was answered is over, also where nothing else shows on the screen.
        let dialogs = !self.declaration().dialogs.is_empty();
        let declares = declares || (dialogs && self.kind() == Kind::Declared);
        Self::told(matched, declares, self.kind().screen_state(screen))
    }

    /// A declared state, else what the harness's own code sees. A declared source that matches nothing
    /// has nothing to say any more: without that, an answered question would be waited on for ever.
    fn told(matched: Option<AgentState>, declares: bool, own: Option<Shown>) -> Told {
        match (matched, own) {
            (Some(state), _) => Told::State(state, Duration::ZERO),
            (None, Some((state, after))) => Told::State(state, after),
            (None, None) if declares => Told::Over,
            (None, None) => Told::Nothing,
        }
    }

    /// The first declared state whose signal fits; waiting counts more than working, and that more than
    /// an input line that stays on the screen meanwhile.
    fn signalled(&self, fits: impl Fn(&Signal) -> bool) -> Option<AgentState> {
        let states = [
            AgentState::Waiting(WaitingKind::Dialog),
            AgentState::Working,
            AgentState::Idle,
            AgentState::Ready,
        ];
        let signals = self.declaration().signals.all().into_iter();
        signals
            .zip(states)
            .find_map(|(signal, state)| signal.is_some_and(&fits).then_some(state))
    }

    fn declares(&self, is: impl Fn(&Signal) -> bool) -> bool {
        let mut signals = self.declaration().signals.all().into_iter().flatten();
        signals.any(is)
    }
}
