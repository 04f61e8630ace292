//! `xtask bench`: the numbers of the dispatch page, as ratios in one run, so that they mean the same on
//! another machine. Loopback only, in a directory and on a tmux server of its own; both go at the end.

mod accept;
mod cost;
mod load;
mod pane;
mod place;
mod poll;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use camino::Utf8Path;

use place::Place;

/// Which part to run; none is all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Webhooks accepted.
    Accept,
    /// An event until it is in a pane, and the idle daemon.
    Pane,
    /// The command line.
    Cli,
    /// A cycle of the poller.
    Poll,
}

/// Measures the release binary, building it first.
pub fn run(root: &Utf8Path, parts: &[Part]) -> Result<()> {
    let cargo = Command::new("cargo")
        .current_dir(root)
        .args(["build", "--release", "--workspace", "--locked"])
        .status()
        .context("cargo")?;
    if !cargo.success() {
        bail!("the release build failed");
    }
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let program = root.join(target).join("release/the-loop");
    let all = parts.is_empty();
    let wanted = |part| all || parts.contains(&part);
    if wanted(Part::Accept) {
        accept::run(root, &program)?;
    }
    if wanted(Part::Pane) {
        let mut place = Place::make(&program, "")?;
        place.start()?;
        pane::run(&place)?;
    }
    if wanted(Part::Cli) {
        cost::command_line(&program)?;
    }
    if wanted(Part::Poll) {
        poll::run(&program)?;
    }
    Ok(())
}

/// The value below which so many of a hundred lie.
fn percentile(values: &mut [Duration], percent: usize) -> Duration {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    let at = (values.len() * percent / 100).min(last);
    values.get(at).copied().unwrap_or_default()
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_and_of_many() {
        let of = |n: u64| (1..=n).map(Duration::from_millis).collect::<Vec<_>>();
        assert_eq!(percentile(&mut of(100), 50), Duration::from_millis(51));
        assert_eq!(percentile(&mut of(100), 99), Duration::from_millis(100));
        assert_eq!(percentile(&mut of(1), 99), Duration::from_millis(1));
        assert_eq!(percentile(&mut [], 99), Duration::ZERO);
    }
}
