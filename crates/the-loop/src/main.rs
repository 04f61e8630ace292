//! The binary: build the world, run one command line, exit.
#![allow(
    clippy::disallowed_methods,
    reason = "the environment, the current directory and the home directory are read here, once"
)]

use std::process::ExitCode;
use std::sync::Arc;

use camino::Utf8PathBuf;
use the_loop::clock::Clock;
use the_loop::disk::OsDisk;
use the_loop::ids::Ids;
use the_loop::process::OsProcesses;
use the_loop::world::World;

fn main() -> ExitCode {
    let words = std::env::args_os().collect();
    match world() {
        Ok(world) => ExitCode::from(the_loop::cli::run(world, words).0),
        Err(why) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "error: {why}");
            ExitCode::from(1)
        }
    }
}

/// Reads what the process was given. Variables that are not text are not seen.
fn world() -> Result<World, String> {
    let cwd = match std::env::current_dir() {
        // Its directory was removed under a shell, or under an agent whose hook calls us. This name means
        // just that directory: nothing is found in it and nothing can be made in it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "/proc/self/cwd".into(),
        cwd => cwd.map_err(|e| format!("no current directory: {e}"))?,
    };
    let cwd = Utf8PathBuf::from_path_buf(cwd)
        .map_err(|path| format!("{}: the current directory is not UTF-8", path.display()))?;
    let program = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let program = Utf8PathBuf::from_path_buf(program)
        .map_err(|path| format!("{}: this program's path is not UTF-8", path.display()))?;
    let env: std::collections::BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let home = env
        .get("HOME")
        .filter(|home| home.starts_with('/'))
        .map(Utf8PathBuf::from);
    Ok(World {
        disk: Arc::new(OsDisk),
        processes: Arc::new(OsProcesses),
        clock: Clock::System,
        ids: Ids::Random,
        user: user(&env),
        env: Arc::new(env),
        cwd,
        home,
        program,
        pid: std::process::id(),
    })
}

/// The name of the operating-system user: what the account database calls the effective user, so that
/// a variable cannot make somebody another; the number where it knows no name.
fn user(env: &std::collections::BTreeMap<String, String>) -> String {
    let uid = rustix::process::geteuid().as_raw();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (id.parse() == Ok(uid)).then(|| name.to_owned())
    });
    // Accounts of a directory service are not in that file; the login's own variable is the next best.
    name.or_else(|| env.get("USER").or_else(|| env.get("LOGNAME")).cloned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| uid.to_string())
}
