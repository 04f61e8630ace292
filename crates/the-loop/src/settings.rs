//! The settings of this machine: which file, what it says, where each value comes from (CF-1 to CF-9),
//! and what goes with them: the env file and the receiver's secrets.
//!
//! [`prepare`] is for `main`, [`load`] for everything that has a [`World`](crate::world::World)
//! already, [`Live`] for the daemon, which follows the file while it runs.

mod yaml;

mod find;

mod fault;
mod load;
mod origin;

mod envfile;
mod live;
mod secrets;
mod warnings;

pub use envfile::{
    EnvFault, NAMES_OF_THE_PANE, declared_environment, own_names, pane_environment, read_env_file,
};
pub use fault::{ConfigFault, tilde};
pub use find::{Candidate, Found, Place, Search, find};
pub use live::{Live, Look, Pending};
pub use load::{Loaded, Overrides, Prepared, check_file, load, prepare};
pub use origin::{Origin, Origins};
pub use secrets::{SecretFault, Secrets, SecretsHolder, webhook_secrets};
pub use warnings::warnings_of_machine;

#[cfg(test)]
pub(crate) mod tests;
