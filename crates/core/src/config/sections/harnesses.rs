//! `routing.harnesses.<name>` (DI-33). A field that is absent leaves a built-in harness as it is.

use std::collections::BTreeMap;

use crate::config::key::{Entry, Kind, choice, section};
use crate::config::shape;

choice! {
    /// How the id of a conversation is known.
    SessionIdBy = None {
        /// We choose it: `{session_id}` in `spawn`.
        Assigned = "assigned",
        /// From the name of a file that the harness makes.
        File = "file",
        /// From the screen.
        Screen = "screen",
        /// Not at all: no conversation of its own can be continued.
        None = "none",
    }
}

section! {
    /// `routing.harnesses.<name>`: a program that works as an agent.
    Harness {
        /// Its program: a name on the pane's `PATH`, or an absolute path. Required for one that is not built in.
        command: Option<String> = None, Kind::Text(shape::WORD), New;
        /// Arguments that make it print its version; `[--version]` when absent.
        version_args: Option<Vec<String>> = None, Kind::List(shape::ARGUMENT), New;
        /// Arguments of a new conversation, each one word: `{session_id}`, `{settings_file}`, `{mail_dir}` and `{cwd}` are filled in.
        spawn: Option<Vec<String>> = None, Kind::List(shape::ARGUMENT), New;
        /// Arguments that continue a conversation, filled in likewise; without them it cannot.
        resume: Option<Vec<String>> = None, Kind::List(shape::ARGUMENT), New;
        /// Words that carry a first prompt, put last: `["{prompt}"]`. Without them it is pasted when the harness is ready.
        prompt_args: Option<Vec<String>> = None, Kind::List(shape::ARGUMENT), New;
        /// How the id of a conversation is known; `none` when absent.
        session_id: Option<SessionIdBy> = None, Kind::Choice(SessionIdBy::WORDS), New;
        /// For `file` a path with `*`, the last of which stands for the id; for `screen` an expression with one group.
        session_id_pattern: Option<String> = None, Kind::Text(shape::LINE), New;
        /// How its states show.
        signals: HarnessSignals = HarnessSignals::default(), Kind::Section(HarnessSignals::keys), New;
        /// How it shows that a delivery was taken: `hook:NAME`, `transcript`, `screen:EXPRESSION` or `none`. The last two prove nothing.
        confirm: Option<String> = None, Kind::Text(shape::WORD), New;
        /// Its transcript, a file of lines: a path in which `{session_id}`, `{cwd}` and `*` are filled in.
        transcript: Option<String> = None, Kind::Text(shape::LINE), New;
        /// An expression that matches the screen when its input line is empty. Without it a draft is protected by the quiet time alone.
        composer_empty: Option<String> = None, Kind::Text(shape::WORD), New;
        /// Dialogs that it may show; nothing is pasted into one.
        dialogs: Option<Vec<HarnessDialog>> = None, Kind::Rows { keys: HarnessDialog::keys, max: 32 }, New;
        /// Lines of a prompt that is pasted as it is, not as a pointer to a file; 3 when absent.
        inline_max_lines: Option<u32> = None, Kind::Int { min: 1, max: 1000 }, New;
        /// Characters of one; 700 when absent.
        inline_max_chars: Option<u32> = None, Kind::Int { min: 100, max: 100_000 }, New;
        /// Milliseconds between a paste and its submit; 50 when absent.
        submit_delay_ms: Option<u32> = None, Kind::Int { min: 50, max: 10_000 }, New;
        /// Variables of its pane that are no secrets; `env.file` goes over them.
        env: Option<BTreeMap<String, String>> = None, Kind::Map { name: "variable", keys: shape::PANE_VARIABLE, value: Entry::Text(shape::VALUE), max: 64 }, New;
    }
}

section! {
    /// `routing.harnesses.<name>.signals`: each `hook:NAME`, `title:EXPRESSION` or `screen:EXPRESSION`.
    HarnessSignals {
        /// It takes input. With neither this nor `idle`, a process that lives is taken for one that does.
        ready: Option<String> = None, Kind::Text(shape::WORD), New;
        /// A turn is in work.
        working: Option<String> = None, Kind::Text(shape::WORD), New;
        /// It waits for a person; nothing is pasted meanwhile.
        waiting: Option<String> = None, Kind::Text(shape::WORD), New;
        /// Its turn has ended.
        idle: Option<String> = None, Kind::Text(shape::WORD), New;
    }
}

section! {
    /// `routing.harnesses.<name>.dialogs[]`.
    HarnessDialog {
        /// Its name; `permission`, `question`, `usage-limit` and `login` are kinds of their own. Required.
        name: String = String::new(), Kind::Text(shape::HARNESS), New;
        /// An expression that matches the screen while it is open. Required.
        screen: String = String::new(), Kind::Text(shape::WORD), New;
    }
}
