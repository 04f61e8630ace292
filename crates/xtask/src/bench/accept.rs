//! Webhooks accepted: stored durably by the daemon, beside a Node receiver that verifies and forgets.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use camino::Utf8Path;

use super::load::{Payloads, Run, send};
use super::place::{Place, SECRET};
use super::{ms, percentile};

/// Requests of one measurement.
const REQUESTS: usize = 2_000;
/// What is remembered in the last measurement.
const REMEMBERED: usize = 10_000;

pub fn run(root: &Utf8Path, program: &Utf8Path) -> Result<()> {
    let npm = root.join(".deps/npm/node_modules");
    let mut payloads = Payloads::read(&npm)
        .context("the npm packages of the tests are missing; run scripts/fetch-test-deps")?;
    let port = free_port()?;
    let more = format!("webhooks:\n  ghWebhook:\n    enabled: true\n    port: {port}\n");
    let mut place = Place::make(program, &more)?;
    place.start()?;
    let ours = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let node = Node::start(&place, root)?;

    let sync = sync_time(&place.dir)?;
    println!(
        "accept: 12 KB signed comments; the disk syncs in {:.2} ms (median)",
        ms(sync)
    );
    let mut sent = 0;
    let mut rates = Vec::new();
    for connections in [8, 64] {
        // Once without counting, so that neither side is measured cold.
        send(node.address, connections, &payloads.requests(200)?)?;
        let bare = send(node.address, connections, &payloads.requests(REQUESTS)?)?;
        send(ours, connections, &payloads.requests(200)?)?;
        let run = send(ours, connections, &payloads.requests(REQUESTS)?)?;
        sent += REQUESTS + 200;
        let ratio = run.rate / bare.rate;
        rates.push((connections, run.rate));
        tell(
            &format!("{connections} connections, node, nothing stored"),
            bare,
            None,
        );
        tell(
            &format!("{connections} connections, the-loop, durable"),
            run,
            Some(ratio),
        );
    }
    while sent < REMEMBERED {
        let more = REQUESTS.min(REMEMBERED - sent);
        send(ours, 64, &payloads.requests(more)?)?;
        sent += more;
    }
    for (connections, empty) in rates {
        let run = send(ours, connections, &payloads.requests(REQUESTS)?)?;
        let ratio = run.rate / empty;
        let name = format!("{connections} connections, {REMEMBERED} remembered, beside few");
        tell(&name, run, Some(ratio));
    }
    Ok(())
}

fn tell(name: &str, mut run: Run, ratio: Option<f64>) {
    let ratio = ratio.map_or_else(String::new, |ratio| format!("   ratio {ratio:.2}"));
    let refused = match run.refused {
        0 => String::new(),
        refused => format!("   {refused} NOT ACCEPTED"),
    };
    println!(
        "  {name:<48} {:>6.0}/s  p50 {:>6.2} ms  p99 {:>6.2} ms{ratio}{refused}",
        run.rate,
        ms(percentile(&mut run.waits, 50)),
        ms(percentile(&mut run.waits, 99)),
    );
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// How long this disk takes to make one small write durable.
fn sync_time(dir: &Utf8Path) -> Result<Duration> {
    let mut file = File::create(dir.join("sync"))?;
    let mut times = Vec::new();
    for _ in 0..100 {
        let began = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    Ok(percentile(&mut times, 50))
}

struct Node {
    child: Child,
    address: SocketAddr,
}

impl Node {
    fn start(place: &Place, root: &Utf8Path) -> Result<Self> {
        let mut child = place
            .command("node")
            .arg(root.join("crates/xtask/src/bench/receiver.mjs"))
            .arg(root.join(".deps/npm"))
            .arg(SECRET)
            .stdout(Stdio::piped())
            .spawn()
            .context("node")?;
        let said = child.stdout.take().context("node has an output")?;
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line)?;
        let port: u16 = line.trim().parse().context("node says its port")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Self { child, address })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
