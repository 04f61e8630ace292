//! GitHub: what signed webhooks say, and what is written back.

pub mod client;
pub mod credential;
pub mod payload;
pub mod signature;
