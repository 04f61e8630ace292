//! The engine against a model of tmux and of agents: every crash point, every failing call, and what
//! people and terminals do to a delivery.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod attention;
mod conflicts;
mod crash;
mod histories;
mod holds;
mod hostile;
mod kept;
mod limits;
mod recovery;
mod restart;
mod script;
mod spawn;
mod trouble;
