//! The socket as hyper is allowed to see it: whole heads only, one at a time.
//!
//! hyper times a head and the wait for it with one clock, closes without a word when it runs out, and
//! quietly prefers chunked coding when a request has both framings. The table of IN-3 asks for an
//! answer in each case, so the head is held back here until it is complete, in time, within bounds,
//! and its framing known. Nothing of a following request is handed on before hyper asks for it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::answer::Refusal;
use super::limits::{HEADERS_MAX, Limits};

/// Where the body of a request ends, by its head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many bytes; 0 where nothing is announced.
    Length(u64),
    /// Chunked. The connection ends with the answer, since only hyper knows where this body ended.
    Chunked,
    /// Announced longer than a body may be.
    TooLong,
    /// It cannot be told for certain (row 6).
    #[default]
    Doubtful,
}

/// The framing of the request in hand, told by the guard to the handler.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentFraming(Arc<Mutex<Framing>>);

impl CurrentFraming {
    /// Of the head that hyper got last.
    pub(super) fn get(&self) -> Framing {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn set(&self, framing: Framing) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = framing;
    }
}

enum Stage {
    /// A head is awaited or coming in.
    Head,
    /// So many bytes of the body are still to be read.
    Body(u64),
    /// The rest of the connection belongs to a chunked body.
    Rest,
    /// Nothing more is read.
    Ended,
}

/// A socket behind the guard.
pub(super) struct Guard<S> {
    socket: S,
    limits: Limits,
    framing: CurrentFraming,
    stage: Stage,
    /// Bytes read from the socket and not handed on.
    pending: Vec<u8>,
    /// How many of them may be handed on.
    ready: usize,
    /// The first head's clock runs from the beginning, a later one's from its first byte.
    first: bool,
    deadline: Pin<Box<Sleep>>,
    fault: Option<Refusal>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Guard<S> {
    /// Guards a new connection; the time of its first head begins now.
    pub(super) fn new(socket: S, limits: Limits, framing: CurrentFraming) -> Self {
        Self {
            socket,
            limits,
            framing,
            stage: Stage::Head,
            pending: Vec::new(),
            ready: 0,
            first: true,
            deadline: Box::pin(tokio::time::sleep(limits.head_time)),
            fault: None,
        }
    }

    /// Why no further head was handed on, where that has an answer.
    pub(super) fn fault(&self) -> Option<Refusal> {
        self.fault
    }

    /// Says the last word, if there is one, and closes so that the peer can read it.
    pub(super) async fn finish(self, last_word: Option<Vec<u8>>) {
        let (time, bytes) = (self.limits.linger_time, self.limits.linger_bytes);
        close(self.socket, last_word, time, bytes).await;
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Bytes that came along with the body before are judged before more are read.
        let mut unjudged = !self.pending.is_empty();
        loop {
            if unjudged {
                self.judge_head();
            }
            if self.ready > 0 || self.fault.is_some() {
                return Poll::Ready(Ok(()));
            }
            let mut chunk = [0; 4096];
            let mut buffer = ReadBuf::new(&mut chunk);
            match Pin::new(&mut self.socket).poll_read(cx, &mut buffer) {
                Poll::Ready(read) => read?,
                Poll::Pending if self.deadline.as_mut().poll_elapsed(cx) => {
                    // Keep-alive that ran out is no fault of the peer's.
                    if self.first || !self.pending.is_empty() {
                        self.fault = Some(Refusal::HeadTimeout);
                    }
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending => return Poll::Pending,
            }
            let read = buffer.filled();
            if read.is_empty() {
                if !self.pending.is_empty() {
                    self.fault = Some(Refusal::NotHttp);
                }
                return Poll::Ready(Ok(()));
            }
            if self.pending.is_empty() && !self.first {
                self.give(self.limits.head_time);
            }
            // A head ends with a line, so the parser need not look again before one has ended.
            unjudged = self.pending.is_empty() || read.contains(&b'\n');
            self.pending.extend_from_slice(read);
            unjudged |= self.pending.len() > self.limits.head_bytes;
        }
    }

    /// Looks at what came in so far; releases a whole head or notes what is wrong with it.
    fn judge_head(&mut self) {
        let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        let parsed = request.parse(&self.pending);
        let max = self.limits.head_bytes;
        match parsed {
            Ok(httparse::Status::Complete(len)) if len <= max => {
                let is_11 = request.version == Some(1);
                let framing = framing(request.headers, is_11, self.limits.body_bytes);
                let lines = framing_names(request.headers, &self.pending);
                self.release(len, framing, lines);
            }
            Ok(httparse::Status::Partial) if self.pending.len() <= max => {}
            Ok(httparse::Status::Complete(_) | httparse::Status::Partial)
            | Err(httparse::Error::TooManyHeaders) => self.fault = Some(Refusal::HeadTooLarge),
            Err(
                httparse::Error::HeaderName
                | httparse::Error::HeaderValue
                | httparse::Error::NewLine
                | httparse::Error::Status
                | httparse::Error::Token
                | httparse::Error::Version,
            ) => self.fault = Some(Refusal::NotHttp),
        }
    }

    /// Lets a head of `len` bytes through, with as much of its body as is here already.
    fn release(&mut self, len: usize, framing: Framing, lines: Vec<std::ops::Range<usize>>) {
        self.framing.set(framing);
        self.ready = len;
        let beyond = self.pending.len() - len;
        match framing {
            Framing::Length(bytes) => {
                let here = usize::try_from(bytes).map_or(beyond, |bytes| bytes.min(beyond));
                self.ready += here;
                self.stage = Stage::Body(bytes - here as u64);
            }
            Framing::Chunked => {
                self.ready += beyond;
                self.stage = Stage::Rest;
            }
            Framing::TooLong | Framing::Doubtful => {
                // hyper shall not act on a framing that will be refused, nor answer for us.
                for line in lines {
                    self.pending[line].fill(b'x');
                }
                self.pending.truncate(len);
                self.stage = Stage::Ended;
            }
        }
    }

    fn give(&mut self, time: std::time::Duration) {
        self.deadline.as_mut().reset(Instant::now() + time);
    }
}

/// Polls a timer as a question.
trait Elapsed {
    fn poll_elapsed(self, cx: &mut Context<'_>) -> bool;
}

impl Elapsed for Pin<&mut Sleep> {
    fn poll_elapsed(self, cx: &mut Context<'_>) -> bool {
        self.poll(cx).is_ready()
    }
}

fn is_framing(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding")
}

/// Where in `head` the names of the framing fields stand.
fn framing_names(fields: &[httparse::Header<'_>], head: &[u8]) -> Vec<std::ops::Range<usize>> {
    let start = head.as_ptr().addr();
    let framing = fields.iter().filter(|field| is_framing(field.name));
    framing
        .map(|field| {
            let at = field.name.as_ptr().addr() - start;
            at..at + field.name.len()
        })
        .collect()
}

/// Row 6: one length in digits, or the chunked coding and nothing else.
fn framing(fields: &[httparse::Header<'_>], is_11: bool, body_max: u64) -> Framing {
    let mut length: Option<&[u8]> = None;
    let mut chunked = false;
    for field in fields.iter().filter(|field| is_framing(field.name)) {
        let value = field.value.trim_ascii();
        if field.name.eq_ignore_ascii_case("content-length") {
            let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            if !digits || length.is_some_and(|known| known != value) {
                return Framing::Doubtful;
            }
            length = Some(value);
        } else if is_11 && !chunked && value.eq_ignore_ascii_case(b"chunked") {
            chunked = true;
        } else {
            return Framing::Doubtful;
        }
    }
    match (length, chunked) {
        (None, false) => Framing::Length(0),
        (Some(digits), false) => announced(digits, body_max),
        (None, true) => Framing::Chunked,
        (Some(_), true) => Framing::Doubtful,
    }
}

/// A number too large for any type is too long as well.
fn announced(digits: &[u8], body_max: u64) -> Framing {
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|d| d.parse().ok());
    match number {
        Some(length) if length <= body_max => Framing::Length(length),
        Some(_) | None => Framing::TooLong,
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.ready == 0 && matches!(this.stage, Stage::Body(0)) {
            // hyper asks for the next head, so the answer to this request is out.
            this.stage = Stage::Head;
            this.first = false;
            this.give(if this.pending.is_empty() {
                this.limits.idle_time
            } else {
                this.limits.head_time
            });
        }
        if this.ready == 0 && matches!(this.stage, Stage::Head) && this.fault.is_none() {
            std::task::ready!(this.poll_head(cx))?;
        }
        if this.ready > 0 {
            let count = this.ready.min(out.remaining());
            out.put_slice(&this.pending[..count]);
            this.pending.drain(..count);
            this.ready -= count;
            return Poll::Ready(Ok(()));
        }
        match this.stage {
            Stage::Rest => Pin::new(&mut this.socket).poll_read(cx, out),
            Stage::Body(left) => {
                let room =
                    usize::try_from(left).map_or(out.remaining(), |n| n.min(out.remaining()));
                let mut buffer = ReadBuf::new(out.initialize_unfilled_to(room));
                std::task::ready!(Pin::new(&mut this.socket).poll_read(cx, &mut buffer))?;
                let count = buffer.filled().len();
                out.advance(count);
                this.stage = Stage::Body(left - count as u64);
                Poll::Ready(Ok(()))
            }
            // The end of the stream, as far as hyper is concerned.
            Stage::Head | Stage::Ended => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    /// Only flushes: [`Guard::finish`] may have something to say before it closes.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// Writes, closes the sending side, and reads on for a while: a socket closed with unread bytes is
/// reset, which can cost the peer the answer.
pub(super) async fn close<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: S,
    last_word: Option<Vec<u8>>,
    time: std::time::Duration,
    bytes: usize,
) {
    let lingering = async {
        if let Some(word) = last_word {
            socket.write_all(&word).await?;
        }
        socket.shutdown().await?;
        let mut chunk = [0; 4096];
        let mut left = bytes;
        while left > 0 {
            match socket.read(&mut chunk).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        io::Result::Ok(())
    };
    // A peer that is gone, or does not close in time, has had its chance.
    let _ = tokio::time::timeout(time, lingering).await;
}

#[cfg(test)]
mod tests;
