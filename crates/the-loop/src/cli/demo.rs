//! `demo` (SE-104).

use serde_json::{Value, json};
use the_loop_core::config::Settings;
use the_loop_core::redact::visible;

use super::args::DemoRun;
use super::context::{Context, Ended};
use super::exit::Exit;
use super::signals::Interrupt;
use crate::harness::adapter::Adapters;
use crate::ops::demo::{Demo, demo};
use crate::ops::error::OpError;

/// Runs it.
pub fn run(cx: &mut Context, args: &DemoRun) -> Ended {
    let adapters = Adapters::of(&Settings::default());
    if adapters.named(&args.harness).is_none() {
        let shown = visible(&args.harness);
        let names = adapters.names().join(", ");
        let made = OpError::usage(format!("no harness is called \"{shown}\""));
        return Err(made.hint(format!("there are {names}")).into());
    }
    let interrupt = Interrupt::listen();
    let asked = Demo {
        harness: args.harness.clone(),
        keep: args.keep,
        once: args.once,
    };
    let json_wanted = cx.out.json_wanted();
    let mut steps: Vec<Value> = Vec::new();
    let out = &cx.out;
    let mut say = |step: &str, seen: &str| {
        if json_wanted {
            steps.push(json!({ "step": step, "seen": seen }));
        } else {
            out.line(format!("{step:<11}{}", visible(seen)));
            out.flush();
        }
    };
    let shown = demo(&cx.world, &asked, interrupt.flag(), &mut say);
    if json_wanted {
        cx.out.json(&match &shown {
            Ok(shown) => json!({ "ok": true, "steps": steps,
                "seconds": shown.took.as_secs_f64(), "missing": null,
                "left": shown.left.iter().map(|(what, at)| json!({ "what": what, "at": at })).collect::<Vec<Value>>() }),
            Err(e) => json!({ "ok": false, "steps": steps, "seconds": null, "missing": e.message, "left": [] }),
        });
    }
    let shown = match shown {
        Ok(shown) => shown,
        Err(e) => {
            cx.out.error(&e);
            return Ok(interrupt.exit(Exit(e.kind.exit_code())));
        }
    };
    if !json_wanted {
        cx.out
            .line(format!("demo passed in {:.1} s", shown.took.as_secs_f64()));
        for (what, at) in &shown.left {
            cx.out.line(format!("{what:<11}{}", visible(at)));
        }
    }
    Ok(Exit::OK)
}
