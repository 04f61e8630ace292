//! A model server for real coding agents: enough of the Anthropic messages API, on loopback.
//!
//! It does what the prompt says. The last directive in the newest user message decides, be it in the
//! user's words or in what a tool gave back: `[[run COMMAND]]` asks for the Bash tool, `[[ask]]` for a
//! question to the user, `[[slow MS]]` answers late, and `Read PATH and do what it says.` asks for the
//! Read tool. Anything else is answered with words.

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
    if request.method() != Method::POST || !path.starts_with("/v1/messages") {
        return reply_json(
            404,
            &json!({"type": "error", "error": {"type": "not_found_error"}}),
        );
    }
    let limited = http_body_util::Limited::new(request.into_body(), REQUEST_BYTES_MAX);
    let body = match limited.collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or(Value::Null),
        Err(_) => return reply_json(413, &json!({"type": "error"})),
    };
    if path.ends_with("count_tokens") {
        // Four characters a token, as for English: a harness that refuses long files must do so here.
        let tokens = whole_text(&body).chars().count() / 4;
        return reply_json(200, &json!({"input_tokens": tokens.max(1)}));
    }
    let newest = newest_user_text(&body);
    let is_conversation = body["tools"].as_array().is_some_and(|t| !t.is_empty());
    let (failure, number) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.messages += 1;
        if is_conversation {
            state.prompts.push(newest.clone());
            state.conversation = whole_text(&body);
        }
        (state.failure.clone(), state.messages)
    };
    if let Some((status, kind)) = failure {
        let error = json!({"type": "error", "error": {"type": kind, "message": "as told"}});
        return reply_json(status, &error);
    }
    let directive = if is_conversation {
        Directive::last_in(&newest)
    } else {
        Directive::Words
    };
    if let Directive::Slow(wait) = directive {
        tokio::time::sleep(wait).await;
    }
    let (block, stop) = directive.block(number);
    let message = message(&body, number);
    if body["stream"] == json!(true) {
        reply(200, "text/event-stream", events(message, &block, stop))
    } else {
        let mut whole = message;
        whole["content"] = json!([block]);
        whole["stop_reason"] = json!(stop);
        reply_json(200, &whole)
    }
}

/// All text of the newest user message, the results of tools among it.
fn newest_user_text(body: &Value) -> String {
    let messages = body["messages"].as_array();
    let newest = messages.and_then(|all| all.iter().rev().find(|m| m["role"] == "user"));
    newest.map(|m| text(&m["content"])).unwrap_or_default()
}

/// All text of all messages.
fn whole_text(body: &Value) -> String {
    let messages = body["messages"].as_array().into_iter().flatten();
    let texts: Vec<String> = messages.map(|m| text(&m["content"])).collect();
    texts.join("\n")
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks
                .iter()
                .map(|b| b.get("text").map_or_else(|| text(&b["content"]), text))
                .collect();
            texts.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

enum Directive {
    Run(String),
    Read(String),
    Ask,
    Slow(Duration),
    Words,
}

impl Directive {
    fn last_in(text: &str) -> Self {
        let bracketed = text.rfind("[[").and_then(|at| {
            let inside = text[at + 2..].split_once("]]")?.0;
            let directive = match inside.split_once(' ') {
                Some(("run", command)) => Self::Run(command.to_owned()),
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

    fn block(&self, number: u64) -> (Value, &'static str) {
        let tool = |name: &str, input: Value| {
            let id = format!("toolu_{number:024}");
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
            (block, "tool_use")
        };
        match self {
            Self::Run(command) => tool(
                "Bash",
                json!({"command": command, "description": "as told"}),
            ),
            Self::Read(path) => tool("Read", json!({"file_path": path})),
            Self::Ask => {
                let options = json!([{"label": "Red", "description": "r"},
                    {"label": "Blue", "description": "b"}]);
                let question = json!({"question": "Which colour?", "header": "Colour",
                    "multiSelect": false, "options": options});
                tool("AskUserQuestion", json!({"questions": [question]}))
            }
            Self::Slow(_) | Self::Words => (json!({"type": "text", "text": "Done."}), "end_turn"),
        }
    }
}

fn message(body: &Value, number: u64) -> Value {
    json!({"id": format!("msg_{number:024}"), "type": "message", "role": "assistant",
        "model": body["model"], "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 11, "output_tokens": 1, "cache_creation_input_tokens": 3,
            "cache_read_input_tokens": 4}})
}

/// The answer as the stream of events that clients ask for.
fn events(message: Value, block: &Value, stop: &str) -> String {
    let mut opening = block.clone();
    let delta = if block["type"] == "text" {
        opening["text"] = json!("");
        json!({"type": "text_delta", "text": block["text"]})
    } else {
        opening["input"] = json!({});
        json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
    };
    let events = [
        ("message_start", json!({"message": message})),
        (
            "content_block_start",
            json!({"index": 0, "content_block": opening}),
        ),
        ("content_block_delta", json!({"index": 0, "delta": delta})),
        ("content_block_stop", json!({"index": 0})),
        (
            "message_delta",
            json!({"delta": {"stop_reason": stop, "stop_sequence": null},
                "usage": {"output_tokens": 7}}),
        ),
        ("message_stop", json!({})),
    ];
    let mut stream = String::new();
    for (name, mut data) in events {
        data["type"] = json!(name);
        stream.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    }
    stream
}
