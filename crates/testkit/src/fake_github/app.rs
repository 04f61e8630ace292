//! A GitHub App at the double: it takes the App's word, signed with its key, and gives tokens for it.

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::Deserialize;
use serde_json::json;

use super::routes::Shown;
use super::world::World;

/// Its number.
pub const APP_ID: u64 = 4711;
/// Its private key, made for these tests and good for nothing else.
pub const APP_KEY: &str = include_str!("app_key.pem");
/// What its word is checked with.
const PUBLIC_KEY: &str = include_str!("app_key.pub.pem");
/// Begins the tokens of its installations.
const TOKEN: &str = "ghs_installed";
/// How long one holds, in seconds.
const HOLDS: i64 = 3_600;

#[derive(Deserialize)]
struct Claims {
    iat: i64,
    exp: i64,
    iss: String,
}

/// Is this the App's word, in force now?
fn is_word(world: &World, authorization: &str) -> bool {
    let Some(word) = authorization.strip_prefix("Bearer ") else {
        return false;
    };
    let Ok(key) = DecodingKey::from_rsa_pem(PUBLIC_KEY.as_bytes()) else {
        return false;
    };
    let mut how = Validation::new(Algorithm::RS256);
    how.validate_exp = false;
    let now = world.seconds();
    decode::<Claims>(word, &key, &how).is_ok_and(|told| {
        let claims = told.claims;
        let holds = claims.iat <= now && now < claims.exp && claims.exp - claims.iat <= 600;
        holds && claims.iss == APP_ID.to_string()
    })
}

/// Is this a token of an installation, in force now?
pub(super) fn is_token(world: &World, authorization: &str) -> bool {
    let until = authorization.strip_prefix(&format!("Bearer {TOKEN}_"));
    let until = until.and_then(|until| until.parse::<i64>().ok());
    until.is_some_and(|until| world.seconds() < until)
}

/// Answers what only the App itself may ask; `None`: that is another question.
pub(super) fn answer(world: &World, authorization: &str, parts: &[&str]) -> Option<Shown> {
    let shown = match parts {
        ["app"] => json!({ "id": APP_ID, "slug": "octo-app" }),
        ["repos", "octo", _, "installation"] => json!({ "id": 815 }),
        ["app", "installations", "815", "access_tokens"] => {
            let until = world.seconds() + HOLDS;
            let at = the_loop_core::time::Timestamp::from_unix_ms(until * 1_000);
            json!({ "token": format!("{TOKEN}_{until}"), "expires_at": at.seconds() })
        }
        ["app", ..] | ["repos", _, _, "installation"] => {
            return Some(Shown::Status(404, String::new()));
        }
        _ => return None,
    };
    Some(if is_word(world, authorization) {
        Shown::Thing(shown)
    } else {
        Shown::Status(401, String::new())
    })
}
