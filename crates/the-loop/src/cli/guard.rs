//! What works inside an agent's session (SE-13): a guard against accidents.

use the_loop_core::ids::WorkItemRef;
use the_loop_core::redact::visible;

use super::args::{Command, Deliveries, Sessions, Tickets};
use super::context::{Context, Failure};
use crate::ops::error::OpError;

/// The variable that says whose pane this is.
const PANE: &str = "THE_LOOP_WORK_ITEM";

/// Refuses acting commands inside an agent's session.
pub fn check(cx: &Context, command: &Command) -> Result<(), Failure> {
    match cx.world.var(PANE) {
        Some(item) if acts(command) => Err(refused(item)),
        Some(_) | None => Ok(()),
    }
}

/// A session may register itself and link its pull requests, and do neither for another item.
pub fn own_item(cx: &Context, item: &WorkItemRef) -> Result<(), Failure> {
    let Some(own) = cx.world.var(PANE) else {
        return Ok(());
    };
    match own.parse::<WorkItemRef>() {
        Ok(same) if same.key() == item.key() => Ok(()),
        Ok(_) | Err(_) => Err(refused(own)),
    }
}

fn refused(item: &str) -> Failure {
    let item = visible(item);
    OpError::refused(format!("refused inside the agent session of {item}"))
        .hint("run it from a shell of your own")
        .into()
}

fn acts(command: &Command) -> bool {
    match command {
        Command::Start(_)
        | Command::Run
        | Command::Stop(_)
        | Command::Restart(_)
        | Command::Poll(_)
        | Command::Webhook(_)
        | Command::Demo(_) => true,
        Command::Sessions(command) => match command {
            // The last two are looked at once their item is known.
            Sessions::List { .. }
            | Sessions::Attach { .. }
            | Sessions::Register { .. }
            | Sessions::LinkPr { .. } => false,
            Sessions::Start { .. }
            | Sessions::Pause { .. }
            | Sessions::Resume { .. }
            | Sessions::Stop { .. }
            | Sessions::Restart { .. }
            | Sessions::Close { .. } => true,
        },
        Command::Deliveries(command) => match command {
            Deliveries::List { .. } | Deliveries::Show { .. } => false,
            Deliveries::Retry { .. } | Deliveries::Drop { .. } => true,
        },
        Command::Tickets(command) => match command {
            Tickets::List { .. } | Tickets::Show { .. } | Tickets::Comment { .. } => false,
            Tickets::New { .. }
            | Tickets::Edit { .. }
            | Tickets::Label { .. }
            | Tickets::Close { .. }
            | Tickets::Reopen { .. } => true,
        },
        Command::Status
        | Command::Events(_)
        | Command::Config(_)
        | Command::Completions { .. }
        | Command::Man { .. }
        | Command::Hook { .. }
        | Command::PaneExec { .. }
        | Command::DemoAgent(_) => false,
    }
}
