//! Rows 9 to 13 of the table: what a whole request is. A pure function of header fields, body,
//! settings and secrets.

use hyper::HeaderMap;
use hyper::header::{AsHeaderName, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use secrecy::SecretString;
use the_loop_core::config::Settings;
use the_loop_core::delivery::Delivery;
use the_loop_core::time::Timestamp;

use super::answer::Refusal;
use crate::tracker::github::payload::{self, Encoding, Ignored, Incoming, Parsed};
use crate::tracker::github::signature::{self, SecretNumber, Signature};

/// What the checks came to.
pub(super) enum Checked {
    /// The first row that failed.
    Refused(Refusal, Option<Named>),
    /// Routing is off: seen, not stored (IN-1).
    Off(Named, Option<String>, Option<SecretNumber>),
    /// Row 13.
    Ignored(Named, Ignored),
    /// For the inbox.
    Deliver(Box<Delivery>, SecretNumber),
}

/// How a request names itself, known from row 12 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) event: String,
    pub(super) delivery_id: String,
}

/// Goes down the rows; the first that fails decides.
pub(super) fn check(
    headers: &HeaderMap,
    body: &[u8],
    settings: &Settings,
    secrets: &[SecretString],
    now: Timestamp,
) -> Checked {
    let routing = settings.routing.enabled;
    let secret = if routing || !secrets.is_empty() {
        let secret = signature_of(headers).and_then(|s| s.verify(secrets, body));
        if secret.is_none() {
            return Checked::Refused(Refusal::InvalidSignature, None);
        }
        secret
    } else {
        None
    };
    let Some(encoding) = encoding_of(headers) else {
        return Checked::Refused(Refusal::UnsupportedType, None);
    };
    let Some(named) = name_of(headers) else {
        return Checked::Refused(Refusal::InvalidHeaders, None);
    };
    let incoming = Incoming {
        event: &named.event,
        delivery_id: &named.delivery_id,
        encoding,
        body,
        received_at: now,
    };
    match (payload::parse(&incoming, settings), secret) {
        (Parsed::Invalid, _) => Checked::Refused(Refusal::InvalidPayload, Some(named)),
        (Parsed::Delivery(delivery), Some(secret)) if routing => Checked::Deliver(delivery, secret),
        (Parsed::Ignored(ignored), Some(_)) if routing => Checked::Ignored(named, ignored),
        (Parsed::Delivery(delivery), secret) => Checked::Off(named, delivery.action, secret),
        (Parsed::Ignored(ignored), secret) => Checked::Off(named, ignored.action, secret),
    }
}

/// A field that is there exactly once.
fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

fn signature_of(headers: &HeaderMap) -> Option<Signature> {
    Signature::parse(only(headers, signature::HEADER)?.as_bytes())
}

/// Row 10. Parameters of the media type, such as a charset, decide nothing: the body has to be UTF-8.
fn encoding_of(headers: &HeaderMap) -> Option<Encoding> {
    if headers.contains_key(CONTENT_ENCODING) {
        return None;
    }
    let value = only(headers, CONTENT_TYPE)?.to_str().ok()?;
    let essence = value.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Some(Encoding::Json)
    } else if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        Some(Encoding::Form)
    } else {
        None
    }
}

/// Row 11.
fn name_of(headers: &HeaderMap) -> Option<Named> {
    let event = only(headers, "x-github-event")?.to_str().ok()?;
    let event_byte = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let delivery_id = only(headers, "x-github-delivery")?.to_str().ok()?;
    let delivery_byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let fits = (1..=64).contains(&event.len())
        && event.bytes().all(event_byte)
        && (1..=100).contains(&delivery_id.len())
        && delivery_id.bytes().all(delivery_byte);
    fits.then(|| Named {
        event: event.to_owned(),
        delivery_id: delivery_id.to_owned(),
    })
}
