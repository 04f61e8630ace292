//! The form encoding of a payload.

/// The value of the one field `payload`; `None` when there is none or more than one, when an escape
/// is broken, or when the value is not UTF-8.
pub(super) fn payload(body: &[u8]) -> Option<String> {
    let mut found = None;
    for field in body.split(|b| *b == b'&') {
        let split = field.iter().position(|b| *b == b'=');
        let (name, value) = field.split_at(split.unwrap_or(field.len()));
        if decode(name).as_deref() != Some(b"payload") {
            continue;
        }
        if found.is_some() {
            return None;
        }
        found = Some(value.strip_prefix(b"=").unwrap_or_default());
    }
    String::from_utf8(decode(found?)?).ok()
}

/// `+` is a blank and `%` is followed by two hex digits.
fn decode(mut text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    while let Some((first, rest)) = text.split_first() {
        text = rest;
        match first {
            b'+' => out.push(b' '),
            b'%' => {
                let (digits, rest) = text.split_at_checked(2)?;
                let mut byte = [0];
                hex::decode_to_slice(digits, &mut byte).ok()?;
                out.push(byte[0]);
                text = rest;
            }
            other => out.push(*other),
        }
    }
    Some(out)
}
