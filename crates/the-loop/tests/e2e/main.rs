//! From a signed webhook to the agent that has it, with nothing replaced: the built program, real HTTP, real
//! tmux on a private socket, real git. One file for each way in which it could go wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test fails by panicking, arranges files and programs itself, and says what it measured"
)]

mod asked;
mod attach;
mod attached;
mod control;
mod crowd;
mod harness;
mod hold;
mod hooked;
mod http;
mod hub;
mod inbox;
mod kill;
mod left_alone;
mod order;
mod payload;
mod person;
mod polled;
mod pulls;
mod renewed;
mod restart;
mod rig;
mod roll;
mod root;
mod scripted;
mod secret;
mod seed004;
mod shown;
mod steps;
mod text;
mod wrapper;
mod written;
