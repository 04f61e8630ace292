//! Bytes of a terminal to keys, across any split into chunks.

/// Characters of one paste; the rest is thrown away.
const PASTE_CHARS_MAX: usize = 1 << 20;

/// What was typed or pasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// A bracketed paste, its line ends as line feeds, other controls removed.
    Paste(String),
    /// Enter.
    Submit,
    /// Ctrl-J: a line break in the composer.
    Newline,
    /// Backspace.
    Backspace,
    /// Ctrl-U or Ctrl-C: clear the composer.
    Clear,
    /// Ctrl-D.
    Eof,
    /// Escape alone.
    Escape,
}

/// Decodes what a terminal sends.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

impl Decoder {
    /// Takes a chunk; answers the keys that are complete. An escape at the end of a chunk is the key
    /// itself: terminals send sequences whole.
    pub fn take(&mut self, chunk: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(chunk);
        let mut keys = Vec::new();
        while let Some(used) = self.next(&mut keys) {
            self.pending.drain(..used);
        }
        keys
    }

    /// Decodes at the front of what is pending; answers how many bytes were used, `None` when more are
    /// needed.
    fn next(&mut self, keys: &mut Vec<Key>) -> Option<usize> {
        if let Some(paste) = &mut self.paste {
            if let Some(at) = find(&self.pending, PASTE_ENDS) {
                keep(paste, &self.pending[..at]);
                let bytes = self.paste.take().unwrap_or_default();
                keys.push(Key::Paste(pasted(&bytes)));
                return Some(at + PASTE_ENDS.len());
            }
            // The end mark may be cut in two.
            let sure = self.pending.len().saturating_sub(PASTE_ENDS.len());
            keep(paste, &self.pending[..sure]);
            return (sure > 0).then_some(sure);
        }
        let first = *self.pending.first()?;
        if self.pending.starts_with(PASTE_BEGINS) {
            self.paste = Some(Vec::new());
            return Some(PASTE_BEGINS.len());
        }
        let key = match first {
            0x1b => return self.escape(keys),
            b'\r' => Key::Submit,
            b'\n' => Key::Newline,
            0x7f | 0x08 => Key::Backspace,
            0x03 | 0x15 => Key::Clear,
            0x04 => Key::Eof,
            b'\t' => Key::Char(' '),
            0x00..=0x1f => return Some(1),
            _ => return self.character(keys),
        };
        keys.push(key);
        Some(1)
    }

    /// Steps over a control sequence; an escape with nothing behind it is the key.
    fn escape(&self, keys: &mut Vec<Key>) -> Option<usize> {
        match self.pending.get(1) {
            Some(b'[' | b'O') => {
                let end = self.pending[2..]
                    .iter()
                    .position(|b| (0x40..=0x7e).contains(b));
                match end {
                    Some(end) => Some(end + 3),
                    // A sequence that never ends is none.
                    None if self.pending.len() > 64 => Some(1),
                    None => None,
                }
            }
            Some(b'\r') => {
                keys.push(Key::Newline);
                Some(2)
            }
            Some(_) | None => {
                keys.push(Key::Escape);
                Some(1)
            }
        }
    }

    fn character(&self, keys: &mut Vec<Key>) -> Option<usize> {
        let length = match self.pending[0] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        if self.pending.len() < length {
            return None;
        }
        let text = std::str::from_utf8(&self.pending[..length]).ok();
        match text.and_then(|t| t.chars().next()) {
            Some(c) => {
                keys.push(Key::Char(c));
                Some(length)
            }
            None => Some(1),
        }
    }
}

fn keep(paste: &mut Vec<u8>, bytes: &[u8]) {
    let room = PASTE_CHARS_MAX.saturating_sub(paste.len()).min(bytes.len());
    paste.extend_from_slice(&bytes[..room]);
}

/// tmux pastes line feeds as carriage returns.
fn pasted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .replace("\r\n", "\n")
        .chars()
        .map(|c| match c {
            '\r' => '\n',
            '\t' => ' ',
            other => other,
        })
        .filter(|c| *c == '\n' || !c.is_control())
        .collect()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}
