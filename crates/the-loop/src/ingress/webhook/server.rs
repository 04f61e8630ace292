//! The listener and its connections (IN-1, IN-2; IN-3 rows 1 and 2).

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use secrecy::SecretString;
use the_loop_core::config::Settings;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::answer::Refusal;
use super::guard::{CurrentFraming, Guard, close};
use super::handle::{Shared, handle};
use super::limits::Limits;
use super::log::Log;
use crate::store::eventlog::EventLog;
use crate::store::inbox::Inbox;
use crate::world::World;

/// What the receiver works with. Settings and secrets are asked for anew for every request, so that
/// a changed file counts at once (IN-66).
#[derive(Clone)]
pub struct ReceiverContext {
    /// Clock of the process.
    pub world: World,
    /// Where deliveries go.
    pub inbox: Inbox,
    /// The operator's log.
    pub log: Arc<EventLog>,
    /// The settings of this moment.
    pub settings: Arc<dyn Fn() -> Arc<Settings> + Send + Sync>,
    /// The accepted secrets of this moment, the current one first; empty when none is usable.
    pub secrets: Arc<dyn Fn() -> Vec<SecretString> + Send + Sync>,
    /// Called after every commit, on a thread that may block shortly: there may be something to do.
    pub on_accept: Arc<dyn Fn() + Send + Sync>,
}

/// Why the receiver does not listen.
#[derive(Debug, thiserror::Error)]
pub enum BindFault {
    /// Row `misconfigured`: with routing on, an unsigned request could not be told from a forged one.
    #[error(
        "no usable secret for routing.enabled: set webhooks.ghWebhook.secretFile or \
         webhooks.ghWebhook.secretEnv"
    )]
    NoSecret,
    /// Row `failed`.
    #[error("cannot listen on {address}")]
    Address {
        /// Address and port as configured.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The webhook receiver before it listens.
pub struct Receiver {
    context: ReceiverContext,
    limits: Limits,
}

impl Receiver {
    /// A receiver with the limits of IN-2.
    pub fn new(context: ReceiverContext) -> Self {
        Self {
            context,
            limits: Limits::default(),
        }
    }

    /// The same with other limits, for tests.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Binds the address; port 0 takes a free one. Nothing is accepted before [`Bound::serve`].
    pub async fn bind(self, address: SocketAddr) -> Result<Bound, BindFault> {
        let settings = (self.context.settings)();
        if settings.routing.enabled && (self.context.secrets)().is_empty() {
            return Err(BindFault::NoSecret);
        }
        let fault = |source| BindFault::Address { address, source };
        let listener = TcpListener::bind(address).await.map_err(fault)?;
        let local_addr = listener.local_addr().map_err(fault)?;
        Ok(Bound {
            path: settings.webhooks.gh_webhook.path.clone(),
            receiver: self,
            listener,
            local_addr,
        })
    }
}

/// A receiver that listens.
pub struct Bound {
    receiver: Receiver,
    listener: TcpListener,
    path: String,
    local_addr: SocketAddr,
}

impl Bound {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `shutdown`, then lets go of the port, answers 503 to what is coming in, and
    /// returns when the commits in hand are answered.
    pub async fn serve(self, shutdown: CancellationToken) {
        let Receiver { context, limits } = self.receiver;
        let log = Log::new(
            Arc::clone(&context.log),
            context.world.clock.clone(),
            limits.log_every,
        );
        let shared = Arc::new(Shared {
            context,
            limits,
            log,
            path: self.path,
            room: Arc::new(Semaphore::new(limits.buffered_bytes)),
            shutdown: shutdown.clone(),
        });
        let held = Arc::new(Semaphore::new(limits.connections));
        let turned_away = Arc::new(Semaphore::new(limits.connections));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                accepted = self.listener.accept() => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Ok((socket, _peer)) = accepted else {
                // Out of descriptors, most likely: those that are open end in time.
                tokio::time::sleep(limits.accept_pause).await;
                continue;
            };
            if let Ok(place) = Arc::clone(&held).try_acquire_owned() {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    connection(shared, socket).await;
                    drop(place);
                });
                continue;
            }
            let answer = shared.log.refuse(Refusal::Busy, None).into_bytes();
            // Whoever finds no room even for being turned away is closed without a word.
            if let Ok(place) = Arc::clone(&turned_away).try_acquire_owned() {
                connections.spawn(async move {
                    close(
                        socket,
                        Some(answer),
                        limits.linger_time,
                        limits.linger_bytes,
                    )
                    .await;
                    drop(place);
                });
            }
        }
        drop(self.listener);
        while connections.join_next().await.is_some() {}
    }
}

/// Serves one connection to its end.
async fn connection(shared: Arc<Shared>, socket: TcpStream) {
    // Answers are small and whole; waiting to fill a packet would only delay them.
    let _ = socket.set_nodelay(true);
    let framing = CurrentFraming::default();
    let guard = Guard::new(socket, shared.limits, framing.clone());
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        let framing = framing.get();
        async move {
            let answer = handle(shared, request, framing).await;
            Ok::<_, Infallible>(answer.into_response())
        }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    // The guard keeps the time of heads. A peer that closed its sending side still gets its answer.
    http.header_read_timeout(None).half_close(true);
    let mut serving = http.serve_connection(TokioIo::new(guard), service);
    let mut ending = std::pin::pin!(shared.shutdown.cancelled());
    let mut told = false;
    let served = std::future::poll_fn(|cx| {
        if !told && ending.as_mut().poll(cx).is_ready() {
            told = true;
            Pin::new(&mut serving).graceful_shutdown();
        }
        Pin::new(&mut serving).poll(cx)
    })
    .await;
    let guard = serving.into_parts().io.into_inner();
    let last_word = guard
        .fault()
        .map(|fault| shared.log.refuse(fault, None).into_bytes());
    if served.is_err_and(|e| e.is_parse()) {
        // hyper has answered 400 itself: a target or a field that the guard's parser lets pass.
        shared.log.refuse(Refusal::NotHttp, None);
    }
    guard.finish(last_word).await;
}
