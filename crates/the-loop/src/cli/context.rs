//! What every command begins with: the world, the streams, and the settings when it needs them.

use std::time::Duration;

use camino::Utf8PathBuf;
use the_loop_core::ids::WorkItemRef;
use the_loop_core::redact::visible;

use super::args::{Dirs, Global};
use super::exit::Exit;
use super::out::Out;
use crate::ops::desk::Desk;
use crate::ops::error::OpError;
use crate::settings::{self, ConfigFault, Loaded, Overrides};
use crate::world::World;

/// Seconds that a verb without `--lock-timeout` waits for a busy item (SE-9).
const PATIENCE: Duration = Duration::from_secs(30);

/// World, streams and global flags of one command.
#[derive(Debug)]
pub struct Context {
    /// The outside, its environment filled up from the env file once [`Context::loaded`] ran.
    pub world: World,
    /// The streams.
    pub out: Out,
    /// The global flags.
    pub global: Global,
}

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// It failed; to be printed.
    Op(Box<OpError>),
    /// The configuration cannot be used; to be printed.
    Config(Box<ConfigFault>),
    /// All was said already.
    Said(Exit),
}

impl From<OpError> for Failure {
    fn from(e: OpError) -> Self {
        Self::Op(Box::new(e))
    }
}

impl From<Box<ConfigFault>> for Failure {
    fn from(e: Box<ConfigFault>) -> Self {
        Self::Config(e)
    }
}

/// How a command ends.
pub type Ended = Result<Exit, Failure>;

impl Context {
    /// Settings for a command that cannot do without. Every command says which file was passed over
    /// (CF-2).
    pub fn loaded(&mut self, dirs: Option<&Dirs>) -> Result<Loaded, Failure> {
        let (loaded, _) = self.prepared(dirs);
        Ok(loaded?)
    }

    /// Settings or why there are none, and what is wrong with the env file.
    pub fn prepared(
        &mut self,
        dirs: Option<&Dirs>,
    ) -> (
        Result<Loaded, Box<ConfigFault>>,
        Vec<the_loop_core::config::problem::Problem>,
    ) {
        let overrides = Overrides {
            registry_dir: dirs.and_then(|dirs| dirs.registry_dir.clone()),
        };
        let flag = self.global.config.as_deref();
        let prepared = settings::prepare(self.world.clone(), flag, &overrides);
        self.world = prepared.world;
        if let Ok(loaded) = &prepared.loaded {
            for notice in &loaded.notices {
                self.out.warning(visible(&notice.message));
                if let Some(hint) = &notice.hint {
                    self.out.hint(visible(hint));
                }
            }
        }
        (prepared.loaded, prepared.env_warnings)
    }

    /// Settings and places of a command.
    pub fn desk(&mut self, dirs: Option<&Dirs>) -> Result<Desk, Failure> {
        let loaded = self.loaded(dirs)?;
        let patience = dirs.map_or(PATIENCE, |dirs| Duration::from_secs(dirs.lock_timeout));
        let portable_dir = dirs.and_then(|dirs| dirs.portable_dir.as_deref());
        let portable_dir = portable_dir.map(|dir| self.absolute(dir));
        Ok(Desk::new(&self.world, loaded, portable_dir, patience))
    }

    /// A path that was given on the command line: `~` is the home directory, relative ones count from
    /// the caller's directory (CF-6, SE-10).
    pub fn absolute(&self, path: &str) -> Utf8PathBuf {
        let home = self.world.home.as_deref().map(camino::Utf8Path::as_str);
        the_loop_core::config::paths::expand(path, self.world.cwd.as_str(), home).into()
    }

    /// Reads refs; all bad ones are reported and nothing is done (SE-8).
    pub fn refs<S: AsRef<str>>(&self, texts: &[S]) -> Result<Vec<WorkItemRef>, Failure> {
        crate::ops::desk::parse_refs(texts).map_err(|bad| {
            for error in &bad {
                self.out.error(error);
            }
            Failure::Said(Exit::USAGE)
        })
    }

    /// Prints why a command ended, and gives its exit code.
    pub fn end(&self, ended: Ended) -> Exit {
        let exit = match ended {
            Ok(exit) | Err(Failure::Said(exit)) => exit,
            Err(Failure::Op(e)) => {
                self.out.error(&e);
                Exit(e.kind.exit_code())
            }
            Err(Failure::Config(fault)) => {
                self.out.config_fault(&self.world, &fault);
                Exit::USAGE
            }
        };
        if self.out.finish() {
            exit
        } else {
            exit.and(Exit::FAILED)
        }
    }
}
