//! One pass over a JSON text for what its parser would let pass in skipped parts.

/// Deepest nesting of a payload, the outer object included (IN-3 row 12).
pub(super) const DEPTH_MAX: usize = 64;

/// Is the text nested at most [`DEPTH_MAX`] deep, and is every surrogate escape half of a pair? Says
/// nothing about the rest of the grammar. Linear; keeps no stack.
pub(super) fn is_sound(json: &str) -> bool {
    let mut bytes = json.as_bytes();
    let mut depth = 0usize;
    while let Some((first, rest)) = bytes.split_first() {
        bytes = rest;
        match first {
            b'"' => match after_string(bytes) {
                Some(rest) => bytes = rest,
                None => return false,
            },
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return false;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    true
}

/// What follows a string whose opening quote was taken; `None` when it does not end or has a lone
/// surrogate.
fn after_string(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let (first, rest) = bytes.split_first()?;
        bytes = rest;
        match first {
            b'"' => return Some(bytes),
            b'\\' => {
                let (escaped, rest) = bytes.split_first()?;
                bytes = rest;
                if *escaped == b'u' {
                    bytes = after_unit(bytes)?;
                }
            }
            _ => {}
        }
    }
}

/// What follows the digits of a `\u` escape, and the second escape of a pair.
fn after_unit(bytes: &[u8]) -> Option<&[u8]> {
    let (unit, rest) = hex_unit(bytes)?;
    match unit {
        0xD800..=0xDBFF => {
            let (low, rest) = hex_unit(rest.strip_prefix(b"\\u")?)?;
            (0xDC00..=0xDFFF).contains(&low).then_some(rest)
        }
        0xDC00..=0xDFFF => None,
        _ => Some(rest),
    }
}

fn hex_unit(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = bytes.split_at_checked(4)?;
    let mut pair = [0; 2];
    hex::decode_to_slice(digits, &mut pair).ok()?;
    Some((u16::from_be_bytes(pair), rest))
}
