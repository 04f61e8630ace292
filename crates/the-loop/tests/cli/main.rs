//! The command line as a person meets it: the real binary over throwaway homes and roots.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and arranges files and programs itself"
)]

mod attention;
mod daemon;
mod grammar;
mod home;
mod hostile;
mod life;
mod look;
mod odd;
mod sessions;
mod tickets;
