//! One request, row by row (IN-3, rows 3 to 16).

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::{HeaderMap, Method, Request};
use the_loop_core::delivery::Delivery;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Refusal};
use super::check::{Checked, Named, check};
use super::guard::Framing;
use super::limits::Limits;
use super::log::Log;
use super::server::ReceiverContext;
use crate::store::inbox::Accepted;
use crate::tracker::github::signature::SecretNumber;

/// What all connections share.
pub(super) struct Shared {
    pub(super) context: ReceiverContext,
    pub(super) limits: Limits,
    pub(super) log: Log,
    /// Path of the receiver; another one needs a restart.
    pub(super) path: String,
    /// Room for bodies, in bytes.
    pub(super) room: Arc<Semaphore>,
    pub(super) shutdown: CancellationToken,
}

/// Answers one request. The connection ends with the answer where the framing calls for it.
pub(super) async fn handle(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    framing: Framing,
) -> Answer {
    let answer = rows(&shared, request, framing).await;
    match framing {
        Framing::Length(_) => answer,
        Framing::Chunked | Framing::TooLong | Framing::Doubtful => answer.closing(),
    }
}

async fn rows(shared: &Arc<Shared>, request: Request<Incoming>, framing: Framing) -> Answer {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let reads = head.method == Method::GET || head.method == Method::HEAD;
    if reads
        && matches!(
            path.strip_suffix('/').unwrap_or(path),
            "/health" | "/healthz"
        )
    {
        return Answer::ok();
    }
    if path != shared.path {
        return Answer::not_found();
    }
    if head.method != Method::POST {
        return Answer::post_only();
    }
    match framing {
        Framing::Doubtful => return shared.log.refuse(Refusal::BadFraming, None),
        Framing::TooLong => return shared.log.refuse(Refusal::BodyTooLarge, None),
        Framing::Length(_) | Framing::Chunked => {}
    }
    let whole = tokio::select! {
        biased;
        () = shared.shutdown.cancelled() => Err(Refusal::Unavailable),
        read = tokio::time::timeout(shared.limits.body_time, collect(shared, body)) => {
            read.unwrap_or(Err(Refusal::BodyTimeout))
        }
    };
    match whole {
        Ok(whole) => judge(shared, head.headers, whole).await,
        Err(Refusal::Unavailable) => shared.log.refuse(Refusal::Unavailable, None).closing(),
        Err(refusal) => shared.log.refuse(refusal, None),
    }
}

/// A whole body, and the room it takes until it is dropped.
struct Whole {
    bytes: Vec<u8>,
    room: Option<tokio::sync::OwnedSemaphorePermit>,
}

/// Rows 7 and 8: the body, refused at the first byte over the limit.
async fn collect(shared: &Shared, mut body: Incoming) -> Result<Whole, Refusal> {
    let max = shared.limits.body_bytes;
    let announced = body.size_hint().exact().unwrap_or(0).min(max);
    let mut whole = Whole {
        bytes: Vec::with_capacity(usize::try_from(announced).unwrap_or(0).min(1 << 16)),
        room: None,
    };
    while let Some(frame) = body.frame().await {
        // An end before the announced one comes as an error.
        let frame = frame.map_err(|_| Refusal::BodyTimeout)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if whole.bytes.len() as u64 + data.len() as u64 > max {
            return Err(Refusal::BodyTooLarge);
        }
        let wanted = u32::try_from(data.len()).map_err(|_| Refusal::BodyTooLarge)?;
        let more = Arc::clone(&shared.room).acquire_many_owned(wanted).await;
        let more = more.map_err(|_| Refusal::Unavailable)?;
        match &mut whole.room {
            Some(room) => room.merge(more),
            None => whole.room = Some(more),
        }
        whole.bytes.extend_from_slice(&data);
    }
    Ok(whole)
}

/// Rows 9 to 16. Hashing and parsing a large body takes a while, so it is done beside the runtime.
async fn judge(shared: &Arc<Shared>, headers: HeaderMap, body: Whole) -> Answer {
    enum Next {
        Answer(Answer),
        Commit(Box<Delivery>, SecretNumber),
    }
    let here = Arc::clone(shared);
    let judged = tokio::task::spawn_blocking(move || {
        let ReceiverContext {
            world,
            settings,
            secrets,
            ..
        } = &here.context;
        let now = world.clock.now();
        match check(&headers, &body.bytes, &settings(), &secrets(), now) {
            Checked::Refused(refusal, named) => {
                Next::Answer(here.log.refuse(refusal, named.as_ref()))
            }
            Checked::Off(named, action, secret) => {
                here.log.seen(&named, action, secret);
                Next::Answer(Answer::ignored("routing-off", named.delivery_id))
            }
            Checked::Ignored(named, ignored) => {
                let reason = ignored.reason.as_str();
                here.log.ignored(&named, ignored);
                Next::Answer(Answer::ignored(reason, named.delivery_id))
            }
            Checked::Deliver(delivery, secret) => Next::Commit(delivery, secret),
        }
    });
    match judged.await {
        Ok(Next::Answer(answer)) => answer,
        Ok(Next::Commit(delivery, secret)) => commit(shared, *delivery, secret).await,
        // A defect: the sender keeps the delivery and may send it again.
        Err(_) => shared.log.refuse(Refusal::Unavailable, None),
    }
}

/// Rows 14 to 16: the answer comes after the commit, or after the time for it. What commits later
/// than that is logged and woken for all the same, and its redelivery will be a duplicate.
async fn commit(shared: &Arc<Shared>, delivery: Delivery, secret: SecretNumber) -> Answer {
    let named = Named {
        event: delivery.event.clone(),
        delivery_id: delivery.delivery_id.clone(),
    };
    if shared.shutdown.is_cancelled() {
        return shared.log.refuse(Refusal::Unavailable, Some(&named));
    }
    let here = Arc::clone(shared);
    let committing = tokio::spawn(async move {
        let waiting = here.context.inbox.accept_later(delivery.clone());
        let accepted = waiting.await.ok()?.ok()?;
        let is_new = matches!(accepted, Accepted::New { .. });
        let logged = tokio::task::spawn_blocking(move || {
            here.log.committed(&delivery, secret, &accepted);
            (here.context.on_accept)();
        });
        logged.await.ok()?;
        Some(is_new)
    });
    match tokio::time::timeout(shared.limits.commit_time, committing).await {
        Ok(Ok(Some(true))) => Answer::accepted(named.delivery_id),
        Ok(Ok(Some(false))) => Answer::duplicate(named.delivery_id),
        Ok(Ok(None) | Err(_)) | Err(_) => shared.log.refuse(Refusal::Unavailable, Some(&named)),
    }
}
