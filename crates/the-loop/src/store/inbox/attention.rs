//! What people were told of an agent, so that it is told once over all runs of the program (DI-31, DI-32).

use rusqlite::OptionalExtension;
use serde_json::{Value, json};
use the_loop_core::attention::Signs;
use the_loop_core::confirm::WaitingKind;
use the_loop_core::ids::ItemKey;
use the_loop_core::time::Timestamp;

use super::{Inbox, InboxError, InboxReader};

/// What its keys begin with in `meta`.
const PREFIX: &str = "attention/";

/// What was told of one item's agent and is not over. Kept until it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attention {
    /// It waits for a person: for what, and since when.
    pub wait: Option<(WaitingKind, Timestamp)>,
    /// It works without a sign of life: since when, and the last signs.
    pub stalled: Option<(Timestamp, Signs)>,
}

impl Attention {
    fn to_json(self) -> Value {
        json!({
            "wait": self.wait.map(|(kind, since)| json!({
                "kind": kind.as_str(),
                "since": since.unix_ms(),
            })),
            "stalled": self.stalled.map(|(since, signs)| json!({
                "since": since.unix_ms(),
                "transcriptLen": signs.transcript_len,
                "transcriptAt": signs.transcript_at,
                "outputAt": signs.output_at,
            })),
        })
    }

    /// What cannot be read was not told: it is told again.
    fn parse(text: &str) -> Self {
        let value: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        let time = |of: &Value| Some(Timestamp::from_unix_ms(of.get("since")?.as_i64()?));
        let wait = value.get("wait").and_then(|wait| {
            let kind = WaitingKind::parse(wait.get("kind")?.as_str()?)?;
            Some((kind, time(wait)?))
        });
        let stalled = value.get("stalled").and_then(|stalled| {
            let signs = Signs {
                transcript_len: stalled.get("transcriptLen")?.as_u64()?,
                transcript_at: stalled.get("transcriptAt")?.as_i64()?,
                output_at: stalled.get("outputAt").and_then(Value::as_i64),
                child_ticks: None,
            };
            Some((time(stalled)?, signs))
        });
        Self { wait, stalled }
    }
}

impl Inbox {
    /// Keeps what was told of an item's agent; nothing is kept of one of which nothing is.
    pub fn set_attention(&self, key: &ItemKey, what: Attention) -> Result<(), InboxError> {
        let key = format!("{PREFIX}{}", key.as_str());
        if what != Attention::default() {
            return self.set_meta(&key, &what.to_json().to_string());
        }
        self.write(move |connection| {
            connection
                .prepare_cached("DELETE FROM meta WHERE key = ?1")?
                .execute([&key])?;
            Ok(())
        })
    }
}

impl InboxReader {
    /// What was told of an item's agent.
    pub fn attention(&self, key: &ItemKey) -> Result<Attention, InboxError> {
        let key = format!("{PREFIX}{}", key.as_str());
        self.read(|connection| {
            let text: Option<String> = connection
                .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
                .query_row([&key], |row| row.get(0))
                .optional()?;
            Ok(text.map_or_else(Attention::default, |text| Attention::parse(&text)))
        })
    }

    /// What was told of all agents, by the text of the item's key.
    pub fn all_attention(&self) -> Result<Vec<(String, Attention)>, InboxError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT key, value FROM meta WHERE key >= 'attention/' AND key < 'attention0'",
            )?;
            let rows = statement.query_map((), |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })?;
            let mut found = Vec::new();
            for row in rows {
                let (key, value) = row?;
                let key = key.strip_prefix(PREFIX).unwrap_or(&key).to_owned();
                found.push((key, Attention::parse(&value)));
            }
            Ok(found)
        })
    }
}
