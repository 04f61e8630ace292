//! A double of GitHub's REST interface: repositories with tickets, pull requests, words and runs, behind real
//! HTTP on loopback.
//!
//! `world` is what there is and how it changes, `routes` which address shows what of it, `http` the way in:
//! validators, pages, limits, faults, and a list of what was asked. What a test does not set up is not there.

#![allow(
    clippy::expect_used,
    reason = "a double that cannot listen is a test that fails"
)]

mod app;
mod http;
mod routes;
mod world;

use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

pub use app::{APP_ID, APP_KEY};
pub use http::{Fault, Request};
pub use world::World as Contents;

/// The token that it takes.
pub const TOKEN: &str = "ghp_fakefakefakefake";

/// The double. It ends with the process that runs the test.
#[derive(Debug)]
pub struct FakeGithub {
    port: u16,
    state: Arc<Mutex<http::State>>,
}

impl Default for FakeGithub {
    fn default() -> Self {
        Self::start()
    }
}

impl FakeGithub {
    /// Listens on a free port of this machine.
    ///
    /// # Panics
    /// When there is none.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(Mutex::new(http::State::new(port)));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || http::serve(&shared, stream));
            }
        });
        Self { port, state }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of its interface.
    pub fn api(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Changes what there is.
    pub fn change<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        change(&mut self.state().world)
    }

    /// Everything that was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// Forgets what was asked.
    pub fn forget_requests(&self) {
        self.state().requests.clear();
    }

    /// The next requests whose path has this in it are answered so, each fault once, in order.
    pub fn fails(&self, path: &str, fault: Fault) {
        self.state().faults.push_back((path.to_owned(), fault));
    }

    /// No fault waits any more.
    pub fn works(&self) {
        self.state().faults.clear();
    }

    /// Calls that are left of this hour, and when the next one begins (Unix seconds).
    pub fn has_left(&self, remaining: u64, resets_at: i64) {
        let mut state = self.state();
        (state.remaining, state.resets_at) = (remaining, resets_at);
    }

    /// The comments that were posted to an item.
    pub fn posted(&self, repo: &str, number: u64) -> Vec<String> {
        let state = self.state();
        let comments = state.world.comments_of(repo, number);
        let posted = comments.filter(|comment| comment["user"]["login"] == world::OWN_LOGIN);
        posted
            .filter_map(|comment| Some(comment["body"].as_str()?.to_owned()))
            .collect()
    }

    /// An item as it stands.
    pub fn item(&self, repo: &str, number: u64) -> Option<Value> {
        self.state().world.item(repo, number).cloned()
    }

    fn state(&self) -> MutexGuard<'_, http::State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<http::State>) -> MutexGuard<'_, http::State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
