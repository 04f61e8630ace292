//! An operator's own prompt text (IN-65).

/// Bytes of a template file; a larger one is not used, with a warning.
pub const TEMPLATE_BYTES_MAX: u64 = 64 << 10;

/// A template with its placeholders filled in.
pub(super) struct Expanded {
    /// The text.
    pub(super) text: String,
    /// Names of the placeholders that had a value.
    pub(super) used: Vec<String>,
}

/// Fills `$name` and `${name}` in, once: values are not looked through again. `$$` is a dollar; a name
/// without a value, and a dollar that begins no name, stay as they are.
pub(super) fn expand<'v>(template: &str, value: impl Fn(&str) -> Option<&'v str>) -> Expanded {
    let mut text = String::with_capacity(template.len());
    let mut used = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let after = &rest[1..];
        if let Some(tail) = after.strip_prefix('$') {
            text.push('$');
            rest = tail;
            continue;
        }
        let found = placeholder(after).and_then(|(name, tail)| Some((name, value(name)?, tail)));
        if let Some((name, value, tail)) = found {
            text.push_str(value);
            used.push(name.to_owned());
            rest = tail;
        } else {
            text.push('$');
            rest = after;
        }
    }
    text.push_str(rest);
    Expanded { text, used }
}

/// The name that stands after a dollar, and what follows the placeholder.
fn placeholder(after: &str) -> Option<(&str, &str)> {
    if let Some(braced) = after.strip_prefix('{') {
        let (name, tail) = braced.split_at(name_len(braced));
        return Some((name, tail.strip_prefix('}')?)).filter(|_| !name.is_empty());
    }
    let (name, tail) = after.split_at(name_len(after));
    (!name.is_empty()).then_some((name, tail))
}

fn name_len(text: &str) -> usize {
    let rest = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    match text.bytes().next() {
        Some(b) if b.is_ascii_alphabetic() || b == b'_' => text.bytes().take_while(rest).count(),
        Some(_) | None => 0,
    }
}
