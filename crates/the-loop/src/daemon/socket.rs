//! The socket for the command line: `GET /status`, `POST /poke`, `POST /stop` (state page, section 12).

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use the_loop_core::event::StopReason;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Message, Shared};
use crate::ops::link::SOCKET_PATH_BYTES_MAX;
use crate::store::layout::Layout;
use crate::world::World;

/// Connections at once; further ones wait in the listener.
const CONNECTIONS_MAX: usize = 32;
/// How long a request's head may take.
const HEAD_WITHIN: Duration = Duration::from_secs(5);

/// What the socket answers, besides passing a wish to end on.
#[derive(Clone)]
pub(super) struct Answers {
    /// `GET /status`.
    pub status: Arc<dyn Fn() -> Value + Send + Sync>,
    /// `POST /poke`.
    pub poke: Arc<dyn Fn() + Send + Sync>,
}

impl Answers {
    /// Those of a daemon that works.
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        let (asked, poked) = (Arc::clone(shared), Arc::clone(shared));
        Self {
            status: Arc::new(move || status(&asked)),
            poke: Arc::new(move || {
                poked.inbox.wake();
                poked.engine().wake();
            }),
        }
    }
}

/// Binds the socket and serves it until `ending`, on the runtime the caller has entered. Whoever holds
/// the service lock may replace a socket that a crash left.
pub(super) fn serve(
    world: &World,
    layout: &Layout,
    answers: Answers,
    send: mpsc::Sender<Message>,
    ending: CancellationToken,
) -> io::Result<()> {
    let path = layout.socket();
    if path.as_str().len() > SOCKET_PATH_BYTES_MAX {
        let why = format!("{path} is longer than {SOCKET_PATH_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    world.disk.remove(&path)?;
    let listener = UnixListener::bind(path.as_std_path())?;
    // Its directory is closed to others already; this keeps it so if somebody opens that.
    world.disk.set_mode(&path, 0o600)?;
    tokio::spawn(listen(answers, listener, send, ending));
    Ok(())
}

async fn listen(
    answers: Answers,
    listener: UnixListener,
    send: mpsc::Sender<Message>,
    ending: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let stream = tokio::select! {
            () = ending.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = stream else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if !is_ours(&stream) {
            continue;
        }
        let (answers, send) = (answers.clone(), send.clone());
        tokio::spawn(async move {
            connection(answers, stream, send).await;
            drop(place);
        });
    }
}

/// Only the daemon's own user, and root, may ask.
fn is_ours(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

async fn connection(answers: Answers, stream: UnixStream, send: mpsc::Sender<Message>) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = answer(&answers, &request, &send);
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN);
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

fn answer(
    answers: &Answers,
    request: &Request<Incoming>,
    send: &mpsc::Sender<Message>,
) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/status") => document(StatusCode::OK, &(answers.status)()),
        (&Method::POST, "/poke") => {
            (answers.poke)();
            document(StatusCode::OK, &json!({ "ok": true }))
        }
        (&Method::POST, "/stop") => {
            let reason = match request.uri().query() {
                Some("reason=restart") => StopReason::Restart,
                Some(_) | None => StopReason::Command,
            };
            let ok = send.send(Message::Stop(reason)).is_ok();
            document(StatusCode::OK, &json!({ "ok": ok }))
        }
        _ => document(StatusCode::NOT_FOUND, &json!({ "ok": false })),
    }
}

fn document(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("{value}\n")));
    *response.status_mut() = status;
    let json = hyper::header::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, json);
    response
}

/// What only the daemon knows: its own state, and the settings in force.
fn status(shared: &Shared) -> Value {
    let pending = shared.live.pending();
    json!({
        "pid": shared.world.pid,
        "version": env!("CARGO_PKG_VERSION"),
        "since": shared.since,
        "restartNeeded": shared.live.restart_needed(),
        "problem": pending.as_ref().map(|p| &p.error),
        "loadedAt": pending.as_ref().map(|p| p.loaded_at),
        "inboxUnavailableSince": shared.inbox.unavailable_since(),
        "logLinesLost": shared.log.lost(),
        "ghWebhook": shared.receiver.json(shared),
        "poller": shared.polling.json(shared),
        "quota": super::polling::quota(shared),
    })
}
