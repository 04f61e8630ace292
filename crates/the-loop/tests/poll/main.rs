//! The poller against a double of GitHub, with a clock that is moved (ingress page, section 8).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and arranges files itself"
)]

mod bench;
mod cost;
mod fault;
mod first;
mod follow;
