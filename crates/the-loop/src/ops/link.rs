//! The daemon as a command sees it: its lock and its socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::store::layout::Layout;
use crate::store::lock::{ServiceHolder, ServiceLock};
use crate::world::World;

/// How long the daemon may take to answer (SE-24).
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Bytes of an answer; the daemon's are far smaller.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// The longest path that fits into a socket's address on every system (state page, section 12).
pub const SOCKET_PATH_BYTES_MAX: usize = 100;

/// Does a daemon hold this root, and which process is it?
pub fn daemon(world: &World, layout: &Layout) -> ServiceHolder {
    ServiceLock::holder(world.disk.as_ref(), &layout.service_pid())
}

/// Tells a running daemon that something changed. Without it the daemon finds the change too, so
/// nothing depends on the answer.
pub fn poke(layout: &Layout) {
    let _ = ask(layout, "POST", "/poke");
}

/// Asks the daemon to end; `true` when it said yes.
pub fn stop(layout: &Layout, reason: &str) -> bool {
    ask(layout, "POST", &format!("/stop?reason={reason}")).is_some()
}

/// What the daemon says of itself; `None` when it does not answer in time.
pub fn status(layout: &Layout) -> Option<Value> {
    serde_json::from_slice(&ask(layout, "GET", "/status")?).ok()
}

/// One request; the body of a 200.
fn ask(layout: &Layout, method: &str, path: &str) -> Option<Vec<u8>> {
    let socket = layout.socket();
    if socket.as_str().len() > SOCKET_PATH_BYTES_MAX {
        return None;
    }
    let mut stream = UnixStream::connect(socket.as_std_path()).ok()?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
    stream.set_write_timeout(Some(ANSWER_WITHIN)).ok()?;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: the-loop\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX)
        .read_to_end(&mut answer)
        .ok()?;
    let head = answer.windows(4).position(|at| at == b"\r\n\r\n")?;
    answer
        .starts_with(b"HTTP/1.1 200 ")
        .then(|| answer.split_off(head + 4))
}
