//! What the poller read of GitHub's lists, as the delivery that a webhook about it would have been.
//!
//! A row of a list has the shape of the part of a webhook that it is about, so both are read by the same
//! reader and get the same content keys: whichever comes second is a duplicate (IN-10).

use the_loop_core::config::Settings;
use the_loop_core::delivery::{Delivery, Ingress};
use the_loop_core::ids::RepoRef;
use the_loop_core::time::Timestamp;

use super::{Encoding, Incoming, Parsed, judge, see, sound};

/// The parts of what happened.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The event that a webhook would name.
    pub event: &'a str,
    /// Its action.
    pub action: &'a str,
    /// The repository that was asked.
    pub repo: &'a RepoRef,
    /// GitHub's own words for the parts, each by its name in a webhook: JSON.
    pub parts: &'a [(&'a str, &'a str)],
    /// The id of the delivery (IN-11).
    pub delivery_id: &'a str,
    /// By which way it is found.
    pub ingress: Ingress,
    /// When it was found.
    pub received_at: Timestamp,
}

/// Puts the parts together. `None`: they are no such event, or one without an effect.
pub fn of_rows(rows: &Rows<'_>, settings: &Settings) -> Option<Delivery> {
    let repo = rows.repo;
    let mut json = format!(r#"{{"action":{}"#, quoted(rows.action)?);
    for (name, part) in rows.parts {
        json.push_str(&format!(",{}:{part}", quoted(name)?));
    }
    if !rows.parts.iter().any(|(name, _)| *name == "repository") {
        let page = format!("https://{}/{}", repo.host, repo.full_name());
        json.push_str(&format!(
            r#","repository":{{"full_name":{},"html_url":{}}}"#,
            quoted(&repo.full_name())?,
            quoted(&page)?,
        ));
    }
    json.push('}');
    if !sound::is_sound(&json) {
        return None;
    }
    let seen = see::reader(rows.event)?(&json, settings)?;
    let incoming = Incoming {
        event: rows.event,
        delivery_id: rows.delivery_id,
        encoding: Encoding::Json,
        body: json.as_bytes(),
        received_at: rows.received_at,
    };
    match judge(&incoming, settings, seen) {
        Parsed::Delivery(delivery) => Some(Delivery {
            ingress: rows.ingress,
            ..*delivery
        }),
        Parsed::Ignored(_) | Parsed::Invalid => None,
    }
}

fn quoted(text: &str) -> Option<String> {
    serde_json::to_string(text).ok()
}

#[cfg(test)]
mod tests {
    use the_loop_core::delivery::Effect;

    use super::*;
    use crate::tracker::github::payload::parse;

    fn at() -> Timestamp {
        Timestamp::from_unix_ms(1_800_000_000_000)
    }

    const ISSUE: &str = r#"{"number": 15, "node_id": "I_15", "title": "Add a flag", "state": "open",
        "labels": [{"name": "loop"}], "user": {"login": "octocat", "id": 1, "type": "User"},
        "html_url": "https://github.com/octo/repo/issues/15", "updated_at": "2026-12-01T10:00:00Z",
        "closed_at": null, "body": "words"}"#;
    const COMMENT: &str = r#"{"id": 99, "node_id": "IC_99", "user": {"login": "octocat", "id": 1,
        "type": "User"}, "body": "the-loop start", "html_url": "https://x/99",
        "created_at": "2026-12-01T10:00:00Z", "updated_at": "2026-12-01T10:00:00Z"}"#;
    const SENDER: &str = r#"{"login": "octocat", "id": 1, "type": "User"}"#;

    #[test]
    fn in10_a_row_and_a_webhook_about_the_same_comment_are_one_thing() {
        let settings = Settings::default();
        let repo = RepoRef::parse("octo/repo").unwrap();
        let rows = Rows {
            event: "issue_comment",
            action: "created",
            repo: &repo,
            parts: &[("issue", ISSUE), ("comment", COMMENT), ("sender", SENDER)],
            delivery_id: "poll-comment-IC_99",
            ingress: Ingress::Poll,
            received_at: at(),
        };
        let found = of_rows(&rows, &settings).unwrap();
        let body = format!(
            r#"{{"action": "created", "issue": {ISSUE}, "comment": {COMMENT}, "sender": {SENDER},
                "repository": {{"id": 7, "full_name": "octo/repo",
                "html_url": "https://github.com/octo/repo"}}}}"#
        );
        let incoming = Incoming {
            event: "issue_comment",
            delivery_id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
            encoding: Encoding::Json,
            body: body.as_bytes(),
            received_at: at(),
        };
        let Parsed::Delivery(sent) = parse(&incoming, &settings) else {
            panic!("a webhook that is none");
        };
        assert_eq!(found.content_key, "github/github.com/comment/IC_99/created");
        let as_sent = Delivery {
            delivery_id: sent.delivery_id.clone(),
            ingress: Ingress::Webhook,
            ..found
        };
        assert_eq!(as_sent, *sent);
    }

    #[test]
    fn in11_parts_that_are_no_event_or_have_no_effect_are_no_delivery() {
        let settings = Settings::default();
        let repo = RepoRef::parse("octo/repo").unwrap();
        let none: &[&[(&str, &str)]] = &[
            &[],
            &[("issue", ISSUE)],
            &[("issue", ISSUE), ("comment", "[]")],
            &[("issue", ISSUE), ("comment", "{")],
            &[("issue", r#"{"number": 0}"#), ("comment", COMMENT)],
        ];
        for parts in none {
            let rows = Rows {
                event: "issue_comment",
                action: "created",
                repo: &repo,
                parts,
                delivery_id: "poll-comment-IC_99",
                ingress: Ingress::Poll,
                received_at: at(),
            };
            assert_eq!(of_rows(&rows, &settings), None, "{parts:?}");
        }
    }

    #[test]
    fn in40_a_closed_row_ends_its_item() {
        let settings = Settings::default();
        let repo = RepoRef::parse("octo/repo").unwrap();
        let closed = ISSUE.replace("null", "\"2026-12-01T11:00:00Z\"");
        let rows = Rows {
            event: "issues",
            action: "closed",
            repo: &repo,
            parts: &[("issue", &closed)],
            delivery_id: "poll-close-github:octo/repo#15-2026-12-01T11:00:00Z",
            ingress: Ingress::Poll,
            received_at: at(),
        };
        let found = of_rows(&rows, &settings).unwrap();
        assert!(matches!(found.effect, Effect::Close { .. }));
        assert_eq!(
            found.content_key,
            "github/github.com/issue/I_15/closed@2026-12-01T11:00:00Z"
        );
    }
}
