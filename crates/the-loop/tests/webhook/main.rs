//! The webhook receiver from outside: raw bytes in, answers, inbox rows and log lines out.

mod commit;
mod connections;
mod examples;
mod rows;
mod support;
