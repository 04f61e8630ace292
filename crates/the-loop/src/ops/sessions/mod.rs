//! The `sessions` verbs (sessions page, section 3).
//!
//! `view` tells what hosts a session and what its agent does; `list` and `attach` show it; `register`
//! binds, `link_pr` says which pull request belongs to an item; `start` is a delivery; `restart` renews environments; `control` ends, pauses and resumes, `echo` says so on the ticket; `report` is what acting verbs say.

pub mod attach;
pub mod control;
mod echo;
pub mod link_pr;
pub mod list;
pub mod register;
pub mod report;
pub mod restart;
pub mod start;
pub mod view;
