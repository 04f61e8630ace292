//! A peer that signs as GitHub does.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;

/// The secret of the receiver; also looked for where it must not be.
pub const SECRET: &str = "canary-secret-of-the-webhook";
/// GitHub waits this long for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

fn sign(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

/// Posts one delivery; its status and the word of the answer. An error when nobody answered.
pub fn post(port: u16, event: &str, id: &str, body: &Value) -> std::io::Result<(u16, String)> {
    let body = body.to_string();
    let head = format!(
        "POST /gh-webhook HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nX-GitHub-Event: {event}\r\nX-GitHub-Delivery: {id}\r\n\
         X-Hub-Signature-256: {}\r\nContent-Length: {}\r\n\r\n",
        sign(body.as_bytes()),
        body.len()
    );
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.write_all(head.as_bytes())?;
    socket.write_all(body.as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    read(&answer).ok_or_else(|| std::io::Error::other("the answer is cut"))
}

fn read(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body: Value = serde_json::from_str(body).ok()?;
    Some((status, body["status"].as_str()?.to_owned()))
}

/// Does the receiver answer?
pub fn is_up(port: u16) -> bool {
    let asked = || -> std::io::Result<String> {
        let mut socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        Ok(answer)
    };
    asked().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
