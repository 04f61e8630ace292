//! The settings: what each key means, what it may hold, and what holds where it is absent.
//!
//! [`Settings`] is read once and never changed; a changed file makes a new one (CF-9).

pub mod sections;

pub mod key;
pub mod shape;

pub mod check;
pub mod moved;
pub mod node;
pub mod paths;
pub mod pattern;
pub mod problem;
mod rules;
mod suggest;
pub mod version;

pub mod reference;
pub mod schema;

pub mod envfile;

pub use sections::*;
pub use suggest::nearest;

use key::{Kind, section};

section! {
    /// Every effective setting. After loading, a field that is a path holds an absolute one, or `""`
    /// where none is set (CF-6).
    Settings {
        /// Version of the document; absent is the current one.
        version: Option<String> = None, Kind::Text(shape::VERSION), Never;
        /// Where the program keeps what it writes.
        state: State = State::default(), Kind::Section(State::keys), Start;
        /// Variables for the daemon and for panes.
        env: Env = Env::default(), Kind::Section(Env::keys), New;
        /// What happens with a delivery.
        routing: Routing = Routing::default(), Kind::Section(Routing::keys), Yes;
        /// Dispatch attempts.
        polling: Polling = Polling::default(), Kind::Section(Polling::keys), Yes;
        /// Webhooks.
        webhooks: Webhooks = Webhooks::default(), Kind::Section(Webhooks::keys), Start;
        /// The services this program talks to.
        integrations: Integrations = Integrations::default(), Kind::Section(Integrations::keys), Start;
        /// The embedded tracker.
        tracker: Tracker = Tracker::default(), Kind::Section(Tracker::keys), Yes;
        /// The operator's log of decisions.
        event_log: EventLog = EventLog::default(), Kind::Section(EventLog::keys), Start;
    }
}

impl Settings {
    /// Every key of the document with its full path, sections left out, in document order.
    pub fn rows() -> Vec<key::KeyRow> {
        key::rows("", &Settings::keys())
    }
}

/// The documents that are made from the table of keys: path below the repository, and text. Whoever
/// checks for drift compares them, whoever mends it writes them (CF-43).
pub fn generated() -> [(&'static str, String); 2] {
    [
        ("docs/configuration.md", reference::markdown()),
        ("docs/schema/cli-config.json", schema::json_schema_text()),
    ]
}

#[cfg(test)]
mod tests;
