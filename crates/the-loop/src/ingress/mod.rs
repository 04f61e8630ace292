//! Ways in: one that listens, and one that asks.

pub mod poll;
pub mod webhook;
