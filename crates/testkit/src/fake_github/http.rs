//! The way in: requests, pages, validators, limits and faults.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::routes::{Query, Shown, answer};
use super::world::World;
use super::{TOKEN, app, lock};

/// Rows of a page at most.
const PER_PAGE_MAX: usize = 100;

/// One request and what it was answered.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Path with parameters.
    pub path: String,
    /// What it was answered.
    pub status: u16,
    /// It named a validator.
    pub is_conditional: bool,
    /// The credential that it carried.
    pub authorization: String,
}

/// Something other than an answer.
#[derive(Clone, Debug)]
pub enum Fault {
    /// This status, further header lines (each with its line end), and this body.
    Status(u16, String, String),
    /// No answer: the connection ends.
    Hangup,
    /// No answer at all, for longer than anybody waits.
    Silence,
    /// A page that says that the next one is it itself.
    LeadsToItself,
    /// A page that says that the next one is on another host.
    LeadsAway,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) world: World,
    pub(super) requests: Vec<Request>,
    pub(super) faults: VecDeque<(String, Fault)>,
    pub(super) remaining: u64,
    pub(super) resets_at: i64,
    port: u16,
}

impl State {
    pub(super) fn new(port: u16) -> Self {
        Self {
            world: World::default(),
            requests: Vec::new(),
            faults: VecDeque::new(),
            remaining: 5_000,
            resets_at: i64::from(u32::MAX),
            port,
        }
    }

    fn fault(&mut self, path: &str) -> Option<Fault> {
        let at = self
            .faults
            .iter()
            .position(|(of, _)| path.contains(&**of))?;
        self.faults.remove(at).map(|(_, fault)| fault)
    }
}

/// A request as it came in.
struct Asked {
    method: String,
    path: String,
    authorization: String,
    validator: String,
    body: Value,
}

/// An answer to write.
struct Reply {
    status: u16,
    headers: String,
    body: String,
}

pub(super) fn serve(state: &Mutex<State>, mut stream: TcpStream) {
    let Ok(asked) = read(&stream) else { return };
    let Some(reply) = reply(state, &asked) else {
        return;
    };
    let Reply {
        status,
        headers,
        body,
    } = reply;
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n{headers}\r\n{body}"
    );
}

fn read(stream: &TcpStream) -> std::io::Result<Asked> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let (mut length, mut authorization, mut validator) = (0, String::new(), String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "authorization" => value.clone_into(&mut authorization),
            "if-none-match" => value.clone_into(&mut validator),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Asked {
        method,
        path,
        authorization,
        validator,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// The answer, noted; `None`: there is none.
fn reply(state: &Mutex<State>, asked: &Asked) -> Option<Reply> {
    let mut state = lock(state);
    let reply = match state.fault(&asked.path) {
        Some(Fault::Hangup) => None,
        Some(Fault::Silence) => {
            state.requests.push(noted(asked, 0));
            drop(state);
            std::thread::sleep(Duration::from_mins(2));
            return None;
        }
        Some(Fault::Status(status, headers, body)) => Some(Reply {
            status,
            headers,
            body,
        }),
        Some(fault @ (Fault::LeadsToItself | Fault::LeadsAway)) => {
            let host = match fault {
                Fault::LeadsToItself => format!("http://127.0.0.1:{}", state.port),
                _ => "http://127.0.0.2:9".to_owned(),
            };
            Some(Reply {
                status: 200,
                headers: format!("link: <{host}{}>; rel=\"next\"\r\n", asked.path),
                body: "[]".to_owned(),
            })
        }
        None => Some(usual(&mut state, asked)),
    };
    let status = reply.as_ref().map_or(0, |reply| reply.status);
    state.requests.push(noted(asked, status));
    reply
}

fn noted(asked: &Asked, status: u16) -> Request {
    Request {
        method: asked.method.clone(),
        path: asked.path.clone(),
        status,
        is_conditional: !asked.validator.is_empty(),
        authorization: asked.authorization.clone(),
    }
}

fn usual(state: &mut State, asked: &Asked) -> Reply {
    let bare = |status: u16, body: Value| Reply {
        status,
        headers: String::new(),
        body: body.to_string(),
    };
    let path = asked.path.strip_prefix("/api/v3").unwrap_or(&asked.path);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let of_app = app::answer(&state.world, &asked.authorization, &parts);
    let is_known = asked.authorization == format!("Bearer {TOKEN}")
        || app::is_token(&state.world, &asked.authorization);
    if of_app.is_none() && !is_known {
        return bare(401, json!({ "message": "Bad credentials" }));
    }
    let limits = |state: &State| {
        format!(
            "x-ratelimit-limit: 5000\r\nx-ratelimit-remaining: {}\r\nx-ratelimit-reset: {}\r\ndate: {}\r\n",
            state.remaining,
            state.resets_at,
            date(&state.world.time()),
        )
    };
    if state.remaining == 0 {
        return Reply {
            status: 403,
            headers: limits(state),
            body: json!({ "message": "API rate limit exceeded" }).to_string(),
        };
    }
    let query = parse(query);
    let shown = of_app
        .unwrap_or_else(|| answer(&mut state.world, &asked.method, path, &query, &asked.body));
    let (status, mut headers, body) = match shown {
        Shown::Thing(thing) => (200, String::new(), thing.to_string()),
        Shown::Made(thing) => (201, String::new(), thing.to_string()),
        Shown::Status(status, to) if !to.is_empty() => {
            (status, format!("location: {to}\r\n"), "{}".to_owned())
        }
        Shown::Status(status, _) => (status, String::new(), "{}".to_owned()),
        Shown::List(rows) => {
            let (rows, link) = page(state.port, asked, &query, rows);
            (200, link, Value::from(rows).to_string())
        }
        Shown::Named(name, rows) => {
            let total = rows.len();
            let (rows, link) = page(state.port, asked, &query, rows);
            (
                200,
                link,
                json!({ "total_count": total, name: rows }).to_string(),
            )
        }
    };
    if status == 200 {
        let mut hash = DefaultHasher::new();
        (&asked.path, &body).hash(&mut hash);
        let tag = format!("W/\"{:016x}\"", hash.finish());
        headers.push_str(&format!("etag: {tag}\r\n"));
        if tag == asked.validator {
            // It costs nothing of the hour.
            headers.push_str(&limits(state));
            return Reply {
                status: 304,
                headers,
                body: String::new(),
            };
        }
    }
    state.remaining -= 1;
    headers.push_str(&limits(state));
    Reply {
        status,
        headers,
        body,
    }
}

/// A page of rows, and the header that names the next.
fn page(port: u16, asked: &Asked, query: &Query, rows: Vec<Value>) -> (Vec<Value>, String) {
    let number = |name: &str, otherwise: usize| {
        let text = query.get(name).and_then(|text| text.parse().ok());
        text.unwrap_or(otherwise)
    };
    let (at, size) = (
        number("page", 1).max(1),
        number("per_page", 30).clamp(1, PER_PAGE_MAX),
    );
    let more = rows.len() > at * size;
    let shown: Vec<Value> = rows.into_iter().skip((at - 1) * size).take(size).collect();
    if !more {
        return (shown, String::new());
    }
    let path = asked.path.split("&page=").next().unwrap_or_default();
    let next = format!("http://127.0.0.1:{port}{path}&page={}", at + 1);
    (shown, format!("link: <{next}>; rel=\"next\"\r\n"))
}

fn parse(query: &str) -> Query {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), decode(value)))
        .collect()
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(b) = rest.next() {
        if b == b'%' {
            let digits: Vec<u8> = rest.by_ref().take(2).collect();
            let digits = String::from_utf8_lossy(&digits).into_owned();
            bytes.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
        } else {
            bytes.push(b);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A moment as HTTP writes it.
fn date(iso: &str) -> String {
    let at: Result<the_loop_core::time::Timestamp, _> = iso.parse();
    at.map_or_else(
        |_| String::new(),
        |at| {
            at.to_jiff()
                .strftime("%a, %d %b %Y %H:%M:%S GMT")
                .to_string()
        },
    )
}
