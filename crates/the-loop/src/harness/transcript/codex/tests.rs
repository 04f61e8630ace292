use serde_json::{Value, json};

use super::super::{TranscriptFormat, TranscriptTail};
use super::*;
use crate::harness::testing::{header, marker, world};

const TIME: &str = "2026-12-01T04:27:19.697Z";

fn event(payload: Value) -> Value {
    json!({"timestamp": TIME, "ordinal": 1, "type": "event_msg", "payload": payload})
}

fn tokens(input: u64, cached: u64, output: u64) -> Value {
    let total = json!({"input_tokens": input, "cached_input_tokens": cached,
        "cache_write_input_tokens": 1, "output_tokens": output, "reasoning_output_tokens": 2,
        "total_tokens": input + output});
    event(
        json!({"type": "token_count", "info": {"total_token_usage": total,
        "last_token_usage": total}, "rate_limits": {}}),
    )
}

fn read(lines: &[Value]) -> Vec<Entry> {
    let (_dir, path, world) = world();
    let file = path.join("t.jsonl");
    for line in lines {
        let line = format!("{line}\n");
        world.disk.append(&file, line.as_bytes()).unwrap();
    }
    let mut tail = TranscriptTail::new(file, TranscriptFormat::Codex);
    tail.read(&*world.disk).unwrap()
}

#[test]
fn di25_only_a_person_s_prompt_counts_in_a_rollout() {
    let prompt = event(
        json!({"type": "item_completed", "item": {"type": "UserMessage",
        "content": [{"type": "text", "text": format!("{}\nhello", header())}]}}),
    );
    let answer = event(
        json!({"type": "item_completed", "item": {"type": "AgentMessage",
        "content": [{"type": "Text", "text": header()}]}}),
    );
    let sent = json!({"timestamp": TIME, "type": "response_item", "payload": {"type": "message",
        "role": "user", "content": [{"type": "input_text", "text": header()}]}});
    let output = json!({"timestamp": TIME, "type": "response_item", "payload":
        {"type": "function_call_output", "output": header()}});
    let at = TIME.parse().unwrap();
    let markers = vec![marker()];
    assert_eq!(
        read(&[sent, prompt, answer, output]),
        [Entry::Prompt { at, markers }]
    );
}

#[test]
fn di37_a_growing_total_is_counted_once_and_anew_from_the_first_line() {
    let counted: Vec<Usage> = read(&[
        event(json!({"type": "token_count", "info": null})),
        tokens(15, 4, 7),
        tokens(15, 4, 7),
        tokens(30, 8, 14),
        json!({"timestamp": TIME, "type": "session_meta", "payload": {}}),
        tokens(15, 4, 7),
    ])
    .into_iter()
    .map(|entry| match entry {
        Entry::Answer {
            usage, ends_turn, ..
        } => {
            assert!(!ends_turn);
            usage
        }
        other => panic!("{other:?}"),
    })
    .collect();
    let usage = |input, output, cache_read, cache_write| Usage {
        input,
        output,
        cache_read,
        cache_write,
    };
    assert_eq!(
        counted,
        [usage(10, 7, 4, 1), usage(11, 7, 4, 0), usage(10, 7, 4, 1)]
    );
}

#[test]
fn di31_a_turn_ends_done_or_interrupted() {
    let complete = event(json!({"type": "task_complete", "last_agent_message": "Done."}));
    let aborted = event(json!({"type": "turn_aborted", "reason": "interrupted"}));
    let entries = read(&[complete, aborted]);
    assert_eq!(entries.len(), 2);
    for entry in entries {
        assert!(matches!(
            entry,
            Entry::Answer {
                ends_turn: true,
                ..
            }
        ));
    }
}

#[test]
fn di42_limit_and_login_come_from_the_structured_error_of_a_turn() {
    let failed = |info: Value| {
        let error = json!({"message": "usage limit, unauthorized", "codex_error_info": info});
        let line = event(json!({"type": "task_complete", "error": error}));
        match &read(&[line])[..] {
            [Entry::Barred { kind, .. }] => Some(*kind),
            [
                Entry::Answer {
                    ends_turn: true, ..
                },
            ] => None,
            other => panic!("{other:?}"),
        }
    };
    let limit = Some(WaitingKind::UsageLimit);
    assert_eq!(failed(json!("usage_limit_exceeded")), limit);
    assert_eq!(failed(json!("unauthorized")), Some(WaitingKind::Login));
    let http = |status: u16| json!({"http_connection_failed": {"http_status_code": status}});
    assert_eq!(failed(http(401)), Some(WaitingKind::Login));
    assert_eq!(failed(http(500)), None);
    assert_eq!(failed(json!("server_overloaded")), None);
}
