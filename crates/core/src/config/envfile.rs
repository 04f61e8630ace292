//! The grammar of `env.file` (CF-31).

/// Is this the name of a variable: `[A-Za-z_][A-Za-z0-9_]*`?
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
