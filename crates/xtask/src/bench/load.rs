//! Signed webhook deliveries, and connections that send them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use camino::Utf8Path;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use super::place::SECRET;

/// Bytes of a payload. Real ones with a longer comment have about that much.
const PAYLOAD_BYTES: usize = 12 << 10;
/// How long an answer may take before the run is given up.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Makes deliveries that are distinct by delivery id and by comment id.
pub struct Payloads {
    base: Value,
    next: u64,
}

/// How a run went.
pub struct Run {
    /// Deliveries a second over all connections.
    pub rate: f64,
    /// How long each answer took.
    pub waits: Vec<Duration>,
    /// Answers other than 202.
    pub refused: usize,
}

impl Payloads {
    /// From the example of a `created` comment in the npm package, made as long as a real one.
    pub fn read(npm: &Utf8Path) -> Result<Self> {
        let file = npm.join("@octokit/webhooks-examples/api.github.com/index.json");
        let text = fs::read_to_string(&file).with_context(|| file.to_string())?;
        let events: Vec<Value> = serde_json::from_str(&text)?;
        let comments = events.iter().find(|event| event["name"] == "issue_comment");
        let examples = comments.and_then(|event| event["examples"].as_array());
        let created = examples
            .into_iter()
            .flatten()
            .find(|example| example["action"] == "created");
        let mut base = created.context("no example of a created comment")?.clone();
        let short = base.to_string().len();
        let words = "It fails here as well, with the same message as above.\n";
        let body = words.repeat(PAYLOAD_BYTES.saturating_sub(short) / words.len());
        base["comment"]["body"] = json!(body);
        Ok(Self { base, next: 1 })
    }

    /// Whole requests, signed.
    pub fn requests(&mut self, count: usize) -> Result<Vec<Vec<u8>>> {
        (0..count).map(|_| self.request()).collect()
    }

    fn request(&mut self) -> Result<Vec<u8>> {
        let number = self.next;
        self.next += 1;
        self.base["comment"]["id"] = json!(3_000_000_000_u64 + number);
        let body = self.base.to_string();
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes())?;
        mac.update(body.as_bytes());
        let signature = hex::encode(mac.finalize().into_bytes());
        let head = format!(
            "POST /gh-webhook HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             X-GitHub-Event: issue_comment\r\n\
             X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-{number:012x}\r\n\
             X-Hub-Signature-256: sha256={signature}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        Ok([head.into_bytes(), body.into_bytes()].concat())
    }
}

/// Sends all of them over so many connections that stay open.
pub fn send(address: SocketAddr, connections: usize, requests: &[Vec<u8>]) -> Result<Run> {
    let began = Instant::now();
    let share = requests.len().div_ceil(connections);
    let parts = std::thread::scope(|scope| {
        let senders: Vec<_> = requests
            .chunks(share)
            .map(|chunk| scope.spawn(move || send_over_one(address, chunk)))
            .collect();
        let joined = senders.into_iter().map(|sender| {
            let sent = sender.join();
            sent.unwrap_or_else(|_| bail!("a sender broke"))
        });
        joined.collect::<Result<Vec<_>>>()
    })?;
    let took = began.elapsed();
    let refused = parts.iter().map(|(_, refused)| refused).sum();
    let waits: Vec<Duration> = parts.into_iter().flat_map(|(waits, _)| waits).collect();
    Ok(Run {
        rate: waits.len() as f64 / took.as_secs_f64(),
        waits,
        refused,
    })
}

fn send_over_one(address: SocketAddr, requests: &[Vec<u8>]) -> Result<(Vec<Duration>, usize)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let mut waits = Vec::with_capacity(requests.len());
    let mut refused = 0;
    for request in requests {
        let began = Instant::now();
        stream.write_all(request)?;
        let status = read_answer(&mut answers)?;
        waits.push(began.elapsed());
        refused += usize::from(status != 202);
    }
    Ok((waits, refused))
}

fn read_answer(answers: &mut impl BufRead) -> Result<u16> {
    let mut line = String::new();
    answers.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.with_context(|| format!("no status in {line:?}"))?;
    let mut length = 0;
    loop {
        line.clear();
        answers.read_line(&mut line)?;
        if line.trim_end().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    answers.read_exact(&mut body)?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_end() {
        let two = "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 503 Busy\r\n\r\n";
        let mut answers = BufReader::new(two.as_bytes());
        assert_eq!(read_answer(&mut answers).unwrap(), 202);
        assert_eq!(read_answer(&mut answers).unwrap(), 503);
        assert!(read_answer(&mut answers).is_err());
    }
}
