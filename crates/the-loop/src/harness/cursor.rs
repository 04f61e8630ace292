//! Cursor's agent for the terminal. It could not be run where this was written: everything here follows
//! its published command line, and what is not published there is not relied on.

use the_loop_core::config::pattern::Pattern;
use the_loop_core::confirm::WaitingKind;

use super::declaration::{Declaration, IdSource, KnownDialog, Program, Shows, words};

/// The declaration. There is no way to choose the id of a conversation and none to learn it: one is
/// registered by the id that a person got from the program (`sessions register`).
pub fn declaration() -> Declaration {
    Declaration {
        version_args: words(&["--version"]),
        resume: words(&["--resume", "{session_id}"]),
        prompt_args: words(&["{prompt}"]),
        session_id: IdSource::Never,
        dialogs: dialogs(),
        cannot: words(&[
            "the id of a conversation that it begins is not known: only a registered one is continued",
            "it does not prove that it took a prompt: a delivery ends as pasted",
            "what it is doing is not seen, and a draft in it is protected by the quiet time alone",
        ]),
        ..Declaration::bare("cursor", Program::Named("cursor-agent".to_owned()))
    }
}

/// Words that its questions are known to show. A question that is not among them is not seen.
fn dialogs() -> Vec<KnownDialog> {
    let dialogs = [
        (
            "permission",
            WaitingKind::Permission,
            r"(?i)waiting for approval|run this command\?|\(y\) \(enter\)|skip \(esc or n\)",
        ),
        (
            "trust",
            WaitingKind::Dialog,
            r"(?i)(do you )?trust (this|the contents of this) (workspace|folder|directory)",
        ),
        (
            "login",
            WaitingKind::Login,
            r"(?i)press any key to (log|sign) in",
        ),
    ];
    let made = dialogs.into_iter().filter_map(|(name, kind, shows)| {
        Some(KnownDialog {
            name: name.to_owned(),
            kind,
            shows: Shows::Pattern(Pattern::parse(shows).ok()?),
        })
    });
    made.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::adapter::Adapter;
    use crate::harness::screen::ScreenView;
    use crate::harness::testing::at;

    #[test]
    fn di33_cursor_can_be_registered_and_says_what_it_cannot_do() {
        let cursor = Adapter::cursor();
        assert!(cursor.can_resume());
        assert!(!cursor.assigns_id() && !cursor.learns_id());
        assert!(!cursor.declaration().confirms.is_proof());
        assert_eq!(cursor.declaration().cannot.len(), 3);
    }

    #[test]
    fn di27_its_questions_are_dialogs() {
        assert_eq!(declaration().dialogs.len(), 3, "every expression compiles");
        for (rows, name) in [
            ("Waiting for approval...\n", "permission"),
            ("  Run this command?\n", "permission"),
            ("Do you trust this workspace?\n", "trust"),
        ] {
            let screen = ScreenView::parse(rows, "", false, at(0));
            let adapter = Adapter::cursor();
            let found = adapter.known_dialog(&screen).map(|d| d.name.as_str());
            assert_eq!(found, Some(name));
        }
    }
}
