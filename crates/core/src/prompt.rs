//! What the agent is told (DI-25, IN-60 to IN-65), and how foreign text is kept from being anything
//! but text.
//!
//! [`Telling::prompt`] makes the whole prompt; [`Prompt::sending`] decides whether it is sent as it is
//! or by a pointer to a mail file. Everything that came in stands as JSON inside one fence; outside of
//! it stand only our words and names from closed lists.

pub mod comment;
mod excerpt;
mod sanitize;
mod template;
#[cfg(test)]
mod tests;
mod words;

pub use excerpt::{Nonce, excerpt, fence};
pub use sanitize::{for_paste, is_clean, lines, strip_hidden};
pub use template::TEMPLATE_BYTES_MAX;

use crate::config::InteractionMode;
use crate::delivery::Delivery;
use crate::guard::AuthorizedUsers;
use crate::ids::{Marker, WorkItemRef};
use crate::limits::PROMPT_WHAT_CHARS_MAX;

const FIRST_LINE_START: &str = "the-loop delivery ";
const FIRST_LINE_FOR: &str = " for ";

/// The fixed first line of every prompt, without a line feed (DI-25). `what` is cut to
/// [`PROMPT_WHAT_CHARS_MAX`] characters and made one clean line.
pub fn first_line(marker: &Marker, item: &WorkItemRef, what: &str) -> String {
    let what: String = for_paste(what)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(PROMPT_WHAT_CHARS_MAX)
        .collect();
    format!(
        "{FIRST_LINE_START}{marker}{FIRST_LINE_FOR}{item}: {}",
        what.trim_end()
    )
}

/// The markers that a user's prompt names at the beginnings of its lines, in order (DI-25). A carriage
/// return ends a line too, since terminals paste line feeds as such.
pub fn markers_in(prompt: &str) -> Vec<Marker> {
    prompt
        .split(['\n', '\r'])
        .filter_map(|line| {
            let (marker, _) = line
                .strip_prefix(FIRST_LINE_START)?
                .split_once(FIRST_LINE_FOR)?;
            Marker::parse(marker)
        })
        .collect()
}

/// What the agent is in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Occasion {
    /// A new conversation: it is told everything it needs, and to read the whole thread.
    Spawn {
        /// An earlier conversation on this item could not be continued.
        replaces_lost: bool,
    },
    /// Something happened; the conversation knows its item.
    Event {
        /// Deliveries were suppressed since the last prompt (a pause): read the thread again.
        thread_moved: bool,
    },
}

/// All that a prompt is made of.
#[derive(Clone, Copy, Debug)]
pub struct Telling<'a> {
    /// The outcome's marker.
    pub marker: &'a Marker,
    /// The item the outcome is for.
    pub item: &'a WorkItemRef,
    /// What came in.
    pub delivery: &'a Delivery,
    /// New or known conversation.
    pub occasion: Occasion,
    /// Where to ask.
    pub interaction: InteractionMode,
    /// Who speaks for the operator.
    pub authorized: &'a AuthorizedUsers,
    /// Random, new for every prompt.
    pub nonce: Nonce,
    /// The operator's own text, when its file could be read (IN-65).
    pub template: Option<&'a str>,
}

/// A whole prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    first_line: String,
    text: String,
    foreign: bool,
}

impl Telling<'_> {
    /// Makes the prompt: first line, text, fence and, on a line of its own at the end, the marker.
    pub fn prompt(&self) -> Prompt {
        let first_line = first_line(self.marker, self.item, &self.delivery.what());
        let fenced = excerpt(self.delivery).map(|json| fence(&json, self.nonce));
        let body = match self.template {
            Some(template) => self.fill_template(template, fenced.as_deref()),
            None => words::built_in(self, fenced.as_deref()),
        };
        Prompt {
            text: format!("{first_line}\n\n{}\n\n{}\n", body.trim_end(), self.marker),
            first_line,
            foreign: fenced.is_some(),
        }
    }

    fn fill_template(&self, template: &str, fenced: Option<&str>) -> String {
        let directive = words::directive(self.interaction, self.item);
        let item = self.item.to_string();
        let repository = self.item.repo().to_string();
        let value = |name: &str| match name {
            "work_item" => Some(item.as_str()),
            "event" => Some(self.delivery.event.as_str()),
            "action" => Some(self.delivery.action.as_deref().unwrap_or_default()),
            "repository" => Some(repository.as_str()),
            "delivery_id" => Some(self.delivery.delivery_id.as_str()),
            "interaction_directive" => Some(directive.as_str()),
            // The declared process is reserved: there is no context of it to give.
            "graph_context" => Some(""),
            "payload_excerpt" => Some(fenced.unwrap_or_default()),
            _ => None,
        };
        let expanded = template::expand(&lines(template), value);
        if expanded
            .used
            .iter()
            .any(|name| name == "interaction_directive")
        {
            expanded.text
        } else {
            format!("{}\n\n{directive}", expanded.text.trim_end())
        }
    }
}

/// How much an adapter takes as pasted text, first line included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineLimits {
    /// Lines.
    pub lines: usize,
    /// Unicode characters.
    pub chars: usize,
}

impl Default for InlineLimits {
    fn default() -> Self {
        Self {
            lines: 3,
            chars: 700,
        }
    }
}

/// The way a prompt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Pasted into a live pane.
    Paste,
    /// The last argument of a spawn or resume.
    Argument,
}

/// What is really sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The text to paste, or the argument. Begins with the first line; no line feed at its end.
    pub text: String,
    /// The whole prompt, to be written to the mail file that `text` points to before anything is sent.
    pub mail: Option<String>,
}

impl Prompt {
    /// The whole text, ending in a line feed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Does it hold words that came from outside?
    pub fn is_foreign(&self) -> bool {
        self.foreign
    }

    /// Text or pointer (DI-25)? `mail_path` is absolute; where a pointer is sent, the caller writes the
    /// mail there. A path that sanitising would change cannot be pointed to: see [`is_clean`].
    pub fn sending(&self, way: Way, limits: InlineLimits, mail_path: &str) -> Sending {
        let whole = self.text.trim_end();
        let fits =
            whole.split('\n').count() <= limits.lines && whole.chars().count() <= limits.chars;
        let ours = match way {
            Way::Paste => true,
            // An argument is shown by `ps` to everybody on the machine.
            Way::Argument => !self.foreign,
        };
        if fits && ours && is_clean(whole) {
            return Sending {
                text: whole.to_owned(),
                mail: None,
            };
        }
        Sending {
            text: for_paste(&format!(
                "{}\nRead {mail_path} and do what it says.",
                self.first_line
            )),
            mail: Some(self.text.clone()),
        }
    }
}
