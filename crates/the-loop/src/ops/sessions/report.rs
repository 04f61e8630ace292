//! What acting verbs say: the op report (SE-11) and its lines.

use serde::Serialize;
use the_loop_core::ids::WorkItemRef;

/// The report of one command.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The verb.
    pub verb: &'static str,
    /// Every item went well.
    pub ok: bool,
    /// Nothing was changed, only told.
    pub dry_run: bool,
    /// The exit code.
    pub exit_code: u8,
    /// What deserves a look.
    pub warnings: Vec<String>,
    /// What became of a limit on the whole machine; `null` when there was none to release.
    pub machine: Option<MachineReport>,
    /// One for each item, in the order given.
    pub items: Vec<ItemReport>,
}

/// A limit on the whole machine that was taken away.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineReport {
    /// It is.
    pub released: bool,
    /// Which limit it was, a word of `limit.parked`'s list.
    pub was: &'static str,
    /// What was printed.
    pub message: String,
}

/// What became of one item.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemReport {
    /// The item in its recorded spelling.
    #[serde(rename = "ref")]
    pub item: WorkItemRef,
    /// There was something to act on.
    pub found: bool,
    /// It went well.
    pub ok: bool,
    /// What was done, a word of `control.command`'s list.
    pub effect: Option<String>,
    /// Its agent lived.
    pub was_live: bool,
    /// Its harness.
    pub harness: Option<String>,
    /// Its tmux session.
    pub tmux_target: Option<String>,
    /// The command that attaches.
    pub attach: Option<String>,
    /// Sessions of pull requests.
    pub endpoints: Vec<EndpointReport>,
    /// Checkouts.
    pub workspaces: Vec<WorkspaceReport>,
    /// Names of saved work.
    pub saved: Vec<String>,
    /// Pieces of memory removed.
    pub removed: Vec<String>,
    /// Pieces of memory kept.
    pub kept: Vec<String>,
    /// Deliveries that will not be worked any more.
    pub dropped_deliveries: u64,
    /// The ticket was told; `null` for verbs that never tell it.
    pub commented: Option<bool>,
    /// What failed.
    pub errors: Vec<String>,
    /// What was printed.
    pub messages: Vec<Message>,
    /// Its exit code.
    #[serde(skip)]
    pub exit_code: u8,
}

/// A pull request's session.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointReport {
    /// The pull request.
    #[serde(rename = "ref")]
    pub item: WorkItemRef,
    /// Its harness.
    pub harness: String,
    /// It was ended.
    pub ended: bool,
}

/// A checkout.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceReport {
    /// Where it is or was.
    pub path: String,
    /// It is gone.
    pub removed: bool,
}

/// A printed line.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// `stdout` or `stderr`.
    pub stream: Stream,
    /// The line.
    pub text: String,
}

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl ItemReport {
    /// Nothing happened yet.
    pub fn new(item: &WorkItemRef) -> Self {
        Self {
            item: item.clone(),
            found: false,
            ok: true,
            effect: None,
            was_live: false,
            harness: None,
            tmux_target: None,
            attach: None,
            endpoints: Vec::new(),
            workspaces: Vec::new(),
            saved: Vec::new(),
            removed: Vec::new(),
            kept: Vec::new(),
            dropped_deliveries: 0,
            commented: None,
            errors: Vec::new(),
            messages: Vec::new(),
            exit_code: 0,
        }
    }

    /// A line of the answer.
    pub fn say(&mut self, text: impl Into<String>) {
        self.messages.push(Message {
            stream: Stream::Stdout,
            text: text.into(),
        });
    }

    /// A line beside the answer.
    pub fn aside(&mut self, text: impl Into<String>) {
        self.messages.push(Message {
            stream: Stream::Stderr,
            text: text.into(),
        });
    }

    /// `error: <ref>: …`; the item did not go well.
    pub fn error(&mut self, words: impl Into<String>) {
        let words = words.into();
        self.aside(format!("error: {}: {words}", self.item));
        self.errors.push(words);
        self.fail();
    }

    /// `hint: …`.
    pub fn hint(&mut self, words: &str) {
        self.aside(format!("hint: {words}"));
    }

    /// Exit code 1.
    pub fn fail(&mut self) {
        self.ok = false;
        self.exit_code = self.exit_code.max(1);
    }

    /// Takes a failure over: message, causes and hints as lines.
    pub fn take(&mut self, error: &crate::ops::error::OpError) {
        let prefix = format!("{}: ", self.item);
        let message = error
            .message
            .strip_prefix(&prefix)
            .unwrap_or(&error.message);
        self.error(message.to_owned());
        for cause in &error.causes {
            self.aside(format!(
                "  caused by: {}",
                the_loop_core::redact::visible(cause)
            ));
        }
        for hint in &error.hints {
            self.hint(hint);
        }
        self.exit_code = self.exit_code.max(error.kind.exit_code());
    }
}

impl Report {
    /// Of these items; the highest code is the command's.
    pub fn of(verb: &'static str, items: Vec<ItemReport>) -> Self {
        let exit_code = items.iter().map(|item| item.exit_code).max().unwrap_or(0);
        Self {
            verb,
            ok: items.iter().all(|item| item.ok),
            dry_run: false,
            exit_code,
            warnings: Vec::new(),
            machine: None,
            items,
        }
    }
}
