//! A receiver on a free port with an inbox and a log of its own, and a peer that writes raw bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::SecretString;
use serde_json::{Value, json};
use sha2::Sha256;
use the_loop::clock::Clock;
use the_loop::disk::{OsDisk, SharedDisk};
use the_loop::ids::Ids;
use the_loop::ingress::webhook::{BindFault, Limits, Receiver, ReceiverContext};
use the_loop::process::OsProcesses;
use the_loop::store::eventlog::EventLog;
use the_loop::store::inbox::Inbox;
use the_loop::world::World;
use the_loop_core::config::Settings;
use the_loop_core::time::Timestamp;
use the_loop_testkit::{FaultyDisk, Fuse};
use tokio_util::sync::CancellationToken;

pub const SECRET: &str = "a secret of some length";
/// Longest wait for anything a test expects.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A receiver that runs until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    pub inbox_path: Utf8PathBuf,
    pub inbox_fuse: Fuse,
    pub clock: Clock,
    pub settings: Arc<Mutex<Settings>>,
    pub secrets: Arc<Mutex<Vec<&'static str>>>,
    pub wakes: Arc<AtomicU64>,
    pub shutdown: CancellationToken,
    serving: Option<tokio::task::JoinHandle<()>>,
    log_path: Utf8PathBuf,
    runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

fn world(disk: SharedDisk, clock: Clock, dir: &Utf8PathBuf) -> World {
    World {
        disk,
        processes: Arc::new(OsProcesses),
        clock,
        ids: Ids::seeded(1),
        env: Arc::default(),
        cwd: dir.clone(),
        home: None,
        user: "tester".to_owned(),
        program: dir.join("the-loop"),
        pid: std::process::id(),
    }
}

pub fn routing_on() -> Settings {
    let mut settings = Settings::default();
    settings.routing.enabled = true;
    settings
}

impl Server {
    pub fn start(limits: Limits) -> Self {
        Self::try_start(limits, routing_on(), vec![SECRET]).expect("it listens")
    }

    pub fn try_start(
        limits: Limits,
        settings: Settings,
        secrets: Vec<&'static str>,
    ) -> Result<Self, BindFault> {
        let temporary = tempfile::tempdir().unwrap();
        let dir = Utf8PathBuf::from_path_buf(temporary.path().to_path_buf()).unwrap();
        let clock = Clock::manual("2026-03-01T09:12:44Z".parse::<Timestamp>().unwrap());
        let inbox_fuse = Fuse::new();
        let faulty: SharedDisk = Arc::new(FaultyDisk::new(inbox_fuse.clone()));
        let inbox_path = dir.join("inbox.db");
        let inbox_world = world(faulty, clock.clone(), &dir);
        let inbox = Inbox::open(&inbox_world, &inbox_path).unwrap().inbox;
        let steady = world(Arc::new(OsDisk), clock.clone(), &dir);
        let log_path = dir.join("events.jsonl");
        let log = Arc::new(EventLog::open(&steady, &log_path, true, 64, 0));
        let settings = Arc::new(Mutex::new(settings));
        let secrets = Arc::new(Mutex::new(secrets));
        let wakes = Arc::new(AtomicU64::new(0));
        let context = ReceiverContext {
            world: steady,
            inbox,
            log,
            settings: {
                let settings = Arc::clone(&settings);
                Arc::new(move || Arc::new(settings.lock().unwrap().clone()))
            },
            secrets: {
                let secrets = Arc::clone(&secrets);
                Arc::new(move || {
                    let words = secrets.lock().unwrap().clone();
                    words.into_iter().map(SecretString::from).collect()
                })
            },
            on_accept: {
                let wakes = Arc::clone(&wakes);
                Arc::new(move || {
                    wakes.fetch_add(1, Ordering::SeqCst);
                })
            },
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let receiver = Receiver::new(context).with_limits(limits);
        let bound = runtime.block_on(receiver.bind(any_port))?;
        let address = bound.local_addr();
        let shutdown = CancellationToken::new();
        let serving = runtime.spawn(bound.serve(shutdown.clone()));
        Ok(Self {
            address,
            inbox_path,
            inbox_fuse,
            clock,
            settings,
            secrets,
            wakes,
            shutdown,
            serving: Some(serving),
            log_path,
            runtime,
            _dir: temporary,
        })
    }

    pub fn connect(&self) -> Peer {
        Peer::connect(self.address)
    }

    /// One request on a connection of its own.
    pub fn send(&self, request: &[u8]) -> Answer {
        let mut peer = self.connect();
        peer.write(request);
        peer.answer()
    }

    pub fn post(&self, post: &Post) -> Answer {
        self.send(&post.bytes())
    }

    /// Is somebody served?
    pub fn assert_up(&self) {
        assert_eq!(self.send(b"GET /health HTTP/1.1\r\n\r\n").status, 200);
    }

    /// Lines of the event log with this name.
    pub fn events(&self, name: &str) -> Vec<Value> {
        #[expect(clippy::disallowed_methods, reason = "a test looks at the file itself")]
        let text = std::fs::read_to_string(&self.log_path).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.filter(|line: &Value| line["event"] == name).collect()
    }

    /// Reasons of the rejections that were logged.
    pub fn rejections(&self) -> Vec<String> {
        let lines = self.events("webhook.rejected");
        let reasons = lines.iter().map(|line| line["reason"].as_str().unwrap());
        reasons.map(str::to_owned).collect()
    }

    /// Rows in the inbox.
    pub fn stored(&self) -> i64 {
        let database = rusqlite::Connection::open(&self.inbox_path).unwrap();
        database
            .query_row("SELECT count(*) FROM deliveries", [], |row| row.get(0))
            .unwrap()
    }

    /// Ends the receiver as the daemon does and waits for it.
    pub fn stop(&mut self) {
        self.shutdown.cancel();
        if let Some(serving) = self.serving.take() {
            self.runtime.block_on(async {
                tokio::time::timeout(PATIENCE, serving)
                    .await
                    .expect("it ends")
                    .unwrap();
            });
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Waits until `done`.
pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// A raw connection.
pub struct Peer {
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl Peer {
    pub fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Self {
            socket,
            buffer: Vec::new(),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// As much as the other side takes.
    pub fn try_write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.socket.write_all(bytes)
    }

    /// Says that nothing more comes.
    pub fn end(&mut self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }

    /// Reads one answer.
    pub fn answer(&mut self) -> Answer {
        self.answer_to(true)
    }

    /// Reads one answer; that to a HEAD request has no body.
    pub fn answer_to(&mut self, has_body: bool) -> Answer {
        let head_len = loop {
            if let Some(at) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(
                self.fill() > 0,
                "no answer, only {:?}",
                String::from_utf8_lossy(&self.buffer)
            );
        };
        let head = String::from_utf8(self.buffer.drain(..head_len).collect()).unwrap();
        let mut lines = head.lines();
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, value)| value.parse::<usize>().unwrap());
        let length = if has_body { length } else { 0 };
        while self.buffer.len() < length {
            assert!(self.fill() > 0, "the answer is cut");
        }
        let body: Vec<u8> = self.buffer.drain(..length).collect();
        Answer {
            status,
            headers,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        }
    }

    fn fill(&mut self) -> usize {
        let mut chunk = [0; 4096];
        match self.socket.read(&mut chunk) {
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                count
            }
            Err(e) if e.kind() == ErrorKind::ConnectionReset => 0,
            Err(e) => panic!("the receiver neither answers nor closes: {e}"),
        }
    }

    /// Asserts that the other side has closed and said nothing more.
    pub fn assert_closed(&mut self) {
        while self.fill() > 0 {}
        let rest = String::from_utf8_lossy(&self.buffer);
        assert!(rest.is_empty(), "it went on: {rest}");
    }
}

/// What the receiver said.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Status and body word in one.
    pub fn is(&self, status: u16, word: &str) {
        assert_eq!(
            (self.status, &self.body["status"]),
            (status, &json!(word)),
            "{self:?}"
        );
    }

    pub fn is_ignored(&self, reason: &str) {
        self.is(202, "ignored");
        assert_eq!(self.body["reason"], reason, "{self:?}");
    }
}

pub fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

/// A webhook request; every part may be made wrong.
#[derive(Clone, Debug)]
pub struct Post {
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Post {
    /// Signed and well formed.
    pub fn new(event: &str, delivery: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let pairs = [
            ("Host", "receiver.example".to_owned()),
            ("X-GitHub-Event", event.to_owned()),
            ("X-GitHub-Delivery", delivery.to_owned()),
            ("X-Hub-Signature-256", sign(SECRET, &body)),
            ("Content-Type", "application/json".to_owned()),
            ("Content-Length", body.len().to_string()),
        ];
        Self {
            target: "/gh-webhook".to_owned(),
            headers: pairs.map(|(name, value)| (name.to_owned(), value)).into(),
            body,
        }
    }

    /// The same with a header field changed, or taken away.
    pub fn with(mut self, name: &str, value: Option<&str>) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        match value {
            Some(value) => self.and(name, value),
            None => self,
        }
    }

    /// The same with one more header field.
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with another body, signed anew.
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let mut post = self
            .with("Content-Length", Some(&body.len().to_string()))
            .with("X-Hub-Signature-256", Some(&sign(SECRET, &body)));
        post.body = body;
        post
    }

    pub fn head(&self) -> Vec<u8> {
        let mut head = format!("POST {} HTTP/1.1\r\n", self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// An `issue_comment` payload.
pub fn comment(number: u64, node_id: &str, text: &str) -> Value {
    json!({
        "action": "created",
        "issue": {
            "number": number, "node_id": format!("I_{number}"), "title": "A title",
            "state": "open", "labels": [],
            "user": {"login": "octocat", "id": 1, "type": "User"},
            "html_url": format!("https://github.com/octo/repo/issues/{number}"),
            "updated_at": "2026-03-01T09:12:44Z", "closed_at": null
        },
        "comment": {
            "id": 99, "node_id": node_id, "body": text,
            "user": {"login": "maintainer", "id": 2, "type": "User"},
            "html_url": format!("https://github.com/octo/repo/issues/{number}#issuecomment-99"),
            "created_at": "2026-03-01T09:12:44Z", "updated_at": "2026-03-01T09:12:44Z"
        },
        "repository": {
            "id": 7, "full_name": "octo/repo", "html_url": "https://github.com/octo/repo"
        },
        "sender": {"login": "maintainer", "id": 2, "type": "User"}
    })
}

/// A signed comment that is accepted the first time.
pub fn good(delivery: &str) -> Post {
    let body = comment(15, &format!("IC_{delivery}"), "please look");
    let mut body = body;
    body["comment"]["id"] = Value::Null;
    Post::new("issue_comment", delivery, body.to_string())
}
