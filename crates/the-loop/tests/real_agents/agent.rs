//! What the scenarios have to know of an agent.

use std::path::Path;

/// One real agent, as an operator would set it up. Its answers about trust are not here: they come from
/// the product.
pub struct Agent {
    /// Its name in the settings, and that of its program.
    pub name: &'static str,
    /// The variable that names the program to test.
    pub variable: &'static str,
    /// `routing.harnessArgs`: commands run unasked, but for those that are no `touch`.
    pub args: &'static [&'static str],
    /// Lines of the environment file, given the address of the model server. The key is
    /// [`crate::rig::SECRET`].
    pub env: fn(&str) -> Vec<(&'static str, String)>,
    /// What the operator has in the home, given it and the address of the model server.
    pub settle: fn(&Path, &str),
    /// What tells that a prompt was taken: `hook` or `transcript`.
    pub confirms: &'static str,
    /// Shown while it asks for leave to run a command.
    pub asks: &'static str,
    /// The keys that give it.
    pub allow: &'static [&'static str],
    /// The keys that empty its input line.
    pub clear: &'static [&'static str],
}
