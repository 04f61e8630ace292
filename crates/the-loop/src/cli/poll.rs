//! `poll` (SE-23).

use std::time::Duration;

use serde_json::json;

use super::args::PollArgs;
use super::context::{Context, Ended};
use super::exit::Exit;
use super::signals::Interrupt;
use crate::ops::desk::Desk;
use crate::ops::poll::{Cycle, poll};

/// How long a busy item is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs it.
pub fn run(cx: &mut Context, args: &PollArgs) -> Ended {
    let loaded = cx.loaded(None)?;
    let portable_dir = args.state_dir.as_deref().map(|dir| cx.absolute(dir));
    let desk = Desk::new(&cx.world, loaded, portable_dir, PATIENCE);
    let interrupt = Interrupt::listen();
    let mut failed = 0;
    let mut each = |cycle: &Cycle| {
        failed = cycle.failed();
        let tally = &cycle.tally;
        if cx.out.json_wanted() {
            cx.out.json(&json!({
                "itemsSeen": tally.items_seen,
                "accepted": tally.accepted(),
                "spawns": tally.spawns,
                "commentsForwarded": tally.comments_forwarded,
                "closures": tally.closures,
                "failures": cycle.failures,
                "errors": tally.errors,
                "interrupted": tally.interrupted,
                "requests": tally.requests,
                "notModified": tally.not_modified,
            }));
        } else {
            cx.out.line(cycle.words());
        }
        cx.out.flush();
    };
    poll(&desk, args.once, interrupt.flag(), &mut each)?;
    Ok(Exit::of(failed == 0))
}
