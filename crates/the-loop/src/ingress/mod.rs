//! Ways in that listen.

pub mod webhook;
