//! A model server for real coding agents, on loopback: enough of each wire format that they speak, told
//! apart by the path of a request. `anthropic` is Claude Code's, `chat` is OpenCode's, `gemini` is
//! Gemini CLI's, `responses` is Codex's.
//!
//! It does what the prompt says. The last directive in the newest user message decides, be it in the
//! user's words or in what a tool gave back: `[[run COMMAND]]` asks for the harness's shell,
//! `[[permit COMMAND]]` as well, in a way that the harness has to ask a person about, `[[ask]]` for a
//! question to the user, `[[slow MS]]` answers late, and `Read PATH and do what it says.` asks for a
//! tool that reads a file. Anything else is answered with words.
//!
//! A wire format is a module with four functions: `Wire` calls them.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Bytes of a request that are read.
const REQUEST_BYTES_MAX: usize = 64 << 20;

/// A running server; it ends with the value.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    prompts: Vec<String>,
    conversation: String,
    failure: Option<(u16, String)>,
    messages: u64,
}

impl FakeModel {
    /// Starts one on a free port.
    pub fn start() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, shared) => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Self {
            address,
            state,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// What `ANTHROPIC_BASE_URL` must be.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The newest user message of each request of a conversation, in order.
    pub fn prompts(&self) -> Vec<String> {
        self.lock().prompts.clone()
    }

    /// All text of the newest request of a conversation: what was said earlier, too.
    pub fn conversation(&self) -> String {
        self.lock().conversation.clone()
    }

    /// From now on every request fails with this status and error type.
    pub fn fail(&self, status: u16, kind: &str) {
        self.lock().failure = Some((status, kind.to_owned()));
    }

    /// From now on requests are answered again.
    pub fn mend(&self) {
        self.lock().failure = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(answer(request, &state).await) }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn reply(status: u16, kind: &str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    if let Ok(status) = hyper::StatusCode::from_u16(status) {
        *response.status_mut() = status;
    }
    if let Ok(kind) = hyper::header::HeaderValue::from_str(kind) {
        response
            .headers_mut()
            .insert(hyper::header::CONTENT_TYPE, kind);
    }
    response
}

fn reply_json(status: u16, body: &Value) -> Response<Full<Bytes>> {
    reply(status, "application/json", body.to_string())
}

async fn answer(request: Request<Incoming>, state: &Mutex<State>) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    let Some(wire) = Wire::of_path(&path).filter(|_| request.method() == Method::POST) else {
        return reply_json(404, &json!({"error": {"type": "not_found_error"}}));
    };
    let limited = http_body_util::Limited::new(request.into_body(), REQUEST_BYTES_MAX);
    let body = match limited.collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null),
        Err(_) => return wire.failure(413, "request_too_large"),
    };
    let asked = wire.asked(&body);
    if let Some(count) = wire.count(&path, &asked) {
        return count;
    }
    let (failure, number) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.messages += 1;
        if asked.is_conversation {
            state.prompts.push(asked.newest.clone());
            state.conversation.clone_from(&asked.whole);
        }
        (state.failure.clone(), state.messages)
    };
    if let Some((status, kind)) = failure {
        return wire.failure(status, &kind);
    }
    let directive = if asked.is_conversation {
        Directive::last_in(&asked.newest)
    } else {
        Directive::Words
    };
    if let Directive::Slow(wait) = directive {
        tokio::time::sleep(wait).await;
    }
    wire.answer(&path, &body, &directive, number)
}

/// What the script needs to know of a request.
struct Asked {
    /// All text that came since the model last spoke: the user's, and what tools gave back.
    newest: String,
    /// All text of the conversation.
    whole: String,
    /// Is it the agent's own conversation? Harnesses ask for titles and the like besides, without tools.
    is_conversation: bool,
}

/// What an answer is said to have cost, the same in each wire format.
pub mod cost {
    /// Tokens read that no cache held.
    pub const INPUT: u64 = 11;
    /// Tokens written.
    pub const OUTPUT: u64 = 7;
    /// Tokens read from a cache.
    pub const CACHE_READ: u64 = 4;
    /// Tokens put into a cache, where the format knows such.
    pub const CACHE_WRITE: u64 = 3;
}

/// A wire format.
#[derive(Clone, Copy)]
enum Wire {
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's chat completions.
    Chat,
}

impl Wire {
    fn of_path(path: &str) -> Option<Self> {
        if path.starts_with("/v1/messages") {
            Some(Self::Anthropic)
        } else if path == "/v1/responses" {
            Some(Self::Responses)
        } else if gemini::is_path(path) {
            Some(Self::Gemini)
        } else if path == "/v1/chat/completions" {
            Some(Self::Chat)
        } else {
            None
        }
    }

    fn asked(self, body: &Value) -> Asked {
        match self {
            Self::Anthropic => anthropic::asked(body),
            Self::Gemini => gemini::asked(body),
            Self::Responses => responses::asked(body),
            Self::Chat => chat::asked(body),
        }
    }

    /// The answer to a request that only wants its tokens counted.
    fn count(self, path: &str, asked: &Asked) -> Option<Response<Full<Bytes>>> {
        match self {
            Self::Anthropic => anthropic::count(path, asked),
            Self::Gemini => gemini::count(path, asked),
            Self::Responses | Self::Chat => None,
        }
    }

    fn answer(
        self,
        path: &str,
        body: &Value,
        directive: &Directive,
        number: u64,
    ) -> Response<Full<Bytes>> {
        match self {
            Self::Anthropic => anthropic::answer(body, directive, number),
            Self::Gemini => gemini::answer(path, body, directive, number),
            Self::Responses => responses::answer(body, directive, number),
            Self::Chat => chat::answer(body, directive, number),
        }
    }

    fn failure(self, status: u16, kind: &str) -> Response<Full<Bytes>> {
        match self {
            Self::Anthropic => anthropic::failure(status, kind),
            Self::Gemini => gemini::failure(status, kind),
            Self::Responses => responses::failure(status, kind),
            Self::Chat => chat::failure(status, kind),
        }
    }
}

/// Four characters a token, as for English: a harness that refuses long files must do so here.
fn tokens(text: &str) -> usize {
    (text.chars().count() / 4).max(1)
}

/// What the model does.
enum Directive {
    /// Runs a command.
    Run(String),
    /// Runs a command that a person must allow first.
    Permit(String),
    /// Reads a file.
    Read(String),
    /// Asks the user.
    Ask,
    /// Says something after a while.
    Slow(Duration),
    /// Says something.
    Words,
}

impl Directive {
    fn last_in(text: &str) -> Self {
        let bracketed = text.rfind("[[").and_then(|at| {
            let inside = text[at + 2..].split_once("]]")?.0;
            let directive = match inside.split_once(' ') {
                Some(("run", command)) => Self::Run(command.to_owned()),
                Some(("permit", command)) => Self::Permit(command.to_owned()),
                Some(("slow", ms)) => Self::Slow(Duration::from_millis(ms.parse().ok()?)),
                _ if inside == "ask" => Self::Ask,
                _ => return None,
            };
            Some((at, directive))
        });
        let pointer = text.rfind(" and do what it says.").and_then(|end| {
            let at = text[..end].rfind("Read /")?;
            Some((at, Self::Read(text[at + 5..end].to_owned())))
        });
        match (bracketed, pointer) {
            (Some((a, _)), Some((b, read))) if b > a => read,
            (Some((_, directive)), _) | (None, Some((_, directive))) => directive,
            (None, None) => Self::Words,
        }
    }
}

/// What the model says when it says something.
const WORDS: &str = "Done.";

/// The command of [`Directive::Permit`]: one that no list of harmless programs holds.
fn unlisted(command: &str) -> String {
    format!("sh -c '{command}'")
}
