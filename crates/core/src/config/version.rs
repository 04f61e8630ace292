//! Versions of the configuration document (CF-37).

/// The version this program reads and writes.
pub const CURRENT: &str = "1.0.0";

/// `X.Y.Z` as three numbers, compared part by part; `None` for anything else.
pub fn parse(text: &str) -> Option<[u64; 3]> {
    let mut parts = text.split('.');
    let mut next = || {
        let part = parts.next()?;
        let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| part.parse::<u64>().ok()).flatten()
    };
    let version = [next()?, next()?, next()?];
    parts.next().is_none().then_some(version)
}
