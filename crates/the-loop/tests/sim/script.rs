//! Deliveries, and the scripted run that crashes and failures are put into.

use serde_json::Value;
use the_loop_core::delivery::{Actor, Delivery, Effect, Ending, Ingress, ItemFacts, State, Text};
use the_loop_core::ids::WorkItemRef;
use the_loop_testkit::Simulator;

pub const ITEM: &str = "github:octo/repo#15";
/// Looks that a step may take: more than all retries of one delivery.
const TICKS: u32 = 2_000;

fn ada() -> Actor {
    Actor {
        login: "ada".to_owned(),
        id: Some(1),
        bot: false,
    }
}

fn delivery(item: &str, id: &str, event: &str, action: &str, effect: Effect) -> Delivery {
    Delivery {
        delivery_id: id.to_owned(),
        content_key: format!("github/github.com/{event}/{id}/{action}"),
        numeric_key: None,
        ingress: Ingress::Webhook,
        item: item.parse::<WorkItemRef>().unwrap(),
        event: event.to_owned(),
        action: Some(action.to_owned()),
        actor: Some(ada()),
        received_at: "2026-03-01T09:00:00Z".parse().unwrap(),
        pull: None,
        place: None,
        asked: None,
        facts: ItemFacts {
            labels: Some(vec!["the-loop: auto-execute".to_owned()]),
            closed: Some(false),
            ..ItemFacts::default()
        },
        effect,
        entries: Vec::new(),
    }
}

/// A comment by an authorised person; its delivery id is `id`.
pub fn comment_on(item: &str, id: &str, body: &str) -> Delivery {
    let text = Text {
        comment_id: Some(id.to_owned()),
        body: body.to_owned(),
        author: Some(ada()),
        html_url: None,
        created_at: Some("2026-03-01T09:00:00Z".parse().unwrap()),
        decision: None,
        edited: false,
    };
    delivery(item, id, "issue_comment", "created", Effect::Text(text))
}

pub fn comment(id: &str, body: &str) -> Delivery {
    comment_on(ITEM, id, body)
}

pub fn close(id: &str) -> Delivery {
    let effect = Effect::Close {
        ending: Ending::Closed,
        at: None,
        moved_to: None,
    };
    delivery(ITEM, id, "issues", "closed", effect)
}

/// Name of the tmux session of an item.
pub fn target(item: &str) -> String {
    item.parse::<WorkItemRef>()
        .unwrap()
        .slug()
        .target()
        .to_string()
}

/// Accepts a delivery that must be accepted.
pub fn send(sim: &Simulator, delivery: &Delivery) {
    sim.accept(delivery).unwrap();
}

/// A session that has taken its start comment.
pub fn started(sim: &Simulator) {
    send(sim, &comment("start", "the-loop start"));
    let up = sim.tick_until(60, |sim| sim.stands("start") == "confirmed");
    assert!(up, "{}\n{}", sim.stands("start"), story(sim));
}

/// The log as text, for the message of a test that fails.
pub fn story(sim: &Simulator) -> String {
    let mut story = String::new();
    for event in sim.events() {
        let line: Vec<String> = event
            .iter()
            .filter(|(name, _)| !matches!(name.as_str(), "source" | "level" | "workItem"))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        story.push_str(&line.join(" "));
        story.push('\n');
    }
    story
}

/// What happens to the machine before a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// The next turn of the agent begins with a question.
    Asks,
    /// The agent's process is killed.
    AgentDies,
    /// The tmux server goes with all that is in it.
    ServerDies,
}

/// Which script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Prompts, a question, a pause, a close.
    Talk,
    /// A spawn, and agents and servers that die between prompts.
    Recovery,
}

/// One step: what is sent, what a person at the terminal does, and what must have come of it.
struct Step {
    send: Vec<Delivery>,
    before: Before,
    answer: bool,
    ends: Vec<(&'static str, &'static [&'static str])>,
}

/// What a row may say at the end of a step.
const TAKEN: &[&str] = &["confirmed", "uncertain"];
const DONE: &[&str] = &["settled(control-executed)"];

fn step(send: Vec<Delivery>, ends: Vec<(&'static str, &'static [&'static str])>) -> Step {
    Step {
        send,
        before: Before::Nothing,
        answer: false,
        ends,
    }
}

fn after(before: Before, step: Step) -> Step {
    Step { before, ..step }
}

fn recovery() -> Vec<Step> {
    let prompt = |id: &'static str| step(vec![comment(id, "Words.")], vec![(id, TAKEN)]);
    vec![
        step(
            vec![comment("start", "the-loop start")],
            vec![("start", TAKEN)],
        ),
        after(Before::AgentDies, prompt("one")),
        after(Before::ServerDies, prompt("two")),
        after(
            Before::AgentDies,
            step(
                vec![close("close")],
                vec![("close", &["settled(item-closed)"])],
            ),
        ),
    ]
}

fn talk() -> Vec<Step> {
    vec![
        step(
            vec![comment("start", "the-loop start")],
            vec![("start", TAKEN)],
        ),
        step(
            vec![
                comment("one", "First."),
                comment("two", "Second.\nLong.\nLonger.\nLongest."),
            ],
            vec![("one", TAKEN), ("two", TAKEN)],
        ),
        // The agent asks in the turn of this one, so the next must wait for a person.
        after(
            Before::Asks,
            step(vec![comment("asks", "Do it.")], vec![("asks", TAKEN)]),
        ),
        Step {
            send: vec![comment("waits", "And this.")],
            before: Before::Nothing,
            answer: true,
            ends: vec![("waits", TAKEN)],
        },
        step(
            vec![comment("pause", "the-loop pause")],
            vec![("pause", DONE)],
        ),
        step(
            vec![comment("unheard", "Nobody listens.")],
            vec![("unheard", &["settled(session-paused)"])],
        ),
        step(
            vec![comment("resume", "the-loop resume")],
            vec![("resume", DONE)],
        ),
        step(vec![comment("last", "Read up.")], vec![("last", TAKEN)]),
        step(
            vec![close("close")],
            vec![("close", &["settled(item-closed)"])],
        ),
    ]
}

/// Prompts that an agent is to get, in order.
fn prompts(script: Script) -> &'static [&'static str] {
    match script {
        Script::Talk => &["start", "one", "two", "asks", "waits", "last"],
        Script::Recovery => &["start", "one", "two"],
    }
}

/// Runs the script to its end; a crash on the way is followed by the next life, and whoever sent what was
/// not accepted sends it again. `calm` is told when a life ended.
pub fn play(sim: &mut Simulator, script: Script) {
    let name = target(ITEM);
    let steps = match script {
        Script::Talk => talk(),
        Script::Recovery => recovery(),
    };
    for (at, step) in steps.iter().enumerate() {
        match step.before {
            Before::Nothing => {}
            Before::Asks => sim.tmux.server(|server| server.mood.ask = 1),
            Before::AgentDies => sim.tmux.agent_dies(&name),
            Before::ServerDies => sim.tmux.server_dies(),
        }
        let mut unsent: Vec<&Delivery> = step.send.iter().collect();
        let mut answered = !step.answer;
        let mut tries = 0;
        loop {
            unsent.retain(|delivery| sim.accept(delivery).is_err());
            let is_over = sim.tick_until(TICKS, |sim| {
                if !answered && sim.tmux.asks(&name) && sim.stands("waits").contains("dialog") {
                    sim.tmux.types(&name, "y");
                    answered = true;
                }
                let ended = |(id, ends): &(&str, &[&str])| {
                    let stands = sim.stands(id);
                    let word = stands.split('(').next().unwrap_or_default();
                    ends.iter().any(|end| *end == stands || *end == word)
                };
                unsent.is_empty() && step.ends.iter().all(ended) || !unsent.is_empty()
            });
            if sim.fuse.crashed() {
                sim.restart();
            } else if is_over && unsent.is_empty() {
                break;
            }
            tries += 1;
            let stand: Vec<String> = step.ends.iter().map(|(id, _)| sim.stands(id)).collect();
            assert!(
                tries < 4,
                "step {at} does not end: {stand:?}\n{}",
                story(sim)
            );
        }
    }
}

/// Checks what must hold after the script, whatever happened in it; says what does not.
pub fn faults(sim: &Simulator, script: Script) -> Vec<String> {
    let prompts = prompts(script);
    let mut faults = sim.tmux.violations();
    let taken = sim.taken();
    let is_doubtful = |id: &str| sim.count("delivery.uncertain", "delivery_id", id) > 0;
    for id in prompts {
        let times = taken.iter().filter(|taken| taken == id).count();
        let is_good = times == 1 || (is_doubtful(id) && times <= 2);
        if !is_good {
            faults.push(format!("{id} was taken {times} times"));
        }
        if is_doubtful(id) && sim.stands(id) == "uncertain" && times > 1 {
            faults.push(format!("{id} was sent twice and is uncertain"));
        }
    }
    for id in &taken {
        if !prompts.contains(&id.as_str()) {
            faults.push(format!("{id} was taken and is no prompt"));
        }
    }
    // Somebody whose delivery was refused sends it again, after what was accepted meanwhile.
    let accepted: Vec<String> = sim.rows().into_iter().map(|row| row.delivery_id).collect();
    let sure: Vec<&String> = taken.iter().filter(|id| !is_doubtful(id)).collect();
    let is_sure_prompt = |id: &&String| prompts.contains(&id.as_str()) && !is_doubtful(id);
    let in_order: Vec<&String> = accepted.iter().filter(is_sure_prompt).collect();
    if sure != in_order {
        faults.push(format!("the order was {taken:?}"));
    }
    for row in sim.rows() {
        let has_end = matches!(
            row.state,
            State::Confirmed | State::Settled | State::Dropped | State::Uncertain
        );
        if !has_end {
            faults.push(format!("{} stands {}", row.delivery_id, row.state));
        }
        if row.state == State::Uncertain && !is_doubtful(&row.delivery_id) {
            faults.push(format!("{} is uncertain without a word", row.delivery_id));
        }
    }
    if !sim.tmux.live().is_empty() {
        faults.push("an agent lives on".to_owned());
    }
    // A conversation that an agent had is never left for a new one, and no spawn is left journaled.
    if sim.conversations() > 1 {
        faults.push(format!("{} conversations", sim.conversations()));
    }
    for status in sim.statuses() {
        if status != "closed" {
            faults.push(format!("a record says {status}"));
        }
    }
    for file in sim.launch_files() {
        faults.push(format!("the launch file {file} is left"));
    }
    for event in sim.told("dispatch.error") {
        if event.get("will_retry") == Some(&Value::Bool(true)) {
            continue;
        }
        let error = event.get("error").map(Value::to_string);
        faults.push(format!("a defect: {}", error.unwrap_or_default()));
    }
    faults
}
