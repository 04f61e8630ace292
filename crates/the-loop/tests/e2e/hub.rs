//! GitHub's REST interface as far as it is written to and asked: real HTTP on loopback, and a list of what was asked.

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// The token that it takes.
pub const TOKEN: &str = "ghp_hubhubhubhubhub";

/// One call.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Method and path.
    pub what: String,
    pub body: Value,
    pub authorization: String,
    pub version: String,
}

/// What stands at an address of it.
#[derive(Clone)]
enum Shown {
    Json(Value),
    /// It lies at another address, where this text stands.
    Elsewhere(String),
    /// This text.
    Text(String),
    /// This status and nothing else.
    Status(u16),
}

/// One question.
#[derive(Clone, Debug)]
pub struct Question {
    pub path: String,
    pub authorization: String,
    /// The validator that it was asked by.
    pub validator: String,
    /// What it was answered.
    pub status: u16,
}

#[derive(Default)]
struct State {
    asked: Vec<Asked>,
    questions: Vec<Question>,
    shown: HashMap<String, Shown>,
    /// What the next calls are answered instead: status and further header lines.
    answers: VecDeque<(u16, &'static str)>,
}

/// The double. It ends with the process that runs the test.
pub struct Hub {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl Hub {
    pub fn new() -> Self {
        Self::of("octo-robot")
    }

    /// One at which the token belongs to this login.
    pub fn of(login: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(&shared, stream, login);
            }
        });
        Self { port, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Shows something below the repository, as `issues/15`.
    pub fn shows(&self, below: &str, value: Value) {
        self.put(below, Shown::Json(value));
    }

    /// Answers every question for this with a status and nothing else.
    pub fn shows_status(&self, below: &str, status: u16) {
        self.put(below, Shown::Status(status));
    }

    /// Shows a text that lies elsewhere: one is sent there.
    pub fn shows_text_elsewhere(&self, below: &str, text: &str) {
        let place = format!("/elsewhere/{below}");
        let address = format!("http://127.0.0.1:{}{place}", self.port);
        self.put(below, Shown::Elsewhere(address));
        let text = Shown::Text(text.to_owned());
        self.state().shown.insert(place, text);
    }

    fn put(&self, below: &str, shown: Shown) {
        let path = format!("/repos/octo/repo/{below}");
        self.state().shown.insert(path, shown);
    }

    /// The questions for something below the repository.
    pub fn questions(&self, below: &str) -> Vec<Question> {
        let all = self.state().questions.clone().into_iter();
        all.filter(|question| question.path.ends_with(below))
            .collect()
    }

    /// Answers the next call so.
    pub fn answers(&self, status: u16, headers: &'static str) {
        self.state().answers.push_back((status, headers));
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// The bodies of the comments on an item of the repository.
    pub fn comments(&self, number: u64) -> Vec<String> {
        let path = format!("POST /repos/octo/repo/issues/{number}/comments");
        let all = self.asked().into_iter().filter(|asked| asked.what == path);
        all.map(|asked| asked.body["body"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Where reactions of this content were put.
    pub fn reactions(&self, content: &str) -> Vec<String> {
        let all = self.asked().into_iter();
        all.filter(|asked| asked.body["content"] == content)
            .map(|asked| asked.what)
            .collect()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(state: &Mutex<State>, mut stream: TcpStream, login: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let (mut length, mut authorization, mut version) = (0, String::new(), String::new());
    let mut validator = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap(),
            "authorization" => value.trim().clone_into(&mut authorization),
            "if-none-match" => value.trim().clone_into(&mut validator),
            "x-github-api-version" => value.trim().clone_into(&mut version),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let what = first.rsplit_once(' ').unwrap().0.to_owned();
    let known = authorization == format!("Bearer {TOKEN}");
    if what == "GET /user" {
        let text = json!({"login": login, "id": login.bytes().map(u64::from).sum::<u64>()});
        return answer(&mut stream, if known { 200 } else { 401 }, "", &text);
    }
    if let Some(path) = what.strip_prefix("GET ") {
        let question = Question {
            path: path.to_owned(),
            authorization,
            validator,
            status: if known { 404 } else { 401 },
        };
        return tell(state, &mut stream, question);
    }
    let (status, headers, id) = {
        let mut state = lock(state);
        state.asked.push(Asked {
            what,
            body: serde_json::from_slice(&body).unwrap_or_default(),
            authorization,
            version,
        });
        let answer = state.answers.pop_front();
        let (status, headers) = answer.unwrap_or((if known { 201 } else { 401 }, ""));
        (status, headers, state.asked.len())
    };
    let text = json!({"id": id, "node_id": format!("IC_hub{id}")});
    answer(&mut stream, status, headers, &text)
}

/// Answers a question with what stands there.
fn tell(
    state: &Mutex<State>,
    stream: &mut TcpStream,
    mut question: Question,
) -> std::io::Result<()> {
    let mut state = lock(state);
    let shown = state.shown.get(&question.path).cloned();
    let is_elsewhere = question.path.starts_with("/elsewhere/");
    let shown = shown.filter(|_| question.status == 404 || is_elsewhere);
    let (status, headers, body) = match shown {
        Some(Shown::Json(value)) => {
            let validator = format!("\"{:x}\"", value.to_string().len());
            let headers = format!("etag: {validator}\r\n");
            if question.validator == validator {
                (304, headers, String::new())
            } else {
                (200, headers, value.to_string())
            }
        }
        Some(Shown::Text(text)) => (200, String::new(), text),
        Some(Shown::Elsewhere(address)) => (302, format!("location: {address}\r\n"), String::new()),
        Some(Shown::Status(status)) => (status, String::new(), String::new()),
        None => (question.status, String::new(), "{}".to_owned()),
    };
    question.status = status;
    state.questions.push(question);
    drop(state);
    write!(
        stream,
        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
        body.len()
    )
}

fn answer(stream: &mut TcpStream, status: u16, headers: &str, body: &Value) -> std::io::Result<()> {
    let text = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n{headers}\r\n{text}",
        text.len()
    )
}
