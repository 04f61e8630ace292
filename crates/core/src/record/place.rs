//! Where in a text a value of a JSON document stands, for messages that name line and column.

/// One step from a value into what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// Line and column, both from 1, of a byte.
pub(super) fn place(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = &bytes[..at.min(bytes.len())];
    let line = before.split(|b| *b == b'\n').count();
    let start = before
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |p| p + 1);
    (line, before.len() - start + 1)
}

/// Where the value at `path` begins in a text that is known to be JSON. A path that leads nowhere
/// gives the place of the last value that was there.
pub(super) fn locate(bytes: &[u8], path: &[Step]) -> (usize, usize) {
    let mut walker = Walker { bytes, pos: 0 };
    walker.blank();
    for step in path {
        let here = walker.pos;
        match walker.child(step) {
            Some(child) => walker.pos = child,
            None => return place(bytes, here),
        }
    }
    place(bytes, walker.pos)
}

struct Walker<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl Walker<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    fn blank(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.pos += 1;
        }
    }

    /// Where a child of the object or array here begins. Of equal keys the last one counts, as it
    /// does for the reader.
    fn child(&mut self, step: &Step) -> Option<usize> {
        let opens = self.peek()?;
        self.pos += 1;
        let mut found = None;
        let mut index = 0;
        loop {
            self.blank();
            match self.peek()? {
                b'}' | b']' => return found,
                b',' => self.pos += 1,
                _ => {
                    let wanted = if opens == b'{' {
                        let start = self.pos;
                        self.value();
                        let key = serde_json::from_slice::<String>(&self.bytes[start..self.pos]);
                        self.blank();
                        self.pos += 1;
                        self.blank();
                        matches!((step, key), (Step::Key(want), Ok(key)) if *want == key)
                    } else {
                        *step == Step::Index(index)
                    };
                    if wanted {
                        found = Some(self.pos);
                    }
                    self.value();
                    index += 1;
                }
            }
        }
    }

    /// Passes over one value.
    fn value(&mut self) {
        let mut depth = 0usize;
        loop {
            self.blank();
            match self.peek() {
                None => return,
                Some(b'"') => self.string(),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.pos += 1;
                }
                Some(b'}' | b']') => {
                    depth = depth.saturating_sub(1);
                    self.pos += 1;
                }
                Some(b',' | b':') => self.pos += 1,
                Some(_) => {
                    while self
                        .peek()
                        .is_some_and(|b| !b.is_ascii_whitespace() && !b",]}:".contains(&b))
                    {
                        self.pos += 1;
                    }
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.pos += 1;
        while let Some(b) = self.peek() {
            self.pos += if b == b'\\' { 2 } else { 1 };
            if b == b'"' {
                return;
            }
        }
    }
}
