//! The webhook receiver from outside: raw bytes in, answers, inbox rows and log lines out.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the helpers of a test fail by panicking, as the test does"
)]

mod commit;
mod connections;
mod examples;
mod rows;
mod support;
