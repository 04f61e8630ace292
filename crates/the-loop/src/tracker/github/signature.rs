//! GitHub's signature over a webhook body (IN-3 row 9, IN-4, IN-5).

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// The header that carries the signature.
pub const HEADER: &str = "x-hub-signature-256";
/// What stands before the digits. SHA-1 signatures have another header and are not read.
const PREFIX: &[u8] = b"sha256=";

/// A well-formed signature as the header gave it; says nothing yet about whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature([u8; 32]);

/// Which of the accepted secrets made a signature (IN-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretNumber(u8);

impl SecretNumber {
    /// 1 for the current secret, 2 for the outgoing one.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl Signature {
    /// Reads a header value: `sha256=` and 64 lower-case hex digits, nothing else.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let digits = value.strip_prefix(PREFIX)?;
        let lower = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
        if !digits.iter().all(lower) {
            return None;
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// Compares with the signature of every secret over `body`, all of them always and each in
    /// constant time; the first that matches is named. Empty secrets match nothing.
    pub fn verify(&self, secrets: &[SecretString], body: &[u8]) -> Option<SecretNumber> {
        let mut found = None;
        for (number, secret) in (1u8..).zip(secrets) {
            let matches = self.matches(secret, body);
            if matches && found.is_none() {
                found = Some(SecretNumber(number));
            }
        }
        found
    }

    fn matches(&self, secret: &SecretString, body: &[u8]) -> bool {
        let key = secret.expose_secret().as_bytes();
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
            return false;
        };
        mac.update(body);
        mac.verify_slice(&self.0).is_ok() && !key.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(secret: &str, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(body);
        format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
    }

    fn secrets(words: &[&str]) -> Vec<SecretString> {
        words.iter().map(|w| SecretString::from(*w)).collect()
    }

    #[test]
    fn in4_githubs_published_example() {
        let header = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let signature = Signature::parse(header.as_bytes()).unwrap();
        let known = secrets(&["It's a Secret to Everybody"]);
        let number = signature.verify(&known, b"Hello, World!");
        assert_eq!(number.map(SecretNumber::get), Some(1));
        assert_eq!(signature.verify(&known, b"Hello, World! "), None);
    }

    #[test]
    fn in5_either_of_two_secrets_is_accepted_and_named() {
        let body = b"{}";
        let known = secrets(&["the new secret 123", "the old secret 123"]);
        let by = |word: &str| {
            let signature = Signature::parse(sign(word, body).as_bytes()).unwrap();
            signature.verify(&known, body).map(SecretNumber::get)
        };
        assert_eq!(by("the new secret 123"), Some(1));
        assert_eq!(by("the old secret 123"), Some(2));
        assert_eq!(by("another secret 123"), None);
    }

    #[test]
    fn in5_no_secret_and_an_empty_secret_accept_nothing() {
        let signature = Signature::parse(sign("", b"{}").as_bytes()).unwrap();
        assert_eq!(signature.verify(&[], b"{}"), None);
        assert_eq!(signature.verify(&secrets(&[""]), b"{}"), None);
    }

    #[test]
    fn in3_row9_only_the_exact_form_is_read() {
        let good = sign("s", b"{}");
        assert!(Signature::parse(good.as_bytes()).is_some());
        for bad in [
            String::new(),
            "sha256=".to_owned(),
            good.to_uppercase(),
            good.to_uppercase().replace("SHA256", "sha256"),
            good.replace("sha256", "sha1"),
            good[..good.len() - 1].to_owned(),
            format!("{good}0"),
            format!(" {good}"),
            format!("{good} "),
            good.replacen(|c: char| c.is_ascii_digit(), "é", 3),
        ] {
            assert!(Signature::parse(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
