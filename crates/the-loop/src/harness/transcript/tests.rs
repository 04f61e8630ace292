use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::harness::testing::{header, marker, world};

const TIME: &str = "2026-12-01T00:23:24.725Z";

fn time() -> Timestamp {
    TIME.parse().unwrap()
}

fn claude(lines: &[Value]) -> Vec<Entry> {
    let (_dir, path, world) = world();
    let file = path.join("t.jsonl");
    for line in lines {
        world
            .disk
            .append(&file, format!("{line}\n").as_bytes())
            .unwrap();
    }
    TranscriptTail::new(file, TranscriptFormat::Claude)
        .read(&*world.disk)
        .unwrap()
}

fn user(content: Value) -> Value {
    json!({"isSidechain": false, "type": "user", "message": {"role": "user", "content": content},
        "timestamp": TIME})
}

fn assistant(id: &str, output: u64, stop: &str) -> Value {
    json!({"isSidechain": false, "type": "assistant", "timestamp": TIME,
        "message": {"id": id, "role": "assistant", "stop_reason": stop, "content": [],
            "usage": {"input_tokens": 11, "output_tokens": output, "cache_read_input_tokens": 4,
                "cache_creation_input_tokens": 3}}})
}

#[test]
fn di25_only_a_user_s_own_prompt_counts() {
    let prompt = Entry::Prompt {
        at: time(),
        markers: vec![marker()],
    };
    assert_eq!(
        claude(&[user(json!(format!("{}\nhello", header())))]),
        std::slice::from_ref(&prompt)
    );
    let blocks = json!([{"type": "text", "text": header()}]);
    assert_eq!(claude(&[user(blocks)]), [prompt]);
    let mut side = user(json!(header()));
    side["isSidechain"] = json!(true);
    let mut meta = user(json!(header()));
    meta["isMeta"] = json!(true);
    let copy = json!({"type": "api-request-blob", "timestamp": TIME,
        "message": {"role": "user", "content": [{"type": "text", "text": header()}]}});
    let queued = json!({"type": "queue-operation", "operation": "enqueue", "timestamp": TIME,
        "content": header()});
    let result = user(json!([{"type": "tool_result", "content": header()}]));
    let last = json!({"type": "last-prompt", "lastPrompt": header()});
    assert_eq!(claude(&[side, meta, copy, queued, result, last]), []);
    let own = assistant("m", 0, "end_turn");
    assert!(matches!(claude(&[own])[..], [Entry::Answer { .. }]));
}

#[test]
fn di37_a_message_written_in_several_lines_is_counted_once() {
    let entries = claude(&[
        assistant("a", 1, "tool_use"),
        assistant("a", 7, "tool_use"),
        assistant("b", 5, "end_turn"),
    ]);
    let mut sum = Usage::default();
    let mut ends = Vec::new();
    for entry in entries {
        if let Entry::Answer {
            usage, ends_turn, ..
        } = entry
        {
            sum += usage;
            ends.push(ends_turn);
        }
    }
    assert_eq!(
        sum,
        Usage {
            input: 22,
            output: 12,
            cache_read: 8,
            cache_write: 6
        }
    );
    assert_eq!(ends, [false, false, true]);
}

#[test]
fn di38_the_demo_s_lines_are_read() {
    let (_dir, path, world) = world();
    let file = path.join("t.jsonl");
    let mut tail = TranscriptTail::new(file.clone(), TranscriptFormat::Demo);
    assert_eq!(tail.read(&*world.disk).unwrap(), []);
    let lines = [
        json!({"role": "user", "text": "x", "marker": marker(), "usage": null, "at": TIME}),
        json!({"role": "assistant", "text": "y", "marker": null, "at": TIME,
            "usage": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0}}),
    ];
    for line in &lines {
        world
            .disk
            .append(&file, format!("{line}\n").as_bytes())
            .unwrap();
    }
    let usage = Usage {
        input: 1,
        output: 2,
        ..Usage::default()
    };
    assert_eq!(
        tail.read(&*world.disk).unwrap(),
        [
            Entry::Prompt {
                at: time(),
                markers: vec![marker()]
            },
            Entry::Answer {
                at: time(),
                ends_turn: true,
                usage
            },
        ]
    );
    assert!(tail.growth().len > 0);
    assert_eq!(tail.read(&*world.disk).unwrap(), []);
}

#[test]
fn a_file_that_is_replaced_or_cut_is_read_again() {
    let (_dir, path, world) = world();
    let file = path.join("t.jsonl");
    let line = format!("{}\n", user(json!(header())));
    world
        .disk
        .append(&file, format!("{line}{line}").as_bytes())
        .unwrap();
    let mut tail = TranscriptTail::new(file.clone(), TranscriptFormat::Claude);
    assert_eq!(tail.read(&*world.disk).unwrap().len(), 2);
    world
        .disk
        .write_atomic(&file, line.as_bytes(), false)
        .unwrap();
    assert_eq!(tail.read(&*world.disk).unwrap().len(), 1);
}

proptest! {
    #[test]
    fn lines_come_whole_however_the_file_grows(
        lines in prop::collection::vec("[a-z]{0,40}", 0..20), cuts in prop::collection::vec(1usize..50, 1..30)
    ) {
        let (_dir, path, world) = world();
        let file = path.join("l");
        let all: Vec<u8> = lines.iter().flat_map(|l| format!("{l}\n").into_bytes()).collect();
        let mut tail = LineTail::new(30);
        let mut got = Vec::new();
        let mut too_long = 0;
        let mut rest = &all[..];
        for cut in cuts.iter().chain([&usize::MAX]) {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            rest = later;
            world.disk.append(&file, now).unwrap();
            let told = tail.read(&*world.disk, &file, &mut |l| got.push(l.to_vec())).unwrap();
            too_long += told.too_long;
        }
        let kept: Vec<Vec<u8>> = lines.iter().filter(|l| l.len() <= 30).map(|l| l.clone().into_bytes()).collect();
        prop_assert_eq!(too_long, lines.len() - kept.len());
        prop_assert_eq!(got, kept);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = claude_entry(&bytes, &mut Counted::default());
        let _ = codex::entry(&bytes, &mut Usage::default());
        let _ = demo_entry(&bytes);
    }
}

#[test]
fn di29_a_line_without_a_time_is_not_dated_before_it_was_written() {
    let (_dir, path, world) = world();
    let clock = crate::clock::Clock::System;
    let file = path.join("t.log");
    let mut tail = TranscriptTail::new(file.clone(), TranscriptFormat::Lines);
    for _ in 0..100 {
        let before = clock.now();
        let line = format!("heard: {}\n", header());
        world.disk.append(&file, line.as_bytes()).unwrap();
        let told = tail.read(&*world.disk).unwrap();
        let [Entry::Mention { at, .. }] = &told[..] else {
            panic!("{told:?}");
        };
        assert!(*at >= before, "{} < {}", at.millis(), before.millis());
    }
}
