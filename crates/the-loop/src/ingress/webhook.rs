//! The receiver of GitHub's webhooks (ingress page, sections 1 and 2).
//!
//! It decides only what it can decide from the request; what a delivery means for its item is the
//! engine's matter. The path of a request: [`server`] holds the connection, [`guard`] sees that the
//! head is bounded and its framing unambiguous, hyper reads it, [`handle`] goes down the table of
//! IN-3, of which [`check`] is the pure part, and a delivery is answered only after the inbox has it.

mod answer;
mod check;
mod guard;
mod handle;
mod limits;
mod log;
mod server;
mod throttle;

pub use limits::Limits;
pub use server::{BindFault, Bound, Receiver, ReceiverContext};
