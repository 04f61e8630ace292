//! Anthropic's messages API, as Claude Code uses it.

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::{Asked, Directive, WORDS, cost, reply, reply_json, tokens, unlisted};

/// What a request holds.
pub(super) fn asked(body: &Value) -> Asked {
    Asked {
        newest: newest_user_text(body),
        whole: whole_text(body),
        is_conversation: body["tools"].as_array().is_some_and(|t| !t.is_empty()),
    }
}

/// The answer to `count_tokens`.
pub(super) fn count(path: &str, asked: &Asked) -> Option<Response<Full<Bytes>>> {
    let counted = || reply_json(200, &json!({"input_tokens": tokens(&asked.whole)}));
    path.ends_with("count_tokens").then(counted)
}

/// The answer that the directive asks for.
pub(super) fn answer(body: &Value, directive: &Directive, number: u64) -> Response<Full<Bytes>> {
    let (block, stop) = block(directive, number);
    let message = message(body, number);
    if body["stream"] == json!(true) {
        reply(200, "text/event-stream", events(message, &block, stop))
    } else {
        let mut whole = message;
        whole["content"] = json!([block]);
        whole["stop_reason"] = json!(stop);
        reply_json(200, &whole)
    }
}

/// A refusal.
pub(super) fn failure(status: u16, kind: &str) -> Response<Full<Bytes>> {
    let error = json!({"type": "error", "error": {"type": kind, "message": "as told"}});
    reply_json(status, &error)
}

/// All text of the newest user message, the results of tools among it.
fn newest_user_text(body: &Value) -> String {
    let messages = body["messages"].as_array();
    let newest = messages.and_then(|all| all.iter().rev().find(|m| m["role"] == "user"));
    newest.map(|m| text(&m["content"])).unwrap_or_default()
}

/// All text of all messages.
fn whole_text(body: &Value) -> String {
    let messages = body["messages"].as_array().into_iter().flatten();
    let texts: Vec<String> = messages.map(|m| text(&m["content"])).collect();
    texts.join("\n")
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks
                .iter()
                .map(|b| b.get("text").map_or_else(|| text(&b["content"]), text))
                .collect();
            texts.join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn block(directive: &Directive, number: u64) -> (Value, &'static str) {
    let tool = |name: &str, input: Value| {
        let id = format!("toolu_{number:024}");
        let block = json!({"type": "tool_use", "id": id, "name": name, "input": input});
        (block, "tool_use")
    };
    let run = |command: &str| {
        tool(
            "Bash",
            json!({"command": command, "description": "as told"}),
        )
    };
    match directive {
        Directive::Run(command) => run(command),
        Directive::Permit(command) => run(&unlisted(command)),
        Directive::Read(path) => tool("Read", json!({"file_path": path})),
        Directive::Ask => {
            let options = json!([{"label": "Red", "description": "r"},
                    {"label": "Blue", "description": "b"}]);
            let question = json!({"question": "Which colour?", "header": "Colour",
                    "multiSelect": false, "options": options});
            tool("AskUserQuestion", json!({"questions": [question]}))
        }
        Directive::Slow(_) | Directive::Words => {
            (json!({"type": "text", "text": WORDS}), "end_turn")
        }
    }
}

fn message(body: &Value, number: u64) -> Value {
    json!({"id": format!("msg_{number:024}"), "type": "message", "role": "assistant",
        "model": body["model"], "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": cost::INPUT, "output_tokens": 1,
            "cache_creation_input_tokens": cost::CACHE_WRITE, "cache_read_input_tokens": cost::CACHE_READ}})
}

/// The answer as the stream of events that clients ask for.
fn events(message: Value, block: &Value, stop: &str) -> String {
    let mut opening = block.clone();
    let delta = if block["type"] == "text" {
        opening["text"] = json!("");
        json!({"type": "text_delta", "text": block["text"]})
    } else {
        opening["input"] = json!({});
        json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
    };
    let events = [
        ("message_start", json!({"message": message})),
        (
            "content_block_start",
            json!({"index": 0, "content_block": opening}),
        ),
        ("content_block_delta", json!({"index": 0, "delta": delta})),
        ("content_block_stop", json!({"index": 0})),
        (
            "message_delta",
            json!({"delta": {"stop_reason": stop, "stop_sequence": null},
                "usage": {"output_tokens": cost::OUTPUT}}),
        ),
        ("message_stop", json!({})),
    ];
    let mut stream = String::new();
    for (name, mut data) in events {
        data["type"] = json!(name);
        stream.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    }
    stream
}
