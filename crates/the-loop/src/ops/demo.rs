//! `demo` (SE-104): the whole loop in a throwaway root, repository and private tmux server, offline.
//!
//! Each step is told when it was *observed*: in the event log, in the records, or on disk. The
//! operator's own configuration, state and tmux server are not touched.

mod place;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Map, Value};
use the_loop_core::event::{Filter, Glob};
use the_loop_core::ids::WorkItemRef;
use the_loop_core::record::CloseReason;
use the_loop_core::session::SessionStatus;
use the_loop_core::time::Timestamp;

use super::desk::Desk;
use super::error::{Kind, OpError};
use super::sessions::control::saved_words;
use super::tickets::{Changed, NewTicket, TicketDesk, Who};
use crate::store::eventlog::Reader;
use crate::tracker::local::OWN_ACTOR;
use crate::world::World;

use place::Place;

/// The repository of the demo.
const REPO: &str = "demo/hello";
/// Between two looks for what is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a step may take with the demo harness.
const STEP_WITHIN: Duration = Duration::from_secs(30);
/// How long a step may take with a real one.
const REAL_STEP_WITHIN: Duration = Duration::from_mins(3);
/// What to show.
#[derive(Clone, Debug)]
pub struct Demo {
    /// The harness.
    pub harness: String,
    /// Leave everything there.
    pub keep: bool,
    /// Without the follow-up.
    pub once: bool,
}

/// How it went.
#[derive(Clone, Debug)]
pub struct Shown {
    /// How long it took.
    pub took: Duration,
    /// What is left, as (what, where).
    pub left: Vec<(String, String)>,
}

/// Told of each step when it was observed: its word, and what was seen.
pub type Say<'a> = dyn FnMut(&str, &str) + 'a;

/// Runs the demo. An error names the step that was not observed; its files are left then.
pub fn demo(
    world: &World,
    asked: &Demo,
    stop: &Arc<AtomicBool>,
    say: &mut Say<'_>,
) -> Result<Shown, OpError> {
    let began = world.clock.now();
    let place = Place::make(world, asked)?;
    let stage = Stage::open(&place, asked, stop);
    let played = stage.and_then(|stage| stage.play(say));
    let keep = asked.keep && played.is_ok();
    if !keep {
        place.end();
    }
    let took = world.clock.now().since(began);
    match played {
        Ok(()) if keep => Ok(Shown {
            took,
            left: place.left(),
        }),
        Ok(()) => {
            let removed = world.disk.remove_dir_all(&place.dir);
            removed.map_err(|e| OpError::failed(format!("{}: cannot remove it", place.dir), &e))?;
            Ok(Shown {
                took,
                left: Vec::new(),
            })
        }
        Err(e) => Err(e
            .hint(format!(
                "event log: {}",
                place.root().join("logs/events.jsonl")
            ))
            .hint(format!(
                "daemon log: {}",
                place.root().join("logs/daemon.log")
            ))
            .hint(format!("remove it with: rm -r {}", place.dir))),
    }
}

/// The demo with its daemon up.
struct Stage<'a> {
    place: &'a Place,
    asked: &'a Demo,
    stop: &'a AtomicBool,
    desk: Desk,
    step_within: Duration,
}

impl<'a> Stage<'a> {
    fn open(place: &'a Place, asked: &'a Demo, stop: &'a AtomicBool) -> Result<Self, OpError> {
        let started = place.program(&["start"]);
        if !started.ok() {
            let why = started.describe();
            return Err(OpError::new(
                Kind::Failed,
                format!("the daemon did not start: {why}"),
            ));
        }
        Ok(Self {
            desk: place.desk()?,
            step_within: if asked.harness == "demo" {
                STEP_WITHIN
            } else {
                REAL_STEP_WITHIN
            },
            place,
            asked,
            stop,
        })
    }

    fn play(&self, say: &mut Say<'_>) -> Result<(), OpError> {
        let user = self.place.world.user.clone();
        let verbs = TicketDesk::open(&self.desk, Who::Person(user.clone()))?;
        let made = verbs.create(&NewTicket {
            repo: Some(REPO.to_owned()),
            title: "Say hello".to_owned(),
            body: "Add a line to a file, commit it, and tell us here.".to_owned(),
            ..NewTicket::default()
        })?;
        let item = made.ticket.item.clone();
        self.ticket_changed("ticket", "created")?;
        say("ticket", &format!("{item} created"));

        let label = self.desk.settings().routing.auto_execute_label.clone();
        let keyword = self.desk.settings().routing.control.keywords.start.clone();
        verbs.label(&item, std::slice::from_ref(&label), &[])?;
        let start = verbs.comment(&item, &keyword)?;
        self.armed(&item)?;
        say("armed", &format!("label and \"{keyword}\" by {user}"));

        let spawned = self.event("spawned", "session.spawned", &|_| true)?;
        let (harness, target) = (text(&spawned, "harness"), text(&spawned, "tmux_target"));
        let socket = &self.place.socket;
        say(
            "spawned",
            &format!("{harness} in {target}   tmux -L {socket} attach -r -t ={target}"),
        );
        let checkout = self.checkout(&item)?;
        self.confirmed(&start, "first prompt", say)?;
        self.agent_worked(&item, &checkout, say)?;
        if !self.asked.once {
            let words = "Thank you. Please add one more line.";
            let follow_up = verbs.comment(&item, words)?;
            self.confirmed(&follow_up, "follow-up comment", say)?;
            self.replies(&item, 2)?;
        }
        if !self.asked.keep {
            verbs.close(&item, CloseReason::Completed)?;
            self.closed(&item, &checkout, say)?;
        }
        Ok(())
    }

    /// The item's control section says run.
    fn armed(&self, item: &WorkItemRef) -> Result<(), OpError> {
        let portable = self.desk.portable();
        self.until("armed", "the start command is recorded", || {
            let control = portable.control(item).ok().flatten();
            control
                .filter(the_loop_core::record::Control::armed)
                .map(|_| ())
        })
    }

    fn checkout(&self, item: &WorkItemRef) -> Result<Utf8PathBuf, OpError> {
        let registry = self.desk.registry();
        self.until("spawned", "the session record names a checkout", || {
            let found = registry.get(item).ok()??;
            Some(Utf8PathBuf::from(found.record.workspace?.path))
        })
    }

    fn confirmed(&self, what: &Changed, which: &str, say: &mut Say<'_>) -> Result<(), OpError> {
        let seq = what.seq.unwrap_or_default();
        let inbox = self.desk.inbox_to_read()?;
        let row = inbox.and_then(|inbox| inbox.delivery(seq).ok().flatten());
        let id = row.map(|row| row.delivery_id).unwrap_or_default();
        let ours = |event: &Map<String, Value>| text(event, "delivery_id") == id;
        let event = self.event(&format!("confirmed ({which})"), "delivery.confirmed", &ours)?;
        let waited = event.get("waited_ms").and_then(Value::as_u64).unwrap_or(0);
        say("confirmed", &format!("{which}, {}", seconds(waited)));
        Ok(())
    }

    /// The agent committed something and said so on the ticket.
    fn agent_worked(
        &self,
        item: &WorkItemRef,
        checkout: &Utf8Path,
        say: &mut Say<'_>,
    ) -> Result<(), OpError> {
        let files = self.until("agent", "a commit in the checkout", || {
            let range = ["diff", "--name-only", "origin/main...HEAD"];
            let changed = self.place.git(checkout, &range).ok()?.out();
            Some(changed.lines().count()).filter(|files| *files > 0)
        })?;
        self.replies(item, 1)?;
        let files = if files == 1 {
            "1 file".to_owned()
        } else {
            format!("{files} files")
        };
        say("agent", &format!("committed {files}, replied"));
        Ok(())
    }

    /// So many comments of the agent are on the ticket, by the log.
    fn replies(&self, item: &WorkItemRef, count: usize) -> Result<(), OpError> {
        self.until("agent", "a reply on the ticket", || {
            let by_agent = |event: &&Map<String, Value>| {
                text(event, "change") == "commented"
                    && text(event, "actor") == OWN_ACTOR
                    && text(event, "work_item") == item.to_string()
            };
            let events = self.events("ticket.changed");
            (events.iter().filter(by_agent).count() >= count).then_some(())
        })
    }

    fn ticket_changed(&self, step: &str, change: &str) -> Result<(), OpError> {
        let wanted = |event: &Map<String, Value>| text(event, "change") == change;
        self.event(step, "ticket.changed", &wanted).map(|_| ())
    }

    /// The session ended, its work is saved and named, the checkout is gone.
    fn closed(
        &self,
        item: &WorkItemRef,
        checkout: &Utf8Path,
        say: &mut Say<'_>,
    ) -> Result<(), OpError> {
        self.event("closed", "session.autoclosed", &|_| true)?;
        let saved = self.event("closed", "work.saved", &|_| true)?;
        self.event("closed", "workspace.cleaned", &|_| true)?;
        let registry = self.desk.registry();
        self.until("closed", "the session record says closed", || {
            let found = registry.get(item).ok()?;
            let open = found.is_some_and(|found| found.record.status != SessionStatus::Closed);
            (!open).then_some(())
        })?;
        let disk = &self.place.world.disk;
        self.until("closed", "the checkout is gone", || {
            matches!(disk.meta(checkout), Ok(None)).then_some(())
        })?;
        let bundle = text(&saved, "bundle");
        let file = self.desk.layout.saved_dir().join(&bundle);
        self.until("closed", "the saved bundle is there", || {
            let with_end = Utf8PathBuf::from(format!("{file}.bundle"));
            let there = |path: &Utf8Path| matches!(disk.meta(path), Ok(Some(_)));
            (there(&file) || there(&with_end)).then_some(())
        })?;
        let count = |name: &str| saved.get(name).and_then(Value::as_u64).unwrap_or(0);
        let words = saved_words(count("files"), count("commits"));
        let name = bundle.strip_suffix(".bundle").unwrap_or(&bundle);
        say(
            "closed",
            &format!("session ended, checkout removed, {words} saved as {name}"),
        );
        Ok(())
    }

    /// The first event of a type that fits, once it is in the log.
    fn event(
        &self,
        step: &str,
        name: &str,
        fits: &dyn Fn(&Map<String, Value>) -> bool,
    ) -> Result<Map<String, Value>, OpError> {
        self.until(step, name, || {
            let found = self.events(name);
            found.into_iter().find(|event| fits(event))
        })
    }

    fn events(&self, name: &str) -> Vec<Map<String, Value>> {
        let filter = Filter {
            types: vec![Glob::new(name)],
            ..Filter::default()
        };
        let mut found = Vec::new();
        let reader = Reader::new(&self.place.world, &self.desk.layout.events_log());
        let _ = reader.query(&filter, 0, &mut |record| {
            found.push(record.fields.clone());
            ControlFlow::Continue(())
        });
        found
    }

    /// Waits until it is seen, and says by its step what was not.
    fn until<T>(
        &self,
        step: &str,
        what: &str,
        mut seen: impl FnMut() -> Option<T>,
    ) -> Result<T, OpError> {
        let clock = &self.place.world.clock;
        let deadline: Timestamp = clock.now().plus(self.step_within);
        loop {
            if let Some(seen) = seen() {
                return Ok(seen);
            }
            if self.stop.load(Ordering::SeqCst) {
                return Err(OpError::new(Kind::Failed, format!("{step}: interrupted")));
            }
            if clock.now() >= deadline {
                let seconds = self.step_within.as_secs();
                let words = format!("{step}: not observed within {seconds} s ({what})");
                return Err(OpError::new(Kind::Failed, words));
            }
            clock.wait(LOOK_EVERY);
        }
    }
}

fn text(event: &Map<String, Value>, name: &str) -> String {
    let value = event.get(name).and_then(Value::as_str);
    value
        .map(the_loop_core::redact::visible)
        .unwrap_or_default()
}

fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1000.0)
}
