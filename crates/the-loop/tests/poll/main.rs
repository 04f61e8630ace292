//! The poller against a double of GitHub, with a clock that is moved (ingress page, section 8).

mod bench;
mod cost;
mod fault;
mod first;
mod follow;
