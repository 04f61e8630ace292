//! What a peer is told: the answers of the table of IN-3. Nothing about configuration or work items
//! is ever in one.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use the_loop_core::event::WebhookRejectReason;

/// A refusal with 4xx or 503. Each is one row of the table, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Refusal {
    /// Row 1: no connection is free.
    Busy,
    /// Row 2: the head came too slowly.
    HeadTimeout,
    /// Row 2: the head is too large or has too many fields.
    HeadTooLarge,
    /// Row 2: this is not HTTP.
    NotHttp,
    /// Row 6: where the body ends cannot be told for certain.
    BadFraming,
    /// Row 7.
    BodyTooLarge,
    /// Row 8: the body came too slowly or ended early.
    BodyTimeout,
    /// Row 9.
    InvalidSignature,
    /// Row 10.
    UnsupportedType,
    /// Row 11: event name or delivery id.
    InvalidHeaders,
    /// Row 12.
    InvalidPayload,
    /// Row 16.
    Unavailable,
}

impl Refusal {
    /// Reason of the event, status, word of the answer.
    fn row(self) -> (WebhookRejectReason, StatusCode, &'static str) {
        use WebhookRejectReason as Reason;
        match self {
            Self::Busy => (Reason::Busy, StatusCode::SERVICE_UNAVAILABLE, "busy"),
            Self::HeadTimeout | Self::BodyTimeout => {
                (Reason::Timeout, StatusCode::REQUEST_TIMEOUT, "timeout")
            }
            Self::HeadTooLarge => {
                let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                (Reason::TooLarge, status, "too large")
            }
            Self::NotHttp | Self::BadFraming | Self::InvalidHeaders => {
                let status = StatusCode::BAD_REQUEST;
                (Reason::InvalidRequest, status, "invalid request")
            }
            Self::BodyTooLarge => {
                let status = StatusCode::PAYLOAD_TOO_LARGE;
                (Reason::TooLarge, status, "payload too large")
            }
            Self::InvalidSignature => {
                let status = StatusCode::UNAUTHORIZED;
                (Reason::InvalidSignature, status, "invalid signature")
            }
            Self::UnsupportedType => {
                let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
                (Reason::InvalidPayload, status, "unsupported media type")
            }
            Self::InvalidPayload => {
                let status = StatusCode::BAD_REQUEST;
                (Reason::InvalidPayload, status, "invalid payload")
            }
            Self::Unavailable => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                (Reason::Unavailable, status, "unavailable")
            }
        }
    }

    /// The reason in the event log.
    pub(super) fn reason(self) -> WebhookRejectReason {
        self.row().0
    }

    /// The HTTP status.
    pub(super) fn status(self) -> u16 {
        self.row().1.as_u16()
    }

    /// The whole answer.
    pub(super) fn answer(self) -> Answer {
        let (_, status, word) = self.row();
        let (closes, retry_after) = match self {
            Self::Busy => (true, Some(5)),
            Self::HeadTimeout
            | Self::HeadTooLarge
            | Self::NotHttp
            | Self::BadFraming
            | Self::BodyTooLarge
            | Self::BodyTimeout => (true, None),
            Self::InvalidSignature
            | Self::UnsupportedType
            | Self::InvalidHeaders
            | Self::InvalidPayload => (false, None),
            Self::Unavailable => (false, Some(30)),
        };
        Answer {
            retry_after,
            closes,
            ..Answer::new(status, word)
        }
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    word: &'static str,
    reason: Option<&'static str>,
    delivery: Option<String>,
    retry_after: Option<u16>,
    allows_post: bool,
    closes: bool,
}

impl Answer {
    fn new(status: StatusCode, word: &'static str) -> Self {
        Self {
            status,
            word,
            reason: None,
            delivery: None,
            retry_after: None,
            allows_post: false,
            closes: false,
        }
    }

    /// Row 3.
    pub(super) fn ok() -> Self {
        Self::new(StatusCode::OK, "ok")
    }

    /// Row 4.
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found")
    }

    /// Row 5.
    pub(super) fn post_only() -> Self {
        Self {
            allows_post: true,
            ..Self::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        }
    }

    /// Row 13, and IN-1 with routing off.
    pub(super) fn ignored(reason: &'static str, delivery: String) -> Self {
        Self {
            reason: Some(reason),
            ..Self::took("ignored", delivery)
        }
    }

    /// Row 14.
    pub(super) fn duplicate(delivery: String) -> Self {
        Self::took("duplicate", delivery)
    }

    /// Row 15.
    pub(super) fn accepted(delivery: String) -> Self {
        Self::took("accepted", delivery)
    }

    fn took(word: &'static str, delivery: String) -> Self {
        Self {
            delivery: Some(delivery),
            ..Self::new(StatusCode::ACCEPTED, word)
        }
    }

    /// The same, and the connection ends with it.
    #[must_use]
    pub(super) fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    fn body(&self) -> String {
        let mut object = serde_json::Map::new();
        let mut put = |key: &str, value: &str| {
            object.insert(key.to_owned(), value.into());
        };
        put("status", self.word);
        if let Some(reason) = self.reason {
            put("reason", reason);
        }
        if let Some(delivery) = &self.delivery {
            put("delivery", delivery);
        }
        serde_json::Value::Object(object).to_string()
    }

    /// For hyper.
    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.body())));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.allows_post {
            headers.insert(ALLOW, HeaderValue::from_static("POST"));
        }
        if self.closes {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// For a connection that hyper does not serve, or no longer.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let body = self.body();
        let code = self.status.as_u16();
        let phrase = self.status.canonical_reason().unwrap_or_default();
        let retry = self.retry_after;
        let retry = retry.map_or_else(String::new, |s| format!("Retry-After: {s}\r\n"));
        format!(
            "HTTP/1.1 {code} {phrase}\r\nContent-Type: application/json\r\n{retry}\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}
